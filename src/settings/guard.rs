//! `[guard]`: commands that the guard does not stop. Only the user's own file may have this section.

use std::path::Path;

use super::read::SettingValue;
use super::{FileError, Key, set};
use crate::error::{Error, Result};

/// `[guard]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardSettings {
    /// Valid patterns of commands that the guard does not stop.
    pub allow: Option<Vec<String>>,
    /// Whether the guard stops nothing.
    pub off: Option<bool>,
}

pub(super) const GUARD_KEYS: &[Key<GuardSettings>] = &[
    ("allow", "[]", |to, entry| set(&mut to.allow, entry.patterns())),
    ("off", "false", |to, entry| set(&mut to.off, entry.flag())),
];

/// Refuses `[guard]`, `[notify]` and `[quota]` in another file: an agent can change the files of its project.
pub(super) fn check(values: &[SettingValue], user: &Path) -> Result<(), FileError> {
    let is_own = |key: &str| matches!(key.split('.').next(), Some("guard" | "notify" | "quota"));
    let is_foreign = |value: &&SettingValue| is_own(&value.key) && value.file != user;
    let Some(SettingValue { key, file, line, .. }) = values.iter().find(is_foreign) else { return Ok(()) };
    let message = format!("{}:{line}: '{key}' is accepted only in the user's settings file", file.display());
    Err((file.clone(), Error::invalid(message).hint(format!("move it to {}", user.display()))))
}
