//! Version 0: the Python predecessor's `state.json`, `{"workers":[…]}`.
//!
//! Its workers run on another tmux server, or without tmux, so swarm has only the contents of the file. They become
//! records with a [`Legacy`] and without an engine snapshot. swarm shows these workers and does not change them. It
//! reads the file and never writes it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use chrono::{DateTime, FixedOffset, NaiveDateTime};
use serde_json::{Map, Value};

use super::json::{FormatError, need, object, take};
use super::ralph::{self, RalphFile};
use super::record::{Legacy, Metadata, Record};
use crate::model::{WorkerName, Worktree};
use crate::spec::WorkerSpec;
use crate::spec::{LoopSpec, Prompt};

/// A worker of the list that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The error.
    pub message: String,
}

/// Reads the predecessor's list of workers; [`FormatError`] when the file is not one. `local` places its local times on
/// the time line. An unreadable worker does not hide the others.
pub fn parse_workers(
    bytes: &[u8],
    local: &dyn Fn(NaiveDateTime) -> DateTime<FixedOffset>,
) -> Result<Vec<Result<Record, Unreadable>>, FormatError> {
    let (mut map, _) = object(bytes, "a list of workers")?;
    let workers: Vec<Value> = need(&mut map, "workers")?;
    let read = |worker: Value| {
        let name = worker.get("name").and_then(Value::as_str).map(ToOwned::to_owned);
        self::worker(worker, local).map_err(|error| Unreadable { name, message: error.to_string() })
    };
    Ok(workers.into_iter().map(read).collect())
}

fn worker(
    worker: Value,
    local: &dyn Fn(NaiveDateTime) -> DateTime<FixedOffset>,
) -> Result<Record, FormatError> {
    let Value::Object(mut map) = worker else {
        return Err(FormatError::Broken("a worker is not a JSON object".into()));
    };
    let name: WorkerName = need(&mut map, "name")?;
    let mut spec = WorkerSpec::bare(name.clone());
    spec.cmd = need(&mut map, "cmd")?;
    spec.cwd = need::<PathBuf>(&mut map, "cwd")?;
    spec.env = take::<BTreeMap<_, _>>(&mut map, "env")?.unwrap_or_default();
    // The predecessor kept only the variables that `--env` set.
    spec.env_names = spec.env.keys().cloned().collect();
    spec.tags = take(&mut map, "tags")?.unwrap_or_default();
    if spec.cmd.is_empty() {
        return Err(FormatError::Broken("`cmd` is empty".into()));
    }
    let started: String = need(&mut map, "started")?;
    let started = ralph::parse_time(&started)
        .ok_or_else(|| FormatError::Broken(format!("`started`: {started:?} is not a time")))?;
    let legacy = Legacy {
        status: need(&mut map, "status")?,
        tmux: take(&mut map, "tmux")?,
        pid: take(&mut map, "pid")?,
    };
    let worktree: Option<Worktree> = take(&mut map, "worktree")?;
    let metadata = take::<Map<_, _>>(&mut map, "metadata")?.unwrap_or_default();
    Ok(Record {
        format: 0,
        name,
        metadata: Metadata::from_map(metadata)?,
        spec,
        started: local(started),
        pane: None,
        worktree,
        engine: Value::Null,
        legacy: Some(legacy),
        request: None,
        seen: None,
        status_since: None,
        machine: None,
        lost_with: None,
        extra: map.into_iter().map(apart).collect(),
    })
}

/// Renames a user's key that swarm's records use for something else, so that it is kept.
fn apart((key, value): (String, Value)) -> (String, Value) {
    let ours = ["format", "name", "metadata", "started", "pane", "worktree", "spec", "engine", "legacy"];
    if ours.contains(&key.as_str()) { (format!("v0_{key}"), value) } else { (key, value) }
}

/// Adds the values of a loop's own file, which the list of workers does not have.
pub fn join_ralph(record: &mut Record, file: &RalphFile) {
    record.metadata.ralph = true;
    record.metadata.ralph_iteration = Some(file.current_iteration);
    record.spec.prompt = Prompt::File(file.prompt_file.clone());
    record.spec.done_pattern.clone_from(&file.done_pattern);
    record.spec.ralph = Some(LoopSpec::new(
        file.prompt_file.clone(),
        file.max_iterations.max(1),
        file.inactivity_timeout.max(1),
    ));
}
