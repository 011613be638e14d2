//! A world of its own for each test: private HOME, SWARM_DIR, tmux socket and git config.
//!
//! Tests wait for states, bounded, and a wait that runs out prints what there is to know. On drop the
//! world ends exactly what it started: its daemon by pid, its tmux server by socket.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// How long any wait may take; generous, since machines are busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// The program under test.
pub(crate) const SWARM: &str = env!("CARGO_BIN_EXE_swarm");

/// A private world.
pub(crate) struct World {
    dir: TempDir,
    swarm_dir: PathBuf,
    env: Vec<(String, String)>,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Insists on an exit status.
    #[track_caller]
    pub(crate) fn code(self, wanted: i32) -> Self {
        assert_eq!(self.code, Some(wanted), "stdout: {}\nstderr: {}", self.out, self.err);
        self
    }

    /// Insists on exit status 0.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        self.code(0)
    }

    /// Insists on a piece of stdout.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.out.contains(text), "no {text:?} in stdout: {}\nstderr: {}", self.out, self.err);
        self
    }

    /// Insists on a piece of stderr.
    #[track_caller]
    pub(crate) fn warns(self, text: &str) -> Self {
        assert!(self.err.contains(text), "no {text:?} in stderr: {}\nstdout: {}", self.err, self.out);
        self
    }

    /// Its stdout as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("no JSON ({e}): {}{}", self.out, self.err))
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl World {
    /// An empty world.
    pub(crate) fn new() -> Self {
        // A daemon links a program that is its user's alone, and copies any other. Hundreds of copies of 40 MB took a
        // quarter of the time of all tests.
        static PRIVATE: Once = Once::new();
        PRIVATE.call_once(|| fs::set_permissions(SWARM, fs::Permissions::from_mode(0o700)).unwrap());
        let dir = tempfile::Builder::new().prefix("swarm-it-").tempdir_in("/tmp").unwrap();
        for sub in ["home", "work", "tmux"] {
            fs::create_dir(dir.path().join(sub)).unwrap();
        }
        let swarm_dir = dir.path().join("swarm");
        Self { dir, swarm_dir, env: vec![] }
    }

    /// The same, with the daemon's directory in another place below the world.
    pub(crate) fn with_swarm_dir(mut self, sub: impl AsRef<Path>) -> Self {
        self.swarm_dir = self.path(sub);
        self
    }

    /// Sets a variable for all commands to come.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.into()));
    }

    /// Takes it away again.
    pub(crate) fn unset(&mut self, name: &str) {
        self.env.retain(|(known, _)| known != name);
    }

    /// A path in the world.
    pub(crate) fn path(&self, sub: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(sub)
    }

    /// The directory that commands run in.
    pub(crate) fn work(&self) -> PathBuf {
        self.path("work")
    }

    /// The daemon's directory.
    pub(crate) fn swarm_dir(&self) -> PathBuf {
        self.swarm_dir.clone()
    }

    /// A command in this world's environment.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("SWARM_DIR", self.swarm_dir())
            .env("TMUX_TMPDIR", self.path("tmux"))
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .env("USER", "tester")
            .env("TZ", "UTC")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "t")
            .env("GIT_AUTHOR_EMAIL", "t@example.invalid")
            .env("GIT_COMMITTER_NAME", "t")
            .env("GIT_COMMITTER_EMAIL", "t@example.invalid")
            .envs(self.env.iter().cloned())
            .current_dir(self.work())
            .stdin(Stdio::null());
        command
    }

    /// Runs `swarm ARGS…` to its end.
    #[must_use]
    #[track_caller]
    pub(crate) fn swarm<S: AsRef<OsStr>>(&self, args: &[S]) -> Ran {
        let mut command = self.command(SWARM);
        command.args(args);
        self.run(command)
    }

    /// Runs any command to its end, bounded.
    #[must_use]
    #[track_caller]
    pub(crate) fn run(&self, mut command: Command) -> Ran {
        run_within(&mut command, PATIENCE)
            .unwrap_or_else(|| panic!("{command:?} did not end\n{}", self.report()))
    }

    /// Spawns a worker with some flags and a command.
    #[track_caller]
    pub(crate) fn spawn(&self, name: &str, flags: &[&str], cmd: &[&str]) -> Ran {
        self.swarm(&[&["spawn", "--name", name], flags, &["--"], cmd].concat())
    }

    /// Spawns a shell script as a worker.
    #[track_caller]
    pub(crate) fn spawn_sh(&self, name: &str, flags: &[&str], script: &str) -> Ran {
        self.spawn(name, flags, &["sh", "-c", script])
    }

    /// Starts `swarm ARGS…` and leaves it running, its output in a file.
    pub(crate) fn follow<S: AsRef<OsStr>>(&self, args: &[S]) -> Follower {
        let mut command = self.command(SWARM);
        command.args(args);
        self.start(command)
    }

    /// Starts any command and leaves it running, its output in a file.
    pub(crate) fn start(&self, mut command: Command) -> Follower {
        let log =
            self.path(format!("follow-{}", FOLLOWERS.fetch_add(1, std::sync::atomic::Ordering::Relaxed)));
        let file = OpenOptions::new().create(true).append(true).open(&log).unwrap();
        command.stdout(file.try_clone().unwrap()).stderr(file);
        Follower { child: command.spawn().unwrap(), log }
    }

    /// Writes a file of the working directory.
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.work().join(name), text).unwrap();
    }

    /// The words of `swarm spawn --ralph` for a fake agent, with 10 iterations where `flags` have no `-n`.
    /// The prompt file is `./PROMPT.md`, written when there is none.
    pub(crate) fn loop_args(&self, name: &str, agent: &Agent, flags: &[&str]) -> Vec<String> {
        if !self.work().join("PROMPT.md").exists() {
            self.write("PROMPT.md", "Do task A\n");
        }
        let limit: &[&str] = if flags.contains(&"-n") { &[] } else { &["-n", "10"] };
        let head = ["spawn", "--name", name, "--ralph", "--prompt-file", "./PROMPT.md"];
        let words = head.iter().chain(limit).chain(flags).chain(&["--"]).map(|w| (*w).to_owned());
        words.chain(agent.command()).collect()
    }

    /// Spawns a loop, detached, and waits until its first run obeys.
    #[track_caller]
    pub(crate) fn spawn_loop(&self, name: &str, agent: &Agent, flags: &[&str]) {
        let flags: Vec<&str> = flags.iter().copied().chain(["-d"]).collect();
        self.swarm(&self.loop_args(name, agent, &flags)).ok();
        agent.until_run(self, 1);
    }

    /// Spawns a loop and follows it; its first run obeys.
    #[track_caller]
    pub(crate) fn follow_loop(&self, name: &str, agent: &Agent, flags: &[&str]) -> Follower {
        let follower = self.follow(&self.loop_args(name, agent, flags));
        follower.until_says(self, "[ralph mode: iteration 1/");
        agent.until_run(self, 1);
        follower
    }

    /// Spawns a fake agent as a plain worker and waits until it obeys.
    #[track_caller]
    pub(crate) fn spawn_agent(&self, name: &str, agent: &Agent, flags: &[&str]) -> Ran {
        let words = ["spawn", "--name", name]
            .into_iter()
            .chain(flags.iter().copied())
            .chain(["--"])
            .map(str::to_owned);
        let ran = self.swarm(&words.chain(agent.command()).collect::<Vec<_>>()).ok();
        agent.until_run(self, 1);
        ran
    }

    /// Waits until a loop's log holds a text.
    #[track_caller]
    pub(crate) fn until_logged(&self, name: &str, text: &str) {
        self.until(&format!("{name}'s log holds {text:?}"), || {
            self.iterations_log(name).contains(text).then_some(())
        });
    }

    /// Waits until something holds.
    #[track_caller]
    pub(crate) fn until<T>(&self, what: &str, holds: impl FnMut() -> Option<T>) -> T {
        self.until_or(|| what.to_owned(), holds)
    }

    #[track_caller]
    fn until_or<T>(&self, what: impl Fn() -> String, mut holds: impl FnMut() -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            let looked = Instant::now();
            if let Some(value) = holds() {
                return value;
            }
            assert!(start.elapsed() < PATIENCE, "never: {}\n{}", what(), self.report());
            // Most looks that take long start a process: they must not keep a busy machine busy.
            let pause = looked.elapsed().clamp(Duration::from_millis(20), Duration::from_millis(500));
            std::thread::park_timeout(pause);
        }
    }

    /// Waits until a worker's status is this.
    #[track_caller]
    pub(crate) fn until_status(&self, name: &str, status: &str) -> Value {
        let mut poll = self.status_poll(name);
        self.until(&format!("{name} is {status}"), || {
            (poll.look()["status"] == status).then(|| self.status(name)).filter(|v| v["status"] == status)
        })
    }

    /// Waits until a worker is done or has failed.
    #[track_caller]
    pub(crate) fn until_ended(&self, name: &str) -> Value {
        let ended = |status: &Value| status["status"] == "done" || status["status"] == "failed";
        let mut poll = self.status_poll(name);
        self.until(&format!("{name} ends"), || ended(&poll.look()).then(|| self.status(name)).filter(ended))
    }

    /// Reads a worker's status again and again without a process for each time.
    pub(crate) fn status_poll<'w>(&'w self, name: &'w str) -> StatusPoll<'w> {
        StatusPoll { world: self, name, wire: None }
    }

    /// A worker's status object; `null` when there is none.
    pub(crate) fn status(&self, name: &str) -> Value {
        let ran = self.swarm(&["status", name, "--format", "json"]);
        let status = serde_json::from_str(&ran.out).unwrap_or(Value::Null);
        if status.get("error").is_some() { Value::Null } else { status }
    }

    /// The text of a loop's log; empty when there is none.
    pub(crate) fn iterations_log(&self, name: &str) -> String {
        fs::read_to_string(self.swarm_dir().join(format!("ralph/{name}/iterations.log"))).unwrap_or_default()
    }

    /// A loop's state file.
    pub(crate) fn ralph_state(&self, name: &str) -> Value {
        let text = fs::read_to_string(self.swarm_dir().join(format!("ralph/{name}/state.json")));
        serde_json::from_str(&text.unwrap_or_default()).unwrap_or(Value::Null)
    }

    /// The socket of the daemon's tmux server.
    pub(crate) fn tmux_socket(&self) -> PathBuf {
        swarm::paths::Paths::new(self.swarm_dir()).tmux_socket()
    }

    /// The tmux server's pid.
    #[track_caller]
    pub(crate) fn tmux_pid(&self) -> u32 {
        self.tmux(&["display-message", "-p", "#{pid}"]).ok().out.trim().parse().unwrap()
    }

    /// The panes of workers: `WORKER RUN PID` each.
    pub(crate) fn panes(&self) -> Vec<String> {
        let ran = self.tmux(&["list-panes", "-a", "-F", "#{@swarm_worker} #{@swarm_run} #{pane_pid}"]);
        ran.out.lines().filter(|l| !l.starts_with(' ')).map(str::to_owned).collect()
    }

    /// The lines of a file of this world; none when it is not there.
    pub(crate) fn lines(&self, sub: impl AsRef<Path>) -> Vec<String> {
        fs::read_to_string(self.path(sub)).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// tmux on this world's own socket.
    #[track_caller]
    pub(crate) fn tmux(&self, args: &[&str]) -> Ran {
        let mut command = self.command("tmux");
        command.arg("-S").arg(self.tmux_socket()).args(args);
        self.run(command)
    }

    /// The daemon's pid, when one runs.
    pub(crate) fn daemon_pid(&self) -> Option<u32> {
        daemon_of(&self.swarm_dir())
    }

    /// Ends the daemon of a directory and its tmux server, and waits until the processes in its panes are gone.
    pub(crate) fn end_daemon_of(&self, swarm_dir: &Path) {
        if let Some(pid) = daemon_of(swarm_dir) {
            signal(pid, nix::sys::signal::Signal::SIGKILL);
        }
        let paths = swarm::paths::Paths::new(swarm_dir.to_owned());
        // A test that failed may leave a server that is stopped and never answers.
        let tmux = |args: &[&str]| {
            let mut tmux = self.command("tmux");
            tmux.arg("-S").arg(paths.tmux_socket()).args(args);
            run_within(&mut tmux, Duration::from_secs(10)).map(|ran| ran.out).unwrap_or_default()
        };
        let mut listed = String::new();
        if paths.tmux_socket().exists() {
            listed = tmux(&["list-panes", "-a", "-F", "#{pid} #{pane_pid}"]);
            tmux(&["kill-server"]);
        }
        let pids = |line: &str| line.split(' ').filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>();
        let gone = |pid: u32, patience: Duration| {
            let start = Instant::now();
            while is_alive(pid) && start.elapsed() < patience {
                std::thread::park_timeout(Duration::from_millis(5));
            }
            !is_alive(pid)
        };
        // The process in a pane ends its own tree, and writes into this world until then.
        for pid in listed.lines().filter_map(|line| pids(line).get(1).copied()) {
            gone(pid, PATIENCE);
        }
        // A server waits forever for a control client that died before it read all of its output.
        if let Some(pid) = listed.lines().find_map(|line| pids(line).first().copied())
            && !gone(pid, Duration::from_secs(1))
        {
            signal(pid, nix::sys::signal::Signal::SIGKILL);
        }
        for socket in [paths.socket(), paths.tmux_socket()] {
            // Under a long directory they lie outside of the world.
            drop(fs::remove_file(socket));
        }
    }

    /// Starts the daemon.
    #[track_caller]
    pub(crate) fn start_daemon(&self) -> u32 {
        let _ = self.swarm(&["daemon", "start"]).ok();
        self.daemon_pid().expect("a daemon")
    }

    /// A raw connection to the daemon.
    pub(crate) fn connect(&self) -> Wire {
        let path = swarm::paths::Paths::new(self.swarm_dir()).socket();
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Wire { lines: BufReader::new(stream) }
    }

    /// Kills the daemon as a crash would, and waits until it is gone.
    #[track_caller]
    pub(crate) fn crash_daemon(&self) {
        let pid = self.daemon_pid().expect("a daemon");
        signal(pid, nix::sys::signal::Signal::SIGKILL);
        self.until("the daemon is gone", || (!is_alive(pid)).then_some(()));
    }

    /// A fake agent with its FIFO.
    pub(crate) fn agent(&self, name: &str) -> Agent {
        let dir = self.path(format!("agent-{name}"));
        fs::create_dir(&dir).unwrap();
        nix::unistd::mkfifo(&dir.join("ctl"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let ctl = OpenOptions::new().read(true).write(true).open(dir.join("ctl")).unwrap();
        Agent { dir, ctl }
    }

    /// A git repository with one commit.
    pub(crate) fn repo(&self, sub: &str) -> PathBuf {
        let dir = self.path(sub);
        fs::create_dir_all(&dir).unwrap();
        // Without a second git process that looks for something to pack.
        let commit = ["-c", "maintenance.auto=false", "commit", "-q", "--allow-empty", "-m", "start"];
        for args in [&["init", "-q", "-b", "main"][..], &commit] {
            let mut git = self.command("git");
            git.current_dir(&dir).args(args);
            self.run(git).ok();
        }
        dir
    }

    /// Everything that helps to see why a wait ran out.
    pub(crate) fn report(&self) -> String {
        let mut text = String::new();
        let mut add = |title: &str, body: String| text.push_str(&format!("--- {title}\n{body}\n"));
        let quick = |args: &[&str]| {
            let mut ls = self.command(SWARM);
            ls.args(args)
                .output()
                .map(|o| String::from_utf8_lossy(&o.stdout).into_owned())
                .unwrap_or_default()
        };
        add("ls", quick(&["ls", "--format", "json"]));
        add("daemon.log", fs::read_to_string(self.swarm_dir().join("daemon.log")).unwrap_or_default());
        let mut panes = self.command("tmux");
        panes.arg("-S").arg(self.tmux_socket());
        panes.args([
            "list-panes",
            "-a",
            "-F",
            "#{session_name} #{window_name} #{pane_id} #{pane_dead} #{pane_pid}",
        ]);
        let panes =
            panes.output().map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
        for pane in panes.split_whitespace().filter(|w| w.starts_with('%')) {
            let mut capture = self.command("tmux");
            capture.arg("-S").arg(self.tmux_socket()).args(["capture-pane", "-p", "-t", pane]);
            let seen = capture.output().map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
            add(pane, seen.unwrap_or_default().trim_end().to_owned());
        }
        add("panes", panes);
        text
    }
}

static FOLLOWERS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

impl Drop for World {
    fn drop(&mut self) {
        self.end_daemon_of(&self.swarm_dir());
    }
}

/// Runs a command to its end; `None`, and killed, when that takes longer.
fn run_within(command: &mut Command, limit: Duration) -> Option<Ran> {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(child.wait_with_output()));
    let Ok(output) = told.recv_timeout(limit) else {
        signal(pid, nix::sys::signal::Signal::SIGKILL);
        return None;
    };
    Some(output.unwrap().into())
}

/// Reads a worker's status over one connection. A process for each look would cost as much as the rest of a test.
pub(crate) struct StatusPoll<'w> {
    world: &'w World,
    name: &'w str,
    wire: Option<Wire>,
}

