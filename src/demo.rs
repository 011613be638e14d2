//! `swarm demo`: a whole loop on the built-in fake agent, told as it happens.
//!
//! It runs the same commands that a user would type, as processes of their own, in a temporary directory
//! with a daemon and a tmux server of its own. All of it is ended and removed at the end, also after an
//! error or a Ctrl-C. What the daemon and the follower say is checked against what the demo told: it exits
//! 0 only if everything happened as told.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use crate::client::connect::own_program;
use crate::out::{Colour, Out};
use crate::out::{CommandResult, Failure};

use crate::error::{Error, Result};

pub mod agent;
mod stage;

use agent::{MARKER, TASKS, TODO};
use stage::Stage;

/// What the whole demo may take.
const LIMIT: Duration = Duration::from_secs(55);

const PROMPT: &str = "\
study TODO.md and do the first open task
tick it off when it is done
print ALL TASKS DONE when no task is left
";

/// What the follower must say, in this order; between them it may say more.
const TOLD: [&str; 9] = [
    "spawned demo (tmux: swarm:demo) [ralph mode: iteration 1/10]",
    "[ralph] demo: starting iteration 1/10",
    "[ralph] demo: iteration 1 completed (exit: 0",
    "[ralph] demo: iteration 2 failed (exit: 1), retrying in 1s (attempt 1/5)",
    "[ralph] demo: starting iteration 3/10",
    "[ralph] demo: iteration 3 completed (exit: 0",
    "[ralph] demo: starting iteration 4/10",
    "[ralph] demo: done pattern matched, stopping loop",
    "[ralph] demo: loop complete after 4 iterations",
];

/// When the status page is shown.
const MIDDLE: &str = "[ralph] demo: starting iteration 3/10";

/// Plays the demo.
///
/// # Errors
/// What did not go as it should.
pub fn run(out: Out) -> CommandResult {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::system("cannot start", e))?;
    runtime.block_on(perform(out))
}

async fn perform(out: Out) -> CommandResult {
    let on = |kind| signal(kind).map_err(|e| Error::system("cannot listen for signals", e));
    let mut interrupt = on(SignalKind::interrupt())?;
    let mut terminate = on(SignalKind::terminate())?;
    let mut hang_up = on(SignalKind::hangup())?;
    let stage = Stage::build(PROMPT, TODO, TASKS)?;
    let played = tokio::select! {
        played = timeout(LIMIT, play(out, &stage)) => played.unwrap_or_else(|_| {
            Err(Error::invalid(format!("the demo took over {} s", LIMIT.as_secs())).into())
        }),
        _ = interrupt.recv() => Ok(130),
        _ = terminate.recv() => Ok(143),
        _ = hang_up.recv() => Ok(129),
    };
    // The rest of it must be seen through, whatever else is pressed.
    let struck = stage.strike().await;
    let status = played?;
    struck?;
    if status == 0 {
        epilogue(out)?;
    }
    Ok(status)
}

async fn play(out: Out, stage: &Stage) -> CommandResult {
    say(
        out,
        "This is a loop (a \"ralph loop\"): an agent is started again and again, each time with a fresh",
    )?;
    say(out, "context, and reads the same prompt file. What it did stands in the files it works on.")?;
    tell(out, "The agent here is a fake one, built in. Its prompt, PROMPT.md:")?;
    out.lines(&indented(PROMPT))?;
    tell(out, "The list it works through, TODO.md:")?;
    out.lines(&indented(TASKS))?;
    tell(out, "Start the loop. This command follows it; you would put your own agent after `--`:")?;
    let typed = "swarm spawn --name demo --ralph --prompt-file PROMPT.md --max-iterations 10";
    command_line(out, &format!("{typed} --done-pattern '{MARKER}' -- AGENT"))?;
    follow(out, stage).await?;
    tell(out, "Every task is ticked off:")?;
    let todo = std::fs::read_to_string(stage.project().join(TODO));
    let todo = todo.map_err(|e| Error::system("cannot read the demo's TODO.md", e))?;
    out.lines(&indented(&todo))?;
    tell(out, "The loop kept a log, so that you can read in the morning what happened in the night:")?;
    command_line(out, "swarm ralph logs demo")?;
    let log = output(stage, &["ralph", "logs", "demo"]).await?;
    out.lines(&indented(&log))?;
    if todo.contains("[ ]") {
        return Err(unexpected("a task is still open", &todo).into());
    }
    let failed = "[FAIL] iteration 2 exit=1 attempt=1/5 backoff=1s";
    if !log.contains(failed) || !log.contains("[DONE] loop complete after 4 iterations reason=done_pattern") {
        return Err(unexpected("the log does not say what was told", &log).into());
    }
    Ok(0)
}

