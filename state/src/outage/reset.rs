//! Reads from a CLI's message when a usage limit ends.

use chrono::{
    DateTime, Datelike, Days, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone,
};
use regex::{Captures, Regex};
use std::sync::LazyLock;

/// Maximum time until a reset. A later date was misread.
const MAX_RESET_DISTANCE: TimeDelta = TimeDelta::days(40);

/// A reset that passed less than this ago is not tomorrow's: the message was printed before it and read after it.
pub(super) const PASSED_TOLERANCE: TimeDelta = TimeDelta::minutes(10);

/// `resets 8:20pm (Europe/Istanbul)`, `resets Oct 7 at 8am`, `try again at 15:00`.
static AT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?ix) \b (?: resets? | again ) [\s:]+ (?: (?: at | on ) \s+ )?
          (?: (?P<month> jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec ) [a-z]* \.? \s+ (?P<day> \d{1,2} ) ,? \s+ (?: at \s+ )? )?
          (?P<hour> \d{1,2} ) (?: : (?P<minute> \d{2} ) )? \s* (?P<half> [ap]m )? \b
          (?: \s* \( (?P<zone> [A-Za-z]+ (?: / [A-Za-z_+\-0-9]+ )* ) \) )?",
    )
    .ok()
});

/// `resets in 2 hours 5 minutes`, `retry after 30 s`, `Retry-After: 30`.
static IN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?ix) \b (?: (?: resets? | again ) \s+ in | retry [\s-] after :? | wait ) \s* (?P<first> \d{1,7} ) \s*
          (?P<unit> d | h | m | s | days? | hours? | hrs? | minutes? | mins? | seconds? | secs? )? \b
          (?: ,? \s* (?: and \s+ )? (?P<second> \d{1,5} ) \s* (?P<unit2> h | m | s | hours? | minutes? | mins? | seconds? ) \b )?",
    )
    .ok()
});

/// `limit reached|1795815513`.
static EPOCH: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\|(\d{10})\b").ok());

/// The time that a message names, if it names one; at most [`PASSED_TOLERANCE`] before `wall`.
pub fn reset_in(text: &str, wall: DateTime<FixedOffset>) -> Option<DateTime<FixedOffset>> {
    let found = |regex: &'static LazyLock<Option<Regex>>| regex.as_ref()?.captures(text);
    let moment = if let Some(said) = found(&EPOCH) {
        DateTime::from_timestamp(said.get(1)?.as_str().parse().ok()?, 0)?.with_timezone(&wall.timezone())
    } else if let Some(said) = found(&IN) {
        wall.checked_add_signed(span(&said)?)?
    } else {
        at(&found(&AT)?, wall)?
    };
    (moment > wall - PASSED_TOLERANCE && moment - wall < MAX_RESET_DISTANCE).then_some(moment)
}

fn span(said: &Captures<'_>) -> Option<TimeDelta> {
    let part = |number, unit| {
        let number: i64 = said.name(number)?.as_str().parse().ok()?;
        let unit = said.name(unit).map_or("s", |unit| unit.as_str());
        match unit.as_bytes().first()?.to_ascii_lowercase() {
            b'd' => TimeDelta::try_days(number),
            b'h' => TimeDelta::try_hours(number),
            b'm' => TimeDelta::try_minutes(number),
            _ => TimeDelta::try_seconds(number),
        }
    };
    part("first", "unit")?.checked_add(&part("second", "unit2").unwrap_or_default())
}

/// A time of day, of a day if one is named, in a zone if one is named.
fn at(said: &Captures<'_>, wall: DateTime<FixedOffset>) -> Option<DateTime<FixedOffset>> {
    let half = said.name("half").map(|half| half.as_str().to_ascii_lowercase());
    // A bare number is not a time: `resets 3 times`.
    if half.is_none() && said.name("minute").is_none() {
        return None;
    }
    let number = |name: &str| said.name(name).and_then(|text| text.as_str().parse::<u32>().ok());
    let hour = match (number("hour")?, half.as_deref()) {
        (hour, None) => hour,
        (hour @ 1..=12, Some("am")) => hour % 12,
        (hour @ 1..=12, Some(_)) => hour % 12 + 12,
        _ => return None,
    };
    let time = NaiveTime::from_hms_opt(hour, number("minute").unwrap_or(0), 0)?;
    let zone = said.name("zone").map(|zone| zone.as_str().parse::<chrono_tz::Tz>());
    match zone {
        Some(Ok(zone)) => on_day(said, time, &wall.with_timezone(&zone)),
        // An unknown zone: rather no time than a wrong one.
        Some(Err(_)) => None,
        None => on_day(said, time, &wall),
    }
    .map(|moment| moment.with_timezone(&wall.timezone()))
}

fn on_day<Z: TimeZone>(
    said: &Captures<'_>,
    time: NaiveTime,
    now: &DateTime<Z>,
) -> Option<DateTime<FixedOffset>> {
    let resolve = |day: NaiveDate| {
        let local = NaiveDateTime::new(day, time);
        // A time that a change of the clocks skips counts as an hour later.
        let later = || now.timezone().from_local_datetime(&(local + TimeDelta::hours(1))).earliest();
        let moment = now.timezone().from_local_datetime(&local).earliest().or_else(later)?;
        Some(moment.fixed_offset())
    };
    let today = now.date_naive();
    match (said.name("month"), said.name("day")) {
        (Some(month), Some(day)) => {
            let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
            let month = month.as_str().to_ascii_lowercase();
            let month = u32::try_from(months.iter().position(|name| *name == month)?).ok()? + 1;
            let in_year = |year| resolve(NaiveDate::from_ymd_opt(year, month, day.as_str().parse().ok()?)?);
            let this_year = in_year(now.year())?;
            if this_year > now.fixed_offset() - PASSED_TOLERANCE {
                Some(this_year)
            } else {
                in_year(now.year() + 1)
            }
        }
        _ => {
            let moment = resolve(today)?;
            if moment > now.fixed_offset() - PASSED_TOLERANCE {
                Some(moment)
            } else {
                resolve(today.checked_add_days(Days::new(1))?)
            }
        }
    }
}
