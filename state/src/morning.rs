//! The morning view: what happened to all workers in a period, and which of them a person should look at first.
//!
//! `swarm report` without a name shows it. The groups and their order are those of [`crate::attention`]. Deliberately
//! absent: text, Markdown, HTML and JSON.

use chrono::{DateTime, FixedOffset, TimeDelta, Timelike};
use serde::{Deserialize, Serialize};

use crate::attention::Attention;
use crate::cause::Cause;
use crate::ledger::Iteration;
use crate::model::{Status, is_default};
use crate::words::{counted, duration};

/// The most iterations of one loop that are kept for its charts.
pub const MAX_CHARTED_ITERATIONS: usize = 100;

/// The time that the view covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Its start; `None` covers everything.
    pub since: Option<DateTime<FixedOffset>>,
    /// Its end: the time of the view.
    pub until: DateTime<FixedOffset>,
}

impl Period {
    /// Whether a time (RFC 3339) is in the period. A time that cannot be read is not.
    pub fn has(&self, at: &str) -> bool {
        DateTime::parse_from_rfc3339(at).is_ok_and(|at| self.since.is_none_or(|since| at >= since))
    }

    /// The seconds of the time from `from` to `to` that are in the period.
    pub(crate) fn seconds_of(&self, from: DateTime<FixedOffset>, to: DateTime<FixedOffset>) -> f64 {
        let from = self.since.map_or(from, |since| since.max(from));
        (to.min(self.until) - from).max(TimeDelta::zero()).num_milliseconds() as f64 / 1e3
    }

    /// The period as `since 22:41 yesterday, 9h 12m`. Both times have to be in the zone of the reader.
    pub fn text(&self) -> String {
        let Some(since) = self.since else { return "everything so far".to_owned() };
        let days = (self.until.date_naive() - since.date_naive()).num_days();
        let day = match days {
            0 => String::new(),
            1 => " yesterday".to_owned(),
            _ => format!(" on {}", since.date_naive()),
        };
        let seconds = u64::try_from((self.until - since).num_seconds()).unwrap_or(0);
        format!("since {:02}:{:02}{day}, {}", since.hour(), since.minute(), brief_duration(seconds))
    }
}

/// A duration in its two largest units: `42s`, `7m 3s`, `9h 12m`, `3d 4h`.
pub fn brief_duration(seconds: u64) -> String {
    match seconds {
        0..3600 => duration(seconds, " "),
        3600..172_800 => format!("{}h {}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// An amount of money: `$1.50`, and `$0.0025` below one cent.
pub fn brief_dollars(millionths: u64) -> String {
    let places = if millionths == 0 || millionths >= 10_000 { 2 } else { 4 };
    format!("${:.places$}", millionths as f64 / 1e6)
}

/// One iteration, as far as a chart shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IterationPoint {
    /// Its number.
    pub iteration: u32,
    /// When its agent ended: RFC 3339 with offset.
    pub ended: String,
    /// Seconds of the agent.
    pub agent_seconds: f64,
    /// Seconds of the checks; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check_seconds: Option<f64>,
    /// Whether it counts as failed. Absent for no.
    #[serde(skip_serializing_if = "is_default")]
    pub failed: bool,
    /// The checks that passed. Absent for none.
    #[serde(skip_serializing_if = "is_default")]
    pub checks_passed: u64,
    /// The checks that failed. Absent for none.
    #[serde(skip_serializing_if = "is_default")]
    pub checks_failed: u64,
    /// Millionths of a US dollar; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
}

impl IterationPoint {
    /// The point of an iteration.
    pub fn of(it: &Iteration) -> Self {
        let verdict = it.verdict.as_ref();
        let story = verdict.and_then(|verdict| verdict.tasks.as_ref()).map(|tasks| &tasks.checks);
        let checks = || verdict.map(|verdict| &verdict.checks).into_iter().chain(story).flatten();
        Self {
            iteration: it.iteration,
            ended: it.ended.clone(),
            agent_seconds: it.seconds,
            check_seconds: it.check_seconds(),
            failed: it.has_failed(),
            checks_passed: checks().filter(|check| check.passed).count() as u64,
            checks_failed: checks().filter(|check| !check.passed).count() as u64,
            cost: verdict.and_then(|verdict| verdict.cost),
        }
    }
}

/// The iterations of a loop in a period, as sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PeriodWork {
    /// The iterations that ended.
    pub iterations: u64,
    /// Those of them that count as failed.
    pub failed: u64,
    /// Seconds of the agents.
    pub agent_seconds: f64,
    /// Seconds of the checks.
    pub check_seconds: f64,
    /// Checks that passed.
    pub checks_passed: u64,
    /// Checks that failed.
    pub checks_failed: u64,
    /// Millionths of a US dollar; absent if no iteration reported a cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
}

impl PeriodWork {
    /// Adds an iteration.
    pub fn add(&mut self, point: &IterationPoint) {
        self.iterations += 1;
        self.failed += u64::from(point.failed);
        self.agent_seconds += point.agent_seconds;
        self.check_seconds += point.check_seconds.unwrap_or_default();
        self.checks_passed += point.checks_passed;
        self.checks_failed += point.checks_failed;
        self.cost = sum(self.cost, point.cost);
    }
}

/// The sum of two costs, as far as they are known.
fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (known, None) | (None, known) => known,
    }
}

