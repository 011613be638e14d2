//! The limit of an iteration's context (`--max-context`).
//!
//! The agent's hook reports the percentage after each tool call and asks the agent to stop at the limit. swarm ends the
//! iteration only at a report some points above it, and never at the first report that reaches the limit. Tools that
//! the agent called together report the same percentage, which counts as one report.

use super::{Effect, Now, Phase, Why, Worker};
use crate::context::end_at;
use crate::notice::Entry;

impl Worker {
    /// The percentage of the agent's context that was used at its last report; `None` without a report of this run.
    pub fn context_percent(&self) -> Option<u8> {
        self.phase.watch()?.context
    }

    pub(super) fn context_reported(&mut self, percent: u8, now: Now) -> Option<Vec<Effect>> {
        let (Phase::Starting { watch, .. } | Phase::Running { watch }) = &mut self.phase else { return None };
        let before = watch.context.replace(percent);
        // The first report after a release ends the iteration.
        let ralph = self.ralph.as_ref().filter(|_| !self.is_held())?;
        let max = ralph.budgets.max_context?;
        let was_asked = before.is_some_and(|before| before >= max && before != percent);
        let end = end_at(max).filter(|end| was_asked && percent >= *end)?;
        let reason = format!("its context is {percent}% full; --max-context {max} ends it at {end}%");
        let message = format!("iteration {}: {reason}", ralph.iteration);
        let mut effects = self.end_because(Why::ContextSpent, reason, now);
        effects.push(Effect::Notify(Entry::Warning { message }));
        Some(effects)
    }
}
