//! `swarm ralph …`: the loops.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};

use chrono::NaiveDateTime;
use swarm_state::advice::{self, Situation};
use swarm_state::model::LoopStatus;
use swarm_state::screen::printable;
use swarm_state::template::PROMPT_TEMPLATE;

use super::connect::QUICK;
use super::spawn::named_env;
use super::{Ctx, Ended, logs, ls, report};
use crate::cli::{PageFormat, RalphClean, RalphCommand, RalphInit, RalphResume, RalphSet, RalphStatus};
use crate::error::{Error, ErrorCode, Result};
use crate::protocol::{
    Call, Changed, Cleaned, Named, RalphCleanParams, RalphSetParams, RalphView, ResumeParams,
};

pub(super) async fn run(ctx: &Ctx, command: RalphCommand) -> Ended {
    match command {
        RalphCommand::Init(args) => init(ctx, &args),
        RalphCommand::Template => ctx.out.raw(PROMPT_TEMPLATE).map(|()| 0),
        RalphCommand::Status(args) => status(ctx, &args).await,
        RalphCommand::Pause(args) => {
            let call = Call::RalphPause(Named { name: args.name.to_string() });
            change(ctx, args.name.as_str(), call, "paused", "is already paused").await
        }
        RalphCommand::Resume(args) => resume(ctx, &args).await,
        RalphCommand::Ls(args) => ls::loops(ctx, &args).await,
        RalphCommand::Logs(args) => logs::iterations(ctx, &args).await,
        RalphCommand::Set(args) => set(ctx, &args).await,
        RalphCommand::Diff(args) => report::diff(ctx, &args).await,
        RalphCommand::Restore(args) => report::restore(ctx, &args).await,
        RalphCommand::Approve(args) => report::approve(ctx, &args).await,
        RalphCommand::Clean(args) => clean(ctx, &args).await,
    }
}

fn init(ctx: &Ctx, args: &RalphInit) -> Ended {
    const FILE: &str = "PROMPT.md";
    let there = std::fs::symlink_metadata(FILE).is_ok();
    let mut options = OpenOptions::new();
    options.write(true);
    if args.force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    let written = options.open(FILE).and_then(|mut file| file.write_all(PROMPT_TEMPLATE.as_bytes()));
    match written {
        Ok(()) if there => ctx.out.line("created PROMPT.md (overwritten)")?,
        Ok(()) => ctx.out.line("created PROMPT.md")?,
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            return Err(Error::invalid("PROMPT.md already exists (use --force to overwrite)").into());
        }
        Err(e) => return Err(Error::system("cannot write PROMPT.md", e).into()),
    }
    Ok(0)
}

/// The document's error for a worker that is none, or no loop.
pub(super) fn no_loop(name: &str, error: Error) -> Error {
    if error.code == ErrorCode::NotFound {
        Error::invalid(format!("worker '{name}' is not a ralph worker")).hint("swarm ralph ls")
    } else {
        error
    }
}

async fn resume(ctx: &Ctx, args: &RalphResume) -> Ended {
    let env = named_env(&args.env)?;
    let keys = env.keys().cloned().collect::<Vec<_>>().join(", ");
    let call = Call::RalphResume(ResumeParams { name: args.name.to_string(), env });
    let ended = change(ctx, args.name.as_str(), call, "resumed", "is not paused").await?;
    if !keys.is_empty() {
        ctx.out.note(&format!("the agent's next run gets the new value of {keys}"));
    }
    Ok(ended)
}

async fn change(ctx: &Ctx, name: &str, call: Call, done: &str, was_so: &str) -> Ended {
    let answer = ctx.ask(&call, QUICK).await;
    let changed: Changed = answer.map_err(|e| no_loop(name, e))?;
    for warning in &changed.warnings {
        ctx.out.warn(warning);
    }
    if changed.changed {
        ctx.out.line(&format!("{done} ralph loop for {name}"))?;
    } else {
        ctx.out.warn(&format!("worker '{name}' {was_so}"));
    }
    Ok(0)
}

async fn status(ctx: &Ctx, args: &RalphStatus) -> Ended {
    let call = Call::RalphStatus(Named { name: args.name.to_string() });
    let answer = ctx.ask(&call, QUICK).await;
    let view: RalphView = answer.map_err(|e| no_loop(args.name.as_str(), e))?;
    match args.format {
        PageFormat::Json => ctx.out.json(&view)?,
        PageFormat::Text => {
            ctx.out.lines(&page(&view))?;
            if let Some(hint) = next_step(&view) {
                ctx.out.hint(&hint);
            }
        }
    }
    Ok(0)
}

/// The document's page, line by line.
fn page(view: &RalphView) -> Vec<String> {
    let started = view.last_iteration_started.as_deref().map_or_else(|| "-".to_owned(), time);
    let mut lines = vec![
        format!("Ralph Loop: {}", view.worker_name),
        format!("Status: {}", view.status),
        format!("Iteration: {}/{}", view.current_iteration, view.max_iterations),
        format!("Started: {}", time(&view.started)),
        format!("Current iteration started: {started}"),
        format!("Consecutive failures: {}", view.consecutive_failures),
        format!("Total failures: {}", view.total_failures),
        format!("Inactivity timeout: {}s", view.inactivity_timeout),
    ];
    if let Some(pattern) = &view.done_pattern {
        lines.push(format!("Done pattern: {}", printable(pattern)));
    }
    lines
}

/// `2024-01-15T10:30:00.000000` as `2024-01-15 10:30:00`; both are local time.
fn time(text: &str) -> String {
    text.parse::<NaiveDateTime>()
        .map_or_else(|_| printable(text), |t| t.format("%Y-%m-%d %H:%M:%S").to_string())
}

