//! The methods of the protocol, except `spawn`, `respawn`, `kill` and `clean`, which have files of their own.
//!
//! What can be answered from memory is answered at once; what needs tmux or the disk at length runs in a
//! task of its own, which answers when it is done.

use std::sync::Arc;

use serde::Serialize;
use swarm_state::engine::{Edits, Event};
use swarm_state::model::{LoopStatus, Status, WorkerName};
use swarm_state::notice::PauseBy;
use tokio::sync::oneshot;
use tokio::time::{Duration, Instant};

use super::asker::refuse_own;
use super::driver::Job;
use super::legacy;
use super::output;
use super::slot::{Letter, Mail, Reply, Slot};
use super::supervisor::{End, Input, Supervisor};
use super::views;
use crate::error::{Error, ErrorCode, Result};
use crate::protocol::{
    AttachView, Call, Changed, Cleaned, DaemonStopped, DaemonView, Empty, Listing, Named, RalphCleanParams,
    RalphSetParams, RalphView, ResumeParams, SendParams, VERSION,
};

/// How long a text waits for an agent that comes up; less than its sender waits for the answer.
const HOLD: Duration = Duration::from_secs(60);

impl Supervisor {
    /// Carries out one call.
    pub(super) fn call(&mut self, call: Call, peer: Option<i32>, reply: Reply) {
        match call {
            Call::Spawn(params) => self.spawn(*params, peer, reply),
            Call::Respawn(params) => self.respawn(params, peer, reply),
            Call::Kill(params) => self.kill(params, reply),
            Call::Ls(Empty {}) => Self::answer(reply, Ok(self.listing())),
            Call::Status(Named { name }) => {
                Self::answer(reply, self.find(&name).map(|(_, s)| views::whole(s)))
            }
            Call::Peek(params) => match self.find(&params.name) {
                Ok((_, slot)) => output::peek(slot, params.lines, reply),
                Err(error) => Self::answer::<()>(reply, Err(error)),
            },
            Call::Logs(params) => match self.find(&params.name) {
                Ok((_, slot)) => output::logs(slot, &params, reply),
                Err(error) => Self::answer::<()>(reply, Err(error)),
            },
            Call::Send(params) => self.send(params, reply),
            Call::Interrupt(Named { name }) => self.interrupt(&name, reply),
            Call::Eof(Named { name }) => self.eof(&name, reply),
            Call::Clean(params) => self.clean(params, peer, reply),
            Call::Attach(Named { name }) => Self::answer(reply, self.attach(&name)),
            Call::RalphPause(Named { name }) => Self::answer(reply, self.pause(&name)),
            Call::RalphResume(params) => match self.change_env(&params, peer) {
                Ok(()) => self.resume_any(&params.name, peer, reply),
                Err(error) => Self::answer::<()>(reply, Err(error)),
            },
            Call::RalphStatus(Named { name }) => Self::answer(reply, self.ralph_status(&name)),
            Call::RalphSet(params) => Self::answer(reply, self.ralph_set(&params, peer)),
            Call::RalphLogs(params) => match self.find_loop(&params.name) {
                Ok((_, slot)) => output::iterations(slot, &params, reply),
                Err(error) => Self::answer::<()>(reply, Err(error)),
            },
            Call::RalphReport(params) => self.ralph_report(&params, reply),
            Call::RalphDiff(params) => self.ralph_diff(&params, reply),
            Call::RalphRestore(params) => self.ralph_restore(params, reply),
            Call::RalphApprove(Named { name }) => self.ralph_approve(&name, peer, reply),
            Call::Hook(params) => Self::answer(reply, Ok(self.hook(&params, peer))),
            Call::RalphClean(params) => Self::answer(reply, self.ralph_clean(&params, peer)),
            Call::DaemonStatus(Empty {}) => self.daemon_status(reply),
            Call::DaemonStop(Empty {}) => self.daemon_stop(reply),
            Call::DaemonHandover(Empty {}) => {
                Self::answer(reply, Ok(Empty {}));
                drop(self.inbox.send(Input::End(End::Handover)));
            }
            // The server hands subscriptions over as an input of their own.
            Call::Subscribe(_) => {
                Self::answer::<()>(reply, Err(Error::new(ErrorCode::Internal, "subscribe is no plain call")));
            }
        }
    }

    fn listing(&self) -> Listing {
        Listing {
            workers: views::workers(self.slots.values()),
            problems: self
                .problems
                .iter()
                .map(|p| p.message.clone())
                .chain(views::unsaved(self.slots.values()))
                .collect(),
        }
    }

