//! Workers with `--net allow`: only allowed hosts are reached, through swarm's proxy.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use crate::sandbox::is_here;
use crate::world::{Ran, World};

/// Asks for a URL through the proxy, as all programs that read its variable do, or directly.
const GET: &str = r#"use strict; use IO::Socket::INET; my ($way, $host, $path) = @ARGV;
my $peer = $way eq 'direct' ? $host : ($ENV{http_proxy} =~ m{^http://(.*)$})[0];
my $request = $way eq 'tunnel' ? "CONNECT $host HTTP/1.1\r\n\r\nGET $path HTTP/1.0\r\n\r\n"
    : $way eq 'direct' ? "GET $path HTTP/1.0\r\n\r\n" : "GET http://$host$path HTTP/1.1\r\n\r\n";
my $socket = IO::Socket::INET->new(PeerAddr => $peer, Timeout => 20) or print("not reached: $@") && exit;
print $socket $request; local $/; print <$socket>;
"#;

/// Runs each line of `asked` and leaves its output in a file with the line's number. The writer of a line may close the
/// pipe only after the next round has opened it, which then reads nothing.
const AGENT: &str = "n=0; while :; do read -r line <asked || continue; n=$((n + 1)); \
    eval \"$line\" >answer.part 2>&1; mv answer.part answer-$n; done";

/// A server on another loopback address than that of the sandbox's own programs. Serves the files of a directory.
fn serve(dir: PathBuf, address: &str) -> u16 {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (mut head, mut byte) = (vec![], [0]);
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|len| len == 1) {
                head.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let path = head.split(' ').nth(1).unwrap_or("/").split('?').next().unwrap_or("/").to_owned();
            let (status, body) = match fs::read(dir.join(path.trim_start_matches('/'))) {
                Ok(body) => ("200 OK", body),
                Err(_) => ("404 Not Found", vec![]),
            };
            let head = format!("HTTP/1.0 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(&[head.as_bytes(), &body].concat());
        }
    });
    port
}

/// A worker `w` whose agent runs commands, and a directory that two servers serve.
struct Caller {
    world: World,
    asked: u32,
}

