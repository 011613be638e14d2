//! Builds the commands that attach a user's terminal to one window.
//!
//! Each attach has its own session, which contains only that window. So two users can watch two workers, and the
//! session and the client end when the window closes. In a session with several windows, tmux would switch the user
//! to another window, and their input would go to another agent. While a client is attached, the window has the size
//! of its terminal. A hook ends the session and restores the window's size, however the client ended.
//! `destroy-unattached` would do the first half, but on tmux 3.3a it ended the whole server in one detach of four: it
//! destroys the session of a client that still flushes its output.

use std::ffi::OsString;
use std::process::Command;

use tmux_interface::{DisplayMessage, LinkWindow, NewSession, SetOption};

use super::handle::{Tmux, unique};
use super::plain::{self, Words};
use super::{quote, window};
use crate::error::Result;

/// The program in a session's first window, until the worker's window replaces it. Two words: tmux uses no shell.
const PLACEHOLDER: [&str; 2] = ["sleep", "60"];

/// The commands that `swarm attach` runs, as plain argv so that the client can run them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachPlan {
    /// The program and its arguments, to run on the user's terminal. `TMUX` must not be in its environment, because
    /// tmux refuses to attach inside itself; [`AttachPlan::command`] removes it.
    pub argv: Vec<OsString>,
    /// Commands to run afterwards, in order, whatever the exit statuses are. They end the session and restore the
    /// window's size, unless another client shows the window.
    pub after: Vec<Vec<OsString>>,
}

impl AttachPlan {
    /// Makes the process for an argv of this plan.
    pub fn command(argv: &[OsString]) -> Command {
        let (program, arguments) =
            argv.split_first().map_or(("tmux".into(), &[][..]), |(p, a)| (p.clone(), a));
        let mut command = Command::new(program);
        command.args(arguments).env_remove("TMUX").env_remove("TMUX_PANE");
        command
    }
}

/// The format of the status line. tmux expands formats and times in it. A narrow terminal cuts the title, not the keys.
fn status_line(title: &str, inside_tmux: bool) -> String {
    const PREFIX: &str = "#{s/C-/Ctrl-/:prefix}";
    let title = title.replace('#', "##").replace('%', "%%");
    let title = format!(" {title}#{{?client_readonly, (read-only),}} ");
    // A tmux around this one may have the same prefix and receives it first.
    let twice = if inside_tmux { format!(", or {PREFIX} {PREFIX} d") } else { String::new() };
    let keys = format!("leave: {PREFIX} d{twice} ");
    let taken = keys.replace(PREFIX, "Ctrl-b").len();
    let room = |taken: usize| format!("#{{e|-|:#{{client_width}},{taken}}}");
    // tmux adds the mark to the limit. A limit of 0 is none, and a negative one keeps the end of the title.
    let (no_room, limit) = (room(taken + 2), room(taken + 1));
    format!("#{{?#{{m:-*,{no_room}}},,#{{=|{limit}|…:{title}}}}}#[align=right]{keys}")
}

impl Tmux {
    /// Builds the attach to a window (`@3`) whose own size is `size`. A read-only client cannot type. The status line
    /// shows `title` and the keys that detach.
    ///
    /// The commands form one chain, and tmux stops at the first that fails. If the window is gone, the first fails; if
    /// tmux cannot use the terminal, the second fails. Both precede the session, so nothing is left.
    pub fn attach_argv(&self, window: &str, size: (u16, u16), read_only: bool, title: &str) -> AttachPlan {
        let view = format!("{}-view-{}-{}", self.session(), std::process::id(), unique());
        let latest = SetOption::new().window().target_pane(window).option("window-size").value("latest");
        let mut session = Words::from(NewSession::new().session_name(&view).build());
        if read_only {
            session = session.and(["-f", "read-only"]);
        }
        // A new session has a window. The worker's window replaces it at any base index.
        let first = format!("={view}:^");
        let session = session.and(["--"]).and(PLACEHOLDER);
        let link = LinkWindow::new().kill().src_window(window).dst_window(&first).build();
        // On the user's own server, these options may have other defaults.
        let target = format!("={view}:");
        let own = |option, value: &str| {
            Words::from(SetOption::new().target_pane(&target).option(option).value(value).build())
        };
        let unless_seen =
            format!("if-shell -F -t ={view}: '#{{session_attached}}' '' 'kill-session -t ={view}'");
        let end = [unless_seen.as_str(), &window::restore_line(window, size)].join(" ; ");
        let end = Words::from(["set-hook", "-t", &target, "client-detached", &end]);
        let unless_seen = format!("kill-session -t ={view}");
        let unless_seen = ["if-shell", "-F", "-t", &target, "#{session_attached}", "", &unless_seen];
        AttachPlan {
            argv: self.argv(&[
                latest.build().into(),
                session,
                own("destroy-unattached", "off"),
                own("detach-on-destroy", "on"),
                own("status-format[0]", &status_line(title, std::env::var_os("TMUX").is_some())),
                // The line changes only with the session, so nothing is drawn at intervals.
                own("status-interval", "0"),
                link.into(),
                end,
            ]),
            after: vec![
                self.argv(&[Words::from(unless_seen)]),
                self.argv(&[Words::from(window::restore(window, size))]),
            ],
        }
    }

    /// Whether a pane (`%7`) exists and is this worker's. A new server reuses ids, so the id alone proves nothing.
    pub async fn is_pane_of(&self, pane: &str, worker: &str) -> Result<bool> {
        let ask = DisplayMessage::new().print().target_pane(pane).message("#{pane_id} #{@swarm_worker}");
        let output = self.0.run(&[ask.build().into()]).await?;
        if !output.ok && plain::says_absent(&output.stderr) {
            return Ok(false);
        }
        let said = output.into_result("look for a pane")?;
        Ok(String::from_utf8_lossy(&said).trim_end() == format!("{pane} {worker}"))
    }

    fn argv(&self, commands: &[Words]) -> Vec<OsString> {
        // -N: otherwise new-session would start a server if ours is gone.
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
