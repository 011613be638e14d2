//! swarm: a supervisor for coding-agent CLIs.
//!
//! One binary. `swarm daemon` looks after many workers, each one agent CLI in one tmux window; the client
//! (`swarm spawn`, `status`, `attach`, …) talks to it over a Unix socket and starts it when it is absent.
//! What swarm *knows and decides* is the crate `swarm-state`; this crate is what it *does*.
//!
//! # Invariants
//!
//! * Agents are children of the tmux server, never of the daemon.
//! * Three writers share SWARM_DIR, each with its own files: the daemon (workers, loops, logs), session hooks and `swarm
//!   session` (sessions, hooks), and the wrapper in a pane (runs). Within the daemon, the supervisor owns all state and is
//!   the only one who writes it; it waits for nothing but its inbox.
//! * Nothing is started that was not written down before.
//! * An unknown exit is never a success, and a tmux that does not answer is never a dead agent.
//! * Only [`out`] prints. Only [`tmux`], [`git`], [`checks`], [`wrapper`], [`demo`] and the client's `connect` and
//!   `attach` start processes. `client` imports none of `daemon`, `store`, `git`, `hooks` and `session`,
//!   and `protocol` does not access the disk. A test reads the imports and holds this.
//!
//! # Reading order
//!
//! [`protocol`] (the wire), [`daemon`] (supervisor, drivers, server), [`tmux`] and [`wrapper`] (panes and
//! what runs in them), [`store`] and [`paths`] (the disk), [`git`] (worktrees, snapshots), [`loops`] and [`checks`]
//! (contracts and verdicts), [`hooks`] (what agents call), [`ralph`] (a loop as a library), [`room`] (descriptors),
//! [`session`] (loops within an agent's session), [`settings`], [`client`], [`out`] and [`mod@cli`] (the command
//! line), [`doctor`] (checks all of them and changes nothing), [`error`].
#![warn(missing_docs)]

pub mod checks;
pub mod cli;
pub mod client;
pub mod daemon;
pub mod demo;
pub mod doctor;
mod environ;
pub mod error;
mod files;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod git;
pub mod hooks;
pub mod loops;
pub mod out;
pub mod paths;
pub mod procs;
pub mod protocol;
pub mod ralph;
pub mod room;
pub mod session;
pub mod settings;
mod shell;
pub mod store;
pub mod tmux;
pub mod wrapper;
