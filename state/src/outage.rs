//! Outages: a usage limit, an overloaded API or a failed login that stops an agent.
//!
//! An iteration that ends in an outage does not count as a failure and is not used up. The loop waits until the reset
//! time if it is known. An error in the CLI's own record has priority ([`Outage::of_error`]), then the error
//! that its screen shows above the input box ([`Outage::of_shown`]); the end of its output counts only for an agent
//! that failed ([`Outage::of_output`]). The wordings are data: a profile can add its own. Deliberately absent: errors
//! that waiting does not fix (a prompt that is too long, a bad request). They are failures.

mod reset;

#[cfg(test)]
mod tests;

use std::sync::LazyLock;
use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::pattern::Pattern;
use crate::transcript::ApiError;

pub use reset::reset_in;

/// The kind of an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutageKind {
    /// The account has reached its usage limit.
    Limit,
    /// The API is overloaded or cannot be reached.
    Overload,
    /// The agent is not logged in, its key was refused, or the account has no credit. A person has to act.
    Login,
    /// An administrator disabled the access. Waiting does not help, so the loop stops.
    Forbidden,
}

/// A wording and its meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wording {
    /// The pattern, in [`Pattern`]'s syntax.
    pub pattern: String,
    /// The kind of outage of a match.
    pub kind: OutageKind,
}

/// An outage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// The kind.
    pub kind: OutageKind,
    /// The CLI's message, one line.
    pub message: String,
    /// When it ends, if the message has a time.
    pub until: Option<DateTime<FixedOffset>>,
}

/// Maximum of tries in a row that end in an outage: swarm does not retry forever because of a text on a screen.
pub(crate) const MAX_OUTAGE_TRIES: u32 = 40;

/// Lines at the end of an agent's output that may contain the reason for its failure.
const REASON_LINES: usize = 12;

const MAX_OUTAGE_CHARS: usize = 300;

/// The HTTP status in an error: `"code":401` (quotes escaped in nested JSON), `[API Error: 429 …`, `(Status: 503)`.
static STATUS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)"(?:code|status)\\*"\s*:\s*(\d{3})\b|\bAPI Error: (\d{3})\b|\bstatus(?: code)?:? (\d{3})\b"#,
    )
    .ok()
});

/// Wordings that every profile knows. The first match counts.
pub fn common() -> Vec<Wording> {
    let wording = |kind, pattern: &str| Wording { pattern: pattern.to_owned(), kind };
    vec![
        // A retry limit is not an account limit: the status is decisive.
        wording(OutageKind::Login, r"(?i)\bretry limit\b[^\n]{0,40}\b401\b"),
        wording(OutageKind::Overload, r"(?i)\bretry limit\b[^\n]{0,40}\b(?:429|5\d\d)\b"),
        wording(
            OutageKind::Forbidden,
            r"(?i)(?:disabled|blocked|not allowed|revoked) by (?:your |the |an )?(?:admin|organi[sz]ation)",
        ),
        wording(
            OutageKind::Limit,
            r"(?i)\b(?:hit|reached|exceeded|used up)\b[^\n]{0,40}\b(?:limit|quota)\b|\b(?:usage|session|weekly|5-hour|spend(?:ing)?) limit (?:reached|exceeded|hit)|\bquota (?:reached|exceeded|exhausted)|\blimit\b[^\n]{0,60}\bresets\b",
        ),
        wording(
            OutageKind::Login,
            r"(?i)\b(?:invalid|incorrect) (?:api key|x-api-key|authentication)|please run /login|\bnot logged in\b|\b(?:oauth|access|auth(?:entication)?) token (?:has )?(?:expired|revoked)|\bcredit balance (?:is )?too low|\b401\b[^\n]{0,20}unauthori[sz]ed|\bauthentication_(?:error|failed)\b|\bbilling_error\b",
        ),
        wording(
            OutageKind::Overload,
            r"(?i)\boverloaded(?:_error)?\b|\btoo many requests\b|\brate.?limit(?:ed|_error)?\b|\bserver_error\b|\b(?:429|529|502|503|504)\b[^\n]{0,60}(?:error|overloaded|unavailable|rejected|gateway)|\bAPI Error:[^\n]{0,40}\b(?:429|5\d\d)\b|\b(?:error|status)[: (]{1,3}(?:429|5\d\d)\b|\b(?:ECONNREFUSED|ECONNRESET|EAI_AGAIN|ETIMEDOUT|ENOTFOUND)\b|service unavailable|\bexperiencing high demand\b",
        ),
    ]
}

