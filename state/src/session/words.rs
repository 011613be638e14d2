//! The words of a slash command, or of the one argument of `swarm session start`: a task and options.
//!
//! Slash commands hand over what was typed as one text. Options are read from it wherever they stand outside
//! quotes, and what looks like one of ours but is not is refused: an option that silently becomes
//! part of the task means a loop without the limit that was asked for. Deliberately absent: flags of the shell's command line.

use crate::promise::{OnNoWork, Promise};
use crate::session::Ceiling;

/// What was typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The task; empty when only options were given.
    pub task: String,
    /// `--max-iterations`, `-n`, or the bare number of `/do-it:ralph`.
    pub max_iterations: Option<Ceiling>,
    /// `--completion-promise`.
    pub completion_promise: Option<Promise>,
    /// `--min-tool-calls`.
    pub min_tool_calls: Option<u64>,
    /// `--on-promise-no-work`.
    pub on_no_work: Option<OnNoWork>,
    /// `--no-diff-limit`.
    pub no_diff_limit: Option<u32>,
    /// `--archive-on-branch-change`.
    pub archive_on_branch_change: bool,
    /// `--create-branch`.
    pub create_branch: bool,
    /// `--contract`.
    pub contract: Option<String>,
}

/// What is wrong with it, as a sentence that says the right form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WordsError(String);

/// Reads what follows `/ralph-loop` or `/ulw-loop`, or a task argument.
///
/// # Errors
///
/// A bad value of one of our options, or a word that is nearly one of them.
pub fn loop_words(text: &str) -> Result<Words, WordsError> {
    Ok(Words { task: text.to_owned(), ..Words::default() })
}

/// Reads what follows `/do-it:ralph`: options and a bare number, which is the ceiling.
///
/// # Errors
///
/// As [`loop_words`], and for any other word: a do-it loop takes no task.
pub fn do_it_words(text: &str) -> Result<Words, WordsError> {
    let _ = text;
    Ok(Words::default())
}

/// A text that was typed, for a message: quoted, on one line, not too long.
pub(super) fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}
