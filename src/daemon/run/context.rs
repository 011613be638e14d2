//! The context of all parts of a run: the worker's name, its tmux server, the disk, and the way to the supervisor.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use swarm_state::docker::DOCKER_STATE_DIR;
use swarm_state::model::{Run, WorkerName};
use swarm_state::notice::Entry;
use swarm_state::profiles::program_word;
use swarm_state::spec::WorkerSpec;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::checks::program::{Lookup, look_up};
use crate::daemon::helper::Helper;
use crate::daemon::messages::{DaemonInput, Inbox, RunReport};
use crate::error::Result;
use crate::marks;
use crate::sandbox::{WorkerSandbox, named_files};
use crate::store::Store;
use crate::tmux::{PANE_TERM, Tmux};

/// The delay before a write to a full disk is retried.
const WRITE_RETRY_DELAY: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub(crate) struct RunContext {
    pub(crate) name: WorkerName,
    /// Distinguishes workers of the same name: reports about an earlier one are dropped.
    pub(crate) incarnation: u64,
    pub(crate) tmux: Tmux,
    pub(crate) store: Arc<Store>,
    pub(crate) inbox: Inbox,
    /// swarm's own executable, for the wrapper, the recorder and the hooks.
    pub(crate) helper: Arc<Helper>,
    /// The worker is being killed: nothing waits any longer for the disk or for tmux.
    pub(crate) hurry: Arc<AtomicBool>,
    /// A person holds the worker: nothing of swarm's own is typed.
    pub(crate) held: Arc<AtomicBool>,
    /// Held while a run is ended by force, so that the processes that had to be forced are reported before its end.
    pub(crate) forcing: Arc<tokio::sync::Mutex<()>>,
    /// How many prompts the agent accepted, as its hooks reported.
    pub(crate) prompts: Arc<watch::Sender<u64>>,
}

impl RunContext {
    /// Sends a report to the supervisor, unless the daemon is ending.
    pub(crate) fn report(&self, report: RunReport) {
        drop(self.inbox.send(DaemonInput::Report {
            worker: self.name.clone(),
            incarnation: self.incarnation,
            report: Box::new(report),
        }));
    }

    pub(crate) fn warn(&self, message: String) {
        self.report(RunReport::Notice(Entry::Warning { message }));
    }

    pub(crate) fn is_hurried(&self) -> bool {
        self.hurry.load(Ordering::Relaxed)
    }

    /// Repeats `write` while the disk is full. If the worker is killed meanwhile, `what` is lost.
    pub(crate) async fn write_until_stored(&self, what: &str, write: impl Fn() -> Result<()>) {
        let mut warned = false;
        while let Err(error) = write() {
            if self.is_hurried() {
                return self.warn(format!("{what} is lost: {error}"));
            }
            if !std::mem::replace(&mut warned, true) {
                let message = format!("{what} was not stored; swarm retries: {error}");
                self.warn(message);
                self.report(RunReport::Unstored(error.message));
            }
            sleep(WRITE_RETRY_DELAY).await;
        }
    }

    /// The variables in the environment of all the worker's processes that identify the worker.
    pub(crate) fn marks(&self) -> [(&'static str, String); 2] {
        let root = self.store.paths().root().to_string_lossy().into_owned();
        [(marks::ROOT, root), (marks::WORKER, self.name.to_string())]
    }

    /// The environment of the agent, and of the checks.
    pub(crate) fn environment(&self, spec: &WorkerSpec) -> BTreeMap<String, String> {
        let mut env = spec.env.clone();
        env.extend(self.marks().map(|(key, value)| (key.to_owned(), value)));
        env.insert("TERM".into(), PANE_TERM.into());
        // An agent in a Docker sandbox has its transcripts in this directory.
        if spec.is_in_docker() && spec.profile.sandbox.docker_state.iter().any(|entry| entry == ".claude") {
            let home = env.get("HOME").map(PathBuf::from).unwrap_or_default();
            env.insert(
                "CLAUDE_CONFIG_DIR".into(),
                format!("{}/.claude", home.join(DOCKER_STATE_DIR).display()),
            );
        }
        env
    }

    /// The sandbox of the worker, which works in `cwd`; `None` if it has none.
    pub(crate) fn worker_sandbox(&self, spec: &WorkerSpec, cwd: &Path) -> Option<WorkerSandbox> {
        let sandbox = spec.sandbox.clone()?;
        let mut sandbox =
            WorkerSandbox::new(sandbox, self.name.as_str(), self.store.paths(), self.helper.path())
                .of_project(cwd, spec, &self.environment(spec));
        sandbox.tmux_socket = spec.tmux_socket.as_ref().map(|_| self.tmux.socket_path());
        sandbox.named = named_files(spec.cmd.iter().map(String::as_str));
        let reviewer = spec.ralph.as_ref().and_then(|ralph| Some(ralph.reviewer.as_ref()?.cmd.as_slice()));
        for cmd in [spec.cmd.as_slice()].into_iter().chain(reviewer) {
            sandbox.named.extend(program_of(cmd, spec));
        }
        if let Some(gates) = spec.ralph.as_ref().map(|ralph| &ralph.gates) {
            // The agent may not see the files of the held-out checks.
            let commands = gates.checks.iter().chain(&gates.rooms.setup);
            sandbox.named.extend(named_files(commands.flat_map(|command| command.split_whitespace())));
            sandbox.hidden.clone_from(&gates.rooms.hidden);
        }
        Some(sandbox)
    }

    pub(crate) fn run_dir(&self, run: Run) -> PathBuf {
        self.store.paths().run_dir(&self.name, run)
    }
}

/// The file of a command's program, and that of a program behind `env`.
fn program_of(cmd: &[String], spec: &WorkerSpec) -> Vec<PathBuf> {
    let path = spec.env.get("PATH").map(String::as_str).unwrap_or_default();
    let found = |word: &String| match look_up(word, &spec.cwd, path) {
        Lookup::Runnable(file) => Some(file),
        Lookup::NotExecutable(_) | Lookup::Directory | Lookup::Missing => None,
    };
    let words = cmd.first().into_iter().chain(program_word(cmd));
    words.filter_map(found).filter(|file| file.is_absolute()).collect()
}
