//! Checks the wording of help, pages and messages: the words that they avoid, the length of one-liners, and how help
//! looks on a terminal of 80 columns.

use clap::CommandFactory;
use regex::Regex;
use swarm::cli::Cli;

use super::{HAND_WRITTEN, by_hand, pages, repository_file};
use crate::tidy::production;

/// Words that texts for users avoid, in lower case. The comment above each row has the plain words.
const AVOIDED: [&str; 50] = [
    // finished, stopped
    "loop is over",
    "loops that are over",
    "worker is over",
    "workers that are over",
    "whole loop is",
    // fix
    "mend",
    "mends",
    "mended",
    "cure",
    "cures",
    "cured",
    // report, print, show, notify
    "tells of",
    "tell of",
    "is told",
    "are told",
    "was told",
    "be told",
    "heard",
    "hears",
    "hear",
    // require, request, set
    "asked for",
    // return, restore
    "gives back",
    "give back",
    "takes back",
    "take back",
    "given back",
    // start, result
    "comes up",
    "come up",
    "came up",
    "coming up",
    "come to",
    "came to",
    // forever, again, as usual
    "for ever",
    "anew",
    "afresh",
    "once more",
    "as ever",
    // leftover files
    "left-overs",
    "what is left of",
    // text, message
    "in its words",
    // in addition to, except
    "beside",
    "but for",
    // timeout, baseline
    "time-out",
    "base line",
    // space
    "blank",
    "blanks",
    // as a text
    "in words",
    // is not a
    "is no",
    // swarm retries
    "it is tried again",
    // is
    "stands",
];

/// Clear phrases that contain an avoided word.
const CLEAR: [&str; 3] = ["is no longer", "there is no", "stands for"];

/// The files whose texts are for agents.
const FOR_AGENTS: [&str; 2] = ["state/src/contract", "state/src/session/texts.rs"];

/// A text as single words with one space between them, and one at each end.
fn words(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_').filter(|w| !w.is_empty());
    format!(" {} ", words.collect::<Vec<_>>().join(" "))
}

fn avoided(text: &str) -> Vec<&'static str> {
    let text = CLEAR.iter().fold(words(text), |text, clear| text.replace(&format!(" {clear} "), " "));
    AVOIDED.into_iter().filter(|word| text.contains(&format!(" {word} "))).collect()
}

/// The prose of a page: without examples, names in macros and lists of tests.
fn prose(page: &str) -> String {
    let is_prose = |line: &&str| !line.starts_with(['.', '{']) && !line.starts_with("Tests: ");
    let text = page.lines().filter(is_prose).collect::<Vec<_>>().join("\n");
    [("\\-", "-"), ("\\(aq", "'"), ("\\fB", ""), ("\\fI", ""), ("\\fR", ""), ("\\&", "")]
        .iter()
        .fold(text, |text, (from, to)| text.replace(from, to))
}

#[test]
fn help_and_pages_avoid_unclear_words() {
    let mut texts = vec![("README.md".to_owned(), repository_file("README.md"))];
    texts.extend(pages().into_iter().map(|(name, page)| (name, prose(&page))));
    texts.extend(HAND_WRITTEN.map(|name| (name.to_owned(), prose(&by_hand(name)))));
    for (name, command) in commands() {
        texts.push((format!("{name} --help"), screen(&command, true)));
    }
    let mut found = vec![];
    for (name, text) in texts {
        found.extend(avoided(&text).iter().map(|word| format!("{name}: {word}")));
    }
    assert!(found.is_empty(), "use the words of the guide instead:\n{}", found.join("\n"));
}

