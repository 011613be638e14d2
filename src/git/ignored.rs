//! Lists and measures the ignored files of a worktree, and adds patterns to those that git ignores.
//!
//! git names them without looking into an ignored directory. swarm then counts the files of each path up to a limit,
//! so that a `node_modules` with 200,000 files does not slow down a removal. Repositories in the worktree (submodules
//! too) have their own ignore rules and are listed separately.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use swarm_state::ignored::{CACHE_MARKERS, IgnoredFiles, IgnoredKind, IgnoredPath, kind};

use super::listing::{repositories, status_entries, walk};
use super::run::{LONG_TIMEOUT, SHORT_TIMEOUT, filters_of, git, git_patient, git_patient_set};
use crate::error::{Result, failed};
use crate::files::if_exists;

/// How many directory entries are counted in a worktree. Larger directories are reported as "at least".
const MAX_COUNTED_FILES: u64 = 20_000;

pub(crate) async fn ignored(tree: &Path) -> Result<IgnoredFiles> {
    let root = tree.to_owned();
    let repos = walk(move || repositories(&root)).await?;
    ignored_in(tree, &repos).await
}

/// The files below `dir` that git tracks, relative to `dir`. Empty outside of a repository.
pub(crate) async fn tracked(dir: &Path) -> Result<Vec<String>> {
    let args = ["ls-files", "-z", "--cached"];
    let listed = git_patient(dir, LONG_TIMEOUT, &args).await?;
    if !listed.ok {
        return Ok(vec![]);
    }
    Ok(listed.names().collect())
}

/// As [`ignored`], for known repositories in the worktree.
pub(super) async fn ignored_in(tree: &Path, repos: &[PathBuf]) -> Result<IgnoredFiles> {
    let mut listed = list(tree, &[]).await?;
    let mut caches: Vec<PathBuf> = cache_dirs(tree, &listed);
    // The repositories that are listed separately, without those that git cannot read.
    let (trees, mut judged): (Vec<PathBuf>, Vec<PathBuf>) =
        repos.iter().cloned().partition(|repo| repo.join(".git").exists());
    for repo in &trees {
        if caches.iter().any(|cache| repo.starts_with(cache)) {
            continue;
        }
        // An agent could have written its settings.
        let Ok(inner) = list(repo, &filters_of(repo).await?).await else { continue };
        judged.push(repo.clone());
        caches.extend(cache_dirs(repo, &inner));
        listed.extend(inner);
    }
    let root = tree.to_owned();
    walk(move || {
        let mut left = MAX_COUNTED_FILES;
        let measured = listed.iter().map(|path| measured(&root, path, &judged, &mut left));
        IgnoredFiles::new(measured.collect())
    })
    .await
}

/// The ignored paths of one repository, absolute. A directory that is ignored as a whole is one path.
async fn list(repo: &Path, settings: &[(String, &str)]) -> Result<Vec<PathBuf>> {
    let args = ["status", "--porcelain", "-z", "--untracked-files=normal", "--ignored=matching"];
    let args = [&args[..], &["--ignore-submodules=all"]].concat();
    let what = format!("cannot list the ignored files in '{}'", repo.display());
    let status = git_patient_set(repo, LONG_TIMEOUT, settings, &args).await?.checked(what)?;
    let ignored = status_entries(status.bytes()).into_iter().filter(|(state, _)| *state == b"!! ");
    Ok(ignored.map(|(_, path)| repo.join(OsStr::from_bytes(path))).collect())
}

fn cache_dirs(repo: &Path, listed: &[PathBuf]) -> Vec<PathBuf> {
    let is_cache = |path: &&PathBuf| kind_of(repo, path) == IgnoredKind::Cache && is_real_dir(path);
    listed.iter().filter(is_cache).cloned().collect()
}

