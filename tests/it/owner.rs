//! One owner of a directory: hosts that share it, a host that is started again, and take-overs.
//!
//! A host is a set of namespaces with a host name, a boot id, process ids and a `/tmp` of its own; killing its first
//! process is its power failure. All hosts of a test share the directory, as on a network file system: the file
//! `shared` in it says so. Hosts of one kernel see each other's locks. A host with `own_locks` sees the directory
//! through an overlay, so that the lock of another host looks free to it, as on a file system without locks.

use std::fs;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;

use crate::world::{Ran, SWARM, World, is_alive, signal};

/// Printed where the system permits no namespaces or mounts.
const SKIPPED: &str = "skipped: no host can be made here: it takes root and namespaces";

/// A host that shares a world's directory.
struct Host<'w> {
    world: &'w World,
    holder: Child,
    first: u32,
    env: Vec<(&'static str, &'static str)>,
}

/// Makes the namespace a host, then stays as its first process and reaps others.
const SET_UP: &str = r#"
set -e
hostname "$1"
echo "$2" >"$3/boot"
mount --bind "$3/boot" /proc/sys/kernel/random/boot_id
mount --bind "$3/tmp" "$4"
if [ -n "$5" ]; then
    mount -t tmpfs tmpfs "$3/layers"
    mkdir "$3/layers/upper" "$3/layers/work"
    mount -t overlay overlay -o "lowerdir=$5,upperdir=$3/layers/upper,workdir=$3/layers/work" "$5"
fi
echo ready >"$3/ready"
while :; do sleep 0.2; done
"#;

impl<'w> Host<'w> {
    /// Starts a host. `None` where that is not possible.
    fn start(world: &'w World, name: &str, boot: &str, own_locks: bool) -> Option<Self> {
        let home = world.path(format!("host-{name}-{boot}"));
        for sub in ["tmp", "layers"] {
            fs::create_dir_all(home.join(sub)).unwrap();
        }
        let shared = world.swarm_dir();
        share(world);
        for dir in [home.join("tmp"), shared.clone()] {
            fs::set_permissions(dir, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        }
        let sockets = format!("/tmp/swarm-{}", nix::unistd::geteuid());
        drop(fs::create_dir(&sockets));
        drop(fs::set_permissions(&sockets, std::os::unix::fs::PermissionsExt::from_mode(0o700)));
        let mut command = Command::new("unshare");
        command.args(["-m", "-u", "-p", "-f", "--mount-proc", "--kill-child", "sh", "-c", SET_UP, "host"]);
        command.args([name, boot]).arg(&home).arg(sockets);
        command.arg(if own_locks { shared.as_os_str() } else { "".as_ref() });
        let mut holder = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        let is_up = world.until("the host is up", || {
            let has_failed = holder.try_wait().unwrap().is_some();
            (has_failed || home.join("ready").exists()).then_some(!has_failed)
        });
        if !is_up {
            return None;
        }
        let children = format!("/proc/{0}/task/{0}/children", holder.id());
        let first = fs::read_to_string(children).unwrap().trim().parse().unwrap();
        Some(Self { world, holder, first, env: vec![] })
    }

    /// A command on this host.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.world.command("nsenter");
        command.arg("-t").arg(self.first.to_string()).args(["-m", "-u", "-p", "--"]);
        command.args(["sh", "-c", "cd \"$0\" && exec \"$@\""]).arg(self.world.work()).args(words);
        command.envs(self.env.iter().copied());
        command
    }

    #[track_caller]
    fn swarm(&self, args: &[&str]) -> Ran {
        self.world.run(self.command(&[&[SWARM], args].concat()))
    }

    /// The number of live processes of this host with this name.
    fn count(&self, name: &str) -> usize {
        let script = "for f in /proc/[0-9]*; do IFS= read -r n <$f/comm && [ \"$n\" = \"$0\" ] && \
                      ! grep -q '^State:.Z' $f/status && echo $n; done";
        self.world.run(self.command(&["sh", "-c", script, name])).out.lines().count()
    }

    /// Whether a daemon runs on it.
    fn has_daemon(&self) -> bool {
        let script = "for f in /proc/[0-9]*; do tr '\\0' ' ' <$f/cmdline 2>/dev/null; echo; done";
        let listed = self.world.run(self.command(&["sh", "-c", script])).out;
        listed.lines().any(|line| line.contains("daemon run") && !line.starts_with("sh "))
    }
}

