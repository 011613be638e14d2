//! Builds the parameters of a spawn from the command line and the settings.
//!
//! Everything that depends on the caller is resolved here: the current directory, the environment, the settings. The
//! daemon receives absolute paths and complete values. Used by `spawn` and `loop`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use swarm_state::budget::{Budgets, MAX_FAILURES};
use swarm_state::caps::Caps;
use swarm_state::docker::DockerNeeds;
use swarm_state::gates::{Gates, GatesError};
use swarm_state::model::RestartSpec;
use swarm_state::pattern::Pattern;
use swarm_state::profiles::{self, Profile};
use swarm_state::promise::Promise;
use swarm_state::rooms::RoomGates;
use swarm_state::sandbox::SandboxKind;
use swarm_state::spec::{LoopSpec, Prompt, WorktreeSpec};
use swarm_state::tasks::gate::TaskGate;
use swarm_state::test_gates::{OwnCanary, ReportFile, TestGates};

use super::connect::SLOW_TIMEOUT;
use super::context::ClientContext;
use super::sandbox::{add_hosts, docker_warnings, sandbox};
use super::task_list::{agent_command, is_parallel, reviewer, task_gate, with_coordinator};
use super::typed_path::{absolute, directory, prompt_file};
use crate::cli::{BudgetArgs, CapArgs, GateArgs, OptionLimit, RoomArgs, Spawn};
use crate::error::{Error, ErrorCode, Result};
use crate::paths;
use crate::protocol::{SpawnParams, WorkerView};
use crate::sandbox::check_directory;
use crate::sandbox::docker_setup::CREATE_TIMEOUT;
use crate::settings::Settings;

mod env;

const DEFAULT_INACTIVITY_SECONDS: u64 = 60;

/// The inactivity timeout of a one-shot command of a known agent, which may print nothing until its end.
const ONE_SHOT_INACTIVITY_SECONDS: u64 = 1800;

/// The maximum of iterations with `--ralph-dir`.
const RALPH_DIR_ITERATIONS: u32 = 15;

pub(super) fn load_settings(ctx: &ClientContext) -> Result<Settings> {
    let user = ctx.place()?.user_config();
    Settings::load(&user, Some(Path::new("swarm.toml")), ctx.config.as_deref())
}

/// Formats `spawned agent (tmux: swarm:agent) [ralph mode: iteration 1/10]`.
pub(super) fn spawn_line(verb: &str, worker: &WorkerView, max: Option<u64>) -> String {
    let mode = max.map(|max| format!(" [ralph mode: iteration 1/{max}]")).unwrap_or_default();
    format!("{verb} {} (tmux: {}:{}){mode}", worker.name, worker.tmux.session, worker.tmux.window)
}

/// Formats ` [unattended: --yolo]`: the options that swarm added to the agent's command. Empty if there are none.
pub(super) fn unattended_note(args: &Spawn, settings: &Settings, sandbox: Option<SandboxKind>) -> String {
    let Ok(typed) = command(args, settings) else { return String::new() };
    let profile = profiles::find(&settings.agents, &typed);
    // The spawn has refused an invalid combination.
    let sandbox = sandbox.or(Some(SandboxKind::Bwrap));
    let cmd = agent_command(&args.tasks, &profile, typed.clone(), sandbox);
    match profile.lacks_permissions(&typed) && cmd.is_ok_and(|cmd| !profile.lacks_permissions(&cmd)) {
        true => format!(" [unattended: {}]", profile.unattended_args.join(" ")),
        false => String::new(),
    }
}

/// Returns an id for a request that is unique on this machine.
pub(crate) fn request_name() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}-{:x}", std::process::id(), now.as_nanos())
}

/// How long the daemon may take to start a worker.
pub(super) fn spawn_limit(params: &SpawnParams) -> Duration {
    let ready = Duration::from_secs(if params.ready_wait { params.ready_timeout } else { 0 });
    let is_docker = params.sandbox.as_ref().is_some_and(|sandbox| sandbox.kind == SandboxKind::Docker);
    SLOW_TIMEOUT + ready + if is_docker { CREATE_TIMEOUT } else { Duration::ZERO }
}

