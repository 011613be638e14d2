use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::tasks::{ReviewState, ReviewStatus};

fn story(id: &str, priority: u32, depends_on: &[String]) -> Value {
    json!({
        "id": id, "title": id, "description": "", "acceptanceCriteria": ["x"], "priority": priority, "passes": false,
        "reviewStatus": null, "reviewCount": 0, "reviewFeedback": "", "notes": "n", "dependsOn": depends_on,
    })
}

fn list(stories: &[Value]) -> TaskList {
    let value = json!({ "project": "p", "branchName": "b", "description": "", "verifyCommands": [],
        "userStories": stories });
    TaskList::parse(&value.to_string()).unwrap()
}

/// A, B with priority 0, C after A, D after C.
fn four() -> TaskList {
    let needs = |id: &str| vec![id.to_owned()];
    list(&[story("A", 1, &[]), story("B", 0, &[]), story("C", 1, &needs("A")), story("D", 1, &needs("C"))])
}

fn approve(list: &mut TaskList, id: &str) {
    let review = ReviewState { passes: true, review_status: Some(ReviewStatus::Approved), review_count: 1 };
    list.set_review(id, review, "");
}

#[test]
fn each_state_of_the_coordinator_gives_one_step() {
    let two = ParallelLimits { jobs: 2, max_in_review: None };
    let one_in_review = ParallelLimits { jobs: 2, max_in_review: Some(1) };
    let working = ChildState::Working { in_review: false };
    let in_review = ChildState::Working { in_review: true };
    let failed = ChildState::Failed("it was killed".into());
    let spawn = |id: &str| ParallelStep::Spawn(id.into());
    let merge = |id: &str| ParallelStep::Merge(id.into());
    type Case<'a> = (&'a str, &'a [(&'a str, &'a ChildState)], ParallelLimits, ParallelStep);
    let cases: &[Case<'_>] = &[
        ("", &[], two, spawn("B")),
        ("", &[("B", &working)], two, spawn("A")),
        ("", &[("A", &working), ("B", &working)], two, ParallelStep::Wait),
        // No story starts before those that it depends on were merged.
        ("B", &[("A", &working)], two, ParallelStep::Wait),
        ("B", &[("A", &ChildState::Approved)], two, merge("A")),
        ("AB", &[], two, spawn("C")),
        ("", &[("A", &ChildState::Approved), ("B", &ChildState::Approved)], two, merge("B")),
        ("", &[("A", &ChildState::Again), ("B", &working)], two, spawn("A")),
        ("", &[("B", &in_review)], one_in_review, ParallelStep::Wait),
        ("", &[("B", &in_review), ("A", &ChildState::Again)], one_in_review, spawn("A")),
        ("", &[("B", &failed)], two, spawn("A")),
        ("B", &[("A", &working), ("C", &ChildState::Again)], two, ParallelStep::Wait),
        ("AB", &[("C", &ChildState::Again)], two, spawn("C")),
        (
            "B",
            &[("A", &failed)],
            two,
            ParallelStep::Stuck(vec![
                "A failed: it was killed".into(),
                "C was not started: it depends on A".into(),
                "D was not started: it depends on C".into(),
            ]),
        ),
        ("ABCD", &[("A", &ChildState::Approved)], two, ParallelStep::Finished),
    ];
    for (merged, children, limits, step) in cases {
        let mut list = four();
        merged.chars().for_each(|id| approve(&mut list, &id.to_string()));
        let children = children.iter().map(|(id, child)| ((*id).to_owned(), (*child).clone())).collect();
        assert_eq!(next_step(&list, &children, *limits, false), *step, "{merged} {children:?}");
    }
}

