//! `swarm host`: remote hosts.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use swarm_state::host::HostName;
use swarm_state::model::WorkerName;

use super::format::{PageFormat, PageFormatArg};

pub(super) const HOST_LONG: &str = "\
Manage remote hosts.

A remote host runs a daemon of its own and owns its workers; this machine reaches it through ssh. The settings name \
the hosts: [hosts.gpu1] with ssh = \"gpu1\" (see swarm-config(5)). ~/.ssh/config decides how a host is reached. \
swarm asks for no password, accepts no host key and copies no credential.

A command runs on a host with --on HOST, or with HOST/NAME for a worker: swarm spawn --on gpu1 -- claude, swarm peek \
gpu1/fix. Commands that read files of a project run only on this machine. attach, ui, doctor and daemon run on the \
host itself, through ssh. A new worker has the environment of a command over ssh, plus --env; prompt files are read \
here and sent as text. With --worktree, swarm pushes the current commit to a repository on the host and makes the \
worktree there; swarm fetch brings the branch back. Ignored files go along if they match a line of .worktreeinclude, \
which has the syntax of .gitignore: at most 64 MiB, and no links.

kill, clean, hold and release accept workers of several hosts, and act on one host after the other.

A host that does not answer is unreachable; its agents continue. A command for it fails with exit status 6.";

pub(super) const HOST_AFTER: &str = "\
Slurm: with slurm = true in the section of a host, each of its workers is a Slurm job. swarm runs sbatch on the host \
that ssh names, or on this machine if the section has no ssh. See swarm-batch(7).";

pub(super) const FETCH_LONG: &str = "\
Fetch the branch of a worker on a remote host into the repository of the current directory.

The worker was started with swarm spawn --on HOST --worktree, which pushed the current commit to a repository on the \
host. fetch brings its branch back, under the same name, and the snapshots of its iterations as refs/swarm-hosts/HOST/. \
It fails if the branch here has other commits. Only commits travel.";

/// `swarm fetch`
#[derive(Debug, Args)]
pub struct Fetch {
    /// Worker, as HOST/NAME
    pub name: WorkerName,
}

const INSTALL_LONG: &str = "\
Copy a swarm executable to a host, as ~/.local/bin/swarm.

The file is the one of --binary, else this program if it needs no shared libraries, else the one that scripts/package.sh \
built: ~/.local/share/swarm/swarm-static. swarm asks first. The host compares the hash of the copy and runs it once before \
it replaces an earlier swarm. Nothing else changes there: a daemon that runs \
keeps its release until swarm daemon restart.";

/// Every verb of `swarm host`.
#[derive(Debug, Subcommand)]
pub enum HostCommand {
    /// List the hosts and whether they answer
    Ls(PageFormatArg),
    /// Check the connection to a host, step by step
    #[command(after_long_help = "Exit status:\n  0  The host answers, and its swarm fits.\n  \
        4  It has a swarm with another protocol.\n  6  It cannot be reached.")]
    Check(HostCheck),
    /// Copy a swarm executable to a host
    #[command(long_about = INSTALL_LONG)]
    Install(HostInstall),
}

/// `swarm host check`
#[derive(Debug, Args)]
pub struct HostCheck {
    /// Host name
    pub host: HostName,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// `swarm host install`
#[derive(Debug, Args)]
pub struct HostInstall {
    /// Host name
    pub host: HostName,
    /// Executable to copy
    #[arg(long, value_name = "FILE")]
    pub binary: Option<PathBuf>,
    /// Copy without asking
    #[arg(short, long)]
    pub yes: bool,
}