/// The work in a worktree that the repository's current branch does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnmergedWork {
    /// The commits of its branch.
    pub commits: u64,
    /// The changed and new files that are in no commit.
    pub uncommitted: u64,
}

impl UnmergedWork {
    /// `2 commits to merge, 1 uncommitted file`; `None` without work.
    pub fn text(self) -> Option<String> {
        let commits = (self.commits > 0).then(|| format!("{} to merge", counted(self.commits, "commit")));
        let files = (self.uncommitted > 0).then(|| counted(self.uncommitted, "uncommitted file"));
        match (commits, files) {
            (Some(commits), Some(files)) => Some(format!("{commits}, {files}")),
            (text, None) | (None, text) => text,
        }
    }
}

/// One worker in the view.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the name explains most fields")]
pub struct MorningRow {
    pub name: String,
    pub status: Status,
    pub group: Attention,
    /// Why it is in its state, in a few words; empty without a reason.
    pub why: String,
    pub reason: Option<String>,
    pub cause: Option<Cause>,
    pub next: Option<String>,
    pub is_loop: bool,
    /// The current or last iteration of a loop.
    pub iteration: Option<u64>,
    pub max_iterations: Option<u64>,
    pub iteration_started: Option<String>,
    /// When the worker was created.
    pub started: String,
    pub status_since: Option<String>,
    /// Whether its agent waits for input.
    pub is_idle: bool,
    /// Whether a person has seen it since it finished.
    pub is_seen: bool,
    /// Its iterations in the period.
    pub work: PeriodWork,
    /// The last of them, in order.
    pub history: Vec<IterationPoint>,
    /// The branch of its worktree.
    pub branch: Option<String>,
    /// The unmerged work of its worktree; `None` if unknown, or while the worker has not finished.
    pub unmerged: Option<UnmergedWork>,
}

impl MorningRow {
    /// Whether the view has a line for it: it needs a person, works, or something happened in the period.
    fn has_news(&self, period: &Period) -> bool {
        match self.group {
            Attention::NeedsYou | Attention::FailedOrLost | Attention::FinishedUnseen => true,
            Attention::Working if !self.is_idle => true,
            Attention::Working | Attention::Parked | Attention::Rest => {
                let times = [Some(&self.started), self.status_since.as_ref()];
                self.work.iterations > 0 || times.into_iter().flatten().any(|at| period.has(at))
            }
        }
    }

    /// The seconds that its agent and checks worked in the period; of a worker that is not a loop, those that it ran.
    pub fn seconds(&self, period: &Period) -> f64 {
        let time = |text: &String| DateTime::parse_from_rfc3339(text).ok();
        let since = self.status_since.as_ref().and_then(time);
        if self.is_loop {
            let done = self.work.agent_seconds + self.work.check_seconds;
            let is_recorded =
                self.history.last().is_some_and(|last| Some(u64::from(last.iteration)) == self.iteration);
            let running = self.iteration_started.as_ref().and_then(time);
            let running = running.filter(|_| self.status.is_live() && !is_recorded);
            return done + running.map_or(0.0, |from| period.seconds_of(from, period.until));
        }
        let end = since.filter(|_| self.status.is_finished()).unwrap_or(period.until);
        time(&self.started).map_or(0.0, |from| period.seconds_of(from, end))
    }