impl StatusPoll<'_> {
    /// The status now; `null` when there is no such worker. Without a daemon, `swarm status` starts one.
    pub(crate) fn look(&mut self) -> Value {
        self.ask().unwrap_or_else(|| {
            self.wire = None;
            self.world.status(self.name)
        })
    }

    fn ask(&mut self) -> Option<Value> {
        if self.wire.is_none() {
            let stream =
                UnixStream::connect(swarm::paths::Paths::new(self.world.swarm_dir()).socket()).ok()?;
            stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
            let mut wire = Wire { lines: BufReader::new(stream) };
            wire.send(b"{\"swarm\":1,\"client\":\"test\"}\n");
            wire.line().contains("\"swarm\":1").then_some(())?;
            self.wire = Some(wire);
        }
        let wire = self.wire.as_mut()?;
        let call = serde_json::json!({"id": 1, "method": "status", "params": {"name": self.name}});
        wire.send(format!("{call}\n").as_bytes());
        let mut answer: Value = serde_json::from_str(&wire.line()).ok()?;
        Some(answer["ok"].take())
    }
}

/// A connection that speaks the protocol by hand.
pub(crate) struct Wire {
    lines: BufReader<UnixStream>,
}

impl Wire {
    /// Sends bytes; one who hung up is no error here.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        drop(self.lines.get_mut().write_all(bytes));
    }

    /// The next line; empty at the end of the stream.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        // A reset is an end too.
        drop(self.lines.read_line(&mut line));
        line
    }

    /// Says hello and gives the daemon's.
    pub(crate) fn hello(mut self) -> Self {
        self.send(b"{\"swarm\":1,\"client\":\"test\"}\n");
        assert!(self.line().contains("\"swarm\":1"));
        self
    }
}

