//! The transitions: what the world reports of a run's life. Each a full match over the phases.

use std::time::Duration;

use super::{Effect, Kind, Now, PROMPT_TIMEOUT, Phase, SpawnError, Trouble, Watch, Why, Worker};
use crate::model::Exit;
use crate::notice::{Entry, IterationExit, StopReason};
use crate::screen::Blocked;

impl Worker {
    pub(super) fn up(&mut self, now: Now) -> Vec<Effect> {
        match self.phase {
            Phase::Spawning { doomed: true } => self.end(Why::Kill, now),
            Phase::Spawning { doomed: false } => {
                self.note_up(now);
                self.note_agent();
                let watch = Watch::default();
                self.phase = if self.policy.paste || self.policy.ready_wait {
                    let ready_by = Some(now.after(Duration::from_secs(self.policy.ready_timeout)));
                    Phase::Starting { ready_by, watch }
                } else {
                    Phase::Running { watch }
                };
                vec![Effect::Persist, Effect::Tell(Entry::Started { run: self.run.0 })]
            }
            Phase::Idle
            | Phase::Starting { .. }
            | Phase::Prompting { .. }
            | Phase::Running { .. }
            | Phase::Ending { .. }
            | Phase::Judging { .. }
            | Phase::BackingOff { .. }
            | Phase::Parked
            | Phase::Lost
            | Phase::Stopped { .. } => vec![],
        }
    }

    pub(super) fn spawn_failed(&mut self, error: SpawnError, now: Now) -> Vec<Effect> {
        // That the helper failed may be seen only after its pane was reported.
        let was_up = matches!(error, SpawnError::Helper(_));
        let killed = match self.phase {
            Phase::Spawning { doomed } => doomed,
            Phase::Ending { why, .. } if was_up => why == Why::Kill,
            Phase::Starting { .. } | Phase::Prompting { .. } | Phase::Running { .. } if was_up => false,
            Phase::Idle
            | Phase::Starting { .. }
            | Phase::Prompting { .. }
            | Phase::Running { .. }
            | Phase::Ending { .. }
            | Phase::Judging { .. }
            | Phase::BackingOff { .. }
            | Phase::Parked
            | Phase::Lost
            | Phase::Stopped { .. } => return vec![],
        };
        if killed {
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
            (SpawnError::NoGate, _) => self.without_gate(now),
            (SpawnError::Helper(message), true) => self.helper_failed(message, now),
            (SpawnError::Other(message), true) => {
                self.after_failure(IterationExit::SpawnFailed, Some(message), now)
            }
        }
    }

    pub(super) fn adopted(&mut self, now: Now) -> Vec<Effect> {
        match &mut self.phase {
            Phase::Spawning { .. } => self.up(now),
            // Whether the prompt went in is not known here; the edge keeps a mark and will not paste twice.
            Phase::Prompting { .. } => {
                self.seen_alive();
                self.phase = Phase::Prompting { by: now.after(PROMPT_TIMEOUT) };
                vec![Effect::Deliver(self.run)]
            }
            Phase::Ending { .. } => vec![Effect::Terminate(self.run)],
            Phase::Judging { .. } => vec![Effect::Judge(self.run)],
            // It was taken for lost and is not.
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
            // A pane that should not be there any more. Its run is over and judged, so no grace is due; and
            // no deadline would follow a gentler way up.
            Phase::Idle | Phase::BackingOff { .. } | Phase::Parked | Phase::Stopped { .. } => {
                vec![Effect::ForceKill(self.run)]
            }
        }
    }

    pub(super) fn never_started(&mut self, now: Now) -> Vec<Effect> {
        match self.phase {
            // The iteration was counted but nobody worked on it.
            Phase::Spawning { doomed: false } => {
                self.give_back();
                match self.held_back(now) {
                    Some(effects) => effects,
                    None => self.launch(now),
                }
            }
            Phase::Spawning { doomed: true } => {
                self.spawn_failed(SpawnError::Other("never started".into()), now)
            }
            Phase::Idle
            | Phase::Starting { .. }
            | Phase::Prompting { .. }
            | Phase::Running { .. }
            | Phase::Ending { .. }
            | Phase::Judging { .. }
            | Phase::BackingOff { .. }
            | Phase::Parked
            | Phase::Lost
            | Phase::Stopped { .. } => vec![],
        }
    }

