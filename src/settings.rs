//! Settings: which files are read, what may stand in them, and which one set what.
//!
//! The client reads them before a spawn; what the daemon needs of them travels in the request. Later files
//! win, key by key: the user's `config.toml`, `swarm.toml` of the current directory, then `-c FILE`.
//! Nothing is passed over in silence: an unknown key or a bad value is an error with file, line and key.
//!
//! ```toml
//! command = ["claude", "--dangerously-skip-permissions"]   # what `spawn` runs without `-- CMD…`
//!
//! [ralph]                     # defaults of `spawn --ralph`
//! prompt_file = "PROMPT.md"   # relative to this file; `~/` is the home directory
//! max_iterations = 20
//! inactivity_timeout = 60     # seconds
//! done_pattern = "All tasks complete"
//!
//! [tmux]
//! source = "~/.tmux.conf"     # read by swarm's own tmux server after its own settings
//! size = "200x50"
//!
//! [agents.claude]             # changes one key of a built-in profile; any other name is a new one
//! ready = ["^❯ "]
//! ```
//!
//! Deliberately absent: environment variables as settings, and a command line given as one string (what it
//! means would depend on a shell).

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use swarm_state::profiles::Profile;

use crate::error::{Error, Result};

mod agents;
mod read;
#[cfg(test)]
mod tests;

use read::{Entry, Fault, Source as File};

/// The most bytes of a file.
const MAX_FILE: u64 = 1024 * 1024;

/// What the files say, merged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// The command of a worker that names none; never an empty list.
    pub command: Option<Vec<String>>,
    /// Defaults of a loop.
    pub ralph: RalphDefaults,
    /// For swarm's own tmux server.
    pub tmux: TmuxSettings,
    /// The profiles: first those that the settings changed or added, then the other built-in ones, so that
    /// the first row that knows a command is the right one.
    pub agents: Vec<Profile>,
    /// Which file set what, in the order of the keys; of one key, in the order of the files.
    pub sources: Vec<Setting>,
    /// The files that were there, in the order in which they were read.
    pub files: Vec<PathBuf>,
}

/// `[ralph]`: what `spawn --ralph` takes when its flags do not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RalphDefaults {
    /// Absolute.
    pub prompt_file: Option<PathBuf>,
    /// At least 1.
    pub max_iterations: Option<u32>,
    /// Seconds, at least 1.
    pub inactivity_timeout: Option<u64>,
    /// A pattern that compiles.
    pub done_pattern: Option<String>,
}

/// `[tmux]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TmuxSettings {
    /// A tmux configuration to read after swarm's own; absolute.
    pub source: Option<PathBuf>,
    /// Columns and rows of a window that nobody is attached to.
    pub size: Option<(u16, u16)>,
}

/// One key in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its full name, `ralph.max_iterations`.
    pub key: String,
    /// Its value as it stands in the file.
    pub value: String,
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// A later file set it again.
    pub overridden: bool,
}

impl Settings {
    /// Reads and merges the files. `user` and `local` need not be there, `explicit` (`-c`) must.
    ///
    /// # Errors
    /// `FILE:LINE: …` for the first thing that is wrong in a file; or a file that cannot be read.
    pub fn load(user: &Path, local: Option<&Path>, explicit: Option<&Path>) -> Result<Self> {
        Self::load_over(agents::built_in(), user, local, explicit)
    }

    fn load_over(
        built_in: Vec<Profile>,
        user: &Path,
        local: Option<&Path>,
        explicit: Option<&Path>,
    ) -> Result<Self> {
        let mut settings = Self::default();
        let mut changes = BTreeMap::new();
        let optional = [Some(user), local].into_iter().flatten().map(|path| (path, false));
        for (path, required) in optional.chain(explicit.map(|path| (path, true))) {
            if let Some(text) = read_file(path, required)? {
                settings.files.push(path.to_owned());
                settings.apply(&File::new(path, &text), &mut changes)?;
            }
        }
        settings.agents = agents::merge(built_in, &changes)?;
        settings.mark_overridden();
        Ok(settings)
    }

