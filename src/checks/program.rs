//! Finds the programs of the gates' commands, without running anything.
//!
//! A command is refused only if its shell is certain not to find or run its program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};
use swarm_state::scripts::plain_program;

use crate::error::{Error, Result};
use crate::paths::resolve;
use crate::shell::quote;

/// The directories that are searched if the environment has no PATH.
pub(crate) const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The result of a search for a program.
pub(crate) enum Lookup {
    Runnable(PathBuf),
    /// This file may not be executed.
    NotExecutable(PathBuf),
    Directory,
    Missing,
}

/// Searches a program as a shell does, from a directory and with a PATH.
pub(crate) fn look_up(program: &str, cwd: &Path, path: &str) -> Lookup {
    let is_named = program.contains('/');
    let candidates: Vec<PathBuf> = if is_named {
        vec![cwd.join(program.strip_prefix("./").unwrap_or(program))]
    } else {
        std::env::split_paths(path).map(|dir| cwd.join(dir).join(program)).collect()
    };
    if let Some(file) = candidates.iter().find(|file| is_executable(file)) {
        return Lookup::Runnable(file.clone());
    }
    // A directory on the PATH with this name is not meant.
    match candidates.into_iter().find(|file| if is_named { file.exists() } else { file.is_file() }) {
        Some(found) if found.is_dir() => Lookup::Directory,
        Some(found) => Lookup::NotExecutable(found),
        None => Lookup::Missing,
    }
}

pub(crate) fn is_executable(file: &Path) -> bool {
    file.is_file() && access(file, AccessFlags::X_OK).is_ok()
}

/// The place in which a command of a gate is looked up.
pub(crate) struct GateCommand<'a> {
    /// The word for it in messages, such as `check`.
    pub(crate) what: &'a str,
    /// The directory that it runs in.
    pub(crate) cwd: &'a Path,
    /// Its environment.
    pub(crate) env: &'a BTreeMap<String, String>,
    /// The directory with files that replace those of `cwd`.
    pub(crate) hidden: Option<&'a Path>,
    /// The command runs in a room, and the agent does not read it. A missing file outside of the tree is a mistake.
    pub(crate) runs_apart: bool,
    /// The command runs in another version of the tree.
    pub(crate) tree_may_differ: bool,
}

impl GateCommand<'_> {
    /// Refuses a command whose program cannot run; the error names it, with the fix as a hint. Returns a warning if the
    /// agent may still provide the program.
    pub(crate) fn check(&self, command: &str) -> Result<Option<String>> {
        let (Some(program), Some(path)) = (plain_program(command), self.env.get("PATH")) else {
            return Ok(None);
        };
        let message = |why: &str| format!("the {} '{command}' cannot run: {why}", self.what);
        let top = self.cwd.ancestors().find(|dir| dir.join(".git").exists()).unwrap_or(self.cwd);
        let is_in_tree = |file: &Path| resolve(file).starts_with(resolve(top));
        let missing = |file: &str| {
            if self.runs_apart && !is_in_tree(&self.cwd.join(file)) {
                let error = Error::invalid(message(&format!("{file} does not exist")));
                return Err(error.hint("give the path of a file that exists"));
            }
            Ok(Some(message(&format!("{file} does not exist yet; the agent has to write it"))))
        };
        match self.find(program, path) {
            Lookup::Runnable(_) => {
                let is_missing = |file: &&str| matches!(self.find(file, path), Lookup::Missing);
                let script = script(command).filter(|file| !self.cwd.join(file).exists());
                let script = script.filter(|file| self.hidden.is_none_or(|dir| !dir.join(file).exists()));
                script.filter(is_missing).map_or(Ok(None), missing)
            }
            Lookup::NotExecutable(file) if self.tree_may_differ && is_in_tree(&file) => {
                Ok(Some(message(&format!("{program} is not executable"))))
            }
            Lookup::NotExecutable(file) => {
                let error = Error::invalid(message(&format!("{program} is not executable")));
                Err(error.hint(make_executable(&file)))
            }
            Lookup::Directory => Ok(Some(message(&format!("{program} is a directory")))),
            Lookup::Missing if program.contains('/') => missing(program),
            Lookup::Missing => {
                let why = format!("no such program: {program}");
                let installs = std::env::split_paths(path).any(|dir| is_in_tree(&self.cwd.join(dir)));
                if installs || defines_commands(self.env, path) {
                    return Ok(Some(message(&why)));
                }
                Err(Error::invalid(message(&why)).hint(
                    "install it, or add its directory to PATH; for a script that the agent writes, give its path: ./check.sh",
                ))
            }
        }
    }

    /// Searches a program as the shell of the command does.
    fn find(&self, program: &str, path: &str) -> Lookup {
        match self.hidden.filter(|_| program.contains('/')).map(|dir| look_up(program, dir, path)) {
            Some(Lookup::Missing) | None => look_up(program, self.cwd, path),
            Some(found) => found,
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
fn defines_commands(env: &BTreeMap<String, String>, path: &str) -> bool {
    let shell = std::env::split_paths(path).map(|dir| dir.join("sh")).find_map(|sh| sh.canonicalize().ok());
    let shell = shell.unwrap_or_default();
    let is_known = ["sh", "bash", "dash", "ksh", "mksh", "yash", "zsh"].iter().any(|sh| shell.ends_with(sh));
    !is_known || env.keys().any(|key| key == "ENV" || key.starts_with("BASH_FUNC_"))
}

pub(crate) fn make_executable(file: &Path) -> String {
    format!("chmod +x {}", quote(&file.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreter_command_names_its_script() {
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
