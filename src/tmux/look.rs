//! Lists panes and captures their screens: the requests of each tick.
//!
//! Both go through the control client and start no process. Before tmux 3.6, a capture printed to a control client
//! leaks its text in the server forever. There the text goes through a paste buffer instead, which is shown and
//! deleted. Some versions escape the output; the connection detects that.

use std::time::Instant;

use swarm_state::attached::AttachedClient;

use super::connection::{BrokenConnection, Captures, ControlReply, Link};
use super::control::unescape;
use super::handle::{Inner, Tmux, lock, unique};
use super::known_panes::KnownPanes;
use super::plain::{self, Words};
use super::types::{Captured, Glance, PaneRow};
use super::{quote, rows};
use crate::error::Result;

/// How many panes one request captures. tmux serves no other client meanwhile.
const BATCH_PANES: usize = 64;

/// The values that are requested with the text. [`assemble`] parses the reply.
const ABOUT_FORMAT: &str = "#{pane_width}:#{pane_height}:#{alternate_on}:#{history_size}:#{cursor_y}";

const LIST_CLIENTS: [&str; 3] = ["list-clients", "-F", rows::CLIENT_FORMAT];

/// Flags of `capture-pane`: join wrapped rows.
const JOINED: &[&str] = &["-J"];

impl Tmux {
    /// Lists our panes: in the session, with our marks, or running our wrapper, wherever a user moved them. Fails when
    /// the server is gone or does not respond; [`Tmux::health`] distinguishes the two.
    pub async fn list(&self) -> Result<Vec<PaneRow>> {
        let inner = &*self.0;
        let short = rows::parse_all(&inner.query(&["list-panes", "-a", "-F", rows::SHORT_FORMAT]).await?);
        let complete = lock(&inner.known).complete(short);
        let listed = match complete {
            Some(listed) => listed,
            None => {
                let format = [rows::SHORT_FORMAT, rows::REST_FORMAT].concat();
                let listed = rows::parse_all(&inner.query(&["list-panes", "-a", "-F", &format]).await?);
                let panes = listed.iter().map(|listed| (listed.row.pane.clone(), listed.clone())).collect();
                *lock(&inner.known) = KnownPanes { panes, at: Some(Instant::now()) };
                listed
            }
        };
        let session = self.session();
        Ok(listed
            .into_iter()
            .filter(|listed| rows::is_ours(listed, session))
            .map(|listed| listed.row)
            .collect())
    }

    /// Lists all panes of the server, also those that are not ours, with only the values that show whether to capture a
    /// pane; see [`super::watch`]. Costs a third of [`Tmux::list`]. The same request lists the clients.
    pub async fn glance(&self) -> Result<(Vec<Glance>, Vec<AttachedClient>)> {
        let panes = ["list-panes", "-a", "-F", rows::GLANCE_FORMAT];
        let [panes, clients] = self.0.query_all([&panes, &LIST_CLIENTS]).await?;
        Ok((rows::glances(&panes), rows::clients(&clients)))
    }

    /// Lists the clients of the server.
    pub async fn clients(&self) -> Result<Vec<AttachedClient>> {
        Ok(rows::clients(&self.0.query(&LIST_CLIENTS).await?))
    }

    /// Captures a pane's screen with up to `history` rows of scrollback (`u32::MAX`: all). `None` if there is no such
    /// pane. Also works on dead panes.
    pub async fn capture(&self, pane: &str, history: u32) -> Result<Option<Captured>> {
        self.take(pane, history, JOINED).await
    }

    /// As [`Tmux::capture`], but rows stay as the terminal shows them, so that they can be counted. With `styled`,
    /// colors and other attributes are in them as escapes.
    pub async fn capture_rows(&self, pane: &str, history: u32, styled: bool) -> Result<Option<Captured>> {
        self.take(pane, history, if styled { &["-e"] } else { &[] }).await
    }

    /// Captures several panes as [`Tmux::capture`] does, each with its own number of scrollback rows. Returns the
    /// text of each, or `None` if it cannot be read now. Costs a quarter of a capture for each pane.
    pub async fn screens(&self, panes: &[(String, u32)]) -> Vec<Option<String>> {
        let inner = &*self.0;
        let mut texts = Vec::with_capacity(panes.len());
        for some in panes.chunks(BATCH_PANES) {
            if let Some(link) = inner.link().await.filter(|link| link.captures != Captures::No) {
                match inner.screens_by_control(&link, some).await {
                    Ok(found) => {
                        texts.extend(found);
                        continue;
                    }
                    // A plain process would not get an answer either.
                    Err(BrokenConnection::Silent) => break,
                    Err(BrokenConnection::Lost) => {}
                }
            }
            for (pane, history) in some {
                let found = inner.capture_by_process(pane, *history, JOINED).await;
                texts.push(found.ok().flatten().map(|captured| captured.text));
            }
        }
        texts.resize(panes.len(), None);
        texts
    }

