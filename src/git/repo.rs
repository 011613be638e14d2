//! Checks a repository before anything in it is changed.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use swarm_state::model::Worktree;

use super::MADE_BY;
use super::run::{SHORT_TIMEOUT, ask, git};
use crate::error::{Error, Result, failed};
use crate::paths::resolve;

/// A repository, found from one of its trees.
#[derive(Debug)]
pub(super) struct Repo {
    /// The directory that all its worktrees share: `.git` of the main one, or the bare repository. Canonical.
    pub(super) common: PathBuf,
    /// Its main working tree, or the bare repository itself. Canonical.
    pub(super) main: PathBuf,
}

/// One entry of `git worktree list`.
#[derive(Debug)]
pub(super) struct ListedWorktree {
    pub(super) path: PathBuf,
    /// The full name of the branch that is checked out there.
    pub(super) branch: Option<String>,
    /// git has not finished making it.
    pub(super) unfinished: bool,
}

impl Repo {
    pub(super) async fn find(cwd: &Path) -> Result<Self> {
        let said = git(cwd, SHORT_TIMEOUT, &["rev-parse", "--git-common-dir"]).await?;
        if !said.ok {
            let error = if said.mentions("not a git repository") {
                let text = format!("'{}' is not in a git repository ({})", cwd.display(), said.complaint());
                Error::invalid(text).hint("run 'git init' and make a first commit, or omit --worktree")
            } else {
                Error::invalid(format!("git refuses '{}': {}", cwd.display(), said.complaint()))
            };
            return Err(error);
        }
        let common = cwd.join(said.path());
        let common = fs::canonicalize(&common).map_err(|e| failed("find", &common, e))?;
        let main = main_tree(cwd, &common).await?;
        Ok(Self { common, main })
    }

    /// `<repo>-worktrees`, next to the main working tree.
    pub(super) fn default_dir(&self) -> Result<PathBuf> {
        let name = self.main.file_name().and_then(|name| name.to_str());
        let (Some(name), Some(parent)) = (name, self.main.parent()) else {
            let text = format!("there is no directory above '{}' for a worktree", self.main.display());
            return Err(Error::invalid(text).hint("choose one with --worktree-dir"));
        };
        Ok(parent.join(format!("{}-worktrees", name.strip_suffix(".git").unwrap_or(name))))
    }

    /// Refuses a repository with a working tree and `core.bare`, set by accident: git misreads every tree of it.
    pub(super) async fn refuse_flipped(&self) -> Result<()> {
        let said = git(&self.main, SHORT_TIMEOUT, &["config", "--bool", "--get", "core.bare"]).await?;
        // A repository that was made bare never had an index.
        if said.text() != "true" || !self.common.join("index").exists() {
            return Ok(());
        }
        let text = format!(
            "'{}' has core.bare = true, but also a working tree",
            self.common.join("config").display()
        );
        let hint =
            format!("fix it: git config --file '{}' core.bare false", self.common.join("config").display());
        Err(Error::invalid(text).hint(hint))
    }

    /// Whether the branch exists. Refuses a name that conflicts with another branch.
    pub(super) async fn branch_exists(&self, branch: &str) -> Result<bool> {
        let args = ["for-each-ref", "--format=%(refname)", "refs/heads/"];
        let all = ask(&self.main, "cannot list the branches", &args).await?.text();
        let heads = || all.lines().filter_map(|line| line.strip_prefix("refs/heads/"));
        if heads().any(|head| head == branch) {
            return Ok(true);
        }
        let below =
            |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'));
        let caseless =
            git(&self.main, SHORT_TIMEOUT, &["config", "--bool", "--get", "core.ignorecase"]).await?.text()
                == "true";
        let clash = heads().find(|head| {
            below(head, branch) || below(branch, head) || (caseless && head.eq_ignore_ascii_case(branch))
        });
        match clash {
            None => Ok(false),
            Some(other) => {
                let text = format!("branch '{branch}' conflicts with branch '{other}'");
                Err(Error::invalid(text).hint("choose another name with --branch"))
            }
        }
    }

    /// Refuses a name that git resolves to something other than a branch, such as a tag. A user who merges the branch
    /// by its name would get that instead.
    pub(super) async fn refuse_shadowed(&self, branch: &str) -> Result<()> {
        let args = ["rev-parse", "--verify", "--quiet", "--symbolic-full-name", branch];
        let other = git(&self.main, SHORT_TIMEOUT, &args).await?.text();
        if other.is_empty() || other.starts_with("refs/remotes/") {
            return Ok(());
        }
        let text = format!("branch '{branch}' conflicts with '{other}': git would confuse them");
        Err(Error::invalid(text).hint("choose another name with --branch"))
    }

    pub(super) async fn refuse_checked_out(&self, branch: &str) -> Result<()> {
        let full = format!("refs/heads/{branch}");
        let listed = self.worktrees().await?;
        let Some(holder) = listed.iter().find(|known| known.branch.as_deref() == Some(&full)) else {
            return Ok(());
        };
        let path = holder.path.display();
        let text = format!("branch '{branch}' is checked out at '{path}'");
        let error = Error::conflict(text);
        Err(if holder.path.exists() {
            error.hint("choose another branch with --branch")
        } else {
            error.hint("that directory is gone; 'git worktree prune' removes its entry")
        })
    }

    /// Refuses a registered worktree whose directory is gone, as git would. The entry is not ours to remove.
    pub(super) async fn refuse_registered(&self, dir: &Path) -> Result<()> {
        if !self.worktrees().await?.iter().any(|known| same_path(&known.path, dir)) {
            return Ok(());
        }
        let text = format!("the repository still has a worktree at '{}', which is gone", dir.display());
        Err(Error::conflict(text).hint("'git worktree prune' removes its entry"))
    }

