//! The rules for the review fields (§5b): the invariants of check 2, and the transitions of check 2.5.
//!
//! [`invariants`] looks at one list. [`transitions`] compares it with the fields before the iteration; its table is the
//! one of the document, one function for each mode. Both return every violation with the document's message.

use super::{APPROVED_AT_CAP, IterationMode, ReviewState, ReviewStates, ReviewStatus, Story, TaskList};

/// A rule that a story breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The id of the story.
    pub story: String,
    /// The message for the agent, with the fix.
    pub message: String,
}

impl Violation {
    fn new(story: &str, message: String) -> Self {
        Self { story: story.to_owned(), message }
    }
}

/// Check 2: the rules that hold for each list, regardless of the changes.
pub fn invariants(list: &TaskList, cap: u64) -> Vec<Violation> {
    list.stories().iter().filter_map(|story| broken_invariant(story, cap)).collect()
}

fn broken_invariant(story: &Story, cap: u64) -> Option<Violation> {
    let Story { id, review, feedback, .. } = story;
    let status = status_word(review.review_status);
    let message = match (review.passes, review.review_status) {
        (true, None | Some(ReviewStatus::NeedsReview | ReviewStatus::ChangesRequested)) => format!(
            "Story {id} has passes=true but reviewStatus is '{status}', not 'approved'. Only review iterations may approve stories. Set passes back to false or complete the review cycle."
        ),
        (false, Some(ReviewStatus::Approved)) => format!(
            "Story {id} has reviewStatus 'approved' but passes=false. The two fields are out of sync. Set passes to true, or set reviewStatus back."
        ),
        (false, Some(ReviewStatus::ChangesRequested)) if feedback.trim().is_empty() => format!(
            "Story {id} has reviewStatus 'changes_requested' but an empty reviewFeedback. Feedback is required: describe what has to be fixed, and where."
        ),
        _ if review.review_count > cap.saturating_add(1) => format!(
            "Story {id} has reviewCount {}, more than the review cap of {cap} permits. Set it back to its value before this iteration.",
            review.review_count
        ),
        _ => return None,
    };
    Some(Violation::new(id, message))
}

/// The result of comparing a list with the fields before the iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transitions {
    /// The story whose review fields changed as the mode permits.
    pub changed: Option<String>,
    /// The rules that were broken, in the order of the list.
    pub violations: Vec<Violation>,
}

/// Check 2.5: the changes since `before`, and whether the mode permits them. `selected` is the story of the iteration,
/// if it is known. Of several changed stories it is the one that may change.
pub fn transitions(
    mode: IterationMode,
    before: &ReviewStates,
    list: &TaskList,
    cap: u64,
    selected: Option<&str>,
) -> Transitions {
    let mut found = Transitions::default();
    let mut changes: Vec<(&Story, ReviewState)> = vec![];
    for story in list.stories() {
        match before.get(&story.id) {
            Some(old) if *old != story.review => changes.push((story, *old)),
            Some(_) => {}
            None if story.review == ReviewState::default() => {}
            None => found.violations.push(new_story(mode, story)),
        }
    }
    // The story of the iteration comes first, so that of two legal changes it is the one that counts.
    changes.sort_by_key(|(story, _)| Some(story.id.as_str()) != selected);
    for (story, old) in changes {
        let illegal = match (broken_rule(mode, old, story, cap), &found.changed) {
            (Some(message), _) => message,
            (None, Some(first)) => {
                let changed = changed_field(old, story.review);
                let second = format!("review may only modify one story, and {first} changed too ({changed})");
                illegal(mode, &story.id, if mode == IterationMode::Review { &second } else { &changed })
            }
            (None, None) => {
                found.changed = Some(story.id.clone());
                continue;
            }
        };
        found.violations.push(Violation::new(&story.id, illegal));
    }
    let place = |id: &str| list.stories().iter().position(|story| story.id == id);
    found.violations.sort_by_key(|violation| place(&violation.story));
    found.violations.extend(removed(before, list));
    if mode == IterationMode::Review && found.changed.is_none() && found.violations.is_empty() {
        found.violations.extend(no_review(before, list, selected));
    }
    found
}

/// The stories that are gone. No mode permits that.
fn removed<'a>(before: &'a ReviewStates, list: &'a TaskList) -> impl Iterator<Item = Violation> {
    before.keys().filter(|id| list.story(id).is_none()).map(|id| {
        let message =
            format!("Story {id} was removed. Iterations may add stories, but not remove them. Put it back.");
        Violation::new(id, message)
    })
}

fn new_story(mode: IterationMode, story: &Story) -> Violation {
    let id = &story.id;
    let message = format!(
        "New stories must start incomplete: passes=false, reviewStatus=null and reviewCount=0. Story {id} was added in this {mode} iteration with other values."
    );
    Violation::new(id, message)
}

