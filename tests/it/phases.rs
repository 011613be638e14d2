//! The daemon is killed with -9 in each phase of an iteration, at a random moment of it; the loop goes on as if
//! nothing had happened. And the tmux server is, with five loops in it.
//!
//! `SWARM_ROUNDS` says how often each phase is met (2 when it is not set).

use std::fs;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::world::{World, signal};

/// How many worlds of one phase live at once.
const WORLDS: usize = 5;

/// A phase as the worker's record names it, a loop that comes into it, and how long it lasts there, milliseconds.
struct Phase {
    name: &'static str,
    /// Flags beside those of every loop here.
    flags: &'static [&'static str],
    /// The agent.
    script: &'static str,
    lasts: u64,
    /// The loop's [FAIL] lines.
    failures: usize,
}

const TUI: &str =
    concat!("export REC=rec EXIT=0 WORK=1; perl ", env!("CARGO_MANIFEST_DIR"), "/scripts/fake-tui.pl");

const SLOW_TUI: &str =
    concat!("export REC=rec EXIT=0 BOOT=1; perl ", env!("CARGO_MANIFEST_DIR"), "/scripts/fake-tui.pl");

const PASTE: &[&str] = &["--prompt-via", "paste"];

/// How often each phase is met.
fn rounds() -> usize {
    std::env::var("SWARM_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2)
}

/// A number below `limit` that differs from round to round.
fn some(limit: u64) -> u64 {
    let nanos =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.subsec_nanos());
    u64::from(nanos) / 1000 % limit.max(1)
}

/// Kills the daemon some time after the worker came into the phase. False when it was over before anybody saw
/// it there: some phases last a millisecond, and a busy machine looks away for longer.
fn kill_in(world: &World, phase: &Phase) -> bool {
    let word = format!("\"{}\"", phase.name);
    let record = world.swarm_dir().join("workers/w.json");
    let pid = world.daemon_pid().unwrap();
    let start = std::time::Instant::now();
    // No longer look than this: some phases last only milliseconds.
    loop {
        let text = fs::read_to_string(&record).unwrap_or_default();
        if text.contains(&word) {
            break;
        }
        if text.contains(r#""stopped":"#) {
            return false;
        }
        assert!(start.elapsed() < crate::world::PATIENCE, "never {}: {}", phase.name, world.report());
        std::thread::park_timeout(Duration::from_micros(300));
    }
    std::thread::park_timeout(Duration::from_millis(some(phase.lasts)));
    signal(pid, Signal::SIGKILL);
    world.until("the daemon is gone", || (!crate::world::is_alive(pid)).then_some(()));
    true
}

/// One round; false when the phase was missed.
fn round(phase: &Phase) -> bool {
    let world = World::new();
    world.write("PROMPT.md", "go\n");
    world.start_daemon();
    let flags = [&["--ralph", "--prompt-file", "PROMPT.md", "-n", "2", "-d"], phase.flags].concat();
    let script = format!(
        "mkdir lock || echo overlap >>bad; trap 'rmdir lock' EXIT; echo run >>runs; {}",
        phase.script
    );
    let words: Vec<String> = ["spawn", "--name", "w"]
        .iter()
        .chain(&flags)
        .chain(&["--", "sh", "-c", &script])
        .map(|word| (*word).to_owned())
        .collect();
    // Beside it: the first phases are over before the spawn is.
    let mut spawn = world.follow(&words);
    let met = kill_in(&world, phase);
    spawn.wait(&world);
    if !met {
        return false;
    }
    let _ = world.swarm(&["daemon", "start"]).ok();
    let end = world.until_ended("w");
    let (log, state) = (world.iterations_log("w"), world.ralph_state("w"));
    let tell = || format!("{}: {end}\n{state}\n{log}\n{}", phase.name, world.report());
    let count = |text: &str| log.matches(text).count();
    assert_eq!(world.lines("work/runs").len(), 2, "{}", tell());
    assert!(world.lines("work/bad").is_empty(), "two at once, {}", tell());
    assert_eq!((count("[START]"), count("[END]"), count("[FAIL]")), (2, 2, phase.failures), "{}", tell());
    assert_eq!(count("[DONE] loop complete after 2 iterations"), 1, "{}", tell());
    assert_eq!(state["current_iteration"], 2, "{}", tell());
    assert_eq!(state["total_failures"], phase.failures, "{}", tell());
    assert!(world.panes().is_empty(), "{}", tell());
    if phase.flags == PASTE {
        assert_eq!(world.lines("work/rec").len(), 2, "prompts, {}", tell());
    }
    true
}

