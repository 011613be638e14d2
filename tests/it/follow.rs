//! The follower: what `swarm spawn --ralph` prints, how it ends, and what its signals do.

use nix::sys::signal::Signal;
use serde_json::json;

use crate::world::{SWARM, World, is_alive, signal};

const HINT: &str = "hint: to go on: swarm ralph resume agent\n";

#[test]
fn ctrl_c_pauses_waits_for_the_agent_and_exits_1_with_a_hint() {
    interrupted_by(Signal::SIGINT);
}

#[test]
fn sigterm_pauses_waits_for_the_agent_and_exits_1_with_a_hint() {
    interrupted_by(Signal::SIGTERM);
}

fn interrupted_by(which: Signal) {
    let w = World::new();
    let mut agent = w.agent("a");
    let mut follower = w.follow_loop("agent", &agent, &[]);
    follower.signal(which);
    follower.until_says(&w, "pausing agent");
    w.until("the loop is paused", || (w.ralph_state("agent")["status"] == "paused").then_some(()));
    assert!(is_alive(agent.pid(1).unwrap()));
    assert!(!follower.has_ended());
    agent.tell("exit 0");
    assert_eq!(follower.wait(&w), 1);
    follower.says(HINT);
    follower.says("[ralph] agent: iteration 1 completed (exit: 0, duration: ");
    assert_eq!(agent.starts(), 1);
    w.swarm(&["ralph", "resume", "agent"]).ok();
    agent.until_run(&w, 2);
}

#[test]
fn a_second_ctrl_c_detaches_with_130_and_leaves_the_agent_alone() {
    let w = World::new();
    let agent = w.agent("a");
    let mut follower = w.follow_loop("agent", &agent, &[]);
    follower.signal(Signal::SIGINT);
    follower.until_says(&w, "pausing agent");
    follower.signal(Signal::SIGINT);
    assert_eq!(follower.wait(&w), 130);
    follower.says("swarm ralph resume agent\n");
    assert!(is_alive(agent.pid(1).unwrap()));
    assert_eq!(w.ralph_state("agent")["status"], "paused");
}

#[test]
fn ctrl_c_during_a_backoff_ends_the_follower_at_once() {
    let w = World::new();
    let mut agent = w.agent("a");
    let mut follower = w.follow_loop("agent", &agent, &[]);
    for run in 1..=3 {
        agent.until_run(&w, run);
        agent.tell("exit 1");
    }
    follower.until_says(&w, "retrying in 4s (attempt 3/5)\n");
    follower.signal(Signal::SIGINT);
    assert_eq!(follower.wait(&w), 1);
    follower.says(HINT);
    assert_eq!(w.ralph_state("agent")["status"], "paused");
    assert_eq!(agent.starts(), 3);
}

#[test]
fn sighup_detaches_the_follower() {
    let w = World::new();
    let mut agent = w.agent("a");
    let mut follower = w.follow_loop("agent", &agent, &[]);
    follower.signal(Signal::SIGHUP);
    assert_eq!(follower.wait(&w), 129);
    assert_eq!(w.ralph_state("agent")["status"], "running");
    agent.tell("exit 0");
    agent.until_run(&w, 2);
}

#[test]
fn a_loop_paused_by_another_client_keeps_its_follower() {
    let w = World::new();
    let mut agent = w.agent("a");
    let mut follower = w.follow_loop("agent", &agent, &["-n", "2"]);
    w.swarm(&["ralph", "pause", "agent"]).ok();
    follower.until_says(&w, "[ralph] agent: paused\n");
    agent.tell("exit 0");
    follower.until_says(&w, "[ralph] agent: iteration 1 completed (exit: 0");
    w.until_status("agent", "paused");
    assert!(!follower.has_ended());
    w.swarm(&["ralph", "resume", "agent"]).ok();
    agent.until_run(&w, 2);
    agent.tell("exit 0");
    assert_eq!(follower.wait(&w), 0);
    follower.says("[ralph] agent: loop complete after 2 iterations\n");
}

#[test]
fn killed_daemon_is_started_again_and_the_follower_continues() {
    let w = World::new();
    let mut agent = w.agent("a");
    let mut follower = w.follow_loop("agent", &agent, &["-n", "3"]);
    let before = w.daemon_pid();
    w.crash_daemon();
    w.until("another daemon is there", || w.daemon_pid().filter(|pid| Some(*pid) != before));
    agent.tell("exit 0");
    follower.until_says(&w, "[ralph] agent: starting iteration 2/3\n");
    agent.until_run(&w, 2);
    agent.tell("exit 0");
    agent.until_run(&w, 3);
    agent.tell("exit 0");
    assert_eq!(follower.wait(&w), 0);
    assert_eq!(agent.starts(), 3);
    let said = follower.output();
    for n in [2, 3] {
        assert_eq!(said.matches(&format!("starting iteration {n}/3")).count(), 1, "{said}");
    }
}

#[test]
fn daemon_stop_pauses_and_ends_the_follower_with_a_hint() {
    let w = World::new();
    let mut agent = w.agent("a");
    let mut follower = w.follow_loop("agent", &agent, &[]);
    let pid = w.daemon_pid().unwrap();
    w.swarm(&["daemon", "stop"]).ok().says("daemon stopped\n").says("  swarm ralph resume agent\n");
    assert_eq!(follower.wait(&w), 1);
    follower.says("swarm ralph resume agent\n");
    assert!(!is_alive(pid));
    assert_eq!(w.daemon_pid(), None, "the follower started no daemon");
    assert_eq!(w.ralph_state("agent")["status"], "paused");
    assert!(is_alive(agent.pid(1).unwrap()));
    w.swarm(&["daemon", "start"])
        .ok()
        .says("1 loop is paused by the shutdown")
        .says("  swarm ralph resume agent\n");
    w.swarm(&["ralph", "resume", "agent"]).ok();
    agent.tell("exit 0");
    agent.until_run(&w, 2);
    assert_eq!(agent.starts(), 2);
}

