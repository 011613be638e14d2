//! Parses durations such as `90`, `90s`, `10m`, `8h` and `1h30m` into seconds, for the command line and the settings.
//!
//! The protocol and the files on disk hold plain seconds.

/// The accepted forms, for messages.
pub(crate) const FORMS: &str = "90, 90s, 10m, 8h or 1h30m";

/// The units and their seconds, in the order in which they may follow each other.
const UNITS: [(char, u64); 3] = [('h', 3600), ('m', 60), ('s', 1)];

/// Parses a duration into seconds. A number without a unit is in seconds.
pub(crate) fn parse_duration(text: &str) -> Result<u64, String> {
    seconds(text).ok_or_else(|| format!("invalid duration '{text}': use {FORMS}"))
}

/// Parses a duration of at least one second.
pub(crate) fn parse_nonzero_duration(text: &str) -> Result<u64, String> {
    match parse_duration(text)? {
        0 => Err("the duration must be at least 1s".to_owned()),
        seconds => Ok(seconds),
    }
}

fn seconds(text: &str) -> Option<u64> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number(text) {
        return text.parse().ok();
    }
    let (mut rest, mut total) = (text, 0_u64);
    for (unit, factor) in UNITS {
        if let Some((number, after)) = rest.split_once(unit) {
            // `parse` alone would accept a plus sign.
            let number: u64 = Some(number).filter(|number| is_number(number))?.parse().ok()?;
            total = total.checked_add(number.checked_mul(factor)?)?;
            rest = after;
        }
    }
    (rest.is_empty() && !text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, wanted) in [
            ("0", Some(0)),
            ("90", Some(90)),
            ("90s", Some(90)),
            ("10m", Some(600)),
            ("8h", Some(28_800)),
            ("1h30m", Some(5400)),
            ("1h5s", Some(3605)),
            ("1h0m1s", Some(3601)),
            ("90m30s", Some(5430)),
            ("007s", Some(7)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551615s", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("18446744073709551615m", None),
            ("5124095576030431h16s", None),
            ("", None),
            ("s", None),
            ("1x", None),
            ("1d", None),
            ("1h30", None),
            ("30m1h", None),
            ("1h1h", None),
            ("1m2m", None),
            ("1.5h", None),
            ("-1", None),
            ("+1", None),
            ("+1s", None),
            ("1 h", None),
            (" 90", None),
            ("1H", None),
            ("١s", None),
        ] {
            assert_eq!(parse_duration(text).ok(), wanted, "{text:?}");
        }
    }

    #[test]
    fn an_invalid_duration_is_reported_with_the_accepted_forms() {
        assert_eq!(parse_duration("1x").unwrap_err(), "invalid duration '1x': use 90, 90s, 10m, 8h or 1h30m");
        assert_eq!(parse_nonzero_duration("0h").unwrap_err(), "the duration must be at least 1s");
        assert_eq!(parse_nonzero_duration("2m"), Ok(120));
    }
}
