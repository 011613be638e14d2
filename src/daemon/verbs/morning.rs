//! `morning`: the work of all workers in a period, for the morning view.
//!
//! Reads the records of iterations from the last one back to the start of the period, and asks git for the unmerged
//! work of finished workers. Deliberately absent: the state of the workers, which `ls` returns.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use swarm_state::model::{WorkerName, Worktree};
use swarm_state::morning::{IterationPoint, MAX_CHARTED_ITERATIONS, Period};
use swarm_state::notice::Entry;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::daemon::clock::local_now;
use crate::daemon::reply::Later;
use crate::daemon::slot::{Slot, loop_run_of};
use crate::daemon::supervisor::Supervisor;
use crate::error::{Error, Result};
use crate::git;
use crate::loops::LoopRun;
use crate::protocol::{MorningParams, MorningView, WorkerWork};

/// The most workers of an answer. With all their iterations, their JSON fits a line.
const MAX_WORKERS: usize = 40;

/// The most deleted workers of an answer.
const MAX_REMOVED: usize = 500;

/// How long an answer waits for git. The unmerged work of the other worktrees is then unknown.
const GIT_TIMEOUT: Duration = Duration::from_secs(5);

/// How many worktrees git reads at a time.
const MAX_PARALLEL_TREES: usize = 4;

struct WorkSource {
    name: WorkerName,
    /// The loop, and its current or last iteration.
    of_loop: Option<(LoopRun, u32)>,
    /// The worktree of a finished worker.
    worktree: Option<Worktree>,
}

impl WorkSource {
    fn of(slot: &Slot) -> Self {
        let is_finished = slot.status().is_finished();
        Self {
            name: slot.spec.name.clone(),
            of_loop: slot.engine.ralph().map(|ralph| (loop_run_of(slot), ralph.iteration)),
            worktree: slot.worktree.clone().filter(|_| is_finished),
        }
    }
}

impl Supervisor {
    pub(crate) fn morning(&mut self, params: &MorningParams) -> Later<MorningView> {
        let since = params.since.as_deref().map(time).transpose()?.or(self.last_look());
        let period = Period { since, until: local_now() };
        let follows =
            |name: &WorkerName| params.after.as_ref().is_none_or(|after| name.as_str() > after.as_str());
        let mut left = self.slots.values().filter(|slot| follows(&slot.spec.name));
        let sources: Vec<WorkSource> = left.by_ref().take(MAX_WORKERS).map(WorkSource::of).collect();
        let last = sources.last().map(|source| source.name.to_string());
        let mut view = MorningView {
            since: since.map(|since| since.to_rfc3339()),
            until: period.until.to_rfc3339(),
            workers: vec![],
            next: last.filter(|_| left.next().is_some()),
            removed: vec![],
        };
        // A view of everything lists no deleted workers.
        if params.after.is_none() && since.is_some() {
            view.removed = self.removed_in(&period);
        }
        Ok(Box::pin(async move {
            let trees: Vec<Option<Worktree>> = sources.iter().map(|source| source.worktree.clone()).collect();
            let read = move || sources.iter().map(|source| work(source, &period)).collect();
            let internal = |e| Error::internal(format!("the morning view failed: {e}"));
            view.workers = tokio::task::spawn_blocking(read).await.map_err(internal)?;
            add_unmerged(&mut view.workers, trees).await;
            Ok(view)
        }))
    }

    /// The workers that were deleted in the period, by name. A worker that has the name now hides an earlier one.
    fn removed_in(&self, period: &Period) -> Vec<String> {
        let removed =
            self.notices.kept().filter(|notice| notice.entry == Entry::Cleaned && period.has(&notice.at));
        let removed: BTreeSet<&String> = removed.map(|notice| &notice.worker).collect();
        let exists = |name: &str| self.slots.keys().any(|known| known.as_str() == name);
        removed.into_iter().filter(|name| !exists(name)).take(MAX_REMOVED).cloned().collect()
    }
}

pub(super) fn time(text: &str) -> Result<DateTime<FixedOffset>> {
    DateTime::parse_from_rfc3339(text).map_err(|_| Error::invalid(format!("invalid time '{text}'")))
}

/// The work of one worker in the period, without git.
fn work(source: &WorkSource, period: &Period) -> WorkerWork {
    let mut found = WorkerWork { name: source.name.to_string(), ..WorkerWork::default() };
    let Some((loop_run, last)) = &source.of_loop else { return found };
    for number in (1..=*last).rev() {
        let Some(iteration) = loop_run.read_iteration(number) else { continue };
        let point = IterationPoint::of(&iteration);
        if !period.has(&point.ended) {
            break;
        }
        found.work.add(&point);
        if found.history.len() < MAX_CHARTED_ITERATIONS {
            found.history.push(point);
        }
    }
    found.history.reverse();
    found
}

/// Adds the unmerged work of the worktrees, as far as git answers in time.
async fn add_unmerged(workers: &mut [WorkerWork], trees: Vec<Option<Worktree>>) {
    let deadline = Instant::now() + GIT_TIMEOUT;
    let permits = Arc::new(Semaphore::new(MAX_PARALLEL_TREES));
    let mut tasks = JoinSet::new();
    for (index, tree) in trees.into_iter().enumerate() {
        let (Some(tree), permits) = (tree, permits.clone()) else { continue };
        tasks.spawn(timeout_at(deadline, async move {
            // The semaphore is never closed.
            let _permit = permits.acquire().await;
            (index, git::unmerged(&tree).await)
        }));
    }
    while let Some(done) = tasks.join_next().await {
        if let Ok(Ok((index, Ok(unmerged)))) = done
            && let Some(worker) = workers.get_mut(index)
        {
            worker.unmerged = Some(unmerged);
        }
    }
}

#[cfg(test)]
mod tests {
    use swarm_state::morning::{PeriodWork, UnmergedWork};

    use super::*;
    use crate::protocol::MAX_LINE_BYTES;

    #[test]
    fn longest_overview_answer_fits_one_protocol_line() {
        let name = "n".repeat(64);
        let point = IterationPoint {
            iteration: u32::MAX,
            ended: "2026-01-15T01:10:00.123456789+01:00".into(),
            agent_seconds: 1_234_567.123_456_789,
            check_seconds: Some(1_234_567.123_456_789),
            failed: true,
            checks_passed: 1000,
            checks_failed: 1000,
            cost: Some(1_000_000_000_000),
        };
        let mut work = PeriodWork::default();
        work.add(&point);
        let worker = WorkerWork {
            name: name.clone(),
            work,
            history: vec![point; MAX_CHARTED_ITERATIONS],
            unmerged: Some(UnmergedWork { commits: u64::MAX, uncommitted: u64::MAX }),
        };
        let view = MorningView {
            since: Some(String::new()),
            until: String::new(),
            workers: vec![worker; MAX_WORKERS],
            removed: vec![name.clone(); MAX_REMOVED],
            next: Some(name),
        };
        assert!(serde_json::to_vec(&view).unwrap().len() < MAX_LINE_BYTES - 1000);
    }
}
