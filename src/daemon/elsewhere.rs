//! Runs that the last daemon had on another machine, or before the last boot; runs that started no agent.

use swarm_state::engine::{Event, Phase, Worker};
use swarm_state::model::{Run, WorkerName};
use swarm_state::notice::Entry;
use swarm_state::owner::{Kinship, MachineId};
use swarm_state::reconcile::{self, RunEvidence};

use crate::daemon::run::exit;
use crate::daemon::supervisor::Supervisor;
use crate::{owner, wrapper};

impl Supervisor {
    /// Ends the run of a worker whose record was written on another machine, or before the last boot. Nothing here is
    /// matched with its process ids. Its files are shared: an exit that its wrapper recorded counts.
    pub(crate) fn end_run_elsewhere(&mut self, name: &WorkerName, machine: &MachineId) {
        let Some(slot) = self.slots.get_mut(name) else { return };
        let (run, dir) = (slot.engine.run(), slot.driver.context.run_dir(slot.engine.run()));
        let record = wrapper::read_exit(&dir);
        // A wrapper that has not read its launch file does not find it any more.
        let withdrawn = wrapper::withdraw_launch(&dir);
        let seen = RunEvidence {
            recorded: record.as_ref().map(exit::exit_of),
            unstarted: record.as_ref().is_some_and(|record| record.helper),
            closed_under_it: record.as_ref().is_some_and(|record| record.hup),
            started: !withdrawn || wrapper::started(&dir).is_some(),
            unread: !wrapper::has_read_launch(&dir),
            same_server: Some(false),
            ..RunEvidence::default()
        };
        let Some(event) = finding(&slot.engine, seen) else { return };
        tracing::info!(worker = %name, host = machine.host, ?seen, ?event, "its run was on another machine");
        if matches!(event, Event::ServerLost(_)) {
            let here = owner::here();
            let message = match here.kinship(machine) {
                Kinship::Rebooted => format!("run {run} is lost: {} was started again", here.host),
                Kinship::Here | Kinship::SameKernel | Kinship::Away => {
                    slot.origin.lost_with = Some(machine.host.clone());
                    format!("run {run} is lost: the host {} was replaced by {}", machine.host, here.host)
                }
            };
            self.notify(name, Entry::Warning { message });
        }
        self.step_found(name, run, event);
    }

    /// Steps a worker by the end of its last run. If that started no agent, removes its files.
    pub(crate) fn step_found(&mut self, name: &WorkerName, run: Run, event: Event) {
        if !matches!(event, Event::NeverStarted(_) | Event::SpawnFailed(..)) {
            return self.step(name, event);
        }
        // A late window has nothing to run and is closed.
        let socket = self.slots.get(name).and_then(|slot| slot.spec.tmux_socket.clone());
        self.schedule_sweep(&socket);
        // The next run continues with the worktree that this one was about to make.
        if let Some(worktree) = self.store.noted_worktree(name, run) {
            drop(self.store.note_worktree(name, run.next(), &worktree));
        }
        self.step(name, event);
        // Its launch file holds secrets.
        drop(self.store.remove_run_dir(name, run));
    }
}

pub(crate) fn finding(engine: &Worker, seen: RunEvidence) -> Option<Event> {
    match engine.phase() {
        // Saved, but never started.
        Phase::Idle => Some(Event::Start),
        _ => reconcile::finding(engine, seen),
    }
}
