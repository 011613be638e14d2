//! `respawn`: starts a worker again as it was spawned.
//!
//! All checks run before anything is ended. Then each step may take time: end a live worker, remove an unwanted
//! worktree, start the worker as a spawn does. The worker is listed throughout; if a step
//! fails, it stays, stopped.

use std::sync::Arc;

use swarm_state::engine::{Event, Phase};
use swarm_state::removal::{Permission, RemovalCommand};
use swarm_state::spec::WorkerSpec;

use crate::daemon::boot::RECORD_LOST;
use crate::daemon::busy::BusyKind;
use crate::daemon::caller::refuse_own;
use crate::daemon::messages::{
    AfterStop, DaemonInput, PendingRespawn, PendingSpawn, RunReport, WorktreeRemoval,
};
use crate::daemon::reply::Reply;
use crate::daemon::run::remove_worktree::{ignored_note, refused};
use crate::daemon::slot::{Slot, Start, loop_run_of};
use crate::daemon::supervisor::Supervisor;
use crate::daemon::verbs::spawn;
use crate::error::{Error, Result};
use crate::git;
use crate::protocol::RespawnParams;

impl PendingRespawn {
    /// Refuses the request because the worker was killed meanwhile: a kill wins.
    pub(crate) fn refuse_killed(self) {
        let message = format!("worker '{}' was killed meanwhile", self.name);
        self.reply.refuse(Error::conflict(message));
    }
}

impl Supervisor {
    /// Starts a worker again. The client is answered when its first run is up.
    pub(crate) fn respawn(&mut self, params: RespawnParams, peer: Option<i32>, reply: Reply) {
        let before = self.repeated_request(params.request.as_ref());
        if let Some(name) = before.filter(|name| name.as_str() == params.name) {
            return self.answer_repeated(&name, false, true, reply);
        }
        let root = self.store.paths().root().to_owned();
        let checked = self.find(&params.name).and_then(|(name, slot)| {
            respawnable(slot, peer)?;
            spawn::check(&spec_of(slot), &root)?;
            let threatened = slot.worktree.clone().filter(|_| params.clean_first && slot.engine.has_pane());
            let measured = slot.spec.is_gated();
            let loop_run = measured.then(|| loop_run_of(slot));
            Ok((name, threatened, loop_run, slot.busy.begin(BusyKind::Respawn)))
        });
        let (name, threatened, loop_run, busy) = match checked {
            Ok(checked) => checked,
            Err(error) => return reply.refuse(error),
        };
        let permission = Permission { force_dirty: false, discard_ignored: params.discard_ignored };
        let RespawnParams { clean_first, request, .. } = params;
        let wish = PendingRespawn { name, clean_first, permission, reply, warnings: vec![], request, busy };
        if threatened.is_none() && loop_run.is_none() {
            return self.continue_respawn(wish);
        }
        let inbox = self.inbox.clone();
        tokio::spawn(async move {
            // Changes that an agent made to its checks must be approved before the next run is measured by them.
            if let Some(loop_run) = loop_run
                && let Err(error) = loop_run.refuse_unapproved().await
            {
                return wish.reply.refuse(error);
            }
            // Check first whether the worktree may be removed: otherwise the agent would be ended for nothing.
            if let Some(worktree) = threatened
                && let Err(error) = git::refuse_losses(&worktree, wish.permission).await
            {
                let error = refused(error, &worktree, RemovalCommand::Respawn, &wish.name);
                return wish.reply.refuse(error);
            }
            drop(inbox.send(DaemonInput::Respawn(Box::new(wish))));
        });
    }

