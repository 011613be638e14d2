//! Installs, removes and checks the hooks in an agent's settings file, for the sessions that the user starts.
//!
//! Used by `swarm hooks`. Only the events that a loop needs are written: an old Claude Code runs no hook of a file that
//! has an event it does not support. Deliberately absent: hooks of the agents that swarm starts ([`super::passed`]).

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use swarm_state::hook::HookEvent;

use super::file;
use super::merge::{self, InstalledHook};
use super::passed;
use crate::cli::{HookAgent, HookScope};
use crate::error::{Error, Result};
use crate::paths;

/// The files that may contain hooks or enable plugins, in the settings directory of any agent.
const SETTINGS_FILES: [&str; 6] = [
    "settings.json",
    "settings.local.json",
    "managed-settings.json",
    "hooks.json",
    "config.toml",
    "plugin/swarm.js",
];

/// A settings file in which an agent reads its hooks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HookFile {
    /// The agent.
    pub agent: HookAgent,
    /// The sessions that read the file.
    pub scope: HookScope,
    /// The file.
    pub file: PathBuf,
}

/// Whether the hooks are in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HookState {
    /// All required hooks.
    Installed,
    /// Some of the required hooks.
    Partial,
    /// No hook.
    Absent,
    /// The file cannot be read.
    Unreadable,
}

swarm_state::word_table!(
    pub HookState,
    word,
    [(Installed, "installed"), (Partial, "partial"), (Absent, "absent"), (Unreadable, "unreadable")]
);

/// The state of a file, as `swarm hooks status` prints it.
#[derive(Clone, Debug, Serialize)]
pub struct HookStatus {
    /// The file.
    #[serde(flatten)]
    pub place: HookFile,
    /// Whether the hooks are there.
    pub state: HookState,
    /// The events that have a hook of swarm.
    pub events: Vec<String>,
    /// The program of the first hook; `None` without a hook.
    pub program: Option<String>,
    /// Whether that program or a `swarm` in `PATH` exists. Without both, the hooks do nothing.
    pub program_found: bool,
    /// The directory of the plugins that the file enables.
    pub plugin: Option<String>,
    /// Why the file cannot be read.
    pub problem: Option<String>,
}

/// Returns the events of an agent that a loop and the context monitor need.
pub fn needed(agent: HookAgent) -> &'static [HookEvent] {
    match agent {
        HookAgent::Claude => &[
            HookEvent::SessionStart,
            HookEvent::UserPromptSubmit,
            HookEvent::PostToolUse,
            HookEvent::Stop,
            HookEvent::StopFailure,
        ],
        HookAgent::Codex => &passed::CODEX_EVENTS,
    }
}

/// Returns the file in which `agent` reads its hooks for `scope`. The project is the current directory. Fails if
/// that directory or the home directory is missing.
pub fn place(agent: HookAgent, scope: HookScope) -> Result<HookFile> {
    let (dir, variable, name) = match agent {
        HookAgent::Claude => (".claude", "CLAUDE_CONFIG_DIR", "settings.json"),
        HookAgent::Codex => (".codex", "CODEX_HOME", "hooks.json"),
    };
    Ok(HookFile { agent, scope, file: agents_dir(dir, variable, scope)?.join(name) })
}

/// Returns the directory `dir` of an agent: in the current directory, or in the home directory unless `variable` names
/// it.
pub(super) fn agents_dir(dir: &str, variable: &str, scope: HookScope) -> Result<PathBuf> {
    match scope {
        HookScope::Project => Ok(here()?.join(dir)),
        HookScope::User => match env::var_os(variable).filter(|named| !named.is_empty()) {
            Some(named) => Ok(here()?.join(named)),
            None => Ok(paths::home()?.join(dir)),
        },
    }
}

pub(super) fn opencode_dir(scope: HookScope) -> Result<PathBuf> {
    let named = env::var_os("XDG_CONFIG_HOME").filter(|dir| Path::new(dir).is_absolute());
    match (scope, named) {
        (HookScope::Project, _) => agents_dir(".opencode", "", scope),
        (HookScope::User, Some(config)) => Ok(Path::new(&config).join("opencode")),
        (HookScope::User, None) => Ok(paths::home()?.join(".config/opencode")),
    }
}

fn here() -> Result<PathBuf> {
    env::current_dir().map_err(|e| Error::system("cannot find the current directory", e))
}

/// Returns the path of this program, to be written into files. Fails if it is unknown or not UTF-8.
pub fn program() -> Result<PathBuf> {
    let path = paths::own_program()?;
    if path.to_str().is_none() {
        let message = format!("the path of this program is not valid UTF-8: '{}'", path.display());
        return Err(Error::invalid(message).hint("put swarm into a directory whose name is UTF-8"));
    }
    Ok(path)
}

/// Returns the state of `place`. Changes nothing.
pub fn status(place: &HookFile) -> HookStatus {
    let (value, problem) = match file::read(&place.file) {
        Ok(value) => (value.unwrap_or_default(), None),
        Err(error) => (serde_json::Value::Null, Some(error.message)),
    };
    let found = merge::found(&value);
    let there = |event: &&HookEvent| {
        found.iter().any(|f| Some(&*f.event) == event.setting() && f.ours.word == event.word())
    };
    let state = match needed(place.agent).iter().filter(there).count() {
        _ if problem.is_some() => HookState::Unreadable,
        0 if found.is_empty() => HookState::Absent,
        n if n == needed(place.agent).len() => HookState::Installed,
        _ => HookState::Partial,
    };
    let program = found.first().map(|InstalledHook { ours, .. }| ours.binary.clone());
    HookStatus {
        place: place.clone(),
        state,
        events: found.iter().map(|f| f.event.clone()).collect(),
        program_found: program.as_deref().is_some_and(runs),
        program,
        plugin: merge::marketplace(&value).map(str::to_owned),
        problem,
    }
}

/// Whether the settings of an agent mention swarm, for sessions in `dir` or for all sessions. A plugin of swarm counts,
/// from any marketplace, and so does a file that cannot be read, since it may have the hooks.
pub fn settings_mention_swarm(dir: &Path) -> bool {
    let user = [
        agents_dir(".claude", "CLAUDE_CONFIG_DIR", HookScope::User),
        agents_dir(".codex", "CODEX_HOME", HookScope::User),
        opencode_dir(HookScope::User),
        Ok(PathBuf::from("/etc/claude-code")),
    ];
    let dir = paths::resolve(dir);
    let project =
        dir.ancestors().flat_map(|dir| [".claude", ".codex", ".opencode"].map(|name| dir.join(name)));
    let mut dirs = user.into_iter().flatten().chain(project);
    let mentions = |file: PathBuf| match fs::read_to_string(file) {
        Ok(text) => text.contains("swarm"),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    };
    dirs.any(|dir| SETTINGS_FILES.iter().any(|name| mentions(dir.join(name))))
}

/// Whether a hook finds its program.
fn runs(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut in_path = env::split_paths(&path).map(|dir| dir.join("swarm"));
    program.contains('/') && executable(Path::new(program)) || in_path.any(|file| executable(&file))
}

fn executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}
