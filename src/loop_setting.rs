//! The settings of a loop that `ralph set` changes, and their values.
//!
//! The client parses all of them before it sends the first, so that an invalid one changes nothing. The daemon parses
//! each again. Not here: what a change does ([`swarm_state::engine`]).

use std::path::PathBuf;
use std::str::FromStr;

use swarm_state::engine::Edits;
use swarm_state::pattern::Pattern;

use crate::error::{Error, Result};

/// The settings of a loop that can be changed, separated by a comma and a space.
pub(crate) const CHANGEABLE_SETTINGS: &str = "max_iterations, max_time, max_cost, max_tokens, max_failures, no_progress, max_context, inactivity_timeout, question_timeout, \
     done_pattern, prompt_file";

/// Parses one setting. Durations are seconds and costs are millionths of a US dollar, as in a spawn. The error names
/// the setting and what it accepts.
pub(crate) fn parse(key: &str, value: &str) -> Result<Edits> {
    let mut edits = Edits::default();
    match key {
        "max_iterations" => edits.max_iterations = Some(number(key, value)?),
        "inactivity_timeout" => edits.inactivity_timeout = Some(number(key, value)?),
        "question_timeout" => edits.question_timeout = Some(seconds(key, value)?),
        "max_time" => edits.budgets.max_time = Some(limit(key, value)?),
        "max_cost" => edits.budgets.max_cost = Some(limit(key, value)?),
        "max_tokens" => edits.budgets.max_tokens = Some(limit(key, value)?),
        "max_failures" => edits.budgets.max_failures = Some(number(key, value)?),
        "no_progress" => edits.budgets.no_progress = Some(limit(key, value)?),
        "max_context" => edits.budgets.max_context = Some(percent(key, value)?),
        "done_pattern" => {
            let pattern = (!removes(value)).then_some(value);
            if let Some(pattern) = pattern {
                Pattern::compile(pattern)
                    .map_err(|e| Error::invalid(format!("invalid done pattern: {}", e.trouble())))?;
            }
            edits.done_pattern = Some(pattern.map(str::to_owned));
        }
        "prompt_file" => {
            let path = PathBuf::from(value);
            if !path.is_absolute() {
                return Err(Error::invalid("prompt_file: must be an absolute path"));
            }
            if !path.is_file() {
                return Err(Error::invalid(format!("prompt file not found: {value}")));
            }
            edits.prompt_file = Some(path);
        }
        _ => {
            return Err(Error::usage(format!("unknown setting '{key}'"))
                .hint(format!("one of: {CHANGEABLE_SETTINGS}")));
        }
    }
    Ok(edits)
}

fn seconds(key: &str, value: &str) -> Result<u64> {
    value.parse().map_err(|_| {
        Error::usage(format!("{key}: '{value}' is not a whole number")).hint(format!("as in {key}=600"))
    })
}

/// Parses a percentage of a context; see [`removes`].
fn percent(key: &str, value: &str) -> Result<Option<u8>> {
    match limit(key, value) {
        Ok(percent) if percent.is_none_or(|percent| percent <= 100) => Ok(percent),
        _ => Err(Error::usage(format!("{key}: '{value}' is not a percentage from 1 to 100"))
            .hint(format!("as in {key}=70"))),
    }
}

/// Whether a value stands for no value, as in the options of `loop` (`none`) and in JSON (`null`).
pub(crate) fn removes(value: &str) -> bool {
    matches!(value, "none" | "null")
}

/// Parses a limit; see [`removes`].
fn limit<N: FromStr + PartialOrd + From<u8>>(key: &str, value: &str) -> Result<Option<N>> {
    if removes(value) { Ok(None) } else { number(key, value).map(Some) }
}

fn number<N: FromStr + PartialOrd + From<u8>>(key: &str, value: &str) -> Result<N> {
    match value.parse() {
        Ok(number) if number >= N::from(1) => Ok(number),
        _ => Err(Error::usage(format!("{key}: '{value}' is not a whole number of at least 1"))
            .hint(format!("as in {key}=20"))),
    }
}
