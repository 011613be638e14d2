//! The coordinator of a task list whose stories run at the same time: `swarm __stories`, the program of a worker that
//! was spawned with `--jobs`.
//!
//! It works in the worktree of the integration branch. For each story, it spawns a worker through the daemon, as a
//! client does, and waits for its end. Then it merges the story's branch and runs the checks on the result
//! ([`merging`]). `swarm_state::tasks::parallel` decides each step.
//!
//! All its state is in the integration branch, in the worktrees of the stories, and in the daemon's records of the
//! workers. So the daemon can start it again after a crash. It reads its plan ([`StoriesPlan`]) from standard input,
//! and prints what it does, a line each. Exit status 0: every story is merged. Deliberately absent: ending the stories'
//! workers; the daemon kills them with the coordinator.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::DeserializeOwned;
use swarm_state::contract::{MAX_OUTPUT_CHARS, last_characters};
use swarm_state::model::WorkerName;
use swarm_state::screen::printable;
use swarm_state::tasks::TaskList;
use swarm_state::tasks::gate::TaskGate;
use swarm_state::tasks::parallel::{ParallelLimits, ParallelStep, child_names, next_step};
use tokio::time::sleep;

use crate::client::connect::{Client, QUICK_TIMEOUT, connect_existing};
use crate::error::{Error, ErrorCode, Result, failed};
use crate::files::read_bounded;
use crate::out::{CommandResult, Failure, Out};
use crate::paths::Paths;
use crate::protocol::{Call, Snapshot, StoriesPlan, SubscribeParams};
use crate::runtime::block_on;
use crate::{git, marks};

mod children;
mod merging;

const MAX_COORDINATOR_LIST_BYTES: u64 = 16 << 20;

const DAEMON_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Runs the coordinator to its end. Returns the exit status.
pub fn main(out: Out) -> u8 {
    match run(out) {
        Ok(status) => status,
        Err(Failure::ReaderGone) => 1,
        Err(Failure::Error(error)) => {
            out.error(&error);
            1
        }
    }
}

fn run(out: Out) -> CommandResult {
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    read.map_err(|e| Error::system("cannot read the plan", e))?;
    let plan: StoriesPlan =
        serde_json::from_str(&text).map_err(|e| Error::invalid(format!("cannot read the plan: {e}")))?;
    let coordinator = Coordinator::new(plan, out)?;
    block_on(coordinator.run())?
}

struct Coordinator {
    out: Out,
    paths: Paths,
    name: WorkerName,
    /// The worktree of the integration branch.
    tree: PathBuf,
    branch: String,
    plan: StoriesPlan,
    gate: TaskGate,
    /// Workers that had failed before the user started the coordinator. They start again.
    stale: BTreeSet<String>,
    /// Stories that cannot be started or merged, with the reason.
    refused: BTreeMap<String, String>,
    /// This run has merged a story.
    has_merged: bool,
    /// The last line that was printed about a story.
    printed: BTreeMap<String, String>,
}

impl Coordinator {
    fn new(plan: StoriesPlan, out: Out) -> Result<Self> {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let name = WorkerName::new(&variable(marks::WORKER));
        let name =
            name.map_err(|_| Error::usage("this command is internal: the daemon starts it in a worker"))?;
        let tree = std::env::current_dir().map_err(|e| Error::system("cannot find the worktree", e))?;
        let gate = plan.child.ralph.as_ref().and_then(|ralph| ralph.gates.tasks.clone());
        let gate = gate.ok_or_else(|| Error::invalid("the plan has no task list"))?;
        Ok(Self {
            out,
            paths: Paths::from_env()?,
            name,
            tree,
            branch: String::new(),
            plan,
            gate,
            stale: BTreeSet::new(),
            refused: BTreeMap::new(),
            has_merged: false,
            printed: BTreeMap::new(),
        })
    }

    async fn run(mut self) -> CommandResult {
        self.branch = git::current_branch(&self.tree).await?;
        if git::is_merging(&self.tree).await? {
            git::undo_merge(&self.tree).await?;
        }
        let list = self.read_list()?;
        if let Some(fault) = list.dependency_faults().into_iter().next() {
            return Err(Error::invalid(format!("{}: {fault}", self.gate.file())).into());
        }
        let limits = ParallelLimits {
            jobs: usize::try_from(self.plan.jobs).unwrap_or(1),
            max_in_review: self.plan.max_in_review.and_then(|max| usize::try_from(max).ok()),
        };
        let (done, all) = self.gate.count(&list);
        self.out.line(&format!("{done} of {all} stories are done; {} run at the same time", limits.jobs))?;
        let mut news = self.subscribe().await?;
        self.find_stale(&list).await?;
        loop {
            let list = self.read_list()?;
            let views = self.children(&list).await?;
            let states = self.states(&list, &views)?;
            match next_step(&list, &states, limits, self.gate.review.skip_review) {
                ParallelStep::Spawn(id) => self.spawn(&id, &list, views.get(&id)).await?,
                ParallelStep::Merge(id) => self.merge(&id, &list, views.get(&id)).await?,
                ParallelStep::Wait => self.wait(&mut news, &list).await?,
                ParallelStep::Finished => {
                    self.remove_merged(&list, &views).await?;
                    return self.finished(&list).await;
                }
                ParallelStep::Stuck(reasons) => {
                    self.remove_merged(&list, &views).await?;
                    return self.stuck(&list, &reasons);
                }
            }
        }
    }

