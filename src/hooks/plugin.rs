//! Installs and removes the agent plugins, whose files are built into the binary.
//!
//! Used by `swarm plugin`. Claude Code gets a marketplace (a directory with two plugins), an entry in a settings file
//! that enables them, and command files with short names; opencode gets one file. `$SWARM_DIR/hooks/plugin.json`
//! records the files with a hash of each. A file that differs from what swarm wrote belongs to the user: it is never
//! overwritten or removed. Deliberately absent: carrying out a command. `swarm hook user-prompt-submit` does that,
//! since it receives the arguments as they were typed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::file::{self, FileChange};
use super::install::{self, HookFile, agents_dir, needed, opencode_dir};
use super::layout::{self, Layout};
use super::merge::{self, ShapeError};
use crate::cli::{HookAgent, HookScope, PluginAgent};
use crate::error::{Error, ErrorCode, Result, failed};
use crate::files::{if_exists, sha256};
use crate::paths::{self, Paths};
use crate::store;

/// A file of scripts/claude-plugin, by its path there.
macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../scripts/claude-plugin/", $path)))),*]
    };
}

/// The files of the marketplace.
const MARKETPLACE_FILES: &[(&str, &str)] = files![
    ".claude-plugin/marketplace.json",
    "swarm/.claude-plugin/plugin.json",
    "swarm/README.md",
    "swarm/commands/cancel-ralph.md",
    "swarm/commands/ralph-loop.md",
    "swarm/commands/ulw-loop.md",
    "swarm/hooks/hooks.json",
    "swarm/skills/ralph-plan/SKILL.md",
    "do-it/.claude-plugin/plugin.json",
    "do-it/README.md",
    "do-it/commands/cancel-ralph.md",
    "do-it/commands/ralph.md",
    "do-it/hooks/hooks.json",
    "do-it/skills/loop-runner/SKILL.md",
    "do-it/skills/loop-runner/scripts/PROMPT.md",
];

const OPENCODE: &str = include_str!("../../scripts/opencode-plugin/swarm.js");

/// The line in it that names the program.
const OPENCODE_PROGRAM: &str = "const PROGRAM = \"swarm\";";

/// The folder of the commands with short names.
const BARE: &str = "swarm/commands/";

/// The skill that also gets a command with a short name.
const BARE_SKILL: (&str, &str) = ("swarm/skills/ralph-plan/SKILL.md", "ralph-plan.md");

/// The short name of a file, if it is a command.
fn bare_name(path: &'static str) -> Option<&'static str> {
    path.strip_prefix(BARE).or_else(|| (path == BARE_SKILL.0).then_some(BARE_SKILL.1))
}

/// A file to install.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    path: PathBuf,
    text: String,
}

/// Everything to install for one place.
struct PluginPlan {
    /// The key of the place in the record: its settings file, or the only file of a plugin.
    key: PathBuf,
    /// The settings file with its marketplace, for Claude Code.
    settings: Option<(HookFile, PathBuf)>,
    items: Vec<Item>,
}

/// The files and directories that were made for one place.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct RecordEntry {
    /// The files, and the SHA-256 of each.
    files: BTreeMap<PathBuf, String>,
    /// Directories that were made for them, outermost first.
    dirs: Vec<PathBuf>,
}

/// The record of installed files, by place.
type Record = BTreeMap<PathBuf, RecordEntry>;

/// The result of an installation.
#[derive(Debug)]
pub struct Installed {
    /// Files that were created or changed.
    pub written: Vec<PathBuf>,
    /// The settings file, and what happened to it.
    pub settings: Option<(PathBuf, FileChange)>,
    /// The marketplace.
    pub dir: Option<PathBuf>,
}

/// The result of a removal.
#[derive(Debug, Default)]
pub struct Uninstalled {
    /// Files that were removed.
    pub removed: Vec<PathBuf>,
    /// Files that were changed since the installation, which are kept.
    pub left: Vec<PathBuf>,
    /// The settings file, and what happened to it.
    pub settings: Option<(PathBuf, FileChange)>,
    /// The marketplace.
    pub dir: Option<PathBuf>,
}

