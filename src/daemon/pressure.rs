//! Holds new iterations while the memory pressure of the machine is above the limit of the settings.
//!
//! The kernel reports the pressure in `/proc/pressure/memory` (PSI). A held iteration is checked again every two
//! seconds; a pause or a kill drops it. Runs of plain workers start at once.

use swarm_state::model::{Run, WorkerName};

use crate::daemon::messages::MemoryPressure;
use crate::daemon::supervisor::Supervisor;
use crate::procs::memory_pressure;

impl Supervisor {
    /// Holds a run if the memory pressure is too high.
    pub(crate) fn is_held_by_pressure(&mut self, name: &WorkerName, run: Run) -> bool {
        let Some(slot) = self.slots.get_mut(name) else { return false };
        let was_held = slot.saving.pressure.take().is_some();
        let limit = slot.spec.caps.pressure.filter(|_| slot.spec.ralph.is_some());
        let Some((limit, percent)) = limit.zip(memory_pressure()).filter(|(limit, now)| now > limit) else {
            return false;
        };
        slot.saving.held_run = Some(run);
        slot.saving.pressure = Some(MemoryPressure { percent, limit });
        if !was_held {
            let message =
                format!("the iteration waits: the memory pressure is {percent} %, the limit {limit} %");
            self.answer_held(name, message);
        }
        true
    }

    /// Starts the held runs for which there is enough memory again.
    pub(crate) fn retry_held_runs(&mut self) {
        let now = self.now();
        let held = self.slots.iter_mut().filter(|(_, slot)| slot.saving.waits_for_pressure().is_some());
        let held = held.filter_map(|(name, slot)| {
            slot.engine.restart_iteration_time(now);
            Some((name.clone(), slot.saving.held_run.take()?))
        });
        for (name, run) in held.collect::<Vec<_>>() {
            self.spawn_run(&name, run);
        }
    }
}
