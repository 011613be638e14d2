//! The workers of the stories: their states, their start, and the removal of their worktrees.

use std::collections::BTreeMap;

use swarm_state::model::Status;
use swarm_state::spec::WorktreeSpec;
use swarm_state::tasks::parallel::{ChildState, child_names};
use swarm_state::tasks::{ReviewStatus, TaskList};

use super::{Coordinator, MAX_COORDINATOR_LIST_BYTES};
use crate::client::connect::{QUICK_TIMEOUT, SLOW_TIMEOUT};
use crate::client::spawn_params::{own_env, request_name};
use crate::error::{Error, ErrorCode, Result, sentence};
use crate::files::read_bounded;
use crate::git;
use crate::out::Failure;
use crate::protocol::{Call, Empty, KillParams, Killed, Listing, SpawnParams, Spawned, WorkerView};

/// The variable with the number of the coordinator's run; it is 1 unless the daemon restarted the coordinator.
const RUN: &str = "SWARM_RUN";

/// The workers by story.
pub(super) type ChildViews = BTreeMap<String, WorkerView>;

impl Coordinator {
    pub(super) async fn children(&self, list: &TaskList) -> Result<ChildViews> {
        let listing: Listing = self.call(&Call::Ls(Empty {}), QUICK_TIMEOUT).await?;
        let names = child_names(&self.name, list);
        let mut workers = listing.workers;
        workers.retain(|worker| worker.parent.as_ref() == Some(&self.name));
        let view = |name: &str| workers.iter().find(|worker| worker.name == name).cloned();
        Ok(names.into_iter().filter_map(|(id, name)| Some((id, view(name.as_str())?))).collect())
    }

    /// Remembers the workers that had failed before the user started the coordinator.
    pub(super) async fn find_stale(&mut self, list: &TaskList) -> Result<()> {
        if std::env::var(RUN).is_ok_and(|run| run != "1") {
            return Ok(());
        }
        for view in self.children(list).await?.into_values() {
            if matches!(view.status, Status::Failed | Status::Killed) {
                self.stale.insert(view.name);
            }
        }
        Ok(())
    }

    pub(super) fn states(
        &mut self,
        list: &TaskList,
        views: &ChildViews,
    ) -> Result<BTreeMap<String, ChildState>, Failure> {
        let mut states = BTreeMap::new();
        for story in list.stories() {
            let (id, skip_review) = (&story.id, self.gate.review.skip_review);
            if let Some(why) = self.refused.get(id) {
                states.insert(id.clone(), ChildState::Failed(why.clone()));
                continue;
            }
            let Some(view) = views.get(id) else { continue };
            let state = self.state(id, view);
            if !story.is_done(skip_review) {
                match (&state, view.status) {
                    (ChildState::Failed(why), _) => self.print(id, format!("failed: {why}"))?,
                    (_, Status::Paused | Status::Waiting) => {
                        let (name, status) = (&view.name, view.status);
                        self.print(id, format!("worker {name} is {status} (swarm why {name})"))?;
                    }
                    _ => {}
                }
            }
            states.insert(id.clone(), state);
        }
        Ok(states)
    }

    fn state(&self, id: &str, view: &WorkerView) -> ChildState {
        let list = self.list_of(view);
        let story = list.as_ref().and_then(|list| list.story(id));
        let status = story.and_then(|story| story.review.review_status);
        match view.status {
            Status::Lost => ChildState::Again,
            Status::Done => match story {
                Some(story) if story.is_done(self.gate.review.skip_review) => ChildState::Approved,
                // Its worktree may be gone: it is the worker of an earlier list.
                Some(_) | None => ChildState::Again,
            },
            Status::Failed | Status::Killed if self.stale.contains(&view.name) => ChildState::Again,
            Status::Failed | Status::Killed => {
                let why = view.reason.clone().unwrap_or_else(|| view.status.to_string());
                ChildState::Failed(format!("{why} (swarm why {})", view.name))
            }
            Status::Starting
            | Status::Running
            | Status::Waiting
            | Status::Retrying
            | Status::Paused
            | Status::Unreachable => {
                ChildState::Working { in_review: status == Some(ReviewStatus::NeedsReview) }
            }
        }
    }

    /// The list in the worktree of a story; `None` if it cannot be read.
    pub(super) fn list_of(&self, view: &WorkerView) -> Option<TaskList> {
        let path = view.worktree.as_ref()?.path.join(self.gate.file());
        TaskList::parse(&String::from_utf8(read_bounded(&path, MAX_COORDINATOR_LIST_BYTES).ok()?).ok()?).ok()
    }

    /// Starts the worker of a story, in its old worktree if it has one.
    pub(super) async fn spawn(
        &mut self,
        id: &str,
        list: &TaskList,
        old: Option<&WorkerView>,
    ) -> Result<(), Failure> {
        let Some(name) = child_names(&self.name, list).remove(id) else {
            self.refused.insert(id.to_owned(), "no name is free for its worker".into());
            return Ok(());
        };
        let branch = format!("swarm/{name}");
        if git::has_branch(&self.tree, &branch).await? != Some(true) {
            git::make_story_branch(&self.tree, &branch, &name).await?;
        }
        let mut params = SpawnParams {
            name: Some(name.to_string()),
            env: own_env()?,
            worktree: Some(WorktreeSpec::default()),
            replace: old.is_some(),
            request: Some(request_name()),
            parent: Some(self.name.clone()),
            ..self.plan.child.clone()
        };
        if let Some(gate) = params.ralph.as_mut().and_then(|ralph| ralph.gates.tasks.as_mut()) {
            gate.story = Some(id.to_owned());
        }
        let spawned: Result<Spawned> = self.call(&Call::Spawn(Box::new(params)), SLOW_TIMEOUT).await;
        self.stale.remove(name.as_str());
        match spawned {
            Ok(_) if old.is_some() => self.print(id, format!("started again in worker {name}")),
            Ok(_) => self.print(id, format!("started in worker {name}")),
            // The list of workers shows whether it was started.
            Err(error) if matches!(error.code, ErrorCode::NoDaemon | ErrorCode::Timeout) => Ok(()),
            Err(error) => {
                let why = format!("cannot start: {}", sentence(&error));
                self.print(id, format!("failed: {why}"))?;
                self.refused.insert(id.to_owned(), why);
                Ok(())
            }
        }
    }

    /// Removes the worktrees and the branches of merged stories, if nothing would be lost.
    pub(super) async fn remove_merged(&self, list: &TaskList, views: &ChildViews) -> Result<(), Failure> {
        let is_done =
            |id: &str| list.story(id).is_some_and(|story| story.is_done(self.gate.review.skip_review));
        for (id, view) in views.iter().filter(|(id, view)| is_done(id) && view.status == Status::Done) {
            let Some(worktree) = &view.worktree else { continue };
            if let Err(error) = self.remove_worktree(view, &worktree.branch).await {
                self.out.line(&format!("{id}: worktree {} stays: {error}", worktree.path.display()))?;
            }
        }
        Ok(())
    }

    async fn remove_worktree(&self, view: &WorkerView, branch: &str) -> Result<()> {
        let params = KillParams {
            name: view.name.clone(),
            rm_worktree: true,
            force_dirty: false,
            discard_ignored: false,
        };
        let killed: Killed = self.call(&Call::Kill(params), SLOW_TIMEOUT).await?;
        match killed.worktree_error {
            Some(error) => Err(Error::new(error.code, error.message)),
            None => git::delete_merged(&self.tree, branch).await,
        }
    }
}
