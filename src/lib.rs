//! swarm: a supervisor for coding-agent CLIs.
//!
//! One binary. `swarm daemon` supervises many workers; each worker is one agent CLI in one tmux window. The client
//! (`swarm spawn`, `status`, `attach`, …) talks to the daemon over a Unix socket and starts it if none runs. The
//! crate `swarm-state` holds what swarm knows and decides; this crate holds what swarm does.
//!
//! # Architecture
//!
//! ```text
//! main -> ui, stories -> cli, client, session, daemon -> hooks, loops -> protocol, store, tmux, git, checks
//! all of them -> swarm-state
//! ```
//!
//! The daemon's supervisor keeps a slot for each worker. A request or a notice from outside becomes an event, the
//! engine of `swarm-state` decides, and the supervisor carries out the effects. A worker's window runs the wrapper,
//! which starts the agent and records how it ended. For a loop, `loops` writes each iteration's contract and forms its
//! verdict.
//!
//! # Invariants
//!
//! * Agents are children of the tmux server, never of the daemon.
//! * Four writers share SWARM_DIR, each with its own files: the daemon (workers, loops, logs), session hooks and
//!   `swarm session` (sessions, hooks), the wrapper in a pane (runs), and the client (answers of hosts, Slurm jobs).
//!   In the daemon, only the supervisor changes the state of workers, and it waits only for its inbox.
//! * Nothing is started before it is written down.
//! * An unknown exit is never a success. A tmux that does not answer never means that an agent is dead.
//! * Only [`out`] and [`ui`] print. Only [`tmux`], [`git`], [`checks`], [`sandbox`], [`wrapper`], [`demo`], [`ui`],
//!   `notify`, `hosts`, [`remote`] and the client's `connect`, `attach`, `config edit` and `ralph plan` start
//!   processes. `client` imports none of `daemon`, `store`, `git`, `hooks` and `session`, and `protocol` does not
//!   access the disk. A test reads the imports and holds this.
//!
//! # Reading order
//!
//! * [`protocol`]: the requests and answers between client and daemon
//! * [`daemon`]: the supervisor, one file for each request, and the parts of a run
//! * [`tmux`], [`wrapper`]: panes, and the process in a pane
//! * [`store`], [`paths`], `files`, `signed`: the disk
//! * [`git`]: worktrees and snapshots
//! * [`loops`], [`checks`]: baseline, contract and verdict of an iteration
//! * [`hooks`], [`session`]: hooks in an agent's settings, and loops in an agent's own session
//! * [`remote`]: remote hosts, and the ssh that reaches them
//! * [`sandbox`]: runs agents and checks where they see and write only what they need
//! * `notify`: sends notifications to a command, the desktop, ntfy and a webhook
//! * [`ralph`]: a loop as a library
//! * [`stories`]: runs the stories of a task list at the same time, and merges them
//! * `owner`, `hosts`: the daemon that owns the directory, on this host or another
//! * [`procs`], [`descriptors`], `environ`, `shell`, `duration`, `loop_setting`: processes, descriptors,
//!   environments, shell words, durations and times, settings of a loop
//! * `runtime`: the runtime and the signals of a command
//! * [`settings`], [`client`], [`out`], [`mod@cli`]: the command line
//! * [`ui`]: the terminal interface
//! * `client::json`: the objects of `--format json`
//! * `task_files`, [`archive`]: the files of a task list in a project, and archiving them
//! * [`doctor`]: checks the whole installation and changes nothing
//! * [`error`]: the error type, its codes and exit statuses
#![warn(missing_docs)]

pub mod archive;
pub mod checks;
pub mod cli;
pub mod client;
pub mod daemon;
pub mod demo;
mod descriptors;
pub mod doctor;
mod duration;
mod environ;
pub mod error;
mod files;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod git;
pub mod hooks;
mod hosts;
mod loop_setting;
mod loops;
mod marks;
mod notify;
pub mod out;
mod owner;
pub mod paths;
pub mod procs;
pub mod protocol;
pub mod ralph;
pub mod remote;
mod runtime;
pub mod sandbox;
pub mod session;
pub mod settings;
mod shell;
mod signed;
pub mod store;
pub mod stories;
mod task_files;
pub mod tmux;
pub mod ui;
pub mod wrapper;
