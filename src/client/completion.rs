//! Completes a command line for a shell, which runs swarm with [`COMPLETION_VARIABLE`] and the typed words after `--`.
//!
//! `main` calls [`run`]. `clap_complete` finds the argument under the cursor; this module has the values that clap
//! lacks: names of workers, their iterations, settings of loops and agents. It asks a running daemon and never
//! starts one. Without an answer there is no value and no message.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use clap::{Command, CommandFactory};
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::{CompleteEnv, Shells};
use tokio::time::timeout;

use crate::cli::Cli;
use crate::client::connect::connect_existing;
use crate::client::worker::{brief_cause, is_loop};
use crate::loop_setting::CHANGEABLE_SETTINGS;
use crate::paths::Paths;
use crate::protocol::{Call, Empty, Listing, WorkerView};
use crate::runtime::block_on;
use crate::settings::Settings;

/// The variable with the name of the shell.
pub const COMPLETION_VARIABLE: &str = "SWARM_COMPLETE";

/// How long the daemon may take. A person waits at the prompt.
const COMPLETION_TIMEOUT: Duration = Duration::from_millis(500);

/// Prints the candidates and returns the exit status.
pub fn run(args: Vec<OsString>) -> u8 {
    let dir = env::current_dir().ok();
    let completed =
        CompleteEnv::with_factory(command).var(COMPLETION_VARIABLE).try_complete(args, dir.as_deref());
    u8::from(completed.is_err())
}

/// Returns the script that registers swarm's completion in a shell; `None` for an unknown shell.
pub(super) fn registration(shell: &str) -> Option<String> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let shell = shells.completer(shell)?;
    shell.write_registration(COMPLETION_VARIABLE, "swarm", "swarm", "swarm", &mut script).ok()?;
    let mut script = String::from_utf8(script).ok()?;
    if shell.is("zsh") {
        // In a directory of fpath, the file is the body of the function `_swarm`.
        script += "if [ \"$funcstack[1]\" = _swarm ]; then _clap_dynamic_completer_swarm \"$@\"; fi\n";
    }
    // A program that was removed must not print into the command line.
    Some(script.replace("-- \"${words[@]}\" \\\n    ) )", "-- \"${words[@]}\" 2>/dev/null \\\n    ) )"))
}

fn command() -> Command {
    let mut command = Cli::command();
    // Adds --help, so that it is hidden too.
    command.build();
    let wants_option = words().last().is_some_and(|word| word.as_encoded_bytes().starts_with(b"-"));
    with_completers(command, "", wants_option)
}

/// Adds completers to a command below `path`. Options are offered if one was begun, or if there is nothing else.
fn with_completers(command: Command, path: &str, wants_option: bool) -> Command {
    let verb = format!("{path} {}", command.get_name());
    let of_verb = verb.clone();
    let command = command.mut_args(move |arg| {
        let verb = of_verb.clone();
        match (arg.get_id().as_str(), arg.is_positional()) {
            ("name" | "names", true) | ("workers", false) => {
                arg.add(ArgValueCandidates::new(move || names(&verb)))
            }
            ("iteration", _) => arg.add(ArgValueCandidates::new(move || iterations(&verb))),
            ("changes", true) => arg.add(ArgValueCandidates::new(|| {
                candidates(CHANGEABLE_SETTINGS.split(", ").map(|key| format!("{key}=")))
            })),
            ("cmd", true) => arg.add(ArgValueCompleter::new(AgentCommand)),
            ("agent", false) if arg.get_possible_values().is_empty() => {
                arg.add(ArgValueCandidates::new(|| candidates(settings().agents.iter().map(|p| &p.name))))
            }
            (_, true) => arg,
            (_, false) => {
                let hidden = arg.is_hide_set() || !wants_option;
                arg.hide(hidden)
            }
        }
    });
    command.mut_subcommands(|child| with_completers(child, &verb, wants_option))
}

fn words() -> Vec<OsString> {
    env::args_os().skip_while(|arg| arg != "--").skip(1).collect()
}

fn candidates(values: impl Iterator<Item = impl Into<OsString>>) -> Vec<CompletionCandidate> {
    values.map(CompletionCandidate::new).collect()
}

/// The workers of a running daemon; none if it does not answer.
fn workers() -> Vec<WorkerView> {
    let listing = async {
        let mut client = connect_existing(&(&Paths::from_env().ok()?).into()).await.ok()??;
        client.call::<Listing>(&Call::Ls(Empty {}), COMPLETION_TIMEOUT).await.ok()
    };
    let listing = block_on(async { timeout(COMPLETION_TIMEOUT, listing).await.ok().flatten() });
    listing.ok().flatten().map(|listing| listing.workers).unwrap_or_default()
}

/// The workers for which the verb makes sense.
fn names(verb: &str) -> Vec<CompletionCandidate> {
    let workers = workers().into_iter().filter(|worker| fits(verb, worker));
    let candidate = |worker: WorkerView| {
        let state = format!("{} {}", worker.status, brief_cause(&worker));
        CompletionCandidate::new(worker.name).help(Some(state.trim_end().to_owned().into()))
    };
    workers.map(candidate).collect()
}

fn fits(verb: &str, worker: &WorkerView) -> bool {
    match verb.trim_start_matches(" swarm ") {
        "attach" | "send" | "interrupt" | "eof" => worker.status.is_live(),
        "kill" => !worker.status.is_finished(),
        "clean" => worker.status.is_finished(),
        verb => !verb.starts_with("ralph ") || is_loop(worker),
    }
}

/// The iterations of the loop that was typed, the last one first.
fn iterations(verb: &str) -> Vec<CompletionCandidate> {
    let typed = words();
    let loops = workers().into_iter().filter(|worker| typed.iter().any(|word| word == worker.name.as_str()));
    let last = loops.filter_map(|worker| worker.metadata().iteration).next_back().unwrap_or_default();
    let first = u64::from(!verb.ends_with(" restore"));
    candidates((first..=last).rev().map(|n| n.to_string()))
}

/// The settings of the user and of the project; the built-in ones if they have an error.
fn settings() -> Settings {
    let user = Paths::from_env().map(|paths| paths.user_config()).unwrap_or_default();
    Settings::load(&user, Some(Path::new("swarm.toml")), None).unwrap_or_default()
}

/// Completes an agent's command: its first word with the agents on PATH, other words with paths.
struct AgentCommand;

impl ValueCompleter for AgentCommand {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let typed = words();
        let is_first = typed.len() < 2 || typed[typed.len() - 2] == "--";
        let path = env::var_os("PATH").unwrap_or_default();
        let is_installed = |name: &&String| env::split_paths(&path).any(|dir| dir.join(name).is_file());
        let agents = settings().agents.into_iter().filter(|_| is_first);
        let commands: Vec<String> = agents.flat_map(|agent| agent.commands).collect();
        let fits = |name: &&String| name.as_bytes().starts_with(current.as_encoded_bytes());
        let found = candidates(commands.iter().filter(fits).filter(is_installed));
        if found.is_empty() { PathCompleter::any().complete(current) } else { found }
    }
}
