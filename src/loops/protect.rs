//! Watched files, which no iteration may change: files that the user named, scripts that checks run, the task, the
//! configuration of known test runners, and the programs that checks start.
//!
//! An agent that deletes the failing test has made the check pass without doing the work. The hashes are in the
//! loop's folder, outside the agent's tree. Not watched, although a glob matches them: caches, files that git ignored
//! before the first iteration, and files that the checks write by themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use swarm_state::gates::Gates;
use swarm_state::ignored::is_generated;
use swarm_state::ledger::Base;
use swarm_state::notice::counted;
use swarm_state::runners::Expansion;
use swarm_state::screen::printable;
use swarm_state::{runners, scripts};

use super::run::LoopRun;
use crate::error::{Error, Result};
use crate::git;

mod config;
mod dependencies;
mod hashing;
mod programs;
mod tree;

pub(super) use config::tests;
use hashing::Hashes;
pub(super) use hashing::hash;
pub(crate) use programs::is_program;
pub(super) use tree::globs;
use tree::{IgnoreRules, bare, within};

/// The largest script or makefile that is searched for commands.
const MAX_FOLLOWED_BYTES: u64 = 1 << 20;

/// Sets everything in a new baseline that [`hashes`] depends on. Fails when a glob is invalid or a file unreadable.
pub(super) async fn begin(loop_run: &LoopRun, base: Base) -> Result<Base> {
    let tracked = git::tracked(&loop_run.cwd).await?.into_iter().collect();
    let loop_run = loop_run.clone();
    blocking(move || begin_now(&loop_run, base, tracked)).await
}

fn begin_now(loop_run: &LoopRun, mut base: Base, tracked: BTreeSet<String>) -> Result<Base> {
    let root = &loop_run.cwd;
    let found = expanded(root, &loop_run.gates, &loop_run.watched_commands());
    base.runners = found.runners;
    base.taken = chrono::Utc::now().timestamp();
    if loop_run.gates.allow_changed_checks {
        return Ok(base);
    }
    base.ignore_rules = tree::ignore_rules(root, &loop_run.gates.protect, !base.runners.is_empty());
    if !loop_run.is_in_docker() {
        programs::begin(loop_run, &mut base, found.programs);
    }
    dependencies::begin(root, &mut base);
    base.scripts = by_name(loop_run, &found.scripts).into_iter().collect();
    base.protected = hash_all(loop_run, &base, Some(&tracked))?;
    Ok(base)
}

/// Everything that the checks start.
fn expanded(root: &Path, gates: &Gates, checks: &[String]) -> Expansion {
    let read = |file: &str| {
        String::from_utf8(crate::files::read_bounded(&root.join(file), MAX_FOLLOWED_BYTES).ok()?).ok()
    };
    runners::expand(&runners::table_with(&gates.runners), checks, &read)
}

/// Refuses `--protect-tests` if no check starts a runner whose tests are known.
pub(crate) fn check_tests(root: &Path, gates: &Gates) -> Result<()> {
    let has_tests =
        || expanded(root, gates, &gates.checks).runners.iter().any(|using| !using.runner.tests.is_empty());
    if !gates.protect_tests || has_tests() {
        return Ok(());
    }
    Err(Error::usage("--protect-tests requires a check with a known test runner")
        .hint("name the test files: --protect GLOB; or describe the runner: man swarm-config"))
}

/// Stops watching files that the checks wrote since [`begin`]. Call it before any agent works.
pub(super) async fn leave_out_written(loop_run: &LoopRun, base: &mut Base) -> Result<()> {
    let now = hashes(loop_run, base).await?;
    base.leave_out_written(&now);
    Ok(())
}

/// The watched files and their hashes. The names are relative to the worker's directory if the files are in it; a part
/// of a file is in brackets after its name. Empty if changes are allowed. A script that the baseline does not
/// contain is part of the work.
pub(super) async fn hashes(loop_run: &LoopRun, base: &Base) -> Result<BTreeMap<String, String>> {
    let (loop_run, base) = (loop_run.clone(), base.clone());
    blocking(move || hash_all(&loop_run, &base, None)).await
}

/// The dependency folders that changed since the baseline. Fails when the work is canceled.
pub(super) async fn changed_dependencies(loop_run: &LoopRun, base: &Base) -> Result<Vec<String>> {
    let (root, base) = (loop_run.cwd.clone(), base.clone());
    blocking(move || Ok(dependencies::changed(&root, &base))).await
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let work = tokio::task::spawn_blocking(work);
    work.await.map_err(|e| Error::system("cannot read the watched files", e))?
}

