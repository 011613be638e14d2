//! The Stop hook of an agent that works on a task list: collects the facts for `swarm_state::tasks::stop_check`.
//!
//! It is active where `.ralph-active` is, in the agent's directory or one above it in the same project. On any failure,
//! and when its time is over, the stop is allowed. Used by [`super::run`].

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use swarm_state::docker::INNER_PROGRAM;
use swarm_state::tasks::gate::TASKS_FILE;
use swarm_state::tasks::marker::{MARKER_FILE, RalphMarker};
use swarm_state::tasks::stop_check::{StopCheck, StopFacts, stop_check};

use crate::files::{read_bounded, sha256};
use crate::git;
use crate::runtime::block_on;
use crate::task_files::TASK_DIR;

/// How long the check may take. After that the stop is allowed.
const STOP_CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// The largest file that is read.
const MAX_STOP_FILE_BYTES: u64 = 16 << 20;

/// The agent that is about to stop: its directories, and the worker that it belongs to.
pub(super) struct StoppingAgent<'a> {
    /// The directory of the session, and the project's.
    pub(super) around: &'a [PathBuf],
    /// The agent's worker, if swarm started it.
    pub(super) worker: Option<&'a str>,
    /// The directory of that worker's swarm.
    pub(super) swarm_dir: Option<&'a str>,
}

/// Decides the stop; the default allows it.
pub(super) fn check(agent: &StoppingAgent<'_>) -> StopCheck {
    let until = Instant::now() + STOP_CHECK_TIMEOUT;
    let Some((project, marker)) = agent.around.iter().find_map(|dir| find(dir)) else {
        return StopCheck::default();
    };
    // A Docker sandbox is for one worker, and its agent has none of the worker's variables.
    let is_in_docker = std::env::current_exe().is_ok_and(|program| program == Path::new(INNER_PROGRAM));
    if !is_in_docker && !marker.binds(agent.worker, agent.swarm_dir) {
        return StopCheck::default();
    }
    let dir = marker.ralph_dir.clone().unwrap_or_else(|| TASK_DIR.into());
    let file = format!("{dir}/{TASKS_FILE}");
    let tasks = read_bounded(&project.join(&file), MAX_STOP_FILE_BYTES);
    let tasks = tasks.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "is missing".to_owned(),
        _ => format!("cannot be read: {error}"),
    });
    let tasks = tasks.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned()));
    let status = status(&project, until);
    let is_untouched = |(file, hash): &(&String, &String)| {
        read_bounded(&project.join(file), MAX_STOP_FILE_BYTES).is_ok_and(|bytes| sha256(&bytes) == **hash)
    };
    let untouched = marker.start_hashes.iter().filter(is_untouched).map(|(file, _)| file.clone());
    let untouched: Vec<String> = untouched.collect();
    let facts = StopFacts {
        marker: &marker,
        tasks_file: &file,
        tasks: tasks.as_deref().map_err(String::as_str),
        status: status.as_deref(),
        untouched: &untouched,
    };
    if Instant::now() > until { StopCheck::default() } else { stop_check(facts) }
}

/// The nearest marker in a directory or above it, up to the root of its repository.
fn find(dir: &Path) -> Option<(PathBuf, RalphMarker)> {
    for dir in dir.ancestors() {
        if let Ok(bytes) = read_bounded(&dir.join(MARKER_FILE), MAX_STOP_FILE_BYTES) {
            return Some((dir.to_owned(), RalphMarker::parse(&String::from_utf8_lossy(&bytes))));
        }
        if dir.join(".git").exists() {
            return None;
        }
    }
    None
}

/// The output of `git status --porcelain`; `None` if git does not answer in time.
fn status(project: &Path, until: Instant) -> Option<String> {
    let left = until.saturating_duration_since(Instant::now());
    block_on(async { tokio::time::timeout(left, git::status(project)).await }).ok()?.ok()?.ok()
}
