//! The hooks of agent CLIs: what they call, and what that does.
//!
//! [`command`] is what stands in a CLI's settings, [`passed`] what swarm passes to an agent that it starts itself,
//! [`run`] is `swarm hook`: it gives stops and prompts to [`crate::session`], and [`tell`] tells the daemon what the hook of
//! a worker's agent knows. What follows from an event is decided in `swarm_state::hook`. For the sessions that a user
//! starts, [`install`] and [`plugin`] change settings files: [`merge`] is what, [`recognise`] what is ours in them, [`layout`]
//! and [`mod@file`] how. [`verbs`] are `swarm hooks` and `swarm plugin`.

pub mod command;
pub mod file;
pub mod install;
pub mod layout;
pub mod merge;
pub mod passed;
pub mod plugin;
pub mod recognise;
pub mod run;
pub mod tell;
pub mod verbs;
mod words;
