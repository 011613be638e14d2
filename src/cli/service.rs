//! The verbs of the service.

use clap::{Args, Subcommand};

use super::format::PageFormatArg;

pub(super) const DAEMON_LONG: &str = "\
Manage the daemon.

The daemon supervises the workers. Every command that needs it starts it, so you rarely have to. Agents run in tmux \
and continue without the daemon.";

pub(super) const DAEMON_AFTER: &str = "\
Systemd service:
As a systemd service, the daemon also starts after a reboot or a crash. In swarm's source tree, run:
  sh scripts/install.sh --unit            # install the user unit
  swarm daemon stop                       # stop a running daemon
  systemctl --user enable --now swarm     # start the service
  loginctl enable-linger                  # keep it running after a logout
  journalctl --user -u swarm              # show its log

Stopping or restarting the unit ends only the daemon, as `swarm daemon stop` does: agents continue and loops pause. \
`swarm ralph resume NAME` resumes a loop, and `swarm ralph resume --all` every loop. With resume_after_shutdown = true \
under [daemon] in the settings (see swarm-config(5)), the daemon resumes these loops when it starts. On systems where a \
logout ends all processes of the session, agents survive if lingering is on and the first worker was spawned while the \
service ran; `swarm doctor` checks this.

Upgrade and removal:
To upgrade, run scripts/install.sh in a newer tree, then `swarm daemon restart`. Agents and loops continue, and the new \
version reads the files of the old one. Until the restart, the old daemon serves the new commands; the first command \
says so. With the systemd service, run scripts/install.sh --unit, then `systemctl --user restart swarm`; loops pause, \
and `swarm ralph resume --all` resumes them.

To remove swarm:
  swarm kill --all                        # end all agents
  swarm clean --all                       # delete workers; keeps unsaved work
  swarm hooks uninstall                   # in each project with hooks
  swarm plugin uninstall                  # in each project with the plugin
  systemctl --user disable --now swarm    # with the systemd service
  swarm daemon stop                       # without it
  sh scripts/install.sh --uninstall       # in swarm's source tree

The last command removes the program, its man pages, its completions and the user unit. It keeps ~/.swarm (workers and \
logs) and ~/.config/swarm (settings).";

pub(super) const COMPLETIONS_LONG: &str = "\
Print a shell completion script.

The shell then completes commands, options and files, and also the names of workers, the iterations and settings of \
loops, and agents. swarm reads the names from the running daemon and starts none.

scripts/install.sh installs the scripts. If you update swarm without it, print them again.";

/// Every verb of `swarm daemon`.
#[derive(Debug, Subcommand)]
pub enum DaemonCommand {
    /// Start the daemon in the background
    Start,
    /// Pause all loops and stop the daemon; agents continue
    Stop,
    /// Restart the daemon without pausing loops
    Restart,
    /// Take over the directory from a host that is gone
    #[command(long_about = TAKE_OVER_LONG, after_long_help = TAKE_OVER_AFTER)]
    TakeOver(DaemonTakeOver),
    /// Show whether the daemon runs
    #[command(after_long_help = "Exit status:\n  0  The daemon runs.\n  3  It does not run.")]
    Status(PageFormatArg),
    /// Run the daemon in the foreground, as service managers need
    Run(DaemonRun),
}

const TAKE_OVER_LONG: &str = "\
Take over the directory from a host that is gone.

Several hosts can share SWARM_DIR on a network file system, for example in a home directory. One daemon owns it. \
Commands on another host fail with exit status 3 and print the name of the owner's host: run them there.

If that host is gone for good, take-over makes this host the owner and starts a daemon here. The workers that ran on \
the former host are lost: swarm ralph resume repeats the interrupted iteration of a loop, and swarm respawn starts a \
worker again. Nothing else changes.";

const TAKE_OVER_AFTER: &str = "\
If the former host still runs, its daemon notices within seconds that it was replaced. It then writes nothing more and \
ends. Its agents continue without a daemon, so end them on that host before you repeat their work.

A daemon starts without take-over if the former one stopped in order and left no agent running, if its host was \
started again, or, in a Slurm job, if Slurm has not listed the former daemon's job for a minute.

Exit status:
  0  This host owns the directory.
  1  A daemon on this host owns it, or you answered no.
  2  The question needs a terminal; use --yes.";

/// `swarm daemon take-over`
#[derive(Debug, Args)]
pub struct DaemonTakeOver {
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,
}

/// `swarm daemon run`
#[derive(Debug, Args)]
pub struct DaemonRun {
    /// Print `ready` on standard output once clients can connect
    #[arg(long, hide = true)]
    pub ready_on_stdout: bool,
    /// Resume no loop, and stop at the end of standard input
    #[arg(long, hide = true)]
    pub until_eof: bool,
}

pub(super) const NOTIFY_LONG: &str = "\
Manage notifications.

The daemon sends a notification when a worker needs you, has finished or failed, is parked or lost, or when the disk is \
full. [notify] in your settings names the channels; see swarm-config(5).";

const NOTIFY_TEST_LONG: &str = "\
Send a test message through each channel of [notify] in your settings, and print what happened.

A channel is a command, the desktop, an ntfy topic or a webhook. The message has the class needs_you and the name test. \
Quiet hours and classes do not apply to it.";

/// Every verb of `swarm notify`.
#[derive(Debug, Subcommand)]
pub enum NotifyCommand {
    /// Send a test message through each channel
    #[command(
        long_about = NOTIFY_TEST_LONG,
        after_long_help = "Exit status:\n  0  Each channel accepted the message.\n  \
            1  A channel did not, or the settings name no channel."
    )]
    Test,
}

/// `swarm completions`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  swarm completions bash > ~/.local/share/bash-completion/completions/swarm
  swarm completions zsh > ~/.zfunc/_swarm    (with ~/.zfunc in your fpath)
  swarm completions fish > ~/.config/fish/completions/swarm.fish")]
pub struct Completions {
    /// Shell to complete for
    #[arg(value_parser = ["bash", "zsh", "fish"])]
    pub shell: String,
}
