//! `spawn`: creates a worker and starts its first run.
//!
//! All checks run before anything is created. If the first run fails to start, the worker is discarded: no name,
//! record, branch or pane remains.

use std::path::Path;

use swarm_state::engine::{Event, Phase};
use swarm_state::model::{WorkerName, Worktree};
use swarm_state::notice::{Entry, IterationExit, StopReason};
use swarm_state::removal::{Permission, RemovalCommand};
use swarm_state::spec::{Prompt, WorkerSpec};

use crate::daemon::busy::BusyKind;
use crate::daemon::caller::{refuse_own, workers_of};
use crate::daemon::crash;
use crate::daemon::messages::{AfterStop, DaemonInput, PendingDiscard, PendingSpawn, WorktreeRemoval};
use crate::daemon::reply::Reply;
use crate::daemon::slot::{self, Slot, Start};
use crate::daemon::supervisor::Supervisor;
use crate::daemon::{legacy, views};
use crate::error::{Error, ErrorCode, Result};
use crate::paths::resolve;
use crate::protocol::{SpawnParams, Spawned};

mod caps;
mod check;
mod docker;
mod permissions;
mod program;
mod rooms;

pub(crate) use check::{check, check_context, check_cost};

impl Supervisor {
    /// Creates a worker. The client is answered when the first run is up.
    pub(crate) fn spawn(&mut self, mut params: SpawnParams, peer: Option<i32>, reply: Reply) {
        let by = workers_of(peer, &self.store);
        if !by.is_empty() {
            // A worker's children inherit its restrictions.
            params.env.insert(crate::marks::SPAWNED_BY.into(), by.join(":"));
        }
        if let Some(name) = self.repeated_request(params.request.as_ref()) {
            return self.answer_repeated(&name, params.ready_wait, false, reply);
        }
        match self.admit(&params, peer) {
            Err(error) => reply.refuse(error),
            Ok(Admitted::Now(name, warnings)) => {
                let pending = PendingSpawn {
                    reply,
                    until_ready: params.ready_wait,
                    seq: self.notices.seq(),
                    respawned: false,
                    warnings,
                    request: params.request.clone(),
                    lacks_sandbox: false,
                };
                self.start_worker(&name, self.spec_of(&name, params), pending);
            }
            Ok(Admitted::AfterKill(name)) => {
                if let Some(slot) = self.slots.get_mut(&name) {
                    slot.waiting.after_stop.push(AfterStop::Replace(Box::new(params), reply));
                }
                self.step(&name, Event::Kill);
            }
        }
    }

    fn spec_of(&self, name: &WorkerName, mut params: SpawnParams) -> WorkerSpec {
        if let Some(ralph) = params.ralph.as_mut().filter(|ralph| ralph.task.is_some()) {
            ralph.prompt_file = self.store.paths().ralph_dir(name).join(crate::loops::TASK_FILE);
        }
        let prompt = match &params.ralph {
            Some(ralph) => Prompt::File(ralph.prompt_file.clone()),
            None => params.prompt,
        };
        let wanted = params.prompt_via;
        let spec = WorkerSpec {
            name: name.clone(),
            cmd: params.cmd,
            cwd: params.cwd,
            env: params.env,
            env_names: params.env_names,
            tags: params.tags,
            worktree: params.worktree,
            prompt,
            prompt_via: wanted,
            profile: params.profile,
            ready_wait: params.ready_wait,
            ready_timeout: params.ready_timeout.max(1),
            done_pattern: params.done_pattern,
            record: params.record,
            tmux_socket: params.tmux_socket,
            size: params.size.unwrap_or(swarm_state::spec::DEFAULT_SIZE),
            ralph: params.ralph,
            restart: params.restart,
            parent: params.parent,
            sandbox: params.sandbox,
            caps: params.caps,
        };
        WorkerSpec { prompt_via: spec.route(wanted), ..spec }
    }

