//! What is damaged on disk, and what belongs to no worker: files, panes, branches.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use swarm_state::model::WorkerName;
use tokio::time::timeout;

use super::{Check, Seen};
use crate::git;
use crate::store::{Damage, Found};
use crate::tmux::Survey as Server;

/// How many repositories are looked at, and how long one may take.
const MOST_REPOS: usize = 20;
const REPO: Duration = Duration::from_secs(5);

/// State files that are damaged, set aside or of a newer swarm; temporary files.
pub(super) fn files(seen: &Seen) -> Vec<Check> {
    let mut checks: Vec<Check> = seen.disk.found.iter().map(damaged).collect();
    let list = seen.paths.legacy_state();
    for problem in &seen.disk.problems {
        let cure =
            format!("the earlier swarm's {} is never changed by this one; mend it by hand", list.display());
        checks.push(Check::warn("state-files", problem.clone(), cure));
    }
    if checks.is_empty() {
        let message = format!("{} workers, all readable", seen.disk.records.len());
        checks.push(Check::ok("state-files", message));
    }
    for path in &seen.disk.temporary {
        let message = format!("'{}' is left of a write that was cut off", path.display());
        checks.push(Check::warn("left-overs", message, format!("rm '{}'", path.display())));
    }
    for path in &seen.disk.runs {
        let message = format!("'{}' is left of a run of no worker", path.display());
        checks.push(Check::warn("left-overs", message, "swarm daemon restart removes it"));
    }
    checks
}

fn damaged(found: &Found) -> Check {
    let Found { path, damage, cause } = found;
    let shown = path.display();
    match damage {
        Damage::SetAside => {
            let message = format!("'{shown}' could not be read and was set aside");
            let cure = "take from it what you need, then remove it; 'man swarm-state' has the format";
            Check::warn("state-files", message, cure)
        }
        Damage::Newer => {
            let message = format!("'{shown}' is left alone: {cause}");
            Check::fail("state-files", message, "use the newer swarm, or move the file away")
        }
        Damage::Broken => {
            let message = format!("'{shown}' cannot be read: {cause}");
            let cure = "mend it, or let the next start of the daemon set it aside: swarm daemon restart";
            Check::fail("state-files", message, cure)
        }
        Damage::Unreadable => {
            let message = format!("'{shown}' cannot be read: {cause}");
            Check::fail("state-files", message, format!("look at it with: ls -ld '{shown}'"))
        }
    }
}

/// Live panes of our server that no record speaks of.
pub(super) fn panes(seen: &Seen) -> Vec<Check> {
    let Server::Alive { rows, .. } = &seen.server else { return vec![] };
    let is_known = |text: &str| WorkerName::new(text).is_ok_and(|name| seen.disk.names.contains(&name));
    let strays = rows.iter().filter(|row| !row.worker.as_deref().is_some_and(is_known));
    strays
        .map(|row| {
            let socket = seen.paths.tmux_socket();
            match &row.worker {
                Some(worker) => {
                    let message =
                        format!("pane {} says it is of worker '{worker}', which has no record", row.pane);
                    Check::warn(
                        "orphans",
                        message,
                        "swarm daemon restart finds it again; then swarm kill ends it",
                    )
                }
                None => {
                    let message = format!("pane {} of swarm's tmux session is of no worker", row.pane);
                    let cure = format!("look at it: tmux -S '{}' attach -t '{}'", socket.display(), row.pane);
                    Check::warn("orphans", message, cure)
                }
            }
        })
        .collect()
}

/// Branches and worktrees of swarm's making in the repositories that are known, and in this one.
pub(super) async fn branches(seen: &Seen) -> Vec<Check> {
    let mut places: BTreeSet<PathBuf> = BTreeSet::new();
    let mut known: BTreeSet<String> = seen.disk.names.iter().map(|name| format!("swarm/{name}")).collect();
    for record in &seen.disk.records {
        if let Some(worktree) = &record.worktree {
            places.insert(worktree.base_repo.clone());
            known.insert(worktree.branch.clone());
        }
    }
    places.extend(std::env::current_dir().ok());
    let mut found: Vec<git::Leftover> = vec![];
    for place in places.iter().filter(|place| place.is_dir()).take(MOST_REPOS) {
        // A repository that cannot be asked has nothing to tell; that git works is another check.
        let asked = timeout(REPO, git::leftovers(place, |branch| known.contains(branch))).await;
        let new = asked.unwrap_or_else(|_| Ok(vec![])).unwrap_or_default();
        found.extend(new.into_iter().filter(|new| !found.contains(new)).collect::<Vec<_>>());
    }
    found.iter().map(leftover).collect()
}

fn leftover(found: &git::Leftover) -> Check {
    let git::Leftover { repo, branch, worktree } = found;
    let repo = repo.display();
    match worktree {
        Some(path) => {
            let message = format!("worktree '{}' on branch '{branch}' is of no worker", path.display());
            let cure = format!(
                "look into it first: a worker of another SWARM_DIR may be in it, or work that you kept; then: git -C \
                 '{repo}' worktree remove '{}' && git -C '{repo}' branch -d '{branch}'",
                path.display()
            );
            Check::warn("orphans", message, cure)
        }
        None => {
            let message = format!("branch '{branch}' in '{repo}' is of no worker");
            Check::warn("orphans", message, format!("git -C '{repo}' branch -d '{branch}'"))
        }
    }
}
