//! What a worker prints, as it prints it, over the ends of its runs: for `spawn --stream` and
//! `logs --follow`.
//!
//! A run that lives is looked at with `peek`; its lines have numbers. What it printed between the last
//! look and its end stands in the worker's log, where lines are as long as the agent made them, not as
//! the terminal wrapped them. So what was printed is counted in *ink*, characters that are not blank, and
//! what comes after that much ink is new.

use crate::client::connect::{Client, QUICK};
use crate::client::new_lines::{Look, Stream};
use crate::error::Result;
use crate::protocol::{Call, Lines, LogsParams, PeekParams, Peeked, RUNNING, is_run_header};

/// How many lines a look takes, and how many when that was too few.
const FEW: u32 = 400;
const MANY: u32 = 10_000;

/// A follower of one worker's output.
#[derive(Debug)]
pub(super) struct Tail {
    name: String,
    stream: Stream,
    /// The run that was looked at last.
    run: u64,
    /// How much of it was printed.
    ink: usize,
    /// The last look was at a picture: nothing of its log is new.
    picture: bool,
    /// The header of the last run whose log was printed. Headers hold times, so each is the only one.
    mark: Option<String>,
}

impl Tail {
    /// From the worker's first run on. To be called soon after it was spawned.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub(super) async fn from_start(name: &str, client: &mut Client) -> Result<Self> {
        let mut tail = Self {
            name: name.to_owned(),
            stream: Stream::default(),
            run: 0,
            ink: 0,
            picture: false,
            mark: None,
        };
        let peeked = tail.peek(client, FEW).await?;
        tail.run = peeked.run;
        let over = peeked.run.saturating_sub(u64::from(peeked.live));
        // A worker of this name before it may have left a log.
        let log = tail.log(client, MANY).await?;
        let mut earlier = log.iter().filter(|line| is_run_header(line)).rev();
        tail.mark = earlier.nth(usize::try_from(over).unwrap_or(usize::MAX)).cloned();
        Ok(tail)
    }

    /// From now on.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub(super) async fn from_now(name: &str, client: &mut Client) -> Result<Self> {
        let mut tail = Self {
            name: name.to_owned(),
            stream: Stream::default(),
            run: 0,
            ink: 0,
            picture: false,
            mark: None,
        };
        let peeked = tail.peek(client, MANY).await?;
        tail.run = peeked.run;
        if peeked.live {
            // Twice the same: the last line is taken too.
            tail.take(&peeked);
            tail.take(&peeked);
        }
        let log = tail.log(client, MANY).await?;
        tail.mark = log.into_iter().rfind(|line| is_run_header(line));
        Ok(tail)
    }

    /// The lines that are new.
    ///
    /// # Errors
    /// As [`Client::call`]; nothing is lost by trying again.
    pub(super) async fn look(&mut self, client: &mut Client) -> Result<Vec<String>> {
        let mut peeked = self.peek(client, FEW).await?;
        let known = if peeked.run == self.run { self.stream.next() } else { 0 };
        if peeked.live && !peeked.alternate && peeked.first > known {
            peeked = self.peek(client, MANY).await?;
        }
        let new;
        if !peeked.live || peeked.run != self.run {
            let log = self.new_log(client).await?;
            let printed = if self.picture { usize::MAX } else { self.ink };
            new = ended(&log, self.mark.as_deref(), printed);
            if let Some(header) = log.into_iter().rfind(|line| is_run_header(line))
                && self.mark.as_ref() != Some(&header)
            {
                (self.mark, self.ink, self.picture) = (Some(header), 0, false);
            }
            // What was peeked at may have ended before the log was read, and is in it then: the next look tells.
            self.run = peeked.run;
        } else {
            new = self.take(&peeked);
        }
        Ok(new)
    }

    fn take(&mut self, peeked: &Peeked) -> Vec<String> {
        let new = self.stream.feed(&Look {
            run: peeked.run,
            first: peeked.first,
            lines: &peeked.lines,
            picture: peeked.alternate,
            live: peeked.live,
        });
        let taken = new.iter().map(|line| ink(line)).sum();
        self.ink = self.ink.saturating_add(taken);
        self.picture = peeked.alternate;
        new
    }

    async fn peek(&self, client: &mut Client, lines: u32) -> Result<Peeked> {
        client.call(&Call::Peek(PeekParams { name: self.name.clone(), lines }), QUICK).await
    }

    /// The end of the log, from the mark on at least.
    async fn new_log(&self, client: &mut Client) -> Result<Vec<String>> {
        let few = self.log(client, FEW).await?;
        let enough = few.len() < FEW as usize || self.mark.as_ref().is_some_and(|mark| few.contains(mark));
        if enough { Ok(few) } else { self.log(client, MANY).await }
    }

    async fn log(&self, client: &mut Client, lines: u32) -> Result<Vec<String>> {
        let params = LogsParams {
            name: self.name.clone(),
            lines: Some(lines),
            history: true,
            iteration: None,
            from: None,
        };
        let lines: Lines = client.call(&Call::Logs(params), QUICK).await?;
        Ok(lines.lines)
    }
}

/// How many characters of `line` are not blank.
fn ink(line: &str) -> usize {
    line.chars().filter(|c| !c.is_whitespace()).count()
}

/// What the runs after `mark` printed, without the first `skip` of ink of the first of them, and without
/// what the run that lives has printed, which stands at the log's end.
fn ended(log: &[String], mark: Option<&str>, skip: usize) -> Vec<String> {
    let headers: Vec<usize> = (0..log.len()).filter(|at| is_run_header(&log[*at])).collect();
    let known = headers.iter().position(|at| Some(log[*at].as_str()) == mark).map_or(0, |index| index + 1);
    let (Some(first), Some(last)) = (headers.get(known), headers.last()) else { return vec![] };
    let end = (last + 1..log.len()).find(|at| log[*at] == RUNNING).unwrap_or(log.len());
    let second = headers.get(known + 1).copied().unwrap_or(end);
    let mut left = skip;
    let mut new = vec![];
    for at in (*first..end).filter(|at| !is_run_header(&log[*at])) {
        if left == 0 || at > second {
            new.push(log[at].clone());
        }
        left = left.saturating_sub(ink(&log[at]));
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn check(mark: Option<u8>, skip: usize, live: &str, expected: &str) {
        let head = |n| format!("=== iteration {n}, ended x, exit code 0 ===");
        let log = format!("{}\none\ntwo\n{}\none\nlong line\nlast\n{live}", head(1), head(2));
        let new = ended(&lines(&log), mark.map(head).as_deref(), skip);
        assert_eq!(new, lines(expected), "{mark:?} {skip} {live:?}");
    }

    #[test]
    fn what_was_printed_between_the_last_look_and_the_end_is_found() {
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
}
