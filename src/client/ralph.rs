//! Shared by the `ralph` verbs.

use super::connect::QUICK_TIMEOUT;
use super::context::ClientContext;
use crate::error::{Error, ErrorCode};
use crate::out::CommandResult;
use crate::protocol::{Call, Changed};

/// Replaces the error for an unknown worker by the documented one.
pub(super) fn no_loop(name: &str, error: Error) -> Error {
    if error.code == ErrorCode::NotFound {
        Error::invalid(format!("worker '{name}' is not a ralph worker")).hint("swarm ralph ls")
    } else {
        error
    }
}

pub(super) async fn change(
    ctx: &ClientContext,
    name: &str,
    call: Call,
    done: &str,
    was_so: &str,
) -> CommandResult {
    let answer = ctx.call(&call, QUICK_TIMEOUT).await;
    let changed: Changed = answer.map_err(|e| no_loop(name, e))?;
    for warning in &changed.warnings {
        ctx.out.warn(warning);
    }
    if changed.changed {
        ctx.out.line(&format!("{done} ralph loop for {name}"))?;
    } else {
        ctx.out.warn(&format!("worker '{name}' {was_so}"));
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_is_no_loop_gets_the_documents_error() {
        let error = no_loop("x", Error::new(ErrorCode::NotFound, "no worker named 'x'"));
        assert_eq!(
            (error.message.as_str(), error.code.exit_status()),
            ("worker 'x' is not a ralph worker", 1)
        );
        assert_eq!(no_loop("x", Error::invalid("y")).message, "y");
    }
}
