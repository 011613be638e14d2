//! Cgroups for the caps of a run: finds a cgroup that this user may divide, and makes one in it for the agent.
//!
//! The wrapper uses it before the agent starts. It reads its own cgroups from `/proc/self/cgroup`. With cgroup v2, a
//! cgroup below a populated one cannot have controllers (the "no internal processes" rule). So the wrapper uses its own
//! cgroup if no other process is in it, after moving itself to a child, or an ancestor that already distributes the
//! controllers. With cgroup v1, each controller has a hierarchy of its own, without that rule. Deliberately absent:
//! changes to cgroups that other processes are in.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use swarm_state::caps::{Cap, CapMechanism, Caps, CapsInForce};

use crate::procs;

/// The period of the CPU limit, in microseconds.
const CPU_PERIOD_US: u64 = 100_000;

/// The start of the name of each cgroup that swarm makes. The pid of its wrapper is at the end of the name.
const NAME_PREFIX: &str = "swarm-";

/// A place in the cgroup file system.
pub(super) struct Hierarchy {
    /// The mount point, `/sys/fs/cgroup`.
    root: PathBuf,
    /// The text of `/proc/self/cgroup`.
    membership: String,
    /// This process.
    pid: u32,
}

/// The cgroup of a run. Dropping it removes it, unless processes are left in it.
pub(super) struct RunCgroup {
    dir: PathBuf,
    /// The wrapper's own cgroup.
    home: PathBuf,
    pid: u32,
}

/// A file of a cgroup, its value, and whether the cap depends on it.
type Limit = (&'static str, String, bool);

impl Hierarchy {
    pub(super) fn own() -> Option<Self> {
        let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
        Some(Self { root: "/sys/fs/cgroup".into(), membership, pid: std::process::id() })
    }

    /// Whether all controllers share one hierarchy (cgroup v2).
    pub(super) fn is_unified(&self) -> bool {
        self.root.join("cgroup.controllers").exists()
    }

    /// The name of the cgroup of a run of this wrapper.
    pub(super) fn name(&self, run: &str) -> String {
        format!("{NAME_PREFIX}{run}-{}", self.pid)
    }

    /// Whether this process is in a cgroup whose path contains `name`.
    pub(super) fn is_in(&self, name: &str) -> bool {
        self.membership.contains(name)
    }

    /// Makes the cgroups that enforce as many of the caps as possible.
    pub(super) fn confine(&self, run: &str, caps: &Caps) -> (Vec<RunCgroup>, CapsInForce) {
        let wanted: Vec<Cap> = caps.of_run().into_iter().map(|(cap, _)| cap).collect();
        if self.is_unified() {
            let found = self.confine_unified(run, caps, &wanted);
            let (cgroup, caps) = found.map_or((None, vec![]), |(cgroup, caps)| (Some(cgroup), caps));
            let in_force = caps.into_iter().map(|cap| (cap, CapMechanism::Cgroup)).collect();
            return (cgroup.into_iter().collect(), in_force);
        }
        let made = wanted.into_iter().filter_map(|cap| {
            let (controller, limits) = limits_v1(cap, caps);
            let own = self.dir_of(controller)?;
            Some((cap, RunCgroup::create(&own, &own, &self.name(run), self.pid, &limits).ok()?))
        });
        let (caps, cgroups): (Vec<Cap>, Vec<RunCgroup>) = made.unzip();
        (cgroups, caps.into_iter().map(|cap| (cap, CapMechanism::CgroupV1)).collect())
    }

    fn confine_unified(&self, run: &str, caps: &Caps, wanted: &[Cap]) -> Option<(RunCgroup, Vec<Cap>)> {
        let own = self.dir_of("")?;
        let (home, distributed) = self.step_aside(&own, wanted);
        let mut parents = vec![(own.clone(), distributed)];
        let above = own.ancestors().skip(1).take_while(|dir| dir.starts_with(&self.root));
        parents.extend(above.map(|dir| (dir.to_owned(), words(&dir.join("cgroup.subtree_control")))));
        let usable = parents.into_iter().map(|(dir, distributed)| {
            let has = |cap: &Cap| distributed.iter().any(|word| word == controller(*cap));
            (dir, wanted.iter().copied().filter(has).collect::<Vec<_>>())
        });
        let mut usable: Vec<_> = usable.filter(|(_, caps)| !caps.is_empty()).collect();
        usable.sort_by_key(|(_, caps)| std::cmp::Reverse(caps.len()));
        usable.into_iter().find_map(|(dir, in_force)| {
            let limits: Vec<Limit> = in_force.iter().flat_map(|cap| limits_v2(*cap, caps)).collect();
            Some((RunCgroup::create(&dir, &home, &self.name(run), self.pid, &limits).ok()?, in_force))
        })
    }

    /// Distributes controllers to the children of this process's own cgroup. Returns where this process then is, and
    /// the controllers that children have.
    fn step_aside(&self, own: &Path, wanted: &[Cap]) -> (PathBuf, Vec<String>) {
        let mut distributed = words(&own.join("cgroup.subtree_control"));
        let available = words(&own.join("cgroup.controllers"));
        let missing = wanted.iter().map(|cap| controller(*cap).to_owned());
        let missing: Vec<String> =
            missing.filter(|word| available.contains(word) && !distributed.contains(word)).collect();
        let is_alone = words(&own.join("cgroup.procs")) == [self.pid.to_string()];
        let mut home = own.to_owned();
        if missing.is_empty() || !(is_alone || own == self.root) {
            return (home, distributed);
        }
        if is_alone {
            let aside = own.join(format!("{NAME_PREFIX}wrapper-{}", self.pid));
            let moved = fs::create_dir(&aside).and_then(|()| join(&aside, self.pid));
            if moved.is_err() {
                return (home, distributed);
            }
            home = aside;
        }
        let all: Vec<String> = missing.iter().map(|word| format!("+{word}")).collect();
        // The root of a container's cgroup namespace has the rule, the real root does not.
        if fs::write(own.join("cgroup.subtree_control"), all.join(" ")).is_ok() {
            distributed.extend(missing);
        }
        (home, distributed)
    }

    /// The directory of this process's cgroup: of a controller with cgroup v1, or `""` with cgroup v2.
    fn dir_of(&self, controller: &str) -> Option<PathBuf> {
        let path = self.membership.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            controllers.split(',').any(|word| word == controller).then_some(path)
        })?;
        let dir = self.root.join(controller).join(path.trim_start_matches('/'));
        dir.is_dir().then_some(dir)
    }
}

