//! What a loop does at its edges: the base line before the first iteration, the contract of each, and the
//! verdict and the ledger at its end.
//!
//! The daemon's drivers work with it, and the library's loop ([`crate::ralph`]) too, so that both judge alike.
//! Everything that a verdict is measured against lies in the loop's own folder, outside of the agent's
//! tree: the base line with its hashes, what each iteration was given, what it printed, what the checks
//! printed, and the verdict. Deliberately absent: what follows from a verdict (that is the engine), starting an
//! agent, and panes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use swarm_state::gates::Gates;
use swarm_state::ledger;
use swarm_state::profiles::Profile;

use crate::error::{Error, Result};
use crate::store::{read_bounded, write_unsynced};

mod account;
mod base;
mod contract;
mod progress;
mod protect;
mod verdict;

pub(crate) use account::last_growth;
pub use account::session_id;
pub(crate) use account::story;
pub(crate) use progress::check as check_progress;
pub use progress::{FILE as PROGRESS_FILE, forget as forget_progress};
pub(crate) use protect::check as check_protect;
pub use verdict::Finished;
pub(crate) use verdict::set as hurried;

/// The largest file of ours that is read back, bytes.
const LIMIT: u64 = 64 << 20;

/// One loop, as it was fixed at its start.
#[derive(Clone, Debug)]
pub struct Course {
    /// The worker's name.
    pub name: String,
    /// Which of all loops of that name it is; part of a git ref.
    pub id: String,
    /// The loop's folder, outside of the agent's tree.
    pub folder: PathBuf,
    /// swarm's own directory, where no progress file may lie.
    pub root: PathBuf,
    /// Where the agent works and checks run.
    pub cwd: PathBuf,
    /// The environment of checks.
    pub env: Arc<BTreeMap<String, String>>,
    /// What has to hold.
    pub gates: Gates,
    /// What is known of the agent.
    pub profile: Profile,
    /// Its command shows its words as text: JSON on its screen is none of its own.
    pub shows_text: bool,
    /// The file of the task; inside of the agent's tree it may not change either.
    pub task_file: Option<PathBuf>,
}

impl Course {
    /// The folder of an iteration; 0 is the base line's.
    pub fn iteration_dir(&self, iteration: u32) -> PathBuf {
        self.folder.join("iterations").join(format!("{iteration:04}"))
    }

    /// What an iteration came to; `None` when it has not ended, or is not there.
    pub fn read_iteration(&self, iteration: u32) -> Option<ledger::Iteration> {
        read_json(&self.iteration_dir(iteration).join(RESULT))
    }

    /// The last one before it that had an agent.
    fn last_worked(&self, iteration: u32) -> Option<ledger::Iteration> {
        (1..iteration).rev().filter_map(|n| self.read_iteration(n)).find(|it| !it.no_agent)
    }

    /// The ref of an iteration's snapshot.
    pub fn reference(&self, iteration: u32) -> String {
        format!("refs/swarm/{}/{}/{iteration}", self.name, self.id)
    }

    /// The base line, when it was taken.
    pub fn read_base(&self) -> Option<ledger::Base> {
        read_json(&self.folder.join(BASE)).filter(|base: &ledger::Base| base.id == self.id)
    }
}

/// The file of the base line in the loop's folder.
pub const BASE: &str = "base.json";

/// The file of an iteration's [`ledger::Iteration`] in its folder.
pub const RESULT: &str = "result.json";

/// The task, where it was given in words.
pub const TASK: &str = "task.md";

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&read_bounded(path, LIMIT).ok()?).ok()
}

fn write_json<T: serde::Serialize>(path: &Path, value: &T) -> Result<()> {
    let trouble =
        |error: &dyn std::fmt::Display| Error::system(format!("cannot write '{}'", path.display()), error);
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|e| trouble(&e))?;
    bytes.push(b'\n');
    if let Some(dir) = path.parent() {
        crate::paths::private_dir(dir)?;
    }
    write_unsynced(path, &bytes).map_err(|e| trouble(&e))
}
