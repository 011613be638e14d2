//! Finds every problem of a task list at once, for people ([`super::stop_check`] blocks at the first one).

use super::ReviewOptions;
use super::list::{Story, TaskList, key};
use super::review::invariants;
use super::schema::{self, StoryLabel, TasksFault};

/// A problem of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskProblem {
    /// The id of its story.
    pub story: Option<String>,
    /// The field.
    pub field: Option<&'static str>,
    /// Its line and its column, if the text is not JSON.
    pub place: Option<(usize, usize)>,
    /// The message.
    pub message: String,
}

/// Reads a list and finds its problems: the schema, the dependencies and, with reviews, the review fields. Returns
/// `None` instead of the list if the text is not a JSON object.
pub fn check(text: &str, options: ReviewOptions) -> (Option<TaskList>, Vec<TaskProblem>) {
    let (list, faults) = match schema::read(text) {
        Ok(read) => read,
        Err(fault) => return (None, vec![of_fault(&fault)]),
    };
    let mut problems: Vec<TaskProblem> = faults.iter().map(of_fault).collect();
    let is_new =
        |found: &TaskProblem| problems.iter().all(|it| (&it.story, it.field) != (&found.story, found.field));
    let empty: Vec<TaskProblem> = empty_parts(&list).into_iter().filter(is_new).collect();
    problems.extend(empty);
    problems.extend(list.dependency_faults().iter().map(|fault| TaskProblem {
        story: fault.story().map(str::to_owned),
        field: Some("dependsOn"),
        message: fault.to_string(),
        ..TaskProblem::default()
    }));
    if !options.skip_review {
        problems.extend(invariants(&list, options.review_cap).into_iter().map(|broken| TaskProblem {
            story: Some(broken.story),
            message: broken.message,
            ..TaskProblem::default()
        }));
    }
    (Some(list), problems)
}

/// A list without stories, and stories without a title. The schema permits both, so the Stop check does too, but a loop
/// does not start with them.
pub fn empty_parts(list: &TaskList) -> Vec<TaskProblem> {
    if list.stories().is_empty() {
        let message = "it has no stories".to_owned();
        return vec![TaskProblem { field: Some(key::STORIES), message, ..TaskProblem::default() }];
    }
    let untitled = list.stories().iter().filter(|story| story.title.trim().is_empty());
    let problem = |story: &Story| TaskProblem {
        story: Some(story.id.clone()),
        field: Some("title"),
        place: None,
        message: format!("story {}: the field \"title\" must not be empty", story.id),
    };
    untitled.map(problem).collect()
}

fn of_fault(fault: &TasksFault) -> TaskProblem {
    let (label, field, place) = match fault {
        TasksFault::Syntax { line, column, .. } => (None, None, Some((*line, *column))),
        TasksFault::NotAnObject => (None, None, None),
        TasksFault::List { field, .. } => (None, Some(*field), None),
        TasksFault::Story { story, field, .. } => (Some(story.clone()), Some(*field), None),
        TasksFault::NotAStory(story) => (Some(story.clone()), None, None),
        TasksFault::NoNotes(story) => (Some(story.clone()), Some("notes"), None),
        TasksFault::DuplicateId(id) => (Some(StoryLabel::Id(id.clone())), Some("id"), None),
    };
    let story = label.and_then(|label| match label {
        StoryLabel::Id(id) => Some(id),
        StoryLabel::Position(_) => None,
    });
    TaskProblem { story, field, place, message: fault.to_string() }
}
