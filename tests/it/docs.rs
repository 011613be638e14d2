//! The man pages in `man/` are generated from the command line's definition and stay in step with it.
//!
//! `UPDATE_DOCS=1 cargo test --test it docs` writes them anew.

use std::collections::BTreeMap;
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
fn man_pages_are_in_step_with_the_command_line() {
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
fn the_pages_tell_the_exit_codes() {
    let pages = pages();
    for code in
        ["0  Done", "1  The command failed", "2  Wrong use", "3  The daemon", "4  This swarm", "5  A wait"]
    {
        assert!(pages["swarm.1"].contains(code), "{code}");
    }
    assert!(pages.contains_key("swarm-ralph-status.1"));
    assert!(pages.values().all(|page| !page.contains("ready-on-stdout")), "a hidden flag is shown");
}
