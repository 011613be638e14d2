//! Parses the command line, calls the command, prints its error and chooses the exit status.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use swarm::cli::{Cli, Command, DaemonCommand, OnHost, RalphCommand};
use swarm::out::{CommandResult, Failure, Out};
use swarm::paths::Paths;
use swarm::settings::Settings;
use swarm::{
    archive, cli, client, daemon, demo, doctor, hooks, sandbox, session, store, stories, ui, wrapper,
};

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    // The commands that run inside a pane come first: they must not depend on the command line's parser.
    let status = match (args.get(1).and_then(|a| a.to_str()), args.get(2)) {
        (Some("__pane"), Some(dir)) => wrapper::main(Path::new(dir)),
        (Some("__record"), Some(file)) => {
            store::record(std::io::stdin().lock(), Path::new(file), store::MAX_RECORD_BYTES);
            0
        }
        (Some("__bridge"), Some(_)) => sandbox::bridge::main(&args[2..]),
        (Some("__inside"), Some(_)) => sandbox::inside::main(&args[2..]),
        (Some("__demo-agent"), _) => demo::agent::main(),
        (Some("__stories"), _) => stories::main(Out::from_env()),
        (Some("connect"), Some(flag)) if flag.as_encoded_bytes().starts_with(b"--") && flag != "--help" => {
            status(client::relay::run(&args[2..], Out::from_env()), false, Out::from_env())
        }
        // A hook is not parsed by clap: the exit status of a usage error would keep the agent from ending its turn.
        (Some("hook"), event) if event.is_none_or(|event| event != "--help" && event != "-h") => {
            hook(args.get(2..).unwrap_or_default().to_vec())
        }
        // A shell requests completions of a command line.
        _ if std::env::var_os(client::completion::COMPLETION_VARIABLE).is_some() => {
            client::completion::run(args)
        }
        _ => command_line(&cli::as_meant(args), Out::from_env()),
    };
    ExitCode::from(status)
}

/// Runs a hook and prints its answer. A failure to print is ignored, since the agent then does not read the answer.
fn hook(args: Vec<OsString>) -> u8 {
    if let Some(answer) = hooks::run::run(args) {
        let _ = Out::from_env().line(&answer);
    }
    0
}

fn command_line(args: &[OsString], out: Out) -> u8 {
    let json = cli::requests_json(args);
    let result = match Cli::from_words(args) {
        Ok(cli) => dispatch(cli),
        Err(error) => match cli::explain(args, &error) {
            Some(error) => Err(error.into()),
            None => {
                if json && error.exit_code() != 0 {
                    out.json_error(&cli::usage_error(&error));
                }
                not_parsed(&error, out)
            }
        },
    };
    status(result, json, out)
}

/// The exit status of a command. Prints its error.
fn status(result: CommandResult, json: bool, out: Out) -> u8 {
    match result {
        Ok(status) => status,
        Err(Failure::ReaderGone) => 0,
        Err(Failure::Error(error)) => {
            if json {
                out.json_error(&error);
            }
            out.error(&error);
            error.code.exit_status()
        }
    }
}

fn dispatch(cli: Cli) -> CommandResult {
    // Errors in the file of --config are reported by every command, also by those that need no settings. `config` has
    // better reports, and the daemon's status and its end must not depend on them.
    let is_exempt = matches!(
        cli.command,
        Command::Config(_) | Command::Daemon(DaemonCommand::Stop | DaemonCommand::Status(_))
    );
    if let Some(config) = cli.config.as_ref().filter(|_| !is_exempt) {
        Settings::load(&Paths::from_env()?.user_config(), Some(Path::new("swarm.toml")), Some(config))?;
    }
    match cli.on_host()? {
        OnHost::Local => on_this_machine(cli),
        on => client::run(cli.command, cli.config, &on, Out::from_env()),
    }
}

fn on_this_machine(cli: Cli) -> CommandResult {
    match cli.command {
        Command::Daemon(DaemonCommand::Run(run)) => {
            daemon::run(daemon::RunOptions {
                ready_on_stdout: run.ready_on_stdout,
                until_eof: run.until_eof,
            })?;
            Ok(0)
        }
        Command::Ralph(RalphCommand::Archive(args)) => archive::run(&args, Out::from_env()),
        Command::Session(command) => session::verbs::run(command, Out::from_env()),
        // Only for `swarm hook --help`.
        Command::Hook(args) => Ok(hook(vec![args.event.into()])),
        Command::Hooks(command) => hooks::verbs::run_hooks(command, Out::from_env()),
        Command::Plugin(command) => hooks::verbs::run_plugin(command, Out::from_env()),
        Command::Demo => demo::run(Out::from_env()),
        Command::Ui => ui::run(cli.config, Out::from_env()),
        Command::Doctor(args) => doctor::run(&args, Out::from_env()),
        command => client::run(command, cli.config, &OnHost::Local, Out::from_env()),
    }
}

/// Prints clap's help or version (status 0) or its usage error (status 2).
fn not_parsed(error: &clap::Error, out: Out) -> CommandResult {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        out.note(error.render().to_string().trim_end());
        return Ok(2);
    }
    if error.use_stderr() {
        out.usage_error(&error.render().to_string());
        return Ok(2);
    }
    let text = error.render();
    out.raw(&if out.has_color() { text.ansi().to_string() } else { text.to_string() })?;
    Ok(0)
}