/// The rule of the mode that a change of a story breaks, as the message for the agent.
fn broken_rule(mode: IterationMode, old: ReviewState, story: &Story, cap: u64) -> Option<String> {
    match mode {
        IterationMode::Implement => implement(old, story),
        IterationMode::Review => review(old, story, cap),
        IterationMode::ReviewFix => review_fix(old, story),
    }
}

/// Row 1 of the table: `null` becomes `needs_review`, and nothing else changes.
fn implement(old: ReviewState, story: &Story) -> Option<String> {
    let new = story.review;
    let legal = ReviewState { review_status: Some(ReviewStatus::NeedsReview), ..old };
    if old.review_status.is_none() && new == legal {
        return None;
    }
    Some(illegal(IterationMode::Implement, &story.id, &changed_field(old, new)))
}

fn illegal(mode: IterationMode, id: &str, details: &str) -> String {
    match mode {
        IterationMode::Implement => format!(
            "Implement iterations cannot set passes=true or approve stories. Only review iterations may approve. Story {id} had illegal transition: {details}."
        ),
        IterationMode::Review => {
            format!("Review iteration made illegal transition on story {id}: {details}.")
        }
        IterationMode::ReviewFix => format!(
            "Review-fix iterations cannot approve stories. Story {id} must go back to needs_review for re-review. Illegal transition: {details}."
        ),
    }
}

/// Row 2: the count goes up by one, and the story is either approved and passes, or goes back with feedback.
fn review(old: ReviewState, story: &Story, cap: u64) -> Option<String> {
    let (new, id) = (story.review, &story.id);
    let details = if old.review_status != Some(ReviewStatus::NeedsReview) {
        format!("{}, but it was not waiting for a review", changed_field(old, new))
    } else if new.review_count != old.review_count.saturating_add(1) {
        let (old, new) = (old.review_count, new.review_count);
        format!("reviewCount must go up by exactly 1, but {old} → {new}")
    } else {
        match (new.review_status, new.passes) {
            (Some(ReviewStatus::Approved), true) => return None,
            (Some(ReviewStatus::ChangesRequested), false) if story.feedback.trim().is_empty() => {
                "reviewStatus needs_review → changes_requested without reviewFeedback".to_owned()
            }
            (Some(ReviewStatus::ChangesRequested), false) if new.review_count >= cap => format!(
                "reviewCount has reached the review cap of {cap}. Approve the story (reviewStatus \"approved\", passes true), and write the remaining concerns to reviewFeedback, starting with {APPROVED_AT_CAP}"
            ),
            (Some(ReviewStatus::ChangesRequested), false) => return None,
            (status, passes) => format!(
                "a review ends with reviewStatus \"approved\" and passes=true, or with \"changes_requested\" and passes=false, but it has '{}' and passes={passes}",
                status_word(status)
            ),
        }
    };
    Some(illegal(IterationMode::Review, id, &details))
}

/// A review iteration that reviewed nothing.
fn no_review(before: &ReviewStates, list: &TaskList, selected: Option<&str>) -> Option<Violation> {
    let waiting = |story: &&Story| {
        before.get(&story.id).is_some_and(|old| old.review_status == Some(ReviewStatus::NeedsReview))
    };
    let id = selected.or_else(|| list.stories().iter().find(waiting).map(|story| story.id.as_str()))?;
    let details = "review must increment reviewCount, and either approve the story or request changes";
    Some(Violation::new(id, illegal(IterationMode::Review, id, details)))
}

/// Row 3: `changes_requested` becomes `needs_review` with empty feedback, and nothing else changes.
fn review_fix(old: ReviewState, story: &Story) -> Option<String> {
    let new = story.review;
    let legal = ReviewState { review_status: Some(ReviewStatus::NeedsReview), ..old };
    let is_resubmitted = old.review_status == Some(ReviewStatus::ChangesRequested) && new == legal;
    if !is_resubmitted {
        return Some(illegal(IterationMode::ReviewFix, &story.id, &changed_field(old, new)));
    }
    let cleared = story.feedback.trim().is_empty();
    (!cleared).then(|| illegal(IterationMode::ReviewFix, &story.id, "reviewFeedback must be cleared"))
}

/// The first of the fields that differ, in the order `passes`, `reviewStatus`, `reviewCount`: `passes false → true`.
fn changed_field(old: ReviewState, new: ReviewState) -> String {
    if old.passes != new.passes {
        format!("passes {} → {}", old.passes, new.passes)
    } else if old.review_status != new.review_status {
        format!("reviewStatus {} → {}", status_word(old.review_status), status_word(new.review_status))
    } else {
        format!("reviewCount {} → {}", old.review_count, new.review_count)
    }
}

pub(super) fn status_word(status: Option<ReviewStatus>) -> &'static str {
    status.map_or("null", ReviewStatus::word)
}
