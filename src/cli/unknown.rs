//! Hints for commands that swarm does not have, under the names that other tools use, and for misplaced words.
//!
//! `main` prints the hint in place of clap's list of similar names, which for `pause` would be `status`. A word that is
//! not in the table keeps clap's message. Deliberately absent: aliases, because each command has one name.
//!
//! A program that requested JSON gets its usage errors as JSON too: clap ends before it knows the format.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use swarm_state::screen::printable;

use crate::error::Error;

/// The commands for named workers that have --all.
const HAS_ALL: [&str; 6] = [
    "swarm clean",
    "swarm kill",
    "swarm wait",
    "swarm ralph clean",
    "swarm ralph pause",
    "swarm ralph resume",
];

const LIST: &str = "to list workers: swarm ls";
const FOLLOW: &str =
    "to follow a worker's output: swarm logs NAME --follow; to follow events: swarm events --follow";
const START: &str = "to start an agent: swarm spawn -- COMMAND; to run it until your checks pass: \
    swarm loop TASK --check CHECK -- COMMAND";

const LOOP: &str = "swarm loop 'fix the tests' --check 'make test' -- claude -p";

/// The words that swarm has no command for, and the hint for each.
const HINTS: [(&str, &str); 19] = [
    ("archive", "to archive a finished task list: swarm ralph archive"),
    ("diff", "to show what a loop changed: swarm ralph diff NAME"),
    ("follow", FOLLOW),
    ("init", "to write a starter PROMPT.md: swarm ralph init"),
    ("list", LIST),
    ("log", "to print a worker's output: swarm logs NAME"),
    ("new", START),
    ("pause", "to pause a loop: swarm ralph pause NAME"),
    ("plan", "to plan a task list: swarm ralph plan"),
    ("ps", LIST),
    ("restart", "to start a worker again: swarm respawn NAME"),
    ("resume", "to resume a loop: swarm ralph resume NAME"),
    ("rm", "to delete a finished worker: swarm clean NAME"),
    ("run", START),
    ("start", START),
    ("stop", "to stop a worker: swarm kill NAME"),
    ("tail", FOLLOW),
    ("template", "to print the starter prompt: swarm ralph template"),
    ("top", "to watch the list of workers: swarm ls --watch"),
];

/// Returns swarm's own error for a command line, if it has one with a better hint than clap's error `error`.
pub fn explain(args: &[OsString], error: &clap::Error) -> Option<Error> {
    unknown_command(args, error).or_else(|| misplaced_word(args, error)).or_else(|| missing_name(error))
}

/// The error for a command line without the name of a worker, or of a host in `swarm host`.
fn missing_name(error: &clap::Error) -> Option<Error> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return None };
    let (what, name, list) = match missing.as_slice() {
        [one] if one.starts_with("<NAME>") => ("worker", "NAME", LIST),
        [one] if one == "<HOST>" => ("host", "HOST", "to list hosts: swarm host ls"),
        _ => return None,
    };
    // clap's usage has only the options that were given: `swarm clean --discard <NAME>...`.
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let words = usage.split_whitespace().skip_while(|word| *word != "swarm");
    let path: Vec<&str> = words.take_while(|word| !word.starts_with(['-', '<', '['])).collect();
    let path = path.join(" ");
    let all = if HAS_ALL.contains(&path.as_str()) { format!(", or {path} --all") } else { String::new() };
    Some(Error::usage(format!("no {what} given")).hint(format!("{path} {name}{all}; {list}")))
}

