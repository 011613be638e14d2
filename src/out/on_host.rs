//! Names the remote host in the commands of messages.

use std::borrow::Cow;
use std::sync::{PoisonError, RwLock};

use swarm_state::host::{HostName, with_host};

/// The host of the command. The process runs one command at a time, so this is global.
static HOST: RwLock<Option<HostName>> = RwLock::new(None);

/// The command runs on this host from now on; `None` for this machine.
pub(crate) fn set_host(name: Option<&HostName>) {
    *HOST.write().unwrap_or_else(PoisonError::into_inner) = name.cloned();
}

/// The host of the command; `None` for this machine.
pub(crate) fn host() -> Option<HostName> {
    HOST.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Adds the host of the command to each command of swarm in a message.
pub(crate) fn for_host(text: &str) -> Cow<'_, str> {
    host().map_or(Cow::Borrowed(text), |host| with_host(text, host.as_str()).into())
}

/// As [`for_host`], for the lines of a page.
pub(crate) fn for_hosts(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| for_host(line).into_owned()).collect()
}
