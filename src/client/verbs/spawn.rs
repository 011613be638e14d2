//! `swarm spawn`: start a worker, and follow it if it is a loop.

use swarm_state::model::{PromptVia, Status};
use swarm_state::notice::counted;
use tokio::time::sleep;

use crate::cli::{PageFormat, Spawn};
use crate::client::context::ClientContext;
use crate::client::host_spawn::HostSpawn;
use crate::client::pages::{LOG_POLL_INTERVAL, is_disconnected, worker_status};
use crate::client::spawn_params::{load_settings, params, spawn_limit, spawn_line, unattended_note};
use crate::client::tail::OutputTail;
use crate::client::task_list::is_parallel;
use crate::client::task_list_file::TaskListFile;
use crate::client::{follow, json};
use crate::out::CommandResult;
use crate::protocol::{Call, SpawnParams, Spawned};

pub(super) async fn run(ctx: &ClientContext, mut args: Spawn) -> CommandResult {
    let settings = load_settings(ctx)?;
    let there = HostSpawn::take(ctx, &mut args)?;
    let mut warnings = Vec::new();
    let is_parallel = is_parallel(&args.tasks);
    if is_parallel {
        // The daemon's copy of this program exists afterwards.
        ctx.connect().await?;
    }
    let mut params = params(&args, &settings, &mut warnings)?;
    if let Some(there) = there {
        there.complete(ctx, &mut params).await?;
    }
    warnings.iter().for_each(|warning| ctx.out.warn(warning));
    let streams_itself = args.tasks.ralph_dir.is_some() && prints_text(&params);
    if let Some(estimate) = estimate(&params).filter(|_| args.format == PageFormat::Text) {
        ctx.out.note(&estimate);
    }
    let limit = spawn_limit(&params);
    let sandbox = params.sandbox.as_ref().map(|sandbox| sandbox.kind);
    let call = Call::Spawn(Box::new(params));
    let spawned: Spawned = ctx.call(&call, limit).await?;
    let report = StartReport {
        word: "spawned",
        note: unattended_note(&args, &settings, sandbox),
        format: args.format,
        detach: args.detach,
        stream: args.ralph.stream || streams_itself,
    };
    let printed = print_and_follow(ctx, &spawned, report).await;
    match printed {
        Ok(0) if is_parallel && !args.detach => follow_output(ctx, &spawned.worker.name, args.format).await,
        printed => printed,
    }
}

/// Prints the output of a coordinator until it ends. Returns its exit status.
async fn follow_output(ctx: &ClientContext, name: &str, format: PageFormat) -> CommandResult {
    let mut client = ctx.connect().await?;
    let mut tail = OutputTail::from_start(name, &mut client).await?;
    let mut ended = None;
    loop {
        // The status is read before the lines: when the worker has ended, the lines are complete.
        let status = worker_status(ctx, &mut client, name).await?.map(|worker| worker.status);
        let lines = match tail.poll(&mut client).await {
            Err(error) if is_disconnected(&error) => continue,
            lines => lines?,
        };
        match format {
            PageFormat::Text => ctx.out.lines(&lines)?,
            PageFormat::Json => lines.iter().for_each(|line| ctx.out.note(line)),
        }
        match (status, ended) {
            (Some(status), _) if status.is_live() => sleep(LOG_POLL_INTERVAL).await,
            // The pane may have been open still. The last line of an open pane counts after two equal polls.
            (status, None) => ended = Some(status),
            (status, Some(_)) => return Ok(u8::from(status != Some(Status::Done))),
        }
    }
}

/// Whether a person can read what the agent prints: it has no terminal interface, and prints no record for programs.
fn prints_text(params: &SpawnParams) -> bool {
    let profile = &params.profile;
    let via = profile.route(&params.cmd, params.prompt_via, params.ralph.is_some());
    let is_record = !profile.record_args.is_empty() && profile.leaves_record(&params.cmd);
    via != PromptVia::Paste && !is_record
}

/// The number of iterations that a task list may need; `None` without a valid list, which the daemon refuses.
fn estimate(params: &SpawnParams) -> Option<String> {
    let ralph = params.ralph.as_ref()?;
    let gate = ralph.gates.tasks.as_ref()?;
    let list = TaskListFile::in_dir(&params.cwd.join(&gate.dir)).list().ok()?;
    let (skip_review, max) = (gate.review.skip_review, ralph.max_iterations);
    let is_short = list.estimated_iterations(skip_review) as u64 > u64::from(max);
    let more = if is_short { " (too few? -n sets more)" } else { "" };
    Some(format!("{}; at most {} allowed{more}", list.summary(skip_review), counted(max, "iteration")))
}

pub(super) struct StartReport {
    /// The verb in the printed line: `spawned` or `respawned`.
    pub(super) word: &'static str,
    /// The end of the printed line.
    pub(super) note: String,
    pub(super) format: PageFormat,
    pub(super) detach: bool,
    pub(super) stream: bool,
}

pub(super) async fn print_and_follow(
    ctx: &ClientContext,
    spawned: &Spawned,
    report: StartReport,
) -> CommandResult {
    spawned.warnings.iter().for_each(|warning| ctx.out.warn(warning));
    let metadata = spawned.worker.metadata();
    let follows = metadata.is_loop && !report.detach;
    let signals = follows.then(follow::signals).transpose()?;
    let printed = match report.format {
        PageFormat::Json => ctx.out.json(&json::worker(&ctx.on_host(spawned.worker.clone()))),
        PageFormat::Text => {
            let line = spawn_line(report.word, &spawned.worker, metadata.max_iterations);
            ctx.out.line(&(line + &report.note))
        }
    };
    let printed = printed.map(|()| 0);
    let Some(signals) = signals else { return printed };
    if printed.is_err() {
        return follow::failed_if_unread(printed);
    }
    let is_text = report.format == PageFormat::Text;
    let lines = if is_text { follow::LineTarget::Stdout } else { follow::LineTarget::Stderr };
    let options = follow::FollowOptions { stream: report.stream, lines, progress: false };
    let followed = follow::result(ctx, spawned, options, signals).await?;
    followed.hint.iter().for_each(|hint| ctx.out.hint(hint));
    Ok(followed.code)
}
