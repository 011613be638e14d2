//! Finds damaged files, and files, panes and branches that belong to no worker.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use swarm_state::model::WorkerName;
use swarm_state::notice::counted;
use swarm_state::removal::Losses;
use tokio::time::timeout;

use super::check::{Check, Observed};
use crate::error::{Error, Result};
use crate::git;
use crate::shell::quote_path;
use crate::store::{DaemonLock, Damage, DamagedFile};
use crate::tmux::{PaneRow, ServerSurvey};

/// How many repositories are examined, and the time limit for each.
const MAX_REPOS: usize = 20;
const REPO_TIMEOUT: Duration = Duration::from_secs(5);

/// State files that are damaged, set aside or written by a newer swarm; temporary files.
pub(super) fn files(observed: &Observed) -> Vec<Check> {
    let root = observed.paths.ralph_root();
    let mut checks: Vec<Check> = observed.disk.found.iter().map(|found| damaged(found, &root)).collect();
    let list = observed.paths.legacy_state();
    for problem in &observed.disk.problems {
        let hint =
            format!("the earlier swarm's {} is never changed by this one; fix it by hand", list.display());
        checks.push(Check::warn("state-files", problem.clone(), hint));
    }
    let dir = observed.paths.workers_dir();
    if observed.paths.root().is_dir() && !dir.is_dir() && DaemonLock::holder(&observed.paths).is_some() {
        let message = format!("'{}' is missing, with the records of all workers", dir.display());
        let hint = "the daemon restores it and all records within seconds; then run doctor again";
        checks.push(Check::fail("state-files", message, hint));
    }
    if checks.iter().all(|check| check.check != "state-files") {
        let message = format!("{}, all readable", counted(observed.disk.records.len(), "worker"));
        checks.push(Check::ok("state-files", message));
    }
    for path in &observed.disk.temporary {
        let message = format!("'{}' is a leftover of an interrupted write", path.display());
        checks.push(Check::warn("leftovers", message, format!("rm {}", quote_path(path))));
    }
    for (worker, run, path) in &observed.disk.runs {
        // The directory of a live pane is not a leftover; the pane is reported.
        if observed.live().any(|pane| pane == (worker.as_str(), Some(run.0))) {
            continue;
        }
        let message = format!("'{}' is a leftover of a run without a worker", path.display());
        checks.push(Check::warn("leftovers", message, "to remove it: swarm daemon restart"));
    }
    for (worker, path) in &observed.disk.loops {
        if observed.live().any(|(live, _)| live == worker.as_str()) {
            continue;
        }
        let message = format!("'{}' belongs to a loop whose worker has no record", path.display());
        let hint = format!("to remove it: swarm ralph clean {worker}");
        checks.push(Check::warn("leftovers", message, hint));
    }
    checks
}

impl Observed {
    /// The workers and runs that live panes name in their options.
    fn live(&self) -> impl Iterator<Item = (&str, Option<u64>)> {
        let rows = match &self.server {
            ServerSurvey::Alive { rows, .. } => rows.as_slice(),
            _ => &[],
        };
        rows.iter().filter_map(|row| Some((row.worker.as_deref()?, row.run)))
    }
}

fn damaged(found: &DamagedFile, ralph_root: &Path) -> Check {
    let DamagedFile { path, damage, cause } = found;
    let shown = path.display();
    match damage {
        Damage::SetAside => {
            let message = format!("'{shown}' could not be read and was set aside");
            let hint = "copy what you need, then remove it; 'man swarm-state' describes the format";
            Check::warn("state-files", message, hint)
        }
        Damage::Newer => {
            let message = format!("'{shown}' was not changed: {cause}");
            Check::fail("state-files", message, "use the newer swarm, or move the file away")
        }
        Damage::Broken | Damage::Unreadable => {
            let message = format!("'{shown}' cannot be read: {cause}");
            let hint = match path.strip_prefix(ralph_root).ok().and_then(Path::parent) {
                _ if *damage == Damage::Unreadable => format!("check it: ls -ld {}", quote_path(path)),
                // The daemon writes the file of a loop that goes on, not that of an ended or an earlier one.
                Some(name) => {
                    let name = name.display();
                    format!("if the loop is paused: swarm ralph resume {name}; otherwise move the file away")
                }
                None => "fix it, or have the daemon set it aside: swarm daemon restart".to_owned(),
            };
            Check::fail("state-files", message, hint)
        }
        Damage::Events => {
            let message = format!("the event log '{shown}' is damaged: {cause}; the other events are kept");
            Check::warn("event-log", message, "to see where events are missing: swarm events --kind missing")
        }
    }
}

