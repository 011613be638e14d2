//! The start of a daemon: loads the records, lists the panes that exist, and compares the two.
//!
//! An agent that is still alive is adopted. The run of an agent that ended meanwhile is evaluated. A run that was saved
//! but never started is started. A pane that belongs to no worker's current run is ended.

use std::collections::BTreeSet;
use std::path::Path;

use swarm_state::engine::{Event, Phase, Worker};
use swarm_state::format::Record;
use swarm_state::model::{Pane, WorkerName};
use swarm_state::owner::Kinship;
use swarm_state::reconcile::{self, RunEvidence};
use swarm_state::spec::WorkerSpec;

use crate::daemon::elsewhere::finding;
use crate::daemon::messages::{DaemonInput, Job, Look, ServerPanes};
use crate::daemon::panes;
use crate::daemon::run::exit;
use crate::daemon::slot::{self, Recovery, SaveState, Slot};
use crate::daemon::supervisor::Supervisor;
use crate::daemon::verbs::morning_looked;
use crate::daemon::views;
use crate::error::{Error, Result};
use crate::store::{Mark, Problem, RalphRead};
use crate::tmux::PaneRow;
use crate::{checks, loops, owner, procs, wrapper};

/// The label of a worker whose record is gone.
pub(crate) const RECORD_LOST: &str = "record-lost";

impl Supervisor {
    /// Loads and reconciles all workers. The daemon serves clients only after this.
    pub(crate) async fn boot(&mut self) {
        self.looked = morning_looked::read(self.store.paths());
        let (records, problems) = self.store.load_all();
        self.problems = problems;
        for record in records {
            let name = record.name.clone();
            if let Err(error) = self.load(record) {
                let message = format!("worker '{name}' was not loaded: {error}");
                self.problems.push(Problem { message, name: Some(name), reserved: true });
            }
        }
        for name in self.names(|_| true) {
            self.repair_log(&name);
        }
        self.sweep_runs();
        self.sweep_checks().await;
        let sockets: BTreeSet<_> =
            self.slots.values().map(|s| s.spec.tmux_socket.clone()).chain([None]).collect();
        for socket in sockets {
            let tmux = self.tmux(&socket);
            // The pid finds a server whose socket file was deleted.
            let known = self.slots.values().filter(|s| s.spec.tmux_socket == socket && s.engine.has_pane());
            if let Some(pid) = known.filter_map(|s| s.pane.as_ref().map(|p| p.server_pid)).next_back() {
                tmux.expect_server(pid);
            }
            let mut found = panes::look(&tmux).await;
            self.recover_lost_records(&socket, &found);
            self.reconcile(&socket, &found, Look::First);
            if !found.silent && self.is_waiting_for(&socket) {
                found = panes::look(&tmux).await;
                self.recover_lost_records(&socket, &found);
                self.reconcile(&socket, &found, Look::Later);
            }
            panes::end_panes(&tmux, self.sweep(&socket, &found)).await;
            if self.is_waiting_for(&socket) {
                self.look_later(&socket, Look::First);
            }
        }
        // Hooks and `ralph archive` use the pid to see whether a loop is active.
        for slot in self.slots.values() {
            match slot.task_loop() {
                Some(loop_run) if slot.spec.is_in_docker() => {
                    slot.driver.push(Job::RenewMarker(Box::new(loop_run)));
                }
                Some(loop_run) => loops::renew_marker(&loop_run),
                None => {}
            }
        }
    }

    fn look_later(&mut self, socket: &Option<String>, look: Look) {
        let (tmux, inbox, socket) = (self.tmux(socket), self.inbox.clone(), socket.clone());
        tokio::spawn(async move {
            let found = panes::look_until_it_answers(&tmux).await;
            drop(inbox.send(DaemonInput::Found { socket, found, look }));
        });
    }

    fn is_waiting_for(&self, socket: &Option<String>) -> bool {
        self.slots.values().any(|slot| slot.is_unreconciled() && slot.spec.tmux_socket == *socket)
    }

    /// A later look at a tmux server, which answers now: reconciles the workers that are still waiting for it.
    pub(crate) fn reconcile_late(&mut self, socket: &Option<String>, found: &ServerPanes, look: Look) {
        self.recover_lost_records(socket, found);
        self.reconcile(socket, found, look);
        if self.is_waiting_for(socket) {
            self.look_later(socket, Look::Later);
        }
        let (tmux, left) = (self.tmux(socket), self.sweep(socket, found));
        tokio::spawn(async move { panes::end_panes(&tmux, left).await });
    }

