//! Prints to stdout and stderr. Everything that a command prints goes through [`Out`].
//!
//! Used by the client, session, hooks, demo, doctor and `main`. When the reader of stdout has gone away (`swarm ls |
//! head -1`), printing returns [`Failure::ReaderGone`] and the command ends without a message. A full disk behind
//! stdout is an error. A closed stdout counts as `/dev/null`: Rust opens `/dev/null` in its place before `main`, so the
//! two look alike. Deliberately absent: the messages, which are in the verbs.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use swarm_state::screen::printable;
use tokio::sync::oneshot;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::error::Error;

pub mod json;
mod on_host;

pub(crate) use on_host::{for_host, for_hosts, host_with_files, set_host};

/// Why a command ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The command failed; `main` prints the error.
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

/// Prints to stdout and stderr, in color where the terminal shows it.
#[derive(Clone, Copy, Debug)]
pub struct Out {
    color_out: bool,
    color_err: bool,
    /// Stderr is a terminal on which a line can be erased.
    can_rewrite: bool,
    /// The width of tables in columns; `None` where no cell is cut (a pipe, a file).
    pub width: Option<usize>,
}

/// Whether a line of [`Out::progress`] is on the terminal. The process has one terminal, so this is global.
static IS_PROGRESS_DRAWN: AtomicBool = AtomicBool::new(false);

/// The fewest columns of a terminal on which a progress line is drawn.
const MIN_PROGRESS_COLUMNS: usize = 12;

/// The width of wrapped text where the output is not a terminal.
pub(crate) const DEFAULT_COLUMNS: usize = 80;

/// A color or weight of text, with its code of SGR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// Success.
    Green = 32,
    /// Needs attention.
    Yellow = 33,
    /// Failure.
    Red = 31,
    /// Less important.
    Dim = 2,
    /// More important.
    Bold = 1,
}

impl Out {
    /// Whether standard output is a terminal.
    pub fn is_terminal() -> bool {
        io::stdout().is_terminal()
    }

    /// Whether standard error is a terminal.
    pub fn is_error_terminal() -> bool {
        io::stderr().is_terminal()
    }

    /// Refuses a terminal on which `command` cannot draw. `instead` names commands that need none.
    pub(crate) fn require_terminal(command: &str, instead: &str) -> Result<(), Error> {
        let verb = command.split(' ').next().unwrap_or_default();
        let refuse = |why, hint| Err(Error::invalid(format!("{verb} needs a terminal{why}")).hint(hint));
        if !io::stdin().is_terminal() || !Self::is_terminal() {
            return refuse(String::new(), format!("without a terminal: {instead}"));
        }
        let why = match std::env::var("TERM").ok().as_deref() {
            None | Some("") => "TERM is not set",
            Some("dumb") => "TERM is dumb",
            Some(_) => return Ok(()),
        };
        refuse(format!(" that can draw: {why}"), format!("TERM=xterm-256color swarm {command}"))
    }

