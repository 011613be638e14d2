//! Transitions for the daemon's reports about a run: started, adopted, exited, lost, prompt delivered.

use std::time::Duration;

use super::{Effect, Now, PROMPT_TIMEOUT, Phase, SpawnError, Trouble, TroubleKind, Watch, Why, Worker};
use crate::model::Exit;
use crate::notice::{Entry, IterationExit, StopReason};
use crate::screen::Blocked;

impl Worker {
    pub(super) fn up(&mut self, now: Now) -> Vec<Effect> {
        let Phase::Spawning { doomed } = self.phase else { return vec![] };
        if doomed {
            return self.end(Why::Kill, now);
        }
        self.note_up(now);
        self.note_agent();
        let watch = Watch::default();
        self.phase = if self.policy.paste || self.policy.ready_wait {
            let ready_by = Some(now.after(Duration::from_secs(self.policy.ready_timeout)));
            Phase::Starting { ready_by, watch }
        } else {
            Phase::Running { watch }
        };
        vec![Effect::Persist, Effect::Notify(Entry::Started { run: self.run.0 })]
    }

    pub(super) fn spawn_failed(&mut self, error: SpawnError, now: Now) -> Vec<Effect> {
        // The failure of the helper may be noticed only after its pane was reported.
        let was_up = matches!(error, SpawnError::Helper(_));
        let is_spawning = matches!(self.phase, Phase::Spawning { .. });
        if !(is_spawning || was_up && self.phase.is_live()) {
            return vec![];
        }
        if self.is_killed() {
            return self.stop(StopReason::Killed);
        }
        self.trouble = None;
        match (error, self.ralph.is_some()) {
            (SpawnError::Prompt(message), true) => self.stop(StopReason::Prompt(message)),
            (SpawnError::Prompt(message), false) => {
                self.after_failed_start(StopReason::Prompt(message.clone()), message, now)
            }
            (SpawnError::Other(message) | SpawnError::Helper(message), false) => {
                self.after_failed_start(StopReason::SpawnFailed(message.clone()), message, now)
            }
            (SpawnError::OutOfTime, _) => self.never_worked(now),
            (SpawnError::NoGate, _) => self.without_work(StopReason::NoGate, now),
            (SpawnError::NoStory(why), _) => self.without_work(StopReason::NoStory(why), now),
            (SpawnError::StoriesApproved, _) => self.without_work(StopReason::StoriesApproved, now),
            (SpawnError::Helper(message) | SpawnError::Other(message), true) => {
                self.after_failure(IterationExit::SpawnFailed, Some(message), !was_up, now)
            }
        }
    }

    pub(super) fn adopted(&mut self, now: Now) -> Vec<Effect> {
        match &mut self.phase {
            Phase::Spawning { .. } => self.up(now),
            // The prompt may have been delivered, and the person may be at the pane.
            Phase::Prompting { .. } if !self.hold.is_none() => {
                self.seen_alive();
                self.prompt_blocked(None, now)
            }
            // The prompt may have been delivered; the daemon keeps a mark and does not paste twice.
            Phase::Prompting { .. } => {
                self.seen_alive();
                self.phase = Phase::Prompting { by: now.after(PROMPT_TIMEOUT) };
                vec![Effect::Deliver(self.run)]
            }
            Phase::Ending { .. } => vec![Effect::Terminate(self.run)],
            Phase::Evaluating { .. } => vec![Effect::Evaluate(self.run)],
            // The worker was considered lost, but its pane lives.
            Phase::Lost => {
                self.phase = Phase::Running { watch: Watch::default() };
                self.last_exit = None;
                vec![Effect::Persist]
            }
            Phase::Starting { watch, .. } | Phase::Running { watch } => {
                watch.typing = 0;
                self.seen_alive();
                vec![]
            }
            // An orphaned pane. Its run is evaluated, so SIGKILL is sent at once; no deadline would follow a SIGTERM.
            Phase::Idle | Phase::BackingOff { .. } | Phase::Parked | Phase::Stopped { .. } => {
                vec![Effect::ForceKill(self.run)]
            }
        }
    }

    pub(super) fn never_started(&mut self, now: Now) -> Vec<Effect> {
        let Phase::Spawning { doomed } = self.phase else { return vec![] };
        if doomed {
            return self.spawn_failed(SpawnError::Other("never started".into()), now);
        }
        // The iteration was counted, but no agent worked on it.
        self.undo_iteration();
        self.unstarted += 1;
        match self.held_back(now) {
            Some(effects) => effects,
            None => {
                // A new number: later reports of the previous start do not belong to this run.
                self.run = self.run.next();
                self.launch(now)
            }
        }
    }

