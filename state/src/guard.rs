//! The guard: stops dangerous tool calls of an agent that no sandbox holds.
//!
//! It reads a command line ([`shell`], [`starters`]), compares each command with a table of dangerous classes
//! ([`classes`]), and knows the files that an agent has no reason to change or read ([`place`]). `swarm hook
//! pre-tool-use` asks it before each call of a tool. It is for mistakes, not for attacks: a command can be written in
//! a way that no such table knows, and only a sandbox protects. Deliberately absent: running anything, the disk, and
//! the content of scripts.

mod classes;
mod place;
mod scene;
mod shell;
mod starters;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::Value;

pub use classes::{CLASSES, GuardClass};
pub use place::GuardPlace;
use place::{Protected, SOME, patched_files, resolve};
use scene::Scene;

use crate::pattern::{Pattern, PatternError};

/// The maximum length of a stopped command in a message.
const MAX_SHOWN_CHARS: usize = 200;

/// A tool call that the guard stopped.
pub struct Denial {
    /// The class.
    pub class: &'static GuardClass,
    /// The command or the file.
    pub what: String,
}

impl Denial {
    /// The text for the agent: the stopped call, the reason, and an alternative.
    pub fn reason(&self, settings: &str) -> String {
        format!(
            "swarm's guard stopped: {self}. {} Do not look for another way to do the same. If the task needs it, say so: \
             the user can allow it with a pattern under [guard] in {settings} (see man swarm-config).",
            self.class.reason,
        )
    }
}

impl std::fmt::Display for Denial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = self.what.split_whitespace().collect::<Vec<_>>().join(" ");
        let short: String = what.chars().take(MAX_SHOWN_CHARS).collect();
        let more = if short.len() < what.len() { "…" } else { "" };
        write!(f, "{short}{more} ({})", self.class.name)
    }
}

/// The allowed commands: patterns, each of which must match a whole command.
#[derive(Clone, Debug, Default)]
pub struct Allowed(Vec<Pattern>);

impl Allowed {
    /// Compiles the patterns; the error is about the first that is not valid.
    pub fn new(patterns: &[String]) -> Result<Self, PatternError> {
        let whole = |pattern: &String| Pattern::compile(&format!(r"\A(?:{pattern})\Z"));
        patterns.iter().map(whole).collect::<Result<_, _>>().map(Self)
    }

    fn has(&self, command: &str) -> bool {
        self.0.iter().any(|pattern| pattern.is_match(command))
    }
}

/// Judges a tool call; `None` allows it.
pub fn judge(tool: &str, input: &Value, place: &GuardPlace, allowed: &Allowed) -> Option<Denial> {
    let text = |name: &str| input.get(name).and_then(Value::as_str);
    let files =
        |names: &[&str]| names.iter().filter_map(|name| text(name)).map(str::to_owned).collect::<Vec<_>>();
    match tool {
        "Bash" | "shell" | "exec_command" => judge_line(text("command").or(text("cmd"))?, place, allowed),
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => {
            judge_files(tool, &files(&["file_path", "notebook_path"]), place, allowed, &GuardPlace::written)
        }
        "apply_patch" => {
            let patch = text("command").or(text("input"))?;
            judge_files(tool, &patched_files(patch), place, allowed, &GuardPlace::written)
        }
        "Read" | "Grep" => {
            judge_files(tool, &files(&["file_path", "path"]), place, allowed, &|place, path| {
                place.is_credential(path).then_some(Protected::Credential)
            })
        }
        _ => None,
    }
}

fn judge_line(line: &str, place: &GuardPlace, allowed: &Allowed) -> Option<Denial> {
    let vars = [
        ("HOME", &place.home),
        ("PWD", &place.cwd),
        ("PROJECT", place.project.first().unwrap_or(&place.cwd)),
    ];
    let mut vars: BTreeMap<String, String> =
        vars.into_iter().map(|(name, value)| (name.to_owned(), value.clone())).collect();
    vars.insert("TMPDIR".to_owned(), format!("/tmp/{SOME}"));
    let script = shell::read(line, &place.cwd, vars);
    for pipeline in &script.pipelines {
        for command in &pipeline.commands {
            let scene = Scene { place, pipeline, command, functions: &script.functions };
            if let Some(class) = CLASSES.iter().find(|class| class.applies(&scene))
                && !allowed.has(&command.text)
                && !allowed.has(&pipeline.text)
            {
                return Some(Denial { class, what: pipeline.text.clone() });
            }
        }
    }
    None
}

fn judge_files(
    tool: &str,
    files: &[String],
    place: &GuardPlace,
    allowed: &Allowed,
    group: &dyn Fn(&GuardPlace, &str) -> Option<Protected>,
) -> Option<Denial> {
    files.iter().find_map(|file| {
        let group = group(place, &resolve(Some(&place.cwd), file)?)?;
        let class = CLASSES.iter().find(|class| class.files == Some(group))?;
        let what = format!("{tool} {file}");
        (!allowed.has(&what)).then_some(Denial { class, what })
    })
}
