//! Writing workers down, and taking over what a person edited by hand.
//!
//! A save that fails (a full disk) is tried again every two seconds; until it succeeds that worker starts
//! no run and its log gets no line, and everything else goes on.

use std::sync::Arc;

use swarm_state::engine::{Edits, Event};
use swarm_state::format::{self, RalphFile};
use swarm_state::model::{Prompt, WorkerName};
use swarm_state::notice::Entry;
use swarm_state::screen::Pattern;

use super::slot::Slot;
use super::supervisor::Supervisor;
use crate::error::Result;
use crate::store::{Problem, RalphRead, Store};

impl Supervisor {
    /// Writes one worker down. A failure is told once and tried again.
    pub(super) fn save(&mut self, name: &WorkerName) {
        self.absorb_edits(name);
        let Some(slot) = self.slots.get_mut(name) else { return };
        let outcome = write(&self.store, slot);
        let was_unsaved = std::mem::replace(&mut slot.unsaved, outcome.is_err());
        for problem in self.store.take_problems() {
            self.complain(name, problem.message);
        }
        let Some(slot) = self.slots.get_mut(name) else { return };
        match outcome {
            Ok(()) => {
                let held = if was_unsaved { slot.held.take() } else { None };
                self.write_log(name);
                if let Some(run) = held {
                    self.spawn_run(name, run);
                }
            }
            Err(error) => {
                slot.save_error = Some(error.message.clone());
                if slot.engine.is_killed() {
                    self.store.mark_killed(name);
                }
                if !was_unsaved {
                    let message = format!("the worker's state was not saved, trying again: {error}");
                    self.tell(name, Entry::Warning { message });
                }
            }
        }
    }

    /// Tries again what could not be saved.
    pub(super) fn save_again(&mut self) {
        let unsaved: Vec<_> =
            self.slots.iter().filter(|(_, s)| s.unsaved).map(|(name, _)| name.clone()).collect();
        for name in unsaved {
            self.save(&name);
        }
        let waiting = self.slots.iter().filter(|(_, s)| !s.unlogged.is_empty());
        for name in waiting.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.write_log(&name);
        }
    }

    /// Takes over settings of a loop that were changed in its state file since it was last written.
    pub(super) fn absorb_edits(&mut self, name: &WorkerName) {
        let Some(slot) = self.slots.get_mut(name) else { return };
        let Some(known) = slot.ralph_known.clone() else { return };
        let stamp = self.store.ralph_stamp(name);
        if stamp == slot.ralph_stamp || stamp.is_none() {
            return;
        }
        slot.ralph_stamp = stamp;
        let message = match self.store.read_ralph(name) {
            Ok(RalphRead::Absent) => None,
            Ok(RalphRead::Bad(problem)) => Some(problem.message),
            Err(error) => Some(error.message),
            Ok(RalphRead::Found(on_disk, _)) => match edited(slot, &known, &on_disk) {
                Ok(Some(edits)) => {
                    // Only numbers change here; the caller is about to save or to step.
                    let now = self.now();
                    if let Some(slot) = self.slots.get_mut(name) {
                        slot.engine.step(Event::Edited(edits), now);
                        slot.ralph_known = slot.ralph_file();
                    }
                    None
                }
                Ok(None) => None,
                Err(message) => Some(format!("the edit of state.json was not taken over: {message}")),
            },
        };
        if let Some(message) = message {
            self.complain(name, message);
        }
    }

    /// Tells what is wrong with a worker's files, now and in every `ls` from here on.
    fn complain(&mut self, name: &WorkerName, message: String) {
        let sentence = format!("worker '{name}': {message}");
        if !self.problems.iter().any(|known| known.message == sentence) {
            let problem = Problem { message: sentence, name: Some(name.clone()), reserved: false };
            self.problems.push(problem);
        }
        self.tell(name, Entry::Warning { message });
    }
}

fn write(store: &Store, slot: &mut Slot) -> Result<()> {
    // The loop's file first: should only one be written, the next daemon takes the file's settings for an
    // edit of the record's, and they are the newer ones.
    if let Some(file) = slot.ralph_file() {
        // Half of all saves change nothing in it.
        let is_ours =
            || slot.ralph_written.is_some() && slot.ralph_written == store.ralph_stamp(&slot.spec.name);
        if slot.ralph_known.as_ref() != Some(&file) || !is_ours() {
            slot.ralph_stamp = Some(store.write_ralph(&slot.spec.name, &file)?);
            slot.ralph_written = slot.ralph_stamp;
            slot.ralph_known = Some(file);
        }
    }
    super::crash::point("record");
    store.save(&slot.record()?)
}

/// Takes over what is of the spec and gives what is of the engine; `None` when nothing was changed.
fn edited(slot: &mut Slot, known: &RalphFile, on_disk: &RalphFile) -> Result<Option<Edits>, String> {
    let edits = format::edits(known, on_disk)?;
    if edits.is_empty() {
        return Ok(None);
    }
    if let Some(Some(pattern)) = &edits.done_pattern {
        Pattern::compile(pattern).map_err(|e| format!("done_pattern: {e}"))?;
    }
    let spec = Arc::make_mut(&mut slot.spec);
    if let Some(pattern) = edits.done_pattern {
        spec.done_pattern = pattern;
        // The run that goes on is watched with the new pattern too.
        slot.reread();
    }
    let spec = Arc::make_mut(&mut slot.spec);
    if let (Some(file), Some(ralph)) = (edits.prompt_file, &mut spec.ralph) {
        ralph.prompt_file.clone_from(&file);
        spec.prompt = Prompt::File(file);
    }
    Ok(Some(Edits { max_iterations: edits.max_iterations, inactivity_timeout: edits.inactivity_timeout }))
}
