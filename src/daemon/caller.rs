//! Who a request comes from: the rule that an agent may not steer its own loop by a shortcut.
//!
//! Used by the calls that approve, set, resume, respawn, remove and replace a worker. An agent runs as its user and can do
//! what the user can, so this stops the careless and those who take the short way, not an intruder: who clears
//! its environment and leaves its pane, or uses a tmux server of the user's own, is not told from a person.
//! Where the system does not tell of processes (other than Linux) everybody passes. Deliberately absent:
//! what is refused; that is for the calls.
//!
//! A request is a worker's own when the caller or one of its ancestors
//! * is in the worker's pane,
//! * has the worker's marks in its environment, as everything has that the agent or a check starts, also
//!   what was detached from them,
//! * is of a worker that this one has spawned, or that such a one has,
//! * is a filter or a hook of a repository, run by a git of swarm's.
//!
//! And nobody steers a loop from within swarm's own tmux server but from another worker's pane. A window or a
//! job of that server which swarm did not make was made through its socket, mostly by an agent; a person who
//! splits a window while attached cannot be told from that one, and has a terminal of their own.

use crate::daemon::run::context::root_mark;
use crate::daemon::slot::Slot;
use crate::error::{Error, ErrorCode, Result};
use crate::store::Store;
use crate::{checks, git, procs, tmux, wrapper};

/// The variable that names, with `:` between them, the workers by which a worker was spawned.
pub(crate) const SPAWNED_BY: &str = "SWARM_SPAWNED_BY";

/// Stands there for a worker that nobody knows; no worker has this name.
const ANY_WORKER: &str = "*";

/// Refuses what a worker wants to do to itself.
pub(crate) fn refuse_own(slot: &Slot, peer: Option<i32>, what: &str) -> Result<()> {
    let Some(peer) = peer else { return Ok(()) };
    let (context, name) = (&slot.driver.context, &slot.spec.name);
    let paths = context.store.paths();
    let line = [&[peer][..], &procs::ancestors(peer)].concat();
    let is_below = slot.engine.has_pane() && slot.pane.as_ref().is_some_and(|pane| line.contains(&pane.pid));
    let check = checks::mark(&paths.ralph_dir(name).join(""));
    let root = context.root_mark();
    let is_own = |pid: &i32| {
        let env = procs::environment(*pid);
        let is_marked = env.contains(&root)
            && workers(&env).any(|worker| [name.as_str(), ANY_WORKER].contains(&worker.as_str()));
        is_marked || env.iter().any(|line| line.starts_with(&check)) || git::is_below_ours(&env)
    };
    let refuse = |message: String, hint: &str| Err(Error::new(ErrorCode::Conflict, message).hint(hint));
    if is_below || line.iter().any(is_own) {
        return refuse(format!("worker '{name}' may not {what}"), "run this from outside the worker");
    }
    if is_from_own_tmux(&line, &paths.tmux_socket()) {
        let message = format!(
            "this comes from within swarm's own tmux, so it could be worker '{name}', which may not {what}"
        );
        return refuse(message, "run this in a terminal of your own, outside of `swarm attach`");
    }
    Ok(())
}

/// Whether a line of ancestors comes from swarm's own tmux server, but not from the pane of a worker.
fn is_from_own_tmux(line: &[i32], socket: &std::path::Path) -> bool {
    let server = line.iter().position(|pid| tmux::is_server_at(*pid, socket));
    let below = server.map(|at| at.checked_sub(1).and_then(|at| line.get(at)));
    below.is_some_and(|pane| pane.is_none_or(|pid| !wrapper::is_pane(*pid)))
}

/// The workers of this root that a caller belongs to, nearest first, and those by which these were spawned; `*` where it
/// could be any.
pub(crate) fn workers_of(peer: Option<i32>, store: &Store) -> Vec<String> {
    let Some(peer) = peer else { return vec![] };
    let line = [&[peer][..], &procs::ancestors(peer)].concat();
    let mut found: Vec<String> = vec![];
    if is_from_own_tmux(&line, &store.paths().tmux_socket()) {
        found.push(ANY_WORKER.to_owned());
    }
    let root_mark = root_mark(store);
    for pid in line {
        let env = procs::environment(pid);
        if env.contains(&root_mark) {
            for worker in workers(&env) {
                if !found.contains(&worker) {
                    found.push(worker);
                }
            }
        }
    }
    found
}

/// The workers that an environment names.
fn workers(env: &[Vec<u8>]) -> impl Iterator<Item = String> {
    let value = |name: &str| {
        let line = env.iter().find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
        line.map(|value| String::from_utf8_lossy(value).into_owned()).unwrap_or_default()
    };
    let both = [value("SWARM_WORKER"), value(SPAWNED_BY)];
    let names: Vec<String> = both.iter().flat_map(|text| text.split(':')).map(str::to_owned).collect();
    names.into_iter().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_names_its_worker_and_those_before_it() {
        let env = |lines: &[&str]| lines.iter().map(|line| line.as_bytes().to_vec()).collect::<Vec<_>>();
        let named = |lines: &[&str]| workers(&env(lines)).collect::<Vec<_>>();
        assert_eq!(named(&["A=b", "SWARM_WORKER=c", "SWARM_SPAWNED_BY=b:a"]), ["c", "b", "a"]);
        assert_eq!(named(&["SWARM_WORKERS=c", "XSWARM_WORKER=d", ""]), [""; 0]);
    }
}
