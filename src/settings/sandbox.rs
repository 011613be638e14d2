//! `[sandbox]`: defaults of `--sandbox` and `--net`, and further paths.

use std::path::PathBuf;

use swarm_state::network::{AllowedHost, parse_hosts};
use swarm_state::sandbox::{SandboxNet, SandboxWish};

use super::read::{Fault, SettingEntry};
use super::{Key, set};

/// `[sandbox]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxDefaults {
    /// The sandbox of every worker.
    pub kind: Option<SandboxWish>,
    /// Its network.
    pub net: Option<SandboxNet>,
    /// Hosts that every sandbox with `--net allow` may reach.
    pub hosts: Option<Vec<AllowedHost>>,
    /// Paths that every sandbox may write; absolute.
    pub writable: Option<Vec<PathBuf>>,
    /// Paths that every sandbox may read.
    pub readable: Option<Vec<PathBuf>>,
    /// Paths that no sandbox may see.
    pub hidden: Option<Vec<PathBuf>>,
}

pub(super) const SANDBOX_KEYS: &[Key<SandboxDefaults>] = &[
    ("kind", "", |to, entry| set(&mut to.kind, kind(entry))),
    ("net", "\"on\"", |to, entry| set(&mut to.net, net(entry))),
    ("hosts", "[]", |to, entry| set(&mut to.hosts, hosts(entry))),
    ("writable", "[]", |to, entry| set(&mut to.writable, entry.paths())),
    ("readable", "[]", |to, entry| set(&mut to.readable, entry.paths())),
    ("hidden", "[]", |to, entry| set(&mut to.hidden, entry.paths())),
];

fn kind(entry: &SettingEntry<'_>) -> Result<SandboxWish, Fault> {
    SandboxWish::of(&entry.text()?)
        .ok_or_else(|| entry.must_be("\"docker\", \"bwrap\", \"none\" or \"auto\""))
}

fn net(entry: &SettingEntry<'_>) -> Result<SandboxNet, Fault> {
    SandboxNet::of(&entry.text()?).ok_or_else(|| entry.must_be("\"on\", \"off\" or \"allow\""))
}

fn hosts(entry: &SettingEntry<'_>) -> Result<Vec<AllowedHost>, Fault> {
    let parsed = entry.texts()?.iter().map(|text| parse_hosts(text)).collect::<Result<Vec<_>, _>>();
    parsed.map(|hosts| hosts.concat()).map_err(|error| entry.fault(&error))
}
