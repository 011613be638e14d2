//! The command line: its definition for clap, and its help.
//!
//! `main` parses, [`crate::client`] does the work. The man pages in `man/` and the shell completions are generated
//! from this module. Deliberately absent: checks that need more than the typed text (whether a file exists, whether
//! a setting replaces a flag). The verbs do those.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use swarm_state::host::HostName;

use crate::error::Error;
use crate::protocol::RELEASE;

mod after;
mod answer;
mod config;
mod format;
mod gates;
mod hold;
mod hooks;
mod host;
mod looping;
mod on;
mod quota;
mod ralph;
mod ralph_tasks;
mod report;
mod sandbox;
mod service;
mod session;
mod spawn;
mod task_files;
mod task_list;
pub(crate) mod ui;
mod unknown;
mod worker;

pub use after::{Clean, Events, Since, Wait, WaitFor};
pub use answer::AnswerArgs;
pub use config::{ConfigCommand, ConfigEdit};
pub use format::{
    Format, ListFormatArg, OptionLimit, PageFormat, PageFormatArg, StatusFormat, WorkerPage, word,
};
pub(crate) use gates::parse_dollars;
pub use gates::{BudgetArgs, GateArgs, RoomArgs};
pub use hold::HoldArgs;
pub use hooks::{
    HookAgent, HookPlace, HookScope, HooksCommand, HooksStatus, PluginAgent, PluginCommand, PluginPlace,
};
pub use host::{Fetch, HostCheck, HostCommand, HostInstall};
pub use looping::Loop;
pub use on::{NamedHosts, OnHost};
pub use quota::QuotaArgs;
pub use ralph::{
    RalphClean, RalphCommand, RalphDiff, RalphLogs, RalphPause, RalphRestore, RalphResume, RalphSet, Why,
};
pub use ralph_tasks::{
    ExportFormat, GraphFormat, RalphTasksCommand, TaskListPlace, TaskReviewArgs, TasksCheck, TasksExport,
    TasksGraph, TasksImport, TasksLs,
};
pub use report::{ReportArgs, ReportFormat};
pub use sandbox::{Allow, HostList, SandboxArgs};
pub use service::{Completions, DaemonCommand, DaemonRun, DaemonTakeOver, NotifyCommand};
pub use session::{Hook, SessionCommand, SessionPlace, SessionStart, SessionWhich};
pub use spawn::{CapArgs, LoopArgs, PromptArgs, RestartArgs, Spawn};
pub use task_files::{RalphArchive, RalphInit, RalphPlan};
pub use task_list::TaskListArgs;
pub use unknown::{explain, requests_json, usage_error};
pub use worker::{Attach, Kill, Logs, Ls, OneWorker, Peek, Respawn, Send, StatusArgs, WhichStatus};

/// `swarm --help`: one screen, grouped. The man page has its own list of commands.
const SCREEN: &str = "\
Supervise coding agents in tmux, and rerun them until your checks pass.

{usage-heading} {usage}

Workers (one agent in one tmux window each):
  spawn        Start an agent; with --ralph, run it in a loop
  ls           List workers                  status         Show worker state
  peek         Print a worker's screen       logs           Print worker output
  send         Type text into a worker       answer         Answer an agent
  interrupt    Send Ctrl-C to a worker       eof            Send end-of-input
  hold         Keep swarm off a worker       release        End a hold
  ui           Show all, full screen         events         Follow events
  attach       Open a worker's window        allow          Allow a network host
  wait         Wait for a state              quota          Show usage limits
  kill         Stop workers                  respawn        Restart a worker
  clean        Delete finished workers and their files

