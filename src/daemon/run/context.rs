//! What every part of a run works with: the worker's name, its tmux server, the disk, and the way to the supervisor.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use swarm_state::model::{Run, WorkerName};
use swarm_state::spec::WorkerSpec;
use tokio::sync::{mpsc, watch};

use crate::daemon::helper::Helper;
use crate::daemon::messages::{Input, RunReport};
use crate::store::Store;
use crate::tmux::{PANE_TERM, Tmux};

/// The things every job needs.
#[derive(Clone)]
pub(crate) struct RunContext {
    /// Whose driver it is.
    pub(crate) name: WorkerName,
    /// Which of all workers that had this name: news of an earlier one is dropped.
    pub(crate) incarnation: u64,
    /// Its tmux server.
    pub(crate) tmux: Tmux,
    /// The disk.
    pub(crate) store: Arc<Store>,
    /// The supervisor's inbox.
    pub(crate) inbox: mpsc::UnboundedSender<Input>,
    /// This program, for what is started of it.
    pub(crate) helper: Arc<Helper>,
    /// Somebody kills the worker: nothing waits for a disk or a tmux to come back.
    pub(crate) hurry: Arc<AtomicBool>,
    /// Held while a run is ended by force: its end is reported after what had to be forced.
    pub(crate) forcing: Arc<tokio::sync::Mutex<()>>,
    /// How many prompts the agent's own hooks said it took.
    pub(crate) prompts: Arc<watch::Sender<u64>>,
}

impl RunContext {
    /// Tells the supervisor. A supervisor that is gone needs no news.
    pub(crate) fn report(&self, report: RunReport) {
        drop(self.inbox.send(Input::Report {
            worker: self.name.clone(),
            incarnation: self.incarnation,
            report,
        }));
    }

    /// What stands in the environment of everything that the worker starts, and tells whose it is.
    pub(crate) fn marks(&self) -> [(&'static str, String); 2] {
        let root = self.store.paths().root().to_string_lossy().into_owned();
        [("SWARM_DIR", root), ("SWARM_WORKER", self.name.to_string())]
    }

    /// The environment of the agent, and of the checks.
    pub(crate) fn environment(&self, spec: &WorkerSpec) -> BTreeMap<String, String> {
        let mut env = spec.env.clone();
        env.extend(self.marks().map(|(key, value)| (key.to_owned(), value)));
        env.insert("TERM".into(), PANE_TERM.into());
        env
    }

    /// The first of them, as it stands in an environment.
    pub(crate) fn root_mark(&self) -> Vec<u8> {
        root_mark(&self.store)
    }

    /// The folder of a run.
    pub(crate) fn run_dir(&self, run: Run) -> PathBuf {
        self.store.paths().run_dir(&self.name, run)
    }
}

/// What stands in the environment of everything that a worker of this directory starts.
pub(crate) fn root_mark(store: &Store) -> Vec<u8> {
    format!("SWARM_DIR={}", store.paths().root().to_string_lossy()).into_bytes()
}
