//! The only module that talks to tmux.
//!
//! The daemon holds one [`Tmux`] a socket: it starts swarm's own server, makes windows, lists and captures
//! panes, pastes prompts, presses keys. What is asked at every tick (list, capture) goes through one control
//! client ([`control`]); everything rare, and everything while that client is out of order, through plain
//! processes ([`plain`]). Reading order: [`server`] (start, health), [`empty`] (a server that
//! cannot end), [`window`] (make, end, resize), [`look`]
//! (list, capture), [`input`] (paste, keys), [`attach`], and the pure parts [`parser`], [`quote`], [`rows`],
//! [`watch`].
//!
//! Rules that every part keeps: panes and windows by tmux's own ids, sessions as `=name`, argv and never a
//! shell line, our socket and our configuration on every command, a time-out on every wait. Known ways to
//! end a tmux server (paste into a dead pane, global `window-size manual`) are out of reach. What is
//! deliberately absent: any opinion on workers, and any search for servers or processes by name.

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

pub use attach::Attach;
pub use config::{DEFAULT_SIZE, HISTORY_LIMIT};
pub use server::is_server_at;
pub use survey::Survey;
pub use version::Version;

/// The terminal that a pane is: the value of `TERM` that an agent in it needs. Every terminfo knows it.
pub const PANE_TERM: &str = "screen-256color";

/// Which tmux server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Socket {
    /// The one that listens at this path (`tmux -S`).
    Path(PathBuf),
    /// The one of this name (`tmux -L`), in tmux's own directory for this user.
    Name(String),
}

/// What a [`Tmux`] is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The server.
    pub socket: Socket,
    /// Where the generated configuration is written; it is written anew whenever a server is started.
    pub config: PathBuf,
    /// The user's tmux.conf, read at the end of ours.
    pub source: Option<PathBuf>,
    /// The session of the workers' windows: letters, digits, `_` and `-` only.
    pub session: String,
}

/// A tmux server of ours. Cheap to clone; connects when first used.
#[derive(Clone, Debug)]
pub struct Tmux(Arc<Inner>);

/// How a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It answers.
    Alive {
        /// The server's process.
        pid: i32,
    },
    /// It is not there, for sure: nothing listens at the socket, or what does was told to end and holds no pane.
    Gone,
    /// Something may be there, but it does not answer. Nothing is known of the panes.
    Unresponsive,
}

/// A window to make.
#[derive(Clone, Debug)]
pub struct NewWindow {
    /// The window's name.
    pub name: String,
    /// The directory that tmux starts the program in. The wrapper goes to the agent's own directory itself.
    pub cwd: PathBuf,
    /// The program and its arguments, never a shell line; not empty.
    pub argv: Vec<OsString>,
    /// The worker, kept in the pane option `@swarm_worker`.
    pub worker: String,
    /// The number of the run, kept in `@swarm_run`.
    pub run: u64,
    /// Columns and rows, each at least 1.
    pub size: (u16, u16),
    /// A program and its arguments that is given everything that the pane prints, raw, on its standard input.
    /// It must read on whatever happens: a reader that stops stops the pane.
    pub record: Option<Vec<OsString>>,
}

/// One pane in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// `%7`.
    pub pane: String,
    /// `@3`.
    pub window: String,
    /// The process in the pane; 0 when tmux does not say.
    pub pid: i32,
    /// When the window last printed, Unix seconds.
    pub activity: i64,
    /// The process has ended. Without a status or a signal this is not final: see [`Tmux::nudge`].
    pub dead: bool,
    /// Its exit status, once tmux knows it.
    pub dead_status: Option<i32>,
    /// The signal that ended it, once tmux knows it (never before tmux 3.3).
    pub dead_signal: Option<i32>,
    /// Columns and rows.
    pub size: (u16, u16),
    /// The program shows the alternate screen.
    pub alternate: bool,
    /// Rows of scrollback.
    pub history: u64,
    /// `@swarm_worker`.
    pub worker: Option<String>,
    /// `@swarm_run`.
    pub run: Option<u64>,
    /// The command that the pane was started with, as tmux quotes it.
    pub start_command: String,
}

/// One pane, as the tick looks at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// The 7 of `%7`.
    pub pane: u32,
    /// When its window last printed, Unix seconds.
    pub activity: i64,
    /// Columns and rows.
    pub size: (u16, u16),
    /// Rows of scrollback.
    pub history: u64,
}

/// What a pane shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The rows, joined by `\n`: rows that the terminal wrapped are one line again, blanks at the end of a
    /// line and blank lines at the end of the screen are gone, invalid UTF-8 is replaced.
    pub text: String,
    /// Columns and rows of the pane.
    pub size: (u16, u16),
    /// The screen is the alternate one. Scrollback before it is what the normal screen had.
    pub alternate: bool,
    /// The program draws in place: on the alternate screen, or with text below its cursor.
    pub picture: bool,
    /// Rows of scrollback that the pane had at this moment (unwrapped, not lines of `text`).
    pub history: u64,
    /// How many of these rows stand at the start of `text`, before wrapped rows were joined.
    pub history_taken: u64,
    /// Column and row of the cursor, from 0.
    pub cursor: (u16, u16),
    /// The pane is dead: this text is its last.
    pub dead: bool,
}

/// What became of a paste.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasteOutcome {
    /// The text was written to the program's terminal.
    Done,
    /// The program has ended, or its pane is gone.
    PaneDead,
}

/// What all clones share.
#[derive(Debug)]
struct Inner {
    options: Options,
    /// Absolute.
    socket: PathBuf,
    control: tokio::sync::Mutex<control::Control>,
    /// Held while a server is started or a window made: both decide by what exists.
    creating: tokio::sync::Mutex<()>,
    /// The server that was last seen.
    server: std::sync::Mutex<Option<server::Seen>>,
    /// What does not change about the panes that were last listed.
    known: std::sync::Mutex<look::Known>,
    installed: tokio::sync::OnceCell<Option<Version>>,
}

impl Tmux {
    /// A handle; nothing is started or connected yet.
    pub fn new(options: Options) -> Self {
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

    /// The socket's absolute path, also for a name.
    pub fn socket_path(&self) -> PathBuf {
        self.0.socket.clone()
    }

    /// The session of the workers' windows.
    pub fn session(&self) -> &str {
        &self.0.options.session
    }
}

impl Inner {
    fn socket_path(&self) -> &std::path::Path {
        &self.socket
    }

    /// The session that the control client attaches to. It also keeps the server from being without one.
    fn hidden_session(&self) -> String {
        format!("{}-ctl", self.options.session)
    }
}

/// The number in a pane's id: the 7 of `%7`. None for what is no such id.
pub fn pane_number(id: &str) -> Option<u32> {
    rows::pane_number(id)
}

/// Locks a mutex whose holders never panic half-way: the value is whole even when one did.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A number that this process gives once.
fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
