//! Checks 2 and 2.5: every row of the document's table and of its verification plan, both ways.

use super::super::IterationMode::{Implement, Review, ReviewFix};
use super::super::review::{invariants, transitions};
use super::*;

/// The messages for one story, `US-001`, that had `before` and has `after`.
fn judged(mode: IterationMode, before: &Value, after: &Value) -> Vec<String> {
    judged_all(mode, std::slice::from_ref(before), std::slice::from_ref(after))
}

fn judged_all(mode: IterationMode, before: &[Value], after: &[Value]) -> Vec<String> {
    let found = transitions(mode, &list(before).review_states(), &list(after), 5, None);
    found.violations.into_iter().map(|violation| violation.message).collect()
}

fn state(passes: bool, status: Option<&str>, count: u64) -> Value {
    story("US-001", passes, status, count)
}

fn with_feedback(story: Value) -> Value {
    with(story, json!({ "reviewFeedback": "src/a.rs: the error is ignored" }))
}

/// Invariants of one story: the start of the message, or nothing.
#[test]
fn violated_story_invariant_blocks() {
    for (passes, status, feedback, count, message) in [
        (true, None, "", 0, "Story US-001 has passes=true but reviewStatus is 'null', not 'approved'."),
        (
            true,
            Some("needs_review"),
            "",
            0,
            "Story US-001 has passes=true but reviewStatus is 'needs_review', not 'approved'.",
        ),
        (
            true,
            Some("changes_requested"),
            "x",
            1,
            "Story US-001 has passes=true but reviewStatus is 'changes_requested', not 'approved'.",
        ),
        (true, Some("approved"), "", 1, ""),
        (false, Some("approved"), "", 1, "Story US-001 has reviewStatus 'approved' but passes=false."),
        (
            false,
            Some("changes_requested"),
            " ",
            1,
            "Story US-001 has reviewStatus 'changes_requested' but an empty reviewFeedback.",
        ),
        (false, Some("changes_requested"), "fix it", 1, ""),
        (false, Some("needs_review"), "", 0, ""),
        (false, None, "", 0, ""),
        (true, Some("approved"), "", 6, ""),
        (
            true,
            Some("approved"),
            "",
            7,
            "Story US-001 has reviewCount 7, more than the review cap of 5 permits.",
        ),
    ] {
        let list = list(&[with(state(passes, status, count), json!({ "reviewFeedback": feedback }))]);
        let found = invariants(&list, 5);
        match found.as_slice() {
            [] => assert_eq!(message, "", "{passes} {status:?} {count}"),
            [one] => assert!(!message.is_empty() && one.message.starts_with(message), "{}", one.message),
            more => panic!("{more:?}"),
        }
    }
}

#[test]
fn implement_iterations_submit_one_story_and_approve_none() {
    let new = state(false, None, 0);
    assert_eq!(judged(Implement, &new, &new), [""; 0]);
    assert_eq!(judged(Implement, &new, &state(false, Some("needs_review"), 0)), [""; 0]);
    let text = "Implement iterations cannot set passes=true or approve stories. Only review iterations may approve. Story US-001 had illegal transition: ";
    for (after, change) in [
        (state(true, None, 0), "passes false → true."),
        (state(true, Some("approved"), 0), "passes false → true."),
        (state(false, Some("approved"), 0), "reviewStatus null → approved."),
        (state(false, Some("changes_requested"), 0), "reviewStatus null → changes_requested."),
        (state(false, None, 1), "reviewCount 0 → 1."),
        (state(false, Some("needs_review"), 1), "reviewStatus null → needs_review."),
    ] {
        assert_eq!(judged(Implement, &new, &after), [format!("{text}{change}")]);
    }
    let (waiting, requested) =
        (state(false, Some("needs_review"), 1), state(false, Some("changes_requested"), 1));
    assert_eq!(judged(Implement, &waiting, &new).len(), 1);
    assert_eq!(judged(Implement, &requested, &waiting).len(), 1);
    let done = state(true, Some("approved"), 1);
    assert_eq!(judged(Implement, &done, &state(false, None, 1)), [format!("{text}passes true → false.")]);
    // At most one story.
    let both = [story("US-001", false, None, 0), story("US-002", false, None, 0)];
    let submitted =
        [story("US-001", false, Some("needs_review"), 0), story("US-002", false, Some("needs_review"), 0)];
    let second = judged_all(Implement, &both, &submitted);
    assert_eq!(second.len(), 1);
    assert!(
        second[0].contains("Story US-002 had illegal transition: reviewStatus null → needs_review"),
        "{second:?}"
    );
}

#[test]
fn new_stories_start_incomplete_in_every_mode_and_none_is_removed() {
    let old = state(false, Some("needs_review"), 0);
    for (mode, after) in
        [(Implement, old.clone()), (Review, state(true, Some("approved"), 1)), (ReviewFix, old.clone())]
    {
        let judged = |more: Value| judged_all(mode, std::slice::from_ref(&old), &[after.clone(), more]);
        assert_eq!(judged(story("US-002", false, None, 0)), [""; 0], "{mode}");
        for wrong in [
            story("US-002", true, None, 0),
            story("US-002", true, Some("approved"), 0),
            story("US-002", false, Some("needs_review"), 0),
            story("US-002", false, None, 1),
        ] {
            let text = judged(wrong);
            assert!(
                matches!(text.as_slice(), [one] if one.starts_with("New stories must start incomplete")),
                "{text:?}"
            );
        }
        let text =
            judged_all(mode, &[old.clone(), story("US-002", false, None, 0)], std::slice::from_ref(&after));
        assert!(matches!(text.as_slice(), [one] if one.starts_with("Story US-002 was removed.")), "{text:?}");
    }
}

