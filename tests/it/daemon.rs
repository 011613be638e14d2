//! The daemon's own life: started once, whatever lies about; rubbish on its socket; crashes and restarts.

use std::io::Write;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::world::{Agent, SWARM, World, is_alive, signal};

fn socket(world: &World) -> std::path::PathBuf {
    swarm::paths::Paths::new(world.swarm_dir()).socket()
}

/// A loop of `n` iterations around a fake agent.
fn start_loop(world: &World, agent: &Agent, n: &str) {
    std::fs::write(world.path("work/p"), "go\n").unwrap();
    let cmd = agent.command();
    let cmd: Vec<&str> = cmd.iter().map(String::as_str).collect();
    let _ = world.spawn("l", &["--ralph", "--prompt-file", "p", "-n", n, "-d"], &cmd).ok();
}

// ---- starting ----

#[test]
fn many_clients_at_once_start_one_daemon() {
    let world = World::new();
    let clients: Vec<_> = (0..20).map(|_| world.follow(&["ls"])).collect();
    for mut client in clients {
        assert_eq!(client.wait(&world), 0, "{}", client.output());
    }
    let log = std::fs::read_to_string(world.swarm_dir().join("daemon.log")).unwrap();
    assert_eq!(log.matches(" serving ").count(), 1, "{log}");
}

#[test]
fn socket_of_a_dead_daemon_does_not_prevent_a_start() {
    let world = World::new();
    world.start_daemon();
    world.crash_daemon();
    assert!(socket(&world).exists());
    let start = Instant::now();
    let _ = world.swarm(&["ls"]).ok();
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn file_in_place_of_the_socket_is_not_touched() {
    let world = World::new();
    std::fs::create_dir(world.swarm_dir()).unwrap();
    std::fs::write(socket(&world), "precious").unwrap();
    let _ = world.swarm(&["ls"]).code(3).warns("another program uses this path");
    assert_eq!(std::fs::read_to_string(socket(&world)).unwrap(), "precious");
    std::fs::remove_file(socket(&world)).unwrap();
    std::fs::create_dir(socket(&world)).unwrap();
    let _ = world.swarm(&["ls"]).code(3).warns("another program uses this path");
    assert!(socket(&world).is_dir());
    std::fs::remove_dir(socket(&world)).unwrap();
    let _ = world.swarm(&["ls"]).ok();
}

#[test]
fn another_program_on_the_socket_is_reported() {
    let world = World::new();
    std::fs::create_dir(world.swarm_dir()).unwrap();
    let listener = UnixListener::bind(socket(&world)).unwrap();
    let stranger = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        drop(stream.write_all(b"220 mail.example.invalid\r\n"));
        drop(std::io::Read::read(&mut stream, &mut [0; 64]));
        listener
    });
    let _ = world.swarm(&["ls"]).code(3).warns("is not a swarm daemon");
    drop(stranger.join());
    assert!(socket(&world).exists());
}

