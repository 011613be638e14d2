//! A person looks at one window: what to run for it, and afterwards.
//!
//! Each attach has a session of its own that holds that one window and nothing else: two people watch two
//! workers, and when the window closes the session ends with it and so does the client. In a session with
//! other windows tmux would move the person to a neighbour, and what they type to another agent. While
//! somebody looks, the window takes their terminal's size. A hook of the session ends it and gives the
//! window its size back, however the client ended. What is deliberately absent: `destroy-unattached`, which
//! does the first half and ends the whole server in one detach of four on tmux 3.3a (it takes the session
//! from under a client that still flushes its output).

use std::ffi::OsString;
use std::process::Command;

use tmux_interface::SetOption;

use super::plain::{self, Words};
use super::{Tmux, quote, unique, window};
use crate::error::Result;

/// What runs in a session's first window for the moment until the worker's window takes its place; two words,
/// so that no shell is between.
const PLACEHOLDER: [&str; 2] = ["sleep", "60"];

/// What `swarm attach` runs. Plain argv, so that it can travel to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attach {
    /// The program with its arguments, to run on the user's terminal. `TMUX` must not be in its environment:
    /// tmux refuses to attach inside itself ([`Attach::command`] sees to it).
    pub argv: Vec<OsString>,
    /// To run in order after it, whatever it and they return: once more ends the session and gives the window
    /// its own size back, unless a client still looks at it.
    pub after: Vec<Vec<OsString>>,
}

impl Attach {
    /// The program of an argv of this plan, with the environment it needs.
    pub fn command(argv: &[OsString]) -> Command {
        let (program, arguments) =
            argv.split_first().map_or(("tmux".into(), &[][..]), |(p, a)| (p.clone(), a));
        let mut command = Command::new(program);
        command.args(arguments).env_remove("TMUX").env_remove("TMUX_PANE");
        command
    }
}

impl Tmux {
    /// How to attach to a window (`@3`) whose own size is `size`. A read-only client cannot type.
    ///
    /// One chain: tmux stops at the first command that fails. A window that is gone fails the first, and a
    /// terminal that tmux cannot use the second, before there is a session; so nothing is left behind.
    pub fn attach_argv(&self, window: &str, size: (u16, u16), read_only: bool) -> Attach {
        let view = format!("{}-view-{}-{}", self.session(), std::process::id(), unique());
        let latest = SetOption::new().window().target_pane(window).option("window-size").value("latest");
        let mut session = Words::from(["new-session", "-s", &view]);
        if read_only {
            session = session.and(["-f", "read-only"]);
        }
        // A session needs a window to begin with; the worker's takes its place, wherever numbers begin.
        let first = format!("={view}:^");
        let session = session.and(["--"]).and(PLACEHOLDER);
        let link = Words::from(["link-window", "-k", "-s", window, "-t", &first]);
        // On a server of the user's own these may be set otherwise for all sessions.
        let target = format!("={view}:");
        let own = |option, value| Words::from(["set-option", "-t", &target, option, value]);
        let unless_seen =
            format!("if-shell -F -t ={view}: '#{{session_attached}}' '' 'kill-session -t ={view}'");
        let end = [unless_seen.as_str(), &window::restore_line(window, size)].join(" ; ");
        let end = Words::from(["set-hook", "-t", &target, "client-detached", &end]);
        let unless_seen = format!("kill-session -t ={view}");
        let unless_seen = ["if-shell", "-F", "-t", &target, "#{session_attached}", "", &unless_seen];
        Attach {
            argv: self.argv(&[
                latest.build().into(),
                session,
                own("destroy-unattached", "off"),
                own("detach-on-destroy", "on"),
                link,
                end,
            ]),
            after: vec![self.argv(&[Words::from(unless_seen)]), self.argv(&[window::restore(window, size)])],
        }
    }

    /// Whether a pane (`%7`) is there and is this worker's. Ids begin anew in a new server, so an id alone
    /// may mean another worker.
    ///
    /// # Errors
    /// When tmux does not answer or refuses.
    pub async fn is_pane_of(&self, pane: &str, worker: &str) -> Result<bool> {
        let ask = ["display-message", "-p", "-t", pane, "#{pane_id} #{@swarm_worker}"];
        let output = self.0.run(&[Words::from(ask)]).await?;
        if !output.ok && plain::says_absent(&output.stderr) {
            return Ok(false);
        }
        let said = output.into_result("look for a pane")?;
        Ok(String::from_utf8_lossy(&said).trim_end() == format!("{pane} {worker}"))
    }

    /// A whole argv of plain words.
    fn argv(&self, commands: &[Words]) -> Vec<OsString> {
        // -N: new-session would start a server where ours has gone.
        let mut argv = vec!["tmux".into(), "-N".into()];
        argv.extend(self.0.head());
        for (index, words) in commands.iter().enumerate() {
            if index > 0 {
                argv.push(";".into());
            }
            argv.extend(words.0.iter().map(|word| quote::argument(word)));
        }
        argv
    }
}
