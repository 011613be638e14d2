//! Shared by the `ralph` verbs.

use serde_json::json;

use super::batch::{BatchErrors, call_each};
use super::connect::QUICK_TIMEOUT;
use super::context::ClientContext;
use crate::cli::PageFormat;
use crate::out::{CommandResult, Failure};
use crate::protocol::{Call, Changed, ClearedSnapshots};
use crate::shell::quote_path;

/// Changes loops by one call each. `done` and `was_so` are the words for a loop that was changed, and for one that was
/// so before.
pub(super) async fn change(
    ctx: &ClientContext,
    names: Vec<String>,
    format: PageFormat,
    call: impl Fn(String) -> Call,
    (done, was_so): (&str, &str),
) -> CommandResult {
    let mut failures = BatchErrors::new(ctx.out, format, names.len() == 1);
    let calls = names.into_iter().map(|name| (name.clone(), call(name)));
    for (name, answer) in call_each::<Changed>(ctx, calls, QUICK_TIMEOUT).await? {
        match answer {
            Ok(changed) => {
                changed.warnings.iter().for_each(|warning| ctx.out.warn(warning));
                if failures.is_json() {
                    let Changed { changed, warnings, .. } = &changed;
                    failures.answer(&name, &json!({"changed": changed, "warnings": warnings}), None)?;
                } else if changed.changed {
                    ctx.out.line(&format!("{done} ralph loop for {name}"))?;
                } else {
                    ctx.out.warn(&format!("worker '{name}' {was_so}"));
                }
            }
            Err(error) => failures.add(&name, error)?,
        }
    }
    failures.end()
}

/// Prints which snapshots were deleted, and which were kept and how to delete them.
pub(super) fn print_snapshots(
    ctx: &ClientContext,
    format: PageFormat,
    snapshots: &[ClearedSnapshots],
) -> Result<(), Failure> {
    for ClearedSnapshots { repo, reference, count, kept } in snapshots {
        let what = if *count == 1 { "1 snapshot".to_owned() } else { format!("{count} snapshots") };
        let line = match kept {
            true => format!("left {what} ({reference}), since no branch has the files of the last one"),
            false => format!("removed {what} ({reference})"),
        };
        if format == PageFormat::Text {
            ctx.out.line(&line)?;
        }
        if !kept {
            continue;
        }
        let git = format!("git -C {}", quote_path(repo));
        ctx.out.hint(&format!(
            "to delete them: {git} for-each-ref --format='delete %(refname)' {reference} | {git} update-ref --stdin"
        ));
    }
    Ok(())
}
