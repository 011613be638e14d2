//! Workers as jobs of Slurm. Most tests use scripts in place of Slurm's programs, and start the job's script
//! themselves; the last one runs `scripts/slurm-drill.sh`, which has a real Slurm of two nodes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::world::{Follower, Ran, SWARM, World, is_alive, signal};

/// Scripts in place of Slurm's programs. Their state is in files: `queue` has the lines of squeue.
const PROGRAMS: [(&str, &str); 5] = [
    (
        "sbatch",
        r#"echo "$@" >>"$S/sbatch.log"
if [ -e "$S/refuse" ]; then
    echo "sbatch: error: invalid partition specified: nope" >&2
    echo "sbatch: error: Batch job submission failed" >&2
    exit 1
fi
id=$(($(wc -l <"$S/sbatch.log") + 10))
for script; do :; done
cp "$script" "$S/script.$id"
echo "$id|PENDING|Priority|" >>"$S/queue"
echo "$id;cluster""#,
    ),
    (
        "squeue",
        r#"echo >>"$S/squeue.log"
[ ! -e "$S/hang" ] || exec sleep 60
if [ -e "$S/down" ]; then
    echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2
    exit 1
fi
cat "$S/queue""#,
    ),
    (
        "scontrol",
        r#"case $1 in
show) echo "ProctrackType           = $(cat "$S/proctrack")" ;;
requeue)
    echo "$2" >>"$S/requeue.log"
    sed -i "s/^$2|.*/$2|PENDING|BeginTime|/" "$S/queue"
    ;;
esac"#,
    ),
    ("scancel", r#"echo "$1" >>"$S/scancel.log"; sed -i "s/^$1|.*/$1|CANCELLED|None|/" "$S/queue""#),
    (
        "srun",
        r#"while case $1 in --*) true ;; *) false ;; esac; do shift; done
exec "$@""#,
    ),
];

