//! `.ralph-active` in the worker's directory. It exists while the loop is live.

use std::path::Path;

use chrono::{SecondsFormat, Utc};
use swarm_state::tasks::TaskList;
use swarm_state::tasks::gate::{PRD_FILE, PROMPT_FILE, TASKS_FILE, TaskGate, TaskTurn};
use swarm_state::tasks::marker::{MARKER_FILE, RalphMarker};

use super::files::read_text;
use crate::error::Result;
use crate::files::sha256;
use crate::loops::run::LoopRun;

pub(super) fn write(
    loop_run: &LoopRun,
    gate: &TaskGate,
    list: &TaskList,
    turn: &TaskTurn,
    (iteration, max): (u32, u32),
) -> Result<()> {
    let hash = |file| {
        let text = read_text(&loop_run.text_file(gate, file))?;
        Some((format!("{}/{file}", gate.dir), sha256(text.as_bytes())))
    };
    let marker = RalphMarker {
        timestamp: now(),
        pid: std::process::id(),
        max_iterations: max,
        mode: if loop_run.sandbox.is_some() { "sandbox" } else { "direct" }.into(),
        skip_review: gate.review.skip_review,
        review_cap: gate.review.review_cap,
        iteration_mode: Some(turn.mode),
        snapshot: Some(list.review_states()),
        iteration: Some(iteration),
        story: Some(turn.story.clone()),
        ralph_dir: Some(gate.dir.clone()),
        worker: Some(loop_run.name.clone()),
        start_hashes: [TASKS_FILE, PRD_FILE, PROMPT_FILE].into_iter().filter_map(hash).collect(),
        swarm_dir: Some(loop_run.root.display().to_string()),
    };
    loop_run.write_file(&loop_run.cwd.join(MARKER_FILE), &marker.to_text())
}

/// Replaces the pid of an earlier daemon in a loop's file, if the file is there.
pub(crate) fn renew(loop_run: &LoopRun) {
    let path = loop_run.cwd.join(MARKER_FILE);
    let Some(marker) = own(loop_run, &path) else { return };
    let marker = RalphMarker { pid: std::process::id(), timestamp: now(), ..marker };
    if let Err(error) = loop_run.write_file(&path, &marker.to_text()) {
        tracing::warn!(worker = loop_run.name, %error, "cannot renew .ralph-active");
    }
}

/// Removes the file if it is this loop's.
pub(super) fn remove(loop_run: &LoopRun) {
    let path = loop_run.cwd.join(MARKER_FILE);
    if own(loop_run, &path).is_some()
        && let Err(error) = loop_run.tree_files().remove(&path)
    {
        tracing::warn!(worker = loop_run.name, %error, "cannot remove .ralph-active");
    }
}

/// The process that a file of another swarm, or of another program, names, if that process lives.
pub(crate) fn foreign(cwd: &Path, root: &Path) -> Option<u32> {
    let marker = RalphMarker::parse(&read_text(&cwd.join(MARKER_FILE))?);
    let is_ours = marker.swarm_dir.as_deref() == Some(&root.display().to_string());
    let is_alive = i32::try_from(marker.pid).is_ok_and(|pid| pid > 0 && crate::procs::is_alive(pid));
    (!is_ours && is_alive).then_some(marker.pid)
}

/// The file, unless another program or another worker wrote it.
fn own(loop_run: &LoopRun, path: &Path) -> Option<RalphMarker> {
    let marker = RalphMarker::parse(&read_text(path)?);
    let root = loop_run.root.display().to_string();
    let is_own =
        marker.worker.as_deref() == Some(&loop_run.name) && marker.swarm_dir.as_deref() == Some(&root);
    is_own.then_some(marker)
}

fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true)
}
