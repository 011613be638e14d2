//! `swarm loop`: start a verified loop, follow it to its end, and print the result.
//!
//! It is `spawn --ralph` with other defaults: the arguments are converted to those of `spawn`.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use swarm_state::ends::LoopEnd;
use swarm_state::model::Status;
use swarm_state::notice::PauseBy;
use swarm_state::profiles::{self, HookStyle, Profile};
use swarm_state::screen::printable;

use crate::cli::{
    BudgetArgs, Loop, LoopArgs, OptionLimit, PageFormat, PromptArgs, RestartArgs, Spawn, TaskListArgs,
};
use crate::client::context::ClientContext;
use crate::client::host_spawn::HostSpawn;
use crate::client::report::{before_first, end_word, fetch, gates, used, worktree};
use crate::client::spawn_params::{self, load_settings, spawn_limit, spawn_line};
use crate::client::typed_path::readable_file;
use crate::client::{follow, json};
use crate::error::{Error, ErrorCode, Result};
use crate::out::{CommandResult, Failure};
use crate::protocol::{Call, Report, Spawned};
use crate::ralph::{CheckResult, LoopIteration, RalphLoopResult};
use crate::settings::Settings;

/// The maximum of iterations if neither the command line nor the settings have one.
const DEFAULT_ITERATIONS: u32 = 25;

const TASK_HINT: &str = "give the task as text, or as a file: --spec FILE";

const COMMAND_HINT: &str = "example: swarm loop 'make the tests pass' --check 'cargo test' -- claude -p";

/// The promise if neither the command line nor the settings have one.
const DEFAULT_PROMISE: &str = "COMPLETE";

pub(super) async fn run(ctx: &ClientContext, mut args: Loop) -> CommandResult {
    // The documents' examples give both.
    args.task = args.task.filter(|_| args.spec.is_none());
    let settings = load_settings(ctx)?;
    let mut warnings = Vec::new();
    let (task, quiet, format, stream) = (args.task.clone(), args.quiet, args.format, args.stream);
    // The agent of the settings supplies the command. A command on the command line has its own profile.
    let default_agent = settings.ralph_loop.agent.as_deref().filter(|_| args.cmd.is_empty());
    let profile = args.agent.as_deref().or(default_agent).map(|name| profile(name, &settings)).transpose()?;
    let mut args = as_spawn(args, profile.as_ref(), &settings, &mut warnings)?;
    let there = HostSpawn::take(ctx, &mut args)?;
    let mut params = spawn_params::params(&args, &settings, &mut warnings)?;
    if let Some(profile) = profile {
        params.profile = profile;
    }
    if let (Some(ralph), Some(task)) = (&mut params.ralph, task) {
        ralph.task = Some(task);
    }
    if let Some(there) = there {
        there.complete(ctx, &mut params).await?;
    }
    warnings.iter().for_each(|warning| ctx.out.warn(warning));
    let max = params.ralph.as_ref().map(|ralph| ralph.max_iterations.into());
    let limit = spawn_limit(&params);
    let spawned: Spawned = ctx.call(&Call::Spawn(Box::new(params)), limit).await?;
    // `why` and `report` show the warnings too, so --quiet may drop them.
    spawned.warnings.iter().filter(|_| !quiet).for_each(|warning| ctx.out.warn(warning));
    let text = format == PageFormat::Text;
    if args.detach {
        if text {
            ctx.out.line(&spawn_line("spawned", &spawned.worker, max))?;
        } else {
            ctx.out.json(&json::worker(&ctx.on_host(spawned.worker)))?;
        }
        return Ok(0);
    }
    let signals = follow::signals()?;
    if !quiet {
        ctx.out.note(&spawn_line("spawned", &spawned.worker, max));
    }
    let lines = match (quiet, text) {
        (true, _) => follow::LineTarget::Nowhere,
        (false, true) => follow::LineTarget::Stdout,
        (false, false) => follow::LineTarget::Stderr,
    };
    let options = follow::FollowOptions { stream, lines, progress: !quiet };
    let followed = follow::result(ctx, &spawned, options, signals).await?;
    if followed.daemon_stopped {
        if !text {
            let error = Error::new(ErrorCode::NoDaemon, "the daemon was stopped, and the loop is paused");
            ctx.out.json_error(&error.hint(format!("swarm ralph resume {}", spawned.worker.name)));
        }
        followed.hint.iter().for_each(|hint| ctx.out.hint(hint));
        return Ok(followed.code);
    }
    let printed = print_result(ctx, &spawned.worker.name, format, followed.was_interrupted).await;
    followed.hint.iter().for_each(|hint| ctx.out.hint(hint));
    follow::failed_if_unread(printed.map(|()| followed.code))
}

