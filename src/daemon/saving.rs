//! Saves workers, and applies a person's edits of a loop's `state.json`.
//!
//! A failed save (the disk is full) is retried every two seconds. Until it succeeds, that worker starts no run and
//! its log gets no line; everything else continues. A change that was confirmed to a client must survive a crash even
//! then: a kill or a pause is recorded by a mark, which needs no disk space; any other change is refused and undone
//! ([`Supervisor::step_if_saved`]).

use swarm_state::engine::{Edits, Effect, Event, Worker};
use swarm_state::format::{self, RalphFile};
use swarm_state::model::WorkerName;
use swarm_state::notice::Entry;
use swarm_state::pattern::Pattern;

use crate::daemon::slot::{SaveState, Slot};
use crate::daemon::supervisor::Supervisor;
use crate::error::Result;
use crate::store::{Mark, Problem, RalphRead, Store};

impl Supervisor {
    /// Saves one worker. A failure is reported once and retried.
    pub(crate) fn save(&mut self, name: &WorkerName) {
        self.apply_file_edits(name);
        let Some(slot) = self.slots.get_mut(name) else { return };
        slot.note_status();
        self.notifying.is_stale = true;
        let outcome = write(&self.store, slot);
        let was_unsaved = slot.saving.is_unsaved();
        slot.saving.state = match &outcome {
            Ok(()) => SaveState::Saved,
            Err(error) => {
                let marked = mark_of(&slot.engine).is_some_and(|mark| self.store.set_mark(name, mark));
                SaveState::Unsaved { error: Some(error.clone()), marked }
            }
        };
        for problem in self.store.take_problems() {
            self.report_problem(name, problem.message);
        }
        let Some(slot) = self.slots.get_mut(name) else { return };
        match outcome {
            Ok(()) => {
                // A run that must not start any more is dropped by `drop_held_run`.
                let may_start = was_unsaved && !slot.engine.is_held_back();
                let held = slot.saving.held_run.take_if(|_| may_start);
                self.write_log(name);
                if let Some(run) = held {
                    self.spawn_run(name, run);
                }
            }
            Err(error) => {
                self.end_if_removed();
                if !was_unsaved {
                    let message = format!("the worker's state was not saved; swarm retries: {error}");
                    self.notify(name, Entry::Warning { message });
                }
            }
        }
    }

    /// Saves what may be lost: a failure is neither reported nor retried. The next save of the worker includes it.
    pub(crate) fn save_if_possible(&mut self, name: &WorkerName) {
        // The record of an unsaved worker is retried anyway, and the predecessor's file is not changed.
        let is_ours = |slot: &&mut Slot| !slot.saving.is_unsaved() && slot.origin.legacy.is_none();
        let Some(slot) = self.slots.get_mut(name).filter(is_ours) else { return };
        if let Err(error) = slot.record().and_then(|record| self.store.save(&record)) {
            tracing::warn!(worker = %name, %error, "not saved");
        }
    }

    /// Steps a worker by a person's request. The change survives a crash of the daemon, or is not made at all.
    /// `change` may change the slot's spec too.
    pub(crate) fn step_if_saved(
        &mut self,
        name: &WorkerName,
        change: impl FnOnce(&mut Slot) -> Result<Event>,
    ) -> Result<()> {
        self.apply_file_edits(name);
        let now = self.now();
        let Some(slot) = self.slots.get_mut(name) else { return Ok(()) };
        let before = (slot.engine.clone(), slot.spec.clone());
        let event = change(slot)?;
        let by_mark = matches!(event, Event::Pause(_));
        let mut effects = slot.step(event, now);
        if effects.first() == Some(&Effect::Persist) {
            self.perform(name, effects.remove(0));
            let Some(slot) = self.slots.get_mut(name) else { return Ok(()) };
            if slot.saving.is_unsaved() && (!by_mark || slot.saving.may_be_lost()) {
                let error = slot.saving.refusal();
                (slot.engine, slot.spec) = before;
                slot.rebuild_reader();
                // Undoes what was written before the disk refused.
                self.save(name);
                return Err(error);
            }
        }
        self.carry_out(name, effects);
        self.release_queued_input(name);
        self.finish_stopped(name);
        Ok(())
    }