/// Runs the follower, explains what it says as it says it, and holds it to what was told.
async fn follow(out: Out, stage: &Stage) -> Result<(), Failure> {
    let agent = own_program()?;
    let mut command = stage.swarm()?;
    command.args([
        "spawn",
        "--name",
        "demo",
        "--ralph",
        "--prompt-file",
        "PROMPT.md",
        "--max-iterations",
        "10",
    ]);
    command.args(["--prompt-via", "stdin", "--done-pattern", MARKER, "--"]).arg(agent).arg("__demo-agent");
    let mut child = spawn(command.stdout(Stdio::piped()))?;
    let Some(stdout) = child.stdout.take() else {
        return Err(Error::invalid("the follower has no output").into());
    };
    let mut lines = BufReader::new(stdout).lines();
    let mut told = TOLD.iter().peekable();
    let mut heard = String::new();
    let next = |e| Error::system("cannot read what the follower says", e);
    while let Some(line) = lines.next_line().await.map_err(next)? {
        out.line(&format!("  {line}"))?;
        if told.next_if(|expected| line.starts_with(**expected)).is_some() {
            if let Some(words) = explain(&line) {
                say(out, words)?;
            }
            if line == MIDDLE {
                middle(out, stage).await?;
            }
        }
        heard.push_str(&line);
        heard.push('\n');
    }
    let status = child.wait().await.map_err(|e| Error::system("cannot wait for the follower", e))?;
    match (told.next(), status.code()) {
        (None, Some(0)) => Ok(()),
        (Some(missing), Some(0)) => Err(unexpected(&format!("it never said `{missing}`"), &heard).into()),
        (_, code) => {
            let code = code.map_or_else(|| "a signal".to_owned(), |c| format!("status {c}"));
            Err(unexpected(&format!("the follower ended with {code}"), &heard).into())
        }
    }
}

/// What a new user wants to know about a line.
fn explain(line: &str) -> Option<&'static str> {
    if line.contains("iteration 2 failed") {
        Some(
            "The agent failed, as agents do. The loop waits a second and tries again: the next failure in a row\nwould wait two, then four, and the fifth would end the loop.",
        )
    } else if line.contains("done pattern matched") {
        Some("The agent printed what the done pattern asks for.")
    } else {
        None
    }
}

async fn middle(out: Out, stage: &Stage) -> Result<(), Failure> {
    tell(out, "Meanwhile, from any other terminal:")?;
    command_line(out, "swarm ralph status demo")?;
    let page = output(stage, &["ralph", "status", "demo"]).await?;
    out.lines(&indented(&page))?;
    if !page.contains("Status: running") || !page.contains("Total failures: 1") {
        return Err(unexpected("the status page does not say what was told", &page).into());
    }
    say(out, "`swarm attach demo` would show the agent itself. The loop goes on:")
}

fn epilogue(out: Out) -> Result<(), Failure> {
    tell(out, "That was all of it; the demo's files, its daemon and its tmux server are gone.")?;
    tell(out, "Now with your own agent, in the directory of your project:")?;
    command_line(out, "swarm ralph init          # writes PROMPT.md; make it yours")?;
    command_line(out, "swarm spawn --name agent --ralph --prompt-file PROMPT.md -n 10 -- claude")?;
    command_line(out, "swarm attach agent        # from another terminal: see it work")
}

/// A new part of the story.
fn tell(out: Out, words: &str) -> Result<(), Failure> {
    out.line("")?;
    say(out, words)
}

fn say(out: Out, words: &str) -> Result<(), Failure> {
    words.lines().try_for_each(|line| out.line(&out.paint(Colour::Bold, line)))
}

fn command_line(out: Out, typed: &str) -> Result<(), Failure> {
    out.line(&out.paint(Colour::Dim, &format!("  $ {typed}")))
}

fn indented(text: &str) -> Vec<String> {
    text.lines().map(|line| format!("  {line}")).collect()
}

/// What a command prints on stdout.
async fn output(stage: &Stage, args: &[&str]) -> Result<String> {
    let mut command = stage.swarm()?;
    let child = spawn(command.args(args).stdout(Stdio::piped()))?;
    let output = child.wait_with_output().await.map_err(|e| Error::system("cannot wait for swarm", e))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        Ok(text)
    } else {
        Err(unexpected(&format!("`swarm {}` failed", args.join(" ")), &text))
    }
}

fn spawn(command: &mut Command) -> Result<tokio::process::Child> {
    command.kill_on_drop(true).spawn().map_err(|e| Error::system("cannot run swarm", e))
}

fn unexpected(what: &str, seen: &str) -> Error {
    Error::invalid(format!("the demo did not go as told: {what}"))
        .hint(format!("this was seen:\n{}", seen.trim_end()))
}
