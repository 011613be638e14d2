//! Renders the man page of a command.
//!
//! `clap_mangen` renders the options and the list of subcommands. The synopsis and the prose are rendered here: the
//! synopsis as the help shows it, and the text after the options in sections of its own. Deliberately absent: what the
//! pages say. That is the help of [`swarm::cli`].

use std::io;

use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

/// Two definitions that `clap_mangen` writes at the top of each part.
const PREAMBLE_LINES: usize = 2;

/// The maximum length of a line that is a heading, such as `Exit status:`.
const MAX_HEADING_CHARS: usize = 40;

/// The date of all pages: when their text last changed, on a day that a reader needs to know.
pub(super) const DATE: &str = "2026-11-29";

/// Pages to read next, for the pages whose names begin with a text. The first row that fits counts.
const RELATED: [(&str, &str); 13] = [
    ("swarm-spawn", "swarm-loop(1), swarm-ralph(1), swarm-attach(1), swarm-config(5)"),
    ("swarm-loop", "swarm-spawn(1), swarm-why(1), swarm-report(1), swarm-ralph(1)"),
    ("swarm-ralph", "swarm-ralph(1), swarm-loop(1), swarm-why(1), swarm-report(1)"),
    ("swarm-why", "swarm-report(1), swarm-events(1), swarm-logs(1)"),
    ("swarm-report", "swarm-why(1), swarm-ralph-diff(1), swarm-loop(1)"),
    ("swarm-events", "swarm-wait(1), swarm-why(1), swarm-protocol(7)"),
    ("swarm-session", "swarm-session(1), swarm-hooks(1), swarm-plugin(1), swarm-session(7)"),
    ("swarm-hook", "swarm-hooks(1), swarm-session(1), swarm-session(7)"),
    ("swarm-plugin", "swarm-plugin(1), swarm-session(1), swarm-session(7)"),
    (
        "swarm-daemon",
        "swarm-daemon(1), swarm-doctor(1), swarm-state(5), swarm-batch(7), swarm-troubleshooting(7)",
    ),
    ("swarm-doctor", "swarm-daemon(1), swarm-troubleshooting(7)"),
    ("swarm-ui", "swarm-ls(1), swarm-why(1), swarm-attach(1), swarm-report(1)"),
    ("swarm-", "swarm-ls(1), swarm-spawn(1), swarm-kill(1), swarm-clean(1), swarm-troubleshooting(7)"),
];

/// The widest block that fits on 80 columns after a page's usual indentation.
const MAX_BLOCK_COLUMNS: usize = 73;

/// The heading of text after the options that has none.
const NOTES: &str = "NOTES";

/// Returns the page of a command that was built.
pub(super) fn page(command: &clap::Command, name: &str) -> String {
    // `-h` hides options, and `clap_mangen` leaves out the text of those that have no long help.
    let command = command.clone().mut_args(|arg| arg.hide_short_help(false));
    let usage = command.clone().render_usage().to_string();
    let long_about = command.get_long_about().or(command.get_about()).map(ToString::to_string);
    let after = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let has_commands = command.get_subcommands().any(|child| !child.is_hide_set());
    let program = command.get_bin_name().unwrap_or(name).to_owned();
    // Without the version, a page changes only when its text does.
    let man = Man::new(command.display_name(name).version(None::<&str>))
        .title(name.to_uppercase())
        .date(DATE)
        .source("swarm".to_owned())
        .manual("swarm manual".to_owned());
    let mut prose = Roff::new();
    prose.control("SH", ["SYNOPSIS"]);
    synopsis(&mut prose, &program, &usage);
    prose.control("SH", ["DESCRIPTION"]);
    body(&mut prose, &long_about.unwrap_or_default());
    let mut text = rendered(|out| man.render_title(out));
    // No hyphens and no wide gaps in commands and names of options. The end of an example sets hyphenation to HY.
    text += ".nr HY 0\n.nh\n.ad l\n";
    text += &without_preamble(&rendered(|out| man.render_name_section(out)));
    text += &without_preamble(&prose.render());
    text += &without_preamble(&rendered(|out| man.render_options_section(out)));
    if has_commands {
        text += &without_preamble(&rendered(|out| man.render_subcommands_section(out)));
    }
    text += &without_preamble(&sections(&after));
    if !text.contains(".SH \"SEE ALSO\"") {
        text += &without_preamble(&see_also(name));
    }
    // `clap_mangen` writes breaks around an empty line, which has the same effect without them.
    text.replace(".br\n\n.br\n", ".sp\n")
}