    /// Removes the folders of finished runs that an earlier daemon left.
    fn sweep_runs(&self) {
        for (name, run) in self.store.run_dirs() {
            let slot = self.slots.get(&name);
            let unread = self.problems.iter().any(|p| p.name.as_ref() == Some(&name));
            if !unread && !slot.is_some_and(|s| s.engine.run() == run && s.engine.has_pane()) {
                drop(self.store.remove_run_dir(&name, run));
            }
        }
    }

    /// Ends checks that an earlier daemon started, and removes its canaries and the rooms in which they ran. The checks
    /// run again, and two at once would disturb each other.
    async fn sweep_checks(&self) {
        let folder = self.store.paths().ralph_root();
        let sweep = move || {
            let ended = checks::sweep(&folder);
            loops::sweep_rooms(&folder);
            loops::undo_canaries(&folder);
            ended
        };
        let ended = tokio::task::spawn_blocking(sweep).await.unwrap_or(0);
        if ended > 0 {
            tracing::warn!(ended, "ended processes of checks that an earlier daemon had started");
        }
    }

    fn load(&mut self, record: Record) -> Result<()> {
        let context = self.context(&record.name, &record.spec.tmux_socket);
        let foreign = record.legacy.is_some();
        let mut engine: Worker = match &record.legacy {
            Some(legacy) => self.legacy_engine(&record, legacy),
            None => serde_json::from_value(record.engine)
                .map_err(|e| Error::system("the saved state cannot be read", e))?,
        };
        engine.rebase(self.now());
        let marks = if foreign { vec![] } else { self.store.marks(&record.name) };
        let name = record.name.clone();
        let mut slot = Slot::new(record.spec, engine, context)?;
        for mark in &marks {
            let event = match mark {
                Mark::Killed => Event::Kill,
                Mark::Paused(by) => Event::Pause(*by),
            };
            // This changes only the worker's goal. The effects depend on the panes that are found.
            drop(slot.step(event, self.now()));
        }
        slot.origin.started = record.started;
        slot.origin.lost_with = record.lost_with;
        let elsewhere = record.machine.filter(|machine| owner::here().kinship(machine) != Kinship::Here);
        // Its ids are those of another machine.
        slot.pane = record.pane.filter(|_| foreign || elsewhere.is_none());
        slot.worktree = record.worktree.or_else(|| {
            let wanted = slot.spec.worktree.as_ref();
            wanted.and_then(|_| self.store.noted_worktree(&name, slot.engine.run()))
        });
        slot.origin.extra = record.extra;
        slot.origin.request = record.request;
        slot.origin.first_notice = self.notices.seq();
        slot.origin.legacy = record.legacy;
        (slot.seen, slot.status_since) = (record.seen, record.status_since);
        slot.recovery = if foreign { Recovery::Done } else { Recovery::Pending { elsewhere } };
        if let Some(park) = self.park_of(&slot).filter(|_| !foreign) {
            // A waiting loop continues to wait. Effects follow at the next check.
            drop(slot.step(Event::Quota(Some(park)), self.now()));
        }
        // The changes that the marks recorded must be saved, even if nothing else happens to the worker.
        if !marks.is_empty() {
            slot.saving.state = SaveState::Unsaved { error: None, marked: true };
        }
        slot.rebuild_reader();
        slot.story = slot.task_loop().and_then(|loop_run| loop_run.last_story());
        if !foreign {
            // The stamp is unknown, so the first look compares the file with the record: this finds an edit that was
            // made while no daemon ran.
            slot.saving.ralph_file = slot.ralph_file();
            if self.is_resume_unsaved(&slot) {
                slot.saving.state = SaveState::Unsaved { error: None, marked: false };
            }
        }
        self.slots.insert(name.clone(), slot);
        Ok(())
    }

    /// Whether the last daemon died while it saved the resume of an ended loop: the loop's file was written and the
    /// record was not. The loop stays ended, so its file is written again.
    fn is_resume_unsaved(&self, slot: &Slot) -> bool {
        let known = slot.saving.ralph_file.as_ref().filter(|_| slot.engine.ended_at_limit());
        known.is_some_and(|known| match self.store.read_ralph(&slot.spec.name) {
            Ok(RalphRead::Found(file, _)) => file.status != known.status,
            Ok(RalphRead::Absent | RalphRead::Bad(_)) | Err(_) => false,
        })
    }

