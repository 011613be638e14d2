//! The plugins: the texts that are built in, and where an agent finds them.
//!
//! Used by the verb `swarm plugin`. Claude Code gets a marketplace (a directory of ours with two plugins in it), an entry
//! in a settings file that names and enables them, and bare command names; opencode gets one file. What was written
//! where is kept in `$SWARM_DIR/hooks/plugin.json` with a hash of each file: one that is not as we wrote it is somebody's
//! own, is never overwritten and never removed. Deliberately absent: what a command does. Its words are read by `swarm
//! hook user-prompt-submit`, where they arrive as they were typed; what Claude Code puts into a shell's line does not.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::file::{self, Change, failed, hash};
use super::install::{self, Place, agents_dir, needed};
use super::layout::{self, Layout};
use super::merge::{self, Shape};
use crate::cli::{HookAgent, HookScope, PluginAgent};
use crate::error::{Error, ErrorCode, Result};
use crate::paths::{self, Paths, private_dir};
use crate::store;

/// A file of scripts/claude-plugin, by its path there.
macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../scripts/claude-plugin/", $path)))),*]
    };
}

/// The marketplace with its plugins.
const FILES: &[(&str, &str)] = files![
    ".claude-plugin/marketplace.json",
    "swarm/.claude-plugin/plugin.json",
    "swarm/README.md",
    "swarm/commands/cancel-ralph.md",
    "swarm/commands/ralph-loop.md",
    "swarm/commands/ulw-loop.md",
    "swarm/hooks/hooks.json",
    "do-it/.claude-plugin/plugin.json",
    "do-it/README.md",
    "do-it/commands/cancel-ralph.md",
    "do-it/commands/ralph.md",
    "do-it/hooks/hooks.json",
    "do-it/skills/loop-runner/SKILL.md",
    "do-it/skills/loop-runner/scripts/PROMPT.md",
];

/// The plugin of opencode.
const OPENCODE: &str = include_str!("../../scripts/opencode-plugin/swarm.js");

/// The line in it that names the program.
const OPENCODE_PROGRAM: &str = "const PROGRAM = \"swarm\";";

/// Where the commands with bare names come from.
const BARE: &str = "swarm/commands/";

/// A file to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    path: PathBuf,
    text: String,
}

/// All that is to be there for one place.
struct Plan {
    /// By which the place is known: its settings file, or the one file of a plugin.
    key: PathBuf,
    /// The settings file with its marketplace, for Claude Code.
    settings: Option<(Place, PathBuf)>,
    /// The files.
    items: Vec<Item>,
}

/// What was written for one place.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Entry {
    /// The files, and the SHA-256 of each.
    files: BTreeMap<PathBuf, String>,
    /// Directories that were made for them, outermost first.
    dirs: Vec<PathBuf>,
}

/// What was written, by place.
type Record = BTreeMap<PathBuf, Entry>;

/// What `install` came to.
#[derive(Debug)]
pub struct Installed {
    /// Files that are new or changed.
    pub written: Vec<PathBuf>,
    /// What became of the settings file.
    pub settings: Option<(PathBuf, Change)>,
    /// The marketplace.
    pub dir: Option<PathBuf>,
}

/// What `uninstall` came to.
#[derive(Debug, Default)]
pub struct Uninstalled {
    /// Files that are gone.
    pub removed: Vec<PathBuf>,
    /// Files that somebody changed since; they stay.
    pub left: Vec<PathBuf>,
    /// What became of the settings file.
    pub settings: Option<(PathBuf, Change)>,
    /// The marketplace.
    pub dir: Option<PathBuf>,
}

