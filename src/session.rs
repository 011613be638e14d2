//! The loops within agent sessions, which a session's own Stop hook continues.
//!
//! [`start`] starts, resumes and cancels a loop, for a shell ([`verbs`]) and for a command typed into the agent
//! ([`prompt`]). [`stop`] answers a Stop hook by the [`tail`] of the transcript. [`crate::hooks::run`] calls `prompt`
//! and `stop`. `swarm_state::session` decides on a stop. Deliberately absent: the daemon, which has no part
//! in these loops.

mod git;
pub mod project;
pub mod prompt;
pub mod start;
pub mod stop;
pub mod store;
pub mod tail;
pub mod verbs;