    /// Creates workers for live panes whose record is gone, so that they are listed and their names are in use.
    fn recover_lost_records(&mut self, socket: &Option<String>, found: &ServerPanes) {
        for row in found.rows.iter().filter(|row| !row.dead) {
            let Some((worker, run)) = panes::claim_of(row) else { continue };
            let Ok(name) = WorkerName::new(worker) else { continue };
            // The record of a newer swarm exists but cannot be read; the name stays reserved.
            let known = self.slots.contains_key(&name) || self.forgotten.contains(&name);
            if known || self.store.is_reserved(&name) {
                continue;
            }
            let context = self.context(&name, socket);
            let spec = lost_spec(name.clone(), row, socket.clone());
            let engine = Worker::found(slot::policy(&spec), run);
            let Ok(mut slot) = Slot::new(spec, engine, context) else { continue };
            slot.recovery = Recovery::Pending { elsewhere: None };
            let message =
                format!("worker '{name}': its record is gone; its live agent was found by its pane");
            self.problems.push(Problem::of(Some(&name), message));
            self.slots.insert(name.clone(), slot);
            self.save(&name);
        }
    }

    fn reconcile(&mut self, socket: &Option<String>, found: &ServerPanes, look: Look) {
        let waiting = self.slots.iter().filter(|(_, s)| s.spec.tmux_socket == *socket && s.is_unreconciled());
        let names: Vec<(WorkerName, bool)> =
            waiting.map(|(name, slot)| (name.clone(), *slot.engine.phase() == Phase::Lost)).collect();
        self.reconcile_each(names.iter().map(|(name, _)| name), found, look);
        for (name, was_lost) in names {
            self.resume_after_shutdown(&name, was_lost);
        }
    }

    /// If the settings request it, resumes a loop that the last shutdown paused, or whose tmux server went away while
    /// no daemon ran.
    pub(crate) fn resume_after_shutdown(&mut self, name: &WorkerName, was_lost: bool) {
        let may_resume =
            |slot: &&Slot| self.resumes_after_shutdown && matches!(slot.recovery, Recovery::Done);
        let Some(slot) = self.slots.get(name).filter(may_resume) else { return };
        let is_lost = *slot.engine.phase() == Phase::Lost && !was_lost;
        let paused = slot.engine.ralph().and_then(|ralph| ralph.paused);
        if views::paused_by_shutdown(slot) || is_lost && paused.is_none() {
            self.step(name, Event::Resume);
        }
    }

    fn reconcile_each<'a>(
        &mut self,
        names: impl Iterator<Item = &'a WorkerName>,
        found: &ServerPanes,
        look: Look,
    ) {
        for name in names {
            let Some(slot) = self.slots.get_mut(name) else { continue };
            if let Recovery::Pending { elsewhere: Some(machine) } = &slot.recovery {
                let machine = machine.clone();
                slot.recovery = Recovery::Done;
                self.end_run_elsewhere(name, &machine);
                continue;
            }
            let run = slot.engine.run();
            let row = own_row(slot, found);
            if row.is_none() && !launch_is_settled(slot, found, look) {
                if found.silent {
                    self.step(name, Event::Reachable(false));
                }
                continue;
            }
            slot.recovery = Recovery::Done;
            if let (Some(row), Some(server)) = (row, found.server) {
                slot.pane = Some(Pane {
                    run,
                    id: row.pane.clone(),
                    window: row.window.clone(),
                    pid: row.pid,
                    server_pid: server,
                });
            }
            let seen = evidence(slot, row, found);
            let context = slot.driver.context.clone();
            let pane = slot.pane.clone().filter(|p| p.run == run);
            let evaluating = matches!(slot.engine.phase(), Phase::Evaluating { .. });
            let over = slot.engine.has_pane() && !seen.alive && !evaluating;
            let goes_on =
                |pane: &Pane| is_wrapper(pane.pid, &context.run_dir(run)) || has_remains(pane, seen, found);
            let needs_server = reconcile::needs_server(&slot.engine, seen);
            if let Some(pane) = pane.clone().filter(|pane| needs_server || over && goes_on(pane)) {
                // Processes of the run are still being ended. Nothing else may start before they are gone.
                tracing::info!(worker = %name, ?seen, "the run is ending");
                exit::watch(&context, pane);
                slot.recovery = Recovery::RunEnding;
                if needs_server {
                    self.step(name, Event::Reachable(false));
                }
                continue;
            }
            let Some(event) = finding(&slot.engine, seen) else { continue };
            tracing::info!(worker = %name, ?seen, ?event, "reconciled");
            if let Some(pane) = pane.filter(|_| seen.alive) {
                exit::watch(&context, pane);
            }
            self.step_found(name, run, event);
            if found.silent {
                self.step(name, Event::Reachable(false));
            }
        }
    }
}