    /// Checks a request and chooses the name.
    fn admit(&mut self, params: &SpawnParams, peer: Option<i32>) -> Result<Admitted> {
        let name = match &params.name {
            Some(text) => WorkerName::new(text).map_err(|e| Error::invalid(e.to_string()))?,
            None => self.free_name(&params.cwd)?,
        };
        if self.store.is_reserved(&name) {
            let message = format!("the record of worker '{name}' cannot be read by this version of swarm");
            return Err(
                Error::new(ErrorCode::Exists, message).hint("choose another name; for the reason: swarm ls")
            );
        }
        let warnings = self.check_spec(&self.spec_of(&name, params.clone()))?;
        if let Some(theirs) = self.slots.get(&name).and_then(|slot| slot.origin.legacy.as_ref()) {
            if !params.replace {
                legacy::in_use(&name, theirs)?;
            }
            // The predecessor's worker is neither ended nor changed; its files are kept like those of earlier loops.
            return Ok(Admitted::Now(name, warnings));
        }
        if let Some(slot) = self.slots.get(&name) {
            slot.refuse_busy()?;
            refuse_own(slot, peer, "replace itself")?;
        }
        match self.slots.get(&name) {
            Some(slot) if slot.engine.is_stopped() => Ok(Admitted::Now(name, warnings)),
            Some(_) if params.replace => Ok(Admitted::AfterKill(name)),
            // Its tmux server is gone and it cannot be resumed, so the new worker takes the name.
            Some(slot) if *slot.engine.phase() == Phase::Lost && slot.engine.ralph().is_none() => {
                Ok(Admitted::AfterKill(name))
            }
            Some(slot) => {
                let message = format!("worker '{name}' already exists ({})", slot.engine.status());
                let hint = format!("spawn with --replace, or end it: swarm kill {name}");
                Err(Error::new(ErrorCode::Exists, message).hint(hint))
            }
            None => Ok(Admitted::Now(name, warnings)),
        }
    }

    /// A free name, made from the directory.
    fn free_name(&self, cwd: &Path) -> Result<WorkerName> {
        let is_free = |name: &WorkerName| !self.slots.contains_key(name) && !self.store.is_reserved(name);
        WorkerName::of_directory(cwd, is_free).ok_or_else(|| Error::internal("no name is free"))
    }

    pub(crate) fn start_worker(&mut self, name: &WorkerName, spec: WorkerSpec, pending: PendingSpawn) {
        match self.create_slot(name, spec, pending.respawned) {
            Err(error) => pending.reply.refuse(error),
            Ok(mut slot) => {
                (slot.origin.request, slot.origin.first_notice) = (pending.request.clone(), pending.seq);
                slot.start = Start::Pending(pending);
                let park = self.park_of(&slot);
                self.slots.insert(name.clone(), slot);
                if park.is_some() {
                    self.step(name, Event::Quota(park));
                }
                self.step(name, Event::Start);
                self.refuse_unsaved(name);
            }
        }
    }

    fn create_slot(&mut self, name: &WorkerName, spec: WorkerSpec, respawned: bool) -> Result<Slot> {
        let context = self.context(name, &spec.tmux_socket);
        let engine = slot::engine(&spec);
        let mut slot = Slot::new(spec, engine, context)?;
        if !self.slots.contains_key(name) {
            self.store.remove_unborn(name)?;
        }
        // The run directories of an earlier worker of that name do not belong to this worker's runs.
        self.store.remove_run_dirs(name)?;
        self.store.archive_ralph(name)?;
        if let Some(task) = slot.spec.ralph.as_ref().and_then(|ralph| ralph.task.as_ref()) {
            self.store.write_task(name, task)?;
        }
        crash::point("create");
        if let Some(old) = self.slots.remove(name).filter(|old| old.origin.legacy.is_none()) {
            if respawned {
                (slot.worktree, slot.origin.extra) = (old.worktree, old.origin.extra);
            } else {
                slot.worktree = inherited(&slot.spec, old.worktree);
            }
        }
        Ok(slot)
    }