fn profile(name: &str, settings: &Settings) -> Result<Profile> {
    settings.agents.iter().find(|profile| profile.name == name).cloned().ok_or_else(|| {
        let names: Vec<&str> = settings.agents.iter().map(|profile| profile.name.as_str()).collect();
        Error::usage(format!("unknown agent '{name}'")).hint(format!("known agents: {}", names.join(", ")))
    })
}

fn spec_file(typed: &Path) -> Result<PathBuf> {
    let path = readable_file("spec file", typed)?;
    let bytes = std::fs::read(&path)
        .map_err(|e| Error::system(format!("cannot read spec file: {}", typed.display()), e))?;
    if String::from_utf8_lossy(&bytes).trim().is_empty() {
        return Err(Error::usage(format!("the spec file is empty: {}", typed.display())).hint(TASK_HINT));
    }
    Ok(path)
}

/// Adds the budgets of the settings to those of the command line.
fn budgets(
    typed: BudgetArgs,
    settings: &Settings,
    agent: Option<&Profile>,
    cmd: &[String],
    warnings: &mut Vec<String>,
) -> BudgetArgs {
    let defaults = &settings.ralph_loop;
    let agent = agent.cloned().unwrap_or_else(|| profiles::find(&settings.agents, cmd));
    let sees_context = agent.hooks != HookStyle::Off;
    if !sees_context && typed.max_context.is_none() && defaults.max_context.is_some() {
        let name = &agent.name;
        warnings.push(format!("max_context of the settings has no effect: '{name}' has no hooks"));
    }
    BudgetArgs {
        max_cost: typed.max_cost.or(defaults.max_cost.map(|cost| OptionLimit(Some(cost)))),
        max_time: typed.max_time.or(defaults.max_time.map(|time| OptionLimit(Some(time)))),
        max_context: typed
            .max_context
            .or(defaults.max_context.filter(|_| sees_context).map(|percent| OptionLimit(Some(percent)))),
        ..typed
    }
}

/// Returns the agent's command, from the command line, `--agent` or the settings, with the model.
fn command(
    mut cmd: Vec<String>,
    model: Option<String>,
    agent: Option<&Profile>,
    settings: &Settings,
) -> Result<Vec<String>> {
    if cmd.is_empty() {
        cmd = match (&settings.command, agent) {
            (_, Some(agent)) => agent.loop_command(),
            (Some(command), None) => command.clone(),
            (None, None) => vec![],
        };
    }
    if cmd.first().is_none_or(String::is_empty) {
        return Err(Error::usage("no command given; put it after --").hint(COMMAND_HINT));
    }
    if let Some(model) = model {
        let known = agent.cloned().unwrap_or_else(|| profiles::find(&settings.agents, &cmd));
        cmd = known.command_with_model(&cmd, &model).ok_or_else(|| {
            Error::usage(format!("--model: swarm cannot set the model of '{}'", known.name))
                .hint("set the model in the command itself, after --")
        })?;
    }
    Ok(cmd)
}

