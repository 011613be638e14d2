//! What is on disk: the formats, their versions, and how an older one becomes the current one.
//!
//! `store` in the binary reads and writes the bytes; this module says what they mean. Two kinds of file:
//! a worker's record ([`Record`], `workers/NAME.json`) and a loop's state ([`RalphFile`],
//! `ralph/NAME/state.json`, which people read and edit by hand). Both carry a `format` number:
//!
//! * none, or 0, is the Python predecessor's shape ([`v0`] for its list of workers);
//! * [`FORMAT`] is ours;
//! * a larger one was written by a newer swarm. Such a file is never guessed at and never written.
//!
//! Two rules hold for every input. A file that cannot be understood is [`FormatError::Broken`], never an
//! empty or made-up value. Keys that are not known here are kept in `extra` and written back.
//!
//! Deliberately absent: files, clocks, time zones (the caller gives them), and the engine's snapshot
//! inside a record, which the engine owns and which is a plain [`serde_json::Value`] here.

use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

mod ralph;
mod record;
#[cfg(test)]
mod tests;
pub mod v0;

pub use ralph::{RalphEdits, RalphFile, edits, parse_ralph};
pub use record::{Metadata, Record, parse_record};
pub use v0::Legacy;

/// The format that this swarm writes.
pub const FORMAT: u32 = 1;

/// Why the bytes of a file are no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// They are damaged, or something else altogether; the text says where.
    #[error("{0}")]
    Broken(String),
    /// A newer swarm wrote them, in this format.
    #[error("written by a newer swarm (format {0}; this one knows up to {FORMAT})")]
    Newer(u64),
}

/// Parses `bytes` as one JSON object and tells its format; `what` names the kind of file in errors.
fn object(bytes: &[u8], what: &str) -> Result<(Map<String, Value>, u32), FormatError> {
    // Some editors put a byte order mark in front.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(FormatError::Broken("the file is empty".into()));
    }
    let value: Value =
        serde_json::from_slice(bytes).map_err(|e| FormatError::Broken(format!("not valid JSON: {e}")))?;
    let Value::Object(map) = value else {
        return Err(FormatError::Broken(format!("not {what}: a JSON object is expected")));
    };
    let format = match map.get("format") {
        None => 0,
        Some(value) => value
            .as_u64()
            .ok_or_else(|| FormatError::Broken(format!("`format`: {value} is no format number")))?,
    };
    match u32::try_from(format) {
        Ok(known) if known <= FORMAT => Ok((map, known)),
        _ => Err(FormatError::Newer(format)),
    }
}

/// Takes `key` out of `map`; absent and `null` are `None`.
fn take<T: DeserializeOwned>(map: &mut Map<String, Value>, key: &str) -> Result<Option<T>, FormatError> {
    match map.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            serde_json::from_value(value).map(Some).map_err(|e| FormatError::Broken(format!("`{key}`: {e}")))
        }
    }
}

/// Takes `key` out of `map`; absent and `null` are errors.
fn need<T: DeserializeOwned>(map: &mut Map<String, Value>, key: &str) -> Result<T, FormatError> {
    take(map, key)?.ok_or_else(|| FormatError::Broken(format!("`{key}` is missing")))
}

/// A value as JSON; the only thing without a JSON form is a path that is no UTF-8.
fn value<T: Serialize>(key: &str, of: &T) -> Result<Value, FormatError> {
    serde_json::to_value(of).map_err(|e| FormatError::Broken(format!("`{key}` cannot be written: {e}")))
}

/// Pretty JSON with a final newline, its keys in the order given.
fn to_bytes(ours: Vec<(&'static str, Value)>, extra: &Map<String, Value>) -> Result<Vec<u8>, FormatError> {
    let mut bytes = serde_json::to_vec_pretty(&Ordered { ours, extra })
        .map_err(|e| FormatError::Broken(format!("cannot be written: {e}")))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// An object whose keys stand in the order given, whatever map `serde_json` was built with: people read
/// these files. Keys of `extra` come last, and never shadow one of ours.
struct Ordered<'a> {
    ours: Vec<(&'static str, Value)>,
    extra: &'a Map<String, Value>,
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ours = self.ours.iter().map(|(key, value)| (*key, value));
        let extra = self.extra.iter().map(|(key, value)| (key.as_str(), value));
        let extra = extra.filter(|(key, _)| !self.ours.iter().any(|(known, _)| known == key));
        serializer.collect_map(ours.chain(extra))
    }
}
