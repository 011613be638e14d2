//! Links to hosts that are cut or stall while a verb runs. Each host has a network of its own.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::hosts::{Host, Hosts, script};
use crate::netns::{Network, SKIPPED};
use crate::world::{Follower, SWARM, World, is_alive, signal};

/// How long a verb may take over a link that stalls: ssh notices it after 20 s, and connects for 5 s.
const LIMIT: Duration = Duration::from_secs(60);

/// The `swarm` of a host. As long as the file `hold` exists, it keeps the request of a connection, and notes that.
const HOLDING: &str = r#"case "$*" in
*--facts* | *--existing*) exec "$REAL" "$@" ;;
esac
[ -e "$DIR/hold" ] || exec "$REAL" "$@"
wait_and() {
    echo "$1" >"$DIR/held/$$"
    while [ -e "$DIR/hold" ]; do sleep 0.1; done
}
case "$*" in
*--stdio*) ;;
*) wait_and "$*"; exec "$REAL" "$@" ;;
esac
{
    IFS= read -r hello && printf '%s\n' "$hello"
    IFS= read -r request || exit 0
    wait_and "$request"
    printf '%s\n' "$request"
    exec cat
} | "$REAL" "$@""#;

/// Two hosts; `None` where no network can be made.
fn hosts() -> Option<Hosts> {
    let networks = [("a", Network::namespace()?), ("b", Network::namespace()?)];
    let hosts = Hosts::with_networks(World::new(), networks.into());
    for host in ["a", "b"].map(|name| hosts.host(name)) {
        fs::create_dir(host.dir.join("held")).unwrap();
        fs::remove_file(host.dir.join("bin/swarm")).unwrap();
        let head = format!("REAL='{SWARM}'\nDIR='{}'\n", host.dir.display());
        script(&host.dir.join("bin/swarm"), &(head + HOLDING));
    }
    Some(hosts)
}

fn work(host: &Host) -> String {
    host.dir.join("home/work").display().to_string()
}

/// How often a worker's agent has started, by its own count.
fn starts(host: &Host, name: &str) -> usize {
    lines(&host.dir.join("home/work").join(format!("starts.{name}")))
}

fn lines(file: &Path) -> usize {
    fs::read_to_string(file).unwrap_or_default().lines().count()
}

/// An agent that counts its starts.
fn counting(name: &str, then: &str) -> String {
    format!("echo start >>starts.{name}; {then}")
}

/// The end of a verb whose link was cut before its answer.
#[derive(Clone, Copy, PartialEq)]
enum Cut {
    /// The verb sends its request again, which has no further effect, and succeeds.
    Repeats,
    /// The verb sends its request again, and the host refuses it.
    Refused,
    /// The verb fails, since a second request could act twice.
    Fails,
}

/// The verbs of one phase. Each works on workers of its own.
fn verbs(host: &Host, phase: &str) -> Vec<(Vec<String>, Cut)> {
    use Cut::*;
    let (on, cwd) = (host.name, work(host));
    let of = |name: &str| format!("{on}/{name}{phase}");
    let line = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let agent = |name: &str, then: &str| {
        ["--".to_owned(), "sh".to_owned(), "-c".to_owned(), counting(&format!("{name}{phase}"), then)]
    };
    let spawn = line(&format!("spawn --name {} --cwd {cwd}", of("n")));
    let new_loop =
        line(&format!("loop --name {} --cwd {cwd} work --no-promise -n 1 --check ./made.o{phase}", of("o")));
    let mut verbs = vec![
        ([spawn, agent("n", "exec sleep 600").to_vec()].concat(), Repeats),
        (
            [
                new_loop,
                agent(
                    "o",
                    &format!("cat >>got.o; printf '#!/bin/sh\\n' >made.o{phase}; chmod +x made.o{phase}"),
                )
                .to_vec(),
            ]
            .concat(),
            Repeats,
        ),
    ];
    let mut add = |text: String, cut| verbs.push((line(&text), cut));
    add(format!("ls --on {on}"), Repeats);
    add(format!("status {on}/m"), Repeats);
    add(format!("peek {on}/m"), Repeats);
    add(format!("logs {on}/m"), Fails);
    add(format!("send {on}/m text-{phase}"), Fails);
    add(format!("answer {on}/m yes"), Fails);
    add(format!("interrupt {}", of("i")), Fails);
    add(format!("eof {}", of("e")), Fails);
    add(format!("kill {}", of("k")), Repeats);
    add(format!("respawn {}", of("d")), Repeats);
    add(format!("clean {}", of("g")), Fails);
    add(format!("why {on}/m"), Repeats);
    add(format!("report --on {on}"), Repeats);
    add(format!("hold {}", of("h")), Repeats);
    add(format!("release {}", of("h")), Repeats);
    add(format!("quota --on {on}"), Repeats);
    add(format!("wait {} --for exit", of("d")), Repeats);
    add(format!("events --on {on}"), Repeats);
    add(format!("ralph status {}", of("l")), Repeats);
    add(format!("ralph logs {}", of("l")), Fails);
    add(format!("ralph pause {}", of("l")), Repeats);
    add(format!("ralph set {} max_iterations=7", of("l")), Repeats);
    add(format!("ralph ls --on {on}"), Repeats);
    add(format!("ralph clean --on {on} q{phase}"), Fails);
    add(format!("allow {on}/m crates.io"), Refused);
    add(format!("fetch {on}/m"), Refused);
    add(format!("ralph resume {on}/m"), Refused);
    add(format!("ralph diff {}", of("l")), Refused);
    add(format!("ralph approve {on}/m"), Fails);
    add(format!("ralph restore {} 1 --dir {cwd}/restored", of("l")), Fails);
    add(format!("doctor --on {on}"), Fails);
    add(format!("daemon status --on {on}"), Fails);
    verbs
}

