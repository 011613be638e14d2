//! The messages that a person sent while the agent worked, and that its CLI has queued.
//!
//! Claude Code records each change of its queue in the transcript. It gives a queued text to the agent after the next
//! tool call, and submits everything else, such as a command, when the turn has ended. A Stop hook that keeps the turn
//! going would keep those messages waiting until the loop has ended. Used by [`crate::session::decide()`].
//! Deliberately absent: how the transcript is read.

use serde::{Deserialize, Serialize};

use crate::session::commands::Command;

/// How much of a message is kept, in characters, to find the message that the CLI removed.
const MAX_MESSAGE_CHARS: usize = 200;

/// How many messages are kept.
const MAX_MESSAGES: usize = 100;

/// One change of the queue, in the order of the transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueChange {
    /// A message was queued.
    Added(String),
    /// The oldest message was submitted as a prompt.
    Submitted,
    /// A message left the queue otherwise: the agent received it within its turn, or a person removed it to edit it.
    Removed(String),
    /// A person's prompt was accepted. One that does not come from the queue shows that the queue was empty.
    Prompted,
}

/// The queue as far as the transcript was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queue {
    /// The messages that wait, oldest first.
    waiting: Vec<String>,
    /// Messages that were submitted and are not yet in the transcript as prompts.
    submitted: usize,
}

impl Queue {
    /// Makes one change.
    pub fn apply(&mut self, change: &QueueChange) {
        match change {
            QueueChange::Added(text) if self.waiting.len() < MAX_MESSAGES => self.waiting.push(kept(text)),
            QueueChange::Added(_) => {}
            QueueChange::Submitted if self.waiting.is_empty() => {}
            QueueChange::Submitted => {
                self.waiting.remove(0);
                self.submitted = self.submitted.saturating_add(1);
            }
            QueueChange::Removed(text) => {
                let at = self.waiting.iter().position(|waiting| *waiting == kept(text));
                at.map(|at| self.waiting.remove(at));
            }
            QueueChange::Prompted if self.submitted > 0 => self.submitted -= 1,
            // A killed CLI leaves messages that are never submitted.
            QueueChange::Prompted => self.waiting.clear(),
        }
    }

    /// How many messages wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether one of them ends the session's loop.
    pub(crate) fn has_cancel(&self) -> bool {
        self.waiting.iter().any(|text| matches!(Command::of(text), Some((Command::Cancel, _))))
    }
}

fn kept(text: &str) -> String {
    text.chars().take(MAX_MESSAGE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(changes: &[QueueChange]) -> Vec<String> {
        let mut queue = Queue::default();
        changes.iter().for_each(|change| queue.apply(change));
        queue.waiting
    }

    #[test]
    fn a_message_waits_until_it_is_submitted_or_removed() {
        use QueueChange::{Added, Prompted, Removed, Submitted};
        let add = |text: &str| Added(text.to_owned());
        let remove = |text: &str| Removed(text.to_owned());
        let long = "x".repeat(300);
        let rows: [(&[QueueChange], &[&str]); 11] = [
            (&[add("a"), add("b")], &["a", "b"]),
            (&[add("a"), add("b"), Submitted], &["b"]),
            // The prompt that follows is the submitted one, and the other message still waits.
            (&[add("a"), add("b"), Submitted, Prompted], &["b"]),
            (&[add("a"), add("b"), Submitted, Submitted, Prompted, Prompted], &[]),
            (&[add("a"), add("b"), remove("b")], &["a"]),
            (&[add("a"), add("a"), remove("a")], &["a"]),
            (&[add("a"), remove("other")], &["a"]),
            (&[add(&long), remove(&long)], &[]),
            // Left by a CLI that was killed: the next prompt was typed into an empty queue.
            (&[add("a"), Prompted], &[]),
            (&[Submitted, Prompted, add("a")], &["a"]),
            // A submitted command may have no prompt of its own.
            (&[add("/x"), Submitted, add("a"), Prompted], &["a"]),
        ];
        for (changes, waiting) in rows {
            assert_eq!(after(changes), waiting, "{changes:?}");
        }
    }

    #[test]
    fn number_of_queued_messages_is_bounded() {
        let add = QueueChange::Added("a".to_owned());
        assert_eq!(after(&vec![add; 1000]).len(), MAX_MESSAGES);
    }
}