#[test]
fn sigterm_to_the_daemon_pauses_the_loops() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("agent", &agent, &[]);
    let pid = w.daemon_pid().unwrap();
    signal(pid, Signal::SIGTERM);
    w.until("the daemon is gone", || (!is_alive(pid)).then_some(()));
    let state = w.ralph_state("agent");
    assert_eq!((&state["status"], &state["paused_by"]), (&json!("paused"), &json!("shutdown")));
    agent.tell("exit 0");
    w.swarm(&["daemon", "start"]).ok().says("  swarm ralph resume agent\n");
    w.until_status("agent", "paused");
    assert_eq!(agent.starts(), 1);
    w.swarm(&["ralph", "resume", "agent"]).ok();
    agent.until_run(&w, 2);
}

#[test]
fn daemon_restart_pauses_no_followed_loop() {
    let w = World::new();
    let mut agent = w.agent("a");
    let mut follower = w.follow_loop("agent", &agent, &["-n", "2"]);
    let before = w.daemon_pid();
    w.swarm(&["daemon", "restart"]).ok().says("daemon started (pid ");
    assert_ne!(w.daemon_pid(), before);
    assert_eq!(w.ralph_state("agent")["status"], "running");
    agent.tell("exit 0");
    agent.until_run(&w, 2);
    agent.tell("exit 0");
    assert_eq!(follower.wait(&w), 0);
    assert_eq!(follower.output().matches("paused").count(), 0);
}

#[test]
fn detach_returns_at_once_and_prints_the_spawn_line_only() {
    let w = World::new();
    let agent = w.agent("a");
    let ran = w.swarm(&w.loop_args("agent", &agent, &["-d"])).ok();
    assert_eq!(ran.out, "spawned agent (tmux: swarm:agent) [ralph mode: iteration 1/10]\n");
    w.swarm(&["kill", "agent"]).ok();
    assert_eq!(w.swarm(&w.loop_args("other", &w.agent("b"), &["--detach"])).ok().err, "");
}

#[test]
fn stream_prints_the_output_of_the_agent() {
    let w = World::new();
    let mut agent = w.agent("a");
    let mut follower = w.follow_loop("agent", &agent, &["-n", "2", "--stream"]);
    agent.tell("print first words");
    follower.until_says(&w, "first words\n");
    agent.tell("exit 0");
    agent.until_run(&w, 2);
    agent.tell("print second words");
    follower.until_says(&w, "second words\n");
    agent.tell("exit 0");
    assert_eq!(follower.wait(&w), 0);
    let said = follower.output();
    assert!(!said.contains("==="), "{said}");
    for words in ["first words\n", "second words\n"] {
        assert_eq!(said.matches(words).count(), 1, "{said}");
    }
}

#[test]
fn notify_example_distinguishes_success_from_failure() {
    let w = World::new();
    for (name, end, word) in [("good", "exit 0", "Ralph complete"), ("bad", "", "Ralph failed")] {
        let mut agent = w.agent(name);
        let words = w.loop_args(name, &agent, &["-n", "1"]);
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let mut shell = w.command("sh");
        let line = format!("{SWARM} {} && echo 'Ralph complete' || echo 'Ralph failed'", quoted.join(" "));
        shell.arg("-c").arg(line);
        let follower = w.start(shell);
        agent.until_run(&w, 1);
        if end.is_empty() {
            w.swarm(&["kill", name]).ok();
        } else {
            agent.tell(end);
        }
        follower.until_says(&w, &format!("{word}\n"));
    }
}

#[test]
fn follower_prints_to_stdout_and_json_is_alone_there() {
    let w = World::new();
    let mut agent = w.agent("a");
    agent.tell("exit 0");
    let ran = w.swarm(&w.loop_args("one", &agent, &["-n", "1"])).ok();
    assert_eq!(ran.err, "");
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines[0], "spawned one (tmux: swarm:one) [ralph mode: iteration 1/1]");
    assert!(lines.iter().skip(1).all(|line| line.starts_with("[ralph] one: ")), "{lines:?}");
    assert_eq!(lines.last(), Some(&"[ralph] one: loop complete after 1 iteration"));
    agent.tell("exit 0");
    let ran = w.swarm(&w.loop_args("two", &agent, &["-n", "1", "--format", "json"])).ok();
    assert_eq!(ran.json()["name"], "two");
}

#[test]
fn a_replaced_loop_ends_its_first_follower() {
    let w = World::new();
    let (one, two) = (w.agent("a"), w.agent("b"));
    let mut follower = w.follow_loop("agent", &one, &[]);
    w.spawn_loop("agent", &two, &["--replace"]);
    assert_eq!(follower.wait(&w), 1);
    assert!(!is_alive(one.pid(1).unwrap()));
    assert!(is_alive(two.pid(1).unwrap()));
}

#[test]
fn loop_prints_the_next_step_after_its_result() {
    let w = World::new();
    let mut command = w.command("sh");
    let flags = "--name a --no-promise --check false --no-progress 1 -- true";
    command.args(["-c", &format!("exec '{SWARM}' loop x {flags} 2>&1")]).current_dir(w.repo("repo"));
    let said = w.run(command).code(1).out;
    let end = "s)\n  FAIL  false\nhint: to go on: look at the iterations (swarm report a), and ";
    assert!(said.contains("\na: paused (1 iteration, ") && said.contains(end), "{said}");
    assert!(said.ends_with("; then swarm ralph resume a\n"), "{said}");
}
