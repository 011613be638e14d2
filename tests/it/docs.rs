//! Checks that the man pages in `man/`, the help and the README match the code.
//!
//! `UPDATE_DOCS=1 cargo test --test it docs` writes them again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use swarm::cli::Cli;

/// Every page: file name and text. Pages written by hand are of other sections.
fn pages() -> BTreeMap<String, String> {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let mut pages = BTreeMap::new();
    add(&root, "swarm", &mut pages);
    pages
}

fn add(command: &clap::Command, name: &str, pages: &mut BTreeMap<String, String>) {
    for child in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        add(child, &format!("{name}-{}", child.get_name()), pages);
    }
    // The release is left out, so that a page changes only when its text does.
    let page = clap_mangen::Man::new(command.clone().display_name(name).version(None::<&str>))
        .title(name.to_owned())
        .source("swarm".to_owned())
        .manual("swarm manual".to_owned());
    let mut text = Vec::new();
    page.render(&mut text).expect("a page is rendered to memory");
    pages.insert(format!("{name}.1"), String::from_utf8(text).expect("a page is text"));
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("man")
}

fn on_disk() -> BTreeMap<String, String> {
    let Ok(entries) = std::fs::read_dir(directory()) else { return BTreeMap::new() };
    entries
        .map(|entry| entry.expect("man/ can be read").path())
        .filter(|path| path.extension().is_some_and(|e| e == "1"))
        .map(|path| {
            let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).expect("a page can be read"))
        })
        .collect()
}

#[test]
fn man_pages_match_the_command_line() {
    let wanted = pages();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(directory()).expect("man/ can be made");
        for stale in on_disk().keys().filter(|name| !wanted.contains_key(*name)) {
            std::fs::remove_file(directory().join(stale)).unwrap();
        }
        for (name, text) in &wanted {
            std::fs::write(directory().join(name), text).unwrap();
        }
    }
    let found = on_disk();
    let names = |pages: &BTreeMap<String, String>| pages.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&found), names(&wanted), "run UPDATE_DOCS=1 cargo test --test it docs");
    for (name, text) in &wanted {
        assert_eq!(&found[name], text, "{name}: run UPDATE_DOCS=1 cargo test --test it docs");
    }
}

#[test]
fn pages_list_the_exit_codes() {
    let pages = pages();
    for code in [
        "0    Success",
        "1    The command failed",
        "2    Invalid",
        "3    The daemon",
        "4    The client",
        "5    A wait",
    ] {
        assert!(pages["swarm.1"].contains(code), "{code}");
    }
    assert!(pages.contains_key("swarm-ralph-status.1"));
    assert!(pages.values().all(|page| !page.contains("ready-on-stdout")), "a hidden flag is shown");
}

/// One source: the table of ends in the page is the code's.
#[test]
fn page_of_loop_has_the_table_of_ends() {
    let page = &pages()["swarm-loop.1"];
    for line in swarm_state::ends::table().lines() {
        assert!(page.contains(&to_roff(line)), "{line} in {page}");
    }
}

