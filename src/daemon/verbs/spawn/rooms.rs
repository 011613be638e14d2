//! Checks the gates that are tested outside of the worker's directory: the repository, the hidden files, the globs.

use std::path::{Path, PathBuf};

use swarm_state::rooms::RoomGates;
use swarm_state::spec::WorkerSpec;

use crate::error::{Error, Result};
use crate::paths::resolve;

/// Refuses gates that could never hold.
pub(super) fn check(spec: &WorkerSpec, gates: &RoomGates) -> Result<()> {
    if gates.is_empty() {
        return Ok(());
    }
    let cwd = resolve(&spec.cwd);
    let top = cwd.ancestors().find(|dir| dir.join(".git").exists()).ok_or_else(|| {
        let option = match gates {
            _ if !gates.final_checks.is_empty() => "--final-check",
            _ if gates.clean_check => "--clean-check",
            _ => "--fix",
        };
        Error::usage(format!("{option}: {} is not in a git repository", spec.cwd.display()))
            .hint("swarm checks out a snapshot of the work; make a repository with: git init")
    })?;
    if let Some(hidden) = &gates.hidden {
        let worktree = spec.worktree.as_ref().and_then(|worktree| worktree.dir.clone());
        check_hidden(hidden, [Some(top.to_owned()), worktree])?;
    }
    crate::loops::check_fix(&cwd, &gates.fix)
}

/// Refuses a directory that is missing or empty, or that an agent could find in its own. `trees` are those of the
/// agent.
fn check_hidden(hidden: &Path, trees: [Option<PathBuf>; 2]) -> Result<()> {
    let refuse = |why: &str| {
        Err(Error::usage(format!("--hidden '{}' {why}", hidden.display())).hint(
            "move the files of the held-out checks to a directory of their own, outside the repository",
        ))
    };
    if !hidden.exists() {
        return refuse("does not exist");
    }
    let Ok(mut entries) = hidden.read_dir() else { return refuse("is not a directory that can be read") };
    if entries.next().is_none() {
        return refuse("is empty");
    }
    let real = resolve(hidden);
    for tree in trees.into_iter().flatten().map(|tree| resolve(&tree)) {
        if real.starts_with(&tree) {
            return refuse(&format!("is in {}, where the agent works", tree.display()));
        }
        if tree.starts_with(&real) {
            return refuse(&format!("contains {}, where the agent works", tree.display()));
        }
    }
    Ok(())
}
