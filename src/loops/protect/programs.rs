//! Watches the programs that checks start.
//!
//! A check finds its programs through the PATH. An agent may put another program of the same name in front of one, or
//! replace one in a directory that it may write.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use swarm_state::ledger::{Base, PROGRAM_PREFIX};
use swarm_state::runners::CheckProgram;

use super::hashing::{Hashes, hash_program};
use super::tree::within;
use crate::checks::program::{DEFAULT_PATH, is_executable};
use crate::loops::run::LoopRun;

pub(crate) fn is_program(name: &str) -> bool {
    name.starts_with(PROGRAM_PREFIX)
}

/// Stores which programs exist.
pub(super) fn begin(loop_run: &LoopRun, base: &mut Base, mut programs: Vec<CheckProgram>) {
    for program in &mut programs {
        if local_dirs(loop_run, program).is_empty() {
            program.first.clear();
        }
    }
    programs.retain(|program| resolve(loop_run, program).is_some());
    base.in_front = in_front(loop_run).into_iter().map(|(path, _)| path.display().to_string()).collect();
    base.programs = programs;
}

/// Adds the programs as they are now, and new ones in front of others.
pub(super) fn add(loop_run: &LoopRun, base: &Base, hashes: &mut Hashes<'_>) {
    let mut known = BTreeMap::new();
    for program in &base.programs {
        let Some(path) = resolve(loop_run, program) else { continue };
        // Scripts of the tree are watched under their own names, and others are the agent's work.
        if program.name.contains('/') && within(&loop_run.cwd, &path).is_some() {
            continue;
        }
        let name = program.name.rsplit('/').next().unwrap_or_default();
        let hash = known.entry(path.clone()).or_insert_with_key(|path| hash_program(path));
        hashes.found.insert(format!("{PROGRAM_PREFIX}{name}: {}", path.display()), hash.clone());
    }
    if base.taken == 0 {
        // An older release took the baseline.
        return;
    }
    let known: BTreeSet<&str> = base.in_front.iter().map(String::as_str).collect();
    for (path, other) in in_front(loop_run) {
        let is_new = fs::metadata(&path).is_ok_and(|meta| meta.ctime() >= base.taken);
        let text = path.display().to_string();
        if is_new && !known.contains(text.as_str()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("{PROGRAM_PREFIX}{name}: {text} before {}", other.display());
            hashes.found.insert(name, hash_program(&path));
        }
    }
}

/// The directories of the PATH, each once.
fn path_dirs(loop_run: &LoopRun) -> Vec<PathBuf> {
    let path = loop_run.env.get("PATH").map_or(DEFAULT_PATH, String::as_str);
    let (mut seen, mut dirs) = (BTreeSet::new(), vec![]);
    for dir in std::env::split_paths(path).map(|dir| loop_run.cwd.join(dir)) {
        if dir.canonicalize().is_ok_and(|real| seen.insert(real)) {
            dirs.push(dir);
        }
    }
    dirs
}

/// The directories before the PATH in which a program is searched.
fn local_dirs(loop_run: &LoopRun, program: &CheckProgram) -> Vec<PathBuf> {
    if program.first.is_empty() {
        return vec![];
    }
    let dir = loop_run.cwd.join(&program.dir);
    dir.ancestors().map(|dir| dir.join(&program.first)).filter(|dir| dir.is_dir()).collect()
}

fn resolve(loop_run: &LoopRun, program: &CheckProgram) -> Option<PathBuf> {
    if program.name.contains('/') {
        return Some(loop_run.cwd.join(&program.dir).join(&program.name)).filter(|file| is_executable(file));
    }
    let dirs = local_dirs(loop_run, program).into_iter().chain(path_dirs(loop_run));
    dirs.map(|dir| dir.join(&program.name)).find(|file| is_executable(file))
}

/// The programs in front of another one with the same name, with that one.
fn in_front(loop_run: &LoopRun) -> Vec<(PathBuf, PathBuf)> {
    let mut first: BTreeMap<std::ffi::OsString, (usize, PathBuf)> = BTreeMap::new();
    let mut found = vec![];
    for (at, dir) in path_dirs(loop_run).into_iter().enumerate() {
        for entry in dir.read_dir().into_iter().flatten().flatten() {
            let (name, path) = (entry.file_name(), entry.path());
            match first.get_mut(&name) {
                Some((before, front)) if *before < at => {
                    if is_executable(front) && is_executable(&path) {
                        found.push((front.clone(), path.clone()));
                    }
                    (*before, *front) = (at, path);
                }
                Some(_) => {}
                None => drop(first.insert(name, (at, path))),
            }
        }
    }
    found
}
