//! Quotes the last lines of an agent or a check that failed, for `why`, `report` and the follower.

use swarm_state::ledger::Iteration;
use swarm_state::screen::printable;

use super::report::outcome;
use super::worker::quoted;

pub(super) const EVIDENCE_LINES: usize = 3;

const MAX_QUOTED_CHECKS: usize = 3;

/// Whether the agent's last output explains the end of the iteration.
pub(super) fn shows_output(it: &Iteration) -> bool {
    !it.last_lines.is_empty() && it.trouble().is_some() && !it.is_complete()
}

pub(super) fn of_agent(it: &Iteration) -> Vec<String> {
    if shows_output(it) { last_lines(&it.last_lines) } else { vec![] }
}

/// Quotes the last output of a check, which ends with its exit status.
pub(super) fn of_check(output: &str) -> Vec<String> {
    last_lines(&output.lines().map(str::to_owned).collect::<Vec<_>>())
}

/// Quotes the last output of the checks that failed, each below its name.
pub(super) fn of_checks(it: &Iteration) -> Vec<String> {
    let Some(verdict) = &it.verdict else { return vec![] };
    let failed = verdict.failed_checks().take(MAX_QUOTED_CHECKS);
    let lines = failed.flat_map(|check| {
        let name = format!("  {}  {}", outcome(check), printable(&check.name));
        [name].into_iter().chain(of_check(&check.output))
    });
    lines.collect()
}

/// Quotes the last lines that are not empty.
pub(super) fn last_lines(lines: &[String]) -> Vec<String> {
    let mut last: Vec<String> =
        lines.iter().rev().filter(|line| !line.trim().is_empty()).take(EVIDENCE_LINES).cloned().collect();
    last.reverse();
    quoted(&last).collect()
}