    /// The iterations as `3/10`, or as `+2, 3/10` if only some ended in the period; `-` if the worker is not a loop.
    pub fn iterations_text(&self) -> String {
        let (true, Some(reached)) = (self.is_loop, self.iteration) else { return "-".to_owned() };
        let all = self.max_iterations.map_or_else(|| reached.to_string(), |max| format!("{reached}/{max}"));
        let ended = self.work.iterations;
        let before_this = u64::from(self.status.is_live());
        if ended == 0 || ended + before_this >= reached { all } else { format!("+{ended}, {all}") }
    }

    /// The cost in the period; `-` if unknown.
    pub fn cost_text(&self) -> String {
        self.work.cost.map_or_else(|| "-".to_owned(), brief_dollars)
    }

    /// Why it is in its state, and its unmerged work.
    pub fn result_text(&self) -> String {
        let unmerged = self.unmerged.and_then(UnmergedWork::text);
        let parts = [Some(self.why.clone()).filter(|why| !why.is_empty()), unmerged];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

/// The whole view.
#[derive(Clone, Debug, PartialEq)]
pub struct Morning {
    /// The time that it covers.
    pub period: Period,
    /// The workers with news, in the order of attention.
    pub rows: Vec<MorningRow>,
    /// The other workers.
    pub quiet: Vec<MorningRow>,
    /// Workers that were deleted in the period.
    pub removed: Vec<String>,
}

impl Morning {
    /// Sorts the workers by attention, and separates those without news.
    pub fn new(period: Period, mut rows: Vec<MorningRow>, removed: Vec<String>) -> Self {
        rows.sort_by_key(|row| row.group);
        let (rows, quiet): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.has_news(&period));
        Self { period, rows, quiet, removed }
    }

    /// The sums of all lines.
    pub fn totals(&self) -> PeriodWork {
        let mut work = PeriodWork::default();
        for row in &self.rows {
            work.iterations += row.work.iterations;
            work.failed += row.work.failed;
            work.agent_seconds += row.work.agent_seconds;
            work.check_seconds += row.work.check_seconds;
            work.checks_passed += row.work.checks_passed;
            work.checks_failed += row.work.checks_failed;
            work.cost = sum(work.cost, row.work.cost);
        }
        work
    }

    /// The groups that have lines, in their order.
    pub fn groups(&self) -> impl Iterator<Item = (Attention, &[MorningRow])> {
        self.rows
            .chunk_by(|one, other| one.group == other.group)
            .filter_map(|rows| Some((rows.first()?.group, rows)))
    }

    /// `since 22:41 yesterday, 9h 12m: 6 workers, 23 iterations, $4.20`.
    pub fn headline(&self) -> String {
        let totals = self.totals();
        let mut parts = vec![counted(self.rows.len(), "worker"), counted(totals.iterations, "iteration")];
        parts.extend(totals.cost.map(brief_dollars));
        format!("{}: {}", self.period.text(), parts.join(", "))
    }

    /// The lines below the workers: those without news, and those that were deleted.
    pub fn remarks(&self) -> Vec<String> {
        let mut lines = vec![];
        if !self.quiet.is_empty() {
            let count = |group: Attention| self.quiet.iter().filter(|quiet| quiet.group == group).count();
            let groups = Attention::ALL.into_iter().map(|group| (count(group), group));
            let groups = groups.filter(|(count, _)| *count > 0);
            let groups: Vec<String> =
                groups.map(|(count, group)| format!("{count} {}", quiet_word(group))).collect();
            let total = counted(self.quiet.len() as u64, "worker");
            lines.push(format!("{total} without news: {}", groups.join(", ")));
        }
        if !self.removed.is_empty() {
            lines.push(format!("deleted: {}", crate::words::named(&self.removed, MAX_NAMED_REMOVED)));
        }
        lines
    }
}

/// The most deleted workers that a line names.
const MAX_NAMED_REMOVED: usize = 5;

/// The state of the quiet workers of a group. A worker of the first groups always has a line.
fn quiet_word(group: Attention) -> &'static str {
    match group {
        Attention::NeedsYou | Attention::FailedOrLost | Attention::Parked => group.title(),
        Attention::Working => "idle",
        Attention::FinishedUnseen | Attention::Rest => "finished",
    }
}

#[cfg(test)]
mod tests;