#[test]
fn messages_avoid_unclear_words() {
    // A comment, a raw string, a string or a character.
    let token = r##"//[^\n]*|r#"((?s:.*?))"#|"((?:[^"\\]|\\(?s:.))*)"|'(?:[^'\\\n]|\\[^\n]{1,10}?)'"##;
    let token = Regex::new(token).unwrap();
    let placeholder_or_line_end = Regex::new(r"\{[^{}]*\}|\\n").unwrap();
    let mut found = vec![];
    for (name, text) in ["src", "state/src"].into_iter().flat_map(production) {
        if FOR_AGENTS.iter().any(|start| name.starts_with(start)) {
            continue;
        }
        for string in token.captures_iter(&text).filter_map(|found| found.get(1).or(found.get(2))) {
            let message = placeholder_or_line_end.replace_all(string.as_str(), " ");
            // A single word is a name.
            if message.trim().contains(' ') {
                found.extend(avoided(&message).iter().map(|word| format!("{name}: {word}: {message}")));
            }
        }
    }
    assert!(found.is_empty(), "use the words of the guide instead:\n{}", found.join("\n"));
}

/// Every command with what is typed for it, the first being `swarm` itself.
fn commands() -> Vec<(String, clap::Command)> {
    fn add(command: &clap::Command, name: &str, found: &mut Vec<(String, clap::Command)>) {
        found.push((name.to_owned(), command.clone()));
        for child in command.get_subcommands().filter(|c| c.get_name() != "help") {
            add(child, &format!("{name} {}", child.get_name()), found);
        }
    }
    let mut root = Cli::command();
    root.build();
    let mut found = vec![];
    add(&root, "swarm", &mut found);
    found
}

/// The help of a command on a terminal of 80 columns.
fn screen(command: &clap::Command, is_long: bool) -> String {
    let mut command = command.clone().term_width(80);
    if is_long { command.render_long_help() } else { command.render_help() }.to_string()
}

#[test]
fn short_help_fits_one_screen() {
    for (name, command) in commands() {
        // These list every command, or the common ones of many options.
        let limit = match name.as_str() {
            "swarm" => 50,
            "swarm spawn" => 40,
            "swarm loop" | "swarm ralph" => 30,
            _ => 24,
        };
        let text = screen(&command, false);
        assert!(
            text.lines().count() <= limit,
            "{} -h has more than {limit} lines:\n{text}",
            command.get_name()
        );
    }
}

/// The column of the second command in a row of two commands.
fn second_column(line: &str) -> Option<usize> {
    let parts: Vec<&str> = line.split("  ").map(str::trim).filter(|part| !part.is_empty()).collect();
    let [_, _, second, _] = parts[..] else { return None };
    Some(second.as_ptr() as usize - line.as_ptr() as usize)
}

#[test]
fn columns_of_the_overview_are_aligned() {
    let (_, swarm) = commands().into_iter().find(|(name, _)| name == "swarm").unwrap();
    let mut rows = 0;
    for paragraph in screen(&swarm, false).split("\n\n") {
        let columns: Vec<usize> = paragraph.lines().filter_map(second_column).collect();
        rows += columns.len();
        assert!(columns.iter().all(|column| *column == columns[0]), "{columns:?} in\n{paragraph}");
    }
    assert!(rows > 20, "{rows}");
}

#[test]
fn help_keeps_tables_and_examples_unwrapped() {
    for (name, command) in commands() {
        let long = screen(&command, true);
        let wide: Vec<&str> = long.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{name} --help: {wide:?}");
        if name == "swarm" {
            continue; // Its screen is a template and has no other text.
        }
        let texts = [command.get_long_about(), command.get_after_long_help()];
        for line in texts.into_iter().flatten().flat_map(|text| {
            text.to_string().lines().map(str::to_owned).filter(|l| l.starts_with(' ')).collect::<Vec<_>>()
        }) {
            assert!(long.lines().any(|shown| shown == line), "{name} --help breaks this line: {line}");
        }
    }
}

#[test]
fn one_liners_are_short_and_have_no_full_stop() {
    for (name, command) in commands() {
        let about = command.get_about().map(ToString::to_string).into_iter();
        let options = command.get_arguments().filter_map(|arg| arg.get_help().map(ToString::to_string));
        for line in about.chain(options) {
            let text = line.split(" [default:").next().unwrap_or_default();
            // The title of the program itself is a sentence.
            let limit = if name == "swarm" { 80 } else { 60 };
            let is_short = text.chars().count() <= limit && !text.ends_with('.');
            assert!(is_short, "{name}: {line}");
        }
    }
}
