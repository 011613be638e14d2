//! Finishes a run that ended: stores its output, closes its pane, evaluates the gates.
//!
//! The pane is closed only after its history and last screen were stored, so that no output is lost. If a daemon dies
//! half-way, the next one stores nothing twice: a copy in the run's folder shows that the output is stored, and the
//! verdict is written beside it. The supervisor removes the folder after it has saved what follows. Evaluating the
//! gates of a loop ([`super::iteration`]) may take long; a kill cuts it short.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, FixedOffset, Local};
use swarm_state::engine::{Ended, Evidence};
use swarm_state::gates::Verdict;
use swarm_state::model::{Exit, Pane, Run};
use swarm_state::spec::WorkerSpec;
use tokio::time::sleep;

use crate::daemon::messages::{IterationInfo, RunReport, SharedReader};
use crate::daemon::run::context::RunContext;
use crate::daemon::run::hook_reports::HookRecord;
use crate::daemon::run::iteration::IterationRun;
use crate::daemon::{crash, watcher};
use crate::error::Result;
use crate::store::write_unsynced;
use crate::tmux::Health;

/// The delay before reading the output is retried.
const OUTPUT_RETRY_DELAY: Duration = Duration::from_secs(2);

/// The line in a log above the agent's transcript.
const TRANSCRIPT_HEADER: &str = "--- transcript ---";

/// A run that ended.
pub(crate) struct EndedRun {
    pub(crate) run: Run,
    /// How.
    pub(crate) exit: Exit,
    /// The evidence that was collected while it ran.
    pub(crate) evidence: Evidence,
    /// Why, where it was an iteration.
    pub(crate) end: Option<Ended>,
    /// Which iteration it was; `None` for a plain worker.
    pub(crate) iteration: Option<IterationInfo>,
    /// Its pane, where there still is one.
    pub(crate) pane: Option<Pane>,
    /// Its working directory.
    pub(crate) cwd: PathBuf,
}

/// Stores the output of a run, closes its pane, and evaluates the gates.
pub(crate) async fn judge(
    context: &RunContext,
    ended: &EndedRun,
    spec: &WorkerSpec,
    reader: &SharedReader,
) -> Verdict {
    let mark = context.run_dir(ended.run).join("verdict");
    let verdict = match std::fs::read(&mark).ok().and_then(|json| serde_json::from_slice(&json).ok()) {
        Some(verdict) => verdict,
        None => {
            let output = kept_output(context, ended, spec).await;
            crash::point("stored");
            let verdict = try_gates(context, ended, spec, reader, &output).await;
            // Without this file the gates would be evaluated twice in the worst case.
            drop(serde_json::to_vec(&verdict).map(|bytes| write_unsynced(&mark, &bytes)));
            crash::point("verdict");
            verdict
        }
    };
    // The sweep closes the dead pane if this fails.
    if let Some(pane) = &ended.pane
        && context.tmux.close(pane).await.is_err()
    {
        context.report(RunReport::Unclosed);
    }
    verdict
}

async fn try_gates(
    context: &RunContext,
    ended: &EndedRun,
    spec: &WorkerSpec,
    reader: &SharedReader,
    output: &str,
) -> Verdict {
    // An earlier look may have found text that is gone now; the last capture has text that was printed after all
    // looks.
    let done = || ended.evidence.done || reader.lock().is_ok_and(|reader| reader.done_in(output));
    let done_pattern = spec.done_pattern.as_ref().map(|_| done());
    let Some(iteration) = &ended.iteration else {
        return Verdict { done_pattern, ..Verdict::default() };
    };
    let lap = IterationRun { context, spec, cwd: &ended.cwd, iteration };
    lap.conclude(ended.run, ended.exit, ended.end.clone(), output, done_pattern).await
}

/// Stores the run's output and returns it. Output that an earlier daemon stored is not stored again.
async fn kept_output(context: &RunContext, ended: &EndedRun, spec: &WorkerSpec) -> String {
    let copy = context.run_dir(ended.run).join("output");
    if let Ok(bytes) = std::fs::read(&copy) {
        return String::from_utf8_lossy(&bytes).into_owned();
    }
    let output = output_of(context, ended.pane.as_ref()).await;
    let iteration = ended.iteration.as_ref().map(|iteration| iteration.number);
    // The text of a closed pane is gone, so the log gets the screen of the last look.
    let mut logged =
        if output.is_empty() { watcher::last_look(&context.run_dir(ended.run)) } else { output.clone() };
    if let Some(story) = story(context, ended, spec, &output).await {
        logged = format!("{logged}\n\n{TRANSCRIPT_HEADER}\n{story}");
    }
    let what = format!("the output of run {}", ended.run);
    // The pane keeps the output until it is stored.
    context.write_until_stored(&what, || keep(context, ended, iteration, &logged)).await;
    // Without the copy the output would be stored twice in the worst case.
    drop(write_unsynced(&copy, output.as_bytes()));
    output
}

/// The agent's messages and tool calls, from its transcript. The screen shows only the last of them.
async fn story(context: &RunContext, ended: &EndedRun, spec: &WorkerSpec, output: &str) -> Option<String> {
    let dir = context.run_dir(ended.run);
    let told = HookRecord::of(&dir);
    let session = spec.profile.takes_session(&spec.cmd).then_some(told.session).flatten();
    let started = match &ended.iteration {
        Some(iteration) => iteration.started,
        None => dir.join("started").metadata().and_then(|file| file.modified()).ok().map(local),
    };
    let (env, output) = (context.environment(spec), output.to_owned());
    let read =
        move || crate::loops::story(&env, session.as_deref(), told.transcript.as_deref(), &output, started);
    tokio::task::spawn_blocking(read).await.ok().flatten()
}

fn local(at: SystemTime) -> DateTime<FixedOffset> {
    DateTime::<Local>::from(at).fixed_offset()
}

/// The pane's history and screen. Waits for a tmux that does not answer.
async fn output_of(context: &RunContext, pane: Option<&Pane>) -> String {
    let Some(pane) = pane else { return String::new() };
    loop {
        match context.tmux.capture(&pane.id, u32::MAX).await {
            Ok(Some(captured)) => return captured.text.trim_end().to_owned(),
            Ok(None) => return String::new(),
            Err(error) if context.is_hurried() || context.tmux.health().await != Health::Unresponsive => {
                context.report(RunReport::Warning(format!("the output of the run was not read: {error}")));
                return String::new();
            }
            Err(_) => {
                context.report(RunReport::Silent);
                sleep(OUTPUT_RETRY_DELAY).await;
            }
        }
    }
}

fn keep(context: &RunContext, ended: &EndedRun, iteration: Option<u32>, output: &str) -> Result<()> {
    let (store, name, run) = (&context.store, &context.name, ended.run);
    let at = crate::daemon::clock::local_now().to_rfc3339();
    let what = iteration.map_or_else(|| format!("run {run}"), |i| format!("iteration {i}"));
    let exit = ended.end.as_ref().map_or_else(|| ended.exit.to_string(), |end| end.exit.word());
    store.append_worker_log(name, &format!("=== {what}, ended {at}, exit {exit} ==="), output)?;
    if let Some(iteration) = iteration {
        store.write_iteration_file(name, iteration, "output.txt", output.as_bytes())?;
    }
    Ok(())
}
