//! Finds the programs that build sandboxes, and runs them to their end. Used by [`super::bwrap`] and [`super::docker`].

use std::io::{Error, Read, Result, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// Finds a program in the caller's PATH. A directory below the current one does not count: an agent could have put a
/// program there.
pub(super) fn find_program(name: &str) -> Option<PathBuf> {
    // A deleted directory holds no program.
    let here = std::env::current_dir().ok();
    let path = std::env::var_os("PATH")?;
    let dirs = std::env::split_paths(&path)
        .filter(|dir| dir.is_absolute() && here.as_ref().is_none_or(|here| !dir.starts_with(here)));
    dirs.map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// Runs a command with an input. After `limit`, its process group is killed, and that is an error.
pub(super) fn run(command: &mut Command, input: Box<dyn Read + Send>, limit: Duration) -> Result<Output> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    let group = i32::try_from(child.id()).ok().map(Pid::from_raw);
    let stdin = child.stdin.take();
    let (done, ended) = channel();
    // In threads, which end with the command: it may neither read its input nor close its output.
    std::thread::spawn(move || {
        if let Some(mut stdin) = stdin {
            let _ = std::io::copy(&mut { input }, &mut stdin).and_then(|_| stdin.flush());
        }
    });
    std::thread::spawn(move || done.send(child.wait_with_output()));
    ended.recv_timeout(limit).unwrap_or_else(|_| {
        let _ = group.map(|group| killpg(group, Signal::SIGKILL));
        Err(Error::other(format!("it did not answer in {} s", limit.as_secs())))
    })
}
