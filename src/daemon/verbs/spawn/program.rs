//! Looks up the programs of the agent and of the gates, before anything of the worker is created.
//!
//! Not here: finding the program of a gate ([`crate::checks::program`]).

use std::path::Path;

use swarm_state::spec::WorkerSpec;

use crate::checks::program::{DEFAULT_PATH, GateCommand, Lookup, look_up, make_executable};
use crate::error::{Error, Result};
use crate::shell::quote;

/// Refuses an agent's program that cannot be started.
pub(super) fn check(program: &str, spec: &WorkerSpec) -> Result<()> {
    if spec.is_in_docker() {
        // The template has it.
        return Ok(());
    }
    let path = spec.env.get("PATH").map_or(DEFAULT_PATH, String::as_str);
    let refuse = |why: &str| Error::invalid(format!("cannot run {program}: {why}"));
    match look_up(program, &spec.cwd, path) {
        Lookup::Runnable(_) => Ok(()),
        Lookup::Directory => Err(refuse("it is a directory")),
        Lookup::NotExecutable(file) => Err(refuse("it is not executable").hint(make_executable(&file))),
        Lookup::Missing => Err(no_such_program(program, &spec.cwd)),
    }
}

/// The error for a program that is in no directory. A whole command line, or a variable, is not a program's name.
fn no_such_program(program: &str, cwd: &Path) -> Error {
    let message = format!("no such program: {program}");
    let name = program.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or_default();
    if program.contains(|c: char| "|&;<>$`\n".contains(c)) || program.contains(' ') && name.contains('=') {
        Error::usage(message).hint(format!("for a shell command: -- sh -c {}", quote(program)))
    } else if program.contains(char::is_whitespace) {
        Error::usage(message).hint(format!("give the command without quotes: -- {program}"))
    } else if name.contains('=') {
        Error::usage(message).hint(format!("to set a variable: --env {}", quote(program)))
    } else if program.contains('/') {
        Error::invalid(message).hint(format!("a relative path starts at {}", cwd.display()))
    } else {
        Error::invalid(message).hint("give a program on the PATH or a path to one; shell aliases do not work")
    }
}

/// Refuses the gates' commands whose program cannot run. Warns about programs that the agent may still provide.
pub(super) fn check_gates(spec: &WorkerSpec) -> Result<Vec<String>> {
    let loop_spec = spec.ralph.as_ref().filter(|_| !spec.is_in_docker());
    let Some(gates) = loop_spec.map(|ralph| &ralph.gates) else { return Ok(vec![]) };
    let place = |what, runs_apart, hidden| GateCommand {
        what,
        runs_apart,
        cwd: &spec.cwd,
        env: &spec.env,
        hidden,
        // In a new worktree, files of the tree can differ from those here.
        tree_may_differ: spec.worktree.is_some(),
    };
    let checks = gates.checks.iter().map(|check| place("check", false, None).check(check));
    let setup = gates.rooms.setup.iter().map(|setup| place("setup command", true, None).check(setup));
    let hidden = gates.rooms.hidden.as_deref();
    let held_out =
        gates.rooms.final_checks.iter().map(|check| place("held-out check", true, hidden).check(check));
    checks.chain(setup).chain(held_out).filter_map(Result::transpose).collect()
}
