//! The sandbox of a spawn, from the command line and the settings.
//!
//! Used by [`super::spawn_params`]. The client decides, because the sandbox is built for the user who runs it.

use std::path::{Path, PathBuf};

use swarm_state::network::{AllowedHost, parse_hosts};
use swarm_state::profiles::Profile;
use swarm_state::sandbox::{SandboxNet, SandboxSpec, SandboxWish};

use super::typed_path::absolute;
use crate::cli::SandboxArgs;
use crate::error::{Error, Result};
use crate::sandbox::choose;
use crate::settings::SandboxDefaults;

/// The sandbox, if there is one. Adds a warning if swarm chose to have none.
pub(super) fn sandbox(
    args: &SandboxArgs,
    defaults: &SandboxDefaults,
    has_task_list: bool,
    warnings: &mut Vec<String>,
) -> Result<Option<SandboxSpec>> {
    let usual = if has_task_list { SandboxWish::Auto } else { SandboxWish::None };
    let wish = args.sandbox.map(|wish| wish.0).or(defaults.kind).unwrap_or(usual);
    let choice = choose(wish)?;
    warnings.extend(choice.warning);
    let Some((kind, program)) = choice.program else { return refuse_lone_net(args).map(|()| None) };
    let typed = |paths: &[PathBuf]| paths.iter().map(|path| absolute(path)).collect::<Result<Vec<_>>>();
    let all = |typed: Vec<PathBuf>, set: &Option<Vec<PathBuf>>| {
        let set = set.iter().flatten().cloned();
        typed.into_iter().chain(set).map(|path| real(&path)).collect::<Result<Vec<_>>>()
    };
    let net = args.net.map(|net| net.0).or(defaults.net).unwrap_or_default();
    Ok(Some(SandboxSpec {
        kind,
        program,
        net,
        hosts: vec![],
        writable: all(typed(&args.sandbox_rw)?, &defaults.writable)?,
        readable: all(typed(&args.sandbox_ro)?, &defaults.readable)?,
        hidden: all(vec![], &defaults.hidden)?,
    }))
}

/// Refuses a limited network without a sandbox.
fn refuse_lone_net(args: &SandboxArgs) -> Result<()> {
    let is_limited = args.net.is_some_and(|net| net.0 != SandboxNet::On) || !args.allow_host.is_empty();
    if is_limited {
        let error = Error::usage("--net and --allow-host need a sandbox");
        return Err(error.hint("add --sandbox bwrap"));
    }
    Ok(())
}

/// The hosts that a sandbox may reach: those that its agents need, those of the settings, and the given ones.
pub(super) fn hosts<'a>(
    args: &SandboxArgs,
    defaults: &SandboxDefaults,
    agents: impl Iterator<Item = &'a Profile>,
) -> Result<Vec<AllowedHost>> {
    let mut hosts = vec![];
    for profile in agents {
        for host in &profile.sandbox.hosts {
            let named = |error| Error::invalid(format!("hosts of agent '{}': {error}", profile.name));
            hosts.extend(parse_hosts(host).map_err(named)?);
        }
    }
    let given = args.allow_host.iter().flat_map(|list| &list.0);
    for host in defaults.hosts.iter().flatten().chain(given) {
        if !hosts.contains(host) {
            hosts.push(host.clone());
        }
    }
    Ok(hosts)
}

/// A path without symbolic links. It has to exist: only then it can be given, or hidden.
fn real(path: &Path) -> Result<PathBuf> {
    path.canonicalize()
        .map_err(|e| Error::invalid(format!("cannot use '{}' in a sandbox: {e}", path.display())))
}