    async fn take(&self, pane: &str, history: u32, flags: &[&str]) -> Result<Option<Captured>> {
        let inner = &*self.0;
        if let Some(link) = inner.link().await.filter(|link| link.captures != Captures::No) {
            match inner.capture_by_control(&link, pane, history, flags).await {
                Ok(Some(found)) => return Ok(found),
                Err(BrokenConnection::Silent) => return Err(inner.silent()),
                Ok(None) | Err(BrokenConnection::Lost) => {}
            }
        }
        inner.capture_by_process(pane, history, flags).await
    }
}

impl Inner {
    /// `None` if a plain process should be run to get the error.
    async fn capture_by_control(
        &self,
        link: &Link,
        pane: &str,
        history: u32,
        flags: &[&str],
    ) -> Result<Option<Option<Captured>>, BrokenConnection> {
        let start = start(history);
        let mut lines = quote::line(&["display-message", "-p", "-t", pane, ABOUT_FORMAT]);
        let direct = link.captures == Captures::Direct;
        if direct {
            let capture = ["capture-pane", "-p", "-S", &start, "-t", pane];
            lines.extend(quote::line(&[&capture, flags].concat()));
        } else {
            let buffer = format!("swarm-{}-{}", std::process::id(), unique());
            let capture = ["capture-pane", "-b", &buffer, "-S", &start, "-t", pane];
            lines.extend(quote::line(&[&capture, flags].concat()));
            lines.extend(quote::line(&["show-buffer", "-b", &buffer]));
            lines.extend(quote::line(&["delete-buffer", "-b", &buffer]));
        }
        let replies = self.ask(link, lines).await?;
        let mut replies = replies.into_iter();
        let (about, captured) = (replies.next(), replies.next());
        let shown = if direct { captured.clone() } else { replies.next() };
        Ok(match (about, captured, shown) {
            (_, Some(Err(said)), _) if plain::says_absent(&said) => Some(None),
            (Some(Ok(about)), Some(Ok(_)), Some(Ok(text))) => {
                let escaped = link.captures == (Captures::Buffer { escaped: true });
                let text = if escaped { unescape(&text) } else { text };
                Some(assemble(&about, &text, history))
            }
            _ => None,
        })
    }

    /// One buffer serves all panes: each capture replaces the one before.
    async fn screens_by_control(
        &self,
        link: &Link,
        panes: &[(String, u32)],
    ) -> Result<Vec<Option<String>>, BrokenConnection> {
        let buffer = format!("swarm-{}-{}", std::process::id(), unique());
        let direct = link.captures == Captures::Direct;
        let escaped = link.captures == (Captures::Buffer { escaped: true });
        let mut lines = Vec::with_capacity(panes.len() * 128);
        for (pane, history) in panes {
            let start = start(*history);
            if direct {
                lines.extend(quote::line(&["capture-pane", "-p", "-J", "-S", &start, "-t", pane]));
            } else {
                lines.extend(quote::line(&["capture-pane", "-b", &buffer, "-J", "-S", &start, "-t", pane]));
                lines.extend(quote::line(&["show-buffer", "-b", &buffer]));
            }
        }
        if !direct {
            lines.extend(quote::line(&["delete-buffer", "-b", &buffer]));
        }
        let replies = self.ask(link, lines).await?;
        let text = |replies: &[ControlReply]| match replies {
            [Ok(shown)] => Some(tidy(shown)),
            // After a failed capture the buffer shows another pane's text.
            [Ok(_), Ok(shown)] if escaped => Some(tidy(&unescape(shown))),
            [Ok(_), Ok(shown)] => Some(tidy(shown)),
            _ => None,
        };
        Ok(replies.chunks(if direct { 1 } else { 2 }).take(panes.len()).map(text).collect())
    }

    async fn capture_by_process(&self, pane: &str, history: u32, flags: &[&str]) -> Result<Option<Captured>> {
        let about = tmux_interface::DisplayMessage::new().print().target_pane(pane).message(ABOUT_FORMAT);
        let start = start(history);
        let capture = ["capture-pane", "-p", "-S", &start, "-t", pane];
        let output =
            self.run(&[about.build().into(), Words::from(capture).and(flags.iter().copied())]).await?;
        if !output.ok && output.stderr.contains("can't find pane") {
            return Ok(None);
        }
        let stdout = output.into_result("capture a pane")?;
        let end = stdout.iter().position(|byte| *byte == b'\n').unwrap_or(stdout.len());
        let text = stdout.get(end + 1..).unwrap_or_default();
        Ok(assemble(&stdout[..end], text, history))
    }
}

