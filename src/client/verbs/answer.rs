//! `swarm answer`: answer a permission request or question of a worker's agent, or show those that are open.

use swarm_state::answer::RequestAnswer;

use crate::cli::AnswerArgs;
use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::client::worker::age;
use crate::out::CommandResult;
use crate::protocol::{AgentRequestView, AnswerParams, Answered, Call, Named, WorkerView};

pub(super) async fn run(ctx: &ClientContext, args: AnswerArgs) -> CommandResult {
    let name = args.name.to_string();
    if args.answer.is_empty() {
        return show(ctx, name).await;
    }
    let answer = RequestAnswer::parse(&args.answer.join(" "));
    let params = AnswerParams { name, request: args.request, answer };
    let answered: Answered = ctx.call(&Call::Answer(params), QUICK_TIMEOUT).await?;
    ctx.out.line(&format!("answered {}", answered.request.headline()))?;
    Ok(0)
}

async fn show(ctx: &ClientContext, name: String) -> CommandResult {
    let worker: WorkerView = ctx.call(&Call::Status(Named { name: name.clone() }), QUICK_TIMEOUT).await?;
    if worker.requests.is_empty() {
        ctx.out.line(&format!("{name} holds no request open"))?;
        return Ok(0);
    }
    ctx.out.lines(&worker.requests.iter().flat_map(lines).collect::<Vec<_>>())?;
    ctx.out.hint(&format!("swarm answer {name} yes, no, always or a text"));
    Ok(0)
}

/// A request: its headline with its age, and further lines of its text.
pub(super) fn lines(open: &AgentRequestView) -> Vec<String> {
    let request = &open.request;
    let waits = age(&open.since, chrono::Local::now().fixed_offset());
    let head = format!("{} ({waits} ago, id {})", request.headline().trim_end_matches(" …"), request.id);
    let rest = request.text.lines().skip(1).map(|line| format!("  {line}"));
    std::iter::once(head).chain(rest).collect()
}
