//! Talks to tmux. No other module does.
//!
//! The daemon holds one [`Tmux`] for each socket. It starts swarm's own server, makes windows, lists and captures
//! panes, pastes prompts and sends keys. The frequent requests (list, capture) go through one control client
//! ([`control`]). Rare ones, and all while that client does not work, go through plain processes ([`plain`]).
//!
//! Every part keeps these rules: panes and windows are addressed by tmux's own ids, sessions as `=name`; commands are
//! argv, never a shell line; each command uses our socket and our configuration; each wait has a timeout. A function
//! that asks tmux fails when the server is gone, does not answer or refuses. Two commands are never sent because they
//! can end a tmux server: a paste into a dead pane, and a global `window-size manual`. Nothing here knows about workers
//! or searches for servers or processes by name.
//!
//! `tmux_interface` builds the commands for which it has a form. The others are lists of words ([`plain::Words`]):
//! lines of control mode and the commands that are also sent as such (`list-panes`, `capture-pane`), an argv or keys
//! after `--`, `pipe-pane` with a path that may not be UTF-8, and commands that contain others, which [`quote`] quotes.

mod attach;
mod config;
mod connection;
mod control;
mod empty;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod handle;
mod input;
mod known_panes;
mod look;
mod parser;
mod plain;
mod probe;
mod quote;
mod rows;
mod server;
mod survey;
mod types;
mod version;
pub mod watch;
mod window;

pub use attach::AttachPlan;
pub use handle::Tmux;
pub(crate) use probe::SERVER_NAME;
pub use probe::{is_idle_program, is_server_at};
pub use rows::pane_number;
pub use server::usable_version;
pub use survey::ServerSurvey;
pub use types::{Captured, Glance, Health, NewWindow, PANE_TERM, PaneRow, PasteOutcome, Socket, TmuxOptions};
pub use version::Version;