fn rounds_of(phase: &Phase) {
    let next = AtomicUsize::new(0);
    let all = rounds();
    std::thread::scope(|scope| {
        for _ in 0..WORLDS.min(all) {
            scope.spawn(|| {
                while next.fetch_add(1, Ordering::Relaxed) < all {
                    // Ten misses in a row are no bad luck.
                    assert!((0..10).any(|_| round(phase)), "never {}", phase.name);
                }
            });
        }
    });
}

const PLAIN: Phase = Phase { name: "spawning", flags: &[], script: "sleep 0.3", lasts: 60, failures: 0 };

#[test]
fn daemon_crash_while_the_run_is_started_repeats_nothing() {
    rounds_of(&PLAIN);
}

#[test]
fn daemon_crash_while_the_agent_starts_repeats_nothing() {
    rounds_of(&Phase { name: "starting", flags: PASTE, script: SLOW_TUI, lasts: 1200, ..PLAIN });
}

#[test]
fn daemon_crash_while_the_prompt_is_delivered_repeats_nothing() {
    rounds_of(&Phase { name: "prompting", flags: PASTE, script: TUI, lasts: 900, ..PLAIN });
}

#[test]
fn daemon_crash_while_the_agent_works_repeats_nothing() {
    rounds_of(&Phase { name: "running", script: "sleep 0.5", lasts: 500, ..PLAIN });
}

#[test]
fn daemon_crash_while_a_silent_agent_is_ended_repeats_nothing() {
    let script = "echo an answer; trap 'sleep 0.5; exit 0' TERM; sleep 600 & wait";
    rounds_of(&Phase { name: "ending", flags: &["--inactivity-timeout", "1"], script, lasts: 500, ..PLAIN });
}

#[test]
fn daemon_crash_while_the_gates_run_repeats_nothing() {
    rounds_of(&Phase { name: "judging", lasts: 40, ..PLAIN });
}

#[test]
fn daemon_crash_during_a_backoff_repeats_nothing() {
    let script = "[ $(wc -l <runs) -gt 1 ]";
    rounds_of(&Phase { name: "backing_off", script, lasts: 1000, failures: 1, ..PLAIN });
}

#[test]
fn daemon_crash_while_the_loop_is_paused_repeats_nothing() {
    let next = AtomicUsize::new(0);
    while next.fetch_add(1, Ordering::Relaxed) < rounds() {
        let world = World::new();
        let mut agent = world.agent("a");
        world.spawn_loop("w", &agent, &["-n", "2"]);
        let _ = world.swarm(&["ralph", "pause", "w"]).ok();
        agent.tell("exit 0");
        world.until_logged("w", "[END] iteration 1");
        std::thread::park_timeout(Duration::from_millis(some(50)));
        world.crash_daemon();
        world.start_daemon();
        assert_eq!(world.ralph_state("w")["status"], "paused");
        assert_eq!((agent.starts(), world.panes().len()), (1, 0), "{}", world.report());
        let _ = world.swarm(&["ralph", "resume", "w"]).ok();
        agent.until_run(&world, 2);
        agent.tell("exit 0");
        world.until_status("w", "done");
        let log = world.iterations_log("w");
        let count = |text: &str| log.matches(text).count();
        assert_eq!(
            (count("[START]"), count("[END]"), count("[PAUSE]"), count("[RESUME]")),
            (2, 2, 1, 1),
            "{log}"
        );
    }
}

#[test]
fn death_of_the_tmux_server_makes_its_five_loops_lost() {
    let world = World::new();
    let mut agents: Vec<_> = (1..=5).map(|n| (format!("w{n}"), world.agent(&n.to_string()))).collect();
    for (name, agent) in &mut agents {
        world.spawn_loop(name, agent, &["-n", "2"]);
    }
    let pids: Vec<_> = agents.iter().filter_map(|(_, agent)| agent.pid(1)).collect();
    let server = world.tmux_pid();
    signal(server, Signal::SIGKILL);
    for (name, _) in &agents {
        world.until_status(name, "lost");
        let state = world.ralph_state(name);
        assert_eq!(
            (&state["status"], &state["current_iteration"]),
            (&"running".into(), &1.into()),
            "{state}"
        );
    }
    world.until("no agent is left", || pids.iter().all(|pid| !crate::world::is_alive(*pid)).then_some(()));
    for (name, agent) in &mut agents {
        let _ = world.swarm(&["ralph", "resume", name]).ok();
        agent.until_run(&world, 2);
        assert_eq!(world.ralph_state(name)["current_iteration"], 1, "the same iteration again");
        agent.tell("exit 0");
        agent.until_run(&world, 3);
        agent.tell("exit 0");
        world.until_status(name, "done");
        let (log, state) = (world.iterations_log(name), world.ralph_state(name));
        assert_eq!((log.matches("[END]").count(), agent.starts()), (2, 3), "{log}");
        assert_eq!((&state["current_iteration"], &state["total_failures"]), (&2.into(), &0.into()), "{log}");
    }
    assert_eq!(world.panes(), [""; 0]);
}

