//! Verified loops as a library: run a loop in your own program, without daemon and tmux.
//!
//! `swarm loop` runs the same loop: the same engine decides ([`swarm_state::engine::Worker`]), and the same
//! [`LoopRun`] takes the baseline, writes the contracts, runs the checks, forms the verdicts and takes the snapshots.
//! The caller's thread carries out the engine's effects one after the other. The caller's factory makes a new agent
//! for each iteration. `swarm loop --format json` prints the same [`RalphLoopResult`]. There are no panes, and a loop
//! cannot be paused by hand.
//!
//! ```
//! use swarm::ralph::{AgentState, RalphConfig, RalphLoop, AgentContext, command};
//!
//! # let dir = std::env::temp_dir().join(format!("swarm-example-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir)?;
//! let config = RalphConfig {
//!     task: "count to 2 in the file 'n'".into(),
//!     checks: vec!["grep -qx 2 n".into()],
//!     max_iterations: 5,
//!     ..RalphConfig::default()
//! };
//!
//! // An agent is anything that takes a prompt; here a closure.
//! let file = dir.join("n");
//! let agent = |context: &AgentContext<'_>| {
//!     let (file, number) = (file.clone(), context.iteration);
//!     move |_prompt: &str| AgentState {
//!         error: std::fs::write(&file, format!("{number}\n")).err().map(|e| e.to_string()),
//!         text: "I counted. <promise>COMPLETE</promise>".into(),
//!         ..AgentState::default()
//!     }
//! };
//! let mut counting = RalphLoop::new(config.clone(), agent, &dir);
//! let result = counting.run()?;
//! assert!(result.success && result.stop_reason == "all_checks_passed");
//! assert_eq!(result.total_iterations, 2);
//! assert!(!result.iterations[0].all_checks_passed);
//! counting.cleanup_progress();
//!
//! // Or a command, which gets the prompt on its standard input.
//! let agent = command(["sh", "-c", "echo 2 > n; echo '<promise>COMPLETE</promise>'"]);
//! assert_eq!(RalphLoop::new(config, agent, &dir).run()?.total_iterations, 1);
//! # std::fs::remove_dir_all(&dir)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use chrono::Utc;
use swarm_state::model::{WorkerName, Worktree};
use swarm_state::removal::Permission;
use swarm_state::spec::WorktreeSpec;

use crate::error::{Error, ErrorCode, Result, failed};
use crate::git;
use crate::loops::{LoopRun, forget_progress};
use crate::paths::{self, Paths, private_dir};
use crate::signed::SigningKey;

mod agent;
mod config;
mod in_process;
mod result;
mod runtime;
#[cfg(test)]
mod tests;

pub use agent::{Agent, AgentContext, AgentState, CommandAgent, command};
pub use config::RalphConfig;
use in_process::{Clock, InProcessLoop, SystemClock};
pub use result::{CheckResult, LoopIteration, RalphLoopResult};
use runtime::block_on;

const DEFAULT_NAME: &str = "ralph-loop";

/// A loop: the task, the agents and the directory.
pub struct RalphLoop<F> {
    config: RalphConfig,
    agent_factory: F,
    root: PathBuf,
    name: String,
    folder: Option<PathBuf>,
    worktree: Option<Worktree>,
    clock: Box<dyn Clock>,
}

impl<F> std::fmt::Debug for RalphLoop<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("RalphLoop");
        shown.field("config", &self.config).field("root", &self.root).field("name", &self.name);
        shown.field("worktree", &self.worktree).finish_non_exhaustive()
    }
}

