//! The traces of a canary that runners leave: compiled copies, build results, and records of the last run.

use std::fs;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::super::inventory::report_files;
use super::super::run::LoopRun;
use crate::files::read_bounded;
use crate::sandbox::tree_files::TreeFiles;

/// Records of runners, next to their tests or above.
const RECORDS: [&str; 3] =
    [".pytest_cache/v/cache/lastfailed", ".pytest_cache/v/cache/nodeids", ".phpunit.result.cache"];

const PYTHON_CACHE: &str = "__pycache__";

const MAX_RUNNER_RECORD_BYTES: u64 = 16 << 20;

const RECORD_MODE: u32 = 0o644;

/// How deep the names of build results are searched. Cargo needs 4: `debug/.fingerprint/PACKAGE/FILE`.
const MAX_BUILD_DEPTH: usize = 4;

/// The content of a file before the canary was added.
pub(super) struct Kept {
    path: PathBuf,
    bytes: Option<Vec<u8>>,
}

impl Kept {
    pub(super) fn read(path: &Path) -> Self {
        Self { path: path.to_owned(), bytes: read_bounded(path, MAX_RUNNER_RECORD_BYTES).ok() }
    }

    /// Writes it again. A record that is lost costs the runner nothing, so failures are ignored.
    pub(super) fn restore(&self, tree: &TreeFiles) {
        if read_bounded(&self.path, MAX_RUNNER_RECORD_BYTES).ok() == self.bytes {
            return;
        }
        match &self.bytes {
            Some(bytes) => drop(tree.put(&self.path, bytes, RECORD_MODE, false)),
            None => drop(tree.remove(&self.path)),
        }
    }
}

/// The records that a runner may change: its own, and the reports of the checks.
pub(super) fn records(loop_run: &LoopRun, dir: &Path) -> Vec<PathBuf> {
    let cwd = &loop_run.cwd;
    let above = dir.ancestors().take_while(|dir| dir.starts_with(cwd));
    let own = above.flat_map(|dir| RECORDS.map(|record| dir.join(record)));
    own.chain(report_files(loop_run)).collect()
}

/// The directories for build results that may have something of a canary for Rust.
pub(super) fn builds(loop_run: &LoopRun, file: &Path) -> Vec<PathBuf> {
    if file.extension().is_none_or(|end| end != "rs") {
        return vec![];
    }
    let own = loop_run.env.get("CARGO_TARGET_DIR").map(|dir| loop_run.cwd.join(dir));
    let above = file.ancestors().skip(1).take_while(|dir| dir.starts_with(&loop_run.cwd));
    above.map(|dir| dir.join("target")).chain(own).collect()
}

/// Removes the files with the token in their names.
pub(super) fn remove(tree: &TreeFiles, file: &Path, token: &str, builds: &[PathBuf]) {
    let cache = file.with_file_name(PYTHON_CACHE);
    let is_ours = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(token));
    let mut has_removed = false;
    for entry in fs::read_dir(&cache).into_iter().flatten().flatten() {
        has_removed |= is_ours(&entry.path()) && tree.remove(&entry.path()).is_ok();
    }
    if has_removed {
        let _ = tree.remove_dir(&cache);
    }
    for build in builds.iter().filter(|build| build.is_dir()) {
        let mut walk = WalkDir::new(build).min_depth(1).max_depth(MAX_BUILD_DEPTH).into_iter();
        while let Some(entry) = walk.next() {
            let Ok(entry) = entry else { continue };
            if !is_ours(entry.path()) {
                continue;
            }
            if entry.file_type().is_dir() {
                walk.skip_current_dir();
            }
            let _ = tree.remove(entry.path());
        }
    }
}

/// Removes the records that name the canary, since their former content is not known.
pub(super) fn forget_records(tree: &TreeFiles, records: &[PathBuf], token: &str) {
    for record in records {
        if read_bounded(record, MAX_RUNNER_RECORD_BYTES).is_ok_and(|bytes| contains(&bytes, token)) {
            let _ = tree.remove(record);
        }
    }
}

pub(super) fn contains(bytes: &[u8], token: &str) -> bool {
    memchr::memmem::find(bytes, token.as_bytes()).is_some()
}
