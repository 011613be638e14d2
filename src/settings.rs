//! Settings files: which are read, and which keys they may have.
//!
//! The client reads them before a spawn and sends the daemon what it needs. Later files win, key by key: the user's
//! `config.toml`, then `swarm.toml` in the current directory, then `-c FILE`. An unknown key or a bad value is an error
//! with file, line and key. `man swarm-config` lists the keys, and `template.toml` is the file that `config edit`
//! starts with.
//!
//! Environment variables are not settings. A command is a list and never one string, whose meaning would depend on a
//! shell.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use swarm_state::caps::Caps;
use swarm_state::host::{HostName, HostSpec};
use swarm_state::outage::OutageKind;
use swarm_state::profiles::Profile;
use swarm_state::runners::Runner;

use crate::error::{Error, Result};

mod agents;
mod file;
mod guard;
mod hosts;
mod loops;
mod notify;
mod outage;
mod quota;
mod read;
mod runners;
mod sandbox;
mod sections;
#[cfg(test)]
mod tests;

use file::read_file;
pub use guard::GuardSettings;
use loops::{LOOP_KEYS, RALPH_KEYS};
pub use loops::{LoopDefaults, MAX_ITERATIONS, RalphDefaults};
pub use notify::NotifySettings;
pub use quota::QuotaSettings;
pub use read::SettingValue;
use read::{Fault, SettingEntry, SettingsFile};
pub use sandbox::SandboxDefaults;
pub use sections::{DaemonSettings, TmuxSettings};

/// The merged settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// The default command of a worker; never an empty list.
    pub command: Option<Vec<String>>,
    /// Defaults of a loop.
    pub ralph: RalphDefaults,
    /// Defaults of `swarm loop`.
    pub ralph_loop: LoopDefaults,
    /// Caps and limits of workers.
    pub limits: Caps,
    /// Settings of swarm's own tmux server.
    pub tmux: TmuxSettings,
    /// Defaults of sandboxes.
    pub sandbox: SandboxDefaults,
    /// Settings of the daemon, which reads the user's file alone.
    pub daemon: DaemonSettings,
    /// Settings of the guard, which only the user's file may have.
    pub guard: GuardSettings,
    /// Notifications, which only the user's file may have.
    pub notify: NotifySettings,
    /// Parks of accounts, which only the user's file may have.
    pub quota: QuotaSettings,
    /// The profiles. Those that the settings changed or added come first, so that the first profile that matches a
    /// command is the right one.
    pub agents: Vec<Profile>,
    /// The test runners that the settings change or add.
    pub runners: Vec<Runner>,
    /// The remote hosts, by name.
    pub hosts: BTreeMap<HostName, HostSpec>,
    /// The existing files, in the order in which they were read.
    pub files: Vec<PathBuf>,
    /// Every key of every file, in the order in which they were read.
    pub values: Vec<SettingValue>,
}

/// An error and its file; an empty path if it belongs to none.
type FileError = (PathBuf, Error);

/// A new settings file: every line is a comment.
pub(crate) const TEMPLATE: &str = include_str!("settings/template.toml");

impl Settings {
    /// Reads and merges the files. `user` and `local` may be missing, `explicit` (`-c`) may not. The error is
    /// `FILE:LINE: …` for the first error in a file, or that of a file that cannot be read.
    pub fn load(user: &Path, local: Option<&Path>, explicit: Option<&Path>) -> Result<Self> {
        Self::load_all(user, local, explicit).map_err(|mut errors| errors.swap_remove(0).1)
    }

    /// As [`Settings::load`], with every error in every file: at least one.
    pub fn load_all(
        user: &Path,
        local: Option<&Path>,
        explicit: Option<&Path>,
    ) -> Result<Self, Vec<FileError>> {
        Self::load_over(swarm_state::profiles::table(), user, local, explicit)
    }

