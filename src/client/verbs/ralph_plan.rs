//! `swarm ralph plan`: start an agent in this terminal that plans a task list.
//!
//! One of the few files that start a process. The agent replaces the client, so the terminal and its signals are the
//! agent's, and so is the exit status.

use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;
use std::process::Command;

use swarm_state::profiles;
use swarm_state::template::tasks::{has_requirements, plan_prompt};

use crate::cli::RalphPlan;
use crate::client::context::ClientContext;
use crate::client::spawn_params::load_settings;
use crate::client::task_list_file::{ListChange, refuse_used_list};
use crate::error::{Error, Result};
use crate::out::{CommandResult, Out};
use crate::task_files::{PRD_FILE, TaskDir};

const DEFAULT_AGENT: &str = "claude";

const PASTE: &str = "to paste the prompt into an agent yourself: swarm ralph plan --print";

pub(super) async fn run(ctx: &ClientContext, args: &RalphPlan) -> CommandResult {
    let place = TaskDir::find(None, args.ralph_dir.as_deref())?;
    place.require()?;
    let prd = place.read(PRD_FILE)?.unwrap_or_default();
    let prompt = plan_prompt(has_requirements(&String::from_utf8_lossy(&prd)), &place.shown(""));
    if args.print {
        return ctx.out.raw(&prompt).map(|()| 0);
    }
    refuse_used_list(&place, ListChange::Edit).await?;
    if !io::stdin().is_terminal() || !Out::is_terminal() {
        return Err(Error::invalid("cannot start an agent: this is not a terminal").hint(PASTE).into());
    }
    let words = command(ctx, args, &prompt)?;
    let Some((program, rest)) = words.split_first() else {
        return Err(Error::usage("no command given; put it after --").into());
    };
    let error = Command::new(program).args(rest).exec();
    let hint = "name another agent: swarm ralph plan -- COMMAND";
    Err(Error::system(format!("cannot run '{program}'"), error).hint(hint).into())
}

fn command(ctx: &ClientContext, args: &RalphPlan, prompt: &str) -> Result<Vec<String>> {
    let settings = load_settings(ctx)?;
    let words = match &settings.command {
        _ if !args.cmd.is_empty() => args.cmd.clone(),
        Some(command) => command.clone(),
        None => vec![DEFAULT_AGENT.to_owned()],
    };
    let profile = profiles::find(&settings.agents, &words);
    profile.command_for_chat(&words, prompt).ok_or_else(|| {
        let text = format!("'{}' cannot begin a conversation with a prompt", words.join(" "));
        Error::invalid(text).hint(format!("name another agent: swarm ralph plan -- claude; {PASTE}"))
    })
}
