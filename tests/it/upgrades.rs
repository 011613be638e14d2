//! The installed program is moved, removed or replaced while its daemon runs.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::world::{SWARM, World};

/// A daemon of a program in a folder of its own. That program is a file other than the one under test.
fn daemon_of_a_version(world: &World) -> PathBuf {
    let program = world.path("v1/swarm");
    fs::create_dir(world.path("v1")).unwrap();
    // Bytes behind the end of a program do no harm, and tell the files apart. By another process: a file that this
    // one has open for writing could be inherited by a child of another test, and could not be executed meanwhile.
    let mut copy = world.command("sh");
    // Its mode is that of an installed program, which the daemon copies.
    copy.args(["-c", "cp \"$1\" \"$2\" && echo >>\"$2\" && chmod 755 \"$2\"", "sh", SWARM]).arg(&program);
    let _ = world.run(copy).ok();
    start(world, &program);
    program
}

fn start(world: &World, program: &PathBuf) {
    let mut command = world.command(program);
    command.args(["daemon", "start"]);
    let _ = world.run(command).ok();
}

fn length(path: impl AsRef<std::path::Path>) -> u64 {
    fs::metadata(path).unwrap().len()
}

#[test]
fn loop_continues_after_the_swarm_program_was_removed() {
    let world = World::new();
    daemon_of_a_version(&world);
    let mut agent = world.agent("w");
    world.spawn_loop("w", &agent, &["-n", "3", "--record"]);
    fs::remove_dir_all(world.path("v1")).unwrap();
    for run in 1..=3 {
        agent.until_run(&world, run);
        agent.tell(&format!("print run {run}"));
        agent.tell("exit 0");
    }
    world.until_status("w", "done");
    let state = world.ralph_state("w");
    assert_eq!((&state["current_iteration"], &state["total_failures"]), (&3.into(), &0.into()), "{state}");
    let raw = fs::read_to_string(world.swarm_dir().join("logs/w.raw")).unwrap();
    assert!(raw.contains("run 1") && raw.contains("run 3"), "{raw}");
    let _ = world.swarm(&["doctor"]).says("was removed or replaced").says("swarm daemon restart");
    // Its own program, too, is put back when somebody removes it.
    fs::remove_dir_all(world.swarm_dir().join("bin")).unwrap();
    let _ = world.spawn("plain", &[], &["sleep", "600"]).ok();
    let _ = world.swarm(&["doctor"]).says("was removed or replaced");
}

#[test]
fn wrapper_program_has_the_version_of_the_last_daemon() {
    let world = World::new();
    let program = daemon_of_a_version(&world);
    let placed = world.swarm_dir().join("bin/swarm");
    assert_eq!(length(&placed), length(&program));
    // An upgrade in place: the file is another one, and a bad one at that.
    fs::remove_file(&program).unwrap();
    fs::copy("/bin/false", &program).unwrap();
    let mut agent = world.agent("w");
    let _ = world.spawn_agent("w", &agent, &[]);
    let _ = world.swarm(&["daemon", "restart"]).ok();
    assert_eq!(length(&placed), length(SWARM), "the new daemon is of the program under test");
    assert_eq!(world.until_status("w", "running")["status"], "running");
    agent.tell("exit 3");
    assert_eq!(world.until_status("w", "failed")["exit_code"], 3, "the old wrapper told the new daemon");
    let _ = world.spawn("next", &[], &["sleep", "600"]).ok();
}

#[test]
fn restart_keeps_a_good_copy_of_the_program_and_replaces_a_bad_one() {
    let world = World::new();
    let _ = world.spawn("w", &[], &["sleep", "600"]).ok();
    let placed = world.swarm_dir().join("bin/swarm");
    let file = || fs::metadata(&placed).unwrap().ino();
    let (first, good) = (file(), fs::read(&placed).unwrap());
    let _ = world.swarm(&["daemon", "restart"]).ok();
    assert_eq!(file(), first, "the same program was copied again");
    // As after a power cut: size and time are right, and the last bytes are not.
    let written = fs::metadata(&placed).unwrap().modified().unwrap();
    let mut damaged = good.clone();
    *damaged.last_mut().unwrap() ^= 1;
    fs::remove_file(&placed).unwrap();
    fs::write(&placed, damaged).unwrap();
    fs::File::options().write(true).open(&placed).unwrap().set_modified(written).unwrap();
    let _ = world.swarm(&["daemon", "restart"]).ok();
    assert!(fs::read(&placed).unwrap() == good, "the damaged copy is still there");
}

#[test]
fn missing_wrapper_program_uses_no_iteration_and_fails_the_loop() {
    let world = World::new();
    // Nothing can be kept where the helper belongs.
    fs::create_dir(world.swarm_dir()).unwrap();
    fs::write(world.swarm_dir().join("bin"), "").unwrap();
    daemon_of_a_version(&world);
    let mut agent = world.agent("w");
    world.spawn_loop("w", &agent, &["-n", "4"]);
    fs::remove_dir_all(world.path("v1")).unwrap();
    let why = "cannot start swarm's wrapper in the pane";
    let _ = world.spawn("plain", &[], &["sleep", "600"]).code(1).warns(why);
    assert!(world.status("plain").is_null());
    agent.tell("exit 0");
    world.until_status("w", "failed");
    let (state, log) = (world.ralph_state("w"), world.iterations_log("w"));
    assert_eq!((&state["current_iteration"], &state["total_failures"]), (&1.into(), &5.into()), "{state}");
    assert_eq!(agent.starts(), 1);
    assert_eq!(log.matches("[FAIL] iteration 2 exit=spawn-failed attempt=").count(), 5, "{log}");
    let _ = world.swarm(&["why", "w"]).says(why);
    let _ = world.swarm(&["status", "w"]).code(1).says(why);
    let _ = world.swarm(&["doctor"]).code(1).says("no worker can be started");
    assert_eq!(world.panes().len(), 0, "{}", world.report());
}