#[test]
fn foreign_pid_in_the_lock_file_is_not_ended() {
    let world = World::new();
    world.start_daemon();
    world.crash_daemon();
    let mut stranger = Command::new("sleep").arg("600").spawn().unwrap();
    std::fs::write(world.swarm_dir().join("daemon.lock"), format!("{}\n", stranger.id())).unwrap();
    let _ = world.swarm(&["ls"]).ok();
    assert_ne!(world.daemon_pid(), Some(stranger.id()));
    let _ = world.swarm(&["daemon", "stop"]).ok();
    std::fs::write(world.swarm_dir().join("daemon.lock"), format!("{}\n", stranger.id())).unwrap();
    let _ = world.swarm(&["daemon", "stop"]).ok();
    assert_eq!(stranger.try_wait().unwrap(), None);
    std::fs::write(world.swarm_dir().join("daemon.lock"), "").unwrap();
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn long_swarm_directories_work_and_share_no_daemon() {
    let long = |end: &str| format!("{}/{}/{end}", "d".repeat(90), "e".repeat(90));
    let (a, b) = (World::new().with_swarm_dir(long("a")), World::new().with_swarm_dir(long("b")));
    for world in [&a, &b] {
        let _ = world.spawn(&"n".repeat(64), &[], &["sleep", "600"]).ok();
        assert_eq!(world.status(&"n".repeat(64))["status"], "running");
        assert_eq!(world.panes().len(), 1);
    }
    assert_ne!(a.daemon_pid(), b.daemon_pid());
    assert_ne!(socket(&a), socket(&b));
    let _ = a.swarm(&["daemon", "stop"]).ok();
    assert_eq!(b.status(&"n".repeat(64))["status"], "running");
}

/// A command that runs a line of the shell on a terminal of its own.
fn terminal(world: &World, line: &str) -> Command {
    // The caller of the tests may ignore SIGINT, and a shell cannot trap a signal that was ignored at its start.
    let mut script = world.command("perl");
    script.args(["-e", "$SIG{INT} = 'DEFAULT'; exec @ARGV or die", "script", "-qec", line, "/dev/null"]);
    script
}

#[test]
fn closed_terminal_does_not_end_the_daemon() {
    let world = World::new();
    let line = format!("{SWARM} daemon start; {SWARM} spawn --name w -- sleep 600");
    let script = terminal(&world, &line);
    let _ = world.run(script).ok();
    let pid = world.daemon_pid().expect("a daemon");
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    // State, parent, group, session, terminal.
    assert_eq!((fields[2], fields[3], fields[4]), (&*pid.to_string(), &*pid.to_string(), "0"), "{stat}");
    signal(pid, Signal::SIGHUP);
    assert_eq!(world.until_status("w", "running")["status"], "running");
    assert_eq!(world.daemon_pid(), Some(pid));
}

#[test]
fn ctrl_c_in_the_starting_terminal_does_not_end_the_daemon() {
    let world = World::new();
    let line = format!(
        "trap 'echo hit >>hits' INT; {SWARM} spawn --name w -- sleep 600; echo >there; read -r x; read -r x; true"
    );
    let mut terminal = terminal(&world, &line).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut keys = terminal.stdin.take().unwrap();
    world.until("all is there", || world.path("work/there").exists().then_some(()));
    // A Ctrl-C that comes before the shell reads may be flushed with other type-ahead.
    world.until("the terminal's own group is hit", || {
        let _ = keys.write_all(b"\x03");
        (!world.lines("work/hits").is_empty()).then_some(())
    });
    drop(keys);
    let _ = terminal.kill();
    terminal.wait().unwrap();
    assert_eq!(world.until_status("w", "running")["status"], "running");
    let log = std::fs::read_to_string(world.swarm_dir().join("daemon.log")).unwrap();
    assert_eq!(log.matches(" serving ").count(), 1, "{log}");
}

// ---- the wire ----

#[test]
fn clients_of_a_hanging_daemon_time_out_with_a_hint() {
    let w = World::new();
    let agent = w.agent("a");
    let mut follower = w.follow_loop("agent", &agent, &[]);
    let daemon = w.daemon_pid().unwrap();
    signal(daemon, Signal::SIGSTOP);
    follower.signal(Signal::SIGTERM);
    // Side by side, since each waits for some seconds.
    let verbs = [&["daemon", "stop"][..], &["daemon", "restart"], &["kill", "agent"]];
    let mut clients = verbs.map(|args| w.follow(args));
    for client in &mut clients {
        assert_eq!(client.wait(&w), 5);
        client.says("swarm: error: the daemon does not answer\n");
        client.says(&format!("as a last resort: kill -9 {daemon} (agents keep running)"));
    }
    clients[2].says("whether it has ended: swarm status agent");
    assert_eq!(follower.wait(&w), 1);
    follower.says("cannot pause agent, and its loop goes on: the daemon does not answer\n");
    follower.says(&format!("kill -9 {daemon}"));
    assert!(is_alive(agent.pid(1).unwrap()));
}

#[test]
fn daemon_is_not_started_without_a_usable_directory() {
    let w = World::new();
    std::fs::write(w.path("file"), "mine").unwrap();
    for dir in ["file", "file/below"] {
        let mut ls = w.command(SWARM);
        ls.env("SWARM_DIR", w.path(dir)).arg("ls");
        let file = format!("'{}' is not a directory\n", w.path("file").display());
        w.run(ls).code(3).warns("swarm: error: SWARM_DIR '").warns(&file);
    }
    for home in [None, Some(""), Some("home")] {
        let mut ls = w.command(SWARM);
        ls.env_remove("SWARM_DIR").env_remove("HOME").envs(home.map(|home| ("HOME", home))).arg("ls");
        w.run(ls).code(3).warns("swarm: error: HOME is not ").warns("hint: set HOME or SWARM_DIR\n");
    }
    // Nobody can create a file in /proc.
    for home in [w.path("missing"), "/proc".into()] {
        let mut ls = w.command(SWARM);
        ls.env_remove("SWARM_DIR").env("HOME", home).arg("ls");
        w.run(ls).code(3).warns("hint: set SWARM_DIR to a directory that belongs to you and is writable\n");
    }
    assert!(!w.path("missing").exists());
    let mut ls = w.command(SWARM);
    ls.env_remove("HOME").arg("ls");
    w.run(ls).ok();
}

#[test]
fn other_protocol_version_is_refused_with_an_explanation() {
    let world = World::new();
    world.start_daemon();
    let mut wire = world.connect();
    wire.send(b"{\"swarm\":99,\"client\":\"9.9.9\",\"more\":[]}\n");
    assert!(wire.line().starts_with("{\"swarm\":1,\"daemon\":"));
    wire.send(b"{\"id\":1,\"method\":\"ls\",\"params\":{}}\n");
    assert_eq!(wire.line(), "");
    world.crash_daemon();
    std::fs::remove_file(socket(&world)).unwrap();
    let listener = UnixListener::bind(socket(&world)).unwrap();
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        drop(stream.write_all(b"{\"swarm\":99,\"daemon\":\"9.9.9\",\"pid\":1}\n"));
        drop(std::io::Read::read(&mut stream, &mut [0; 64]));
    });
    let said = world.swarm(&["ls"]).code(4).warns("protocol 1").warns("protocol 99").warns("9.9.9");
    let _ = said.warns("hint: swarm daemon restart");
    drop(other.join());
}

