//! Crash points: places where the daemon can kill itself, so that tests can check the state after a crash.
//!
//! With `SWARM_CRASH_AT=WORD:N` in its environment, the daemon sends itself SIGKILL when it reaches the point WORD
//! for the Nth time; `any` selects all points. With `SWARM_CRASH_COUNT=FILE` it appends the word of each point
//! that it passes to FILE, one per line, so that a dry run lists all points. There is a point
//!
//! - before each effect (`persist`, `spawn`, `evaluate`, …), and after its work is done but not yet reported
//!   (`persist+`, `spawn+`, `evaluate+`, …);
//! - between the steps of work that has several: `record` (the loop's file is written, the record is not), `worktree`
//!   (created, but not recorded), `base` (the loop's baseline exists), `launch` (all files of a run exist, the window
//!   does not), `paste`, `enter` and `taken`, `typed` (a text is in the input box, but not submitted), `stored`,
//!   `concluded`, `result` and `verdict` of the end of a run, `leave` (what follows from the verdict is saved, the
//!   run's folder still exists), `create` and `remove` of a worker and its worktree, and two in a clean-up: the
//!   worktree is removed (`clean_tree+`), everything but the record is removed (`clean_files+`);
//! - around a canary: its journal exists (`canary_journal`), it is in the tree (`canary_written`), its check has ended
//!   (`canary_run`), it was removed (`canary_removed`);
//! - while a room exists: it was made (`room`), or its checks have run (`clean_room`, `red_replay`, `held_out`);
//! - around an iteration on a task list: its story is chosen and recorded (`turn`), the agent's edits were judged and
//!   the list is written (`list`);
//! - where the daemon has seen the end of a run and has not reported it (`exited`).

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use swarm_state::engine::Effect;

/// The crash points that the environment selects.
struct CrashPoints {
    at: Option<(String, u64)>,
    count: Option<std::ffi::OsString>,
}

static POINTS_SEEN: AtomicU64 = AtomicU64::new(0);

/// Ends the process here if this is the selected point.
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
        // One write per line, so that points of several tasks do not mix.
        drop(file.and_then(|mut file| file.write_all(format!("{word}\n").as_bytes())));
    }
    let Some((asked, nth)) = &wanted.at else { return };
    if (asked == word || asked == "any") && POINTS_SEEN.fetch_add(1, Ordering::Relaxed) + 1 == *nth {
        let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
        std::process::abort();
    }
}

pub(crate) fn before(effect: &Effect) {
    point(words(effect).0);
}

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
        Effect::Evaluate(_) => ("evaluate", "evaluate+"),
        Effect::Notify(_) => ("tell", "tell+"),
    }
}
