//! Follows the output of a worker across its runs, for `spawn --stream` and `logs --follow`.
//!
//! A live run is polled with `peek`; its lines have numbers. What the run printed between the last poll and its end is
//! in the worker's log, where lines are as long as the agent made them and not as the terminal wrapped them. So the
//! printed output is measured in visible characters (not white space): the log after that many visible characters is
//! new.

use crate::client::connect::{Client, QUICK_TIMEOUT};
use crate::error::Result;
use crate::protocol::{Call, Lines, LogsParams, PeekParams, Peeked, RUNNING, is_run_header};

/// How many lines a poll requests, and how many when that was too few.
const FEW_LINES: u32 = 400;
const MANY_LINES: u32 = 10_000;

#[derive(Debug, Default)]
pub(super) struct OutputTail {
    name: String,
    new_lines: NewLines,
    /// The run of the last poll.
    run: u64,
    /// How many visible characters of that run were printed.
    visible_chars: usize,
    /// The last poll showed a full-screen program: nothing of its log is new.
    full_screen: bool,
    /// The header of the last run whose log was printed. Headers contain times, so each is unique.
    last_header: Option<String>,
}

impl OutputTail {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Follows from the worker's first run on. Must be called soon after the spawn.
    pub(super) async fn from_start(name: &str, client: &mut Client) -> Result<Self> {
        let mut tail = Self::new(name);
        let mut peeked = tail.peek(client, FEW_LINES).await?;
        // An earlier worker of this name may have left a log.
        let log = loop {
            let log = tail.log(client, MANY_LINES).await?;
            let now = tail.peek(client, FEW_LINES).await?;
            // Otherwise a run ended in between, and the log may have it or not.
            if (now.run, now.live) == (peeked.run, peeked.live) {
                break log;
            }
            peeked = now;
        };
        tail.run = peeked.run;
        let over = peeked.run.saturating_sub(u64::from(peeked.live));
        let mut earlier = log.iter().filter(|line| is_run_header(line)).rev();
        tail.last_header = earlier.nth(usize::try_from(over).unwrap_or(usize::MAX)).cloned();
        Ok(tail)
    }

    /// Follows from now on.
    pub(super) async fn from_now(name: &str, client: &mut Client) -> Result<Self> {
        let mut tail = Self::new(name);
        let peeked = tail.peek(client, MANY_LINES).await?;
        tail.run = peeked.run;
        if peeked.live {
            // Two equal polls count the last line as printed too.
            tail.accept(&peeked);
            tail.accept(&peeked);
        }
        let log = tail.log(client, MANY_LINES).await?;
        tail.last_header = log.into_iter().rfind(|line| is_run_header(line));
        Ok(tail)
    }

    /// Whether the worker has printed no line and ended no run since [`OutputTail::from_now`].
    pub(super) async fn is_current(&self, client: &mut Client) -> Result<bool> {
        let peeked = self.peek(client, MANY_LINES).await?;
        let is_same_run = peeked.run == self.run && peeked.live == self.new_lines.run.is_some();
        // Two equal polls count the last line too.
        let mut lines = self.new_lines.clone();
        let mut is_new = || !lines.feed(&peeked).is_empty();
        Ok(is_same_run && !(peeked.live && (is_new() || is_new())))
    }

    /// Returns the lines that are new. After an error, a retry loses nothing.
    pub(super) async fn poll(&mut self, client: &mut Client) -> Result<Vec<String>> {
        let mut peeked = self.peek(client, FEW_LINES).await?;
        let known = if peeked.run == self.run { self.new_lines.next() } else { 0 };
        if peeked.live && !peeked.alternate && peeked.first > known {
            peeked = self.peek(client, MANY_LINES).await?;
        }
        if peeked.live && peeked.run == self.run {
            return Ok(self.accept(&peeked));
        }
        let log = self.new_log(client).await?;
        let printed = if self.full_screen { usize::MAX } else { self.visible_chars };
        let new = ended(&log, self.last_header.as_deref(), printed);
        if let Some(header) = log.into_iter().rfind(|line| is_run_header(line))
            && self.last_header.as_ref() != Some(&header)
        {
            (self.last_header, self.visible_chars, self.full_screen) = (Some(header), 0, false);
        }
        // The polled run may have ended before the log was read. It is then in the log, and the next poll finds it.
        self.run = peeked.run;
        Ok(new)
    }

