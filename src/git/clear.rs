//! Deletes the snapshots of a loop whose work is in a branch of the user's.
//!
//! swarm's own branches do not count: they hold a worker's work until the user merges it. If in doubt, the snapshots
//! stay.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use swarm_state::removal::are_saved;

use super::run::{LONG_TIMEOUT, SHORT_TIMEOUT, git, git_patient};
use super::snapshot::INTERRUPTED;
use crate::error::Result;

#[derive(Debug)]
struct SnapshotRef {
    iteration: u32,
    /// It was taken after the iteration, and not between an interruption and the repeat.
    is_complete: bool,
    reference: String,
    commit: String,
    tree: String,
    /// The commit that was checked out.
    head: Option<String>,
}

/// Deletes the snapshots below `prefix` (`refs/swarm/NAME/LOOP`), all or none. Returns their number, and whether they
/// were deleted; 0 outside of a repository. With `discard`, deletes them in any case. `own_branch` is the worker's.
pub(crate) async fn clear_snapshots(
    repo: &Path,
    prefix: &str,
    own_branch: Option<&str>,
    discard: bool,
) -> Result<(usize, bool)> {
    let format = "--format=%(refname) %(objectname) %(tree) %(parent)";
    let listed = git(repo, SHORT_TIMEOUT, &["for-each-ref", format, prefix]).await?;
    if !listed.ok && listed.mentions("not a git repository") {
        return Ok((0, false));
    }
    let listed = listed.checked("cannot look for snapshots")?;
    let mut snapshots: Vec<SnapshotRef> = listed.text().lines().filter_map(parse).collect();
    snapshots.sort_by_key(|snapshot| (snapshot.iteration, snapshot.is_complete));
    if snapshots.is_empty() || !discard && !is_merged(repo, &snapshots, own_branch).await? {
        return Ok((snapshots.len(), false));
    }
    // The last one goes last, so that an interrupted deletion can be repeated.
    for SnapshotRef { reference, commit, .. } in &snapshots {
        let args = ["update-ref", "-d", reference, commit];
        let said = git_patient(repo, LONG_TIMEOUT, &args).await?;
        said.checked(format_args!("cannot delete the snapshot {reference}"))?;
    }
    Ok((snapshots.len(), true))
}

fn parse(line: &str) -> Option<SnapshotRef> {
    let mut fields = line.split(' ').map(str::to_owned);
    let (reference, commit, tree) = (fields.next()?, fields.next()?, fields.next()?);
    let name = reference.rsplit('/').next()?;
    let interrupted = name.strip_suffix(INTERRUPTED);
    let iteration = interrupted.unwrap_or(name).parse().ok()?;
    let is_complete = interrupted.is_none();
    let head = fields.next().filter(|head| !head.is_empty());
    Some(SnapshotRef { iteration, is_complete, reference, commit, tree, head })
}

/// Whether a branch has the last snapshot's tree, in a commit since the loop's start.
async fn is_merged(repo: &Path, snapshots: &[SnapshotRef], own_branch: Option<&str>) -> Result<bool> {
    let mut args = vec!["log".to_owned(), "--format=%T".to_owned(), "--exclude=swarm/*".to_owned()];
    args.extend(own_branch.map(|branch| format!("--exclude={branch}")));
    args.push("--branches".to_owned());
    // The commit that was checked out counts, its parents do not.
    let start = snapshots.first().and_then(|first| first.head.as_ref());
    args.extend(start.map(|head| format!("{head}^@")).into_iter().flat_map(|old| ["--not".to_owned(), old]));
    let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
    let said = git(repo, LONG_TIMEOUT, &args).await?;
    let text = said.text();
    let in_branches: BTreeSet<&str> = text.lines().filter(|_| said.ok).collect();
    let trees: Vec<&str> = snapshots.iter().map(|snapshot| snapshot.tree.as_str()).collect();
    Ok(are_saved(&trees, &in_branches))
}