/// The section with the overview and the related pages.
fn see_also(name: &str) -> String {
    let related = RELATED.iter().find(|(start, _)| name.starts_with(start)).map_or("", |(_, pages)| pages);
    let own = format!("{name}(1)");
    let pages = ["swarm(1)"].into_iter().chain(related.split(", ")).filter(|page| *page != own);
    let mut roff = Roff::new();
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman(pages.collect::<Vec<_>>().join(", "))]);
    roff.render()
}

fn rendered(render: impl Fn(&mut dyn io::Write) -> io::Result<()>) -> String {
    let mut text = Vec::new();
    render(&mut text).expect("a page is rendered to memory");
    String::from_utf8(text).expect("a page is text")
}

fn without_preamble(text: &str) -> String {
    text.lines().skip(PREAMBLE_LINES).map(|line| line.to_owned() + "\n").collect()
}

/// Each form of the command on a line of its own.
fn synopsis(roff: &mut Roff, program: &str, usage: &str) {
    for (index, line) in usage.trim_start_matches("Usage:").lines().enumerate() {
        let line = line.trim();
        if index > 0 {
            roff.control("br", []);
        }
        match line.strip_prefix(program) {
            Some(arguments) => roff.text([bold(program), roman(arguments)]),
            None => roff.text([roman(line)]),
        };
    }
}

/// The text after the options. A heading such as `Examples:` begins a section, and so does `See also:`.
fn sections(after: &str) -> String {
    let mut found: Vec<(String, String)> = vec![];
    let mut is_first_of_paragraph = true;
    for line in after.lines() {
        let heading = line.strip_suffix(':').filter(|heading| {
            is_first_of_paragraph && !heading.starts_with(' ') && heading.chars().count() < MAX_HEADING_CHARS
        });
        is_first_of_paragraph = line.is_empty();
        if let Some(heading) = heading {
            found.push((heading.to_uppercase(), String::new()));
        } else if let Some(pages) = line.strip_prefix("See also: ") {
            found.push(("SEE ALSO".to_owned(), pages.to_owned()));
        } else {
            if found.is_empty() {
                found.push((NOTES.to_owned(), String::new()));
            }
            if let Some((_, text)) = found.last_mut() {
                *text += line;
                text.push('\n');
            }
        }
    }
    let mut roff = Roff::new();
    for (heading, text) in found {
        roff.control("SH", [heading.as_str()]);
        body(&mut roff, text.trim_matches('\n'));
    }
    roff.render()
}

/// Paragraphs, and indented lines as they are. A block of wide lines starts at the left, to fit on 80 columns.
fn body(roff: &mut Roff, text: &str) {
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(first) = line.strip_prefix("  ") else {
            match line {
                "" => roff.control("PP", []),
                line => roff.text([roman(line)]),
            };
            continue;
        };
        let mut block = vec![first];
        while let Some(next) = lines.next_if(|line| line.starts_with("  ")) {
            block.push(&next[2..]);
        }
        let is_wide = block.iter().any(|line| line.chars().count() > MAX_BLOCK_COLUMNS);
        if is_wide {
            roff.control("in", ["2n"]);
        }
        roff.control("EX", []);
        for line in block {
            roff.text([roman(line)]);
        }
        roff.control("EE", []);
        if is_wide {
            roff.control("in", []);
        }
    }
}
