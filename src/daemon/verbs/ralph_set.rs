//! `ralph.set`: change one setting of a loop, as an edit of its `state.json` does. A loop that ended at a limit counts
//! as one that may continue.

use swarm_state::engine::Event;

use crate::daemon::caller::refuse_own;
use crate::daemon::legacy::refuse_legacy;
use crate::daemon::supervisor::Supervisor;
use crate::daemon::verbs::ralph_resume::has_ended;
use crate::daemon::verbs::spawn::{check_context, check_cost};
use crate::error::Result;
use crate::loop_setting;
use crate::protocol::{RalphSetParams, RalphView};

impl Supervisor {
    pub(crate) fn ralph_set(&mut self, params: &RalphSetParams, peer: Option<i32>) -> Result<RalphView> {
        let (name, slot) = self.find_loop(&params.name)?;
        refuse_own(slot, peer, "change its own loop")?;
        refuse_legacy(slot)?;
        if slot.engine.is_stopped() && !slot.engine.ended_at_limit() {
            return Err(has_ended(slot));
        }
        self.step_if_saved(&name, |slot| {
            let mut edits = loop_setting::parse(&params.key, &params.value)?;
            if edits.budgets.max_cost.flatten().is_some() {
                check_cost(&slot.spec)?;
            }
            if let Some(percent) = edits.budgets.max_context.flatten() {
                check_context(&slot.spec, percent)?;
            }
            // A match of the same pattern still counts.
            edits.done_pattern = edits.done_pattern.filter(|pattern| *pattern != slot.spec.done_pattern);
            slot.edit_spec(&edits);
            Ok(Event::Edited(edits))
        })?;
        self.ralph_status(name.as_str())
    }
}
