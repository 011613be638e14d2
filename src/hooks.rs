//! The hooks of agent CLIs: what they call, and what that does.
//!
//! [`command`] is what stands in a CLI's settings, [`passed`] what swarm passes to an agent that it starts itself,
//! [`tell`] tells the daemon what the hook of a worker's agent knows. What an event means is decided in
//! `swarm_state::hook`.

pub mod command;
pub mod passed;
pub mod tell;
