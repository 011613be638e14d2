//! Talks to tmux. No other module does.
//!
//! The daemon holds one [`Tmux`] for each socket. It starts swarm's own server, makes windows, lists and captures
//! panes, pastes prompts and sends keys. The frequent requests (list, capture) go through one control client
//! ([`control`]). Rare commands, and all commands while that client does not work, go through plain processes
//! ([`plain`]). Reading order: [`server`] (start, health), [`empty`] (a server that cannot exit), [`window`] (make,
//! close, resize), [`look`] (list, capture), [`input`] (paste, keys), [`attach`], and the pure parts [`parser`],
//! [`quote`], [`rows`], [`watch`].
//!
//! Every part keeps these rules: panes and windows are addressed by tmux's own ids, sessions as `=name`; commands are
//! argv, never a shell line; each command uses our socket and our configuration; each wait has a timeout. Two
//! commands are never sent because they can end a tmux server: a paste into a dead pane, and a global `window-size
//! manual`. Nothing here knows about workers or searches for servers or processes by name.
//!
//! `tmux_interface` builds `set-option`, `has-session`, `new-session`, `kill-window`, `kill-server` and
//! `resize-window`. The other commands are lists of words ([`plain::Words`]). `list-panes`, `capture-pane`,
//! `show-buffer` and their formats are also sent as lines of control mode, for which the crate has no form.
//! `new-window` has an argv after `--`. `if-shell` and `set-hook` contain other commands, which [`quote`] quotes.

mod attach;
mod config;
mod control;
mod empty;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod input;
mod look;
mod parser;
mod plain;
mod quote;
mod rows;
mod server;
mod survey;
mod version;
pub mod watch;
mod window;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use attach::AttachPlan;
pub use config::{DEFAULT_SIZE, HISTORY_LIMIT};
pub use server::is_server_at;
pub use survey::ServerSurvey;
pub use version::Version;

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

/// The settings of a [`Tmux`].
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

/// A handle to a tmux server. Cheap to clone; connects on first use.
#[derive(Clone, Debug)]
pub struct Tmux(Arc<Inner>);

/// The health of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It responds.
    Alive {
        /// The server's process.
        pid: i32,
    },
    /// It is certainly not there: nothing listens at the socket, or the process that listens was told to exit and
    /// holds no pane.
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
    /// When the window last printed, in Unix seconds.
    pub activity: i64,
    /// The process has ended. Without a status or a signal this is not final; see [`Tmux::nudge`].
    pub dead: bool,
    /// Its exit status, once tmux has it.
    pub dead_status: Option<i32>,
    /// The signal that ended it, once tmux has it (never before tmux 3.3).
    pub dead_signal: Option<i32>,
    /// Columns and rows.
    pub size: (u16, u16),
    /// The program uses the alternate screen.
    pub alternate: bool,
    /// Rows of scrollback.
    pub history: u64,
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
    /// Column and row of the cursor, from 0.
    pub cursor: (u16, u16),
    /// The pane is dead; this is its last screen.
    pub dead: bool,
}

/// The result of a paste.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasteOutcome {
    /// The text was written to the program's terminal.
    Done,
    /// The program has ended, or its pane is gone.
    PaneDead,
}

/// The state that all clones share.
#[derive(Debug)]
struct Inner {
    options: TmuxOptions,
    /// Absolute.
    socket: PathBuf,
    control: tokio::sync::Mutex<control::Control>,
    /// Held while a server is started or a window is made, since both depend on what exists.
    creating: tokio::sync::Mutex<()>,
    /// The last known server.
    server: std::sync::Mutex<Option<server::KnownServer>>,
    /// The constant properties of the panes in the last list.
    known: std::sync::Mutex<look::KnownPanes>,
    installed: tokio::sync::OnceCell<Option<Version>>,
}

impl Tmux {
    /// Makes a handle. Starts and connects nothing.
    pub fn new(options: TmuxOptions) -> Self {
        let socket = server::absolute(&options.socket);
        Self(Arc::new(Inner {
            options,
            socket,
            control: tokio::sync::Mutex::default(),
            creating: tokio::sync::Mutex::default(),
            server: std::sync::Mutex::default(),
            known: std::sync::Mutex::default(),
            installed: tokio::sync::OnceCell::new(),
        }))
    }

    /// The socket's absolute path, also for a server with a name.
    pub fn socket_path(&self) -> PathBuf {
        self.0.socket.clone()
    }

    /// The session that holds the workers' windows.
    pub fn session(&self) -> &str {
        &self.0.options.session
    }
}

impl Inner {
    fn socket_path(&self) -> &std::path::Path {
        &self.socket
    }

    /// The session of the control client. It also keeps the server from having no session.
    fn hidden_session(&self) -> String {
        format!("{}-ctl", self.options.session)
    }
}

/// The number in a pane's id: the 7 of `%7`; `None` if it is not a pane id.
pub fn pane_number(id: &str) -> Option<u32> {
    rows::pane_number(id)
}

/// Locks a mutex. Its holders never panic halfway, so a poisoned value is still consistent.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A number that is unique in this process.
fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
