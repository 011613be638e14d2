//! `ralph.report`, `ralph.diff`, `ralph.restore` and `ralph.approve`: what a loop's folder and its snapshots hold.
//!
//! All of them read files or ask git, so they run beside the supervisor on what they are given of a worker.

use std::path::PathBuf;
use std::time::Duration;

use swarm_state::ends::End;
use swarm_state::engine::Phase;
use swarm_state::ignored::IgnoredFiles;

use super::asker::refuse_own;
use super::course::{course, loop_id};
use super::slot::{Reply, Slot};
use super::supervisor::Supervisor;
use crate::error::{Error, ErrorCode, Result};
use crate::git;
use crate::loops::Course;
use crate::protocol::{
    Approved, DiffParams, DiffView, Report, ReportParams, RestoreParams, Restored, Watched,
};
use crate::store::read_bounded;

/// Bytes of an answer that may be filled; JSON can double a text.
const ROOM: usize = 400_000;

/// How long a report waits for the ignored files of a worktree.
const MAX_LISTING: Duration = Duration::from_secs(3);

/// How many watched files a report names.
const MAX_WATCHED: usize = 20;

impl Supervisor {
    /// Answers `ralph.report`.
    pub(super) fn ralph_report(&mut self, params: &ReportParams, reply: Reply) {
        let now = self.now();
        // A name that nobody has is told apart from a worker that is no loop.
        let known = self.find(&params.name).map(|_| ());
        let found = known
            .and_then(|()| self.find_loop(&params.name))
            .and_then(|(_, slot)| Ok((outline(slot, now)?, course_of(slot))));
        let from = params.from.max(1);
        match found {
            Err(error) => Self::answer::<()>(reply, Err(error)),
            Ok((report, course)) => {
                tokio::spawn(async move {
                    let tree = report.worktree.as_ref().filter(|_| from == 1).map(|tree| tree.path.clone());
                    let filled = tokio::task::spawn_blocking(move || filled(report, &course, from)).await;
                    let internal = |e| Error::new(ErrorCode::Internal, format!("a report failed: {e}"));
                    let mut outcome = filled.map_err(internal);
                    if let (Ok(report), Some(tree)) = (&mut outcome, tree.filter(|tree| tree.exists())) {
                        let listed = tokio::time::timeout(MAX_LISTING, git::ignored(&tree)).await;
                        report.ignored =
                            listed.unwrap_or_else(|_| Ok(IgnoredFiles::default())).unwrap_or_default();
                    }
                    Self::answer(reply, outcome);
                });
            }
        }
    }

    /// Answers `ralph.diff`.
    pub(super) fn ralph_diff(&mut self, params: &DiffParams, reply: Reply) {
        let wanted = params.iteration;
        match self.find_loop(&params.name) {
            Err(error) => Self::answer::<()>(reply, Err(error)),
            Ok((_, slot)) => {
                let (course, repo) = (course_of(slot), repo_of(slot));
                let last = slot.engine.ralph().map_or(0, |ralph| ralph.iteration);
                tokio::spawn(async move { Self::answer(reply, diff(&course, repo, wanted, last).await) });
            }
        }
    }

    /// Answers `ralph.restore`.
    pub(super) fn ralph_restore(&mut self, params: RestoreParams, reply: Reply) {
        match self.find_loop(&params.name) {
            Err(error) => Self::answer::<()>(reply, Err(error)),
            Ok((_, slot)) => {
                let (course, repo) = (course_of(slot), repo_of(slot));
                tokio::spawn(async move { Self::answer(reply, restore(&course, repo, params).await) });
            }
        }
    }

    /// Answers `ralph.approve`.
    pub(super) fn ralph_approve(&mut self, name: &str, peer: Option<i32>, reply: Reply) {
        let found = self.find_loop(name).and_then(|(_, slot)| {
            refuse_own(slot, peer, "approve its own changes")?;
            Ok(course_of(slot))
        });
        match found {
            Err(error) => Self::answer::<()>(reply, Err(error)),
            Ok(course) => {
                tokio::spawn(async move {
                    Self::answer(reply, course.approve().await.map(|files| Approved { files }));
                });
            }
        }
    }
}

/// The loop of a worker, where it works now.
pub(super) fn course_of(slot: &Slot) -> Course {
    let cwd = slot.worktree.as_ref().map_or(&slot.spec.cwd, |worktree| &worktree.path);
    course(&slot.driver.context, &slot.spec, &loop_id(slot.started), cwd)
}

/// A directory of its repository that is there even when its worktree is gone.
fn repo_of(slot: &Slot) -> PathBuf {
    slot.worktree.as_ref().map_or(&slot.spec.cwd, |worktree| &worktree.base_repo).clone()
}

