//! Crash points, for tests of what a crash leaves behind.
//!
//! With `SWARM_CRASH_AT=WORD:N` in its environment the daemon aborts at the Nth time that it comes to the
//! point of that word, as if it had been killed with -9 there. A point stands just before each effect
//! (`persist`, `spawn`, `judge`, …), one just after its work is done and before anybody hears of it
//! (`persist+`, `spawn+`, `judge+`, `tell+`, `deliver+`), one before a
//! paste (`paste`), one between it and its Enter (`enter`), and two in a clean-up: when the worktree is gone
//! (`clean_tree+`) and when all but the record is (`clean_files+`).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use swarm_state::engine::Effect;

static SEEN: AtomicU64 = AtomicU64::new(0);

/// Aborts when this effect is the one that was asked for.
pub(crate) fn before(effect: &Effect) {
    point(word(effect));
}

/// Aborts when this point is the one that was asked for.
pub(crate) fn point(word: &str) {
    static WANTED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    let wanted = WANTED.get_or_init(|| {
        let text = std::env::var("SWARM_CRASH_AT").ok()?;
        let (word, nth) = text.split_once(':')?;
        Some((word.to_owned(), nth.parse().ok()?))
    });
    let Some((wanted, nth)) = wanted else { return };
    if wanted == word && SEEN.fetch_add(1, Ordering::Relaxed) + 1 == *nth {
        std::process::abort();
    }
}

fn word(effect: &Effect) -> &'static str {
    match effect {
        Effect::Persist => "persist",
        Effect::Spawn(_) => "spawn",
        Effect::Deliver(_) => "deliver",
        Effect::Terminate(_) => "terminate",
        Effect::ForceKill(_) => "force_kill",
        Effect::Probe(_) => "probe",
        Effect::Judge(_) => "judge",
        Effect::Tell(_) => "tell",
    }
}
