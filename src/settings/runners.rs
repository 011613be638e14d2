//! `[runners.NAME]`: changes to the known test runners, and new ones.
//!
//! Each key replaces one field of a row of [`swarm_state::runners`]. The row wins over the built-in one.

use std::path::{Component, Path};

use globset::Glob;
use serde_json::Value;
use swarm_state::runners::{self, CanaryTemplate, Runner, RunnerConfig};

use super::read::{Fault, SettingEntry};
use crate::error::{Error, Result};

/// A key, and how its value is read into a row.
type RunnerKey = (&'static str, fn(&mut Runner, &SettingEntry<'_>) -> Result<(), Fault>);

/// Every key of `[runners.NAME]`.
pub(super) const RUNNER_KEYS: [RunnerKey; 9] = [
    ("commands", |row, entry| set(&mut row.commands, commands(entry))),
    ("config", |row, entry| {
        let texts = entry.texts()?;
        row.config = texts.iter().map(|text| config(text, entry)).collect::<Result<_, _>>()?;
        Ok(())
    }),
    ("config_options", |row, entry| set(&mut row.config_options, entry.texts())),
    ("dir_options", |row, entry| set(&mut row.dir_options, entry.texts())),
    ("tests", |row, entry| {
        row.tests = entry.texts()?;
        row.tests.iter().try_for_each(|text| check_glob(text, entry))
    }),
    ("summary", |row, entry| {
        let read = serde_json::from_value(Value::String(entry.text()?));
        row.summary = read.map_err(|_| entry.must_be("the summary of a known runner, such as \"pytest\""))?;
        Ok(())
    }),
    ("canary_file", |row, entry| set(&mut canary(row).file, entry.text())),
    ("canary_text", |row, entry| set(&mut canary(row).text, entry.text())),
    ("canary_dir", |row, entry| set(&mut canary(row).dir, entry.text())),
];

/// Reads one section into its row: the row of an earlier file, a copy of the built-in row, or a new one. The command of
/// a new row has its name until a key changes it.
pub(super) fn read(rows: &mut Vec<Runner>, section: &SettingEntry<'_>) -> Result<(), Fault> {
    let name = section.key;
    let at = rows.iter().position(|row| row.name == name).unwrap_or_else(|| {
        let new = || Runner { name: name.to_owned(), commands: vec![name.to_owned()], ..Runner::default() };
        rows.push(runners::table().into_iter().find(|row| row.name == name).unwrap_or_else(new));
        rows.len() - 1
    });
    section.each(|entry| match RUNNER_KEYS.iter().find(|(key, _)| *key == entry.key) {
        Some((_, read)) => read(&mut rows[at], entry),
        None => Err(entry.unknown(&RUNNER_KEYS.map(|(key, _)| key))),
    })
}

/// Refuses rows with half a canary, or with one that swarm could not recognize afterwards.
pub(super) fn check(rows: &[Runner]) -> Result<()> {
    for row in rows {
        let Some(canary) = &row.canary else { continue };
        if !canary.text.is_empty() && !canary.text.contains("{token}") {
            let message = format!("[runners.{}]: canary_text must contain {{token}}", row.name);
            return Err(Error::invalid(message).hint("the failing test prints it: man swarm-config"));
        }
        let is_inside =
            |path: &str| Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        if !is_inside(&canary.file) || !is_inside(&canary.dir) {
            let message = format!(
                "[runners.{}]: canary_file and canary_dir must be relative paths without '..'",
                row.name
            );
            return Err(
                Error::invalid(message).hint("swarm adds the failing test below the runner's directory")
            );
        }
    }
    let is_half = |row: &&Runner| {
        row.canary.as_ref().is_some_and(|canary| canary.file.is_empty() || canary.text.is_empty())
    };
    let Some(row) = rows.iter().find(is_half) else { return Ok(()) };
    Err(Error::invalid(format!("[runners.{}]: a canary requires canary_file and canary_text", row.name)))
}

/// The commands that start a runner. Without one, no check could use it.
fn commands(entry: &SettingEntry<'_>) -> Result<Vec<String>, Fault> {
    let commands = entry.texts()?;
    let is_valid = !commands.is_empty() && commands.iter().all(|command| !command.trim().is_empty());
    if is_valid { Ok(commands) } else { Err(entry.must_be("a list of commands, such as [\"mytests run\"]")) }
}

/// `FILE`, or `FILE#PART` for one part of a file.
fn config(text: &str, entry: &SettingEntry<'_>) -> Result<RunnerConfig, Fault> {
    let (glob, part) = text.split_once('#').map_or((text, None), |(glob, part)| (glob, Some(part)));
    check_glob(glob, entry)?;
    Ok(RunnerConfig {
        glob: glob.to_owned(),
        parts: part.into_iter().map(str::to_owned).collect(),
        hides: false,
    })
}

fn check_glob(text: &str, entry: &SettingEntry<'_>) -> Result<(), Fault> {
    let is_outside = text.starts_with('/') || text.split('/').any(|part| part == "..");
    match Glob::new(text) {
        Ok(_) if !is_outside => Ok(()),
        Ok(_) => Err(entry.fault(&format!("must be relative to the runner's directory: {text}"))),
        Err(error) => Err(entry.fault(&format!("is not a valid glob: {error}"))),
    }
}

fn canary(row: &mut Runner) -> &mut CanaryTemplate {
    let empty = || String::new();
    row.canary.get_or_insert_with(|| CanaryTemplate {
        file: empty(),
        text: empty(),
        dir: empty(),
        package: empty(),
    })
}

fn set<T>(field: &mut T, value: Result<T, Fault>) -> Result<(), Fault> {
    *field = value?;
    Ok(())
}