    // ---- the pane ----

    /// Types a text, at once or as soon as the agent is ready: one that only comes up throws away what is
    /// typed, and its prompt comes first.
    fn send(&mut self, params: SendParams, reply: Reply) {
        match self.find(&params.name).and_then(|(_, slot)| Ok((pane_of(slot)?, slot))) {
            Err(error) => Self::answer::<()>(reply, Err(error)),
            Ok((_, slot)) if slot.engine.comes_up() => {
                slot.letters.push(Letter { what: Mail::Text(params), reply, until: Instant::now() + HOLD });
            }
            Ok((_, slot)) if slot.engine.is_ending() => {
                let message =
                    format!("nothing was sent, since the run of worker '{}' is ending", params.name);
                let error = Error::new(ErrorCode::Conflict, message).hint("send it again in a moment");
                Self::answer::<()>(reply, Err(error));
            }
            Ok((pane, slot)) => {
                let (done, outcome) = oneshot::channel();
                let reader = slot.reader.clone();
                let (name, run) = (slot.spec.name.clone(), pane.run);
                slot.driver.push(Job::Type { pane, reader, what: params, reply: done });
                answer_later(outcome, reply);
                self.step(&name, Event::Typing(run));
            }
        }
    }

    /// Types what had to wait until the agent was ready, or says why it was not typed.
    pub(super) fn release_letters(&mut self, name: &WorkerName) {
        let Some(slot) = self.slots.get_mut(name).filter(|s| !s.letters.is_empty()) else { return };
        let waits = slot.engine.comes_up();
        let status = slot.engine.status();
        let (kept, due) = std::mem::take(&mut slot.letters)
            .into_iter()
            .partition(|letter| waits && Instant::now() < letter.until);
        slot.letters = kept;
        let why = slot.engine.reason().filter(|_| waits || status == Status::Waiting);
        for Letter { what, reply, .. } in due {
            if !waits && status != Status::Waiting {
                match what {
                    Mail::Text(params) => self.send(params, reply),
                    Mail::Eof(name) => self.eof(&name, reply),
                }
                continue;
            }
            let why = why.as_deref().unwrap_or("it is still coming up");
            let message = format!("nothing was sent, since worker '{name}' is not ready: {why}");
            let error = Error::new(ErrorCode::Timeout, message).hint(format!("swarm peek {name}"));
            Self::answer::<()>(reply, Err(error));
        }
    }

    fn interrupt(&mut self, name: &str, reply: Reply) {
        match self.find(name).and_then(|(_, slot)| Ok((pane_of(slot)?, slot))) {
            Err(error) => Self::answer::<()>(reply, Err(error)),
            Ok((pane, slot)) => {
                // Beside the queue: a delivery that hangs is what one wants to interrupt.
                let tmux = slot.driver.context.tmux.clone();
                tokio::spawn(async move {
                    let outcome = tmux.keys(&pane.id, &["C-c"]).await;
                    Self::answer(reply, outcome.map(|()| Empty {}));
                });
            }
        }
    }

    /// Behind what was sent before it, which it ends.
    fn eof(&mut self, name: &str, reply: Reply) {
        match self.find(name).and_then(|(_, slot)| Ok((pane_of(slot)?, slot))) {
            Err(error) => Self::answer::<()>(reply, Err(error)),
            Ok((_, slot)) if slot.engine.comes_up() => {
                let until = Instant::now() + HOLD;
                slot.letters.push(Letter { what: Mail::Eof(name.to_owned()), reply, until });
            }
            Ok((pane, slot)) => {
                let (done, outcome) = oneshot::channel();
                let reader = slot.reader.clone();
                slot.driver.push(Job::Eof { pane, reader, reply: done });
                answer_later(outcome, reply);
            }
        }
    }

    fn attach(&mut self, name: &str) -> Result<AttachView> {
        let (_, slot) = self.find(name)?;
        let pane = pane_of(slot)?;
        Ok(AttachView {
            socket: slot.driver.context.tmux.socket_path(),
            session: "swarm".into(),
            window: pane.window,
            pane: pane.id,
            size: slot.spec.size,
        })
    }

    // ---- loops ----