crate::word_table!(
    pub OutageKind,
    word,
    of,
    [(Limit, "limit"), (Overload, "overload"), (Login, "login"), (Forbidden, "forbidden")]
);

impl OutageKind {
    /// True when the outage lasts until a person acts.
    pub fn needs_person(self) -> bool {
        matches!(self, Self::Login | Self::Forbidden)
    }
}

impl Outage {
    /// The outage behind an error that the CLI reported; `None` for an error that waiting does not fix.
    pub fn of_error(error: &ApiError, wordings: &[Wording], wall: DateTime<FixedOffset>) -> Option<Self> {
        let by_words = Self::of_text(&error.message, wordings, wall);
        let by_status = match error.status {
            Some(401 | 403) => OutageKind::Login,
            Some(408 | 429 | 500..=599) => OutageKind::Overload,
            Some(_) | None => return by_words,
        };
        let plain = Self { kind: by_status, message: one_line(&error.message), until: None };
        Some(by_words.unwrap_or(plain))
    }

    /// The outage behind an error on the CLI's screen; `None` for an error that waiting does not fix.
    pub fn of_shown(error: &str, wordings: &[Wording], wall: DateTime<FixedOffset>) -> Option<Self> {
        let groups = STATUS.as_ref().and_then(|status| status.captures(error));
        let number = groups.and_then(|groups| groups.iter().skip(1).flatten().next());
        let status = number.and_then(|number| number.as_str().parse().ok());
        Self::of_error(&ApiError { message: error.to_owned(), status }, wordings, wall)
    }

    /// The outage behind the last output of an agent that failed.
    pub fn of_output(output: &str, wordings: &[Wording], wall: DateTime<FixedOffset>) -> Option<Self> {
        // The frames of a stack trace would hide the error above them.
        let counts = |line: &&str| !line.trim().is_empty() && !line.starts_with("    at ");
        let lines: Vec<&str> = output.lines().filter(counts).collect();
        let last = lines.get(lines.len().saturating_sub(REASON_LINES)..).unwrap_or_default();
        Self::of_text(&last.join("\n"), wordings, wall)
    }

    fn of_text(text: &str, wordings: &[Wording], wall: DateTime<FixedOffset>) -> Option<Self> {
        // A wording that does not compile was refused earlier.
        let matched = |wording: &&Wording| line_of(text, &wording.pattern).is_some();
        let wording = wordings.iter().find(matched)?;
        let message = one_line(line_of(text, &wording.pattern).unwrap_or_default());
        let until = reset_in(text, wall);
        Some(Self { kind: wording.kind, message, until })
    }

    /// The wait before the next try: until the reset if it is known, otherwise growing with `n`, the number of
    /// outages in a row. `None` when waiting does not help, or has not helped for [`MAX_OUTAGE_TRIES`] tries: then
    /// the iteration has failed.
    pub fn wait(&self, n: u32, wall: DateTime<FixedOffset>) -> Option<Duration> {
        let growing = |first: u64, longest: u64| {
            let factor = 1_u64 << n.saturating_sub(1).min(20);
            Duration::from_secs(first.saturating_mul(factor).min(longest))
        };
        if n > MAX_OUTAGE_TRIES {
            return None;
        }
        let unknown = match self.kind {
            OutageKind::Limit => growing(300, 3_600),
            OutageKind::Overload => growing(5, 300),
            OutageKind::Login => growing(60, 900),
            OutageKind::Forbidden => return None,
        };
        let until = self.until.map(|until| until - wall).filter(|wait| *wait > -reset::PASSED_TOLERANCE);
        let until = until.map(|wait| wait.to_std().unwrap_or_default());
        // A clock that is a little off must not cost another run.
        Some(until.map_or(unknown, |wait| wait.saturating_add(Duration::from_secs(5)).max(growing(5, 300))))
    }
}

fn line_of<'a>(text: &'a str, pattern: &str) -> Option<&'a str> {
    let pattern = Pattern::compile(pattern).ok()?;
    text.lines().find(|line| pattern.is_match(line))
}

/// The first written line of a message, at most [`MAX_OUTAGE_CHARS`] characters of it.
pub fn one_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(MAX_OUTAGE_CHARS).collect()
}
