//! A person looks at one window: what to run for it, and afterwards.
//!
//! Each attach has a session of its own in the group of the workers' session, so that two people watch two
//! workers. While somebody looks, that one window takes their terminal's size. A hook of that session ends
//! it and gives the window its size back, however the client ended. What is deliberately absent:
//! `destroy-unattached`, which does the first half and ends the whole server in one detach of four on tmux
//! 3.3a (it takes the session from under a client that still flushes its output).

use std::ffi::OsString;
use std::process::Command;

use tmux_interface::SetOption;

use super::plain::Words;
use super::{Tmux, quote, unique, window};

/// What `swarm attach` runs. Plain argv, so that it can travel to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attach {
    /// The program with its arguments, to run on the user's terminal. `TMUX` must not be in its environment:
    /// tmux refuses to attach inside itself ([`Attach::command`] sees to it).
    pub argv: Vec<OsString>,
    /// To run in order after it, whatever it and they return: once more gives the window its own size back,
    /// unless another client still looks at it.
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
    pub fn attach_argv(&self, window: &str, size: (u16, u16), read_only: bool) -> Attach {
        let view = format!("{}-view-{}-{}", self.session(), std::process::id(), unique());
        let latest = SetOption::new().window().target_pane(window).option("window-size").value("latest");
        let group = format!("={}", self.session());
        let mut session = Words::from(["new-session", "-t", &group, "-s", &view]);
        if read_only {
            session = session.and(["-f", "read-only"]);
        }
        let end = [
            format!("if-shell -F -t ={view}: '#{{session_attached}}' '' 'kill-session -t ={view}'"),
            window::restore_line(window, size),
        ];
        let end = Words::from(["set-hook", "-t", &format!("={view}:"), "client-detached", &end.join(" ; ")]);
        let select = Words::from(["select-window", "-t", &format!("={view}:{window}")]);
        Attach {
            argv: self.argv(&[latest.build().into(), session, end, select]),
            after: vec![self.argv(&[window::restore(window, size)])],
        }
    }

    /// A whole argv of plain words.
    fn argv(&self, commands: &[Words]) -> Vec<OsString> {
        let mut argv = vec!["tmux".into()];
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
