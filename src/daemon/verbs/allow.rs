//! `allow`: let a sandboxed worker reach further hosts, at once and in later runs.

use std::sync::Arc;

use swarm_state::docker::{allow_command, sandbox_name};
use swarm_state::sandbox::SandboxNet;

use crate::daemon::caller::refuse_own;
use crate::daemon::supervisor::Supervisor;
use crate::error::{Error, Result};
use crate::protocol::{AllowParams, Empty};
use crate::sandbox::hosts::write_hosts;

impl Supervisor {
    pub(crate) fn allow(&mut self, params: AllowParams, peer: Option<i32>) -> Result<Empty> {
        let (name, slot) = self.find(&params.name)?;
        refuse_own(slot, peer, "allow hosts to itself")?;
        if slot.spec.is_in_docker() {
            let message = format!("Docker allows the hosts of worker '{name}', and not swarm");
            let hint = allow_command(&sandbox_name(slot.cwd()), &params.hosts);
            return Err(Error::conflict(message).hint(hint));
        }
        let before = Arc::clone(&slot.spec);
        let Some(slot) = self.slots.get_mut(&name) else { return Ok(Empty {}) };
        let spec = Arc::make_mut(&mut slot.spec);
        let Some(sandbox) = spec.sandbox.as_mut().filter(|sandbox| sandbox.net == SandboxNet::Allow) else {
            let message = format!("worker '{name}' has no list of allowed hosts");
            return Err(Error::conflict(message).hint("only a worker with --net allow has one"));
        };
        for host in params.hosts {
            if !sandbox.hosts.contains(&host) {
                sandbox.hosts.push(host);
            }
        }
        let hosts = sandbox.hosts.clone();
        self.save(&name);
        let Some(slot) = self.slots.get_mut(&name) else { return Ok(Empty {}) };
        if slot.saving.is_unsaved() {
            slot.spec = before;
            return Err(slot.saving.refusal());
        }
        let dir = slot.driver.context.run_dir(slot.engine.run());
        if slot.engine.has_pane() {
            write_hosts(&dir, &hosts)
                .map_err(|error| Error::system("cannot write the hosts for the running agent", error))?;
        }
        Ok(Empty {})
    }
}
