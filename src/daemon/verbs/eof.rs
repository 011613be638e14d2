//! `eof`: send the end of the input (Ctrl-D) to a worker's agent.

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::daemon::messages::{AgentInput, Job, QueuedInput};
use crate::daemon::reply::Reply;
use crate::daemon::supervisor::Supervisor;
use crate::daemon::verbs::send::{MAX_INPUT_WAIT, pane_of};

impl Supervisor {
    /// Sends the end of input, after all texts that were sent before.
    pub(crate) fn eof(&mut self, name: &str, reply: Reply) {
        match self.find(name).and_then(|(_, slot)| Ok((pane_of(slot)?, slot))) {
            Err(error) => reply.refuse(error),
            Ok((_, slot)) if slot.engine.is_starting_up() => {
                let until = Instant::now() + MAX_INPUT_WAIT;
                slot.waiting.input.push(QueuedInput { what: AgentInput::Eof(name.to_owned()), reply, until });
            }
            Ok((pane, slot)) => {
                let (done, outcome) = oneshot::channel();
                let reader = slot.reader.clone();
                slot.driver.push(Job::Eof { pane, reader, reply: done });
                reply.answer_later(outcome);
            }
        }
    }
}
