//! The daemon aborts at every point of a loop's life; the loop must come out as if nothing had happened.
//!
//! Each world: a loop of three runs, a daemon that dies at one point, a second daemon. Then: three runs, never
//! two at once, and state, log and counts that agree.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::world::{World, is_alive, signal};

/// An agent that tells its runs, and whether another one was there; says the word in its third run.
const AGENT: &str = r#"mkdir lock 2>/dev/null || echo overlap >>bad
echo run >>runs
[ "$(wc -l <runs)" -lt 3 ] || echo ALL DONE
sleep 0.1
rmdir lock"#;

/// Runs the drill once: gives the world and how the loop ended in it.
fn drill(point: &str, flags: &[&str], script: &str) -> (World, Value) {
    let mut world = World::new();
    std::fs::write(world.work().join("PROMPT.md"), "go\n").unwrap();
    world.set("SWARM_CRASH_AT", point);
    drop(world.swarm(&["daemon", "start"]));
    world.unset("SWARM_CRASH_AT");
    let first = world.daemon_pid();
    let loop_flags = [&["--ralph", "--prompt-file", "PROMPT.md", "-d"], flags].concat();
    let said = world.spawn_sh("w", &loop_flags, script);
    if said.code != Some(0) && world.status("w").is_null() {
        // The daemon died before the worker was written down; nothing of it may have run.
        assert!(world.lines("work/runs").is_empty(), "{point}: {said:?}");
        let _ = world.spawn_sh("w", &loop_flags, script).ok();
    }
    if let Some(first) = first {
        world.until(&format!("{point}: the first daemon dies"), || (!is_alive(first)).then_some(()));
    }
    let _ = world.swarm(&["daemon", "start"]).ok();
    let end = world.until(&format!("{point}: the loop is over"), || {
        Some(world.status("w")).filter(|v| v["status"] == "stopped" || v["status"] == "failed")
    });
    (world, end)
}

fn check(world: &World, point: &str, end: &Value, reason: &str) {
    let log = world.iterations_log("w");
    let tell = || format!("{point}: {end}\n{log}\n{}", world.report());
    assert_eq!(world.lines("work/runs").len(), 3, "{}", tell());
    assert!(world.lines("work/bad").is_empty(), "two at once, {}", tell());
    assert!(world.panes().is_empty(), "a pane is left, {}", tell());
    let state = world.ralph_state("w");
    assert_eq!((&state["status"], &state["current_iteration"]), (&"stopped".into(), &3.into()), "{}", tell());
    assert_eq!((&state["total_failures"], &end["status"]), (&0.into(), &"stopped".into()), "{}", tell());
    let count = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    for iteration in 1..=3 {
        assert_eq!(count(&format!("[START] iteration {iteration}/")), 1, "{}", tell());
        assert_eq!(count(&format!("[END] iteration {iteration} exit=0")), 1, "{}", tell());
    }
    assert_eq!(state["reason"], reason, "{}", tell());
    assert_eq!(count(&format!("[DONE] loop complete after 3 iterations reason={reason}")), 1, "{}", tell());
}

/// Three iterations and no gate.
fn by_count(points: &[&str]) {
    for point in points {
        let (world, end) = drill(point, &["-n", "3"], AGENT);
        check(&world, point, &end, "max_iterations");
    }
}

/// A done pattern that the third run prints.
fn by_pattern(points: &[&str]) {
    for point in points {
        let (world, end) = drill(point, &["-n", "9", "--done-pattern", "ALL DONE"], AGENT);
        check(&world, point, &end, "done_pattern");
    }
}

#[test]
fn before_a_save_of_the_first_iteration() {
    by_count(&["persist:1", "persist:2", "persist:3", "persist:4"]);
}

#[test]
fn before_a_save_of_the_later_iterations() {
    by_count(&["persist:5", "persist:6", "persist:7", "persist:8"]);
}

#[test]
fn before_the_last_saves() {
    by_pattern(&["persist:8", "persist:9", "persist:10"]);
}

