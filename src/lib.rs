//! swarm.
pub mod cli;
pub mod client;
pub mod daemon;
pub mod demo;
pub mod error;
pub mod git;
pub mod paths;
pub mod procs;
pub mod protocol;
pub mod settings;
pub mod store;
pub mod tmux;
pub mod wrapper;