    pub(super) async fn has_made(&self, branch: &str) -> Result<bool> {
        let full = format!("refs/heads/{branch}");
        let log = git(&self.main, SHORT_TIMEOUT, &["reflog", "show", "--format=%gs", &full, "--"]).await?;
        Ok(log.text().lines().last().is_some_and(|first| first.starts_with(MADE_BY)))
    }

    /// git's directory of a worktree, `.git/worktrees/NAME`, found without the worktree.
    pub(super) fn git_dir_of(&self, tree: &Path) -> Option<PathBuf> {
        let list = fs::read_dir(self.common.join("worktrees")).ok()?;
        list.flatten().map(|entry| entry.path()).find(|dir| {
            let link = fs::read_to_string(dir.join("gitdir")).unwrap_or_default();
            Path::new(link.trim_end()).parent().is_some_and(|named| same_path(named, tree))
        })
    }

    /// All worktrees, the main one first.
    pub(super) async fn worktrees(&self) -> Result<Vec<ListedWorktree>> {
        let args = ["worktree", "list", "--porcelain"];
        let said = ask(&self.main, "cannot list the worktrees", &args).await?;
        Ok(listed(said.bytes()))
    }

    /// Refuses a directory that is not, or no longer, the worktree that swarm made. Without its `.git`, git would
    /// operate on the repository around it.
    pub(super) async fn refuse_stranger(&self, wt: &Worktree) -> Result<()> {
        let top = git(&wt.path, SHORT_TIMEOUT, &["rev-parse", "--show-toplevel"]).await?;
        let common = git(&wt.path, SHORT_TIMEOUT, &["rev-parse", "--git-common-dir"]).await?;
        let ours = top.ok
            && common.ok
            && same_path(&top.path(), &wt.path)
            && same_path(&wt.path.join(common.path()), &self.common)
            && !same_path(&wt.path, &self.main);
        if ours {
            return Ok(());
        }
        let text = format!(
            "'{}' is no longer a worktree of '{}' and was not changed",
            wt.path.display(),
            self.main.display()
        );
        Err(Error::conflict(text))
    }
}

/// Parses the output of `git worktree list --porcelain`.
pub(super) fn listed(output: &[u8]) -> Vec<ListedWorktree> {
    let mut found: Vec<ListedWorktree> = vec![];
    for line in output.split(|byte| *byte == b'\n') {
        if let Some(path) = line.strip_prefix(b"worktree ") {
            let path = PathBuf::from(OsString::from_vec(path.to_vec()));
            found.push(ListedWorktree { path, branch: None, unfinished: false });
        } else if let (Some(branch), Some(last)) = (line.strip_prefix(b"branch "), found.last_mut()) {
            last.branch = Some(String::from_utf8_lossy(branch).into_owned());
        } else if let (b"locked initializing", Some(last)) = (line, found.last_mut()) {
            last.unfinished = true;
        }
    }
    found
}

/// The main working tree of the repository with the shared directory `common`.
async fn main_tree(cwd: &Path, common: &Path) -> Result<PathBuf> {
    if common.file_name().is_some_and(|name| name == ".git") {
        return Ok(common.parent().unwrap_or(common).to_owned());
    }
    // A submodule's directory is elsewhere, and so is that of `git init --separate-git-dir`.
    let git_dir = git(cwd, SHORT_TIMEOUT, &["rev-parse", "--git-dir"]).await?;
    let top = git(cwd, SHORT_TIMEOUT, &["rev-parse", "--show-toplevel"]).await?;
    if git_dir.ok && top.ok && same_path(&cwd.join(git_dir.path()), common) {
        return Ok(fs::canonicalize(top.path()).unwrap_or_else(|_| top.path()));
    }
    let worktree = git(cwd, SHORT_TIMEOUT, &["config", "--get", "core.worktree"]).await?;
    let worktree = worktree.ok.then(|| fs::canonicalize(common.join(worktree.path())).ok()).flatten();
    Ok(worktree.unwrap_or_else(|| common.to_owned()))
}

/// Refuses a name that no branch can have.
pub(super) async fn check_branch(cwd: &Path, branch: &str) -> Result<()> {
    let refuse = || {
        Error::invalid(format!("{branch:?} is not a valid branch name")).hint("choose another with --branch")
    };
    // `@` passes git's check and means HEAD; `refs/heads/x` passes and means `x`; a NUL cannot even be an argument.
    if branch.starts_with('-')
        || branch.starts_with("refs/")
        || branch.contains('\0')
        || ["", "@", "HEAD"].contains(&branch)
    {
        return Err(refuse());
    }
    // git expands `@{-1}` to the previous branch. Only a name that stays itself is a branch name.
    let said = git(cwd, SHORT_TIMEOUT, &["check-ref-format", "--branch", branch]).await?;
    if said.ok && said.text() == branch { Ok(()) } else { Err(refuse()) }
}

/// Whether both are the same place, existing or not.
pub(super) fn same_path(a: &Path, b: &Path) -> bool {
    resolve(a) == resolve(b)
}

/// Whether the branch exists, at the request of a session loop; `None` if `dir` is not in a repository. Fails with
/// git's message, for example if the name conflicts with another branch.
pub(crate) async fn has_branch(dir: &Path, branch: &str) -> Result<Option<bool>> {
    if !git(dir, SHORT_TIMEOUT, &["rev-parse", "--git-dir"]).await?.ok {
        return Ok(None);
    }
    Repo::find(dir).await?.branch_exists(branch).await.map(Some)
}

pub(crate) async fn make_branch(dir: &Path, branch: &str) -> Result<()> {
    check_branch(dir, branch).await?;
    ask(dir, &format!("cannot make branch '{branch}'"), &["branch", "--", branch]).await.map(drop)
}
