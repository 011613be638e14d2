//! Workers of the Python predecessor: shown, and left alone until a person resumes a loop of theirs.
//!
//! The predecessor may still run, with windows on a tmux server of its own. Nothing here ends, pauses or
//! writes anything of it. `ralph resume` takes a loop over, and only when its window is seen to be gone;
//! from then on it is a loop like any other. `clean NAME` takes a worker that is gone from the list, which is
//! marked beside the predecessor's own. Only tmux's usual directory is looked at: a predecessor that
//! was run with another `TMUX_TMPDIR` is not found.

use chrono::{FixedOffset, Local, NaiveDateTime, TimeZone};
use swarm_state::engine::Worker;
use swarm_state::format::{Legacy, RalphFile, Record};
use swarm_state::model::{LoopStatus, WorkerName};
use swarm_state::notice::{Entry, StopReason};

use crate::daemon::messages::Input;
use crate::daemon::reply::Reply;
use crate::daemon::slot::{self, SaveState, Slot};
use crate::daemon::supervisor::Supervisor;
use crate::error::{Error, ErrorCode, Result};
use crate::procs;
use crate::protocol::Forgotten;
use crate::store::RalphRead;
use crate::tmux::{Options, Socket, Tmux};

impl Supervisor {
    /// The engine of a worker that the predecessor listed: lost, unless it said that it was over.
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

    /// Resumes a loop; one of the predecessor's is first looked for where it would still run.
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
            drop(inbox.send(Input::TakeOver { name, peer, outcome, reply }));
        });
    }

    /// Takes a worker of the predecessor's from the list, once it is seen to have ended there. Nothing of its
    /// files, and no worktree, is touched.
    pub(crate) fn clean_legacy(&self, name: WorkerName, legacy: Legacy, reply: Reply) {
        let (inbox, config) = (self.inbox.clone(), self.store.paths().tmux_conf());
        tokio::spawn(async move {
            let outcome = refuse_live(&name, &legacy, config).await;
            drop(inbox.send(Input::Dismiss { name, outcome, reply }));
        });
    }

    /// It has ended, or it must stay.
    pub(crate) fn finish_legacy_clean(&mut self, name: &WorkerName, outcome: Result<()>, reply: Reply) {
        let theirs = |slot: &&Slot| slot.origin.legacy.is_some();
        let Some(slot) = self.slots.get(name).filter(theirs) else {
            let message = format!("worker '{name}' is another one now");
            return reply.refuse(Error::new(ErrorCode::Conflict, message));
        };
        let worktree_kept = slot.worktree.as_ref().map(|tree| tree.path.clone());
        let outcome = outcome.and_then(|()| self.store.remove(name));
        if outcome.is_ok() {
            self.notify(name, Entry::Cleaned);
            self.slots.remove(name);
        }
        reply.answer(outcome.map(|()| Forgotten { worktree_kept, ..Forgotten::default() }));
    }

    /// Makes a loop of the predecessor's ours, and resumes it.
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
                // It is not ours until that is written down, so nothing of it is tried again.
                (slot.origin.legacy, slot.saving.state) = (theirs, SaveState::Saved);
            }
            resumed
        });
        reply.answer(resumed);
    }
}

/// The refusal to change what another swarm made; `None` for a worker of ours.
pub(crate) fn refuse_legacy(slot: &Slot) -> Option<Error> {
    slot.origin.legacy.as_ref()?;
    let name = &slot.spec.name;
    let message = format!("worker '{name}' belongs to an earlier swarm and is left alone");
    let error = Error::new(ErrorCode::Conflict, message);
    Some(match slot.engine.ralph() {
        Some(_) => {
            error.hint(format!(
                "once it has ended there, 'swarm ralph resume {name}' takes its loop over, and 'swarm clean {name}' \
                 takes it from the list"
            ))
        }
        None => error.hint(format!(
            "end it with the swarm that started it; 'swarm clean {name}' takes it from the list then"
        )),
    })
}

/// The refusal of a name that the predecessor says is in use.
pub(crate) fn in_use(name: &WorkerName, legacy: &Legacy) -> Result<()> {
    if legacy.status != "running" {
        return Ok(());
    }
    let message = format!("worker '{name}' already exists: an earlier swarm says that it runs");
    let hint = "choose another name; or, when it has ended there, spawn with --replace";
    Err(Error::new(ErrorCode::Exists, message).hint(hint))
}

fn stopped(file: &RalphFile) -> StopReason {
    if file.current_iteration >= file.max_iterations { StopReason::MaxIterations } else { StopReason::Killed }
}

fn local(at: NaiveDateTime) -> Option<chrono::DateTime<FixedOffset>> {
    Local.from_local_datetime(&at).earliest().map(|at| at.fixed_offset())
}

/// Refuses a worker that still runs where the predecessor put it, or that cannot be looked at.
async fn refuse_live(name: &WorkerName, legacy: &Legacy, config: std::path::PathBuf) -> Result<()> {
    let still = |place: String, how: String| {
        let message = format!("worker '{name}' still runs under the earlier swarm ({place})");
        Err(Error::new(ErrorCode::Conflict, message).hint(how))
    };
    if let Some(pid) = legacy.pid.filter(|pid| legacy.tmux.is_none() && procs::is_alive(*pid)) {
        return still(format!("pid {pid}"), format!("look at it with: ps -fp {pid}"));
    }
    let Some(place) = &legacy.tmux else { return Ok(()) };
    let socket = place.socket.clone().unwrap_or_else(|| "default".to_owned());
    let options = Options {
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