impl Drop for Host<'_> {
    /// A power failure.
    fn drop(&mut self) {
        if is_alive(self.first) {
            signal(self.first, Signal::SIGKILL);
        }
        drop(self.holder.kill());
        drop(self.holder.wait());
    }
}

/// Writes a lock file as its owner of `lines` left it.
fn write_lock(world: &World, lines: &str) {
    fs::create_dir_all(world.swarm_dir()).unwrap();
    fs::write(world.swarm_dir().join("daemon.lock"), lines).unwrap();
}

/// Marks the directory as one of several hosts.
fn share(world: &World) {
    fs::create_dir_all(world.swarm_dir()).unwrap();
    fs::write(world.swarm_dir().join("shared"), "").unwrap();
}

fn lock_text(world: &World) -> String {
    fs::read_to_string(world.swarm_dir().join("daemon.lock")).unwrap()
}

const AWAY: &str = "4242\nhost=node9\nboot=b9\npids=1\n";

#[test]
fn second_host_is_refused_with_the_name_of_the_first() {
    let world = World::new();
    let Some(one) = Host::start(&world, "node1", "b1", false) else { return eprintln!("{SKIPPED}") };
    let Some(two) = Host::start(&world, "node2", "b2", false) else { return eprintln!("{SKIPPED}") };
    let _ = one.swarm(&["daemon", "start"]).ok();
    let lock = lock_text(&world);
    assert!(lock.contains("\nhost=node1\nboot=b1\npids="), "{lock}");
    for args in
        [&["ls"][..], &["daemon", "start"], &["daemon", "run"], &["daemon", "status"], &["daemon", "stop"]]
    {
        let ran = two.swarm(args).code(3).warns("belongs to the daemon on node1 (pid ");
        assert!(ran.err.contains("hint: ssh node1 swarm ls"), "{args:?}: {}", ran.err);
    }
    assert_eq!(two.swarm(&["ls", "--format", "json"]).code(3).json()["error"]["code"], "other_host");
    let _ = two.swarm(&["doctor"]).code(1).says("belongs to the daemon on node1");
    assert!(!two.has_daemon() && one.has_daemon());
    assert_eq!(lock_text(&world), lock);
    let _ = one.swarm(&["ls"]).ok();
    // Nothing runs there any more, so the directory is free.
    let _ = one.swarm(&["daemon", "stop"]).ok();
    assert_eq!(lock_text(&world), "");
    let _ = two.swarm(&["ls"]).ok();
    let _ = one.swarm(&["ls"]).code(3).warns("belongs to the daemon on node2");
}

#[test]
fn lock_of_another_host_is_not_taken_even_if_it_looks_free() {
    let world = World::new();
    let Some(one) = Host::start(&world, "node1", "b1", false) else { return eprintln!("{SKIPPED}") };
    let _ = one.swarm(&["spawn", "--name", "w", "--", "sleep", "600"]).ok();
    let Some(two) = Host::start(&world, "node2", "b2", true) else { return eprintln!("{SKIPPED}") };
    let _ = two.swarm(&["ls"]).code(3).warns("belongs to the daemon on node1").warns("which may still run");
    let _ = two.swarm(&["kill", "w"]).code(3).warns("node1");
    assert!(!two.has_daemon() && one.has_daemon());
    let _ = one.swarm(&["status", "w"]).ok();
}

#[test]
fn stopped_host_keeps_the_directory_while_its_agents_run() {
    let world = World::new();
    let Some(one) = Host::start(&world, "node1", "b1", false) else { return eprintln!("{SKIPPED}") };
    let Some(two) = Host::start(&world, "node2", "b2", false) else { return eprintln!("{SKIPPED}") };
    let _ = one.swarm(&["spawn", "--name", "w", "--", "sleep", "600"]).ok();
    let _ = one.swarm(&["daemon", "stop"]).ok();
    let _ = two.swarm(&["ls"]).code(3).warns("on node1").warns("was stopped and left 1 agent running");
    let _ = two.swarm(&["daemon", "take-over"]).code(2).warns("--yes");
    // The host itself goes on as if nothing had been.
    assert_eq!(one.swarm(&["status", "w", "--format", "json"]).ok().json()["status"], "running");
    let _ = one.swarm(&["kill", "w"]).ok();
    let _ = one.swarm(&["daemon", "stop"]).ok();
    let _ = two.swarm(&["ls"]).ok();
}