    /// Discards a new worker whose record could not be saved. A worker that existed before is only stopped.
    fn refuse_unsaved(&mut self, name: &WorkerName) {
        let Some(slot) = self.slots.get_mut(name).filter(|s| s.saving.is_unsaved()) else { return };
        let pending = slot.take_pending();
        let why = slot.saving.error_text();
        if pending.as_ref().is_some_and(|n| n.respawned) {
            self.step(name, Event::Kill);
        } else {
            self.forget(name);
        }
        if let Some(pending) = pending {
            let message = format!("worker '{name}' was not spawned: {why}");
            pending.reply.refuse(Error::new(ErrorCode::System, message));
        }
    }

    /// Answers the client that waits for a new worker, if this notice is what it waits for.
    pub(crate) fn answer_spawn(&mut self, name: &WorkerName, entry: &Entry) {
        let Some(slot) = self.slots.get_mut(name) else { return };
        let Start::Pending(pending) = &mut slot.start else { return };
        if let Entry::Outage { parked: true, message, .. } = entry {
            if !pending.until_ready {
                pending.warnings.push(format!("the loop waits for the reset: {message}"));
                Self::send_spawn_answer(slot, Ok(()));
            }
            return;
        }
        let mut discard = false;
        let outcome = match entry {
            Entry::Started { .. } if !pending.until_ready => Ok(()),
            Entry::Ready { .. } => Ok(()),
            Entry::Waiting { reason, .. } if pending.until_ready => {
                let message = format!("worker '{name}' is not ready: {reason}");
                Err(Error::new(ErrorCode::Timeout, message).hint(format!("swarm peek {name}")))
            }
            Entry::Stopped { reason: StopReason::SpawnFailed(message) }
            | Entry::LoopFailed { reason: StopReason::Prompt(message), .. }
            | Entry::IterationFailed { exit: IterationExit::SpawnFailed, message: Some(message), .. }
            | Entry::RunEnded { exit: IterationExit::SpawnFailed, message: Some(message), .. } => {
                discard = !pending.respawned;
                let code = if pending.lacks_sandbox { ErrorCode::Sandbox } else { ErrorCode::System };
                let error = Error::new(code, message.clone());
                Err(if discard || slot.engine.is_stopped() {
                    error
                } else {
                    error.hint(format!("swarm retries: swarm status {name}"))
                })
            }
            Entry::Stopped { reason }
            | Entry::LoopFailed { reason, .. }
            | Entry::LoopComplete { reason, .. } => {
                let message = format!("worker '{name}' ended before it was ready: {}", reason.text());
                Err(Error::conflict(message).hint(format!("swarm logs {name}")))
            }
            _ => return,
        };
        match outcome {
            Err(error) if discard => {
                if let Some(PendingSpawn { reply, .. }) = slot.take_pending() {
                    slot.start = Start::Failed(reply, error);
                }
            }
            outcome => Self::send_spawn_answer(slot, outcome),
        }
    }

    /// Answers the client that waits for a loop whose baseline is being taken, which may take minutes. Warnings about
    /// the loop go into the answer, or to the subscribers if no client waits. Unless it `begins`, nothing is
    /// answered yet.
    pub(crate) fn answer_loop_begun(&mut self, name: &WorkerName, warnings: Vec<String>, begins: bool) {
        let Some(slot) = self.slots.get_mut(name) else { return };
        let begins = begins && slot.spec.is_gated();
        if let Some(pending) = slot.pending() {
            pending.warnings.extend(warnings);
            if begins && !pending.until_ready {
                Self::send_spawn_answer(slot, Ok(()));
            }
            return;
        }
        for message in warnings {
            self.notify(name, Entry::Warning { message });
        }
    }

    /// The sandbox of a new worker cannot be built, so the client exits with the status for that.
    pub(crate) fn note_no_sandbox(&mut self, name: &WorkerName) {
        if let Some(pending) = self.slots.get_mut(name).and_then(Slot::pending) {
            pending.lacks_sandbox = true;
        }
    }

