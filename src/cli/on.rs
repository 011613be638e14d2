//! `--on HOST` and `HOST/NAME`: the host of a command.
//!
//! A name of a worker anywhere on the command line may have the name of its host before it. The verbs get the name
//! alone, and the command runs on that host. Deliberately absent: whether the host exists.

use std::any::TypeId;
use std::collections::BTreeSet;

use clap::ArgMatches;
use swarm_state::host::{ANY, HostName, LOCAL, split_worker};
use swarm_state::model::WorkerName;

use crate::error::{Error, Result};

/// The hosts that stand before names of workers, in the order of the names; `None` for a name without one.
pub type NamedHosts = Vec<Option<HostName>>;

/// The machine on which a command runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnHost {
    /// This machine.
    Local,
    /// The host with the fewest live workers.
    Any,
    /// A host of the settings.
    Host(HostName),
    /// For each name, the host before it, or this machine.
    Each(NamedHosts),
}

/// Makes an argument that is a worker accept `HOST/NAME`.
pub(super) fn with_host(arg: clap::Arg) -> clap::Arg {
    if is_worker(&arg) { arg.value_parser(worker_name) } else { arg }
}

fn is_worker(arg: &clap::Arg) -> bool {
    arg.get_value_parser().type_id() == TypeId::of::<WorkerName>()
}

fn worker_name(text: &str) -> std::result::Result<WorkerName, String> {
    split_worker(text).map(|(_, name)| name)
}

/// The hosts of all workers on the command line. `command` is the one that was parsed.
pub(super) fn named_hosts(command: &clap::Command, matches: &ArgMatches) -> NamedHosts {
    let workers = command.get_arguments().filter(|arg| is_worker(arg));
    let typed = workers.filter_map(|arg| matches.try_get_raw(arg.get_id().as_str()).ok().flatten()).flatten();
    let host = |text: &std::ffi::OsStr| Some(split_worker(text.to_str()?).ok()?.0);
    let mut hosts: NamedHosts = typed.filter_map(host).collect();
    if let Some((name, matches)) = matches.subcommand()
        && let Some(command) = command.find_subcommand(name)
    {
        hosts.extend(named_hosts(command, matches));
    }
    hosts
}

/// The machine of a command with `--on` and these hosts in the names of its workers. Without `--on`, a batch may have
/// workers of several hosts.
///
/// # Errors
/// When the command line of another command names several.
pub(super) fn on_host(on: Option<&HostName>, named: &NamedHosts, is_batch: bool) -> Result<OnHost> {
    let remote = |name: &&HostName| name.as_str() != LOCAL;
    let mut hosts: BTreeSet<Option<&HostName>> =
        named.iter().map(|host| host.as_ref().or(on).filter(remote)).collect();
    if on.is_some() {
        hosts.insert(on.filter(remote));
    }
    if hosts.len() > 1 && is_batch && on.is_none() {
        return Ok(OnHost::Each(named.iter().map(|host| host.as_ref().filter(remote).cloned()).collect()));
    }
    if hosts.len() > 1 {
        let names: Vec<&str> = hosts.iter().map(|host| host.map_or(LOCAL, HostName::as_str)).collect();
        let message = format!("the command names several hosts: {}", names.join(", "));
        return Err(Error::usage(message).hint("run the command once for each host"));
    }
    Ok(match hosts.pop_first().flatten() {
        None => OnHost::Local,
        Some(name) if name.as_str() == ANY => OnHost::Any,
        Some(name) => OnHost::Host(name.clone()),
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::cli::{Cli, Command};

    fn on(line: &str) -> std::result::Result<String, String> {
        let words: Vec<OsString> =
            std::iter::once("swarm").chain(line.split_whitespace()).map(OsString::from).collect();
        let cli = Cli::from_words(&words).map_err(|e| e.to_string())?;
        cli.on_host().map_err(|e| e.message).map(|on| match on {
            OnHost::Local => "local".to_owned(),
            OnHost::Any => "any".to_owned(),
            OnHost::Host(name) => name.to_string(),
            OnHost::Each(hosts) => {
                let names = hosts.iter().map(|host| host.as_ref().map_or(LOCAL, HostName::as_str));
                names.collect::<Vec<_>>().join(" ")
            }
        })
    }

    #[test]
    fn host_comes_from_the_option_or_from_the_names() {
        for (line, wanted) in [
            ("ls", "local"),
            ("ls --on gpu1", "gpu1"),
            ("--on gpu1 ls", "gpu1"),
            ("-H gpu1 ls", "gpu1"),
            ("--on local ls", "local"),
            ("status a", "local"),
            ("status gpu1/a", "gpu1"),
            ("--on gpu1 status gpu1/a", "gpu1"),
            ("--on gpu1 wait a gpu1/b", "gpu1"),
            ("wait gpu1/a gpu1/b", "gpu1"),
            ("ralph pause gpu1/a", "gpu1"),
            ("spawn --name gpu1/a -- x", "gpu1"),
            ("spawn --on any -- x", "any"),
            ("send --on gpu1 a b/c", "gpu1"),
            ("send gpu1/a b/c", "gpu1"),
            ("send --on gpu1 --all b/c", "gpu1"),
            ("send --all b/c", "local"),
            ("status local/a", "local"),
            ("kill gpu1/a gpu1/b", "gpu1"),
            ("kill gpu1/a b gpu2/c local/d gpu1/e", "gpu1 local gpu2 local gpu1"),
            ("clean gpu1/a b", "gpu1 local"),
        ] {
            assert_eq!(on(line).as_deref(), Ok(wanted), "{line}");
        }
        for (line, wanted) in [
            ("wait gpu1/a b", "local, gpu1"),
            ("wait gpu1/a gpu2/b", "gpu1, gpu2"),
            ("--on gpu1 status gpu2/a", "gpu1, gpu2"),
            ("--on local status gpu2/a", "local, gpu2"),
            ("--on gpu1 kill gpu2/a b", "gpu1, gpu2"),
            ("status gpu1/a/b", "invalid"),
            ("--on a/b ls", "invalid host name"),
        ] {
            assert!(on(line).is_err_and(|error| error.contains(wanted)), "{line}: {:?}", on(line));
        }
    }

    #[test]
    fn worker_commands_get_the_name_without_the_host() {
        let words = ["swarm", "send", "gpu1/a", "b/c"].map(OsString::from);
        let Command::Send(send) = Cli::from_words(&words).unwrap().command else { panic!() };
        assert_eq!((send.name.as_deref(), &send.text[..]), (Some("a"), &["b/c".to_owned()][..]));
    }
}