    /// The list of the integration branch.
    fn read_list(&self) -> Result<TaskList> {
        let path = self.tree.join(self.gate.file());
        let text = read_bounded(&path, MAX_COORDINATOR_LIST_BYTES).map_err(|e| {
            failed("read", &path, e).hint("commit the files of the task list before you start it with --jobs")
        })?;
        let list = TaskList::parse(&String::from_utf8_lossy(&text));
        list.map_err(|fault| Error::invalid(format!("{}: {fault}", path.display())))
    }

    /// Makes a call that may be repeated. Waits while no daemon runs, and starts none: a daemon below this process
    /// would end with it.
    async fn call<T: DeserializeOwned>(&self, request: &Call, limit: Duration) -> Result<T> {
        loop {
            match self.connect().await?.call(request, limit).await {
                Err(error) if error.code == ErrorCode::NoDaemon => {}
                answer => return answer,
            }
        }
    }

    async fn connect(&self) -> Result<Client> {
        loop {
            match connect_existing(&(&self.paths).into()).await {
                Ok(Some(client)) => return Ok(client),
                Ok(None) => {}
                Err(error) if matches!(error.code, ErrorCode::NoDaemon | ErrorCode::Timeout) => {}
                Err(error) => return Err(error),
            }
            sleep(DAEMON_POLL_INTERVAL).await;
        }
    }

    async fn subscribe(&self) -> Result<Client> {
        loop {
            let mut client = self.connect().await?;
            let subscribe = Call::Subscribe(SubscribeParams { worker: None, since: None });
            match client.call::<Snapshot>(&subscribe, QUICK_TIMEOUT).await {
                Ok(_) => return Ok(client),
                Err(error) if error.code == ErrorCode::NoDaemon => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until a story's worker may have changed.
    async fn wait(&self, news: &mut Client, list: &TaskList) -> Result<()> {
        let names = child_names(&self.name, list);
        loop {
            match news.notice().await {
                Ok(notice) if !names.values().any(|name| name.as_str() == notice.worker) => {}
                Ok(_) => return Ok(()),
                // The daemon ended, or this process read too slowly.
                Err(_) => {
                    *news = self.subscribe().await?;
                    return Ok(());
                }
            }
        }
    }

    /// Prints a line about a story, unless it was the last one about it.
    fn print(&mut self, id: &str, text: String) -> Result<(), Failure> {
        if self.printed.get(id) == Some(&text) {
            return Ok(());
        }
        self.out.line(&format!("{id}: {text}"))?;
        self.printed.insert(id.to_owned(), text);
        Ok(())
    }

    /// Ends with every story in the branch. Without a merge in this run, nothing has run the checks yet.
    async fn finished(&self, list: &TaskList) -> CommandResult {
        let failed = if self.has_merged { vec![] } else { self.failed_checks(list.stories()).await? };
        if !failed.is_empty() {
            let lines = failed.iter().map(|check| {
                let output = last_characters(&check.output, MAX_OUTPUT_CHARS);
                let output = output.lines().map(printable).collect::<Vec<_>>().join("\n");
                format!(
                    "every story is done, but `{}` fails on branch {}:\n{output}",
                    check.name, self.branch
                )
            });
            self.out.lines(&lines.collect::<Vec<_>>())?;
            let again = format!("swarm respawn {}", self.name);
            self.out.line(&format!("request changes of a story there, commit the list, then: {again}"))?;
            return Ok(1);
        }
        let (_, all) = self.gate.count(list);
        self.out.line(&format!("all {all} stories are on branch {}", self.branch))?;
        self.out.line(&format!("to merge them into your branch: git merge {}", self.branch))?;
        Ok(0)
    }

    fn stuck(&self, list: &TaskList, reasons: &[String]) -> CommandResult {
        self.out.lines(reasons)?;
        let (done, all) = self.gate.count(list);
        self.out.line(&format!("{done} of {all} stories are on branch {}", self.branch))?;
        self.out.line(&format!("to continue with the others: swarm respawn {}", self.name))?;
        Ok(1)
    }
}
