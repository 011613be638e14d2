//! The table of known agent CLIs: how each takes a prompt and what its screens mean.
//!
//! A profile is data. Settings (`[agents.NAME]`) can change or add rows; the merged row travels in the
//! worker's spec, so a loop keeps the profile it was started with.

use serde::{Deserialize, Serialize};

use crate::model::PromptVia;

/// A screen marker: a regular expression (one line is enough to match) and what it means to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// The pattern, in [`crate::screen::Pattern`]'s syntax.
    pub pattern: String,
    /// What it means, as `status` shows it ("trust dialog").
    pub what: String,
}

/// What swarm knows of one agent CLI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Its name in settings and messages.
    pub name: String,
    /// Base names of the command that mean this agent.
    pub commands: Vec<String>,
    /// Arguments that make the command run once without a screen of its own (`-p`, `exec`).
    pub one_shot: Vec<String>,
    /// The route for an interactive command.
    pub interactive_via: PromptVia,
    /// The route for a one-shot command.
    pub one_shot_via: PromptVia,
    /// The flag that precedes the prompt on the `arg` route, where one is needed.
    pub arg_flag: Option<String>,
    /// Any of these means that the input box is there.
    pub ready: Vec<String>,
    /// Any of these means that the agent is at work.
    pub working: Vec<String>,
    /// Dialogs at start-up: the next run would meet the same, so nothing is killed.
    pub startup: Vec<Marker>,
    /// Dialogs in mid-work: the inactivity rule holds.
    pub permission: Vec<Marker>,
}

impl Profile {
    /// The row for a command that no other row knows.
    pub fn generic() -> Self {
        Self {
            name: "generic".into(),
            commands: vec![],
            one_shot: vec![],
            interactive_via: PromptVia::Stdin,
            one_shot_via: PromptVia::Stdin,
            arg_flag: None,
            ready: vec![],
            working: vec![],
            startup: vec![],
            permission: vec![],
        }
    }
}

/// Stub.
pub fn find(_table: &[Profile], _cmd: &[String]) -> Profile {
    Profile::generic()
}
