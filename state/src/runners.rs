//! The table of known test runners, and which of them a check's command runs.
//!
//! A row is data, like a row of [`crate::profiles`]. Settings (`[runners.NAME]`) can change or add rows. The rows that
//! a loop uses are stored in its baseline, so that a loop keeps those that it was started with. The daemon watches a
//! runner's configuration, reads its summary, and adds its canary. Deliberately absent: the disk and running anything;
//! callers read the files in which a command like `make` or `npm` finds the command that it runs
//! ([`Runner::delegates`]).

use serde::{Deserialize, Serialize};

use crate::scripts::placed_commands;

mod canaries;
mod rows;
#[cfg(test)]
mod tests;

/// All built-in rows.
pub fn table() -> Vec<Runner> {
    rows::table()
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
}

/// A file or glob that configures a runner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunnerConfig {
    /// The glob.
    pub glob: String,
    /// The part of the file that configures the runner; the rest may change. The whole file if empty. A path of keys
    /// in TOML (`tool.pytest`) or JSON (`scripts`), or the name of an INI section.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
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

/// A test that must fail. `{token}` stands for a unique text that the failing test prints, `{id}` for the part of it
/// that is valid in a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CanaryTemplate {
    /// Its file's name, next to the other tests.
    pub file: String,
    /// Its content.
    pub text: String,
    /// The directory for it if the command names none and no test exists yet, relative to the directory that the
    /// runner runs in.
    #[serde(default)]
    pub dir: String,
    /// A line of a neighboring file that the content must begin with, as a regular expression with one group for
    /// `{package}`; empty if there is none.
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
}

/// Finds the known runners that a check's command starts directly, in order.
pub fn recognize(table: &[Runner], check: &str) -> Vec<RunnerUse> {
    let mut found = vec![];
    for command in placed_commands(check) {
        let known = table.iter().find_map(|runner| Some((runner, runner.args_of(&command.words)?)));
        if let Some((runner, args)) = known {
            found.push(RunnerUse {
                check: check.to_owned(),
                runner: runner.clone(),
                dir: command.dir,
                args: args.to_vec(),
            });
        }
    }
    found
}

impl Runner {
    /// The arguments of a command that starts this runner; `None` if it does not.
    fn args_of<'a>(&self, words: &'a [String]) -> Option<&'a [String]> {
        self.commands.iter().find_map(|command| {
            let parts: Vec<&str> = command.split(' ').collect();
            let (start, rest) = words.split_at_checked(parts.len())?;
            let is_same = start.iter().zip(&parts).enumerate().all(|(at, (word, part))| match at {
                0 => program_name(word) == *part,
                _ => word == part,
            });
            is_same.then_some(rest)
        })
    }
}

/// The base name of a program without a version: `python` for `/usr/bin/python3.12`.
fn program_name(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if bare.is_empty() { name } else { bare }
}
