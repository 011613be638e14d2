//! swarm: a supervisor for coding-agent CLIs.
//!
//! One binary. `swarm daemon` supervises many workers; each worker is one agent CLI in one tmux window. The client
//! (`swarm spawn`, `status`, `attach`, …) talks to the daemon over a Unix socket and starts it if none runs. The
//! crate `swarm-state` holds what swarm knows and decides; this crate holds what swarm does.
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
pub mod descriptors;
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
pub mod session;
pub mod settings;
mod shell;
pub mod store;
pub mod tmux;
pub mod wrapper;
