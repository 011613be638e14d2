//! `clean`: deletes a finished worker and its files.
//!
//! The worktree is removed first, and only if nothing would be lost. Otherwise everything stays, so that the worker and
//! its work are still listed. Then the snapshots of its loops are deleted, if a branch has the work. The record is
//! deleted last: if the daemon dies before that, the next one still has the worker, and the same command
//! finishes the deletion.

use std::sync::Arc;

use swarm_state::engine::{Event, Phase};
use swarm_state::model::WorkerName;
use swarm_state::notice::Entry;
use swarm_state::removal::{Permission, RemovalCommand};

use crate::daemon::busy::BusyKind;
use crate::daemon::caller::refuse_own;
use crate::daemon::crash;
use crate::daemon::loop_snapshots::{LoopSnapshots, clear, snapshots_of};
use crate::daemon::messages::{DaemonInput, PendingClean, WorktreeRemoval};
use crate::daemon::reply::{Reply, stopping};
use crate::daemon::slot::Slot;
use crate::daemon::supervisor::Supervisor;
use crate::error::{Error, Result};
use crate::git;
use crate::paths::resolve;
use crate::protocol::{CleanParams, Forgotten};
use crate::store::{RESERVED_HINT, RalphRead, Store};

impl Supervisor {
    /// Deletes a worker. The client is answered when all its files are gone.
    pub(crate) fn clean(&mut self, params: CleanParams, peer: Option<i32>, reply: Reply) {
        // Otherwise an agent could delete its loop and start an easier one under the same name.
        let found = self.find(&params.name);
        let own =
            found.and_then(|(name, slot)| refuse_own(slot, peer, "remove itself").map(|()| (name, slot)));
        let (name, slot) = match own {
            Ok(own) => own,
            Err(error) => return reply.refuse(error),
        };
        if let Some(legacy) = slot.origin.legacy.clone() {
            return self.clean_legacy(name, legacy, reply);
        }
        if is_lost(slot) {
            // Its tmux server is gone, so there is nothing to end.
            self.step(&name, Event::Kill);
        }
        let tenant = if params.keep_worktree { Ok(()) } else { self.refuse_shared_worktree(&name) };
        let Some(slot) = self.slots.get_mut(&name) else { return };
        if let Err(error) = admit(&name, slot).and(tenant) {
            return reply.refuse(error);
        }
        let busy = slot.busy.begin(BusyKind::Clean);
        let incarnation = slot.driver.context.incarnation;
        let mut forgotten = Forgotten::default();
        let mut removal = None;
        if let Some(worktree) = slot.worktree.clone() {
            if params.keep_worktree {
                forgotten.worktree_kept = Some(worktree.path);
            } else {
                let CleanParams { force_dirty, discard_ignored, .. } = params;
                let permission = Permission { force_dirty, discard_ignored };
                let wanted = WorktreeRemoval { permission, command: RemovalCommand::Clean };
                removal = Some(slot.driver.remove_worktree(worktree, wanted));
            }
        }
        let (store, inbox) = (self.store.clone(), self.inbox.clone());
        let snapshots = all_snapshots(slot, &store);
        tokio::spawn(async move {
            let removed = match removal {
                None => None,
                Some(removed) => Some(removed.await.unwrap_or_else(|_| Err(stopping()))),
            };
            let tree_gone = matches!(removed, Some(Ok(_)));
            crash::point("clean_tree+");
            let outcome = match removed.transpose() {
                Err(error) => Err(with_way_out(error, &name)),
                Ok(removed) => {
                    if let Some(removed) = removed {
                        add_removal(&mut forgotten, removed);
                    }
                    forgotten.snapshots = clear(snapshots, params.discard, &mut forgotten.warnings).await;
                    remove_files(store, name.clone()).await.map(|()| forgotten)
                }
            };
            crash::point("clean_files+");
            let cleaning = PendingClean { name, incarnation, tree_gone, outcome, reply, busy };
            drop(inbox.send(DaemonInput::Cleaned(Box::new(cleaning))));
        });
    }

