//! The events that change the state of `swarm ui`, and the effects that follow.

use std::path::PathBuf;

use swarm_state::host::HostName;

use super::keys::UiKey;
use super::model::Panel;
use crate::protocol::{Report, WorkerView};

#[derive(Clone, Debug)]
pub(super) enum UiEvent {
    Key(UiKey),
    Resized(u16, u16),
    /// Time has passed.
    Tick,
    /// All workers of this machine.
    Workers(Vec<WorkerView>),
    /// All workers of a remote host and, if it does not answer, for how long.
    Host(HostName, Vec<WorkerView>, Option<String>),
    /// Something happened to a worker.
    Worker(Box<WorkerView>),
    Gone(String),
    /// The daemon cannot be reached: the error message.
    Down(String),
    /// A page of a worker.
    Page(String, Panel, Vec<String>),
    Report(Box<Report>),
    Printed(String),
    /// A verb ended: what to report about it, and whether it failed.
    Ended(String, bool),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UiEffect {
    /// Request a worker's screen or log with this many lines.
    Load(String, Panel, u16),
    LoadReport(String),
    /// Run a verb that prints a page of a worker.
    Show(String, Panel, Vec<String>),
    Seen(String),
    /// Run a verb in place of the one that runs.
    Run(Vec<String>),
    Cancel,
    Attach(String),
    Edit(PathBuf),
    Quit,
}