/// As [`hashes`], blocking. `tracked` is set while the baseline is taken: the files that git tracks are then watched
/// although they are in a cache or git ignores them. A file that `--protect` names exactly is always watched.
pub(super) fn hash_all(
    loop_run: &LoopRun,
    base: &Base,
    tracked: Option<&BTreeSet<String>>,
) -> Result<BTreeMap<String, String>> {
    let mut hashes = Hashes { root: &loop_run.cwd, found: BTreeMap::new() };
    if loop_run.gates.allow_changed_checks {
        return Ok(hashes.found);
    }
    base.scripts.iter().chain(base.protected.keys()).try_for_each(|name| hashes.known(name))?;
    let rules = IgnoreRules::new(&base.ignore_rules);
    let protect = &loop_run.gates.protect;
    let is_own = |name: &str| {
        base.protected.contains_key(name)
            || tracked.is_some_and(|files| files.contains(name))
            || protect.iter().any(|text| bare(text) == name)
    };
    let is_left_out =
        |name: &str| is_generated(name) || base.is_written(name) || rules.ignore(&loop_run.cwd.join(name));
    if !protect.is_empty() {
        for file in tree::matching(&loop_run.cwd, protect, &globs(protect)?) {
            let name = file.to_string_lossy();
            if is_own(&name) || !is_left_out(&name) {
                hashes.file(&name)?;
            }
        }
    }
    config::add(loop_run, base, tracked, &rules, &mut hashes)?;
    dependencies::add(base, &mut hashes)?;
    programs::add(loop_run, base, &mut hashes);
    hashes.found.retain(|name, _| !base.is_written(name));
    // The baseline of an older release has the scripts of a package under this name.
    let older = base.protected.iter().filter(|(name, _)| name.ends_with(" (its scripts)"));
    hashes.found.extend(older.map(|(name, hash)| (name.clone(), hash.clone())));
    Ok(hashes.found)
}

/// Warnings about watched and unwatched files.
pub(super) fn warnings(loop_run: &LoopRun, base: &Base) -> Result<Vec<String>> {
    let (gates, watched) = (&loop_run.gates, &base.protected);
    let mut warnings = vec![];
    for glob in &gates.rooms.fix {
        let one = std::slice::from_ref(glob);
        if tree::matching(&loop_run.cwd, one, &globs(one)?).is_empty() {
            warnings.push(format!("--fix '{glob}' matches no file yet"));
        }
    }
    if gates.allow_changed_checks {
        return Ok(warnings);
    }
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
        let has_runner = base.runners.iter().any(|using| using.check == **check);
        !has_runner
            && !files.map(|file| file.to_string_lossy().into_owned()).any(|name| watched.contains_key(&name))
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

pub(crate) fn check(texts: &[String]) -> Result<()> {
    for text in texts {
        let hint = "for example --protect 'tests/**/*.py'; ** matches subdirectories";
        let outside = Path::new(text).components().any(|part| part == Component::ParentDir);
        if outside || Path::new(text).is_absolute() {
            let message = format!("--protect '{text}' is not in the worker's directory");
            return Err(Error::usage(message).hint("--protect accepts paths below the worker's directory"));
        }
        if matches!(bare(text).trim(), "" | ".") {
            return Err(Error::usage(format!("--protect '{text}' names no file")).hint(hint));
        }
    }
    globs(texts).map(drop)
}

/// Refuses globs of `--fix` if one is invalid or none matches a file of the tree `root`.
pub(crate) fn check_fix(root: &Path, texts: &[String]) -> Result<()> {
    let refuse = |text: &str, why: &str| {
        Err(Error::usage(format!("--fix '{text}' {why}"))
            .hint("for example --fix 'src/**'; ** matches subdirectories of the worker's directory"))
    };
    let mut has_match = false;
    for text in texts {
        let one = std::slice::from_ref(text);
        let outside = Path::new(text).components().any(|part| part == Component::ParentDir);
        match globs(one) {
            _ if outside || Path::new(text).is_absolute() => {
                return refuse(text, "is not in the worker's directory");
            }
            Err(_) => return refuse(text, "is not a valid glob"),
            Ok(set) => has_match |= !tree::matching(root, one, &set).is_empty(),
        }
    }
    match texts.first() {
        Some(text) if !has_match => refuse(text, "matches no file"),
        _ => Ok(()),
    }
}

/// The scripts that checks run, if they are in the tree, and the task file.
fn by_name(loop_run: &LoopRun, scripts: &[String]) -> BTreeSet<String> {
    let scripts = scripts.iter().filter_map(|word| within(&loop_run.cwd, Path::new(word)));
    let task = loop_run.task_file.iter().filter(|file| file.is_file());
    let task = task.map(|file| within(&loop_run.cwd, file).unwrap_or_else(|| file.clone()));
    scripts.chain(task).map(|file| file.to_string_lossy().into_owned()).collect()
}
