//! The table of known test runners, and which of them a check's command runs.
//!
//! A row is data, like a row of [`crate::profiles`]. Settings (`[runners.NAME]`) can change or add rows. The rows that
//! a loop uses are stored in its baseline, so that a loop keeps those that it was started with. The daemon watches a
//! runner's configuration, reads its summary, and adds its canary. Deliberately absent: the disk and running anything;
//! the caller of [`expand()`] reads the files in which a command like `make` or `npm` finds the command that it runs.

use serde::{Deserialize, Serialize};

mod canaries;
mod delegated;
mod expand;
mod forms;
mod parts;
mod rows;
mod targets;
#[cfg(test)]
mod tests;

pub use expand::{CheckProgram, Expansion, expand};
pub use parts::parts_of;
pub use rows::table;

/// Files that Python loads when it starts, relative to a dependency folder. They count as configuration.
pub const STARTUP_HOOKS: [&str; 3] = [
    "lib*/python*/site-packages/*.pth",
    "lib*/python*/site-packages/sitecustomize.py",
    "lib*/python*/site-packages/usercustomize.py",
];

/// Directories that a package manager fills, by name. A Python environment of any name has a `pyvenv.cfg`.
pub const DEPENDENCY_DIRS: [&str; 5] = ["node_modules", ".venv", "venv", "vendor", ".tox"];

/// The rows of the settings, then the built-in rows. Of two rows with the same name, the first one counts.
pub fn table_with(own: &[Runner]) -> Vec<Runner> {
    let is_new = |row: &Runner| own.iter().all(|other| other.name != row.name);
    own.iter().cloned().chain(table().into_iter().filter(is_new)).collect()
}

/// The facts about one test runner that swarm uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Runner {
    /// Its name in settings and messages.
    pub name: String,
    /// The words of a command that start it: `pytest`, `cargo test`, `python -m pytest`. The first word is a program's
    /// base name; a version at its end (`python3.12`) is allowed.
    pub commands: Vec<String>,
    /// Its configuration, relative to the directory that it runs in. Files that do not exist yet count too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub config: Vec<RunnerConfig>,
    /// Globs of its test files, relative to the directory that it runs in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
    /// How its output counts tests.
    pub summary: SummaryFormat,
    /// A test that must fail; `None` if swarm cannot write one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanaryTemplate>,
    /// The place of the command that it runs, if it only runs others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delegates: Option<Delegation>,
    /// Options whose value is one more file of its configuration.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub config_options: Vec<String>,
    /// Options whose value is the directory that it runs in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dir_options: Vec<String>,
    /// Globs of the directories with its own code, relative to a dependency folder.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<String>,
    /// Variables that are set to a new directory for its caches, unless the environment has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cache_variables: Vec<String>,
}

/// A file or glob that configures a runner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunnerConfig {
    /// The glob, relative to the directory that the runner runs in, or to the home directory after `~/`. Without
    /// wildcards, the directories above count too.
    pub glob: String,
    /// The parts of the file that configure the runner, as in [`parts_of`]; the rest may change. The whole file if
    /// empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    /// The file hides a module of the runner. A file that exists before the loop may change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hides: bool,
}

/// The format in which a runner prints how many tests ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SummaryFormat {
    /// Unknown.
    #[default]
    None,
    /// `3 passed, 1 skipped in 0.1s`
    Pytest,
    /// `Ran 3 tests in 0.1s`, `OK (skipped=1)`
    Unittest,
    /// `test result: ok. 3 passed; 0 failed; 1 ignored; …`, once for each binary.
    Libtest,
    /// `Summary [0.1s] 3 tests run: 3 passed, 1 skipped`
    Nextest,
    /// TAP, also the `# tests 3` lines of `node --test`.
    Tap,
    /// `Tests: 1 failed, 2 passed, 3 total`
    Jest,
    /// `Tests  2 passed | 1 skipped (3)`
    Vitest,
    /// `2 passing`, `1 pending`
    Mocha,
    /// `--- PASS: TestA`, `ok  package`
    Go,
    /// `3 examples, 0 failures, 1 pending`
    Rspec,
    /// `OK (3 tests, 4 assertions)`
    Phpunit,
    /// `100% tests passed, 0 tests failed out of 3`
    Ctest,
    /// `Passed!  - Failed: 0, Passed: 3, Skipped: 0, Total: 3`
    Dotnet,
    /// `Tests run: 3, Failures: 0, Errors: 0, Skipped: 1`
    Maven,
}

