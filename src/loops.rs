//! Verified loops: the baseline before the first iteration, and the contract, the verdict and the ledger entry of
//! each.
//!
//! The daemon's runs and the library's loop ([`crate::ralph`]) both use it, so they judge alike. The data that a
//! verdict is based on is in the loop's own folder, outside the agent's tree: the baseline with its hashes, and for
//! each iteration its contract, its output, the output of the checks, and the verdict. The engine decides what
//! follows from a verdict. Nothing here starts an agent or uses a pane.

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
pub use progress::{PROGRESS_FILE, forget as forget_progress};
pub(crate) use protect::check as check_protect;
pub use verdict::Finished;
pub(crate) use verdict::set as hurried;

/// The largest of our own files that is read back.
const MAX_LOOP_FILE_BYTES: u64 = 64 << 20;

/// The fixed settings of one loop.
#[derive(Clone, Debug)]
pub struct LoopRun {
    /// The worker's name.
    pub name: String,
    /// Distinguishes all loops of that name; part of a git ref.
    pub id: String,
    /// The loop's folder, outside the agent's tree.
    pub folder: PathBuf,
    /// swarm's own directory. The progress file may not be in it.
    pub root: PathBuf,
    /// The directory of the agent and of the checks.
    pub cwd: PathBuf,
    /// The environment of checks.
    pub env: Arc<BTreeMap<String, String>>,
    /// The gates.
    pub gates: Gates,
    /// The agent's profile.
    pub profile: Profile,
    /// The command prints the agent's answer as text, so JSON on its screen is not a result of the CLI.
    pub shows_text: bool,
    /// The task file. If it is in the agent's tree, iterations may not change it.
    pub task_file: Option<PathBuf>,
}

impl LoopRun {
    /// The folder of an iteration; 0 is the baseline's.
    pub fn iteration_dir(&self, iteration: u32) -> PathBuf {
        self.folder.join("iterations").join(format!("{iteration:04}"))
    }

    /// The result of an iteration; `None` if it has not ended or does not exist.
    pub fn read_iteration(&self, iteration: u32) -> Option<ledger::Iteration> {
        read_json(&self.iteration_dir(iteration).join(RESULT_FILE))
    }

    /// The last earlier iteration that had an agent.
    fn last_worked(&self, iteration: u32) -> Option<ledger::Iteration> {
        (1..iteration).rev().filter_map(|n| self.read_iteration(n)).find(|it| !it.no_agent)
    }

    /// The ref of an iteration's snapshot.
    pub fn reference(&self, iteration: u32) -> String {
        format!("refs/swarm/{}/{}/{iteration}", self.name, self.id)
    }

    /// The baseline, once it was taken.
    pub fn read_base(&self) -> Option<ledger::Base> {
        read_json(&self.folder.join(BASELINE_FILE)).filter(|base: &ledger::Base| base.id == self.id)
    }
}

/// The baseline in the loop's folder.
pub const BASELINE_FILE: &str = "base.json";

/// An iteration's [`ledger::Iteration`] in its folder.
pub const RESULT_FILE: &str = "result.json";

/// The task, if it was given as text.
pub const TASK_FILE: &str = "task.md";

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&read_bounded(path, MAX_LOOP_FILE_BYTES).ok()?).ok()
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
