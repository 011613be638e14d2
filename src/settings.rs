//! Settings files: which are read, which keys they may have, and which file set which key.
//!
//! The client reads them before a spawn and sends the daemon what it needs. Later files win, key by key: the user's
//! `config.toml`, then `swarm.toml` in the current directory, then `-c FILE`. An unknown key or a bad value is an
//! error with file, line and key.
//!
//! ```toml
//! command = ["claude", "--dangerously-skip-permissions"]   # what `spawn` runs without `-- CMD…`
//!
//! [ralph]                     # defaults of `spawn --ralph`
//! prompt_file = "PROMPT.md"   # relative to this file; `~/` is the home directory
//! max_iterations = 20
//! inactivity_timeout = 60     # seconds
//! question_timeout = 600      # seconds; 0 waits as long as it takes
//! done_pattern = "All tasks complete"
//!
//! [ralph_loop]                # defaults of `swarm loop`
//! max_iterations = 25         # 1 to 100
//! max_cost = 3.00             # US dollars; no limit when left out
//! max_time = 1800             # seconds; no limit when left out
//! completion_tag = "COMPLETE" # what the agent says when it is done, <promise>COMPLETE</promise>
//! agent = "claude"            # whose command is run when none stands after `--`
//!
//! [outage]                    # what agents say when they cannot work, beside what swarm knows; all are patterns
//! limit = ["out of credits until"]
//! overload = []               # also login (a person is needed) and forbidden (waiting is of no use)
//!
//! [tmux]
//! source = "~/.tmux.conf"     # read by swarm's own tmux server after its own settings
//! size = "200x50"
//!
//! [agents.claude]             # changes one key of a built-in profile; any other name is a new one
//! ready = ["^❯ "]
//!
//! [agents.codex]              # tells its tokens (with --json) and no cost: what they cost, for --max-cost
//! input_price = 1.25          # US dollars a million tokens
//! cached_price = 0.125        # those from the cache; as input_price when left out
//! output_price = 10.0
//! outage = { login = ["sign in again"] }
//! ```
//!
//! Environment variables are not settings. A command is a list and never one string, whose meaning would depend on a
//! shell.

use std::io;
use std::path::{Path, PathBuf};

use swarm_state::profiles::Profile;
use swarm_state::promise::Promise;

use crate::error::{Error, Result};
use crate::files::read_bounded;

mod agents;
mod outage;
mod read;
#[cfg(test)]
mod tests;

use read::{Fault, SettingEntry, SettingsFile};

/// The largest settings file.
const MAX_SETTINGS_BYTES: u64 = 1024 * 1024;

/// The merged settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// The default command of a worker; never an empty list.
    pub command: Option<Vec<String>>,
    /// Defaults of a loop.
    pub ralph: RalphDefaults,
    /// Defaults of `swarm loop`.
    pub ralph_loop: LoopDefaults,
    /// Settings of swarm's own tmux server.
    pub tmux: TmuxSettings,
    /// The profiles. Those that the settings changed or added come first, so that the first profile that matches a
    /// command is the right one.
    pub agents: Vec<Profile>,
    /// Which file set which key, sorted by key; for one key, in the order of the files.
    pub sources: Vec<Setting>,
    /// The existing files, in the order in which they were read.
    pub files: Vec<PathBuf>,
}

/// `[ralph]`: defaults for the flags of `spawn --ralph`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RalphDefaults {
    /// Absolute.
    pub prompt_file: Option<PathBuf>,
    /// At least 1.
    pub max_iterations: Option<u32>,
    /// Seconds, at least 1.
    pub inactivity_timeout: Option<u64>,
    /// Seconds; 0: no limit.
    pub question_timeout: Option<u64>,
    /// A valid pattern.
    pub done_pattern: Option<String>,
}

/// `[ralph_loop]`: defaults for the flags of `swarm loop`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoopDefaults {
    /// 1 to [`MAX_ITERATIONS`].
    pub max_iterations: Option<u32>,
    /// Millionths of a US dollar.
    pub max_cost: Option<u64>,
    /// Seconds.
    pub max_time: Option<u64>,
    /// A valid promise.
    pub completion_tag: Option<String>,
    /// The name of one of [`Settings::agents`].
    pub agent: Option<String>,
}

