//! Crash points, for tests of what a crash leaves behind.
//!
//! With `SWARM_CRASH_AT=WORD:N` in its environment the daemon kills itself with -9 at the Nth time that it
//! comes to the point of that word; the word `any` stands for all points. With `SWARM_CRASH_COUNT=FILE` it
//! adds the word of each point that it passes to FILE, a line each, so that a dry run tells which points a
//! life has and none has to be listed by hand. A point stands
//!
//! - just before each effect (`persist`, `spawn`, `judge`, …), and just after its work is done and before
//!   anybody hears of it (`persist+`, `spawn+`, `judge+`, …);
//! - between the steps of a work that has more than one: `record` (the loop's file is written, the record is
//!   not), `worktree` (made, and not written down), `base` (a loop's base line is there), `launch` (all files
//!   of a run are there, the window is not), `paste`, `enter` and `taken`, `typed` (a text is in the box, and
//!   not sent off), `stored`, `concluded`, `result` and `verdict` of a judgement, `leave` (the verdict's
//!   consequences are saved, the run's folder is there), `birth` and `remove` of a worker and its worktree,
//!   and of a clean-up, when the worktree is gone (`clean_tree+`) and when all but the record is (`clean_files+`);
//! - where the end of a run is seen and not told yet (`exited`).

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use swarm_state::engine::Effect;

/// What this process was asked to do at its points.
struct CrashPoints {
    at: Option<(String, u64)>,
    count: Option<std::ffi::OsString>,
}

static POINTS_SEEN: AtomicU64 = AtomicU64::new(0);

/// Dies here when this point is the one that was asked for.
pub(crate) fn point(word: &str) {
    static CRASH_POINTS: OnceLock<CrashPoints> = OnceLock::new();
    let wanted = CRASH_POINTS.get_or_init(|| {
        let at = std::env::var("SWARM_CRASH_AT").ok();
        let at = at.as_deref().and_then(|text| text.split_once(':'));
        CrashPoints {
            at: at.and_then(|(word, nth)| Some((word.to_owned(), nth.parse().ok()?))),
            count: std::env::var_os("SWARM_CRASH_COUNT"),
        }
    });
    if let Some(file) = &wanted.count {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(file);
        // One write a line: points of several tasks do not mix.
        drop(file.and_then(|mut file| file.write_all(format!("{word}\n").as_bytes())));
    }
    let Some((asked, nth)) = &wanted.at else { return };
    if (asked == word || asked == "any") && POINTS_SEEN.fetch_add(1, Ordering::Relaxed) + 1 == *nth {
        let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
        std::process::abort();
    }
}

/// The point before an effect.
pub(crate) fn before(effect: &Effect) {
    point(words(effect).0);
}

/// The point after the work of an effect.
pub(crate) fn after(effect: &Effect) {
    point(words(effect).1);
}

fn words(effect: &Effect) -> (&'static str, &'static str) {
    match effect {
        Effect::Persist => ("persist", "persist+"),
        Effect::Spawn(_) => ("spawn", "spawn+"),
        Effect::Deliver(_) => ("deliver", "deliver+"),
        Effect::Terminate(_) => ("terminate", "terminate+"),
        Effect::ForceKill(_) => ("force_kill", "force_kill+"),
        Effect::Probe(_) => ("probe", "probe+"),
        Effect::Look(_) => ("look", "look+"),
        Effect::Judge(_) => ("judge", "judge+"),
        Effect::Notify(_) => ("tell", "tell+"),
    }
}