/// Writes the programs into `bin`, with their state in `dir`.
pub(crate) fn fake_programs(bin: &Path, dir: &Path) {
    fs::create_dir_all(bin).unwrap();
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("queue"), "").unwrap();
    fs::write(dir.join("proctrack"), "proctrack/cgroup\n").unwrap();
    for (name, text) in PROGRAMS {
        let file = bin.join(name);
        fs::write(&file, format!("#!/bin/sh\nS={}\n{text}\n", dir.display())).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// A world whose machine submits to a Slurm `lab`.
struct Lab {
    _jobs: Jobs,
    world: World,
    state: PathBuf,
}

impl Lab {
    fn new() -> Self {
        let mut world = World::new();
        let (bin, state) = (world.path("bin"), world.path("slurm-state"));
        fake_programs(&bin, &state);
        world.set("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
        fs::create_dir_all(world.path("home/.config/swarm")).unwrap();
        let settings = "[hosts.lab]\nslurm = true\nargs = [\"-p\", \"agents\"]\n";
        fs::write(world.path("home/.config/swarm/config.toml"), settings).unwrap();
        Self { _jobs: Jobs(world.swarm_dir()), world, state }
    }

    #[track_caller]
    fn swarm(&self, line: &str) -> Ran {
        self.world.swarm(&line.split_whitespace().collect::<Vec<_>>())
    }

    #[track_caller]
    fn spawn(&self, name: &str, script: &str) -> Ran {
        self.world.swarm(&["spawn", "--on", "lab", "--name", name, "--", "sh", "-c", script])
    }

    #[track_caller]
    fn status(&self, name: &str) -> Value {
        let ran = self.swarm(&format!("status lab/{name} --format json"));
        serde_json::from_str(&ran.out).unwrap_or_default()
    }

    #[track_caller]
    fn until_status(&self, name: &str, status: &str) {
        self.world
            .until(&format!("{name} is {status}"), || (self.status(name)["status"] == status).then_some(()));
    }

    fn dir(&self, name: &str) -> PathBuf {
        self.world.swarm_dir().join("slurm/lab").join(name)
    }

    /// A loop whose agent waits for the file `go`, writes its start and its end, and is complete with `goal` of them.
    fn loop_words(name: &str, goal: u32) -> Vec<String> {
        let check = format!("test $(grep -c end log) -ge {goal}");
        let agent = "cat >/dev/null; echo start $$ >>log; until [ -e go ]; do sleep 0.05; done; \
                     echo end $$ >>log; rm -f go";
        let words = ["loop", "--on", "lab", "--name", name, "make it", "--no-promise", "-n", "9", "--check"];
        [&words[..], &[&check, "--", "sh", "-c", agent]].concat().into_iter().map(str::to_owned).collect()
    }

    #[track_caller]
    fn spawn_loop(&self, name: &str, goal: u32) {
        let words = Self::loop_words(name, goal);
        let _ = self.world.swarm(&[&[words[0].clone(), "-d".to_owned()], &words[1..]].concat()).ok();
    }

    fn log(&self) -> Vec<String> {
        let log = fs::read_to_string(self.world.work().join("log")).unwrap_or_default();
        log.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    }

    fn until_log(&self, wanted: &[&str]) {
        self.world
            .until(&format!("the agents have written {wanted:?}"), || (self.log() == wanted).then_some(()));
    }

    fn let_go(&self) {
        fs::write(self.world.work().join("go"), "").unwrap();
    }

    /// Replaces the line of a job in the queue.
    fn set(&self, id: u32, state: &str) {
        let queue = fs::read_to_string(self.state.join("queue")).unwrap();
        let line = |line: &str| match line.starts_with(&format!("{id}|")) {
            true => format!("{id}|{state}\n"),
            false => format!("{line}\n"),
        };
        fs::write(self.state.join("queue"), queue.lines().map(line).collect::<String>()).unwrap();
    }

    fn queue(&self) -> String {
        fs::read_to_string(self.state.join("queue")).unwrap()
    }

    /// Starts the script of a job, as Slurm does on a node.
    fn start(&self, id: u32, restarts: u32) -> Follower {
        self.set(id, "RUNNING|None|node1");
        let mut job = self.world.command("sh");
        job.arg(self.state.join(format!("script.{id}"))).env("SLURM_JOB_ID", id.to_string());
        if restarts > 0 {
            job.env("SLURM_RESTART_COUNT", restarts.to_string());
        }
        self.world.start(job)
    }

    /// Waits until no process of a worker's job, and no daemon for its directory, is left.
    fn until_nothing_runs(&self, name: &str) {
        self.world.until("nothing runs", || pids_in(&self.dir(name)).is_empty().then_some(()));
    }

    /// Kills everything of a worker's job, as the end of its node does.
    fn lose_node(&self, name: &str) {
        for pid in pids_in(&self.dir(name)) {
            signal(pid, Signal::SIGKILL);
        }
    }
}

/// The processes whose SWARM_DIR this is, and the agents in its runs.
fn pids_in(dir: &Path) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return vec![] };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let text = dir.display().to_string();
    let socket = swarm::paths::Paths::new(dir.to_owned()).tmux_socket().display().to_string();
    let is_own = |pid: &u32| {
        let read = |name: &str| {
            String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default()).into_owned()
        };
        let (environ, argv) = (read("environ"), read("cmdline"));
        environ.contains(&format!("SWARM_DIR={text}\0")) || argv.contains(&text) || argv.contains(&socket)
    };
    pids.filter(|pid| *pid != std::process::id()).filter(is_own).collect()
}

/// The jobs below a SWARM_DIR. Ends their processes when it is dropped.
pub(crate) struct Jobs(pub(crate) PathBuf);

impl Drop for Jobs {
    fn drop(&mut self) {
        let Ok(entries) = fs::read_dir(self.0.join("slurm/lab")) else { return };
        for dir in entries.flatten() {
            pids_in(&dir.path()).into_iter().for_each(|pid| signal(pid, Signal::SIGKILL));
        }
    }
}

