//! `eof`: send the end of the input (Ctrl-D) to a worker's agent.

use crate::daemon::messages::AgentInput;
use crate::daemon::reply::Reply;
use crate::daemon::supervisor::Supervisor;

impl Supervisor {
    /// Sends the end of input, after all texts that were sent before.
    pub(crate) fn eof(&mut self, name: &str, reply: Reply) {
        self.send(name, AgentInput::Eof, reply);
    }
}
