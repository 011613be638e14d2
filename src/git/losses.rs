//! Finds what would be lost with a worktree: work that exists nowhere else.
//!
//! Looks in the worktree and in the repositories inside it. git does not look into an ignored repository, although
//! its commits would be deleted with its directory. Commits that are known to be on a remote are not lost. The
//! repositories of submodules are in the worktree's own directory below `.git/worktrees` and are deleted with it,
//! even if nothing of them is checked out. [`super::ignored()`] lists ignored files.

use std::fs;
use std::path::{Path, PathBuf};

use swarm_state::removal::Losses;

use super::head_commit;
use super::ignored::ignored_in;
use super::listing::{changed_files, hidden_files, repositories, walk};
use super::run::{LONG_TIMEOUT, SHORT_TIMEOUT, ask, filters_of, git, git_patient_set};
use crate::error::{Error, Result};

/// Returns what the removal of a worktree would delete: changed and untracked files, an unfinished operation, commits
/// that are on no branch, work that only a repository inside it holds, and ignored files.
pub(crate) async fn losses(path: &Path) -> Result<Losses> {
    let root = path.to_owned();
    let repos = walk(move || repositories(&root)).await?;
    let mut work = unfinished(path, &[]).await?;
    work.extend(loose_commit(path).await?);
    let what = format!("cannot check '{}' for work", path.display());
    let git_dir = ask(path, &what, &["rev-parse", "--absolute-git-dir"]).await?.path();
    work.extend(nested_losses(path, &repos, &git_dir).await?);
    work.extend(module_losses(&git_dir).await?);
    // Last, so that little time passes before the removal; git checks the rest again itself.
    let ignored = ignored_in(path, &repos).await?;
    Ok(Losses { work, ignored })
}

/// The commits in the repositories of a worktree's submodules that exist nowhere else. `git_dir` is the worktree's
/// own directory, `.git/worktrees/NAME`. [`nested_losses`] already covers submodules that are checked out.
pub(super) async fn module_losses(git_dir: &Path) -> Result<Vec<String>> {
    let modules = git_dir.join("modules");
    let root = modules.clone();
    let repos = walk(move || {
        let mut repos = repositories(&root);
        let mut at = 0;
        // A submodule's own submodules are in its repository.
        while let Some(repo) = repos.get(at) {
            repos.extend(repositories(&repo.join("modules")));
            at += 1;
        }
        repos.retain(|repo| !is_checked_out(repo));
        repos
    })
    .await?;
    let mut found = vec![];
    for repo in repos {
        if let Some(commits) = commits_only_there(&repo, true).await? {
            let shown = repo.strip_prefix(&modules).unwrap_or(&repo).display();
            found.push(format!("submodule '{shown}', not checked out ({commits})"));
        }
    }
    Ok(found)
}

/// Whether the working tree that a submodule's repository names exists and names that repository.
fn is_checked_out(repo: &Path) -> bool {
    let config = fs::read_to_string(repo.join("config")).unwrap_or_default();
    let tree = config.lines().find_map(|line| line.trim().strip_prefix("worktree = "));
    let Some(tree) = tree.map(|tree| repo.join(tree.trim_matches('"'))) else { return false };
    let link = fs::read_to_string(tree.join(".git")).unwrap_or_default();
    let named =
        link.trim_end().strip_prefix("gitdir: ").and_then(|dir| fs::canonicalize(tree.join(dir)).ok());
    named.is_some() && named == fs::canonicalize(repo).ok()
}

/// Changed and untracked files, and an unfinished operation. Repositories inside are listed apart.
async fn unfinished(path: &Path, settings: &[(String, &str)]) -> Result<Vec<String>> {
    let what = format!("cannot check '{}' for work", path.display());
    // Explicit options, because the user's settings may hide untracked files and changes in submodules. git may not
    // look into a submodule by itself: it would run the submodule's filters.
    let args = ["status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=dirty"];
    let status = git_patient_set(path, LONG_TIMEOUT, settings, &args).await?.checked(&what)?;
    let mut found = changed_files(status.bytes());
    // `git status` skips these files on request; changes in them are work all the same.
    let hidden = ask(path, &what, &["ls-files", "-v", "-z"]).await?;
    let hidden =
        hidden_files(hidden.bytes()).into_iter().map(|file| String::from_utf8_lossy(&file).into_owned());
    found.extend(hidden.filter(|file| path.join(file).exists()));
    let git_dir = path.join(ask(path, &what, &["rev-parse", "--git-dir"]).await?.path());
    let operations = [
        ("rebase-merge", "a rebase in progress"),
        ("rebase-apply", "a rebase in progress"),
        ("MERGE_HEAD", "a merge in progress"),
        ("CHERRY_PICK_HEAD", "a cherry-pick in progress"),
        ("REVERT_HEAD", "a revert in progress"),
        ("BISECT_LOG", "a bisect in progress"),
    ];
    for (file, operation) in operations {
        if git_dir.join(file).exists() {
            found.push(operation.to_owned());
        }
    }
    Ok(found)
}

