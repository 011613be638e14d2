//! Takes snapshots: a commit of the working tree, untracked files included, under `refs/swarm/`.
//!
//! The user's index, HEAD, stash, branches and files stay unchanged. A separate index, which starts as a copy of
//! theirs, adds everything, including files marked to be skipped. Callers keep it for the next snapshot, so that
//! git does not read unchanged files again.
//! Files whose filter fails are added unfiltered. No hook and no file watcher runs. Ignored files
//! and the contents of nested repositories are not in a snapshot.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use swarm_state::ledger::DiffStat;

use super::listing::{gitlinks, hidden_files};
use super::repo::Repo;
use super::run::{LONG_TIMEOUT, ask, filters_of, git, git_patient, git_with};
use super::{SHORT_TIMEOUT, refuse_occupied};
use crate::error::{Error, Result, failed};
use crate::files::if_exists;

const AUTHOR: &str = "swarm";
const ADDRESS: &str = "swarm@localhost";

/// Overrides the user's settings: write no split index into the repository, print no advice. See a file as changed
/// even if its modification time was set back.
pub(super) const QUIET_OPTIONS: [&str; 12] = [
    "-c",
    "core.splitIndex=false",
    "-c",
    "core.safecrlf=false",
    "-c",
    "advice.addEmbeddedRepo=false",
    "-c",
    "gc.auto=0",
    "-c",
    "core.trustctime=true",
    "-c",
    "core.checkStat=default",
];

const CANNOT_TAKE: &str = "cannot take a snapshot";
const CANNOT_COMPARE: &str = "cannot compare";

/// How many files one git command gets.
pub(super) const BATCH_FILES: usize = 500;

/// The end of the ref of a snapshot that was taken after an interruption, before the iteration was repeated.
pub(crate) const INTERRUPTED: &str = "-interrupted";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeSnapshot {
    pub commit: String,
    /// Its tree. Equal trees have equal files.
    pub tree: String,
    /// The commit that was checked out; `None` before the first commit.
    pub head: Option<String>,
}

/// Takes a snapshot of the working tree that holds `dir` and stores it under `reference`
/// (`refs/swarm/NAME/LOOP/ITERATION`). `own_index` is a path outside the tree for the separate index. If the file
/// exists, it must be the index of an earlier snapshot of this tree. `None` if `dir` is not in a working tree. Fails
/// with git's message if the snapshot fails. Unreadable files are left out without an error.
pub(crate) async fn snapshot(
    dir: &Path,
    reference: &str,
    own_index: &Path,
    message: &str,
) -> Result<Option<TreeSnapshot>> {
    let Some(repo) = places(dir).await? else { return Ok(None) };
    take(repo, reference, own_index, message).await.map(Some)
}

/// The tree that a snapshot would have now, without a commit or a ref. `None` if `dir` is not in a working tree.
pub(crate) async fn tree(dir: &Path, own_index: &Path) -> Result<Option<String>> {
    let Some(repo) = places(dir).await? else { return Ok(None) };
    write_tree(&repo, own_index).await.map(Some)
}

/// The repositories inside the working tree that holds `dir`, submodules included, relative to its top. A snapshot
/// does not contain their files. Ignored ones are left out. `None` if `dir` is not in a working tree.
pub(crate) async fn nested(dir: &Path) -> Result<Option<Vec<String>>> {
    let Some(Places { top, .. }) = places(dir).await? else { return Ok(None) };
    let what = "cannot look for nested repositories";
    let known = ask(&top, what, &[&QUIET_OPTIONS[..], &["ls-files", "-z", "--stage"]].concat()).await?;
    let others = [&QUIET_OPTIONS[..], &["ls-files", "-z", "--others", "--exclude-standard"]].concat();
    let others = ask(&top, what, &others).await?;
    let links = gitlinks(known.bytes()).into_iter();
    let mut found: Vec<String> = links.map(|(_, path)| path.to_string_lossy().into_owned()).collect();
    found.extend(untracked_repositories(others.bytes()));
    // A submodule that was never fetched is an empty directory.
    found.retain(|repo| top.join(repo).join(".git").exists());
    found.sort();
    found.dedup();
    Ok(Some(found))
}

/// Parses the output of `git ls-files -z --others` for repositories, which it lists as directories.
fn untracked_repositories(output: &[u8]) -> Vec<String> {
    let entries = String::from_utf8_lossy(output);
    entries.split('\0').filter_map(|entry| Some(entry.strip_suffix('/')?.to_owned())).collect()
}

struct Places {
    top: PathBuf,
    index: PathBuf,
    /// The commit that is checked out; `None` before the first commit.
    head: Option<String>,
}

