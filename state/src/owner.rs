//! The owner of swarm's directory: the daemon that wrote the lock file last.
//!
//! A directory on a network file system is seen by several hosts. A lock of the kernel may not reach the other hosts
//! there, and a process id has no meaning on them. So the lock file also names the machine: host, boot and process
//! namespace. [`decide`] decides whether a new daemon may start. Not here: reading these facts.

use serde::{Deserialize, Serialize};

/// The place in which a daemon runs: process ids are comparable within one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineId {
    /// The host name.
    pub host: String,
    /// The id of the boot. Absent on systems without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// The id of the process namespace, which containers have of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<String>,
}

/// How another machine relates to this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinship {
    /// The same boot and process namespace, also under another host name.
    Here,
    /// The same kernel and another process namespace: a container, or the machine that runs this one.
    SameKernel,
    /// The same host name and another boot.
    Rebooted,
    /// Another host.
    Away,
}

impl MachineId {
    /// How `other` relates to this machine.
    pub fn kinship(&self, other: &Self) -> Kinship {
        let same_host = self.host == other.host;
        match (&self.boot, &other.boot) {
            (Some(own), Some(theirs)) if own != theirs && same_host => Kinship::Rebooted,
            (Some(own), Some(theirs)) if own != theirs => Kinship::Away,
            (Some(_), Some(_)) => match (&self.pids, &other.pids) {
                (Some(own), Some(theirs)) if own == theirs => Kinship::Here,
                (Some(_), Some(_)) => Kinship::SameKernel,
                (_, _) if same_host => Kinship::Here,
                (_, _) => Kinship::SameKernel,
            },
            (_, _) if same_host => Kinship::Here,
            (_, _) => Kinship::Away,
        }
    }
}

/// A job of a batch scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchJob {
    /// Its id.
    pub id: String,
    /// How often the scheduler has started it again.
    pub restarts: u32,
}

/// The content of the lock file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryOwner {
    /// The daemon's process id.
    pub pid: u32,
    /// Its machine. Absent in a file of an earlier swarm.
    pub machine: Option<MachineId>,
    /// The job in which the daemon runs.
    pub job: Option<BatchJob>,
    /// The number of agents that the daemon left running at an orderly stop. Absent while it runs, and after a crash.
    pub left: Option<u32>,
}

impl DirectoryOwner {
    /// Parses a lock file. An empty file, as an orderly stop without agents leaves it, has no owner; neither has one
    /// that does not start with a process id.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let pid = lines.next()?.trim().parse().ok()?;
        let mut values = std::collections::BTreeMap::new();
        for line in lines {
            if let Some((key, value)) = line.split_once('=') {
                values.insert(key.trim(), value.trim());
            }
        }
        let value = |key| values.get(key).copied().filter(|value: &&str| !value.is_empty());
        let text = |key| value(key).map(str::to_owned);
        let number = |key| value(key).and_then(|value| value.parse::<u32>().ok());
        Some(Self {
            pid,
            machine: text("host").map(|host| MachineId { host, boot: text("boot"), pids: text("pids") }),
            job: text("job").map(|id| BatchJob { id, restarts: number("restarts").unwrap_or(0) }),
            left: number("left"),
        })
    }

    /// The text of the lock file: the process id, then one `key=value` a line.
    pub fn format(&self) -> String {
        let mut text = format!("{}\n", self.pid);
        let mut line = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                let value: String = value.chars().filter(|c| !c.is_control()).collect();
                text.push_str(&format!("{key}={value}\n"));
            }
        };
        let machine = self.machine.as_ref();
        line("host", machine.map(|machine| machine.host.clone()));
        line("boot", machine.and_then(|machine| machine.boot.clone()));
        line("pids", machine.and_then(|machine| machine.pids.clone()));
        let job = self.job.as_ref();
        line("job", job.map(|job| job.id.clone()));
        line("restarts", job.map(|job| job.restarts).filter(|restarts| *restarts > 0).map(|n| n.to_string()));
        line("left", self.left.map(|left| left.to_string()));
        text
    }

    /// Whether this names a machine other than `here`.
    pub fn is_elsewhere(&self, here: &MachineId) -> bool {
        self.machine.as_ref().is_some_and(|machine| here.kinship(machine) != Kinship::Here)
    }

    /// "the daemon on node1 (pid 42, Slurm job 7)".
    pub fn describe(&self) -> String {
        let (who, host) = match &self.machine {
            Some(machine) => ("the daemon", machine.host.as_str()),
            None => ("a daemon of an earlier swarm", "an unknown host"),
        };
        let job = self.job.as_ref().map(|job| format!(", Slurm job {}", job.id)).unwrap_or_default();
        format!("{who} on {host} (pid {}{job})", self.pid)
    }
}

