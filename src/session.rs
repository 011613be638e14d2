//! The loops within agent sessions: one agent session, kept going by its own Stop hook.
//!
//! [`start`] starts, resumes and cancels a loop, for a shell ([`verbs`]) and for what a person typed into the agent
//! ([`prompt`]). [`stop`] answers a Stop hook by the [`tail`] of the transcript. [`crate::hooks::run`] calls `prompt`
//! and `stop`. `swarm_state::session` decides what follows from a stop. Deliberately absent: the daemon, which knows
//! nothing of these loops.

mod git;
pub mod project;
pub mod prompt;
pub mod start;
pub mod stop;
pub mod store;
pub mod tail;
pub mod verbs;
