//! Observes the clients of the tmux servers: who is attached, and in which panes a person types.
//!
//! Each look at the screens lists the clients too, so that no decision about a run uses an older list. While a person
//! is attached, or about to be, the clients are listed four times a second in addition. Notifications use the same
//! lists. [`swarm_state::attached`] decides what counts as typing, and the engine reacts to it.

use swarm_state::attached::AttachedClient;
use swarm_state::engine::{Event, Presence};

use crate::daemon::caller::refuse_own;
use crate::daemon::messages::{DaemonInput, ServerClients};
use crate::daemon::slot::Slot;
use crate::daemon::supervisor::Supervisor;

impl Supervisor {
    /// Lists the clients if that is due.
    pub(crate) fn observe_clients(&mut self) {
        if let Some(due) = self.attached.take_due() {
            self.list_clients(due, false);
        }
    }

    /// Lists the clients of these servers in a task. `announce`: for the notifications that are due.
    pub(crate) fn list_clients(&self, sockets: Vec<Option<String>>, announce: bool) {
        let servers: Vec<_> = sockets
            .into_iter()
            .filter_map(|socket| Some((self.servers.get(&socket)?.tmux.clone(), socket)))
            .collect();
        let inbox = self.inbox.clone();
        tokio::spawn(async move {
            let mut listed = vec![];
            for (tmux, socket) in servers {
                listed.push(ServerClients { clients: tmux.clients().await.ok(), socket });
            }
            drop(inbox.send(DaemonInput::Clients { listed, announce }));
        });
    }

    pub(crate) fn clients_listed(&mut self, listed: &[ServerClients], announce: bool) {
        if !announce {
            self.attached.taken();
        }
        for server in listed {
            match &server.clients {
                Some(clients) => self.note_clients(&server.socket, clients.clone()),
                // A server that is gone or does not answer: its screens are looked at more rarely.
                None => self.attached.server(&server.socket).is_busy = false,
            }
        }
        self.attached.plan();
        if announce {
            self.announce(listed);
        }
    }

    /// Passes to the engines who types and who has left.
    pub(crate) fn note_clients(&mut self, socket: &Option<String>, clients: Vec<AttachedClient>) {
        let delay = self.attached.release_delay;
        let server = self.attached.server(socket);
        let typing = server.watch.observe(clients);
        server.is_busy = false;
        let mut events = vec![];
        let ours = self.slots.iter().filter(|(_, slot)| slot.spec.tmux_socket == *socket);
        for (name, slot) in ours.filter(|(_, slot)| !slot.is_unreconciled() && slot.origin.legacy.is_none()) {
            let pane = slot.pane.as_ref().filter(|_| slot.engine.has_pane()).map(|pane| pane.id.as_str());
            let is_held = slot.engine.is_held_by_typing();
            let presence = match pane.map(|pane| server.watch.presence(pane, &typing, delay)) {
                Some(Presence::Typing) if !is_held && !has_person(slot, &typing) => Presence::Away(delay),
                Some(presence) => presence,
                None => Presence::Away(delay),
            };
            server.is_busy |= is_held || pane.is_some_and(|pane| server.watch.is_attached(pane));
            if is_held || presence == Presence::Typing {
                events.push((name.clone(), presence));
            }
        }
        for (name, presence) in events {
            self.step(&name, Event::Present(presence));
        }
        self.attached.plan();
    }
}

/// Whether a person's client types into the worker's pane: an agent may not hold its own worker.
fn has_person(slot: &Slot, typing: &[AttachedClient]) -> bool {
    let pane = slot.pane.as_ref().map(|pane| pane.id.as_str());
    let own = typing.iter().filter(|client| Some(client.pane.as_str()) == pane);
    own.into_iter().any(|client| refuse_own(slot, Some(client.pid), "hold itself").is_ok())
}
