//! What no iteration may change: the files that the user named, the scripts that checks run, and the task.
//!
//! An agent that deletes the failing test has made the check pass and done nothing. The hashes lie in the
//! loop's folder, out of its way.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use sha2::{Digest, Sha256};
use swarm_state::ledger::Base;
use swarm_state::scripts;
use walkdir::WalkDir;

use super::Course;
use crate::error::{Error, Result};

/// The files and their hashes, relative to the worker's directory. Empty when changes are allowed. `known` are those
/// of the base line: a script that was not there then is the work itself, or a part of it.
///
/// # Errors
/// A glob that is none, or a file that cannot be read.
pub(super) async fn hashes(course: &Course, known: Option<&Base>) -> Result<BTreeMap<String, String>> {
    if course.gates.allow_changed_checks {
        return Ok(BTreeMap::new());
    }
    let course = course.clone();
    let known = known.map(|base| base.protected.keys().map(PathBuf::from).collect::<BTreeSet<_>>());
    let work = tokio::task::spawn_blocking(move || hash_all(&course, known.as_ref()));
    work.await.map_err(|e| Error::system("cannot look at the protected files", e))?
}

fn hash_all(course: &Course, known: Option<&BTreeSet<PathBuf>>) -> Result<BTreeMap<String, String>> {
    let mut files: BTreeSet<PathBuf> = by_name(course);
    files.retain(|file| known.is_none_or(|known| known.contains(file)));
    if !course.gates.protect.is_empty() {
        let globs = globs(&course.gates.protect)?;
        files.extend(matching(&course.cwd, &globs));
    }
    let mut hashes = BTreeMap::new();
    for file in files {
        let path = course.cwd.join(&file);
        let hash = hash(&path).map_err(|e| Error::system(format!("cannot read '{}'", path.display()), e))?;
        hashes.insert(file.to_string_lossy().into_owned(), hash);
    }
    Ok(hashes)
}

/// Refuses globs that are none.
pub(crate) fn check(texts: &[String]) -> Result<()> {
    globs(texts).map(drop)
}

/// Compiles what `--protect` was given. A directory stands for all in it.
///
/// # Errors
/// Names the glob that is none.
fn globs(texts: &[String]) -> Result<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for text in texts {
        let bare = text.trim_start_matches("./").trim_end_matches('/');
        let all_below = format!("{bare}/**");
        for pattern in [bare, &all_below] {
            set.add(glob(pattern).map_err(|e| {
                Error::usage(format!("--protect '{text}' is no pattern for files: {}", e.kind()))
                    .hint("as in --protect 'tests/**/*.py'; ** goes into directories")
            })?);
        }
    }
    set.build().map_err(|e| Error::invalid(format!("--protect: {e}")))
}

fn glob(pattern: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(pattern).literal_separator(true).build()
}

/// The files of a tree that match; nothing of git or of swarm's progress is among them.
fn matching(root: &Path, globs: &GlobSet) -> Vec<PathBuf> {
    let inside =
        |entry: &walkdir::DirEntry| ![".git", ".swarm"].map(Some).contains(&entry.file_name().to_str());
    let walk = WalkDir::new(root).min_depth(1).into_iter().filter_entry(inside);
    let relative = |entry: walkdir::DirEntry| Some(entry.path().strip_prefix(root).ok()?.to_owned());
    walk.filter_map(|entry| entry.ok().filter(|e| !e.file_type().is_dir()).and_then(relative))
        .filter(|path| globs.is_match(path))
        .collect()
}

/// The scripts that checks run and the task, as far as they are files of the tree.
fn by_name(course: &Course) -> BTreeSet<PathBuf> {
    let words = course.gates.checks.iter().flat_map(|check| scripts::candidates(check));
    let named = words.map(PathBuf::from).chain(course.task_file.clone());
    named.filter_map(|path| within(&course.cwd, &path)).collect()
}

/// The path relative to the tree, when it is a file in it.
fn within(root: &Path, path: &Path) -> Option<PathBuf> {
    let relative = if path.is_absolute() {
        path.strip_prefix(root).ok()?.to_owned()
    } else {
        path.components().filter(|part| *part != Component::CurDir).collect()
    };
    let plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
    (plain && root.join(&relative).is_file()).then_some(relative)
}

fn hash(path: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    if fs::symlink_metadata(path)?.is_symlink() {
        hasher.update(fs::read_link(path)?.as_os_str().as_encoded_bytes());
    }
    // Whether it can be run is a part of what it is.
    hasher.update([u8::from(fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o111 != 0))]);
    // A link also stands for what it leads to; where that is nothing, or no file, the link is all.
    if path.is_file() {
        io::copy(&mut fs::File::open(path)?, &mut hasher)?;
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
