//! Observes the states of workers and sends the notifications that are due.
//!
//! The planner decides ([`swarm_state::notify`]), the outbox sends ([`crate::notify`]). The workers are observed after
//! an input, at most once in an interval. Before a message is sent, a task asks tmux which workers a person is attached
//! to. The settings are read again when their file has changed. Without a channel in them, and without a client that
//! receives notifications, messages are dropped: a channel that is configured later does not announce old states.

use std::collections::BTreeSet;

use swarm_state::model::Pane;
use swarm_state::notify::{Notification, WorkerState};
use tokio::time::Instant;

use crate::daemon::messages::ServerClients;
use crate::daemon::quotas::account_of;
use crate::daemon::slot::Slot;
use crate::daemon::supervisor::Supervisor;
use crate::daemon::views;

impl Supervisor {
    /// Observes the workers if that is due, and requests the messages that are due.
    pub(crate) fn observe_states(&mut self) {
        let now = Instant::now();
        let notifying = &mut self.notifying;
        let next = notifying.observed.map(|at| at + notifying.interval()).filter(|at| *at > now);
        if let Some(next) = next {
            // At an earlier wake-up, the interval would not be over, and the next wake-up would follow at once.
            notifying.wake =
                if notifying.is_stale { Some(next) } else { notifying.wake.map(|wake| wake.max(next)) };
            return;
        }
        notifying.observed = Some(now);
        notifying.is_stale = false;
        notifying.reload(self.store.paths());
        self.plan();
    }

    /// Updates the planner, and asks who is attached if a message is due.
    fn plan(&mut self) {
        let now = self.now();
        let mut parked = BTreeSet::new();
        let ours = self.slots.values().filter(|slot| slot.origin.legacy.is_none());
        // The loops of a parked account have one message.
        let ours = ours.filter(|slot| !slot.engine.is_parked() || parked.insert(account_of(slot)));
        let notifying = &mut self.notifying;
        notifying.planner.observe(ours.map(state), now);
        let is_due = notifying.planner.is_due(now);
        if is_due && notifying.outbox.is_empty() && !notifying.listeners.is_present() {
            // These messages have no receiver.
            notifying.planner.drop_due(now);
        } else if is_due && !notifying.is_asking {
            notifying.is_asking = true;
            self.list_clients(self.servers.keys().cloned().collect(), true);
        }
        let notifying = &mut self.notifying;
        let next = notifying.planner.next(now).filter(|at| *at > now.mono);
        notifying.wake = next.map(|at| Instant::now() + at.saturating_sub(now.mono));
        notifying.save_record(self.store.paths());
    }

    /// Sends the messages that are due, now that it is known who is attached.
    pub(crate) fn announce(&mut self, listed: &[ServerClients]) {
        self.notifying.is_asking = false;
        let is_attached = |slot: &Slot| {
            let pane = slot.pane.as_ref().filter(|_| slot.engine.has_pane());
            let server = listed.iter().find(|server| server.socket == slot.spec.tmux_socket);
            // A server that does not answer counts as unwatched.
            let clients = server.and_then(|server| server.clients.as_ref());
            let shown = |pane: &Pane| {
                clients.is_some_and(|clients| clients.iter().any(|client| client.window == pane.window))
            };
            pane.is_some_and(shown)
        };
        let attached = self.slots.iter().filter(|(_, slot)| is_attached(slot));
        let attached: BTreeSet<String> = attached.map(|(name, _)| name.to_string()).collect();
        let now = self.now();
        for message in self.notifying.planner.take_due(&attached, now) {
            self.send_notification(&message);
        }
        self.plan();
    }

    fn send_notification(&mut self, message: &Notification) {
        tracing::info!(title = message.title(), "notification");
        self.notifying.listeners.send(message);
        self.notifying.outbox.send(message);
    }
}

/// The part of a worker's state that notifications depend on.
fn state(slot: &Slot) -> WorkerState {
    WorkerState {
        name: slot.spec.name.to_string(),
        status: slot.status(),
        cause: views::cause(slot),
        run: slot.engine.run().0,
        is_seen: slot.is_seen(),
        has_parent: slot.spec.parent.is_some(),
    }
}
