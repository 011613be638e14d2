//! The commands that programs such as `make` and `npm` find in files.
//!
//! Each function returns them as one text with a command on each line. Only plain text is read: of the variables of
//! `make`, only `$(MAKE)` is replaced.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{RunnerUse, program_name};
use crate::scripts::{SHELLS, is_interpreter};

/// The files that `make` reads, in its order.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

const JUSTFILES: [&str; 3] = ["justfile", "Justfile", ".justfile"];

const PACKAGE: &str = "package.json";

const SCRIPTS: &str = "scripts";

/// How deep makefiles include others, and targets require others.
const MAX_NESTING: u8 = 20;

/// Reads a file of the directory in which the program runs.
type Read<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The commands of a script for the shell; `None` for another language. `program` runs it, `place` is its directory.
pub(super) fn script(text: &str, program: &str, place: &str) -> Option<String> {
    let shell = match text.strip_prefix("#!").and_then(|rest| rest.lines().next()) {
        _ if SHELLS.contains(&program_name(program)) => "sh",
        Some(line) => program_name(line.split_whitespace().find(|word| !word.ends_with("/env"))?),
        None if is_interpreter(program) => return None,
        None => "sh",
    };
    let here = ["$(dirname \"$0\")", "$(dirname $0)", "$(dirname \"${BASH_SOURCE[0]}\")", "${0%/*}"];
    let plain = here.iter().fold(text.to_owned(), |text, spelling| text.replace(spelling, place));
    SHELLS.contains(&shell).then(|| plain.replace("\\\n", " "))
}

/// The recipes of the targets of `make`. Adds the included files, and files that hide a target, to the run's files.
pub(super) fn make(using: &mut RunnerUse, read: Read<'_>) -> String {
    let named: Vec<String> = using.files.clone();
    let first = || MAKEFILES.iter().find(|file| read(file).is_some()).map(|file| (*file).to_owned());
    let files = if named.is_empty() { first().into_iter().collect() } else { named };
    let mut makefile = Makefile::default();
    for file in files {
        makefile.add(&file, read, MAX_NESTING, &mut using.files);
    }
    let is_target = |word: &&String| !word.starts_with('-') && !word.contains('=');
    let mut targets: Vec<String> = using.args.iter().filter(is_target).cloned().collect();
    targets.retain(|target| makefile.rules.iter().any(|rule| rule.targets.contains(target)));
    if targets.is_empty() {
        let mut all = makefile.rules.iter().flat_map(|rule| &rule.targets);
        targets.extend(all.find(|target| !target.starts_with('.') && !target.contains('%')).cloned());
    }
    for target in &targets {
        let recipe = makefile.recipe(target);
        let is_made = |line: &String| {
            [
                "$@",
                &format!("-o {target}"),
                &format!("> {target}"),
                &format!(">{target}"),
                &format!("touch {target}"),
            ]
            .iter()
            .any(|sign| line.contains(*sign))
        };
        if !makefile.phony.contains(target) && !recipe.iter().any(is_made) {
            using.files.push(target.clone());
        }
    }
    let (mut seen, mut lines) = (BTreeSet::new(), vec![]);
    targets.iter().for_each(|target| makefile.gather(target, &mut seen, &mut lines));
    lines.join("\n").replace("$(MAKE)", "make").replace("${MAKE}", "make").replace("$$", "$")
}

#[derive(Default)]
struct Makefile {
    rules: Vec<Rule>,
    phony: BTreeSet<String>,
}

#[derive(Default)]
struct Rule {
    targets: Vec<String>,
    needs: Vec<String>,
    recipe: Vec<String>,
}