#[test]
fn job_that_waits_is_listed_and_can_be_killed() {
    let lab = Lab::new();
    let _ = lab.spawn("w", "exec cat").ok().says("spawned w");
    let args = fs::read_to_string(lab.state.join("sbatch.log")).unwrap();
    for wanted in ["--parsable", "--requeue", "--open-mode=append", "--signal=B:TERM@120", "-p agents "] {
        assert!(args.contains(wanted), "{wanted}: {args}");
    }
    for (file, mode) in [("spawn.json", 0o600), ("job.log", 0o600), ("job.sh", 0o700)] {
        let found = fs::metadata(lab.dir("w").join(file)).unwrap().permissions().mode();
        assert_eq!(found & 0o777, mode, "{file}");
    }
    let _ = lab.swarm("ls --on lab").ok().says("starting").says("job 11 waits in the queue (Priority)");
    let all = lab.swarm("ls --all-hosts --format json").ok().json();
    assert_eq!((&all[0]["host"], &all[0]["status"]), (&"lab".into(), &"starting".into()));
    let _ = lab.swarm("status lab/w").ok().says("waits in the queue");
    let _ = lab.swarm("why lab/w").ok().says("waits in the queue");
    for line in ["peek lab/w", "send lab/w hello", "attach lab/w"] {
        let _ = lab.swarm(line).code(6).warns("job 11 waits in the queue (Priority)");
    }
    let _ = lab.swarm("respawn lab/w").code(6);
    let _ = lab.spawn("w", "exec cat").code(1).warns("already exists (starting)");
    let _ = lab.swarm("clean lab/w").warns("waits in the queue");
    let _ = lab.swarm("kill lab/w").ok().says("killed w");
    assert_eq!(lab.queue(), "11|CANCELLED|None|\n");
    assert_eq!(lab.status("w")["status"], "killed");
    let _ = lab.swarm("kill lab/w").ok().says("it had ended before");
    let _ = lab.swarm("wait lab/w").code(1).warns("was killed");
    let _ = lab.swarm("clean lab/w").ok();
    assert!(!lab.dir("w").exists());
    let _ = lab.swarm("status lab/w").code(2).warns("no worker named 'w'");
}

#[test]
fn refused_job_leaves_nothing() {
    let lab = Lab::new();
    fs::write(lab.state.join("refuse"), "").unwrap();
    let ran = lab.spawn("w", "exec cat").code(1);
    let _ = ran.warns("sbatch refused the job: invalid partition specified: nope").warns("args");
    assert!(!lab.dir("w").exists());
    assert_eq!(lab.swarm("ls --on lab --format json").ok().json(), Value::Array(vec![]));
    let _ = lab.swarm("spawn --on elsewhere -- cat").code(2).warns("unknown host 'elsewhere'");
    let _ = lab.swarm("daemon status --on lab").code(2).warns("each job has a daemon of its own");
    let _ = lab.swarm("report --on lab").code(2).warns("needs the name of a worker");
    fs::remove_file(lab.world.path("bin/sbatch")).unwrap();
    if Command::new("sbatch").arg("--version").output().is_err() {
        let _ = lab.spawn("w", "exec cat").code(6).warns("sbatch: it is not installed");
    }
}

#[test]
fn process_tracking_that_loses_agents_is_refused() {
    let lab = Lab::new();
    let _ = lab.swarm("host check lab").ok().says("proctrack/cgroup");
    assert_eq!(lab.swarm("host check lab --format json").ok().json()["proctrack"], "proctrack/cgroup");
    let _ = lab.swarm("doctor").says("slurm: it answers, and tracks jobs with proctrack/cgroup");
    for kind in ["proctrack/linuxproc", "proctrack/pgid"] {
        fs::write(lab.state.join("proctrack"), format!("{kind}\n")).unwrap();
        let _ = lab.spawn("w", "exec cat").code(1).warns(kind).warns("would stay alive");
        let _ = lab.swarm("doctor").code(1).says(kind);
        let _ = lab.swarm("host check lab").code(6).warns(kind);
    }
    assert!(!lab.dir("w").exists() && !lab.state.join("sbatch.log").exists());
}

