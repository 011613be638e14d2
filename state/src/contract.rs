//! The contract: the text for an iteration of a verified loop, and the progress file.
//!
//! Every iteration starts with a clean context, so the contract has all of it: the task, the rules, the changes since
//! the loop began, the checks that failed last time and the history so far. A loop without gates has no contract: its
//! prompt file is used unchanged. Used by the daemon before each run. Deliberately absent: reading files and running
//! git; the caller passes texts.

mod diff;
mod progress;
mod turn;

#[cfg(test)]
mod tests;

use diff::shortened_to;
pub use diff::{MAX_DIFF_CHARS, files_in, shortened, without_dir};
pub use progress::{HEADING, ProgressEntry};
pub use turn::{MAX_STORY_DIFF_CHARS, StoryChanges, TurnSection};

use crate::promise::Promise;
use crate::rooms::RoomGates;

/// Maximum length of a failed check's output in the next contract, characters; the end is kept.
pub const MAX_OUTPUT_CHARS: usize = 2_000;

/// A check that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed<'a> {
    /// The command.
    pub check: &'a str,
    /// Its output, as far as known.
    pub output: &'a str,
}

/// The contents of a contract.
#[derive(Clone, Copy, Debug)]
pub struct Contract<'a> {
    /// The task or the spec.
    pub task: &'a str,
    /// The iteration, from 1.
    pub iteration: u32,
    /// The maximum number of iterations.
    pub max_iterations: u32,
    /// The commands that must pass.
    pub checks: &'a [String],
    /// Files that must stay as they are.
    pub protected: &'a [String],
    /// The test runners whose configuration must stay as it is.
    pub configured: &'a [String],
    /// Their test files must not change either.
    pub tests: bool,
    /// The gates that are tested outside of the agent's tree. The text does not mention held-out checks.
    pub rooms: &'a RoomGates,
    /// The promise that the agent must print when it is done.
    pub promise: Option<&'a Promise>,
    /// The whole diff since the loop began; empty when nothing changed. `None` outside of a repository.
    pub diff: Option<&'a str>,
    /// The checks that failed at the end of the previous iteration, or in the baseline for the first.
    pub failed: &'a [Failed<'a>],
    /// Checks that failed before any agent worked.
    pub failed_at_base: &'a [String],
    /// The checks of these that may still fail.
    pub excused: &'a [String],
    /// Why the last iteration did not complete the loop, apart from checks: a sentence each.
    pub remarks: &'a [String],
    /// The progress file.
    pub progress: &'a str,
}

impl Contract<'_> {
    /// The text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        section(&mut text, "Task", self.task);
        section(&mut text, "Rules", &self.rules());
        section(&mut text, "Changes since the start", &self.changes_text());
        if !self.failed.is_empty() {
            section(&mut text, "Checks that failed", &failed_text(self.failed));
        }
        if !self.remarks.is_empty() {
            section(&mut text, "Why the last iteration did not count as done", &bullets(self.remarks));
        }
        if !self.progress.trim().is_empty() {
            section(&mut text, "Progress so far", self.progress);
        }
        text
    }

    fn rules(&self) -> String {
        let mut rules = format!(
            "- This is iteration {} of {}. You start with a clean context: all that is known of earlier iterations stands in this text and in the working tree.\n",
            self.iteration, self.max_iterations
        );
        let mut listed = |head: &str, list: &[String], wanted: &dyn Fn(&String) -> bool| {
            if list.iter().any(wanted) {
                rules += &format!("- {head}:\n");
                let commands = list.iter().filter(|check| wanted(check));
                commands.for_each(|check| rules += &format!("  - `{check}`\n"));
            }
        };
        let binds = |check: &String| !self.excused.contains(check);
        let stop = "When you stop, these commands are run and every one of them must exit with 0";
        listed(stop, self.checks, &binds);
        listed("These of them failed already before any work was done", self.failed_at_base, &binds);
        let excused =
            "These commands are run too; they failed already before any work was done, and may go on failing";
        listed(excused, self.checks, &|check| !binds(check));
        if !self.protected.is_empty() {
            rules.push_str("- These files must stay as they are; as long as one of them is changed, nothing counts as done:\n");
            self.protected.iter().for_each(|file| rules += &format!("  - `{file}`\n"));
        }
        if !self.configured.is_empty() {
            let runners = self.configured.join(", ");
            let tests = if self.tests {
                ", and so must the test files that existed before the first iteration"
            } else {
                ""
            };
            rules += &format!(
                "- The configuration of {runners} and the programs that these commands start must stay as they are{tests}; as long as one of them is changed, nothing counts as done. You may add tests.\n"
            );
        }
        self.add_room_rules(&mut rules);
        if let Some(promise) = self.promise {
            let marker = promise.marker();
            rules += &format!(
                "- Only when the task is wholly done, say exactly this, on a line of its own and with nothing else inside the tag: {marker}\n\
                 - As long as it is not done, do not say it: it is checked, and a promise without work does not count.\n"
            );
        }
        rules
    }

    fn add_room_rules(&self, rules: &mut String) {
        let RoomGates { clean_check, setup, fix, .. } = self.rooms;
        if *clean_check {
            let after = if setup.is_empty() {
                String::new()
            } else {
                format!(", after running `{}` there", setup.join("` and `"))
            };
            *rules += &format!(
                "- The commands are run once more in a fresh checkout of your work{after}, and must exit with 0 there too. It has the files that git does not ignore, also new ones that you did not commit. Do not rely on ignored files, on programs that you installed, or on the path of this directory.\n"
            );
        }
        if !fix.is_empty() {
            *rules += &format!(
                "- Make the commands pass by a change in these files: `{}`. With the old versions of these files, the commands must fail again; if they pass then, nothing counts as done.\n",
                fix.join("`, `")
            );
        }
    }

    fn changes_text(&self) -> String {
        match self.diff {
            None => "This directory is in no git repository, so no diff can be shown.".into(),
            Some(diff) if diff.trim().is_empty() => "Nothing has changed yet.".into(),
            Some(diff) => fenced("diff", &shortened(diff)),
        }
    }
}

fn failed_text(checks: &[Failed<'_>]) -> String {
    let output = |failed: &Failed<'_>| fenced("", last_characters(failed.output, MAX_OUTPUT_CHARS));
    checks.iter().map(|failed| format!("`{}`:\n{}\n", failed.check, output(failed))).collect()
}

/// The last `count` characters.
pub fn last_characters(text: &str, count: usize) -> &str {
    let skip = text.chars().count().saturating_sub(count);
    text.char_indices().nth(skip).map_or("", |(at, _)| text.get(at..).unwrap_or_default())
}

fn section(text: &mut String, title: &str, body: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    *text += &format!("# {title}\n\n{}\n", body.trim_end_matches('\n'));
}

fn bullets(lines: &[String]) -> String {
    lines.iter().map(|line| format!("- {line}\n")).collect()
}

/// A fence longer than any in the text, so that the text cannot close it.
fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end_matches('\n'))
}
