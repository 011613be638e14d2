//! `swarm wait`: what it waits for, how it ends, and that it lives through the end of a daemon.

use serde_json::{Value, json};

use crate::world::World;

/// The fake interactive agent.
const TUI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/fake-tui.pl");

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

#[test]
fn wait_ends_when_all_have_finished_and_names_failed_workers() {
    let world = World::new();
    let (mut a, mut b, mut c) = (world.agent("a"), world.agent("b"), world.agent("c"));
    world.spawn_agent("a", &a, &[]);
    world.spawn_agent("b", &b, &[]);
    world.spawn_agent("c", &c, &[]);
    let mut all = world.follow(&["wait", "a", "b", "c"]);
    let mut good = world.follow(&["wait", "a", "c", "a", "--for", "done"]);
    a.tell("exit 0");
    good.until_says(&world, "a: done (exited)");
    all.until_says(&world, "a: done (exited)");
    b.tell("exit 3");
    all.until_says(&world, "swarm: error: worker 'b' failed (exit status 3)");
    assert!(!all.has_ended() && !good.has_ended());
    c.tell("exit 0");
    assert_eq!(all.wait(&world), 1, "{}", all.output());
    assert_eq!(good.wait(&world), 0, "{}", good.output());
    all.says("hint: swarm why b");
    assert!(!good.output().contains("'b'"), "{}", good.output());
    // The result of a stopped worker is available at once, and 0 s is time enough.
    world.swarm(&["wait", "a", "--timeout", "0"]).ok().says("a: done (exited)\n");
    world.swarm(&["wait", "b", "--timeout", &u64::MAX.to_string()]).code(1).warns("'b' failed");
    world.swarm(&["wait", "--all"]).ok();
    let ran = world.swarm(&["wait", "a", "b", "--format", "json"]).code(1);
    let wanted = [
        ("a", "exit", "ok", "done", "exited", Value::Null),
        ("b", "exit", "failed", "failed", "exit status 3", json!("conflict")),
    ];
    for (line, (name, what, result, status, reason, code)) in json_lines(&ran.out).iter().zip(wanted) {
        let words = ["name", "for", "result", "status", "reason"].map(|key| line[key].clone());
        assert_eq!(words, [name, what, result, status, reason].map(|word| json!(word)), "{line}");
        assert_eq!(line["error"]["code"], code, "{line}");
    }
}

#[test]
fn wait_timeout_names_the_remaining_workers() {
    let world = World::new();
    let (mut a, b) = (world.agent("a"), world.agent("b"));
    world.spawn_agent("a", &a, &[]);
    world.spawn_agent("b", &b, &[]);
    a.tell("exit 0");
    world.until_status("a", "done");
    let ran = world.swarm(&["wait", "a", "b", "--timeout", "1"]).code(5).says("a: done (exited)\n");
    let _ = ran.warns("timeout after 1 s: still waiting for b (exit)\n");
    let ran = world.swarm(&["wait", "--all", "--for", "done", "--timeout", "0", "--format", "json"]).code(5);
    assert_eq!(json_lines(&ran.out)[0]["result"], "timeout");
    let _ = ran.warns("still waiting for b (done)\n");
}

#[test]
fn wait_for_an_unknown_name_is_a_usage_error() {
    let world = World::new();
    let agent = world.agent("a");
    world.swarm(&["wait", "--all"]).ok();
    world.spawn_agent("a", &agent, &[]);
    world.swarm(&["wait", "nobody"]).code(2).warns("no worker named 'nobody'");
    world.swarm(&["wait", "a", "nobody"]).code(2).warns("no worker named 'nobody'");
}

#[test]
fn wait_covers_the_complete_loop_including_pauses() {
    let world = World::new();
    let (mut agent, mut other) = (world.agent("lp"), world.agent("x"));
    world.spawn_loop("lp", &agent, &["--done-pattern", "ALL DONE"]);
    world.spawn_agent("x", &other, &[]);
    let mut waits = world.follow(&["wait", "lp", "x", "--for", "done"]);
    world.swarm(&["ralph", "pause", "lp"]).ok();
    agent.tell("exit 0");
    world.until_status("lp", "paused");
    other.tell("exit 0");
    // The wait was notified of the pause before this.
    waits.until_says(&world, "x: done (exited)");
    assert!(!waits.has_ended(), "{}", waits.output());
    world.swarm(&["ralph", "resume", "lp"]).ok();
    agent.until_run(&world, 2);
    agent.tell("print ALL DONE");
    agent.tell("exit 0");
    assert_eq!(waits.wait(&world), 0, "{}", waits.output());
    waits.says("lp: done (done pattern matched)");
}