impl<F, A> RalphLoop<F>
where
    F: FnMut(&AgentContext<'_>) -> A,
    A: Agent,
{
    /// Makes a loop over `root`. `agent_factory` is called for each iteration and returns a new agent, so that only
    /// the files and the prompt pass from one iteration to the next.
    pub fn new(config: RalphConfig, agent_factory: F, root: impl Into<PathBuf>) -> Self {
        let (root, name) = (root.into(), DEFAULT_NAME.to_owned());
        Self {
            config,
            agent_factory,
            root,
            name,
            folder: None,
            worktree: None,
            clock: Box::new(SystemClock::new()),
        }
    }

    /// Runs the loop to its end, which may take long. The first call makes the worktree, if one is configured; it
    /// stays afterwards.
    ///
    /// # Errors
    /// When the configuration, the directory or the worktree is invalid, or the loop's own files cannot be written. A
    /// failing agent or check is not an error; it is in the result.
    pub fn run(&mut self) -> Result<RalphLoopResult> {
        let gates = self.config.gates()?;
        let root = std::fs::canonicalize(&self.root).map_err(|e| failed("use directory", &self.root, e))?;
        let task_file = self.config.spec_file.as_ref().map(|file| root.join(file));
        let cwd = if self.config.use_worktree { self.worktree(&root)? } else { root };
        let id = fresh_id();
        let folder = Folder::make(self.folder.as_deref(), &self.name, &id)?;
        crate::loops::undo_canary(&folder.path);
        let loop_run = LoopRun {
            name: self.name.clone(),
            id,
            folder: folder.path.clone(),
            key: SigningKey::random().map_err(|e| Error::system("no random numbers", e))?,
            // Without a home directory there is none.
            root: Paths::from_env().map_or_else(|_| folder.path.clone(), |paths| paths.root().to_owned()),
            cwd,
            env: agent::environment().into(),
            sandbox: None,
            gates,
            profile: swarm_state::profiles::Profile::generic(),
            shows_text: false,
            task_file,
        };
        crate::loops::check_progress(&loop_run.cwd, &loop_run.root)?;
        let in_process =
            InProcessLoop::new(&self.config, &loop_run, &mut self.agent_factory, self.clock.as_mut());
        let mut result = in_process.run()?;
        if let Some(worktree) = &self.worktree {
            result.worktree_path = worktree.path.display().to_string();
        }
        Ok(result)
    }

    fn worktree(&mut self, root: &Path) -> Result<PathBuf> {
        if let Some(made) = self.worktree.as_ref().filter(|made| made.path.is_dir()) {
            return Ok(made.path.clone());
        }
        let name: WorkerName =
            self.name.parse().map_err(|e| Error::invalid(format!("the loop's name: {e}")))?;
        let made = block_on(git::create_worktree(root, &name, &WorktreeSpec::default(), |_| Ok(())))??;
        Ok(self.worktree.insert(made.worktree).path.clone())
    }
}

impl<F> RalphLoop<F> {
    /// Sets a name other than `ralph-loop`. The worktree, its branch (`swarm/NAME`) and the snapshots
    /// (`refs/swarm/NAME/…`) contain it.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Keeps contracts, outputs and verdicts in this directory, which must be outside the agent's tree. Without it,
    /// they are deleted at the end of the loop. The snapshots in git stay in both cases.
    #[must_use]
    pub fn keep_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Removes the worktree, and its branch if it is merged. True if there was one.
    ///
    /// # Errors
    /// [`ErrorCode::Conflict`] if a change, a commit or an ignored file outside a cache would be lost. The error
    /// names it, and everything stays.
    pub fn cleanup_worktree(&mut self) -> Result<bool> {
        let Some(made) = self.worktree.clone() else { return Ok(false) };
        let removed = block_on(git::remove_worktree(&made, Permission::default()))?;
        removed.map_err(|error| error.into_error(&made.path, |_| None))?;
        self.worktree = None;
        Ok(true)
    }

    /// Removes the progress file.
    pub fn cleanup_progress(&self) {
        let cwd = self.worktree.as_ref().map_or(&self.root, |made| &made.path);
        forget_progress(cwd);
    }
}

/// An id that no other loop has, also in other programs; part of a git ref.
fn fresh_id() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (now, count) = (Utc::now().format("%Y%m%dT%H%M%S%3fZ"), COUNT.fetch_add(1, Ordering::Relaxed));
    format!("{now}-{}-{count}", std::process::id())
}

struct Folder {
    path: PathBuf,
    /// Deleted at the end of the loop.
    passing: bool,
}

impl Folder {
    fn make(wanted: Option<&Path>, name: &str, id: &str) -> Result<Self> {
        let path = match wanted {
            Some(path) => paths::pin(path).map_err(|e| failed("find", path, e))?,
            None => std::env::temp_dir().join(format!("swarm-{name}-{id}")),
        };
        if wanted.is_none() && path.exists() {
            // Another user made it, knowing its name.
            return Err(Error::new(ErrorCode::System, format!("'{}' already exists", path.display())));
        }
        private_dir(&path)?;
        Ok(Self { path, passing: wanted.is_none() })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.passing {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