    /// Does the next step: end the worker, remove its worktree, or start it.
    pub(crate) fn continue_respawn(&mut self, mut wish: PendingRespawn) {
        let name = wish.name.clone();
        if wish.busy.is_canceled() {
            return wish.refuse_killed();
        }
        let slot = match self.find(name.as_str()) {
            Ok((_, slot)) => slot,
            Err(error) => return wish.reply.refuse(error),
        };
        if !slot.engine.is_stopped() {
            slot.waiting.after_stop.push(AfterStop::Respawn(Box::new(wish)));
            return self.step(&name, Event::Kill);
        }
        // The coordinator starts again those workers that it finds killed.
        if slot.engine.is_killed()
            && let Some(child) = self.kill_children(&name).and_then(|child| self.slots.get_mut(&child))
        {
            return child.waiting.after_stop.push(AfterStop::Respawn(Box::new(wish)));
        }
        let Ok((_, slot)) = self.find(name.as_str()) else { return };
        // The record of a worktree whose directory is gone would block the new one.
        let unwanted = |path: &std::path::Path| wish.clean_first || !path.exists();
        if let Some(worktree) = slot.worktree.clone().filter(|w| unwanted(&w.path)) {
            wish.clean_first = false;
            let removal = WorktreeRemoval { permission: wish.permission, command: RemovalCommand::Respawn };
            let removed = slot.driver.remove_worktree(worktree, removal);
            let context = slot.driver.context.clone();
            tokio::spawn(async move {
                let stopping = Err(Error::internal("the daemon is stopping"));
                match removed.await.unwrap_or(stopping) {
                    Ok(removed) => {
                        context.report(RunReport::WorktreeGone);
                        wish.warnings.extend(ignored_note(&removed));
                        wish.warnings.extend(removed.note);
                        drop(context.inbox.send(DaemonInput::Respawn(Box::new(wish))));
                    }
                    Err(error) => wish.reply.refuse(error),
                }
            });
            return;
        }
        let spec = spec_of(slot);
        let (reply, mut warnings, seq) = (wish.reply, wish.warnings, self.notices.seq());
        match self.check_spec(&spec) {
            Err(error) => reply.refuse(error),
            Ok(found) => {
                warnings.extend(found);
                let pending = PendingSpawn {
                    reply,
                    until_ready: false,
                    seq,
                    respawned: true,
                    warnings,
                    request: wish.request,
                    lacks_sandbox: false,
                };
                self.start_worker(&name, spec, pending);
            }
        }
    }
}

/// Refuses a worker that cannot be respawned, or not by this caller.
fn respawnable(slot: &Slot, peer: Option<i32>) -> Result<()> {
    let name = &slot.spec.name;
    slot.refuse_busy()?;
    // Without a waiting request, an earlier daemon began the kill. Its client repeats the request if it still waits.
    if slot.engine.is_killed() && !slot.engine.is_stopped() && !slot.waiting.after_stop.is_empty() {
        return Err(
            Error::conflict(format!("worker '{name}' is being killed")).hint("wait a moment, then retry")
        );
    }
    // Otherwise the client that waits for the first run would report that the worker was killed.
    if matches!(slot.start, Start::Pending(_))
        && matches!(slot.engine.phase(), Phase::Idle | Phase::Spawning { .. })
    {
        return Err(Error::conflict(format!("worker '{name}' is starting")).hint("wait a moment, then retry"));
    }
    if slot.origin.legacy.is_some() {
        return Err(Error::conflict(format!(
            "worker '{name}' belongs to an earlier swarm and is not changed"
        )));
    }
    if slot.spec.tags.iter().any(|tag| tag == RECORD_LOST) && slot.spec.env.is_empty() {
        let message =
            format!("the record of worker '{name}' was lost, and with it the command that started it");
        return Err(Error::conflict(message).hint(format!("swarm spawn --name {name} --replace -- COMMAND")));
    }
    refuse_own(slot, peer, "respawn itself")
}

/// The worker's spec, with the limits of a loop that were changed since.
fn spec_of(slot: &Slot) -> WorkerSpec {
    let mut spec = Arc::unwrap_or_clone(slot.spec.clone());
    if let (Some(wanted), Some(ralph)) = (&mut spec.ralph, slot.engine.ralph()) {
        wanted.max_iterations = ralph.max_iterations;
        wanted.inactivity_timeout = ralph.inactivity_timeout;
        wanted.question_timeout = ralph.question_timeout;
    }
    spec
}
