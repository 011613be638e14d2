//! `swarm ralph set`: change a loop's settings.

use swarm_state::screen::printable;

use crate::cli::RalphSet;
use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::client::ralph::no_loop;
use crate::client::typed_path::prompt_file;
use crate::error::{Error, Result};
use crate::out::CommandResult;
use crate::protocol::{Call, RalphSetParams, RalphView};

pub(super) async fn run(ctx: &ClientContext, args: &RalphSet) -> CommandResult {
    for (key, value) in &args.changes {
        let value = absolute_prompt(key, value)?;
        let params = RalphSetParams { name: args.name.to_string(), key: key.clone(), value: value.clone() };
        let answer = ctx.call(&Call::RalphSet(params), QUICK_TIMEOUT).await;
        let now: RalphView = answer.map_err(|e| no_loop(args.name.as_str(), e))?;
        ctx.out.line(&printable(&format!("set {key}={value} for {}", args.name)))?;
        if let Some(warning) = last_iteration(key, &now) {
            ctx.out.warn(&warning);
        }
    }
    Ok(0)
}

/// Warns about a maximum at or below the count, which is valid and ends the loop soon.
fn last_iteration(key: &str, now: &RalphView) -> Option<String> {
    let last = key == "max_iterations" && now.max_iterations <= now.current_iteration;
    last.then(|| format!("iteration {} is the last", now.current_iteration))
}

/// Makes a prompt file absolute, since the daemon has another current directory.
fn absolute_prompt(key: &str, value: &str) -> Result<String> {
    if key != "prompt_file" || value.is_empty() {
        return Ok(value.to_owned());
    }
    let path = prompt_file(value.as_ref())?;
    path.into_os_string().into_string().map_err(|_| Error::invalid("the directory's name is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::testing::ralph_view;

    #[test]
    fn a_limit_below_the_count_is_told() {
        let mut view = ralph_view();
        assert_eq!(last_iteration("max_iterations", &view), None);
        view.max_iterations = 2;
        assert_eq!(last_iteration("max_iterations", &view).unwrap(), "iteration 7 is the last");
        assert_eq!(last_iteration("done_pattern", &view), None);
        view.max_iterations = 8;
        assert_eq!(last_iteration("max_iterations", &view), None);
    }
}
