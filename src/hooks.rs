//! The hooks of agent CLIs: installs them, passes them to agents, and carries them out.
//!
//! [`run`] is `swarm hook EVENT`: it passes stops and prompts to [`crate::session`]. [`report`] reports events of a
//! worker's agent to the daemon, [`mod@task_list`] decides the stops of agents that work on a task list,
//! [`mod@guard`] stops dangerous tool calls, [`mod@context`] alerts an agent whose context is nearly full, and
//! [`mod@status_line`] reads the usage limits of its account.
//! `swarm_state::hook` decides what follows from an event. [`command`] builds and recognizes the command in a CLI's
//! settings. [`passed`] passes hooks to an agent that swarm starts. For the sessions that a user starts,
//! [`install`] and [`plugin`] change settings files ([`verbs`]: `swarm hooks` and `swarm plugin`): [`merge`] changes
//! the value, [`layout`] and [`mod@file`] read and write the file.

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
