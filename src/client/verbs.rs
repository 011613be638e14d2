//! The verbs of the client, one file each. A verb that only makes one call for one worker needs no file.

use std::time::Duration;

use swarm_state::model::WorkerName;

use crate::cli::{Command, ConfigCommand, DaemonCommand, HostCommand, NotifyCommand, RalphCommand};
use crate::client::connect::{QUICK_TIMEOUT, SLOW_TIMEOUT};
use crate::client::context::ClientContext;
use crate::error::{Error, ErrorCode};
use crate::out::CommandResult;
use crate::protocol::{Call, Empty, Named};

mod allow;
mod answer;
mod attach;
mod clean;
mod completions;
mod config_check;
mod config_edit;
mod config_show;
mod daemon_restart;
mod daemon_start;
mod daemon_status;
mod daemon_stop;
mod daemon_take_over;
mod events;
mod fetch;
mod hold;
mod host_check;
mod host_install;
mod host_ls;
mod kill;
mod logs;
mod r#loop;
mod ls;
mod notify_test;
mod peek;
mod quota;
mod ralph_approve;
mod ralph_clean;
mod ralph_diff;
mod ralph_init;
mod ralph_logs;
mod ralph_ls;
mod ralph_pause;
mod ralph_plan;
mod ralph_restore;
mod ralph_resume;
mod ralph_set;
mod ralph_status;
mod ralph_tasks;
mod ralph_template;
mod release;
pub(crate) mod report;
mod respawn;
mod send;
mod spawn;
mod status;
mod status_tmux;
mod wait;
mod why;

/// Carries out a command.
pub(super) async fn run(ctx: &ClientContext, command: Command) -> CommandResult {
    match command {
        Command::Spawn(args) => spawn::run(ctx, *args).await,
        Command::Loop(args) => r#loop::run(ctx, *args).await,
        Command::Why(args) => why::run(ctx, &args).await,
        Command::Report(args) => report::run(ctx, &args).await,
        Command::Ls(args) => ls::run(ctx, &args).await,
        Command::Status(args) => status::run(ctx, &args).await,
        Command::Peek(args) => peek::run(ctx, &args).await,
        Command::Logs(args) => logs::run(ctx, &args).await,
        Command::Send(args) => send::run(ctx, args).await,
        Command::Answer(args) => answer::run(ctx, args).await,
        Command::Hold(args) => hold::run(ctx, args).await,
        Command::Release(args) => release::run(ctx, args).await,
        Command::Allow(args) => allow::run(ctx, args).await,
        Command::Quota(args) => quota::run(ctx, &args).await,
        Command::Interrupt(args) => call_worker(ctx, Call::Interrupt, &args.name, QUICK_TIMEOUT).await,
        // Behind what was sent before it, which may wait for the agent.
        Command::Eof(args) => call_worker(ctx, Call::Eof, &args.name, SLOW_TIMEOUT).await,
        Command::Wait(args) => wait::run(ctx, &args).await,
        Command::Events(args) => events::run(ctx, &args).await,
        Command::Clean(args) => clean::run(ctx, &args).await,
        Command::Attach(args) => attach::run(ctx, &args).await,
        Command::Kill(args) => kill::run(ctx, &args).await,
        Command::Respawn(args) => respawn::run(ctx, &args).await,
        Command::Ralph(args) => run_ralph(ctx, args.command).await,
        Command::Config(args) => run_config(ctx, args.command),
        Command::Notify(args) => match args.command {
            NotifyCommand::Test => notify_test::run(ctx).await,
        },
        Command::Fetch(args) => fetch::run(ctx, &args).await,
        Command::Host(args) => match args.command {
            HostCommand::Ls(args) => host_ls::run(ctx, &args).await,
            HostCommand::Check(args) => host_check::run(ctx, &args).await,
            HostCommand::Install(args) => host_install::run(ctx, &args).await,
        },
        Command::Daemon(args) => run_daemon(ctx, args.command).await,
        Command::Completions(args) => completions::run(&args, ctx.out),
        Command::Doctor(_)
        | Command::Session(_)
        | Command::Hook(_)
        | Command::Hooks(_)
        | Command::Plugin(_)
        | Command::Ui
        | Command::Demo => {
            Err(Error::new(ErrorCode::Internal, "`main` carries this command out itself").into())
        }
    }
}

/// Makes a call for one worker. Its answer is empty, so nothing is printed.
async fn call_worker(
    ctx: &ClientContext,
    call: fn(Named) -> Call,
    name: &WorkerName,
    limit: Duration,
) -> CommandResult {
    let Empty {} = ctx.call(&call(Named { name: name.to_string() }), limit).await?;
    Ok(0)
}

async fn run_ralph(ctx: &ClientContext, command: RalphCommand) -> CommandResult {
    match command {
        RalphCommand::Init(args) => ralph_init::run(ctx, &args).await,
        RalphCommand::Plan(args) => ralph_plan::run(ctx, &args).await,
        RalphCommand::Archive(_) => {
            Err(Error::new(ErrorCode::Internal, "`main` carries this command out itself").into())
        }
        RalphCommand::Template => ralph_template::run(ctx),
        RalphCommand::Status(args) => ralph_status::run(ctx, &args).await,
        RalphCommand::Pause(args) => ralph_pause::run(ctx, &args).await,
        RalphCommand::Resume(args) => ralph_resume::run(ctx, &args).await,
        RalphCommand::Ls(args) => ralph_ls::run(ctx, &args).await,
        RalphCommand::Logs(args) => ralph_logs::run(ctx, &args).await,
        RalphCommand::Set(args) => ralph_set::run(ctx, &args).await,
        RalphCommand::Diff(args) => ralph_diff::run(ctx, &args).await,
        RalphCommand::Restore(args) => ralph_restore::run(ctx, &args).await,
        RalphCommand::Approve(args) => ralph_approve::run(ctx, &args).await,
        RalphCommand::Tasks(args) => ralph_tasks::run(ctx, &args.command).await,
        RalphCommand::Clean(args) => ralph_clean::run(ctx, &args).await,
    }
}

fn run_config(ctx: &ClientContext, command: ConfigCommand) -> CommandResult {
    match command {
        ConfigCommand::Show(args) => config_show::run(ctx, &args),
        ConfigCommand::Check => config_check::run(ctx),
        ConfigCommand::Edit(args) => config_edit::run(ctx, &args),
    }
}

async fn run_daemon(ctx: &ClientContext, command: DaemonCommand) -> CommandResult {
    match command {
        DaemonCommand::Start => daemon_start::run(ctx).await,
        DaemonCommand::Stop => daemon_stop::run(ctx).await,
        DaemonCommand::Restart => daemon_restart::run(ctx).await,
        DaemonCommand::TakeOver(args) => daemon_take_over::run(ctx, &args).await,
        DaemonCommand::Status(args) => daemon_status::run(ctx, &args).await,
        DaemonCommand::Run(_) => {
            Err(Error::new(ErrorCode::Internal, "`main` carries this command out itself").into())
        }
    }
}
