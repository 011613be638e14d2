//! The only printer: what stands on stdout and stderr, and in which shape.
//!
//! Every verb prints through [`Out`]. A reader that went away (`swarm ls | head -1`) is no error: it comes
//! back as [`Failure::ReaderGone`] and the command ends quietly. A full disk behind stdout is an error.
//! A stdout that is closed is no error either: Rust opens `/dev/null` in its place before anything of ours runs,
//! just as many programs do for those that they start, and nothing tells the two apart.
//! Deliberately absent: what to say; that is in the verbs, as values or as text.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::Serialize;
use swarm_state::screen::printable;
use tokio::sync::oneshot;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::error::Error;

/// Why a command ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It failed; `main` prints the error.
    Error(Error),
    /// The reader of stdout went away. There is nothing to print.
    ReaderGone,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// The exit status of a command, or why it ended early.
pub type CommandResult = Result<u8, Failure>;

/// Where a command prints, and whether in colour.
#[derive(Clone, Copy, Debug)]
pub struct Out {
    colour_out: bool,
    colour_err: bool,
    /// Stderr is a terminal on which a line can be taken away again.
    rewrites: bool,
    /// Columns of a table; `None` when nothing should be cut (a pipe, a file).
    pub width: Option<usize>,
}

/// Whether a line of [`Out::progress`] stands on the terminal. There is one terminal, whoever prints.
static DRAWN: AtomicBool = AtomicBool::new(false);

/// A terminal with fewer columns has no room for a line that is rewritten.
const NARROWEST: usize = 12;

/// The few colours there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// All is well.
    Green,
    /// Look at this.
    Yellow,
    /// It went wrong.
    Red,
    /// Less important.
    Dim,
    /// More important.
    Bold,
}

impl Colour {
    fn code(self) -> &'static str {
        match self {
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Red => "31",
            Self::Dim => "2",
            Self::Bold => "1",
        }
    }
}

impl Out {
    /// For this process's stdout and stderr, by `NO_COLOR`, `TERM` and `COLUMNS`.
    pub fn from_env() -> Self {
        let able = std::env::var_os("TERM").is_none_or(|t| t != "dumb");
        let wanted = able && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).filter(|c| *c > 0);
        let width = columns.or_else(|| {
            let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
            (size.ws_col > 0).then_some(usize::from(size.ws_col))
        });
        Self {
            colour_out: wanted && io::stdout().is_terminal(),
            colour_err: wanted && io::stderr().is_terminal(),
            rewrites: able && io::stderr().is_terminal(),
            width,
        }
    }

    /// Without colours, uncut.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { colour_out: false, colour_err: false, rewrites: false, width: None }
    }

    /// Whether stdout is coloured.
    pub fn coloured(self) -> bool {
        self.colour_out
    }

    /// `text` in `colour`, where stdout has colours.
    pub fn paint(self, colour: Colour, text: &str) -> Cow<'_, str> {
        if self.colour_out { paint(colour, text).into() } else { text.into() }
    }

    /// Prints `text` as it is.
    pub fn raw(self, text: &str) -> Result<(), Failure> {
        self.no_progress();
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|e| closed_or(&e))
    }

    /// Prints one line; it is out when this returns.
    pub fn line(self, text: &str) -> Result<(), Failure> {
        self.raw(&format!("{text}\n"))
    }

    /// Prints lines in one go.
    pub fn lines<S: AsRef<str>>(self, lines: &[S]) -> Result<(), Failure> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut text = String::new();
        for line in lines {
            text.push_str(line.as_ref());
            text.push('\n');
        }
        self.raw(&text)
    }

    /// Ends when whoever reads stdout has gone away: what prints seldom would else outlive its reader by hours.
    /// Never ends for a file or a terminal.
    pub(crate) async fn reader_gone(self) {
        let (tell, told) = oneshot::channel();
        // A poll cannot be cancelled; the thread ends with the process.
        std::thread::spawn(move || {
            let stdout = io::stdout();
            loop {
                let mut fds = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
                match poll(&mut fds, PollTimeout::NONE) {
                    Ok(_) if fds[0].any().is_some_and(|gone| gone) => return tell.send(true),
                    Ok(_) | Err(Errno::EINTR) => {}
                    Err(_) => return tell.send(false),
                }
            }
        });
        if !told.await.unwrap_or(false) {
            std::future::pending::<()>().await;
        }
    }

    /// Prints a value as indented JSON.
    pub fn json<T: Serialize>(self, value: &T) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).map_err(|e| Error::system("cannot print JSON", e))?;
        self.line(&text)
    }

    /// `swarm: error: …` and its hint, on stderr.
    pub fn error(self, error: &Error) {
        self.say(&self.head(Colour::Red, "swarm: error:"), &error.message);
        if let Some(hint) = &error.hint {
            self.hint(hint);
        }
    }

    /// `swarm: warning: …` on stderr.
    pub fn warn(self, message: &str) {
        self.say(&self.head(Colour::Yellow, "swarm: warning:"), message);
    }

    /// `hint: …` on stderr.
    pub fn hint(self, message: &str) {
        self.say(&self.head(Colour::Bold, "hint:"), message);
    }

    /// A line on stderr that is neither: what is going on.
    pub fn note(self, message: &str) {
        self.say("", message);
    }

    /// Prints to stderr what clap worded, in colour where there is one.
    pub fn usage_error(self, plain: &str) {
        let text = plain.strip_prefix("error: ").unwrap_or(plain);
        self.say(&self.head(Colour::Red, "swarm: error:"), text.trim_end());
    }

    /// Whether [`Self::progress`] draws anything.
    pub fn shows_progress(self) -> bool {
        self.rewrites
    }

    /// Draws a line on a terminal's stderr that the next one takes the place of, and that is gone before anything else
    /// is printed. Nothing in a pipe, or where there is no room.
    pub fn progress(self, text: &str) {
        let columns = rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
        if !self.rewrites || columns < NARROWEST {
            return self.no_progress();
        }
        // The last column stays free: some terminals go to the next row when it is written.
        let text = fit(&printable(text), columns - 1);
        let text = if self.colour_err { paint(Colour::Dim, &text) } else { text };
        DRAWN.store(true, Ordering::Relaxed);
        let mut stderr = io::stderr().lock();
        let _ = write!(stderr, "\r{text}\x1b[K").and_then(|()| stderr.flush());
    }

    /// Takes the line of [`Self::progress`] away, where there is one.
    pub fn no_progress(self) {
        if self.rewrites && DRAWN.swap(false, Ordering::Relaxed) {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }

    fn head(self, colour: Colour, word: &str) -> String {
        if self.colour_err { paint(colour, word) } else { word.to_owned() }
    }

    /// Made harmless, since messages quote names and texts of anybody's. Nothing can be done about a stderr
    /// that takes nothing, so its errors end here.
    fn say(self, head: &str, text: &str) {
        self.no_progress();
        let blank = if head.is_empty() { "" } else { " " };
        let text = text.lines().map(printable).collect::<Vec<_>>().join("\n");
        let _ = writeln!(io::stderr().lock(), "{head}{blank}{text}");
    }
}

