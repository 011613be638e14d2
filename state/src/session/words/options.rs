//! The options of a typed text, and the words that resemble one.

use super::tokens::Token;
use crate::words::excerpt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    MaxIterations,
    CompletionPromise,
    MinToolCalls,
    OnPromiseNoWork,
    NoDiffLimit,
    ArchiveOnBranchChange,
    CreateBranch,
    Contract,
}

/// The options of `/ralph-loop` and `/ulw-loop`.
pub(super) const LOOP_OPTIONS: [Name; 5] = [
    Name::MaxIterations,
    Name::CompletionPromise,
    Name::MinToolCalls,
    Name::OnPromiseNoWork,
    Name::NoDiffLimit,
];

/// The options of `/do-it:ralph`.
pub(super) const DO_IT_OPTIONS: [Name; 5] =
    [Name::MaxIterations, Name::NoDiffLimit, Name::ArchiveOnBranchChange, Name::CreateBranch, Name::Contract];

/// Words that people use for an option, beyond typing errors.
const OTHER_NAMES: [(&str, Name); 6] = [
    ("iterations", Name::MaxIterations),
    ("iteration", Name::MaxIterations),
    ("maxiters", Name::MaxIterations),
    ("maxturns", Name::MaxIterations),
    ("promise", Name::CompletionPromise),
    ("completiontag", Name::CompletionPromise),
];

/// The characters that replace a hyphen in typeset text.
const DASHES: [char; 6] = ['-', '‐', '‑', '–', '—', '−'];

impl Name {
    /// The option as it is typed, and the form of its value; empty for a switch.
    fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::MaxIterations => ("--max-iterations", " N"),
            Self::CompletionPromise => ("--completion-promise", " WORD"),
            Self::MinToolCalls => ("--min-tool-calls", " N"),
            Self::OnPromiseNoWork => ("--on-promise-no-work", " reject|warn|accept"),
            Self::NoDiffLimit => ("--no-diff-limit", " N"),
            Self::ArchiveOnBranchChange => ("--archive-on-branch-change", ""),
            Self::CreateBranch => ("--create-branch", ""),
            Self::Contract => ("--contract", " FILE"),
        }
    }

    pub(super) fn word(self) -> &'static str {
        self.row().0
    }

    pub(super) fn has_value(self) -> bool {
        !self.row().1.is_empty()
    }

    pub(super) fn error(self, what: &str) -> String {
        let (word, form) = self.row();
        format!("{word}{form}: {what}")
    }
}

/// The option in a word, and the value within the word; `None` for a word of the task.
pub(super) fn of(token: &Token<'_>, names: &[Name]) -> Result<Option<(Name, Option<String>)>, String> {
    let (word, value) = match token.raw.split_once('=') {
        Some((word, value)) => (word, Some(token.inner().unwrap_or_else(|| value.to_owned()))),
        None => (token.raw, None),
    };
    if let Some(name) = names.iter().find(|name| name.word() == word) {
        return match (value, name.has_value()) {
            (Some(_), false) => Err(name.error("it takes no value")),
            (value, _) => Ok(Some((*name, value))),
        };
    }
    if let Some(value) = short(word, value.as_deref()) {
        return Ok(Some((Name::MaxIterations, value)));
    }
    match nearest(word, names) {
        None => Ok(None),
        Some(name) => {
            let (right, form) = name.row();
            let text = "(in quotes, or behind a --, it is text of the task)";
            Err(format!("{} is not an option; the right form is {right}{form} {text}", excerpt(word)))
        }
    }
}

/// `-n`, `-n3`, `-n=3`; but `-name` is a word of the task.
fn short(word: &str, value: Option<&str>) -> Option<Option<String>> {
    let rest = word.strip_prefix("-n")?;
    if rest.is_empty() {
        return Some(value.map(ToOwned::to_owned));
    }
    is_signed(rest).then(|| Some(rest.to_owned()))
}

/// Whether a text begins with a digit, after an optional sign.
pub(super) fn is_signed(text: &str) -> bool {
    text.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit())
}

fn nearest(word: &str, names: &[Name]) -> Option<Name> {
    let bare = word.trim_start_matches(DASHES);
    if bare.len() == word.len() {
        return None;
    }
    let letters = |word: &str| -> String {
        let kept = word.chars().filter(|c| !DASHES.contains(c) && *c != '_');
        kept.flat_map(char::to_lowercase).take(40).collect()
    };
    let typed = letters(bare);
    let is_near = |name: &&Name| {
        let right = letters(name.word());
        // A prefix of an option; its first word alone is often prose.
        let first_word = name.word().trim_start_matches('-').split('-').next().unwrap_or_default();
        let is_cut = typed.len() > first_word.len() && right.starts_with(&typed);
        is_cut || strsim::levenshtein(&typed, &right) <= 2
    };
    let by_other_name = || {
        let found = OTHER_NAMES.iter().find(|(other, _)| *other == typed);
        found.map(|(_, name)| *name).filter(|name| names.contains(name))
    };
    names.iter().find(is_near).copied().or_else(by_other_name)
}
