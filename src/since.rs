//! Parses points in time such as `22:00`, `8h` (ago), `2026-01-15` and RFC 3339, for the options `--since`.
//!
//! A time without an offset is in the local zone of the client.

use chrono::{
    DateTime, Datelike, FixedOffset, Local, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone,
};

use crate::duration::parse_duration;

/// The accepted forms, for messages.
const FORMS: &str = "22:00, 8h, 2026-01-15 or 2026-01-15T22:00:00+01:00";

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
        None => Err(format!("invalid time '{text}': use {FORMS}")),
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
    fn points_in_time() {
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
    fn a_number_is_a_notice_and_a_future_time_is_refused() {
        assert_eq!(parse_since("17"), Ok(Since::Seq(17)));
        assert!(matches!(parse_since("1m"), Ok(Since::Time(_))));
        assert_eq!(parse_time("2999-01-01").unwrap_err(), "'2999-01-01' is in the future");
        let error = "invalid time '17': use 22:00, 8h, 2026-01-15 or 2026-01-15T22:00:00+01:00";
        assert_eq!(parse_time("17").unwrap_err(), error);
    }
}