/// A `swarm` that runs beside the test.
pub(crate) struct Follower {
    child: Child,
    log: PathBuf,
}

impl Follower {
    /// The output so far, both streams.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Insists on a piece of what it printed so far.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) {
        let said = self.output();
        assert!(said.contains(text), "no {text:?} in: {said}");
    }

    /// Waits for a piece of its output.
    #[track_caller]
    pub(crate) fn until_says(&self, world: &World, text: &str) {
        let says = || self.output().contains(text).then_some(());
        world.until_or(|| format!("the follower says {text:?}; it said: {}", self.output()), says);
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, which: nix::sys::signal::Signal) {
        signal(self.child.id(), which);
    }

    /// Waits for its end and gives its exit status (128 + N for a signal).
    #[track_caller]
    pub(crate) fn wait(&mut self, world: &World) -> i32 {
        use std::os::unix::process::ExitStatusExt;
        let log = self.log.clone();
        let said = || fs::read_to_string(&log).unwrap_or_default();
        let status = world.until_or(
            || format!("the follower ends; it said: {}", said()),
            || self.child.try_wait().unwrap(),
        );
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A fake agent that obeys through its FIFO.
pub(crate) struct Agent {
    dir: PathBuf,
    ctl: File,
}

impl Agent {
    /// The command that runs it.
    pub(crate) fn command(&self) -> Vec<String> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/fake-agent.sh");
        vec![script.to_owned(), self.dir.display().to_string()]
    }

    /// Tells it something; the run that reads next obeys.
    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.ctl, "{line}").unwrap();
    }

    /// How many runs have started.
    pub(crate) fn starts(&self) -> usize {
        self.runs().lines().filter(|l| l.starts_with("start")).count()
    }

    /// The book of its runs.
    pub(crate) fn runs(&self) -> String {
        fs::read_to_string(self.dir.join("runs")).unwrap_or_default()
    }

    /// The pid of run N.
    pub(crate) fn pid(&self, run: usize) -> Option<u32> {
        let line = self.runs().lines().find(|l| l.starts_with(&format!("start {run} ")))?.to_owned();
        line.rsplit(' ').next()?.parse().ok()
    }

    /// Waits until run N reads its FIFO.
    #[track_caller]
    pub(crate) fn until_run(&self, world: &World, run: usize) {
        let ready = format!("ready {run}");
        world.until(&format!("run {run} starts"), || self.runs().lines().any(|l| l == ready).then_some(()));
    }

    /// The prompt that run N got on standard input.
    pub(crate) fn prompt(&self, run: usize) -> String {
        fs::read_to_string(self.dir.join(format!("prompt.{run}"))).unwrap_or_default()
    }

    /// Whether a file of its own is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.dir.join(name).exists()
    }

    /// A file of its own.
    pub(crate) fn file(&self, name: &str) -> String {
        let mut text = String::new();
        if let Ok(mut file) = File::open(self.dir.join(name)) {
            drop(file.read_to_string(&mut text));
        }
        text
    }
}

