//! One look at a server by a plain process, for `doctor`: nothing is started, made or kept.

use super::empty::EMPTY;
use super::plain::{self, Words};
use super::server::{Probe, probe};
use super::{Row, Tmux, Version, rows};
use crate::error::{Error, ErrorCode, Result};

/// What a look found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Survey {
    /// Nothing listens at the socket.
    Gone,
    /// A server listens that holds no pane and does not answer: it was told to end and cannot.
    Empty {
        /// The server's process.
        pid: i32,
    },
    /// Something listens and does not answer in some seconds, or answers with a refusal; in words.
    Silent(String),
    /// It answers.
    Alive {
        /// The server's process; 0 when it does not say.
        pid: i32,
        /// The panes that are ours.
        rows: Vec<Row>,
    },
}

impl Tmux {
    /// Looks at the server, without the control client that [`Tmux::health`] and [`Tmux::list`] make.
    /// Takes at most some seven seconds.
    pub async fn survey(&self) -> Survey {
        let listener = match probe(&self.socket_path()).await {
            Probe::Absent => return Survey::Gone,
            Probe::Listening(pid) => pid,
            Probe::Unsure => None,
        };
        let format = [rows::SHORT, rows::REST].concat();
        let commands = [
            Words::from(["display-message", "-p", "#{pid}"]),
            Words::from(["list-panes", "-a", "-F", &format]),
        ];
        let is_empty = || Survey::Empty { pid: listener.unwrap_or(0) };
        let empty = self.0.until_empty(listener);
        tokio::pin!(empty);
        let output = tokio::select! {
            biased;
            output = self.0.run(&commands) => output,
            () = &mut empty => return is_empty(),
        };
        // One that is empty may refuse at once.
        let answers = matches!(&output, Ok(output) if output.ok || plain::says_absent(&output.stderr));
        if !answers && tokio::time::timeout(EMPTY, empty).await.is_ok() {
            return is_empty();
        }
        match output {
            Ok(output) if output.ok => {
                let first = output.stdout.split(|byte| *byte == b'\n').next().unwrap_or_default();
                let pid = String::from_utf8_lossy(first).trim().parse().unwrap_or(0);
                let listed = rows::parse_all(&output.stdout).into_iter();
                let ours = listed.filter(|listed| rows::is_ours(listed, self.session()));
                Survey::Alive { pid, rows: ours.map(|listed| listed.row).collect() }
            }
            Ok(output) if plain::says_absent(&output.stderr) => Survey::Gone,
            Ok(output) => Survey::Silent(output.stderr),
            Err(error) => Survey::Silent(error.message),
        }
    }

    /// The process of the server that was started for this very socket, reachable or not.
    pub fn started_server(&self) -> Option<i32> {
        self.0.search().map(|seen| seen.pid)
    }

    /// The version of the tmux that is installed, as it says it (`3.3a`).
    ///
    /// # Errors
    /// When there is none, it does not answer, or it is too old for swarm.
    pub async fn usable_version(&self) -> Result<String> {
        let said = super::server::said_version().await?;
        match Version::parse(&said) {
            Some(version) if version < Version::MINIMUM => {
                let message = format!("tmux {said} is too old: swarm needs {} or later", Version::MINIMUM);
                Err(Error::new(ErrorCode::System, message).hint("install a newer tmux"))
            }
            Some(_) | None => Ok(said),
        }
    }
}
