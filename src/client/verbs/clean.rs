//! `swarm clean`: forget workers that are over, each by itself.

use std::collections::BTreeSet;
use std::time::Duration;

use super::kill::deleted_ignored;
use crate::cli::Clean;
use crate::client::batch::{BatchErrors, call_each};
use crate::client::connect::QUICK;
use crate::client::context::Context;
use crate::error::Result;
use crate::out::CommandResult;
use crate::protocol::{Call, CleanParams, EARLIER_SWARM, Empty, Forgotten, Listing, WorkerView};

/// How long it may take to remove a worktree and the files of many iterations.
const LIMIT: Duration = Duration::from_secs(330);

pub(super) async fn run(ctx: &Context, args: &Clean) -> CommandResult {
    let mut names: Vec<String> = args.names.iter().map(ToString::to_string).collect();
    if args.all {
        names = over(ctx).await?;
    }
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    if names.is_empty() {
        ctx.out.note("no worker is over");
        return Ok(0);
    }
    let alone = names.len() == 1 && !args.all;
    let Clean { keep_worktree, force_dirty, discard_ignored, .. } = *args;
    let calls = names.into_iter().map(|name| {
        (name.clone(), Call::Clean(CleanParams { name, keep_worktree, force_dirty, discard_ignored }))
    });
    let mut failures = BatchErrors::new(ctx.out, alone);
    for (name, answer) in call_each::<Forgotten>(ctx, calls, LIMIT).await? {
        match answer {
            Ok(forgotten) => {
                ctx.out.lines(&words(&name, &forgotten))?;
                forgotten.warnings.iter().for_each(|warning| ctx.out.warn(warning));
            }
            Err(error) => failures.add(&name, error)?,
        }
    }
    failures.end()
}

/// The names of the workers that are over. Those of an earlier swarm go one by one only: nobody here knows
/// whether they are of use to it.
async fn over(ctx: &Context) -> Result<Vec<String>> {
    let listing: Listing = ctx.call(&Call::Ls(Empty {}), QUICK).await?;
    let over = |w: &WorkerView| w.outcome.is_some() && w.metadata[EARLIER_SWARM] != true;
    Ok(listing.workers.into_iter().filter(over).map(|w| w.name).collect())
}

fn words(name: &str, forgotten: &Forgotten) -> Vec<String> {
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