#[test]
fn daemon_of_another_release_is_reported_once() {
    let world = World::new();
    std::fs::create_dir(world.swarm_dir()).unwrap();
    let listener = UnixListener::bind(socket(&world)).unwrap();
    let commands = [(7, &["ls"][..]), (7, &["ls"]), (8, &["ls", "--json"]), (8, &["ls"])];
    let other = std::thread::spawn(move || {
        for (pid, _) in commands {
            let (mut stream, _) = listener.accept().unwrap();
            let hello = format!("{{\"swarm\":1,\"daemon\":\"0.0.9\",\"pid\":{pid}}}\n");
            let empty = "{\"id\":1,\"ok\":{\"workers\":[],\"problems\":[]}}\n";
            stream.write_all((hello + empty).as_bytes()).unwrap();
            drop(std::io::Read::read_to_end(&mut stream, &mut vec![]));
        }
    });
    let warnings = commands.map(|(_, args)| world.swarm(args).ok().err.matches("0.0.9").count());
    assert_eq!(warnings, [1, 0, 0, 1]);
    other.join().unwrap();
    let version = world.swarm(&["--version"]).ok().out;
    assert_eq!(version.trim_end(), format!("swarm {}", swarm::protocol::RELEASE));
}

#[test]
fn invalid_requests_are_refused_and_change_nothing() {
    let world = World::new();
    let _ = world.spawn("w", &[], &["sleep", "600"]).ok();
    let pid = world.daemon_pid();
    for rubbish in
        [&b"\n"[..], b"{}\n", b"GET / HTTP/1.1\r\n\r\n", b"\xff\xfe\n", b"[[[[[[\n", b"{\"swarm\":-1}\n"]
    {
        let mut wire = world.connect();
        wire.send(rubbish);
        wire.line();
        assert!(wire.line().contains("\"code\":\"invalid\""), "{rubbish:?}");
        assert_eq!(wire.line(), "", "{rubbish:?}");
    }
    for rubbish in ["nonsense\n", "\n", "{\"id\":-1,\"method\":\"ls\"}\n", "{\"id\":1}\n"] {
        let mut wire = world.connect().hello();
        wire.send(rubbish.as_bytes());
        assert!(wire.line().contains("\"code\":\"invalid\""), "{rubbish:?}");
    }
    // An invalid request is answered, and the connection stays open.
    let mut wire = world.connect().hello();
    for (rubbish, id) in [
        (r#"{"id":1,"method":"no.such","params":{}}"#, 1),
        (r#"{"id":2,"method":"status","params":{}}"#, 2),
        (r#"{"id":3,"method":"status","params":{"name":"../../x"}}"#, 3),
        (r#"{"id":4,"method":"status","params":[["w"]]}"#, 4),
        (r#"{"id":5,"method":"spawn","params":{"name":"x"}}"#, 5),
    ] {
        wire.send(format!("{rubbish}\n").as_bytes());
        let answer = wire.line();
        assert!(answer.starts_with(&format!("{{\"id\":{id},\"err\":{{")), "{rubbish}: {answer}");
    }
    wire.send(b"{\"id\":6,\"method\":\"ls\"}\n");
    assert!(wire.line().contains("\"ok\""));
    assert_eq!(world.daemon_pid(), pid);
    assert_eq!(world.status("w")["status"], "running");
}

#[test]
fn a_line_that_is_too_long_is_refused() {
    let world = World::new();
    world.start_daemon();
    let mut wire = world.connect().hello();
    wire.send(&[b'x'; (1 << 20) + 10]);
    let answer = wire.line();
    assert!(answer.contains("1 MiB"), "{answer}");
    let mut early = world.connect();
    early.send(&[b'x'; (1 << 20) + 10]);
    early.line();
    let _ = world.swarm(&["ls"]).ok();
    // The client refuses before it sends.
    std::fs::write(world.path("work/big"), "x".repeat(2 << 20)).unwrap();
    let _ = world.spawn("w", &[], &["cat"]).ok();
    let _ = world.swarm(&["send", "w", "--file", "big"]).code(1).warns("too long");
}

#[test]
fn other_user_gets_no_answer() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can ask as another user");
        return;
    }
    let world = World::new();
    world.start_daemon();
    let ask = |world: &World| {
        let mut perl = world.command("perl");
        let script = r#"$SIG{PIPE} = "IGNORE"; socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, pack_sockaddr_un($ARGV[0])) or exit 7;
            syswrite S, qq({"swarm":1,"client":"x"}\n{"id":1,"method":"ls"}\n); print while <S>"#;
        perl.args(["-MSocket", "-e", script]).arg(socket(world)).uid(65534).gid(65534);
        perl.current_dir("/");
        world.run(perl)
    };
    let _ = ask(&world).code(7);
    // Even where the doors stand open.
    for path in [world.path(""), world.swarm_dir()] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    std::fs::set_permissions(socket(&world), std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    assert_eq!(ask(&world).ok().out, "");
}

#[test]
fn clients_that_never_read_do_not_delay_others() {
    let world = World::new();
    let _ = world.spawn("w", &[], &["sleep", "600"]).ok();
    let mut wires: Vec<_> = (0..40).map(|_| world.connect()).collect();
    for wire in wires.iter_mut().skip(10) {
        wire.send(b"{\"swarm\":1,\"client\":\"x\"}\n{\"id\":1,\"method\":\"subscribe\"}\n");
    }
    for wire in wires.iter_mut().skip(30) {
        // More answers than a socket holds.
        wire.send("{\"id\":2,\"method\":\"ls\"}\n".repeat(200).as_bytes());
    }
    let start = Instant::now();
    let _ = world.swarm(&["ls"]).ok();
    let _ = world.swarm(&["kill", "w"]).ok();
    assert!(start.elapsed() < Duration::from_secs(20));
}

// ---- stopping and taking over ----

#[test]
fn daemon_stop_keeps_agents_and_prints_how_to_resume_loops() {
    let world = World::new();
    let mut agent = world.agent("a");
    start_loop(&world, &agent, "2");
    agent.until_run(&world, 1);
    let pid = agent.pid(1).unwrap();
    let _ = world.swarm(&["daemon", "stop"]).ok().says("1 agent keeps running").says("swarm ralph resume l");
    assert!(is_alive(pid) && world.daemon_pid().is_none());
    assert_eq!(world.ralph_state("l")["status"], "paused");
    let _ = world.swarm(&["daemon", "start"]).ok().says("swarm ralph resume l");
    let _ = world.swarm(&["ralph", "resume", "l"]).ok();
    agent.tell("exit 0");
    agent.until_run(&world, 2);
    agent.tell("exit 0");
    world.until_status("l", "done");
    assert_eq!(agent.starts(), 2);
}

#[test]
fn daemon_restart_adopts_agents_and_pauses_no_loop() {
    let world = World::new();
    let mut agent = world.agent("a");
    start_loop(&world, &agent, "2");
    agent.until_run(&world, 1);
    let (old, panes) = (world.daemon_pid().unwrap(), world.panes());
    let _ = world.swarm(&["daemon", "restart"]).ok();
    assert_ne!(world.daemon_pid(), Some(old));
    assert_eq!(world.panes(), panes);
    let seen = world.status("l");
    assert_eq!((&seen["status"], &seen["pid"]), (&"running".into(), &agent.pid(1).into()), "{seen}");
    agent.tell("exit 0");
    agent.until_run(&world, 2);
    agent.tell("exit 0");
    world.until_status("l", "done");
    assert_eq!(agent.starts(), 2);
    assert!(!world.iterations_log("l").contains("[PAUSE]"));
}

#[test]
fn ends_without_a_daemon_are_found_by_the_next_one() {
    let world = World::new();
    let mut agent = world.agent("a");
    start_loop(&world, &agent, "2");
    agent.until_run(&world, 1);
    let _ = world.spawn_sh("code", &[], "echo $$ >code; read x; exit 7").ok();
    let _ = world.spawn_sh("pane", &[], "echo $$ >pane; sleep 600").ok();
    let pids = world.until("both run", || {
        Some([world.lines("work/code"), world.lines("work/pane")].concat()).filter(|l| l.len() == 2)
    });
    world.crash_daemon();
    let ids = world.tmux(&["list-panes", "-a", "-F", "#{@swarm_worker} #{pane_id}"]).ok().out;
    let pane = |name: &str| ids.lines().find_map(|l| l.strip_prefix(&format!("{name} "))).unwrap().to_owned();
    let _ = world.tmux(&["send-keys", "-t", &pane("code"), "Enter"]).ok();
    let _ = world.tmux(&["kill-pane", "-t", &pane("pane")]).ok();
    let _ = world.tmux(&["kill-pane", "-t", &pane("l")]).ok();
    for pid in pids.iter().map(|p| p.parse().unwrap()).chain(agent.pid(1)) {
        world.until("the agents are gone", || (!is_alive(pid)).then_some(()));
    }
    world.start_daemon();
    assert_eq!(world.until_status("code", "failed")["exit_code"], 7);
    let seen = world.until_status("pane", "failed");
    assert_eq!(seen["exit_code"], serde_json::Value::Null, "{seen}");
    agent.until_run(&world, 2);
    assert_eq!(world.ralph_state("l")["total_failures"], 1);
    agent.tell("exit 0");
    world.until_status("l", "done");
    assert_eq!(agent.starts(), 2);
    assert!(
        world.iterations_log("l").contains("[FAIL] iteration 1 exit=lost"),
        "{}",
        world.iterations_log("l")
    );
}

#[test]
fn daemon_crash_during_a_backoff_keeps_the_failure_count() {
    let world = World::new();
    let mut agent = world.agent("a");
    start_loop(&world, &agent, "3");
    agent.until_run(&world, 1);
    agent.tell("exit 1");
    // The wait itself is shorter than a busy machine may take to look.
    world.until("the failure is counted", || {
        (world.ralph_state("l")["consecutive_failures"] == 1).then_some(())
    });
    world.crash_daemon();
    world.start_daemon();
    agent.until_run(&world, 2);
    assert_eq!(world.ralph_state("l")["consecutive_failures"], 1, "{}", world.report());
    agent.tell("exit 0");
    agent.until_run(&world, 3);
    agent.tell("exit 0");
    world.until_status("l", "done");
    assert_eq!(agent.starts(), 3);
}

#[test]
fn kill_of_a_stubborn_agent_is_finished_after_a_daemon_crash() {
    let world = World::new();
    let _ = world.spawn_sh("w", &[], "trap '' TERM HUP; echo $$ >pid; while :; do sleep 600; done").ok();
    let pid = world.until("it runs", || world.lines("work/pid").first()?.parse().ok());
    let kill = world.follow(&["kill", "w"]);
    world.until("it is being ended", || {
        (world.status("w")["reason"] == "ending: killed" || !is_alive(pid)).then_some(())
    });
    world.crash_daemon();
    drop(kill);
    world.start_daemon();
    assert_eq!(world.until_status("w", "killed")["reason"], "killed");
    assert!(!is_alive(pid));
    world.until("its pane is closed", || world.panes().is_empty().then_some(()));
}

#[test]
fn repeated_daemon_crashes_neither_lose_nor_repeat_iterations() {
    let world = World::new();
    std::fs::write(world.path("work/p"), "go\n").unwrap();
    let script = "mkdir lock 2>/dev/null || echo overlap >>bad; echo run >>runs; sleep 0.15; rmdir lock";
    let _ = world.spawn_sh("w", &["--ralph", "--prompt-file", "p", "-n", "8", "-d"], script).ok();
    for step in 0..16_u64 {
        // A different moment of an iteration each time.
        let start = Instant::now();
        world.until("the moment has come", || {
            (start.elapsed() >= Duration::from_millis(step * 23)).then_some(())
        });
        world.crash_daemon();
        world.start_daemon();
    }
    world.until_status("w", "done");
    let log = world.iterations_log("w");
    assert_eq!(world.lines("work/runs").len(), 8, "{log}");
    assert!(world.lines("work/bad").is_empty(), "{log}");
    assert_eq!((log.matches("[START]").count(), log.matches("[END]").count()), (8, 8), "{log}");
    assert_eq!(world.ralph_state("w")["total_failures"], 0, "{log}");
    assert!(world.panes().is_empty());
}

#[test]
fn many_concurrent_spawns_and_kills_all_succeed() {
    let world = World::new();
    world.start_daemon();
    let names: Vec<String> = (0..40).map(|i| format!("c{i}")).collect();
    let spawns: Vec<_> =
        names.iter().map(|name| world.follow(&["spawn", "--name", name, "--", "sleep", "600"])).collect();
    for mut spawn in spawns {
        assert_eq!(spawn.wait(&world), 0, "{}", spawn.output());
    }
    assert_eq!(world.swarm(&["ls", "--format", "names", "--status", "live"]).ok().out.lines().count(), 40);
    assert_eq!(world.panes().len(), 40);
    let kills: Vec<_> = names.iter().map(|name| world.follow(&["kill", name])).collect();
    for mut kill in kills {
        assert_eq!(kill.wait(&world), 0, "{}", kill.output());
    }
    assert_eq!(world.swarm(&["ls", "--format", "names", "--status", "live"]).ok().out, "");
    world.until("no pane is left", || world.panes().is_empty().then_some(()));
}

#[test]
fn concurrent_spawns_of_one_name_start_one_worker() {
    let world = World::new();
    world.start_daemon();
    let spawn = || world.follow(&["spawn", "--name", "same", "--", "sleep", "600"]);
    let mut spawns: Vec<_> = (0..8).map(|_| spawn()).collect();
    let codes: Vec<_> = spawns.iter_mut().map(|spawn| spawn.wait(&world)).collect();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert_eq!(spawns.iter().filter(|spawn| spawn.output().contains("already exists")).count(), 7);
    assert_eq!(world.panes().len(), 1);
}

#[test]
fn missing_tmux_makes_workers_unreachable_not_dead() {
    let world = World::new();
    let _ = world.spawn("w", &[], &["sleep", "600"]).ok();
    let _ = world.swarm(&["daemon", "stop"]).ok();
    let mut start = world.command(SWARM);
    start.args(["daemon", "start"]).env("PATH", "/nonexistent").stdin(Stdio::null());
    let _ = world.run(start).ok();
    assert_eq!(world.until_status("w", "unreachable")["pid"], world.status("w")["pid"]);
    assert_eq!(world.panes().len(), 1);
    let _ = world.swarm(&["daemon", "restart"]).ok();
    world.until_status("w", "running");
}
