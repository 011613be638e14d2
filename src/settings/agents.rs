//! `[agents.NAME]`: changes to the built-in profiles, and new ones.
//!
//! A change replaces one field of a profile; [`AGENT_KEYS`] lists the allowed keys. Changes apply to the profile's
//! serde form, so that a new field of [`Profile`] costs one line here.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use swarm_state::model::PromptVia;
use swarm_state::profiles::Profile;

use super::outage;
use super::read::{Fault, SettingEntry};
use crate::error::{Error, ErrorCode, Result};

/// The changes, by agent and field.
pub(super) type ProfileChanges = BTreeMap<String, Map<String, Value>>;

/// The type of a key's value.
#[derive(Clone, Copy)]
pub(super) enum KeyKind {
    /// A list of texts.
    Texts,
    Patterns,
    Text,
    Flag,
    Via,
    /// A list of `{ pattern, what }`.
    Markers,
    /// US dollars per million tokens.
    Price,
    /// Patterns by meaning, as in `[outage]`.
    Outage,
    Hooks,
    /// A duration; 0 for none.
    Seconds,
}

/// Every key of `[agents.NAME]`, the field of [`Profile`] that it sets, and its type.
pub(super) const AGENT_KEYS: [(&str, &str, KeyKind); 41] = [
    ("commands", "commands", KeyKind::Texts),
    ("one_shot", "one_shot", KeyKind::Texts),
    ("bare_one_shot", "bare_one_shot", KeyKind::Flag),
    ("one_shot_takes_prompt", "one_shot_takes_prompt", KeyKind::Flag),
    ("session_flag", "session_flag", KeyKind::Text),
    ("session_own", "session_own", KeyKind::Texts),
    ("model_flag", "model_flag", KeyKind::Text),
    ("tells_cost", "tells_cost", KeyKind::Flag),
    ("input_price", "input_price", KeyKind::Price),
    ("cached_price", "cached_price", KeyKind::Price),
    ("output_price", "output_price", KeyKind::Price),
    ("outage", "outage", KeyKind::Outage),
    ("hooks", "hooks", KeyKind::Hooks),
    ("hold", "hold", KeyKind::Seconds),
    ("record_args", "record_args", KeyKind::Texts),
    ("permission_flags", "permission_flags", KeyKind::Texts),
    ("permission_files", "permission_files", KeyKind::Texts),
    ("unattended_args", "unattended_args", KeyKind::Texts),
    ("root_variable", "root_variable", KeyKind::Text),
    ("state_dirs", "state_dirs", KeyKind::Texts),
    ("state_locked", "state_locked", KeyKind::Texts),
    ("state_readable", "state_readable", KeyKind::Texts),
    ("state_copies", "state_copies", KeyKind::Texts),
    ("hosts", "hosts", KeyKind::Texts),
    ("sandbox_flags", "sandbox_flags", KeyKind::Texts),
    ("sandbox_args", "sandbox_args", KeyKind::Texts),
    ("docker_template", "docker_template", KeyKind::Text),
    ("docker_state", "docker_state", KeyKind::Texts),
    ("prompt_via", "interactive_via", KeyKind::Via),
    ("interactive_via", "interactive_via", KeyKind::Via),
    ("one_shot_via", "one_shot_via", KeyKind::Via),
    ("arg_flag", "arg_flag", KeyKind::Text),
    ("chat_flag", "chat_flag", KeyKind::Text),
    ("end_of_options", "end_of_options", KeyKind::Flag),
    ("ready", "ready", KeyKind::Patterns),
    ("input", "input", KeyKind::Patterns),
    ("error", "error", KeyKind::Patterns),
    ("hides_input", "hides_input", KeyKind::Flag),
    ("working", "working", KeyKind::Patterns),
    ("startup", "startup", KeyKind::Markers),
    ("permission", "permission", KeyKind::Markers),
];

/// The fault of a setting that an agent could change to get more rights in its next run.
pub(super) const PERSONAL: &str = "can only be in your own settings: an agent could change this file";

