//! The directories that a package manager fills: `node_modules`, Python environments, ignored `vendor` directories.
//!
//! Their files may change. The runner's own code in them and the files that Python loads at its start are watched.

use std::collections::BTreeMap;
use std::path::Path;

use sha2::{Digest, Sha256};
use swarm_state::ignored::is_generated;
use swarm_state::ledger::Base;
use swarm_state::runners::{DEPENDENCY_DIRS, STARTUP_HOOKS};
use walkdir::{DirEntry, WalkDir};

use super::config::{expand, name_of};
use super::hashing::{Hashes, stat_line};
use super::tree::{IgnoreRules, is_dependency_dir};
use crate::error::Result;
use crate::files::hex;

/// Finds the directories and stores their digests, if a known runner is used.
pub(super) fn begin(root: &Path, base: &mut Base) {
    if !base.runners.is_empty() {
        let rules = IgnoreRules::new(&base.ignore_rules);
        base.dependencies =
            find(root, &rules).into_iter().map(|dir| (dir.clone(), digest(root, &dir))).collect();
    }
}

/// Adds the startup hooks, and the code of the runners.
pub(super) fn add(base: &Base, hashes: &mut Hashes<'_>) -> Result<()> {
    let packages = base.runners.iter().flat_map(|using| &using.runner.packages);
    let packages: std::collections::BTreeSet<&String> = packages.collect();
    for dir in base.dependencies.keys() {
        let place = hashes.root.join(dir);
        for file in STARTUP_HOOKS.iter().flat_map(|hook| expand(&place, hook)) {
            hashes.file(&name_of(hashes.root, &file))?;
        }
        let own = packages.iter().flat_map(|glob| expand(&place, glob));
        for package in own.filter(|path| path.is_dir()) {
            hashes.package(&name_of(hashes.root, &package))?;
        }
    }
    Ok(())
}

/// The directories whose files changed since the baseline.
pub(super) fn changed(root: &Path, base: &Base) -> Vec<String> {
    let changed = base.dependencies.iter().filter(|(dir, before)| digest(root, dir) != **before);
    changed.map(|(dir, _)| dir.clone()).collect()
}

fn find(root: &Path, rules: &IgnoreRules) -> Vec<String> {
    let is_filled = |entry: &DirEntry| {
        let name = entry.file_name().to_string_lossy();
        is_dependency_dir(&name)
            || entry.path().join("pyvenv.cfg").is_file()
            || DEPENDENCY_DIRS.contains(&name.as_ref()) && rules.ignore_dir(entry.path())
    };
    let mut found = vec![];
    let mut walk = WalkDir::new(root).min_depth(1).into_iter();
    while let Some(entry) = walk.next() {
        let Ok(entry) = entry else { continue };
        if !entry.file_type().is_dir() {
            continue;
        }
        if is_filled(&entry) {
            found.extend(entry.path().strip_prefix(root).map(|dir| dir.to_string_lossy().into_owned()));
            walk.skip_current_dir();
        } else if entry.file_name() == ".git" || rules.ignore_dir(entry.path()) {
            walk.skip_current_dir();
        }
    }
    found
}

/// A digest of the names, sizes and times of the files in a directory, without generated ones.
fn digest(root: &Path, dir: &str) -> String {
    let top = root.join(dir);
    let mut files = BTreeMap::new();
    for entry in WalkDir::new(&top).into_iter().flatten().filter(|entry| !entry.file_type().is_dir()) {
        let name = name_of(&top, entry.path());
        if !is_generated(&name) {
            files.insert(name, entry.metadata().map(|meta| stat_line(&meta)).unwrap_or_default());
        }
    }
    let mut hasher = Sha256::new();
    files.iter().for_each(|(name, line)| hasher.update(format!("{name}\0{line}\n")));
    hex(&hasher.finalize())
}
