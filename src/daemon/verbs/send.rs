//! `send`: type a text into a worker's agent. [`super::eof`] types Ctrl-D in the same way.

use swarm_state::engine::Event;
use swarm_state::model::{Pane, Status, WorkerName};
use tokio::time::{Duration, Instant};

use crate::daemon::messages::{AgentInput, Job, QueuedInput};
use crate::daemon::reply::Reply;
use crate::daemon::slot::Slot;
use crate::daemon::supervisor::Supervisor;
use crate::error::{Error, ErrorCode, Result};

/// How long a text waits for an agent that is not ready yet; less than the client waits for the answer.
const MAX_INPUT_WAIT: Duration = Duration::from_secs(60);

impl Supervisor {
    /// Types a text or Ctrl-D, at once or when the agent is ready: an agent that is starting discards input, and its
    /// prompt is first.
    pub(crate) fn send(&mut self, name: &str, what: AgentInput, reply: Reply) {
        let is_text = matches!(what, AgentInput::Text(_));
        match self.find(name).and_then(|(_, slot)| Ok((pane_of(slot)?, slot))) {
            Err(error) => reply.refuse(error),
            Ok((_, slot)) if slot.engine.is_starting_up() => {
                slot.waiting.input.push(QueuedInput { what, reply, until: Instant::now() + MAX_INPUT_WAIT });
            }
            Ok((_, slot)) if is_text && slot.engine.is_ending() => {
                let message = format!("nothing was sent, since the run of worker '{name}' is ending");
                let error = Error::conflict(message).hint("wait a moment, then send it again");
                reply.refuse(error);
            }
            Ok((pane, slot)) => {
                let (name, run, reader) = (slot.spec.name.clone(), pane.run, slot.reader.clone());
                let expects_dialog = !slot.requests.open(Instant::now()).is_empty();
                slot.driver.push(Job::Type { pane, reader, what, expects_dialog, reply });
                if is_text {
                    self.step(&name, Event::Typing(run));
                }
            }
        }
    }

    /// Types the texts that waited for the agent to become ready, or refuses them.
    pub(crate) fn release_queued_input(&mut self, name: &WorkerName) {
        let Some(slot) = self.slots.get_mut(name).filter(|s| !s.waiting.input.is_empty()) else { return };
        let waits = slot.engine.is_starting_up();
        let status = slot.engine.status();
        let (kept, due) = std::mem::take(&mut slot.waiting.input)
            .into_iter()
            .partition(|input| waits && Instant::now() < input.until);
        slot.waiting.input = kept;
        let why = slot.engine.reason().filter(|_| waits || status == Status::Waiting);
        for QueuedInput { what, reply, .. } in due {
            if !waits && status != Status::Waiting {
                self.send(name.as_str(), what, reply);
                continue;
            }
            let why = why.as_deref().unwrap_or("it is still starting");
            let message = format!("nothing was sent, since worker '{name}' is not ready: {why}");
            let error = Error::new(ErrorCode::Timeout, message).hint(format!("swarm peek {name}"));
            reply.refuse(error);
        }
    }
}

/// The pane of a live worker, or the error that there is none.
pub(crate) fn pane_of(slot: &Slot) -> Result<Pane> {
    let name = &slot.spec.name;
    match &slot.pane {
        Some(pane) if slot.engine.has_pane() && pane.run == slot.engine.run() => Ok(pane.clone()),
        _ if slot.engine.has_pane() => {
            let message = format!("worker '{name}' is starting");
            Err(Error::conflict(message).hint("wait a moment, then retry"))
        }
        _ => {
            let message = format!("worker '{name}' is not running ({})", slot.engine.status());
            Err(Error::conflict(message).hint(format!("for its output: swarm logs {name}")))
        }
    }
}