#[test]
fn daemon_stop_removes_the_socket_of_a_dead_tmux_server() {
    let world = World::new();
    let _ = world.spawn("w", &[], &["sleep", "600"]).ok();
    signal(world.tmux_pid(), Signal::SIGKILL);
    world.until_status("w", "lost");
    let _ = world.swarm(&["daemon", "stop"]).ok();
    world.until("its socket is gone", || (!world.tmux_socket().exists()).then_some(()));
}

#[test]
fn tmux_server_without_a_session_is_used() {
    let world = World::new();
    let _ = world.spawn("w", &[], &["sleep", "600"]).ok();
    signal(world.tmux_pid(), Signal::SIGKILL);
    world.until_status("w", "lost");
    let (socket, config) = (world.tmux_socket(), world.swarm_dir().join("tmux.conf"));
    let args = ["-S", socket.to_str().unwrap(), "-f", config.to_str().unwrap(), "start-server"];
    assert!(std::process::Command::new("tmux").args(args).status().unwrap().success());
    let _ = world.spawn("v", &[], &["sleep", "600"]).ok();
    world.until_status("v", "running");
    assert_eq!(world.panes().len(), 1);
    world.crash_daemon();
    assert_eq!(world.status("v")["status"], "running");
}

/// A control client whose daemon died with a reply unread: tmux keeps it, and waits for it when it is to end.
#[test]
fn control_client_of_a_dead_daemon_does_not_keep_the_tmux_server() {
    let world = World::new();
    let _ = world.spawn("w", &[], &["sleep", "600"]).ok();
    let server = world.tmux_pid();
    let mut client = std::process::Command::new("tmux")
        .args(["-S", world.tmux_socket().to_str().unwrap(), "-C", "attach-session", "-t", "=swarm-ctl:"])
        .args(["-f", "no-output,ignore-size"])
        .env("TERM", "dumb")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Far more than the pipe holds.
    let mut input = client.stdin.take().unwrap();
    input.write_all("list-commands\n".repeat(400).as_bytes()).unwrap();
    let clients = || world.tmux(&["list-clients", "-F", "#{client_pid}"]).out.lines().count();
    world.until("both are attached", || (clients() == 2).then_some(()));
    drop((input, client.stdout.take()));
    let _ = world.swarm(&["kill", "w"]).ok();
    let _ = world.swarm(&["daemon", "stop"]).ok();
    world.until("the server is gone", || (!crate::world::is_alive(server)).then_some(()));
    client.wait().unwrap();
    world.until("its socket is gone", || (!world.tmux_socket().exists()).then_some(()));
}

#[test]
fn empty_tmux_server_without_its_socket_is_found_by_the_next_daemon() {
    let world = World::new();
    let _ = world.spawn("w", &[], &["sleep", "600"]).ok();
    let server = world.tmux_pid();
    let _ = world.swarm(&["kill", "w"]).ok();
    world.crash_daemon();
    fs::remove_file(world.tmux_socket()).unwrap();
    let _ = world.spawn("v", &[], &["sleep", "600"]).ok();
    assert_eq!(world.tmux_pid(), server, "one server, not two");
    let _ = world.swarm(&["kill", "v"]).ok();
    let _ = world.swarm(&["daemon", "stop"]).ok();
    world.until("the server is gone", || (!crate::world::is_alive(server)).then_some(()));
    world.until("its socket is gone", || (!world.tmux_socket().exists()).then_some(()));
}

#[test]
fn daemon_recreates_its_removed_socket() {
    let world = World::new();
    let _ = world.spawn("w", &[], &["sleep", "600"]).ok();
    let daemon = world.daemon_pid();
    fs::remove_file(world.swarm_dir().join("swarm.sock")).unwrap();
    let _ = world.swarm(&["ls"]).ok().says("w");
    assert_eq!(world.daemon_pid(), daemon, "the same daemon");
}

#[test]
fn kill_during_a_daemon_crash_is_done_by_the_next() {
    let mut world = World::new();
    world.set("SWARM_CRASH_AT", "terminate:1");
    let first = world.start_daemon();
    world.unset("SWARM_CRASH_AT");
    let _ = world.spawn("w", &[], &["sleep", "600"]).ok();
    let _ = world.swarm(&["kill", "w"]).ok().says("killed w");
    assert!(!crate::world::is_alive(first), "the first daemon lives");
    assert_eq!(world.status("w")["status"], "killed");
    assert!(world.panes().is_empty());
}
