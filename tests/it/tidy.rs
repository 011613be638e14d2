//! The source's own rules, checked by reading the source: who may use whom, who prints, who starts
//! processes, how long a file is and what a type is called, what the dependencies are, and that no test sleeps.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;
use serde_json::Value;

/// The Rust files below a directory, with their text; tests left out.
fn sources(dir: &str) -> Vec<(String, String)> {
    fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path.ends_with("target") {
                // The build output of `cargo fuzz` in tests/fuzz, which is run by hand.
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

/// The text without its tests: an inline module ends it, and the declaration of a module is left out.
fn without_tests(text: &str) -> String {
    let production = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    production.replace("#[cfg(test)]\nmod tests;\n", "")
}

/// The part of a file that is no test and no comment.
fn code(text: &str) -> String {
    let text = without_tests(text);
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
fn client_modules_use_the_daemon_only_by_its_protocol() {
    let forbidden =
        ["crate::daemon", "crate::git", "crate::hooks", "crate::session", "crate::store", "swarm::daemon"];
    let of_clients = |words: &[&str]| {
        let is_client = |name: &String| name.starts_with("src/client") || name.starts_with("src/ui");
        users("src", words).into_iter().filter(is_client).collect::<Vec<_>>()
    };
    assert_eq!(of_clients(&forbidden), Vec::<String>::new());
    // No daemon has these files: notes of the client on daemons and hosts, jobs of Slurm, task lists of the user, and
    // the program that a host gets.
    let writers = [
        "src/client/connect/release.rs",
        "src/client/fleet.rs",
        "src/client/jobs/dir.rs",
        "src/client/task_list_file.rs",
        "src/client/verbs/host_install.rs",
        "src/client/verbs/ralph_init.rs",
    ];
    assert_eq!(of_clients(&["crate::files"]), writers);
}

#[test]
fn protocol_store_tmux_and_git_do_not_use_higher_layers() {
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
fn doctor_is_not_used_by_other_modules_and_writes_nothing() {
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
fn only_listed_modules_start_processes() {
    let starters = users("src", &["Command::new("]);
    let allowed = |name: &str| {
        [
            "src/tmux/",
            "src/git/",
            "src/checks.rs",
            "src/wrapper.rs",
            "src/sandbox/",
            "src/notify/",
            "src/wrapper/caps.rs",
            "src/hooks/status_line.rs",
            "src/client/connect/start.rs",
            "src/client/verbs/attach.rs",
            "src/client/verbs/config_edit.rs",
            "src/client/verbs/ralph_plan.rs",
            "src/demo",
            "src/hosts",
            "src/remote/",
            "src/ui/verbs.rs",
        ]
        .iter()
        .any(|start| name.starts_with(start))
    };
    assert_eq!(starters.into_iter().filter(|n| !allowed(n)).collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn only_listed_modules_print() {
    let printers =
        users("src", &["println!(", "print!(", "eprintln!(", "eprint!(", "io::stdout()", "io::stderr()"]);
    // The daemon tells its starter and writes its log (through the store's rotation); the wrapper writes on the
    // terminal of its pane; main hands the streams over; attach asks whether there is a terminal; the fake agent is an
    // agent. The interface copies the messages of attach.
    let allowed = [
        "src/client/verbs/attach.rs",
        "src/daemon.rs",
        "src/demo/agent.rs",
        "src/main.rs",
        "src/out.rs",
        "src/store/rotate.rs",
        "src/ui/verbs.rs",
        "src/wrapper.rs",
    ];
    assert_eq!(
        printers.iter().filter(|n| !allowed.contains(&n.as_str())).collect::<Vec<_>>(),
        Vec::<&String>::new()
    );
}

#[test]
fn state_crate_does_no_io() {
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

/// The production part of each file, tests left out.
pub(crate) fn production(dir: &str) -> Vec<(String, String)> {
    let files =
        sources(dir).into_iter().filter(|(name, _)| !name.contains("/tests") && !name.contains("/testing"));
    files.map(|(name, text)| (name, without_tests(&text))).collect()
}

#[test]
fn no_file_is_longer_than_400_lines() {
    let files = ["src", "state/src"].into_iter().flat_map(production);
    let long: Vec<String> = files
        .map(|(name, text)| (name, text.lines().count()))
        .filter(|(_, lines)| *lines > 400)
        .map(|(name, lines)| format!("{name}: {lines}"))
        .collect();
    assert_eq!(long, Vec::<String>::new());
}

/// Fails if two definitions below a directory have the same name, which is the only group of `definition`.
fn assert_unique_names(definition: &str) {
    let definition = Regex::new(definition).unwrap();
    for dir in ["src", "state/src"] {
        let mut files_of: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, text) in production(dir) {
            for found in definition.captures_iter(&text) {
                files_of.entry(found[1].to_owned()).or_default().push(name.clone());
            }
        }
        assert!(files_of.len() > 100, "{dir}: {files_of:?}");
        files_of.retain(|_, files| files.len() > 1);
        assert_eq!(files_of, BTreeMap::new(), "{dir}");
    }
}

#[test]
fn type_names_are_unique_in_each_crate() {
    assert_unique_names(
        r"(?m)^(?:\s*(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait)|(?:pub(?:\([^)]*\))? )?type) (\w+)",
    );
}

#[test]
fn constant_names_are_unique_in_each_crate() {
    assert_unique_names(r"(?m)^\s*(?:pub(?:\([^)]*\))? )?const ([A-Z]\w*):");
}

#[test]
fn comments_are_at_most_120_columns_wide() {
    let is_wide = |line: &str| line.trim_start().starts_with("//") && line.chars().count() > 120;
    let files = ["src", "state/src", "tests"].into_iter().flat_map(sources);
    let wide: Vec<String> = files
        .flat_map(|(name, text)| {
            let lines = text.lines().enumerate().filter(|(_, line)| is_wide(line));
            lines.map(|(at, _)| format!("{name}:{}", at + 1)).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(wide, Vec::<String>::new());
}

/// A comment whose first word is one of these makes the reader search for its subject.
#[test]
fn comments_name_their_subject() {
    let opening = Regex::new(r"(?m)^\s*//[/!]? (?:What|Who|Whoever|Where|One that) .*$").unwrap();
    let files = ["src", "state/src", "tests"].into_iter().flat_map(sources);
    let found: Vec<String> = files
        .flat_map(|(name, text)| {
            opening
                .find_iter(&text)
                .map(|line| format!("{name}: {}", line.as_str().trim()))
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(found, Vec::<String>::new());
}

/// The license of each dependency is compatible with ours, and none comes from outside the registry.
#[test]
fn dependencies_have_a_known_license_and_source() {
    const LICENSES: [&str; 6] = ["MIT", "Apache-2.0", "BSD-3-Clause", "Zlib", "Unicode-3.0", "MPL-2.0"];
    let output = std::process::Command::new(env!("CARGO"))
        // Crates of other platforms are neither built nor downloaded.
        .args(["metadata", "--format-version", "1", "--offline", "--locked"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 100, "{}", packages.len());
    // Of the licenses in an "or" one suffices; an "and" names all that apply.
    let is_known = |license: &str| {
        let terms = license.replace(['(', ')'], "").replace('/', " OR ");
        terms.split(" AND ").all(|term| term.split(" OR ").any(|one| LICENSES.contains(&one.trim())))
    };
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| {
            let license = package["license"].as_str().unwrap_or_default();
            let source = package["source"].as_str();
            !is_known(license)
                || source.is_some_and(|at| at != "registry+https://github.com/rust-lang/crates.io-index")
        })
        .map(|package| {
            format!(
                "{} {}: {} from {}",
                package["name"], package["version"], package["license"], package["source"]
            )
        })
        .collect();
    assert_eq!(refused, Vec::<String>::new());
}

/// A file that is not declared is not compiled, and its tests never run.
#[test]
fn every_file_is_declared() {
    let declaration =
        Regex::new(r#"(?m)^(?:pub(?:\([^)]*\))? )?mod (?:r#)?(\w+);|\bpath = "([^"]+)""#).unwrap();
    let mut missing = vec![];
    for dir in ["src", "state/src", "tests/it"] {
        let files = sources(dir);
        let roots = ["lib.rs", "main.rs"].map(|root| format!("{dir}/{root}"));
        let mut declared = roots.to_vec();
        for (name, text) in &files {
            let (folder, _) = name.rsplit_once('/').unwrap();
            let below = if roots.contains(name) { dir } else { name.trim_end_matches(".rs") };
            declared.extend(declaration.captures_iter(text).map(|found| match found.get(1) {
                Some(module) => format!("{below}/{}.rs", module.as_str()),
                None => format!("{folder}/{}", &found[2]),
            }));
        }
        missing.extend(files.into_iter().map(|(name, _)| name).filter(|name| !declared.contains(name)));
    }
    assert_eq!(missing, Vec::<String>::new());
}
