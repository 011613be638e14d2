//! Adds swarm's hooks and plugins to the value of a settings file, and removes them.
//!
//! Used by [`super::install`] and [`super::plugin`]. Everything else stays unchanged and in its place: unknown keys,
//! other hooks, their order, and structures that swarm would not write. A structure is required only where swarm's
//! entries belong. Deliberately absent: files, and the layout of the text ([`super::layout`]).

use std::path::Path;

use serde_json::{Map, Value, json};
use swarm_state::hook::HookEvent;

use super::command::{OwnHook, TIMEOUT_SECONDS, command, recognize};

/// The name of swarm's marketplace in Claude Code.
pub const MARKETPLACE: &str = "swarm";

/// The plugins in that marketplace.
pub const PLUGINS: [&str; 2] = ["swarm", "do-it"];

/// A hook of swarm in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledHook {
    /// The event it is for.
    pub event: String,
    /// The parsed command.
    pub ours: OwnHook,
}

/// The file has a structure that an agent would not accept. The text describes where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeError(pub String);

/// Returns a hook of swarm as it is written to a file.
fn entry(program: &Path, event: HookEvent) -> Value {
    json!({"type": "command", "command": command(program, event), "timeout": TIMEOUT_SECONDS})
}

/// Returns `value` with one hook for each of `events`. Hooks of an earlier release are updated in place; swarm's hooks
/// for other events are removed. Fails if the place of the hooks has another structure.
pub fn with_hooks(value: &Value, events: &[HookEvent], program: &Path) -> Result<Value, ShapeError> {
    check(value)?;
    let mut value = value.clone();
    let needed = |event: &HookEvent, setting: &str, ours: &OwnHook| {
        event.setting() == Some(setting) && event.word() == ours.word
    };
    let unneeded = |setting: &str, ours: &OwnHook| !events.iter().any(|event| needed(event, setting, ours));
    take_out(&mut value, &unneeded);
    let root = value.as_object_mut().ok_or_else(|| ShapeError("it is not an object".to_owned()))?;
    let all = object_at(root, "hooks")?;
    for event in events {
        let Some(setting) = event.setting() else { continue };
        let groups = all.entry(setting).or_insert_with(|| json!([]));
        let groups =
            groups.as_array_mut().ok_or_else(|| ShapeError(format!("\"hooks.{setting}\" is not a list")))?;
        if !update(groups, program, *event) {
            groups.push(json!({"hooks": [entry(program, *event)]}));
        }
    }
    Ok(value)
}

/// Changes the timeout of swarm's hook for `event`, in seconds.
pub(super) fn set_timeout(settings: &mut Value, event: HookEvent, seconds: u64) {
    let Some(groups) =
        event.setting().and_then(|name| settings.get_mut("hooks")?.get_mut(name)?.as_array_mut())
    else {
        return;
    };
    let lists = groups.iter_mut().filter_map(|group| group.get_mut("hooks")?.as_array_mut());
    for hook in lists.flatten().filter(|hook| of_ours(hook).is_some_and(|ours| ours.word == event.word())) {
        hook["timeout"] = seconds.into();
    }
}

/// Updates swarm's first hook for `event` and removes the others; returns whether there was one. A hook in a group with
/// a matcher runs in some cases only, so it is removed.
fn update(groups: &mut Vec<Value>, program: &Path, event: HookEvent) -> bool {
    let mut there = false;
    groups.retain_mut(|group| {
        let everywhere = matcher_is_open(group);
        let Some(list) = group.get_mut("hooks").and_then(Value::as_array_mut) else { return true };
        let before = list.len();
        list.retain_mut(|hook| {
            if of_ours(hook).is_none_or(|ours| ours.word != event.word()) {
                return true;
            }
            if there || !everywhere {
                return false;
            }
            there = true;
            if let Some(hook) = hook.as_object_mut() {
                hook.insert("command".to_owned(), command(program, event).into());
            }
            true
        });
        // A group that is empty now contained only swarm's hooks. A group that was empty before belongs to the user.
        before == list.len() || !list.is_empty()
    });
    there
}

fn matcher_is_open(group: &Value) -> bool {
    group.get("matcher").is_none_or(|matcher| matches!(matcher.as_str(), Some("" | "*")))
}

/// Returns `value` without swarm's hooks, and without the groups and keys that became empty.
pub fn without_hooks(value: &Value) -> Value {
    let mut value = value.clone();
    take_out(&mut value, &|_, _| true);
    value
}

