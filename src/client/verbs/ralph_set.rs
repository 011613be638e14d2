//! `swarm ralph set`: change a loop's settings.

use swarm_state::advice::raise_and_resume;
use swarm_state::screen::printable;

use super::ralph_status::print_json;
use crate::cli::{PageFormat, RalphSet, parse_dollars};
use crate::client::connect::QUICK_TIMEOUT;
use crate::client::context::ClientContext;
use crate::client::typed_path::prompt_file;
use crate::duration::{parse_duration, parse_nonzero_duration};
use crate::error::{Error, Result};
use crate::loop_setting;
use crate::out::CommandResult;
use crate::protocol::{Call, RalphSetParams, RalphView};

pub(super) async fn run(ctx: &ClientContext, args: &RalphSet) -> CommandResult {
    let mut changes = vec![];
    for (key, value) in &args.changes {
        let value = absolute_prompt(key, value)?;
        let wire = in_base_units(key, &value)?;
        // An invalid setting changes none of the others.
        loop_setting::parse(key, &wire)?;
        changes.push((key, value, wire));
    }
    let mut last = None;
    for (key, value, wire) in changes {
        let params = RalphSetParams { name: args.name.to_string(), key: key.clone(), value: wire };
        let now: RalphView = ctx.call(&Call::RalphSet(params), QUICK_TIMEOUT).await?;
        if args.format == PageFormat::Text {
            ctx.out.line(&printable(&format!("set {key}={value} for {}", args.name)))?;
        }
        last_iteration(key, &now).iter().for_each(|warning| ctx.out.warn(warning));
        last = Some(now);
    }
    let Some(now) = last else { return Ok(0) };
    if now.worker_status.is_finished() {
        ctx.out.hint(&way_on(&now));
    }
    if args.format == PageFormat::Json {
        print_json(ctx, &now).await?;
    }
    Ok(0)
}

/// Says how a loop that has ended continues, or starts again if it cannot.
fn way_on(now: &RalphView) -> String {
    let name = &now.worker_name;
    match now.raise.as_deref() {
        Some([]) => format!("the loop has ended; to continue it: {}", raise_and_resume(name, &[])),
        Some(changes) => {
            format!("the loop is still at a limit; to continue it: {}", raise_and_resume(name, changes))
        }
        None => format!(
            "the loop has ended and cannot continue, since its files are gone; \
             to start it again from the first iteration: swarm respawn {name}"
        ),
    }
}

/// Warns about a maximum at or below the count, which is valid and ends the loop soon.
fn last_iteration(key: &str, now: &RalphView) -> Option<String> {
    let last = key == "max_iterations" && now.max_iterations <= now.current_iteration;
    last.then(|| format!("iteration {} is the last", now.current_iteration))
}

/// Converts a duration to seconds, and US dollars to millionths: the units of the protocol.
fn in_base_units(key: &str, value: &str) -> Result<String> {
    let number = match key {
        "max_time" | "max_cost" if loop_setting::removes(value) => return Ok(value.to_owned()),
        "question_timeout" => parse_duration(value),
        "inactivity_timeout" | "max_time" => parse_nonzero_duration(value),
        "max_cost" => parse_dollars(value),
        _ => return Ok(value.to_owned()),
    };
    number.map(|number| number.to_string()).map_err(|message| Error::usage(format!("{key}: {message}")))
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
    fn max_iterations_below_the_count_reports_the_last_iteration() {
        let mut view = ralph_view();
        assert_eq!(last_iteration("max_iterations", &view), None);
        view.max_iterations = 2;
        assert_eq!(last_iteration("max_iterations", &view).unwrap(), "iteration 7 is the last");
        assert_eq!(last_iteration("done_pattern", &view), None);
        view.max_iterations = 8;
        assert_eq!(last_iteration("max_iterations", &view), None);
    }

    #[test]
    fn a_resume_is_suggested_only_if_it_continues_the_loop() {
        let start = "the loop has ended and cannot continue, since its files are gone; to start it again from the \
            first iteration: swarm respawn agent";
        for (raise, hint) in [
            (Some(&[][..]), "the loop has ended; to continue it: swarm ralph resume agent"),
            (
                Some(&["max_cost=1.00"]),
                "the loop is still at a limit; to continue it: swarm ralph set agent max_cost=1.00 && swarm ralph resume agent",
            ),
            (None, start),
        ] {
            let raise = raise.map(|changes| changes.iter().map(|&change| change.to_owned()).collect());
            assert_eq!(way_on(&RalphView { raise, ..ralph_view() }), hint);
        }
    }

    #[test]
    fn values_are_sent_in_the_units_of_the_protocol() {
        for (key, typed, sent) in [
            ("inactivity_timeout", "10m", Ok("600")),
            ("inactivity_timeout", "0", Err("inactivity_timeout: the duration must be at least 1s")),
            ("question_timeout", "10m", Ok("600")),
            ("question_timeout", "0", Ok("0")),
            ("max_time", "1h30m", Ok("5400")),
            ("max_time", "null", Ok("null")),
            ("max_time", "1x", Err("max_time: invalid duration '1x': use 90, 90s, 10m, 8h or 1h30m")),
            ("max_cost", "2.50", Ok("2500000")),
            ("max_cost", "null", Ok("null")),
            (
                "max_cost",
                "0",
                Err("max_cost: the amount must be more than 0 and at most 1000000000, as in 2.50"),
            ),
            ("max_iterations", "10m", Ok("10m")),
        ] {
            let result = in_base_units(key, typed).map_err(|error| error.to_string());
            assert_eq!(result, sent.map(str::to_owned).map_err(str::to_owned), "{key}={typed}");
        }
    }
}