/// The error for a word of `spawn` or `loop` that is neither an option nor the task: an agent's command without `--`,
/// or a task without quotes.
fn misplaced_word(args: &[OsString], error: &clap::Error) -> Option<Error> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    let verb = args.get(verb_index(args))?.to_str().filter(|verb| ["spawn", "loop"].contains(verb))?;
    if error.kind() != ErrorKind::UnknownArgument || word.starts_with('-') {
        return None;
    }
    let has_command = args.iter().any(|arg| arg == "--");
    let hint = match verb {
        "loop" if has_command => format!("put the task in quotes: {LOOP}"),
        "loop" => format!("put the task in quotes, and the agent's command last, after --: {LOOP}"),
        _ if has_command => "give the agent's task as --prompt 'TEXT'".to_owned(),
        _ => format!("put the agent's command last, after --: swarm spawn -- {}", printable(word)),
    };
    Some(Error::usage(format!("unexpected argument '{}'", printable(word))).hint(hint))
}

/// The error for a command line whose command is in the table. A verb of a command, as in `swarm ralph stop`, keeps
/// clap's message.
fn unknown_command(args: &[OsString], error: &clap::Error) -> Option<Error> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let is_command = args.get(verb_index(args)).is_some_and(|arg| arg == word.as_str());
    if error.kind() != ErrorKind::InvalidSubcommand || !is_command {
        return None;
    }
    let (_, hint) = HINTS.iter().find(|(unknown, _)| unknown == word)?;
    Some(Error::usage(format!("unknown command '{word}'")).hint(*hint))
}

/// The position of the command among the arguments, after `--config FILE` and `--on HOST` if they come first.
pub(super) fn verb_index(args: &[OsString]) -> usize {
    let mut at = 1;
    loop {
        match args.get(at).and_then(|arg| arg.to_str()).unwrap_or_default() {
            "-c" | "--config" | "-H" | "--on" => at += 2,
            text if text.starts_with("--config=") || text.starts_with("--on=") => at += 1,
            _ => return at,
        }
    }
}

/// Whether a command line requests JSON. `args` are those of [`super::as_meant`].
pub fn requests_json(args: &[OsString]) -> bool {
    let own = &args[..options_end(args)];
    let is_value = |at: usize| own.get(at + 1).is_some_and(|value| value == "json");
    (1..own.len()).any(|at| own[at] == "--format=json" || own[at] == "--format" && is_value(at))
}

/// The position after the arguments that can be swarm's options: the text of `send` and a command are not.
pub(super) fn options_end(args: &[OsString]) -> usize {
    let verb = verb_index(args);
    if args.get(verb).is_none_or(|word| word != "send") {
        return args.iter().position(|arg| arg == "--").unwrap_or(args.len());
    }
    let mut at = verb + 1;
    let is_option = |arg: &&str| arg.starts_with("--") || *arg == "-H";
    while let Some(option) = args.get(at).and_then(|arg| arg.to_str()).filter(is_option) {
        let has_value = matches!(option, "--file" | "--format" | "--on" | "-H");
        at += if has_value { 2 } else { 1 };
    }
    at.min(args.len())
}