/// The facts about the lock file on this host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockFacts {
    /// Another process has locked the file, as far as this host can see.
    pub held: bool,
    /// The directory lies on a file system that several hosts can use at once.
    pub shared: bool,
    /// swarm's tmux server answers at its socket.
    pub tmux_answers: bool,
    /// The scheduler has not listed the owner's job for a minute.
    pub job_is_gone: bool,
}

/// Whether a daemon may start in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// It may: the directory has no owner, or a daemon of this machine that has ended.
    Mine,
    /// It may not: a daemon of this machine runs.
    Live,
    /// It may: the owner was on another machine, or before the last boot, and is gone. No run of it is alive here.
    Replaceable,
    /// It may not: a daemon on another machine runs.
    OtherHost,
    /// It may only if a person agrees: the owner is on another machine, and may run.
    Ask,
}

/// Decides whether a daemon may start on `here`. `job` is the job in which it would run.
pub fn decide(
    owner: Option<&DirectoryOwner>,
    here: &MachineId,
    job: Option<&BatchJob>,
    facts: LockFacts,
) -> Ownership {
    let LockFacts { held, shared, tmux_answers, job_is_gone } = facts;
    let Some(owner) = owner else {
        return if held { Ownership::Live } else { Ownership::Mine };
    };
    let kinship = owner.machine.as_ref().map(|machine| here.kinship(machine));
    match (kinship, held) {
        (None | Some(Kinship::Here | Kinship::Rebooted), true) => Ownership::Live,
        (Some(Kinship::SameKernel | Kinship::Away), true) => Ownership::OtherHost,
        // One kernel sees all its own locks, on every file system.
        (Some(Kinship::Here), false) => Ownership::Mine,
        // Agents that cannot be reached from here may live in that server.
        (Some(Kinship::SameKernel), false) if tmux_answers => Ownership::Ask,
        (Some(Kinship::SameKernel | Kinship::Rebooted), false) => Ownership::Replaceable,
        (None, false) if shared => Ownership::Ask,
        (None, false) => Ownership::Mine,
        (Some(Kinship::Away), false) if !shared || job_is_gone => Ownership::Replaceable,
        (Some(Kinship::Away), false) if is_earlier_start(owner.job.as_ref(), job) => Ownership::Replaceable,
        (Some(Kinship::Away), false) => Ownership::Ask,
    }
}

/// Whether the owner's job is an earlier start of this one. A scheduler ends a job before it starts it again.
fn is_earlier_start(owner: Option<&BatchJob>, own: Option<&BatchJob>) -> bool {
    owner.zip(own).is_some_and(|(owner, own)| owner.id == own.id && owner.restarts < own.restarts)
}

/// The magic numbers of file systems that several hosts can use at once, as statfs(2) reports them.
const NETWORK_MAGICS: [(u64, &str); 19] = [
    (0x6969, "nfs"),
    (0x517b, "smb"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x6573_5546, "fuse"),
    (0x0bd0_0bd0, "lustre"),
    (0x4750_4653, "gpfs"),
    (0x1983_0326, "beegfs"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "ceph"),
    (0x5346_414f, "afs"),
    (0x6b41_4653, "kafs"),
    (0x7375_7245, "coda"),
    (0x564c, "ncp"),
    (0x0116_1970, "gfs2"),
    (0x7461_636f, "ocfs2"),
    (0x786f_4256, "vboxsf"),
    (0xaad7_aaea, "panfs"),
    (0x2030_5255, "orangefs"),
];