/// Live panes of our server without a record.
pub(super) fn panes(observed: &Observed) -> Vec<Check> {
    let ServerSurvey::Alive { rows, .. } = &observed.server else { return vec![] };
    let is_known = |text: &str| WorkerName::new(text).is_ok_and(|name| observed.disk.names.contains(&name));
    let strays = rows.iter().filter(|row| !row.worker.as_deref().is_some_and(is_known));
    let socket = quote_path(&observed.paths.tmux_socket());
    let check = |row: &PaneRow| {
        let pane = &row.pane;
        let Some(worker) = &row.worker else {
            let message = format!("pane {pane} of swarm's tmux session belongs to no worker");
            return Check::warn(
                "orphans",
                message,
                format!("examine it: tmux -S {socket} attach -t '{pane}'"),
            );
        };
        let message = format!("pane {pane} is marked as worker '{worker}', which has no record");
        let is_loop = observed.disk.loops.iter().any(|(name, _)| name.as_str() == worker);
        // How to spawn it again was in the record.
        let how = if is_loop { ", as a worker that is not a loop" } else { "" };
        Check::warn("orphans", message, format!("to supervise it again{how}: swarm daemon restart"))
    };
    strays.map(check).collect()
}

/// Branches and worktrees made by swarm, in the known repositories and in the current one.
pub(super) async fn branches(observed: &Observed) -> Vec<Check> {
    let mut places: BTreeSet<PathBuf> = BTreeSet::new();
    let mut known: BTreeSet<String> =
        observed.disk.names.iter().map(|name| format!("swarm/{name}")).collect();
    for record in &observed.disk.records {
        if let Some(worktree) = &record.worktree {
            places.insert(worktree.base_repo.clone());
            known.insert(worktree.branch.clone());
        }
    }
    known.extend(branches_of_jobs(observed));
    places.extend(std::env::current_dir().ok());
    let mut found: Vec<git::Leftover> = vec![];
    for place in places.iter().filter(|place| place.is_dir()).take(MAX_REPOS) {
        // Skips a repository that git cannot read; another check tests git.
        let asked = timeout(REPO_TIMEOUT, git::leftovers(place, |branch| known.contains(branch))).await;
        let new = asked.unwrap_or_else(|_| Ok(vec![])).unwrap_or_default();
        found.extend(new.into_iter().filter(|new| !found.contains(new)).collect::<Vec<_>>());
    }
    let mut checks = vec![];
    for leftover in &found {
        let asked = timeout(REPO_TIMEOUT, advice(leftover)).await;
        checks.push(asked.unwrap_or_else(|_| Err(Error::invalid("git does not respond"))));
    }
    checks.into_iter().zip(&found).map(|(check, found)| check.unwrap_or_else(|_| unknown(found))).collect()
}

/// The branches of the workers that are jobs of Slurm. Each has a directory of its own, `slurm/HOST/NAME`.
fn branches_of_jobs(observed: &Observed) -> Vec<String> {
    let below = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut branches = vec![];
    for dir in below(observed.paths.slurm_dir()).flat_map(below) {
        branches.extend(dir.file_name().map(|name| format!("swarm/{}", name.to_string_lossy())));
        // Such a file names a worktree only below the member `worktree`.
        for file in ["spawn.json", "view.json"] {
            let text = fs::read_to_string(dir.join(file)).unwrap_or_default();
            let value: Value = serde_json::from_str(&text).unwrap_or_default();
            let branch =
                value.pointer("/worktree/branch").or_else(|| value.pointer("/worker/worktree/branch"));
            branches.extend(branch.and_then(Value::as_str).map(str::to_owned));
        }
    }
    branches
}

/// The fix for a branch or a worktree without a worker. Never suggests what git would refuse or what deletes work.
async fn advice(found: &git::Leftover) -> Result<Check> {
    let git::Leftover { repo, branch, worktree } = found;
    let merged = git::is_merged(repo, branch).await?;
    let (repo, shown) = (quote_path(repo), repo.display());
    let Some(path) = worktree else {
        let message = format!("branch '{branch}' in '{shown}' belongs to no worker");
        let hint = match merged {
            true => format!("git -C {repo} branch -d '{branch}'"),
            false => format!("merge it, or list its unmerged commits: git -C {repo} log 'HEAD..{branch}' --"),
        };
        return Ok(Check::warn("orphans", message, hint));
    };
    let mut message = format!("worktree '{}' on branch '{branch}' belongs to no worker", path.display());
    let losses = if path.exists() { git::losses(path).await? } else { Losses::default() };
    let path = quote_path(path);
    if !losses.work.is_empty() {
        let shown: Vec<&str> = losses.work.iter().take(3).map(String::as_str).collect();
        message.push_str(&format!(", and holds work that exists nowhere else: {}", shown.join(", ")));
        let hint =
            format!("commit what you want to keep, then run doctor again; to see it: git -C {path} status");
        return Ok(Check::warn("orphans", message, hint));
    }
    if !losses.ignored.is_empty() {
        message.push_str(&format!(", and holds ignored files: {}", losses.ignored.summary()));
    }
    let mut hint = format!(
        "look into it first, since a worker of another SWARM_DIR may be in it, or work that you kept; then: git -C \
         {repo} worktree remove {path}"
    );
    if merged {
        hint.push_str(&format!(" && git -C {repo} branch -d '{branch}'"));
    }
    Ok(Check::warn("orphans", message, hint))
}

fn unknown(found: &git::Leftover) -> Check {
    let message = format!("branch '{}' in '{}' belongs to no worker", found.branch, found.repo.display());
    Check::warn("orphans", message, format!("check it: git -C {} worktree list", quote_path(&found.repo)))
}
