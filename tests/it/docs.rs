//! Checks that the man pages in `man/`, the help and the README match the code.
//!
//! `UPDATE_DOCS=1 cargo test --test it docs` writes them again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use swarm::cli::Cli;

mod page;
mod words;

/// Returns every generated page: file name and text. Hand-written pages are in other sections.
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
    pages.insert(format!("{name}.1"), page::page(command, name));
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
        "6    The sandbox",
    ] {
        assert!(pages["swarm.1"].contains(code), "{code}");
    }
    assert!(pages.contains_key("swarm-ralph-status.1"));
    assert!(pages.values().all(|page| !page.contains("ready-on-stdout")), "a hidden flag is shown");
}

#[test]
fn pages_show_the_text_and_default_of_every_option() {
    fn check(command: &clap::Command, name: &str, pages: &BTreeMap<String, String>) {
        let page = &pages[&format!("{name}.1")];
        let unescaped = page.replace("\\-", "-").replace("\\*(Aq", "'");
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            let text = arg.get_long_help().or(arg.get_help()).expect("an option has help").to_string();
            let help = text.lines().next().unwrap_or_default();
            assert!(
                unescaped.contains(&format!("\n{help}\n")),
                "{name}.1 has no text for {}: {help}",
                arg.get_id()
            );
            let takes_value = arg.get_action().takes_values();
            for default in arg.get_default_values().iter().filter(|_| takes_value) {
                let default = format!("[default: {}]", default.to_string_lossy());
                assert!(unescaped.contains(&default), "{name}.1: {} {default}", arg.get_id());
            }
        }
        for child in command.get_subcommands().filter(|child| !child.is_hide_set()) {
            check(child, &format!("{name}-{}", child.get_name()), pages);
        }
    }
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    check(&root, "swarm", &pages());
}

/// The page and the code have the same table of ends.
#[test]
fn page_of_loop_has_the_table_of_ends() {
    let page = &pages()["swarm-loop.1"];
    for line in swarm_state::ends::table().lines() {
        assert!(page.contains(&to_roff(line.trim())), "{line} in {page}");
    }
}