/// The working tree that holds `dir`. `None` also if the repository's settings name a working tree elsewhere: a
/// snapshot of that would prove nothing about `dir`.
async fn places(dir: &Path) -> Result<Option<Places>> {
    let asked = ["rev-parse", "--path-format=absolute", "--show-toplevel", "--git-path", "index"];
    let said = git(dir, SHORT_TIMEOUT, &[&asked[..], &["--revs-only", "HEAD"]].concat()).await?;
    let text = said.text();
    let mut lines = text.lines();
    let (Some(top), Some(index), true) = (lines.next(), lines.next(), said.ok) else { return Ok(None) };
    let places = Places { top: top.into(), index: index.into(), head: lines.next().map(str::to_owned) };
    let here = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let is_here = here.starts_with(places.top.canonicalize().as_ref().unwrap_or(&places.top));
    Ok(is_here.then_some(places))
}

async fn take(repo: Places, reference: &str, own_index: &Path, message: &str) -> Result<TreeSnapshot> {
    let tree = write_tree(&repo, own_index).await?;
    let Places { top, head, .. } = repo;
    let mut commit = vec!["commit-tree", &tree, "-m", message];
    if let Some(head) = &head {
        commit.extend(["-p", head.as_str()]);
    }
    let author = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].map(|key| (key, OsStr::new(AUTHOR)));
    let address = ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|key| (key, OsStr::new(ADDRESS)));
    let env = [author, address].concat();
    let commit = git_with(&top, SHORT_TIMEOUT, &env, &[], &commit).await?.checked(CANNOT_TAKE)?.text();
    let update = [&QUIET_OPTIONS[..], &["update-ref", reference, &commit]].concat();
    git_patient(&top, SHORT_TIMEOUT, &update).await?.checked(CANNOT_TAKE)?;
    Ok(TreeSnapshot { commit, tree, head })
}

/// Adds everything to the separate index and writes its tree.
async fn write_tree(repo: &Places, own_index: &Path) -> Result<String> {
    // A killed git left its lock. Nothing else uses this index.
    let mut lock = own_index.as_os_str().to_owned();
    lock.push(".lock");
    let _ = fs::remove_file(lock);
    // The objects of a kept index are gone if the repository was replaced.
    if own_index.exists()
        && let Ok(tree) = add_all(&repo.top, own_index).await
    {
        return Ok(tree);
    }
    let _ = fs::remove_file(own_index);
    copy_index(&repo.index, own_index)?;
    show_hidden(&repo.top, &[("GIT_INDEX_FILE", own_index.as_os_str())]).await?;
    let added = add_all(&repo.top, own_index).await;
    if added.is_err() {
        let _ = fs::remove_file(own_index);
    }
    added
}

async fn add_all(top: &Path, own_index: &Path) -> Result<String> {
    let own = [("GIT_INDEX_FILE", own_index.as_os_str())];
    let links = links_with_repository(top, &own).await?;
    let excluded = links.iter().map(|link| format!(":(exclude,literal){link}"));
    let add: Vec<String> = QUIET_OPTIONS
        .iter()
        .chain(&["add", "--all", "--ignore-errors", "--", "."])
        .map(|word| (*word).to_owned())
        .chain(excluded)
        .collect();
    let mut added = git_with(top, LONG_TIMEOUT, &own, &[], &add).await?;
    let filters = if !added.ok && added.mentions("filter") { filters_of(top).await? } else { vec![] };
    if !filters.is_empty() {
        // A required filter that fails stops `git add`. Without the filter, the files are added as they are.
        added = git_with(top, LONG_TIMEOUT, &own, &filters, &add).await?;
    }
    if added.is_fatal() {
        return added.checked(CANNOT_TAKE).map(|said| said.text());
    }
    // The commits that are checked out in the nested repositories.
    let update = ["update-index", "--ignore-missing", "--"];
    let update = QUIET_OPTIONS.iter().chain(&update).copied().chain(links.iter().map(String::as_str));
    if !links.is_empty() {
        // One without a commit stays as it is.
        git_with(top, SHORT_TIMEOUT, &own, &[], &update.collect::<Vec<_>>()).await?;
    }
    // This checks files that changed just now again, with the same filters.
    let write = [&QUIET_OPTIONS[..], &["write-tree"]].concat();
    let written = git_with(top, LONG_TIMEOUT, &own, &filters, &write).await?;
    match written.checked(CANNOT_TAKE) {
        Ok(written) => Ok(written.text()),
        Err(error) => added.checked(CANNOT_TAKE).and(Err(error)),
    }
}

/// Copies the index with its modification time: by it, git sees which files may have changed while it was written.
fn copy_index(index: &Path, scratch: &Path) -> Result<()> {
    let trouble = |e| failed("write", scratch, e);
    if if_exists(fs::copy(index, scratch)).map_err(trouble)?.is_none() {
        return Ok(());
    }
    let time = fs::metadata(index).and_then(|index| index.modified()).map_err(trouble)?;
    let copy = fs::OpenOptions::new().write(true).open(scratch).map_err(trouble)?;
    copy.set_modified(time).map_err(trouble)
}