    /// Describes this process's stdout and stderr, by `NO_COLOR`, `TERM` and `COLUMNS`.
    pub fn from_env() -> Self {
        let able = std::env::var_os("TERM").is_none_or(|t| t != "dumb");
        let wanted = able && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).filter(|c| *c > 0);
        let width = columns.or_else(|| {
            let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
            (size.ws_col > 0).then_some(usize::from(size.ws_col))
        });
        Self {
            color_out: wanted && io::stdout().is_terminal(),
            color_err: wanted && io::stderr().is_terminal(),
            can_rewrite: able && io::stderr().is_terminal(),
            width,
        }
    }

    /// Whether stdout shows color.
    pub fn has_color(self) -> bool {
        self.color_out
    }

    /// Returns `text` in `color`, or unchanged where stdout shows no color.
    pub fn paint(self, color: Color, text: &str) -> Cow<'_, str> {
        if self.color_out { paint(color, text).into() } else { text.into() }
    }

    /// Prints `text` unchanged.
    pub fn raw(self, text: &str) -> Result<(), Failure> {
        self.no_progress();
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|e| write_failure(&e))
    }

    /// Prints one line and flushes it.
    pub fn line(self, text: &str) -> Result<(), Failure> {
        self.raw(&format!("{text}\n"))
    }

    /// Prints lines with one write.
    pub fn lines<S: AsRef<str>>(self, lines: &[S]) -> Result<(), Failure> {
        if lines.is_empty() {
            return Ok(());
        }
        self.raw(&lines.iter().flat_map(|line| [line.as_ref(), "\n"]).collect::<String>())
    }

    /// Returns when the reader of stdout has gone away. A command that prints rarely would otherwise outlive its reader
    /// by hours. Never returns for a file or a terminal.
    pub(crate) async fn reader_gone(self) {
        let (sender, is_gone) = oneshot::channel();
        // A poll cannot be canceled; the thread ends with the process.
        std::thread::spawn(move || {
            let stdout = io::stdout();
            loop {
                let mut fds = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
                match poll(&mut fds, PollTimeout::NONE) {
                    Ok(_) if fds[0].any().is_some_and(|gone| gone) => return sender.send(true),
                    Ok(_) | Err(Errno::EINTR) => {}
                    Err(_) => return sender.send(false),
                }
            }
        });
        if !is_gone.await.unwrap_or(false) {
            std::future::pending::<()>().await;
        }
    }

    /// Prints `swarm: error: …` and the hint to stderr.
    pub fn error(self, error: &Error) {
        self.print_stderr(&self.head(Color::Red, "swarm: error:"), &error.message);
        if let Some(hint) = &error.hint {
            self.hint(hint);
        }
    }

    /// Prints `swarm: warning: …` to stderr.
    pub fn warn(self, message: &str) {
        self.print_stderr(&self.head(Color::Yellow, "swarm: warning:"), message);
    }

    /// Prints `hint: …` to stderr.
    pub fn hint(self, message: &str) {
        self.print_stderr(&self.head(Color::Bold, "hint:"), message);
    }

    /// Prints a plain line to stderr.
    pub fn note(self, message: &str) {
        self.print_stderr("", message);
    }

    /// Prints an error of clap to stderr.
    pub fn usage_error(self, plain: &str) {
        let text = plain.strip_prefix("error: ").unwrap_or(plain);
        self.print_stderr(&self.head(Color::Red, "swarm: error:"), text.trim_end());
    }

    /// Whether [`Self::progress`] draws anything.
    pub fn shows_progress(self) -> bool {
        self.can_rewrite
    }

    /// Draws a line on stderr that the next call replaces. It is erased before anything else is printed. Draws nothing
    /// in a pipe or on a narrow terminal.
    pub fn progress(self, text: &str) {
        let columns = rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
        if !self.can_rewrite || columns < MIN_PROGRESS_COLUMNS {
            return self.no_progress();
        }
        // The last column stays free: some terminals move to the next row when it is written.
        let text = fit(&printable(text), columns - 1);
        let text = if self.color_err { paint(Color::Dim, &text) } else { text };
        IS_PROGRESS_DRAWN.store(true, Ordering::Relaxed);
        let mut stderr = io::stderr().lock();
        let _ = write!(stderr, "\r{text}\x1b[K").and_then(|()| stderr.flush());
    }

    /// Erases the line of [`Self::progress`], if there is one.
    pub fn no_progress(self) {
        if self.can_rewrite && IS_PROGRESS_DRAWN.swap(false, Ordering::Relaxed) {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }

    fn head(self, color: Color, word: &str) -> String {
        if self.color_err { paint(color, word) } else { word.to_owned() }
    }

    /// Prints to stderr without control characters, since messages quote text from outside. Errors of stderr are
    /// ignored: there is nowhere to report them.
    fn print_stderr(self, head: &str, text: &str) {
        self.no_progress();
        let blank = if head.is_empty() { "" } else { " " };
        let text = for_host(text).lines().map(printable).collect::<Vec<_>>().join("\n");
        let _ = writeln!(io::stderr().lock(), "{head}{blank}{text}");
    }
}

fn paint(color: Color, text: &str) -> String {
    format!("\x1b[{}m{text}\x1b[0m", color as u8)
}

