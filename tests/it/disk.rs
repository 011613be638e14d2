//! A full disk: commands say so, what was there stays, agents go on, and room is all it takes to recover.

use std::fs::{self, File};
use std::io::Write;

use tempfile::TempDir;

use crate::world::World;

/// A file system of its own for a daemon's directory; gone when this is dropped.
struct SmallDisk(TempDir);

/// A world on such a disk; None where mounting is not permitted. The world comes last, so that it ends first.
fn small_world() -> Option<(SmallDisk, World)> {
    let dir = tempfile::Builder::new().prefix("swarm-it-disk-").tempdir_in("/tmp").unwrap();
    let world = World::new().with_swarm_dir(dir.path());
    let mut mount = world.command("mount");
    mount.args(["-t", "tmpfs", "-o", "size=4m,mode=700", "none"]).arg(dir.path());
    (world.run(mount).code == Some(0)).then_some((SmallDisk(dir), world))
}

impl SmallDisk {
    /// Takes all the room that is left.
    fn fill(&self) {
        let mut file = File::create(self.0.path().join("filler")).unwrap();
        for size in [1 << 16, 1 << 12, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    /// Gives it back.
    fn free(&self) {
        fs::remove_file(self.0.path().join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(std::process::Command::new("umount").arg("-l").arg(self.0.path()).status());
    }
}

#[test]
fn full_disk_is_reported_and_the_loop_continues_afterwards() {
    let Some((disk, world)) = small_world() else {
        eprintln!("skipped: mounting a small file system is not permitted here");
        return;
    };
    let mut agent = world.agent("a");
    fs::write(world.path("work/p"), "go\n").unwrap();
    let cmd = agent.command();
    let cmd: Vec<&str> = cmd.iter().map(String::as_str).collect();
    let _ = world.spawn("l", &["--ralph", "--prompt-file", "p", "-n", "2", "-d"], &cmd).ok();
    agent.until_run(&world, 1);
    let record = || fs::read_to_string(world.swarm_dir().join("workers/l.json")).unwrap();
    let before = record();
    disk.fill();

    let _ = world.spawn("x", &[], &["sleep", "600"]).code(1).warns("No space left");
    assert_eq!(world.status("x"), serde_json::Value::Null);
    let loop_ = || world.swarm(&["ralph", "status", "l", "--format", "json"]).json();
    let set = |change: &str| world.swarm(&["ralph", "set", "l", change]);
    for change in ["max_iterations=3", "inactivity_timeout=9", "done_pattern=x"] {
        let _ = set(change).code(1).warns("nothing was changed: ").warns("No space left");
    }
    let now = loop_();
    assert_eq!((&now["max_iterations"], &now["inactivity_timeout"]), (&2.into(), &60.into()), "{now}");
    assert!(now["done_pattern"].is_null(), "{now}");
    let _ = world.swarm(&["ls"]).ok().warns("worker 'l': its state cannot be saved: ");
    assert_eq!(record(), before, "the file that was there stays");
    assert_eq!(world.status("l")["pid"], agent.pid(1).unwrap());
    // The agent's output and exit must survive the lack of space.
    agent.tell("print the last words");
    agent.tell("exit 0");
    world.until_status("l", "waiting");
    let _ = world.swarm(&["status", "l"]).ok().says("reason     waits for the disk: its ").warns("make room");
    let _ = world.swarm(&["ralph", "status", "l"]).ok().warns("waits for the disk: ");
    let _ = world.swarm(&["ls"]).ok().says("waiting").warns("worker 'l': waits for the disk: ");
    let _ = world
        .swarm(&["why", "l"])
        .ok()
        .says("l: waiting (iteration 1/2): waits for the disk: ")
        .says("make room");
    assert_eq!(agent.starts(), 1, "nothing starts that could not be written down");

    disk.free();
    agent.until_run(&world, 2);
    let _ = world.swarm(&["logs", "l", "--history"]).ok().says("the last words");
    let _ = world.spawn("x", &[], &["sleep", "600"]).ok();
    let _ = set("max_iterations=3").ok();
    agent.tell("exit 0");
    agent.until_run(&world, 3);
    agent.tell("exit 0");
    world.until_status("l", "done");
    let log = world.iterations_log("l");
    assert_eq!((agent.starts(), world.ralph_state("l")["total_failures"].as_u64()), (3, Some(0)), "{log}");
    assert!(world.iterations_log("l").contains("[END] iteration 1 exit=0"), "{log}");
}

#[test]
fn event_log_waits_for_disk_space_and_events_lost_in_a_crash_are_reported() {
    let Some((disk, world)) = small_world() else {
        eprintln!("skipped: mounting a small file system is not permitted here");
        return;
    };
    let daemon = world.start_daemon();
    let log = world.swarm_dir().join("events.jsonl");
    let mark = world.swarm_dir().join("events.unwritten");
    let warnings = || world.swarm(&["events", "--kind", "warning"]).ok().out;
    let fail = |count: usize| {
        (0..count).for_each(|_| drop(world.spawn("x", &[], &["true"]).code(1)));
        assert_eq!(world.daemon_pid(), Some(daemon), "a full disk ends no daemon");
    };
    // More lines than the last pages of the event log and of the daemon's log have room for.
    disk.fill();
    fail(30);
    assert!(mark.exists());
    assert_eq!(warnings().lines().count(), 30);
    disk.free();
    fs::create_dir(world.swarm_dir().join("workers/x.json")).unwrap();
    fail(1);
    fs::remove_dir(world.swarm_dir().join("workers/x.json")).unwrap();
    assert!(!mark.exists());
    assert_eq!(fs::read_to_string(&log).unwrap().matches("\"warning\"").count(), 31);
    disk.fill();
    fail(30);
    world.crash_daemon();
    disk.free();
    let text = warnings();
    let last = "(events are missing here: they could not be written to disk)";
    assert_eq!(text.lines().last(), Some(last), "{text}");
    assert!((31..61).contains(&(text.lines().count() - 1)), "{text}");
}

#[test]
fn kill_does_not_wait_for_disk_space() {
    let Some((disk, world)) = small_world() else {
        eprintln!("skipped: mounting a small file system is not permitted here");
        return;
    };
    let _ = world.spawn("w", &[], &["sleep", "600"]).ok();
    disk.fill();
    let _ = world.swarm(&["kill", "w"]).ok().warns("is not saved yet");
    assert!(world.panes().is_empty());
    disk.free();
    world.until("it is saved after all", || {
        let text = fs::read_to_string(world.swarm_dir().join("workers/w.json")).unwrap_or_default();
        text.contains("killed").then_some(())
    });
}

#[test]
fn unsaved_kill_survives_a_daemon_crash() {
    let Some((disk, world)) = small_world() else {
        eprintln!("skipped: mounting a small file system is not permitted here");
        return;
    };
    let agent = world.agent("a");
    world.spawn_loop("l", &agent, &["-n", "9"]);
    let _ = world.spawn_sh("r", &["--restart", "always"], "echo >>runs; exec sleep 600").ok();
    let _ = world.spawn("f", &["--restart", "always", "--max-restarts", "9"], &["false"]).ok();
    world.until_status("f", "retrying");
    world.until("it runs", || (world.lines("work/runs").len() == 1).then_some(()));
    disk.fill();
    let _ = world.swarm(&["kill", "l", "r", "f"]).ok().warns("is not saved yet");
    world.crash_daemon();
    let _ = world.swarm(&["kill", "l", "r", "f"]).ok();
    world.crash_daemon();
    disk.free();
    let _ = world.swarm(&["kill", "l", "r", "f"]).ok();
    for name in ["l", "r", "f"] {
        world.until_status(name, "killed");
        assert_eq!(world.status(name)["reason"], "killed");
        world.until("it is saved after all", || {
            let mark = world.swarm_dir().join(format!("workers/{name}.killed"));
            (!mark.exists()).then_some(())
        });
    }
    assert_eq!((world.lines("work/runs").len(), world.panes().len()), (1, 0));
    world.crash_daemon();
    let _ = world.spawn("r", &[], &["sleep", "600"]).ok();
    world.crash_daemon();
    assert_eq!(world.status("r")["status"], "running", "another worker of the name is another");
}

#[test]
fn a_respawn_on_a_full_disk_is_refused_and_the_worker_stays() {
    let Some((disk, world)) = small_world() else {
        eprintln!("skipped: mounting a small file system is not permitted here");
        return;
    };
    let _ = world.spawn_sh("w", &["--restart", "on-failure"], "echo >>runs").ok();
    world.until_status("w", "done");
    disk.fill();
    let _ = world.swarm(&["respawn", "w"]).code(1).warns("No space left");
    assert_eq!(world.status("w")["status"], "killed");
    disk.free();
    world.until("its state is saved", || {
        let reason = world.status("w")["reason"].clone();
        (reason == "killed" || reason == "exited").then_some(())
    });
    assert_eq!(world.lines("work/runs").len(), 1, "what was refused does not start later");
    world.crash_daemon();
    let _ = world.swarm(&["respawn", "w"]).ok();
    world.until("it runs once more", || (world.lines("work/runs").len() == 2).then_some(()));
}

#[test]
fn unsaved_pause_is_logged_only_after_it_is_saved() {
    let Some((disk, world)) = small_world() else {
        eprintln!("skipped: mounting a small file system is not permitted here");
        return;
    };
    let mut agent = world.agent("a");
    world.spawn_loop("l", &agent, &["-n", "2"]);
    let count = |text: &str| world.iterations_log("l").matches(text).count();
    // The pause is logged once there is space again.
    disk.fill();
    let _ = world.swarm(&["ralph", "pause", "l"]).ok().warns("saved");
    assert_eq!(count("[PAUSE]"), 0, "{}", world.iterations_log("l"));
    disk.free();
    world.until_logged("l", "[PAUSE]");
    assert_eq!(world.ralph_state("l")["status"], "paused");
    let _ = world.swarm(&["ralph", "resume", "l"]).ok();
    agent.tell("exit 0");
    agent.until_run(&world, 2);
    agent.tell("exit 0");
    world.until_status("l", "done");
    assert_eq!((count("[PAUSE]"), count("[RESUME]"), count("[START]"), count("[END]")), (1, 1, 2, 2));
}

#[test]
fn unsaved_pause_survives_a_crash_and_an_unsaved_resume_is_refused() {
    let Some((disk, world)) = small_world() else {
        eprintln!("skipped: mounting a small file system is not permitted here");
        return;
    };
    let mut agent = world.agent("a");
    world.spawn_loop("l", &agent, &["-n", "9"]);
    let paused = || world.status("l")["paused_by"].clone();
    let count = |text: &str| world.iterations_log("l").matches(text).count();
    disk.fill();
    let _ = world.swarm(&["ralph", "pause", "l"]).ok().warns("saved");
    let _ = world.swarm(&["ralph", "resume", "l"]).code(1).warns("nothing was changed: ");
    assert_eq!(paused(), "user", "what was refused is not done");
    world.crash_daemon();
    disk.free();
    agent.tell("exit 0");
    world.until_status("l", "paused");
    assert_eq!((paused(), agent.starts()), ("user".into(), 1));
    world.until("it is saved after all", || {
        (!world.swarm_dir().join("workers/l.paused").exists()).then_some(())
    });
    world.until_logged("l", "[PAUSE]");
    let _ = world.swarm(&["ralph", "resume", "l"]).ok();
    agent.until_run(&world, 2);
    world.crash_daemon();
    assert_eq!((paused(), count("[PAUSE]"), count("[RESUME]")), (serde_json::Value::Null, 1, 1));

    // The same of the pause that comes with the daemon's end.
    disk.fill();
    let _ = world.swarm(&["daemon", "stop"]).ok().says("1 loop is paused by the shutdown");
    disk.free();
    let _ = world.swarm(&["daemon", "start"]).ok().says("swarm ralph resume l");
    assert_eq!(paused(), "shutdown");
}

#[test]
fn loop_paused_while_it_waits_for_disk_space_starts_nothing() {
    let Some((disk, world)) = small_world() else {
        eprintln!("skipped: mounting a small file system is not permitted here");
        return;
    };
    let mut agent = world.agent("a");
    world.spawn_loop("l", &agent, &["-n", "9"]);
    disk.fill();
    agent.tell("exit 0");
    world.until_status("l", "waiting");
    let _ = world.swarm(&["ralph", "pause", "l"]).ok();
    disk.free();
    let there_is_room = || (world.ralph_state("l")["status"] == "paused").then_some(());
    world.until("it is saved", there_is_room);
    world.until_status("l", "paused");
    assert_eq!(agent.starts(), 1);
    let _ = world.swarm(&["ralph", "resume", "l"]).ok();
    agent.until_run(&world, 2);
    let log = world.iterations_log("l");
    assert_eq!((log.matches("[START]").count(), log.matches("[PAUSE]").count()), (2, 1), "{log}");
}