    /// A loop by the text a client sent; anything else is the document's error.
    pub(super) fn find_loop(&mut self, text: &str) -> Result<(WorkerName, &mut Slot)> {
        WorkerName::new(text).map_err(|e| Error::invalid(e.to_string()))?;
        match self.find(text) {
            Ok((name, slot)) if slot.engine.ralph().is_some() => Ok((name, slot)),
            Ok(_) | Err(_) => {
                Err(Error::invalid(format!("worker '{text}' is not a ralph worker")).hint("swarm ralph ls"))
            }
        }
    }

    fn ralph_status(&mut self, name: &str) -> Result<RalphView> {
        let (name, _) = self.find_loop(name)?;
        self.absorb_edits(&name);
        let view = self.slots.get(&name).and_then(views::ralph);
        view.ok_or_else(|| Error::new(ErrorCode::Internal, "a loop without numbers"))
    }

    fn pause(&mut self, name: &str) -> Result<Changed> {
        let (name, slot) = self.find_loop(name)?;
        let before = status_of(slot)?;
        if let Some(refusal) = legacy::left_alone(slot) {
            return Err(refusal);
        }
        if slot.engine.is_stopped() {
            let message = format!("the loop of worker '{name}' is over ({before})");
            return Err(Error::new(ErrorCode::Conflict, message).hint(format!("swarm ralph status {name}")));
        }
        let changed = before != LoopStatus::Paused;
        if changed {
            self.step_kept(&name, |_| Ok(Event::Pause(PauseBy::User)))?;
        }
        Ok(Changed { changed, before, warnings: self.save_warnings(&name) })
    }

