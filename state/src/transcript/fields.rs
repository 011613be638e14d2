//! Reads single fields of a record.

use serde_json::Value;

pub(super) fn text_at<'a>(value: &'a Value, path: &str) -> Option<&'a str> {
    value.pointer(path)?.as_str()
}

/// A count: 0 when absent, `None` when invalid.
pub(super) fn count_at(value: &Value, path: &str) -> Option<u64> {
    match value.pointer(path) {
        None | Some(Value::Null) => Some(0),
        Some(count) => count.as_u64(),
    }
}

/// An amount of money; `None` when invalid.
pub(super) fn dollars(value: &Value) -> Option<f64> {
    value.as_f64().filter(|cost| cost.is_finite() && *cost >= 0.0)
}

pub(super) fn number_at(value: &Value, path: &str) -> Option<u64> {
    value.pointer(path)?.as_u64()
}
