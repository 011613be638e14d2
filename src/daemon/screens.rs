//! Decides when screens are read, and passes the readings to the engines.
//!
//! [`super::watcher`] does the looking, in a task. While no screen is of interest, the daemon does not wake up.

use std::time::Duration;

use swarm_state::engine::{Event, Phase};
use tokio::time::Instant;

use crate::daemon::messages::{DaemonEnd, DaemonInput, LookRound, LookTarget};
use crate::daemon::slot::Slot;
use crate::daemon::supervisor::Supervisor;
use crate::daemon::watcher;

/// Between two looks at the screens, and between two retries of failed saves.
const SCREEN_INTERVAL: Duration = Duration::from_secs(2);

/// The same while an agent is not ready yet, because a person waits for it.
const STARTING_SCREEN_INTERVAL: Duration = Duration::from_millis(500);

impl Supervisor {
    /// Looks at the screens if a look is due. Plans no wake-up while no screen is of interest.
    pub(crate) fn look_if_due(&mut self) {
        let wanted = self.slots.values().any(|s| {
            s.saving.is_unsaved() || s.saving.waits_for_pressure().is_some() || s.engine.wants_screen()
        });
        let starting = self.slots.values().any(|s| matches!(s.engine.phase(), Phase::Starting { .. }));
        let next = Instant::now() + if starting { STARTING_SCREEN_INTERVAL } else { SCREEN_INTERVAL };
        match (wanted, self.next_look) {
            (false, _) => self.next_look = None,
            (true, None) => self.next_look = Some(next),
            (true, Some(at)) if at > next => self.next_look = Some(next),
            (true, Some(at)) if at <= Instant::now() => {
                self.next_look = Some(next);
                self.end_if_removed();
                if self.ended.is_some() {
                    return;
                }
                self.check_directories();
                self.retry_saves();
                self.retry_held_runs();
                self.look();
            }
            (true, Some(_)) => {}
        }
    }

    /// Looks at the screens as soon as the current input is handled.
    pub(crate) fn look_now(&mut self) {
        self.next_look = Some(Instant::now());
    }

    /// Ends the daemon if its directory was removed, moved or taken over: another daemon may use it, or a new one of
    /// the same name.
    pub(crate) fn end_if_removed(&mut self) {
        if !self.lock.is_current() {
            tracing::error!("the directory was removed or taken over; this daemon writes nothing more");
            self.ended = Some(DaemonEnd::Replaced);
        }
    }

    /// Ends the daemon if another host took over its directory. Only there, no watch reports it.
    pub(crate) fn check_owner(&mut self) {
        if self.store.paths().is_shared() {
            self.end_if_removed();
        }
    }

    pub(crate) fn look(&mut self) {
        for (key, server) in &mut self.servers {
            let targets: Vec<_> = self
                .slots
                .iter()
                .filter(|(_, s)| s.spec.tmux_socket == *key && s.engine.wants_screen())
                .filter_map(|(name, s)| {
                    let (pane, reader) = (s.pane.clone()?, s.reader.clone());
                    let (whole, anyhow) = (s.spec.done_pattern.is_some(), s.engine.needs_capture());
                    Some(LookTarget { name: name.clone(), pane, reader, whole, anyhow })
                })
                .collect();
            if targets.is_empty() {
                continue;
            }
            // The last look at this server is still under way: its tmux is slow.
            let Some(filter) = server.filter.take() else { continue };
            let (tmux, inbox, key) = (server.tmux.clone(), self.inbox.clone(), key.clone());
            let store = self.store.clone();
            tokio::spawn(async move {
                let looked = watcher::look(filter, key, &tmux, store.paths(), targets).await;
                drop(inbox.send(DaemonInput::Looked(Box::new(looked))));
            });
        }
    }

    pub(crate) fn looked(&mut self, looked: LookRound) {
        if let Some(server) = self.servers.get_mut(&looked.server) {
            server.filter = Some(looked.filter);
        }
        // A person who has just begun to type comes first.
        if let Some(clients) = looked.clients {
            self.note_clients(&looked.server, clients);
        }
        let now = self.now();
        for (name, look) in looked.looks {
            // Meanwhile the worker may have a new pane, or the name a new worker.
            let own = |slot: &&mut Slot| slot.pane.as_ref().is_some_and(|pane| *pane == look.pane);
            let Some(slot) = self.slots.get_mut(&name).filter(own) else { continue };
            if let Some(screen) = look.screen {
                slot.last_screen = screen;
            }
            let mut effects = slot.step(Event::Reachable(true), now);
            effects.extend(slot.step(look.event, now));
            // Usually there is no effect, for hundreds of workers every two seconds.
            if !effects.is_empty() {
                self.carry_out(&name, effects);
                self.finish_stopped(&name);
            }
            self.release_queued_input(&name);
        }
        for name in looked.unreachable {
            self.step(&name, Event::Reachable(false));
        }
    }
}
