//! Remote hosts over a real sshd on loopback. A "host" is this machine with another HOME, SWARM_DIR and tmux server.
//!
//! ssh takes the home directory from the user database and not from HOME, so that a script on PATH gives it the world's
//! own configuration.

use std::fs::{self, File};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::attach::Terminal;
use crate::netns::Network;
use crate::slurm::{Jobs, fake_programs};
use crate::world::{Ran, SWARM, World, is_alive, signal};

const SSHD: &str = "/usr/sbin/sshd";

/// A world with a client and hosts.
pub(crate) struct Hosts {
    pub(crate) world: World,
    hosts: Vec<Host>,
}

/// An sshd of its own.
pub(crate) struct Host {
    pub(crate) name: &'static str,
    pub(crate) dir: PathBuf,
    pub(crate) network: Network,
    port: u16,
    sshd: Child,
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn key(file: &Path) -> String {
    run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(file));
    fs::read_to_string(file.with_extension("pub")).unwrap()
}

pub(crate) fn script(file: &Path, text: &str) {
    fs::write(file, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

impl Host {
    /// Starts the sshd and waits until it listens.
    fn start(world: &World, name: &'static str, network: Network, authorized: &str) -> Self {
        let dir = world.path(name);
        fs::create_dir_all(dir.join("home/work")).unwrap();
        fs::create_dir_all(dir.join("bin")).unwrap();
        std::os::unix::fs::symlink(SWARM, dir.join("bin/swarm")).unwrap();
        key(&dir.join("key"));
        fs::write(dir.join("authorized"), authorized).unwrap();
        // The port is free again when the listener is dropped.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (shown, address) = (dir.display(), &network.address);
        let config = format!(
            "Port {port}\nListenAddress {address}\nHostKey {shown}/key\nAuthorizedKeysFile {shown}/authorized\n\
             PidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nMaxSessions 100\nMaxStartups 100\nPrintMotd no\nPrintLastLog no\n\
             SetEnv HOME={shown}/home SWARM_DIR={shown}/swarm TMUX_TMPDIR={shown} PATH={shown}/bin:{}\n",
            std::env::var("PATH").unwrap()
        );
        fs::write(dir.join("sshd_config"), config).unwrap();
        let mut host = Self { name, dir, network, port, sshd: Command::new("true").spawn().unwrap() };
        host.sshd.wait().unwrap();
        host.listen(world);
        host
    }

    /// Starts the sshd, after the first time as a host that has started again.
    fn listen(&mut self, world: &World) {
        if nix::unistd::geteuid().is_root() {
            // Debian's service makes it.
            fs::create_dir_all("/run/sshd").unwrap();
        }
        let log = File::options().create(true).append(true).open(self.dir.join("sshd.log")).unwrap();
        let mut sshd = self.network.command(SSHD);
        sshd.args(["-D", "-e", "-f"]).arg(self.dir.join("sshd_config"));
        self.sshd = sshd.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let address = (self.network.address.as_str(), self.port);
        world.until("sshd listens", || TcpStream::connect(address).ok().map(drop));
    }

    /// The processes of sshd that serve a connection.
    fn sessions(&self) -> Vec<u32> {
        fn below(pid: u32) -> Vec<u32> {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
            children.flat_map(|pid| std::iter::once(pid).chain(below(pid))).collect()
        }
        let is_sshd = |pid: &u32| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("sshd"))
        };
        below(self.sshd.id()).into_iter().filter(is_sshd).collect()
    }

    /// Sends a signal to each process that serves a connection.
    pub(crate) fn signal(&self, which: Signal) {
        self.sessions().into_iter().for_each(|pid| signal(pid, which));
    }

    /// Cuts all connections. A client may have the next one before the last process is gone.
    pub(crate) fn cut(&self, world: &World) {
        let sessions = self.sessions();
        sessions.iter().for_each(|pid| signal(*pid, Signal::SIGKILL));
        world.until("the connections are gone", || sessions.iter().all(|pid| !is_alive(*pid)).then_some(()));
    }

    /// The pid of its daemon.
    fn daemon(&self) -> Option<u32> {
        let text = fs::read_to_string(self.dir.join("swarm/daemon.lock")).ok()?;
        text.split_whitespace().next()?.parse().ok().filter(|pid| is_alive(*pid))
    }
}