#[test]
fn take_over_ends_the_old_daemon_and_repeats_its_iteration_once() {
    let world = World::new();
    world.write("p", "go\n");
    let mut agent = world.agent("a");
    let Some(one) = Host::start(&world, "node1", "b1", false) else { return eprintln!("{SKIPPED}") };
    let Some(two) = Host::start(&world, "node2", "b2", false) else { return eprintln!("{SKIPPED}") };
    let cmd = agent.command();
    let cmd: Vec<&str> = cmd.iter().map(String::as_str).collect();
    let spawn = ["spawn", "--name", "l", "--ralph", "--prompt-file", "p", "-n", "2", "-d", "--"];
    let _ = one.swarm(&[&spawn, &cmd[..]].concat()).ok();
    agent.until_run(&world, 1);
    let _ = one.swarm(&["spawn", "--name", "w", "--", "tail", "-f", "/dev/null"]).ok();

    let took = two.swarm(&["daemon", "take-over", "--yes"]).ok();
    let took =
        took.says("from the daemon on node1 (pid ").says("2 workers lost").says("swarm ralph resume l");
    let _ = took.says("swarm respawn w");
    world.until("the daemon on node1 ends", || (!one.has_daemon()).then_some(()));
    assert_eq!((one.count("fake-agent.sh"), one.count("tail")), (1, 1), "its agents go on");
    let _ = one.swarm(&["ls"]).code(3).warns("belongs to the daemon on node2");
    let why = two.swarm(&["status", "l", "--format", "json"]).code(1).json();
    assert_eq!((&why["status"], &why["reason"]), (&"lost".into(), &"the host node1 was replaced".into()));
    let state = world.ralph_state("l");
    assert_eq!((&state["status"], &state["current_iteration"]), (&"running".into(), &1.into()), "{state}");
    assert_eq!(agent.starts(), 1);

    drop(one);
    let _ = two.swarm(&["ralph", "resume", "l"]).ok();
    agent.until_run(&world, 2);
    agent.tell("exit 0");
    agent.until_run(&world, 3);
    assert_eq!(world.ralph_state("l")["current_iteration"], 2);
    agent.tell("exit 0");
    world.until("the loop ends", || (world.ralph_state("l")["status"] != "running").then_some(()));
    let log = world.iterations_log("l");
    assert_eq!((agent.starts(), log.matches(" [START] ").count()), (3, 3), "{log}");
    let _ = two.swarm(&["respawn", "w"]).ok();
    assert_eq!(two.swarm(&["status", "w", "--format", "json"]).ok().json()["status"], "running");
}

#[test]
fn concurrent_take_overs_give_one_owner() {
    let world = World::new();
    let Some(one) = Host::start(&world, "node1", "b1", false) else { return eprintln!("{SKIPPED}") };
    let Some(two) = Host::start(&world, "node2", "b2", false) else { return eprintln!("{SKIPPED}") };
    let Some(three) = Host::start(&world, "node3", "b3", false) else { return eprintln!("{SKIPPED}") };
    let _ = one.swarm(&["spawn", "--name", "w", "--", "sleep", "600"]).ok();
    drop(one);
    let both: Vec<_> = [&two, &three]
        .map(|host| world.start(host.command(&[SWARM, "daemon", "take-over", "--yes"])))
        .into_iter()
        .map(|mut follower| (follower.wait(&world), follower.output()))
        .collect();
    assert!(both.iter().any(|(code, _)| *code == 0), "{both:?}");
    world.until("one daemon is left", || (two.has_daemon() != three.has_daemon()).then_some(()));
    let winner = if two.has_daemon() { "node2" } else { "node3" };
    assert!(lock_text(&world).contains(&format!("host={winner}\n")), "{both:?}");
}

#[test]
fn host_that_was_started_again_owns_its_directory_and_its_runs_are_lost() {
    let world = World::new();
    world.write("p", "go\n");
    let mut agent = world.agent("a");
    let Some(one) = Host::start(&world, "node1", "b1", false) else { return eprintln!("{SKIPPED}") };
    let cmd = agent.command();
    let cmd: Vec<&str> = cmd.iter().map(String::as_str).collect();
    let spawn = ["spawn", "--name", "l", "--ralph", "--prompt-file", "p", "-n", "1", "-d", "--"];
    let _ = one.swarm(&[&spawn, &cmd[..]].concat()).ok();
    agent.until_run(&world, 1);
    drop(one);
    let Some(one) = Host::start(&world, "node1", "b2", false) else { return eprintln!("{SKIPPED}") };
    let lost = one.swarm(&["status", "l", "--format", "json"]).code(1).json();
    assert_eq!((&lost["status"], &lost["reason"]), (&"lost".into(), &"the tmux server went away".into()));
    let _ = one
        .swarm(&["events", "--worker", "l", "--since", "1h"])
        .ok()
        .says("run 1 is lost: node1 was started again");
    let _ = one.swarm(&["ralph", "resume", "l"]).ok();
    agent.until_run(&world, 2);
    assert_eq!(world.ralph_state("l")["current_iteration"], 1);
    agent.tell("exit 0");
    world.until("the loop ends", || (world.ralph_state("l")["status"] != "running").then_some(()));
}

