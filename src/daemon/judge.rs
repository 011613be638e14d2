//! The end of a run: take its output, close its pane, try the gates.
//!
//! Nothing that an agent printed may be lost, so the pane is closed only after its history and last screen
//! were stored. Doing it twice (a daemon that was killed half-way) stores once: the verdict is written
//! down in the run's folder when the output is safe. The supervisor removes that folder once it has saved
//! what follows.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use swarm_state::gates::Verdict;
use swarm_state::model::{Exit, Pane, Run, WorkerSpec};
use tokio::time::sleep;

use super::crash;
use super::driver::{Context, Report, SharedReader};
use crate::error::Error;
use crate::store::write_unsynced;
use crate::tmux::Health;

/// Between two tries to read or store the output.
const AGAIN: Duration = Duration::from_secs(2);

/// The mark's words; anything else is no mark.
const DONE: &[u8] = b"done";
const NOT_DONE: &[u8] = b"not done";

/// Stores the output of a run, closes its pane, and says what the gates say.
pub(crate) async fn judge(
    context: &Context,
    run: Run,
    exit: Exit,
    iteration: Option<u32>,
    pane: Option<&Pane>,
    spec: &WorkerSpec,
    reader: &SharedReader,
) -> Verdict {
    let mark = context.run_dir(run).join("verdict");
    let said = std::fs::read(&mark).ok().filter(|said| [DONE, NOT_DONE].contains(&said.as_slice()));
    let verdict = match said {
        Some(said) => {
            Verdict { done_pattern: spec.done_pattern.as_ref().map(|_| said == DONE), ..Verdict::default() }
        }
        None => {
            let output = output_of(context, pane).await;
            store(context, run, exit, iteration, &output).await;
            crash::point("stored");
            let verdict = try_gates(spec, reader, &output);
            // Without the mark the output would at worst be stored twice.
            drop(write_unsynced(&mark, if verdict.is_complete() { DONE } else { NOT_DONE }));
            crash::point("verdict");
            verdict
        }
    };
    if let Some(pane) = pane {
        // A window that cannot be closed now is an orphan that the next start finds.
        drop(context.tmux.close(pane).await);
    }
    verdict
}

fn try_gates(spec: &WorkerSpec, reader: &SharedReader, output: &str) -> Verdict {
    let done = || reader.lock().is_ok_and(|reader| reader.done_in(output));
    Verdict { done_pattern: spec.done_pattern.as_ref().map(|_| done()), ..Verdict::default() }
}

/// All that is left in the pane, history first. A tmux that does not answer is waited for.
async fn output_of(context: &Context, pane: Option<&Pane>) -> String {
    let Some(pane) = pane else { return String::new() };
    loop {
        match context.tmux.capture(&pane.id, u32::MAX).await {
            Ok(Some(captured)) => return captured.text.trim_end().to_owned(),
            Ok(None) => return String::new(),
            Err(error) if is_hurried(context) || context.tmux.health().await != Health::Unresponsive => {
                context.report(Report::Warning(format!("the output of the run was not read: {error}")));
                return String::new();
            }
            Err(_) => {
                context.report(Report::Silent);
                sleep(AGAIN).await;
            }
        }
    }
}

/// Stores the output. A full disk is waited for: until then the pane keeps it.
async fn store(context: &Context, run: Run, exit: Exit, iteration: Option<u32>, output: &str) {
    let mut told = false;
    while let Err(error) = keep(context, run, exit, iteration, output) {
        if is_hurried(context) {
            return context.report(Report::Warning(format!("the output of run {run} is lost: {error}")));
        }
        if !std::mem::replace(&mut told, true) {
            let message = format!("the output of run {run} was not stored, trying again: {error}");
            context.report(Report::Warning(message));
        }
        sleep(AGAIN).await;
    }
}

fn is_hurried(context: &Context) -> bool {
    context.hurry.load(Ordering::Relaxed)
}

fn keep(context: &Context, run: Run, exit: Exit, iteration: Option<u32>, output: &str) -> Result<(), Error> {
    let (store, name) = (&context.store, &context.name);
    let at = super::local_now().to_rfc3339();
    let what = iteration.map_or_else(|| format!("run {run}"), |i| format!("iteration {i}"));
    store.append_worker_log(name, &format!("=== {what}, ended {at}, exit {exit} ==="), output)?;
    if let Some(iteration) = iteration {
        store.write_iteration_file(name, iteration, "output.txt", output.as_bytes())?;
        let result = json!({"iteration": iteration, "run": run, "exit_code": exit.code(), "signal": exit.signal(), "ended": at});
        store.write_iteration_file(name, iteration, "result.json", format!("{result}\n").as_bytes())?;
    }
    Ok(())
}
