//! The supervisor's loop: receives one input after another and passes each to the code that handles it.

use swarm_state::engine::Event;
use swarm_state::model::WorkerName;
use swarm_state::notice::PauseBy;
use tokio::sync::mpsc;

use crate::daemon::messages::{DaemonEnd, DaemonInput, EndedSupervisor, PromptOutcome, RunReport};
use crate::daemon::slot::{Recovery, Slot};
use crate::daemon::supervisor::Supervisor;

/// How long the end of the daemon waits for the end of an empty tmux server.
const TMUX_SHUTDOWN_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(2);

impl Supervisor {
    /// Handles inputs until the daemon ends. Returns the lock.
    pub(crate) async fn run(mut self, mut inputs: mpsc::UnboundedReceiver<DaemonInput>) -> EndedSupervisor {
        loop {
            self.look_if_due();
            self.check_quotas();
            self.observe_states();
            self.observe_clients();
            let sleep = self.sleep();
            self.planned = sleep;
            let input = tokio::time::timeout(sleep, inputs.recv()).await;
            self.advance_clock();
            match input {
                Ok(Some(input)) => self.handle(input),
                // The supervisor holds a sender itself, so the inbox cannot close.
                Ok(None) => return self.into_ended(DaemonEnd::Stop),
                Err(_) => self.tick(),
            }
            if let Some(end) = self.ended {
                self.stop_empty_tmux(end).await;
                return self.into_ended(end);
            }
        }
    }

    fn into_ended(self, end: DaemonEnd) -> EndedSupervisor {
        let agents = self.slots.values().filter(|slot| slot.engine.has_pane()).count();
        EndedSupervisor { end, lock: self.lock, agents: agents.try_into().unwrap_or(u32::MAX) }
    }

    /// Ends swarm's own tmux server if it is empty and no other daemon takes over.
    async fn stop_empty_tmux(&self, end: DaemonEnd) {
        let in_use = self.slots.values().any(|s| s.spec.tmux_socket.is_none() && s.engine.has_pane());
        let server = self.servers.get(&None).filter(|_| end == DaemonEnd::Stop && !in_use);
        if let Some(server) = server {
            // A server that does not answer is left running.
            drop(tokio::time::timeout(TMUX_SHUTDOWN_TIMEOUT, server.tmux.shutdown_if_empty()).await);
        }
    }

    fn tick(&mut self) {
        for name in self.names(|slot| slot.engine.deadline().is_some_and(|at| at <= self.awake)) {
            self.step(&name, Event::Tick);
        }
    }

    fn handle(&mut self, input: DaemonInput) {
        // A look at quiet screens must not cause another wake-up. The next look observes changes without effects.
        self.notifying.is_stale |= !matches!(input, DaemonInput::Looked(_));
        match input {
            DaemonInput::Call { call, peer, reply } => {
                self.check_owner();
                // The caller gets the error of a daemon that ends.
                if self.ended.is_none() {
                    self.call(*call, peer, reply);
                }
            }
            DaemonInput::Subscribe { params, reply } => {
                drop(reply.send(self.subscribe(params)));
            }
            DaemonInput::Report { worker, incarnation, report } => self.report(&worker, incarnation, *report),
            DaemonInput::Looked(looked) => self.looked(*looked),
            DaemonInput::Found { socket, found, look } => self.reconcile_late(&socket, &found, look),
            DaemonInput::Swept { socket, found } => self.swept(&socket, &found),
            DaemonInput::Respawn(wish) => self.continue_respawn(*wish),
            DaemonInput::Cleaned(cleaning) => self.cleaned(*cleaning),
            DaemonInput::Discarded(discard) => self.discarded(*discard),
            DaemonInput::TakeOver { name, peer, outcome, reply } => {
                self.finish_legacy_resume(&name, peer, outcome, reply)
            }
            DaemonInput::Dismiss { name, outcome, reply } => self.finish_legacy_clean(&name, outcome, reply),
            DaemonInput::DirectoryTouched => self.directory_touched(),
            DaemonInput::CheckOwner => self.check_owner(),
            DaemonInput::RemovalSettled(touch) => self.removal_settled(touch),
            DaemonInput::Clients { listed, announce } => self.clients_listed(&listed, announce),
            DaemonInput::End(end) => self.end_daemon(end),
        }
    }