#[test]
fn loop_runs_to_its_end_and_is_read_from_its_directory() {
    let lab = Lab::new();
    lab.spawn_loop("l", 2);
    let mut wait = lab.world.follow(&["wait", "lab/l"]);
    lab.let_go();
    let mut job = lab.start(11, 0);
    lab.until_log(&["start", "end", "start"]);
    lab.until_status("l", "running");
    let _ = lab.swarm("ralph pause lab/l").ok().says("paused ralph loop for l");
    let _ = lab.swarm("ralph resume lab/l").ok().says("resumed ralph loop for l");
    assert_eq!(lab.status("l")["metadata"]["ralph_iteration"], 2);
    lab.let_go();
    assert_eq!(job.wait(&lab.world), 0, "{}", job.output());
    lab.set(11, "COMPLETED|None|node1");
    assert_eq!(wait.wait(&lab.world), 0);
    lab.until_nothing_runs("l");
    let _ = lab.swarm("ls --on lab").ok().says("done");
    let _ = lab.swarm("events lab/l").ok().says("starting iteration 1/9").says("loop complete after 2");
    let _ = lab.swarm("report lab/l").ok().says("2 iterations");
    let _ = lab.swarm("why lab/l").ok().says("every gate holds");
    let _ = lab.swarm("ralph status lab/l").ok().says("stopped");
    let _ = lab.swarm("ralph logs lab/l").ok();
    let _ = lab.swarm("logs lab/l").ok();
    let _ = lab.swarm("ralph resume lab/l").code(1).warns("has ended");
    lab.until_nothing_runs("l");
    // The name is free again, and the new worker is another one.
    let started = lab.status("l")["started"].clone();
    let _ = lab.spawn("l", "exit 7").ok();
    assert_eq!(lab.status("l")["status"], "starting");
    assert_eq!(lab.start(12, 0).wait(&lab.world), 7);
    let status = lab.status("l");
    assert_eq!((&status["status"], &status["exit_code"]), (&"failed".into(), &7.into()));
    assert_ne!(status["started"], started);
    lab.set(12, "FAILED|NonZeroExitCode|node1");
    let _ = lab.swarm("respawn lab/l").ok().says("respawned l");
    assert_eq!(lab.status("l")["status"], "starting");
    assert_eq!(lab.start(13, 0).wait(&lab.world), 7);
    lab.set(13, "FAILED|NonZeroExitCode|node1");
    let _ = lab.swarm("clean lab/l").ok();
    assert!(!lab.dir("l").exists());
}

#[test]
fn signal_before_the_time_limit_keeps_the_files_and_repeats_the_iteration() {
    let lab = Lab::new();
    let repo = lab.world.repo("work");
    lab.spawn_loop("l", 2);
    let mut job = lab.start(11, 0);
    lab.let_go();
    lab.until_log(&["start", "end", "start"]);
    let agent = lab.status("l")["pid"].as_u64().unwrap();
    job.signal(Signal::SIGTERM);
    lab.world.until("the job is in the queue again", || lab.queue().contains("PENDING").then_some(()));
    assert!(!is_alive(u32::try_from(agent).unwrap()), "the agent has ended before that");
    // Slurm ends what is left.
    job.signal(Signal::SIGTERM);
    assert_ne!(job.wait(&lab.world), 0);
    let _ = lab.swarm("ls --on lab").ok().says("job 11 waits in the queue (BeginTime)");
    let _ = lab.swarm("logs lab/l").ok();
    let _ = lab.swarm("why lab/l").ok();
    let _ = lab.swarm("ralph pause lab/l").code(6).warns("job 11 waits in the queue (BeginTime)");
    let mut job = lab.start(11, 1);
    lab.until_log(&["start", "end", "start", "start"]);
    lab.let_go();
    assert_eq!(job.wait(&lab.world), 0, "{}", job.output());
    assert_eq!(lab.log(), ["start", "end", "start", "start", "end"]);
    lab.set(11, "COMPLETED|None|node1");
    let report = lab.swarm("report lab/l --format json").ok().json();
    assert_eq!(report["iterations"].as_array().unwrap().len(), 2);
    let events = lab.swarm("events lab/l").ok().says("the job leaves its node").says("resumed");
    let _ = events.says("iteration 2 was interrupted; the files that it left are in refs/swarm/l/");
    let mut show = lab.world.command("sh");
    show.current_dir(repo)
        .args(["-c", "git show $(git for-each-ref --format='%(refname)' | grep interrupted):log"]);
    let kept = lab.world.run(show).ok().out;
    let kept: Vec<&str> = kept.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(kept, ["start", "end", "start"]);
}

#[test]
fn slurm_that_hangs_is_waited_for_once() {
    let lab = Lab::new();
    let _ = lab.spawn("w", "true").ok();
    let log = lab.state.join("squeue.log");
    fs::write(lab.state.join("hang"), "").unwrap();
    fs::write(&log, "").unwrap();
    let _ = lab.swarm("ls --on lab").ok().says("unreachable").warns("squeue: it did not end within 7 s");
    assert_eq!(lab.world.lines("slurm-state/squeue.log").len(), 1);
    fs::remove_file(lab.state.join("hang")).unwrap();
    lab.until_status("w", "starting");
}

