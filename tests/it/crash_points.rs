//! The points at which a daemon dies in a test, and a walk over them.
//!
//! A dry run lists the points that a daemon passes. `crash` and `retry` then repeat their story for them, in a world of
//! its own each. Some points follow another one at once, and the daemon only decides in between: the next daemon finds
//! the same files, panes and requests. Only one of the two is repeated.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many worlds of one story live at once.
const WORLDS: usize = 8;

/// A point, and the points right before it that are the same death.
const SAME_DEATH: [(&str, &[&str]); 3] = [
    // The first effect of a step, where the step before it has ended and nobody but the daemon started this one.
    ("persist", &["create", "spawn+", "deliver+", "exited", "evaluate+"]),
    ("evaluate", &["persist+"]),
    ("tell", &["persist+", "tell+"]),
];

/// A point at which the daemon dies.
pub(crate) struct CrashPoint {
    /// `WORD:N`, as `SWARM_CRASH_AT` selects it.
    pub(crate) at: String,
    /// The words of the points that are this death.
    pub(crate) words: Vec<String>,
}

/// The deaths among the points that a dry run passed, given by their words.
pub(crate) fn crash_points(passed: &[String]) -> Vec<CrashPoint> {
    let mut counts = BTreeMap::<&str, usize>::new();
    let mut points: Vec<CrashPoint> = vec![];
    let same =
        |word: &str, last: &str| SAME_DEATH.iter().any(|(of, before)| *of == word && before.contains(&last));
    for word in passed {
        let nth = counts.entry(word).or_default();
        *nth += 1;
        match points.last_mut() {
            Some(point) if point.words.last().is_some_and(|last| same(word, last)) => {
                point.words.push(word.clone());
            }
            _ => points.push(CrashPoint { at: format!("{word}:{nth}"), words: vec![word.clone()] }),
        }
    }
    points
}

/// Does something at each point, several at once. `at` returns whether a daemon died there. Returns the points at which
/// none died.
pub(crate) fn walk(points: &[CrashPoint], at: impl Fn(&str) -> bool + Sync) -> Vec<&CrashPoint> {
    let (next, passed_by) = (AtomicUsize::new(0), Mutex::new(vec![]));
    std::thread::scope(|scope| {
        for _ in 0..WORLDS {
            scope.spawn(|| {
                while let Some(point) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if !at(&point.at) {
                        passed_by.lock().unwrap().push(point);
                    }
                }
            });
        }
    });
    passed_by.into_inner().unwrap()
}

#[test]
fn consecutive_points_without_an_effect_are_one_crash_point() {
    let words = "create persist record persist+ tell tell+ spawn launch spawn+ persist record probe probe+ persist persist+ \
                 evaluate stored evaluate+ persist persist+ tell tell+ tell tell+ leave persist record";
    let passed: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    let points = crash_points(&passed);
    let shown: Vec<String> = points.iter().map(|p| format!("{} {}", p.at, p.words.join(","))).collect();
    assert_eq!(
        shown,
        [
            "create:1 create,persist",
            "record:1 record",
            "persist+:1 persist+,tell",
            "tell+:1 tell+",
            "spawn:1 spawn",
            "launch:1 launch",
            "spawn+:1 spawn+,persist",
            "record:2 record",
            "probe:1 probe",
            "probe+:1 probe+",
            "persist:3 persist",
            "persist+:2 persist+,evaluate",
            "stored:1 stored",
            "evaluate+:1 evaluate+,persist",
            "persist+:3 persist+,tell",
            "tell+:2 tell+,tell",
            "tell+:3 tell+",
            "leave:1 leave",
            "persist:5 persist",
            "record:3 record",
        ]
    );
}
