//! One look at an agent's pane: its text, the reading of it, and the content of the input box.

use std::time::Duration;

use swarm_state::delivery::{Plan, marked};
use swarm_state::model::Pane;
use swarm_state::screen::{Blocked, Reading};

use crate::daemon::messages::SharedReader;
use crate::daemon::run::context::RunContext;
use crate::error::{Error, ErrorCode, Result};

pub(crate) const LOOK_INTERVAL: Duration = Duration::from_millis(150);

/// Exists from the first Enter until the delivery has failed.
pub(crate) const ENTERED_MARK: &str = "prompt.entered";

pub(crate) struct PaneReading {
    pub(crate) text: String,
    pub(crate) reading: Reading,
    /// The text in the input box.
    pub(crate) input: Option<String>,
}

/// The pane of an agent, and the reader of its screen.
#[derive(Clone, Copy)]
pub(crate) struct AgentPane<'a> {
    pub(crate) context: &'a RunContext,
    pub(crate) pane: &'a Pane,
    pub(crate) reader: &'a SharedReader,
}

pub(crate) async fn look(AgentPane { context, pane, reader }: AgentPane<'_>) -> Result<PaneReading> {
    let captured = context.tmux.capture(&pane.id, 0).await?.ok_or_else(gone)?;
    let reading =
        reader.lock().map_or_else(|_| Reading::default(), |r| r.read(&captured.text, captured.size));
    let input = input_of(reader, &captured.text, captured.size);
    Ok(PaneReading { text: captured.text, reading, input })
}

pub(crate) fn plan(reader: &SharedReader) -> Plan {
    reader.lock().map(|reader| reader.plan()).unwrap_or_default()
}

/// The text in the input box. If the profile does not describe the box, the last row with an input mark is used.
pub(crate) fn input_of(reader: &SharedReader, screen: &str, size: (u16, u16)) -> Option<String> {
    let reader = reader.lock().ok()?;
    if reader.plan().knows_box { reader.input(screen, size) } else { marked(screen) }
}

/// The error for a pane that no longer exists.
pub(crate) fn gone() -> Error {
    Error::new(ErrorCode::NotFound, "the agent has ended")
}

pub(crate) fn in_the_way(context: &RunContext, dialog: Option<&Blocked>) -> Error {
    let message = match dialog {
        Some(dialog) => format!("the agent shows a dialog: {}", dialog.what),
        None => "the agent shows no input box".to_owned(),
    };
    Error::conflict(message).hint(format!("to see its screen and answer: swarm attach {}", context.name))
}
