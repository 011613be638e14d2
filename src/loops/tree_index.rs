//! The git index of a loop's snapshots, kept between them so that git does not read unchanged files again.
//!
//! An agent can write below SWARM_DIR, and a forged index would hide a change from the snapshots. The hash of the index
//! is therefore signed, and an index with another hash is not used.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use swarm_state::ledger::{Base, DiffStat};

use super::run::{CONTRACT_FILE, LoopRun, read_signed, write_signed};
use crate::error::Result;
use crate::git;
use crate::signed::Purpose;

const MAX_INDEX_BYTES: u64 = 256 << 20;

#[derive(Deserialize, Serialize)]
struct IndexSeal {
    sha256: String,
}

impl LoopRun {
    /// Stores the tree as a commit under the iteration's ref.
    pub(super) async fn snapshot(&self, iteration: u32) -> Result<Option<git::TreeSnapshot>> {
        let message = match iteration {
            0 => format!("{}: before the first iteration", self.name),
            n => format!("{}: after iteration {n}", self.name),
        };
        self.store_tree(&self.reference(iteration), &message).await
    }

    async fn store_tree(&self, reference: &str, message: &str) -> Result<Option<git::TreeSnapshot>> {
        self.check_index();
        let taken = git::snapshot(&self.cwd, reference, &self.index(), message).await;
        self.seal_index();
        taken
    }

    /// Stores the tree that an interrupted run of this iteration left, before the iteration is repeated. Returns the
    /// ref; `None` if no agent was interrupted, or it left the files as they were.
    pub(crate) async fn keep_interrupted(&self, base: &Base, iteration: u32) -> Result<Option<String>> {
        let was_started = self.iteration_dir(iteration).join(CONTRACT_FILE).exists();
        if !was_started || self.read_iteration(iteration).is_some() {
            return Ok(None);
        }
        let last = self.last_worked(iteration).and_then(|last| last.left.or(last.commit));
        let (Some(last), Some(tree)) = (last.or_else(|| base.tree.clone()), self.tree().await) else {
            return Ok(None);
        };
        if git::diff_stat(&self.cwd, &last, &tree).await?.0 == DiffStat::default() {
            return Ok(None);
        }
        let reference = format!("{}{}", self.reference(iteration), git::INTERRUPTED);
        let message = format!("{}: interrupted in iteration {iteration}", self.name);
        Ok(self.store_tree(&reference, &message).await?.map(|_| reference))
    }

    /// The tree that a snapshot would have now. `None` if git cannot make it.
    pub(super) async fn tree(&self) -> Option<String> {
        self.check_index();
        let tree = git::tree(&self.cwd, &self.index()).await;
        self.seal_index();
        tree.ok().flatten()
    }

    /// Starts the next snapshot without the kept index.
    pub(super) fn drop_index(&self) {
        let _ = fs::remove_file(self.index());
    }

    fn index(&self) -> PathBuf {
        self.folder.join("index")
    }

    fn seal(&self) -> PathBuf {
        self.folder.join("index.json")
    }

    /// Deletes an index that swarm did not write.
    fn check_index(&self) {
        let seal: Option<IndexSeal> =
            read_signed(&self.key, Purpose::Index(&self.name, &self.id), &self.seal());
        if seal.is_none_or(|seal| Some(seal.sha256) != self.index_hash()) {
            self.drop_index();
        }
    }

    /// Without a seal, the next snapshot only takes longer.
    fn seal_index(&self) {
        if let Some(sha256) = self.index_hash() {
            // git makes it readable for others.
            let _ = fs::set_permissions(self.index(), fs::Permissions::from_mode(0o600));
            let purpose = Purpose::Index(&self.name, &self.id);
            let _ = write_signed(&self.key, purpose, &self.seal(), &IndexSeal { sha256 });
        }
    }

    fn index_hash(&self) -> Option<String> {
        let bytes = crate::files::read_bounded(&self.index(), MAX_INDEX_BYTES).ok()?;
        Some(crate::files::sha256(&bytes))
    }
}
