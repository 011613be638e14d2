//! Merges a story into the integration branch, or sends it back.
//!
//! The branch moves only when the merge has no conflict and the checks pass on its result. The task list and the log of
//! progress never conflict: swarm merges them. A story that cannot be merged goes back with the reason as feedback; its
//! loop then fixes it in the same worktree.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use swarm_state::contract::{MAX_OUTPUT_CHARS, last_characters};
use swarm_state::gates::CheckResult;
use swarm_state::screen::printable;
use swarm_state::tasks::merge::{union, with_story};
use swarm_state::tasks::{Story, TaskList};
use swarm_state::words::unique;

use super::Coordinator;
use crate::checks::{CheckPlan, CheckSandbox, KEPT_OUTPUT_BYTES};
use crate::client::spawn_params::own_env;
use crate::error::{Error, Result, failed};
use crate::out::Failure;
use crate::protocol::WorkerView;
use crate::sandbox::{WorkerSandbox, named_files};
use crate::task_files::PROGRESS_FILE;
use crate::{files, git, paths};

/// How often a story is sent back before it fails.
const MAX_SENT_BACK: usize = 3;

/// The directory for the output of the checks, in the worktree's own git directory.
const CHECKS_DIR: &str = "swarm-checks";

impl Coordinator {
    pub(super) async fn merge(
        &mut self,
        id: &str,
        list: &TaskList,
        view: Option<&WorkerView>,
    ) -> Result<(), Failure> {
        let child = view.and_then(|view| view.worktree.as_ref().zip(self.list_of(view)));
        let (Some((worktree, of_child)), Some(story)) = (child, list.story(id)) else {
            self.refused.insert(id.to_owned(), "its worktree is gone".into());
            return Ok(());
        };
        let tree = worktree.path.as_path();
        let merged = with_story(list, &of_child, id);
        self.print(id, format!("approved; merging {}", worktree.branch))?;
        let why = match self.try_merge(story, tree, &merged).await {
            Ok(None) => {
                self.has_merged = true;
                let (done, all) = self.gate.count(&merged);
                return self.print(id, format!("merged; {done} of {all} stories are done"));
            }
            Ok(Some(back)) => match self.send_back(story, tree, merged, &back).await {
                Ok(()) => return self.print(id, format!("sent back: {}", back.line)),
                Err(error) => format!("{}; {}", back.line, error.message),
            },
            // The agent cannot fix this.
            Err(error) => error.message,
        };
        self.print(id, format!("failed: {why}"))?;
        self.refused.insert(id.to_owned(), why);
        Ok(())
    }

    /// Merges the branch in `child` and runs the checks. Returns why the story goes back; the merge is undone then.
    async fn try_merge(&self, story: &Story, child: &Path, merged: &TaskList) -> Result<Option<SentBack>> {
        if !git::uncommitted(&self.tree, false).await?.is_empty() {
            let tree = self.tree.display();
            return Err(Error::invalid(format!("the integration worktree {tree} has uncommitted changes")));
        }
        if !git::uncommitted(child, true).await?.is_empty() {
            git::commit_all(child, &format!("chore: [{}] - uncommitted work", story.id), None).await?;
        }
        let Some(commit) = git::head_commit(child).await? else {
            return Err(Error::invalid("its worktree has no commit"));
        };
        let outcome = self.merged_result(story, &commit, merged).await;
        match &outcome {
            Ok(None) => {
                let title = printable(&story.title);
                git::finish_merge(&self.tree, &format!("Merge {}: {title}", story.id)).await?
            }
            Ok(Some(_)) | Err(_) => git::undo_merge(&self.tree).await?,
        }
        outcome
    }

    async fn merged_result(
        &self,
        story: &Story,
        commit: &str,
        merged: &TaskList,
    ) -> Result<Option<SentBack>> {
        let mut conflicts = git::begin_merge(&self.tree, commit).await?;
        let (list, progress) = (self.gate.file(), format!("{}/{PROGRESS_FILE}", self.gate.dir));
        let base = git::merge_base(&self.tree, commit).await?.unwrap_or_default();
        let version = async |commit: &str| git::text_at(&self.tree, commit, &progress).await;
        let joined = union(&version(&base).await?, &version("HEAD").await?, &version(commit).await?);
        if !joined.is_empty() {
            self.put(&progress, &joined).await?;
        }
        self.put(&list, &merged.to_text()).await?;
        conflicts.retain(|file| *file != list && *file != progress);
        if !conflicts.is_empty() {
            return Ok(Some(SentBack::conflict(&self.branch, &self.gate.dir, &conflicts)));
        }
        let failed = self.failed_checks(std::slice::from_ref(story)).await?;
        Ok((!failed.is_empty()).then(|| SentBack::checks(&self.branch, &self.gate.dir, &failed)))
    }

