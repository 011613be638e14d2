//! The hooks of sessions that the user starts: put into an agent's settings file, taken out, looked at.
//!
//! Used by the verb `swarm hooks`. Only the events that a loop needs are written: an old Claude Code runs no hook at
//! all of a file with an event that it does not know. Deliberately absent: the hooks of sessions that swarm starts (they
//! are handed over for the run, and touch no file of the user's).

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use swarm_state::hook::HookEvent;

use super::file::{self, Change};
use super::merge::{self, Found};
use crate::cli::{HookAgent, HookScope};
use crate::error::{Error, Result};
use crate::paths::{self, Paths};

/// Where an agent reads its hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Whose file it is.
    pub agent: HookAgent,
    /// For which sessions.
    pub scope: HookScope,
    /// The file.
    pub file: PathBuf,
}

/// Whether the hooks are in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// All that are needed.
    Installed,
    /// Some of them.
    Partial,
    /// None.
    Absent,
    /// The file cannot be read.
    Unreadable,
}

impl State {
    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Partial => "partial",
            Self::Absent => "absent",
            Self::Unreadable => "unreadable",
        }
    }
}

/// What `swarm hooks status` says of a place.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Whose file it is.
    pub agent: HookAgent,
    /// For which sessions.
    pub scope: HookScope,
    /// The file.
    pub file: PathBuf,
    /// Whether the hooks are there.
    pub state: State,
    /// The events that run a hook of ours.
    pub events: Vec<String>,
    /// The program that they run first; `None` without a hook.
    pub program: Option<String>,
    /// Whether that program, or else a `swarm` in `PATH`, is there; where neither is, the hooks do nothing.
    pub program_found: bool,
    /// The directory of the plugins that the file enables.
    pub plugin: Option<String>,
    /// Why the file cannot be read.
    pub problem: Option<String>,
}

/// The events of an agent that a loop needs.
pub fn needed(agent: HookAgent) -> &'static [HookEvent] {
    match agent {
        HookAgent::Claude => &[HookEvent::UserPromptSubmit, HookEvent::Stop, HookEvent::StopFailure],
        HookAgent::Codex => &[HookEvent::UserPromptSubmit, HookEvent::Stop],
    }
}

/// Where `agent` reads its hooks for `scope`; a project's is the current directory.
///
/// # Errors
/// Without a home directory, or a current one.
pub fn place(agent: HookAgent, scope: HookScope) -> Result<Place> {
    let (dir, variable, name) = match agent {
        HookAgent::Claude => (".claude", "CLAUDE_CONFIG_DIR", "settings.json"),
        HookAgent::Codex => (".codex", "CODEX_HOME", "hooks.json"),
    };
    Ok(Place { agent, scope, file: agents_dir(dir, variable, scope)?.join(name) })
}

/// The directory `dir` of an agent: in the current directory, or the user's own, which `variable` may name.
pub(super) fn agents_dir(dir: &str, variable: &str, scope: HookScope) -> Result<PathBuf> {
    match scope {
        HookScope::Project => Ok(here()?.join(dir)),
        HookScope::User => match env::var_os(variable).filter(|named| !named.is_empty()) {
            Some(named) => Ok(here()?.join(named)),
            None => Ok(paths::home()?.join(dir)),
        },
    }
}

fn here() -> Result<PathBuf> {
    env::current_dir().map_err(|e| Error::system("cannot find the current directory", e))
}

/// The path of this program, for files. An upgrade puts another file in the place of the one that runs; Linux says so
/// behind the path.
///
/// # Errors
/// When the system does not say, or it is no text.
pub fn program() -> Result<PathBuf> {
    let exe = env::current_exe().map_err(|e| Error::system("cannot find my own program", e))?;
    let text = exe.to_str().ok_or_else(|| {
        Error::invalid(format!("the path of this program is no valid text: '{}'", exe.display()))
            .hint("put swarm into a directory whose name is UTF-8")
    })?;
    Ok(PathBuf::from(text.strip_suffix(" (deleted)").unwrap_or(text)))
}

/// Puts the hooks that are needed into `place`, with `program` for swarm.
///
/// # Errors
/// When the file cannot be read or written, or has a shape that an agent would not take; it is then untouched.
pub fn install(paths: &Paths, place: &Place, program: &Path) -> Result<Change> {
    file::change(paths, &place.file, |value| merge::with_hooks(value, needed(place.agent), program))
}

/// Takes all hooks of ours out of `place`.
///
/// # Errors
/// When the file cannot be read or written; it is then untouched.
pub fn uninstall(paths: &Paths, place: &Place) -> Result<Change> {
    file::change(paths, &place.file, |value| Ok(merge::without_hooks(value)))
}

/// Looks at `place`. Changes nothing.
pub fn status(place: &Place) -> Status {
    let (value, problem) = match file::read(&place.file) {
        Ok(value) => (value.unwrap_or_default(), None),
        Err(error) => (serde_json::Value::Null, Some(error.message)),
    };
    let found = merge::found(&value);
    let there = |event: &&HookEvent| {
        found.iter().any(|f| Some(&*f.event) == event.setting() && f.ours.word == event.word())
    };
    let state = match needed(place.agent).iter().filter(there).count() {
        _ if problem.is_some() => State::Unreadable,
        0 if found.is_empty() => State::Absent,
        n if n == needed(place.agent).len() => State::Installed,
        _ => State::Partial,
    };
    let program = found.first().map(|Found { ours, .. }| ours.binary.clone());
    Status {
        agent: place.agent,
        scope: place.scope,
        file: place.file.clone(),
        state,
        events: found.iter().map(|f| f.event.clone()).collect(),
        program_found: program.as_deref().is_some_and(runs),
        program,
        plugin: merge::marketplace(&value).map(str::to_owned),
        problem,
    }
}

/// Whether a hook would find its program.
fn runs(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut in_path = env::split_paths(&path).map(|dir| dir.join("swarm"));
    program.contains('/') && executable(Path::new(program)) || in_path.any(|file| executable(&file))
}

fn executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}
