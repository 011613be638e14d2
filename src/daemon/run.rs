//! Carries out one run of a worker: start, prompt, delivery, end, checks. Nothing here decides anything; all results
//! go to the supervisor.

pub(crate) mod context;
pub(crate) mod delivery;
pub(crate) mod driver;
pub(crate) mod exit;
pub(crate) mod finish;
pub(crate) mod hook_reports;
pub(crate) mod input;
pub(crate) mod iteration;
pub(crate) mod prompt;
pub(crate) mod remove_worktree;
mod sandbox;
