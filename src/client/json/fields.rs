//! The fields of a JSON object, in order.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// The fields of an object, in order.
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// The fields of a value that is an object in JSON.
    pub(super) fn of(value: &impl Serialize) -> Self {
        match serde_json::to_value(value) {
            Ok(Value::Object(fields)) => Self(fields),
            Ok(_) | Err(_) => Self(Map::new()),
        }
    }

    /// Gives a field another name, in the same place.
    pub(super) fn rename(&mut self, from: &str, to: &str) {
        let named = |(key, value)| if key == from { (to.to_owned(), value) } else { (key, value) };
        self.0 = std::mem::take(&mut self.0).into_iter().map(named).collect();
    }

    pub(super) fn set(&mut self, key: &str, value: impl Serialize) {
        self.0.insert(key.to_owned(), json!(value));
    }

    /// Adds the fields that are absent.
    pub(super) fn fill(&mut self, keys: &[&str], value: impl Serialize) -> &mut Self {
        for key in keys {
            self.0.entry(*key).or_insert_with(|| json!(value));
        }
        self
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.0.shift_remove(key);
    }

    /// Takes the fields as an object.
    pub(super) fn take(&mut self) -> Value {
        Value::Object(std::mem::take(&mut self.0))
    }
}