/// Builds the parameters, and adds warnings for the user.
pub(super) fn params(args: &Spawn, settings: &Settings, warnings: &mut Vec<String>) -> Result<SpawnParams> {
    let restart = restart(args)?;
    let mut sandbox = sandbox(args, &settings.sandbox, || docker_obstacle(args, settings), warnings)?;
    let kind = sandbox.as_ref().map(|sandbox| sandbox.kind);
    if !args.ralph.ralph
        && (gates(&args.gates, None)? != Gates::default() || budgets(&args.budgets) != Budgets::default())
    {
        let message = "gates and budgets require a loop";
        return Err(Error::usage(message).hint("add --ralph, or use swarm loop"));
    }
    let mut ralph = if args.ralph.ralph { Some(ralph(args, settings, kind)?) } else { None };
    if ralph.as_ref().is_some_and(|r| r.max_iterations > 50) {
        warnings.push("high iteration count (>50) may consume significant resources".to_owned());
    }
    let prompt = prompt(args, ralph.as_ref())?;
    let cmd = command(args, settings)?;
    let profile = profiles::find(&settings.agents, &cmd);
    let cmd = agent_command(&args.tasks, &profile, cmd, kind)?;
    let reviewer = ralph.as_ref().and_then(|ralph| Some(&ralph.reviewer.as_ref()?.profile));
    add_hosts(sandbox.as_mut(), &args.sandbox, &settings.sandbox, reviewer.into_iter().chain([&profile]))?;
    if let Some(ralph) = ralph.as_mut().filter(|_| profile.is_one_shot(&cmd)) {
        ralph.inactivity_timeout = inactivity(args, settings).unwrap_or(ONE_SHOT_INACTIVITY_SECONDS);
    }
    warnings.extend(weak_promise(args, &profile, &cmd));
    let env = env::build(std::env::vars_os(), &args.worker.env, warnings)?;
    if kind == Some(SandboxKind::Docker) {
        warnings.extend(docker_warnings(&profile, &env.set)?);
    }
    let params = SpawnParams {
        name: args.worker.name.as_ref().map(ToString::to_string),
        profile,
        cmd,
        cwd: worker_directory(args, kind)?,
        env: env.values,
        env_names: env.set,
        tags: args.worker.tag.clone(),
        worktree: worktree(args)?,
        prompt,
        prompt_via: args.prompt.prompt_via,
        ready_wait: args.prompt.ready_wait,
        ready_timeout: args.prompt.ready_timeout,
        done_pattern: done_pattern(args, settings, warnings)?,
        replace: args.worker.replace,
        record: args.worker.record,
        tmux_socket: tmux_socket(args)?,
        size: args.worker.size.or(settings.tmux.size),
        ralph,
        restart,
        request: Some(request_name()),
        parent: None,
        sandbox,
        caps: caps(&args.caps, settings, args.ralph.ralph),
    };
    if is_parallel(&args.tasks) { with_coordinator(&args.tasks, params) } else { Ok(params) }
}

/// Why Docker Sandbox cannot be the sandbox of a spawn, with the next step. Errors of the command line have their own
/// messages later.
fn docker_obstacle(args: &Spawn, settings: &Settings) -> Option<(String, &'static str)> {
    let cmd = command(args, settings).ok()?;
    let reviewer = reviewer(&args.tasks, settings, Some(SandboxKind::Docker)).ok()?;
    let needs = DockerNeeds {
        profile: &profiles::find(&settings.agents, &cmd),
        cmd: &cmd,
        reviewer: reviewer.as_ref().map(|reviewer| &reviewer.profile),
        caps: &caps(&args.caps, settings, args.ralph.ralph),
        rooms: &rooms(&args.gates.rooms).ok()?,
        is_parallel: is_parallel(&args.tasks),
    };
    let dir = paths::resolve(&directory(args.cwd.as_deref()).ok()?);
    let top = dir.ancestors().find(|dir| dir.join(".git").exists());
    let is_below = !args.worktree.worktree && top.is_some_and(|top| top != dir);
    let shown = args.sandbox.sandbox_rw.iter().chain(&args.sandbox.sandbox_ro);
    let file = { shown }.find(|path| path.is_file()).map(|path| {
        let why = format!("'{}' is not a directory: a Docker sandbox gets only those", path.display());
        (why, "give its directory, or use --sandbox bwrap")
    });
    needs.obstacle().or(file).or_else(|| {
        let why = format!("'{}' is not the top of its git repository", dir.display());
        is_below.then_some((why, "start the worker at the top, or use --worktree or --sandbox bwrap"))
    })
}

