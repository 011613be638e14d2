//! Usage errors for a program that requested JSON: clap ends before it knows the format.

use std::ffi::OsString;

use super::unknown::verb_index;
use crate::error::Error;

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
    use super::*;
    use crate::cli::as_meant;

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
