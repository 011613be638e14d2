//! The hooks of agent CLIs: what they call, and what that does.
//!
//! [`command`] is what stands in a CLI's settings, [`passed`] what swarm passes to an agent that it starts itself,
//! [`run`] is `swarm hook`: [`stops`] keeps the loops within [`sessions`] going by what the [`tail`] of a transcript says, [`tell`] tells the daemon
//! what the hook of a worker's agent knows. What follows from an event is decided in `swarm_state::{hook, session}`.

pub mod command;
pub mod passed;
pub mod project;
pub mod prompts;
pub mod run;
pub mod sessions;
pub mod starting;
pub mod stops;
pub mod tail;
pub mod tell;