fn prompt(args: &Spawn, ralph: Option<&LoopSpec>) -> Result<Prompt> {
    Ok(match (ralph, &args.prompt.prompt, &args.prompt.prompt_file) {
        (Some(_), Some(_), _) => {
            let message = "--prompt cannot be used with --ralph: a loop reads its prompt from a file before each iteration";
            return Err(Error::usage(message).hint("--prompt-file FILE"));
        }
        (Some(ralph), None, _) => Prompt::File(ralph.prompt_file.clone()),
        (None, Some(text), _) => Prompt::Text(text.clone()),
        (None, None, Some(file)) => Prompt::File(prompt_file(file)?),
        (None, None, None) => Prompt::None,
    })
}

/// The warning for a promise that the output of one of the agent's tools could contain too.
fn weak_promise(args: &Spawn, profile: &Profile, cmd: &[String]) -> Option<String> {
    let is_weak = args.gates.promise.is_some() && profile.is_one_shot(cmd) && !profile.leaves_record(cmd);
    is_weak.then(|| {
        let flags = profile.record_args.join(" ");
        format!(
            "the promise also counts in the output of the agent's tools, unless '{}' runs with {flags}",
            profile.name
        )
    })
}

/// Returns the environment of this process, without variables that would mislead an agent.
pub(crate) fn own_env() -> Result<BTreeMap<String, String>> {
    Ok(env::build(std::env::vars_os(), &[], &mut vec![])?.values)
}

/// Returns the variables that `--env` names, with the caller's value where `--env` has none.
pub(super) fn named_env(wanted: &[String]) -> Result<BTreeMap<String, String>> {
    let env = env::build(std::env::vars_os(), wanted, &mut vec![])?;
    let value = |name: String| env.values.get(&name).cloned().map(|value| (name, value));
    Ok(env.set.clone().into_iter().filter_map(value).collect())
}

fn restart(args: &Spawn) -> Result<Option<RestartSpec>> {
    let Some(when) = args.restart.restart else { return Ok(None) };
    if args.ralph.ralph {
        let message = "--restart cannot be used with --ralph: a loop restarts its agent by itself";
        return Err(Error::new(ErrorCode::Usage, message)
            .hint("omit --restart; --max-iterations limits a loop, and five failures in a row end it"));
    }
    Ok(when.0.map(|when| RestartSpec { when, max_restarts: args.restart.max_restarts }))
}

/// The inactivity timeout of the command line or the settings, seconds.
fn inactivity(args: &Spawn, settings: &Settings) -> Option<u64> {
    args.ralph.inactivity_timeout.or(settings.ralph.inactivity_timeout)
}