impl RunCgroup {
    /// Makes the cgroup `name` in `parent` with its limits, and checks that the wrapper may enter and leave it.
    fn create(parent: &Path, home: &Path, name: &str, pid: u32, limits: &[Limit]) -> io::Result<Self> {
        sweep(parent);
        let cgroup = Self { dir: parent.join(name), home: home.to_owned(), pid };
        fs::create_dir(&cgroup.dir)?;
        for (file, value, is_required) in limits {
            let written = fs::write(cgroup.dir.join(file), value);
            if *is_required {
                written?;
            }
        }
        cgroup.enter()?;
        cgroup.leave()?;
        Ok(cgroup)
    }

    /// Moves the wrapper into it, so that a process that it starts is in it from its first instruction.
    pub(super) fn enter(&self) -> io::Result<()> {
        join(&self.dir, self.pid)
    }

    /// Moves the wrapper back, so that it survives the agent's end.
    pub(super) fn leave(&self) -> io::Result<()> {
        join(&self.home, self.pid)
    }

    /// How many of its processes the kernel killed because the memory reached the cap.
    pub(super) fn oom_kills(&self) -> u64 {
        let read = |file| fs::read_to_string(self.dir.join(file)).ok();
        match read("memory.events") {
            Some(events) if counter(&events, "oom") > 0 => counter(&events, "oom_kill"),
            // The memory of the machine, or of a cgroup above, ran out.
            Some(_) => 0,
            None => read("memory.oom_control").map_or(0, |events| counter(&events, "oom_kill")),
        }
    }
}

impl Drop for RunCgroup {
    fn drop(&mut self) {
        // Fails while a process is in it. The next run in the same place removes it.
        let _ = fs::remove_dir(&self.dir);
    }
}

/// Removes the cgroups of wrappers that were killed. The kernel keeps those with processes in them.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().filter(|name| name.starts_with(NAME_PREFIX));
        let pid = pid.and_then(|name| name.rsplit('-').next()?.parse().ok());
        if pid.is_some_and(|pid| !procs::is_alive(pid)) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn join(cgroup: &Path, pid: u32) -> io::Result<()> {
    fs::write(cgroup.join("cgroup.procs"), pid.to_string())
}

fn words(file: &Path) -> Vec<String> {
    fs::read_to_string(file).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// The value of `KEY N` in a file of events.
fn counter(events: &str, key: &str) -> u64 {
    let value = |line: &str| line.split_once(' ').filter(|(name, _)| *name == key)?.1.trim().parse().ok();
    events.lines().find_map(value).unwrap_or(0)
}

fn controller(cap: Cap) -> &'static str {
    match cap {
        Cap::Memory => "memory",
        Cap::Cpus => "cpu",
        Cap::Pids => "pids",
    }
}

