//! Looks up the programs of the agent and of the checks, before anything of the worker is created.
//!
//! A check is refused only if its shell is certain not to find or run its program. Not here: running the checks
//! ([`crate::checks`]).

use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};
use swarm_state::scripts::plain_program;
use swarm_state::spec::WorkerSpec;

use crate::error::{Error, Result};
use crate::paths::resolve;
use crate::shell::quote;

/// The directories that are searched if the environment has no PATH.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The result of a search for a program.
enum Lookup {
    Runnable,
    /// This file may not be executed.
    NotExecutable(PathBuf),
    Directory,
    Missing,
}

/// Searches a program as a shell does, from a directory and with a PATH.
fn look_up(program: &str, cwd: &Path, path: &str) -> Lookup {
    let is_named = program.contains('/');
    let candidates: Vec<PathBuf> = if is_named {
        vec![cwd.join(program.strip_prefix("./").unwrap_or(program))]
    } else {
        std::env::split_paths(path).map(|dir| cwd.join(dir).join(program)).collect()
    };
    if candidates.iter().any(|file| file.is_file() && access(file, AccessFlags::X_OK).is_ok()) {
        return Lookup::Runnable;
    }
    // A directory on the PATH with this name is not meant.
    match candidates.into_iter().find(|file| if is_named { file.exists() } else { file.is_file() }) {
        Some(found) if found.is_dir() => Lookup::Directory,
        Some(found) => Lookup::NotExecutable(found),
        None => Lookup::Missing,
    }
}

/// Refuses an agent's program that cannot be started.
pub(super) fn check(program: &str, spec: &WorkerSpec) -> Result<()> {
    let path = spec.env.get("PATH").map_or(DEFAULT_PATH, String::as_str);
    let refuse = |why: &str| Error::invalid(format!("cannot run {program}: {why}"));
    match look_up(program, &spec.cwd, path) {
        Lookup::Runnable => Ok(()),
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

/// Refuses checks whose program cannot run. Returns warnings about those whose program the agent may still provide.
pub(super) fn check_gates(spec: &WorkerSpec) -> Result<Vec<String>> {
    let checks = spec.ralph.iter().flat_map(|ralph| &ralph.gates.checks);
    checks.filter_map(|check| check_gate(check, spec).transpose()).collect()
}

fn check_gate(check: &str, spec: &WorkerSpec) -> Result<Option<String>> {
    let (Some(program), Some(path)) = (plain_program(check), spec.env.get("PATH")) else { return Ok(None) };
    let message = |why: &str| format!("the check '{check}' cannot run: {why}");
    let top = spec.cwd.ancestors().find(|dir| dir.join(".git").exists()).unwrap_or(&spec.cwd);
    let is_in_tree = |file: &Path| resolve(file).starts_with(resolve(top));
    // In a new worktree, files of the tree can differ from those here.
    let may_differ = |file: &Path| spec.worktree.is_some() && is_in_tree(file);
    let missing = |file: &str| message(&format!("{file} does not exist yet; the agent has to write it"));
    match look_up(program, &spec.cwd, path) {
        Lookup::Runnable => {
            let is_missing = |file: &&str| matches!(look_up(file, &spec.cwd, path), Lookup::Missing);
            Ok(script(check).filter(|file| !spec.cwd.join(file).exists()).filter(is_missing).map(missing))
        }
        Lookup::NotExecutable(file) if may_differ(&file) => {
            Ok(Some(message(&format!("{program} is not executable"))))
        }
        Lookup::NotExecutable(file) => {
            Err(Error::invalid(message(&format!("{program} is not executable"))).hint(make_executable(&file)))
        }
        Lookup::Directory => Ok(Some(message(&format!("{program} is a directory")))),
        Lookup::Missing if program.contains('/') => Ok(Some(missing(program))),
        Lookup::Missing => {
            let why = format!("no such program: {program}");
            let installs = std::env::split_paths(path).any(|dir| is_in_tree(&spec.cwd.join(dir)));
            if installs || defines_commands(spec, path) {
                return Ok(Some(message(&why)));
            }
            Err(Error::invalid(message(&why)).hint(
                "install it, or add its directory to PATH; for a script that the agent writes, give its path: ./check.sh",
            ))
        }
    }
}

/// The script that a plain command gives to an interpreter; `None` if options may give it another meaning.
fn script(check: &str) -> Option<&str> {
    let mut words = check.split(' ').filter(|word| !word.is_empty());
    let program = words.next()?.rsplit('/').next()?;
    let flags = match program {
        "sh" | "bash" | "dash" | "ksh" | "zsh" => "euxfv",
        "python" | "python3" | "perl" | "ruby" | "node" => "",
        _ => return None,
    };
    let is_flag = |word: &&str| {
        word.len() > 1 && word.strip_prefix('-').is_some_and(|w| w.chars().all(|c| flags.contains(c)))
    };
    words.find(|word| !is_flag(word)).filter(|word| !word.starts_with(['-', '+']))
}

/// Whether the shell of a check may have commands of its own: functions from the environment, or the programs that
/// busybox contains.
fn defines_commands(spec: &WorkerSpec, path: &str) -> bool {
    let shell = std::env::split_paths(path).map(|dir| dir.join("sh")).find_map(|sh| sh.canonicalize().ok());
    let shell = shell.unwrap_or_default();
    let is_known = ["sh", "bash", "dash", "ksh", "mksh", "yash", "zsh"].iter().any(|sh| shell.ends_with(sh));
    !is_known || spec.env.keys().any(|key| key == "ENV" || key.starts_with("BASH_FUNC_"))
}

fn make_executable(file: &Path) -> String {
    format!("chmod +x {}", quote(&file.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_of_an_interpreter() {
        for (check, file) in [
            ("sh ./check.sh", Some("./check.sh")),
            ("/bin/bash -eu  -x check.sh --all", Some("check.sh")),
            ("python3 tests/run.py", Some("tests/run.py")),
            ("sh -c ./check.sh", None),
            ("sh -ec true", None),
            ("bash -o pipefail check.sh", None),
            ("python3 -m pytest", None),
            ("node --test", None),
            ("sh", None),
            ("make check.sh", None),
        ] {
            assert_eq!(script(check), file, "{check}");
        }
    }
}
