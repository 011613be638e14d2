//! Watched files, which no iteration may change: files that the user named, scripts that checks run, and the task.
//!
//! An agent that deletes the failing test has made the check pass without doing the work. The hashes are in the
//! loop's folder, outside the agent's tree. Not watched, although a glob matches them: caches, files that git ignored
//! before the first iteration, and files that the checks write by themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};
use swarm_state::ignored::is_generated;
use swarm_state::ledger::Base;
use swarm_state::notice::counted;
use swarm_state::screen::printable;
use swarm_state::scripts;

use super::run::LoopRun;
use crate::error::{Error, Result};
use crate::git;

mod tree;

pub(super) use tree::globs;
use tree::{IgnoreRules, bare};

/// Watches the files as they are now: sets `ignore_rules` and `protected` of a new baseline.
///
/// # Errors
/// When a glob is invalid or a file cannot be read.
pub(super) async fn begin(loop_run: &LoopRun, base: &mut Base) -> Result<()> {
    let globs = &loop_run.gates.protect;
    let tracked = if globs.is_empty() { vec![] } else { git::tracked(&loop_run.cwd).await? };
    base.ignore_rules = tree::ignore_rules(&loop_run.cwd, globs);
    base.protected = hashes_with(loop_run, base, Some(tracked.into_iter().collect())).await?;
    Ok(())
}

/// Stops watching what the checks wrote since [`begin`]. Call it before any agent works.
///
/// # Errors
/// As [`begin`].
pub(super) async fn leave_out_written(loop_run: &LoopRun, base: &mut Base) -> Result<()> {
    let known = base.protected.keys().cloned().collect();
    let now = hashes_with(loop_run, base, Some(known)).await?;
    base.leave_out_written(&now);
    Ok(())
}

/// The watched files and their hashes, relative to the worker's directory. Empty if changes are allowed. A script that
/// the baseline does not contain is part of the work.
///
/// # Errors
/// As [`begin`].
pub(super) async fn hashes(loop_run: &LoopRun, base: &Base) -> Result<BTreeMap<String, String>> {
    hashes_with(loop_run, base, None).await
}

async fn hashes_with(
    loop_run: &LoopRun,
    base: &Base,
    tracked: Option<BTreeSet<String>>,
) -> Result<BTreeMap<String, String>> {
    let (loop_run, base) = (loop_run.clone(), base.clone());
    let work = tokio::task::spawn_blocking(move || hash_all(&loop_run, &base, tracked.as_ref()));
    work.await.map_err(|e| Error::system("cannot read the watched files", e))?
}

/// As [`hashes`], blocking.
///
/// # Errors
/// As [`hashes`].
pub(super) fn hashes_now(loop_run: &LoopRun, base: &Base) -> Result<BTreeMap<String, String>> {
    hash_all(loop_run, base, None)
}

/// `tracked` is set while the baseline is taken: every script is watched then, and these files although they are in a
/// cache or git ignores them. A file that `--protect` names without a wildcard is always watched.
fn hash_all(
    loop_run: &LoopRun,
    base: &Base,
    tracked: Option<&BTreeSet<String>>,
) -> Result<BTreeMap<String, String>> {
    let mut hashes = BTreeMap::new();
    if loop_run.gates.allow_changed_checks {
        return Ok(hashes);
    }
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
        let is_known = |file: &str| base.protected.contains_key(file);
        let replaces = || anchors.iter().any(|anchor| is_known(&script_name(Path::new(anchor))));
        if tracked.is_some() || is_known(&name) || replaces() {
            keep(name, &file, if scripts::is_shared(&file.to_string_lossy()) { hash_scripts } else { hash })?;
        }
    }
    if loop_run.gates.protect.is_empty() {
        return Ok(hashes);
    }
    let (globs, rules) = (globs(&loop_run.gates.protect)?, IgnoreRules::new(&base.ignore_rules));
    for file in tree::matching(&loop_run.cwd, &loop_run.gates.protect, &globs) {
        let name = file.to_string_lossy().into_owned();
        let is_own = base.protected.contains_key(&name) || tracked.is_some_and(|files| files.contains(&name));
        let is_own = is_own || loop_run.gates.protect.iter().any(|text| bare(text) == name);
        let is_left_out =
            is_generated(&name) || base.is_written(&name) || rules.ignore(&loop_run.cwd.join(&file));
        if is_own || !is_left_out {
            keep(name, &file, hash)?;
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

/// Refuses globs of `--fix` that are invalid or match no file of the tree `root`.
pub(crate) fn check_fix(root: &Path, texts: &[String]) -> Result<()> {
    for text in texts {
        let one = std::slice::from_ref(text);
        let outside = Path::new(text).components().any(|part| part == Component::ParentDir);
        let refuse = |why: &str| {
            Err(Error::usage(format!("--fix '{text}' {why}"))
                .hint("for example --fix 'src/**'; ** matches subdirectories of the worker's directory"))
        };
        match globs(one) {
            _ if outside || Path::new(text).is_absolute() => {
                return refuse("is not in the worker's directory");
            }
            Err(_) => return refuse("is not a valid glob"),
            Ok(set) if tree::matching(root, one, &set).is_empty() => return refuse("matches no file"),
            Ok(_) => {}
        }
    }
    Ok(())
}

/// The scripts that checks run, if they are in the tree, and the task file.
fn by_name(loop_run: &LoopRun) -> BTreeSet<PathBuf> {
    let words = loop_run.gates.checks.iter().flat_map(|check| scripts::candidates(check));
    let scripts = words.filter_map(|word| within(&loop_run.cwd, Path::new(&word)));
    let task = loop_run.task_file.iter().filter(|file| file.is_file());
    let task = task.map(|file| within(&loop_run.cwd, file).unwrap_or_else(|| file.clone()));
    scripts.chain(task).collect()
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

pub(super) fn hash(path: &Path) -> io::Result<String> {
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