#[test]
fn worktree_of_a_job_belongs_to_its_worker() {
    let lab = Lab::new();
    let repo = lab.world.repo("work");
    let words = ["spawn", "--on", "lab", "--name", "w", "--worktree", "--", "sleep", "600"];
    let _ = lab.world.swarm(&words).ok();
    let mut job = lab.start(11, 0);
    lab.until_status("w", "running");
    let mut branch = lab.world.command("git");
    branch.current_dir(repo).args(["branch", "--list", "swarm/w"]);
    let _ = lab.world.run(branch).ok().says("swarm/w");
    let doctor = lab.swarm("doctor").out;
    assert!(doctor.contains("slurm") && !doctor.contains("belongs to no worker"), "{doctor}");
    let _ = lab.swarm("kill lab/w").ok();
    let _ = job.wait(&lab.world);
}

#[test]
fn lost_node_repeats_the_iteration_and_is_followed() {
    let lab = Lab::new();
    let mut follower = lab.world.follow(&Lab::loop_words("l", 1));
    lab.world.until("the job is submitted", || lab.queue().contains("11|PENDING").then_some(()));
    let mut job = lab.start(11, 0);
    lab.until_log(&["start"]);
    lab.lose_node("l");
    let _ = job.wait(&lab.world);
    lab.set(11, "PENDING|BeginTime|");
    let mut job = lab.start(11, 1);
    lab.until_log(&["start", "start"]);
    lab.let_go();
    assert_eq!(job.wait(&lab.world), 0, "{}", job.output());
    assert_eq!(lab.log(), ["start", "start", "end"]);
    assert_eq!(follower.wait(&lab.world), 0, "{}", follower.output());
    follower.says("the job lost its node");
}

#[test]
fn loop_of_an_ended_job_is_lost_until_it_is_submitted_again() {
    let lab = Lab::new();
    lab.spawn_loop("l", 1);
    let mut job = lab.start(11, 0);
    lab.until_log(&["start"]);
    let mut wait = lab.world.follow(&["wait", "lab/l"]);
    lab.lose_node("l");
    let _ = job.wait(&lab.world);
    lab.set(11, "NODE_FAIL|NodeDown|node1");
    assert_eq!(wait.wait(&lab.world), 1);
    wait.says("worker 'l' is lost");
    let _ = lab.swarm("ls --on lab").ok().says("lost").says("job 11 has ended (NODE_FAIL)");
    let _ = lab.swarm("report lab/l").ok();
    let _ = lab.swarm("ralph status lab/l").ok();
    lab.until_nothing_runs("l");
    assert_eq!(lab.log(), ["start"], "no agent starts outside of a job");
    let _ = lab.swarm("ralph resume lab/l").ok().says("resumed ralph loop for l");
    let _ = lab.swarm("ls --on lab").ok().says("job 12 waits in the queue (Priority)");
    // The first job must not run beside the second.
    let mut stale = lab.start(11, 1);
    let mut job = lab.start(12, 0);
    lab.until_log(&["start", "start"]);
    lab.let_go();
    assert_eq!(job.wait(&lab.world), 0, "{}", job.output());
    assert_eq!(lab.log(), ["start", "start", "end"]);
    assert_eq!(stale.wait(&lab.world), 1);
    stale.says("job 12 has taken the place of this job");
}

#[test]
fn start_on_another_node_ends_the_agents_of_an_earlier_one() {
    let lab = Lab::new();
    lab.spawn_loop("l", 1);
    let mut job = lab.start(11, 0);
    lab.until_log(&["start"]);
    lab.until_status("l", "running");
    let agent = u32::try_from(lab.status("l")["pid"].as_u64().unwrap()).unwrap();
    // A node without a link to Slurm goes on while the job starts elsewhere.
    let lock = lab.dir("l").join("daemon.lock");
    fs::write(lock.with_extension("new"), "4242\nhost=node9\nboot=b9\npids=1\njob=11\nrestarts=1\n").unwrap();
    fs::rename(lock.with_extension("new"), &lock).unwrap();
    assert_eq!(job.wait(&lab.world), 3);
    job.says("belongs to the daemon on node9");
    assert!(!is_alive(agent));
    let view = fs::read_to_string(lab.dir("l").join("view.json")).unwrap();
    assert!(view.contains("\"closed\":false"), "the later start writes it: {view}");
    lab.until_nothing_runs("l");
}

