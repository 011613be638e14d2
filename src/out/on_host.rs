//! Names the remote host in the commands of messages.

use std::borrow::Cow;
use std::sync::{PoisonError, RwLock};

use swarm_state::host::{HostName, with_host};

/// The host of the command, and whether its workers use the files of this machine. The process runs one command at a
/// time, so this is global.
static HOST: RwLock<Option<(HostName, bool)>> = RwLock::new(None);

/// The command runs on this host from now on; `None` for this machine.
pub(crate) fn set_host(host: Option<(&HostName, bool)>) {
    *HOST.write().unwrap_or_else(PoisonError::into_inner) = host.map(|(name, here)| (name.clone(), here));
}

fn host() -> Option<(HostName, bool)> {
    HOST.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The host of the command, if its workers use files of that host; `None` if they use those of this machine.
pub(crate) fn host_with_files() -> Option<HostName> {
    host().and_then(|(name, has_files_here)| (!has_files_here).then_some(name))
}

/// Adds the host of the command to each command of swarm in a message.
pub(crate) fn for_host(text: &str) -> Cow<'_, str> {
    host().map_or(Cow::Borrowed(text), |(name, _)| with_host(text, name.as_str()).into())
}

/// As [`for_host`], for the lines of a page.
pub(crate) fn for_hosts(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| for_host(line).into_owned()).collect()
}
