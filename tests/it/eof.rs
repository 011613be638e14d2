//! `swarm eof`: the end of input for an agent that reads its terminal.

use std::fs;

use crate::world::World;

/// A worker that reads lines from its terminal until there are no more, and says so.
#[track_caller]
fn reader(world: &World, name: &str) {
    world.spawn_sh(name, &[], &format!("echo >{name}.up; cat >{name}.got; echo >{name}.end; sleep 600")).ok();
    world.until("it reads", || world.work().join(format!("{name}.got")).exists().then_some(()));
}

fn got(world: &World, name: &str) -> String {
    fs::read_to_string(world.work().join(format!("{name}.got"))).unwrap_or_default()
}

#[track_caller]
fn until_over(world: &World, name: &str) {
    world.until("its input is over", || world.work().join(format!("{name}.end")).exists().then_some(()));
}

#[test]
fn eof_arrives_after_the_text_sent_before() {
    let world = World::new();
    reader(&world, "w");
    world.swarm(&["send", "w", "one line"]).ok();
    let ran = world.swarm(&["eof", "w"]).ok();
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", ""));
    until_over(&world, "w");
    assert_eq!(got(&world, "w"), "one line\n");
    assert_eq!(world.status("w")["status"], "running");
}

#[test]
fn eof_leaves_copy_mode_and_is_needed_twice_after_a_partial_line() {
    let world = World::new();
    reader(&world, "w");
    let pane = world.status("w")["tmux"]["pane"].as_str().unwrap().to_owned();
    world.tmux(&["copy-mode", "-t", &pane]).ok();
    world.swarm(&["send", "--no-enter", "w", "open"]).ok();
    world.tmux(&["copy-mode", "-t", &pane]).ok();
    world.swarm(&["eof", "w"]).ok();
    world.until("the open line is handed over", || (got(&world, "w") == "open").then_some(()));
    assert!(!world.work().join("w.end").exists());
    world.swarm(&["eof", "w"]).ok();
    until_over(&world, "w");
    assert_eq!(got(&world, "w"), "open");
}

#[test]
fn eof_to_a_finished_or_unknown_worker_is_an_error() {
    let world = World::new();
    let mut agent = world.agent("a");
    world.spawn_agent("a", &agent, &[]);
    agent.tell("exit 0");
    world.until_status("a", "done");
    world.swarm(&["eof", "a"]).code(1).warns("swarm: error: worker 'a' is not running (done)\n");
    world.swarm(&["eof", "nobody"]).code(2).warns("no worker named 'nobody'");
}
