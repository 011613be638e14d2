//! Which worker a request comes from. An agent may not control its own loop by a shortcut.
//!
//! Used by the requests that approve, set, resume, respawn, remove and replace a worker. An agent runs as the user
//! and can do what the user can. So this stops careless agents and shortcuts, not an intruder: an agent that clears
//! its environment and leaves its pane, or that uses a tmux server of the user's own, looks like a person. On systems
//! without `/proc` every request passes. Not here: which requests are refused.
//!
//! A request is a worker's own if the caller or one of its ancestors
//!
//! * is in the worker's pane,
//! * has the worker's variables in its environment, as all processes have that the agent or a check started, even
//!   detached ones,
//! * belongs to a worker that this worker spawned, directly or indirectly,
//! * is a filter or hook of a repository that swarm's own git runs.
//!
//! A caller that has ended counts as the worker's own too. An orphan that cleared its environment does not: it looks
//! like a script of the user's.
//!
//! In addition, a request from inside swarm's own tmux server must come from another worker's pane. A window or job
//! that swarm did not create was created through the server's socket, usually by an agent. A person who splits a
//! window while attached looks the same, and has a terminal of their own.

use swarm_state::words::unique;

use crate::daemon::slot::Slot;
use crate::error::{Error, Result};
use crate::store::Store;
use crate::{checks, git, marks, procs, tmux, wrapper};

/// Stands for an unknown worker; no worker has this name.
const ANY_WORKER: &str = "*";

/// Refuses a request that a worker makes about itself.
pub(crate) fn refuse_own(slot: &Slot, peer: Option<i32>, what: &str) -> Result<()> {
    let Some(peer) = peer else { return Ok(()) };
    let (context, name) = (&slot.driver.context, &slot.spec.name);
    let paths = context.store.paths();
    let line = [&[peer][..], &procs::ancestors(peer)].concat();
    let is_below = slot.engine.has_pane() && slot.pane.as_ref().is_some_and(|pane| line.contains(&pane.pid));
    let check = checks::mark(&paths.ralph_dir(name).join(""));
    let is_own = |pid: &i32| {
        let env = procs::swarm_variables(*pid);
        let workers = marks::workers(*pid, &env, paths.root());
        let is_marked = workers.iter().any(|worker| [name.as_str(), ANY_WORKER].contains(&worker.as_str()));
        is_marked || env.iter().any(|line| line.starts_with(&check)) || git::is_below_ours(&env)
    };
    let refuse = |message: String, hint: &str| Err(Error::conflict(message).hint(hint));
    if is_below || line.iter().any(is_own) {
        return refuse(format!("worker '{name}' may not {what}"), "run this from outside the worker");
    }
    if is_from_own_tmux(&line, &paths.tmux_socket()) {
        let message = format!(
            "this request comes from inside swarm's tmux server and could be from worker '{name}', which may not {what}"
        );
        return refuse(message, "run the command in your own terminal, outside `swarm attach`");
    }
    if cfg!(target_os = "linux") && peer > 0 && !procs::is_alive(peer) {
        let message = format!(
            "the process that sent this request has ended; it could be from worker '{name}', which may not {what}"
        );
        return refuse(message, "run the command in your own terminal");
    }
    Ok(())
}

/// Whether a process is inside swarm's own tmux server, but not in the pane of a worker.
fn is_from_own_tmux(line: &[i32], socket: &std::path::Path) -> bool {
    let server = line.iter().position(|pid| tmux::is_server_at(*pid, socket));
    let below = server.map(|at| at.checked_sub(1).and_then(|at| line.get(at)));
    below.is_some_and(|pane| pane.is_none_or(|pid| !wrapper::is_pane(*pid)))
}

/// The workers that a caller belongs to, nearest first, and their spawners; `*` if it could be any worker.
pub(crate) fn workers_of(peer: Option<i32>, store: &Store) -> Vec<String> {
    let Some(peer) = peer else { return vec![] };
    let line = [&[peer][..], &procs::ancestors(peer)].concat();
    let any = is_from_own_tmux(&line, &store.paths().tmux_socket()).then(|| ANY_WORKER.to_owned());
    let workers = |pid| marks::workers(pid, &procs::swarm_variables(pid), store.paths().root());
    unique(any.into_iter().chain(line.into_iter().flat_map(workers)))
}
