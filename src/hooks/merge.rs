//! What is added to a settings file, and taken out of it again: values only.
//!
//! Used by [`super::install`] and [`super::plugin`]. All that is not ours stays as it is and where it is: unknown
//! keys, foreign hooks, their order, and shapes that we would not write. Only where ours must go is a shape
//! insisted on. Deliberately absent: files, and how a value is laid out as text ([`super::layout`]).

use std::path::Path;

use serde_json::{Map, Value, json};
use swarm_state::hook::HookEvent;

use super::command::{TIMEOUT_SECONDS, command};
use super::recognise::{Ours, recognise};

/// The name of our marketplace in Claude Code.
pub const MARKETPLACE: &str = "swarm";

/// Our plugins in it.
pub const PLUGINS: [&str; 2] = ["swarm", "do-it"];

/// A hook of ours in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The event it is for.
    pub event: String,
    /// What it runs.
    pub ours: Ours,
}

/// The file has another shape than an agent would take; the words say where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape(pub String);

/// One hook of ours as it stands in a file.
fn entry(program: &Path, event: HookEvent) -> Value {
    json!({"type": "command", "command": command(program, event), "timeout": TIMEOUT_SECONDS})
}

/// `value` with a hook for each of `events` in it once. What an earlier release of ours wrote is brought up to date where it
/// stands; other events of ours go.
///
/// # Errors
/// When there is something else where hooks belong.
pub fn with_hooks(value: &Value, events: &[HookEvent], program: &Path) -> Result<Value, Shape> {
    check(value)?;
    let mut value = value.clone();
    let needed = |event: &HookEvent, setting: &str, ours: &Ours| {
        event.setting() == Some(setting) && event.word() == ours.word
    };
    let unneeded = |setting: &str, ours: &Ours| !events.iter().any(|event| needed(event, setting, ours));
    take_out(&mut value, &unneeded);
    let root = value.as_object_mut().ok_or_else(|| Shape("it is no object".to_owned()))?;
    let all = object_at(root, "hooks")?;
    for event in events {
        let Some(setting) = event.setting() else { continue };
        let groups = all.entry(setting).or_insert_with(|| json!([]));
        let groups = groups.as_array_mut().ok_or_else(|| Shape(format!("\"hooks.{setting}\" is no list")))?;
        if !update(groups, program, *event) {
            groups.push(json!({"hooks": [entry(program, *event)]}));
        }
    }
    Ok(value)
}

/// Brings the first of ours for `event` up to date and takes out the others; false when there was none. One in a
/// group with a matcher runs for some cases only: it goes.
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
        // A group that only ours made is ours; one that was empty before was not.
        before == list.len() || !list.is_empty()
    });
    there
}

fn matcher_is_open(group: &Value) -> bool {
    group.get("matcher").is_none_or(|matcher| matches!(matcher.as_str(), Some("" | "*")))
}

/// `value` without any hook of ours, and without what then holds nothing.
pub fn without_hooks(value: &Value) -> Value {
    let mut value = value.clone();
    take_out(&mut value, &|_, _| true);
    value
}

/// Takes out the hooks of ours that `goes` says, then the groups, events and the whole `hooks` that became empty by it.
fn take_out(value: &mut Value, goes: &dyn Fn(&str, &Ours) -> bool) {
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

/// The hooks of ours in `value`.
pub fn found(value: &Value) -> Vec<Found> {
    let mut found = vec![];
    for (event, groups) in value.get("hooks").and_then(Value::as_object).into_iter().flatten() {
        let groups = groups.as_array().into_iter().flatten();
        let hooks = groups.filter_map(|group| group.get("hooks")?.as_array()).flatten();
        found.extend(hooks.filter_map(of_ours).map(|ours| Found { event: event.clone(), ours }));
    }
    found
}

fn of_ours(hook: &Value) -> Option<Ours> {
    recognise(hook.get("command")?.as_str()?)
}

/// Insists on what an agent insists on: a file that it would not take is not one to add to.
fn check(value: &Value) -> Result<(), Shape> {
    let root = value.as_object().ok_or_else(|| Shape("it is no object".to_owned()))?;
    let Some(hooks) = root.get("hooks") else { return Ok(()) };
    let hooks = hooks.as_object().ok_or_else(|| Shape("\"hooks\" is no object".to_owned()))?;
    match hooks.iter().find(|(_, groups)| !groups.is_array()) {
        Some((event, _)) => Err(Shape(format!("\"hooks.{event}\" is no list"))),
        None => Ok(()),
    }
}

/// `value` with our marketplace at `dir`, and our plugins enabled. One that the user has disabled stays so.
///
/// # Errors
/// When there is something else where they belong, or a marketplace of that name from elsewhere.
pub fn with_plugins(value: &Value, dir: &str) -> Result<Value, Shape> {
    let mut value = value.clone();
    let root = value.as_object_mut().ok_or_else(|| Shape("it is no object".to_owned()))?;
    let markets = object_at(root, "extraKnownMarketplaces")?;
    if markets.get(MARKETPLACE).is_some_and(|known| known["source"]["source"] != "directory") {
        return Err(Shape(format!("it knows another marketplace of the name '{MARKETPLACE}'")));
    }
    markets.insert(MARKETPLACE.to_owned(), json!({"source": {"source": "directory", "path": dir}}));
    let enabled = object_at(root, "enabledPlugins")?;
    for plugin in PLUGINS {
        enabled.entry(format!("{plugin}@{MARKETPLACE}")).or_insert(Value::Bool(true));
    }
    Ok(value)
}

/// `value` without our marketplace and plugins, and without what then holds nothing.
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

/// The directory of our marketplace, where `value` names it.
pub fn marketplace(value: &Value) -> Option<&str> {
    let source = value.get("extraKnownMarketplaces")?.get(MARKETPLACE)?.get("source")?;
    if source.get("source")? != "directory" {
        return None;
    }
    source.get("path")?.as_str()
}

/// Whether anything in `value` is ours.
pub fn has_ours(value: &Value) -> bool {
    !found(value).is_empty() || marketplace(value).is_some()
}

fn object_at<'a>(root: &'a mut Map<String, Value>, key: &str) -> Result<&'a mut Map<String, Value>, Shape> {
    let value = root.entry(key).or_insert_with(|| json!({}));
    value.as_object_mut().ok_or_else(|| Shape(format!("\"{key}\" is no object")))
}

/// Removes a key; what comes after it keeps its order.
fn remove(value: &mut Value, key: &str) {
    if let Some(root) = value.as_object_mut() {
        root.shift_remove(key);
    }
}

#[cfg(test)]
mod tests;