#[test]
fn worker_names_of_stories_are_valid_and_unique() {
    let long = "x".repeat(90);
    let list = list(&[
        story("US-002", 1, &[]),
        story("a.b", 1, &[]),
        story("a b", 1, &[]),
        story(&long, 1, &[]),
        story(&format!("{long}y"), 1, &[]),
    ]);
    let names = child_names(&WorkerName::new("checkout").unwrap(), &list);
    assert_eq!(names["US-002"].as_str(), "checkout-US-002");
    assert_eq!((names["a.b"].as_str(), names["a b"].as_str()), ("checkout-a-b", "checkout-a-b-2"));
    assert_eq!(names.len(), 5);
    assert_ne!(names[&long], names[&format!("{long}y")]);
}

proptest! {
    /// A random list and random workers: the limits hold at each step, and the run ends.
    #[test]
    fn every_run_ends_within_its_limits(
        needs in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..3), 1..9),
        jobs in 1_usize..4,
        max_in_review in prop::option::of(1_usize..3),
        old in prop::collection::vec(any::<bool>(), 9),
        dice in prop::collection::vec(any::<u8>(), 400),
    ) {
        let id = |n: usize| format!("S{n}");
        let stories: Vec<Value> = needs.iter().enumerate().map(|(n, needs)| {
            let needs: Vec<String> = needs.iter().filter(|_| n > 0).map(|at| id(at.index(n.max(1)))).collect();
            story(&id(n), 1, &needs)
        }).collect();
        let mut list = list(&stories);
        let limits = ParallelLimits { jobs, max_in_review };
        let old = (0..needs.len()).filter(|n| old[*n]);
        let mut children: BTreeMap<String, ChildState> = old.map(|n| (id(n), ChildState::Again)).collect();
        let mut passes: BTreeMap<String, u32> = BTreeMap::new();
        let mut dice = dice.into_iter().chain(std::iter::repeat(0));
        for _ in 0..400 {
            match next_step(&list, &children, limits, false) {
                ParallelStep::Spawn(id) => {
                    let is_again = children.get(&id) == Some(&ChildState::Again);
                    prop_assert!(is_again || !children.contains_key(&id), "{id} runs already");
                    let story = list.story(&id).unwrap();
                    prop_assert!(list.open_dependencies(story, false).is_empty(), "{id} starts too early");
                    let in_review =
                        children.values().filter(|child| **child == ChildState::Working { in_review: true }).count();
                    prop_assert!(is_again || max_in_review.is_none_or(|max| in_review < max));
                    children.insert(id, ChildState::Working { in_review: false });
                    let working = |child: &&ChildState| matches!(child, ChildState::Working { .. });
                    prop_assert!(children.values().filter(working).count() <= jobs);
                }
                ParallelStep::Merge(id) => {
                    prop_assert_eq!(children.get(&id), Some(&ChildState::Approved));
                    let passes = passes.entry(id.clone()).or_default();
                    *passes += 1;
                    match dice.next().unwrap() % 3 {
                        0 if *passes > 3 => drop(children.insert(id, ChildState::Failed("conflict".into()))),
                        0 => drop(children.insert(id, ChildState::Again)),
                        _ => approve(&mut list, &id),
                    }
                }
                ParallelStep::Wait => {
                    let live: Vec<String> = children.iter()
                        .filter(|(_, child)| matches!(child, ChildState::Working { .. }))
                        .map(|(id, _)| id.clone()).collect();
                    prop_assert!(!live.is_empty(), "nothing to wait for");
                    let which = live[usize::from(dice.next().unwrap()) % live.len()].clone();
                    let next = match dice.next().unwrap() % 8 {
                        0 => ChildState::Failed("it ended".into()),
                        1 | 2 => ChildState::Working { in_review: true },
                        _ => ChildState::Approved,
                    };
                    children.insert(which, next);
                }
                ParallelStep::Finished => {
                    prop_assert!(list.is_done(false));
                    return Ok(());
                }
                ParallelStep::Stuck(reasons) => {
                    prop_assert_eq!(reasons.len(), list.stories().len() - list.done(false));
                    prop_assert!(children.values().any(|child| matches!(child, ChildState::Failed(_))));
                    return Ok(());
                }
            }
        }
        prop_assert!(false, "the run did not end");
    }
}