/// Spawns the workers of a phase, all at once.
fn prepare(hosts: &Hosts, host: &Host, phase: &str) {
    let (on, cwd) = (host.name, work(host));
    let spawn = |name: &str, then: &str| {
        let name = format!("{name}{phase}");
        let full = format!("{on}/{name}");
        let script = counting(&name, then);
        hosts.world.follow(&["spawn", "--name", &full, "--cwd", &cwd, "--", "sh", "-c", &script])
    };
    let start_loop = |name: &str, check: &str, script: &str| {
        let start = format!("loop --name {on}/{name}{phase} --cwd {cwd} work --no-promise -n 1 -d --check");
        let words = start.split_whitespace().chain([check, "--", "sh", "-c", script]);
        hosts.world.follow(&words.collect::<Vec<_>>())
    };
    let mut all: Vec<Follower> = vec![
        spawn("i", "exec sleep 600"),
        spawn("e", "exec cat"),
        spawn("k", "exec sleep 600"),
        spawn("d", "true"),
        spawn("g", "true"),
        spawn("h", "exec sleep 600"),
        start_loop("q", "test -e no", "cat >>got.q"),
        start_loop("l", "false", &counting(&format!("l{phase}"), "cat >>got.l; exec sleep 600")),
    ];
    for follower in &mut all {
        assert_eq!(follower.wait(&hosts.world), 0, "{}", follower.output());
    }
    for (name, status) in [("d", "done"), ("g", "done"), ("q", "failed")] {
        hosts.until_status(&format!("{on}/{name}{phase}"), status);
    }
}

/// A verb that runs.
struct Running {
    line: String,
    cut: Cut,
    follower: Follower,
}

impl Running {
    /// The verb ends as its kind does after a cut.
    fn assert_cut(&mut self, hosts: &Hosts) {
        let code = self.follower.wait(&hosts.world);
        let wanted: &[i32] = match self.cut {
            Cut::Repeats => &[0],
            Cut::Refused => &[1, 2],
            Cut::Fails => &[6],
        };
        assert!(wanted.contains(&code), "{}: {code}: {}", self.line, self.follower.output());
    }
}

/// Starts the verbs on these hosts and waits until each host has all requests and has carried out none.
fn hold(hosts: &Hosts, both: &[&Host], phase: &str) -> Vec<Running> {
    let mut running = vec![];
    let mut counts = vec![];
    for host in both.iter().copied() {
        fs::write(host.dir.join("hold"), "").unwrap();
        let verbs = verbs(host, phase);
        counts.push(verbs.len());
        for (words, cut) in verbs {
            running.push(Running { line: words.join(" "), cut, follower: hosts.world.follow(&words) });
        }
    }
    for (host, count) in both.iter().zip(counts) {
        let held = || fs::read_dir(host.dir.join("held")).unwrap().count();
        hosts.world.until("the host has all requests", || (held() == count).then_some(()));
    }
    running
}

/// Lets the host carry out the requests that it has.
fn carry_out(host: &Host) {
    fs::remove_file(host.dir.join("hold")).unwrap();
    fs::remove_dir_all(host.dir.join("held")).unwrap();
    fs::create_dir(host.dir.join("held")).unwrap();
}

