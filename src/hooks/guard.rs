//! Stops dangerous tool calls of an agent: collects the facts for `swarm_state::guard`, and formats the denial.
//!
//! Used by [`super::run`] before each call of a tool. Only the settings file of the user counts, since an agent can
//! change the files of its project. If that file cannot be read, the guard has no allow-list. Without a home directory
//! or a working directory, it allows everything.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::json;
use swarm_state::guard::{Allowed, GuardPlace, judge};
use swarm_state::hook::{HookEvent, HookInput};

use super::report::WorkerPlace;
use crate::paths::{Paths, home};
use crate::settings::Settings;

/// A stopped tool call.
pub(super) struct GuardAnswer {
    /// The stopped command or file, and the class of its danger.
    pub(super) what: String,
    /// The answer for the agent CLI.
    pub(super) answer: String,
}

/// Judges the tool call of a hook's input; `None` allows it.
pub(super) fn check(
    paths: Option<&Paths>,
    input: &HookInput,
    var: &dyn Fn(&str) -> Option<OsString>,
) -> Option<GuardAnswer> {
    let (paths, tool, arguments) = (paths?, input.tool.as_deref()?, input.tool_input.as_ref()?);
    let file = paths.user_config();
    let place = place(paths, input, var)?;
    // Most calls are harmless; only a denial needs the settings.
    let denial = judge(tool, arguments, &place, &Allowed::default())?;
    let settings = Settings::load(&file, None, None).unwrap_or_default().guard;
    if settings.off == Some(true) {
        return None;
    }
    let denial = match settings.allow {
        Some(patterns) => judge(tool, arguments, &place, &Allowed::new(&patterns).unwrap_or_default())?,
        None => denial,
    };
    let answer = json!({ "hookSpecificOutput": {
        "hookEventName": HookEvent::PreToolUse.setting(),
        "permissionDecision": "deny",
        "permissionDecisionReason": denial.reason(&file.display().to_string()),
    } });
    Some(GuardAnswer { what: denial.to_string(), answer: answer.to_string() })
}

fn place(paths: &Paths, input: &HookInput, var: &dyn Fn(&str) -> Option<OsString>) -> Option<GuardPlace> {
    let text = |path: &Path| path.to_str().map(|path| path.trim_end_matches('/').to_owned());
    let cwd = input.cwd.clone().or_else(|| std::env::current_dir().ok())?;
    let start = var("CLAUDE_PROJECT_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let home = home().ok()?;
    let project = [Some(cwd.clone()), start].into_iter().flatten().map(|dir| root_of(&dir, &home));
    let swarm = [Some(paths.root().to_owned()), paths.user_config().parent().map(Path::to_owned)];
    Some(GuardPlace {
        cwd: text(&cwd)?,
        project: project.filter_map(|dir| text(&dir)).filter(|dir| !dir.is_empty()).collect(),
        home: text(&home)?,
        swarm: swarm.iter().flatten().filter_map(|dir| text(dir)).collect(),
        sent_code: text(&paths.sent_code_dir()),
        worker: WorkerPlace::of(var).map(|place| place.name),
    })
}

/// The root of the repository around a directory, or the directory itself. The home directory is not a project of
/// the directories below it.
fn root_of(dir: &Path, home: &Path) -> PathBuf {
    let is_root = |dir: &&Path| dir.join(".git").exists() && !home.starts_with(dir);
    dir.ancestors().find(is_root).unwrap_or(dir).to_owned()
}