/// Installs the files that `agent` needs for `scope`, with `program` as swarm's path and the marketplace in `dir`.
/// Changes nothing, and fails, when a file of the same name is not swarm's.
pub fn install(
    paths: &Paths,
    agent: PluginAgent,
    scope: HookScope,
    dir: Option<&Path>,
    program: &Path,
) -> Result<Installed> {
    let plan = plan(paths, agent, scope, dir, program)?;
    let _lock = file::lock(&paths.hooks_dir(), "plugin.lock")?;
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
    // A settings file that cannot be changed must fail before any file is written.
    if let Some((place, market)) = &plan.settings {
        let value = file::read(&place.file)?.unwrap_or_else(|| serde_json::json!({}));
        let refuse = |ShapeError(what)| file::not_ours_to_change(&place.file, &what);
        merge::with_plugins(&value, text(market)?).map_err(refuse)?;
    }
    let entry = record.entry(plan.key.clone()).or_default();
    entry.files.extend(plan.items.iter().map(|item| (item.path.clone(), sha256(item.text.as_bytes()))));
    for dir in missing.iter().filter_map(|item| item.path.parent()).flat_map(absent) {
        if !entry.dirs.contains(&dir) {
            entry.dirs.push(dir);
        }
    }
    write_record(paths, &record)?;
    let change = |(place, market): &(HookFile, PathBuf)| {
        let market = text(market)?;
        let change = file::change(paths, &place.file, |value| merge::with_plugins(value, market))?;
        Ok((place.file.clone(), change))
    };
    let settings = plan.settings.as_ref().map(change).transpose()?;
    for item in &missing {
        write(item)?;
        make_private(paths.root(), &item.path)?;
    }
    let written = missing.iter().map(|item| item.path.clone()).collect();
    Ok(Installed { written, settings, dir: plan.settings.map(|(_, dir)| dir) })
}

