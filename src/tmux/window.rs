//! Makes and closes windows.
//!
//! One chain of commands in one process makes a window and sets its marks, so no list shows a pane of ours without
//! marks. The new window is the last of its session, so `$` addresses it in the rest of the chain.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use swarm_state::model::{Pane, Run};
use tmux_interface::{KillWindow, NewSession, ResizeWindow, SetOption};
use tokio::time::timeout;

use super::handle::Tmux;
use super::plain::{self, Output, Words};
use super::quote;
use super::types::NewWindow;
use crate::error::{Error, Result};
use crate::shell::quote_bytes;

/// The format that the commands which make a window print.
const MADE_FORMAT: &str = "#{pane_id}:#{window_id}:#{pane_pid}:#{pid}";

/// How long the closing of a window waits for other windows. While tmux hangs, each of those takes its own timeout.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(30);

impl Tmux {
    /// Makes a window at the end of the session, and the session if it is missing, and starts the program. The server
    /// must run: see [`Tmux::ensure_server`]. On failure, no window remains.
    pub async fn new_window(&self, new: NewWindow) -> Result<Pane> {
        if new.argv.is_empty() {
            return Err(Error::invalid("a window needs a program"));
        }
        let inner = &*self.0;
        let _changing = inner.changing.lock().await;
        // The session ends with its last window, and the user may end it too. Either chain may be wrong a moment later.
        let mut said = String::new();
        for _ in 0..3 {
            let output = inner.run(&self.in_session(&new)).await?;
            if output.ok || !plain::says_absent(&output.stderr) {
                return self.made(&new, output).await;
            }
            // new-session would start a server. The caller must notice a server that is gone.
            inner.ensure_hidden_session().await?;
            let output = inner.run(&self.with_session(&new)).await?;
            if output.ok || !output.stderr.contains("duplicate session") {
                return self.made(&new, output).await;
            }
            said = output.stderr;
        }
        Err(plain::refusal("make a window", &said))
    }

    /// The chain for an existing session.
    fn in_session(&self, new: &NewWindow) -> Vec<Words> {
        let session = self.session();
        let (columns, rows) = new.size;
        let size = SetOption::new().target_pane(format!("={session}:"));
        let size = size.option("default-size").value(format!("{columns}x{rows}")).build();
        // `tmux_interface` has no argv for the program.
        let end = format!("={session}:$");
        let window = Words::from(["new-window", "-d", "-a", "-P", "-F", MADE_FORMAT, "-t", &end]);
        let window = window.and(program(new));
        [Words::from(size), window].into_iter().chain(self.marks(new)).collect()
    }

    /// The chain for a missing session.
    fn with_session(&self, new: &NewWindow) -> Vec<Words> {
        let (columns, rows) = new.size;
        let head = NewSession::new().detached().print().format(MADE_FORMAT).session_name(self.session());
        let head = head.width(columns.into()).height(rows.into()).build();
        let window = Words::from(head).and(program(new));
        std::iter::once(window).chain(self.marks(new)).collect()
    }

    /// The options of the window that was just made.
    fn marks(&self, new: &NewWindow) -> Vec<Words> {
        let end = format!("={}:$", self.session());
        let pane = |option: &'static str, value: String| -> Words {
            SetOption::new().pane().target_pane(end.clone()).option(option).value(value).build().into()
        };
        // -q: remain-on-exit-format is unknown before 3.3.
        let window = |option: &'static str, value: &'static str| -> Words {
            let target = SetOption::new().window().quiet().target_pane(end.clone());
            target.option(option).value(value).build().into()
        };
        let mut words = vec![
            pane("@swarm_worker", new.worker.clone()),
            pane("@swarm_run", new.run.to_string()),
            window("remain-on-exit", "on"),
            window("remain-on-exit-format", ""),
            window("window-size", "manual"),
            // The alternate screen would be lost when the agent ends, so agents draw on the main screen.
            pane("alternate-screen", "off".into()),
            resize(&end, new.size),
        ];
        if let Some(argv) = &new.record {
            let target = ["pipe-pane", "-O", "-t", &end];
            words.push(Words::from(target).and([recorder(argv)]));
        }
        words
    }

    /// Parses the output of the chain. Closes a window whose options could not be set.
    async fn made(&self, new: &NewWindow, output: Output) -> Result<Pane> {
        let text = String::from_utf8_lossy(&output.stdout);
        let pane = text.lines().next().and_then(|line| {
            let mut fields = line.split(':');
            let (id, window) = (fields.next()?.to_owned(), fields.next()?.to_owned());
            let (pid, server_pid) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
            Some(Pane { run: Run(new.run), id, window, pid, server_pid })
        });
        match pane {
            Some(pane) if output.ok => Ok(pane),
            Some(pane) => {
                absent_is_fine("close a window", self.0.run(&[kill(&pane.window)]).await?)?;
                Err(plain::refusal("mark a window", &output.stderr))
            }
            None => Err(plain::refusal("make a window", &output.stderr)),
        }
    }

    /// Whether a session has a window of that name with a live pane. Uses a plain process: the server need not be ours,
    /// and nothing is started in it. Fails when tmux does not respond, or refuses for a reason other than a missing
    /// window.
    pub async fn window_lives(&self, session: &str, window: &str) -> Result<bool> {
        let target = format!("={session}:");
        let list = Words::from(["list-panes", "-s", "-t", &target, "-F", "#{pane_dead}:#{window_name}"]);
        let output = self.0.run(&[list]).await?;
        if !output.ok {
            return absent_is_fine("look for a window", output).map(|()| false);
        }
        let listed = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(listed.lines().any(|line| line.strip_prefix("0:") == Some(window)))
    }

    /// Closes the window of a pane if it is still that pane: the same server and the same process. A new server
    /// reuses ids, so an id alone may mean another window. Its programs receive SIGHUP. A missing window is not an
    /// error.
    pub async fn close(&self, pane: &Pane) -> Result<()> {
        let same = format!("#{{&&:#{{==:#{{pid}},{}}},#{{==:#{{pane_pid}},{}}}}}", pane.server_pid, pane.pid);
        let kill = format!("kill-window -t {}", quoted(&pane.window));
        let guarded = ["if-shell", "-F", "-t", &pane.id, &same, &kill];
        let _changing = timeout(QUEUE_TIMEOUT, self.0.changing.lock()).await.map_err(|_| self.0.silent())?;
        absent_is_fine("close a window", self.0.run(&[Words::from(guarded)]).await?)
    }
}