#[test]
fn job_that_was_queued_again_owns_its_directory() {
    let world = World::new();
    let Some(mut one) = Host::start(&world, "node1", "b1", false) else { return eprintln!("{SKIPPED}") };
    let Some(mut two) = Host::start(&world, "node2", "b2", false) else { return eprintln!("{SKIPPED}") };
    one.env = vec![("SLURM_JOB_ID", "7")];
    let _ = one.swarm(&["spawn", "--name", "w", "--", "sleep", "600"]).ok();
    assert!(lock_text(&world).contains("\njob=7\n"));
    drop(one);
    let _ = two.swarm(&["ls"]).code(3).warns("Slurm job 7");
    two.env = vec![("SLURM_JOB_ID", "8"), ("SLURM_RESTART_COUNT", "1")];
    let _ = two.swarm(&["ls"]).code(3).warns("Slurm job 7");
    two.env = vec![("SLURM_JOB_ID", "7"), ("SLURM_RESTART_COUNT", "1")];
    let _ = two.swarm(&["ls"]).ok().says("the host node1 was replaced");
    assert!(lock_text(&world).contains("\njob=7\nrestarts=1\n"));
}

#[test]
fn lock_file_of_an_earlier_swarm_names_no_host() {
    let world = World::new();
    write_lock(&world, "4242\n");
    let _ = world.swarm(&["ls"]).ok();
    let _ = world.swarm(&["daemon", "stop"]).ok();
    assert_eq!(lock_text(&world), "");

    write_lock(&world, "4242\n");
    share(&world);
    let ran = world.swarm(&["ls"]).code(3);
    let _ = ran
        .warns("a daemon of an earlier swarm on an unknown host (pid 4242)")
        .warns("swarm daemon take-over");
    let _ = world.swarm(&["daemon", "take-over", "--yes"]).ok().says("daemon started");
    let _ = world.swarm(&["daemon", "take-over", "--yes"]).code(1).warns("a daemon on this host owns");
}

#[test]
fn owner_on_another_host_counts_only_in_a_shared_directory() {
    let world = World::new();
    write_lock(&world, AWAY);
    let _ = world.swarm(&["ls"]).ok();
    world.crash_daemon();
    write_lock(&world, AWAY);
    let nothing = world.swarm(&["daemon", "take-over"]).ok();
    let _ = nothing.says("nothing to take over");

    share(&world);
    let _ =
        world.swarm(&["ls"]).code(3).warns("belongs to the daemon on node9 (pid 4242), which may still run");
    assert_eq!(lock_text(&world), AWAY);
    let _ = world.swarm(&["daemon", "take-over", "-y"]).ok().says("from the daemon on node9 (pid 4242)");
}

#[test]
fn daemon_whose_lock_names_another_host_writes_nothing_more() {
    let world = World::new();
    share(&world);
    let mut agent = world.agent("a");
    world.spawn_loop("l", &agent, &[]);
    agent.until_run(&world, 1);
    let daemon = world.daemon_pid().unwrap();
    let record = || fs::read(world.swarm_dir().join("workers/l.json")).unwrap();
    let (before, log) = (record(), world.iterations_log("l"));
    // Another host writes the file in place, as it cannot see this host's lock.
    write_lock(&world, AWAY);
    agent.tell("exit 0");
    world.until("the daemon ends", || (!is_alive(daemon)).then_some(()));
    assert_eq!((record(), world.iterations_log("l"), agent.starts()), (before, log, 1));
    assert_eq!(lock_text(&world), AWAY);
    let text = fs::read_to_string(world.swarm_dir().join("daemon.log")).unwrap();
    assert!(text.contains("removed or taken over; this daemon writes nothing more"), "{text}");
}
