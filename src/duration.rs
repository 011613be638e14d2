//! Parses durations such as `90`, `90s`, `10m`, `8h` and `1h30m` into seconds, for the command line and the settings,
//! and points in time such as `22:00`, `8h` (ago), `2026-01-15` and RFC 3339, for the options `--since`.
//!
//! The protocol and the files on disk hold plain seconds. A time without an offset is in the local zone of the client.

use chrono::{
    DateTime, Datelike, FixedOffset, Local, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone,
};

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

/// The accepted forms of a point in time, for messages.
const TIME_FORMS: &str = "22:00, 8h, 2026-01-15 or 2026-01-15T22:00:00+01:00";

/// The forms of a time of day, and of a day with one.
const CLOCK_FORMATS: [&str; 2] = ["%H:%M", "%H:%M:%S"];
const DAY_FORMATS: [&str; 4] = ["%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"];

/// The start of a stream of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// After the notice with this number.
    Seq(u64),
    /// At this time.
    Time(DateTime<FixedOffset>),
}

/// Parses the number of a notice, or a point in time.
pub(crate) fn parse_since(text: &str) -> Result<Since, String> {
    match text.parse() {
        Ok(seq) => Ok(Since::Seq(seq)),
        Err(_) => parse_time(text).map(Since::Time),
    }
}

/// Parses a point in time that is not in the future.
pub(crate) fn parse_time(text: &str) -> Result<DateTime<FixedOffset>, String> {
    let now = Local::now();
    match point(text, &now) {
        Some(time) if time <= now && time.year() >= 1970 => Ok(time),
        Some(time) if time > now => Err(format!("'{text}' is in the future")),
        Some(_) => Err(format!("'{text}' is before 1970")),
        None => Err(format!("invalid time '{text}': use {TIME_FORMS}")),
    }
}

fn point<Zone: TimeZone>(text: &str, now: &DateTime<Zone>) -> Option<DateTime<FixedOffset>> {
    if text.ends_with(['h', 'm', 's']) {
        let seconds = i64::try_from(parse_duration(text).ok()?).ok()?;
        return Some(now.clone().checked_sub_signed(TimeDelta::try_seconds(seconds)?)?.fixed_offset());
    }
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time);
    }
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().map(|day| day.and_time(NaiveTime::MIN));
    let on_day = |format: &&str| NaiveDateTime::parse_from_str(text, format).ok();
    if let Some(local) = day.or_else(|| DAY_FORMATS.iter().find_map(on_day)) {
        return in_zone(local, now);
    }
    let clock = CLOCK_FORMATS.iter().find_map(|format| NaiveTime::parse_from_str(text, format).ok())?;
    let today = now.date_naive();
    let at = |day: NaiveDate| in_zone(day.and_time(clock), now);
    at(today).filter(|time| time <= now).or_else(|| at(today.pred_opt()?))
}

/// A local time as a point in time. A time that the clock skipped is read as one hour later, and the first of two
/// that it repeated counts.
fn in_zone<Zone: TimeZone>(local: NaiveDateTime, now: &DateTime<Zone>) -> Option<DateTime<FixedOffset>> {
    let zone = now.timezone();
    let found = zone.from_local_datetime(&local).earliest();
    let found = found.or_else(|| zone.from_local_datetime(&(local + TimeDelta::hours(1))).earliest())?;
    Some(found.fixed_offset())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
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

    #[test]
    fn times_are_parsed() {
        let now = DateTime::parse_from_rfc3339("2026-01-15T07:30:00+01:00").unwrap();
        for (text, wanted) in [
            ("22:00", Some("2026-01-14T22:00:00+01:00")),
            ("07:29", Some("2026-01-15T07:29:00+01:00")),
            ("7:30", Some("2026-01-15T07:30:00+01:00")),
            ("07:30:01", Some("2026-01-14T07:30:01+01:00")),
            ("8h", Some("2026-01-14T23:30:00+01:00")),
            ("1h30m", Some("2026-01-15T06:00:00+01:00")),
            ("90s", Some("2026-01-15T07:28:30+01:00")),
            ("2026-01-14", Some("2026-01-14T00:00:00+01:00")),
            ("2026-01-14 22:05", Some("2026-01-14T22:05:00+01:00")),
            ("2026-01-14T22:05:06", Some("2026-01-14T22:05:06+01:00")),
            ("2026-01-14T22:05:06Z", Some("2026-01-14T22:05:06+00:00")),
            ("2026-01-14T22:05:06.5-08:00", Some("2026-01-14T22:05:06.500-08:00")),
            ("24:00", None),
            ("22", None),
            ("22:0x", None),
            ("1d", None),
            ("99999999999999999h", None),
            ("9999999999999h", None),
            ("2026-02-30", None),
            ("yesterday", None),
            ("", None),
        ] {
            let found = point(text, &now).map(|time| time.to_rfc3339());
            let wanted = wanted.map(|text| DateTime::parse_from_rfc3339(text).unwrap().to_rfc3339());
            assert_eq!(found, wanted, "{text:?}");
        }
    }

    #[test]
    fn number_is_a_notice_and_a_future_time_is_refused() {
        assert_eq!(parse_since("17"), Ok(Since::Seq(17)));
        assert!(matches!(parse_since("1m"), Ok(Since::Time(_))));
        assert_eq!(parse_time("2999-01-01").unwrap_err(), "'2999-01-01' is in the future");
        let error = "invalid time '17': use 22:00, 8h, 2026-01-15 or 2026-01-15T22:00:00+01:00";
        assert_eq!(parse_time("17").unwrap_err(), error);
    }
}
