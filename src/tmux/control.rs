//! The control client: one `tmux -C` process, attached to a hidden session, that serves many requests.
//!
//! Only the tick's requests (list, capture) use it. One task owns the process and its pipes. A request is some lines
//! and the number of replies to them; replies arrive in order. Any error (timeout, end of file, an unexpected reply)
//! drops the connection and everything that waits for it. The caller then runs a plain process, and the next request
//! connects again, with backoff.

use std::collections::VecDeque;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};

use super::connection::{BrokenConnection, Captures, ControlReply, ControlRequest, Link};
use super::handle::{Inner, unique};
use super::parser::{Block, Event, Parser};
use super::plain::TMUX_COMMAND_TIMEOUT;
use super::quote;
use super::version::Version;
use crate::error::{Error, Result};

impl Inner {
    /// Returns the connection, connecting if necessary. `None` while there is none: use a plain process.
    pub(super) async fn link(&self) -> Option<Link> {
        let mut control = self.control.lock().await;
        if let Some(link) = control.link.as_ref().filter(|link| !link.task.is_finished()) {
            return Some(link.clone());
        }
        if control.link.take().is_some() {
            control.fail();
        }
        if control.not_before.is_some_and(|at| Instant::now() < at) {
            return None;
        }
        match self.connect().await {
            Ok(link) => {
                control.link = Some(link.clone());
                Some(link)
            }
            Err(error) => {
                tracing::debug!(%error, "no control connection to tmux");
                control.fail();
                None
            }
        }
    }

    /// Sends lines, each of which has exactly one reply, and waits for the replies. A connection that fails is dropped.
    pub(super) async fn ask(
        &self,
        link: &Link,
        lines: Vec<u8>,
    ) -> Result<Vec<ControlReply>, BrokenConnection> {
        let replies = lines.iter().filter(|byte| **byte == b'\n').count();
        let (answer, answered) = oneshot::channel();
        // A connection that has ended drops the request and its reply channel.
        let _ = link.requests.send(ControlRequest { lines, replies, answer });
        let broken = match tokio::time::timeout(TMUX_COMMAND_TIMEOUT, answered).await {
            Ok(Ok(replies)) => {
                if let Ok(mut control) = self.control.try_lock() {
                    control.failures = 0;
                }
                return Ok(replies);
            }
            Ok(Err(_)) => BrokenConnection::Lost,
            Err(_) => BrokenConnection::Silent,
        };
        self.drop_link(link.id).await;
        Err(broken)
    }

    /// Ends the connection, if it is still this one.
    async fn drop_link(&self, id: u64) {
        let mut control = self.control.lock().await;
        if let Some(link) = control.link.take_if(|link| link.id == id) {
            link.task.abort();
            control.fail();
        }
    }

    /// Starts the client. The server must run: `-N` keeps `attach-session` from starting one if the server ends at
    /// this moment. That server would be empty and, with our options, never exit.
    async fn connect(&self) -> Result<Link> {
        self.ensure_hidden_session().await?;
        self.end_stuck_clients();
        let mut command = self.command();
        command.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
        let target = format!("={}:", self.hidden_session());
        command.args(["-N", "-C", "attach-session", "-t", &target, "-f", "no-output,ignore-size"]);
        let mut child = command.spawn().map_err(|cause| Error::system("cannot run tmux", cause))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::system("cannot talk to tmux", "no pipe"));
        };
        let (requests, inbox) = mpsc::unbounded_channel();
        let task = tokio::spawn(serve(child, stdin, stdout, inbox)).abort_handle();
        let mut link = Link { id: unique(), requests, task, captures: Captures::No };
        // The first requests show that the connection works and how to read captures. They ask the server and not the
        // installed program, which an upgrade may have replaced.
        let buffer = format!("swarm-{}-{}", std::process::id(), link.id);
        let mut lines = quote::line(&["display-message", "-p", "#{version}"]);
        lines.extend(quote::line(&["set-buffer", "-b", &buffer, PROBE]));
        lines.extend(quote::line(&["show-buffer", "-b", &buffer]));
        lines.extend(quote::line(&["delete-buffer", "-b", &buffer]));
        let (answer, answered) = oneshot::channel();
        let first = link.requests.send(ControlRequest { lines, replies: 4, answer });
        match (first, tokio::time::timeout(TMUX_COMMAND_TIMEOUT, answered).await) {
            (Ok(()), Ok(Ok(replies))) => {
                link.captures = captures(&replies);
                Ok(link)
            }
            _ => {
                link.task.abort();
                Err(Error::system("cannot use tmux's control mode", "no answer"))
            }
        }
    }
}

/// A text that each kind of escaping changes in a different way.
const PROBE: &str = "\\ $a";

/// Derives from the first replies how to read captures.
fn captures(replies: &[ControlReply]) -> Captures {
    let version = replies.first().and_then(|reply| reply.as_ref().ok());
    let version = version.and_then(|text| Version::parse(&String::from_utf8_lossy(text)));
    if version.is_some_and(Version::captures_without_leak) {
        return Captures::Direct;
    }
    match replies.get(2) {
        Some(Ok(shown)) if shown == PROBE.as_bytes() => Captures::Buffer { escaped: false },
        Some(Ok(shown)) if unescape(shown) == PROBE.as_bytes() => Captures::Buffer { escaped: true },
        _ => Captures::No,
    }
}