impl Hosts {
    fn new(names: &[&'static str]) -> Self {
        Self::with_networks(World::new(), names.iter().map(|name| (*name, Network::loopback())).collect())
    }

    /// Hosts that are reached through these networks.
    pub(crate) fn with_networks(mut world: World, hosts: Vec<(&'static str, Network)>) -> Self {
        let ssh = world.path("home/.ssh");
        fs::create_dir_all(&ssh).unwrap();
        let own = key(&ssh.join("id"));
        let hosts =
            hosts.into_iter().map(|(name, network)| Host::start(&world, name, network, &own)).collect();
        fs::create_dir_all(world.path("home/.config/swarm")).unwrap();
        let bin = world.path("bin");
        fs::create_dir(&bin).unwrap();
        script(&bin.join("ssh"), &format!("exec /usr/bin/ssh -F {}/config \"$@\"", ssh.display()));
        world.set("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
        let this = Self { world, hosts };
        this.configure();
        this
    }

    /// Writes the client's settings and its ssh configuration.
    fn configure(&self) {
        let ssh = self.world.path("home/.ssh");
        let (mut config, mut known, mut settings) = (String::new(), String::new(), String::new());
        for host in &self.hosts {
            let (name, address, port) = (host.name, &host.network.address, host.port);
            config += &format!("Host {name}\n  HostName {address}\n  Port {port}\n");
            let key = fs::read_to_string(host.dir.join("key.pub")).unwrap();
            known += &format!("[{address}]:{port} {key}");
            settings += &format!("[hosts.{name}]\n");
        }
        let shown = ssh.display();
        config += &format!(
            "Host *\n  IdentityFile {shown}/id\n  IdentitiesOnly yes\n  UserKnownHostsFile {shown}/known_hosts\n  \
             GlobalKnownHostsFile /dev/null\n"
        );
        fs::write(ssh.join("config"), config).unwrap();
        fs::write(ssh.join("known_hosts"), known).unwrap();
        fs::write(self.world.path("home/.config/swarm/config.toml"), settings).unwrap();
    }

    #[track_caller]
    pub(crate) fn swarm(&self, line: &str) -> Ran {
        self.world.swarm(&line.split_whitespace().collect::<Vec<_>>())
    }

    #[track_caller]
    pub(crate) fn status(&self, name: &str) -> Value {
        serde_json::from_str(&self.swarm(&format!("status {name} --format json")).out).unwrap_or_default()
    }

    #[track_caller]
    pub(crate) fn until_status(&self, name: &str, status: &str) {
        self.world
            .until(&format!("{name} is {status}"), || (self.status(name)["status"] == status).then_some(()));
    }

    /// Starts the sshd of a host that has lost power.
    pub(crate) fn listen_again(&mut self, name: &str) {
        let host = self.hosts.iter_mut().find(|host| host.name == name).unwrap();
        host.sshd.wait().unwrap();
        host.listen(&self.world);
    }

    pub(crate) fn host(&self, name: &str) -> &Host {
        self.hosts.iter().find(|host| host.name == name).unwrap()
    }
}

impl Drop for Hosts {
    /// Ends what was started: shared connections, daemons and tmux servers of the hosts, and the sshds.
    fn drop(&mut self) {
        for host in &mut self.hosts {
            host.signal(Signal::SIGCONT);
            let control = self.world.swarm_dir().join("ssh/%C");
            let mut ssh = self.world.command(self.world.path("bin/ssh"));
            ssh.arg("-o").arg(format!("ControlPath={}", control.display())).args(["-O", "exit", host.name]);
            drop(ssh.stdout(Stdio::null()).stderr(Stdio::null()).status());
            // A shared connection may have lost its socket to another one.
            host.signal(Signal::SIGKILL);
            self.world.end_daemon_of(&host.dir.join("swarm"));
            drop(host.sshd.kill());
            drop(host.sshd.wait());
            // Agents that still run would write into the directory while it is removed.
            let processes = host.network.processes();
            processes.iter().for_each(|pid| signal(*pid, Signal::SIGKILL));
            let deadline = Instant::now() + Duration::from_secs(10);
            while processes.iter().any(|pid| is_alive(*pid)) && Instant::now() < deadline {
                std::thread::park_timeout(Duration::from_millis(5));
            }
        }
    }
}

#[test]
fn every_verb_works_on_a_host() {
    let hosts = Hosts::new(&["a", "b"]);
    fs::write(hosts.world.work().join("PROMPT.md"), "say hello\n").unwrap();
    let cwd = hosts.host("a").dir.join("home/work");
    let spawn = ["spawn", "--name", "a/x", "--cwd", cwd.to_str().unwrap(), "--prompt-file", "PROMPT.md"];
    let shell =
        ["--prompt-via", "stdin", "--", "sh", "-c", "cat; pwd; echo HOME=$HOME; echo WORD=$WORD; sleep 600"];
    let _ =
        hosts.world.swarm(&[&spawn[..], &["--env", "WORD=there"], &shell].concat()).ok().says("spawned x");
    hosts
        .world
        .until("its output arrives", || hosts.swarm("peek a/x").out.contains("WORD=there").then_some(()));
    let logs = hosts.swarm("logs a/x").ok();
    assert!(logs.out.contains("say hello") && logs.out.contains(&cwd.display().to_string()), "{}", logs.out);
    assert!(
        logs.out.contains(&format!("HOME={}", hosts.host("a").dir.join("home").display())),
        "{}",
        logs.out
    );
    // The same name on this machine and on another host are other workers.
    let _ = hosts.world.spawn("x", &[], &["cat"]).ok();
    let there = hosts.host("b").dir.join("home/work").display().to_string();
    let _ = hosts.swarm(&format!("--on b spawn --name x --cwd {there} -- cat")).ok();
    assert_eq!(hosts.status("a/x")["cmd"][0], "sh");
    assert_eq!(hosts.status("a/x")["host"], "a");
    assert_eq!(
        (hosts.status("x")["cmd"][0].as_str(), hosts.status("x")["host"].as_str()),
        (Some("cat"), None)
    );
    let _ = hosts.swarm("send b/x hello").ok();
    hosts.world.until("the text arrives", || hosts.swarm("peek -H b x").out.contains("hello").then_some(()));
    assert!(!hosts.swarm("peek x").ok().out.contains("hello"));
    let _ = hosts.swarm("eof b/x").ok();
    let _ = hosts.swarm("wait b/x --for done").ok();
    let _ = hosts.swarm("why b/x").ok();
    let _ = hosts.swarm("report --on b").ok().says("x");
    let _ = hosts.swarm("events b/x").ok().says("x: ");
    let _ = hosts.swarm("respawn b/x").ok();
    let _ = hosts.swarm("interrupt b/x").ok();
    hosts.world.until("the interrupt ends it", || (hosts.status("b/x")["status"] != "running").then_some(()));
    let _ = hosts.swarm("clean b/x").ok();
    let _ = hosts.swarm("status b/x").code(2).warns("no worker named 'x'").warns("hint: swarm --on b ls");
    let _ = hosts.swarm("kill a/x --format json").ok();
    hosts.until_status("a/x", "killed");
    assert_eq!(hosts.status("x")["status"], "running");
    let _ = hosts.swarm("daemon status --on a").ok().says("running");
    let _ = hosts.swarm("doctor --on a").says("tmux");
    let _ = hosts.swarm("kill --all").ok();
}

#[test]
fn loop_on_a_host_is_followed_to_its_end() {
    let hosts = Hosts::new(&["a"]);
    let cwd = hosts.host("a").dir.join("home/work").display().to_string();
    let words = [
        "loop",
        "--on",
        "a",
        "--cwd",
        &cwd,
        "make it",
        "--no-promise",
        "--check",
        "test -e done",
        "-n",
        "3",
        "--",
    ];
    let agent = ["sh", "-c", "cat >>got; touch done"];
    let _ = hosts.world.swarm(&[&words[..], &agent].concat()).ok();
    assert!(fs::read_to_string(Path::new(&cwd).join("got")).unwrap().contains("make it"));
    let ls = hosts.swarm("ralph ls --on a --format names").ok().out;
    let name = ls.lines().next_back().unwrap().to_owned();
    assert!(name.starts_with("a/"), "{name}");
    let _ = hosts.swarm(&format!("ralph status {name}")).ok();
    let _ = hosts.swarm(&format!("ralph logs {name}")).ok();
    let _ = hosts.swarm(&format!("report {name}")).ok();
    let _ = hosts.swarm(&format!("why {name}")).ok();
}

#[test]
fn slurm_behind_ssh_runs_jobs_and_gets_code_by_git() {
    let hosts = Hosts::new(&["a"]);
    let (host, world) = (hosts.host("a"), &hosts.world);
    let state = host.dir.join("slurm-state");
    fake_programs(&host.dir.join("bin"), &state);
    let _jobs = Jobs(host.dir.join("swarm"));
    fs::write(
        world.path("home/.config/swarm/config.toml"),
        "[hosts.lab]\nslurm = true\nssh = \"a\"\nargs = [\"--comment=two words\"]\n",
    )
    .unwrap();
    let repo = world.repo("repo");
    let in_repo = |args: &[&str]| {
        let mut command = world.command(SWARM);
        command.args(args).current_dir(&repo);
        world.run(command)
    };
    let _ = in_repo(&["spawn", "--on", "lab", "--name", "w", "--worktree", "--", "cat"]).ok();
    assert!(fs::read_to_string(state.join("sbatch.log")).unwrap().contains("--comment=two words"));
    let _ = hosts.swarm("ls --on lab").ok().says("job 11 waits in the queue");
    let _ = hosts.swarm("peek lab/w").code(6).warns("worker 'w': job 11 waits");
    let _ = hosts.swarm("host check lab").ok().says("proctrack/cgroup");
    fs::write(state.join("queue"), "11|RUNNING|None|node1\n").unwrap();
    let mut job = world.command("sh");
    job.arg(state.join("script.11")).env("SLURM_JOB_ID", "11");
    let mut job = world.start(job);
    hosts.until_status("lab/w", "running");
    let worktree = PathBuf::from(hosts.status("lab/w")["worktree"]["path"].as_str().unwrap());
    assert!(worktree.starts_with(host.dir.join("swarm")), "{}", worktree.display());
    let terminal = Terminal::run(world, 0, &[SWARM, "attach", "lab/w"]);
    world.until("keys arrive", || {
        terminal.keys(&["echo-me", "Enter"]);
        hosts.swarm("peek lab/w").out.contains("echo-me\necho-me").then_some(())
    });
    terminal.keys(&["C-b", "d"]);
    world.until("the person has left", || terminal.screen().contains("code 0").then_some(()));
    let mut commit = world.command("git");
    commit.current_dir(&worktree).args(["commit", "-q", "--allow-empty", "-m", "made there"]);
    let _ = world.run(commit).ok();
    let _ = in_repo(&["fetch", "lab/w"]).ok().says("fetched branch swarm/w from lab");
    let shown = Command::new("git").current_dir(&repo).args(["log", "-1", "--format=%s", "swarm/w"]).output();
    assert_eq!(String::from_utf8_lossy(&shown.unwrap().stdout).trim(), "made there");
    let _ = hosts.swarm("kill lab/w").ok().says("killed w");
    assert_ne!(job.wait(world), 0);
    let _ = hosts.swarm("logs lab/w").ok().says("echo-me");
}

#[test]
fn attach_opens_the_window_of_the_host() {
    let hosts = Hosts::new(&["a"]);
    let cwd = hosts.host("a").dir.join("home/work").display().to_string();
    let _ = hosts.swarm(&format!("spawn --on a --name x --cwd {cwd} -- cat")).ok();
    let terminal = Terminal::run(&hosts.world, 0, &[SWARM, "attach", "a/x"]);
    hosts.world.until("the window is there", || terminal.screen().contains("x").then_some(()));
    hosts.world.until("keys arrive", || {
        terminal.keys(&["echo-me", "Enter"]);
        hosts.swarm("peek a/x").out.contains("echo-me\necho-me").then_some(())
    });
    terminal.keys(&["C-b", "d"]);
    hosts.world.until("the person has left", || terminal.screen().contains("code 0").then_some(()));
    hosts.until_status("a/x", "running");
}

#[test]
fn failures_name_the_reason_and_the_next_step() {
    let hosts = Hosts::new(&["a"]);
    let _ = hosts.swarm("ls --on nowhere").code(2).warns("unknown host 'nowhere'").warns("known hosts: a");
    let _ = hosts.swarm("status b/x/y").code(2);
    let _ = hosts.swarm("wait a/x y").code(2).warns("several hosts: local, a");
    let _ = hosts.swarm("session status --on a").code(2).warns("cannot be used with --on");
    let _ = hosts
        .swarm("spawn --on a --cwd /nonexistent -- cat")
        .code(1)
        .warns("no such directory: /nonexistent");
    let _ = hosts.swarm("spawn --on a --worktree -- cat").code(2).warns("needs a name");
    // Another machine answers under the same address.
    let known = hosts.world.path("home/.ssh/known_hosts");
    let right = fs::read_to_string(&known).unwrap();
    let end = |hosts: &Hosts| hosts.hosts[0].cut(&hosts.world);
    end(&hosts);
    let other = key(&hosts.world.path("other-key"));
    fs::write(&known, format!("[127.0.0.1]:{} {other}", hosts.hosts[0].port)).unwrap();
    let _ = hosts.swarm("ls --on a").code(6).warns("its host key has changed").warns("ssh a");
    fs::write(&known, "").unwrap();
    let _ = hosts.swarm("ls --on a").code(6).warns("its host key is not known").warns("ssh a");
    assert_eq!(fs::read_to_string(&known).unwrap(), "", "no key is accepted for the user");
    fs::write(&known, right).unwrap();
    let authorized = hosts.hosts[0].dir.join("authorized");
    let own = fs::read_to_string(&authorized).unwrap();
    fs::write(&authorized, "").unwrap();
    let _ = hosts.swarm("ls --on a").code(6).warns("does not accept your keys");
    fs::write(&authorized, own).unwrap();
    // The host has no swarm, and then one that is too old.
    let swarm = hosts.hosts[0].dir.join("bin/swarm");
    fs::remove_file(&swarm).unwrap();
    let _ =
        hosts.swarm("ls --on a").code(6).warns("swarm is not installed there").warns("swarm host install a");
    script(&swarm, "echo \"error: unrecognized subcommand 'connect'\" >&2; exit 2");
    let _ = hosts.swarm("ls --on a").code(6).warns("too old");
    script(&swarm, "echo Welcome; echo '{\"swarm\":99,\"daemon\":\"9.9.9\",\"pid\":7}'; cat >/dev/null");
    let _ = hosts.swarm("host check a").code(4).warns("9.9.9").warns("this is swarm");
    fs::remove_file(&swarm).unwrap();
    std::os::unix::fs::symlink(SWARM, &swarm).unwrap();
    let _ = hosts.swarm("host check a").ok().says("a: its daemon");
    let _ = hosts.swarm("host ls").ok().says("local");
}

#[test]
fn host_install_copies_checks_and_replaces_the_program() {
    let hosts = Hosts::new(&["a"]);
    let installed = hosts.host("a").dir.join("home/.local/bin/swarm");
    let binary = hosts.world.path("built");
    script(&binary, "echo swarm 7.0.0");
    let install = |more: &[&str]| {
        hosts.world.swarm(&[&["host", "install", "a", "--binary", binary.to_str().unwrap()], more].concat())
    };
    let _ = install(&[]).code(2).warns("add --yes");
    assert!(!installed.exists());
    let _ = install(&["--yes"]).ok().says("it is swarm 7.0.0");
    assert_eq!(fs::read(&installed).unwrap(), fs::read(&binary).unwrap());
    // Neither another program nor one that does not run there replaces it.
    script(&binary, "echo other 7.0.0");
    let _ = install(&["--yes"]).code(6).warns("the file is not swarm");
    script(&binary, "exit 3");
    let _ = install(&["--yes"]).code(6).warns("does not run on this host");
    assert!(fs::read_to_string(&installed).unwrap().contains("7.0.0"));
    assert_eq!(fs::read_dir(installed.parent().unwrap()).unwrap().count(), 1, "no temporary file remains");
    let _ = hosts.swarm("host install local --yes").code(2);
}

#[test]
fn install_without_a_file_uses_a_static_swarm_of_this_release() {
    let hosts = Hosts::new(&["a"]);
    let installed = hosts.host("a").dir.join("home/.local/bin/swarm");
    let install = || hosts.swarm("host install a --yes");
    let _ = install().code(1).warns("linked to libraries of this machine").warns("scripts/package.sh");
    let packaged = hosts.world.path("home/.local/share/swarm/swarm-static");
    fs::create_dir_all(packaged.parent().unwrap()).unwrap();
    script(&packaged, "echo swarm 7.0.0");
    let _ = install().code(6).warns("the copy is swarm 7.0.0 and this is swarm ");
    assert!(!installed.exists());
    let release = hosts.swarm("--version").ok().out;
    script(&packaged, &format!("echo '{}'", release.trim()));
    let _ = install().ok().says(&format!("it is {}", release.trim()));
    assert_eq!(fs::read(&installed).unwrap(), fs::read(&packaged).unwrap());
}

#[test]
fn followers_survive_a_link_that_is_cut() {
    let hosts = Hosts::new(&["a"]);
    let host = hosts.host("a");
    let cwd = host.dir.join("home/work").display().to_string();
    let script = "echo first; read x <ctl; echo second; read x <ctl";
    let path = host.dir.join("home/work/ctl");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    // Open until the end of the test: the script's next read would find the end of a FIFO that is being closed.
    let mut ctl = File::options().read(true).write(true).open(path).unwrap();
    let words = ["spawn", "--on", "a", "--name", "x", "--cwd", &cwd, "--", "sh", "-c", script];
    let _ = hosts.world.swarm(&words).ok();
    let logs = hosts.world.follow(&["logs", "--follow", "a/x"]);
    let events = hosts.world.follow(&["events", "--follow", "--on", "a", "--since", "0"]);
    let mut wait = hosts.world.follow(&["wait", "a/x", "--for", "done"]);
    logs.until_says(&hosts.world, "first");
    events.until_says(&hosts.world, "x: ");
    host.cut(&hosts.world);
    writeln!(ctl).unwrap();
    logs.until_says(&hosts.world, "second");
    writeln!(ctl).unwrap();
    assert_eq!(wait.wait(&hosts.world), 0, "{}", wait.output());
    events.until_says(&hosts.world, "exit");
    let said = events.output();
    let mut lines: Vec<&str> = said.lines().collect();
    let count = lines.len();
    lines.dedup();
    assert_eq!(lines.len(), count, "an event was printed twice: {said}");
}

#[test]
fn stalled_host_keeps_its_rows_and_its_agents() {
    let hosts = Hosts::new(&["a", "b"]);
    let cwd = |name| hosts.host(name).dir.join("home/work").display().to_string();
    for name in ["a", "b"] {
        let _ =
            hosts.swarm(&format!("spawn --on {name} --name w{name} --cwd {} -- sleep 600", cwd(name))).ok();
    }
    let all = || hosts.world.swarm(&["ls", "--all-hosts"]);
    hosts.world.until("both answer", || {
        let ran = all();
        (ran.out.contains("wa ") && ran.out.contains("wb ") && ran.err.is_empty()).then_some(())
    });
    hosts.host("a").signal(Signal::SIGSTOP);
    let ran = hosts.world.until("the host that runs answers in time", || {
        Some(all().ok()).filter(|ran| !ran.err.contains("warning: b is"))
    });
    let row = |name: &str| ran.out.lines().find(|line| line.contains(name)).unwrap_or_default().to_owned();
    assert!(
        row("wa ").contains("unreachable for") && row("wb ").contains("running"),
        "{}{}",
        ran.out,
        ran.err
    );
    let json = hosts.world.swarm(&["ls", "--all-hosts", "--format", "json"]).ok().json();
    let worker = |name: &str| json.as_array().unwrap().iter().find(|w| w["name"] == name).unwrap().clone();
    assert_eq!(
        (worker("wa")["status"].as_str(), worker("wa")["host"].as_str()),
        (Some("unreachable"), Some("a"))
    );
    let _ = hosts.swarm("status a/wa").code(6).warns("host 'a'");
    assert_eq!(hosts.status("b/wb")["status"], "running");
    // The sessions that stand still belong to connections that the client has given up.
    hosts.host("a").signal(Signal::SIGCONT);
    hosts.until_status("a/wa", "running");
    // A new worker goes to the machine with the fewest live workers: this one.
    let ran = hosts.world.swarm(&["spawn", "--on", "any", "--name", "n", "--", "sleep", "600"]).ok();
    assert!(ran.err.contains("on host local (0 live workers)"), "{}", ran.err);
    let _ = hosts.swarm("kill n").ok();
}

#[test]
fn batch_has_workers_of_several_hosts() {
    let hosts = Hosts::new(&["a", "b"]);
    let _ = hosts.world.spawn("x", &[], &["sleep", "600"]).ok();
    for host in ["a", "b"] {
        let cwd = hosts.host(host).dir.join("home/work").display().to_string();
        let _ = hosts.swarm(&format!("spawn --name {host}/x --cwd {cwd} -- sleep 600")).ok();
    }
    let ran = hosts.swarm("kill a/x b/none x b/x").code(2).warns("no worker named 'none'");
    let order = ["host a:", "host b:", "host local:"].map(|head| ran.err.find(head).unwrap());
    assert!(order.is_sorted(), "{}", ran.err);
    for name in ["a/x", "b/x", "x"] {
        assert_eq!(hosts.status(name)["status"], "killed", "{name}");
    }
    // A host that cannot be reached does not stop the others.
    hosts.host("a").signal(Signal::SIGSTOP);
    let _ = hosts.swarm("clean a/x x").code(6).warns("host 'a'").says("x");
    assert!(hosts.status("x").get("status").is_none());
    let _ = hosts.swarm("wait a/x b/x").code(2).warns("the command names several hosts: a, b");
}

#[test]
fn ui_shows_and_changes_workers_of_hosts() {
    let hosts = Hosts::new(&["a", "b"]);
    for host in ["a", "b"] {
        let cwd = hosts.host(host).dir.join("home/work").display().to_string();
        let script = format!("echo screen-of-{host}; exec cat");
        let name = format!("{host}/x");
        let words = ["spawn", "--name", &name, "--cwd", &cwd, "--", "sh", "-c", &script];
        let _ = hosts.world.swarm(&words).ok();
    }
    let terminal = Terminal::sized(&hosts.world, 0, ("100", "20"), &[SWARM, "ui"]);
    terminal.until_shows("· a x");
    terminal.until_shows("· b x");
    terminal.keys(&["Home"]);
    terminal.until_shows("▸· a x");
    terminal.until_shows("screen-of-a");
    terminal.keys(&["j"]);
    terminal.until_shows("▸· b x");
    terminal.until_shows("screen-of-b");
    terminal.keys(&["m", "hello", "Enter"]);
    terminal.until_shows("hello");
    assert!(!hosts.swarm("peek a/x").ok().out.contains("hello"));
    // A host that stalls delays neither keys nor the rows of the others.
    hosts.host("b").signal(Signal::SIGSTOP);
    terminal.until_shows("b unreachable for");
    terminal.keys(&["?"]);
    terminal.until_shows("any key returns");
    terminal.keys(&["?", "End"]);
    terminal.until_shows("▸· a x");
    terminal.keys(&["K", "y"]);
    hosts.until_status("a/x", "killed");
    hosts.host("b").signal(Signal::SIGCONT);
    terminal.until_shows("· b x");
    terminal.until_shows("the rest (1)");
    terminal.keys(&["Home"]);
    terminal.until_shows("▸· b x");
    terminal.keys(&["Enter"]);
    hosts.world.until("the window of the host is open", || {
        let screen = terminal.screen();
        (screen.contains("screen-of-b") && !screen.contains("? keys")).then_some(())
    });
    terminal.keys(&["C-b", "d"]);
    terminal.until_shows("? keys");
    terminal.keys(&["q"]);
    terminal.until_shows("code 0");
}

#[test]
fn concurrent_clients_and_a_stale_control_socket_work() {
    let hosts = Hosts::new(&["a"]);
    let mut first: Vec<_> = (0..4).map(|_| hosts.world.follow(&["host", "check", "a"])).collect();
    for client in &mut first {
        assert_eq!(client.wait(&hosts.world), 0, "{}", client.output());
    }
    // The master of the shared connection dies and leaves its socket.
    let dir = hosts.world.swarm_dir().join("ssh");
    let socket = || fs::read_dir(&dir).unwrap().flatten().map(|entry| entry.path()).next();
    let path = hosts.world.until("the shared connection has a socket", socket);
    hosts.host("a").signal(Signal::SIGKILL);
    hosts.world.until("the connection is gone", || (!path.exists()).then_some(()));
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let _ = hosts.swarm("host check a").ok();
    let mode = fs::metadata(&dir).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn code_is_transferred_by_git_in_both_directions() {
    let hosts = Hosts::new(&["a"]);
    let repo = hosts.world.repo("app");
    let git = |args: &[&str]| {
        let mut git = hosts.world.command("git");
        git.args(args).current_dir(&repo);
        hosts.world.run(git)
    };
    fs::write(repo.join("file"), "from here\n").unwrap();
    let _ = git(&["add", "file"]).ok();
    let _ = git(&["commit", "-q", "-m", "file"]).ok();
    fs::write(repo.join("ignored"), "stays here\n").unwrap();
    let script = "ls; git config user.name t; git config user.email t@t.invalid; echo there >>file; \
        git commit -qam work; echo committed; sleep 600";
    let swarm = |args: &[&str]| {
        let mut swarm = hosts.world.command(SWARM);
        swarm.args(args).current_dir(&repo);
        hosts.world.run(swarm)
    };
    let _ = swarm(&["spawn", "--name", "a/fix", "--worktree", "--", "sh", "-c", script]).ok();
    hosts
        .world
        .until("it has committed", || hosts.swarm("logs a/fix").out.contains("committed").then_some(()));
    let logs = hosts.swarm("logs a/fix").ok().out;
    assert!(logs.contains("file") && !logs.contains("ignored"), "{logs}");
    let _ = swarm(&["fetch", "a/fix"]).ok().says("fetched branch swarm/fix from a");
    let _ = git(&["show", "swarm/fix:file"]).ok().says("from here\nthere");
    // Neither history nor snapshots come into a repository that has nothing to do with them.
    let other = hosts.world.path("other");
    let mut init = hosts.world.command("sh");
    init.args(["-c", "git init -q \"$1\" && git -C \"$1\" commit -q --allow-empty -m other", "sh"])
        .arg(&other);
    let _ = hosts.world.run(init).ok();
    let mut fetch = hosts.world.command(SWARM);
    fetch.args(["fetch", "a/fix"]).current_dir(&other);
    let _ = hosts.world.run(fetch).code(1).warns("does not have the code of 'fix'");
    let mut outside = hosts.world.command(SWARM);
    outside.args(["spawn", "--name", "a/x", "--worktree", "--", "true"]).current_dir(hosts.world.path("bin"));
    let _ = hosts.world.run(outside).code(1).warns("is in no git repository").warns("omit --worktree");
    // The same name again is another branch's history, and nothing is overwritten.
    let _ = hosts.swarm("kill a/fix").ok();
    let _ = git(&["commit", "-q", "--allow-empty", "-m", "more"]).ok();
    let _ = swarm(&["spawn", "--name", "a/fix", "--worktree", "--", "true"]).code(1).warns("git push");
}

#[test]
fn work_of_a_loop_on_a_host_is_merged_by_the_command_that_swarm_prints() {
    let hosts = Hosts::new(&["a"]);
    let repo = hosts.world.repo("app");
    let loop_words = ["loop", "--on", "a", "--worktree", "--name", "fix", "--no-promise", "--check"];
    let agent = ["test -e done", "-n", "3", "make it", "--", "sh", "-c", "touch done"];
    let mut swarm = hosts.world.command(SWARM);
    swarm.args([&loop_words[..], &agent].concat()).current_dir(&repo);
    let ran = hosts.world.run(swarm).ok();
    assert!(!ran.out.contains("already exists"), "{}", ran.out);
    assert!(ran.out.contains("\n  look:   swarm --on a ralph diff fix\n"), "{}", ran.out);
    let merge = ran.out.lines().find_map(|line| line.strip_prefix("  merge:  ")).unwrap();
    let _ = hosts.swarm("why a/fix").ok().says(&format!("next: {merge}"));
    // A shell that finds swarm and the world's ssh.
    let mut shell = hosts.world.command("sh");
    shell.args(["-c", &format!("PATH=\"$1:$PATH\"; {merge}"), "sh"]);
    shell.arg(Path::new(SWARM).parent().unwrap()).current_dir(&repo);
    let _ = hosts.world.run(shell).ok();
    assert!(repo.join("done").exists());
}

#[test]
fn ignored_files_are_sent_only_if_they_are_named() {
    let hosts = Hosts::new(&["a"]);
    let repo = hosts.world.repo("app");
    let write = |name: &str, text: &str| fs::write(repo.join(name), text).unwrap();
    fs::create_dir_all(repo.join("conf")).unwrap();
    write(".gitignore", "*.env\n/cache\n/big\n");
    write(".worktreeinclude", "*.env\n/untracked\n# /cache\n");
    write("conf/-a b.env", "named\n");
    write("cache", "not named\n");
    write("untracked", "not ignored\n");
    std::os::unix::fs::symlink("/etc/passwd", repo.join("link.env")).unwrap();
    let spawn = |name: &str| {
        let mut swarm = hosts.world.command(SWARM);
        let script = "find . -path ./.git -prune -o -type f -print -o -type l -print; cat conf/*; sleep 600";
        swarm.args(["spawn", "--name", name, "--worktree", "--", "sh", "-c", script]).current_dir(&repo);
        hosts.world.run(swarm)
    };
    let _ = spawn("a/one").ok().warns("sent 1 ignored file to a (1 KiB, named in .worktreeinclude)");
    hosts.world.until("it has listed", || hosts.swarm("logs a/one").out.contains("named\n").then_some(()));
    let logs = hosts.swarm("logs a/one").ok().out;
    assert!(logs.contains("./conf/-a b.env"), "{logs}");
    assert!(["cache", "untracked", "link"].iter().all(|name| !logs.contains(name)), "{logs}");
    write(".worktreeinclude", "/big\n");
    File::create(repo.join("big")).unwrap().set_len(65 << 20).unwrap();
    let _ = spawn("a/two").code(1).warns("have 65 MiB, at most 64");
}

#[test]
fn silent_hosts_do_not_delay_the_table() {
    let hosts = Hosts::new(&["a"]);
    // The kernel accepts connections, and nobody answers them.
    let silent: Vec<TcpListener> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let ssh = hosts.world.path("home/.ssh/config");
    let mut config = fs::read_to_string(&ssh).unwrap();
    let mut settings = "[hosts.a]\n".to_owned();
    for (number, listener) in silent.iter().enumerate() {
        let port = listener.local_addr().unwrap().port();
        config = format!("Host silent{number}\n  HostName 127.0.0.1\n  Port {port}\n{config}");
        settings += &format!("[hosts.silent{number}]\n");
    }
    fs::write(&ssh, config).unwrap();
    fs::write(hosts.world.path("home/.config/swarm/config.toml"), settings).unwrap();
    let cwd = hosts.host("a").dir.join("home/work").display().to_string();
    let _ = hosts.swarm(&format!("spawn --on a --name x --cwd {cwd} -- sleep 600")).ok();
    // The host that does answer may take longer than the limit on a busy machine.
    let ran = hosts.world.until("the host that runs answers in time", || {
        Some(hosts.swarm("ls --all-hosts").ok()).filter(|ran| !ran.err.contains("warning: a is"))
    });
    assert!(ran.out.contains("a        x"), "{}{}", ran.out, ran.err);
    for number in 0..3 {
        assert!(ran.out.contains(&format!("silent{number}  -     unreachable")), "{}", ran.out);
        assert!(ran.err.contains(&format!("silent{number} is unreachable: ")), "{}", ran.err);
    }
    let json = hosts.world.until("the host that runs answers in time", || {
        Some(hosts.swarm("host ls --format json").ok().json()).filter(|json| json[1]["reachable"] == true)
    });
    let reachable: Vec<(&str, bool)> = json
        .as_array()
        .unwrap()
        .iter()
        .map(|host| (host["name"].as_str().unwrap(), host["reachable"].as_bool().unwrap()))
        .collect();
    let wanted = [("local", true), ("a", true), ("silent0", false), ("silent1", false), ("silent2", false)];
    assert_eq!(reachable, wanted);
}

#[test]
fn host_that_was_rebooted_gets_its_daemon_again() {
    let mut hosts = Hosts::new(&["a"]);
    let cwd = hosts.host("a").dir.join("home/work").display().to_string();
    let _ = hosts.swarm(&format!("spawn --on a --name x --cwd {cwd} -- sleep 600")).ok();
    let daemon = hosts.host("a").daemon().unwrap();
    let host = &mut hosts.hosts[0];
    host.signal(Signal::SIGKILL);
    host.sshd.kill().unwrap();
    host.sshd.wait().unwrap();
    signal(daemon, Signal::SIGKILL);
    let _ = hosts.swarm("status a/x").code(6).warns("Connection refused");
    let world = &hosts.world;
    hosts.hosts[0].listen(world);
    hosts.until_status("a/x", "running");
    assert_ne!(hosts.host("a").daemon(), Some(daemon));
}