#[test]
fn after_a_save_of_the_first_iteration() {
    by_count(&["persist+:1", "persist+:2", "persist+:3", "persist+:4"]);
}

#[test]
fn after_a_later_save() {
    by_pattern(&["persist+:5", "persist+:7", "persist+:9", "persist+:10"]);
}

#[test]
fn around_a_launch() {
    by_count(&["spawn:1", "spawn:2", "spawn:3", "spawn+:1", "spawn+:3"]);
}

#[test]
fn around_a_judgement() {
    by_count(&["judge:1", "judge:3", "judge+:1"]);
    by_pattern(&["judge:3", "judge+:2", "judge+:3"]);
}

#[test]
fn before_news_are_told() {
    by_count(&["tell:1", "tell:2", "tell:3", "tell:5"]);
    by_pattern(&["tell:9", "tell:10", "tell:11"]);
}

#[test]
fn after_news_were_told() {
    by_count(&["tell+:1", "tell+:2", "tell+:3", "tell+:4"]);
    by_pattern(&["tell+:9", "tell+:10", "tell+:11"]);
}

#[test]
fn around_a_failure() {
    let script = "echo run >>runs; [ $(wc -l <runs) -gt 1 ] || exit 1";
    for point in ["tell:3", "tell+:3", "persist:4", "persist+:4", "persist+:5"] {
        let (world, end) = drill(point, &["-n", "3"], script);
        let log = world.iterations_log("w");
        assert_eq!(world.lines("work/runs").len(), 3, "{point}: {end}\n{log}");
        let count = |text: &str| log.matches(text).count();
        assert_eq!(
            (count("[FAIL] iteration 1 exit=1 attempt=1/5 backoff=1s"), count("[END]")),
            (1, 3),
            "{log}"
        );
        assert_eq!(world.ralph_state("w")["total_failures"], 1, "{point}: {log}");
    }
}

#[test]
fn around_the_end_of_a_silent_agent() {
    let script = "echo run >>runs; trap 'exit 0' TERM; sleep 600 & wait";
    for point in ["probe:1", "tell:3", "persist:3", "terminate:1", "judge:1"] {
        let (world, end) = drill(point, &["-n", "1", "--inactivity-timeout", "1"], script);
        let log = world.iterations_log("w");
        assert_eq!(world.lines("work/runs").len(), 1, "{point}: {end}\n{log}");
        let count = |text: &str| log.matches(text).count();
        assert_eq!(
            (count("[TIMEOUT]"), count("exit=inactivity"), count("[DONE]")),
            (1, 1, 1),
            "{point}: {log}"
        );
        assert!(world.panes().is_empty(), "{point}");
    }
}

#[test]
fn a_launch_under_a_tmux_that_then_hangs_is_not_launched_again() {
    let mut world = World::new();
    std::fs::write(world.work().join("PROMPT.md"), "go\n").unwrap();
    nix::unistd::mkfifo(&world.path("work/hold"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    world.set("SWARM_CRASH_AT", "spawn+:1");
    let first = world.start_daemon();
    world.unset("SWARM_CRASH_AT");
    let flags = ["--ralph", "--prompt-file", "PROMPT.md", "-n", "1", "-d"];
    let _ = world.spawn_sh("w", &flags, "echo $$ >>runs; read x <hold");
    world.until("the first daemon dies", || (!is_alive(first)).then_some(()));
    // The client may have started another daemon by now; it adopts.
    let server = world.tmux_pid();
    signal(server, Signal::SIGSTOP);
    if let Some(pid) = world.daemon_pid() {
        signal(pid, Signal::SIGKILL);
        world.until("the second is gone", || (!is_alive(pid)).then_some(()));
    }
    world.start_daemon();
    world.until_status("w", "unreachable");
    signal(server, Signal::SIGCONT);
    world.until_status("w", "running");
    assert_eq!((world.lines("work/runs").len(), world.panes().len()), (1, 1), "{}", world.report());
    std::fs::write(world.path("work/hold"), "x\n").unwrap();
    world.until_status("w", "stopped");
    assert_eq!(world.lines("work/runs").len(), 1);
}
