//! `swarm ralph resume`: continue paused or lost loops.

use swarm_state::model::Status;

use serde_json::json;

use crate::cli::{PageFormat, RalphResume};
use crate::client::batch::{self, change, names};
use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::client::spawn_params::named_env;
use crate::client::worker::{is_loop, is_paused};
use crate::out::{CommandResult, Failure};
use crate::protocol::{Call, Empty, QuotaLifted, ResumeParams, WorkerView};

pub(super) async fn run(ctx: &ClientContext, args: &RalphResume) -> CommandResult {
    let env = named_env(&args.env)?;
    let keys = env.keys().cloned().collect::<Vec<_>>().join(", ");
    let can_resume = |w: &WorkerView| is_paused(w) || is_loop(w) && w.status == Status::Lost;
    let waits = |w: &WorkerView| is_loop(w) && w.status == Status::Waiting && w.outage.is_some();
    let mut lifted = vec![];
    if args.now {
        let answer: QuotaLifted = ctx.call(&Call::QuotaLift(Empty {}), QUICK_TIMEOUT).await?;
        lifted = answer.resumed;
        print_lifted(ctx, args.format, answer.accounts, &lifted)?;
    }
    let mut names = names(ctx, &args.names, args.all, can_resume).await?;
    if args.now {
        names.extend(batch::names(ctx, &[], true, waits).await?);
        if names.is_empty() && !lifted.is_empty() {
            return Ok(0);
        }
    }
    if names.is_empty() {
        ctx.out.note("no paused or lost loops");
        return Ok(0);
    }
    let call = |name| Call::RalphResume(ResumeParams { name, env: env.clone() });
    let words = ("resumed ralph loop for", "is not paused");
    let (status, _) = change(ctx, names, args.format, call, words).await?;
    if !keys.is_empty() {
        ctx.out.note(&format!("the agent's next run gets the new value of {keys}"));
    }
    Ok(status)
}

fn print_lifted(
    ctx: &ClientContext,
    format: PageFormat,
    accounts: usize,
    resumed: &[String],
) -> Result<(), Failure> {
    for name in resumed {
        match format {
            PageFormat::Text => ctx.out.line(&format!("resumed ralph loop for {name}"))?,
            PageFormat::Json => ctx.out.json_line(
                &json!({"name": name, "changed": true, "warnings": Vec::<String>::new(), "error": null}),
            )?,
        }
    }
    if accounts > 0 && resumed.is_empty() {
        ctx.out.note("no iteration will wait for the present usage limits");
    }
    Ok(())
}
