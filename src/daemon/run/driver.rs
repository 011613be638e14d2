//! A worker's driver: a task with a queue that carries out jobs in order.
//!
//! The queue holds what must happen in order: start a run, deliver a prompt, type text, store the output. A slow git
//! or a hung tmux delays only this worker. What must never wait, such as ending a process tree, runs outside the
//! queue ([`super::exit`]). The driver decides nothing: each result goes to the supervisor as a [`RunReport`].

use std::path::{Path, PathBuf};
use std::time::Duration;

use swarm_state::engine::{Effect, Ended, Event, SpawnError};
use swarm_state::model::{Pane, PromptVia, Run, Worktree};
use swarm_state::spec::{Prompt, WorkerSpec};
use swarm_state::tasks::gate::TaskGate;
use tokio::sync::{mpsc, oneshot};

use crate::daemon::crash;
use crate::daemon::messages::{
    AgentInput, EndedRun, Job, RunReport, SharedReader, SpawnJob, WorktreeRemoval,
};
use crate::daemon::run::context::RunContext;
use crate::daemon::run::delivery::AgentPane;
use crate::daemon::run::hook_reports::HookRecord;
use crate::daemon::run::{delivery, exit, finish, input, iteration, remove_worktree, sandbox};
use crate::error::{Error, ErrorCode, Result};
use crate::hooks::passed::Launch;
use crate::loops::{CONTRACT_FILE, refuse_uncommitted_list, renew_marker};
use crate::protocol::{Sent, StoriesPlan};
use crate::tmux::{Health, NewWindow};
use crate::wrapper::{self, LaunchSpec};
use crate::{git, procs};

/// How long the start of a run waits for the wrapper in the pane, and how often it checks.
const WRAPPER_START_TIMEOUT: Duration = Duration::from_secs(10);
const WRAPPER_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// The handle of a driver task, which ends when the handle is dropped and its queue is empty.
pub(crate) struct Driver {
    queue: mpsc::UnboundedSender<Job>,
    pub(crate) context: RunContext,
}

impl Driver {
    pub(crate) fn start(context: RunContext) -> Self {
        let (queue, mut jobs) = mpsc::unbounded_channel();
        let own = context.clone();
        tokio::spawn(async move {
            while let Some(job) = jobs.recv().await {
                work(&own, job).await;
            }
        });
        Self { queue, context }
    }

    pub(crate) fn push(&self, job: Job) {
        // The task lives as long as the handle; a send can only fail while the runtime shuts down.
        drop(self.queue.send(job));
    }

    /// Puts the removal of a worktree at the end of the queue. Returns where its outcome arrives.
    pub(crate) fn remove_worktree(
        &self,
        worktree: Worktree,
        removal: WorktreeRemoval,
    ) -> oneshot::Receiver<Result<git::Removed>> {
        let (reply, removed) = oneshot::channel();
        self.push(Job::RemoveWorktree { worktree, removal, reply });
        removed
    }
}

async fn work(context: &RunContext, job: Job) {
    match job {
        Job::Spawn(job) => {
            let spawned = spawn(context, &job).await;
            report_spawned(context, &job, spawned);
        }
        Job::Deliver { pane, reader } => {
            let outcome = delivery::prompt(AgentPane { context, pane: &pane, reader: &reader }).await;
            crash::after(&Effect::Deliver(pane.run));
            context.report(RunReport::Prompt(pane.run, outcome));
        }
        Job::Type { pane, reader, what, expects_dialog, reply } => {
            let at = AgentPane { context, pane: &pane, reader: &reader };
            let outcome = match what {
                AgentInput::Text(params) => {
                    delivery::typed(at, &params, expects_dialog).await.map_err(|error| match error.code {
                        // The worker exists, but its agent has ended.
                        ErrorCode::NotFound => Error { code: ErrorCode::Conflict, ..error },
                        _ => error,
                    })
                }
                AgentInput::Eof => delivery::eof(at).await.map(|()| None),
            };
            // Before the answer: a client that then waits for the end of the turn must not see the previous turn's end.
            context.report(RunReport::Event(Event::Typed(pane.run)));
            reply.answer(outcome.map(|warning| Sent { warnings: warning.into_iter().collect() }));
        }
        Job::Evaluate { mut ended, end_if_delivered, spec, reader } => {
            ended.end = ended_as(context, ended.run, ended.end, end_if_delivered);
            evaluate(context, &ended, &spec, &reader).await;
        }
        Job::OpenTaskFiles(loop_run) => sandbox::open_task_files(context, &loop_run),
        Job::RenewMarker(loop_run) => renew_marker(&loop_run),
        Job::RemoveWorktree { worktree, removal, reply } => {
            crash::point("remove");
            let removed = remove_worktree::remove(context, &worktree, removal).await;
            crash::point("remove+");
            drop(reply.send(removed));
        }
    }
}