/// Converts the arguments to those of `spawn --ralph`.
fn as_spawn(
    args: Loop,
    agent: Option<&Profile>,
    settings: &Settings,
    warnings: &mut Vec<String>,
) -> Result<Spawn> {
    let mut gates = args.gates;
    if args.task.as_ref().is_some_and(|task| task.trim().is_empty()) {
        return Err(Error::usage("the task is empty").hint(TASK_HINT));
    }
    let spec = match (&args.task, &args.spec) {
        (_, Some(spec)) => Some(spec_file(spec)?),
        (Some(_), None) => None,
        (None, None) => return Err(Error::usage("no task given").hint(TASK_HINT)),
    };
    if gates.check.is_empty() {
        let is_late = args.cmd.iter().any(|word| word.starts_with("--check"));
        let hint =
            if is_late { "put --check before --; the words after -- are the agent's" } else { COMMAND_HINT };
        let message = "a loop needs at least one --check, the command that proves its work";
        return Err(Error::usage(message).hint(hint));
    }
    if !args.no_promise {
        let tag = settings.ralph_loop.completion_tag.as_deref().unwrap_or(DEFAULT_PROMISE);
        gates.promise.get_or_insert_with(|| tag.to_owned());
    }
    let cmd = command(args.cmd, args.model, agent, settings)?;
    Ok(Spawn {
        worker: args.worker,
        cwd: args.cwd,
        detach: args.detach,
        tmux: false,
        format: args.format,
        prompt: PromptArgs {
            prompt: None,
            // The daemon inserts the task into the prompt.
            prompt_file: Some(spec.unwrap_or_else(|| "/dev/null".into())),
            prompt_via: args.prompt_via,
            ready_wait: false,
            ready_timeout: 120,
            done_pattern: args.done_pattern,
        },
        restart: RestartArgs { restart: None, max_restarts: 0 },
        ralph: LoopArgs {
            ralph: true,
            max_iterations: args
                .max_iterations
                .or(settings.ralph_loop.max_iterations)
                .or(Some(DEFAULT_ITERATIONS)),
            inactivity_timeout: args.inactivity_timeout,
            question_timeout: args.question_timeout,
            stream: args.stream,
        },
        tasks: TaskListArgs::default(),
        gates,
        budgets: budgets(args.budgets, settings, agent, &cmd, warnings),
        worktree: args.worktree,
        sandbox: args.sandbox,
        caps: args.caps,
        cmd,
    })
}

/// The result, with the loop's name and state. The other fields are those of the source document.
#[derive(Serialize)]
struct NamedResult<'a> {
    name: &'a str,
    status: Status,
    reason: Option<&'a str>,
    cause: Option<Value>,
    paused_by: Option<PauseBy>,
    proof: Value,
    #[serde(flatten)]
    result: RalphLoopResult,
}

async fn print_result(
    ctx: &ClientContext,
    name: &str,
    format: PageFormat,
    was_interrupted: bool,
) -> Result<(), Failure> {
    let mut report = fetch(ctx, name).await?;
    // The loop is paused or goes on, but for this command it was canceled.
    if was_interrupted && report.end.is_none() {
        report.end = Some(LoopEnd::Cancelled);
    }
    match format {
        PageFormat::Json => ctx.out.json(&NamedResult {
            name: &report.name,
            status: report.worker_status,
            reason: report.reason.as_deref(),
            cause: report.cause.as_ref().map(json::cause),
            paused_by: json::paused_by(report.paused_by, report.worker_status),
            proof: json::proof(&report),
            result: result_of(&report),
        }),
        PageFormat::Text => ctx.out.lines(&result_page(&report)),
    }
}

fn result_of(report: &Report) -> RalphLoopResult {
    let iterations: Vec<LoopIteration> = report.iterations.iter().map(LoopIteration::from).collect();
    RalphLoopResult {
        total_iterations: iterations.len(),
        iterations,
        total_cost: json::cost(report),
        total_duration: report.seconds,
        success: report.end.is_some_and(|end| end.exit_code(true) == 0),
        stop_reason: end_word(report).to_owned(),
        worktree_path: report.worktree.as_ref().map(|w| w.path.display().to_string()).unwrap_or_default(),
        baseline: report.baseline.iter().map(CheckResult::from).collect(),
    }
}

fn result_page(report: &Report) -> Vec<String> {
    let mut lines = vec![format!("{}: {} ({})", report.name, end_word(report), used(report))];
    match report.iterations.last() {
        Some(last) => lines.extend(gates(last)),
        None if report.end == Some(LoopEnd::Cancelled) => {}
        // Without an iteration, the reason is the only explanation.
        None => {
            let why = before_first(report).or_else(|| report.reason.as_deref().map(printable));
            lines.extend(why.map(|why| format!("  FAIL  {why}")));
        }
    }
    lines.extend(worktree(report));
    lines
}
