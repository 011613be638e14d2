//! `ralph.resume`: resume a paused loop, with other variables if the request has some.

use std::sync::Arc;

use swarm_state::engine::{Edits, Event};

use crate::daemon::caller::refuse_own;
use crate::daemon::legacy;
use crate::daemon::supervisor::Supervisor;
use crate::daemon::verbs::ralph_pause::status_of;
use crate::error::{Error, ErrorCode, Result};
use crate::protocol::{Changed, ResumeParams};

impl Supervisor {
    /// Sets environment variables for the next runs of a live loop.
    pub(crate) fn change_env(&mut self, params: &ResumeParams, peer: Option<i32>) -> Result<()> {
        let (name, slot) = self.find_loop(&params.name)?;
        if params.env.is_empty() || slot.engine.is_stopped() {
            return Ok(());
        }
        refuse_own(slot, peer, "change its own loop")?;
        if let Some(refusal) = legacy::refuse_legacy(slot) {
            return Err(refusal);
        }
        if let Some(key) = params.env.keys().find(|key| key.is_empty() || key.contains(['=', '\0'])) {
            return Err(Error::invalid(format!("{key:?} is not a valid variable name")));
        }
        self.step_if_saved(&name, |slot| {
            let spec = Arc::make_mut(&mut slot.spec);
            for (key, value) in &params.env {
                spec.env.insert(key.clone(), value.clone());
                if !spec.env_names.contains(key) {
                    spec.env_names.push(key.clone());
                }
            }
            Ok(Event::Edited(Edits::default()))
        })
    }

    pub(crate) fn resume(&mut self, name: &str, peer: Option<i32>) -> Result<Changed> {
        let (name, slot) = self.find_loop(name)?;
        refuse_own(slot, peer, "resume its own loop")?;
        let before = status_of(slot)?;
        if slot.engine.is_stopped() {
            let message = format!("the loop of worker '{name}' has ended ({before})");
            let anew = if slot.origin.legacy.is_some() { "spawn --ralph --name" } else { "respawn" };
            let hint = format!("to start it again: swarm {anew} {name}");
            return Err(Error::new(ErrorCode::Conflict, message).hint(hint));
        }
        let changed = slot.engine.can_resume();
        if changed {
            self.step_if_saved(&name, |_| Ok(Event::Resume))?;
        }
        Ok(Changed { changed, before, warnings: self.save_warnings(&name) })
    }
}
