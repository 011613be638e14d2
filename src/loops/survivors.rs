//! Ends the processes that an agent left, so that nothing changes the files while the checks run.
//!
//! The wrapper in the pane has already ended the tree below it. This finds the rest: processes with the worker's
//! variables in their environment, and everything below them; orphans of filters and hooks that swarm's own git ran;
//! and jobs and windows in swarm's own tmux server that belong to no worker. Two kinds are named and not ended:
//! workers that the agent spawned, which have rules of their own, and a plain shell in swarm's tmux server, which a
//! person may have opened while attached. Processes that cleared their environment outside of tmux are not found.

use std::collections::BTreeSet;
use std::time::Duration;

use nix::sys::signal::Signal;
use swarm_state::proof::{Layer, Proof, ProofOutcome};
use swarm_state::screen::printable;
use tokio::time::{Instant, sleep};

use super::run::LoopRun;
use crate::marks;
use crate::paths::Paths;
use crate::procs::{self, Proc};
use crate::{git, tmux, wrapper};

/// How long the processes have to exit after SIGTERM, and then after SIGKILL.
const SURVIVOR_GRACE: Duration = Duration::from_secs(2);
/// How often to look whether they have ended.
const SURVIVOR_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How many processes a finding names.
const MAX_NAMED_PROCESSES: usize = 8;

impl LoopRun {
    /// Ends the processes that the agent left, and describes them. `None` if the agent is not a process of its own.
    pub(super) async fn end_survivors(&self) -> Option<Proof> {
        self.env.get(marks::WORKER)?;
        if !cfg!(target_os = "linux") {
            return proof(ProofOutcome::Unproven, "processes cannot be listed on this system".into());
        }
        if self.is_in_docker() {
            let found = "the processes in a Docker sandbox cannot be listed";
            return proof(ProofOutcome::Unproven, found.into());
        }
        let (ended, found) = self.end_all(false).await;
        if !found.own.is_empty() {
            let names = named(&found.own);
            return proof(ProofOutcome::Fails, format!("processes of the agent could not be ended: {names}"));
        }
        let mut parts = vec![];
        if !ended.is_empty() {
            let count =
                if ended.len() == 1 { "1 process".into() } else { format!("{} processes", ended.len()) };
            parts.push(format!("ended {count} that the agent had left: {}", named(&ended)));
        }
        if !found.kept.is_empty() {
            let kept: Vec<String> = found.kept.into_iter().collect();
            parts.push(format!("running during the checks: {}", kept.join(", ")));
            return proof(ProofOutcome::Unproven, parts.join("; "));
        }
        parts.extend(ended.is_empty().then(|| "no process of the agent was left".into()));
        proof(ProofOutcome::Holds, parts.join("; "))
    }

    /// Ends the processes that were started while the checks ran, and describes them. `None` if there are none.
    pub(super) async fn end_late_survivors(&self) -> Option<Proof> {
        self.env.get(marks::WORKER)?;
        let (ended, _) = self.end_all(true).await;
        let found = format!("processes of the agent ran during the checks: {}", named(&ended));
        if ended.is_empty() { None } else { proof(ProofOutcome::Fails, found) }
    }

    /// Ends all processes that are to be ended. Returns those that were found, and what is left. With `near`, jobs of
    /// tmux count only in the worker's directory; others can come from another worker.
    async fn end_all(&self, near: bool) -> (Vec<Proc>, Survivors) {
        let mut ended: Vec<Proc> = vec![];
        let mut found = self.survivors(near).await;
        let until = Instant::now() + SURVIVOR_GRACE;
        while found.is_starting && Instant::now() < until {
            sleep(SURVIVOR_POLL_INTERVAL).await;
            found = self.survivors(near).await;
        }
        for signal in [Signal::SIGTERM, Signal::SIGKILL] {
            let until = Instant::now() + SURVIVOR_GRACE;
            while !found.own.is_empty() && Instant::now() < until {
                for proc in found.own {
                    let is_new = !ended.contains(&proc);
                    if is_new || signal == Signal::SIGKILL {
                        procs::signal_same(proc.pid, proc.start_time, signal);
                    }
                    ended.extend(is_new.then_some(proc));
                }
                sleep(SURVIVOR_POLL_INTERVAL).await;
                found = self.survivors(near).await;
            }
        }
        (ended, found)
    }

    async fn survivors(&self, near: bool) -> Survivors {
        let this = self.clone();
        tokio::task::spawn_blocking(move || Survivors::of(&this, near)).await.unwrap_or_default()
    }
}

fn proof(outcome: ProofOutcome, found: String) -> Option<Proof> {
    Some(Proof::of_all(Layer::Survivors, outcome, found))
}

#[derive(Default)]
struct Survivors {
    /// To be ended.
    own: Vec<Proc>,
    /// To be named.
    kept: BTreeSet<String>,
    /// The tmux server has a child that has not started its program yet.
    is_starting: bool,
}

impl Survivors {
    fn of(run: &LoopRun, near: bool) -> Self {
        let me = i32::try_from(std::process::id()).unwrap_or(0);
        let above = procs::ancestors(me);
        let socket = Paths::new(run.root.clone()).tmux_socket();
        let all = procs::all();
        let is_server =
            |proc: &&Proc| proc.comm == tmux::SERVER_NAME && tmux::is_server_at(proc.pid, &socket);
        let servers: Vec<i32> = all.iter().filter(is_server).map(|proc| proc.pid).collect();
        let mut found = Self::default();
        for proc in all {
            let env = procs::swarm_variables(proc.pid);
            let workers = marks::workers(proc.pid, &env, &run.root);
            let is_near = || procs::cwd(proc.pid).is_some_and(|cwd| cwd.starts_with(&run.cwd));
            let is_own = workers.first() == Some(&run.name)
                || (git::is_below_ours(&env) && is_near() && !procs::ancestors(proc.pid).contains(&me));
            // Until a child of the server starts its program, it looks like a server.
            let is_child = servers.contains(&proc.ppid);
            found.is_starting |= is_child && servers.contains(&proc.pid);
            let is_job = is_child
                && !servers.contains(&proc.pid)
                && !wrapper::is_helper(proc.pid)
                && !tmux::is_idle_program(proc.pid)
                && (!near || is_near());
            if is_job && procs::arguments(proc.pid).len() == 1 {
                found.kept.insert(format!("{} in swarm's tmux server", named(&[proc])));
            } else if is_own || is_job {
                let below = procs::tree(proc.pid);
                found.own.extend([proc].into_iter().chain(below));
            } else if workers.contains(&run.name) {
                found.kept.insert(format!("worker '{}', which the agent spawned", workers[0]));
            }
        }
        found.own.sort_by_key(|proc| proc.pid);
        found.own.dedup();
        found.own.retain(|proc| proc.pid != me && !above.contains(&proc.pid));
        found
    }
}

/// The names and ids of processes, at most [`MAX_NAMED_PROCESSES`].
fn named(procs: &[Proc]) -> String {
    let name = |proc: &Proc| format!("{} ({})", printable(&proc.comm), proc.pid);
    let mut names: Vec<String> = procs.iter().take(MAX_NAMED_PROCESSES).map(name).collect();
    let more = procs.len() - names.len();
    names.extend((more > 0).then(|| format!("and {more} more")));
    names.join(", ")
}
