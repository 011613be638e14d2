//! Parses the numbers of options and arguments.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

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
