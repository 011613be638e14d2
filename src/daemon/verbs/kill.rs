//! `kill`: ends a worker and its process tree, and on request removes its worktree.

use swarm_state::engine::Event;
use swarm_state::model::WorkerName;
use swarm_state::removal::{Permission, RemovalCommand};

use crate::daemon::busy::BusyKind;
use crate::daemon::legacy::refuse_legacy;
use crate::daemon::messages::{AfterStop, RunReport, WorktreeRemoval};
use crate::daemon::reply::Reply;
use crate::daemon::slot::Slot;
use crate::daemon::supervisor::Supervisor;
use crate::error::{Error, ErrorCode};
use crate::protocol::{KillParams, Killed};

impl Supervisor {
    /// Ends a worker. The client is answered when none of its processes runs any more.
    pub(crate) fn kill(&mut self, params: KillParams, reply: Reply) {
        let found = self.find(&params.name);
        let name = match found.and_then(|(name, slot)| refuse_legacy(slot).map(|()| (name, slot))) {
            Err(error) => return reply.refuse(error),
            Ok((name, slot)) if slot.engine.is_stopped() => {
                slot.busy.cancel();
                slot.waiting.undone.clear();
                return self.finish_kill_of(&name, params, reply, true);
            }
            Ok((name, slot)) => {
                slot.busy.cancel();
                slot.waiting.forced.clear();
                slot.waiting.undone.clear();
                slot.waiting.after_stop.push(AfterStop::Killed(params, reply));
                name
            }
        };
        self.step(&name, Event::Kill);
    }

    /// Removes the worktree of a worker that has ended, and answers.
    pub(crate) fn finish_kill(&mut self, params: KillParams, reply: Reply) {
        match self.find(&params.name).map(|(name, _)| name) {
            Ok(name) => self.finish_kill_of(&name, params, reply, false),
            Err(error) => reply.refuse(error),
        }
    }

    /// Kills the live workers that a worker coordinates. Returns one of them.
    pub(crate) fn kill_children(&mut self, name: &WorkerName) -> Option<WorkerName> {
        let is_child = |slot: &Slot| slot.spec.parent.as_ref() == Some(name) && !slot.engine.is_stopped();
        let children = self.names(is_child);
        children.iter().for_each(|child| self.step(child, Event::Kill));
        children.into_iter().find(|child| self.slots.get(child).is_some_and(|slot| !slot.engine.is_stopped()))
    }

    fn finish_kill_of(&mut self, name: &WorkerName, params: KillParams, reply: Reply, already: bool) {
        if let Some(child) = self.kill_children(name).and_then(|child| self.slots.get_mut(&child)) {
            return child.waiting.after_stop.push(AfterStop::Killed(params, reply));
        }
        let tenant = self.refuse_shared_worktree(name);
        if self.slots.get(name).is_some_and(|slot| slot.saving.is_unsaved()) {
            // The disk may have space again since the last save.
            self.save(name);
        }
        let Some(slot) = self.slots.get_mut(name) else { return };
        let mut killed = Killed { already, forced: slot.waiting.forced.clone(), ..Killed::default() };
        killed.warnings.append(&mut slot.waiting.undone);
        if slot.saving.may_be_lost() && slot.engine.is_killed() {
            // The worker has ended, but the next daemon would load its state from before.
            let why = slot.saving.error_text();
            let message = format!("worker '{name}' has ended, but its state cannot be saved: {why}");
            let hint = format!("{}, then check: swarm status {name}", slot.saving.fix());
            return reply.refuse(Error::new(ErrorCode::System, message).hint(hint));
        }
        if slot.saving.is_unsaved() {
            killed
                .warnings
                .push("the worker has ended, but its state is not saved yet; swarm retries".into());
        }
        let Some(worktree) = slot.worktree.clone().filter(|_| params.rm_worktree) else {
            return reply.answer(Ok(killed));
        };
        if let Err(error) = tenant {
            killed.worktree_error = Some(error);
            return reply.answer(Ok(killed));
        }
        // No other run may start in the worktree meanwhile.
        let busy = slot.busy.begin(BusyKind::RemoveWorktree);
        let KillParams { force_dirty, discard_ignored, .. } = params;
        let permission = Permission { force_dirty, discard_ignored };
        let removal = WorktreeRemoval { permission, command: RemovalCommand::Kill };
        let removed = slot.driver.remove_worktree(worktree, removal);
        let context = slot.driver.context.clone();
        tokio::spawn(async move {
            // The worker has ended, whether its worktree can be removed or not.
            match removed.await {
                Err(_) => {
                    let message = "the worktree stays: the daemon is stopping";
                    killed.worktree_error = Some(Error::internal(message));
                }
                Ok(Err(error)) => killed.worktree_error = Some(error),
                Ok(Ok(removed)) => {
                    killed.worktree_removed = Some(removed.path);
                    killed.ignored_removed = removed.ignored;
                    killed.warnings.extend(removed.note);
                    context.report(RunReport::WorktreeGone);
                }
            }
            drop(busy);
            reply.answer(Ok(killed));
        });
    }
}
