//! The values that options of several commands share: output formats, whole numbers, limits, and the values of an enum
//! of `swarm_state`.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use swarm_state::model::WorkerName;

/// Output formats of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Table for people
    #[default]
    Table,
    /// JSON for programs
    Json,
    /// Names only, one per line
    Names,
}

/// Output formats of `swarm status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum StatusFormat {
    /// Text for people
    #[default]
    Text,
    /// JSON for programs
    Json,
    /// One line for the status line of tmux: how many workers need you, work, …
    Tmux,
}

/// Output formats of a single item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PageFormat {
    /// Text for people
    #[default]
    Text,
    /// JSON for programs
    Json,
}

/// Every verb whose only option is the format of an item.
#[derive(Debug, Args)]
pub struct PageFormatArg {
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// Every verb whose only option is the format of a list.
#[derive(Debug, Args)]
pub struct ListFormatArg {
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

/// Every verb that shows one worker.
#[derive(Debug, Args)]
pub struct WorkerPage {
    /// Worker name
    pub name: WorkerName,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// The word of a value on the command line.
pub fn word(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

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

/// Returns a parser for a whole number in `range`. Every invalid text gets the same error, which names the range.
pub(super) fn whole<N>(range: RangeInclusive<N>) -> impl Fn(&str) -> Result<N, String> + Clone
where
    // An integer literal without a type is an i32, which no option has.
    N: FromStr + PartialOrd + Display + Clone + Into<u64>,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("give a whole number from {} to {}", range.start(), range.end()))
    }
}

/// The value of an option, or `none`, which turns off a default of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionLimit<T>(pub Option<T>);

impl<T> OptionLimit<T> {
    /// The limit of an option, or else the default.
    pub fn or(typed: Option<Self>, default: Option<T>) -> Option<T> {
        typed.map_or(default, |limit| limit.0)
    }
}

/// Returns a parser for the values that `parse` accepts, and `none`.
pub(super) fn limit<T>(
    parse: impl Fn(&str) -> Result<T, String> + Clone,
) -> impl Fn(&str) -> Result<OptionLimit<T>, String> + Clone {
    move |text| {
        if text == "none" { Ok(OptionLimit(None)) } else { parse(text).map(|value| OptionLimit(Some(value))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_number_gets_the_range() {
        let count = whole(1..=100_u32);
        assert_eq!((count("1"), count("100")), (Ok(1), Ok(100)));
        for text in ["0", "101", "-1", "1.5", "ten", "", "99999999999999999999"] {
            assert_eq!(count(text).unwrap_err(), "give a whole number from 1 to 100", "{text}");
        }
    }
}