/// Writes what `agent` needs for `scope`, with `program` for swarm; `dir` is where the marketplace goes.
///
/// # Errors
/// When a file of the same name is not ours, or one cannot be written; the former leaves everything as it was.
pub fn install(
    paths: &Paths,
    agent: PluginAgent,
    scope: HookScope,
    dir: Option<&Path>,
    program: &Path,
) -> Result<Installed> {
    let plan = plan(paths, agent, scope, dir, program)?;
    let _lock = lock(paths)?;
    let mut record = read_record(paths)?;
    let known = |path: &Path| record.values().find_map(|entry| entry.files.get(path)).cloned();
    let mut missing = vec![];
    for item in &plan.items {
        match state(item, known(&item.path).as_deref())? {
            Stands::AsItShould => {}
            Stands::Ours => missing.push(item),
            Stands::Foreign => return Err(foreign(&item.path)),
        }
    }
    // A settings file that refuses, refuses before anything is written.
    if let Some((place, market)) = &plan.settings {
        let value = file::read(&place.file)?.unwrap_or_else(|| serde_json::json!({}));
        let refuse = |Shape(what)| file::not_ours_to_change(&place.file, &what);
        merge::with_plugins(&value, text(market)?).map_err(refuse)?;
    }
    let entry = record.entry(plan.key.clone()).or_default();
    entry.files.extend(plan.items.iter().map(|item| (item.path.clone(), hash(item.text.as_bytes()))));
    for dir in missing.iter().filter_map(|item| item.path.parent()).flat_map(absent) {
        if !entry.dirs.contains(&dir) {
            entry.dirs.push(dir);
        }
    }
    write_record(paths, &record)?;
    let settings = match &plan.settings {
        Some((place, market)) => {
            let market = text(market)?;
            let change = file::change(paths, &place.file, |value| merge::with_plugins(value, market))?;
            Some((place.file.clone(), change))
        }
        None => None,
    };
    for item in &missing {
        write(item)?;
        make_private(paths.root(), &item.path)?;
    }
    let written = missing.iter().map(|item| item.path.clone()).collect();
    Ok(Installed { written, settings, dir: plan.settings.map(|(_, dir)| dir) })
}

