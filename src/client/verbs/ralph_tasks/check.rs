//! `swarm ralph tasks check`: report every problem of a list.

use serde_json::{Value, json};
use swarm_state::tasks::TaskList;
use swarm_state::tasks::check::{TaskProblem, check};
use swarm_state::words::counted;

use crate::cli::{PageFormat, TasksCheck};
use crate::client::context::ClientContext;
use crate::client::task_list_file::TaskListFile;
use crate::error::Error;
use crate::out::CommandResult;

/// The states in the order of a story's life.
const STATES: [&str; 5] = ["approved", "done", "changes_requested", "needs_review", "open"];

pub(super) fn run(ctx: &ClientContext, args: &TasksCheck) -> CommandResult {
    let file = TaskListFile::of_args(&args.place);
    let (list, problems) = check(&file.read()?, args.review.options());
    let skip_review = args.review.skip_review;
    match args.format {
        PageFormat::Json => ctx.out.json(&json!({
            "file": file.absolute()?,
            "valid": problems.is_empty(),
            "stories": list.as_ref().map(|list| list.stories().len()),
            "states": list.as_ref().map(states),
            "estimated_iterations": list.as_ref().map(|list| list.estimated_iterations(skip_review)),
            "problems": problems.iter().map(problem).collect::<Vec<_>>(),
        }))?,
        PageFormat::Text => {
            for problem in &problems {
                ctx.out.error(&Error::invalid(format!("{}: {}", file.shown(), problem.message)));
            }
            if let Some(list) = list.filter(|_| problems.is_empty()) {
                ctx.out.line(&summary(&list, skip_review))?;
            }
        }
    }
    Ok(u8::from(!problems.is_empty()))
}

/// `3 stories: 1 approved, 2 open; about 6 iterations`
fn summary(list: &TaskList, skip_review: bool) -> String {
    let count = list.stories().len();
    let stories = if count == 1 { "1 story".to_owned() } else { format!("{count} stories") };
    let states: Vec<String> = count_states(list)
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    let states = if states.is_empty() { String::new() } else { format!(": {}", states.join(", ")) };
    match list.estimated_iterations(skip_review) {
        0 => format!("{stories}{states}; nothing is left to do"),
        iterations => format!("{stories}{states}; about {}", counted(iterations as u64, "iteration")),
    }
}

fn count_states(list: &TaskList) -> [(&'static str, usize); 5] {
    STATES.map(|state| (state, list.stories().iter().filter(|story| story.state_word() == state).count()))
}

fn states(list: &TaskList) -> Value {
    count_states(list).into_iter().map(|(state, count)| (state.to_owned(), json!(count))).collect()
}

fn problem(problem: &TaskProblem) -> Value {
    json!({
        "story": problem.story,
        "field": problem.field,
        "line": problem.place.map(|(line, _)| line),
        "column": problem.place.map(|(_, column)| column),
        "message": problem.message,
    })
}
