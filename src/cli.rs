//! The command line: what can be typed, and the help for it.
//!
//! Definitions and text only; `main` parses, [`crate::client`] does the work. The man pages in `man/` and
//! the shell completions are generated from here, so a sentence is written once. Deliberately absent: any
//! check that needs more than the typed text (a file that must exist, a setting that may stand in for a
//! flag); those are in the verbs.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

mod after;
mod gates;
mod hooks;
mod ralph;
mod service;
mod session;
mod worker;

pub use after::{Clean, Events, Wait, WaitFor};
pub use gates::{BudgetArgs, GateArgs, Loop, NoWork};
pub use hooks::{
    HookAgent, HookPlace, HookScope, HooksArgs, HooksCommand, HooksStatus, PluginAgent, PluginArgs,
    PluginCommand, PluginPlace,
};
pub use ralph::{
    RalphApprove, RalphArgs, RalphClean, RalphCommand, RalphDiff, RalphInit, RalphLogs, RalphLs, RalphPause,
    RalphRestore, RalphResume, RalphSet, RalphStatus, ReportArgs, ReportFormat, Why,
};
pub use service::{Completions, DaemonArgs, DaemonCommand, DaemonRun, DaemonStatus, Doctor};
pub use session::{Hook, SessionArgs, SessionCommand, SessionLs, SessionPlace, SessionStart, SessionWhich};
pub use worker::{
    Attach, Eof, Interrupt, Kill, Logs, LoopArgs, Ls, Peek, PromptArgs, Respawn, RestartArgs, Route, Send,
    Spawn, StatusArgs, WhichStatus,
};

/// `swarm --help`: one screen, grouped. (The man page lists the commands by itself.)
const SCREEN: &str = "\
Supervise coding-agent CLIs in tmux, and loop them until the work is done.

{usage-heading} {usage}

Workers (a worker is one agent in one tmux window):
  spawn        Start an agent; with --ralph, loop it with fresh contexts
  ls           List the workers
  status       Show one worker
  peek         Show what is on a worker's screen
  logs         Show what a worker printed
  send         Type text into a worker
  interrupt    Press Ctrl-C in a worker
  eof          Tell an agent that reads its terminal that there is no more
  attach       Open a worker's window in this terminal
  wait         Wait until workers are done, ready, idle or waiting for you
  events       Tell what happens to workers
  kill         End workers
  respawn      Start a worker once more, as it was spawned
  clean        Forget workers that are over, and remove what is left of them

Loops (a loop starts its agent again and again, each time with a fresh context):
  loop            Let an agent work on a task until it is verifiably done
  why             Say where a loop stands, and what to do next
  report          Show what each iteration of a loop came to
  ralph init      Write a starter PROMPT.md   ralph template  Print that PROMPT.md
  ralph status    Show how far a loop is      ralph ls        List the loops
  ralph pause     Start no further agent      ralph resume    Go on after pause or loss
  ralph logs      Show its iterations.log     ralph set       Change a running loop
  ralph diff      Show an iteration's work    ralph restore   Bring back a former tree
  ralph approve   Take changed checks         ralph clean     Remove what is left of it

Loops within a session of your own:
  session start   Loop within one session     session status  Show that loop
  session cancel  End it                      hook            What agent CLIs call
  hooks install   Let sessions be held        plugin install  Give them commands

Service:
  daemon       Run, start, stop, restart or look at the daemon
  doctor       Look for what is wrong, and say how to cure it
  demo         See a whole loop run in a few seconds, with a built-in agent
  completions  Print a completion script for your shell

Options:
  -c, --config <FILE>  Read this settings file too
  -h, --help           Print this help (`swarm help COMMAND` for one command)
  -V, --version        Print the version

Start here:  swarm demo
Then:        swarm loop 'make the tests pass' --check 'make test' -- claude -p
Read more:   man swarm (exit status, files), swarm spawn --help\n";