/// Makes git read files that are marked to be skipped, if they exist.
async fn show_hidden(top: &Path, own: &[(&str, &OsStr)]) -> Result<()> {
    let said =
        git_with(top, LONG_TIMEOUT, own, &[], &[&QUIET_OPTIONS[..], &["ls-files", "-v", "-z"]].concat())
            .await?;
    let there = |file: &Vec<u8>| top.join(OsStr::from_bytes(file)).symlink_metadata().is_ok();
    let hidden: Vec<Vec<u8>> = hidden_files(said.bytes()).into_iter().filter(there).collect();
    for files in hidden.chunks(BATCH_FILES) {
        for flag in ["--no-assume-unchanged", "--no-skip-worktree"] {
            let words = [&QUIET_OPTIONS[..], &["update-index", flag, "--"]].concat();
            let mut args: Vec<&OsStr> = words.into_iter().map(OsStr::new).collect();
            args.extend(files.iter().map(|file| OsStr::from_bytes(file)));
            git_with(top, LONG_TIMEOUT, own, &[], &args).await?.checked(CANNOT_TAKE)?;
        }
    }
    Ok(())
}

/// The nested repositories in an index. For these, `git add` would run git in the repository, with its filters.
async fn links_with_repository(top: &Path, own: &[(&str, &OsStr)]) -> Result<Vec<String>> {
    let listed = git_with(top, LONG_TIMEOUT, own, &[], &["ls-files", "-z", "--stage"]).await?;
    let links = gitlinks(listed.bytes()).into_iter().map(|(_, path)| path.to_string_lossy().into_owned());
    Ok(links.filter(|link| top.join(link).join(".git").exists()).collect())
}

/// The diff between two snapshots, commits or trees, with these options of git. Fails with git's message.
pub(crate) async fn diff(dir: &Path, options: &[&str], from: &str, to: &str) -> Result<String> {
    // A setting of the user's must not change the names.
    let fixed = ["-c", "core.quotePath=false", "diff", "--no-color", "--no-ext-diff", "--no-textconv"];
    let names = ["--src-prefix=a/", "--dst-prefix=b/", from, to, "--"];
    let said = git(dir, LONG_TIMEOUT, &[&fixed[..], options, &names].concat()).await?;
    Ok(String::from_utf8_lossy(said.checked(CANNOT_COMPARE)?.bytes()).into_owned())
}

/// The size of that diff, and whether it changes a `.gitignore`: a kept index still has the files that it ignores now.
pub(crate) async fn diff_stat(dir: &Path, from: &str, to: &str) -> Result<(DiffStat, bool)> {
    let args = ["diff", "--numstat", "--no-ext-diff", "--no-textconv", "--no-renames", from, to, "--"];
    let said = git(dir, LONG_TIMEOUT, &args).await?.checked(CANNOT_COMPARE)?;
    let changes_rules = said.text().lines().any(|line| line.ends_with(".gitignore"));
    Ok((counted(said.bytes()), changes_rules))
}

/// The files below `dir`, relative to it, that exist in `from` and differ or are missing in `to`.
pub(crate) async fn changed_between(dir: &Path, from: &str, to: &str) -> Result<Vec<String>> {
    let args =
        ["diff", "--name-only", "--diff-filter=MDT", "-z", "--relative", "--no-ext-diff", "--no-renames"];
    let said = git(dir, LONG_TIMEOUT, &[&args[..], &[from, to, "--"]].concat()).await?;
    Ok(said.checked(CANNOT_COMPARE)?.names().collect())
}

/// Sums the output of `--numstat`: `ADDED<tab>REMOVED<tab>FILE`, with `-` for a binary file.
pub(super) fn counted(output: &[u8]) -> DiffStat {
    let mut stat = DiffStat::default();
    for line in output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let mut numbers =
            line.split(|byte| *byte == b'\t').map(|part| String::from_utf8_lossy(part).parse().unwrap_or(0));
        stat.files += 1;
        stat.added = stat.added.saturating_add(numbers.next().unwrap_or(0));
        stat.removed = stat.removed.saturating_add(numbers.next().unwrap_or(0));
    }
    stat
}

/// Checks a snapshot out into a new worktree `dir` on the new branch `branch`. Returns its path. Fails with
/// `ErrorCode::Invalid` if `dir` or the branch exists, otherwise with git's message.
pub(crate) async fn restore(
    repo: &Path,
    commit: &str,
    dir: Option<&Path>,
    name: &str,
    branch: &str,
) -> Result<PathBuf> {
    let found = Repo::find(repo).await?;
    let dir = match dir {
        Some(dir) => dir.to_owned(),
        None => found.default_dir()?.join(name),
    };
    refuse_occupied(&dir).map_err(|error| error.hint("remove it, or choose another directory with --dir"))?;
    if found.branch_exists(branch).await? {
        let text = format!("branch '{branch}' already exists");
        return Err(Error::invalid(text)
            .hint("it may be an earlier restore: look at it, or choose another one with --branch"));
    }
    let args = [
        OsStr::new("worktree"),
        "add".as_ref(),
        "-b".as_ref(),
        branch.as_ref(),
        dir.as_os_str(),
        commit.as_ref(),
    ];
    let said = git_patient(repo, LONG_TIMEOUT, &args).await?;
    said.checked(format_args!("cannot restore into '{}'", dir.display()))?;
    Ok(dir)
}