fn kill(window: &str) -> Words {
    KillWindow::new().target_window(window).build().into()
}

/// The last words of the command: name, directory and program of a new window.
fn program(new: &NewWindow) -> Vec<OsString> {
    let mut words = vec!["-n".into(), literal(new.name.as_bytes()), "-c".into()];
    // tmux expands formats in the directory, and `##[` would stay as it is.
    let plain = !new.cwd.as_os_str().as_bytes().contains(&b'#');
    words.push(if plain { new.cwd.clone().into() } else { "/".into() });
    words.push("--".into());
    if new.argv.len() == 1 {
        // tmux would run a single word in a shell.
        words.push("env".into());
    }
    words.extend(new.argv.iter().cloned());
    words
}

/// Escapes text for an argument in which tmux expands formats.
fn literal(text: &[u8]) -> OsString {
    OsString::from_vec(text.iter().flat_map(|byte| [*byte].repeat(1 + usize::from(*byte == b'#'))).collect())
}

/// The shell line that starts a recorder. Its file must be private, and the umask of the process that started tmux
/// belongs to the agents. tmux expands formats and times in the line.
fn recorder(argv: &[OsString]) -> OsString {
    let mut line = b"umask 077; exec".to_vec();
    for word in argv {
        line.push(b' ');
        line.extend_from_slice(&quote_bytes(word.as_bytes()));
    }
    let doubled = |byte: &u8| [*byte].repeat(1 + usize::from(matches!(byte, b'#' | b'%')));
    OsString::from_vec(line.iter().flat_map(doubled).collect())
}

/// `resize-window`, which also sets the size to manual.
fn resize(window: &str, size: (u16, u16)) -> Words {
    let (columns, rows) = (size.0.max(1).into(), size.1.max(1).into());
    ResizeWindow::new().target_window(window).width(columns).height(rows).build().into()
}

/// The command that gives a window its own size again; it does nothing while a client shows the window, in any session.
/// Sizes are never set for all windows at once (see the head of `config.rs`).
pub(super) fn restore(window: &str, (columns, rows): (u16, u16)) -> [String; 7] {
    let (target, columns, rows) = (quoted(window), columns.max(1), rows.max(1));
    let restoring = format!(
        "set-option -w -t {target} window-size manual ; resize-window -t {target} -x {columns} -y {rows}"
    );
    ["if-shell", "-F", "-t", window, "#{window_active_clients}", "", &restoring].map(str::to_owned)
}

/// That command as a line.
pub(super) fn restore_line(window: &str, size: (u16, u16)) -> String {
    restore(window, size).map(|word| quoted(&word)).join(" ")
}

/// A word of a line of commands.
pub(super) fn quoted(word: &str) -> String {
    String::from_utf8_lossy(&quote::word(word.as_bytes())).into_owned()
}

/// An error, unless the target does not exist.
fn absent_is_fine(what: &str, output: Output) -> Result<()> {
    if output.ok || plain::says_absent(&output.stderr) {
        return Ok(());
    }
    Err(plain::refusal(what, &output.stderr))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(argv: &[&str]) -> NewWindow {
        NewWindow {
            name: "a#b".into(),
            cwd: "/x".into(),
            argv: argv.iter().map(Into::into).collect(),
            worker: "w".into(),
            run: 1,
            size: (200, 50),
            record: None,
        }
    }

    #[test]
    fn no_program_goes_through_a_shell_and_no_text_through_a_format() {
        assert_eq!(program(&new(&["p", "#{x}", ";"])), ["-n", "a##b", "-c", "/x", "--", "p", "#{x}", ";"]);
        assert_eq!(program(&new(&["p q"]))[4..], ["--", "env", "p q"]);
        let odd = NewWindow { cwd: "/x#[y".into(), ..new(&["p", "q"]) };
        assert_eq!(program(&odd)[3], "/");
        let argv = ["/s", "/a'b#%.log"].map(OsString::from);
        assert_eq!(recorder(&argv), "umask 077; exec /s \"/a'b##%%.log\"");
    }
}