impl Makefile {
    fn add(&mut self, file: &str, read: Read<'_>, depth: u8, files: &mut Vec<String>) {
        let Some(text) = read(file) else { return };
        let mut is_open = false;
        for line in text.replace("\\\n", " ").lines() {
            if let (Some(command), true) = (line.strip_prefix('\t'), is_open) {
                let command = command.trim_start().trim_start_matches(['@', '-', '+']).trim().to_owned();
                self.rules.last_mut().into_iter().for_each(|rule| rule.recipe.push(command.clone()));
                continue;
            }
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace().map(str::to_owned);
            if let Some("include" | "-include" | "sinclude") = line.split_whitespace().next() {
                for included in words.skip(1).filter(|word| !word.contains(['$', '*', '?'])) {
                    if depth > 0 && !files.contains(&included) {
                        files.push(included.clone());
                        self.add(&included, read, depth - 1, files);
                    }
                }
            } else if let Some((targets, rest)) = rule_line(line) {
                let (needs, command) = rest.split_once(';').map_or((rest, None), |(n, c)| (n, Some(c)));
                let needs: Vec<String> = needs.split_whitespace().map(str::to_owned).collect();
                let targets: Vec<String> = targets.split_whitespace().map(str::to_owned).collect();
                if targets == [".PHONY"] {
                    self.phony.extend(needs.iter().cloned());
                }
                let recipe = command.map(|c| c.trim().trim_start_matches(['@', '-', '+']).to_owned());
                self.rules.push(Rule { targets, needs, recipe: recipe.into_iter().collect() });
                is_open = true;
            } else if words.next().is_some() {
                is_open = false;
            }
        }
    }

    fn recipe(&self, target: &str) -> Vec<String> {
        let own = self.rules.iter().filter(|rule| rule.targets.iter().any(|name| name == target));
        own.flat_map(|rule| rule.recipe.iter().cloned()).collect()
    }

    /// The commands of a target, after those of the targets that it requires.
    fn gather(&self, target: &str, seen: &mut BTreeSet<String>, lines: &mut Vec<String>) {
        if !seen.insert(target.to_owned()) || seen.len() > 1000 {
            return;
        }
        let own = self.rules.iter().filter(|rule| rule.targets.iter().any(|name| name == target));
        let needs = own.flat_map(|rule| &rule.needs).filter(|need| *need != "|");
        needs.for_each(|need| self.gather(need, seen, lines));
        // Each line has a shell of its own.
        lines.extend(self.recipe(target).iter().map(|command| format!("({command})")));
    }
}

/// The targets and the rest of a rule; `None` for an assignment and other lines.
pub(super) fn rule_line(line: &str) -> Option<(&str, &str)> {
    let (targets, rest) = line.split_once(':')?;
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let is_rule = !targets.contains('=') && !rest.trim_start().starts_with('=') && !targets.trim().is_empty();
    // `target: VARIABLE = value`
    let is_variable = rest.split_whitespace().nth(1).is_some_and(|word| word.ends_with('='));
    (is_rule && !line.starts_with([' ', '\t'])).then_some((targets, if is_variable { "" } else { rest }))
}

/// The lines of the recipe of `just`, after those of the recipes that it requires.
pub(super) fn just(using: &RunnerUse, read: Read<'_>) -> String {
    let named = using.files.iter().map(String::as_str).chain(JUSTFILES);
    let text = named.filter_map(read).next().unwrap_or_default();
    let mut recipes: Vec<(String, Vec<String>, Vec<String>)> = vec![];
    for line in text.lines() {
        if line.starts_with([' ', '\t']) {
            let command = line.trim().trim_start_matches(['@', '-']).to_owned();
            recipes.last_mut().into_iter().for_each(|(.., lines)| lines.push(command.clone()));
        } else if let Some((head, needs)) = line.split_once(':').filter(|(_, rest)| !rest.starts_with('=')) {
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let name = head.trim_start_matches('@').split_whitespace().next().unwrap_or_default();
            recipes.push((name.to_owned(), words(&needs.replace(['&', '(', ')'], " ")), vec![]));
        }
    }
    let known = |name: &String| recipes.iter().find(|(recipe, ..)| recipe == name);
    let mut wanted: Vec<String> = using.args.iter().filter(|word| known(word).is_some()).cloned().collect();
    if wanted.is_empty() {
        wanted.extend(recipes.first().map(|(name, ..)| name.clone()));
    }
    let (mut seen, mut lines) = (BTreeSet::new(), vec![]);
    while let Some(name) = wanted.pop() {
        if let Some((_, needs, own)) = known(&name).filter(|_| seen.insert(name.clone())) {
            wanted.extend(needs.iter().cloned());
            lines.extend(own.iter().map(|command| format!("({command})")));
        }
    }
    lines.join("\n")
}