    /// Answers the client that waits for a new loop whose first iteration is held, and reports why it is held.
    pub(crate) fn answer_held(&mut self, name: &WorkerName, message: String) {
        let Some(slot) = self.slots.get_mut(name) else { return };
        match slot.pending() {
            Some(pending) if !pending.until_ready => {
                pending.warnings.push(message);
                Self::send_spawn_answer(slot, Ok(()));
            }
            Some(_) | None => self.notify(name, Entry::Warning { message }),
        }
    }

    fn send_spawn_answer(slot: &mut Slot, outcome: Result<()>) {
        let Some(PendingSpawn { reply, seq, warnings, .. }) = slot.take_pending() else { return };
        reply.answer(outcome.map(|()| Spawned { worker: views::whole(slot), seq, warnings }));
    }

    /// Answers the client that waits for a new worker that tmux hangs. The worker stays: tmux may create its window
    /// when it answers again.
    pub(crate) fn answer_tmux_hangs(&mut self, name: &WorkerName) {
        let Some(pending) = self.slots.get_mut(name).and_then(Slot::take_pending) else { return };
        let message = format!("tmux does not answer; worker '{name}' starts when it does");
        let hint = format!("wait, or cancel it: swarm kill {name}");
        pending.reply.refuse(Error::new(ErrorCode::Timeout, message).hint(hint));
    }

    /// Removes a worker whose first run failed to start, with all that was created. Then the client gets the error.
    pub(crate) fn discard_worker(&mut self, name: &WorkerName, reply: Reply, error: Error) {
        if !self.slots.get(name).is_some_and(|s| s.engine.is_stopped()) {
            self.step(name, Event::Kill);
        }
        let Some(slot) = self.slots.get_mut(name) else { return reply.refuse(error) };
        let (incarnation, busy) = (slot.driver.context.incarnation, slot.busy.begin(BusyKind::Clean));
        let mut discard = PendingDiscard { name: name.clone(), incarnation, reply, error, busy };
        let Some(worktree) = slot.worktree.clone() else { return self.discarded(discard) };
        // Only a clean worktree is removed, and its branch only if git finds nothing unmerged on it.
        let removal = WorktreeRemoval { permission: Permission::default(), command: RemovalCommand::Clean };
        let path = worktree.path.clone();
        let removed = slot.driver.remove_worktree(worktree, removal);
        let inbox = self.inbox.clone();
        tokio::spawn(async move {
            if let Ok(Err(kept)) = removed.await {
                let text = format!("{}; worktree '{}' stays: {kept}", discard.error.message, path.display());
                discard.error.message = text;
            }
            crash::point("discard_tree+");
            drop(inbox.send(DaemonInput::Discarded(Box::new(discard))));
        });
    }

    /// Forgets a worker whose first run failed to start.
    pub(crate) fn discarded(&mut self, discard: PendingDiscard) {
        let PendingDiscard { name, incarnation, reply, error, busy } = discard;
        drop(busy);
        if self.slots.get(&name).is_some_and(|slot| slot.driver.context.incarnation == incarnation) {
            self.forget(&name);
        }
        reply.refuse(error);
    }

    fn forget(&mut self, name: &WorkerName) {
        self.slots.remove(name);
        self.forgotten.insert(name.clone());
        let (record, runs) = (self.store.take_back(name), self.store.remove_run_dirs(name));
        for outcome in [record, runs, self.store.remove_ralph_dir(name.as_str())] {
            if let Err(error) = outcome {
                tracing::warn!(worker = %name, %error, "cannot remove the files of a worker that failed to start");
            }
        }
    }
}

enum Admitted {
    /// With warnings for the user.
    Now(WorkerName, Vec<String>),
    AfterKill(WorkerName),
}

/// The worktree of the previous worker of this name, if the new one requests the same branch and directory.
fn inherited(spec: &WorkerSpec, old: Option<Worktree>) -> Option<Worktree> {
    let (wanted, old) = (spec.worktree.as_ref()?, old?);
    let branch = wanted.branch.as_ref().is_none_or(|b| *b == old.branch);
    let dir = wanted.dir.as_ref().is_none_or(|d| resolve(d) == old.path);
    (branch && dir && old.path.is_dir() && resolve(&spec.cwd).starts_with(&old.base_repo)).then_some(old)
}
