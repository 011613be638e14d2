//! Steps a worker's engine and carries out the effects that it returns.
//!
//! The effects of one step are carried out in order. Slow ones go to the worker's driver or run in a task. No run
//! starts before the state that includes it is saved.

use std::sync::atomic::Ordering;

use swarm_state::engine::{Effect, Event, Phase, SpawnError};
use swarm_state::model::{Exit, Run, WorkerName};
use swarm_state::notice::Entry;

use crate::daemon::crash;
use crate::daemon::messages::{AfterStop, DaemonEnd, EndedRun, Job, SpawnJob};
use crate::daemon::run::exit;
use crate::daemon::slot::Start;
use crate::daemon::supervisor::Supervisor;

impl Supervisor {
    /// Steps one worker, carries out the effects, and continues requests that waited for the worker.
    pub(crate) fn step(&mut self, name: &WorkerName, event: Event) {
        self.advance(name, event);
        self.release_queued_input(name);
        self.finish_stopped(name);
    }

    pub(crate) fn advance(&mut self, name: &WorkerName, event: Event) {
        // The next iteration may start: edits of the loop's file must be applied before.
        if matches!(event, Event::Evaluated(..) | Event::Resume | Event::Tick | Event::SpawnFailed(..)) {
            self.apply_file_edits(name);
        }
        let now = self.now();
        let Some(slot) = self.slots.get_mut(name) else { return };
        if event == Event::Kill {
            slot.driver.context.hurry.store(true, Ordering::Relaxed);
        }
        let was_over = slot.engine.is_stopped();
        let effects = slot.step(event, now);
        let ended = slot.engine.is_stopped() && !was_over;
        self.carry_out(name, effects);
        if ended {
            self.sweep_server_of(name);
        }
    }

    pub(crate) fn carry_out(&mut self, name: &WorkerName, effects: Vec<Effect>) {
        self.notifying.is_stale = true;
        for effect in effects {
            // The agents belong to the daemon that took over.
            if self.ended == Some(DaemonEnd::Replaced) {
                return;
            }
            self.perform(name, effect);
        }
        self.drop_held_run(name);
        self.open_task_files(name);
    }

    /// Permits a person to edit the task list of a loop that is paused or has ended.
    fn open_task_files(&mut self, name: &WorkerName) {
        let Some(slot) = self.slots.get_mut(name) else { return };
        if matches!(slot.engine.phase(), Phase::Parked | Phase::Stopped { .. })
            && let Some(loop_run) = slot.task_loop()
        {
            if slot.spec.is_in_docker() {
                return slot.driver.push(Job::OpenTaskFiles(Box::new(loop_run)));
            }
            let undone = loop_run.open_task_files();
            slot.waiting.undone.extend(undone.iter().cloned());
            for message in undone {
                self.notify(name, Entry::Warning { message });
            }
        }
    }

    /// Drops a run that waits for a save or for memory and should not start any more. Nothing of the run exists yet.
    pub(crate) fn drop_held_run(&mut self, name: &WorkerName) {
        let Some(slot) = self.slots.get_mut(name) else { return };
        let is_held_back = slot.engine.is_held_back();
        let Some(run) = slot.saving.held_run.take_if(|_| is_held_back) else { return };
        slot.saving.pressure = None;
        if slot.engine.is_killed() {
            let never = SpawnError::Other("the run was never started".into());
            return self.advance(name, Event::SpawnFailed(run, never));
        }
        // The iteration starts, and is logged, when the loop is resumed.
        if let Some(at) = slot.saving.unwritten_log.iter().rposition(|line| line.contains(" [START] ")) {
            slot.saving.unwritten_log.remove(at);
        }
        self.advance(name, Event::NeverStarted(run));
    }

