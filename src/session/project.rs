//! Reads and prepares a do-it project: its documents for the preflight, the contract, the branch, the archive.
//!
//! `swarm_state::session::preflight` checks the documents. The branch and the archive of the previous run are made only
//! with the user's options. When anything is missing, nothing is changed. Used by [`super::start`].

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use swarm_state::session::{
    Branch, Change, DoItOptions, Doc, Missing, Project, ProjectType, SessionId, SessionKind, SessionLoop,
    Words, built_in_contract, preflight, substitute,
};

use super::store::SessionStore;
use crate::error::{Error, Result};
use crate::files::entries;
use crate::runtime::block_on;
use crate::store::read_bounded;
use crate::{git, paths};

/// The directory that makes a directory a do-it project.
const DO_IT: &str = ".do-it";

/// The maximum size of a document.
const MAX_DOCUMENT_BYTES: u64 = 4 << 20;

/// The request to start a session loop.
#[derive(Clone, Debug)]
pub struct StartRequest {
    /// The kind of loop.
    pub kind: SessionKind,
    /// The session that will own the loop.
    pub session: SessionId,
    /// The project's directory, or one below it.
    pub dir: PathBuf,
    /// The task and the options.
    pub words: Words,
}

/// Returns the project of a directory: the nearest parent with a `.do-it`, else the directory itself.
pub fn root_of(dir: &Path) -> PathBuf {
    dir.ancestors().find(|dir| dir.join(DO_IT).is_dir()).unwrap_or(dir).to_owned()
}

/// Checks the project, and returns the loop, its options and warnings for the user. The error lists everything that is
/// missing, each with its fix.
pub fn prepare(
    sessions: &SessionStore,
    root: &Path,
    request: &StartRequest,
    now: DateTime<Utc>,
) -> Result<(SessionLoop, DoItOptions, Vec<String>)> {
    let words = &request.words;
    let meta = read_bounded(&root.join(DO_IT).join("specs/_meta.json"), MAX_DOCUMENT_BYTES).ok();
    let specs = docs(root, &root.join(DO_IT).join("specs"), "_meta.json");
    let changes = changes(root);
    let name = meta.as_deref().and_then(ProjectType::branch_of);
    let (branch, clash) =
        match name.as_deref().map(|name| block_on(git::has_branch(root, name)).and_then(|found| found)) {
            None | Some(Ok(None)) => (Branch::NoRepository, None),
            Some(Ok(Some(true))) => (Branch::Exists, None),
            Some(Ok(Some(false))) => (Branch::Missing, None),
            Some(Err(error)) => (Branch::Missing, Some(error)),
        };
    let project = Project {
        meta: meta.as_deref(),
        specs: &specs,
        changes: &changes,
        branch,
        may_create_branch: words.create_branch,
        ceiling: words.max_iterations,
    };
    let ready = preflight(&project).map_err(|missing| refused(&missing))?;
    let contract = contract(root, words.contract.as_deref())?;
    if ready.create_branch {
        match clash {
            Some(error) => return Err(error),
            None => block_on(git::make_branch(root, &ready.branch_name))??,
        }
    }
    let mut warnings = vec![];
    if words.archive_on_branch_change {
        let last = sessions.last_branch(root).filter(|last| *last != ready.branch_name);
        warnings.extend(last.map(|last| archive(root, &last, now)).transpose()?);
    }
    // The next run compares its branch with this one. Without it, the next run archives nothing.
    let _ = sessions.keep_last_branch(root, &ready.branch_name);
    let body = substitute(&contract, &ready, &root.to_string_lossy());
    let state = SessionLoop::do_it(request.session.clone(), &ready, body);
    let state = SessionLoop { started_at: Some(now), ..state };
    let pinned = words.contract.as_ref().map(|file| paths::pin(&root.join(file)));
    let options = DoItOptions {
        no_diff_limit: words.no_diff_limit.unwrap_or(0),
        archive_on_branch_change: words.archive_on_branch_change,
        contract: pinned.transpose().map_err(|e| Error::system("cannot use the contract", e))?,
    };
    Ok((state, options, warnings))
}

fn refused(missing: &[Missing]) -> Error {
    let lines: Vec<String> =
        missing.iter().map(|one| format!("  - {}\n    to fix it: {}", one.what, one.fix)).collect();
    Error::invalid(format!(
        "the project is not ready for a loop, and none was started:\n{}",
        lines.join("\n")
    ))
}

fn contract(root: &Path, file: Option<&str>) -> Result<Vec<u8>> {
    let Some(file) = file else { return Ok(built_in_contract().as_bytes().to_vec()) };
    read_bounded(&root.join(file), MAX_DOCUMENT_BYTES)
        .map_err(|e| Error::system(format!("cannot read the contract '{file}'"), e))
}

/// Returns the open changes, without the archived ones.
fn changes(root: &Path) -> Vec<Change> {
    let folder = root.join(DO_IT).join("changes");
    entries(&folder)
        .into_iter()
        .filter(|path| path.is_dir())
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.to_owned();
            Some(Change { docs: docs(root, &path, ""), name })
        })
        .collect()
}

/// Returns the documents of a folder and its subfolders.
fn docs(root: &Path, folder: &Path, except: &str) -> Vec<Doc> {
    let walk = walkdir::WalkDir::new(folder).max_depth(4).sort_by_file_name();
    walk.into_iter()
        .flatten()
        .filter(|entry| entry.file_type().is_file() && entry.file_name() != except)
        .filter_map(|entry| {
            let text =
                String::from_utf8_lossy(&read_bounded(entry.path(), MAX_DOCUMENT_BYTES).ok()?).into_owned();
            let path = entry.path().strip_prefix(root).unwrap_or(entry.path()).display().to_string();
            Some(Doc { path, text })
        })
        .collect()
}

/// Copies the progress and the open changes of the previous run, which was on another branch, to the archive.
fn archive(root: &Path, last: &str, now: DateTime<Utc>) -> Result<String> {
    let folder = root.join(DO_IT).join("archive");
    let name = format!("{}-{}", now.format("%Y-%m-%d"), last.replace('/', "-"));
    let fail = |e: io::Error| Error::system("cannot archive the previous run", e);
    let mut place = folder.join(&name);
    for n in 2.. {
        if !place.exists() {
            break;
        }
        place = folder.join(format!("{name}.{n}"));
    }
    fs::create_dir_all(&place).map_err(fail)?;
    let progress = root.join(DO_IT).join("progress.md");
    if progress.is_file() {
        fs::copy(&progress, place.join("progress.md")).map_err(fail)?;
    }
    let changes = root.join(DO_IT).join("changes");
    for path in entries(&changes).iter().filter(|path| path.is_dir() && !path.ends_with("archive")) {
        copy(path, &place.join(path.strip_prefix(&changes).unwrap_or(path))).map_err(fail)?;
    }
    let shown = place.strip_prefix(root).unwrap_or(&place).display();
    Ok(format!(
        "the previous run was on branch {last}; its progress and open changes are archived in {shown}"
    ))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for entry in walkdir::WalkDir::new(from) {
        let entry = entry?;
        let place = to.join(entry.path().strip_prefix(from).unwrap_or(entry.path()));
        if entry.file_type().is_dir() {
            fs::create_dir_all(&place)?;
        } else if entry.file_type().is_file() {
            fs::copy(entry.path(), &place)?;
        }
    }
    Ok(())
}