/// The maximum for the iterations of a `swarm loop`.
pub const MAX_ITERATIONS: u32 = 100;

/// `[tmux]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TmuxSettings {
    /// A tmux configuration to read after swarm's own; absolute.
    pub source: Option<PathBuf>,
    /// Columns and rows of a window without a client.
    pub size: Option<(u16, u16)>,
}

/// One key in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its full name, `ralph.max_iterations`.
    pub key: String,
    /// Its value as written in the file.
    pub value: String,
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// A later file set the key again.
    pub overridden: bool,
}

impl Settings {
    /// Reads and merges the files. `user` and `local` may be missing, `explicit` (`-c`) may not.
    ///
    /// # Errors
    /// `FILE:LINE: …` for the first error in a file, or a file that cannot be read.
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
        let mut changes = Changes::default();
        let optional = [Some(user), local].into_iter().flatten().map(|path| (path, false));
        for (path, required) in optional.chain(explicit.map(|path| (path, true))) {
            if let Some(text) = read_file(path, required)? {
                settings.files.push(path.to_owned());
                settings.apply(&SettingsFile::new(path, &text), &mut changes)?;
            }
        }
        settings.agents = agents::merge(built_in, &changes.agents)?;
        outage::spread(&changes.outage, &mut settings.agents);
        settings.mark_overridden();
        settings.check_agent()?;
        Ok(settings)
    }

    /// Any file may add an agent, so its name is looked up after all files are read.
    fn check_agent(&self) -> Result<()> {
        const AGENT_KEY: &str = "ralph_loop.agent";
        let Some(agent) = &self.ralph_loop.agent else { return Ok(()) };
        if self.agents.iter().any(|profile| profile.name == *agent) {
            return Ok(());
        }
        let set = self.sources.iter().rfind(|setting| setting.key == AGENT_KEY);
        let place = set.map(|s| format!("{}:{}: ", s.file.display(), s.line)).unwrap_or_default();
        let names: Vec<&str> = self.agents.iter().map(|profile| profile.name.as_str()).collect();
        Err(Error::invalid(format!("{place}'{AGENT_KEY}' names an unknown agent"))
            .hint(format!("one of: {}", names.join(", "))))
    }

    /// Merges one file.
    fn apply(&mut self, file: &SettingsFile<'_>, changes: &mut Changes) -> Result<()> {
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

    fn top(&mut self, entry: &SettingEntry<'_>, changes: &mut Changes) -> Result<(), Vec<Fault>> {
        match entry.key {
            "command" => self.set(entry, |s| {
                s.command = Some(entry.command()?);
                Ok(())
            }),
            "ralph" => entry.each(|entry| self.ralph(entry)),
            "ralph_loop" => entry.each(|entry| self.ralph_loop(entry)),
            "outage" => entry.each(|entry| {
                let (word, patterns) = outage::key(entry).map_err(|fault| vec![fault])?;
                changes.outage.insert(word, patterns);
                self.set(entry, |_| Ok(()))
            }),
            "tmux" => entry.each(|entry| self.tmux(entry)),
            "agents" => entry.each(|agent| {
                // A name without keys also adds an agent.
                changes.agents.entry(agent.key.to_owned()).or_default();
                agent.each(|entry| {
                    let (field, value) = agents::read(entry).map_err(|fault| vec![fault])?;
                    changes.agents.entry(agent.key.to_owned()).or_default().insert(field.to_owned(), value);
                    self.set(entry, |_| Ok(()))
                })
            }),
            _ => {
                let known = ["command", "ralph", "ralph_loop", "outage", "tmux", "agents"];
                Err(vec![entry.unknown(&known)])
            }
        }
    }

    fn ralph(&mut self, entry: &SettingEntry<'_>) -> Result<(), Vec<Fault>> {
        self.set(entry, |settings| {
            let ralph = &mut settings.ralph;
            match entry.key {
                "prompt_file" => ralph.prompt_file = Some(entry.path()?),
                "max_iterations" => ralph.max_iterations = Some(entry.count()?),
                "inactivity_timeout" => ralph.inactivity_timeout = Some(entry.count()?),
                "question_timeout" => ralph.question_timeout = Some(entry.count_or_zero()?),
                "done_pattern" => ralph.done_pattern = Some(entry.pattern()?),
                _ => {
                    let known = [
                        "prompt_file",
                        "max_iterations",
                        "inactivity_timeout",
                        "question_timeout",
                        "done_pattern",
                    ];
                    return Err(entry.unknown(&known));
                }
            }
            Ok(())
        })
    }

    fn ralph_loop(&mut self, entry: &SettingEntry<'_>) -> Result<(), Vec<Fault>> {
        self.set(entry, |settings| {
            let defaults = &mut settings.ralph_loop;
            match entry.key {
                "max_iterations" => defaults.max_iterations = Some(entry.count_to(MAX_ITERATIONS)?),
                "max_cost" => defaults.max_cost = Some(entry.dollars()?),
                "max_time" => defaults.max_time = Some(entry.count()?),
                "completion_tag" => defaults.completion_tag = Some(tag(entry)?),
                "agent" => defaults.agent = Some(entry.text()?),
                _ => {
                    let known = ["max_iterations", "max_cost", "max_time", "completion_tag", "agent"];
                    return Err(entry.unknown(&known));
                }
            }
            Ok(())
        })
    }

    fn tmux(&mut self, entry: &SettingEntry<'_>) -> Result<(), Vec<Fault>> {
        self.set(entry, |settings| {
            match entry.key {
                "source" => settings.tmux.source = Some(entry.path()?),
                "size" => settings.tmux.size = Some(size(&entry.text()?).ok_or_else(|| entry.must_be(SIZE))?),
                _ => return Err(entry.unknown(&["source", "size"])),
            }
            Ok(())
        })
    }

    /// Sets one key and records its source.
    fn set(
        &mut self,
        entry: &SettingEntry<'_>,
        set: impl FnOnce(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Vec<Fault>> {
        set(self).map_err(|fault| vec![fault])?;
        self.sources.push(entry.setting());
        Ok(())
    }

    fn mark_overridden(&mut self) {
        // The sort is stable, so the sources of one key stay in the order of the files.
        self.sources.sort_by(|a, b| a.key.cmp(&b.key));
        for at in 1..self.sources.len() {
            self.sources[at - 1].overridden = self.sources[at - 1].key == self.sources[at].key;
        }
    }
}

/// The changes to profiles, from all files.
#[derive(Default)]
struct Changes {
    agents: agents::ProfileChanges,
    outage: outage::Wordings,
}

/// A valid promise.
fn tag(entry: &SettingEntry<'_>) -> Result<String, Fault> {
    let text = entry.text()?;
    match Promise::new(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(entry.fault(&format!("is not a valid promise: {error}"))),
    }
}

/// The format of [`size`], for messages.
pub const SIZE: &str = "a size like \"200x50\" (20x5 to 1000x500)";

/// Parses columns and rows, such as `200x50`. Below the limits no agent's screen is readable; above them a capture is
/// too large.
pub fn size(text: &str) -> Option<(u16, u16)> {
    let (columns, rows) = text.split_once('x')?;
    let (columns, rows) = (columns.parse().ok()?, rows.parse().ok()?);
    ((20..=1000).contains(&columns) && (5..=500).contains(&rows)).then_some((columns, rows))
}

/// A file's text; `None` if it is missing and not required.
fn read_file(path: &Path, required: bool) -> Result<Option<String>> {
    let text = read_bounded(path, MAX_SETTINGS_BYTES).and_then(|bytes| {
        String::from_utf8(bytes).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
    });
    match text {
        Ok(text) => Ok(Some(text)),
        Err(error) if !required && is_absent(&error) => Ok(None),
        Err(error) => Err(Error::invalid(format!("cannot read settings file '{}': {error}", path.display()))),
    }
}

/// The file does not exist, also because a directory above it is a file.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