/// Builds a loop's parameters. The errors are in the documented order.
fn ralph(args: &Spawn, settings: &Settings, sandbox: Option<SandboxKind>) -> Result<LoopSpec> {
    let root = directory(args.cwd.as_deref())?;
    let tasks = task_gate(&args.tasks, args.gates.promise.as_deref(), &root)?;
    let from_dir = tasks.as_ref().map(|gate| root.join(&gate.dir));
    let file = args
        .prompt
        .prompt_file
        .clone()
        .or_else(|| from_dir.as_ref().map(|dir| dir.join("prompt.md")))
        .or_else(|| settings.ralph.prompt_file.clone())
        .ok_or_else(|| {
            Error::invalid("--ralph requires --prompt-file")
                .hint("to write a starter PROMPT.md: swarm ralph init")
        })?;
    let max_iterations = args
        .ralph
        .max_iterations
        .or_else(|| from_dir.as_ref().map(|_| RALPH_DIR_ITERATIONS))
        .or(settings.ralph.max_iterations)
        .ok_or_else(|| Error::invalid("--ralph requires --max-iterations"))?;
    let inactivity_timeout = inactivity(args, settings).unwrap_or(DEFAULT_INACTIVITY_SECONDS);
    let params = LoopSpec::new(prompt_file(&file)?, max_iterations, inactivity_timeout);
    let mut gates = gates(&args.gates, tasks)?;
    gates.runners.clone_from(&settings.runners);
    for (option, globs) in [("--protect", &mut gates.protect), ("--fix", &mut gates.rooms.fix)] {
        *globs = globs.iter().map(|glob| relative(&root, option, glob)).collect::<Result<_>>()?;
    }
    let asked = args.ralph.question_timeout.or(settings.ralph.question_timeout);
    let question_timeout = asked.unwrap_or(params.question_timeout);
    let reviewer = reviewer(&args.tasks, settings, sandbox)?;
    Ok(LoopSpec { gates, question_timeout, budgets: budgets(&args.budgets), reviewer, ..params })
}

fn relative(root: &Path, option: &str, glob: &str) -> Result<String> {
    if !Path::new(glob).is_absolute() {
        return Ok(glob.to_owned());
    }
    // Both may contain symbolic links.
    let (roots, globs) =
        ([root.to_owned(), paths::resolve(root)], [absolute(Path::new(glob))?, PathBuf::from(glob)]);
    let inside = globs.iter().find_map(|glob| roots.iter().find_map(|root| glob.strip_prefix(root).ok()));
    inside.and_then(Path::to_str).map(str::to_owned).ok_or_else(|| {
        Error::usage(format!("{option} '{glob}' is not in {}", root.display()))
            .hint(format!("{option} accepts files in the worker's directory"))
    })
}

/// Builds the gates from the command line. With a task list, the promise is not a gate.
pub(super) fn gates(args: &GateArgs, tasks: Option<TaskGate>) -> Result<Gates> {
    let usual = Gates::default();
    let promise = args.promise.as_deref().filter(|_| tasks.is_none()).map(Promise::new).transpose();
    let gates = Gates {
        checks: args.check.clone(),
        check_timeout: args.check_timeout.unwrap_or(usual.check_timeout),
        check_jobs: args.check_jobs.unwrap_or(usual.check_jobs),
        promise: promise
            .map_err(|e| Error::usage(format!("--promise: {e}")).hint("example: --promise COMPLETE"))?,
        min_tool_calls: args.min_tool_calls.unwrap_or(usual.min_tool_calls),
        on_promise_no_work: args.on_promise_no_work.unwrap_or(usual.on_promise_no_work),
        allow_preexisting: args.allow_preexisting,
        protect: args.protect.clone(),
        allow_changed_checks: args.allow_changed_checks,
        rooms: rooms(&args.rooms)?,
        protect_tests: args.protect_tests,
        runners: vec![],
        tests: test_gates(args).map_err(Error::of_gates)?,
        tasks,
    };
    gates.validated().map_err(Error::of_gates)
}

fn rooms(args: &RoomArgs) -> Result<RoomGates> {
    if args.final_tries.is_some() && args.final_check.is_empty() {
        return Err(Error::of_gates(RoomGates::tries_alone()));
    }
    let usual = RoomGates::default();
    Ok(RoomGates {
        final_checks: args.final_check.clone(),
        hidden: args.hidden.as_deref().map(absolute).transpose()?,
        final_tries: args.final_tries.unwrap_or(usual.final_tries),
        clean_check: args.clean_check,
        setup: args.setup.clone(),
        fix: args.fix.clone(),
    })
}