Loops (\"ralph loops\": swarm starts the agent again, with a fresh context):
  loop           Run an agent in a loop until your checks pass
  why            Explain a worker's state and suggest the next step
  report         Summarize what happened, or each iteration of a loop
  ralph init     Write PROMPT.md and TODO.md   ralph template  Print a prompt
  ralph plan     Plan a task list              ralph archive   Archive a list
  ralph status   Show a loop's progress        ralph ls        List loops
  ralph pause    Pause after this iteration    ralph resume    Resume a loop
  ralph logs     Print a loop's log            ralph set       Change a setting
  ralph diff     Show an iteration's changes   ralph restore   Check out files
  ralph approve  Accept changed watched files  ralph clean     Delete loop state
  ralph tasks    Check, list, import and export task lists

Loops inside a session that you started yourself (install the hooks first):
  session start   Start a session loop         session status  Show its progress
  session cancel  Cancel a session loop        hook            (internal)
  hooks install   Install session hooks        plugin install  Install plugins

Service:
  daemon       Manage the daemon             config         Manage the settings
  doctor       Find problems, suggest fixes  completions    Print a shell script
  demo         Run a loop in seconds         notify test    Try notifications
  host         Manage remote hosts           fetch          Fetch a branch

Options:
  -c, --config <FILE>  Settings file, read last; it overrides the others
  -H, --on <HOST>      Run the command on a remote host from the settings
  -h, --help           Print help (for one command: swarm help COMMAND)
  -V, --version        Print version

Start with:  swarm demo (read more: swarm loop --help, man swarm)
Then:        swarm loop 'fix the tests' --check 'make test' -- \\
                 claude -p --permission-mode acceptEdits\n";

/// Sections that only the man page has.
const LONG_HELP: &str = "\
Exit status:
  0    Success. For a loop: all its gates hold. A loop without --check and
       --promise also succeeds when all iterations are used and one succeeded.
  1    The command failed, or the loop failed, was killed, is lost or paused
       (see swarm-loop(1)).
  2    Invalid command line, unknown worker or unknown host.
  3    The daemon is not running (daemon status) or cannot start; or HOME is not
       set, or SWARM_DIR is not a directory or belongs to another host.
  4    The client and the running daemon use different protocols (swarm daemon
       restart).
  5    A wait timed out, or the daemon does not answer.
  6    The sandbox of --sandbox cannot be built, or the remote host cannot be
       reached.
  130  Second Ctrl-C: the command ended. The agent continues, and the loop
       pauses after it.

A command for several workers (kill, clean, send --all) handles each worker separately and exits with the \
highest status. wait and events exit with 2 if one of the names is unknown. A full standard output is an error (1). \
If the reader of standard output goes away, the command exits with 0. A closed standard output counts as /dev/null.

Environment:
  SWARM_DIR  Directory for swarm's state, socket and logs. Default: ~/.swarm
             (requires HOME)
  NO_COLOR   Print without colors, even on a terminal
  COLUMNS    Width of tables

Files:
  ~/.config/swarm/config.toml  Your settings
  ./swarm.toml                 Settings of a project; they override yours
  ~/.swarm/daemon.log          Log of the daemon
  ~/.swarm/ralph/NAME/         State of a loop: state.json, iterations.log

See also: swarm-config(5), swarm-state(5), swarm-batch(7), swarm-json(7), swarm-promises(7), \
swarm-protocol(7), swarm-session(7), swarm-troubleshooting(7).";

/// Supervise coding agents in tmux, and rerun them until your checks pass
#[derive(Debug, Parser)]
#[command(
    name = "swarm",
    version = RELEASE,
    long_about = "Supervise coding agents in tmux, and rerun them until your checks pass.\n\n\
        A background daemon starts each agent in its own tmux window, watches it, and runs its loop. The first \
        command that needs the daemon starts it. Agents continue when you close the terminal, and also when \
        the daemon stops.",
    help_template = SCREEN,
    override_usage = "swarm [OPTIONS] <COMMAND>",
    after_long_help = LONG_HELP,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub struct Cli {
    /// Settings file, read last; it overrides the others
    #[arg(short, long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,

    /// Run the command on a remote host from the settings
    ///
    /// HOST/NAME for a worker has the same effect. For spawn and loop, `any` is the host with the fewest live workers.
    #[arg(short = 'H', long, value_name = "HOST", global = true, hide_short_help = true)]
    pub on: Option<HostName>,

    /// The hosts in names of workers.
    #[arg(skip)]
    pub named_hosts: NamedHosts,

    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// Every verb.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start an agent; with --ralph, run it in a loop
    #[command(long_about = spawn::SPAWN_LONG)]
    Spawn(Box<Spawn>),
    /// Run an agent in a loop until your checks pass
    #[command(long_about = looping::LOOP_LONG)]
    Loop(Box<Loop>),
    /// List workers
    Ls(Ls),
    /// Show a worker's state
    Status(StatusArgs),
    /// Print a worker's screen
    Peek(Peek),
    /// Print a worker's output
    Logs(Logs),
    /// Type text into a worker
    #[command(long_about = worker::SEND_LONG)]
    Send(Send),
    /// Answer a permission request or a question of an agent
    #[command(long_about = answer::ANSWER_LONG)]
    Answer(AnswerArgs),
    /// Keep swarm from typing into workers or ending runs
    #[command(long_about = hold::HOLD_LONG, after_help = hold::HOLD_AFTER)]
    Hold(HoldArgs),
    /// End the hold of workers
    #[command(long_about = hold::RELEASE_LONG, after_help = hold::RELEASE_AFTER)]
    Release(HoldArgs),
    /// Allow a sandboxed worker to reach a host
    #[command(long_about = "Allow a sandboxed worker to reach a host.\n\n\
        A worker with --net allow reaches only the hosts of its list. When it asks for another one, swarm refuses the \
        request and reports it as a warning with this command. The new host counts at once, also for the next \
        iterations and for checks. A worker cannot allow hosts to itself.")]
    Allow(Allow),
    /// Show the usage limits of accounts and the parked loops
    #[command(long_about = quota::QUOTA_LONG)]
    Quota(QuotaArgs),
    /// Press Ctrl-C in a worker
    Interrupt(OneWorker),
    /// Send end-of-input (Ctrl-D) to a worker
    #[command(long_about = "Send end-of-input (Ctrl-D) to a worker.\n\n\
        swarm presses Ctrl-D after everything that was sent before. A program that reads lines (cat, a shell, python) \
        then gets the end of its input. After text without a line end, Ctrl-D only passes on that text, and a \
        second eof ends the input. In an agent that reads single keys, Ctrl-D is an ordinary key.\n\n\
        If the agent is still starting, it gets Ctrl-D once it is ready. If it shows a dialog, swarm presses \
        nothing, and the command fails.")]
    Eof(OneWorker),
    /// Open a worker's window in this terminal
    #[command(long_about = "Open a worker's window in this terminal.\n\n\
        You see the agent's screen, and what you type goes to this agent only. To leave, press Ctrl-B, then D; the \
        agent continues. The last line shows the worker, its iteration and these keys. When an iteration of a loop ends, the next one appears as soon as it runs (until then, \
        Ctrl-C leaves). When the worker has finished, the command prints how it ended and exits with 0.\n\n\
        Typing holds the worker (see swarm-hold(1)) until 30 seconds after you detach: swarm types nothing, and starts \
        and ends no run. With --read-only you only watch.\n\n\
        You can attach from inside another tmux. If that tmux also uses Ctrl-B as its prefix, press it \
        twice: Ctrl-B, Ctrl-B, D.")]
    Attach(Attach),
    /// Show all workers and act on them, full screen
    #[command(long_about = ui::UI_LONG_ABOUT, after_long_help = ui::after())]
    Ui,
    /// Wait until workers reach a state
    #[command(long_about = after::WAIT_LONG)]
    Wait(Wait),
    /// Show events as they happen
    #[command(long_about = after::EVENTS_LONG)]
    Events(Events),
    /// Stop workers and all their processes
    #[command(long_about = worker::KILL_LONG)]
    Kill(Kill),
    /// Start a worker again with the same settings
    #[command(long_about = worker::RESPAWN_LONG)]
    Respawn(Respawn),
    /// Delete finished workers and their files
    #[command(long_about = after::CLEAN_LONG)]
    Clean(Clean),
    /// Explain a worker's state and suggest the next step
    #[command(long_about = ralph::WHY_LONG)]
    Why(Why),
    /// Summarize what happened, or each iteration of a loop
    #[command(long_about = report::REPORT_LONG)]
    Report(ReportArgs),
    /// Manage loops
    #[command(subcommand, long_about = ralph::RALPH_LONG)]
    Ralph(RalphCommand),
    /// Manage loops inside an agent's own session
    #[command(subcommand, long_about = session::SESSION_LONG)]
    Session(SessionCommand),
    /// Entry point for agent hooks (internal)
    #[command(long_about = session::HOOK_LONG)]
    Hook(Hook),
    /// Manage session hooks
    #[command(subcommand, long_about = hooks::HOOKS_LONG, after_long_help = hooks::HOOKS_AFTER)]
    Hooks(HooksCommand),
    /// Manage agent plugins that add loop commands
    #[command(subcommand, long_about = hooks::PLUGIN_LONG, after_long_help = hooks::PLUGIN_AFTER)]
    Plugin(PluginCommand),
    /// Show, check and edit the settings
    #[command(
        subcommand,
        long_about = "Show, check and edit the settings.\n\n\
        swarm-config(5) lists the files and the keys."
    )]
    Config(ConfigCommand),
    /// Fetch the branch of a worker on a remote host
    #[command(long_about = host::FETCH_LONG)]
    Fetch(Fetch),
    /// Manage remote hosts
    #[command(subcommand, long_about = host::HOST_LONG, after_long_help = host::HOST_AFTER)]
    Host(HostCommand),
    /// Manage notifications
    #[command(subcommand, long_about = service::NOTIFY_LONG)]
    Notify(NotifyCommand),
    /// Manage the daemon
    #[command(subcommand, long_about = service::DAEMON_LONG, after_long_help = service::DAEMON_AFTER)]
    Daemon(DaemonCommand),
    /// Find problems and suggest fixes
    #[command(
        long_about = "Find problems and suggest fixes.\n\n\
        Checks tmux and its server, the daemon and its socket, damaged state files, files and panes that no worker owns, \
        git, disk space, permissions, settings, and whether agents survive a logout. It changes nothing and \
        starts nothing.",
        after_long_help = "Exit status:\n  0  Every check passed; warnings are allowed.\n  \
        1  A check failed."
    )]
    Doctor(PageFormatArg),
    /// Run a complete loop in seconds with a built-in agent
    #[command(long_about = "Run a complete loop in seconds with a built-in agent.\n\n\
        The demo needs no API key and costs nothing. It runs in a temporary directory with its own daemon and tmux \
        server, and removes all of them at the end.")]
    Demo,
    /// Print a shell completion script
    #[command(long_about = service::COMPLETIONS_LONG)]
    Completions(Completions),
}

