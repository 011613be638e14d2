//! The supervisor's loop: receives one input after another and passes each to the code that handles it.

use swarm_state::engine::Event;
use swarm_state::model::WorkerName;
use swarm_state::notice::{Entry, PauseBy};
use tokio::sync::mpsc;

use crate::daemon::messages::{End, Input, Prompted, Report};
use crate::daemon::slot::Slot;
use crate::daemon::supervisor::Supervisor;
use crate::store::DaemonLock;

/// How long the end of the daemon waits for the end of an empty tmux server.
const LEAVE: std::time::Duration = std::time::Duration::from_secs(2);

impl Supervisor {
    /// Serves until it is told to end; gives the lock back.
    pub(crate) async fn run(mut self, mut inputs: mpsc::UnboundedReceiver<Input>) -> (End, DaemonLock) {
        loop {
            self.look_if_due();
            let sleep = self.sleep();
            self.planned = sleep;
            let input = tokio::time::timeout(sleep, inputs.recv()).await;
            self.notice_time();
            match input {
                Ok(Some(input)) => self.take(input),
                // The supervisor holds a sender itself, so the inbox cannot close.
                Ok(None) => return (End::Stop, self.lock),
                Err(_) => self.tick(),
            }
            if let Some(end) = self.ended {
                self.leave_tmux(end).await;
                return (end, self.lock);
            }
        }
    }

    /// Ends our own tmux server when nothing is left in it and no daemon is to follow.
    async fn leave_tmux(&self, end: End) {
        let in_use = self.slots.values().any(|s| s.spec.tmux_socket.is_none() && s.engine.has_pane());
        let server = self.servers.get(&None).filter(|_| end == End::Stop && !in_use);
        if let Some(server) = server {
            // One that does not answer is left where it is.
            drop(tokio::time::timeout(LEAVE, server.tmux.shutdown_if_empty()).await);
        }
    }

    fn tick(&mut self) {
        let due: Vec<_> = self
            .slots
            .iter()
            .filter(|(_, s)| s.engine.deadline().is_some_and(|at| at <= self.awake))
            .map(|(name, _)| name.clone())
            .collect();
        for name in due {
            self.step(&name, Event::Tick);
        }
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Call { call, peer, reply } => self.call(*call, peer, reply),
            Input::Subscribe { params, reply } => {
                drop(reply.send(self.subscribe(params)));
            }
            Input::Report { worker, birth, report } => self.report(&worker, birth, report),
            Input::Looked(looked) => self.looked(*looked),
            Input::Found { socket, found } => self.settle_late(&socket, &found),
            Input::Swept { socket, found } => self.swept(&socket, &found),
            Input::Respawn(wish) => self.respawn_on(*wish),
            Input::Cleaned(cleaning) => self.cleaned(*cleaning),
            Input::TakeOver { name, peer, outcome, reply } => self.take_over(&name, peer, outcome, reply),
            Input::Dismiss { name, outcome, reply } => self.dismiss(&name, outcome, reply),
            Input::DirectoryTouched => self.directory_touched(),
            Input::RemovalSettled(touch) => self.removal_settled(touch),
            Input::End(end) => self.take_end(end),
        }
    }

    /// Ends the daemon after this input.
    pub(crate) fn take_end(&mut self, end: End) {
        if end == End::Stop {
            self.pause_all();
        }
        self.ended = Some(end);
    }

    fn report(&mut self, name: &WorkerName, birth: u64, report: Report) {
        // Runs are numbered anew for each worker, so the run alone does not tell whom the news is about.
        let own = |slot: &&mut Slot| slot.driver.context.birth == birth;
        let Some(slot) = self.slots.get_mut(name).filter(own) else { return };
        let event = match report {
            Report::WorktreeMade(worktree) => {
                slot.worktree = Some(worktree);
                return self.save(name);
            }
            Report::WorktreeGone => {
                slot.worktree = None;
                return self.save(name);
            }
            Report::Forced(names) => return slot.forced.extend(names),
            Report::Unstored(why) => return slot.unstored = Some(why),
            Report::Warning(message) => return self.tell(name, Entry::Warning { message }),
            Report::Told(entry) => {
                slot.checked(&entry);
                return self.tell(name, entry);
            }
            Report::Begun(warnings) => return self.answer_begun(name, warnings),
            Report::Checking(check) => return slot.checking.push(check),
            Report::Silent => Event::Reachable(false),
            Report::Frozen => return self.answer_frozen(name),
            Report::Unclosed => return self.sweep_after(name),
            Report::Up(pane) => {
                let run = pane.run;
                slot.checking.clear();
                if slot.engine.run() == run {
                    slot.pane = Some(pane);
                }
                self.advance(name, Event::Reachable(true));
                Event::Up(run)
            }
            Report::SpawnFailed(run, error) => {
                // tmux may have made the window after all.
                slot.checking.clear();
                self.sweep_after(name);
                Event::SpawnFailed(run, error)
            }
            Report::Prompt(run, Ok(Prompted::Accepted)) => Event::PromptSent(run),
            Report::Prompt(run, Ok(Prompted::Blocked(dialog))) => Event::PromptBlocked(run, dialog),
            Report::Prompt(run, Err(error)) => Event::PromptFailed(run, error.message),
            Report::Exited(run, exit) => Event::Exited(run, exit),
            Report::PaneLost(run) => Event::PaneLost(run),
            Report::ServerLost(run) => Event::ServerLost(run),
            Report::Typed(run) => Event::Typed(run),
            Report::Grew(run, ago) => Event::Grew(run, ago),
            Report::Probed(run, busy) => Event::Probed(run, busy),
            Report::Judged(run, verdict) => {
                if slot.pane.as_ref().is_some_and(|p| p.run == run) {
                    slot.pane = None;
                }
                slot.unstored = None;
                slot.checking.clear();
                self.advance(name, Event::Judged(run, verdict));
                self.leave_run(name, run);
                return self.settle(name);
            }
        };
        self.step(name, event);
    }

    fn pause_all(&mut self) {
        let ours = self.slots.iter().filter(|(_, slot)| slot.legacy.is_none());
        let names: Vec<_> = ours.map(|(name, _)| name.clone()).collect();
        for name in names {
            self.step(&name, Event::Pause(PauseBy::Shutdown));
        }
    }
}