/// Whether a file system can be used by several hosts at once. `magic` is its number in statfs(2), `kind` its name in
/// the list of mounts, if that is known. Of the file systems in user space, only those of local disks are local.
pub fn is_network(magic: u64, kind: Option<&str>) -> bool {
    const LOCAL_FUSE_TYPES: [&str; 2] = ["fuseblk", "fuse.portal"];
    let kind = kind.unwrap_or_default();
    // The number of virtiofs is the one of other file systems in user space.
    !LOCAL_FUSE_TYPES.contains(&kind) && NETWORK_MAGICS.iter().any(|(known, _)| *known == magic & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(host: &str, boot: &str, pids: &str) -> MachineId {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        MachineId { host: host.to_owned(), boot: given(boot), pids: given(pids) }
    }

    fn owner(machine: Option<MachineId>) -> DirectoryOwner {
        DirectoryOwner { pid: 42, machine, job: None, left: None }
    }

    #[test]
    fn lock_file_is_read_as_it_was_written() {
        let job = |restarts| Some(BatchJob { id: "7".to_owned(), restarts });
        for (machine, job, left) in [
            (None, None, None),
            (Some(machine("node1", "b1", "1")), None, None),
            (Some(machine("node1", "", "")), job(0), Some(2)),
            (Some(machine("node1", "b1", "")), job(3), None),
        ] {
            let owner = DirectoryOwner { pid: 42, machine, job, left };
            let text = owner.format();
            assert!(text.starts_with("42\n"), "{text}");
            assert_eq!(DirectoryOwner::parse(&text), Some(owner), "{text}");
        }
        let full = DirectoryOwner { job: job(1), ..owner(Some(machine("node1", "b1", "9"))) };
        assert_eq!(full.format(), "42\nhost=node1\nboot=b1\npids=9\njob=7\nrestarts=1\n");
    }

    #[test]
    fn lock_file_with_any_content_does_not_panic() {
        for (text, wanted) in [
            ("", None),
            ("\n", None),
            ("node1\n", None),
            ("host=node1\n42\n", None),
            ("-1\n", None),
            ("42", Some(owner(None))),
            (" 42 \nnonsense\n=\nkey=\n", Some(owner(None))),
            ("42\nhost=\nboot=b\n", Some(owner(None))),
            ("42\nfuture=1\nhost=n=1\nboot=b\n", Some(owner(Some(machine("n=1", "b", ""))))),
        ] {
            assert_eq!(DirectoryOwner::parse(text), wanted, "{text:?}");
        }
        let broken = owner(Some(machine("a\nleft=1", "b", "")));
        assert_eq!(broken.format(), "42\nhost=aleft=1\nboot=b\n");
    }

    #[test]
    fn machines_are_compared_by_name_boot_and_pid_namespace() {
        use Kinship::{Away, Here, Rebooted, SameKernel};
        let own = machine("a", "b1", "1");
        for (what, other, wanted) in [
            ("the same", machine("a", "b1", "1"), Here),
            ("a laptop with a new name", machine("x", "b1", "1"), Here),
            ("a container of the same name", machine("a", "b1", "2"), SameKernel),
            ("a container", machine("x", "b1", "2"), SameKernel),
            ("another name, namespace unknown", machine("x", "b1", ""), SameKernel),
            ("the same, namespace unknown", machine("a", "b1", ""), Here),
            ("after a reboot", machine("a", "b2", "1"), Rebooted),
            ("another host", machine("x", "b2", "1"), Away),
            ("another host, boot unknown", machine("x", "", "1"), Away),
            ("the same host, boot unknown", machine("a", "", "2"), Here),
        ] {
            assert_eq!((own.kinship(&other), other.kinship(&own)), (wanted, wanted), "{what}");
        }
    }

    #[test]
    fn daemon_start_in_an_owned_directory_is_decided() {
        use Ownership::{Ask, Live, Mine, OtherHost, Replaceable};
        let own = machine("a", "b1", "1");
        let job = |id: &str, restarts| Some(BatchJob { id: id.to_owned(), restarts });
        let in_job =
            |restarts| DirectoryOwner { job: job("7", restarts), ..owner(Some(machine("x", "b2", "1"))) };
        // The answers: free and local, free and shared, held and local, held and shared.
        let rows = [
            ("no owner", None, [Mine, Mine, Live, Live]),
            ("an earlier swarm", Some(owner(None)), [Mine, Ask, Live, Live]),
            ("this machine", Some(owner(Some(own.clone()))), [Mine, Mine, Live, Live]),
            ("renamed", Some(owner(Some(machine("x", "b1", "1")))), [Mine, Mine, Live, Live]),
            (
                "a container",
                Some(owner(Some(machine("x", "b1", "2")))),
                [Replaceable, Replaceable, OtherHost, OtherHost],
            ),
            (
                "before the last boot",
                Some(owner(Some(machine("a", "b0", "1")))),
                [Replaceable, Replaceable, Live, Live],
            ),
            (
                "another host",
                Some(owner(Some(machine("x", "b2", "1")))),
                [Replaceable, Ask, OtherHost, OtherHost],
            ),
            (
                "another host that left agents",
                Some(DirectoryOwner { left: Some(2), ..owner(Some(machine("x", "b2", "1"))) }),
                [Replaceable, Ask, OtherHost, OtherHost],
            ),
            ("a job on another host", Some(in_job(0)), [Replaceable, Ask, OtherHost, OtherHost]),
        ];
        for (what, owner, wanted) in rows {
            let of = |held, shared| {
                decide(owner.as_ref(), &own, None, LockFacts { held, shared, ..LockFacts::default() })
            };
            assert_eq!(
                [of(false, false), of(false, true), of(true, false), of(true, true)],
                wanted,
                "{what}"
            );
        }
    }

    #[test]
    fn daemon_start_after_a_job_or_a_container_is_decided() {
        use Ownership::{Ask, Mine, OtherHost, Replaceable};
        let own = machine("a", "b1", "1");
        let job = |id: &str, restarts| Some(BatchJob { id: id.to_owned(), restarts });
        let in_job =
            |restarts| DirectoryOwner { job: job("7", restarts), ..owner(Some(machine("x", "b2", "1"))) };
        let shared = LockFacts { shared: true, ..LockFacts::default() };
        for (what, owner, mine, facts, wanted) in [
            ("the job is gone", in_job(0), None, LockFacts { job_is_gone: true, ..shared }, Replaceable),
            (
                "the job is gone, and the lock is held",
                in_job(0),
                None,
                LockFacts { job_is_gone: true, held: true, ..shared },
                OtherHost,
            ),
            ("a later start of the job", in_job(0), job("7", 1), shared, Replaceable),
            ("the same start of the job on another node", in_job(1), job("7", 1), shared, Ask),
            ("an earlier start of the job", in_job(2), job("7", 1), shared, Ask),
            ("another job", in_job(0), job("8", 1), shared, Ask),
            (
                "a container whose agents may live",
                owner(Some(machine("x", "b1", "2"))),
                None,
                LockFacts { tmux_answers: true, ..LockFacts::default() },
                Ask,
            ),
            (
                "agents of this machine",
                owner(Some(own.clone())),
                None,
                LockFacts { tmux_answers: true, ..shared },
                Mine,
            ),
        ] {
            assert_eq!(decide(Some(&owner), &own, mine.as_ref(), facts), wanted, "{what}");
        }
    }

    #[test]
    fn network_file_systems_are_recognized() {
        for (magic, kind, wanted) in [
            (0x6969, None, true),
            (0xff53_4d42, Some("cifs"), true),
            (0xffff_ffff_ff53_4d42, Some("cifs"), true),
            (0x6573_5546, Some("fuse.sshfs"), true),
            (0x6573_5546, Some("virtiofs"), true),
            (0x6573_5546, None, true),
            (0x6573_5546, Some("fuseblk"), false),
            (0x0bd0_0bd0, Some("lustre"), true),
            (0x0102_1997, Some("9p"), true),
            (0xef53, Some("ext4"), false),
            (0x0102_1994, Some("tmpfs"), false),
            (0x794c_7630, Some("overlay"), false),
            (0x9123_683e, Some("btrfs"), false),
        ] {
            assert_eq!(is_network(magic, kind), wanted, "{magic:#x} {kind:?}");
        }
    }
}