    pub(super) fn exited(&mut self, exit: Exit, now: Now) -> Vec<Effect> {
        let why = match self.phase {
            Phase::Spawning { doomed } => doomed.then_some(Why::Kill),
            // The pattern had matched and only quiet was waited for: a pane that vanished is quiet.
            Phase::Starting { .. } | Phase::Prompting { .. } | Phase::Running { .. }
                if self.evidence.done && exit == Exit::Lost =>
            {
                Some(Why::Done)
            }
            Phase::Starting { .. } | Phase::Prompting { .. } => {
                self.misses_prompt(exit).then_some(Why::Undelivered)
            }
            Phase::Running { .. } => None,
            Phase::Ending { why, .. } => Some(why),
            Phase::Idle
            | Phase::Judging { .. }
            | Phase::BackingOff { .. }
            | Phase::Parked
            | Phase::Lost
            | Phase::Stopped { .. } => return vec![],
        };
        self.note_life(now);
        self.note_agent();
        self.phase = Phase::Judging { exit, why };
        self.last_exit = Some(exit);
        self.trouble = None;
        vec![Effect::Persist, Effect::Judge(self.run)]
    }

    pub(super) fn server_lost(&mut self, now: Now) -> Vec<Effect> {
        let killed = match self.phase {
            Phase::Spawning { doomed } => doomed,
            // The pattern had matched: what was asked is done, whatever became of the server.
            Phase::Starting { .. } | Phase::Running { .. } if self.evidence.done => {
                return self.exited(Exit::Lost, now);
            }
            Phase::Ending { why, .. } if self.evidence.done && why != Why::Kill => {
                return self.exited(Exit::Lost, now);
            }
            Phase::Starting { .. } | Phase::Prompting { .. } | Phase::Running { .. } => false,
            Phase::Ending { why, .. } => why == Why::Kill,
            Phase::Idle
            | Phase::Judging { .. }
            | Phase::BackingOff { .. }
            | Phase::Parked
            | Phase::Lost
            | Phase::Stopped { .. } => return vec![],
        };
        if self.restarts.is_some() && !killed {
            // A failure like another: its policy says what follows, and a new server is made for it.
            return self.exited(Exit::Lost, now);
        }
        self.last_exit = Some(Exit::Unknown);
        self.trouble = None;
        if killed {
            return self.stop(StopReason::Killed);
        }
        self.phase = Phase::Lost;
        // There is no server any more that could fail to answer.
        self.reachable = true;
        vec![Effect::Persist, Effect::Tell(Entry::Lost { reason: "the tmux server went away".into() })]
    }

    /// A dialog, or something unknown, replaced the input box: the run waits for the box as it did before.
    pub(super) fn prompt_blocked(&mut self, dialog: Option<Blocked>, now: Now) -> Vec<Effect> {
        let Phase::Prompting { .. } = self.phase else { return vec![] };
        self.phase = Phase::Starting { ready_by: None, watch: Watch::default() };
        match dialog {
            Some(Blocked { startup: true, what }) => self.troubled(Kind::Startup, &what, now),
            Some(Blocked { startup: false, what }) => self.troubled(Kind::Dialog, &what, now),
            None => self.troubled(Kind::NotReady, "its input box disappeared while the prompt was sent", now),
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
        match (&mut self.phase, &mut self.ralph) {
            (Phase::Prompting { .. }, _) => {}
            // The agent exited on its prompt, and that was reported first.
            (Phase::Judging { why: why @ Some(Why::Undelivered), .. }, Some(ralph)) if failed.is_none() => {
                (*why, ralph.detail) = (None, None);
                return vec![Effect::Persist];
            }
            (
                Phase::Judging { .. }
                | Phase::Idle
                | Phase::Spawning { .. }
                | Phase::Starting { .. }
                | Phase::Running { .. }
                | Phase::Ending { .. }
                | Phase::BackingOff { .. }
                | Phase::Parked
                | Phase::Lost
                | Phase::Stopped { .. },
                _,
            ) => return vec![],
        }
        let run = self.run.0;
        let Some(message) = failed else {
            self.phase = Phase::Running { watch: Watch::default() };
            return vec![Effect::Persist, Effect::Tell(Entry::PromptSent { run })];
        };
        let what = format!("prompt not delivered: {message}");
        let told = Effect::Tell(Entry::PromptFailed { run, message });
        if self.ralph.is_some() {
            let mut effects = self.end_because(Why::Undelivered, what, now);
            effects.push(told);
            return effects;
        }
        // A person may still give it to a plain worker's agent.
        self.phase = Phase::Running { watch: Watch::default() };
        self.trouble = Some(Trouble { kind: Kind::Prompt, what, since: None });
        vec![Effect::Persist, told]
    }
}