fn test_gates(args: &GateArgs) -> Result<TestGates, GatesError> {
    Ok(TestGates {
        no_canary: args.no_canary,
        canaries: args.canary.iter().map(|text| OwnCanary::parse(text)).collect::<Result<_, _>>()?,
        reports: args.report.iter().map(|text| ReportFile::parse(text)).collect::<Result<_, _>>()?,
    })
}

fn caps(args: &CapArgs, settings: &Settings, is_loop: bool) -> Caps {
    let defaults = settings.limits;
    Caps {
        memory: OptionLimit::or(args.memory, defaults.memory),
        cpu_percent: OptionLimit::or(args.cpus, defaults.cpu_percent),
        pids: OptionLimit::or(args.pids, defaults.pids),
        pressure: defaults.pressure.filter(|_| is_loop),
    }
}

pub(super) fn budgets(args: &BudgetArgs) -> Budgets {
    Budgets {
        max_time: OptionLimit::or(args.max_time, None),
        max_cost: OptionLimit::or(args.max_cost, None),
        max_tokens: args.max_tokens,
        max_failures: args.max_failures.unwrap_or(MAX_FAILURES),
        iteration_timeout: args.iteration_timeout,
        no_progress: args.no_progress,
        max_context: OptionLimit::or(args.max_context, None),
    }
}

/// The worker's directory. A sandbox is for a directory that no symbolic link leads to.
fn worker_directory(args: &Spawn, sandbox: Option<SandboxKind>) -> Result<PathBuf> {
    let typed = directory(args.cwd.as_deref())?;
    let real = if sandbox.is_some() { paths::resolve(&typed) } else { typed };
    if sandbox == Some(SandboxKind::Bwrap) && !args.worktree.worktree {
        check_directory(&real)?;
    }
    Ok(real)
}

fn command(args: &Spawn, settings: &Settings) -> Result<Vec<String>> {
    let cmd =
        if args.cmd.is_empty() { settings.command.clone().unwrap_or_default() } else { args.cmd.clone() };
    if cmd.first().is_none_or(String::is_empty) {
        return Err(Error::new(ErrorCode::Usage, "no command given; put it after --")
            .hint("set `command` in the settings, or: swarm spawn --name agent -- claude"));
    }
    Ok(cmd)
}

fn worktree(args: &Spawn) -> Result<Option<WorktreeSpec>> {
    if !args.worktree.worktree {
        return Ok(None);
    }
    let dir = args.worktree.worktree_dir.as_deref().map(absolute).transpose()?;
    Ok(Some(WorktreeSpec { branch: args.worktree.branch.clone(), dir }))
}

/// Returns the socket of `--tmux-socket`. One with a `/` is a path, relative to the current directory.
fn tmux_socket(args: &Spawn) -> Result<Option<String>> {
    match args.worker.tmux_socket.as_deref() {
        None => Ok(None),
        Some("") => {
            Err(Error::usage("--tmux-socket is empty").hint("give a socket path, or a name as for tmux -L"))
        }
        Some(path) if path.contains('/') => {
            let path = absolute(Path::new(path))?.into_os_string().into_string();
            path.map(Some).map_err(|_| Error::invalid("the tmux socket's path is not UTF-8"))
        }
        Some(name) => Ok(Some(name.to_owned())),
    }
}

fn done_pattern(args: &Spawn, settings: &Settings, warnings: &mut Vec<String>) -> Result<Option<String>> {
    let from_settings = if args.ralph.ralph { settings.ralph.done_pattern.clone() } else { None };
    let Some(text) = args.prompt.done_pattern.clone().or(from_settings) else { return Ok(None) };
    let pattern = match Pattern::compile(&text) {
        Ok(pattern) if !text.is_empty() => pattern,
        Ok(_) => return Err(Error::usage("invalid done pattern: it is empty")),
        Err(e) => return Err(Error::usage(format!("invalid done pattern: {}", e.trouble()))),
    };
    if pattern.matches_everything() {
        warnings.push(format!("the done pattern {text:?} matches any output, so the loop ends at once"));
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests;
