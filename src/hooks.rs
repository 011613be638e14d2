//! The hooks of agent CLIs: installs them, passes them to agents, and carries them out.
//!
//! [`run`] is `swarm hook EVENT`. It passes stops and prompts to [`crate::session`]; `report`, `task_list`, `guard`,
//! `context` and `status_line` handle the events of a worker's agent. `swarm_state::hook` decides what follows from an
//! event. [`command`] builds and recognizes the command in a CLI's settings.
//!
//! [`passed`] gives hooks to an agent that swarm starts. For the sessions that a user starts, [`install`] and
//! [`plugin`] change settings files: [`merge`] changes the value, [`layout`] and [`mod@file`] read and write the file.

pub mod command;
mod context;
pub mod file;
mod guard;
pub mod install;
pub mod layout;
pub mod merge;
pub mod passed;
pub mod plugin;
pub mod report;
pub mod run;
mod status_line;
mod task_list;
pub mod verbs;
mod words;
