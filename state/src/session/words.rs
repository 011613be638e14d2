//! The words of a slash command, or of the one argument of `swarm session start`: a task and options.
//!
//! A slash command passes the typed arguments as one text. Options are read from any place outside quotes, and a word
//! that resembles one is refused: an option that silently becomes part of the task means a loop without the requested
//! limit. The task keeps every other character. clap cannot parse such prose: it would refuse `--verbose` in a task, or
//! accept no option after it; it would lose the task's white space, and it supports neither typographic quotes nor
//! quoted text. A test of `swarm session start` compares the options here with those of the command line. Deliberately
//! absent: flags of the shell's command line, and the defaults.

mod options;
mod tokens;

use crate::promise::{OnNoWork, Promise};
use crate::session::ceiling::Ceiling;
use crate::words::excerpt;
use options::{DO_IT_OPTIONS, LOOP_OPTIONS, Name, is_signed};
use tokens::{Token, tokens};

/// The typed task and options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "a field is the option of its name; on_no_work is --on-promise-no-work")]
pub struct Words {
    /// The task; empty when only options were given.
    pub task: String,
    /// `--max-iterations`, `-n`, or the bare number of `/do-it:ralph`.
    pub max_iterations: Option<Ceiling>,
    pub completion_promise: Option<Promise>,
    pub min_tool_calls: Option<u64>,
    pub on_no_work: Option<OnNoWork>,
    pub no_diff_limit: Option<u32>,
    pub archive_on_branch_change: bool,
    pub create_branch: bool,
    pub contract: Option<String>,
}

/// Reads the text after `/ralph-loop` or `/ulw-loop`, or a task argument. Refuses a bad value of an option, and a word
/// that resembles an option.
pub fn loop_words(text: &str) -> Result<Words, String> {
    let mut reader = WordsReader::new(text, &LOOP_OPTIONS);
    while let Some(token) = reader.left.next() {
        match reader.option(&token)? {
            Some((name, value)) => reader.words.set(name, value)?,
            None => reader.keep(token),
        }
    }
    let task = reader.task();
    Ok(Words { task, ..reader.words })
}

/// Reads the text after `/do-it:ralph`: options and a bare number, which is the ceiling. Refuses the same as
/// [`loop_words`], and any other word: a do-it loop accepts no task.
pub fn do_it_words(text: &str) -> Result<Words, String> {
    let mut reader = WordsReader::new(text, &DO_IT_OPTIONS);
    while let Some(token) = reader.left.next() {
        match reader.option(&token)? {
            Some((name, value)) => reader.words.set(name, value)?,
            None if token.raw == "--" => {}
            // A number, or a failed attempt at one.
            None if is_signed(&token.value()) => {
                reader.words.set(Name::MaxIterations, Some(token.value()))?;
            }
            None => {
                return Err(format!(
                    "{} is not a number of iterations: a do-it loop takes its work from .do-it, no task",
                    excerpt(token.raw)
                ));
            }
        }
    }
    Ok(reader.words)
}

/// Reads the tokens in order and keeps those of the task.
struct WordsReader<'a> {
    text: &'a str,
    left: std::vec::IntoIter<Token<'a>>,
    names: &'static [Name],
    /// The rest has no options.
    is_literal: bool,
    kept: Vec<Token<'a>>,
    words: Words,
}

impl<'a> WordsReader<'a> {
    fn new(text: &'a str, names: &'static [Name]) -> Self {
        let left = tokens(text).into_iter();
        Self { text, left, names, is_literal: false, kept: Vec::new(), words: Words::default() }
    }

    /// The option at a token, with its value; `None` for a token of the task.
    fn option(&mut self, token: &Token<'a>) -> Result<Option<(Name, Option<String>)>, String> {
        if self.is_literal || token.is_quoted() {
            return Ok(None);
        }
        let Some((name, value)) = options::of(token, self.names)? else { return Ok(None) };
        if value.is_some() || !name.has_value() {
            return Ok(Some((name, value)));
        }
        let next = self.left.as_slice().first();
        let is_value = |next: &Token<'_>| next.is_quoted() || !next.raw.starts_with("--");
        let value = next.filter(|next| is_value(next)).map(Token::value);
        if value.is_some() {
            self.left.next();
        }
        Ok(Some((name, value)))
    }

    /// Adds a token to the task.
    fn keep(&mut self, token: Token<'a>) {
        let ends_options = !self.is_literal && token.raw == "--";
        self.is_literal |= ends_options;
        // Between words of a task, `--` stays as a dash.
        if !ends_options || !self.kept.is_empty() {
            self.kept.push(token);
        }
    }

    /// The task as it was typed, without the options and without quotes around all of it.
    fn task(&self) -> String {
        if let [only] = self.kept.as_slice()
            && only.is_quoted()
        {
            return only.value();
        }
        let mut task = String::new();
        let mut end = None;
        for token in &self.kept {
            let gap = |from: usize| self.text.get(from..token.start).unwrap_or_default();
            task.push_str(end.map_or("", |from| white(gap(from))));
            task.push_str(token.raw);
            end = Some(token.end());
        }
        task
    }
}

impl Words {
    fn set(&mut self, name: Name, value: Option<String>) -> Result<(), String> {
        let value = match value {
            None if name.has_value() => return Err(name.error("it needs a value")),
            None => String::new(),
            Some(value) => value,
        };
        let is_second = match name {
            Name::MaxIterations => {
                let ceiling = Ceiling::parse(&value).map_err(|e| name.error(&e))?;
                self.max_iterations.replace(ceiling).is_some()
            }
            Name::CompletionPromise => {
                let promise = Promise::new(&value).map_err(|e| name.error(&e))?;
                self.completion_promise.replace(promise).is_some()
            }
            Name::MinToolCalls => self.min_tool_calls.replace(number(name, &value)?).is_some(),
            Name::OnPromiseNoWork => {
                let what = || name.error(&format!("{} is not reject, warn or accept", excerpt(&value)));
                self.on_no_work.replace(OnNoWork::of(&value).ok_or_else(what)?).is_some()
            }
            Name::NoDiffLimit => self.no_diff_limit.replace(number(name, &value)?).is_some(),
            Name::Contract if value.is_empty() => return Err(name.error("it needs a file")),
            Name::Contract => self.contract.replace(value).is_some(),
            Name::ArchiveOnBranchChange => std::mem::replace(&mut self.archive_on_branch_change, true),
            Name::CreateBranch => std::mem::replace(&mut self.create_branch, true),
        };
        if is_second { Err(name.error("given twice")) } else { Ok(()) }
    }
}

/// The white space between two words of a task: all of the gap if it has no option, otherwise the side with a line
/// break, or a space.
fn white(gap: &str) -> &str {
    let before = gap.get(..gap.len() - gap.trim_start().len()).unwrap_or_default();
    let after = gap.get(gap.trim_end().len()..).unwrap_or_default();
    match (before.contains('\n'), after.contains('\n')) {
        _ if gap.trim().is_empty() => gap,
        (true, _) => before,
        (false, true) => after,
        (false, false) => " ",
    }
}

fn number<N: std::str::FromStr>(name: Name, value: &str) -> Result<N, String> {
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    let number = value.parse().ok().filter(|_| is_number);
    number.ok_or_else(|| name.error(&format!("{} is not a whole number", excerpt(value))))
}