    fn load_over(
        built_in: Vec<Profile>,
        user: &Path,
        local: Option<&Path>,
        explicit: Option<&Path>,
    ) -> Result<Self, Vec<FileError>> {
        let mut settings = Self::default();
        let mut changes = Changes::default();
        let mut errors = vec![];
        let of_no_file = |error| vec![(PathBuf::new(), error)];
        let optional = [Some(user), local].into_iter().flatten().map(|path| (path, false));
        let is_project = |path: &Path| Some(path) == local;
        for (path, required) in optional.chain(explicit.map(|path| (path, true))) {
            match read_file(path, required) {
                Ok(Some(text)) => {
                    changes.is_project = is_project(path);
                    errors.extend(settings.read_text(path, &text, &mut changes));
                }
                Ok(None) => {}
                Err(error) => errors.push((path.to_owned(), error)),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        guard::check(&settings.values, user).map_err(|error| vec![error])?;
        settings.agents = agents::merge(built_in, &changes.agents).map_err(of_no_file)?;
        outage::spread(&changes.outage, &mut settings.agents);
        settings.check_agent().map_err(|error| vec![error])?;
        runners::check(&settings.runners).map_err(of_no_file)?;
        Ok(settings)
    }

    /// Reads the text of one file and returns its errors.
    fn read_text(&mut self, path: &Path, text: &str, changes: &mut Changes) -> Vec<FileError> {
        self.files.push(path.to_owned());
        let file = SettingsFile::new(path, text);
        let faults = file.each(|entry| {
            entry.collect(
                if ["agents", "runners", "quota", "hosts"].contains(&entry.key) { 2 } else { 1 },
                &mut self.values,
            );
            self.read(entry, changes)
        });
        let faults = faults.err().unwrap_or_default();
        let sections = |fault: &Fault| fault.unknown.as_deref().map(sections_of).unwrap_or_default();
        faults.iter().map(|fault| (path.to_owned(), file.error(fault, &sections(fault)))).collect()
    }

    /// Any file may add an agent, so its name is looked up after all files are read.
    fn check_agent(&self) -> Result<(), FileError> {
        let set = self.values.iter().rfind(|value| value.key == "ralph_loop.agent");
        let (Some(agent), Some(set)) = (&self.ralph_loop.agent, set) else { return Ok(()) };
        if self.agents.iter().any(|profile| profile.name == *agent) {
            return Ok(());
        }
        let names: Vec<&str> = self.agents.iter().map(|profile| profile.name.as_str()).collect();
        let SettingValue { file, line, .. } = set;
        let message = format!("{}:{line}: 'ralph_loop.agent' names an unknown agent", file.display());
        Err((file.clone(), Error::invalid(message).hint(format!("one of: {}", names.join(", ")))))
    }

    /// Reads one top-level key.
    fn read(&mut self, entry: &SettingEntry<'_>, changes: &mut Changes) -> Result<(), Fault> {
        match entry.key {
            "command" => set(&mut self.command, entry.command()),
            "ralph" => entry.each(|entry| set_key(RALPH_KEYS, &mut self.ralph, entry)),
            "ralph_loop" => entry.each(|entry| set_key(LOOP_KEYS, &mut self.ralph_loop, entry)),
            "outage" => entry.each(|entry| {
                let (word, patterns) = outage::key(entry)?;
                changes.outage.insert(word, patterns);
                Ok(())
            }),
            "tmux" => entry.each(|entry| set_key(TMUX_KEYS, &mut self.tmux, entry)),
            "sandbox" if changes.is_project => Err(entry.fault(agents::PERSONAL)),
            "sandbox" => entry.each(|entry| set_key(sandbox::SANDBOX_KEYS, &mut self.sandbox, entry)),
            "limits" => entry.each(|entry| set_key(LIMIT_KEYS, &mut self.limits, entry)),
            "daemon" => entry.each(|entry| set_key(DAEMON_KEYS, &mut self.daemon, entry)),
            "guard" => entry.each(|entry| set_key(guard::GUARD_KEYS, &mut self.guard, entry)),
            "notify" => entry.each(|entry| set_key(notify::NOTIFY_KEYS, &mut self.notify, entry)),
            "quota" => entry.each(|agent| quota::read(&mut self.quota, agent)),
            "agents" => entry.each(|agent| {
                if changes.is_project {
                    agents::check_project(agent)?;
                }
                // A name without keys also adds an agent.
                let changes = changes.agents.entry(agent.key.to_owned()).or_default();
                agent.each(|entry| {
                    let (field, value) = agents::read(entry)?;
                    changes.insert(field.to_owned(), value);
                    Ok(())
                })
            }),
            "runners" => entry.each(|row| runners::read(&mut self.runners, row)),
            "hosts" if changes.is_project => Err(entry.fault(agents::PERSONAL)),
            "hosts" => entry.each(|host| hosts::read(&mut self.hosts, host)),
            _ => Err(entry.unknown(&[
                "command",
                "ralph",
                "ralph_loop",
                "outage",
                "tmux",
                "sandbox",
                "limits",
                "daemon",
                "guard",
                "notify",
                "quota",
                "agents",
                "runners",
                "hosts",
            ])),
        }
    }
}

/// A key, its default as in TOML (empty: none), and how its value is read into its field.
type Key<T> = (&'static str, &'static str, fn(&mut T, &SettingEntry<'_>) -> Result<(), Fault>);

const TMUX_KEYS: &[Key<TmuxSettings>] = &[
    ("size", "\"200x50\"", |to, entry| {
        let size = size(&entry.text()?).ok_or_else(|| entry.must_be(SIZE));
        set(&mut to.size, size)
    }),
    ("source", "", |to, entry| set(&mut to.source, entry.path())),
];

const LIMIT_KEYS: &[Key<Caps>] = &[
    ("memory", "", |to, entry| set(&mut to.memory, entry.memory())),
    ("cpus", "", |to, entry| set(&mut to.cpu_percent, entry.cpus())),
    ("pids", "", |to, entry| set(&mut to.pids, entry.pids())),
    ("pressure", "", |to, entry| set(&mut to.pressure, entry.count_to(100))),
];

const DAEMON_KEYS: &[Key<DaemonSettings>] =
    &[("resume_after_shutdown", "false", |to, entry| set(&mut to.resume_after_shutdown, entry.flag()))];

/// Every key except those of agents, as `SECTION.KEY`, and its default.
pub fn keys() -> Vec<(String, Option<toml::Value>)> {
    fn of<T>(section: &str, keys: &[Key<T>]) -> Vec<(String, Option<toml::Value>)> {
        let default =
            |text| format!("value = {text}").parse().ok().and_then(|mut t: toml::Table| t.remove("value"));
        keys.iter().map(|(key, text, _)| (format!("{section}.{key}"), default(text))).collect()
    }
    let outage = OutageKind::ALL.map(|kind| (format!("outage.{}", kind.word()), None));
    [
        vec![("command".to_owned(), None)],
        of("ralph", RALPH_KEYS),
        of("ralph_loop", LOOP_KEYS),
        outage.to_vec(),
        of("tmux", TMUX_KEYS),
        of("sandbox", sandbox::SANDBOX_KEYS),
        of("limits", LIMIT_KEYS),
        of("daemon", DAEMON_KEYS),
        of("guard", guard::GUARD_KEYS),
        of("notify", notify::NOTIFY_KEYS),
        quota::all_keys(),
    ]
    .concat()
}

/// Every key of `[agents.NAME]`.
pub fn agent_keys() -> impl Iterator<Item = &'static str> {
    agents::AGENT_KEYS.iter().map(|(key, _, _)| *key)
}

/// Every key of `[runners.NAME]`.
pub fn runner_keys() -> impl Iterator<Item = &'static str> {
    runners::RUNNER_KEYS.iter().map(|(key, _)| *key)
}

/// Every key of `[hosts.NAME]`.
pub fn host_keys() -> impl Iterator<Item = &'static str> {
    hosts::HOST_KEYS.into_iter()
}

/// The sections that have a key, for messages.
fn sections_of(key: &str) -> Vec<String> {
    let keys = keys();
    let section = |full: &String| match full.rsplit_once('.') {
        Some((section, last)) => (last == key).then(|| format!("[{section}]")),
        None => (full == key).then(|| "the top level, above all sections".to_owned()),
    };
    let agents = agent_keys().any(|known| known == key).then(|| "[agents.NAME]".to_owned());
    let runners = runner_keys().any(|known| known == key).then(|| "[runners.NAME]".to_owned());
    let hosts = host_keys().any(|known| known == key).then(|| "[hosts.NAME]".to_owned());
    let mut found: Vec<String> =
        keys.iter().filter_map(|(full, _)| section(full)).chain(agents).chain(runners).chain(hosts).collect();
    // The long words of the top level come last.
    found.sort_by_key(|section| !section.starts_with('['));
    found
}

fn set<T>(field: &mut Option<T>, value: Result<T, Fault>) -> Result<(), Fault> {
    *field = Some(value?);
    Ok(())
}

/// Sets the field of one key, or refuses an unknown key.
fn set_key<T>(keys: &[Key<T>], to: &mut T, entry: &SettingEntry<'_>) -> Result<(), Fault> {
    match keys.iter().find(|(key, _, _)| *key == entry.key) {
        Some((_, _, read)) => read(to, entry),
        None => Err(entry.unknown(&keys.iter().map(|(key, _, _)| *key).collect::<Vec<_>>())),
    }
}

/// Values from all files that [`Settings`] does not hold.
#[derive(Default)]
struct Changes {
    /// The file that is being read is in a project, where agents can change it.
    is_project: bool,
    agents: agents::ProfileChanges,
    outage: outage::Wordings,
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