    async fn put(&self, file: &str, text: &str) -> Result<()> {
        write(&self.tree.join(file), text)?;
        git::stage(&self.tree, file).await
    }

    async fn remove_new(&self, before: &BTreeSet<PathBuf>) -> Result<()> {
        for file in git::untracked(&self.tree).await?.difference(before) {
            // The next merge reports a file that is in its way.
            let _ = fs::remove_file(file);
        }
        Ok(())
    }

    /// Runs the checks of the stories and of the loop in the integration worktree. Returns those that failed.
    pub(super) async fn failed_checks(&self, stories: &[Story]) -> Result<Vec<CheckResult>> {
        let before = git::untracked(&self.tree).await?;
        let checks = self.run_checks(stories).await;
        self.remove_new(&before).await?;
        Ok(checks?.into_iter().filter(|check| !check.passed).collect())
    }

    async fn run_checks(&self, stories: &[Story]) -> Result<Vec<CheckResult>> {
        let Some(ralph) = &self.plan.child.ralph else { return Ok(vec![]) };
        let of_stories = stories.iter().flat_map(|story| &story.checks);
        let commands = unique(of_stories.chain(&ralph.gates.checks).cloned());
        if commands.is_empty() {
            return Ok(vec![]);
        }
        let folder = git::git_dir(&self.tree).await?.join(CHECKS_DIR);
        paths::private_dir(&folder)?;
        let program = paths::own_program()?;
        let sandbox = self.plan.child.sandbox.clone();
        let sandbox = sandbox.map(|spec| {
            let mut sandbox = WorkerSandbox::new(spec, self.name.as_str(), &self.paths, &program);
            sandbox.hidden.clone_from(&ralph.gates.rooms.hidden);
            sandbox.named = named_files(ralph.gates.checks.iter().flat_map(|check| check.split_whitespace()));
            sandbox
        });
        let plan = CheckPlan {
            commands: &commands,
            cwd: &self.tree,
            env: &own_env()?,
            limit: Duration::from_secs(ralph.gates.check_timeout.max(1)),
            until: None,
            kept: KEPT_OUTPUT_BYTES,
            stem: "check",
            jobs: usize::try_from(ralph.gates.check_jobs).unwrap_or(1),
            folder: &folder,
            on_step: &|_| {},
            sandbox: sandbox.as_ref().map(|sandbox| CheckSandbox { sandbox, tree: None, origin: None }),
        };
        plan.run().await
    }

    /// Requests changes of a story in its worktree, with a commit. Its list then has the states of the other stories in
    /// the integration branch, so that the merge of this branch does not change them.
    async fn send_back(&self, story: &Story, child: &Path, merged: TaskList, back: &SentBack) -> Result<()> {
        let subject = format!("review: [{}] - changes requested by the merge", story.id);
        if git::count_subjects(child, &self.branch, &subject).await? >= MAX_SENT_BACK {
            return Err(Error::invalid(format!("it was sent back {MAX_SENT_BACK} times")));
        }
        let (file, mut list) = (self.gate.file(), merged);
        list.send_back(&story.id, &back.feedback, self.gate.review);
        write(&child.join(&file), &list.to_text())?;
        git::commit_all(child, &subject, Some(&file)).await
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    files::write_unsynced(path, text.as_bytes()).map_err(|e| failed("write", path, e))
}

struct SentBack {
    /// In a few words, for people.
    line: String,
    /// For the next iteration.
    feedback: String,
}

impl SentBack {
    fn conflict(branch: &str, dir: &str, files: &[String]) -> Self {
        let files = files.join(", ");
        let feedback = format!(
            "The branch of this story conflicts with {branch}, which has the other stories: {files}. {} Resolve the \
             conflicts so that the behavior of both sides stays, and commit the merge.",
            how_to_merge(branch, dir)
        );
        Self { line: format!("conflict in {files}"), feedback }
    }

    fn checks(branch: &str, dir: &str, failed: &[CheckResult]) -> Self {
        let names: Vec<&str> = failed.iter().map(|check| check.name.as_str()).collect();
        let outputs: Vec<String> = failed
            .iter()
            .map(|check| {
                let output = last_characters(&check.output, MAX_OUTPUT_CHARS);
                format!("swarm ran `{}` on the merge, and it failed:\n{output}", check.name)
            })
            .collect();
        let feedback = format!(
            "Checks fail when this story is merged with {branch}, which has the other stories. {} Commit the merge, and \
             fix the checks.\n\n{}",
            how_to_merge(branch, dir),
            outputs.join("\n\n")
        );
        Self { line: format!("failed on the merge: {}", names.join(", ")), feedback }
    }
}

/// The commands for the agent. The files of the task list stay as they are: swarm merges them.
fn how_to_merge(branch: &str, dir: &str) -> String {
    format!("Run `git merge --no-commit {branch}` and `git checkout HEAD -- {dir}`.")
}
