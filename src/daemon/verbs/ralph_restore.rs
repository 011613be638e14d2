//! `ralph.restore`: check out an iteration's tree into a new worktree.

use std::path::PathBuf;

use crate::daemon::reply::Later;
use crate::daemon::slot::{loop_run_of, repo_of};
use crate::daemon::supervisor::Supervisor;
use crate::daemon::verbs::ralph_diff::{no_snapshot, refuse_deleted};
use crate::error::Result;
use crate::git;
use crate::loops::LoopRun;
use crate::protocol::{RestoreParams, Restored};

impl Supervisor {
    pub(crate) fn ralph_restore(&mut self, params: RestoreParams) -> Later<Restored> {
        let (_, slot) = self.find_loop(&params.name)?;
        Ok(Box::pin(restore(loop_run_of(slot), repo_of(slot), params)))
    }
}

async fn restore(loop_run: LoopRun, repo: PathBuf, params: RestoreParams) -> Result<Restored> {
    let iteration = params.iteration;
    let taken = match iteration {
        0 => loop_run.read_base().is_some_and(|base| base.commit.is_some()),
        n => loop_run.read_iteration(n).is_some_and(|it| it.commit.is_some()),
    };
    if !taken {
        return Err(no_snapshot(&loop_run, &format!("iteration {iteration}")));
    }
    refuse_deleted(&loop_run, &repo, iteration).await?;
    let name = format!("{}-{iteration}", loop_run.name);
    let branch = params.branch.unwrap_or_else(|| format!("swarm/{name}"));
    let reference = loop_run.reference(iteration);
    let path = git::restore(&repo, &reference, params.dir.as_deref(), &name, &branch).await?;
    Ok(Restored { path, branch, reference })
}
