//! The outbox: a queue and a task for each channel, so that one that hangs delays neither the daemon nor the others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use swarm_state::notify::Notification;
use tokio::sync::mpsc::{self, error::TrySendError};

use super::channel::Channel;
use crate::error::Error;

/// The messages that may wait for one channel; later ones are dropped.
const MAX_WAITING_MESSAGES: usize = 32;

/// The last error of each channel that failed with its last message.
type ChannelErrors = Arc<Mutex<BTreeMap<&'static str, String>>>;

/// The channels of the settings. They end with it.
pub(crate) struct Outbox {
    queues: Vec<(&'static str, mpsc::Sender<Notification>)>,
    errors: ChannelErrors,
}

impl Outbox {
    pub(crate) fn start(channels: Vec<Channel>) -> Self {
        let errors = ChannelErrors::default();
        let start = |channel: Channel| {
            let key = channel.key();
            let (queue, messages) = mpsc::channel(MAX_WAITING_MESSAGES);
            tokio::spawn(send_each(channel, messages, errors.clone()));
            (key, queue)
        };
        let queues = channels.into_iter().map(start).collect();
        Self { queues, errors }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    pub(crate) fn send(&self, message: &Notification) {
        for (key, queue) in &self.queues {
            if let Err(TrySendError::Full(_)) = queue.try_send(message.clone()) {
                tracing::warn!(channel = key, "a notification is dropped: the channel is too slow");
            }
        }
    }

    /// The last error of each channel whose last message failed.
    pub(crate) fn errors(&self) -> BTreeMap<String, String> {
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        errors.iter().map(|(key, error)| ((*key).to_owned(), error.clone())).collect()
    }
}

async fn send_each(channel: Channel, mut messages: mpsc::Receiver<Notification>, errors: ChannelErrors) {
    let key = channel.key();
    while let Some(message) = messages.recv().await {
        let outcome = channel.send(&message).await;
        note(key, outcome.err(), &errors);
    }
}

/// Records the result of a message. An error is logged when it is new.
fn note(key: &'static str, error: Option<Error>, errors: &ChannelErrors) {
    let mut errors = errors.lock().unwrap_or_else(PoisonError::into_inner);
    match error {
        Some(Error { message, .. }) => {
            if errors.insert(key, message.clone()).as_ref() != Some(&message) {
                tracing::warn!(channel = key, "a notification was not sent: {message}");
            }
        }
        None => {
            if errors.remove(key).is_some() {
                tracing::info!(channel = key, "notifications are sent again");
            }
        }
    }
}
