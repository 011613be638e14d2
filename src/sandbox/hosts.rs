//! The proxy of a run: its hosts, its socket, and its reports to the daemon.
//!
//! The daemon writes the hosts into the folder of the run, at its start and when a person adds one; the proxy in the
//! wrapper reads them for each request. So the network of an agent needs no daemon.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use swarm_state::network::{AllowList, AllowedHost, HostRefusal, RequestTarget};
use swarm_state::sandbox::SandboxNet;

use super::WorkerSandbox;
use super::proxy::{Proxy, ProxyRules};
use crate::files::{if_exists, read_bounded, write_unsynced};
use crate::hooks::report::report;
use crate::protocol::{HookNews, HookParams};

/// The list of hosts in the folder of a run.
const HOSTS_FILE: &str = "hosts.json";
/// The directory of the proxy's socket, there too. The sandbox has it under the same path.
pub(crate) const PROXY_DIR: &str = "proxy";
/// The maximum size of the list.
const MAX_HOSTS_BYTES: u64 = 1 << 20;

/// The proxy of a run, as its launch describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaneProxy {
    /// The folder of the run.
    pub dir: PathBuf,
    /// The daemon's socket.
    pub daemon: PathBuf,
    /// The worker.
    pub worker: String,
    /// The run.
    pub run: u64,
}

/// Writes the hosts into the folder of a run.
pub(crate) fn write_hosts(dir: &Path, hosts: &[AllowedHost]) -> io::Result<()> {
    write_unsynced(&dir.join(HOSTS_FILE), &serde_json::to_vec(hosts)?)
}

/// The rules of an agent's proxy.
struct PaneRules {
    proxy: PaneProxy,
    /// The hosts that were reported. Each is reported once in a run.
    reported: Mutex<BTreeSet<String>>,
}

/// Starts the proxy of a run.
pub(crate) fn start_pane_proxy(proxy: &PaneProxy) -> io::Result<Proxy> {
    Proxy::start(&proxy.dir.join(PROXY_DIR), Arc::new(PaneRules::new(proxy.clone())))
}

impl PaneRules {
    fn new(proxy: PaneProxy) -> Self {
        Self { proxy, reported: Mutex::default() }
    }
}

impl ProxyRules for PaneRules {
    /// A list that cannot be read allows nothing.
    fn list(&self) -> AllowList {
        let bytes = read_bounded(&self.proxy.dir.join(HOSTS_FILE), MAX_HOSTS_BYTES);
        AllowList(bytes.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default())
    }

    fn refused(&self, target: &RequestTarget, why: &HostRefusal) {
        let private = match why {
            HostRefusal::NotListed => None,
            HostRefusal::PrivateAddress(address) => Some(*address),
        };
        let name = target.to_string();
        let parsed = name.parse::<AllowedHost>();
        let is_new = self.reported.lock().is_ok_and(|mut reported| reported.insert(name));
        if let (Ok(host), true) = (parsed, is_new) {
            let PaneProxy { daemon, worker, run, .. } = self.proxy.clone();
            // The answer to the agent does not wait for the daemon.
            tokio::task::spawn_blocking(move || {
                let news = HookNews::HostRefused { host, private };
                let run = Some(run);
                report(&daemon, HookParams { name: worker, run, session: None, transcript: None, news })
            });
        }
    }

    fn hint(&self, target: &RequestTarget) -> String {
        format!("swarm allow {} {target}", self.proxy.worker)
    }
}

/// The rules for checks: a list that does not change.
struct CheckRules {
    hosts: Vec<AllowedHost>,
    worker: String,
}

/// The proxy of checks. It ends, and its directory is deleted, when this is dropped.
pub(crate) struct CheckProxy {
    pub(crate) dir: PathBuf,
    _proxy: Proxy,
}

impl CheckProxy {
    /// Starts the proxy for checks in `dir`, which is created; `None` for a sandbox that needs none.
    pub(crate) fn start(sandbox: &WorkerSandbox, dir: &Path) -> io::Result<Option<Self>> {
        if sandbox.spec.net != SandboxNet::Allow {
            return Ok(None);
        }
        let rules = CheckRules { hosts: sandbox.spec.hosts.clone(), worker: sandbox.worker.clone() };
        prepare(dir)?;
        let proxy = Proxy::start(dir, Arc::new(rules))?;
        Ok(Some(Self { dir: dir.to_owned(), _proxy: proxy }))
    }
}

impl Drop for CheckProxy {
    fn drop(&mut self) {
        // The next one replaces what could not be deleted.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Creates the directory of a proxy's socket, without what an earlier proxy left.
pub(crate) fn prepare(dir: &Path) -> io::Result<()> {
    if_exists(std::fs::remove_dir_all(dir))?;
    std::fs::DirBuilder::new().mode(0o700).create(dir)
}

impl ProxyRules for CheckRules {
    fn list(&self) -> AllowList {
        AllowList(self.hosts.clone())
    }

    fn refused(&self, target: &RequestTarget, _: &HostRefusal) {
        tracing::info!(worker = %self.worker, %target, "a check requested a host that is not allowed");
    }

    fn hint(&self, target: &RequestTarget) -> String {
        format!("swarm allow {} {target}", self.worker)
    }
}
