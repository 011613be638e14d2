//! The data that callers give to tmux and get from it. Only data.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::paths::Paths;

/// The value of `TERM` in a pane. Every terminfo database has it.
pub const PANE_TERM: &str = "screen-256color";

/// Identifies a tmux server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Socket {
    /// The server that listens at this path (`tmux -S`).
    Path(PathBuf),
    /// The server of this name (`tmux -L`), in tmux's own directory for this user.
    Name(String),
}

/// The settings of a [`super::Tmux`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TmuxOptions {
    /// The server.
    pub socket: Socket,
    /// The generated configuration file, which is written again whenever a server is started.
    pub config: PathBuf,
    /// The user's tmux.conf, read at the end of ours.
    pub source: Option<PathBuf>,
    /// The session of the workers' windows: letters, digits, `_` and `-` only.
    pub session: String,
}

impl TmuxOptions {
    /// The settings of swarm's own server.
    pub fn own(paths: &Paths) -> Self {
        let (socket, config) = (Socket::Path(paths.tmux_socket()), paths.tmux_conf());
        Self { socket, config, source: None, session: "swarm".to_owned() }
    }
}

/// The health of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// The server responds.
    Alive {
        /// The server's process.
        pid: i32,
    },
    /// Certainly not there: nothing listens at the socket, or the listening process is exiting and has no panes.
    Gone,
    /// Something may be there, but it does not respond. The state of the panes is unknown.
    Unresponsive,
}

/// The description of a window to make.
#[derive(Clone, Debug)]
pub struct NewWindow {
    /// The window's name.
    pub name: String,
    /// The directory in which tmux starts the program. The wrapper changes to the agent's directory itself.
    pub cwd: PathBuf,
    /// The program and its arguments, not a shell line; not empty.
    pub argv: Vec<OsString>,
    /// The worker's name, kept in the pane option `@swarm_worker`.
    pub worker: String,
    /// The run's number, kept in `@swarm_run`.
    pub run: u64,
    /// Columns and rows, each at least 1.
    pub size: (u16, u16),
    /// A program and its arguments that receives the pane's raw output on its standard input. It must keep reading:
    /// if it stops, the pane stops.
    pub record: Option<Vec<OsString>>,
}

/// A pane in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PaneRow {
    /// `%7`.
    pub pane: String,
    /// `@3`.
    pub window: String,
    /// The process in the pane; 0 if tmux does not report it.
    pub pid: i32,
    /// The process has ended. Without a status or a signal this is not final; see [`super::Tmux::nudge`].
    pub dead: bool,
    /// Its exit status, once tmux has it.
    pub dead_status: Option<i32>,
    /// The signal that ended it, once tmux has it (never before tmux 3.3).
    pub dead_signal: Option<i32>,
    /// Columns and rows.
    pub size: (u16, u16),
    /// `@swarm_worker`.
    pub worker: Option<String>,
    /// `@swarm_run`.
    pub run: Option<u64>,
    /// The command that the pane was started with, quoted by tmux.
    pub start_command: String,
}

/// The part of a pane's state that each tick reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// The 7 of `%7`.
    pub pane: u32,
    /// When its window last printed, in Unix seconds.
    pub activity: i64,
    /// Columns and rows.
    pub size: (u16, u16),
    /// Rows of scrollback.
    pub history: u64,
}

/// The screen of a pane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The rows, joined by `\n`. Wrapped rows are one line again. Spaces at the end of a line, empty lines at the end
    /// of the screen and invalid UTF-8 are removed or replaced.
    pub text: String,
    /// Columns and rows of the pane.
    pub size: (u16, u16),
    /// The alternate screen is shown. Scrollback above it belongs to the normal screen.
    pub alternate: bool,
    /// The program draws in place: on the alternate screen, or with text below its cursor.
    pub picture: bool,
    /// The pane's rows of scrollback at this moment (not unwrapped, so not lines of `text`).
    pub history: u64,
    /// The number of these rows at the start of `text`, before wrapped rows were joined.
    pub history_taken: u64,
}

/// The result of a paste.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasteOutcome {
    /// The text was written to the program's terminal.
    Done,
    /// The program has ended, or its pane is gone.
    PaneDead,
}
