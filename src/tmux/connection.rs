//! The data of the connection to a control client, and when to connect again. [`super::control`] works on it.

use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

/// The result of a command: its output, or tmux's error text.
pub(super) type ControlReply = Result<Vec<u8>, String>;

/// The delay after the first failed connection. It doubles up to [`MAX_TMUX_RETRY_DELAY`].
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(250);
const MAX_TMUX_RETRY_DELAY: Duration = Duration::from_secs(30);

/// The connection, or the time of the next try.
#[derive(Debug, Default)]
pub(super) struct Control {
    pub(super) link: Option<Link>,
    pub(super) failures: u32,
    pub(super) not_before: Option<Instant>,
}

#[derive(Clone, Debug)]
pub(super) struct Link {
    /// Distinguishes a connection from the next one.
    pub(super) id: u64,
    pub(super) requests: mpsc::UnboundedSender<ControlRequest>,
    pub(super) task: tokio::task::AbortHandle,
    pub(super) captures: Captures,
}

/// How captures can be read through a control client, given the faults of the server's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Captures {
    /// Printed directly.
    Direct,
    /// Through a paste buffer, because printing leaks memory.
    Buffer {
        /// `show-buffer` escapes the text.
        escaped: bool,
    },
    /// Not at all: this server changes the text in an unknown way.
    No,
}

/// Why there are no replies. Whether the commands ran is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BrokenConnection {
    /// The connection ended. A plain process may work.
    Lost,
    /// No reply in time. A plain process would not get one either.
    Silent,
}

/// Lines for the client, and where their replies go.
#[derive(Debug)]
pub(super) struct ControlRequest {
    pub(super) lines: Vec<u8>,
    pub(super) replies: usize,
    pub(super) answer: oneshot::Sender<Vec<ControlReply>>,
}

impl Drop for Control {
    fn drop(&mut self) {
        if let Some(link) = self.link.take() {
            link.task.abort();
        }
    }
}

impl Control {
    /// Records a failed connection and when to try again.
    pub(super) fn fail(&mut self) {
        let wait = FIRST_RETRY_DELAY.saturating_mul(1 << self.failures.min(10)).min(MAX_TMUX_RETRY_DELAY);
        self.failures = self.failures.saturating_add(1);
        self.not_before = Some(Instant::now() + wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_between_connections_grows_and_is_bounded() {
        let mut control = Control::default();
        for _ in 0..100 {
            control.fail();
        }
        assert!(control.not_before.unwrap() <= Instant::now() + MAX_TMUX_RETRY_DELAY);
    }
}