async fn evaluate(context: &RunContext, ended: &EndedRun, spec: &WorkerSpec, reader: &SharedReader) {
    let iteration_run = |iteration| iteration::IterationRun { context, spec, cwd: &ended.cwd, iteration };
    let reviewer = ended.iteration.as_ref().and_then(|iteration| iteration_run(iteration).reviewer());
    sandbox::leave_docker(context, spec, &ended.cwd, ended.exit, ended.end.as_ref()).await;
    let verdict = finish::evaluate(context, ended, reviewer.as_ref().unwrap_or(spec), reader).await;
    sandbox::note_files(context, spec, &ended.cwd).await;
    crash::after(&Effect::Evaluate(ended.run));
    context.report(RunReport::Evaluated(ended.run, verdict));
    if let Some(iteration) = &ended.iteration {
        // In a task of its own, because nothing has to wait for it.
        let (store, name, number) = (context.store.clone(), context.name.clone(), iteration.number);
        tokio::task::spawn_blocking(move || store.sync_iteration(&name, number));
    }
}

/// Reports a run that was started and watches for its end, or cleans up after one that could not be started.
fn report_spawned(context: &RunContext, job: &SpawnJob, spawned: Result<Pane, SpawnError>) {
    let SpawnJob { run, iteration, spec, .. } = job;
    match spawned {
        Ok(pane) => {
            crash::after(&Effect::Spawn(*run));
            context.report(RunReport::Up(pane.clone()));
            exit::watch(context, pane);
        }
        Err(error) => {
            if let (SpawnError::Other(why) | SpawnError::Helper(why), Some(iteration)) = (&error, iteration) {
                iteration::write_unstarted(context, spec, iteration, *run, why);
            }
            // The supervisor removes the rest as soon as the worker is saved.
            drop(context.store.clear_run_dir(&context.name, *run));
            context.report(RunReport::SpawnFailed(*run, error));
        }
    }
}

/// Why a run ended; a daemon that delivered its prompt may have died before it reported that.
fn ended_as(
    context: &RunContext,
    run: Run,
    end: Option<Ended>,
    end_if_delivered: Option<Ended>,
) -> Option<Ended> {
    if end == end_if_delivered || !delivery::was_delivered(&context.run_dir(run)) {
        return end;
    }
    context.report(RunReport::Event(Event::PromptSent(run)));
    end_if_delivered
}

