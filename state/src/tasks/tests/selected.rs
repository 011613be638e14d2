//! The choice of story and mode, and the dependencies.

use super::super::selection::{DependencyFault, Selection};
use super::*;

fn chosen(list: &TaskList, skip_review: bool) -> String {
    match list.select(skip_review) {
        Selection::Work(mode, story) => format!("{mode} {}", story.id),
        Selection::AllDone => "done".into(),
        Selection::Blocked => list.blocked_because(),
    }
}

fn needing(id: &str, status: Option<&str>, needs: &[&str]) -> Value {
    with(story(id, status == Some("approved"), status, 1), json!({ "dependsOn": needs }))
}

#[test]
fn fixes_come_before_reviews_and_reviews_before_new_work() {
    let new = story("new", false, None, 0);
    let waiting = story("waiting", false, Some("needs_review"), 0);
    let requested =
        with(story("requested", false, Some("changes_requested"), 1), json!({ "reviewFeedback": "x" }));
    let done = story("done", true, Some("approved"), 1);
    assert_eq!(chosen(&list(&[new.clone(), waiting.clone(), requested]), false), "review-fix requested");
    assert_eq!(chosen(&list(&[new.clone(), waiting.clone()]), false), "review waiting");
    assert_eq!(chosen(&list(&[done.clone(), new.clone()]), false), "implement new");
    assert_eq!(chosen(&list(std::slice::from_ref(&done)), false), "done");
    assert_eq!(chosen(&list(&[]), false), "done");
    assert_eq!(chosen(&list(&[new, waiting]), true), "implement new");
    assert_eq!(chosen(&list(&[story("a", true, None, 0)]), true), "done");
}

#[test]
fn lower_priority_numbers_come_first_then_the_order_of_the_file() {
    let with_priority = |id, priority: f64| with(story(id, false, None, 0), json!({ "priority": priority }));
    let list = list(&[with_priority("a", 2.0), with_priority("b", 1.5), with_priority("c", 1.5)]);
    assert_eq!(chosen(&list, false), "implement b");
    assert_eq!(
        list.ready(false).iter().map(|(_, story)| story.id.as_str()).collect::<Vec<_>>(),
        ["b", "c", "a"]
    );
}

#[test]
fn a_dependency_must_be_approved_or_pass_without_reviews() {
    let waits = needing("b", None, &["a"]);
    assert_eq!(chosen(&list(&[waits.clone(), needing("a", Some("needs_review"), &[])]), false), "review a");
    assert_eq!(chosen(&list(&[waits.clone(), needing("a", None, &[])]), false), "implement a");
    assert_eq!(chosen(&list(&[waits.clone(), needing("a", Some("approved"), &[])]), false), "implement b");
    assert_eq!(chosen(&list(&[waits, story("a", true, None, 0)]), true), "implement b");
}

#[test]
fn missing_ids_and_cycles_are_reported() {
    let missing = list(&[needing("a", None, &["z"])]);
    assert_eq!(chosen(&missing, false), "no story can be worked on: a depends on z, which does not exist");
    let cycle = list(&[
        needing("x", None, &[]),
        needing("a", None, &["b"]),
        needing("b", None, &["c"]),
        needing("c", None, &["a"]),
    ]);
    let ids = |ids: &[&str]| ids.iter().map(ToString::to_string).collect();
    assert_eq!(cycle.dependency_faults(), [DependencyFault::Cycle(ids(&["a", "b", "c", "a"]))]);
    assert_eq!(
        chosen(&list(&[needing("a", None, &["a"])]), false),
        "no story can be worked on: stories depend on each other: a → a"
    );
}

#[test]
fn chain_of_10000_stories_is_not_a_cycle() {
    let stories: Vec<Value> = (0..10_000)
        .map(|n| needing(&n.to_string(), None, &[&(n + 1).to_string()]))
        .chain([needing("10000", None, &[])])
        .collect();
    let list = list(&stories);
    assert_eq!(list.dependency_faults(), []);
    assert_eq!(chosen(&list, false), "implement 10000");
}

#[test]
fn estimate_counts_the_remaining_iterations() {
    let stories = [
        story("a", true, Some("approved"), 1),
        story("b", false, None, 0),
        story("c", false, Some("needs_review"), 0),
        with(story("d", false, Some("changes_requested"), 1), json!({ "reviewFeedback": "x" })),
    ];
    assert_eq!(list(&stories).estimated_iterations(false), 6);
    assert_eq!(list(&stories).estimated_iterations(true), 3);
}
