//! Enforces the caps of a run. Each cap gets the first mechanism that works; on systems other than Linux, none does.
//!
//! 1. With systemd and cgroup v2, the wrapper asks the systemd manager for a scope of its own. The cgroup of the scope
//!    is delegated to the wrapper, which makes the agent's cgroup in it.
//! 2. Otherwise it makes the agent's cgroup where it can ([`super::cgroup`]).
//! 3. Otherwise the memory cap becomes a resource limit, and the others are not enforced. A limit of processes
//!    (`RLIMIT_NPROC`) would count all processes of the user, and does not hold for root.
//!
//! The wrapper itself stays outside of the agent's cgroup, so that it survives when the memory is used up. Deliberately
//! absent: the effect of a cap on the run ([`crate::daemon`] decides from the record of the end).

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, setrlimit};
use swarm_state::caps::{Cap, CapMechanism, Caps, CapsInForce, MAX_PIDS};

use super::cgroup::{Hierarchy, RunCgroup};
use crate::files::file_name;

/// The agent's `oom_score_adj`: the kernel kills it before the daemon and other programs, whose value is usually 0.
const AGENT_OOM_SCORE: i32 = 500;

/// How long the systemd manager may take to make a scope.
const SCOPE_TIMEOUT: Duration = Duration::from_secs(5);

/// The caps of a run, ready for its agent. Dropping it removes the cgroup.
#[derive(Default)]
pub(super) struct Confinement {
    cgroups: Vec<RunCgroup>,
    pub(super) in_force: CapsInForce,
}

impl Confinement {
    /// Prepares the caps for one run; `dir` is its folder, `NAME.RUN`.
    pub(super) fn prepare(dir: &Path, caps: &Caps) -> Self {
        if caps.of_run().is_empty() {
            return Self::default();
        }
        let mut confinement =
            Hierarchy::own().map(|own| confine(own, file_name(dir), caps)).unwrap_or_default();
        let is_capped = confinement.in_force.contains_key(&Cap::Memory) || cfg!(not(target_os = "linux"));
        if let (Some(memory), false) = (caps.memory, is_capped) {
            let limit = Rlimit { current: Some(memory), maximum: Some(memory) };
            // RLIMIT_AS would also count address space that is only reserved, of which Node.js has gigabytes.
            if setrlimit(Resource::Data, limit).is_ok() {
                confinement.in_force.insert(Cap::Memory, CapMechanism::Rlimit);
            }
        }
        confinement
    }

    /// Starts the agent in the cgroup. Its descendants cannot leave it without the rights of its owner.
    pub(super) fn start<T>(&self, start: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        for cgroup in &self.cgroups {
            cgroup.enter().map_err(|cause| format!("cannot enter the cgroup of its caps: {cause}"))?;
        }
        let before = raise_oom_score();
        let started = start();
        if let Some(score) = before {
            // The old value is never below the one that this process started with, so lowering is permitted.
            let _ = fs::write("/proc/self/oom_score_adj", score.to_string());
        }
        for cgroup in &self.cgroups {
            let _ = cgroup.leave();
        }
        started
    }

    /// How many processes of the run the kernel killed because its memory reached the cap.
    pub(super) fn oom_kills(&self) -> u64 {
        self.cgroups.iter().map(RunCgroup::oom_kills).sum()
    }
}

/// The mechanisms that would enforce all caps of a run that this process started. Makes cgroups, and removes them.
pub(crate) fn available() -> CapsInForce {
    let caps = Caps { memory: Some(1 << 30), cpu_percent: Some(100), pids: Some(MAX_PIDS), pressure: None };
    let own = Hierarchy::own();
    let mut found = own.map(|own| confine(own, "doctor", &caps).in_force).unwrap_or_default();
    if cfg!(target_os = "linux") {
        found.entry(Cap::Memory).or_insert(CapMechanism::Rlimit);
    }
    found
}

fn confine(mut own: Hierarchy, run: &str, caps: &Caps) -> Confinement {
    let scope = own.is_unified().then(|| enter_scope(&own.name(run))).flatten();
    let is_scope = scope.is_some();
    if let Some(inside) = scope {
        own = inside;
    }
    let (cgroups, mut in_force) = own.confine(run, caps);
    if is_scope {
        in_force.values_mut().for_each(|mechanism| *mechanism = CapMechanism::SystemdScope);
    }
    Confinement { cgroups, in_force }
}

/// Moves this process into a scope of its own, and returns its cgroups there. `None` without a systemd manager.
fn enter_scope(name: &str) -> Option<Hierarchy> {
    if !Path::new("/run/systemd/system").is_dir() {
        return None;
    }
    let uid = nix::unistd::Uid::effective();
    let mut busctl = Command::new("busctl");
    busctl.args(scope_call(uid.is_root(), name, std::process::id()));
    if !uid.is_root() && std::env::var_os("XDG_RUNTIME_DIR").is_none() {
        busctl.env("XDG_RUNTIME_DIR", format!("/run/user/{uid}"));
    }
    busctl.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if !busctl.status().ok()?.success() {
        return None;
    }
    // The manager answers before it has moved the process.
    let until = Instant::now() + SCOPE_TIMEOUT;
    while Instant::now() < until {
        let own = Hierarchy::own()?;
        if own.is_in(name) {
            return Some(own);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

/// The arguments of `busctl` that ask for a scope with the process `pid` in it. Root has no manager of its own.
fn scope_call(is_root: bool, name: &str, pid: u32) -> Vec<String> {
    let (pid, timeout) = (pid.to_string(), format!("--timeout={}", SCOPE_TIMEOUT.as_secs()));
    let (manager, unit) = (if is_root { "--system" } else { "--user" }, format!("{name}.scope"));
    let method =
        ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"];
    // An array of properties, and an empty array of further units.
    let properties = ["3", "PIDs", "au", "1", &pid, "Delegate", "b", "true"];
    let collect = ["CollectMode", "s", "inactive-or-failed", "0"];
    [manager, &timeout, "call"]
        .into_iter()
        .chain(method)
        .chain(["StartTransientUnit", "ssa(sv)a(sa(sv))", &unit, "fail"])
        .chain(properties)
        .chain(collect)
        .map(str::to_owned)
        .collect()
}

/// Raises this process's `oom_score_adj`, which a child inherits. Returns the value before.
fn raise_oom_score() -> Option<i32> {
    let score: i32 = fs::read_to_string("/proc/self/oom_score_adj").ok()?.trim().parse().ok()?;
    let raised = fs::write("/proc/self/oom_score_adj", score.max(AGENT_OOM_SCORE).to_string());
    raised.ok().map(|()| score)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_requested_from_the_right_manager() {
        let text = |is_root| scope_call(is_root, "swarm-a-1-7", 7).join(" ");
        let call = "call org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager \
                    StartTransientUnit ssa(sv)a(sa(sv)) swarm-a-1-7.scope fail \
                    3 PIDs au 1 7 Delegate b true CollectMode s inactive-or-failed 0";
        assert_eq!(text(false), format!("--user --timeout=5 {call}"));
        assert_eq!(text(true), format!("--system --timeout=5 {call}"));
    }
}
