//! Logs are bounded by the sizes that `swarm-state(5)` gives, and a follower survives a rotation.

use std::fs::{self, File, OpenOptions};
use std::path::Path;

use swarm::store::{MAX_DAEMON_LOG_BYTES, MAX_RECORD_BYTES, MAX_WORKER_LOG_BYTES};

use crate::world::World;

/// Makes a file look this full, without filling the disk.
fn fill(path: &Path, size: u64) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.set_len(size).unwrap();
}

fn size(path: &Path) -> u64 {
    File::open(path).map_or(0, |file| file.metadata().unwrap().len())
}

#[test]
fn a_full_daemon_log_is_rotated_while_the_daemon_runs() {
    let w = World::new();
    w.start_daemon();
    let (log, old) = (w.swarm_dir().join("daemon.log"), w.swarm_dir().join("daemon.log.1"));
    fill(&log, MAX_DAEMON_LOG_BYTES);
    w.swarm(&["daemon", "stop"]).ok();
    assert_eq!(size(&old), MAX_DAEMON_LOG_BYTES);
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.contains("ended") && text.len() < 10_000, "{text}");
    // Full before the start as well; the one before is replaced.
    fill(&log, MAX_DAEMON_LOG_BYTES + 7);
    w.start_daemon();
    assert_eq!(size(&old), MAX_DAEMON_LOG_BYTES + 7);
    assert!(fs::read_to_string(&log).unwrap().contains("serving"));
}

#[test]
fn recording_is_rotated_without_blocking_the_pane() {
    let w = World::new();
    let mut agent = w.agent("a");
    let (raw, old) = (w.swarm_dir().join("logs/one.raw"), w.swarm_dir().join("logs/one.raw.1"));
    fill(&raw, MAX_RECORD_BYTES - 10);
    w.spawn_agent("one", &agent, &["--record"]);
    agent.tell("print a line that does not fit any more");
    w.until("it is rotated", || old.exists().then_some(()));
    w.until("it is recorded", || {
        fs::read_to_string(&raw).unwrap_or_default().contains("does not fit any more").then_some(())
    });
    assert!(size(&old) <= MAX_RECORD_BYTES && size(&raw) < 10_000);
    // Nothing can be written any more: the agent does not notice.
    for path in [&raw, &old] {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
        fs::write(path.join("in the way"), "").unwrap();
    }
    agent.tell("run seq 1 20000");
    agent.tell("print still here");
    agent.tell("exit 0");
    w.until_status("one", "done");
    w.swarm(&["logs", "one"]).ok().says("still here");
}

#[test]
fn a_worker_log_is_bounded_and_a_follower_survives_its_rotation() {
    let w = World::new();
    let log = w.swarm_dir().join("logs/agent.log");
    let mut agent = w.agent("a");
    w.spawn_loop("agent", &agent, &[]);
    let mut line = "x".repeat(99);
    line.push('\n');
    fs::write(&log, line.repeat(usize::try_from(MAX_WORKER_LOG_BYTES).unwrap() / 100)).unwrap();
    let follower = w.follow(&["logs", "--follow", "agent"]);
    for run in 1..=3 {
        agent.until_run(&w, run);
        agent.tell(&format!("print these are the words of run {run}"));
        follower.until_says(&w, &format!("these are the words of run {run}"));
        agent.tell("exit 0");
    }
    agent.until_run(&w, 4);
    assert!(log.with_extension("log.1").exists(), "it was rotated");
    assert!(size(&log) <= MAX_WORKER_LOG_BYTES && size(&log.with_extension("log.1")) <= MAX_WORKER_LOG_BYTES);
    for run in 1..=3 {
        let said = follower.output();
        assert_eq!(said.matches(&format!("these are the words of run {run}\n")).count(), 1, "run {run}");
    }
}
