//! Sends notifications: to a command, to the desktop, to ntfy and to a webhook.
//!
//! The daemon sends through an [`Outbox`], which never delays it; `swarm notify test` sends directly. The content is
//! that of [`swarm_state::notify`]. https is left to curl: it uses the certificates and the proxy of the system, and
//! swarm needs no TLS library. Deliberately absent: which messages are due, and the text that a terminal gets.

mod channel;
mod outbox;
mod post;
mod program;

pub(crate) use channel::Channel;
pub(crate) use outbox::Outbox;