/// Undoes the escapes of `show-buffer` on a control client before tmux 3.4: `\\`, `\$`, `\t`, `\ooo`.
pub(super) fn unescape(text: &[u8]) -> Vec<u8> {
    let (mut plain, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        plain.extend_from_slice(&rest[..at]);
        let after = &rest[at + 1..];
        let (byte, used) = match after {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => {
                (((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0'), 3)
            }
            [b't', ..] => (b'\t', 1),
            [byte, ..] => (*byte, 1),
            [] => (b'\\', 0),
        };
        plain.push(byte);
        rest = &after[used..];
    }
    plain.extend_from_slice(rest);
    plain
}

struct PendingReplies {
    missing: usize,
    got: Vec<ControlReply>,
    answer: oneshot::Sender<Vec<ControlReply>>,
}

/// Owns the process: writes requests, reads replies, and returns at the first error. Returning drops the process,
/// which kills it, and all waiting requests.
async fn serve(
    child: Child,
    mut stdin: ChildStdin,
    mut stdout: ChildStdout,
    mut inbox: mpsc::UnboundedReceiver<ControlRequest>,
) {
    let _process = child;
    let (mut parser, mut waiting, mut out) = (Parser::default(), VecDeque::new(), VecDeque::<u8>::new());
    let mut chunk = vec![0; 64 << 10];
    loop {
        // Keeps reading while a write waits: otherwise two full pipes would block both sides forever.
        tokio::select! {
            request = inbox.recv() => {
                let Some(ControlRequest { lines, replies, answer }) = request else { return };
                out.extend(lines);
                waiting.push_back(PendingReplies { missing: replies, got: Vec::new(), answer });
            }
            written = stdin.write(out.as_slices().0), if !out.is_empty() => {
                let Ok(count @ 1..) = written else { return };
                out.drain(..count);
            }
            read = stdout.read(&mut chunk) => {
                let Ok(count @ 1..) = read else { return };
                for event in parser.feed(&chunk[..count]) {
                    if !take(event, &mut waiting) {
                        return;
                    }
                }
            }
        }
    }
}

/// Passes one event to the request that waits for it. False if the connection must end.
fn take(event: Event, waiting: &mut VecDeque<PendingReplies>) -> bool {
    let block = match event {
        Event::Block(block) => block,
        Event::Notification(line) => return line != b"exit" && !line.starts_with(b"exit "),
        Event::TooLong => return false,
    };
    let Block { ours, ok, body } = block;
    if !ours {
        return true;
    }
    let Some(first) = waiting.front_mut() else { return false };
    first.got.push(if ok { Ok(body) } else { Err(String::from_utf8_lossy(&body).into_owned()) });
    first.missing = first.missing.saturating_sub(1);
    if first.missing == 0
        && let Some(done) = waiting.pop_front()
    {
        // The requester may have given up; that is not an error.
        let _ = done.answer.send(done.got);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_matched_to_requests_in_order() {
        let (one, mut first) = oneshot::channel();
        let (two, mut second) = oneshot::channel();
        let mut waiting = VecDeque::from([
            PendingReplies { missing: 2, got: vec![], answer: one },
            PendingReplies { missing: 1, got: vec![], answer: two },
        ]);
        let block = |ours, ok, body: &[u8]| Event::Block(Block { ours, ok, body: body.to_vec() });
        assert!(take(block(false, true, b"attach"), &mut waiting));
        assert!(take(block(true, true, b"a"), &mut waiting));
        assert!(take(Event::Notification(b"window-add @1".to_vec()), &mut waiting));
        assert!(first.try_recv().is_err());
        assert!(take(block(true, false, b"no"), &mut waiting));
        assert_eq!(first.try_recv().unwrap(), [Ok(b"a".to_vec()), Err("no".to_owned())]);
        assert!(take(block(true, true, b"b"), &mut waiting));
        assert_eq!(second.try_recv().unwrap(), [Ok(b"b".to_vec())]);
        assert!(!take(block(true, true, b"nobody asked"), &mut waiting));
        assert!(!take(Event::Notification(b"exit server exited".to_vec()), &mut waiting));
        assert!(!take(Event::TooLong, &mut waiting));
    }

    #[test]
    fn capture_method_is_probed() {
        let replies = |version: &str, shown: ControlReply| {
            captures(&[Ok(version.into()), Ok(vec![]), shown, Ok(vec![])])
        };
        assert_eq!(replies("3.6b", Err("no".into())), Captures::Direct);
        assert_eq!(replies("3.3a", Ok(b"\\ $a".to_vec())), Captures::Buffer { escaped: false });
        assert_eq!(replies("3.3a", Ok(b"\\\\ \\$a".to_vec())), Captures::Buffer { escaped: true });
        assert_eq!(replies("3.3a", Ok(b"\\ a".to_vec())), Captures::No);
        assert_eq!(replies("3.3a", Err("no".into())), Captures::No);
        assert_eq!(captures(&[]), Captures::No);
        assert_eq!(unescape(b"a\\tb\\\\n\\$x\\303\\251\\"), "a\tb\\n$xé\\".as_bytes());
    }
}
