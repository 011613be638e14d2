//! One command of a line as the judges see it: its words, options and paths, and the commands before it.

use super::place::{GuardPlace, resolve};
use super::shell::{Pipeline, ShellCommand};

/// A command, and everything that a judge may look at.
pub(super) struct Scene<'a> {
    pub(super) place: &'a GuardPlace,
    pub(super) pipeline: &'a Pipeline,
    pub(super) command: &'a ShellCommand,
    pub(super) functions: &'a [String],
}

impl<'a> Scene<'a> {
    pub(super) fn program(&self) -> &'a str {
        self.command.program()
    }

    /// The words after the program; of git, those after its own options.
    pub(super) fn words(&self) -> impl DoubleEndedIterator<Item = &'a str> + use<'a> {
        let words = self.command.words.get(1..).unwrap_or_default();
        let mut own = 0;
        while self.program() == "git" && words.get(own).is_some_and(|word| word.starts_with('-')) {
            own += 1 + usize::from(["-C", "-c", "--git-dir", "--work-tree"].contains(&words[own].as_str()));
        }
        words.get(own..).unwrap_or_default().iter().map(String::as_str)
    }

    pub(super) fn operands(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut is_plain = false;
        self.words().filter(move |word| {
            let is_end = !is_plain && *word == "--";
            is_plain |= is_end;
            !is_end && (is_plain || !word.starts_with('-') || *word == "-")
        })
    }

    /// Whether an option is given: a letter, maybe in a group such as `-rf`.
    pub(super) fn has_letter(&self, letter: char) -> bool {
        let is_group = |word: &&str| word.starts_with('-') && !word.starts_with("--");
        self.words().take_while(|word| *word != "--").filter(is_group).any(|word| word.contains(letter))
    }

    /// The words with the word after each.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.words().zip(self.words().skip(1))
    }

    /// The absolute path of a word, if it is known.
    pub(super) fn path(&self, word: &str) -> Option<String> {
        resolve(self.command.dir.as_deref(), word)
    }

    /// The commands before this one in its pipeline.
    pub(super) fn earlier(&self) -> impl Iterator<Item = &'a ShellCommand> {
        let command = self.command;
        self.pipeline.commands.iter().take_while(move |earlier| !std::ptr::eq(*earlier, command))
    }

    /// Whether one of these programs prints into the command.
    pub(super) fn is_piped_from(&self, programs: &[&str]) -> bool {
        let is_one = |program: &str| programs.contains(&program);
        self.earlier()
            .any(|earlier| is_one(earlier.program()) || earlier.substituted.iter().any(|p| is_one(p)))
    }

    /// Whether the output of one of these programs is a part of the command.
    pub(super) fn substitutes(&self, programs: &[&str]) -> bool {
        self.command.substituted.iter().any(|program| programs.contains(&program.as_str()))
    }

    /// The text that `echo` prints into the command.
    pub(super) fn printed(&self) -> Option<String> {
        let printer =
            self.earlier().last().filter(|earlier| ["echo", "printf"].contains(&earlier.program()))?;
        Some(printer.words.join(" "))
    }
}