    pub(crate) fn retry_saves(&mut self) {
        for name in self.names(|slot| slot.saving.is_unsaved()) {
            self.save(&name);
        }
        for name in self.names(|slot| !slot.saving.unwritten_log.is_empty()) {
            self.write_log(&name);
        }
        self.notices.flush_log();
    }

    /// Applies settings that a person changed in a loop's state file since it was last written.
    pub(crate) fn apply_file_edits(&mut self, name: &WorkerName) {
        let Some(slot) = self.slots.get_mut(name) else { return };
        let Some(known) = slot.saving.ralph_file.clone() else { return };
        let stamp = self.store.ralph_stamp(name);
        if stamp == slot.saving.ralph_read || stamp.is_none() {
            return;
        }
        slot.saving.ralph_read = stamp;
        let message = match self.store.read_ralph(name) {
            Ok(RalphRead::Absent) => None,
            Ok(RalphRead::Bad(problem)) => Some(problem.message),
            Err(error) => Some(error.message),
            Ok(RalphRead::Found(on_disk, _)) => match edited(slot, &known, &on_disk) {
                Ok(Some(edits)) => {
                    // Only settings change; the caller saves or steps next.
                    let now = self.now();
                    if let Some(slot) = self.slots.get_mut(name) {
                        slot.step(Event::Edited(edits), now);
                        slot.saving.ralph_file = slot.ralph_file();
                    }
                    None
                }
                Ok(None) => None,
                Err(message) => Some(format!("the edit of state.json was not applied: {message}")),
            },
        };
        if let Some(message) = message {
            self.report_problem(name, message);
        }
    }

    /// The warning for a command whose change is not saved yet.
    pub(crate) fn save_warnings(&self, name: &WorkerName) -> Vec<String> {
        match self.slots.get(name) {
            Some(slot) if slot.saving.is_unsaved() => {
                vec!["the change is in effect, but not saved yet; swarm retries".to_owned()]
            }
            Some(_) | None => vec![],
        }
    }

    /// Reports a problem with a worker's files, now and in every `ls` from now on.
    fn report_problem(&mut self, name: &WorkerName, message: String) {
        let sentence = format!("worker '{name}': {message}");
        if !self.problems.iter().any(|known| known.message == sentence) {
            self.problems.push(Problem::of(Some(name), sentence));
        }
        self.notify(name, Entry::Warning { message });
    }
}

/// The mark to write to disk for a worker that cannot be saved.
fn mark_of(engine: &Worker) -> Option<Mark> {
    if engine.is_killed() {
        return Some(Mark::Killed);
    }
    let paused = engine.ralph().filter(|_| !engine.is_stopped()).and_then(|ralph| ralph.paused);
    paused.map(Mark::Paused)
}

fn write(store: &Store, slot: &mut Slot) -> Result<()> {
    // The loop's file is first: if only one file is written, the next daemon treats the difference as an edit of the
    // loop's file, which has the newer settings.
    if let Some(file) = slot.ralph_file() {
        // Half of all saves do not change this file.
        let is_ours = || {
            slot.saving.ralph_written.is_some()
                && slot.saving.ralph_written == store.ralph_stamp(&slot.spec.name)
        };
        if slot.saving.ralph_file.as_ref() != Some(&file) || !is_ours() {
            slot.saving.ralph_read = Some(store.write_ralph(&slot.spec.name, &file)?);
            slot.saving.ralph_written = slot.saving.ralph_read;
            slot.saving.ralph_file = Some(file);
        }
    }
    crate::daemon::crash::point("record");
    store.save(&slot.record()?)
}

/// Checks the changes of the file, and applies those of the spec. `None` if nothing was changed.
fn edited(slot: &mut Slot, known: &RalphFile, on_disk: &RalphFile) -> Result<Option<Edits>, String> {
    let edits = format::edits(known, on_disk)?;
    if edits.is_empty() {
        return Ok(None);
    }
    if let Some(Some(pattern)) = &edits.done_pattern {
        Pattern::compile(pattern).map_err(|e| format!("done_pattern: {e}"))?;
    }
    slot.edit_spec(&edits);
    Ok(Some(edits))
}