fn write_failure(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Failure::ReaderGone
    } else {
        Failure::Error(Error::system("cannot write to standard output", error))
    }
}

/// Cuts `text` to `width` columns, with `…` at the end of a text that was cut.
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

/// Cuts `text` to `width` columns, with `…` in its middle: names often differ at their ends.
pub fn fit_middle(text: &str, width: usize) -> String {
    if text.width() <= width || width < 3 {
        return fit(text, width);
    }
    let head = fit(text, width / 2 + 1);
    let mut tail: Vec<char> = vec![];
    let mut left = width - head.width();
    for c in text.chars().rev() {
        let Some(rest) = left.checked_sub(c.width().unwrap_or(0)) else { break };
        left = rest;
        tail.push(c);
    }
    head + &tail.iter().rev().collect::<String>()
}

/// Formats a table with aligned columns and without control characters. The first column is a name.
///
/// When the table is wider than `width`, the columns of `flexible` (index and least width) are cut in that order; the
/// first column is cut in the middle.
pub fn table(
    head: &[&str],
    rows: &[Vec<String>],
    flexible: &[(usize, usize)],
    width: Option<usize>,
) -> Vec<String> {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| printable(cell)).collect()).collect();
    let mut widths: Vec<usize> = head.iter().map(|h| h.width()).collect();
    for row in &rows {
        for (at, cell) in widths.iter_mut().zip(row) {
            *at = (*at).max(cell.width());
        }
    }
    if let Some(width) = width {
        for &(index, least) in flexible {
            let total: usize = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
            if let Some(column) = widths.get_mut(index) {
                let over = total.saturating_sub(width);
                *column = (*column).min(column.saturating_sub(over).max(least));
            }
        }
    }
    let head = head.iter().map(|h| (*h).to_owned()).collect();
    std::iter::once(&head).chain(&rows).map(|row| row_line(row, &widths)).collect()
}

fn row_line(row: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
        let cell = if index == 0 { fit_middle(cell, *width) } else { fit(cell, *width) };
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

    impl Out {
        pub(crate) fn plain() -> Self {
            Self { color_out: false, color_err: false, can_rewrite: false, width: None }
        }
    }

    fn rows(cells: &[&[&str]]) -> Vec<Vec<String>> {
        cells.iter().map(|r| r.iter().map(|c| (*c).to_owned()).collect()).collect()
    }

    #[test]
    fn table_is_aligned_and_has_no_trailing_spaces() {
        let lines = table(&["NAME", "CMD"], &rows(&[&["a", "x"], &["日本語", "y"]]), &[(1, 8)], None);
        assert_eq!(lines, ["NAME    CMD", "a       x", "日本語  y"]);
    }

    #[test]
    fn a_narrow_terminal_cuts_the_flexible_column_only() {
        let long = "x".repeat(100);
        let lines = table(&["NAME", "CMD"], &rows(&[&["agent", &long]]), &[(1, 8)], Some(30));
        assert_eq!(lines[1].width(), 30);
        assert!(lines[1].starts_with("agent  xxx") && lines[1].ends_with('…'), "{lines:?}");
        let lines = table(&["NAME", "CMD"], &rows(&[&["agent", &long]]), &[(1, 8)], Some(1));
        assert_eq!(lines[1], format!("agent  {}…", "x".repeat(7)));
    }

    #[test]
    fn names_are_cut_in_the_middle() {
        for (width, cut) in
            [(20, "feature-login-0001"), (9, "feat…0001"), (8, "feat…001"), (3, "f…1"), (1, "…")]
        {
            assert_eq!(fit_middle("feature-login-0001", width), cut, "{width}");
        }
    }

    #[test]
    fn table_with_wide_text_is_aligned_at_every_width() {
        let text = "é日🦀e\u{301}".repeat(50);
        let cells = rows(&[&["agent", &text, "tail"], &[&text, "x", &text], &["日本", "", "y"]]);
        for width in 1..=160 {
            let lines = table(&["NAME", "CMD", "TAGS"], &cells, &[(1, 8), (2, 8), (0, 8)], Some(width));
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