    pub(super) fn exited(&mut self, exit: Exit, now: Now) -> Vec<Effect> {
        if !self.phase.is_live() {
            return vec![];
        }
        let before_prompt = matches!(self.phase, Phase::Starting { .. } | Phase::Prompting { .. });
        let why = if self.phase.has_agent() && self.evidence.done && exit == Exit::Lost {
            // The pattern had matched, and swarm waited for silence only: a pane that vanished is silent.
            Some(Why::Done)
        } else if before_prompt {
            self.misses_prompt(exit).then_some(Why::Undelivered)
        } else {
            self.phase.end_reason()
        };
        self.count_lifetime(now);
        self.note_agent();
        self.phase = Phase::Evaluating { exit, why };
        self.last_exit = Some(exit);
        self.trouble = None;
        vec![Effect::Persist, Effect::Evaluate(self.run)]
    }

    pub(super) fn server_lost(&mut self, now: Now) -> Vec<Effect> {
        if !self.phase.is_live() {
            return vec![];
        }
        let killed = self.is_killed();
        let has_input = !matches!(self.phase, Phase::Spawning { .. } | Phase::Prompting { .. });
        // If the pattern had matched, the work is done even though the server is gone. A worker with a restart policy
        // treats the loss as a failure and gets a new server.
        if !killed && (self.restarts.is_some() || self.evidence.done && has_input) {
            return self.exited(Exit::Lost, now);
        }
        self.last_exit = Some(Exit::Unknown);
        self.trouble = None;
        self.drop_typed_hold(now);
        if killed {
            return self.stop(StopReason::Killed);
        }
        self.phase = Phase::Lost;
        // The server is gone, so it does not count as unresponsive.
        self.reachable = true;
        vec![Effect::Persist, Effect::Notify(Entry::Lost { reason: "the tmux server went away".into() })]
    }

    /// A dialog, or something unknown, replaced the input box: the run waits for the box again.
    pub(super) fn prompt_blocked(&mut self, dialog: Option<Blocked>, now: Now) -> Vec<Effect> {
        let Phase::Prompting { .. } = self.phase else { return vec![] };
        if self.is_held() {
            // The prompt is delivered after the release.
            let ready_by = Some(now.after(Duration::from_secs(self.policy.ready_timeout)));
            self.phase = Phase::Starting { ready_by, watch: Watch::default() };
            return vec![Effect::Persist];
        }
        self.phase = Phase::Starting { ready_by: None, watch: Watch::default() };
        match dialog {
            Some(Blocked { startup: true, what }) => self.need_person(TroubleKind::Startup, &what, now),
            Some(Blocked { startup: false, what }) => self.need_person(TroubleKind::Dialog, &what, now),
            None => self.need_person(
                TroubleKind::NotReady,
                "its input box disappeared while the prompt was sent",
                now,
            ),
        }
    }

    /// Whether the agent of a loop exited before it had its prompt, with a status that looks like success.
    fn misses_prompt(&mut self, exit: Exit) -> bool {
        let Some(ralph) = self.ralph.as_mut().filter(|_| self.policy.paste && exit.is_success()) else {
            return false;
        };
        ralph.detail = Some("the agent exited with status 0 before it received its prompt".into());
        true
    }

    pub(super) fn prompt_over(&mut self, failed: Option<String>, now: Now) -> Vec<Effect> {
        if let (Phase::Evaluating { why: why @ Some(Why::Undelivered), .. }, Some(ralph), None) =
            (&mut self.phase, &mut self.ralph, &failed)
        {
            // The agent had its prompt and exited, and the exit was reported first.
            (*why, ralph.detail) = (None, None);
            return vec![Effect::Persist];
        }
        if !matches!(self.phase, Phase::Prompting { .. }) {
            return vec![];
        }
        if failed.is_some() && self.is_held() {
            // The person's text, or the hold itself, was in the way.
            return self.prompt_blocked(None, now);
        }
        let run = self.run.0;
        let Some(message) = failed else {
            self.phase = Phase::Running { watch: Watch::default() };
            return vec![Effect::Persist, Effect::Notify(Entry::PromptSent { run })];
        };
        let what = format!("prompt not delivered: {message}");
        let notify = Effect::Notify(Entry::PromptFailed { run, message });
        if self.ralph.is_some() {
            let mut effects = self.end_because(Why::Undelivered, what, now);
            effects.push(notify);
            return effects;
        }
        // A person may still give it to a plain worker's agent.
        self.phase = Phase::Running { watch: Watch::default() };
        self.trouble = Some(Trouble { kind: TroubleKind::Prompt, what, since: None });
        vec![Effect::Persist, notify]
    }
}