    /// Sets variables for the next runs of a loop that has not ended.
    fn change_env(&mut self, params: &ResumeParams, peer: Option<i32>) -> Result<()> {
        let (name, slot) = self.find_loop(&params.name)?;
        if params.env.is_empty() || slot.engine.is_stopped() {
            return Ok(());
        }
        refuse_own(slot, peer, "change its own loop")?;
        if let Some(refusal) = legacy::left_alone(slot) {
            return Err(refusal);
        }
        if let Some(key) = params.env.keys().find(|key| key.is_empty() || key.contains(['=', '\0'])) {
            return Err(Error::invalid(format!("{key:?} is not a valid variable name")));
        }
        self.step_kept(&name, |slot| {
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

    pub(super) fn resume(&mut self, name: &str, peer: Option<i32>) -> Result<Changed> {
        let (name, slot) = self.find_loop(name)?;
        refuse_own(slot, peer, "resume its own loop")?;
        let before = status_of(slot)?;
        if slot.engine.is_stopped() {
            let message = format!("the loop of worker '{name}' is over ({before})");
            let anew = if slot.legacy.is_some() { "spawn --ralph --name" } else { "respawn" };
            let hint = format!("to start it anew: swarm {anew} {name}");
            return Err(Error::new(ErrorCode::Conflict, message).hint(hint));
        }
        let changed = slot.engine.can_resume();
        if changed {
            self.step_kept(&name, |_| Ok(Event::Resume))?;
        }
        Ok(Changed { changed, before, warnings: self.save_warnings(&name) })
    }

    fn ralph_set(&mut self, params: &RalphSetParams, peer: Option<i32>) -> Result<RalphView> {
        let (name, slot) = self.find_loop(&params.name)?;
        refuse_own(slot, peer, "change its own loop")?;
        if let Some(refusal) = legacy::left_alone(slot) {
            return Err(refusal);
        }
        if slot.engine.is_stopped() {
            return Err(Error::new(ErrorCode::Conflict, format!("the loop of worker '{name}' is over")));
        }
        self.step_kept(&name, |slot| super::edits::set(slot, &params.key, &params.value).map(Event::Edited))?;
        self.ralph_status(name.as_str())
    }

    fn ralph_clean(&mut self, params: &RalphCleanParams, peer: Option<i32>) -> Result<Cleaned> {
        if let Some(name) = &params.name {
            WorkerName::new(base_of(name)).map_err(|e| Error::invalid(e.to_string()))?;
        }
        let mut cleaned = Cleaned { removed: vec![], kept: vec![] };
        for dir in self.store.ralph_dirs() {
            let base = base_of(&dir);
            if params.name.as_deref().is_some_and(|wanted| wanted != base && wanted != dir) {
                continue;
            }
            let slot = WorkerName::new(base).ok().and_then(|name| self.slots.get(&name));
            let live = |s: &Slot| !s.engine.is_stopped() && s.engine.ralph().is_some();
            // What a loop is measured against goes by nobody's hand whom it measures.
            let own = slot.map_or(Ok(()), |slot| refuse_own(slot, peer, "remove what its own loop left"));
            if own.is_err() && params.name.is_some() {
                own?;
            } else if own.is_err() || dir == base && slot.is_some_and(live) {
                cleaned.kept.push(dir);
                continue;
            }
            self.store.remove_ralph_dir(&dir)?;
            cleaned.removed.push(dir);
        }
        match &params.name {
            Some(name) if cleaned.removed.is_empty() && cleaned.kept.is_empty() => {
                let known = WorkerName::new(base_of(name)).is_ok_and(|n| self.slots.contains_key(&n));
                let message = format!("no ralph state for '{name}'");
                Err(if known { Error::invalid(message) } else { Error::new(ErrorCode::NotFound, message) })
            }
            _ => Ok(cleaned),
        }
    }

    /// What a command must tell when its change could not be saved.
    fn save_warnings(&self, name: &WorkerName) -> Vec<String> {
        match self.slots.get(name) {
            Some(slot) if slot.unsaved => {
                vec!["the change holds, but could not be saved yet; swarm keeps trying".to_owned()]
            }
            Some(_) | None => vec![],
        }
    }

    // ---- the daemon ----

    fn daemon_status(&self, reply: Reply) {
        let mut view = DaemonView {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").into(),
            protocol: VERSION,
            started: self.started.to_rfc3339(),
            swarm_dir: self.store.paths().root().to_owned(),
            socket: self.store.paths().socket(),
            tmux: None,
            live: self.slots.values().filter(|s| s.is_live()).count(),
            workers: self.slots.len(),
            paused_by_shutdown: self.paused_by_shutdown(),
        };
        let tmux =
            self.slots.values().find(|s| s.spec.tmux_socket.is_none()).map(|s| s.driver.context.tmux.clone());
        tokio::spawn(async move {
            if let Some(tmux) = tmux {
                view.tmux = tmux.version().await;
            }
            Self::answer(reply, Ok(view));
        });
    }

    fn paused_by_shutdown(&self) -> Vec<String> {
        let paused = self.slots.values().filter(|s| views::paused_by_shutdown(s));
        paused.map(|s| s.spec.name.to_string()).collect()
    }

    fn daemon_stop(&mut self, reply: Reply) {
        self.take_end(End::Stop);
        let agents = self.slots.values().filter(|s| s.engine.has_pane()).count();
        let lost = self.slots.values().filter(|s| views::paused_by_shutdown(s) && s.unsaved && !s.noted);
        let warn = |slot: &Slot| {
            let name = &slot.spec.name;
            format!(
                "that the loop of worker '{name}' is paused could not be saved: it goes on with the next daemon"
            )
        };
        let warnings = lost.map(warn).collect();
        let stopped = DaemonStopped { paused: self.paused_by_shutdown(), agents, warnings };
        Self::answer(reply, Ok(stopped));
    }
}

/// The pane of a worker that runs, or why there is none.
fn pane_of(slot: &Slot) -> Result<swarm_state::model::Pane> {
    let name = &slot.spec.name;
    match &slot.pane {
        Some(pane) if slot.engine.has_pane() && pane.run == slot.engine.run() => Ok(pane.clone()),
        _ if slot.engine.has_pane() => {
            let message = format!("worker '{name}' is just starting");
            Err(Error::new(ErrorCode::Conflict, message).hint("try again in a moment"))
        }
        _ => {
            let message = format!("worker '{name}' is not running ({})", slot.engine.status());
            Err(Error::new(ErrorCode::Conflict, message).hint(format!("what it printed: swarm logs {name}")))
        }
    }
}

/// The name in `agent` and in `agent.1`, the state of an earlier loop.
fn base_of(state: &str) -> &str {
    state.split_once('.').map_or(state, |(base, _)| base)
}

fn status_of(slot: &Slot) -> Result<LoopStatus> {
    slot.engine.loop_status().ok_or_else(|| Error::new(ErrorCode::Internal, "a loop without a status"))
}

/// Answers when the driver has.
fn answer_later<T: Serialize + Send + 'static>(outcome: oneshot::Receiver<Result<T>>, reply: Reply) {
    tokio::spawn(async move {
        let outcome =
            outcome.await.unwrap_or_else(|_| Err(Error::new(ErrorCode::Internal, "the daemon is stopping")));
        Supervisor::answer(reply, outcome);
    });
}