/// Starts a run: worktree, prompt, launch file, window. If that fails, only the worktree remains, for the next run.
async fn spawn(context: &RunContext, job: &SpawnJob) -> Result<Pane, SpawnError> {
    let (run, iteration, reader, mut spec) = (job.run, &job.iteration, &job.reader, &*job.spec);
    let other = |error: Error| sandbox::spawn_error(context, &error);
    let cwd = tree(context, job).await.map_err(other)?;
    if !cwd.is_dir() {
        return Err(SpawnError::Other(format!("no such directory: {}", cwd.display())));
    }
    sandbox::open_docker(context, spec, run, &cwd).await.map_err(other)?;
    let mut prompt = crate::daemon::run::prompt::next(spec).map_err(SpawnError::Prompt)?;
    let mut session = None;
    let reviewer;
    if let Some(iteration) = iteration {
        let iteration_run = iteration::IterationRun { context, spec, cwd: &cwd, iteration };
        prompt = iteration_run.contract(prompt).await?;
        reviewer = iteration_run.reviewer();
        if let Some(reviewer) = &reviewer {
            spec = reviewer;
            input::replace_reader(spec, reader);
        }
        session = iteration::IterationRun { spec, ..iteration_run }.session(run);
    }
    let dir = context.store.prepare_run_dir(&context.name, run).map_err(other)?;
    // From here on the prompt is fixed, even if its file changes.
    if let Some(prompt) = &prompt {
        input::keep_prompt(&dir, prompt, reader).map_err(other)?;
    }
    let mut launch = launch_spec(context, spec, &cwd, &dir, prompt.as_deref()).map_err(other)?;
    if let Some(session) = session {
        launch.argv = spec.profile.command_with_session(&launch.argv, &session);
        HookRecord { session: Some(session), ..HookRecord::default() }.keep(&dir);
    }
    launch.env.insert("SWARM_RUN".into(), run.to_string());
    pass_hooks(context, spec, &dir, &mut launch);
    launch = sandbox::enter(context, (spec, run), &dir, launch).await.map_err(other)?;
    if let (Some(iteration), Some(prompt)) = (iteration, &prompt) {
        let kept = context.store.write_iteration_file(&context.name, iteration.number, CONTRACT_FILE, prompt);
        kept.map_err(other)?;
    }
    launch.write(&dir).map_err(|e| other(Error::system("cannot write the launch file", e)))?;
    crash::point("launch");
    let program = context.helper.path();
    let window = NewWindow {
        name: spec.name.to_string(),
        cwd,
        argv: wrapper::pane_argv(program, &dir),
        worker: spec.name.to_string(),
        run: run.0,
        size: spec.size,
        record: spec.record.then(|| {
            let file = context.store.paths().record_file(&spec.name);
            vec![program.as_os_str().to_owned(), "__record".into(), file.into()]
        }),
    };
    let pane = make_window(context, &window).await.map_err(other)?;
    if has_read_launch(&dir, &pane).await {
        warn_of_caps(context, run, spec, &dir);
        return Ok(pane);
    }
    // The sweep closes the dead pane if this fails.
    drop(context.tmux.close(&pane).await);
    Err(SpawnError::Helper(exit::wrapper_failure(program)))
}

/// Reports the caps that are not enforced as requested, once for each worker.
fn warn_of_caps(context: &RunContext, run: Run, spec: &WorkerSpec, dir: &Path) {
    let shortfall = wrapper::caps_in_force(dir).and_then(|in_force| spec.caps.shortfall(&in_force));
    if let Some(warning) = shortfall.filter(|_| run == Run(1)) {
        context.report(RunReport::Begun(vec![warning]));
    }
}

/// Waits until the wrapper in a pane has read the launch file. Returns false if it ended before. After the timeout it
/// returns true: the watch on the wrapper notices its end too.
async fn has_read_launch(dir: &Path, pane: &Pane) -> bool {
    let until = tokio::time::Instant::now() + WRAPPER_START_TIMEOUT;
    while !wrapper::has_read_launch(dir) && tokio::time::Instant::now() < until {
        if !procs::is_alive(pane.pid) {
            return wrapper::has_read_launch(dir);
        }
        tokio::time::sleep(WRAPPER_CHECK_INTERVAL).await;
    }
    true
}

/// The directory of a run: its worktree, which is created if needed, or the worker's directory.
async fn tree(context: &RunContext, job: &SpawnJob) -> Result<PathBuf> {
    let SpawnJob { run, spec, worktree, .. } = job;
    let Some(wanted) = &spec.worktree else { return Ok(spec.cwd.clone()) };
    let (store, name) = (&context.store, &context.name);
    let begun = store.noted_worktree(name, *run);
    if let (Some(made), None) = (worktree, &begun) {
        return Ok(made.path.clone());
    }
    if let Some(begun) = begun
        && git::settle_worktree(&begun).await?
    {
        context.report(RunReport::WorktreeMade(begun.clone()));
        return Ok(begun.path);
    }
    if let Some(gate) = planned_list(spec) {
        refuse_uncommitted_list(&spec.cwd, &gate).await?;
    }
    let note = |worktree: &Worktree| store.note_worktree(name, *run, worktree);
    let made = match git::create_worktree(&spec.cwd, name, wanted, note).await {
        Ok(made) => made,
        Err(error) => {
            if worktree.is_some() {
                context.report(RunReport::WorktreeGone);
            }
            return Err(error);
        }
    };
    crash::point("worktree");
    let path = made.worktree.path.clone();
    context.report(RunReport::WorktreeMade(made.worktree));
    if let Some(note) = made.note {
        context.warn(note);
    }
    Ok(path)
}