/// The keys that say what an agent may do: its hooks, which the guard needs, and its sandbox.
const PERSONAL_KEYS: [&str; 11] = [
    "hooks",
    "hold",
    "state_dirs",
    "state_locked",
    "state_readable",
    "state_copies",
    "hosts",
    "sandbox_flags",
    "sandbox_args",
    "docker_template",
    "docker_state",
];

/// Refuses what the settings of a project may not change of an agent: what it may do, and which commands get the
/// profile of a known agent.
pub(super) fn check_project(agent: &SettingEntry<'_>) -> Result<(), Fault> {
    let known = swarm_state::profiles::table();
    let is_known = known.iter().any(|profile| profile.name == agent.key);
    let has_command = |name: &String| known.iter().any(|profile| profile.commands.contains(name));
    agent.each(|entry| {
        let takes_over = || is_known || entry.texts().is_ok_and(|names| names.iter().any(has_command));
        match entry.key {
            key if PERSONAL_KEYS.contains(&key) => Err(entry.fault(PERSONAL)),
            "commands" if takes_over() => Err(entry.fault(PERSONAL)),
            _ => Ok(()),
        }
    })
}

/// One key of an agent: the field that it sets, and the new value.
pub(super) fn read(entry: &SettingEntry<'_>) -> Result<(&'static str, Value), Fault> {
    let Some((_, field, kind)) = AGENT_KEYS.iter().find(|(key, _, _)| *key == entry.key) else {
        return Err(entry.unknown(&AGENT_KEYS.map(|(key, _, _)| key)));
    };
    let value = match kind {
        KeyKind::Texts => entry.texts()?.into(),
        KeyKind::Patterns => entry.patterns()?.into(),
        KeyKind::Text => entry.text()?.into(),
        KeyKind::Flag => entry.flag()?.into(),
        KeyKind::Via => one_of(entry, &PromptVia::ALL.map(PromptVia::as_str))?,
        KeyKind::Hooks => one_of(entry, &["off", "claude", "codex"])?,
        KeyKind::Seconds => entry.duration_or_zero()?.into(),
        KeyKind::Price => entry.price()?.into(),
        KeyKind::Outage => outage::read(entry)?.into_iter().map(|wording| json!(wording)).collect(),
        KeyKind::Markers => {
            let rows = entry.tables(&["pattern", "what"])?;
            rows.into_iter().map(|row| json!({ "pattern": row[0], "what": row[1] })).collect()
        }
    };
    Ok((field, value))
}

/// One of the given words.
fn one_of(entry: &SettingEntry<'_>, words: &[&str]) -> Result<Value, Fault> {
    let text = entry.text()?;
    if words.contains(&text.as_str()) {
        return Ok(text.into());
    }
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    let (last, first) =
        quoted.split_last().map(|(last, first)| (last.clone(), first.join(", "))).unwrap_or_default();
    Err(entry.must_be(&format!("{first} or {last}")))
}

/// Applies the changes. Changed and new profiles come first, so that they win over another profile for the same
/// command.
pub(super) fn merge(built_in: Vec<Profile>, changes: &ProfileChanges) -> Result<Vec<Profile>> {
    let (known, mut rest): (Vec<_>, Vec<_>) =
        built_in.into_iter().partition(|profile| changes.contains_key(&profile.name));
    let mut rows = vec![];
    for (name, fields) in changes {
        let base = known.iter().find(|profile| profile.name == *name);
        let base = base.cloned().unwrap_or_else(|| new_profile(name));
        rows.push(changed(&base, fields)?);
    }
    rows.append(&mut rest);
    Ok(rows)
}

/// A new profile. Its command has the profile's name until a key changes it.
fn new_profile(name: &str) -> Profile {
    Profile { name: name.to_owned(), commands: vec![name.to_owned()], ..Profile::generic() }
}

fn changed(base: &Profile, fields: &Map<String, Value>) -> Result<Profile> {
    let internal = |error: serde_json::Error| {
        Error::new(ErrorCode::Internal, format!("settings of agent '{}': {error}", base.name))
    };
    let mut row = serde_json::to_value(base).map_err(internal)?;
    for (field, value) in fields {
        row[field.as_str()] = value.clone();
    }
    serde_json::from_value(row).map_err(internal)
}