    pub(crate) fn perform(&mut self, name: &WorkerName, effect: Effect) {
        crash::before(&effect);
        match effect {
            Effect::Persist => {
                self.save(name);
                return crash::after(&Effect::Persist);
            }
            Effect::Notify(entry) => {
                self.notify(name, entry.clone());
                return crash::after(&Effect::Notify(entry));
            }
            Effect::Spawn(run) => return self.spawn_run(name, run),
            Effect::Deliver(_)
            | Effect::Terminate(_)
            | Effect::ForceKill(_)
            | Effect::Probe(_)
            | Effect::Evaluate(_) => {}
            Effect::Look(_) => return self.look_now(),
        }
        let now = self.now();
        let Some(slot) = self.slots.get_mut(name) else { return };
        let pane = slot.pane.clone();
        let context = slot.driver.context.clone();
        match (effect, pane) {
            (Effect::Deliver(run), Some(pane)) if pane.run == run => {
                slot.driver.push(Job::Deliver { pane, reader: slot.reader.clone() });
            }
            (Effect::Terminate(run), Some(pane)) if pane.run == run => exit::terminate(&pane),
            (Effect::ForceKill(run), Some(pane)) if pane.run == run => exit::force_kill(context, &pane),
            (Effect::Probe(run), Some(pane)) if pane.run == run => {
                exit::probe(context, &pane, slot.spec.env.clone())
            }
            (Effect::Evaluate(run), pane) => slot.driver.push(Job::Evaluate {
                ended: EndedRun {
                    run,
                    exit: slot.engine.last_exit().unwrap_or(Exit::Unknown),
                    evidence: slot.engine.evidence(),
                    end: slot.engine.ended(),
                    iteration: slot.iteration(now),
                    pane: pane.filter(|p| p.run == run),
                    cwd: slot.cwd().to_owned(),
                },
                end_if_delivered: slot.engine.ended_delivered(),
                spec: slot.spec.clone(),
                reader: slot.reader.clone(),
            }),
            (effect, _) => tracing::error!(worker = %name, ?effect, "no pane for this effect"),
        }
    }

    pub(crate) fn spawn_run(&mut self, name: &WorkerName, run: Run) {
        let now = self.now();
        let Some(slot) = self.slots.get_mut(name) else { return };
        // Rule 3 of the engine: a run that is not saved does not start.
        if slot.saving.is_unsaved() {
            slot.saving.held_run = Some(run);
            return;
        }
        if self.is_held_by_pressure(name, run) {
            return;
        }
        let Some(slot) = self.slots.get_mut(name) else { return };
        slot.pane = None;
        slot.origin.lost_with = None;
        slot.last_screen.clear();
        slot.renew_reader();
        slot.driver.push(Job::Spawn(SpawnJob {
            run,
            iteration: slot.iteration(now),
            spec: slot.spec.clone(),
            worktree: slot.worktree.clone(),
            reader: slot.reader.clone(),
        }));
    }

    /// Removes the folder of a run that was evaluated or did not start. The resulting state must be saved before,
    /// because the next daemon would need the verdict or the noted worktree again; and the folder must be gone before
    /// another worker of the same name uses it.
    pub(crate) fn remove_run_dir(&self, name: &WorkerName, run: Run) {
        if self.slots.get(name).is_some_and(|s| !s.saving.is_unsaved()) {
            crash::point("leave");
            // The next start removes leftover files.
            drop(self.store.remove_run_dir(name, run));
        }
    }

    /// Sends a notice to the subscribers and writes it to the loop's log.
    pub(crate) fn notify(&mut self, name: &WorkerName, entry: Entry) {
        self.log_entry(name, &entry);
        tracing::info!(worker = %name, ?entry);
        self.answer_spawn(name, &entry);
        if let Some(slot) = self.slots.get_mut(name) {
            slot.note_status();
            self.notices.add(name.as_str(), slot.status(), entry);
        }
    }

    /// Answers and continues the requests that waited for a worker to stop.
    pub(crate) fn finish_stopped(&mut self, name: &WorkerName) {
        if let Some(slot) = self.slots.get_mut(name).filter(|s| matches!(s.start, Start::Failed(..)))
            && let Start::Failed(reply, error) = std::mem::replace(&mut slot.start, Start::Settled)
        {
            return self.discard_worker(name, reply, error);
        }
        let Some(slot) = self.slots.get_mut(name).filter(|s| s.engine.is_stopped()) else { return };
        let mut afters = std::mem::take(&mut slot.waiting.after_stop);
        if slot.engine.is_killed() && !afters.is_empty() {
            self.kill_children(name);
        }
        // Kills are answered first, while the name still belongs to the worker that they ended.
        let is_kill = |after: &AfterStop| matches!(after, AfterStop::Killed(..));
        let killed = afters.iter().any(is_kill);
        afters.sort_by_key(|after| !is_kill(after));
        for after in afters {
            match after {
                AfterStop::Killed(params, reply) => self.finish_kill(params, reply),
                // The caller was authorized when the request arrived.
                AfterStop::Replace(params, reply) => self.spawn(*params, None, reply),
                AfterStop::Respawn(wish) if killed => wish.refuse_killed(),
                AfterStop::Respawn(wish) => self.continue_respawn(*wish),
            }
        }
    }
}
