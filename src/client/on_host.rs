//! Carries out a command on a remote host.
//!
//! Most verbs only need a connection to the other daemon. Those that need the host's terminal, files or processes run
//! there, over ssh. The rest is for this machine only and refused.

use std::collections::BTreeSet;

use swarm_state::host::{HostName, LOCAL};
use swarm_state::model::WorkerName;

use super::context::ClientContext;
use super::fleet::{least_busy, named_place};
use super::verbs;
use crate::cli::{
    Clean, Command, DaemonCommand, HoldArgs, Kill, NamedHosts, OnHost, PageFormat, RalphCommand, RalphRestore,
};
use crate::error::Error;
use crate::out::{CommandResult, Failure, set_host};
use crate::remote::ssh;
use crate::shell::join;

#[derive(Debug, PartialEq, Eq)]
enum HostRoute {
    /// Over a connection to the host's daemon.
    Connection,
    /// As this command on the host; with a terminal or without.
    There(Vec<String>, bool),
    /// Not at all: the reason, and the next step.
    Refused(&'static str, &'static str),
}

pub(super) async fn run(ctx: &mut ClientContext, command: Command, on: &OnHost) -> CommandResult {
    let place = match on {
        OnHost::Local => return verbs::run(ctx, command).await,
        OnHost::Any if matches!(command, Command::Spawn(_) | Command::Loop(_)) => least_busy(ctx).await?,
        OnHost::Any => {
            let error = Error::usage("--on any chooses a host for a new worker");
            return Err(error.hint("to list the workers of all hosts: swarm ls --all-hosts").into());
        }
        OnHost::Host(name) => named_place(ctx, name)?,
        OnHost::Each(hosts) => return run_each(ctx, &command, hosts).await,
    };
    let Some(host) = place.host() else { return verbs::run(ctx, command).await };
    let route = match &host.spec.slurm {
        Some(_) => route_slurm(host.name.as_str(), &command),
        None => route(&command),
    };
    match route {
        HostRoute::Connection => {
            set_host(Some((&host.name, host.spec.ssh.is_none())));
            ctx.host = Some(place);
            verbs::run(ctx, command).await
        }
        HostRoute::There(words, tty) => {
            let code = ssh::run_on_terminal(&place, host, &join(&words), tty).await?;
            match code {
                Some(255) => Err(ssh::reason(&place, host).await.into()),
                code => Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
            }
        }
        HostRoute::Refused(what, hint) => {
            Err(Error::usage(format!("{what} cannot be used with --on")).hint(hint).into())
        }
    }
}

