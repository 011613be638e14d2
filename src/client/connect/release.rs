//! Reports a daemon of another release: an update replaces the program, and the daemon runs on as it was.
//!
//! The warning is printed once in the life of a daemon on a terminal and once elsewhere, so that neither a script nor a
//! status line uses up the one for a person. A file in the daemon's directory remembers it. A command that prints data
//! for programs does not warn.

use std::fs;

use crate::cli;
use crate::files::write_unsynced;
use crate::out::Out;
use crate::paths::Paths;
use crate::protocol::{DaemonHello, RELEASE};

pub(super) fn report(paths: &Paths, daemon: &DaemonHello) {
    if daemon.daemon == RELEASE || cli::is_for_programs(std::env::args_os()) {
        return;
    }
    let (out, path) = (Out::from_env(), paths.release_notice());
    let Some(text) =
        with_notice(&fs::read_to_string(&path).unwrap_or_default(), daemon, out.shows_progress())
    else {
        return;
    };
    // If the file cannot be written, each command would warn.
    if write_unsynced(&path, text.as_bytes()).is_ok() {
        let (pid, theirs) = (daemon.pid, &daemon.daemon);
        out.warn(&format!("the daemon (pid {pid}) is swarm {theirs}; this is swarm {RELEASE}"));
        out.hint("to replace it without pausing anything: swarm daemon restart");
    }
}

/// The file's text after a warning; `None` if this warning was printed before.
fn with_notice(text: &str, daemon: &DaemonHello, on_terminal: bool) -> Option<String> {
    let of_daemon = format!("{} {} ", daemon.pid, daemon.daemon);
    let own = format!("{of_daemon}{RELEASE} {}", if on_terminal { "terminal" } else { "other" });
    let known: Vec<&str> = text.lines().filter(|line| line.starts_with(&of_daemon)).collect();
    (!known.contains(&own.as_str())).then(|| [&known[..], &[&own, ""]].concat().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_daemon_is_reported_once_on_a_terminal_and_once_elsewhere() {
        let daemon = |pid| DaemonHello { swarm: 1, daemon: "0.0.9".to_owned(), pid };
        let first = with_notice("", &daemon(7), false).unwrap();
        assert_eq!(with_notice(&first, &daemon(7), false), None);
        let both = with_notice(&first, &daemon(7), true).unwrap();
        assert_eq!(both.lines().count(), 2);
        assert!(
            [true, false].iter().all(|terminal| with_notice(&both, &daemon(7), *terminal).is_none()),
            "{both}"
        );
        assert_eq!(with_notice(&both, &daemon(70), true).unwrap().lines().count(), 1);
    }
}