fn paint(colour: Colour, text: &str) -> String {
    format!("\x1b[{}m{text}\x1b[0m", colour.code())
}

fn closed_or(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Failure::ReaderGone
    } else {
        Failure::Error(Error::system("cannot write to standard output", error))
    }
}

/// `text` cut to `width` columns, with `…` where something is missing.
pub fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used + 1 > width {
            break;
        }
        cut.push(c);
    }
    if width > 0 {
        cut.push('…');
    }
    cut
}

/// A table: cells made harmless, columns straight, `flexible` ones cut until it fits `width`.
///
/// `flexible` names columns by index, in the order in which they give way; none is cut below 8.
pub fn table(head: &[&str], rows: &[Vec<String>], flexible: &[usize], width: Option<usize>) -> Vec<String> {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| printable(cell)).collect()).collect();
    let mut widths: Vec<usize> = head.iter().map(|h| h.width()).collect();
    for row in &rows {
        for (at, cell) in widths.iter_mut().zip(row) {
            *at = (*at).max(cell.width());
        }
    }
    if let Some(width) = width {
        for &index in flexible {
            let total: usize = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
            if let Some(column) = widths.get_mut(index) {
                let over = total.saturating_sub(width);
                *column = (*column).min(column.saturating_sub(over).max(8));
            }
        }
    }
    let head = head.iter().map(|h| (*h).to_owned()).collect();
    std::iter::once(&head).chain(&rows).map(|row| row_line(row, &widths)).collect()
}

fn row_line(row: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, width) in row.iter().zip(widths) {
        let cell = fit(cell, *width);
        let gap = width.saturating_sub(cell.width()) + 2;
        line.push_str(&cell);
        line.extend(std::iter::repeat_n(' ', gap));
    }
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(cells: &[&[&str]]) -> Vec<Vec<String>> {
        cells.iter().map(|r| r.iter().map(|c| (*c).to_owned()).collect()).collect()
    }

    #[test]
    fn a_table_is_straight_and_has_no_blanks_at_its_ends() {
        let lines = table(&["NAME", "CMD"], &rows(&[&["a", "x"], &["日本語", "y"]]), &[1], None);
        assert_eq!(lines, ["NAME    CMD", "a       x", "日本語  y"]);
    }

    #[test]
    fn a_narrow_terminal_cuts_the_flexible_column_only() {
        let long = "x".repeat(100);
        let lines = table(&["NAME", "CMD"], &rows(&[&["agent", &long]]), &[1], Some(30));
        assert_eq!(lines[1].width(), 30);
        assert!(lines[1].starts_with("agent  xxx") && lines[1].ends_with('…'), "{lines:?}");
        let lines = table(&["NAME", "CMD"], &rows(&[&["agent", &long]]), &[1], Some(1));
        assert_eq!(lines[1], format!("agent  {}…", "x".repeat(7)));
    }

    #[test]
    fn wide_text_keeps_a_table_straight_at_every_width() {
        let text = "é日🦀e\u{301}".repeat(50);
        let cells = rows(&[&["agent", &text, "tail"], &[&text, "x", &text], &["日本", "", "y"]]);
        for width in 1..=160 {
            let lines = table(&["NAME", "CMD", "TAGS"], &cells, &[1, 2, 0], Some(width));
            // Three columns of at least 8, with two blanks between them.
            assert!(lines.iter().all(|line| line.width() <= width.max(28)), "{width}: {lines:?}");
        }
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let lines = table(&["CMD"], &rows(&[&["\x1b[2Jrm\n\r\u{9b}x"]]), &[], None);
        assert!(!lines.join("").contains(|c: char| c.is_control()), "{lines:?}");
    }

    #[test]
    fn cutting_never_splits_a_character() {
        for width in 0..12 {
            let cut = fit("a日本語é\u{301}zz", width);
            assert!(cut.width() <= width, "{width}: {cut}");
        }
        assert_eq!(fit("abc", 3), "abc");
        assert_eq!(fit("abcd", 3), "ab…");
    }
}
