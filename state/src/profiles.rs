//! The table of known agent CLIs: how each accepts a prompt and what its screens mean.
//!
//! A profile is data. Settings (`[agents.NAME]`) can change or add rows; the merged row travels in the worker's spec,
//! so a loop keeps the profile it was started with. [`crate::screen::ScreenReader`] compiles the markers; the daemon
//! asks for routes and commands. Deliberately absent: running anything, and reading settings.
//!
//! Markers match the screen from its top row to its last written row; a row's trailing spaces and the empty rows at the
//! end are gone, so `\Z` is the end of the written text. An agent's answer may quote any phrase: a marker therefore
//! also names the shape around it (the selected option, the rows down to the end).

mod command;
mod dialogs;
mod profile;
mod rows;
mod sandbox;
#[cfg(test)]
mod tests;

pub use dialogs::{Marker, YES_OR_NO, common_permission, common_startup};
use profile::program;
pub use profile::{HookStyle, Profile};
pub use rows::table;
pub use sandbox::SandboxProfile;

use crate::words::base_name;

/// The row for a command, by its program's base name (after `env`, its options and assignments), or the generic row.
pub fn find(table: &[Profile], cmd: &[String]) -> Profile {
    let name = cmd.get(program(cmd)).map(|word| base_name(word)).unwrap_or_default();
    let by_name = |wanted: &str| table.iter().find(|row| row.name == wanted).cloned();
    table
        .iter()
        .find(|row| row.commands.iter().any(|command| command == name))
        .cloned()
        .or_else(|| by_name("generic"))
        .unwrap_or_else(Profile::generic)
}

/// The word of a command that names its program: after `env` with its options and assignments.
pub fn program_word(cmd: &[String]) -> Option<&String> {
    cmd.get(program(cmd))
}