/// What only the man page carries.
const LONG: &str = "\
Exit status:
  0  Done. For a loop: its done pattern matched, or it used all its iterations.
  1  The command failed, or the loop did (five failures in a row, killed, lost, paused).
  2  Wrong use of the command line, or no worker of that name (the ralph verbs end with 1 then).
  3  The daemon is not running (daemon status) or could not be started; or there is no place for it: HOME
     is not set, SWARM_DIR is no directory.
  4  This swarm and the running daemon speak different protocols (swarm daemon restart).
  5  A wait ran out, or the daemon does not answer.
  130  Ctrl-C twice: the follower left; the loop was told to pause and its agent goes on.
  A command for several workers (kill, clean, send --all) deals with each by itself and ends with the
  highest status of theirs; wait and events refuse with 2 when one of the names is unknown.
  A standard output that is full is an error (1); one whose reader went away is not (0), and one that is
  closed counts as /dev/null.

Environment:
  SWARM_DIR  Where swarm keeps its state, its socket and its logs. Default: ~/.swarm (needs HOME)
  NO_COLOR   Do not colour the output, even on a terminal.
  COLUMNS    The width of tables.

Files:
  ~/.config/swarm/config.toml  Your settings.
  ./swarm.toml                 The settings of a project; they win over yours.
  ~/.swarm/daemon.log          What the daemon has to say.
  ~/.swarm/ralph/NAME/         The state of a loop: state.json, iterations.log.";