    /// Takes over what one file says.
    fn apply(&mut self, file: &File<'_>, changes: &mut agents::Changes) -> Result<()> {
        let table = file.parse()?;
        let mut faults = vec![];
        for entry in file.entries(&table) {
            if let Err(fault) = self.top(&entry, changes) {
                faults.extend(fault);
            }
        }
        match faults.into_iter().min_by_key(|fault| fault.at) {
            Some(fault) => Err(file.error(&fault)),
            None => Ok(()),
        }
    }

    fn top(&mut self, entry: &Entry<'_>, changes: &mut agents::Changes) -> Result<(), Vec<Fault>> {
        match entry.key {
            "command" => self.set(entry, |s| {
                s.command = Some(entry.command()?);
                Ok(())
            }),
            "ralph" => entry.each(|entry| self.ralph(entry)),
            "tmux" => entry.each(|entry| self.tmux(entry)),
            "agents" => entry.each(|agent| {
                agent.each(|entry| {
                    let (field, value) = agents::read(entry).map_err(|fault| vec![fault])?;
                    changes.entry(agent.key.to_owned()).or_default().insert(field.to_owned(), value);
                    self.set(entry, |_| Ok(()))
                })
            }),
            _ => Err(vec![entry.unknown(&["command", "ralph", "tmux", "agents"])]),
        }
    }

    fn ralph(&mut self, entry: &Entry<'_>) -> Result<(), Vec<Fault>> {
        self.set(entry, |settings| {
            let ralph = &mut settings.ralph;
            match entry.key {
                "prompt_file" => ralph.prompt_file = Some(entry.path()?),
                "max_iterations" => ralph.max_iterations = Some(entry.count()?),
                "inactivity_timeout" => ralph.inactivity_timeout = Some(entry.count()?),
                "done_pattern" => ralph.done_pattern = Some(entry.pattern()?),
                _ => {
                    let known = ["prompt_file", "max_iterations", "inactivity_timeout", "done_pattern"];
                    return Err(entry.unknown(&known));
                }
            }
            Ok(())
        })
    }

    fn tmux(&mut self, entry: &Entry<'_>) -> Result<(), Vec<Fault>> {
        self.set(entry, |settings| {
            match entry.key {
                "source" => settings.tmux.source = Some(entry.path()?),
                "size" => settings.tmux.size = Some(size(&entry.text()?).ok_or_else(|| entry.must_be(SIZE))?),
                _ => return Err(entry.unknown(&["source", "size"])),
            }
            Ok(())
        })
    }

    /// Sets one key and notes who did.
    fn set(
        &mut self,
        entry: &Entry<'_>,
        set: impl FnOnce(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Vec<Fault>> {
        set(self).map_err(|fault| vec![fault])?;
        self.sources.push(entry.setting());
        Ok(())
    }

    fn mark_overridden(&mut self) {
        // Stable: of one key, the files stay in their order.
        self.sources.sort_by(|a, b| a.key.cmp(&b.key));
        for at in 1..self.sources.len() {
            self.sources[at - 1].overridden = self.sources[at - 1].key == self.sources[at].key;
        }
    }
}

/// What [`size`] takes.
pub const SIZE: &str = "a size like \"200x50\" (20x5 to 1000x500)";

/// `200x50`: columns and rows. Below the limits no agent's screen can be read, above them one look at it is
/// too much text.
pub fn size(text: &str) -> Option<(u16, u16)> {
    let (columns, rows) = text.split_once('x')?;
    let (columns, rows) = (columns.parse().ok()?, rows.parse().ok()?);
    ((20..=1000).contains(&columns) && (5..=500).contains(&rows)).then_some((columns, rows))
}

/// A file's text; `None` when it is not there and need not be.
fn read_file(path: &Path, required: bool) -> Result<Option<String>> {
    match read_regular(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if !required && is_absent(&error) => Ok(None),
        Err(error) => Err(Error::invalid(format!("cannot read settings file '{}': {error}", path.display()))),
    }
}

/// The text of a regular file. Anything else may have no end, or block, already when it is opened.
fn read_regular(path: &Path) -> io::Result<String> {
    let found = fs::metadata(path)?;
    if !found.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut text = String::new();
    fs::File::open(path)?.take(MAX_FILE + 1).read_to_string(&mut text)?;
    if found.len().max(text.len() as u64) > MAX_FILE {
        return Err(io::Error::other("it is longer than 1 MiB"));
    }
    Ok(text)
}

/// There is no such file; or a directory above it is a file, and then there is none either.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