    /// Ends the daemon after this input.
    pub(crate) fn end_daemon(&mut self, end: DaemonEnd) {
        if end == DaemonEnd::Stop {
            self.pause_all();
        }
        self.notices.flush_log();
        self.ended = Some(end);
    }

    fn report(&mut self, name: &WorkerName, incarnation: u64, report: RunReport) {
        // Each worker of a name numbers its runs from 1, so the run number does not identify the worker.
        let own = |slot: &&mut Slot| slot.driver.context.incarnation == incarnation;
        let Some(slot) = self.slots.get_mut(name).filter(own) else { return };
        let event = match report {
            RunReport::WorktreeMade(worktree) => {
                slot.worktree = Some(worktree);
                return self.save(name);
            }
            RunReport::WorktreeGone => {
                slot.worktree = None;
                return self.save(name);
            }
            RunReport::Forced(names) => return slot.waiting.forced.extend(names),
            RunReport::Unstored(why) => return slot.saving.output_error = Some(why),
            RunReport::Limits(figures) => return self.note_figures(name, &figures),
            RunReport::AtSpawn(message) => return self.answer_loop_begun(name, vec![message], false),
            RunReport::Notice(entry) => {
                slot.note_work(&entry);
                return self.notify(name, entry);
            }
            RunReport::Begun(warnings) => return self.answer_loop_begun(name, warnings, true),
            RunReport::NoSandbox => return self.note_no_sandbox(name),
            RunReport::Silent => Event::Reachable(false),
            RunReport::Frozen => return self.answer_tmux_hangs(name),
            RunReport::Unclosed => return self.sweep_server_of(name),
            RunReport::Up(pane) => {
                let run = pane.run;
                slot.checking.clear();
                if slot.engine.run() == run {
                    slot.pane = Some(pane);
                }
                self.advance(name, Event::Reachable(true));
                Event::Up(run)
            }
            RunReport::SpawnFailed(run, error) => {
                // tmux may have created the window after the timeout.
                slot.checking.clear();
                self.sweep_server_of(name);
                self.step(name, Event::SpawnFailed(run, error));
                return self.remove_run_dir(name, run);
            }
            RunReport::Prompt(run, Ok(PromptOutcome::Accepted)) => Event::PromptSent(run),
            RunReport::Prompt(run, Ok(PromptOutcome::Blocked(dialog))) => Event::PromptBlocked(run, dialog),
            RunReport::Prompt(run, Err(error)) => Event::PromptFailed(run, error.message),
            RunReport::Event(event) => return self.step_of_run(name, event),
            RunReport::Evaluated(run, verdict) => {
                if slot.pane.as_ref().is_some_and(|p| p.run == run) {
                    slot.pane = None;
                }
                slot.saving.output_error = None;
                slot.checking.clear();
                if let Some(tasks) = &verdict.tasks {
                    slot.story = Some((tasks.turn.clone(), (tasks.done, tasks.total)));
                }
                self.note_limits(name, &verdict);
                self.advance(name, Event::Evaluated(run, verdict));
                self.remove_run_dir(name, run);
                return self.finish_stopped(name);
            }
        };
        self.step(name, event);
    }

    /// Steps a worker by what happened to its run. If the run was ending when this daemon started, the loop is resumed
    /// after a shutdown only now: it may turn out to be lost, which ends a resume.
    fn step_of_run(&mut self, name: &WorkerName, event: Event) {
        self.step(name, event);
        let Some(slot) = self.slots.get_mut(name) else { return };
        if matches!(slot.recovery, Recovery::RunEnding) {
            slot.recovery = Recovery::Done;
            self.resume_after_shutdown(name, false);
        }
    }

    fn pause_all(&mut self) {
        for name in self.names(|slot| slot.origin.legacy.is_none()) {
            self.step(&name, Event::Pause(PauseBy::Shutdown));
        }
    }
}