/// The pid of the daemon of a directory, when one runs.
fn daemon_of(swarm_dir: &Path) -> Option<u32> {
    let lock = fs::read_to_string(swarm_dir.join("daemon.lock")).ok()?;
    // In another process namespace, the number means another process.
    let own = fs::read_link("/proc/self/ns/pid").ok()?.display().to_string();
    let is_own = |line: &str| line.strip_prefix("pids=").is_none_or(|id| own.contains(id));
    let pid: u32 = lock.lines().next().filter(|_| lock.lines().all(is_own))?.trim().parse().ok()?;
    is_alive(pid).then_some(pid)
}

/// True while a process lives (a zombie does not).
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with('Z'))
}

/// Sends a signal to a process that the test started. One that stops it has done so at the return: the
/// kernel only queues it, and a process that waits for its turn would still answer.
#[track_caller]
pub(crate) fn signal(pid: u32, which: nix::sys::signal::Signal) {
    let target = nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap());
    let _ = nix::sys::signal::kill(target, which);
    if which == nix::sys::signal::Signal::SIGSTOP {
        let deadline = Instant::now() + PATIENCE;
        while !is_stopped(pid) {
            assert!(Instant::now() < deadline, "{pid} does not stop");
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }
}

/// Whether each thread of a process stands still, or there is none.
fn is_stopped(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    threads.flatten().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['T', 't', 'Z', 'X']))
    })
}