/// The commit that is checked out, if it is on no branch.
async fn loose_commit(path: &Path) -> Result<Option<String>> {
    if git(path, SHORT_TIMEOUT, &["symbolic-ref", "--quiet", "HEAD"]).await?.ok {
        return Ok(None);
    }
    let Some(commit) = head_commit(path).await? else { return Ok(None) };
    let what = format!("cannot check '{}' for work", path.display());
    let held = ask(path, &what, &["for-each-ref", "--count=1", "--contains", &commit]).await?;
    Ok(held.text().is_empty().then(|| format!("commit {commit:.12} that no branch holds")))
}

/// Work that only the repositories in a worktree hold, one line for each.
async fn nested_losses(tree: &Path, repos: &[PathBuf], git_dir: &Path) -> Result<Vec<String>> {
    // The directories that are deleted with the worktree; the repositories of submodules are in the second one.
    let places = [tree, git_dir].map(|place| fs::canonicalize(place).unwrap_or_else(|_| place.to_owned()));
    let mut found = vec![];
    for repo in repos {
        if let Some(why) = only_there(repo, &places).await? {
            let shown = repo.strip_prefix(tree).unwrap_or(repo).display();
            found.push(format!("repository '{shown}' ({why})"));
        }
    }
    Ok(found)
}

/// The work that exists only in this repository, as text. `places` are deleted with the tree around it.
async fn only_there(repo: &Path, places: &[PathBuf]) -> Result<Option<String>> {
    let args = ["rev-parse", "--is-bare-repository", "--git-common-dir", "--show-prefix"];
    let said = git(repo, SHORT_TIMEOUT, &args).await?;
    let text = said.text();
    let mut lines = text.lines();
    let (bare, common, prefix) = (lines.next(), lines.next(), lines.next().unwrap_or_default());
    let (Some(bare), Some(common), true, "") = (bare, common, said.ok, prefix) else {
        // git found a repository above it, or none: a `.git` file without a target holds nothing.
        let objects = [".git/objects", "objects"].iter().any(|dir| repo.join(dir).is_dir());
        return Ok(objects.then(|| "git cannot read it".to_owned()));
    };
    let common = fs::canonicalize(repo.join(common)).unwrap_or_else(|_| repo.join(common));
    let mut work = match bare {
        "true" => vec![],
        // An agent could have written its settings.
        _ => unfinished(repo, &filters_of(repo).await?).await?,
    };
    if places.iter().any(|place| common.starts_with(place)) {
        if let Some(commits) = commits_only_there(repo, bare == "true").await? {
            work.insert(0, commits);
        }
    } else {
        work.extend(loose_commit(repo).await?);
    }
    Ok(match work.as_slice() {
        [] => None,
        [first] => Some(first.clone()),
        [first, rest @ ..] => Some(format!("{first} and {} more", rest.len())),
    })
}

/// git's arguments for a repository. One that is bare is addressed by its own directory: that of a submodule names a
/// working tree that may be gone, so git gets another one.
fn args_in<'a>(is_bare: bool, args: &[&'a str]) -> Vec<&'a str> {
    if is_bare { [&["--git-dir=.", "--work-tree=."], args].concat() } else { args.to_vec() }
}

/// How many commits of a repository are on none of its remotes, as text. A checked-out commit on no branch may have
/// been fetched by a tag or by its hash.
async fn commits_only_there(repo: &Path, is_bare: bool) -> Result<Option<String>> {
    Ok(match count_only_there(repo, is_bare).await? {
        0 => None,
        1 => Some("a commit that is on no remote".to_owned()),
        n => Some(format!("{n} commits that are on no remote")),
    })
}

async fn count_only_there(dir: &Path, is_bare: bool) -> Result<u64> {
    let what = format!("cannot list the commits in '{}'", dir.display());
    let count = async |args: &[&str]| -> Result<u64> {
        let said = ask(dir, &what, &args_in(is_bare, args)).await?.text();
        said.parse().map_err(|_| Error::system(&what, format_args!("git printed {said:?}")))
    };
    // The pattern makes git use the one name literally.
    let branches = ["rev-list", "--count", "--branches", "--glob=refs/stas[h]", "--not", "--remotes"];
    let on_branches = count(&branches).await?;
    if on_branches > 0 {
        return Ok(on_branches);
    }
    let named = async |name: &str| {
        git(dir, SHORT_TIMEOUT, &args_in(is_bare, &["rev-parse", "--verify", "--quiet", name])).await
    };
    let head = named("HEAD^{commit}").await?;
    if !head.ok {
        return Ok(0);
    }
    let head = head.text();
    let mut args = vec!["rev-list", "--count", &head, "--not", "--branches", "--remotes", "--tags"];
    if named("FETCH_HEAD").await?.ok {
        args.push("FETCH_HEAD");
    }
    count(&args).await
}
