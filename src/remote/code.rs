//! Carries code to a host and back, by git over the shared ssh connection.
//!
//! A host keeps a bare repository for each repository of a client, below its SWARM_DIR; the worktrees of its workers
//! are made from it. Only commits travel here; [`super::include`] sends files that git does not track.

use std::path::{Path, PathBuf};
use std::time::Duration;

use swarm_state::host::ssh_options;
use swarm_state::model::WorkerName;
use tokio::process::Command;
use tokio::time::timeout;

use super::{Place, RemoteHost, ssh};
use crate::error::{Error, Result};
use crate::git::PUSHED_BRANCH;
use crate::shell::{join, quote};

/// How many digits of its first commit the name of a repository on a host has.
const FIRST_COMMIT_DIGITS: usize = 12;

/// How long a transfer may take.
pub(super) const TRANSFER_TIMEOUT: Duration = Duration::from_secs(600);

/// Makes the bare repository on the host and prints its path. Its arguments are the name and the branch of HEAD.
const MAKE_REPOSITORY: &str = r#"set -e
dir=${SWARM_DIR:-$HOME/.swarm}/repos/$1.git
[ -d "$dir/objects" ] || { mkdir -p "$dir"; chmod 700 "${SWARM_DIR:-$HOME/.swarm}"; git init -q --bare "$dir"; }
git -C "$dir" symbolic-ref HEAD "refs/heads/$2"
cd "$dir"
pwd -P"#;

/// Pushes HEAD of the repository that holds `dir` to `branch` on the host. Returns the repository there. Fails if
/// `dir` is in no repository, or the host has another branch of this name.
pub(crate) async fn push(place: &Place, host: &RemoteHost, dir: &Path, branch: &str) -> Result<PathBuf> {
    let top = git(place, dir, &["rev-parse", "--show-toplevel"]).await.map_err(|_| {
        let message = format!("'{}' is in no git repository, and only commits are sent", dir.display());
        Error::invalid(message).hint("run it in the repository, or omit --worktree")
    })?;
    let first = git(place, dir, &["rev-list", "--max-parents=0", "HEAD"]).await;
    let first = first.map_err(|_| {
        let message = format!("the repository '{top}' has no commit, and only commits are sent");
        Error::invalid(message).hint("make a commit first")
    })?;
    // The first commit distinguishes repositories of the same name.
    let id: String =
        first.lines().next_back().unwrap_or_default().chars().take(FIRST_COMMIT_DIGITS).collect();
    let is_name_char = |c: &char| c.is_ascii_alphanumeric() || "._-".contains(*c);
    let name =
        Path::new(&top).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = format!("{}-{id}", name.chars().filter(is_name_char).collect::<String>());
    let words = ["sh", "-c", MAKE_REPOSITORY, "sh", &name, PUSHED_BRANCH].map(str::to_owned);
    let printed = ssh::output(place, host, &join(&words)).await?;
    let printed = String::from_utf8_lossy(&printed);
    let repo = PathBuf::from(printed.lines().next_back().unwrap_or_default());
    let refs = format!("HEAD:refs/heads/{branch}");
    // HEAD of the bare repository names this branch: a repository without a commit at HEAD has no worktrees.
    let head = format!("+HEAD:refs/heads/{PUSHED_BRANCH}");
    git(place, dir, &["push", "-q", "--no-verify", &url(host, &repo), &refs, &head]).await?;
    Ok(repo)
}

/// Fetches a branch and the snapshots of a worker from the host into the repository that holds `dir`. Fails if the
/// branch here has other commits.
pub(crate) async fn fetch(
    place: &Place,
    host: &RemoteHost,
    dir: &Path,
    name: &WorkerName,
    (repo, branch): (&Path, &str),
) -> Result<()> {
    let stem = repo.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    // Code that was sent carries the first commit of its repository in the name.
    if let Some((_, id)) = stem.rsplit_once('-').filter(|(_, id)| id.len() == FIRST_COMMIT_DIGITS)
        && git(place, dir, &["cat-file", "-e", &format!("{id}^{{commit}}")]).await.is_err()
    {
        let message = format!("the repository of '{}' does not have the code of '{name}'", dir.display());
        return Err(
            Error::invalid(message).hint("run it in the repository from which the worker was spawned")
        );
    }
    let own = format!("refs/heads/{branch}:refs/heads/{branch}");
    let snapshots = format!("+refs/swarm/{name}/*:refs/swarm-hosts/{}/{name}/*", host.name);
    git(place, dir, &["fetch", "-q", "--no-tags", &url(host, repo), &own, &snapshots]).await.map(drop)
}

/// The address of a repository on the host.
fn url(host: &RemoteHost, repo: &Path) -> String {
    match &host.spec.ssh {
        Some(destination) if destination.starts_with("ssh://") => format!("{destination}{}", repo.display()),
        Some(destination) => format!("{destination}:{}", repo.display()),
        None => repo.display().to_string(),
    }
}

/// As [`git_bytes`], for output that is one text.
pub(super) async fn git(place: &Place, dir: &Path, args: &[&str]) -> Result<String> {
    let printed = git_bytes(place, dir, args).await?;
    Ok(String::from_utf8_lossy(&printed).trim().to_owned())
}

/// Runs git in `dir` with the ssh of this module, and returns its output.
pub(super) async fn git_bytes(place: &Place, dir: &Path, args: &[&str]) -> Result<Vec<u8>> {
    place.prepare_ssh()?;
    let options = ssh_options(&place.ssh_control().to_string_lossy());
    let options: Vec<String> = options.iter().map(|option| quote(option)).collect();
    let mut git = Command::new("git");
    git.args(args).current_dir(dir).kill_on_drop(true);
    git.env("GIT_SSH_COMMAND", format!("ssh {}", options.join(" "))).env("GIT_TERMINAL_PROMPT", "0");
    let what = format!("git {}", args.first().copied().unwrap_or_default());
    let output = timeout(TRANSFER_TIMEOUT, git.stdin(std::process::Stdio::null()).output()).await;
    let output = output.map_err(|_| Error::system(&what, "it did not end in time"))?;
    let output = output.map_err(|e| Error::system(&what, e))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let printed = String::from_utf8_lossy(&output.stderr);
    let line = printed.lines().find(|line| !line.trim().is_empty() && !line.starts_with("hint:"));
    Err(Error::system(&what, line.unwrap_or("it failed without a message")))
}
