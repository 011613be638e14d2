//! `swarm ralph clean`: delete the files of finished loops.

use serde_json::json;

use crate::cli::{PageFormat, RalphClean};
use crate::client::batch::print_snapshots;
use crate::client::context::ClientContext;
use crate::client::verbs::clean::CLEAN_TIMEOUT;
use crate::out::CommandResult;
use crate::protocol::{Call, Cleaned, RalphCleanParams};

pub(super) async fn run(ctx: &ClientContext, args: &RalphClean) -> CommandResult {
    let call = Call::RalphClean(RalphCleanParams { name: args.name.clone(), discard: args.discard });
    let cleaned: Cleaned = ctx.call(&call, CLEAN_TIMEOUT).await?;
    let lines: Vec<String> = cleaned.removed.iter().map(|n| format!("removed ralph state of {n}")).collect();
    match args.format {
        PageFormat::Text => ctx.out.lines(&lines)?,
        PageFormat::Json => {
            let Cleaned { removed, kept, snapshots, .. } = &cleaned;
            ctx.out.json(&json!({"removed": removed, "kept": kept, "snapshots": snapshots}))?;
        }
    }
    print_snapshots(ctx, args.format, &cleaned.snapshots)?;
    cleaned.warnings.iter().for_each(|warning| ctx.out.warn(warning));
    for kept in &cleaned.kept {
        ctx.out.warn(&format!("the loop of {kept} has not ended; its state is kept"));
    }
    if cleaned.removed.is_empty() && cleaned.kept.is_empty() {
        ctx.out.note("nothing to remove");
    }
    Ok(if args.name.is_some() && !cleaned.kept.is_empty() { 1 } else { 0 })
}
