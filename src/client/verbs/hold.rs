//! `swarm hold`: leave workers to a person until they are released.

use crate::cli::{HoldArgs, PageFormat};
use crate::client::batch::{BatchErrors, call_each, names};
use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::out::CommandResult;
use crate::protocol::{Call, HoldChanged, Named};

pub(super) async fn run(ctx: &ClientContext, args: HoldArgs) -> CommandResult {
    let names = names(ctx, &args.names, false, |_| false).await?;
    let hint = format!("swarm goes on after: swarm release {}", names.join(" "));
    let (status, held) = change(ctx, names, Call::Hold, ("holding", "is already held")).await?;
    if held {
        ctx.out.hint(&hint);
    }
    Ok(status)
}

/// Holds or releases workers by one call each. `done` and `was_so` are the words for a worker that was changed, and for
/// one that was so before. Returns the exit status, and whether a worker was changed.
pub(super) async fn change(
    ctx: &ClientContext,
    names: Vec<String>,
    call: fn(Named) -> Call,
    (done, was_so): (&str, &str),
) -> Result<(u8, bool), crate::out::Failure> {
    let mut failures = BatchErrors::new(ctx.out, PageFormat::Text, names.len() == 1);
    let calls = names.into_iter().map(|name| (name.clone(), call(Named { name })));
    let mut any = false;
    for (name, answer) in call_each::<HoldChanged>(ctx, calls, QUICK_TIMEOUT).await? {
        match answer {
            Ok(HoldChanged { changed, warnings }) => {
                warnings.iter().for_each(|warning| ctx.out.warn(warning));
                any |= changed;
                if changed {
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