/// Removes the files that [`install()`] wrote for this place, except changed ones and those that another place needs.
pub fn uninstall(
    paths: &Paths,
    agent: PluginAgent,
    scope: HookScope,
    dir: Option<&Path>,
) -> Result<Uninstalled> {
    let plan = plan(paths, agent, scope, dir, Path::new("swarm"))?;
    let _lock = file::lock(&paths.hooks_dir(), "plugin.lock")?;
    let mut record = read_record(paths)?;
    let mut done = Uninstalled::default();
    // A settings file that cannot be changed must fail before any file is removed. It also names the marketplace.
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
            Ok(bytes) if sha256(&bytes) == *known => {
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

/// Removes directories that became empty. One that another place needs is recorded for that place.
fn leave_dirs(mut dirs: Vec<PathBuf>, record: &mut Record) {
    dirs.sort_by_key(|dir| std::cmp::Reverse(dir.as_os_str().len()));
    for dir in dirs {
        if fs::remove_dir(&dir).is_ok() {
            continue;
        }
        let needs = |entry: &&mut RecordEntry| entry.files.keys().any(|file| file.starts_with(&dir));
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
) -> Result<PluginPlan> {
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
            let bare = MARKETPLACE_FILES.iter().filter_map(|(path, text)| Some((bare_name(path)?, text)));
            items.extend(
                bare.map(|(name, text)| Item { path: commands.join(name), text: (*text).to_owned() }),
            );
            Ok(PluginPlan { key: place.file.clone(), settings: Some((place, market)), items })
        }
        PluginAgent::Opencode => {
            if dir.is_some() {
                return Err(Error::new(ErrorCode::Usage, "--dir requires --agent claude"));
            }
            let path = opencode_dir(scope)?.join("plugin").join("swarm.js");
            let named = serde_json::Value::from(text(program)?).to_string();
            let script = OPENCODE.replace(OPENCODE_PROGRAM, &format!("const PROGRAM = {named};"));
            Ok(PluginPlan { key: path.clone(), settings: None, items: vec![Item { path, text: script }] })
        }
    }
}

/// Returns the files of the marketplace, by their paths in it, with hooks that run `program`. An error only if a
/// built-in file is broken.
pub fn marketplace(program: &Path) -> Result<Vec<(&'static str, String)>> {
    let file = |(path, text): &(&'static str, &str)| {
        let text = match path.ends_with("hooks.json") {
            true => hooks_file(text, program)?,
            false => (*text).to_owned(),
        };
        Ok((*path, text))
    };
    MARKETPLACE_FILES.iter().map(file).collect()
}

fn hooks_file(built_in: &str, program: &Path) -> Result<String> {
    let faulty = |what: String| Error::new(ErrorCode::Internal, format!("a built-in file: {what}"));
    let (value, _) = layout::parse(built_in).map_err(faulty)?;
    let value = merge::with_hooks(&value, needed(HookAgent::Claude), program).map_err(|e| faulty(e.0))?;
    layout::render(&value, &Layout::default()).map_err(faulty)
}

/// The current state of a file's path.
enum Stands {
    /// The file, as it should be.
    AsItShould,
    /// Nothing, or a file of an earlier installation.
    Ours,
    /// Something else.
    Foreign,
}

fn state(item: &Item, known: Option<&str>) -> Result<Stands> {
    match fs::read(&item.path) {
        Ok(bytes) if bytes == item.text.as_bytes() => Ok(Stands::AsItShould),
        Ok(bytes) if known == Some(&sha256(&bytes)) => Ok(Stands::Ours),
        Ok(_) => Ok(Stands::Foreign),
        // A dangling symbolic link belongs to the user too.
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

/// Returns the mode of a file: private in SWARM_DIR, elsewhere the user's umask applies.
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

/// Returns the missing directories on the way to `dir`, outermost first.
fn absent(dir: &Path) -> Vec<PathBuf> {
    let mut absent: Vec<PathBuf> =
        dir.ancestors().take_while(|dir| !dir.exists()).map(Path::to_owned).collect();
    absent.reverse();
    absent
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| Error::invalid(format!("the path '{}' is not valid UTF-8", path.display())))
}

fn foreign(path: &Path) -> Error {
    let text = format!("'{}' is not a file of swarm; nothing was installed", path.display());
    Error::new(ErrorCode::Exists, text).hint("move it away, then retry")
}

fn record_file(paths: &Paths) -> PathBuf {
    paths.hooks_dir().join("plugin.json")
}

/// Reads the record. Without a readable record, only files with exactly swarm's content count as swarm's.
fn read_record(paths: &Paths) -> Result<Record> {
    let path = record_file(paths);
    let bytes = if_exists(fs::read(&path)).map_err(|e| failed("read", &path, e))?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default())
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
    fn hooks_in_the_repository_match_those_of_install() {
        for (path, text) in marketplace(Path::new("swarm")).unwrap() {
            let built_in = MARKETPLACE_FILES.iter().find(|(known, _)| *known == path).unwrap().1;
            assert_eq!(text, built_in, "{path}");
        }
        assert!(OPENCODE.contains(OPENCODE_PROGRAM));
    }

    #[test]
    fn every_plugin_file_is_built_in() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/claude-plugin");
        let files = walkdir::WalkDir::new(&root).sort_by_file_name();
        let found = files.into_iter().filter_map(Result::ok).filter(|entry| entry.file_type().is_file());
        let mut found: Vec<String> =
            found.map(|entry| entry.path().strip_prefix(&root).unwrap().display().to_string()).collect();
        let mut known: Vec<&str> = MARKETPLACE_FILES.iter().map(|(path, _)| *path).collect();
        found.sort();
        known.sort_unstable();
        assert_eq!(found, known);
    }

    /// The skill shows the contract that a loop is fed with.
    #[test]
    fn contract_of_the_skill_matches_the_built_in_contract() {
        let (_, text) = MARKETPLACE_FILES.iter().find(|(path, _)| path.ends_with("/PROMPT.md")).unwrap();
        assert_eq!(*text, include_str!("../../state/src/session/contract.md"));
    }

    #[test]
    fn planning_skill_matches_the_prompt_of_ralph_plan() {
        let (_, text) = MARKETPLACE_FILES.iter().find(|(path, _)| *path == BARE_SKILL.0).unwrap();
        assert_eq!(*text, swarm_state::template::tasks::PLAN_SKILL);
    }

    /// Claude Code caches a plugin by its version, so each release needs its own version.
    #[test]
    fn the_plugins_have_the_programs_version() {
        for plugin in merge::PLUGINS {
            let path = format!("{plugin}/.claude-plugin/plugin.json");
            let text = MARKETPLACE_FILES.iter().find(|(known, _)| *known == path).unwrap().1;
            let value: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_eq!(value["version"], env!("CARGO_PKG_VERSION"), "{plugin}");
            assert_eq!(value["name"], plugin);
        }
    }
}
