//! Files that somebody removes under a live daemon: it holds what was in them, and writes them anew.

use std::fs;

use serde_json::Value;

use crate::world::{World, is_alive, signal};

fn has_record(world: &World, name: &str) -> bool {
    world.swarm_dir().join(format!("workers/{name}.json")).exists()
}

/// Removes a file or a directory; the daemon may be writing into it.
#[track_caller]
fn remove(world: &World, sub: &str) {
    let path = world.swarm_dir().join(sub);
    let removed = || if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    world.until(&format!("{sub} is removed"), || removed().ok());
}

/// Returns the parts of a worker's record that do not change while it runs.
fn facts(world: &World, name: &str) -> [Value; 3] {
    let text = fs::read_to_string(world.swarm_dir().join(format!("workers/{name}.json"))).unwrap();
    let record: Value = serde_json::from_str(&text).unwrap();
    [record["spec"].clone(), record["started"].clone(), record["pane"].clone()]
}

#[test]
fn deleted_directory_of_records_is_written_again() {
    let world = World::new();
    let agent = world.agent("a");
    world.spawn_loop("l", &agent, &["-n", "9"]);
    let _ = world.spawn("w", &[], &["sleep", "600"]).ok();
    let _ = world.spawn("over", &[], &["true"]).ok();
    world.until_status("over", "done");
    for (gone, also) in [("workers", "ralph"), ("workers", "runs"), ("ralph", "workers/w.json")] {
        let before = facts(&world, "w");
        for sub in [gone, also] {
            remove(&world, sub);
        }
        world.until("all is there again", || {
            let records = ["l", "w", "over"].iter().all(|name| has_record(&world, name));
            (records && world.ralph_state("l")["status"] == "running").then_some(())
        });
        assert_eq!(facts(&world, "w"), before);
    }
    let _ = world.swarm(&["ls"]).ok().warns("were removed while");
    let told = world.swarm(&["doctor"]).out;
    assert!(told.contains("were removed while") && !told.contains("is gone"), "{told}");
    // The whole state is there: after a crash all is as it was.
    let pid = world.status("w")["pid"].clone();
    world.crash_daemon();
    assert_eq!(world.status("w")["pid"], pid);
    assert_eq!(world.status("over")["status"], "done");
    assert_eq!((world.status("l")["metadata"]["ralph_iteration"].as_u64(), agent.starts()), (Some(1), 1));
}

#[test]
fn deleted_records_of_finished_workers_are_written_again() {
    let world = World::new();
    let _ = world.spawn("over", &[], &["true"]).ok();
    world.until_status("over", "done");
    for _ in 0..3 {
        remove(&world, "workers");
        world.until("the record is there again", || has_record(&world, "over").then_some(()));
    }
    fs::rename(world.swarm_dir().join("workers/over.json"), world.path("taken")).unwrap();
    world.until("the record is there again", || has_record(&world, "over").then_some(()));
    // A record that swarm itself removes is not restored.
    let _ = world.swarm(&["clean", "over"]).ok();
    let _ = world.spawn("next", &[], &["true"]).ok();
    world.until_status("next", "done");
    fs::remove_file(world.swarm_dir().join("workers/next.json")).unwrap();
    world.until("the record is there again", || has_record(&world, "next").then_some(()));
    assert!(!has_record(&world, "over"));
}

#[test]
fn doctor_finds_agents_whose_directory_was_deleted() {
    let world = World::new();
    let _ = world.spawn("w", &[], &["sleep", "600"]).ok();
    let (daemon, server) = (world.daemon_pid().unwrap(), world.tmux_pid());
    let agent = u32::try_from(world.status("w")["pid"].as_u64().unwrap()).unwrap();
    fs::remove_dir_all(world.swarm_dir()).unwrap();
    world.until("the daemon leaves", || (!is_alive(daemon)).then_some(()));
    let told = world.swarm(&["doctor"]).code(1).out;
    assert!(told.contains(&format!("it runs (pid {server}), but its socket")), "{told}");
    assert!(told.contains("swarm ls finds its agents again"), "{told}");
    let _ = world.swarm(&["ls"]).ok().says("w ");
    assert_eq!(world.status("w")["pid"], agent);
    let _ = world.swarm(&["kill", "w"]).ok();
    signal(server, nix::sys::signal::Signal::SIGTERM);
}

#[test]
fn doctor_lists_lost_workers_with_the_next_step() {
    let world = World::new();
    let agent = world.agent("a");
    world.spawn_loop("l", &agent, &["-n", "9"]);
    let _ = world.spawn("w", &[], &["sleep", "600"]).ok();
    let _ = world.tmux(&["kill-server"]).ok();
    world.until_status("w", "lost");
    world.until_status("l", "lost");
    for stopped in [false, true] {
        if stopped {
            let _ = world.swarm(&["daemon", "stop"]).ok();
        }
        let told = world.swarm(&["doctor"]).out;
        for cure in [
            "swarm ralph resume l continues its loop",
            "swarm respawn w starts it again; swarm clean w deletes it",
        ] {
            assert!(told.contains(cure), "no {cure:?} in {told}");
        }
        assert_eq!(told.matches("its tmux server went away").count(), 2, "{told}");
    }
}