#[test]
fn paused_loop_leaves_its_node_without_a_requeue() {
    let lab = Lab::new();
    lab.spawn_loop("l", 1);
    let mut job = lab.start(11, 0);
    lab.until_log(&["start"]);
    let _ = lab.swarm("ralph pause lab/l").ok();
    job.signal(Signal::SIGTERM);
    assert_eq!(job.wait(&lab.world), 1);
    assert!(!lab.state.join("requeue.log").exists());
    lab.set(11, "FAILED|NonZeroExitCode|node1");
    let _ = lab.swarm("ralph resume lab/l").ok();
    let mut job = lab.start(12, 0);
    lab.until_log(&["start", "start"]);
    let _ = lab.swarm("kill lab/l").ok().says("killed l");
    assert_eq!(job.wait(&lab.world), 1);
    assert_eq!(fs::read_to_string(lab.state.join("scancel.log")).unwrap(), "12\n");
    assert_eq!(lab.status("l")["status"], "killed");
    lab.until_nothing_runs("l");
}

#[test]
fn job_without_its_directory_ends_with_the_reason() {
    let lab = Lab::new();
    let _ = lab.spawn("w", "exec cat").ok();
    fs::remove_dir_all(lab.dir("w")).unwrap();
    let mut job = lab.start(11, 1);
    assert_eq!(job.wait(&lab.world), 1);
    job.says("has no directory");
    assert!(!lab.dir("w").exists());
    assert_eq!(lab.swarm("ls --on lab --format json").ok().json(), Value::Array(vec![]));
    // A directory of the project that the node does not have.
    let cwd = lab.world.path("project");
    fs::create_dir(&cwd).unwrap();
    let spawn = ["spawn", "--on", "lab", "--name", "p", "--cwd", cwd.to_str().unwrap(), "--", "cat"];
    let _ = lab.world.swarm(&spawn).ok();
    fs::remove_dir(&cwd).unwrap();
    let mut wait = lab.world.follow(&["wait", "lab/p"]);
    assert_eq!(lab.start(12, 0).wait(&lab.world), 1);
    assert_eq!(wait.wait(&lab.world), 1);
    wait.says("worker 'p' failed");
    lab.set(12, "FAILED|NonZeroExitCode|node1");
    let status = lab.status("p");
    assert_eq!(status["status"], "failed");
    assert!(status["reason"].as_str().unwrap().contains("project"), "{status}");
    let _ = lab.swarm("clean lab/p").ok();
}

#[test]
fn slurm_that_does_not_answer_leaves_the_rows() {
    let lab = Lab::new();
    let _ = lab.spawn("w", "exec cat").ok();
    fs::write(lab.state.join("down"), "").unwrap();
    let ls = lab.swarm("ls --on lab").ok().says("unreachable");
    let _ = ls.warns("Unable to contact slurm controller");
    for line in ["status lab/w", "kill lab/w", "spawn --on lab --name x -- cat"] {
        let _ = lab.swarm(line).code(6).warns("Unable to contact slurm controller");
    }
    fs::remove_file(lab.state.join("down")).unwrap();
    assert_eq!(lab.queue(), "11|PENDING|Priority|\n");
    let _ = lab.swarm("kill lab/w").ok();
}

#[test]
fn interrupted_iterations_are_repeated_on_two_slurm_nodes() {
    let world = World::new();
    let mut drill = world.command("sh");
    drill.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/slurm-drill.sh")).env("SWARM", SWARM);
    let mut drill = world.start(drill);
    // Each part may take as long as another wait.
    for part in
        ["two nodes are up", "submit, attach", "a node that goes down", "a time limit costs", "has passed"]
    {
        world.until(part, || (drill.output().contains(part) || drill.has_ended()).then_some(()));
    }
    match drill.wait(&world) {
        77 => eprintln!("{}", drill.output()),
        status => {
            assert_eq!(status, 0, "{}", drill.output());
            drill.says("the drill has passed");
        }
    }
}