impl Cli {
    /// Parses a command line. Options accept `-3` as a value, so that their own error names the allowed numbers.
    ///
    /// # Errors
    /// The error, help or version of clap.
    pub fn from_words(words: &[OsString]) -> Result<Self, clap::Error> {
        let mut command = adapted(Self::command());
        let matches = command.try_get_matches_from_mut(words)?;
        let mut cli = Self::from_arg_matches(&matches)?;
        cli.named_hosts = on::named_hosts(&command, &matches);
        if let Command::Send(send) = &mut cli.command {
            cli.named_hosts.extend(send.take_host());
        }
        Ok(cli)
    }

    /// The machine on which the command runs.
    ///
    /// # Errors
    /// When the command line names several.
    pub fn on_host(&self) -> Result<OnHost, Error> {
        // The only workers on these command lines are the ones to act on.
        let is_batch = matches!(
            self.command,
            Command::Kill(_) | Command::Clean(_) | Command::Hold(_) | Command::Release(_)
        );
        on::on_host(self.on.as_ref(), &self.named_hosts, is_batch)
    }
}

/// Makes the values of all options and arguments accept a negative number, and workers a host.
fn adapted(command: clap::Command) -> clap::Command {
    let adapt = |arg: clap::Arg| {
        let takes_value = arg.get_action().takes_values();
        on::with_host(arg.allow_negative_numbers(takes_value))
    };
    command.mut_args(adapt).mut_subcommands(adapted)
}

/// Rewrites the command line before clap parses it.
///
/// Everything after the worker of `send` becomes text. Otherwise clap would answer `send NAME --help` with its help
/// and exit 0, and nothing would be sent. `--json` becomes `--format=json`.
pub fn as_meant(mut args: Vec<OsString>) -> Vec<OsString> {
    let word = |at: usize| args.get(at).and_then(|arg| arg.to_str()).unwrap_or_default();
    let verb = unknown::verb_index(&args);
    let names_one = !word(verb + 1).starts_with('-');
    if word(verb) == "send" && names_one && matches!(word(verb + 2), "--help" | "-h") {
        args.insert(verb + 2, "--".into());
    }
    let end = unknown::options_end(&args);
    args[..end].iter_mut().filter(|arg| *arg == "--json").for_each(|arg| *arg = "--format=json".into());
    args
}

/// Whether a command line requests output for programs; swarm then prints no warnings.
pub fn is_for_programs(args: impl Iterator<Item = OsString>) -> bool {
    let words = ["--json", "--format=json", "--format=names", "json", "names"];
    args.take_while(|arg| arg != "--").any(|arg| words.iter().any(|word| arg == *word))
}

#[cfg(test)]
mod tests;
