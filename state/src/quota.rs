//! Quotas: how much of its usage limits an agent's account has used, and whether its loops are parked until a reset.
//!
//! An account is an agent with its configuration directory. Claude Code reports its limits to its status line, Codex
//! records them in its transcript. The figures of all workers of an account are merged into one record, and one
//! decision holds for all of its loops. A figure counts until its reset, and never longer than its window lasts, so
//! that no jump of the clock parks a loop forever. Deliberately absent: files, and the workers of an account.

mod parse;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use chrono::{DateTime, FixedOffset};
use serde::{Deserialize, Serialize};

use crate::outage::{Outage, OutageKind};
use crate::profiles::HookStyle;

pub use parse::{claude_event_limits, claude_limits, codex_limits};

/// The name of the figure for a limit that an agent ran into.
pub const REACHED: &str = "reached";

/// How far a reset may lie beyond the length of its window, in seconds. The clocks of two machines differ.
const CLOCK_TOLERANCE_SECONDS: i64 = 600;

/// How long a limit without a known window may last, in minutes.
pub(crate) const MAX_WINDOW_MINUTES: u32 = 40 * 24 * 60;

/// The longest record of workers that have reported.
const MAX_REPORTERS: usize = 256;

/// The agents that report their limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuotaAgent {
    /// Claude Code, in the input of its status line.
    Claude,
    /// Codex, in its transcript.
    Codex,
}

crate::word_table!(pub QuotaAgent, word, [(Claude, "claude"), (Codex, "codex")]);

impl QuotaAgent {
    /// The agent of a profile; `None` for one that reports no limits.
    pub fn of(style: HookStyle) -> Option<Self> {
        match style {
            HookStyle::Claude => Some(Self::Claude),
            HookStyle::Codex => Some(Self::Codex),
            HookStyle::Off => None,
        }
    }

    /// The variable with its configuration directory, and the directory's name in the home directory.
    pub fn directory(self) -> (&'static str, &'static str) {
        match self {
            Self::Claude => ("CLAUDE_CONFIG_DIR", ".claude"),
            Self::Codex => ("CODEX_HOME", ".codex"),
        }
    }
}

/// An account of an agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QuotaAccount {
    /// The agent.
    pub agent: QuotaAgent,
    /// Its configuration directory, absolute.
    pub dir: PathBuf,
}

impl QuotaAccount {
    /// The account that an agent with these variables uses; `None` without a directory.
    pub fn of(style: HookStyle, env: &BTreeMap<String, String>) -> Option<Self> {
        let agent = QuotaAgent::of(style)?;
        let (variable, name) = agent.directory();
        let value = |key: &str| env.get(key).filter(|value| !value.is_empty());
        let dir = match value(variable) {
            Some(dir) => PathBuf::from(dir),
            None => Path::new(value("HOME")?).join(name),
        };
        // Two spellings of a directory are one account.
        dir.is_absolute().then(|| Self { agent, dir: dir.components().collect() })
    }

    /// The account for a person to read: `claude account ~/.claude`.
    pub fn title(&self, home: Option<&Path>) -> String {
        let below = home.and_then(|home| self.dir.strip_prefix(home).ok());
        match below {
            Some(rest) => format!("{} account ~/{}", self.agent.word(), rest.display()),
            None => format!("{} account {}", self.agent.word(), self.dir.display()),
        }
    }
}

/// The used part of one limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaFigure {
    /// The limit: `five_hour`, `seven_day`, `spend_limit`, [`REACHED`], or `N_minutes`.
    pub window: String,
    /// The length of its window, in minutes. The figure counts at most for this time.
    pub minutes: u32,
    /// The used part in percent, rounded down. Some limits can be exceeded.
    pub used: u16,
    /// When the limit is reset, in seconds since 1970; `None` if unknown.
    pub resets_at: Option<i64>,
    /// When an agent reported the figure, in seconds since 1970.
    pub read_at: i64,
}

impl QuotaFigure {
    /// The figure of a limit that an agent ran into.
    pub fn reached(resets_at: i64, now: i64) -> Self {
        let (window, minutes) = (REACHED.to_owned(), MAX_WINDOW_MINUTES);
        Self { window, minutes, used: 100, resets_at: Some(resets_at), read_at: now }
    }

    /// The limit for a person to read: `5 hour limit`.
    pub fn title(&self) -> String {
        match self.window.as_str() {
            REACHED => "usage limit".to_owned(),
            "spend_limit" => "spend limit".to_owned(),
            _ => match self.minutes {
                minutes if minutes >= 1440 && minutes % 1440 == 0 => {
                    format!("{} day limit", minutes / 1440)
                }
                minutes if minutes >= 60 && minutes % 60 == 0 => format!("{} hour limit", minutes / 60),
                minutes => format!("{minutes} minute limit"),
            },
        }
    }

    /// Whether the figure still counts.
    pub fn is_current(&self, now: i64) -> bool {
        let length = i64::from(self.minutes) * 60;
        let end = self.resets_at.unwrap_or(self.read_at.saturating_add(length));
        let left = end.saturating_sub(now);
        left > 0 && left <= length.saturating_add(CLOCK_TOLERANCE_SECONDS)
    }
}

