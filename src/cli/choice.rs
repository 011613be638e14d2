//! Parses an option whose values are those of an enum of `swarm_state`.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A value, with its word on the command line and its help.
pub(super) type Choice<T> = (T, &'static str, &'static str);

/// Returns a parser that accepts the words of `choices`.
pub(super) fn choice<T: Copy + Send + Sync>(
    choices: &'static [Choice<T>],
) -> impl TypedValueParser<Value = T> {
    let words = choices.iter().map(|(_, word, help)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(words).try_map(|typed| {
        let chosen = choices.iter().find(|(_, word, _)| *word == typed);
        chosen.map(|(value, ..)| *value).ok_or("not one of the words")
    })
}
