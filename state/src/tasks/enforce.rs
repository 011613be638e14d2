//! Decides for the daemon which of an agent's edits of the task list stay.
//!
//! The daemon compares the file with the list that it recorded before the iteration, so neither an agent without hooks
//! nor one that edits `.ralph-active` can approve its own work. An illegal change of a story is undone for that story,
//! other edits stay. A file that cannot be read is replaced by the last good list.

use super::list::key;
use super::review::{Violation, transitions};
use super::schema::parse_leniently;
use super::{APPROVED_AT_CAP, IterationMode, ReviewOptions, ReviewState, ReviewStatus, TaskList};

/// An iteration whose edits are judged.
#[derive(Clone, Copy, Debug)]
pub struct Edited<'a> {
    /// The kind of work.
    pub mode: IterationMode,
    /// Its story.
    pub selected: &'a str,
    /// The list before it.
    pub before: &'a TaskList,
    /// The file now; `None` if it cannot be read or was deleted.
    pub now: Option<&'a str>,
}

/// The list that counts, and the undone edits.
#[derive(Clone, Debug, PartialEq)]
pub struct Enforced {
    /// The list.
    pub list: TaskList,
    /// The file has to be replaced by the list, because it cannot be used as a whole.
    pub is_restored: bool,
    /// The faults, and how they were undone: a sentence each, for the next iteration and for people.
    pub remarks: Vec<String>,
    /// The edits that stay and that a person should know: a sentence each.
    pub noted: Vec<String>,
    /// The story whose review fields changed legally.
    pub changed: Option<String>,
}

impl Enforced {
    /// Undoes all changes of other stories, for a loop that works on one story only.
    pub fn keep_only(&mut self, id: &str, before: &TaskList) {
        for other in before.stories().iter().filter(|other| other.id != id) {
            if self.list.raw(&other.id) == before.raw(&other.id) {
                continue;
            }
            self.list.restore_story(&other.id, before);
            self.remarks
                .push(format!("story {} was changed and was restored: this loop works on {id}", other.id));
        }
        self.changed.take_if(|changed| changed != id);
    }

    /// Undoes the approvals of the iteration for a reason, if there is one.
    pub fn undo_approvals(&mut self, before: &TaskList, options: ReviewOptions, why: &str) {
        if why.is_empty() {
            return;
        }
        let is_new = |id: &str| !before.story(id).is_some_and(|old| old.is_done(options.skip_review));
        let done = self.list.stories().iter().filter(|story| story.is_done(options.skip_review));
        let ids: Vec<String> = done.map(|story| story.id.clone()).filter(|id| is_new(id)).collect();
        for id in ids {
            undo(&mut self.list, before, &id);
            self.remarks.push(format!("the approval of story {id} does not count: {why}"));
            self.changed.take_if(|changed| *changed == id);
        }
    }
}

/// Judges the edits of an iteration.
pub fn enforce(edited: Edited<'_>, options: ReviewOptions) -> Enforced {
    let before = edited.before;
    let restored = |why: String| Enforced {
        list: before.clone(),
        is_restored: true,
        remarks: vec![format!("the task list was restored: {why}")],
        noted: vec![],
        changed: None,
    };
    let Some(text) = edited.now else { return restored("the file is missing or cannot be read".into()) };
    let (mut list, fault) = match parse_leniently(text) {
        Ok(read) => read,
        Err(fault) => return restored(fault.to_string()),
    };
    let mut remarks = vec![];
    if let Some(fault) = fault {
        let known = fault.story().filter(|id| before.story(id).is_some()).map(str::to_owned);
        let Some(id) = known else { return restored(fault.to_string()) };
        list.restore_story(&id, before);
        remarks.push(format!("{fault}; the story was restored"));
        // There may be more, but the text of a list whose stories are all valid has none.
        if let Err(fault) = TaskList::parse(&list.to_text()) {
            return restored(fault.to_string());
        }
    }
    let faults = list.dependency_faults();
    if let (Some(fault), true) = (faults.first(), before.dependency_faults().is_empty()) {
        return restored(fault.to_string());
    }
    remarks.extend(restore_checks(&mut list, before));
    let mut changed = None;
    if options.skip_review {
        remarks.extend(restore_removed(&mut list, before));
    } else {
        let found = transitions(
            edited.mode,
            &before.review_states(),
            &list,
            options.review_cap,
            Some(edited.selected),
        );
        changed = found.changed;
        for Violation { story, message } in found.violations {
            if approve_at_cap(&mut list, before, &story, options.review_cap, edited.mode) {
                changed.get_or_insert(story);
                continue;
            }
            undo(&mut list, before, &story);
            remarks.push(message);
        }
    }
    let noted = noted(&list, before);
    Enforced { list, is_restored: false, remarks, noted, changed }
}

