//! Watched files, which no iteration may change: files that the user named, scripts that checks run, and the task.
//!
//! An agent that deletes the failing test has made the check pass without doing the work. The hashes are in the
//! loop's folder, outside the agent's tree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use sha2::{Digest, Sha256};
use swarm_state::ledger::Base;
use swarm_state::notice::counted;
use swarm_state::screen::printable;
use swarm_state::scripts;
use walkdir::WalkDir;

use super::run::LoopRun;
use crate::error::{Error, Result};

/// The watched files and their hashes, relative to the worker's directory. Empty if changes are allowed. `known` is
/// the baseline: a script that it does not contain is part of the work.
///
/// # Errors
/// When a glob is invalid or a file cannot be read.
pub(super) async fn hashes(loop_run: &LoopRun, known: Option<&Base>) -> Result<BTreeMap<String, String>> {
    let (loop_run, known) = (loop_run.clone(), known.cloned());
    let work = tokio::task::spawn_blocking(move || hashes_now(&loop_run, known.as_ref()));
    work.await.map_err(|e| Error::system("cannot read the watched files", e))?
}

/// The same, blocking.
///
/// # Errors
/// As [`hashes`].
pub(super) fn hashes_now(loop_run: &LoopRun, known: Option<&Base>) -> Result<BTreeMap<String, String>> {
    if loop_run.gates.allow_changed_checks {
        return Ok(BTreeMap::new());
    }
    hash_all(loop_run, known.map(|base| base.protected.keys().cloned().collect()).as_ref())
}

fn hash_all(loop_run: &LoopRun, known: Option<&BTreeSet<String>>) -> Result<BTreeMap<String, String>> {
    let mut hashes = BTreeMap::new();
    let mut keep = |name: String, file: &Path, hash: fn(&Path) -> io::Result<String>| {
        let path = loop_run.cwd.join(file);
        let hash = hash(&path).map_err(|e| Error::system(format!("cannot read '{}'", path.display()), e))?;
        hashes.insert(name, hash);
        Ok::<_, Error>(())
    };
    for file in by_name(loop_run) {
        let name = script_name(&file);
        // A file that a runner would read instead of a known file counts as known.
        let anchors = scripts::anchors(&file.to_string_lossy());
        let replaces = |known: &BTreeSet<String>| {
            anchors.iter().any(|anchor| known.contains(&script_name(Path::new(anchor))))
        };
        if known.is_none_or(|known| known.contains(&name) || replaces(known)) {
            keep(name, &file, if scripts::is_shared(&file.to_string_lossy()) { hash_scripts } else { hash })?;
        }
    }
    if !loop_run.gates.protect.is_empty() {
        let globs = globs(&loop_run.gates.protect)?;
        for file in matching(&loop_run.cwd, &globs) {
            keep(file.to_string_lossy().into_owned(), &file, hash)?;
        }
    }
    Ok(hashes)
}

/// The name of a check's script among the watched files.
fn script_name(file: &Path) -> String {
    let name = file.to_string_lossy();
    if scripts::is_shared(&name) { format!("{name} (its scripts)") } else { name.into_owned() }
}

/// Warnings about what is watched and what is not.
pub(super) fn warnings(loop_run: &LoopRun, watched: &BTreeMap<String, String>) -> Result<Vec<String>> {
    let gates = &loop_run.gates;
    if gates.allow_changed_checks {
        return Ok(vec![]);
    }
    let mut warnings = vec![];
    let mut named = false;
    for glob in &gates.protect {
        let set = globs(std::slice::from_ref(glob))?;
        if watched.keys().any(|file| set.is_match(file)) {
            named = true;
        } else {
            warnings.push(format!("--protect '{glob}' matches no file; it only watches for new ones"));
        }
    }
    let is_bare = |check: &&String| {
        let files =
            scripts::candidates(check).into_iter().filter_map(|word| within(&loop_run.cwd, Path::new(&word)));
        !files.map(|file| script_name(&file)).any(|name| watched.contains_key(&name))
    };
    let bare: Vec<&String> = gates.checks.iter().filter(is_bare).collect();
    if let ([first, rest @ ..], false) = (bare.as_slice(), named) {
        let more = if rest.is_empty() {
            String::new()
        } else {
            format!(" and {}", counted(rest.len() as u64, "more check"))
        };
        warnings.push(format!(
            "no file of '{}'{more} is watched: an iteration may change what is tested, unless --protect names it",
            printable(first)
        ));
    }
    Ok(warnings)
}