/// The kind of a path. `root` is a directory above it.
fn kind_of(root: &Path, path: &Path) -> IgnoredKind {
    let is_dir = is_real_dir(path);
    let shown = path.strip_prefix(root).unwrap_or(path).to_string_lossy();
    kind(&shown, is_dir, is_dir && is_marked(path))
}

fn is_real_dir(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Whether a directory contains a file that marks it as a cache.
fn is_marked(dir: &Path) -> bool {
    CACHE_MARKERS.iter().any(|(file, start)| {
        let path = dir.join(file);
        if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
            return false;
        }
        let mut text = vec![0; start.len()];
        File::open(path).and_then(|mut file| file.read_exact(&mut text)).is_ok() && text == start.as_bytes()
    })
}

/// A path with its kind and size. `left` is how many entries may still be counted.
fn measured(root: &Path, path: &Path, judged: &[PathBuf], left: &mut u64) -> (IgnoredKind, IgnoredPath) {
    let kind = kind_of(root, path);
    let shown = path.strip_prefix(root).unwrap_or(path).to_string_lossy();
    let mut found = IgnoredPath { path: shown.trim_end_matches('/').to_owned(), ..IgnoredPath::default() };
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            found.path.push('/');
            let passed_over = (kind == IgnoredKind::Data).then_some(judged);
            count(root, path, passed_over, left, &mut found);
        }
        // Only the link is removed. Its target stays, or is listed itself.
        Ok(metadata) if metadata.is_symlink() => {}
        Ok(metadata) => (found.files, found.bytes) = (1, metadata.len()),
        Err(error) => found.at_least = error.kind() != std::io::ErrorKind::NotFound,
    }
    (kind, found)
}

/// Counts the files below a directory. In a directory that holds data (`judged` is set), skips caches and the
/// repositories that are listed separately.
fn count(root: &Path, dir: &Path, judged: Option<&[PathBuf]>, left: &mut u64, found: &mut IgnoredPath) {
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        if judged.is_some_and(|judged| judged.contains(&dir)) {
            continue;
        }
        let Ok(list) = fs::read_dir(&dir) else {
            found.at_least = true;
            continue;
        };
        for entry in list.flatten() {
            if *left == 0 {
                found.at_least = true;
                return;
            }
            *left -= 1;
            let path = entry.path();
            let Ok(metadata) = entry.metadata() else { continue };
            // A `.git` file without a target holds nothing.
            let is_link = metadata.is_symlink() || (metadata.is_file() && entry.file_name() == ".git");
            if is_link || (judged.is_some() && kind_of(root, &path) != IgnoredKind::Data) {
                continue;
            }
            if metadata.is_dir() {
                dirs.push(path);
            } else {
                found.files += 1;
                found.bytes = found.bytes.saturating_add(metadata.len());
            }
        }
    }
}

/// Adds a pattern to the `info/exclude` of the repository that holds `dir`. Does nothing outside a repository.
pub(crate) async fn exclude(dir: &Path, pattern: &str) -> Result<()> {
    let Some((path, text)) = exclude_text(dir, pattern).await? else { return Ok(()) };
    let dir = path.parent().unwrap_or(&path);
    let written = fs::create_dir_all(dir).and_then(|()| fs::write(&path, text));
    written.map_err(|e| failed("write", &path, e))
}

/// The path and the text of that file with the pattern. `None` outside a repository, or if it has the pattern.
pub(crate) async fn exclude_text(dir: &Path, pattern: &str) -> Result<Option<(PathBuf, String)>> {
    let said =
        git(dir, SHORT_TIMEOUT, &["rev-parse", "--path-format=absolute", "--git-path", "info/exclude"])
            .await?;
    if !said.ok {
        return Ok(None);
    }
    let path = said.path();
    let text =
        if_exists(fs::read_to_string(&path)).map_err(|e| failed("read", &path, e))?.unwrap_or_default();
    if text.lines().any(|line| line.trim() == pattern) {
        return Ok(None);
    }
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    Ok(Some((path, format!("{text}{gap}{pattern}\n"))))
}
