//! `[agents.NAME]`: changes to the built-in profiles, and new ones.
//!
//! A change replaces one field of a row; [`KEYS`] is the one list of what may be written. It works on the
//! profile's serde form, so that a new field of [`Profile`] costs one line here.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use swarm_state::model::PromptVia;
use swarm_state::profiles::Profile;

use super::outage;
use super::read::{Entry, Fault};
use crate::error::{Error, ErrorCode, Result};

/// What the settings say, by agent and field.
pub(super) type Changes = BTreeMap<String, Map<String, Value>>;

/// What a key's value is.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// A list of texts.
    Texts,
    /// A list of patterns.
    Patterns,
    /// One text.
    Text,
    /// `true` or `false`.
    Flag,
    /// A prompt route.
    Via,
    /// A list of `{ pattern, what }`.
    Markers,
    /// US dollars a million tokens.
    Price,
    /// Patterns by what they mean, as in `[outage]`.
    Outage,
    /// A way to give it hooks.
    Hooks,
}

/// Every key that may stand under `[agents.NAME]`, the field of [`Profile`] that it sets, and its kind.
pub(super) const KEYS: [(&str, &str, Kind); 26] = [
    ("commands", "commands", Kind::Texts),
    ("one_shot", "one_shot", Kind::Texts),
    ("bare_one_shot", "bare_one_shot", Kind::Flag),
    ("one_shot_takes_prompt", "one_shot_takes_prompt", Kind::Flag),
    ("session_flag", "session_flag", Kind::Text),
    ("session_own", "session_own", Kind::Texts),
    ("model_flag", "model_flag", Kind::Text),
    ("tells_cost", "tells_cost", Kind::Flag),
    ("input_price", "input_price", Kind::Price),
    ("cached_price", "cached_price", Kind::Price),
    ("output_price", "output_price", Kind::Price),
    ("outage", "outage", Kind::Outage),
    ("hooks", "hooks", Kind::Hooks),
    ("record_args", "record_args", Kind::Texts),
    ("prompt_via", "interactive_via", Kind::Via),
    ("interactive_via", "interactive_via", Kind::Via),
    ("one_shot_via", "one_shot_via", Kind::Via),
    ("arg_flag", "arg_flag", Kind::Text),
    ("end_of_options", "end_of_options", Kind::Flag),
    ("ready", "ready", Kind::Patterns),
    ("input", "input", Kind::Patterns),
    ("error", "error", Kind::Patterns),
    ("hides_input", "hides_input", Kind::Flag),
    ("working", "working", Kind::Patterns),
    ("startup", "startup", Kind::Markers),
    ("permission", "permission", Kind::Markers),
];

/// The built-in rows.
pub(super) fn built_in() -> Vec<Profile> {
    swarm_state::profiles::table()
}

/// One key of an agent: the field that it sets, and the new value.
pub(super) fn read(entry: &Entry<'_>) -> Result<(&'static str, Value), Fault> {
    let Some((_, field, kind)) = KEYS.iter().find(|(key, _, _)| *key == entry.key) else {
        return Err(entry.unknown(&KEYS.map(|(key, _, _)| key)));
    };
    let value = match kind {
        Kind::Texts => entry.texts()?.into(),
        Kind::Patterns => entry.patterns()?.into(),
        Kind::Text => entry.text()?.into(),
        Kind::Flag => entry.flag()?.into(),
        Kind::Via => via(entry)?,
        Kind::Hooks => one_of(entry, &["off", "claude", "codex"])?,
        Kind::Price => entry.price()?.into(),
        Kind::Outage => outage::read(entry)?.into_iter().map(|wording| json!(wording)).collect(),
        Kind::Markers => {
            let rows = entry.tables(&["pattern", "what"])?;
            rows.into_iter().map(|row| json!({ "pattern": row[0], "what": row[1] })).collect()
        }
    };
    Ok((field, value))
}

/// A route.
fn via(entry: &Entry<'_>) -> Result<Value, Fault> {
    one_of(
        entry,
        &[PromptVia::Auto, PromptVia::Stdin, PromptVia::Arg, PromptVia::Paste].map(PromptVia::as_str),
    )
}

/// One of some words.
fn one_of(entry: &Entry<'_>, words: &[&str]) -> Result<Value, Fault> {
    let text = entry.text()?;
    if words.contains(&text.as_str()) {
        return Ok(text.into());
    }
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    let (last, first) =
        quoted.split_last().map(|(last, first)| (last.clone(), first.join(", "))).unwrap_or_default();
    Err(entry.must_be(&format!("{first} or {last}")))
}

/// The rows with the changes in them: changed and new ones first, so that they win over a row that knows
/// the same command.
pub(super) fn merge(built_in: Vec<Profile>, changes: &Changes) -> Result<Vec<Profile>> {
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

/// A profile that nobody knew: its command has its name until a key says otherwise.
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
