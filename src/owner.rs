//! The owner of swarm's directory, from its lock file and from this machine.
//!
//! The daemon reads it when it starts, the client before it reports that no daemon runs, and `daemon take-over` before
//! it replaces the owner. `swarm_state::owner` decides. Not here: the lock itself ([`crate::store::DaemonLock`]).

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::OnceLock;

use fs2::FileExt;
use swarm_state::owner::{BatchJob, DirectoryOwner, Kinship, LockFacts, MachineId, Ownership, decide};

use crate::error::{Error, ErrorCode, Result, failed};
use crate::files::{create, sync_dir};
use crate::paths::Paths;

/// The largest lock file that is read.
const MAX_LOCK_BYTES: u64 = 4096;

/// This machine. A change of the host name after the start of this process is not seen.
pub(crate) fn here() -> &'static MachineId {
    static HERE: OnceLock<MachineId> = OnceLock::new();
    HERE.get_or_init(|| {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        let boot = boot.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        // A number that the kernel gives each namespace, as in `pid:[4026531836]`.
        let pids = std::fs::read_link("/proc/self/ns/pid").ok();
        let pids = pids.map(|link| link.to_string_lossy().chars().filter(char::is_ascii_digit).collect());
        MachineId { host, boot, pids }
    })
}

pub(crate) fn own_job() -> Option<BatchJob> {
    let id = std::env::var("SLURM_JOB_ID").ok().filter(|id| !id.is_empty())?;
    let restarts = std::env::var("SLURM_RESTART_COUNT").ok().and_then(|count| count.parse().ok());
    Some(BatchJob { id, restarts: restarts.unwrap_or(0) })
}

pub(crate) fn this_process() -> DirectoryOwner {
    DirectoryOwner { pid: std::process::id(), machine: Some(here().clone()), job: own_job(), left: None }
}

pub(crate) fn read(file: &File) -> Option<DirectoryOwner> {
    let mut text = String::new();
    file.take(MAX_LOCK_BYTES).read_to_string(&mut text).ok()?;
    DirectoryOwner::parse(&text)
}

/// The facts for the decision about a directory.
pub(crate) fn facts(paths: &Paths, held: bool, owner: Option<&DirectoryOwner>) -> LockFacts {
    let machine = owner.and_then(|owner| owner.machine.as_ref());
    let is_same_kernel = machine.is_some_and(|machine| here().kinship(machine) == Kinship::SameKernel);
    let tmux_answers = is_same_kernel && UnixStream::connect(paths.tmux_socket()).is_ok();
    LockFacts { held, shared: paths.is_shared(), tmux_answers, job_is_gone: false }
}

/// The owner of a directory by its lock file, and the decision about a daemon that would start now.
pub(crate) fn look(paths: &Paths) -> (Option<DirectoryOwner>, Ownership) {
    let Ok(file) = File::open(paths.lock()) else { return (None, Ownership::Mine) };
    // This shared lock is released at once. A daemon that starts at this moment retries.
    let held = FileExt::try_lock_shared(&file).is_err();
    let owner = read(&file);
    let facts = facts(paths, held, owner.as_ref());
    let ownership = decide(owner.as_ref(), here(), own_job().as_ref(), facts);
    (owner, ownership)
}

/// The error for a directory that belongs to a daemon on another host; `None` if none does.
pub(crate) fn elsewhere(paths: &Paths) -> Option<Error> {
    match look(paths) {
        (Some(owner), ownership @ (Ownership::OtherHost | Ownership::Ask)) => {
            Some(refusal(paths, &owner, ownership))
        }
        _ => None,
    }
}

/// The error for a directory that belongs to a daemon on another host.
pub(crate) fn refusal(paths: &Paths, owner: &DirectoryOwner, ownership: Ownership) -> Error {
    let who = owner.describe();
    let state = match (ownership, owner.left) {
        (Ownership::Ask, Some(left)) => {
            let agents = swarm_state::notice::counted(left as usize, "agent");
            format!(", which was stopped and left {agents} running")
        }
        (Ownership::Ask, None) => ", which may still run".to_owned(),
        _ => String::new(),
    };
    let message = format!("'{}' belongs to {who}{state}", paths.root().display());
    let hint = match &owner.machine {
        Some(MachineId { host, .. }) => {
            format!("ssh {host} swarm ls; if {host} is gone for good: swarm daemon take-over")
        }
        None => "if no other host runs a daemon for it: swarm daemon take-over".to_owned(),
    };
    Error::new(ErrorCode::OtherHost, message).hint(hint)
}

/// Makes this machine the owner in place of `former`; fails if the owner has changed. The file is replaced, so that
/// a lock of the former owner has no effect on it, and so that its daemon sees the change.
pub(crate) fn replace(paths: &Paths, former: &DirectoryOwner) -> Result<()> {
    if look(paths).0.as_ref() != Some(former) {
        let message = format!("the owner of '{}' has changed", paths.root().display());
        return Err(Error::new(ErrorCode::Conflict, message).hint("swarm daemon take-over"));
    }
    write_anew(paths).map_err(|e| failed("write", &paths.lock(), e))
}

/// Replaces the lock file. The temporary file has a name of this machine, since process ids of two hosts can be equal.
fn write_anew(paths: &Paths) -> std::io::Result<()> {
    let MachineId { host, boot, pids } = here();
    let all =
        [host.as_str(), boot.as_deref().unwrap_or_default(), pids.as_deref().unwrap_or_default()].concat();
    let own: String = all.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    let temporary = paths.root().join(format!("daemon.lock.{own}.{}", std::process::id()));
    let mut file = create(&temporary)?;
    let written = file.write_all(this_process().format().as_bytes()).and_then(|()| file.sync_all());
    let replaced = written.and_then(|()| std::fs::rename(&temporary, paths.lock()));
    if replaced.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    replaced.and_then(|()| sync_dir(paths.root()))
}

/// Whether the file at `path` is still the open `file` and names no other machine. Opening the path makes a network
/// file system ask its server.
pub(crate) fn is_own(file: &File, path: &Path) -> bool {
    let Ok(there) = File::open(path) else { return false };
    let same = |found: &File| found.metadata().map(|found| (found.dev(), found.ino())).ok();
    // A file that a person has emptied or overwritten names no owner.
    same(file).is_some()
        && same(file) == same(&there)
        && !read(&there).is_some_and(|owner| owner.is_elsewhere(here()))
}