/// Each verb of a phase has acted once on a host. One whose client is gone before the host begins with the request may
/// not have acted, unless the request was sent again.
fn assert_done_once(hosts: &Hosts, host: &Host, phase: &str) {
    let until = |what: &str, holds: &dyn Fn() -> bool| hosts.world.until(what, || holds().then_some(()));
    let of = |name: &str| format!("{name}{phase}");
    let status = |name: &str| hosts.status(&format!("{}/{name}{phase}", host.name));
    until("the kill", &|| status("k")["status"] == "killed");
    for (name, count) in [("n", 1), ("o", 1), ("d", 2), ("l", 1), ("k", 1), ("e", 1), ("i", 1)] {
        until(&format!("{name}{phase} has started"), &|| starts(host, &of(name)) >= count);
        assert_eq!(starts(host, &of(name)), count, "{name}{phase} on {}", host.name);
    }
    let got = || fs::read_to_string(host.dir.join("home/work/got.m")).unwrap_or_default();
    let count = || got().lines().filter(|line| *line == format!("text-{phase}")).count();
    if phase == "s" {
        until("the text", &|| count() > 0);
        until("the end of the input", &|| status("e")["status"] == "done");
        until("the interrupt", &|| status("i")["status"] != "running");
        until("the deletion", &|| status("g").get("status").is_none());
    }
    assert!(count() <= 1, "{}", got());
}

/// Followers of one host.
struct Following {
    logs: Follower,
    events: Follower,
    iterations: Follower,
    wait: Follower,
}

impl Following {
    fn start(hosts: &Hosts, host: &Host) -> Self {
        let (world, on) = (&hosts.world, host.name);
        let follow = |line: String| world.follow(&line.split_whitespace().collect::<Vec<_>>());
        Self {
            logs: follow(format!("logs --follow {on}/m")),
            events: follow(format!("events --follow --on {on} --since 0")),
            iterations: follow(format!("ralph logs --follow {on}/f")),
            wait: follow(format!("wait {on}/m --for done")),
        }
    }

    /// Something happens on the host, and each follower prints it.
    fn assert_follow(&mut self, hosts: &Hosts, host: &Host, word: &str, iteration: usize) {
        let world = &hosts.world;
        let mut ctl = File::options().read(true).write(true).open(host.dir.join("home/work/ctl.f")).unwrap();
        writeln!(ctl).unwrap();
        world.until("the next iteration", || (starts(host, "f") > iteration).then_some(()));
        let _ = hosts.swarm(&format!("send {}/m {word}", host.name)).ok();
        self.logs.until_says(world, &format!("got {word}"));
        self.iterations.until_says(world, &format!("teration {iteration}"));
        self.events.until_says(world, &format!("iteration {}", iteration + 1));
        assert!(!self.wait.has_ended(), "{}", self.wait.output());
    }

    /// The worker ends, and no follower has printed a line twice.
    fn end(mut self, hosts: &Hosts, host: &Host) {
        let _ = hosts.swarm(&format!("eof {}/m", host.name)).ok();
        assert_eq!(self.wait.wait(&hosts.world), 0, "{}", self.wait.output());
        assert_eq!(self.logs.wait(&hosts.world), 0, "{}", self.logs.output());
        let printed = self.events.output();
        let mut lines: Vec<&str> = printed.lines().collect();
        let count = lines.len();
        lines.dedup();
        assert_eq!(lines.len(), count, "an event was printed twice: {printed}");
        for word in ["zero", "one", "text-s", "two"] {
            assert_eq!(
                self.logs.output().matches(&format!("got {word}\n")).count(),
                1,
                "{}",
                self.logs.output()
            );
        }
    }
}

