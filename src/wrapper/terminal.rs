//! Whether the terminal's other side has read all that was printed.
//!
//! tmux closes a dead pane's terminal without reading what is still in it, and the kernel does not tell this
//! side how much that is. So the terminal is asked something that it answers in order: a device status report.
//! The answer comes when everything printed before the question is on the screen. Used by the wrapper at the
//! end of a run, when nobody reads the terminal's input any more. What is deliberately absent: any judgement
//! on a terminal that does not answer; the agent may have ended in the middle of a sequence that swallows the
//! question.

use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::termios::{InputFlags, LocalFlags, SetArg, SpecialCharacterIndices, tcgetattr, tcsetattr};
use nix::unistd::{getpgrp, read, tcsetpgrp, write};
use tokio::sync::oneshot;

/// "How are you?", and the answer "well" (ECMA-48, DSR).
const QUESTION: &[u8] = b"\x1b[5n";
const ANSWER: &[u8] = b"\x1b[0n";

/// The most that is read for the answer: typed text may stand before it.
const MOST: usize = 64 << 10;

/// True when the terminal's other side has taken all that was printed before. False when it did not say so
/// within `patience`, or there is no terminal.
///
/// The terminal is left as no program would want it: without echo and lines. To be used once.
pub(super) async fn has_taken_all(patience: Duration) -> bool {
    let (tell, told) = oneshot::channel();
    // A thread of its own, and one that nobody waits for: writing to a terminal that is held up (Ctrl-S, a
    // stopped tmux) takes as long as that lasts.
    let asking = std::thread::Builder::new().spawn(move || {
        let _ = tell.send(ask().unwrap_or(false));
    });
    asking.is_ok() && tokio::time::timeout(patience, told).await.is_ok_and(|said| said == Ok(true))
}

fn ask() -> Result<bool, Errno> {
    // tmux opens it for both directions.
    let input = std::io::stdin();
    let mut mode = tcgetattr(&input)?;
    // The agent may have put another group in front, and what is not in front is stopped when it does this.
    let mut stop = SigSet::empty();
    stop.add(Signal::SIGTTOU);
    stop.thread_block()?;
    tcsetpgrp(&input, getpgrp())?;
    mode.local_flags.remove(LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::ISIG | LocalFlags::TOSTOP);
    // Also ends a Ctrl-S.
    mode.input_flags.remove(InputFlags::IXON);
    // A read ends with the first byte or after a second.
    mode.control_chars[SpecialCharacterIndices::VMIN as usize] = 0;
    mode.control_chars[SpecialCharacterIndices::VTIME as usize] = 10;
    tcsetattr(&input, SetArg::TCSANOW, &mode)?;
    write(&input, QUESTION)?;
    let (mut said, mut chunk) = (Vec::new(), [0; 256]);
    while said.len() < MOST {
        match read(&input, &mut chunk) {
            Ok(0) => return Ok(false),
            Ok(count) => said.extend_from_slice(&chunk[..count]),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
        if said.windows(ANSWER.len()).any(|bytes| bytes == ANSWER) {
            return Ok(true);
        }
    }
    Ok(false)
}
