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