    /// Refuses to remove a worker's worktree while another live worker works in it.
    pub(crate) fn refuse_shared_worktree(&self, name: &WorkerName) -> Result<()> {
        let Some(tree) = self.slots.get(name).and_then(|s| s.worktree.as_ref()) else { return Ok(()) };
        let is_inside = |slot: &&Slot| {
            !slot.engine.is_stopped()
                && slot.spec.name != *name
                && resolve(slot.cwd()).starts_with(&tree.path)
        };
        let Some(other) = self.slots.values().find(is_inside) else { return Ok(()) };
        let other = &other.spec.name;
        let message = format!("worker '{other}' works in worktree '{}'", tree.path.display());
        Err(Error::conflict(message).hint(format!("to end it: swarm kill {other}")))
    }

    /// Deletes the record, or keeps the worker if something could not be removed.
    pub(crate) fn cleaned(&mut self, cleaning: PendingClean) {
        let PendingClean { name, incarnation, tree_gone, outcome, reply, busy } = cleaning;
        let Some(slot) = self.slots.get_mut(&name).filter(|s| s.driver.context.incarnation == incarnation)
        else {
            return reply.answer(outcome);
        };
        drop(busy);
        if tree_gone {
            slot.worktree = None;
        }
        let outcome = outcome.and_then(|forgotten| self.store.remove(&name).map(|()| forgotten));
        match &outcome {
            Ok(_) => {
                self.notify(&name, Entry::Cleaned);
                self.slots.remove(&name);
                self.forgotten.insert(name);
            }
            // The worker stays, without the worktree that was removed.
            Err(_) if tree_gone => self.save(&name),
            Err(_) => {}
        }
        reply.answer(outcome);
    }
}

/// Removes all files of a worker except its record.
async fn remove_files(store: Arc<Store>, name: WorkerName) -> Result<()> {
    let remove = move || {
        store.remove_run_dirs(&name)?;
        crate::sandbox::remove_private(store.paths(), name.as_str());
        for dir in loop_dirs(&store, &name) {
            store.remove_ralph_dir(&dir)?;
        }
        store.remove_worker_log(&name)
    };
    // Deleting the files of many iterations takes time.
    tokio::task::spawn_blocking(remove).await.unwrap_or_else(|_| Err(stopping()))
}

/// The snapshots of the worker's loop, whose directory may be gone, and of earlier loops with its name.
fn all_snapshots(slot: &Slot, store: &Store) -> Vec<LoopSnapshots> {
    let name = &slot.spec.name;
    let dirs = [loop_dirs(store, name), vec![name.to_string()]].concat();
    snapshots_of(slot, store, &dirs)
}

/// The directories of the worker's loop and of earlier loops with its name.
fn loop_dirs(store: &Store, name: &WorkerName) -> Vec<String> {
    let mut dirs = store.ralph_dirs();
    dirs.retain(|dir| dir.split_once('.').map_or(dir.as_str(), |(base, _)| base) == name.as_str());
    dirs
}

/// Refuses to delete the state of a loop that a newer swarm wrote, or that cannot be read.
pub(crate) fn refuse_newer(store: &Store, name: &WorkerName) -> Result<()> {
    match store.read_ralph(name) {
        Ok(RalphRead::Bad(problem)) if problem.reserved => {
            Err(Error::conflict(problem.message).hint(RESERVED_HINT))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

fn add_removal(forgotten: &mut Forgotten, removed: git::Removed) {
    forgotten.worktree_removed = Some(removed.path);
    forgotten.ignored_removed = removed.ignored;
    forgotten.warnings.extend(removed.note);
}

/// Adds a hint for a repository that is gone or broken, so that the worker can still be deleted.
fn with_way_out(error: Error, name: &WorkerName) -> Error {
    if error.hint.is_some() {
        return error;
    }
    error.hint(format!("to delete the worker and keep the worktree: swarm clean {name} --keep-worktree"))
}

/// True for a plain worker whose tmux server is gone; it cannot be resumed.
fn is_lost(slot: &Slot) -> bool {
    *slot.engine.phase() == Phase::Lost && slot.engine.ralph().is_none()
}

/// Refuses a worker that has not stopped.
fn admit(name: &WorkerName, slot: &Slot) -> Result<()> {
    refuse_newer(&slot.driver.context.store, name)?;
    slot.refuse_busy()?;
    if slot.engine.is_stopped() {
        return Ok(());
    }
    let how = match slot.engine.phase() {
        Phase::Parked => "it is paused".to_owned(),
        _ => slot.engine.status().to_string(),
    };
    let hint = format!("to end it: swarm kill {name}");
    Err(Error::conflict(format!("worker '{name}' has not stopped ({how})")).hint(hint))
}