/// Changed requirements, and approvals at the cap.
fn noted(list: &TaskList, before: &TaskList) -> Vec<String> {
    let mut noted = vec![];
    for old in before.stories() {
        let Some(new) = list.story(&old.id) else { continue };
        let fields = [
            ("title", old.title != new.title),
            ("description", old.description != new.description),
            ("acceptanceCriteria", old.criteria != new.criteria),
            ("dependsOn", old.depends_on != new.depends_on),
        ];
        let changed: Vec<&str> =
            fields.iter().filter(|(_, changed)| *changed).map(|(field, _)| *field).collect();
        if !changed.is_empty() {
            noted.push(format!("the iteration changed {} of story {}", changed.join(", "), old.id));
        }
        if new.is_done(false) && !old.is_done(false) && new.feedback.starts_with(APPROVED_AT_CAP) {
            noted.push(format!("story {} was approved at the review cap; see its reviewFeedback", old.id));
        }
    }
    if list.verify_commands() != before.verify_commands() {
        noted.push("the iteration changed verifyCommands".to_owned());
    }
    noted
}

/// Undoes the change of a story's review fields.
fn undo(list: &mut TaskList, before: &TaskList, id: &str) {
    match (before.story(id), list.story(id)) {
        (Some(old), Some(new)) if old.review == new.review => {}
        (Some(old), Some(_)) => {
            let (review, feedback) = (old.review, old.feedback.clone());
            list.set_review(id, review, &feedback);
        }
        (Some(_), None) => list.restore_story(id, before),
        (None, _) => list.set_review(id, ReviewState::default(), ""),
    }
}

/// A review that requests changes although the cap is reached approves the story, and keeps its concerns.
fn approve_at_cap(list: &mut TaskList, before: &TaskList, id: &str, cap: u64, mode: IterationMode) -> bool {
    let (Some(old), Some(story)) = (before.story(id), list.story(id)) else { return false };
    let new = story.review;
    let is_review = mode == IterationMode::Review
        && old.review.review_status == Some(ReviewStatus::NeedsReview)
        && new.review_count == old.review.review_count.saturating_add(1)
        && new.review_count >= cap
        && new.review_status == Some(ReviewStatus::ChangesRequested)
        && !new.passes
        && !story.feedback.trim().is_empty();
    if !is_review {
        return false;
    }
    let feedback = format!("{APPROVED_AT_CAP} {}", story.feedback);
    let review = ReviewState { passes: true, review_status: Some(ReviewStatus::Approved), ..new };
    if story.notes.trim().is_empty() {
        let note = "Approved at the review cap; see reviewFeedback.";
        list.edit(id, |raw| drop(raw.insert(key::NOTES.into(), note.into())));
    }
    list.set_review(id, review, &feedback);
    true
}

/// The checks of a story are the user's. Stories that the iteration added may bring their own.
fn restore_checks(list: &mut TaskList, before: &TaskList) -> Vec<String> {
    let mut remarks = vec![];
    for old in before.stories() {
        if list.story(&old.id).is_some_and(|story| story.checks != old.checks) {
            list.restore_field(&old.id, key::CHECKS, before);
            remarks.push(format!("the checks of story {} were changed and were restored", old.id));
        }
    }
    remarks
}

fn restore_removed(list: &mut TaskList, before: &TaskList) -> Vec<String> {
    let mut remarks = vec![];
    for old in before.stories() {
        if list.story(&old.id).is_none() {
            list.restore_story(&old.id, before);
            remarks.push(format!("story {} was removed and was restored", old.id));
        }
    }
    remarks
}
