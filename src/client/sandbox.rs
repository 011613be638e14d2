//! The sandbox of a spawn, from the command line and the settings.
//!
//! Used by [`super::spawn_params`]. The client decides, because the sandbox is built for the user who runs it.

use std::path::{Path, PathBuf};

use swarm_state::network::parse_hosts;
use swarm_state::profiles::{HookStyle, Profile};
use swarm_state::sandbox::{SandboxNet, SandboxSpec, SandboxWish};

use super::typed_path::absolute;
use crate::cli::{SandboxArgs, Spawn};
use crate::error::{Error, Result};
use crate::paths;
use crate::sandbox::choose;
use crate::sandbox::docker_setup::hooks_run_inside;
use crate::settings::SandboxDefaults;

/// The sandbox, if there is one. Adds a warning if swarm chose to have none. `obstacle` returns why it cannot be Docker
/// Sandbox, with the next step.
pub(super) fn sandbox(
    args: &Spawn,
    defaults: &SandboxDefaults,
    obstacle: impl FnOnce() -> Option<(String, &'static str)>,
    warnings: &mut Vec<String>,
) -> Result<Option<SandboxSpec>> {
    let usual = if args.tasks.ralph_dir.is_some() { SandboxWish::Auto } else { SandboxWish::None };
    let args = &args.sandbox;
    let wish = args.sandbox.or(defaults.kind).unwrap_or(usual);
    let may_be_docker = matches!(wish, SandboxWish::Docker | SandboxWish::Auto);
    let choice = choose(wish, if may_be_docker { obstacle() } else { None })?;
    let Some((kind, program)) = choice.program else {
        refuse_lone_options(args, choice.warning.as_deref())?;
        warnings.extend(choice.warning);
        return Ok(None);
    };
    let typed = |paths: &[PathBuf]| paths.iter().map(|path| absolute(path)).collect::<Result<Vec<_>>>();
    let both = |typed: Vec<PathBuf>, set: &Option<Vec<PathBuf>>| {
        typed.into_iter().chain(set.iter().flatten().cloned()).collect::<Vec<_>>()
    };
    let all = |paths: Vec<PathBuf>| paths.iter().map(|path| real(path)).collect::<Result<Vec<_>>>();
    let written = both(typed(&args.sandbox_rw)?, &defaults.writable);
    let net = args.net.or(defaults.net).unwrap_or_default();
    if net != SandboxNet::Allow && !args.allow_host.is_empty() {
        let message = format!("--allow-host has no effect with the network '{}'", net.as_str());
        return Err(Error::usage(message).hint("add --net allow"));
    }
    Ok(Some(SandboxSpec {
        kind,
        program,
        net,
        hosts: vec![],
        writable: written.iter().map(|path| writable(path)).collect::<Result<Vec<_>>>()?,
        readable: all(both(typed(&args.sandbox_ro)?, &defaults.readable))?,
        hidden: all(both(vec![], &defaults.hidden))?,
    }))
}

/// The warnings about what does not reach an agent in a Docker sandbox. `set` has the names of `--env`.
pub(super) fn docker_warnings(profile: &Profile, set: &[String]) -> Result<Vec<String>> {
    let mut warnings = vec![];
    if !set.is_empty() {
        let names = set.join(", ");
        warnings.push(format!(
            "the checks get {names}, but the agent does not: docker sandbox run passes no variables"
        ));
    }
    if profile.hooks != HookStyle::Off && !hooks_run_inside(&paths::own_program()?) {
        let why = "this program of swarm is not a static Linux program";
        warnings
            .push(format!("the agent runs without swarm's hooks, because {why}: only the daemon enforces"));
    }
    Ok(warnings)
}

/// Refuses sandbox options without a sandbox. `why` is the reason why `auto` found none.
fn refuse_lone_options(args: &SandboxArgs, why: Option<&str>) -> Result<()> {
    let is_limited = args.net.is_some_and(|net| net != SandboxNet::On) || !args.allow_host.is_empty();
    let option = match (is_limited, args.sandbox_rw.is_empty(), args.sandbox_ro.is_empty()) {
        (true, _, _) => "--net and --allow-host",
        // Paths are for the sandbox that `auto` would have built; its warning lists what is then unprotected.
        _ if why.is_some() => return Ok(()),
        (_, false, _) => "--sandbox-rw",
        (_, _, false) => "--sandbox-ro",
        (false, true, true) => return Ok(()),
    };
    let verb = if is_limited { "need" } else { "needs" };
    let reason = why.map(|why| format!("; {why}")).unwrap_or_default();
    Err(Error::usage(format!("{option} {verb} a sandbox{reason}")).hint("add --sandbox bwrap"))
}

/// Adds the hosts that a sandbox may reach: those that its agents need, those of the settings, and the given ones.
pub(super) fn add_hosts<'a>(
    sandbox: Option<&mut SandboxSpec>,
    args: &SandboxArgs,
    defaults: &SandboxDefaults,
    agents: impl Iterator<Item = &'a Profile>,
) -> Result<()> {
    let Some(sandbox) = sandbox.filter(|sandbox| sandbox.net == SandboxNet::Allow) else { return Ok(()) };
    let hosts = &mut sandbox.hosts;
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
    Ok(())
}

/// A path without symbolic links. It has to exist: only then it can be given, or hidden.
fn real(path: &Path) -> Result<PathBuf> {
    path.canonicalize()
        .map_err(|e| Error::invalid(format!("cannot use '{}' in a sandbox: {e}", path.display())))
}

/// The same for a path that the sandbox may write. swarm's own files are not for agents.
fn writable(path: &Path) -> Result<PathBuf> {
    let path = real(path)?;
    let root = paths::Paths::from_env()?.root().to_owned();
    let root = root.canonicalize().unwrap_or(root);
    if root.starts_with(&path) || path.starts_with(&root) {
        let message = format!("a sandbox may not write '{}': swarm's own files are there", path.display());
        return Err(Error::invalid(message).hint("name the directories below it that the agent needs"));
    }
    Ok(path)
}
