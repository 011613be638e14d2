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
        let own = [Some(top.to_owned()), worktree].into_iter().flatten();
        let own = own.map(|tree| (tree, "where the agent works"));
        let others = repository(top).into_iter().map(|tree| (tree, "which is of the same repository"));
        check_hidden(hidden, own.chain(others))?;
    }
    crate::loops::check_fix(&cwd, &gates.fix)
}

/// The directories of a worktree's repository, and its other worktrees.
fn repository(top: &Path) -> Vec<PathBuf> {
    let read = |file: PathBuf| std::fs::read_to_string(file).ok().map(|text| text.trim_end().to_owned());
    let entry = top.join(".git");
    let linked = read(entry.clone()).and_then(|text| Some(top.join(text.strip_prefix("gitdir: ")?)));
    let own = linked.unwrap_or(entry);
    let common = read(own.join("commondir")).map_or_else(|| own.clone(), |dir| own.join(dir));
    let common = resolve(&common);
    let main = common.parent().filter(|_| common.ends_with(".git")).map(Path::to_owned);
    let registered = common.join("worktrees").read_dir().into_iter().flatten().flatten();
    let others = registered.filter_map(|entry| read(entry.path().join("gitdir")));
    let others: Vec<PathBuf> =
        others.filter_map(|file| Some(Path::new(&file).parent()?.to_owned())).collect();
    [own, common].into_iter().chain(main).chain(others).collect()
}

/// Refuses a directory whose files cannot be copied, or that an agent could find in `trees` (paths and descriptions).
fn check_hidden(hidden: &Path, trees: impl Iterator<Item = (PathBuf, &'static str)>) -> Result<()> {
    let refuse = |why: &str| {
        Err(Error::usage(format!("--hidden '{}' {why}", hidden.display())).hint(
            "move the files of the held-out checks to a directory of their own, outside the repository",
        ))
    };
    let real = resolve(hidden);
    for (tree, what) in trees.filter(|_| hidden.is_dir()).map(|(tree, what)| (resolve(&tree), what)) {
        if real.starts_with(&tree) {
            return refuse(&format!("is in {}, {what}", tree.display()));
        }
        if tree.starts_with(&real) {
            return refuse(&format!("contains {}, {what}", tree.display()));
        }
    }
    crate::loops::hidden_fault(hidden).map_or(Ok(()), |why| refuse(&why))
}
