//! The verbs of the client, one file each. A verb that only makes one call or prints one text needs no file.

use std::time::Duration;

use swarm_state::model::WorkerName;
use swarm_state::template::PROMPT_TEMPLATE;

use crate::cli::{Command, ConfigCommand, DaemonCommand, HostCommand, NotifyCommand, RalphCommand};
use crate::client::completion;
use crate::client::connect::{QUICK_TIMEOUT, SLOW_TIMEOUT};
use crate::client::context::ClientContext;
use crate::error::{Error, ErrorCode};
use crate::out::CommandResult;
use crate::protocol::{Call, Empty, Named};

mod allow;
mod answer;
mod attach;
mod clean;
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
pub(crate) mod report;
mod respawn;
mod send;
mod spawn;
mod status;
mod wait;
mod why;

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
        Command::Release(args) => hold::release(ctx, args).await,
        Command::Allow(args) => allow::run(ctx, args).await,
        Command::Quota(args) => quota::run(ctx, &args).await,
        Command::Interrupt(args) => call_worker(ctx, Call::Interrupt, &args.name, QUICK_TIMEOUT).await,
        // After earlier texts, which may wait for the agent.
        Command::Eof(args) => call_worker(ctx, Call::Eof, &args.name, SLOW_TIMEOUT).await,
        Command::Wait(args) => wait::run(ctx, &args).await,
        Command::Events(args) => events::run(ctx, &args).await,
        Command::Clean(args) => clean::run(ctx, &args).await,
        Command::Attach(args) => attach::run(ctx, &args).await,
        Command::Kill(args) => kill::run(ctx, &args).await,
        Command::Respawn(args) => respawn::run(ctx, &args).await,
        Command::Ralph(command) => run_ralph(ctx, command).await,
        Command::Config(ConfigCommand::Show(args)) => config_show::run(ctx, &args),
        Command::Config(ConfigCommand::Check) => config_check::run(ctx),
        Command::Config(ConfigCommand::Edit(args)) => config_edit::run(ctx, &args),
        Command::Notify(NotifyCommand::Test) => notify_test::run(ctx).await,
        Command::Fetch(args) => fetch::run(ctx, &args).await,
        Command::Host(HostCommand::Ls(args)) => host_ls::run(ctx, &args).await,
        Command::Host(HostCommand::Check(args)) => host_check::run(ctx, &args).await,
        Command::Host(HostCommand::Install(args)) => host_install::run(ctx, &args).await,
        Command::Daemon(DaemonCommand::Start) => daemon_start::run(ctx).await,
        Command::Daemon(DaemonCommand::Stop) => daemon_stop::run(ctx).await,
        Command::Daemon(DaemonCommand::Restart) => daemon_restart::run(ctx).await,
        Command::Daemon(DaemonCommand::TakeOver(args)) => daemon_take_over::run(ctx, &args).await,
        Command::Daemon(DaemonCommand::Status(args)) => daemon_status::run(ctx, &args).await,
        Command::Completions(args) => match completion::registration(&args.shell) {
            Some(script) => ctx.out.raw(&script).map(|()| 0),
            None => Err(Error::usage(format!("unknown shell '{}'", args.shell)).into()),
        },
        Command::Doctor(_)
        | Command::Session(_)
        | Command::Hook(_)
        | Command::Hooks(_)
        | Command::Plugin(_)
        | Command::Daemon(DaemonCommand::Run(_))
        | Command::Ui
        | Command::Demo => of_main(),
    }
}

fn of_main() -> CommandResult {
    Err(Error::new(ErrorCode::Internal, "`main` carries this command out itself").into())
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
        RalphCommand::Archive(_) => of_main(),
        RalphCommand::Template => ctx.out.raw(PROMPT_TEMPLATE).map(|()| 0),
        RalphCommand::Status(args) => ralph_status::run(ctx, &args).await,
        RalphCommand::Pause(args) => ralph_pause::run(ctx, &args).await,
        RalphCommand::Resume(args) => ralph_resume::run(ctx, &args).await,
        RalphCommand::Ls(args) => ralph_ls::run(ctx, &args).await,
        RalphCommand::Logs(args) => ralph_logs::run(ctx, &args).await,
        RalphCommand::Set(args) => ralph_set::run(ctx, &args).await,
        RalphCommand::Diff(args) => ralph_diff::run(ctx, &args).await,
        RalphCommand::Restore(args) => ralph_restore::run(ctx, &args).await,
        RalphCommand::Approve(args) => ralph_approve::run(ctx, &args).await,
        RalphCommand::Tasks(command) => ralph_tasks::run(ctx, &command).await,
        RalphCommand::Clean(args) => ralph_clean::run(ctx, &args).await,
    }
}
