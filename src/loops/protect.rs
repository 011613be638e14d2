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
use swarm_state::notice::counted;
use swarm_state::screen::printable;
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
    let (course, known) = (course.clone(), known.cloned());
    let work = tokio::task::spawn_blocking(move || hashes_now(&course, known.as_ref()));
    work.await.map_err(|e| Error::system("cannot look at the protected files", e))?
}

/// The same, on this thread.
///
/// # Errors
/// As there.
pub(super) fn hashes_now(course: &Course, known: Option<&Base>) -> Result<BTreeMap<String, String>> {
    if course.gates.allow_changed_checks {
        return Ok(BTreeMap::new());
    }
    hash_all(course, known.map(|base| base.protected.keys().cloned().collect()).as_ref())
}

fn hash_all(course: &Course, known: Option<&BTreeSet<String>>) -> Result<BTreeMap<String, String>> {
    let mut hashes = BTreeMap::new();
    let mut keep = |name: String, file: &Path, hash: fn(&Path) -> io::Result<String>| {
        let path = course.cwd.join(file);
        let hash = hash(&path).map_err(|e| Error::system(format!("cannot read '{}'", path.display()), e))?;
        hashes.insert(name, hash);
        Ok::<_, Error>(())
    };
    for file in by_name(course) {
        let name = script_name(&file);
        // What comes in the place of a file that was there is read instead of it.
        let anchors = scripts::anchors(&file.to_string_lossy());
        let replaces = |known: &BTreeSet<String>| {
            anchors.iter().any(|anchor| known.contains(&script_name(Path::new(anchor))))
        };
        if known.is_none_or(|known| known.contains(&name) || replaces(known)) {
            keep(name, &file, if scripts::is_shared(&file.to_string_lossy()) { hash_scripts } else { hash })?;
        }
    }
    if !course.gates.protect.is_empty() {
        let globs = globs(&course.gates.protect)?;
        for file in matching(&course.cwd, &globs) {
            keep(file.to_string_lossy().into_owned(), &file, hash)?;
        }
    }
    Ok(hashes)
}

/// What a script that a check runs is called among the protected files.
fn script_name(file: &Path) -> String {
    let name = file.to_string_lossy();
    if scripts::is_shared(&name) { format!("{name} (its scripts)") } else { name.into_owned() }
}

/// What a person should know of what is watched, and may not expect.
pub(super) fn warnings(course: &Course, watched: &BTreeMap<String, String>) -> Result<Vec<String>> {
    let gates = &course.gates;
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
            warnings.push(format!("--protect '{glob}' matches no file: it watches for new ones only"));
        }
    }
    let is_bare = |check: &&String| {
        let files =
            scripts::candidates(check).into_iter().filter_map(|word| within(&course.cwd, Path::new(&word)));
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
            "no file is watched behind '{}'{more}: an iteration may change what is tested, unless --protect names it",
            printable(first)
        ));
    }
    Ok(warnings)
}

/// Refuses globs that are none.
pub(crate) fn check(texts: &[String]) -> Result<()> {
    for text in texts {
        let cure = "as in --protect 'tests/**/*.py'; ** goes into directories";
        let outside = Path::new(text).components().any(|part| part == Component::ParentDir);
        if outside || Path::new(text).is_absolute() {
            let message = format!("--protect '{text}' is not in the worker's directory");
            return Err(Error::usage(message).hint("protected files are those of the worker's directory"));
        }
        if matches!(bare(text).trim(), "" | ".") {
            return Err(Error::usage(format!("--protect '{text}' names no file")).hint(cure));
        }
    }
    globs(texts).map(drop)
}

/// A glob without what only says that it begins here or is a directory.
fn bare(text: &str) -> &str {
    text.trim_start_matches("./").trim_end_matches('/')
}

/// Compiles what `--protect` was given. A directory stands for all in it.
///
/// # Errors
/// Names the glob that is none.
fn globs(texts: &[String]) -> Result<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for text in texts {
        let bare = bare(text);
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

/// The path relative to the tree, when it is a file in it, or one beside it that a check names from within.
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
    // What stands before `..` may be a link, so the disk says where it leads.
    let dir = root.join(&relative).parent()?.canonicalize().ok()?;
    let whole = dir.join(relative.file_name()?);
    Some(
        root.canonicalize()
            .ok()
            .and_then(|root| Some(whole.strip_prefix(root).ok()?.to_owned()))
            .unwrap_or(relative),
    )
}

/// The scripts of a file that holds more.
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
    // Whether it can be run is a part of what it is.
    hasher.update([u8::from(fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o111 != 0))]);
    // A link also stands for what it leads to; where that is nothing, or no file, the link is all.
    if path.is_file() {
        io::copy(&mut fs::File::open(path)?, &mut hasher)?;
    }
    Ok(hex(&hasher.finalize()))
}
