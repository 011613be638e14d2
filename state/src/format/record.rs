//! A worker's record: `workers/NAME.json`.

use chrono::{DateTime, FixedOffset};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::json::{FORMAT, FormatError, need, object, take, to_bytes, value};
use crate::model::{Pane, Run, Status, WorkerName, Worktree};
use crate::owner::MachineId;
use crate::spec::WorkerSpec;

/// The part of the record that scripts read (with `jq`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// The worker is a loop.
    pub ralph: bool,
    /// The current (or last) iteration of the loop; absent for a plain worker.
    pub ralph_iteration: Option<u32>,
    /// Unknown keys, which are kept.
    pub extra: Map<String, Value>,
}

impl Metadata {
    /// `{"ralph":true,"ralph_iteration":5,…}` for a loop, only the unknown keys otherwise.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        if self.ralph {
            map.insert("ralph".into(), Value::Bool(true));
        }
        if let Some(iteration) = self.ralph_iteration {
            map.insert("ralph_iteration".into(), iteration.into());
        }
        for (key, value) in &self.extra {
            map.entry(key.clone()).or_insert_with(|| value.clone());
        }
        Value::Object(map)
    }

    /// The reverse of [`Metadata::to_value`].
    pub(super) fn from_map(mut map: Map<String, Value>) -> Result<Self, FormatError> {
        let ralph = take(&mut map, "ralph")?.unwrap_or(false);
        let ralph_iteration = take(&mut map, "ralph_iteration")?;
        Ok(Self { ralph, ralph_iteration, extra: map })
    }
}

/// The predecessor's record of a worker that it started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Legacy {
    /// The status that it recorded (`running`, `stopped`); possibly out of date.
    pub status: String,
    /// The worker's window; absent for one that ran without tmux.
    #[serde(default)]
    pub tmux: Option<LegacyTmux>,
    /// The worker's process, if it ran without tmux. The pid may be in use by another process.
    #[serde(default)]
    pub pid: Option<i32>,
}

/// The tmux window in which the predecessor put a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegacyTmux {
    /// The session.
    pub session: String,
    /// The window's name.
    pub window: String,
    /// The server's `-L` name; absent for the user's default server.
    #[serde(default)]
    pub socket: Option<String>,
}

/// The stored data of one worker.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The format it was read in; writing always gives [`FORMAT`].
    pub format: u32,
    /// The worker's name; equal to `spec.name`.
    pub name: WorkerName,
    /// The fields that `ls --format json` shows under `metadata`.
    pub metadata: Metadata,
    /// The settings that were fixed when it was spawned.
    pub spec: WorkerSpec,
    /// When it was spawned.
    pub started: DateTime<FixedOffset>,
    /// The pane in which its current run lives.
    pub pane: Option<Pane>,
    /// The worktree that swarm made for it.
    pub worktree: Option<Worktree>,
    /// The engine's snapshot, in the engine's own shape; `null` when there is none.
    pub engine: Value,
    /// Present when the predecessor started it. swarm shows such a worker and does not change it.
    pub legacy: Option<Legacy>,
    /// The id of the spawn request, if the client sent one. A repeated request gets the same answer.
    pub request: Option<String>,
    /// The run at whose end a person last looked at the worker.
    pub seen: Option<Run>,
    /// The worker's status, and since when it has it.
    pub status_since: Option<StatusSince>,
    /// The machine of the daemon that wrote it: process ids in it are valid there only.
    pub machine: Option<MachineId>,
    /// The host with which the last run was lost.
    pub lost_with: Option<String>,
    /// Unknown keys, which are kept.
    pub extra: Map<String, Value>,
}

/// A status, and its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusSince {
    /// The status.
    pub status: Status,
    /// Its beginning.
    pub at: DateTime<FixedOffset>,
}

impl Record {
    /// The file: pretty JSON with a final newline, in the current format. Fails for a path that is not UTF-8.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FormatError> {
        let mut ours = vec![
            ("format", FORMAT.into()),
            ("name", value("name", &self.name)?),
            ("metadata", self.metadata.to_value()),
            ("started", value("started", &self.started)?),
            ("pane", value("pane", &self.pane)?),
            ("worktree", value("worktree", &self.worktree)?),
            ("spec", value("spec", &self.spec)?),
            ("engine", self.engine.clone()),
        ];
        let optional = [
            ("legacy", value("legacy", &self.legacy)?),
            ("request", value("request", &self.request)?),
            ("seen", value("seen", &self.seen)?),
            ("status_since", value("status_since", &self.status_since)?),
            ("machine", value("machine", &self.machine)?),
            ("lost_with", value("lost_with", &self.lost_with)?),
        ];
        ours.extend(optional.into_iter().filter(|(_, value)| !value.is_null()));
        to_bytes(ours, &self.extra)
    }
}

/// Reads a record. A missing format number is an error: version 0 kept all workers in one file, which
/// [`super::v0::parse_workers`] reads.
pub fn parse_record(bytes: &[u8]) -> Result<Record, FormatError> {
    let (mut map, format) = object(bytes, "a worker's record")?;
    if format == 0 {
        return Err(FormatError::Broken("`format` is missing".into()));
    }
    map.remove("format");
    let name: WorkerName = need(&mut map, "name")?;
    let spec = spec(need(&mut map, "spec")?, &name)?;
    if spec.name != name {
        return Err(FormatError::Broken(format!("`spec.name` is '{}', `name` is '{name}'", spec.name)));
    }
    let metadata = take::<Map<_, _>>(&mut map, "metadata")?.unwrap_or_default();
    Ok(Record {
        format,
        name,
        metadata: Metadata::from_map(metadata)
            .map_err(|error| FormatError::Broken(format!("`metadata`: {error}")))?,
        spec,
        started: need(&mut map, "started")?,
        pane: take(&mut map, "pane")?,
        worktree: take(&mut map, "worktree")?,
        engine: map.remove("engine").unwrap_or(Value::Null),
        legacy: take(&mut map, "legacy")?,
        request: take(&mut map, "request")?,
        // An invalid value does not make the record unreadable.
        seen: take(&mut map, "seen").unwrap_or_default(),
        status_since: take(&mut map, "status_since").unwrap_or_default(),
        machine: take(&mut map, "machine")?,
        lost_with: take(&mut map, "lost_with").unwrap_or_default(),
        extra: map,
    })
}

/// Reads a spec. Keys that a later release added get their defaults, so that older records of the format stay readable.
fn spec(mut map: Map<String, Value>, name: &WorkerName) -> Result<WorkerSpec, FormatError> {
    // These have no harmless default: a record without its command or directory is broken.
    let Value::Object(mut defaults) = value("spec", &WorkerSpec::bare(name.clone()))? else {
        return Err(FormatError::Broken("`spec` is not a JSON object".into()));
    };
    for key in ["name", "cmd", "cwd", "env", "prompt", "prompt_via"] {
        defaults.remove(key);
    }
    let profile = defaults.get("profile").cloned();
    for (key, default) in defaults {
        map.entry(key).or_insert(default);
    }
    if let (Some(Value::Object(profile)), Some(Value::Object(defaults))) = (map.get_mut("profile"), profile) {
        for (key, default) in defaults {
            profile.entry(key).or_insert(default);
        }
    }
    let spec: WorkerSpec = serde_json::from_value(Value::Object(map))
        .map_err(|error| FormatError::Broken(format!("`spec`: {error}")))?;
    if spec.cmd.is_empty() {
        return Err(FormatError::Broken("`spec.cmd` is empty".into()));
    }
    Ok(spec)
}
