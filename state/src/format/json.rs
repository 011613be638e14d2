//! Reads and writes the JSON objects of both kinds of file, and checks their format number.

use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// The format that this swarm writes.
pub const FORMAT: u32 = 1;

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The file is damaged or has another format; the text has the place.
    #[error("{0}")]
    Broken(String),
    /// A newer swarm wrote the file, in this format.
    #[error("written by a newer swarm (format {0}; this version reads up to format {FORMAT})")]
    Newer(u64),
}

/// Parses `bytes` as one JSON object and returns its format number. `what` names the kind of file in errors.
pub(super) fn object(bytes: &[u8], what: &str) -> Result<(Map<String, Value>, u32), FormatError> {
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
            .ok_or_else(|| FormatError::Broken(format!("`format`: {value} is not a format number")))?,
    };
    match u32::try_from(format) {
        Ok(known) if known <= FORMAT => Ok((map, known)),
        _ => Err(FormatError::Newer(format)),
    }
}

/// Takes `key` out of `map`; absent and `null` are `None`.
pub(super) fn take<T: DeserializeOwned>(
    map: &mut Map<String, Value>,
    key: &str,
) -> Result<Option<T>, FormatError> {
    match map.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            serde_json::from_value(value).map(Some).map_err(|e| FormatError::Broken(format!("`{key}`: {e}")))
        }
    }
}

/// Takes `key` out of `map`; absent and `null` are errors.
pub(super) fn need<T: DeserializeOwned>(map: &mut Map<String, Value>, key: &str) -> Result<T, FormatError> {
    take(map, key)?.ok_or_else(|| FormatError::Broken(format!("`{key}` is missing")))
}

/// A value as JSON. Only a path that is not UTF-8 has no JSON form.
pub(super) fn value<T: Serialize>(key: &str, of: &T) -> Result<Value, FormatError> {
    serde_json::to_value(of).map_err(|e| FormatError::Broken(format!("`{key}` cannot be written: {e}")))
}

/// Pretty JSON with a final newline, its keys in the order given.
pub(super) fn to_bytes(
    ours: Vec<(&'static str, Value)>,
    extra: &Map<String, Value>,
) -> Result<Vec<u8>, FormatError> {
    let mut bytes = serde_json::to_vec_pretty(&Ordered { ours, extra })
        .map_err(|e| FormatError::Broken(format!("cannot be written: {e}")))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// An object with its keys in a fixed order, since people read it. Keys of `extra` come last and replace no other key.
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
