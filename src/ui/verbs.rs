//! Runs verbs of swarm for `swarm ui`: this program again, with the words of a command line.
//!
//! A verb that changes something prints to the page *output*, line by line. A verb that shows a page is run beside it.
//! `swarm attach` and the person's editor get the terminal. Deliberately absent: which verb is run.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;

use super::model::{Panel, UiEvent};
use crate::error::{Error, Result};
use crate::shell::{editor_of_person, editor_words, join};

pub(super) struct Verbs {
    program: PathBuf,
    config: Option<PathBuf>,
    events: UnboundedSender<UiEvent>,
    /// The verb that runs, until the next one.
    running: Option<u32>,
    /// The program that has the terminal, and the last of its messages.
    attached: Option<(Child, JoinHandle<Option<String>>)>,
    attached_title: String,
}

impl Verbs {
    pub(super) fn new(program: PathBuf, config: Option<PathBuf>, events: UnboundedSender<UiEvent>) -> Self {
        Self { program, config, events, running: None, attached: None, attached_title: String::new() }
    }

    fn program(&self) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(config) = &self.config {
            command.arg("--config").arg(config);
        }
        command
    }

    fn command(&self, words: &[String], columns: u16) -> Command {
        let mut command = self.program();
        command.args(words).env("NO_COLOR", "1").env("COLUMNS", columns.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(super) fn show(&self, name: String, panel: Panel, words: &[String], columns: u16) {
        let (mut command, events) = (self.command(words, columns), self.events.clone());
        tokio::spawn(async move {
            let lines = match command.output().await {
                Ok(output) => {
                    let all = [output.stdout, output.stderr].concat();
                    String::from_utf8_lossy(&all).lines().map(str::to_owned).collect()
                }
                Err(error) => vec![format!("cannot run swarm: {error}")],
            };
            let _ = events.send(UiEvent::Page(name, panel, lines));
        });
    }

    /// Runs a verb and sends what it prints. Only one runs at a time; an earlier one goes on without its output.
    pub(super) fn run(&mut self, words: &[String], columns: u16) {
        let (events, title) = (self.events.clone(), join(words));
        let child = match self.command(words, columns).spawn() {
            Ok(child) => child,
            Err(error) => {
                let _ = events.send(UiEvent::Ended(format!("cannot run swarm: {error}"), true));
                return;
            }
        };
        self.running = child.id();
        tokio::spawn(follow(child, title, events));
    }

    /// Ends the verb that runs. SIGHUP detaches a verb that follows a loop, and the loop goes on.
    pub(super) fn cancel(&mut self) {
        if let Some(pid) = self.running.take().and_then(|pid| i32::try_from(pid).ok()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGHUP);
        }
    }

    pub(super) fn attach(&mut self, name: &str) -> Result<()> {
        let mut command = self.program();
        // Its messages are read too: the next frame is drawn over them.
        command.args(["attach", name]).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| Error::system("cannot run swarm attach", error))?;
        let messages = tokio::spawn(copy_messages(child.stderr.take()));
        self.attached = Some((child, messages));
        self.attached_title = "swarm attach".to_owned();
        Ok(())
    }

    /// Opens a file in the person's editor, in this terminal.
    pub(super) fn edit(&mut self, path: &Path) -> Result<()> {
        let editor = editor_of_person().unwrap_or_else(|| "vi".to_owned());
        let mut command = Command::new("sh");
        command.args(editor_words(&editor, path));
        let child = command.spawn().map_err(|error| Error::system("cannot run the editor", error))?;
        self.attached = Some((child, tokio::spawn(async { None })));
        self.attached_title = editor;
        Ok(())
    }

    pub(super) fn is_attached(&self) -> bool {
        self.attached.is_some()
    }

    /// Waits for the end of the program that has the terminal and returns its last message. Cancel-safe.
    pub(super) async fn attach_end(&mut self) -> Option<String> {
        let (child, messages) = self.attached.as_mut()?;
        let status = child.wait().await;
        let message = messages.await.ok().flatten();
        let failed = status.ok().filter(|status| !status.success());
        let message = message.or_else(|| failed.map(|status| format!("✖ {}: {status}", self.attached_title)));
        self.attached = None;
        message
    }
}

async fn follow(mut child: Child, title: String, events: UnboundedSender<UiEvent>) {
    let streams = (child.stdout.take(), child.stderr.take());
    let (printed, errors) = tokio::join!(send_lines(streams.0, &events), send_lines(streams.1, &events));
    let status = child.wait().await;
    let has_failed = !status.as_ref().is_ok_and(std::process::ExitStatus::success);
    let error = errors.iter().find_map(|line| line.strip_prefix("swarm: error: "));
    let message = match (error, errors.last().or(printed.last())) {
        (Some(error), _) if has_failed => format!("✖ {error}"),
        _ if has_failed => format!("✖ swarm {title} failed"),
        (_, Some(line)) => line.clone(),
        (_, None) => format!("done: swarm {title}"),
    };
    let _ = events.send(UiEvent::Ended(message, has_failed));
}

/// Sends the lines of a stream; returns the first and the last of them.
async fn send_lines(
    stream: Option<impl AsyncRead + Unpin>,
    events: &UnboundedSender<UiEvent>,
) -> Vec<String> {
    let mut kept: Vec<String> = vec![];
    let Some(stream) = stream else { return kept };
    let mut reader = BufReader::new(stream);
    let mut bytes = vec![];
    while reader.read_until(b'\n', &mut bytes).await.is_ok_and(|count| count > 0) {
        let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        bytes.clear();
        kept.truncate(1);
        kept.push(line.clone());
        let _ = events.send(UiEvent::Printed(line));
    }
    kept
}

/// Copies the messages of `swarm attach` to this process's stderr; returns the last sentence of them.
async fn copy_messages(stream: Option<impl AsyncRead + Unpin>) -> Option<String> {
    let mut lines = BufReader::new(stream?).lines();
    let mut last = None;
    while let Ok(Some(line)) = lines.next_line().await {
        let _ = write!(std::io::stderr(), "{line}\r\n");
        if let Some(message) = line.strip_prefix("swarm: ") {
            last = Some(message.to_owned());
        }
    }
    last
}