/// Takes away what [`install()`] wrote for this place, as far as it is still as it was written and no other place needs it.
///
/// # Errors
/// When a file cannot be removed, or the settings file cannot be changed.
pub fn uninstall(
    paths: &Paths,
    agent: PluginAgent,
    scope: HookScope,
    dir: Option<&Path>,
) -> Result<Uninstalled> {
    let plan = plan(paths, agent, scope, dir, Path::new("swarm"))?;
    let _lock = lock(paths)?;
    let mut record = read_record(paths)?;
    let mut done = Uninstalled::default();
    // A settings file that refuses, refuses before anything is removed; and it knows where the marketplace is.
    if let Some((place, market)) = &plan.settings {
        let value = file::read(&place.file)?.unwrap_or_default();
        done.dir = Some(merge::marketplace(&value).map_or_else(|| market.clone(), PathBuf::from));
    }
    let entry = record.remove(&plan.key).unwrap_or_default();
    for (path, known) in &entry.files {
        if record.values().any(|other| other.files.contains_key(path)) {
            continue;
        }
        match fs::read(path) {
            Ok(bytes) if hash(&bytes) == *known => {
                fs::remove_file(path).map_err(|e| failed("remove", path, e))?;
                done.removed.push(path.clone());
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Ok(_) | Err(_) => done.left.push(path.clone()),
        }
    }
    leave_dirs(entry.dirs, &mut record);
    if let Some((place, _)) = plan.settings {
        let change = file::change(paths, &place.file, |value| Ok(merge::without_plugins(value)))?;
        done.settings = Some((place.file, change));
    }
    write_record(paths, &record)?;
    Ok(done)
}

/// Removes directories that are empty now; one that another place needs is that place's from now on.
fn leave_dirs(mut dirs: Vec<PathBuf>, record: &mut Record) {
    dirs.sort_by_key(|dir| std::cmp::Reverse(dir.as_os_str().len()));
    for dir in dirs {
        if fs::remove_dir(&dir).is_ok() {
            continue;
        }
        let needs = |entry: &&mut Entry| entry.files.keys().any(|file| file.starts_with(&dir));
        if let Some(other) = record.values_mut().find(needs) {
            other.dirs.push(dir);
        }
    }
}

fn plan(
    paths: &Paths,
    agent: PluginAgent,
    scope: HookScope,
    dir: Option<&Path>,
    program: &Path,
) -> Result<Plan> {
    match agent {
        PluginAgent::Claude => {
            let market = match dir {
                Some(dir) => paths::resolve(dir),
                None => paths.root().join("claude-plugin"),
            };
            let place = install::place(HookAgent::Claude, scope)?;
            let commands = agents_dir(".claude", "CLAUDE_CONFIG_DIR", scope)?.join("commands");
            let mut items = marketplace(program)?
                .into_iter()
                .map(|(path, text)| Item { path: market.join(path), text })
                .collect::<Vec<_>>();
            let bare = FILES.iter().filter_map(|(path, text)| Some((path.strip_prefix(BARE)?, text)));
            items.extend(
                bare.map(|(name, text)| Item { path: commands.join(name), text: (*text).to_owned() }),
            );
            Ok(Plan { key: place.file.clone(), settings: Some((place, market)), items })
        }
        PluginAgent::Opencode => {
            if dir.is_some() {
                return Err(Error::new(ErrorCode::Usage, "--dir is for the plugins of Claude Code"));
            }
            let path = opencode_dir(scope)?.join("plugin").join("swarm.js");
            let named = serde_json::Value::from(text(program)?).to_string();
            let script = OPENCODE.replace(OPENCODE_PROGRAM, &format!("const PROGRAM = {named};"));
            Ok(Plan { key: path.clone(), settings: None, items: vec![Item { path, text: script }] })
        }
    }
}

fn opencode_dir(scope: HookScope) -> Result<PathBuf> {
    let named = env::var_os("XDG_CONFIG_HOME").filter(|dir| Path::new(dir).is_absolute());
    match (scope, named) {
        (HookScope::Project, _) => agents_dir(".opencode", "", scope),
        (HookScope::User, Some(config)) => Ok(Path::new(&config).join("opencode")),
        (HookScope::User, None) => Ok(paths::home()?.join(".config/opencode")),
    }
}

/// The files of the marketplace, by their paths in it, with hooks that run `program`.
///
/// # Errors
/// None that is not a fault of the built-in texts.
pub fn marketplace(program: &Path) -> Result<Vec<(&'static str, String)>> {
    let file = |(path, text): &(&'static str, &str)| {
        let text = match path.ends_with("hooks.json") {
            true => hooks_file(text, program)?,
            false => (*text).to_owned(),
        };
        Ok((*path, text))
    };
    FILES.iter().map(file).collect()
}

fn hooks_file(built_in: &str, program: &Path) -> Result<String> {
    let faulty = |what: String| Error::new(ErrorCode::Internal, format!("a built-in file: {what}"));
    let (value, _) = layout::parse(built_in).map_err(faulty)?;
    let value = merge::with_hooks(&value, needed(HookAgent::Claude), program).map_err(|e| faulty(e.0))?;
    layout::render(&value, &Layout::default()).map_err(faulty)
}

/// What stands where a file is to be.
enum Stands {
    /// The file, as it should be.
    AsItShould,
    /// Nothing, or what an earlier install wrote.
    Ours,
    /// Something else.
    Foreign,
}

fn state(item: &Item, known: Option<&str>) -> Result<Stands> {
    match fs::read(&item.path) {
        Ok(bytes) if bytes == item.text.as_bytes() => Ok(Stands::AsItShould),
        Ok(bytes) if known == Some(&hash(&bytes)) => Ok(Stands::Ours),
        Ok(_) => Ok(Stands::Foreign),
        // A link to nowhere is somebody's, too.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !item.path.is_symlink() => Ok(Stands::Ours),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Stands::Foreign),
        Err(error) => Err(failed("read", &item.path, error)),
    }
}

fn write(item: &Item) -> Result<()> {
    let dir = item.path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(dir).map_err(|e| failed("make", dir, e))?;
    file::replace_with(&item.path, None, &item.text).map_err(|e| failed("write", &item.path, e))
}

/// What lies in the state directory is its owner's alone, like the rest of it; elsewhere the user's own mask holds.
fn make_private(root: &Path, file: &Path) -> Result<()> {
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
            .map_err(|e| failed("set the mode of", path, e))
    };
    if !file.starts_with(root) {
        return Ok(());
    }
    for dir in file.ancestors().skip(1).take_while(|dir| *dir != root) {
        set(dir, 0o700)?;
    }
    set(file, 0o600)
}

