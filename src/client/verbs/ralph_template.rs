//! `swarm ralph template`: print the starter PROMPT.md.

use swarm_state::template::PROMPT_TEMPLATE;

use crate::client::context::ClientContext;
use crate::out::CommandResult;

pub(super) fn run(ctx: &ClientContext) -> CommandResult {
    ctx.out.raw(PROMPT_TEMPLATE).map(|()| 0)
}
