//! Hashes of watched files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use sha2::{Digest, Sha256};
use swarm_state::ignored::is_generated;
use swarm_state::runners::{RunnerConfig, parts_of};
use walkdir::WalkDir;

use crate::error::{Result, failed};
use crate::files::hex;

/// Of a larger program, only the size and the time are compared.
const MAX_PROGRAM_BYTES: u64 = 64 << 20;

/// The hashes that were computed, by the name of a file or of a part of it.
pub(super) struct Hashes<'a> {
    pub(super) root: &'a Path,
    pub(super) found: BTreeMap<String, String>,
}

impl Hashes<'_> {
    pub(super) fn file(&mut self, name: &str) -> Result<()> {
        let path = self.root.join(name);
        let hash = hash(&path).map_err(|e| failed("read", &path, e))?;
        self.found.insert(name.to_owned(), hash);
        Ok(())
    }

    /// Adds a file of the baseline, if it still exists.
    pub(super) fn known(&mut self, name: &str) -> Result<()> {
        if self.root.join(name).symlink_metadata().is_ok() { self.file(name) } else { Ok(()) }
    }

    /// Adds the parts of a file that configure a runner.
    pub(super) fn config(&mut self, name: &str, config: &RunnerConfig) -> Result<()> {
        if config.hides {
            self.found.insert(format!("{name} (hides a module of the test runner)"), String::new());
            return Ok(());
        }
        let path = self.root.join(name);
        if !config.parts.is_empty() && path.is_file() {
            let content = fs::read(&path).map_err(|e| failed("read", &path, e))?;
            if let Some(parts) = parts_of(name, &content, &config.parts) {
                let digest = |text: &str| hex(&Sha256::digest(text.as_bytes()));
                self.found
                    .extend(parts.iter().map(|(part, text)| (format!("{name} ({part})"), digest(text))));
                return Ok(());
            }
        }
        self.file(name)
    }

    /// Adds a directory with the code of a runner, without its caches.
    pub(super) fn package(&mut self, name: &str) -> Result<()> {
        let (path, mut hasher) = (self.root.join(name), Sha256::new());
        for entry in WalkDir::new(&path).follow_links(true).sort_by_file_name().into_iter().flatten() {
            let relative = entry.path().strip_prefix(&path).unwrap_or(entry.path()).to_string_lossy();
            if entry.file_type().is_file() && !is_generated(&relative) {
                let hash = hash(entry.path()).map_err(|e| failed("read", entry.path(), e))?;
                hasher.update(format!("{relative}\0{hash}\n"));
            }
        }
        self.found.insert(format!("{name}/"), hex(&hasher.finalize()));
        Ok(())
    }
}

/// Hashes a program; one that cannot be read, by its size and time.
pub(super) fn hash_program(path: &Path) -> String {
    let meta = fs::metadata(path);
    let is_small = meta.as_ref().is_ok_and(|meta| meta.len() <= MAX_PROGRAM_BYTES);
    let hash = is_small.then(|| hash(path).ok()).flatten();
    hash.or_else(|| meta.ok().map(|meta| stat_line(&meta))).unwrap_or_default()
}

pub(super) fn stat_line(meta: &fs::Metadata) -> String {
    format!("{} {}.{}", meta.len(), meta.mtime(), meta.mtime_nsec())
}

/// The hash of a whole watched file.
pub(crate) fn hash(path: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    if fs::symlink_metadata(path)?.is_symlink() {
        hasher.update(fs::read_link(path)?.as_os_str().as_encoded_bytes());
    }
    // The execute permission is part of what a file is.
    hasher.update([u8::from(fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o111 != 0))]);
    // A link's target counts too, if it is a file.
    if path.is_file() {
        io::copy(&mut fs::File::open(path)?, &mut hasher)?;
    }
    Ok(hex(&hasher.finalize()))
}
