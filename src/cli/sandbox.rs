//! The options for the sandbox of a worker.

use std::path::PathBuf;

use clap::Args;
use swarm_state::model::WorkerName;
use swarm_state::network::{AllowedHost, parse_hosts};
use swarm_state::sandbox::{SandboxNet, SandboxWish};

use super::format::{Choice, choice};

/// The sandbox.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Isolation")]
pub struct SandboxArgs {
    /// Sandbox: docker, bwrap, none or auto [default: none]
    ///
    /// The agent and the checks run in the sandbox.
    ///
    /// They can write the working tree, their own temporary files and caches, and the parts of git's directory that
    /// commits need.
    /// Your home directory, keys, sockets and other processes are hidden. bwrap is bubblewrap, and docker is a virtual
    /// machine of Docker Desktop, in which all of git's directory can be written. --sandbox without a value means
    /// docker. The default is that of the settings, then auto with --ralph-dir, otherwise none. swarm-sandbox(7)
    /// describes what a sandbox protects.
    #[arg(long, value_name = "KIND", num_args = 0..=1, default_missing_value = "docker", value_parser = choice(&KINDS), hide_possible_values = true)]
    pub sandbox: Option<SandboxWish>,
    /// Network of the sandbox [default: on]
    #[arg(hide_short_help = true, long, value_name = "NET", value_parser = choice(&NETS))]
    pub net: Option<SandboxNet>,
    /// Host for --net allow, or a service such as npm (repeatable)
    ///
    /// The services are cargo, debian, github, go, npm and pypi. The agent's own API hosts are always allowed. HOST is
    /// a name, *.NAME for all names below it, or an address, with :PORT if the port is not 80 or 443. A name that leads
    /// to an address in a private network is refused. `swarm allow` adds hosts to a running worker.
    #[arg(hide_short_help = true, long, value_name = "HOST", value_parser = HostList::parse)]
    pub allow_host: Vec<HostList>,
    /// Further path that the sandbox may write (repeatable)
    #[arg(hide_short_help = true, long, value_name = "PATH")]
    pub sandbox_rw: Vec<PathBuf>,
    /// Further path that the sandbox may read (repeatable)
    #[arg(hide_short_help = true, long, value_name = "PATH")]
    pub sandbox_ro: Vec<PathBuf>,
}

/// The hosts that one value stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostList(pub Vec<AllowedHost>);

impl HostList {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        parse_hosts(text).map(Self)
    }
}

/// `swarm allow`
#[derive(Debug, Args)]
pub struct Allow {
    /// Worker name
    pub name: WorkerName,
    /// Hosts, or services: cargo, debian, github, go, npm, pypi
    #[arg(required = true, value_name = "HOST", value_parser = HostList::parse)]
    pub hosts: Vec<HostList>,
}

const KINDS: [Choice<SandboxWish>; 4] = [
    (SandboxWish::Docker, "docker", "Docker Sandbox, or an error"),
    (SandboxWish::Bwrap, "bwrap", "bubblewrap, or an error"),
    (SandboxWish::None, "none", "No sandbox"),
    (SandboxWish::Auto, "auto", "The first of them that works here, or none with a warning"),
];

const NETS: [Choice<SandboxNet>; 3] = [
    (SandboxNet::On, "on", "The network of this machine"),
    (SandboxNet::Off, "off", "Only the sandbox's own loopback"),
    (SandboxNet::Allow, "allow", "Only the loopback, and allowed hosts through a proxy"),
];