/// What the page has no line for, and what to do about it. It goes to stderr: the page is the document's.
fn next_step(view: &RalphView) -> Option<String> {
    let situation = Situation {
        name: &view.worker_name,
        status: view.worker_status,
        is_loop: true,
        is_paused: view.status == LoopStatus::Paused,
        cause: view.cause.as_ref(),
    };
    let step = advice::next_step(&situation)?;
    let why = view.reason.as_ref().map(|reason| format!("{}: ", printable(reason)));
    Some(format!("{}{step}", why.unwrap_or_default()))
}

async fn set(ctx: &Ctx, args: &RalphSet) -> Ended {
    for (key, value) in &args.changes {
        let value = absolute_prompt(key, value)?;
        let params = RalphSetParams { name: args.name.to_string(), key: key.clone(), value: value.clone() };
        let answer = ctx.ask(&Call::RalphSet(params), QUICK).await;
        let now: RalphView = answer.map_err(|e| no_loop(args.name.as_str(), e))?;
        ctx.out.line(&printable(&format!("set {key}={value} for {}", args.name)))?;
        if let Some(warning) = last_iteration(key, &now) {
            ctx.out.warn(&warning);
        }
    }
    Ok(0)
}

/// A limit at or below the count is legal, and ends the loop soon.
fn last_iteration(key: &str, now: &RalphView) -> Option<String> {
    let last = key == "max_iterations" && now.max_iterations <= now.current_iteration;
    last.then(|| format!("iteration {} is the last", now.current_iteration))
}

/// A prompt file is meant from here; the daemon lives elsewhere.
fn absolute_prompt(key: &str, value: &str) -> Result<String> {
    if key != "prompt_file" || value.is_empty() {
        return Ok(value.to_owned());
    }
    let path = super::spawn::prompt_file(value.as_ref())?;
    path.into_os_string().into_string().map_err(|_| Error::invalid("the directory's name is not UTF-8"))
}

async fn clean(ctx: &Ctx, args: &RalphClean) -> Ended {
    let name = args.name.clone();
    let call = Call::RalphClean(RalphCleanParams { name: name.clone() });
    let answer = ctx.ask(&call, QUICK).await;
    let cleaned: Cleaned = answer.map_err(|e| no_loop(name.as_deref().unwrap_or_default(), e))?;
    let lines: Vec<String> = cleaned.removed.iter().map(|n| format!("removed ralph state of {n}")).collect();
    ctx.out.lines(&lines)?;
    for kept in &cleaned.kept {
        ctx.out.warn(&format!("the loop of {kept} is not over, so its state stays"));
    }
    if cleaned.removed.is_empty() && cleaned.kept.is_empty() {
        ctx.out.note("nothing to remove");
    }
    Ok(if args.name.is_some() && !cleaned.kept.is_empty() { 1 } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use swarm_state::model::Status;

    fn view() -> RalphView {
        RalphView {
            worker_name: "agent".into(),
            status: LoopStatus::Running,
            worker_status: Status::Running,
            reason: None,
            cause: None,
            prompt_file: "/home/u/PROMPT.md".into(),
            max_iterations: 100,
            current_iteration: 7,
            started: "2024-01-15T10:30:00.000000".into(),
            last_iteration_started: Some("2024-01-15T12:45:00.123456".into()),
            consecutive_failures: 0,
            total_failures: 2,
            done_pattern: Some("All tasks complete".into()),
            inactivity_timeout: 60,
            question_timeout: Some(600),
            paused_by: None,
            state_file: "/s/state.json".into(),
        }
    }

    #[test]
    fn the_page_is_the_documents() {
        let page_of = |view: &RalphView| page(view).join("\n");
        let full = "Ralph Loop: agent\nStatus: running\nIteration: 7/100\nStarted: 2024-01-15 10:30:00\n\
            Current iteration started: 2024-01-15 12:45:00\nConsecutive failures: 0\nTotal failures: 2\n\
            Inactivity timeout: 60s";
        assert_eq!(page_of(&view()), format!("{full}\nDone pattern: All tasks complete"));
        let mut view = view();
        view.done_pattern = None;
        assert_eq!(page_of(&view), full);
        view.last_iteration_started = None;
        assert!(page_of(&view).contains("\nCurrent iteration started: -\n"));
    }

    #[test]
    fn the_next_step_is_named_where_there_is_one() {
        let mut view = view();
        assert_eq!(next_step(&view), None);
        view.worker_status = Status::Lost;
        view.reason = Some("the tmux server went away".into());
        assert_eq!(next_step(&view).unwrap(), "the tmux server went away: swarm ralph resume agent");
    }

    #[test]
    fn a_limit_below_the_count_is_told() {
        let mut view = view();
        assert_eq!(last_iteration("max_iterations", &view), None);
        view.max_iterations = 2;
        assert_eq!(last_iteration("max_iterations", &view).unwrap(), "iteration 7 is the last");
        assert_eq!(last_iteration("done_pattern", &view), None);
        view.max_iterations = 8;
        assert_eq!(last_iteration("max_iterations", &view), None);
    }

    #[test]
    fn a_worker_that_is_no_loop_gets_the_documents_error() {
        let error = no_loop("x", Error::new(ErrorCode::NotFound, "no worker named 'x'"));
        assert_eq!(
            (error.message.as_str(), error.code.exit_status()),
            ("worker 'x' is not a ralph worker", 1)
        );
        assert_eq!(no_loop("x", Error::invalid("y")).message, "y");
    }
}
