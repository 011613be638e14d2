//! The points at which a daemon dies in a test, and a walk over them.
//!
//! A dry run lists the points that a daemon passes. `crash` and `again` then repeat their story once for each of them,
//! in a world of its own. Two points between which nothing is written and nothing is started are one death: the next
//! daemon finds the same files and the same panes. Only one of the two is repeated.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many worlds of one story live at once.
const WORLDS: usize = 16;

/// The points before an effect that follows from the step before it: the daemon only decides in between.
const DECIDED: [&str; 3] = ["persist", "judge", "tell"];

/// The points around an effect that only reads.
const READ_ONLY: [&str; 4] = ["look", "look+", "probe", "probe+"];

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
    for word in passed {
        let nth = counts.entry(word).or_default();
        *nth += 1;
        match points.last_mut() {
            Some(last) if DECIDED.contains(&word.as_str()) || READ_ONLY.contains(&word.as_str()) => {
                last.words.push(word.clone());
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
fn points_between_which_nothing_is_written_are_one_death() {
    let words = "probe birth persist record persist+ tell tell+ spawn launch probe probe+ exited persist record look judge";
    let passed: Vec<String> = words.split(' ').map(str::to_owned).collect();
    let points = crash_points(&passed);
    let shown: Vec<String> = points.iter().map(|p| format!("{} {}", p.at, p.words.join(","))).collect();
    assert_eq!(
        shown,
        [
            "probe:1 probe",
            "birth:1 birth,persist",
            "record:1 record",
            "persist+:1 persist+,tell",
            "tell+:1 tell+",
            "spawn:1 spawn",
            "launch:1 launch,probe,probe+",
            "exited:1 exited,persist",
            "record:2 record,look,judge",
        ]
    );
}
