//! What the source promises of itself, read from the source: who may use whom, who prints, who starts
//! processes, and that no test sleeps.

use std::fs;
use std::path::{Path, PathBuf};

/// The Rust files below a directory, with their text; tests left out.
fn sources(dir: &str) -> Vec<(String, String)> {
    fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path.ends_with("target") {
                // What `cargo fuzz`, run by hand, builds in tests/fuzz.
            } else if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![];
    walk(&root.join(dir), &mut files);
    let name = |path: &Path| path.strip_prefix(root).unwrap().display().to_string();
    files.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// The part of a file that is no test and no comment.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Files below `dir` (tests left out) whose code contains one of `words`.
fn users(dir: &str, words: &[&str]) -> Vec<String> {
    let is_test = |name: &str| name.contains("/tests") || name.ends_with("tests.rs");
    let hit = |text: &str| words.iter().any(|word| code(text).contains(word));
    let mut found: Vec<String> =
        sources(dir).into_iter().filter(|(n, t)| !is_test(n) && hit(t)).map(|(n, _)| n).collect();
    found.sort();
    found
}

#[test]
fn the_client_knows_the_daemon_by_its_wire_alone() {
    let forbidden =
        ["crate::daemon", "crate::git", "crate::hooks", "crate::session", "crate::store", "swarm::daemon"];
    assert_eq!(users("src/client", &forbidden), Vec::<String>::new());
}

#[test]
fn the_wire_knows_nothing_of_the_disk_and_the_edge_nothing_of_those_who_use_it() {
    for (file, forbidden) in [
        ("src/protocol.rs", &["crate::store", "crate::daemon", "crate::client", "swarm_state::format"][..]),
        ("src/store.rs", &["crate::daemon", "crate::client", "crate::tmux", "crate::protocol"]),
        ("src/tmux.rs", &["crate::daemon", "crate::client", "crate::store", "crate::protocol"]),
        ("src/git.rs", &["crate::daemon", "crate::client", "crate::store", "crate::protocol"]),
    ] {
        let module = file.trim_end_matches(".rs");
        let of = |name: &String| *name == file || name.starts_with(&format!("{module}/"));
        let users: Vec<String> = users("src", forbidden).into_iter().filter(of).collect();
        assert_eq!(users, Vec::<String>::new(), "{file}");
    }
}

#[test]
fn what_looks_at_everything_is_used_by_nothing_and_writes_nothing() {
    assert_eq!(users("src", &["crate::doctor"]), Vec::<String>::new());
    let changing = [
        "fs::write",
        "fs::rename",
        "fs::remove",
        "fs::create",
        "OpenOptions",
        "Store::open",
        "set_permissions",
    ];
    let of_doctor = |name: &String| name.starts_with("src/doctor") || name == "src/store/survey.rs";
    let writers: Vec<String> = users("src", &changing).into_iter().filter(of_doctor).collect();
    assert_eq!(writers, Vec::<String>::new());
}

#[test]
fn few_modules_start_processes() {
    let starters = users("src", &["Command::new("]);
    let allowed = |name: &str| {
        [
            "src/tmux/",
            "src/git/",
            "src/checks.rs",
            "src/wrapper.rs",
            "src/client/connect.rs",
            "src/client/verbs/attach.rs",
            "src/demo",
        ]
        .iter()
        .any(|start| name.starts_with(start))
    };
    assert_eq!(starters.into_iter().filter(|n| !allowed(n)).collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn only_out_prints() {
    let printers =
        users("src", &["println!(", "print!(", "eprintln!(", "eprint!(", "io::stdout()", "io::stderr()"]);
    // The daemon tells its starter and writes its log (through the store's rotation); the wrapper writes on the terminal of its pane;
    // main hands the streams over; attach asks whether there is a terminal; the fake agent is an agent.
    let allowed = [
        "src/client/verbs/attach.rs",
        "src/daemon.rs",
        "src/demo/agent.rs",
        "src/main.rs",
        "src/out.rs",
        "src/store/rotate.rs",
        "src/wrapper.rs",
    ];
    assert_eq!(
        printers.iter().filter(|n| !allowed.contains(&n.as_str())).collect::<Vec<_>>(),
        Vec::<&String>::new()
    );
}

#[test]
fn the_state_crate_is_pure() {
    let impure = [
        "std::fs",
        "std::net",
        "std::process",
        "std::env",
        "std::thread",
        "Instant::now",
        "Utc::now",
        "Local::now",
        "tokio",
    ];
    assert_eq!(users("state/src", &impure), Vec::<String>::new());
}

#[test]
fn no_test_sleeps_and_none_is_ignored() {
    let forbidden = ["thread::sleep(", "time::sleep(", "#[ignore"];
    // Two hold a lock for a while, which is what they test; one is the bounded wait itself.
    let known = ["src/git/tests.rs", "src/store/tests/ralph.rs", "tests/it/tmux.rs", "tests/it/tidy.rs"];
    let sleepers: Vec<String> = ["tests", "state/src", "src"]
        .into_iter()
        .flat_map(sources)
        .filter(|(name, _)| !known.contains(&name.as_str()))
        .filter(|(name, _)| name.contains("tests"))
        .filter(|(_, text)| forbidden.iter().any(|word| text.contains(word)))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(sleepers, Vec::<String>::new());
}

/// A file that is not declared is not compiled, and its tests never run.
#[test]
fn every_file_of_the_end_to_end_tests_is_declared() {
    let main = include_str!("main.rs");
    let declared = |name: &str| main.lines().any(|line| line == format!("mod {name};"));
    let missing: Vec<String> = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|name| name != "main" && !declared(name))
        .collect();
    assert_eq!(missing, Vec::<String>::new());
}
