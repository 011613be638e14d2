//! Finds out whether the other side of the terminal has read everything that was printed.
//!
//! tmux closes a dead pane's terminal without reading the rest of the output, and the kernel does not show this side
//! how much that is. So the wrapper sends a request that the terminal answers in order, a device status report. The
//! answer arrives when everything printed before it is on the screen. The wrapper uses it at the end of a run, when
//! no process reads the terminal's input any more. A terminal that does not answer proves nothing: the agent may have
//! ended inside an escape sequence that swallows the request.

use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::termios::{InputFlags, LocalFlags, SetArg, SpecialCharacterIndices, tcgetattr, tcsetattr};
use nix::unistd::{getpgrp, read, tcsetpgrp, write};
use tokio::sync::oneshot;

/// The device status request and its answer "OK" (ECMA-48, DSR).
const STATUS_REQUEST: &[u8] = b"\x1b[5n";
const STATUS_REPLY: &[u8] = b"\x1b[0n";

/// How much input is read to find the answer. Typed text may come before it.
const MAX_DISCARDED_BYTES: usize = 64 << 10;

/// Whether the other side has read everything printed so far. False if it does not answer within `patience`, or
/// without a terminal.
///
/// Use it once: afterwards the terminal has neither echo nor line mode.
pub(super) async fn has_taken_all(patience: Duration) -> bool {
    let (sender, answer) = oneshot::channel();
    // A thread that is never joined: a write to a stopped terminal (Ctrl-S, a stopped tmux) blocks until it continues.
    let asking = std::thread::Builder::new().spawn(move || {
        let _ = sender.send(ask().unwrap_or(false));
    });
    asking.is_ok() && tokio::time::timeout(patience, answer).await.is_ok_and(|answer| answer == Ok(true))
}

fn ask() -> Result<bool, Errno> {
    // tmux opens the terminal for both directions.
    let input = std::io::stdin();
    let mut mode = tcgetattr(&input)?;
    // The agent may have put another group in the foreground, and a background process is stopped when it does this.
    let mut stop = SigSet::empty();
    stop.add(Signal::SIGTTOU);
    stop.thread_block()?;
    tcsetpgrp(&input, getpgrp())?;
    mode.local_flags.remove(LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::ISIG | LocalFlags::TOSTOP);
    // This also ends a Ctrl-S.
    mode.input_flags.remove(InputFlags::IXON);
    // A read returns after the first byte or after a second.
    mode.control_chars[SpecialCharacterIndices::VMIN as usize] = 0;
    mode.control_chars[SpecialCharacterIndices::VTIME as usize] = 10;
    tcsetattr(&input, SetArg::TCSANOW, &mode)?;
    write(&input, STATUS_REQUEST)?;
    let (mut said, mut chunk) = (Vec::new(), [0; 256]);
    while said.len() < MAX_DISCARDED_BYTES {
        match read(&input, &mut chunk) {
            Ok(0) => return Ok(false),
            Ok(count) => said.extend_from_slice(&chunk[..count]),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
        if said.windows(STATUS_REPLY.len()).any(|bytes| bytes == STATUS_REPLY) {
            return Ok(true);
        }
    }
    Ok(false)
}