    fn accept(&mut self, peeked: &Peeked) -> Vec<String> {
        let new = self.new_lines.feed(peeked);
        let added = new.iter().map(|line| visible_chars(line)).sum();
        self.visible_chars = self.visible_chars.saturating_add(added);
        self.full_screen = peeked.alternate;
        new
    }

    async fn peek(&self, client: &mut Client, lines: u32) -> Result<Peeked> {
        client
            .call(&Call::Peek(PeekParams { name: self.name.clone(), lines, styled: false }), QUICK_TIMEOUT)
            .await
    }

    /// Reads the end of the log, at least from the last known header on.
    async fn new_log(&self, client: &mut Client) -> Result<Vec<String>> {
        let few = self.log(client, FEW_LINES).await?;
        let enough = few.len() < FEW_LINES as usize
            || self.last_header.as_ref().is_some_and(|last_header| few.contains(last_header));
        if enough { Ok(few) } else { self.log(client, MANY_LINES).await }
    }

    async fn log(&self, client: &mut Client, lines: u32) -> Result<Vec<String>> {
        let name = self.name.clone();
        let params = LogsParams { name, lines: Some(lines), history: true, ..LogsParams::default() };
        let lines: Lines = client.call(&Call::Logs(params), QUICK_TIMEOUT).await?;
        Ok(lines.lines)
    }
}

fn visible_chars(line: &str) -> usize {
    line.chars().filter(|c| !c.is_whitespace()).count()
}

/// Returns what the runs after `last_header` printed, without the first `skip` visible characters of the first one and
/// without the output of the live run, which is at the end of the log.
fn ended(log: &[String], last_header: Option<&str>, skip: usize) -> Vec<String> {
    let headers: Vec<usize> = (0..log.len()).filter(|at| is_run_header(&log[*at])).collect();
    let known =
        headers.iter().position(|at| Some(log[*at].as_str()) == last_header).map_or(0, |index| index + 1);
    let (Some(first), Some(last)) = (headers.get(known), headers.last()) else { return vec![] };
    let end = (last + 1..log.len()).find(|at| log[*at] == RUNNING).unwrap_or(log.len());
    let second = headers.get(known + 1).copied().unwrap_or(end);
    let mut left = skip;
    let mut new = vec![];
    for at in (*first..end).filter(|at| !is_run_header(&log[*at])) {
        if left == 0 || at > second {
            new.push(log[at].clone());
        }
        left = left.saturating_sub(visible_chars(&log[at]));
    }
    new
}

/// Remembers what was printed so far.
#[derive(Clone, Debug, Default)]
struct NewLines {
    run: Option<u64>,
    /// The number of the next line to print.
    next: u64,
    /// The last line of the previous poll, with its number.
    last: Option<(u64, String)>,
    /// The screen of the previous poll.
    full_screen: Vec<String>,
}

impl NewLines {
    /// Returns the number of the first line that was not printed yet.
    fn next(&self) -> u64 {
        self.next
    }

    /// Returns the new lines of a poll. The last line of a live screen may still grow, so it is held back until another
    /// line follows it, it is the same in two polls, or the run ends.
    fn feed(&mut self, window: &Peeked) -> Vec<String> {
        if self.run != Some(window.run) {
            *self = Self { run: Some(window.run), ..Self::default() };
        }
        if window.alternate { self.changed(window) } else { self.grown(window) }
    }

    fn changed(&mut self, window: &Peeked) -> Vec<String> {
        // If the program leaves full-screen mode for a moment, these lines are not new.
        self.next = window.first + window.lines.len() as u64;
        self.last = None;
        let before = std::mem::replace(&mut self.full_screen, window.lines.to_vec());
        let is_new = |line: &&String| !line.trim().is_empty() && !before.contains(line);
        window.lines.iter().filter(is_new).cloned().collect()
    }

