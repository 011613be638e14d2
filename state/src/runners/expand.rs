//! Follows the commands of checks to the runners, scripts and programs that they start.
//!
//! `make test` runs the recipe of a makefile, `npm test` a script of `package.json`, and `sh check.sh` the commands of
//! a file. Deliberately absent: variables, and languages other than the shell's.

use serde::{Deserialize, Serialize};

use super::{Delegation, Runner, RunnerUse, after, delegated, option_values, starts, targets};
use crate::scripts::{PlacedCommand, is_interpreter, placed, placed_commands};

/// How many files are followed from a check to a runner.
const MAX_FOLLOWED_FILES: u8 = 5;

/// Programs that start the program in their arguments, and the directories in which it is searched before the PATH.
const LAUNCHERS: [(&str, &str); 24] = [
    ("npx", BIN),
    ("npm exec", BIN),
    ("npm x", BIN),
    ("pnpm exec", BIN),
    ("pnpm dlx", BIN),
    ("yarn exec", BIN),
    ("yarn dlx", BIN),
    ("bunx", BIN),
    ("bun x", BIN),
    ("uv run", VENV),
    ("uvx", VENV),
    ("poetry run", VENV),
    ("pipenv run", VENV),
    ("pdm run", VENV),
    ("hatch run", VENV),
    ("rye run", VENV),
    ("pixi run", VENV),
    ("python -m", ""),
    ("bundle exec", ""),
    ("xvfb-run", ""),
    ("mise exec", ""),
    ("mise x", ""),
    ("ccache", ""),
    ("strace", ""),
];

const BIN: &str = "node_modules/.bin";
const VENV: &str = ".venv/bin";

/// Programs that run the arguments of Python.
const PYTHONS: [&str; 2] = ["coverage run", "python -m coverage run"];

/// Everything that checks start, as far as it can be seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expansion {
    /// The known runners, in order.
    pub runners: Vec<RunnerUse>,
    /// The words that may name files which the commands run, relative to the worker's directory.
    pub scripts: Vec<String>,
    /// The programs.
    pub programs: Vec<CheckProgram>,
}

/// A program that a check starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckProgram {
    /// Its name or path, as in the command.
    pub name: String,
    /// The directory that it runs in: empty, or with a `/` at its end.
    pub dir: String,
    /// The directory in which it is searched before the PATH, in `dir` and above; empty if there is none.
    pub first: String,
}

/// Finds all that `checks` start. `read` returns the text of a file in the worker's directory, `None` if it is absent.
pub fn expand(table: &[Runner], checks: &[String], read: &dyn Fn(&str) -> Option<String>) -> Expansion {
    let mut walk = Walk { table, read, check: "", in_script: false, found: Expansion::default() };
    for check in checks {
        walk.check = check;
        walk.text(check, "", "", MAX_FOLLOWED_FILES);
    }
    walk.found
}

struct Walk<'a> {
    table: &'a [Runner],
    read: &'a dyn Fn(&str) -> Option<String>,
    check: &'a str,
    /// The current commands are those of a script. It may start the program that the agent works on, so the files that
    /// it names are not watched.
    in_script: bool,
    found: Expansion,
}

impl Walk<'_> {
    /// The commands of a text that runs in a directory.
    fn text(&mut self, text: &str, dir: &str, first: &str, depth: u8) {
        for mut command in placed_commands(text) {
            command.dir = placed(dir, &command.dir);
            self.program("sh", &command.dir, first);
            self.command(&command, first, depth);
        }
    }

    fn command(&mut self, command: &PlacedCommand, first: &str, depth: u8) {
        for starter in &command.starters {
            self.program(starter, &command.dir, first);
        }
        let files = command.files();
        for file in &files {
            if !self.in_script && !self.found.scripts.contains(file) {
                self.found.scripts.push(file.clone());
            }
        }
        let Some(program) = command.words.first() else { return };
        self.program(program, &command.dir, first);
        if self.run(command, &command.words, first, depth) || depth == 0 {
            return;
        }
        // Scripts of the shell: a program with a path, or the argument of an interpreter.
        let named = if is_interpreter(program) { &files[1..] } else { &files[..] };
        for file in named.iter().filter(|file| file.contains(['/', '.'])) {
            let Some(text) = (self.read)(file) else { continue };
            let (place, _) = file.rsplit_once('/').unwrap_or((".", ""));
            if let Some(commands) = delegated::script(&text, program, place) {
                let was_in_script = std::mem::replace(&mut self.in_script, true);
                // A script runs in the directory of its caller.
                self.text(&commands, &command.dir, first, depth - 1);
                self.in_script = was_in_script;
            }
        }
    }

    /// Finds the runner behind launchers. Returns whether there is one.
    fn run(&mut self, command: &PlacedCommand, words: &[String], first: &str, depth: u8) -> bool {
        let known = self.table.iter().find_map(|runner| Some((runner, runner.args_of(words)?)));
        if let Some((runner, args)) = known {
            self.start(runner, command, words, args, depth);
            return true;
        }
        if let Some(rest) = PYTHONS.iter().find_map(|launcher| after(launcher, words)) {
            let python = [&["python".to_owned()], rest].concat();
            return self.run(command, &python, first, depth);
        }
        let launched = LAUNCHERS.iter().find_map(|(launcher, first)| Some((after(launcher, words)?, *first)));
        let Some((rest, bin)) = launched else { return false };
        let first = if bin.is_empty() { first } else { bin };
        for at in starts(rest) {
            if self.run(command, &rest[at..], first, depth) {
                self.program(&rest[at], &command.dir, first);
                return true;
            }
        }
        let program = rest.iter().find(|word| !word.starts_with('-'));
        program.into_iter().for_each(|program| self.program(program, &command.dir, first));
        false
    }

    fn start(
        &mut self,
        runner: &Runner,
        command: &PlacedCommand,
        words: &[String],
        args: &[String],
        depth: u8,
    ) {
        let dirs = option_values(&words[1..], &runner.dir_options);
        let into = |dir: String, to: &String| format!("{}/", placed(&dir, to).trim_end_matches('/'));
        let dir = dirs.iter().fold(command.dir.clone(), into);
        let mut using = RunnerUse {
            check: self.check.to_owned(),
            runner: runner.clone(),
            dir: dir.clone(),
            args: args.to_vec(),
            files: option_values(&words[1..], &runner.config_options),
        };
        let read = |file: &str| (self.read)(&placed(&dir, file));
        let Some(delegation) = runner.delegates.filter(|_| depth > 0) else {
            return self.found.runners.push(using);
        };
        let (text, first) = match delegation {
            Delegation::Make => {
                let part = targets::part_name(args);
                using.runner.config.iter_mut().for_each(|config| config.parts = vec![part.clone()]);
                (delegated::make(&mut using, &read), "")
            }
            Delegation::Just => (delegated::just(&using, &read), ""),
            Delegation::Tox => (delegated::tox(&read), ""),
            Delegation::Package => (delegated::package(&mut using, words, &read), BIN),
        };
        self.found.runners.push(using);
        self.text(&text, &dir, first, depth - 1);
    }

    fn program(&mut self, name: &str, dir: &str, first: &str) {
        let is_plain = !name.is_empty() && !name.contains(['$', '*', '`', '=', '\n']);
        let is_plain = is_plain && !(self.in_script && name.contains('/'));
        let program = CheckProgram { name: name.to_owned(), dir: dir.to_owned(), first: first.to_owned() };
        if is_plain && !self.found.programs.contains(&program) {
            self.found.programs.push(program);
        }
    }
}