/// Refuses invalid globs.
pub(crate) fn check(texts: &[String]) -> Result<()> {
    for text in texts {
        let cure = "for example --protect 'tests/**/*.py'; ** matches subdirectories";
        let outside = Path::new(text).components().any(|part| part == Component::ParentDir);
        if outside || Path::new(text).is_absolute() {
            let message = format!("--protect '{text}' is not in the worker's directory");
            return Err(Error::usage(message).hint("--protect accepts paths below the worker's directory"));
        }
        if matches!(bare(text).trim(), "" | ".") {
            return Err(Error::usage(format!("--protect '{text}' names no file")).hint(cure));
        }
    }
    globs(texts).map(drop)
}

/// A glob without `./` at its start and `/` at its end.
fn bare(text: &str) -> &str {
    text.trim_start_matches("./").trim_end_matches('/')
}

/// Compiles the globs of `--protect`. A directory matches everything in it.
///
/// # Errors
/// Names the invalid glob.
fn globs(texts: &[String]) -> Result<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for text in texts {
        let bare = bare(text);
        let all_below = format!("{bare}/**");
        for pattern in [bare, &all_below] {
            set.add(glob(pattern).map_err(|e| {
                Error::usage(format!("--protect '{text}' is not a valid glob: {}", e.kind()))
                    .hint("for example --protect 'tests/**/*.py'; ** matches subdirectories")
            })?);
        }
    }
    set.build().map_err(|e| Error::invalid(format!("--protect: {e}")))
}

fn glob(pattern: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(pattern).literal_separator(true).build()
}

/// The files of a tree that match, except those of git and of swarm's progress.
fn matching(root: &Path, globs: &GlobSet) -> Vec<PathBuf> {
    let inside =
        |entry: &walkdir::DirEntry| ![".git", ".swarm"].map(Some).contains(&entry.file_name().to_str());
    let walk = WalkDir::new(root).min_depth(1).into_iter().filter_entry(inside);
    let relative = |entry: walkdir::DirEntry| Some(entry.path().strip_prefix(root).ok()?.to_owned());
    walk.filter_map(|entry| entry.ok().filter(|e| !e.file_type().is_dir()).and_then(relative))
        .filter(|path| globs.is_match(path))
        .collect()
}

/// The scripts that checks run, and the task file, if they are in the tree.
fn by_name(loop_run: &LoopRun) -> BTreeSet<PathBuf> {
    let words = loop_run.gates.checks.iter().flat_map(|check| scripts::candidates(check));
    let named = words.map(PathBuf::from).chain(loop_run.task_file.clone());
    named.filter_map(|path| within(&loop_run.cwd, &path)).collect()
}

/// The path relative to the tree, if it is a file in it, or a file next to it that a check names from inside.
fn within(root: &Path, path: &Path) -> Option<PathBuf> {
    let relative: PathBuf = if path.is_absolute() {
        path.strip_prefix(root).ok()?.to_owned()
    } else {
        path.components().filter(|part| *part != Component::CurDir).collect()
    };
    if !root.join(&relative).is_file() {
        return None;
    }
    if relative.components().all(|part| matches!(part, Component::Normal(_))) {
        return Some(relative);
    }
    // The part before `..` may be a link, so this asks the disk.
    let dir = root.join(&relative).parent()?.canonicalize().ok()?;
    let whole = dir.join(relative.file_name()?);
    Some(
        root.canonicalize()
            .ok()
            .and_then(|root| Some(whole.strip_prefix(root).ok()?.to_owned()))
            .unwrap_or(relative),
    )
}

/// Hashes the scripts in a file that also holds other things.
fn hash_scripts(path: &Path) -> io::Result<String> {
    Ok(hex(&Sha256::digest(scripts::scripts_of(&fs::read(path)?))))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash(path: &Path) -> io::Result<String> {
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