/// The directories on the way to `dir` that are not there, outermost first.
fn absent(dir: &Path) -> Vec<PathBuf> {
    let mut absent: Vec<PathBuf> =
        dir.ancestors().take_while(|dir| !dir.exists()).map(Path::to_owned).collect();
    absent.reverse();
    absent
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| Error::invalid(format!("the path '{}' is no valid text", path.display())))
}

fn foreign(path: &Path) -> Error {
    let text = format!("'{}' is not swarm's and was not touched; nothing was installed", path.display());
    Error::new(ErrorCode::Exists, text).hint("move it away, and install again")
}

fn lock(paths: &Paths) -> Result<fs::File> {
    private_dir(&paths.hooks_dir())?;
    file::lock(&paths.hooks_dir(), "plugin.lock")
}

fn record_file(paths: &Paths) -> PathBuf {
    paths.hooks_dir().join("plugin.json")
}

/// The record; without one, or with one that cannot be understood, only files that are exactly ours are ours.
fn read_record(paths: &Paths) -> Result<Record> {
    let path = record_file(paths);
    match fs::read(&path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Record::new()),
        Err(error) => Err(failed("read", &path, error)),
    }
}

fn write_record(paths: &Paths, record: &Record) -> Result<()> {
    let path = record_file(paths);
    if record.is_empty() {
        let _ = fs::remove_file(&path);
        return Ok(());
    }
    let json = serde_json::to_vec_pretty(record).map_err(|e| Error::system("cannot keep a record", e))?;
    store::write_atomic(&path, &json).map_err(|e| failed("write", &path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files in the repository name the program by `PATH`, in the form that install writes.
    #[test]
    fn the_hooks_in_the_repository_are_those_that_install_writes() {
        for (path, text) in marketplace(Path::new("swarm")).unwrap() {
            let built_in = FILES.iter().find(|(known, _)| *known == path).unwrap().1;
            assert_eq!(text, built_in, "{path}");
        }
        assert!(OPENCODE.contains(OPENCODE_PROGRAM));
    }

    #[test]
    fn every_file_of_the_directory_is_built_in() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/claude-plugin");
        let files = walkdir::WalkDir::new(&root).sort_by_file_name();
        let found = files.into_iter().filter_map(Result::ok).filter(|entry| entry.file_type().is_file());
        let mut found: Vec<String> =
            found.map(|entry| entry.path().strip_prefix(&root).unwrap().display().to_string()).collect();
        let mut known: Vec<&str> = FILES.iter().map(|(path, _)| *path).collect();
        found.sort();
        known.sort_unstable();
        assert_eq!(found, known);
    }

    /// The skill shows the contract that a loop is fed with.
    #[test]
    fn the_contract_of_the_skill_is_the_built_in_one() {
        let (_, text) = FILES.iter().find(|(path, _)| path.ends_with("/PROMPT.md")).unwrap();
        assert_eq!(*text, include_str!("../../state/src/session/contract.md"));
    }

    /// Claude Code keeps a plugin by its version: a new release must have a new one.
    #[test]
    fn the_plugins_have_the_programs_version() {
        for plugin in merge::PLUGINS {
            let path = format!("{plugin}/.claude-plugin/plugin.json");
            let text = FILES.iter().find(|(known, _)| *known == path).unwrap().1;
            let value: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_eq!(value["version"], env!("CARGO_PKG_VERSION"), "{plugin}");
            assert_eq!(value["name"], plugin);
        }
    }
}
