//! Notifications in a terminal: receives them from the daemon, and writes the escape sequence that shows them.
//!
//! Used by `events --notify`. It connects again after a restart of the daemon, and never starts one.

use std::time::Duration;

use swarm_state::notify::Notification;
use swarm_state::screen::printable;

use super::connect::{self, Client};
use crate::error::{Error, Result};
use crate::out::Out;
use crate::protocol::{Call, NextNotification, NotifyNextParams};
use crate::remote::Place;

/// How long to wait for a notification before the client asks again.
const NEXT_TIMEOUT: Duration = Duration::from_secs(3600);

/// How long to wait before the client connects again.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// Shows the notifications from now on in this terminal, in a task.
///
/// # Errors
/// When standard output is not a terminal.
pub(super) fn show(place: Place, out: Out) -> Result<()> {
    if !Out::is_terminal() {
        return Err(Error::usage("--notify needs a terminal as standard output"));
    }
    let terminal = NotifyTerminal::from_env();
    tokio::spawn(async move {
        let (mut client, mut after) = (None, None);
        loop {
            match next(&place, &mut client, &mut after).await {
                // The command itself handles a terminal that is gone.
                Ok(Some(message)) => drop(out.raw(&terminal.sequence(&message))),
                Ok(None) => {}
                Err(_) => {
                    client = None;
                    tokio::time::sleep(RECONNECT_DELAY).await;
                }
            }
        }
    });
    Ok(())
}

async fn next(
    place: &Place,
    client: &mut Option<Client>,
    after: &mut Option<u64>,
) -> Result<Option<Notification>> {
    let client = match client {
        Some(client) => client,
        None => client.insert(connect::require_existing(place).await?),
    };
    let call = Call::NotifyNext(NotifyNextParams { after: *after });
    let NextNotification { seq, message } = client.call(&call, NEXT_TIMEOUT).await?;
    *after = Some(seq);
    Ok(message)
}

/// The environment that decides which escape sequence a terminal understands.
#[derive(Clone, Copy, Debug)]
struct NotifyTerminal {
    /// The terminal is inside tmux, which passes a sequence on only if it is wrapped.
    inside_tmux: bool,
    /// The terminal understands the sequence of rxvt (OSC 777) and not that of most others (OSC 9).
    is_rxvt: bool,
}

impl NotifyTerminal {
    fn from_env() -> Self {
        let is_rxvt = std::env::var("TERM").is_ok_and(|term| term.starts_with("rxvt"));
        Self { inside_tmux: std::env::var_os("TMUX").is_some_and(|value| !value.is_empty()), is_rxvt }
    }

    /// The escape sequence that shows a message, and a bell.
    fn sequence(self, message: &Notification) -> String {
        // A semicolon separates the parts of OSC 777.
        let clean = |text: &str| printable(text).replace(';', ",");
        let shown = match self.is_rxvt {
            true => format!("\x1b]777;notify;{};{}\x07", clean(&message.title()), clean(&message.reason)),
            false => format!("\x1b]9;{}\x07", clean(&message.line())),
        };
        let shown = match self.inside_tmux {
            true => format!("\x1bPtmux;{}\x1b\\", shown.replace('\x1b', "\x1b\x1b")),
            false => shown,
        };
        shown + "\x07"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_of_each_terminal() {
        let line = include_str!("../../tests/golden/notifications.jsonl").lines().next().unwrap();
        let message: Notification = serde_json::from_str(line).unwrap();
        for (inside_tmux, is_rxvt, sequence) in [
            (false, false, "\x1b]9;api needs you: asks for permission\x07\x07"),
            (true, false, "\x1bPtmux;\x1b\x1b]9;api needs you: asks for permission\x07\x1b\\\x07"),
            (false, true, "\x1b]777;notify;api needs you;asks for permission\x07\x07"),
        ] {
            assert_eq!(NotifyTerminal { inside_tmux, is_rxvt }.sequence(&message), sequence);
        }
    }
}
