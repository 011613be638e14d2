//! Finds the command behind programs that start another one: `sudo`, `env`, `xargs`, `find -exec`, `sh -c TEXT`.

use super::place::SOME;
use super::shell::{ShellCommand, ShellReader};
use crate::scripts::assignment;
use crate::words::base_name;

/// The programs that start the command in their arguments: the name, the options with a value in the next word, and the
/// number of its own arguments before the command.
const STARTERS: [(&str, &[&str], usize); 24] = [
    ("env", &["-u", "-C"], 0),
    ("sudo", &["-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-U", "-D", "-R"], 0),
    ("doas", &["-u", "-C"], 0),
    ("pkexec", &["--user"], 0),
    ("xargs", &["-I", "-n", "-P", "-d", "-L", "-s", "-a", "-E"], 0),
    ("nohup", &[], 0),
    ("time", &["-f", "-o"], 0),
    ("timeout", &["-s", "-k"], 1),
    ("nice", &["-n"], 0),
    ("ionice", &["-c", "-n"], 0),
    ("command", &[], 0),
    ("builtin", &[], 0),
    ("exec", &["-a"], 0),
    ("setsid", &[], 0),
    ("stdbuf", &["-i", "-o", "-e"], 0),
    ("flock", &["-w", "-E"], 1),
    ("watch", &["-n"], 0),
    ("taskset", &[], 1),
    ("strace", &["-o", "-e", "-p"], 0),
    ("parallel", &["-j"], 0),
    ("unbuffer", &[], 0),
    ("fakeroot", &[], 0),
    ("busybox", &[], 0),
    ("caffeinate", &[], 0),
];

/// Programs that run the text after `-c`, or their standard input.
const INLINE_SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "su"];

pub(super) fn is_shell(program: &str) -> bool {
    INLINE_SHELLS.contains(&base_name(program))
}

/// Whether a shell with these words runs its standard input.
pub(super) fn reads_input(words: &[String]) -> bool {
    let Some((program, rest)) = words.split_first() else { return false };
    let reads = rest.iter().all(|word| word.starts_with('-') && !word.ends_with('c'));
    is_shell(program) && (reads || rest.iter().any(|word| word == "-s"))
}

/// The text that a shell runs: `sh -c TEXT`, `bash -euc TEXT`.
fn shell_text(words: &[String]) -> Option<&String> {
    let (program, rest) = words.split_first()?;
    let is_flag = |word: &String| word.starts_with('-') && word.ends_with('c') && !word.starts_with("--");
    let at = rest.iter().position(|word| is_flag(word) || word == "--command")?;
    rest.get(at + 1).filter(|_| is_shell(program))
}

/// The words behind a starter and its options; `None` for another program, or if nothing follows.
fn behind(words: &[String]) -> Option<&[String]> {
    let name = base_name(words.first()?);
    let (_, valued, mut own) = STARTERS.into_iter().find(|(starter, ..)| *starter == name)?;
    if name == "command" && words.get(1).is_some_and(|word| ["-v", "-V"].contains(&word.as_str())) {
        return None;
    }
    let mut at = 1;
    while let Some(word) = words.get(at) {
        if word.starts_with('-') {
            at += usize::from(valued.contains(&word.as_str()));
        } else if assignment(word).is_none() {
            if own == 0 {
                break;
            }
            own -= 1;
        }
        at += 1;
    }
    words.get(at..).filter(|rest| !rest.is_empty())
}

impl ShellReader<'_> {
    /// Removes starters from a command, and reads the commands that it is given as text. `before` is the command whose
    /// output it reads.
    pub(super) fn expand(&mut self, command: &mut ShellCommand, before: Option<&ShellCommand>) {
        while let Some(rest) = behind(&command.words) {
            let mut rest = rest.to_vec();
            let starter = base_name(&command.words[0]).to_owned();
            if starter == "xargs" {
                // The path arguments of the earlier command count as its output.
                let is_path = |word: &&String| word.starts_with(['/', '.', '~']);
                let paths = before.into_iter().flat_map(|before| before.words.iter().skip(1)).filter(is_path);
                rest.extend(paths.map(|path| format!("{path}/{SOME}")));
            }
            command.starters.push(starter);
            command.words = rest;
        }
        let words = &command.words;
        match (command.program(), shell_text(words)) {
            (_, Some(text)) => self.nested(text),
            ("eval", _) => self.nested(&words[1..].join(" ")),
            ("trap", _) => self.nested(words.get(1).map_or("", String::as_str)),
            ("find", _) => self.found(command),
            _ if reads_input(words) => {
                let printed = before.and_then(|before| match before.program() {
                    "echo" | "printf" => Some(before.words[1..].join(" ")),
                    _ => before.input.clone(),
                });
                if let Some(text) = command.input.clone().or(printed) {
                    self.nested(&text);
                }
            }
            _ => {}
        }
    }

    /// Adds the commands of `find -exec`, with the directories of `find` in place of `{}`.
    fn found(&mut self, find: &ShellCommand) {
        let words = &find.words[1..];
        let dirs = words.iter().take_while(|word| !word.starts_with(['-', '(', '!']));
        let found: Vec<String> = dirs.map(|dir| format!("{dir}/{SOME}")).collect();
        let mut rest = words;
        let is_exec = |word: &String| ["-exec", "-execdir", "-ok"].contains(&word.as_str());
        while let Some(at) = rest.iter().position(is_exec) {
            rest = &rest[at + 1..];
            let end = rest.iter().position(|word| word == ";" || word == "+").unwrap_or(rest.len());
            let words = rest[..end].iter().flat_map(|word| match word.as_str() {
                "{}" => found.clone(),
                _ => vec![word.clone()],
            });
            let mut command = ShellCommand { words: words.collect(), redirects: vec![], ..find.clone() };
            self.expand(&mut command, None);
            self.add(command);
            rest = &rest[end..];
        }
    }
}