/// A test that must fail. `{token}` is a unique text that the failing test prints, `{id}` the part of it
/// that is valid in a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CanaryTemplate {
    /// Its file's name, next to the other tests.
    pub file: String,
    /// Its content.
    pub text: String,
    /// The directory if the command names none and no test exists, relative to the directory that the runner runs in.
    #[serde(default)]
    pub dir: String,
    /// A line of a neighboring file that the content must begin with: a regex with a group for `{package}`, or empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub package: String,
}

/// The place in which a program like `make` finds the commands that it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delegation {
    /// The recipe of a target in a makefile.
    Make,
    /// The recipe of a justfile.
    Just,
    /// `scripts` of `package.json`.
    Package,
    /// `commands` of `tox.ini`.
    Tox,
}

/// A runner in a check's command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunnerUse {
    /// The check's command.
    pub check: String,
    /// The runner.
    pub runner: Runner,
    /// The directory that it runs in, relative to the worker's directory: empty, or with a `/` at its end.
    pub dir: String,
    /// Its arguments, after the words that start it.
    pub args: Vec<String>,
    /// More files that configure it, relative to `dir`: those that its arguments or its makefile name, and files that
    /// `make` would treat as a target that is already built.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// Finds the known runners that a check's command starts directly, in order.
pub fn recognize(table: &[Runner], check: &str) -> Vec<RunnerUse> {
    expand(table, &[check.to_owned()], &|_| None).runners
}

impl Runner {
    /// The arguments of a command that starts this runner; `None` if it does not.
    fn args_of<'a>(&self, words: &'a [String]) -> Option<&'a [String]> {
        self.commands.iter().find_map(|command| after(command, words))
    }
}

/// The words after those of `command`. Options may stand between its words.
fn after<'a>(command: &str, words: &'a [String]) -> Option<&'a [String]> {
    let mut parts = command.split(' ');
    let (first, mut rest) = words.split_first()?;
    if program_name(first) != parts.next()? {
        return None;
    }
    for part in parts {
        let at = starts(rest).find(|at| rest[*at] == part)?;
        rest = &rest[at + 1..];
    }
    Some(rest)
}

/// The places of the word after the options at the beginning. The word after an option may be its value.
fn starts(words: &[String]) -> impl Iterator<Item = usize> {
    let is_option = |word: &String| word.starts_with(['-', '+']);
    let is_before = move |at: usize| is_option(&words[at]) || at > 0 && is_option(&words[at - 1]);
    let end = (0..words.len()).find(|at| !is_before(*at)).unwrap_or(words.len());
    (0..words.len()).take_while(move |at| *at <= end)
}

/// The values of options: `-f FILE`, `-fFILE`, `--file FILE`, `--file=FILE`.
fn option_values(words: &[String], options: &[String]) -> Vec<String> {
    let next = words.iter().skip(1).map(Some).chain([None]);
    let value = |(word, next): (&String, Option<&String>)| match word.split_once('=') {
        Some((option, value)) if options.iter().any(|known| known == option) => Some(value.to_owned()),
        _ if options.contains(word) => next.cloned(),
        _ => {
            let short = options.iter().filter(|option| option.len() == 2);
            let value = short.filter_map(|option| word.strip_prefix(option.as_str())).next();
            value.filter(|value| !value.is_empty()).map(str::to_owned)
        }
    };
    words.iter().zip(next).filter_map(value).collect()
}

/// The base name of a program without a version: `python` for `/usr/bin/python3.12`.
fn program_name(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').trim_end_matches('-');
    if bare.is_empty() { name } else { bare }
}
