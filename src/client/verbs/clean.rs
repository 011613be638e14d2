//! `swarm clean`: delete finished workers and their files.

use std::collections::BTreeSet;
use std::time::Duration;

use super::kill::deleted_ignored;
use crate::cli::Clean;
use crate::client::batch::{BatchErrors, call_each};
use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::error::Result;
use crate::out::CommandResult;
use crate::protocol::{Call, CleanParams, Empty, Forgotten, Listing, WorkerView};

/// How long the removal of a worktree and the files of many iterations may take.
const CLEAN_TIMEOUT: Duration = Duration::from_secs(330);

pub(super) async fn run(ctx: &ClientContext, args: &Clean) -> CommandResult {
    let mut names: Vec<String> = args.names.iter().map(ToString::to_string).collect();
    if args.all {
        names = finished_workers(ctx).await?;
    }
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    if names.is_empty() {
        ctx.out.note("no finished workers");
        return Ok(0);
    }
    let alone = names.len() == 1 && !args.all;
    let Clean { keep_worktree, force_dirty, discard_ignored, .. } = *args;
    let calls = names.into_iter().map(|name| {
        (name.clone(), Call::Clean(CleanParams { name, keep_worktree, force_dirty, discard_ignored }))
    });
    let mut failures = BatchErrors::new(ctx.out, alone);
    for (name, answer) in call_each::<Forgotten>(ctx, calls, CLEAN_TIMEOUT).await? {
        match answer {
            Ok(forgotten) => {
                ctx.out.lines(&result_lines(&name, &forgotten))?;
                forgotten.warnings.iter().for_each(|warning| ctx.out.warn(warning));
            }
            Err(error) => failures.add(&name, error)?,
        }
    }
    failures.end()
}

/// Returns the names of the finished workers. Those of an earlier swarm are not included, since that swarm may still
/// need them: each has to be named.
async fn finished_workers(ctx: &ClientContext) -> Result<Vec<String>> {
    let listing: Listing = ctx.call(&Call::Ls(Empty {}), QUICK_TIMEOUT).await?;
    let is_finished = |w: &WorkerView| w.status.is_finished() && !w.metadata().earlier_swarm;
    Ok(listing.workers.into_iter().filter(is_finished).map(|w| w.name).collect())
}

fn result_lines(name: &str, forgotten: &Forgotten) -> Vec<String> {
    let mut lines = vec![format!("cleaned {name}")];
    if let Some(path) = &forgotten.worktree_removed {
        lines.push(format!("removed worktree {}", path.display()));
    }
    lines.extend(deleted_ignored(&forgotten.ignored_removed));
    if let Some(path) = &forgotten.worktree_kept {
        lines.push(format!("left worktree {}", path.display()));
    }
    lines
}