/// The `-S` argument of capture-pane: where to start.
fn start(history: u32) -> String {
    match history {
        0 => "0".into(),
        u32::MAX => "-".into(),
        rows => format!("-{}", rows.min(1 << 30)),
    }
}

/// Puts a capture together. `None` if tmux found no such pane.
pub(super) fn assemble(about: &[u8], text: &[u8], history: u32) -> Option<Captured> {
    let about = String::from_utf8_lossy(about);
    let mut numbers = about.trim().split(':').map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok();
    let small = |number: u64| u16::try_from(number).unwrap_or(u16::MAX);
    let size = (small(next()?), small(next()?));
    let (alternate, rows) = (next()? == 1, next()?);
    let cursor_row = small(next()?);
    let history_taken = if history == u32::MAX { rows } else { rows.min(history.into()) };
    let below = size.1.saturating_sub(cursor_row).saturating_sub(1);
    let picture = alternate || has_text_below(text, usize::from(below));
    Some(Captured { text: tidy(text), size, alternate, picture, history: rows, history_taken })
}

/// Whether one of the last `rows` rows is not empty. Empty rows are never joined, so lines can be counted.
fn has_text_below(text: &[u8], rows: usize) -> bool {
    let lines = text.strip_suffix(b"\n").unwrap_or(text).rsplit(|byte| *byte == b'\n');
    lines.take(rows).any(|line| line.iter().any(|byte| *byte != b' '))
}

/// Removes spaces at the ends of lines (tmux keeps them when it joins rows) and empty lines at the end.
fn tidy(text: &[u8]) -> String {
    let mut tidy = Vec::with_capacity(text.len());
    for line in text.split(|byte| *byte == b'\n') {
        let end = line.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
        tidy.extend_from_slice(&line[..end]);
        tidy.push(b'\n');
    }
    tidy.truncate(tidy.iter().rposition(|byte| *byte != b'\n').map_or(0, |last| last + 1));
    String::from_utf8(tidy).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capture_is_assembled() {
        let got = assemble(b"80:24:0:7:4", b"\na  \n\n b\xff\n   \n\n", 5).unwrap();
        assert_eq!(got.text, "\na\n\n b\u{fffd}");
        assert_eq!((got.size, got.history, got.history_taken, got.alternate), ((80, 24), 7, 5, false));
        assert_eq!(assemble(b"80:24:1:7:0", b"", u32::MAX).unwrap().history_taken, 7);
        assert_eq!(assemble(b"::::", b"text", 0), None);
        for (text, want) in
            [("", ""), ("\n \n", ""), ("   ", ""), (" a \n\n é ", " a\n\n é"), ("a\u{a0} ", "a\u{a0}")]
        {
            assert_eq!(tidy(text.as_bytes()), want);
        }
    }

    #[test]
    fn text_below_the_cursor_marks_a_full_screen_program() {
        let picture = |cursor: u16, text: &str| {
            let about = format!("80:5:0:0:{cursor}");
            assemble(about.as_bytes(), text.as_bytes(), 0).unwrap().picture
        };
        assert!(picture(1, "a\n>\n---\n\n\n") && picture(0, "a\n\n\n\nfooter\n"));
        assert!(!picture(2, "a\nb\n$\n\n  \n") && !picture(4, "a\nb\nc\nd\ne\n") && !picture(0, ""));
        // Rows of scrollback and joined rows above the cursor change nothing.
        assert!(!picture(3, "h\nh\na\nb\nlong line of two rows\n\n"));
        assert!(assemble(b"80:5:1:0:4", b"", 0).unwrap().picture, "the alternate screen is one");
    }

    #[test]
    fn short_pane_list_is_completed_from_known_panes_or_refused() {
        let long = rows::parse("%1:10:0:::80:24:@1:swarm:4:a:x __pane /d").unwrap();
        let short = |pid| rows::parse(&format!("%1:{pid}:1:3::80:24")).unwrap();
        let mut known = KnownPanes { panes: [("%1".to_owned(), long)].into(), at: Some(Instant::now()) };
        let row = known.complete(vec![short(10)]).unwrap().remove(0).row;
        assert_eq!((row.dead_status, row.worker.as_deref(), row.run), (Some(3), Some("a"), Some(4)));
        assert!(known.complete(vec![short(11)]).is_none(), "another process in the pane");
        known.panes.clear();
        assert!(known.complete(vec![short(10)]).is_none());
        assert!(KnownPanes::default().complete(vec![]).is_none());
    }
}
