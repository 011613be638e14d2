//! Runs plain `tmux` processes: for rare commands, and for all commands while control mode does not work.
//!
//! Each has a timeout, a minimal environment, our socket and our configuration file, so that a server that it
//! starts is ours.

use std::ffi::{OsStr, OsString};
use std::process::Stdio;
use std::sync::LazyLock;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::Semaphore;

use super::handle::Inner;
use super::quote;
use crate::descriptors;
use crate::error::{Error, ErrorCode, Result};

/// How long a command may take before tmux counts as not responding.
pub(super) const TMUX_COMMAND_TIMEOUT: Duration = Duration::from_secs(5);

/// The variables that our tmux servers and clients receive. All others stay out of the panes.
const KEPT_VARIABLES: [&str; 8] = ["PATH", "HOME", "TERM", "LANG", "SHELL", "USER", "LOGNAME", "TMUX_TMPDIR"];

#[derive(Debug)]
pub(super) struct Output {
    /// Exit status 0.
    pub ok: bool,
    pub stdout: Vec<u8>,
    /// Standard error, trimmed.
    pub stderr: String,
}

impl Output {
    /// Standard output, or tmux's error.
    pub(super) fn into_result(self, what: &str) -> Result<Vec<u8>> {
        if self.ok { Ok(self.stdout) } else { Err(refusal(what, &self.stderr)) }
    }
}

/// The error for `what`, which tmux refused with `stderr`.
pub(super) fn refusal(what: &str, stderr: &str) -> Error {
    let said = if stderr.is_empty() { "tmux failed without a message" } else { stderr };
    Error::system(format_args!("tmux: cannot {what}"), said)
}

/// Whether tmux reports that the pane, window, session or server does not exist.
pub(super) fn says_absent(stderr: &str) -> bool {
    ["can't find ", "no server running", "no such ", "error connecting to", "no current target"]
        .iter()
        .any(|text| stderr.contains(text))
}

/// Whether a variable goes into tmux's environment.
fn is_kept(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| KEPT_VARIABLES.contains(&name) || name.starts_with("LC_"))
}

impl Inner {
    /// A `tmux` process, not started, with the options before the command.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command.env_clear().envs(std::env::vars_os().filter(|(name, _)| is_kept(name)));
        command.args(self.head()).kill_on_drop(true).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The options before the command: UTF-8, our socket, our configuration.
    pub(super) fn head(&self) -> Vec<OsString> {
        let socket = self.socket_path();
        vec!["-u".into(), "-S".into(), socket.into(), "-f".into(), self.options.config.clone().into()]
    }

    /// Runs the commands in one process, in order. tmux stops at the first that fails. Fails when tmux is not installed
    /// or does not end within [`TMUX_COMMAND_TIMEOUT`]. A refusal by tmux is an [`Output`].
    pub(super) async fn run(&self, commands: &[Words]) -> Result<Output> {
        self.run_with(commands, None).await
    }

    /// The same, with `input` on standard input.
    pub(super) async fn run_with(&self, commands: &[Words], stdin: Option<&[u8]>) -> Result<Output> {
        let mut command = self.command();
        for (index, words) in commands.iter().enumerate() {
            if index > 0 {
                command.arg(";");
            }
            command.args(words.0.iter().map(|word| quote::argument(word)));
        }
        output(command, stdin).await
    }
}

pub(super) async fn output(mut command: Command, stdin: Option<&[u8]>) -> Result<Output> {
    static ROOM: LazyLock<Semaphore> = LazyLock::new(descriptors::process_slots);
    let _room = descriptors::acquire(&ROOM).await;
    if stdin.is_some() {
        command.stdin(Stdio::piped());
    }
    let mut child = descriptors::spawn(&mut command).await.map_err(cannot_start)?;
    let mut pipe = child.stdin.take();
    let feed = async {
        if let (Some(mut pipe), Some(bytes)) = (pipe.take(), stdin) {
            // A tmux that refuses early closes the pipe. Its answer matters, not the rest of the bytes.
            let _ = pipe.write_all(bytes).await;
        }
    };
    let both = async { tokio::join!(feed, child.wait_with_output()).1 };
    match tokio::time::timeout(TMUX_COMMAND_TIMEOUT, both).await {
        Ok(Ok(done)) => Ok(Output {
            ok: done.status.success(),
            stdout: done.stdout,
            stderr: String::from_utf8_lossy(&done.stderr).trim().to_owned(),
        }),
        Ok(Err(cause)) => Err(Error::system("cannot wait for tmux", cause)),
        Err(_) => Err(Error::new(
            ErrorCode::Timeout,
            format!("tmux did not respond within {} seconds", TMUX_COMMAND_TIMEOUT.as_secs()),
        )),
    }
}

fn cannot_start(cause: std::io::Error) -> Error {
    if cause.kind() == std::io::ErrorKind::NotFound {
        Error::new(ErrorCode::System, "tmux is not installed")
            .hint("install tmux 3.2 or later, for example: apt install tmux")
    } else {
        Error::system("cannot run tmux", cause)
    }
}

/// One tmux command as unquoted words.
#[derive(Clone, Debug)]
pub(super) struct Words(pub Vec<OsString>);

impl<S: Into<OsString> + Clone, const N: usize> From<[S; N]> for Words {
    fn from(words: [S; N]) -> Self {
        Self(words.into_iter().map(Into::into).collect())
    }
}

impl From<&[&str]> for Words {
    fn from(words: &[&str]) -> Self {
        Self(words.iter().map(Into::into).collect())
    }
}

impl From<tmux_interface::TmuxCommand<'_>> for Words {
    fn from(command: tmux_interface::TmuxCommand<'_>) -> Self {
        Self(command.to_vec().into_iter().map(|word| word.into_owned().into()).collect())
    }
}

impl Words {
    /// The same command with more words at its end.
    pub(super) fn and<S: Into<OsString>>(mut self, more: impl IntoIterator<Item = S>) -> Self {
        self.0.extend(more.into_iter().map(Into::into));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_variables_reach_the_tmux_server() {
        for name in ["PATH", "HOME", "LC_ALL", "LC_CTYPE", "TMUX_TMPDIR"] {
            assert!(is_kept(OsStr::new(name)), "{name}");
        }
        for name in ["TMUX", "TMUX_PANE", "GIT_DIR", "ANTHROPIC_API_KEY", "LCX", ""] {
            assert!(!is_kept(OsStr::new(name)), "{name}");
        }
    }
}
