//! The formats on disk, their versions, and the migration of older ones.
//!
//! `store` in the binary reads and writes the bytes; this module converts them. Two kinds of file, a worker's record
//! ([`Record`], `workers/NAME.json`) and a loop's state ([`RalphFile`], `ralph/NAME/state.json`, which people read and
//! edit by hand), carry a `format` number:
//!
//! * none, or 0, is the Python predecessor's shape ([`v0`] for its list of workers);
//! * [`FORMAT`] is the current one;
//! * a larger one was written by a newer swarm. swarm does not interpret or write such a file.
//!
//! A file that cannot be parsed is [`FormatError::Broken`], never an empty or default value. Unknown keys are kept in
//! `extra` and written back. Deliberately absent: files, clocks, time zones (the caller gives them), and the engine's
//! snapshot inside a record, which the engine owns and which is a plain [`serde_json::Value`] here.

mod json;
mod ralph;
mod record;
#[cfg(test)]
mod tests;
pub mod v0;

pub use json::{FORMAT, FormatError};
pub use ralph::{RalphFile, edits, parse_ralph};
pub use record::{Legacy, LegacyTmux, Metadata, Record, StatusSince, parse_record};