fn golden(name: &str) -> Vec<String> {
    let path = format!("{}/tests/golden/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("golden lines").lines().map(str::to_owned).collect()
}

/// The escapes that keep a line of text what it is in a page.
const ESCAPES: [(&str, &str); 6] =
    [("-", "\\-"), ("'", "\\(aq"), ("~", "\\(ti"), ("^", "\\(ha"), ("`", "\\(ga"), ("\\", "\\e")];

/// A line of text as it stands in a page.
fn to_roff(line: &str) -> String {
    let escape = |c: char| {
        let known = ESCAPES.iter().find(|(plain, _)| plain.starts_with(c));
        known.map_or_else(|| c.to_string(), |(_, roff)| (*roff).to_owned())
    };
    line.chars().map(escape).collect()
}

/// The pages that are written by hand, without their headings' section numbers.
fn by_hand(name: &str) -> String {
    std::fs::read_to_string(directory().join(name)).unwrap_or_else(|e| panic!("man/{name}: {e}"))
}

/// What the protocol's page must hold: a heading, and below it the first golden lines of that name.
fn sections() -> Vec<(String, Vec<String>)> {
    let mut wanted: Vec<(String, Vec<String>)> = vec![];
    let mut add = |name: &str, lines: &[String]| {
        if !wanted.iter().any(|(known, _)| known == name) {
            wanted.push((name.to_owned(), lines.to_vec()));
        }
    };
    let word = |line: &str, at: &[&str]| {
        let mut value: serde_json::Value = serde_json::from_str(line).expect("a golden line is JSON");
        at.iter().for_each(|key| value = value[*key].take());
        value.as_str().expect("a word").to_owned()
    };
    for pair in golden("calls").chunks(2) {
        add(&word(&pair[0], &["method"]), pair);
    }
    for line in golden("notices") {
        add(&word(&line, &["notice", "kind"]), &[line]);
    }
    wanted
}

#[test]
fn the_protocols_page_has_every_method_and_notice_and_no_line_of_its_own() {
    let page = by_hand("swarm-protocol.7");
    for (name, lines) in sections() {
        let lines: Vec<String> = lines.iter().map(|line| to_roff(line)).collect();
        let example = format!(".EX\n{}\n.EE\n", lines.join("\n"));
        let below = page.split(&format!("\n.SS {name}\n")).nth(1).unwrap_or_default();
        let section = below.split("\n.S").next().unwrap_or_default();
        assert!(
            format!("{section}\n").contains(&example),
            "man/swarm-protocol.7 must say what '{name}' is. Add this in METHODS or NOTICES, with a sentence:\n\n\
             .SS {name}\nWhat it does.\n.PP\n{example}"
        );
    }
    let known: BTreeSet<String> = ["hello", "calls", "errors", "notices"]
        .iter()
        .flat_map(|name| golden(name))
        .map(|line| to_roff(&line))
        .collect();
    for line in page.lines().filter(|line| line.starts_with("{\"")) {
        assert!(
            known.contains(line),
            "this line of man/swarm-protocol.7 stands in no file of tests/golden: {line}"
        );
    }
    let sections = sections();
    for heading in page.lines().filter_map(|line| line.strip_prefix(".SS ")) {
        assert!(
            sections.iter().any(|(name, _)| name == heading),
            "man/swarm-protocol.7: '{heading}' is no method"
        );
    }
    for line in golden("errors") {
        let error: serde_json::Value = serde_json::from_str(&line).expect("a golden line is JSON");
        let code = error["err"]["code"].as_str().expect("a code");
        assert!(
            page.contains(&format!("\n.B {code}\n")),
            "man/swarm-protocol.7 must have the error '{code}'"
        );
    }
}

#[test]
fn the_states_page_gives_the_sizes_that_hold() {
    use swarm::store::{DAEMON_LOG_LIMIT, LOG_LIMIT, RECORD_LIMIT};
    let page = by_hand("swarm-state.5").replace("\\-", "-");
    for (file, limit) in
        [("daemon.log", DAEMON_LOG_LIMIT), ("NAME.log", LOG_LIMIT), ("NAME.raw", RECORD_LIMIT)]
    {
        let sentence = format!("At {} MiB it becomes\n.IR {file}.1 ,", limit >> 20);
        assert!(page.contains(&sentence), "man/swarm-state.5: {sentence}");
    }
    for limit in [swarm::checks::KEPT, swarm::checks::MAX_PRINTED] {
        let size = format!("more than {} MiB", limit >> 20);
        assert!(page.contains(&size), "man/swarm-state.5: {size}");
    }
    let fixture = include_str!("../../state/fixtures/v1/ralph/agent/state.json");
    assert!(page.contains(fixture.trim_end()), "man/swarm-state.5: the example is no state file any more");
    let format = swarm_state::format::FORMAT;
    assert!(page.contains(&format!("now {format}.")), "man/swarm-state.5: the format is {format}");
}

#[test]
fn the_pages_written_by_hand_are_clean_roff() {
    for name in ["swarm-protocol.7", "swarm-state.5"] {
        let mut groff = std::process::Command::new("groff");
        groff.args(["-man", "-ww", "-Tutf8"]).arg(directory().join(name));
        let Ok(done) = groff.output() else {
            eprintln!("skipped: no groff here");
            return;
        };
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() && said.is_empty(), "{name}: {said}");
    }
}
