//! `ralph.restore`: check out an iteration's tree into a new worktree.

use std::path::PathBuf;

use crate::daemon::reply::Reply;
use crate::daemon::slot::course_of;
use crate::daemon::supervisor::Supervisor;
use crate::daemon::verbs::ralph_diff::{no_snapshot, repo_of};
use crate::error::Result;
use crate::git;
use crate::loops::Course;
use crate::protocol::{RestoreParams, Restored};

impl Supervisor {
    /// Answers `ralph.restore`.
    pub(crate) fn ralph_restore(&mut self, params: RestoreParams, reply: Reply) {
        match self.find_loop(&params.name) {
            Err(error) => reply.refuse(error),
            Ok((_, slot)) => {
                let (course, repo) = (course_of(slot), repo_of(slot));
                tokio::spawn(async move { reply.answer(restore(&course, repo, params).await) });
            }
        }
    }
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
