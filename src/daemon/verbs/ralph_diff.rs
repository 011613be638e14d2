//! `ralph.diff`: what an iteration of a loop changed.

use std::path::{Path, PathBuf};

use crate::daemon::reply::Later;
use crate::daemon::slot::{loop_run_of, repo_of};
use crate::daemon::supervisor::Supervisor;
use crate::error::{Error, Result};
use crate::git;
use crate::loops::LoopRun;
use crate::protocol::{DiffParams, DiffView};
use crate::shell::quote_path;

/// The most bytes of text in an answer; JSON can double a text.
pub(crate) const MAX_ANSWER_BYTES: usize = 400_000;

impl Supervisor {
    pub(crate) fn ralph_diff(&mut self, params: &DiffParams) -> Later<DiffView> {
        let (_, slot) = self.find_loop(&params.name)?;
        let last = slot.engine.ralph().map_or(0, |ralph| ralph.iteration);
        Ok(Box::pin(diff(loop_run_of(slot), repo_of(slot), params.iteration, last)))
    }
}

async fn diff(loop_run: LoopRun, repo: PathBuf, wanted: Option<u32>, last: u32) -> Result<DiffView> {
    let last = (1..=last).rev().find(|n| loop_run.read_iteration(*n).is_some_and(|it| it.commit.is_some()));
    let (from, to) = match (wanted, last) {
        (Some(0), _) => return Err(Error::invalid("iterations are numbered from 1")),
        (Some(n), _) => (n - 1, n),
        (None, Some(last)) => (0, last),
        (None, None) => return Err(no_snapshot(&loop_run, "any iteration")),
    };
    if loop_run.read_iteration(to).is_none_or(|it| it.commit.is_none()) {
        return Err(no_snapshot(&loop_run, &format!("iteration {to}")));
    }
    for iteration in [from, to] {
        refuse_deleted(&loop_run, &repo, iteration).await?;
    }
    let (from, to) = (loop_run.reference(from), loop_run.reference(to));
    let mut text = git::diff(&repo, &[], &from, &to).await?;
    let truncated = text.len() > MAX_ANSWER_BYTES;
    let cut = (0..=MAX_ANSWER_BYTES.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.truncate(cut);
    Ok(DiffView { from, to, text, truncated })
}

pub(crate) fn no_snapshot(loop_run: &LoopRun, of: &str) -> Error {
    Error::invalid(format!("no snapshot of {of} of '{}'", loop_run.name))
        .hint(format!("to list the snapshots: swarm report {}", loop_run.name))
}

/// Refuses a snapshot whose ref was deleted. git keeps the commit for some time.
pub(crate) async fn refuse_deleted(loop_run: &LoopRun, repo: &Path, iteration: u32) -> Result<()> {
    let (reference, name) = (loop_run.reference(iteration), &loop_run.name);
    if git::has_commit(repo, &reference).await? {
        return Ok(());
    }
    let commit = match iteration {
        0 => loop_run.read_base().and_then(|base| base.commit),
        n => loop_run.read_iteration(n).and_then(|it| it.commit),
    };
    let hint = match commit {
        Some(commit) if git::has_commit(repo, &commit).await? => {
            format!("to restore the ref: git -C {} update-ref {reference} {commit}", quote_path(repo))
        }
        Some(_) | None => format!("git has deleted its files too; for the results: swarm report {name}"),
    };
    let message =
        format!("iteration {iteration} of '{name}' has no snapshot any more: {reference} was deleted");
    Err(Error::conflict(message).hint(hint))
}
