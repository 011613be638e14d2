//! Decides whether a worktree may be removed: the losses, and those that the user allowed.
//!
//! `git` collects the losses right before the removal; this module decides and writes the refusal. Uncommitted work and
//! ignored files require a flag each: a user who discards a half-done change may still want to keep the `.env`.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::ignored::IgnoredFiles;
use crate::model::WorkerName;
use crate::notice::named;

/// How many changed files a refusal names.
const MAX_REFUSAL_FILES: usize = 5;

/// The data that a removal would lose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Work that exists nowhere else: changed and untracked files, commits, unfinished operations.
    pub work: Vec<String>,
    /// Ignored files.
    pub ignored: IgnoredFiles,
}

/// The losses that the user allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permission {
    /// `--force-dirty`: work that is not committed.
    pub force_dirty: bool,
    /// `--discard-ignored`: ignored files outside caches.
    pub discard_ignored: bool,
}

/// The command that removes a worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalCommand {
    /// `swarm clean`
    Clean,
    /// `swarm kill --rm-worktree`
    Kill,
    /// `swarm respawn --clean-first`
    Respawn,
}

/// A removal that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    losses: Losses,
    permission: Permission,
}

/// Whether a loop's snapshots may be deleted: a branch has the tree of the last one. `trees` are the trees of all
/// snapshots in order. If the last iteration went back to an earlier tree, no branch needs to have the work between.
pub fn are_saved(trees: &[&str], in_branches: &BTreeSet<&str>) -> bool {
    let Some(last) = trees.last() else { return false };
    let mut changes = trees.to_vec();
    changes.dedup();
    changes.iter().filter(|tree| *tree == last).count() == 1 && in_branches.contains(last)
}

impl Losses {
    /// Refuses when something would be lost that `permission` does not cover; the refusal names it.
    pub fn allow(self, permission: Permission) -> Result<Self, Box<Refusal>> {
        let is_covered = (self.work.is_empty() || permission.force_dirty)
            && (self.ignored.data.is_empty() || permission.discard_ignored);
        if is_covered { Ok(self) } else { Err(Box::new(Refusal { losses: self, permission })) }
    }
}

impl Refusal {
    fn needs_force(&self) -> bool {
        !self.losses.work.is_empty() && !self.permission.force_dirty
    }

    fn needs_discard(&self) -> bool {
        !self.losses.ignored.data.is_empty() && !self.permission.discard_ignored
    }

    /// Describes the work and files whose loss is refused.
    pub fn message(&self, worktree: &Path) -> String {
        let work = named(&self.losses.work, MAX_REFUSAL_FILES);
        let ignored = self.losses.ignored.data.summary();
        let held = match (self.needs_force(), self.needs_discard()) {
            (true, false) => format!("work that would be lost: {work}"),
            (false, _) => format!("ignored files that would be lost: {ignored}"),
            (true, true) => format!("work that would be lost: {work}; and ignored files: {ignored}"),
        };
        format!("worktree '{}' holds {held}", worktree.display())
    }

