//! `swarm clean`: delete finished workers and their files.

use std::time::Duration;

use serde_json::{Value, json};

use super::kill::deleted_ignored;
use crate::cli::Clean;
use crate::client::batch::{BatchErrors, call_each, names, print_snapshots};
use crate::client::context::ClientContext;
use crate::client::json::ignored;
use crate::out::CommandResult;
use crate::protocol::{Call, CleanParams, Forgotten, WorkerView};

/// How long the removal of a worktree and the files of many iterations may take.
pub(super) const CLEAN_TIMEOUT: Duration = Duration::from_secs(330);

pub(super) async fn run(ctx: &ClientContext, args: &Clean) -> CommandResult {
    let names = names(ctx, &args.names, args.all, is_finished).await?;
    if names.is_empty() {
        ctx.out.note("no finished workers");
        return Ok(0);
    }
    let alone = names.len() == 1 && !args.all;
    let Clean { keep_worktree, force_dirty, discard_ignored, discard, .. } = *args;
    let calls = names.into_iter().map(|name| {
        let params = CleanParams { name: name.clone(), keep_worktree, force_dirty, discard_ignored, discard };
        (name, Call::Clean(params))
    });
    let mut failures = BatchErrors::new(ctx.out, args.format, alone);
    for (name, answer) in call_each::<Forgotten>(ctx, calls, CLEAN_TIMEOUT).await? {
        match answer {
            Ok(forgotten) => {
                if failures.is_json() {
                    failures.answer(&name, &result_object(&forgotten), None)?;
                } else {
                    ctx.out.lines(&result_lines(&name, &forgotten))?;
                }
                forgotten.warnings.iter().for_each(|warning| ctx.out.warn(warning));
                print_snapshots(ctx, args.format, &forgotten.snapshots)?;
            }
            Err(error) => failures.add(&name, error)?,
        }
    }
    failures.end()
}

/// Whether `clean --all` includes the worker. An earlier swarm may still need its own workers: each has to be named.
fn is_finished(worker: &WorkerView) -> bool {
    worker.status.is_finished() && !worker.metadata().earlier_swarm
}

fn result_object(forgotten: &Forgotten) -> Value {
    json!({
        "worktree_removed": forgotten.worktree_removed,
        "worktree_kept": forgotten.worktree_kept,
        "ignored_removed": ignored(&forgotten.ignored_removed),
        "snapshots": forgotten.snapshots,
        "warnings": forgotten.warnings,
    })
}

fn result_lines(name: &str, forgotten: &Forgotten) -> Vec<String> {
    let mut lines = vec![format!("cleaned {name}")];
    lines
        .extend(forgotten.worktree_removed.iter().map(|path| format!("removed worktree {}", path.display())));
    lines.extend(deleted_ignored(&forgotten.ignored_removed));
    lines.extend(forgotten.worktree_kept.iter().map(|path| format!("left worktree {}", path.display())));
    lines
}