fn limits_v2(cap: Cap, caps: &Caps) -> Vec<Limit> {
    match cap {
        Cap::Memory => vec![
            ("memory.max", value(caps.memory), true),
            // Without swap, the cap is the memory that the agent gets. A kernel without swap has no such file.
            ("memory.swap.max", "0".to_owned(), false),
        ],
        Cap::Cpus => vec![("cpu.max", format!("{} {CPU_PERIOD_US}", cpu_quota_us(caps)), true)],
        Cap::Pids => vec![("pids.max", value(caps.pids), true)],
    }
}

fn limits_v1(cap: Cap, caps: &Caps) -> (&'static str, Vec<Limit>) {
    let limits = match cap {
        Cap::Memory => vec![
            ("memory.limit_in_bytes", value(caps.memory), true),
            ("memory.memsw.limit_in_bytes", value(caps.memory), false),
        ],
        Cap::Cpus => vec![
            ("cpu.cfs_period_us", CPU_PERIOD_US.to_string(), true),
            ("cpu.cfs_quota_us", cpu_quota_us(caps).to_string(), true),
        ],
        Cap::Pids => vec![("pids.max", value(caps.pids), true)],
    };
    (controller(cap), limits)
}

fn value(limit: Option<impl ToString>) -> String {
    limit.map(|limit| limit.to_string()).unwrap_or_default()
}

fn cpu_quota_us(caps: &Caps) -> u64 {
    u64::from(caps.cpu_percent.unwrap_or_default()) * CPU_PERIOD_US / 100
}

#[cfg(test)]
mod tests {
    use swarm_state::caps::CapMechanism::{Cgroup, CgroupV1};
    use tempfile::TempDir;

    use super::*;

    const CAPS: Caps =
        Caps { memory: Some(200 << 20), cpu_percent: Some(150), pids: Some(50), pressure: None };

    /// A directory with the files that a cgroup file system would have.
    struct FakeTree(TempDir);

    impl FakeTree {
        fn new(files: &[(&str, &str)]) -> Self {
            let tree = Self(tempfile::tempdir().unwrap());
            for (file, text) in files {
                let path = tree.0.path().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            tree
        }

        fn hierarchy(&self, membership: &str) -> Hierarchy {
            let own = std::process::id();
            Hierarchy { root: self.0.path().to_owned(), membership: membership.to_owned(), pid: own }
        }

        fn text(&self, file: &str) -> Option<String> {
            fs::read_to_string(self.0.path().join(file.replace("PID", &std::process::id().to_string()))).ok()
        }
    }

    fn in_force(caps: &[Cap], by: CapMechanism) -> CapsInForce {
        caps.iter().map(|cap| (*cap, by)).collect()
    }

    #[test]
    fn delegated_cgroup_is_divided() {
        let pid = std::process::id();
        let tree = FakeTree::new(&[
            ("cgroup.controllers", "cpuset cpu io memory pids"),
            ("u/scope/cgroup.controllers", "cpu memory pids"),
            ("u/scope/cgroup.subtree_control", ""),
            ("u/scope/cgroup.procs", &format!("{pid}\n")),
        ]);
        let (cgroups, by) = tree.hierarchy("0::/u/scope\n").confine("a.1", &CAPS);
        assert_eq!(by, in_force(&[Cap::Memory, Cap::Cpus, Cap::Pids], Cgroup));
        assert_eq!(tree.text("u/scope/cgroup.subtree_control").unwrap(), "+memory +cpu +pids");
        for (file, value) in [
            ("memory.max", "209715200"),
            ("memory.swap.max", "0"),
            ("cpu.max", "150000 100000"),
            ("pids.max", "50"),
        ] {
            assert_eq!(tree.text(&format!("u/scope/swarm-a.1-PID/{file}")).unwrap(), value, "{file}");
        }
        // The wrapper stays beside the agent's cgroup, and a cgroup with children has no processes.
        assert_eq!(cgroups[0].home.file_name().unwrap(), format!("swarm-wrapper-{pid}").as_str());
    }