#[test]
fn wait_fails_for_killed_and_lost_workers() {
    let world = World::new();
    let (a, b) = (world.agent("a"), world.agent("lp"));
    world.spawn_agent("a", &a, &[]);
    world.spawn_loop("lp", &b, &[]);
    let mut waits = world.follow(&["wait", "a", "lp"]);
    world.swarm(&["kill", "a"]).ok();
    waits.until_says(&world, "swarm: error: worker 'a' was killed");
    world.tmux(&["kill-server"]).ok();
    assert_eq!(waits.wait(&world), 1, "{}", waits.output());
    waits.says("swarm: error: worker 'lp' is lost: the tmux server went away");
    waits.says("hint: swarm ralph resume lp");
    world.swarm(&["wait", "lp"]).code(1).warns("is lost");
}

#[test]
fn wait_for_ready_and_idle_follows_the_screen() {
    let world = World::new();
    let rec = format!("REC={}", world.path("work/rec").display());
    let flags = ["--env", "BOOT=0.5", "--env", "WORK=3", "--env", &rec];
    world.spawn("w", &flags, &[TUI]).ok();
    world.swarm(&["wait", "w", "--for", "ready"]).ok().says("w: ready\n");
    world.swarm(&["wait", "w", "--for", "idle"]).ok().says("w: idle\n");
    let status = world.status("w");
    assert!(status["ready"] == true && status["idle"] == true, "{status}");
    // The turn after a prompt is not the one before it.
    world.swarm(&["send", "w", "work"]).ok();
    world.swarm(&["wait", "w", "--for", "idle"]).ok().says("w: idle\n");
    let screen = world.swarm(&["peek", "w"]).ok().out;
    assert!(screen.contains("Done."), "{screen}");
    let mut never = world.follow(&["wait", "w", "--for", "waiting"]);
    world
        .swarm(&["wait", "w", "--for", "waiting", "--timeout", "0"])
        .code(5)
        .warns("still waiting for w (waiting)");
    world.swarm(&["kill", "w"]).ok();
    assert_eq!(never.wait(&world), 1);
    never.says("worker 'w' was killed, so it can no longer become waiting");
}

#[test]
fn wait_for_waiting_ends_at_a_dialog() {
    let world = World::new();
    world.spawn("w", &["--env", "TRUST=1", "--prompt", "hello", "--prompt-via", "paste"], &[TUI]).ok();
    world.swarm(&["wait", "w", "--for", "waiting"]).ok().says("w: waiting\n");
    assert_eq!(world.status("w")["status"], "waiting");
    world.swarm(&["wait", "w", "--for", "ready", "--timeout", "0"]).code(5);
}

#[test]
fn wait_continues_after_the_daemon_was_killed() {
    let world = World::new();
    let (mut a, mut b) = (world.agent("a"), world.agent("b"));
    world.spawn_agent("a", &a, &[]);
    world.spawn_agent("b", &b, &[]);
    let mut waits = world.follow(&["wait", "a", "b"]);
    a.tell("exit 0");
    waits.until_says(&world, "a: done (exited)");
    world.crash_daemon();
    // The agent ends while nobody looks.
    b.tell("exit 4");
    assert_eq!(waits.wait(&world), 1, "{}", waits.output());
    waits.says("worker 'b' failed (exit status 4)");
}

#[test]
fn wait_survives_a_daemon_restart_and_starts_no_stopped_daemon() {
    let world = World::new();
    let (mut a, mut b) = (world.agent("a"), world.agent("b"));
    world.spawn_agent("a", &a, &[]);
    world.spawn_agent("b", &b, &[]);
    let mut waits = world.follow(&["wait", "a", "b"]);
    a.tell("exit 0");
    waits.until_says(&world, "a: done (exited)");
    world.swarm(&["daemon", "restart"]).ok();
    b.tell("exit 0");
    assert_eq!(waits.wait(&world), 0, "{}", waits.output());
    let (mut a, c) = (world.agent("a2"), world.agent("c"));
    world.spawn_agent("a2", &a, &[]);
    world.spawn_agent("c", &c, &[]);
    let mut waits = world.follow(&["wait", "a2", "c"]);
    a.tell("exit 0");
    waits.until_says(&world, "a2: done (exited)");
    world.swarm(&["daemon", "stop"]).ok();
    assert_eq!(waits.wait(&world), 3, "{}", waits.output());
    waits.says("swarm: error: the daemon was stopped\nhint: swarm daemon start\n");
    assert_eq!(world.daemon_pid(), None);
}
