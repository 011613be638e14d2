//! The place of a daemon: this machine, or a remote host that is reached through ssh.
//!
//! Each host runs its own daemon and owns its workers. The client connects to one of them, or to all. Only [`ssh`]
//! starts ssh. Deliberately absent: the protocol, and decisions about ssh's options and failures
//! ([`swarm_state::host`]).

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use swarm_state::host::{CONNECT_TIMEOUT_SECONDS, HostName, HostSpec, LOCAL, SshFault};

use crate::error::{Error, ErrorCode, Result};
use crate::paths::sockets::stand_in_dir;
use crate::paths::{MAX_SOCKET_PATH_BYTES, Paths, private_dir};
use crate::shell::{join, quote};

pub(crate) mod code;
pub(crate) mod include;
pub(crate) mod ssh;

/// The machine of a daemon, and the paths of this machine.
#[derive(Clone, Debug)]
pub struct Place {
    paths: Paths,
    host: Option<Arc<RemoteHost>>,
}

#[derive(Debug)]
pub(crate) struct RemoteHost {
    pub(crate) name: HostName,
    pub(crate) spec: HostSpec,
    /// A connection of this process was lost. Other processes may connect again at the same time.
    pub(crate) was_lost: AtomicBool,
    /// `swarm host check` runs, so that errors do not suggest it.
    pub(crate) is_checked: AtomicBool,
}

impl Place {
    pub(crate) fn remote(paths: Paths, name: HostName, spec: HostSpec) -> Self {
        let (was_lost, is_checked) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { paths, host: Some(Arc::new(RemoteHost { name, spec, was_lost, is_checked })) }
    }

    /// The host, unless it is this machine.
    pub(crate) fn host(&self) -> Option<&RemoteHost> {
        self.host.as_deref()
    }

    /// The path of ssh's shared connections, in which ssh replaces `%C` by a hash of the destination.
    pub(crate) fn ssh_control(&self) -> PathBuf {
        // A hash has 40 characters, and a temporary name that ssh binds has 17 more.
        const MORE_BYTES: usize = 40 + 17;
        let path = self.root().join("ssh/%C");
        if path.as_os_str().len() + MORE_BYTES <= MAX_SOCKET_PATH_BYTES {
            return path;
        }
        PathBuf::from(format!("/tmp/swarm-{}/ssh-%C", nix::unistd::geteuid()))
    }

    /// Makes the directory of the shared connections, private to this user.
    fn prepare_ssh(&self) -> Result<()> {
        match self.ssh_control().parent() {
            Some(dir) if !dir.starts_with(self.root()) => stand_in_dir(dir),
            Some(dir) => private_dir(self.root()).and_then(|()| private_dir(dir)),
            None => Ok(()),
        }
    }

    /// The file with the last answer of a remote host.
    pub(crate) fn last_answer(&self) -> Option<PathBuf> {
        Some(self.root().join("hosts").join(format!("{}.json", self.host_name()?)))
    }

    /// The name of the host, unless it is this machine.
    pub(crate) fn host_name(&self) -> Option<&HostName> {
        self.host().map(|host| &host.name)
    }
}

impl From<&Paths> for Place {
    fn from(paths: &Paths) -> Self {
        Self { paths: paths.clone(), host: None }
    }
}

impl Deref for Place {
    type Target = Paths;
    fn deref(&self) -> &Paths {
        &self.paths
    }
}

/// The place of a host of the settings, or an error if they do not have it; `local` is this machine.
pub(crate) fn find(paths: &Paths, hosts: &BTreeMap<HostName, HostSpec>, name: &HostName) -> Result<Place> {
    if name.as_str() == LOCAL {
        return Ok(Place::from(paths));
    }
    match hosts.get(name) {
        Some(spec) => Ok(Place::remote(paths.clone(), name.clone(), spec.clone())),
        None => {
            let known: Vec<&str> = hosts.keys().map(HostName::as_str).collect();
            let hint = match known.is_empty() {
                true => format!("add it to your settings: swarm config edit; [hosts.{name}]"),
                false => format!("known hosts: {}", known.join(", ")),
            };
            Err(Error::new(ErrorCode::NotFound, format!("unknown host '{name}'")).hint(hint))
        }
    }
}

impl RemoteHost {
    /// The command that connects to its daemon, or to the jobs of a Slurm host. `may_start`: start a daemon if none
    /// runs.
    pub(crate) fn connect_command(&self, may_start: bool) -> String {
        match (&self.spec.slurm, may_start) {
            (Some(args), _) => {
                let words = ["swarm", "connect", "--slurm", self.name.as_str()].map(str::to_owned);
                join(&[&words[..], args].concat())
            }
            (None, true) => "swarm connect --stdio".to_owned(),
            (None, false) => "swarm connect --stdio --existing".to_owned(),
        }
    }

    /// Its address for a person.
    pub(crate) fn address(&self) -> &str {
        self.spec.ssh.as_deref().unwrap_or("this machine")
    }

    /// The error for a failure of ssh, with the next step.
    pub(crate) fn error(&self, fault: SshFault) -> Error {
        let name = &self.name;
        let by_hand = Some(format!("connect once by hand: ssh {}", quote(self.address())));
        let install = Some(format!("swarm host install {name}"));
        let check = match &self.spec.ssh {
            _ if !self.is_checked.load(Ordering::Relaxed) => Some(format!("swarm host check {name}")),
            ssh => ssh.as_ref().map(|ssh| format!("connect by hand: ssh {}", quote(ssh))),
        };
        let (text, hint) = match fault {
            SshFault::UnknownKey => ("its host key is not known".to_owned(), by_hand),
            SshFault::ChangedKey => ("its host key has changed".to_owned(), by_hand),
            SshFault::Denied => ("it does not accept your keys".to_owned(), by_hand),
            SshFault::NoAnswer(line) | SshFault::Other(line) => (line, check),
            SshFault::NoSwarm => ("swarm is not installed there".to_owned(), install),
            SshFault::OldSwarm => {
                let text = "its swarm is too old to be used from another machine";
                (format!("{text}; this is swarm {}", crate::protocol::RELEASE), install)
            }
            SshFault::Swarm(message) => (message, check),
        };
        Error { hint, ..Error::new(ErrorCode::Unreachable, format!("host '{name}': {text}")) }
    }

    /// The error for a host that does not answer.
    pub(crate) fn silent(&self, what: &str) -> Error {
        self.error(SshFault::NoAnswer(what.to_owned()))
    }

    /// The error for a host to which no connection was made in time.
    pub(crate) fn no_connection(&self) -> Error {
        self.silent(&format!("it did not answer within {} s", 2 * CONNECT_TIMEOUT_SECONDS))
    }
}
