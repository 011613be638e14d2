//! Finds the configuration and the test files of known runners.
//!
//! A glob with `**` is searched in the tree, without dependency folders and directories that git ignores. Another one
//! is looked up in the runner's directory and in those above, so that this costs no walk.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use swarm_state::ignored::is_generated;
use swarm_state::ledger::Base;
use swarm_state::runners::RunnerConfig;
use walkdir::WalkDir;

use super::hashing::Hashes;
use super::tree::{IgnoreRules, is_dependency_dir};
use crate::error::Result;
use crate::loops::run::LoopRun;

/// Adds the configuration of the runners in the baseline. While the baseline is taken (`tracked` has git's files), also
/// the test files, if `protect_tests` is set.
pub(super) fn add(
    loop_run: &LoopRun,
    base: &Base,
    tracked: Option<&BTreeSet<String>>,
    rules: &IgnoreRules,
    hashes: &mut Hashes<'_>,
) -> Result<()> {
    let mut anywhere: Vec<(GlobMatcher, RunnerConfig)> = vec![];
    let mut seen: Vec<(String, RunnerConfig)> = vec![];
    let tests = tracked.is_some() && loop_run.gates.protect_tests;
    // Known files may be in directories that are not searched.
    let known = base.protected.keys().map(|name| name.split(" (").next().unwrap_or(name));
    let known: BTreeSet<&str> = known.chain(tracked.into_iter().flatten().map(String::as_str)).collect();
    for using in &base.runners {
        let tests = using.runner.tests.iter().filter(|_| tests).map(|glob| whole(glob));
        for config in using.runner.config.iter().cloned().chain(tests) {
            let key = (using.dir.clone(), config);
            if seen.contains(&key) {
                continue;
            }
            let (dir, config) = &key;
            if config.glob.contains("**") {
                anywhere.extend(matcher(&format!("{dir}{}", config.glob)).map(|glob| (glob, config.clone())));
            }
            for path in placed(loop_run, dir, &config.glob, &known) {
                let name = name_of(&loop_run.cwd, &path);
                if !base.is_written(&name) {
                    hashes.config(&name, config)?;
                }
            }
            seen.push(key);
        }
        for file in &using.files {
            let path = loop_run.cwd.join(&using.dir).join(file);
            hashes.known(&name_of(&loop_run.cwd, &path))?;
        }
    }
    if anywhere.is_empty() {
        return Ok(());
    }
    let found = walk(&loop_run.cwd, base, rules);
    for name in
        found.iter().map(String::as_str).filter(|name| !known.contains(name)).chain(known.iter().copied())
    {
        for (_, config) in anywhere.iter().filter(|(glob, _)| glob.is_match(name)) {
            let path = loop_run.cwd.join(name);
            if path.symlink_metadata().is_ok() && (known.contains(name) || !rules.ignore(&path)) {
                hashes.config(name, config)?;
            }
        }
    }
    Ok(())
}

/// The globs of the test files of all runners, relative to the worker's directory.
pub(crate) fn tests(base: &Base) -> Vec<GlobMatcher> {
    let of = |using: &swarm_state::runners::RunnerUse| -> Vec<String> {
        using.runner.tests.iter().map(|glob| format!("{}{glob}", using.dir)).collect()
    };
    base.runners.iter().flat_map(of).filter_map(|glob| matcher(&glob)).collect()
}

fn whole(glob: &str) -> RunnerConfig {
    RunnerConfig { glob: glob.to_owned(), parts: vec![], hides: false }
}

fn matcher(glob: &str) -> Option<GlobMatcher> {
    GlobBuilder::new(glob).literal_separator(true).build().ok().map(|glob| glob.compile_matcher())
}

/// The name of a watched file: relative to the tree if it is in it.
pub(super) fn name_of(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

/// The existing files that a glob names in the runner's directory and above, or in the home directory.
fn placed(loop_run: &LoopRun, dir: &str, glob: &str, known: &BTreeSet<&str>) -> Vec<PathBuf> {
    if let Some(rest) = glob.strip_prefix("~/") {
        let home = loop_run.env.get("HOME").filter(|home| home.starts_with('/'));
        return home.map(|home| expand(Path::new(home), rest)).unwrap_or_default();
    }
    let own = loop_run.cwd.join(dir);
    let mut found = if glob.contains("**") { vec![] } else { expand(&own, glob) };
    let name = glob.strip_prefix("**/").unwrap_or(glob);
    if !name.contains(['*', '?', '[', '{']) {
        // The nearest file counts. One of the baseline stays watched when a nearer file is added.
        let mut above: Vec<PathBuf> = own.ancestors().skip(1).map(|dir| dir.join(name)).collect();
        above.retain(|path| path.is_file());
        let mut is_nearest = found.is_empty();
        above.retain(|path| {
            std::mem::take(&mut is_nearest) || known.contains(name_of(&loop_run.cwd, path).as_str())
        });
        found.extend(above);
    }
    found
}

/// The existing files that a glob without `**` matches below a directory. Reads only the directories that it names.
pub(super) fn expand(root: &Path, glob: &str) -> Vec<PathBuf> {
    let mut found = vec![root.to_owned()];
    for part in glob.split('/').filter(|part| !part.is_empty()) {
        found = match matcher(part).filter(|_| part.contains(['*', '?', '[', '{'])) {
            None => found.iter().map(|dir| dir.join(part)).collect(),
            Some(glob) => {
                let entries = found.iter().filter_map(|dir| dir.read_dir().ok()).flatten().flatten();
                entries.filter(|entry| glob.is_match(entry.file_name())).map(|entry| entry.path()).collect()
            }
        };
    }
    found.retain(|path| path.symlink_metadata().is_ok());
    found.sort();
    found
}

/// The files of the tree, without those in dependency folders, those that git ignores, and generated ones.
fn walk(root: &Path, base: &Base, rules: &IgnoreRules) -> Vec<String> {
    let may_enter = |entry: &walkdir::DirEntry| {
        let name = entry.file_name().to_string_lossy();
        !entry.file_type().is_dir()
            || entry.depth() == 0
            || !([".git", ".swarm"].contains(&name.as_ref())
                || is_dependency_dir(&name)
                || base.dependencies.contains_key(&name_of(root, entry.path()))
                || rules.ignore_dir(entry.path()))
    };
    let entries = WalkDir::new(root).min_depth(1).into_iter().filter_entry(may_enter).flatten();
    let files = entries.filter(|entry| !entry.file_type().is_dir());
    let names = files.map(|entry| name_of(root, entry.path()));
    names.filter(|name| !is_generated(name) && !base.is_written(name)).collect()
}
