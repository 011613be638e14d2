//! `swarm kill`: end workers, and print which processes had to be killed by force.

use std::time::Duration;

use serde_json::{Value, json};
use swarm_state::ignored::IgnoredFiles;

use crate::cli::Kill;
use crate::client::batch::{BatchErrors, call_each, names};
use crate::client::context::ClientContext;
use crate::client::json::ignored;
use crate::error::{Error, ErrorCode};
use crate::out::CommandResult;
use crate::protocol::{Call, KillParams, Killed};

/// How long the end of a worker may take. Its processes get some seconds to end by themselves.
const KILL_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) async fn run(ctx: &ClientContext, args: &Kill) -> CommandResult {
    let names = names(ctx, &args.names, args.all, |w| w.status.is_live_or_paused()).await?;
    if names.is_empty() {
        ctx.out.note("no live workers");
        return Ok(0);
    }
    let alone = names.len() == 1;
    let Kill { rm_worktree, force_dirty, discard_ignored, .. } = *args;
    let calls = names.into_iter().map(|name| {
        (name.clone(), Call::Kill(KillParams { name, rm_worktree, force_dirty, discard_ignored }))
    });
    let mut failures = BatchErrors::new(ctx.out, args.format, alone);
    for (name, answer) in call_each::<Killed>(ctx, calls, KILL_TIMEOUT).await? {
        match answer.map_err(|error| with_status_hint(&name, error)) {
            Ok(killed) => {
                if failures.is_json() {
                    failures.answer(&name, &result_object(&killed), killed.worktree_error.as_ref())?;
                } else {
                    ctx.out.lines(&result_lines(&name, &killed))?;
                }
                killed.warnings.iter().for_each(|warning| ctx.out.warn(warning));
                if let Some(error) = killed.worktree_error {
                    failures.add_text(&name, error)?;
                }
            }
            Err(error) => failures.add(&name, error)?,
        }
    }
    failures.end()
}

/// Adds a hint to a timeout, after which the worker's state is not known.
fn with_status_hint(name: &str, error: Error) -> Error {
    if error.code != ErrorCode::Timeout {
        return error;
    }
    let also = error.hint.as_ref().map(|hint| format!("{hint}; ")).unwrap_or_default();
    error.hint(format!("{also}to see whether it has ended: swarm status {name}"))
}

fn result_object(killed: &Killed) -> Value {
    json!({
        "already": killed.already,
        "forced": killed.forced,
        "worktree_removed": killed.worktree_removed,
        "ignored_removed": ignored(&killed.ignored_removed),
        "warnings": killed.warnings,
    })
}

fn result_lines(name: &str, killed: &Killed) -> Vec<String> {
    let how = match (killed.already, killed.forced.as_slice()) {
        (true, _) => " (it had ended before)".to_owned(),
        (false, []) => String::new(),
        (false, forced) => format!(" (by force: {})", forced.join(", ")),
    };
    let mut lines = vec![format!("killed {name}{how}")];
    lines.extend(killed.worktree_removed.as_ref().map(|path| format!("removed worktree {}", path.display())));
    lines.extend(deleted_ignored(&killed.ignored_removed));
    lines.iter().map(|line| swarm_state::screen::printable(line)).collect()
}

pub(super) fn deleted_ignored(ignored: &IgnoredFiles) -> Option<String> {
    (!ignored.is_empty()).then(|| format!("deleted ignored files: {}", ignored.summary()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_ended_by_force_are_named() {
        assert_eq!(result_lines("a", &Killed::default()), ["killed a"]);
        let killed = Killed { forced: vec!["7 node".into(), "8 sh".into()], ..Killed::default() };
        assert_eq!(result_lines("a", &killed), ["killed a (by force: 7 node, 8 sh)"]);
        let killed = Killed { already: true, worktree_removed: Some("/w".into()), ..Killed::default() };
        assert_eq!(result_lines("a", &killed), ["killed a (it had ended before)", "removed worktree /w"]);
    }
}
