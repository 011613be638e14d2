//! Reads the limits of an account from Claude Code's status line and from Codex's transcript.
//!
//! A field that is missing or of another type is ignored, and so is a limit with an unknown name: it may hold for one
//! model only.

use serde_json::Value;

use super::{MAX_WINDOW_MINUTES, QuotaFigure};

/// The limits of an account in Claude Code's status line, and the lengths of their windows in minutes.
const CLAUDE_WINDOWS: [(&str, u32); 3] =
    [("five_hour", 5 * 60), ("seven_day", 7 * 24 * 60), ("spend_limit", MAX_WINDOW_MINUTES)];

const MAX_PERCENT: f64 = 9999.0;

/// The limits in the input of Claude Code's status line: `rate_limits.WINDOW.{used_percentage,resets_at}`. `now`:
/// seconds since 1970.
pub fn claude_limits(input: &Value, now: i64) -> Vec<QuotaFigure> {
    claude_figures(&input["rate_limits"], "resets_at", now, |limit| percent(&limit["used_percentage"]))
}

/// The limits in an event of `claude -p --output-format stream-json`:
/// `rate_limit_info.unifiedWindows.WINDOW.{utilization,resetsAt}`. The event has no time.
pub fn claude_event_limits(info: &Value) -> Vec<QuotaFigure> {
    claude_figures(&info["unifiedWindows"], "resetsAt", 0, |limit| {
        // A fraction of the limit. Without the rounding, 0.29 would be 28 %.
        percent(&((limit["utilization"].as_f64()? * 1000.0).round() / 10.0).into())
    })
}

fn claude_figures(
    limits: &Value,
    reset: &str,
    read_at: i64,
    used: impl Fn(&Value) -> Option<u16>,
) -> Vec<QuotaFigure> {
    let figure = |&(name, minutes): &(&str, u32)| {
        let (limit, window) = (&limits[name], name.to_owned());
        Some(QuotaFigure { window, minutes, used: used(limit)?, resets_at: seconds(&limit[reset]), read_at })
    };
    CLAUDE_WINDOWS.iter().filter_map(figure).collect()
}

/// The limits in a `token_count` event of Codex: `primary` and `secondary`, each with `used_percent`, `window_minutes`
/// and `resets_at` or `resets_in_seconds`. `at`: when the event was written, in seconds since 1970.
pub fn codex_limits(limits: &Value, at: i64) -> Vec<QuotaFigure> {
    // Other limits hold for one model.
    if limits["limit_id"].as_str().is_some_and(|id| id != "codex") {
        return vec![];
    }
    let figure = |key: &&str| {
        let limit = &limits[*key];
        let used = percent(&limit["used_percent"])?;
        let minutes = whole(&limit["window_minutes"]).and_then(|minutes| u32::try_from(minutes).ok());
        let minutes = minutes.filter(|minutes| (1..=MAX_WINDOW_MINUTES).contains(minutes))?;
        let left = whole(&limit["resets_in_seconds"]).map(|left| at.saturating_add(left));
        let resets_at = seconds(&limit["resets_at"]).or(left);
        Some(QuotaFigure { window: window_name(minutes), minutes, used, resets_at, read_at: at })
    };
    ["primary", "secondary"].iter().filter_map(figure).collect()
}

fn window_name(minutes: u32) -> String {
    let known = CLAUDE_WINDOWS.iter().find(|(_, length)| *length == minutes && *length < MAX_WINDOW_MINUTES);
    known.map_or_else(|| format!("{minutes}_minutes"), |(name, _)| (*name).to_owned())
}

fn percent(value: &Value) -> Option<u16> {
    let percent = value.as_f64().filter(|percent| percent.is_finite() && *percent >= 0.0)?;
    Some(percent.min(MAX_PERCENT) as u16)
}

fn whole(value: &Value) -> Option<i64> {
    let number = value.as_f64().filter(|number| number.is_finite() && *number >= 0.0 && *number < 1e15)?;
    Some(number as i64)
}

/// A time as seconds or milliseconds since 1970, or as RFC 3339.
fn seconds(value: &Value) -> Option<i64> {
    if let Some(text) = value.as_str() {
        return chrono::DateTime::parse_from_rfc3339(text).ok().map(|at| at.timestamp());
    }
    let number = whole(value).filter(|number| *number > 0)?;
    Some(if number > 100_000_000_000 { number / 1000 } else { number })
}
