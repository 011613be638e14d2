//! Prints the JSON of `--format json`. Each object that a verb prints begins with `schema`.
//!
//! The page swarm-json(7) describes the objects. Deliberately absent: their fields, which are in the verbs.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Failure, Out, for_host};
use crate::error::{Error, Result};

/// The version of the objects of swarm-json(7). A field that changes its meaning or goes away raises it.
pub const JSON_SCHEMA: u32 = 1;

/// An object with the version in front.
#[derive(Serialize)]
struct Versioned<'a, T> {
    schema: u32,
    #[serde(flatten)]
    object: &'a T,
}

fn versioned<T>(object: &T) -> Versioned<'_, T> {
    Versioned { schema: JSON_SCHEMA, object }
}

impl Out {
    /// Prints an object, indented.
    pub fn json<T: Serialize>(self, object: &T) -> Result<(), Failure> {
        self.line(&printed(serde_json::to_string_pretty(&versioned(object)))?)
    }

    /// Prints an array of objects, indented.
    pub fn json_list<T: Serialize>(self, objects: &[T]) -> Result<(), Failure> {
        let objects: Vec<_> = objects.iter().map(versioned).collect();
        self.line(&printed(serde_json::to_string_pretty(&objects))?)
    }

    /// Prints an object on one line.
    pub fn json_line<T: Serialize>(self, object: &T) -> Result<(), Failure> {
        self.line(&json_text(object)?)
    }

    /// Prints the error of a command on one line. Errors of stdout are ignored: the exit status is that of `error`.
    pub fn json_error(self, error: &Error) {
        let _ = self.json_line(&json!({"error": error_object(error)}));
    }
}

pub(crate) fn error_object(error: &Error) -> Value {
    let hint = error.hint.as_deref().map(for_host);
    let message = for_host(&error.message);
    json!({"code": error.code, "message": message, "hint": hint, "exit_status": error.code.exit_status()})
}

pub(crate) fn json_text(object: &impl Serialize) -> Result<String> {
    printed(serde_json::to_string(&versioned(object)))
}

fn printed(text: serde_json::Result<String>) -> Result<String> {
    text.map_err(|e| Error::system("cannot print JSON", e))
}