/// The task list of a loop, or of the coordinator of its stories. That of a single story is on their branch.
fn planned_list(spec: &WorkerSpec) -> Option<TaskGate> {
    let gate = match (&spec.ralph, &spec.prompt) {
        (Some(ralph), _) => ralph.gates.tasks.clone(),
        (None, Prompt::Text(plan)) if spec.cmd.last().is_some_and(|word| word == "__stories") => {
            serde_json::from_str::<StoriesPlan>(plan).ok()?.child.ralph?.gates.tasks
        }
        (None, _) => None,
    };
    gate.filter(|gate| gate.story.is_none())
}

/// Creates the window. Waits for a tmux that does not answer, which may have created the window meanwhile.
async fn make_window(context: &RunContext, window: &NewWindow) -> Result<Pane> {
    let tmux = &context.tmux;
    loop {
        let error = match tmux.ensure_server().await {
            Ok(_) => match tmux.new_window(window.clone()).await {
                Ok(pane) => return Ok(pane),
                Err(error) => error,
            },
            Err(error) => error,
        };
        if error.code != ErrorCode::Timeout || context.is_hurried() {
            return Err(error);
        }
        context.report(RunReport::Silent);
        while matches!(tmux.health().await, Health::Unresponsive) {
            if context.is_hurried() {
                return Err(error);
            }
            context.report(RunReport::Frozen);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        if let (Ok(rows), Health::Alive { pid }) = (tmux.list().await, tmux.health().await)
            && let Some(row) = rows.iter().find(|r| {
                !r.dead && r.worker.as_deref() == Some(window.worker.as_str()) && r.run == Some(window.run)
            })
        {
            let (id, at) = (row.pane.clone(), row.window.clone());
            return Ok(Pane { run: Run(window.run), id, window: at, pid: row.pid, server_pid: pid });
        }
    }
}

/// The agent's argv, environment and standard input.
fn launch_spec(
    context: &RunContext,
    spec: &WorkerSpec,
    cwd: &Path,
    dir: &Path,
    prompt: Option<&[u8]>,
) -> Result<LaunchSpec> {
    let env = context.environment(spec);
    let mut argv = spec.cmd.clone();
    let mut stdin = None;
    match (spec.prompt_via, prompt) {
        (_, None) => {}
        (PromptVia::Arg, Some(prompt)) => {
            let text = std::str::from_utf8(prompt).ok().filter(|text| !text.contains('\0'));
            let text =
                text.ok_or_else(|| Error::invalid("the prompt is not UTF-8 text and cannot be an argument"))?;
            argv = spec.profile.command_with_prompt(&argv, text);
        }
        (PromptVia::Stdin, Some(_)) => {
            argv = spec.profile.command_for_stdin(&argv);
            stdin = Some(dir.join(input::RUN_PROMPT_FILE));
        }
        // The prompt is pasted when the agent is ready.
        (PromptVia::Paste | PromptVia::Auto, Some(_)) => {}
    }
    // Processes that a run leaves behind would disturb the next run.
    let end_leftovers = spec.ralph.is_some() || spec.restart.is_some();
    let sandboxed = spec.sandbox.is_some();
    if sandboxed {
        argv = spec.profile.command_without_sandbox(&argv);
    }
    let (cwd, caps, placeholders) = (cwd.to_owned(), spec.caps, vec![]);
    Ok(LaunchSpec { argv, env, cwd, stdin, end_leftovers, caps, sandboxed, proxy: None, placeholders })
}

/// Passes swarm's hooks to the agent. Without hooks, swarm relies on the screen alone.
fn pass_hooks(context: &RunContext, spec: &WorkerSpec, dir: &Path, launch: &mut LaunchSpec) {
    let Some(program) = sandbox::hook_program(spec, context.helper.path()) else { return };
    let LaunchSpec { argv, env, cwd, sandboxed, .. } = launch;
    let passing = Launch { profile: &spec.profile, argv, env, cwd, sandboxed: *sandboxed };
    if let Err(error) = passing.pass(program, dir) {
        context.warn(format!("swarm's hooks were not passed to the agent: {error}"));
    }
}