/// The figures of one account, and whether a person has lifted its park.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccountQuota {
    /// The figures by the name of their limit.
    pub figures: BTreeMap<String, QuotaFigure>,
    /// A person has lifted parks whose reset is at this time or earlier, in seconds since 1970.
    pub lifted_until: Option<i64>,
    /// The last report of each worker: used percent and reset by limit. A session that does nothing repeats its last
    /// figures, which may be older than those of another session.
    #[serde(skip)]
    reports: BTreeMap<String, BTreeMap<String, (u16, Option<i64>)>>,
}

impl AccountQuota {
    /// Adds the figures that a worker reports. Returns whether anything changed.
    pub fn report(&mut self, worker: &str, figures: &[QuotaFigure], now: i64) -> bool {
        if self.reports.len() >= MAX_REPORTERS && !self.reports.contains_key(worker) {
            self.reports.clear();
        }
        let last = self.reports.entry(worker.to_owned()).or_default();
        let mut fresh = vec![];
        for figure in figures.iter().filter(|figure| figure.is_current(now)) {
            let value = (figure.used, figure.resets_at);
            let before = last.insert(figure.window.clone(), value);
            fresh.extend((before != Some(value)).then_some((figure, before.is_some())));
        }
        fresh
            .into_iter()
            .fold(false, |changed, (figure, is_newest)| self.add(figure, is_newest, now) | changed)
    }

    /// Adds one figure. `is_newest`: its session has just reported another value. Otherwise the figure may be old, and
    /// of two figures for the same reset the higher one counts, since the used part grows until the reset.
    pub fn add(&mut self, figure: &QuotaFigure, is_newest: bool, now: i64) -> bool {
        if !figure.is_current(now) {
            return false;
        }
        let known = self.figures.get(&figure.window).filter(|known| known.is_current(now));
        let is_older = known.is_some_and(|known| match (known.resets_at, figure.resets_at) {
            (Some(at), Some(new)) if (at - new).abs() > CLOCK_TOLERANCE_SECONDS => new < at,
            _ => !is_newest && figure.used <= known.used,
        });
        if is_older {
            return false;
        }
        self.figures.insert(figure.window.clone(), figure.clone());
        true
    }

    /// Drops what no longer counts. Returns whether anything changed.
    pub fn expire(&mut self, now: i64) -> bool {
        let count = self.figures.len();
        self.figures.retain(|_, figure| figure.is_current(now));
        let was_lifted = self.lifted_until.is_some();
        self.lifted_until = self.lifted_until.filter(|until| *until > now);
        count != self.figures.len() || was_lifted != self.lifted_until.is_some()
    }

    /// True when nothing is known.
    pub fn is_empty(&self) -> bool {
        self.figures.is_empty() && self.lifted_until.is_none()
    }

    /// The figure that parks the account's loops: of those that reach `park_at`, the one with the latest reset. Without
    /// `park_at`, only a limit that an agent ran into parks.
    pub fn parking(&self, park_at: Option<u8>, now: i64) -> Option<&QuotaFigure> {
        let lifted = self.lifted_until.unwrap_or(i64::MIN);
        let is_over = |figure: &&QuotaFigure| {
            let is_used = park_at.is_some_and(|limit| figure.used >= u16::from(limit));
            let resets = figure.resets_at.is_some_and(|at| at > now && at > lifted);
            figure.is_current(now) && resets && (is_used || figure.window == REACHED)
        };
        self.figures.values().filter(is_over).max_by_key(|figure| figure.resets_at)
    }

    /// Lifts the present park until its reset. Returns that reset; `None` if the loops are not parked.
    pub fn lift(&mut self, park_at: Option<u8>, now: i64) -> Option<i64> {
        let until = self.parking(park_at, now)?.resets_at;
        self.lifted_until = until;
        until
    }
}

/// The park of an account, as its loops receive it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Park {
    /// The account for a person to read.
    pub account: String,
    /// The limit for a person to read.
    pub limit: String,
    /// The used part in percent.
    pub used: u16,
    /// When the limit is reset.
    pub until: DateTime<FixedOffset>,
}

impl Park {
    /// The park by a figure; `None` without a reset. `wall` gives the time zone.
    pub fn of(account: String, figure: &QuotaFigure, wall: DateTime<FixedOffset>) -> Option<Self> {
        let until = DateTime::from_timestamp(figure.resets_at?, 0)?.with_timezone(&wall.timezone());
        Some(Self { account, limit: figure.title(), used: figure.used, until })
    }

    /// The reason, one line.
    pub fn reason(&self) -> String {
        format!("{} used {} % of its {}", self.account, self.used, self.limit)
    }

    pub(crate) fn outage(&self) -> Outage {
        Outage { kind: OutageKind::Limit, message: self.reason(), until: Some(self.until) }
    }
}

/// Whether an outage holds for the whole account: a usage limit that does not name a model.
pub fn is_account_limit(outage: &Outage) -> bool {
    const MODELS: [&str; 4] = ["opus", "sonnet", "haiku", "fable"];
    let message = outage.message.to_lowercase();
    outage.kind == OutageKind::Limit && !MODELS.iter().any(|model| message.contains(model))
}