impl Caller {
    fn new() -> Option<Self> {
        let world = World::new();
        if !is_here(&world) {
            return None;
        }
        fs::create_dir(world.path("served")).unwrap();
        fs::write(world.path("served/file"), "hello from outside\n").unwrap();
        fs::write(world.work().join("get.pl"), GET).unwrap();
        fs::write(world.work().join("agent.sh"), AGENT).unwrap();
        nix::unistd::mkfifo(&world.work().join("asked"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        Some(Self { world, asked: 0 })
    }

    fn start(&self, options: &[&str]) -> Ran {
        let fixed = ["--sandbox", "bwrap", "--net", "allow"];
        self.world.spawn("w", &[&fixed[..], options].concat(), &["sh", "agent.sh"])
    }

    /// Runs a command in the sandbox and returns its output.
    fn ask(&mut self, command: &str) -> String {
        self.asked += 1;
        fs::write(self.world.work().join("asked"), format!("{command}\n")).unwrap();
        let answer = self.world.work().join(format!("answer-{}", self.asked));
        self.world.until(&format!("the answer to {command}"), || answer.exists().then_some(()));
        fs::read_to_string(answer).unwrap()
    }

    fn refused(&mut self, way: &str, host: &str) {
        let answer = self.ask(&format!("perl get.pl {way} {host} /file"));
        assert!(answer.starts_with("HTTP/1.1 403 ") && !answer.contains("outside"), "{way} {host}: {answer}");
        assert!(answer.contains("not an allowed host"), "{way} {host}: {answer}");
    }
}

fn is_hello(answer: &str) -> bool {
    answer.ends_with("hello from outside\n")
}

#[test]
fn only_allowed_hosts_are_reached() {
    let Some(mut caller) = Caller::new() else { return };
    let dir = caller.world.path("served");
    let (port, other) = (serve(dir.clone(), "127.0.0.2"), serve(dir, "127.0.0.3"));
    let (allowed, denied) = (format!("127.0.0.2:{port}"), format!("127.0.0.3:{other}"));
    caller.start(&["--allow-host", &allowed, "--allow-host", "localhost:81"]).ok();
    for way in ["get", "tunnel"] {
        let answer = caller.ask(&format!("perl get.pl {way} {allowed} /file"));
        assert!(is_hello(&answer), "{way}: {answer}");
        caller.refused(way, &denied);
        caller.refused(way, "evil.example:80");
        caller.refused(way, &format!("127.0.0.2:{other}"));
    }
    // Without the proxy, nothing outside is there.
    for host in [&allowed, &denied, "1.1.1.1:80"] {
        let answer = caller.ask(&format!("perl get.pl direct {host} /file"));
        assert!(answer.starts_with("not reached: "), "{host}: {answer}");
    }
    // A listed name does not lead to this machine.
    let answer = caller.ask("perl get.pl tunnel localhost:81 /file");
    assert!(answer.contains("has the private address"), "{answer}");
    let events = || caller.world.swarm(&["events", "w"]).out;
    caller.world.until("the refusal is an event", || {
        events()
            .contains(&format!("the sandbox refused the host {denied}; to allow it: swarm allow w {denied}"))
            .then_some(())
    });
}

#[test]
fn log_of_many_refused_hosts_is_limited() {
    let Some(mut caller) = Caller::new() else { return };
    caller.start(&[]).ok();
    let answer = caller.ask(
        "for k in $(seq 120); do perl get.pl get host$k.example:80 /file >/dev/null; done; perl get.pl get last.example:80 /file",
    );
    assert!(answer.contains("not an allowed host"), "{answer}");
    let refused = || {
        let events = caller.world.swarm(&["events", "w"]).out;
        let lines: Vec<String> =
            events.lines().filter(|line| line.contains("refused the host")).map(str::to_owned).collect();
        lines
    };
    let lines = caller.world.until("the last warning", || {
        Some(refused()).filter(|lines| lines.iter().any(|line| line.contains("are left out")))
    });
    assert_eq!(lines.len(), 100);
}

#[test]
fn a_person_allows_a_host_of_a_running_agent() {
    let Some(mut caller) = Caller::new() else { return };
    let port = serve(caller.world.path("served"), "127.0.0.3");
    let host = format!("127.0.0.3:{port}");
    caller.start(&[]).ok();
    caller.refused("get", &host);
    // The proxy needs no daemon.
    caller.world.crash_daemon();
    caller.refused("get", &host);
    caller.world.swarm(&["allow", "w", "not a host"]).code(2).warns("is not a host");
    let own = caller.ask(&format!("swarm allow w {host}; env | grep -c SWARM_WORKER"));
    assert!(!own.is_empty());
    caller.refused("get", &host);
    caller.world.swarm(&["allow", "w", &host]).ok();
    let answer = caller.ask(&format!("perl get.pl get {host} /file"));
    assert!(is_hello(&answer), "{answer}");
    // The next run has it too.
    caller.world.swarm(&["respawn", "w"]).ok();
    caller.asked = 0;
    fs::remove_file(caller.world.work().join("answer-1")).unwrap();
    let answer = caller.ask(&format!("perl get.pl get {host} /file"));
    assert!(is_hello(&answer), "{answer}");
}

#[test]
fn git_fetches_from_an_allowed_host_and_checks_have_the_same_network() {
    let Some(mut caller) = Caller::new() else { return };
    let repo = caller.world.path("served/repo.git");
    let git = |dir: &Path, args: &[&str]| {
        let mut git = caller.world.command("git");
        git.current_dir(dir).args(args);
        caller.world.run(git).ok();
    };
    git(&caller.world.work(), &["init", "-q"]);
    git(&caller.world.work(), &["commit", "-q", "--allow-empty", "-m", "one"]);
    git(&caller.world.work(), &["clone", "-q", "--bare", ".", repo.to_str().unwrap()]);
    git(&repo, &["update-server-info"]);
    let port = serve(caller.world.path("served"), "127.0.0.2");
    let host = format!("127.0.0.2:{port}");
    caller.start(&["--allow-host", &host]).ok();
    let answer =
        caller.ask(&format!("git fetch -q http://{host}/repo.git && git log --format=%s FETCH_HEAD"));
    assert_eq!(answer, "one\n");
    // Loopback inside stays free.
    let answer = caller.ask(
        "perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(Listen => 1, LocalAddr => q(127.0.0.1:8080)); \
         if (!fork) { $c = $s->accept; print $c q(inside); exit } \
         $c = IO::Socket::INET->new(PeerAddr => q(localhost:8080)); print <$c>'",
    );
    assert_eq!(answer, "inside");

    let check = format!(
        "perl get.pl get {host} /file | grep outside && perl get.pl get 127.0.0.9:1 /file | grep 403"
    );
    let options =
        ["--sandbox", "bwrap", "--net", "allow", "--allow-host", &host, "-n", "1", "--check", &check];
    let looped =
        caller.world.swarm(&[&["loop", "task", "--name", "l"][..], &options, &["--", "true"]].concat());
    assert!(looped.out.contains("passed before the first iteration") || looped.code == Some(0), "{looped:?}");
}

#[test]
fn a_network_without_a_sandbox_is_refused() {
    let world = World::new();
    for options in [&["--net", "allow"][..], &["--net", "off"], &["--allow-host", "npm"]] {
        let ran = world.spawn("w", options, &["true"]).code(2);
        assert!(ran.err.contains("need a sandbox") && ran.err.contains("--sandbox bwrap"), "{ran:?}");
    }
    world.spawn("w", &["--sandbox", "none", "--net", "allow"], &["true"]).code(2);
    world.spawn("plain", &[], &["sleep", "600"]).ok();
    world.swarm(&["allow", "plain", "a.example"]).code(1).warns("has no list of allowed hosts");
}