fn golden(name: &str) -> Vec<String> {
    let path = format!("{}/tests/golden/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("golden lines").lines().map(str::to_owned).collect()
}

/// Characters that a page must escape, and their escapes.
const ESCAPES: [(&str, &str); 6] =
    [("-", "\\-"), ("'", "\\(aq"), ("~", "\\(ti"), ("^", "\\(ha"), ("`", "\\(ga"), ("\\", "\\e")];

/// Escapes a line of text for a page.
fn to_roff(line: &str) -> String {
    let escape = |c: char| {
        let known = ESCAPES.iter().find(|(plain, _)| plain.starts_with(c));
        known.map_or_else(|| c.to_string(), |(_, roff)| (*roff).to_owned())
    };
    line.chars().map(escape).collect()
}

/// The text of a page that is written by hand.
fn by_hand(name: &str) -> String {
    std::fs::read_to_string(directory().join(name)).unwrap_or_else(|e| panic!("man/{name}: {e}"))
}

/// The sections that the protocol's page must have: a heading, and the first golden lines of that name below it.
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
fn protocol_page_has_every_method_and_notice_and_only_golden_examples() {
    let page = by_hand("swarm-protocol.7");
    for (name, lines) in sections() {
        let lines: Vec<String> = lines.iter().map(|line| to_roff(line)).collect();
        let example = format!(".EX\n{}\n.EE\n", lines.join("\n"));
        let below = page.split(&format!("\n.SS {name}\n")).nth(1).unwrap_or_default();
        let section = below.split("\n.S").next().unwrap_or_default();
        assert!(
            format!("{section}\n").contains(&example),
            "man/swarm-protocol.7 must describe '{name}'. Add this in METHODS or NOTICES, with a sentence:\n\n\
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
            "this line of man/swarm-protocol.7 is in no file of tests/golden: {line}"
        );
    }
    let sections = sections();
    for heading in page.lines().filter_map(|line| line.strip_prefix(".SS ")) {
        assert!(
            sections.iter().any(|(name, _)| name == heading),
            "man/swarm-protocol.7: '{heading}' is not a method"
        );
    }
    for line in golden("errors") {
        let error: serde_json::Value = serde_json::from_str(&line).expect("a golden line is JSON");
        let code = error["err"]["code"].as_str().expect("a code");
        assert!(
            page.contains(&format!("\n.B {code}\n")),
            "man/swarm-protocol.7 must list the error '{code}'"
        );
    }
}

#[test]
fn state_page_has_the_sizes_and_the_format_of_the_code() {
    use swarm::store::{MAX_DAEMON_LOG_BYTES, MAX_EVENT_LOG_BYTES, MAX_RECORD_BYTES, MAX_WORKER_LOG_BYTES};
    let page = by_hand("swarm-state.5").replace("\\-", "-");
    for (file, limit) in [
        ("daemon.log", MAX_DAEMON_LOG_BYTES),
        ("events.jsonl", MAX_EVENT_LOG_BYTES),
        ("NAME.log", MAX_WORKER_LOG_BYTES),
        ("NAME.raw", MAX_RECORD_BYTES),
    ] {
        let sentence = format!("At {} MiB it becomes\n.IR {file}.1 ,", limit >> 20);
        assert!(page.contains(&sentence), "man/swarm-state.5: {sentence}");
    }
    for limit in [swarm::checks::KEPT_OUTPUT_BYTES, swarm::checks::MAX_PRINTED_BYTES] {
        let size = format!("more than {} MiB", limit >> 20);
        assert!(page.contains(&size), "man/swarm-state.5: {size}");
    }
    let fixture = include_str!("../../state/fixtures/v1/ralph/agent/state.json");
    assert!(page.contains(fixture.trim_end()), "man/swarm-state.5: the example is not a valid state file");
    let format = swarm_state::format::FORMAT;
    assert!(page.contains(&format!("now {format}.")), "man/swarm-state.5: the format is {format}");
}

#[test]
fn config_page_has_every_key_in_its_section() {
    use swarm::settings::{agent_keys, host_keys, keys, runner_keys};
    let page = by_hand("swarm-config.5");
    let keys =
        keys().into_iter().map(|(key, _)| key).chain(agent_keys().map(|key| format!("agents.NAME.{key}")));
    let keys = keys.chain(runner_keys().map(|key| format!("runners.NAME.{key}")));
    let keys = keys.chain(host_keys().map(|key| format!("hosts.NAME.{key}")));
    for full in keys {
        let (section, key) = match full.rsplit_once('.') {
            Some((section, key)) => (format!("[{section}]"), key),
            None => ("TOP LEVEL".to_owned(), full.as_str()),
        };
        let below = page.split(&format!("\n.SH {section}\n")).nth(1).unwrap_or_default();
        let text = format!("\n{}", below.split("\n.SH ").next().unwrap_or_default());
        let heads = text.split("\n.TP\n").filter_map(|item| item.lines().next());
        assert!(
            heads.into_iter().any(|head| head.contains(&format!("\\fB{key}\\fR"))),
            "man/swarm-config.5: {full}"
        );
    }
}

/// The pages that are written by hand.
const HAND_WRITTEN: [&str; 9] = [
    "swarm-batch.7",
    "swarm-config.5",
    "swarm-json.7",
    "swarm-promises.7",
    "swarm-protocol.7",
    "swarm-sandbox.7",
    "swarm-session.7",
    "swarm-state.5",
    "swarm-troubleshooting.7",
];

#[test]
fn hand_written_pages_are_clean_roff() {
    for name in HAND_WRITTEN {
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

#[test]
fn pages_pass_mandoc_and_have_a_date_and_see_also() {
    let dir = directory();
    let pages: Vec<PathBuf> = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    let texts: Vec<String> = pages.iter().map(|page| std::fs::read_to_string(page).unwrap()).collect();
    for (page, text) in pages.iter().zip(&texts) {
        let title = text.lines().find(|line| line.starts_with(".TH ")).expect("a title");
        assert!(title.contains(page::DATE), "{}: {title}", page.display());
        let plain = text.replace("\\fB", "").replace("\\fR", "").replace('\\', "").replace(" (", "(");
        let (_, see_also) = plain.split_once("SEE ALSO").unwrap_or_else(|| panic!("{}", page.display()));
        let names = see_also.split([',', ' ', '\n']).filter_map(|word| word.split_once('('));
        let files: Vec<PathBuf> =
            names.map(|(name, rest)| dir.join(format!("{name}.{}", &rest[..1]))).collect();
        assert!(!files.is_empty(), "{}", page.display());
        for file in files {
            assert!(file.exists(), "{}: there is no {}", page.display(), file.display());
        }
    }
    let mut mandoc = std::process::Command::new("mandoc");
    let Ok(done) = mandoc.args(["-T", "lint", "-W", "warning"]).args(&pages).output() else {
        eprintln!("skipped: no mandoc here");
        return;
    };
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.is_empty(), "{said}");
}

fn repository_file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Rust files below `dir`: path and text.
fn rust_files(dir: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(dir).expect("a source directory") {
        let path = entry.expect("a directory entry").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source file");
            found.push((path, text));
        }
    }
}

/// Whether `text` has a function with the name `test`, in which one `*` stands for anything.
fn has_test(text: &str, test: &str) -> bool {
    let (start, rest) = test.split_once('*').unwrap_or((test, ""));
    let is_open = test.contains('*');
    let mut names = text.split("fn ").skip(1).map(|after| after.split(['(', '<']).next().unwrap_or_default());
    names.any(|name| {
        let tail = name.strip_prefix(start);
        tail.is_some_and(|tail| if is_open { tail.contains(rest.trim_matches('*')) } else { tail.is_empty() })
    })
}

#[test]
fn tests_named_by_the_promises_page_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![];
    for dir in ["tests/it", "src", "state/src"] {
        rust_files(&root.join(dir), &mut files);
    }
    let page = by_hand("swarm-promises.7").replace("\\-", "-");
    let lists: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("Tests: ")).collect();
    assert_eq!(lists.len(), page.matches("Tests:").count(), "each 'Tests:' begins a line");
    assert!(lists.len() > 30, "{lists:?}");
    for name in lists.iter().flat_map(|list| list.split(", ")) {
        let exists = match name.split_once("::") {
            None => root.join(name).exists(),
            Some((module, test)) => files.iter().any(|(path, text)| {
                let is_module = path.file_stem().is_some_and(|stem| stem == module)
                    || path.components().any(|part| part.as_os_str() == module);
                is_module && (matches!(test, "" | "tests") || has_test(text, test))
            }),
        };
        assert!(exists, "man/swarm-promises.7 names a test that does not exist: {name}");
    }
}

#[test]
fn readme_is_short_and_names_only_existing_files() {
    let readme = repository_file("README.md");
    assert!(readme.lines().count() <= 150, "README.md has {} lines", readme.lines().count());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = readme.split("\n## Source\n").nth(1).expect("a section on the source");
    for row in source.lines().filter(|line| line.starts_with("| `")) {
        let mut dir = PathBuf::new();
        for name in row.split(" | ").next().unwrap_or_default().split('`').skip(1).step_by(2) {
            let path = if name.contains('/') { PathBuf::from(name) } else { dir.join(name) };
            assert!(root.join(&path).exists(), "README.md: there is no {}", path.display());
            dir = path.parent().unwrap_or(Path::new("")).to_path_buf();
        }
    }
    for page in HAND_WRITTEN {
        let name = page.split('.').next().unwrap_or_default();
        assert!(readme.contains(name), "README.md does not name {page}");
    }
}