/// What is known without reading anything.
fn outline(slot: &Slot, now: swarm_state::engine::Now) -> Result<Report> {
    let missing = || Error::new(ErrorCode::Internal, "a loop without numbers");
    let (ralph, spec) =
        (slot.engine.ralph().ok_or_else(missing)?, slot.spec.ralph.as_ref().ok_or_else(missing)?);
    let spent = ralph.spent(now);
    let end = match slot.engine.phase() {
        Phase::Stopped { reason } => Some(End::of(reason)),
        Phase::Lost => Some(End::Lost),
        _ => None,
    };
    let course = course_of(slot);
    Ok(Report {
        name: slot.spec.name.to_string(),
        task: String::new(),
        prompt_file: spec.prompt_file.clone(),
        status: slot.engine.loop_status().ok_or_else(missing)?,
        worker_status: slot.status(),
        reason: super::views::reason(slot),
        cause: super::views::cause(slot),
        outage: slot.engine.outage().map(|outage| outage.kind),
        end,
        started: slot.started.to_rfc3339(),
        current_iteration: ralph.iteration,
        max_iterations: ralph.max_iterations,
        consecutive_failures: ralph.failures,
        gates: spec.gates.clone(),
        done_pattern: slot.spec.done_pattern.clone(),
        budgets: ralph.budgets.clone(),
        seconds: spent.time.as_secs_f64(),
        cost: spent.cost as f64 / 1e6,
        tokens: spent.tokens,
        baseline: vec![],
        iterations: vec![],
        next: None,
        watched: None,
        unapproved: vec![],
        warnings: vec![],
        snapshots: course.reference(0).trim_end_matches('0').trim_end_matches('/').to_owned(),
        cwd: course.cwd,
        worktree: slot.worktree.clone(),
        ignored: IgnoredFiles::default(),
    })
}

/// The same with what stands on the disk, as much as fits an answer.
fn filled(mut report: Report, course: &Course, from: u32) -> Report {
    report.task = first_line(&report.prompt_file);
    let mut room = ROOM;
    if from == 1 {
        if let Some(base) = course.read_base() {
            let files = base.protected.keys().take(MAX_WATCHED).cloned().collect();
            report.watched = Some(Watched { count: base.protected.len() as u64, files });
            (report.baseline, report.warnings) = (base.checks, base.warnings);
            report.unapproved = course.unapproved().unwrap_or_default();
            report.unapproved.truncate(MAX_WATCHED);
        }
        room = room.saturating_sub(size(&report.baseline));
    }
    for number in from..=report.current_iteration {
        let Some(iteration) = course.read_iteration(number) else { continue };
        let takes = size(&iteration);
        if takes > room && !report.iterations.is_empty() {
            report.next = Some(number);
            break;
        }
        room = room.saturating_sub(takes);
        report.iterations.push(iteration);
    }
    report
}

/// How long a value is on the wire.
fn size(value: &impl serde::Serialize) -> usize {
    serde_json::to_string(value).map_or(0, |text| text.len())
}

fn first_line(file: &std::path::Path) -> String {
    let text = read_bounded(file, 1 << 20).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let text = text.unwrap_or_default();
    let line =
        text.lines().map(|line| line.trim().trim_start_matches('#').trim()).find(|line| !line.is_empty());
    line.unwrap_or_default().chars().take(200).collect()
}

async fn diff(course: &Course, repo: PathBuf, wanted: Option<u32>, last: u32) -> Result<DiffView> {
    let last = (1..=last).rev().find(|n| course.read_iteration(*n).is_some_and(|it| it.commit.is_some()));
    let (from, to) = match (wanted, last) {
        (Some(0), _) => return Err(Error::invalid("iterations are counted from 1")),
        (Some(n), _) => (n - 1, n),
        (None, Some(last)) => (0, last),
        (None, None) => return Err(no_snapshot(course, "any iteration")),
    };
    if course.read_iteration(to).is_none_or(|it| it.commit.is_none()) {
        return Err(no_snapshot(course, &format!("iteration {to}")));
    }
    let (from, to) = (course.reference(from), course.reference(to));
    let mut text = git::diff(&repo, &from, &to).await?;
    let truncated = text.len() > ROOM;
    let cut = (0..=ROOM.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.truncate(cut);
    Ok(DiffView { from, to, text, truncated })
}

async fn restore(course: &Course, repo: PathBuf, params: RestoreParams) -> Result<Restored> {
    let iteration = params.iteration;
    let taken = match iteration {
        0 => course.read_base().is_some_and(|base| base.commit.is_some()),
        n => course.read_iteration(n).is_some_and(|it| it.commit.is_some()),
    };
    if !taken {
        return Err(no_snapshot(course, &format!("iteration {iteration}")));
    }
    let name = format!("{}-{iteration}", course.name);
    let branch = params.branch.unwrap_or_else(|| format!("swarm/{name}"));
    let reference = course.reference(iteration);
    let path = git::restore(&repo, &reference, params.dir.as_deref(), &name, &branch).await?;
    Ok(Restored { path, branch, reference })
}

fn no_snapshot(course: &Course, of: &str) -> Error {
    Error::invalid(format!("there is no snapshot of {of} of '{}'", course.name))
        .hint(format!("swarm report {} shows which there are", course.name))
}
