//! The snapshots of loops whose files are deleted: they go too if a branch of the user's has the work.
//!
//! `clean` and `ralph.clean` use it. A failure of git is a warning: the snapshots stay, and the loops' files go.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::daemon::run::iteration::loop_id;
use crate::daemon::slot::{Slot, repo_of};
use crate::git;
use crate::loops;
use crate::protocol::ClearedSnapshots;
use crate::store::Store;

pub(crate) struct LoopSnapshots {
    repo: PathBuf,
    /// `refs/swarm/NAME/LOOP`
    reference: String,
    branch: Option<String>,
}

/// The snapshots of a worker's loops with state in these directories: `NAME` for the current one, whose files may be
/// gone, and `NAME.N` for earlier ones. The worker's repository is the only one that swarm knows; an earlier loop may
/// have had another. Other loops may have used the same name in it, so only ids that this worker had count.
pub(crate) fn snapshots_of(slot: &Slot, store: &Store, dirs: &[String]) -> Vec<LoopSnapshots> {
    let (name, root) = (slot.spec.name.as_str(), store.paths().ralph_root());
    let is_loop = slot.engine.ralph().is_some();
    let current = (is_loop && dirs.iter().any(|dir| dir == name)).then(|| loop_id(slot.origin.started));
    let bases = dirs.iter().filter_map(|dir| loops::read_base(store.key(), name, &root.join(dir)));
    let ids: BTreeSet<String> = current.into_iter().chain(bases.map(|base| base.id)).collect();
    let of_id = |id: String| LoopSnapshots {
        repo: repo_of(slot),
        reference: format!("refs/swarm/{name}/{id}"),
        branch: slot.worktree.as_ref().map(|worktree| worktree.branch.clone()),
    };
    ids.into_iter().map(of_id).collect()
}

/// Clears them, and adds warnings. Returns the result for each loop that has some.
pub(crate) async fn clear(
    loops: Vec<LoopSnapshots>,
    discard: bool,
    warnings: &mut Vec<String>,
) -> Vec<ClearedSnapshots> {
    let mut cleared = vec![];
    for LoopSnapshots { repo, reference, branch } in loops.into_iter().filter(|found| found.repo.is_dir()) {
        match git::clear_snapshots(&repo, &reference, branch.as_deref(), discard).await {
            Ok((0, _)) => {}
            Ok((count, deleted)) => {
                cleared.push(ClearedSnapshots { repo, reference, count, kept: !deleted });
            }
            Err(error) => warnings.push(format!("the snapshots {reference} are kept: {}", error.message)),
        }
    }
    cleared
}
