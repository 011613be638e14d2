//! The signing key, and the signatures of files that were written without it.

use std::path::Path;

use serde_json::Value;
use swarm_state::format;
use swarm_state::ledger::Base;

use super::{Problem, Store, entries, failed, file_name, read, set_aside, write_atomic};
use crate::error::Result;
use crate::paths::Paths;
use crate::signed::{Purpose, SigningKey};

/// Reads the key, or makes one. The flag is true for a new one.
pub(super) fn key(paths: &Paths) -> Result<(SigningKey, bool)> {
    let path = paths.signing_key();
    match SigningKey::read(&path).map_err(|e| failed("read", &path, e))? {
        Some(key) => Ok((key, false)),
        None => {
            // A damaged key stays for the user to look at.
            if path.exists() {
                set_aside(&path).map_err(|e| failed("rename", &path, e))?;
            }
            Ok((SigningKey::create(&path).map_err(|e| failed("write", &path, e))?, true))
        }
    }
}

impl Store {
    /// Signs all records, baselines and results with a new key. Without this, a user who upgrades, or who loses the
    /// key, would lose all workers. A file that is damaged or cannot be signed stays as it is.
    pub(super) fn sign_all(&self) {
        let mut lost_key = false;
        for path in entries(&self.paths.workers_dir()) {
            let bytes = read(&path).ok().flatten().unwrap_or_default();
            if let Some(name) = file_name(&path).strip_suffix(".json")
                && format::parse_record(&bytes).is_ok()
            {
                lost_key |= self.sign(Purpose::Worker(name), &path);
            }
        }
        for dir in entries(&self.paths.ralph_root()) {
            // An earlier loop of the worker is in `NAME.1`.
            let name = file_name(&dir).split('.').next().unwrap_or_default();
            let baseline = dir.join("base.json");
            let bytes = read(&baseline).ok().flatten().unwrap_or_default();
            let Ok(Base { id, .. }) = serde_json::from_slice(&bytes) else { continue };
            lost_key |= self.sign(Purpose::Baseline(name), &baseline);
            for iteration in entries(&dir.join("iterations")) {
                if let Ok(number) = file_name(&iteration).parse() {
                    self.sign(Purpose::Iteration(name, &id, number), &iteration.join("result.json"));
                }
            }
        }
        if lost_key {
            let path = self.paths.signing_key();
            let message = format!(
                "'{}' was missing or damaged: earlier changes to workers' files were not noticed",
                path.display()
            );
            self.note(Problem::of(None, message));
        }
    }

    /// Signs a file. True if it had the signature of another key.
    fn sign(&self, purpose: Purpose<'_>, path: &Path) -> bool {
        let Some(bytes) = read(path).ok().flatten() else { return false };
        let Ok(mut value) = serde_json::from_slice::<Value>(&bytes) else { return false };
        let Some(object) = value.as_object_mut() else { return false };
        let was_signed = object.shift_remove("signature").is_some();
        let signed = self.key.sign(purpose, &value).and_then(|signed| write_atomic(path, &signed));
        if let Err(error) = signed {
            tracing::warn!(%error, path = %path.display(), "cannot sign a file");
        }
        was_signed
    }
}
