//! Workers of the Python predecessor: shown, but not changed until a person resumes one of its loops.
//!
//! The predecessor may still run, with windows on a tmux server of its own. Nothing here ends, pauses or writes its
//! workers. `ralph resume` takes over a loop, but only if its window is gone; from then on the loop is like any
//! other. `clean NAME` removes a worker that has ended from the list and records that beside the predecessor's file.
//! Only the usual directory of tmux sockets is searched: a predecessor with another `TMUX_TMPDIR` is not found.

use chrono::{FixedOffset, Local, NaiveDateTime, TimeZone};
use swarm_state::engine::Worker;
use swarm_state::format::{Legacy, RalphFile, Record};
use swarm_state::model::{LoopStatus, WorkerName};
use swarm_state::notice::{Entry, StopReason};

use crate::daemon::messages::DaemonInput;
use crate::daemon::reply::Reply;
use crate::daemon::slot::{self, SaveState, Slot};
use crate::daemon::supervisor::Supervisor;
use crate::error::{Error, ErrorCode, Result};
use crate::procs;
use crate::protocol::Forgotten;
use crate::store::RalphRead;
use crate::tmux::{Socket, Tmux, TmuxOptions};

impl Supervisor {
    /// The engine of a worker in the predecessor's list: lost, unless its files show that it has ended.
    pub(crate) fn legacy_engine(&self, record: &Record, legacy: &Legacy) -> Worker {
        let engine = slot::engine(&record.spec);
        let file = match self.store.read_ralph(&record.name) {
            Ok(RalphRead::Found(file, _)) if record.spec.ralph.is_some() => file,
            Ok(_) | Err(_) if legacy.status == "running" => return engine.lost(),
            Ok(_) | Err(_) => return engine.over(StopReason::Killed),
        };
        let engine = engine.counted(&file, file.last_iteration_started.and_then(local));
        match file.status {
            LoopStatus::Running | LoopStatus::Paused => engine.lost(),
            LoopStatus::Stopped => engine.over(stopped(&file)),
            LoopStatus::Failed => engine.over(StopReason::Failures(file.consecutive_failures)),
        }
    }

    /// Resumes a loop. For a loop of the predecessor, first checks that it does not run there any more.
    pub(crate) fn resume_loop(&mut self, text: &str, peer: Option<i32>, reply: Reply) {
        let found = self.find_loop(text).ok();
        let theirs = found.and_then(|(name, slot)| {
            let legacy = slot.origin.legacy.clone().filter(|_| !slot.engine.is_stopped())?;
            Some((name, legacy))
        });
        let Some((name, legacy)) = theirs else {
            return reply.answer(self.resume(text, peer));
        };
        let (inbox, config) = (self.inbox.clone(), self.store.paths().tmux_conf());
        tokio::spawn(async move {
            let outcome = refuse_live(&name, &legacy, config).await;
            drop(inbox.send(DaemonInput::TakeOver { name, peer, outcome, reply }));
        });
    }

    /// Removes a worker of the predecessor from the list if it has ended there. Its files and worktree stay.
    pub(crate) fn clean_legacy(&self, name: WorkerName, legacy: Legacy, reply: Reply) {
        let (inbox, config) = (self.inbox.clone(), self.store.paths().tmux_conf());
        tokio::spawn(async move {
            let outcome = refuse_live(&name, &legacy, config).await;
            drop(inbox.send(DaemonInput::Dismiss { name, outcome, reply }));
        });
    }

    /// Removes the worker from the list, or refuses because it still runs.
    pub(crate) fn finish_legacy_clean(&mut self, name: &WorkerName, outcome: Result<()>, reply: Reply) {
        let theirs = |slot: &&Slot| slot.origin.legacy.is_some();
        let Some(slot) = self.slots.get(name).filter(theirs) else {
            let message = format!("worker '{name}' was replaced meanwhile");
            return reply.refuse(Error::conflict(message));
        };
        let worktree_kept = slot.worktree.as_ref().map(|tree| tree.path.clone());
        let outcome = outcome.and_then(|()| self.store.remove(name));
        if outcome.is_ok() {
            self.notify(name, Entry::Cleaned);
            self.slots.remove(name);
        }
        reply.answer(outcome.map(|()| Forgotten { worktree_kept, ..Forgotten::default() }));
    }

    pub(crate) fn finish_legacy_resume(
        &mut self,
        name: &WorkerName,
        peer: Option<i32>,
        outcome: Result<()>,
        reply: Reply,
    ) {
        let resumed = outcome.and_then(|()| {
            let theirs = self.slots.get_mut(name).and_then(|slot| slot.origin.legacy.take());
            let resumed = self.resume(name.as_str(), peer);
            if let (Err(_), Some(slot)) = (&resumed, self.slots.get_mut(name)) {
                // The takeover was not saved, so it did not happen and is not retried.
                (slot.origin.legacy, slot.saving.state) = (theirs, SaveState::Saved);
            }
            resumed
        });
        reply.answer(resumed);
    }
}

pub(crate) fn refuse_legacy(slot: &Slot) -> Result<()> {
    if slot.origin.legacy.is_none() {
        return Ok(());
    }
    let name = &slot.spec.name;
    let hint = match slot.engine.ralph() {
        Some(_) => format!(
            "once it has ended there: 'swarm ralph resume {name}' resumes its loop here, 'swarm clean {name}' removes it \
             from the list"
        ),
        None => format!(
            "end it with the swarm that started it; then 'swarm clean {name}' removes it from the list"
        ),
    };
    let message = format!("worker '{name}' belongs to an earlier swarm and is not changed");
    Err(Error::conflict(message).hint(hint))
}

/// Refuses a name that is in use in the predecessor's list.
pub(crate) fn in_use(name: &WorkerName, legacy: &Legacy) -> Result<()> {
    if legacy.status != "running" {
        return Ok(());
    }
    let message = format!("worker '{name}' already exists: an earlier swarm lists it as running");
    let hint = "choose another name; or, if it has ended there, spawn with --replace";
    Err(Error::new(ErrorCode::Exists, message).hint(hint))
}

fn stopped(file: &RalphFile) -> StopReason {
    if file.current_iteration >= file.max_iterations { StopReason::MaxIterations } else { StopReason::Killed }
}

fn local(at: NaiveDateTime) -> Option<chrono::DateTime<FixedOffset>> {
    Local.from_local_datetime(&at).earliest().map(|at| at.fixed_offset())
}

/// Refuses a worker that still runs where the predecessor started it, or whose place cannot be checked.
async fn refuse_live(name: &WorkerName, legacy: &Legacy, config: std::path::PathBuf) -> Result<()> {
    let still = |place: String, how: String| {
        let message = format!("worker '{name}' still runs under the earlier swarm ({place})");
        Err(Error::conflict(message).hint(how))
    };
    if let Some(pid) = legacy.pid.filter(|pid| legacy.tmux.is_none() && procs::is_alive(*pid)) {
        return still(format!("pid {pid}"), format!("to see it: ps -fp {pid}"));
    }
    let Some(place) = &legacy.tmux else { return Ok(()) };
    let socket = place.socket.clone().unwrap_or_else(|| "default".to_owned());
    let options = TmuxOptions {
        socket: Socket::Name(socket.clone()),
        config,
        source: None,
        session: place.session.clone(),
    };
    if Tmux::new(options).window_lives(&place.session, &place.window).await? {
        let target = format!("{}:{}", place.session, place.window);
        return still(
            format!("tmux window {target}"),
            format!("end it there first: tmux -L {socket} kill-window -t '={target}'"),
        );
    }
    Ok(())
}
