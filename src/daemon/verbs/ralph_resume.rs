//! `ralph.resume`: resume a paused loop or one that ended at a limit, with other variables if the request has some.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use swarm_state::advice::raise_and_resume;
use swarm_state::engine::{Edits, Event, Now, Phase};

use crate::daemon::caller::refuse_own;
use crate::daemon::legacy::refuse_legacy;
use crate::daemon::run::prompt;
use crate::daemon::slot::{Slot, loop_run_of};
use crate::daemon::supervisor::Supervisor;
use crate::daemon::verbs::ralph_pause::status_of;
use crate::error::{Error, Result};
use crate::loops::check_task_files;
use crate::protocol::{Changed, ResumeParams};

impl Supervisor {
    /// Sets environment variables for the next runs of a loop that the same request resumes.
    pub(crate) fn change_env(&mut self, params: &ResumeParams, peer: Option<i32>) -> Result<()> {
        let name = self.find_loop(&params.name)?.0;
        // A person may have raised the limit in the loop's file.
        self.apply_file_edits(&name);
        let now = self.now();
        let (name, slot) = self.find_loop(&params.name)?;
        if params.env.is_empty() || slot.engine.is_stopped() && refuse_ended(slot, now).is_err() {
            return Ok(());
        }
        refuse_own(slot, peer, "change its own loop")?;
        refuse_legacy(slot)?;
        if let Some(key) = params.env.keys().find(|key| key.is_empty() || key.contains(['=', '\0'])) {
            return Err(Error::invalid(format!("{key:?} is not a valid variable name")));
        }
        self.step_if_saved(&name, |slot| {
            let spec = Arc::make_mut(&mut slot.spec);
            for (key, value) in &params.env {
                spec.env.insert(key.clone(), value.clone());
                if !spec.env_names.contains(key) {
                    spec.env_names.push(key.clone());
                }
            }
            Ok(Event::Edited(Edits::default()))
        })
    }

    pub(crate) fn resume(&mut self, name: &str, peer: Option<i32>) -> Result<Changed> {
        let (name, slot) = self.find_loop(name)?;
        refuse_own(slot, peer, "resume its own loop")?;
        let before = status_of(slot)?;
        self.apply_file_edits(&name);
        let now = self.now();
        let mut warnings = vec![];
        if let Some(slot) = self.slots.get(&name).filter(|slot| slot.engine.is_stopped()) {
            refuse_ended(slot, now)?;
            warnings.extend(self.shared_directory(&slot.spec));
        }
        let (_, slot) = self.find_loop(name.as_str())?;
        let changed = slot.engine.can_resume(now);
        if changed {
            refuse_broken_list(slot)?;
            // A kill of the ended loop may have set it.
            slot.driver.context.hurry.store(slot.engine.is_killed(), Ordering::Relaxed);
            self.step_if_saved(&name, |_| Ok(Event::Resume))?;
        }
        warnings.extend(self.save_warnings(&name));
        Ok(Changed { changed, before, warnings })
    }
}

/// Refuses to resume a loop with a task list that no iteration could work on: the loop would end.
fn refuse_broken_list(slot: &Slot) -> Result<()> {
    let is_open = matches!(slot.engine.phase(), Phase::Parked | Phase::Stopped { .. });
    let Some(loop_run) = slot.task_loop().filter(|_| is_open) else { return Ok(()) };
    let Some(gate) = &loop_run.gates.tasks else { return Ok(()) };
    check_task_files(&loop_run.cwd, gate).map(drop).map_err(|error| {
        let name = &slot.spec.name;
        let message = format!("the loop of worker '{name}' cannot continue: {}", error.message);
        Error::conflict(message).hint(format!("fix or restore the file, then: swarm ralph resume {name}"))
    })
}

/// Refuses to resume a loop that has ended, unless it ended at a limit that was raised since and its files exist.
fn refuse_ended(slot: &Slot, now: Now) -> Result<()> {
    let name = &slot.spec.name;
    if !slot.engine.ended_at_limit() || slot.origin.legacy.is_some() {
        return Err(has_ended(slot));
    }
    slot.refuse_busy()?;
    // Without its files, a higher limit would not help.
    refuse_without_files(slot)?;
    let Some(ralph) = slot.engine.ralph() else { return Ok(()) };
    let reasons: Vec<String> = ralph.reached_limits(now).map(|reason| reason.text()).collect();
    if reasons.is_empty() {
        return Ok(());
    }
    let message = format!("the loop of worker '{name}' is still at its limit: {}", reasons.join("; "));
    Err(Error::conflict(message).hint(raise_and_resume(name.as_str(), &ralph.raised_limits())))
}

/// The limits to raise before a loop that ended at a limit can continue; `None` if it cannot.
pub(crate) fn limits_to_raise(slot: &Slot) -> Option<Vec<String>> {
    let ralph = slot.engine.ralph()?;
    let can_continue = slot.engine.ended_at_limit() && slot.origin.legacy.is_none();
    (can_continue && refuse_without_files(slot).is_ok()).then(|| ralph.raised_limits())
}

/// Refuses to continue a loop without its directory, prompt or baseline.
fn refuse_without_files(slot: &Slot) -> Result<()> {
    let name = &slot.spec.name;
    let loop_run = loop_run_of(slot);
    if !loop_run.cwd.is_dir() {
        let what = if slot.worktree.is_some() { "worktree" } else { "directory" };
        let message = format!("the {what} of worker '{name}' does not exist: {}", loop_run.cwd.display());
        return Err(Error::conflict(message)
            .hint(format!("to start the loop again from the first iteration: swarm respawn {name}")));
    }
    prompt::next(&slot.spec)
        .map_err(|e| Error::conflict(e).hint(format!("restore the file, then swarm ralph resume {name}")))?;
    // `ralph clean` deletes it with the task and the results.
    if slot.engine.ralph().is_some_and(|ralph| ralph.worked) && loop_run.read_base().is_none() {
        return Err(loop_run.no_base());
    }
    Ok(())
}

pub(crate) fn has_ended(slot: &Slot) -> Error {
    let name = &slot.spec.name;
    let reason = match slot.engine.phase() {
        Phase::Stopped { reason } => format!(" ({})", reason.text()),
        _ => String::new(),
    };
    let again = if slot.origin.legacy.is_some() { "spawn --ralph --name" } else { "respawn" };
    Error::conflict(format!("the loop of worker '{name}' has ended{reason}"))
        .hint(format!("to start it again from the first iteration: swarm {again} {name}"))
}