/// Converts an error of clap: its first paragraph, and the tips.
pub fn usage_error(error: &clap::Error) -> Error {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let lines = || text.lines().map(str::trim);
    let message: Vec<&str> = lines().take_while(|line| !line.is_empty()).collect();
    let tips: Vec<&str> = lines().filter_map(|line| line.strip_prefix("tip: ")).collect();
    let error = Error::usage(message.join(" "));
    if tips.is_empty() { error } else { error.hint(tips.join("; ")) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;
    use crate::cli::as_meant;

    fn hint(words: &[&str]) -> Option<String> {
        let args: Vec<OsString> = std::iter::once(&"swarm").chain(words).map(OsString::from).collect();
        let error = Cli::from_words(&args).unwrap_err();
        explain(&args, &error).and_then(|error| error.hint)
    }

    #[test]
    fn each_hint_names_a_command_that_exists() {
        let root = Cli::command();
        for (word, text) in HINTS {
            assert!(root.find_subcommand(word).is_none(), "{word}");
            assert_eq!(hint(&[word, "agent"]).as_deref(), Some(text));
            assert_eq!(hint(&["-c", "file", word]).as_deref(), Some(text));
            for command in text.split("swarm ").skip(1) {
                let mut words = command.split([' ', ';']);
                let found = root.find_subcommand(words.next().unwrap()).expect(text);
                let is_known = |verb| found.find_subcommand(verb).is_some();
                assert!(!found.has_subcommands() || words.next().is_some_and(is_known), "{text}");
            }
        }
        assert!(HINTS.is_sorted());
    }

    #[test]
    fn command_without_dashes_or_a_task_without_quotes_gets_a_hint() {
        for (words, wanted) in [
            (&["spawn", "claude"][..], "after --: swarm spawn -- claude"),
            (&["spawn", "--name", "a", "claude", "-p", "hi"], "after --: swarm spawn -- claude"),
            (&["spawn", "claude -p hi"], "after --: swarm spawn -- claude -p hi"),
            (&["-c", "f", "spawn", "claude"], "after --: swarm spawn -- claude"),
            (&["spawn", "do it", "--", "claude"], "--prompt 'TEXT'"),
            (&["loop", "fix it", "--check", "true", "claude"], "in quotes, and the agent's command last"),
            (&["loop", "fix", "it", "--check", "true", "--", "claude"], "put the task in quotes: swarm loop"),
        ] {
            assert!(hint(words).is_some_and(|hint| hint.contains(wanted)), "{words:?}: {:?}", hint(words));
        }
    }

    #[test]
    fn command_line_without_a_name_gets_the_command_to_type() {
        for (words, wanted) in [
            (&["clean"][..], "swarm clean NAME, or swarm clean --all; to list workers: swarm ls"),
            (&["ralph", "clean", "--discard"], "swarm ralph clean NAME, or swarm ralph clean --all; to list"),
            (&["-c", "f", "kill"], "swarm kill NAME, or swarm kill --all; to list"),
            (&["status", "--format", "json"], "swarm status NAME; to list workers: swarm ls"),
            (&["host", "check"], "swarm host check HOST; to list hosts: swarm host ls"),
            (&["host", "install", "--yes"], "swarm host install HOST; to list hosts: swarm host ls"),
        ] {
            assert!(hint(words).is_some_and(|hint| hint.starts_with(wanted)), "{words:?}: {:?}", hint(words));
        }
        let root = Cli::command();
        let verbs = root.get_subcommands().filter(|verb| !verb.has_subcommands());
        let ralph = root.find_subcommand("ralph").unwrap().get_subcommands();
        let verbs = verbs.map(|verb| ("swarm", verb)).chain(ralph.map(|verb| ("swarm ralph", verb)));
        for (group, verb) in verbs {
            let has = |id: &str| verb.get_arguments().any(|arg| arg.get_id() == id);
            let path = format!("{group} {}", verb.get_name());
            let names = has("names") || has("name") && verb.get_name() == "clean";
            assert_eq!(HAS_ALL.contains(&path.as_str()), names && has("all"), "{path}");
        }
    }

    #[test]
    fn other_errors_keep_the_message_of_clap() {
        for words in [
            &["statsu"][..],
            &["ralph", "stop"],
            &["stop-it"],
            &["kill", "--stop"],
            &["spawn", "--stop"],
            &["ls", "a"],
        ] {
            assert_eq!(hint(words), None, "{words:?}");
        }
    }

    #[test]
    fn only_options_of_swarm_request_json() {
        for (line, wanted) in [
            ("ls --format json", true),
            ("ls --format=json", true),
            ("ls --json", true),
            ("ls --format names", false),
            ("lss --json", true),
            ("-c file status x --json", true),
            ("spawn --json -- claude", true),
            ("spawn -- claude --format json", false),
            ("send --format json a hello", true),
            ("send --json a hello", true),
            ("send --file f --json a", true),
            ("send a --format json", false),
            ("send a --json", false),
            ("--json", true),
            ("", false),
            ("ls --format", false),
        ] {
            let args = std::iter::once("swarm").chain(line.split_whitespace()).map(OsString::from).collect();
            assert_eq!(requests_json(&as_meant(args)), wanted, "{line}");
        }
    }
}