    fn grown(&mut self, window: &Peeked) -> Vec<String> {
        self.full_screen = window.lines.to_vec();
        let end = window.first + window.lines.len() as u64;
        // The text became shorter (cleared, rotated): what remains was printed, or is gone.
        self.next = self.next.min(end);
        let mut new = Vec::new();
        for (number, line) in (window.first..).zip(&window.lines) {
            if number < self.next {
                continue;
            }
            let may_grow = window.live && number + 1 == end;
            let same = self.last.as_ref().is_some_and(|(n, l)| *n == number && l == line);
            if may_grow && !same {
                break;
            }
            new.push(line.clone());
            self.next = number + 1;
        }
        self.last = window.lines.last().map(|line| (end.saturating_sub(1), line.clone()));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn check(last_header: Option<u8>, skip: usize, live: &str, expected: &str) {
        let head = |n| format!("=== iteration {n}, ended x, exit code 0 ===");
        let log = format!("{}\none\ntwo\n{}\none\nlong line\nlast\n{live}", head(1), head(2));
        let new = ended(&lines(&log), last_header.map(head).as_deref(), skip);
        assert_eq!(new, lines(expected), "{last_header:?} {skip} {live:?}");
    }

    #[test]
    fn output_between_the_last_read_and_the_end_is_printed() {
        let live = "=== running ===\none\ntw";
        check(Some(1), 0, live, "one\nlong line\nlast");
        check(Some(1), 3, live, "long line\nlast");
        check(Some(1), 11, live, "last");
        check(Some(1), 15, live, "");
        check(Some(1), usize::MAX, live, "");
        check(Some(1), 11, "", "last");
        check(Some(2), 0, live, "");
        check(None, 3, live, "two\none\nlong line\nlast");
        check(None, usize::MAX, "", "one\nlong line\nlast");
    }

    fn feed(new_lines: &mut NewLines, run: u64, first: u64, text: &str, live: bool) -> String {
        let lines: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        new_lines.feed(&Peeked { run, first, lines, alternate: false, live }).join(" ")
    }

    #[test]
    fn lines_of_overlapping_reads_are_printed_once() {
        let mut new_lines = NewLines::default();
        assert_eq!(feed(&mut new_lines, 1, 0, "a b c", true), "a b");
        assert_eq!(feed(&mut new_lines, 1, 0, "a b cc", true), "", "the last line grew");
        assert_eq!(feed(&mut new_lines, 1, 1, "b cc d e", true), "cc d");
        assert_eq!(feed(&mut new_lines, 1, 1, "b cc d e", true), "e", "it stayed the same");
        assert_eq!(feed(&mut new_lines, 1, 1, "b cc d e", true), "");
        assert_eq!(feed(&mut new_lines, 1, 9, "x y", false), "x y", "a gap is jumped");
        assert_eq!(feed(&mut new_lines, 2, 0, "a b", false), "a b", "another run begins anew");
        assert_eq!(feed(&mut new_lines, 2, 0, "a", false), "");
    }

    #[test]
    fn full_screen_output_prints_only_changed_rows() {
        let mut new_lines = NewLines::default();
        let mut window = |text: &[&str]| {
            let lines: Vec<String> = text.iter().map(|l| (*l).to_owned()).collect();
            new_lines.feed(&Peeked { run: 1, first: 0, lines, alternate: true, live: true }).join(" ")
        };
        assert_eq!(window(&["a", "", "b"]), "a b");
        assert_eq!(window(&["b", "c", ""]), "c");
    }

    #[test]
    fn full_screen_output_with_the_cursor_at_the_end_repeats_no_rows() {
        let mut new_lines = NewLines::default();
        let mut window = |full_screen: bool, text: &[&str]| {
            let lines: Vec<String> = text.iter().map(|l| (*l).to_owned()).collect();
            new_lines.feed(&Peeked { run: 1, first: 0, lines, alternate: full_screen, live: true }).join(" ")
        };
        assert_eq!(window(true, &["a", "b", "box"]), "a b box");
        assert_eq!(window(false, &["a", "b", "box"]), "");
        assert_eq!(window(true, &["a", "c", "box"]), "c");
    }
}
