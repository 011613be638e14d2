//! Checks the copy of swarm that the daemon starts in panes and passes to agents as their hook.

use std::fs;
use std::path::Path;

use super::check::Check;
use crate::paths::Paths;
use crate::procs::can_execute;
use crate::shell::quote_path;
use crate::store::DaemonLock;

/// A problem with it; `None` while no daemon runs.
pub(super) fn check(paths: &Paths) -> Option<Check> {
    let pid = DaemonLock::holder(paths)?;
    let placed = paths.helper();
    let own = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let text = own.to_string_lossy();
    // Linux marks the path of a program that was removed or replaced.
    let (installed, is_gone) = match text.strip_suffix(" (deleted)") {
        Some(path) => (Path::new(path), true),
        None => (own.as_path(), false),
    };
    let shown = installed.display();
    match (can_execute(&placed), can_execute(installed)) {
        (Ok(()), _) if is_gone => {
            let message = format!(
                "the daemon (pid {pid}) was started from {shown}, which was removed or replaced; it uses its \
                 own copy"
            );
            Some(Check::warn("helper", message, "to use the installed version: swarm daemon restart"))
        }
        (Ok(()), _) => None,
        (Err(why), Ok(())) => {
            let message = format!(
                "{} cannot be started ({why}); panes and hooks use {shown} until that is removed",
                placed.display()
            );
            let cure =
                format!("check it and its file system, then start a worker: ls -ld {}", quote_path(&placed));
            Some(Check::warn("helper", message, cure))
        }
        (Err(why), Err(other)) => {
            let message = format!(
                "no worker can be started: neither {} ({why}) nor {shown} ({other}) can be executed",
                placed.display()
            );
            Some(Check::fail("helper", message, "install swarm again, then: swarm daemon restart"))
        }
    }
}
