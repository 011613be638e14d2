//! Examines a server with a plain process, for `doctor`. Starts, makes and keeps nothing.

use super::empty::EMPTY_CHECK_TIME;
use super::handle::Tmux;
use super::plain::{self, Words};
use super::probe::{ServerProbe, probe};
use super::rows;
use super::types::PaneRow;

/// The state of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerSurvey {
    /// Nothing listens at the socket.
    Gone,
    /// A server without panes listens and does not respond: it hangs after a request to exit.
    Empty {
        /// The server's process.
        pid: i32,
    },
    /// Something listens but does not respond within some seconds, or refuses; with the reason.
    Silent(String),
    /// The server responds.
    Alive {
        /// The server's process; 0 if it does not report it.
        pid: i32,
        /// Our panes.
        rows: Vec<PaneRow>,
    },
}

impl Tmux {
    /// Examines the server without the control client that [`Tmux::health`] and [`Tmux::list`] use. Takes at most
    /// about seven seconds.
    pub async fn survey(&self) -> ServerSurvey {
        let listener = match probe(&self.socket_path()).await {
            ServerProbe::Absent => return ServerSurvey::Gone,
            ServerProbe::Listening(pid) => pid,
            ServerProbe::Unsure => None,
        };
        let format = [rows::SHORT_FORMAT, rows::REST_FORMAT].concat();
        let commands = [
            tmux_interface::DisplayMessage::new().print().message("#{pid}").build().into(),
            Words::from(["list-panes", "-a", "-F", &format]),
        ];
        let is_empty = || ServerSurvey::Empty { pid: listener.unwrap_or(0) };
        let empty = self.0.until_empty(listener);
        tokio::pin!(empty);
        let output = tokio::select! {
            biased;
            output = self.0.run(&commands) => output,
            () = &mut empty => return is_empty(),
        };
        // An empty server may refuse at once.
        let answers = matches!(&output, Ok(output) if output.ok || plain::says_absent(&output.stderr));
        if !answers && tokio::time::timeout(EMPTY_CHECK_TIME, empty).await.is_ok() {
            return is_empty();
        }
        match output {
            Ok(output) if output.ok => {
                let first = output.stdout.split(|byte| *byte == b'\n').next().unwrap_or_default();
                let pid = String::from_utf8_lossy(first).trim().parse().unwrap_or(0);
                let listed = rows::parse_all(&output.stdout).into_iter();
                let ours = listed.filter(|listed| rows::is_ours(listed, self.session()));
                ServerSurvey::Alive { pid, rows: ours.map(|listed| listed.row).collect() }
            }
            Ok(output) if plain::says_absent(&output.stderr) => ServerSurvey::Gone,
            Ok(output) => ServerSurvey::Silent(output.stderr),
            Err(error) => ServerSurvey::Silent(error.message),
        }
    }

    /// The server process that was started for this socket, reachable or not.
    pub fn started_server(&self) -> Option<i32> {
        self.0.search().map(|seen| seen.pid)
    }
}