/// Carries out a command for workers of several hosts, one host after the other, and returns the highest exit status.
async fn run_each(ctx: &mut ClientContext, command: &Command, hosts: &NamedHosts) -> CommandResult {
    // An unknown host is an error before the first worker is changed.
    for host in hosts.iter().flatten() {
        named_place(ctx, host)?;
    }
    let mut status = 0;
    let mut done = BTreeSet::new();
    for host in hosts.iter().filter(|host| done.insert(*host)) {
        let Some(command) = of_host(command, hosts, host.as_ref()) else { continue };
        ctx.host = None;
        set_host(None);
        ctx.out.note(&format!("host {}:", host.as_ref().map_or(LOCAL, HostName::as_str)));
        let on = host.clone().map_or(OnHost::Local, OnHost::Host);
        match Box::pin(run(ctx, command, &on)).await {
            Ok(code) => status = status.max(code),
            Err(Failure::Error(error)) => {
                ctx.out.error(&error);
                status = status.max(error.code.exit_status());
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(status)
}

/// The command for the workers of one host; `None` for a command that is not a batch.
fn of_host(command: &Command, hosts: &NamedHosts, host: Option<&HostName>) -> Option<Command> {
    let own = |names: &[WorkerName]| {
        let both = names.iter().zip(hosts);
        both.filter(|(_, of)| of.as_ref() == host).map(|(name, _)| name.clone()).collect()
    };
    Some(match command {
        Command::Kill(args) => Command::Kill(Kill { names: own(&args.names), ..args.clone() }),
        Command::Clean(args) => Command::Clean(Clean { names: own(&args.names), ..args.clone() }),
        Command::Hold(args) => Command::Hold(HoldArgs { names: own(&args.names) }),
        Command::Release(args) => Command::Release(HoldArgs { names: own(&args.names) }),
        _ => return None,
    })
}

fn route(command: &Command) -> HostRoute {
    const LOCAL_FILES: &str = "it works on files of this machine";
    match command {
        Command::Spawn(_)
        | Command::Loop(_)
        | Command::Ls(_)
        | Command::Status(_)
        | Command::Peek(_)
        | Command::Logs(_)
        | Command::Send(_)
        | Command::Answer(_)
        | Command::Allow(_)
        | Command::Interrupt(_)
        | Command::Eof(_)
        | Command::Wait(_)
        | Command::Events(_)
        | Command::Kill(_)
        | Command::Respawn(_)
        | Command::Clean(_)
        | Command::Why(_)
        | Command::Report(_)
        | Command::Hold(_)
        | Command::Release(_)
        | Command::Quota(_)
        | Command::Fetch(_) => HostRoute::Connection,
        Command::Ralph(command) => route_ralph(command),
        Command::Attach(args) => {
            let read_only = args.read_only.then_some("--read-only");
            HostRoute::There(words(["attach"].into_iter().chain(read_only).chain([args.name.as_str()])), true)
        }
        Command::Ui => HostRoute::There(words(["ui"]), true),
        Command::Doctor(args) => {
            HostRoute::There(words(["doctor"].into_iter().chain(json_flag(args.format))), false)
        }
        Command::Daemon(command) => match command {
            DaemonCommand::Start => HostRoute::There(words(["daemon", "start"]), false),
            DaemonCommand::Stop => HostRoute::There(words(["daemon", "stop"]), false),
            DaemonCommand::Restart => HostRoute::There(words(["daemon", "restart"]), false),
            DaemonCommand::Status(args) => {
                HostRoute::There(words(["daemon", "status"].into_iter().chain(json_flag(args.format))), false)
            }
            DaemonCommand::TakeOver(_) => {
                HostRoute::Refused("daemon take-over", "on the host: swarm daemon take-over")
            }
            DaemonCommand::Run(_) => HostRoute::Refused("daemon run", "on the host: swarm daemon run"),
        },
        Command::Session(_) | Command::Hook(_) | Command::Hooks(_) | Command::Plugin(_) => {
            HostRoute::Refused("this command", "run it on the host, in the project's directory")
        }
        Command::Config(_) | Command::Notify(_) => {
            HostRoute::Refused("this command", "each machine has settings of its own; run it there")
        }
        Command::Host(_) => HostRoute::Refused("host", "give the host as an argument: swarm host check HOST"),
        Command::Demo | Command::Completions(_) => HostRoute::Refused("this command", LOCAL_FILES),
    }
}

/// How a command runs on a Slurm host. Each job has a daemon and a terminal of its own.
fn route_slurm(host: &str, command: &Command) -> HostRoute {
    match command {
        Command::Attach(args) => {
            let read_only = args.read_only.then_some("--read-only");
            let connect = ["connect", "--attach", host, args.name.as_str()];
            HostRoute::There(words(connect.into_iter().chain(read_only)), true)
        }
        Command::Ui => HostRoute::Refused("ui", "to list its workers: swarm ls --on HOST"),
        Command::Daemon(_) => {
            HostRoute::Refused("daemon", "each job has a daemon of its own, which starts and stops with it")
        }
        command => route(command),
    }
}

fn route_ralph(command: &RalphCommand) -> HostRoute {
    match command {
        RalphCommand::Restore(RalphRestore { dir: Some(dir), .. }) if !dir.is_absolute() => {
            HostRoute::Refused("a relative --dir", "give the absolute path on the host")
        }
        RalphCommand::Set(args) if args.changes.iter().any(|(key, _)| key == "prompt_file") => {
            HostRoute::Refused("prompt_file", "the file is on the other machine; run the command there")
        }
        RalphCommand::Status(_)
        | RalphCommand::Pause(_)
        | RalphCommand::Resume(_)
        | RalphCommand::Ls(_)
        | RalphCommand::Logs(_)
        | RalphCommand::Set(_)
        | RalphCommand::Diff(_)
        | RalphCommand::Restore(_)
        | RalphCommand::Approve(_)
        | RalphCommand::Clean(_) => HostRoute::Connection,
        RalphCommand::Init(_)
        | RalphCommand::Plan(_)
        | RalphCommand::Archive(_)
        | RalphCommand::Template
        | RalphCommand::Tasks(_) => HostRoute::Refused(
            "this command",
            "it works on files of a project; run it in the project's directory",
        ),
    }
}

fn json_flag(format: PageFormat) -> Option<&'static str> {
    (format == PageFormat::Json).then_some("--format=json")
}

fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    std::iter::once("swarm").chain(words).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::cli::Cli;

    fn route_of(line: &str) -> HostRoute {
        let words: Vec<OsString> =
            std::iter::once("swarm").chain(line.split_whitespace()).map(OsString::from).collect();
        route(&Cli::from_words(&words).unwrap().command)
    }

    #[test]
    fn commands_that_need_the_host_itself_run_there() {
        for (line, wanted, tty) in [
            ("attach gpu1/a", "swarm attach a", true),
            ("attach --read-only a", "swarm attach --read-only a", true),
            ("ui", "swarm ui", true),
            ("daemon status --format json", "swarm daemon status --format=json", false),
            ("doctor", "swarm doctor", false),
        ] {
            let HostRoute::There(words, has_tty) = route_of(line) else { panic!("{line}") };
            assert_eq!((join(&words).as_str(), has_tty), (wanted, tty), "{line}");
        }
        for line in ["ls", "wait a", "ralph resume a", "events -f", "ralph restore a 1 --dir /x"] {
            assert_eq!(route_of(line), HostRoute::Connection, "{line}");
        }
        for line in [
            "ralph init",
            "session status",
            "config show",
            "ralph restore a 1 --dir x",
            "ralph set a prompt_file=p",
        ] {
            assert!(matches!(route_of(line), HostRoute::Refused(..)), "{line}");
        }
    }
}
