//! `swarm loop`: the short way to a verified loop, followed to its end, with a result for people or programs.
//!
//! It is `spawn --ralph` with other defaults: what was typed becomes that command's arguments.

use std::path::{Path, PathBuf};
use std::time::Duration;

use swarm_state::profiles::{self, Profile};

use crate::client::connect::SLOW;
use crate::client::context::Context;
use crate::client::follow;
use crate::client::spawn_params::{self, line, load_settings};
use crate::client::typed_path::again;
use crate::out::CommandResult;

mod result;
use crate::cli::{BudgetArgs, Loop, LoopArgs, PageFormat, PromptArgs, RestartArgs, Spawn};
use crate::error::{Error, ErrorCode, Result};
use crate::protocol::{Call, Spawned};
use crate::settings::{LoopDefaults, Settings};

/// Iterations when nobody says.
const ITERATIONS: u32 = 25;

/// The cure of a task that is missing.
const SAY_IT: &str = "say what is to be done, or name a file: --spec FILE";

/// A whole command.
const EXAMPLE: &str = "as in swarm loop 'make the tests pass' --check 'cargo test' -- claude -p";

/// What the agent says when nobody says otherwise.
const PROMISE: &str = "COMPLETE";

pub(super) async fn run(ctx: &Context, args: Loop) -> CommandResult {
    let settings = load_settings(ctx)?;
    let mut warnings = Vec::new();
    let (task, quiet, format, stream) = (args.task.clone(), args.quiet, args.format, args.stream);
    // The settings' agent says whose command to run; one that was typed has its own profile.
    let usual = settings.ralph_loop.agent.as_deref().filter(|_| args.cmd.is_empty());
    let profile = args.agent.as_deref().or(usual).map(|name| profile(name, &settings)).transpose()?;
    let args = as_spawn(args, profile.as_ref(), &settings)?;
    let mut params = spawn_params::params(&args, &settings, &mut warnings)?;
    if let Some(profile) = profile {
        params.profile = profile;
    }
    if let (Some(ralph), Some(task)) = (&mut params.ralph, task) {
        ralph.task = Some(task);
    }
    for warning in &warnings {
        ctx.out.warn(warning);
    }
    let max = params.ralph.as_ref().map(|ralph| ralph.max_iterations.into());
    let limit = SLOW + Duration::from_secs(if params.ready_wait { params.ready_timeout } else { 0 });
    let spawned: Spawned = ctx.call(&Call::Spawn(Box::new(params)), limit).await?;
    // They stand in `why` and `report` too.
    spawned.warnings.iter().filter(|_| !quiet).for_each(|warning| ctx.out.warn(warning));
    let text = format == PageFormat::Text;
    if args.detach {
        if text {
            ctx.out.line(&line("spawned", &spawned.worker, max))?;
        } else {
            ctx.out.json(&spawned.worker)?;
        }
        return Ok(0);
    }
    let signals = follow::Signals::new()?;
    if !quiet {
        ctx.out.note(&line("spawned", &spawned.worker, max));
    }
    let lines = match (quiet, text) {
        (true, _) => follow::Lines::Nowhere,
        (false, true) => follow::Lines::Stdout,
        (false, false) => follow::Lines::Stderr,
    };
    let options = follow::Options { stream, lines, progress: !quiet };
    let followed = follow::result(ctx, &spawned, options, signals).await?;
    let told = result::print(ctx, &spawned.worker.name, format, followed.given_up).await;
    follow::unread(told.map(|()| followed.code))
}

/// The profile of a name.
fn profile(name: &str, settings: &Settings) -> Result<Profile> {
    settings.agents.iter().find(|profile| profile.name == name).cloned().ok_or_else(|| {
        let names: Vec<&str> = settings.agents.iter().map(|profile| profile.name.as_str()).collect();
        Error::usage(format!("no agent is called '{name}'")).hint(format!("one of: {}", names.join(", ")))
    })
}

/// A spec that can be read and says something.
fn spec_file(typed: &Path) -> Result<PathBuf> {
    let path = again("spec file", typed)?;
    let bytes = std::fs::read(&path)
        .map_err(|e| Error::system(format!("cannot read spec file: {}", typed.display()), e))?;
    if String::from_utf8_lossy(&bytes).trim().is_empty() {
        return Err(Error::usage(format!("the spec file is empty: {}", typed.display())).hint(SAY_IT));
    }
    Ok(path)
}

/// The limits that were typed, else those of the settings.
fn budgets(typed: BudgetArgs, defaults: &LoopDefaults) -> BudgetArgs {
    BudgetArgs {
        max_cost: typed.max_cost.or(defaults.max_cost),
        max_time: typed.max_time.or(defaults.max_time),
        ..typed
    }
}

/// The agent's command: what was typed, else what the settings or `--agent` say, with the model.
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
        return Err(Error::usage("which command? It stands at the end, after --").hint(EXAMPLE));
    }
    if let Some(model) = model {
        let known = agent.cloned().unwrap_or_else(|| profiles::find(&settings.agents, &cmd));
        cmd = known.command_with_model(&cmd, &model).ok_or_else(|| {
            Error::usage(format!("--model: swarm does not know how to tell '{}' its model", known.name))
                .hint("give the model in the command itself, after --")
        })?;
    }
    Ok(cmd)
}

/// What was typed, as `spawn --ralph` has it.
fn as_spawn(args: Loop, agent: Option<&Profile>, settings: &Settings) -> Result<Spawn> {
    let mut gates = args.gates;
    if args.task.as_ref().is_some_and(|task| task.trim().is_empty()) {
        return Err(Error::usage("the task is empty").hint(SAY_IT));
    }
    let spec = match (&args.task, &args.spec) {
        (_, Some(spec)) => Some(spec_file(spec)?),
        (Some(_), None) => None,
        (None, None) => return Err(Error::usage("which task?").hint(SAY_IT)),
    };
    if gates.check.is_empty() {
        return Err(Error::new(
            ErrorCode::Usage,
            "a loop needs at least one --check, the command that proves its work",
        )
        .hint(EXAMPLE));
    }
    if !args.no_promise {
        let tag = settings.ralph_loop.completion_tag.as_deref().unwrap_or(PROMISE);
        gates.promise.get_or_insert_with(|| tag.to_owned());
    }
    let cmd = command(args.cmd, args.model, agent, settings)?;
    Ok(Spawn {
        name: args.name,
        cwd: args.cwd,
        env: args.env,
        tag: args.tag,
        detach: args.detach,
        replace: args.replace,
        record: args.record,
        size: args.size,
        tmux_socket: args.tmux_socket,
        tmux: false,
        format: args.format,
        prompt: PromptArgs {
            prompt: None,
            // The daemon puts a task in words where it belongs.
            prompt_file: Some(spec.unwrap_or_else(|| "/dev/null".into())),
            prompt_via: args.prompt_via,
            ready_wait: false,
            ready_timeout: 120,
            done_pattern: args.done_pattern,
        },
        restart: RestartArgs { restart: None, max_restarts: 0 },
        ralph: LoopArgs {
            ralph: true,
            max_iterations: args.max_iterations.or(settings.ralph_loop.max_iterations).or(Some(ITERATIONS)),
            inactivity_timeout: args.inactivity_timeout,
            question_timeout: args.question_timeout,
            ralph_dir: None,
            stream: args.stream,
        },
        gates,
        budgets: budgets(args.budgets, &settings.ralph_loop),
        worktree: args.worktree,
        cmd,
    })
}