/// Starts the workers that are followed: `m` prints what it reads, and each iteration of `f` ends at a line in a FIFO.
fn start_followed(hosts: &Hosts, host: &Host) {
    let (on, cwd) = (host.name, work(host));
    nix::unistd::mkfifo(&host.dir.join("home/work/ctl.f"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let reader = "while read -r line; do echo \"$line\" >>got.m; echo \"got $line\"; done";
    let agent = counting("f", "cat >>got.f; read -r x <ctl.f");
    for (words, script) in [
        (format!("spawn --name {on}/m --cwd {cwd} --"), reader),
        (format!("loop --name {on}/f --cwd {cwd} work --no-promise --check false -n 99 -d --"), &agent),
    ] {
        let words: Vec<&str> = words.split_whitespace().chain(["sh", "-c", script]).collect();
        let _ = hosts.world.swarm(&words).ok();
    }
}

#[test]
fn commands_neither_hang_nor_repeat_over_cut_or_stalled_links() {
    let Some(hosts) = hosts() else {
        eprintln!("{SKIPPED}");
        return;
    };
    let both = [hosts.host("a"), hosts.host("b")];
    let mut following = vec![];
    for host in both {
        start_followed(&hosts, host);
        prepare(&hosts, host, "c");
        prepare(&hosts, host, "s");
        following.push(Following::start(&hosts, host));
    }
    for (host, following) in both.into_iter().zip(&mut following) {
        following.assert_follow(&hosts, host, "zero", 1);
    }

    // A link is cut. The host has the requests and carries them out.
    for host in both {
        let mut running = hold(&hosts, &[host], "c");
        host.cut(&hosts.world);
        carry_out(host);
        running.iter_mut().for_each(|verb| verb.assert_cut(&hosts));
    }
    for (host, following) in both.into_iter().zip(&mut following) {
        assert_done_once(&hosts, host, "c");
        following.assert_follow(&hosts, host, "one", 2);
    }

    // The links stall: the hosts carry out the requests, and no answer arrives.
    let mut running = hold(&hosts, &both, "s");
    both.iter().for_each(|host| host.network.stall());
    both.into_iter().for_each(carry_out);
    let start = Instant::now();
    for Running { line, follower, .. } in &mut running {
        assert_eq!(follower.wait(&hosts.world), 6, "{line}: {}", follower.output());
        assert!(start.elapsed() < LIMIT, "{line} took {:?}", start.elapsed());
    }
    both.iter().for_each(|host| host.network.resume());
    for (host, mut following) in both.into_iter().zip(following) {
        hosts.until_status(&format!("{}/m", host.name), "running");
        assert_done_once(&hosts, host, "s");
        following.assert_follow(&hosts, host, "two", 3);
        following.end(&hosts, host);
    }
}

#[test]
fn host_that_loses_power_shows_its_workers_as_lost() {
    let Some(network) = Network::namespace() else {
        eprintln!("{SKIPPED}");
        return;
    };
    let mut hosts = Hosts::with_networks(World::new(), vec![("a", network)]);
    let cwd = work(hosts.host("a"));
    let _ = hosts.swarm(&format!("spawn --on a --name x --cwd {cwd} -- sleep 600")).ok();
    let mut wait = hosts.world.follow(&["wait", "a/x", "--for", "done"]);
    hosts.until_status("a/x", "running");
    let processes = hosts.host("a").network.processes();
    processes.iter().for_each(|pid| signal(*pid, Signal::SIGKILL));
    hosts.world.until("the host is off", || processes.iter().all(|pid| !is_alive(*pid)).then_some(()));
    let _ = hosts.swarm("status a/x").code(6);
    hosts.listen_again("a");
    hosts.until_status("a/x", "lost");
    assert_ne!(wait.wait(&hosts.world), 0, "{}", wait.output());
    let _ = hosts.swarm("respawn a/x").ok();
    hosts.until_status("a/x", "running");
}

#[test]
fn full_disk_of_a_host_is_reported_and_its_worker_continues() {
    let world = World::new();
    let disk = Disk(tempfile::Builder::new().prefix("swarm-it-disk-").tempdir_in("/tmp").unwrap());
    let dir = disk.0.path();
    fs::create_dir(world.path("a")).unwrap();
    std::os::unix::fs::symlink(dir, world.path("a/swarm")).unwrap();
    let mut mount = world.command("mount");
    mount.args(["-t", "tmpfs", "-o", "size=4m,mode=700", "none"]).arg(dir);
    if world.run(mount).code != Some(0) {
        eprintln!("skipped: mounting a small file system is not permitted here");
        return;
    }
    let hosts = Hosts::with_networks(world, vec![("a", Network::loopback())]);
    let cwd = work(hosts.host("a"));
    let _ = hosts.swarm(&format!("spawn --on a --name x --cwd {cwd} -- sleep 600")).ok();
    let mut file = File::create(dir.join("filler")).unwrap();
    for size in [1 << 16, 1 << 12, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
    let spawn = || hosts.swarm(&format!("spawn --on a --name y --cwd {cwd} -- sleep 600"));
    let _ = spawn().code(1).warns("No space left");
    assert_eq!(hosts.status("a/x")["status"], "running");
    drop(file);
    fs::remove_file(dir.join("filler")).unwrap();
    let _ = spawn().ok();
    hosts.until_status("a/y", "running");
}

/// A file system that is unmounted at the end.
struct Disk(TempDir);

impl Drop for Disk {
    fn drop(&mut self) {
        drop(std::process::Command::new("umount").arg("-l").arg(self.0.path()).status());
    }
}