    #[test]
    fn a_cgroup_with_other_processes_is_not_changed() {
        let files = [
            ("cgroup.controllers", "cpu memory pids"),
            ("cgroup.subtree_control", "cpu memory pids"),
            ("box/cgroup.controllers", "cpu memory pids"),
            ("box/cgroup.subtree_control", "memory pids"),
            ("box/session/cgroup.controllers", "memory pids"),
            ("box/session/cgroup.subtree_control", ""),
            ("box/session/cgroup.procs", "1\n2\n"),
        ];
        let tree = FakeTree::new(&files);
        let own = tree.hierarchy("1:name=systemd:/x\n0::/box/session\n");
        // The ancestor with the most of the wanted controllers.
        let (cgroups, by) = own.confine("a.1", &CAPS);
        assert_eq!(by.len(), 3);
        assert_eq!(cgroups[0].dir.parent().unwrap(), tree.0.path());
        assert_eq!(cgroups[0].home, tree.0.path().join("box/session"));
        // The wrapper left the cgroup of the run again.
        assert_eq!(tree.text("box/session/cgroup.procs").unwrap(), std::process::id().to_string());
        fs::write(tree.0.path().join("box/session/cgroup.procs"), "1\n2\n").unwrap();
        let memory = Caps { memory: CAPS.memory, ..Caps::default() };
        let (cgroups, by) = own.confine("a.2", &memory);
        assert_eq!(by, in_force(&[Cap::Memory], Cgroup));
        assert_eq!(cgroups[0].dir.parent().unwrap(), tree.0.path().join("box"), "the nearest");
        assert_eq!(tree.text("box/session/cgroup.subtree_control").unwrap(), "");
        for dir in ["", "box/"] {
            fs::remove_file(tree.0.path().join(format!("{dir}cgroup.subtree_control"))).unwrap();
        }
        fs::write(tree.0.path().join("box/session/cgroup.procs"), "1\n2\n").unwrap();
        assert!(own.confine("a.3", &CAPS).1.is_empty());
    }

    #[test]
    fn a_cap_whose_controller_is_missing_is_not_in_force() {
        let tree = FakeTree::new(&[("cgroup.controllers", "memory"), ("cgroup.subtree_control", "memory")]);
        let (_, by) = tree.hierarchy("0::/\n").confine("a.1", &CAPS);
        assert_eq!(by, in_force(&[Cap::Memory], Cgroup));
        let (cgroups, by) = tree.hierarchy("0::/../elsewhere\n").confine("a.1", &CAPS);
        assert!(cgroups.is_empty() && by.is_empty());
    }

    #[test]
    fn each_controller_of_v1_has_a_hierarchy() {
        let tree = FakeTree::new(&[("memory/own/tasks", ""), ("cpu/tasks", "")]);
        let own = tree.hierarchy("4:memory:/own\n2:cpu,cpuacct:/\n3:pids:/gone\n0::/\n");
        let (cgroups, by) = own.confine("a.1", &CAPS);
        assert_eq!(by, in_force(&[Cap::Memory, Cap::Cpus], CgroupV1));
        for (file, value) in [
            ("memory/own/swarm-a.1-PID/memory.limit_in_bytes", "209715200"),
            ("memory/own/swarm-a.1-PID/memory.memsw.limit_in_bytes", "209715200"),
            ("cpu/swarm-a.1-PID/cpu.cfs_quota_us", "150000"),
            ("cpu/swarm-a.1-PID/cpu.cfs_period_us", "100000"),
        ] {
            assert_eq!(tree.text(file).unwrap(), value, "{file}");
        }
        assert_eq!(cgroups.len(), 2);
    }

    #[test]
    fn oom_kills_are_counted_only_if_the_cap_was_reached() {
        let v2 =
            |oom, kills| format!("low 0\nhigh 0\nmax 9\noom {oom}\noom_kill {kills}\noom_group_kill 0\n");
        let v1 = |kills| format!("oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n");
        for (file, text, kills) in [
            ("memory.events", v2(3, 2), 2),
            ("memory.events", v2(0, 0), 0),
            // The memory of the machine ran out, and not that of the cgroup.
            ("memory.events", v2(0, 1), 0),
            ("memory.oom_control", v1(2), 2),
            ("memory.oom_control", v1(0), 0),
            ("memory.oom_control", "garbage".to_owned(), 0),
            ("cpu.stat", v1(2), 0),
        ] {
            let tree = FakeTree::new(&[(file, &text)]);
            let dir = tree.0.path().to_owned();
            let cgroup = RunCgroup { home: dir.clone(), dir, pid: 1 };
            assert_eq!(cgroup.oom_kills(), kills, "{file}: {text}");
        }
    }

    #[test]
    fn only_cgroups_of_ended_wrappers_are_swept() {
        let tree = FakeTree::new(&[]);
        let own = format!("swarm-a.1-{}", std::process::id());
        for name in [&own, "swarm-a.1-999999999", "other-999999999", "swarm-x"] {
            fs::create_dir(tree.0.path().join(name)).unwrap();
        }
        sweep(tree.0.path());
        let mut left: Vec<_> = fs::read_dir(tree.0.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["other-999999999", &own, "swarm-x"]);
    }
}
