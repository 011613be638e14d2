//! Shared by the verbs that change workers or delete snapshots.

use serde_json::json;

use super::batch::{BatchErrors, call_each};
use super::connect::QUICK_TIMEOUT;
use super::context::ClientContext;
use crate::cli::PageFormat;
use crate::out::Failure;
use crate::protocol::{Call, ClearedSnapshots, HoldChanged};
use crate::shell::quote_path;

/// Changes workers by one call each. `done` stands before the name of a worker that was changed, and `was_so` behind
/// one that was so before. Returns the exit status, and whether a worker was changed.
pub(super) async fn change(
    ctx: &ClientContext,
    names: Vec<String>,
    format: PageFormat,
    call: impl Fn(String) -> Call,
    (done, was_so): (&str, &str),
) -> Result<(u8, bool), Failure> {
    let mut failures = BatchErrors::new(ctx.out, format, names.len() == 1);
    let mut any = false;
    let calls = names.into_iter().map(|name| (name.clone(), call(name)));
    // The answers of the calls for loops have a further field.
    for (name, answer) in call_each::<HoldChanged>(ctx, calls, QUICK_TIMEOUT).await? {
        match answer {
            Ok(HoldChanged { changed, warnings }) => {
                any |= changed;
                warnings.iter().for_each(|warning| ctx.out.warn(warning));
                if failures.is_json() {
                    failures.answer(&name, &json!({"changed": changed, "warnings": warnings}), None)?;
                } else if changed {
                    ctx.out.line(&format!("{done} {name}"))?;
                } else {
                    ctx.out.warn(&format!("worker '{name}' {was_so}"));
                }
            }
            Err(error) => failures.add(&name, error)?,
        }
    }
    Ok((failures.end()?, any))
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