/// Supervise coding-agent CLIs in tmux, and loop them until the work is done.
#[derive(Debug, Parser)]
#[command(
    name = "swarm",
    version,
    long_about = "Supervise coding-agent CLIs in tmux, and loop them until the work is done.\n\n\
        A daemon in the background starts each agent in a tmux window of its own, watches it, and keeps \
        its loop going. It is started by the first command that needs it. Agents go on when you close \
        the terminal, and even when the daemon is stopped.",
    help_template = SCREEN,
    override_usage = "swarm [OPTIONS] <COMMAND>",
    after_long_help = LONG,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub struct Cli {
    /// Read this settings file too; it wins over the others
    #[arg(short, long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Every verb.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start an agent; with --ralph, loop it with fresh contexts
    #[command(long_about = worker::SPAWN_LONG)]
    Spawn(Box<Spawn>),
    /// Let an agent work on a task until it is verifiably done
    #[command(long_about = gates::LOOP_LONG)]
    Loop(Box<Loop>),
    /// List the workers
    Ls(Ls),
    /// Show one worker
    Status(StatusArgs),
    /// Show what is on a worker's screen
    Peek(Peek),
    /// Show what a worker printed
    Logs(Logs),
    /// Type text into a worker
    #[command(long_about = "Type text into a worker, press Enter, and see that it was taken.\n\n\
        An agent that is coming up gets the text when it is ready, and after its prompt. To a dialog, \
        swarm sends only an answer that the dialog shows: the number of a row, a letter in parentheses, the y or n of a \
        question, or an empty text, which presses Enter. A text with --all never answers a dialog. What could not be \
        typed, and what may have been lost, is an error; of an agent that nobody knows, a numbered list with a \
        chosen line and a [y/N] at the end of the screen are dialogs; a line that nobody has read yet is a warning. What \
        follows the worker's name is text, also --help.")]
    Send(Send),
    /// Press Ctrl-C in a worker
    Interrupt(Interrupt),
    /// Tell an agent that reads its terminal that there is no more
    #[command(long_about = "Tell an agent that reads its terminal that there is no more.\n\n\
        Presses Ctrl-D, after what was sent before it. A program that reads lines (cat, a shell, python) sees the \
        end of its input; after text without a line end, only that text is handed over, and a second eof ends \
        it. To an agent that reads single keys it is a key like another. One that is coming up gets it when it \
        is ready. While it shows a dialog nothing is pressed, and that is an error.")]
    Eof(Eof),
    /// Open a worker's window in this terminal
    #[command(long_about = "Open a worker's window in this terminal.\n\n\
        You see what the agent does and can type to it, and to no other. Leave with Ctrl-B, then D; the \
        agent goes on. When an iteration of a loop ends, the next one is shown as soon as it runs (Ctrl-C \
        leaves while you wait); when the worker is over, the command says how it ended and exits with 0.\n\n\
        It works from inside another tmux too, which is not touched. Where that one takes Ctrl-B for itself, \
        press it twice: Ctrl-B, Ctrl-B, D.")]
    Attach(Attach),
    /// Wait until workers are done, ready, idle or waiting for you
    #[command(long_about = after::WAIT_LONG)]
    Wait(Wait),
    /// Tell what happens to workers
    #[command(long_about = after::EVENTS_LONG)]
    Events(Events),
    /// End workers
    #[command(long_about = "End workers, with every process they started.\n\n\
        A loop that is killed is over. A worktree stays unless --rm-worktree is given; its branch is only \
        removed when it holds no commit of its own. To remove a worktree with uncommitted work, also set \
        --force-dirty; to remove one with ignored files outside caches, also set --discard-ignored (swarm clean --help \
        lists the caches).\n\n\
        With several names each is ended by itself, and the exit status is the highest of theirs: 0 ended, also \
        when it had ended before; 1 it could not be, or its worktree stays; 2 no worker of that name; 5 it took \
        too long.")]
    Kill(Kill),
    /// Start a worker once more, as it was spawned
    #[command(long_about = worker::RESPAWN_LONG)]
    Respawn(Respawn),
    /// Forget workers that are over, and remove what is left of them
    #[command(long_about = after::CLEAN_LONG)]
    Clean(Clean),
    /// Say in ten lines where a loop stands, and what to do next
    Why(Why),
    /// Show what each iteration of a loop came to
    Report(ReportArgs),
    /// Look after loops
    #[command(long_about = "Look after loops.\n\n\
        A loop is started with `swarm spawn --ralph`. Each iteration starts the agent anew, with a fresh \
        context and the prompt file as it is then; what the agents know of each other is what they leave in \
        the working directory. The loop ends when the done pattern matches, when its iterations are used up, \
        or after five failures in a row.")]
    Ralph(RalphArgs),
    /// Look after loops within an agent's own session
    #[command(long_about = session::SESSION_LONG)]
    Session(SessionArgs),
    /// What agent CLIs call
    #[command(long_about = session::HOOK_LONG)]
    Hook(Hook),
    /// Let the sessions that you start yourself be held
    #[command(long_about = hooks::HOOKS_LONG, after_long_help = hooks::HOOKS_AFTER)]
    Hooks(HooksArgs),
    /// Give an agent the commands of loops inside a session
    #[command(long_about = hooks::PLUGIN_LONG, after_long_help = hooks::PLUGIN_AFTER)]
    Plugin(PluginArgs),
    /// Run, start, stop, restart or look at the daemon
    #[command(long_about = "Run, start, stop, restart or look at the daemon.\n\n\
        The daemon looks after the workers. Every command that needs it starts it, so there is seldom a \
        reason to do it by hand. Agents live in tmux and go on without it.")]
    Daemon(DaemonArgs),
    /// Look for what is wrong, and say how to cure it
    #[command(long_about = "Look for what is wrong, and say how to cure it.\n\n\
        tmux and its server, the daemon and its socket, damaged state files, what no worker owns, git, room on \
        the disk, permissions, settings, and whether agents outlive a logout. Nothing is changed and nothing is \
        started.")]
    Doctor(Doctor),
    /// See a whole loop run in a few seconds, with a built-in agent
    #[command(long_about = "See a whole loop run in a few seconds, with a built-in agent.\n\n\
        Needs no key and costs nothing. Everything happens in a temporary directory, with a daemon and a \
        tmux server of its own; nothing of it is left when the demo ends.")]
    Demo,
    /// Print a completion script for your shell
    Completions(Completions),
}

/// How to print data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
    /// Only the names, one a line
    Names,
}

/// How to print one thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PageFormat {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// The command line as it is meant: what follows the worker of `send` is its text, also where it looks like
/// a wish for help, which would be answered with exit 0 and nothing sent; and `--json` is short for `--format
/// json`.
pub fn as_meant(mut args: Vec<OsString>) -> Vec<OsString> {
    let word = |at: usize| args.get(at).and_then(|arg| arg.to_str()).unwrap_or_default();
    let verb = match word(1) {
        "-c" | "--config" => 3,
        text if text.starts_with("--config=") => 2,
        _ => 1,
    };
    let names_one = !word(verb + 1).starts_with('-');
    if word(verb) == "send" && names_one && matches!(word(verb + 2), "--help" | "-h") {
        args.insert(verb + 2, "--".into());
    } else if word(verb) != "send" {
        let own = args.iter_mut().skip(verb + 1).take_while(|arg| *arg != "--");
        own.filter(|arg| *arg == "--json").for_each(|arg| *arg = "--format=json".into());
    }
    args
}

#[cfg(test)]
mod tests;