/// The `commands` of `tox.ini`.
pub(super) fn tox(read: Read<'_>) -> String {
    let (mut is_in, mut lines) = (false, vec![]);
    let text = ["tox.ini", "setup.cfg"].into_iter().filter_map(read).next().unwrap_or_default();
    for line in text.lines() {
        let key = line.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        match key {
            Some((key, value)) if !line.starts_with([' ', '\t']) => {
                is_in = key.starts_with("commands");
                lines.extend(is_in.then(|| value.to_owned()));
            }
            _ if is_in && line.starts_with([' ', '\t']) => lines.push(line.trim().to_owned()),
            _ => is_in = false,
        }
    }
    lines.join("\n")
}

/// The script of `package.json` that a package manager runs; its arguments, if `words` name none. Watches only the
/// scripts that run, and those whose names occur in them.
pub(super) fn package(using: &mut RunnerUse, words: &[String], read: Read<'_>) -> String {
    let package: Value = read(PACKAGE).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let script = |name: &str| package["scripts"][name].as_str();
    let full = |word: &String| if word == "t" { "test".to_owned() } else { word.clone() };
    let name = words.iter().skip(1).map(full).find(|name| script(name).is_some());
    // A script that is added under this name later would run.
    let absent = words.iter().skip(1).map(full).filter(|word| !word.starts_with('-')).collect();
    let watched = scripts_from(&package["scripts"], name.clone().map_or(absent, |name| vec![name]));
    for config in using.runner.config.iter_mut().filter(|config| config.glob == PACKAGE) {
        if let (Some(at), Some(watched)) = (config.parts.iter().position(|part| part == SCRIPTS), &watched) {
            config.parts.splice(at..=at, watched.iter().map(|name| format!("{SCRIPTS}.{name}")));
        }
    }
    let Some(name) = name else { return using.args.join(" ") };
    let texts: Vec<String> =
        with_hooks(&name).iter().filter_map(|name| script(name)).map(str::to_owned).collect();
    texts.join("\n")
}

/// The scripts that a package manager runs for one name.
fn with_hooks(name: &str) -> [String; 3] {
    [format!("pre{name}"), name.to_owned(), format!("post{name}")]
}

/// These scripts, and those whose names occur in them, as in `run-s lint test`. `None` if a pattern such as `test:*`
/// selects scripts.
fn scripts_from(scripts: &Value, mut open: Vec<String>) -> Option<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let all: Vec<&String> = scripts.as_object().into_iter().flatten().map(|(name, _)| name).collect();
    while let Some(name) = open.pop() {
        for name in with_hooks(&name) {
            if !found.insert(name.clone()) {
                continue;
            }
            let text = scripts[&name].as_str().unwrap_or_default();
            let words = text.split(|c: char| c.is_whitespace() || "'\"();|&".contains(c));
            for word in words.map(|word| word.strip_prefix("npm:").unwrap_or(word)) {
                if let Some((start, _)) = word.split_once('*')
                    && !start.is_empty()
                    && (start.ends_with(':') || all.iter().any(|name| name.starts_with(start)))
                {
                    return None;
                }
                open.extend(all.iter().filter(|name| name.as_str() == word).map(|name| (*name).clone()));
            }
        }
    }
    Some(found)
}