/// Whether a run without a listed pane can be evaluated. The last daemon may have asked tmux for the window just before
/// it died, and starting now must not start the run twice: its launch is withdrawn, or the pane of the wrapper that
/// took it is in the next list.
fn launch_is_settled(slot: &Slot, found: &ServerPanes, look: Look) -> bool {
    let run = slot.engine.run();
    let known = slot.pane.as_ref().is_some_and(|pane| pane.run == run);
    if known || !matches!(slot.engine.phase(), Phase::Spawning { .. }) {
        return true;
    }
    !found.silent && (wrapper::withdraw_launch(&slot.driver.context.run_dir(run)) || look == Look::Later)
}

/// The pane of a worker's current run: of several, a live one, or else the recorded one.
fn own_row<'a>(slot: &Slot, found: &'a ServerPanes) -> Option<&'a PaneRow> {
    let wanted = (slot.spec.name.as_str(), slot.engine.run());
    let known = |row: &PaneRow| {
        let same = |pane: &Pane| Some(pane.server_pid) == found.server && pane.id == row.pane;
        slot.pane.as_ref().is_some_and(same)
    };
    let own = found.rows.iter().filter(|row| panes::claim_of(row) == Some(wanted));
    own.max_by_key(|row| (!row.dead, known(row)))
}

/// Whether an agent outlived its wrapper, which recorded no end. The tmux server that started the wrapper must still
/// run: otherwise the pid may belong to another process.
fn has_remains(pane: &Pane, seen: RunEvidence, found: &ServerPanes) -> bool {
    let untold = seen.recorded.is_none() || seen.closed_under_it;
    let same_server = found.server == Some(pane.server_pid);
    untold && same_server && !procs::is_alive(pane.pid) && !procs::tree(pane.pid).is_empty()
}

fn evidence(slot: &Slot, row: Option<&PaneRow>, found: &ServerPanes) -> RunEvidence {
    let run = slot.engine.run();
    let dir = slot.driver.context.run_dir(run);
    let record = wrapper::read_exit(&dir);
    let pane = slot.pane.as_ref().filter(|p| p.run == run);
    let known_server = pane.map(|p| p.server_pid);
    // A tmux server that does not answer cannot list its panes; their wrappers are found by pid.
    let hidden = found.silent && pane.is_some_and(|p| is_wrapper(p.pid, &dir));
    let server = found.server;
    RunEvidence {
        alive: (row.is_some_and(|row| !row.dead) || hidden) && record.is_none(),
        dead: row.filter(|row| row.dead).map(exit::exit_of_row),
        recorded: record.as_ref().map(exit::exit_of),
        unstarted: record.as_ref().is_some_and(|record| record.helper),
        closed_under_it: record.as_ref().is_some_and(|r| r.hup) && row.is_none(),
        started: wrapper::started(&dir).is_some(),
        unread: !wrapper::has_read_launch(&dir),
        same_server: (!found.silent)
            .then(|| server.is_some() && known_server.is_none_or(|known| Some(known) == server)),
    }
}

/// The spec of a worker whose record is gone, from its pane.
fn lost_spec(name: WorkerName, row: &PaneRow, tmux_socket: Option<String>) -> WorkerSpec {
    let agent = procs::first_child(row.pid);
    let cwd = agent.and_then(procs::cwd);
    let cmd = agent.and_then(procs::name).unwrap_or_else(|| "unknown".to_owned());
    WorkerSpec {
        cmd: vec![cmd],
        cwd: cwd.unwrap_or_else(|| "/".into()),
        tags: vec![RECORD_LOST.to_owned()],
        tmux_socket,
        size: row.size,
        ..WorkerSpec::bare(name)
    }
}

/// Whether this process can be the wrapper of that run. Where its arguments can be read, they are compared.
fn is_wrapper(pid: i32, run_dir: &Path) -> bool {
    let named = procs::is_alive(pid) && procs::name(pid).is_some_and(|name| name.contains("swarm"));
    let dir = run_dir.as_os_str().as_encoded_bytes();
    let argv = std::fs::read(format!("/proc/{pid}/cmdline"));
    named && argv.map_or(true, |argv| argv.is_empty() || argv.split(|byte| *byte == 0).any(|arg| arg == dir))
}
