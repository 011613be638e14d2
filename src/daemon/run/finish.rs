//! Finishes a run that ended: stores its output, closes its pane, evaluates the gates.
//!
//! The pane is closed only after its history and last screen were stored, so that no output is lost. If a daemon dies
//! half-way, the next one stores nothing twice: a copy in the run's folder shows that the output is stored, and the
//! verdict is written beside it. The supervisor removes the folder after it has saved the result. Evaluating the
//! gates of a loop ([`super::iteration`]) may take long; a kill cuts it short.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, FixedOffset, Local};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use swarm_state::gates::Verdict;
use swarm_state::model::Pane;
use swarm_state::spec::WorkerSpec;
use tokio::time::sleep;

use crate::daemon::messages::{EndedRun, RunReport, SharedReader};
use crate::daemon::run::context::RunContext;
use crate::daemon::run::hook_reports::HookRecord;
use crate::daemon::run::iteration::IterationRun;
use crate::daemon::{crash, watcher};
use crate::error::Result;
use crate::signed::Purpose;
use crate::store::write_unsynced;
use crate::tmux::Health;

/// The delay before reading the output is retried.
const OUTPUT_RETRY_DELAY: Duration = Duration::from_secs(2);

/// The line in a log above the agent's transcript.
const TRANSCRIPT_HEADER: &str = "--- transcript ---";

pub(crate) async fn evaluate(
    context: &RunContext,
    ended: &EndedRun,
    spec: &WorkerSpec,
    reader: &SharedReader,
) -> Verdict {
    let kept = KeptFile { context, ended, name: VERDICT_FILE };
    let verdict = match kept.read() {
        Some(verdict) => verdict,
        None => {
            let output = kept_output(context, ended, spec).await;
            crash::point("stored");
            let verdict = try_gates(context, ended, spec, reader, &output).await;
            // Without this file the gates would be evaluated twice in the worst case.
            kept.write(&verdict);
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
    // An earlier look may have found text that is gone now; the last capture has text from after all looks.
    let done = || ended.evidence.done || reader.lock().is_ok_and(|reader| reader.done_in(output));
    let done_pattern = spec.done_pattern.as_ref().map(|_| done());
    let Some(iteration) = &ended.iteration else {
        return Verdict { done_pattern, ..Verdict::default() };
    };
    let iteration_run = IterationRun { context, spec, cwd: &ended.cwd, iteration };
    iteration_run.conclude(ended.run, ended.exit, ended.end.clone(), output, done_pattern).await
}

/// Stores the run's output and returns it. Output that an earlier daemon stored is not stored again.
async fn kept_output(context: &RunContext, ended: &EndedRun, spec: &WorkerSpec) -> String {
    let kept = KeptFile { context, ended, name: OUTPUT_FILE };
    if let Some(KeptOutput { output }) = kept.read() {
        return output;
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
    let copy = KeptOutput { output };
    kept.write(&copy);
    copy.output
}

const VERDICT_FILE: &str = "verdict";
const OUTPUT_FILE: &str = "output";

#[derive(Serialize, Deserialize)]
struct KeptOutput {
    output: String,
}

/// A file in the run's folder with a completed step of the finish. It is signed: the agent can write there.
struct KeptFile<'a> {
    context: &'a RunContext,
    ended: &'a EndedRun,
    name: &'static str,
}

impl KeptFile<'_> {
    /// The value; `None` if there is none, or if the daemon did not write it.
    fn read<T: DeserializeOwned>(&self) -> Option<T> {
        let bytes = std::fs::read(self.path()).ok()?;
        let value = self.context.store.key().open(self.purpose(), &bytes);
        if value.is_none() {
            let message = format!("'{}' was ignored: swarm did not write it", self.path().display());
            self.context.warn(message);
        }
        value
    }

    /// Writes the value, if the disk has room.
    fn write(&self, value: &impl Serialize) {
        let signed = self.context.store.key().sign(self.purpose(), value);
        drop(signed.and_then(|bytes| write_unsynced(&self.path(), &bytes)));
    }

    fn path(&self) -> PathBuf {
        self.context.run_dir(self.ended.run).join(self.name)
    }

    fn purpose(&self) -> Purpose<'_> {
        let id = self.ended.iteration.as_ref().map(|iteration| iteration.id.as_str());
        let (name, run) = (self.context.name.as_str(), self.ended.run.0);
        match self.name {
            VERDICT_FILE => Purpose::Verdict(name, id, run),
            _ => Purpose::Output(name, id, run),
        }
    }
}

/// The agent's messages and tool calls, from its transcript. The screen shows only the last of them.
async fn story(context: &RunContext, ended: &EndedRun, spec: &WorkerSpec, output: &str) -> Option<String> {
    let dir = context.run_dir(ended.run);
    let record = HookRecord::of(&dir);
    let session = spec.profile.takes_session(&spec.cmd).then_some(record.session).flatten();
    let started = match &ended.iteration {
        Some(iteration) => iteration.started,
        None => dir.join("started").metadata().and_then(|file| file.modified()).ok().map(local),
    };
    let (env, output) = (context.environment(spec), output.to_owned());
    let read =
        move || crate::loops::story(&env, session.as_deref(), record.transcript.as_deref(), &output, started);
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
                context.warn(format!("the output of the run was not read: {error}"));
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