#[test]
fn review_iterations_review_exactly_one_story() {
    let waiting = state(false, Some("needs_review"), 1);
    let approved = state(true, Some("approved"), 2);
    assert_eq!(judged(Review, &waiting, &approved), [""; 0]);
    let requested = with_feedback(state(false, Some("changes_requested"), 2));
    assert_eq!(judged(Review, &waiting, &requested), [""; 0]);
    let text = "Review iteration made illegal transition on story US-001: ";
    for (after, details) in [
        (waiting.clone(), "review must increment reviewCount"),
        (state(true, Some("approved"), 1), "reviewCount must go up by exactly 1, but 1 → 1"),
        (state(true, Some("approved"), 3), "reviewCount must go up by exactly 1, but 1 → 3"),
        (state(false, Some("needs_review"), 2), "a review ends with"),
        (state(true, Some("needs_review"), 2), "a review ends with"),
        (state(false, Some("approved"), 2), "a review ends with"),
        (state(false, None, 2), "a review ends with"),
        (
            state(false, Some("changes_requested"), 2),
            "reviewStatus needs_review → changes_requested without reviewFeedback",
        ),
    ] {
        let found = judged(Review, &waiting, &after);
        assert!(
            matches!(found.as_slice(), [one] if one.starts_with(&format!("{text}{details}"))),
            "{found:?}"
        );
    }
    // A story that was not waiting.
    for before in [state(false, None, 1), with_feedback(state(false, Some("changes_requested"), 1))] {
        let found = judged(Review, &before, &approved);
        assert!(found[0].contains("but it was not waiting for a review"), "{found:?}");
    }
    // Two stories.
    let both =
        [story("US-001", false, Some("needs_review"), 0), story("US-002", false, Some("needs_review"), 0)];
    let after = [story("US-001", true, Some("approved"), 1), story("US-002", true, Some("approved"), 1)];
    let found = judged_all(Review, &both, &after);
    assert!(
        matches!(found.as_slice(), [one] if one.contains("on story US-002: review may only modify one story")),
        "{found:?}"
    );
    let other = [story("US-001", true, Some("approved"), 1), story("US-002", false, None, 0)];
    assert_eq!(judged_all(Review, &both, &other).len(), 1);
}

#[test]
fn review_iterations_at_the_cap_must_approve() {
    let waiting = state(false, Some("needs_review"), 4);
    let found = judged(Review, &waiting, &with_feedback(state(false, Some("changes_requested"), 5)));
    assert!(
        matches!(found.as_slice(), [one] if one.contains("the review cap of 5") && one.contains(APPROVED_AT_CAP)),
        "{found:?}"
    );
    assert_eq!(judged(Review, &waiting, &with_feedback(state(true, Some("approved"), 5))), [""; 0]);
}

#[test]
fn review_fix_iterations_resubmit_one_story() {
    let requested = with_feedback(state(false, Some("changes_requested"), 1));
    assert_eq!(judged(ReviewFix, &requested, &state(false, Some("needs_review"), 1)), [""; 0]);
    assert_eq!(judged(ReviewFix, &requested, &requested), [""; 0]);
    let text = "Review-fix iterations cannot approve stories. Story US-001 must go back to needs_review for re-review. Illegal transition: ";
    for (after, details) in [
        (state(true, Some("approved"), 1), "passes false → true."),
        (state(false, Some("approved"), 1), "reviewStatus changes_requested → approved."),
        (state(false, None, 1), "reviewStatus changes_requested → null."),
        (state(false, Some("changes_requested"), 2), "reviewCount 1 → 2."),
        (state(false, Some("needs_review"), 2), "reviewStatus changes_requested → needs_review."),
        (with_feedback(state(false, Some("needs_review"), 1)), "reviewFeedback must be cleared."),
    ] {
        assert_eq!(judged(ReviewFix, &requested, &after), [format!("{text}{details}")]);
    }
    let other = [requested.clone(), story("US-002", false, None, 0)];
    let after =
        [story("US-001", false, Some("needs_review"), 1), story("US-002", false, Some("needs_review"), 0)];
    let found = judged_all(ReviewFix, &other, &after);
    assert!(matches!(found.as_slice(), [one] if one.contains("Story US-002")), "{found:?}");
}

#[test]
fn selected_story_counts_if_two_stories_changed() {
    let before = [story("US-001", false, None, 0), story("US-002", false, None, 0)];
    let after =
        [story("US-001", false, Some("needs_review"), 0), story("US-002", false, Some("needs_review"), 0)];
    let found = transitions(Implement, &list(&before).review_states(), &list(&after), 5, Some("US-002"));
    assert_eq!(found.changed.as_deref(), Some("US-002"));
    assert_eq!(found.violations[0].story, "US-001");
}
