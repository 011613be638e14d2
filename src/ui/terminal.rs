//! The terminal of `swarm ui`: its modes, its keys and the writing of frames.
//!
//! The terminal gets its modes back when [`UiTerminal`] is dropped, also by a panic. Deliberately absent: the content
//! of the frames ([`super::view`]).

use std::io::{BufWriter, Stdout, Write, stdin, stdout};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{FlushArg, tcflush};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::Rect;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;

use super::keys::{KeyReader, UiKey};
use super::model::UiModel;
use super::view;
use crate::error::{Error, Result};

/// How long the rest of a key's sequence may take. Esc alone is a key after this time.
const SEQUENCE_TIMEOUT: Duration = Duration::from_millis(50);

/// The terminal while the interface is on it.
pub(super) struct UiTerminal {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    input: AsyncFd<OwnedFd>,
    reader: KeyReader,
}

impl UiTerminal {
    pub(super) fn open() -> Result<Self> {
        let failed = |error| Error::system("cannot prepare the terminal", error);
        let input = stdin().as_fd().try_clone_to_owned().map_err(failed)?;
        #[expect(deprecated, reason = "an OwnedFd stays open and the same, which is all that it must do")]
        let input = AsyncFd::with_interest(input, Interest::READABLE).map_err(failed)?;
        let backend = CrosstermBackend::new(BufWriter::with_capacity(1 << 16, stdout()));
        let terminal = Terminal::new(backend).map_err(failed)?;
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
        let mut ui = Self { terminal, input, reader: KeyReader::default() };
        ui.enter().map_err(failed)?;
        Ok(ui)
    }

    fn enter(&mut self) -> std::io::Result<()> {
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
        // `Terminal::clear` would ask the terminal for the position of its cursor, and read the answer among the keys.
        let (columns, rows) = self.size();
        self.terminal.resize(Rect::new(0, 0, columns, rows))
    }

    /// Returns the terminal to the state that a program expects.
    pub(super) fn suspend(&mut self) {
        restore();
    }

    /// Takes the terminal again. Keys for the program that ended are dropped.
    pub(super) fn resume(&mut self) -> Result<()> {
        let _ = tcflush(stdin(), FlushArg::TCIFLUSH);
        self.enter().map_err(|error| Error::system("cannot prepare the terminal", error))
    }

    /// Columns and rows.
    pub(super) fn size(&self) -> (u16, u16) {
        let size = rustix::termios::tcgetwinsize(stdout()).map(|size| (size.ws_col, size.ws_row));
        size.ok().filter(|size| size.0 > 0 && size.1 > 0).unwrap_or((80, 24))
    }

    pub(super) fn draw(&mut self, model: &UiModel) -> Result<()> {
        let drawn = self.terminal.draw(|frame| view::draw(model, frame));
        drawn.map(drop).map_err(|error| Error::system("cannot write to the terminal", error))
    }

    /// Whether a read returns at once. Another program may have read the bytes that made the terminal readable.
    fn has_input(&self) -> bool {
        let mut fds = [PollFd::new(self.input.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::ZERO).is_ok_and(|count| count > 0)
    }

    /// Returns the next keys; `None` when the terminal is gone. Cancel-safe.
    pub(super) async fn keys(&mut self) -> Option<Vec<UiKey>> {
        loop {
            let ready = async { self.input.readable().await.map(|mut ready| ready.clear_ready()) };
            if self.reader.is_waiting() {
                match timeout(SEQUENCE_TIMEOUT, ready).await {
                    Ok(ready) => ready.ok()?,
                    Err(_) => return Some(self.reader.finish().into_iter().collect()),
                }
            } else {
                ready.await.ok()?;
            }
            if !self.has_input() {
                continue;
            }
            let mut bytes = [0; 4096];
            let count = match nix::unistd::read(&self.input, &mut bytes) {
                Ok(0) => return None,
                Ok(count) => count,
                Err(Errno::EINTR | Errno::EAGAIN) => continue,
                Err(_) => return None,
            };
            let keys = self.reader.read(&bytes[..count]);
            if !keys.is_empty() {
                return Some(keys);
            }
        }
    }
}

impl Drop for UiTerminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Undoes the modes of the terminal. Errors have no place to go.
fn restore() {
    let _ = execute!(stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show);
    let _ = stdout().flush();
    let _ = disable_raw_mode();
}