/// Removes swarm's hooks that `goes` selects, then the groups, events and `hooks` that became empty.
fn take_out(value: &mut Value, goes: &dyn Fn(&str, &OwnHook) -> bool) {
    let Some(all) = value.get_mut("hooks").and_then(Value::as_object_mut) else { return };
    let mut emptied = false;
    all.retain(|event, groups| {
        let Some(groups) = groups.as_array_mut() else { return true };
        let before = groups.len();
        groups.retain_mut(|group| {
            let Some(list) = group.get_mut("hooks").and_then(Value::as_array_mut) else { return true };
            let before = list.len();
            list.retain(|hook| of_ours(hook).is_none_or(|ours| !goes(event, &ours)));
            before == list.len() || !list.is_empty()
        });
        let stays = before == groups.len() || !groups.is_empty();
        emptied |= !stays;
        stays
    });
    if emptied && all.is_empty() {
        remove(value, "hooks");
    }
}

/// Returns swarm's hooks in `value`.
pub fn found(value: &Value) -> Vec<InstalledHook> {
    let mut found = vec![];
    for (event, groups) in value.get("hooks").and_then(Value::as_object).into_iter().flatten() {
        let groups = groups.as_array().into_iter().flatten();
        let hooks = groups.filter_map(|group| group.get("hooks")?.as_array()).flatten();
        found.extend(hooks.filter_map(of_ours).map(|ours| InstalledHook { event: event.clone(), ours }));
    }
    found
}

fn of_ours(hook: &Value) -> Option<OwnHook> {
    recognize(hook.get("command")?.as_str()?)
}

/// Checks the structure that agents require. swarm adds nothing to a file that an agent would not accept.
fn check(value: &Value) -> Result<(), ShapeError> {
    let root = value.as_object().ok_or_else(|| ShapeError("it is not an object".to_owned()))?;
    let Some(hooks) = root.get("hooks") else { return Ok(()) };
    let hooks = hooks.as_object().ok_or_else(|| ShapeError("\"hooks\" is not an object".to_owned()))?;
    match hooks.iter().find(|(_, groups)| !groups.is_array()) {
        Some((event, _)) => Err(ShapeError(format!("\"hooks.{event}\" is not a list"))),
        None => Ok(()),
    }
}

/// Returns `value` with swarm's marketplace at `dir` and its plugins enabled. A plugin that the user disabled stays
/// disabled. Fails if their place has another structure, or another marketplace has the name.
pub fn with_plugins(value: &Value, dir: &str) -> Result<Value, ShapeError> {
    let mut value = value.clone();
    let root = value.as_object_mut().ok_or_else(|| ShapeError("it is not an object".to_owned()))?;
    let markets = object_at(root, "extraKnownMarketplaces")?;
    if markets.get(MARKETPLACE).is_some_and(|known| known["source"]["source"] != "directory") {
        return Err(ShapeError(format!("another marketplace has the name '{MARKETPLACE}'")));
    }
    markets.insert(MARKETPLACE.to_owned(), json!({"source": {"source": "directory", "path": dir}}));
    let enabled = object_at(root, "enabledPlugins")?;
    for plugin in PLUGINS {
        enabled.entry(format!("{plugin}@{MARKETPLACE}")).or_insert(Value::Bool(true));
    }
    Ok(value)
}

/// Returns `value` without swarm's marketplace and plugins, and without the keys that became empty.
pub fn without_plugins(value: &Value) -> Value {
    let mut value = value.clone();
    if marketplace(&value).is_none() {
        return value;
    }
    let ours = PLUGINS.map(|plugin| format!("{plugin}@{MARKETPLACE}"));
    for (key, names) in [("extraKnownMarketplaces", &[MARKETPLACE.to_owned()][..]), ("enabledPlugins", &ours)]
    {
        let Some(object) = value.get_mut(key).and_then(Value::as_object_mut) else { continue };
        let before = object.len();
        object.retain(|name, _| !names.contains(name));
        if object.is_empty() && before > 0 {
            remove(&mut value, key);
        }
    }
    value
}

/// Returns the directory of swarm's marketplace, if `value` names it.
pub fn marketplace(value: &Value) -> Option<&str> {
    let source = value.get("extraKnownMarketplaces")?.get(MARKETPLACE)?.get("source")?;
    if source.get("source")? != "directory" {
        return None;
    }
    source.get("path")?.as_str()
}

/// Whether `value` contains anything of swarm.
pub fn has_ours(value: &Value) -> bool {
    !found(value).is_empty() || marketplace(value).is_some()
}

fn object_at<'a>(
    root: &'a mut Map<String, Value>,
    key: &str,
) -> Result<&'a mut Map<String, Value>, ShapeError> {
    let value = root.entry(key).or_insert_with(|| json!({}));
    value.as_object_mut().ok_or_else(|| ShapeError(format!("\"{key}\" is not an object")))
}

/// Removes a key and keeps the order of the others.
fn remove(value: &mut Value, key: &str) {
    if let Some(root) = value.as_object_mut() {
        root.shift_remove(key);
    }
}

#[cfg(test)]
mod tests;
