//! The daemon's judgment of an agent's edits.

use super::super::IterationMode::{Implement, Review};
use super::*;

fn judged(mode: IterationMode, before: &[Value], now: Option<&str>, options: ReviewOptions) -> Enforced {
    let before = list(before);
    let selected = before.stories()[0].id.clone();
    enforce(Edited { mode, selected: &selected, before: &before, now }, options)
}

const CAP_1: ReviewOptions = ReviewOptions { skip_review: false, review_cap: 1 };

#[test]
fn self_approval_is_undone_and_the_rest_of_the_edit_stays() {
    let before = [story("US-001", false, None, 0), story("US-002", false, Some("needs_review"), 0)];
    let after = text(&[
        with(story("US-001", true, Some("approved"), 1), json!({ "notes": "all done", "owner": "x" })),
        story("US-002", true, Some("approved"), 1),
        story("US-003", false, None, 0),
    ]);
    let Enforced { list, is_restored, remarks, changed, .. } =
        judged(Implement, &before, Some(&after), ReviewOptions::default());
    assert_eq!(list.review_states()["US-001"], ReviewState::default());
    assert_eq!(list.story("US-001").unwrap().notes, "all done");
    assert_eq!(list.story("US-002").unwrap().state_word(), "needs_review");
    assert!(list.story("US-003").is_some());
    assert_eq!((is_restored, changed, remarks.len()), (false, None, 2));
    assert!(remarks[0].contains("Story US-001 had illegal transition: passes false → true"), "{remarks:?}");
}

#[test]
fn a_file_that_cannot_be_used_is_restored() {
    let before = [story("US-001", false, None, 0)];
    let cyclic = text(&[with(story("US-001", false, None, 0), json!({ "dependsOn": ["US-001"] }))]);
    let twice = text(&[story("US-001", false, None, 0), story("US-001", false, None, 0)]);
    let faulty_new = text(&[story("US-001", false, None, 0), json!({ "id": "US-002" })]);
    for (now, reason) in [
        (None, "the file is missing or cannot be read"),
        (Some("{\"project\":"), "it is not valid JSON"),
        (Some("{}"), "the field \"project\" is missing"),
        (Some(twice.as_str()), "two stories have the id"),
        (Some(cyclic.as_str()), "stories depend on each other"),
        (Some(faulty_new.as_str()), "story US-002: the field \"title\" is missing"),
    ] {
        let found = judged(Implement, &before, now, ReviewOptions::default());
        assert!(found.is_restored && found.list == list(&before), "{reason}");
        assert!(
            found.remarks[0].starts_with(&format!("the task list was restored: {reason}")),
            "{:?}",
            found.remarks
        );
    }
}

#[test]
fn a_story_with_a_fault_is_restored_alone() {
    let before = [story("US-001", false, None, 0), story("US-002", false, None, 0)];
    let after = text(&[
        with(story("US-001", false, None, 0), json!({ "priority": "high" })),
        with(story("US-002", false, None, 0), json!({ "notes": "kept" })),
    ]);
    let found = judged(Implement, &before, Some(&after), ReviewOptions::default());
    assert!(!found.is_restored);
    assert_eq!(found.list.story("US-001"), list(&before).story("US-001"));
    assert_eq!(found.list.story("US-002").unwrap().notes, "kept");
    assert_eq!(
        found.remarks,
        ["story US-001: the field \"priority\" must be a number; the story was restored"]
    );
}

#[test]
fn removed_stories_and_changed_checks_are_restored_in_every_mode() {
    let checked = with(story("US-001", false, Some("needs_review"), 0), json!({ "checks": ["make test"] }));
    let before = [checked.clone(), story("US-002", false, None, 0)];
    let weakened = with(story("US-001", true, Some("approved"), 1), json!({ "checks": ["true"] }));
    for options in [ReviewOptions::default(), ReviewOptions { skip_review: true, review_cap: 5 }] {
        let found = judged(Review, &before, Some(&text(std::slice::from_ref(&weakened))), options);
        assert_eq!(found.list.story("US-001").unwrap().checks, ["make test"]);
        assert_eq!(found.list.stories()[1].id, "US-002");
        assert_eq!(found.list.story("US-001").unwrap().state_word(), "approved");
        assert_eq!(found.remarks.len(), 2, "{:?}", found.remarks);
    }
}

#[test]
fn changes_requested_at_the_cap_become_an_approval_with_the_concerns() {
    let before = [story("US-001", false, Some("needs_review"), 0)];
    let after = text(&[with(
        story("US-001", false, Some("changes_requested"), 1),
        json!({ "reviewFeedback": "slow", "notes": "" }),
    )]);
    let found = judged(Review, &before, Some(&after), CAP_1);
    let approved = found.list.story("US-001").unwrap();
    assert_eq!(approved.feedback, "[AUTO-APPROVED AT CAP] slow");
    assert!(approved.is_done(false));
    assert_eq!(found.changed.as_deref(), Some("US-001"));
    assert_eq!(found.remarks, [""; 0]);
    assert!(TaskList::parse(&found.list.to_text()).is_ok());
}

#[test]
fn review_without_a_change_is_reported() {
    let before = [story("US-001", false, Some("needs_review"), 0)];
    let found = judged(Review, &before, Some(&text(&before)), ReviewOptions::default());
    assert_eq!((found.changed, found.remarks.len()), (None, 1));
}

fn any_story(id: &'static str) -> impl Strategy<Value = Value> {
    let status = prop_oneof![
        Just(None),
        Just(Some("needs_review")),
        Just(Some("changes_requested")),
        Just(Some("approved"))
    ];
    (any::<bool>(), status, 0_u64..4, any::<bool>()).prop_map(move |(passes, status, count, feedback)| {
        let feedback = if feedback { "x" } else { "" };
        with(story(id, passes, status, count), json!({ "reviewFeedback": feedback }))
    })
}

fn any_mode() -> impl Strategy<Value = IterationMode> {
    prop_oneof![Just(Implement), Just(Review), Just(IterationMode::ReviewFix)]
}

proptest! {
    /// Outside of a review, and of more than one story, nothing is approved; and a judged list has no more to judge.
    #[test]
    fn only_a_review_approves_and_enforcing_twice_changes_nothing(
        mode in any_mode(),
        before in (any_story("a"), any_story("b")),
        after in (any_story("a"), any_story("b"), any_story("c")),
    ) {
        let (before, after) = ([before.0, before.1], [after.0, after.1, after.2]);
        let found = judged(mode, &before, Some(&text(&after)), ReviewOptions::default());
        let was = list(&before);
        let approved = found.list.stories().iter().filter(|story| {
            story.is_done(false) && !was.story(&story.id).is_some_and(|old| old.is_done(false))
        });
        let approved = approved.count();
        prop_assert!(approved <= usize::from(mode == Review));
        let again = found.list.to_text();
        let settled = judged(mode, &before, Some(&again), ReviewOptions::default());
        prop_assert_eq!(settled.list, found.list);
        if mode != Review {
            prop_assert_eq!(settled.remarks, [""; 0]);
        }
    }
}