    /// Suggests a step that keeps the work and the files.
    pub fn advice(&self) -> &'static str {
        match (self.needs_force(), self.needs_discard()) {
            (true, false) => "commit it in the worktree",
            (false, _) => "copy what you want to keep",
            (true, true) => "commit the work and copy the files that you want to keep",
        }
    }

    /// The command that removes the worktree with its losses.
    pub fn command(&self, verb: RemovalCommand, name: &WorkerName) -> String {
        let force = self.permission.force_dirty || self.needs_force();
        let discard = self.permission.discard_ignored || self.needs_discard();
        let flags = |verb: String| {
            let force = if force { " --force-dirty" } else { "" };
            format!("{verb}{force}{}", if discard { " --discard-ignored" } else { "" })
        };
        match verb {
            RemovalCommand::Clean => flags(format!("swarm clean {name}")),
            RemovalCommand::Kill => flags(format!("swarm kill {name} --rm-worktree")),
            // A respawn has no flag that discards work.
            RemovalCommand::Respawn if force => {
                format!("{} && swarm respawn {name}", self.command(RemovalCommand::Kill, name))
            }
            RemovalCommand::Respawn => flags(format!("swarm respawn {name} --clean-first")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ignored::{IgnoredKind, IgnoredPath};

    fn losses(work: bool, data: bool, cache: bool) -> Losses {
        let path = |path: &str| IgnoredPath { path: path.to_owned(), files: 1, bytes: 6, at_least: false };
        let mut paths = vec![];
        paths.extend(data.then(|| (IgnoredKind::Data, path(".env"))));
        paths.extend(cache.then(|| (IgnoredKind::Cache, path("target/"))));
        let work = if work { vec!["new.txt".to_owned()] } else { vec![] };
        Losses { work, ignored: IgnoredFiles::new(paths) }
    }

    #[test]
    fn snapshots_are_saved_if_a_branch_has_the_last_and_none_was_undone() {
        for (trees, branches, saved) in [
            (&["0", "1", "2"][..], &["2", "9"][..], true),
            (&["0", "1", "2"], &["0", "1"], false),
            (&["0", "0"], &["0"], true),
            (&["0", "1", "1"], &["1"], true),
            (&["0", "1", "0"], &["0"], false),
            (&["0", "1", "2", "1"], &["0", "1", "2"], false),
            (&[], &["0"], false),
        ] {
            assert_eq!(are_saved(trees, &branches.iter().copied().collect()), saved, "{trees:?}");
        }
    }

    #[test]
    fn each_kind_of_loss_needs_its_own_permission() {
        for bits in 0..32 {
            let bit = |n: u32| bits & (1 << n) != 0;
            let permission = Permission { force_dirty: bit(3), discard_ignored: bit(4) };
            let allowed = losses(bit(0), bit(1), bit(2)).allow(permission).is_ok();
            assert_eq!(allowed, (!bit(0) || bit(3)) && (!bit(1) || bit(4)), "{bits:05b}");
        }
    }

    #[test]
    fn refusal_names_what_is_not_covered_and_the_command_that_covers_it() {
        let name = WorkerName::new("w").unwrap();
        let none = Permission::default();
        let force = Permission { force_dirty: true, ..none };
        let discard = Permission { discard_ignored: true, ..none };
        let held = "worktree '/t' holds";
        for (work, data, given, message, command, respawn) in [
            (
                true,
                false,
                none,
                format!("{held} work that would be lost: new.txt"),
                "swarm clean w --force-dirty",
                "swarm kill w --rm-worktree --force-dirty && swarm respawn w",
            ),
            (
                false,
                true,
                none,
                format!("{held} ignored files that would be lost: .env (6 B)"),
                "swarm clean w --discard-ignored",
                "swarm respawn w --clean-first --discard-ignored",
            ),
            (
                true,
                true,
                none,
                format!("{held} work that would be lost: new.txt; and ignored files: .env (6 B)"),
                "swarm clean w --force-dirty --discard-ignored",
                "swarm kill w --rm-worktree --force-dirty --discard-ignored && swarm respawn w",
            ),
            (
                true,
                true,
                force,
                format!("{held} ignored files that would be lost: .env (6 B)"),
                "swarm clean w --force-dirty --discard-ignored",
                "swarm kill w --rm-worktree --force-dirty --discard-ignored && swarm respawn w",
            ),
            (
                true,
                true,
                discard,
                format!("{held} work that would be lost: new.txt"),
                "swarm clean w --force-dirty --discard-ignored",
                "swarm kill w --rm-worktree --force-dirty --discard-ignored && swarm respawn w",
            ),
        ] {
            let refusal = losses(work, data, true).allow(given).unwrap_err();
            assert_eq!(refusal.message(Path::new("/t")), message);
            assert_eq!(refusal.command(RemovalCommand::Clean, &name), command);
            assert_eq!(refusal.command(RemovalCommand::Respawn, &name), respawn);
        }
    }
}
