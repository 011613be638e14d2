//! A done pattern counts in what the agent says, not in what it was told, wherever that stands.

use crate::prompts::{prompts, record, settled, spawn, tui};
use crate::world::World;

/// A prompt that holds the marker, long enough to be wrapped anywhere.
const TEXT: &str = "Work through all of the list that you find in this folder, item by item, and only when every \
                    single one of them is really finished and the tests pass print TASK_DONE on a line of its own";

const PATTERN: [&str; 2] = ["--done-pattern", "TASK_DONE"];

/// Waits until a pattern that was seen would have ended its worker: another worker prints it later and ends by it.
/// Twice, because the other screens may be read later.
#[track_caller]
fn wait_out(world: &World) {
    for _ in 0..2 {
        let flags = [&PATTERN[..], &["--replace"]].concat();
        let _ = world.spawn_sh("clock", &flags, "echo TASK_DONE; exec sleep 600").ok();
        assert_eq!(world.until_status("clock", "done")["reason"], "done pattern matched");
    }
}

#[track_caller]
fn until_shown(world: &World, name: &str, text: &str) {
    world.until(&format!("{name} shows {text:?}"), || {
        world.swarm(&["peek", name]).out.contains(text).then_some(())
    });
}

#[track_caller]
fn still_live(world: &World, names: &[&str]) {
    for name in names {
        let seen = world.status(name);
        assert!(seen["status"] == "running" || seen["status"] == "waiting", "{seen}\n{}", world.report());
    }
}

#[test]
fn echo_of_the_prompt_in_any_form_is_not_output() {
    let world = World::new();
    world.write("p", TEXT);
    // Under the name of a known agent, whose screen it has then.
    std::os::unix::fs::symlink(tui(), world.path("claude")).unwrap();
    let (tui, claude) = (tui(), world.path("claude").display().to_string());
    let rec = format!("REC={}", record(&world).display());
    let agents: [(&str, &[&str], &[&str]); 6] = [
        ("wrapped", &["--size", "30x20", "--prompt", TEXT], &["ECHO=1"]),
        ("narrow", &["--size", "20x40", "--prompt-file", "p"], &["ALT=0"]),
        ("unsent", &["--prompt", TEXT], &["DEAF=1"]),
        ("boxed", &["--size", "70x24", "--prompt-file", "p"], &["ALT=1", "DEAF=1"]),
        ("file", &["--prompt-file", "p"], &["ECHO=1", "ALT=1"]),
        ("slow", &["--prompt-file", "p"], &["ECHO=1", "WORK=600"]),
    ];
    for (name, flags, knobs) in agents {
        let envs: Vec<&str> =
            knobs.iter().chain(&["REPLY=so far", rec.as_str()]).flat_map(|knob| ["--env", knob]).collect();
        let all = [&PATTERN, &["--prompt-via", "paste"][..], flags, &envs].concat();
        let agent = if knobs.contains(&"ALT=1") { &claude } else { &tui };
        let _ = world.spawn(name, &all, &[agent]).ok();
    }
    // Agents that print what they were told, by the other routes.
    let stdin = [&PATTERN[..], &["--prompt-file", "p", "--prompt-via", "stdin"]].concat();
    let _ = world.spawn_sh("stdin", &stdin, "cat; echo; exec sleep 600").ok();
    let arg = [&PATTERN[..], &["--size", "50x20", "--prompt", TEXT, "--prompt-via", "arg"]].concat();
    let _ = world.spawn("arg", &arg, &["sh", "-c", r#"echo "> $0"; exec sleep 600"#]).ok();
    for name in ["wrapped", "narrow", "file"] {
        until_shown(&world, name, "so far");
    }
    for name in ["unsent", "boxed"] {
        world.until_status(name, "waiting");
    }
    for name in ["stdin", "arg"] {
        until_shown(&world, name, "Work through");
    }
    until_shown(&world, "slow", "Working");
    wait_out(&world);
    let names = ["wrapped", "narrow", "unsent", "boxed", "file", "slow", "stdin", "arg"];
    still_live(&world, &names);
    // Neither to a daemon that did not see it being told.
    world.crash_daemon();
    world.start_daemon();
    wait_out(&world);
    still_live(&world, &names);
}

#[test]
fn text_sent_by_a_person_is_not_output() {
    let world = World::new();
    spawn(&world, &[&PATTERN[..], &["--prompt", "begin"]].concat(), &["ECHO=1", "REPLY=so far"]);
    settled(&world);
    let _ = world.swarm(&["send", "w", TEXT]).ok();
    assert_eq!(prompts(&world, 2), ["begin", TEXT]);
    wait_out(&world);
    still_live(&world, &["w"]);
    world.crash_daemon();
    world.start_daemon();
    wait_out(&world);
    still_live(&world, &["w"]);

    spawn(&world, &[&PATTERN[..], &["--replace", "--ready-wait"]].concat(), &["ECHO=1", "REPLY=TASK_DONE"]);
    let _ = world.swarm(&["send", "w", TEXT]).ok();
    assert_eq!(world.until_status("w", "done")["reason"], "done pattern matched");
}

#[test]
fn old_prompt_is_not_output_after_the_prompt_file_was_edited() {
    let world = World::new();
    world.write("p", TEXT);
    let flags =
        [&PATTERN[..], &["--ralph", "--prompt-file", "p", "--prompt-via", "stdin", "-n", "3", "-d"]].concat();
    let script = "until [ -e gate ]; do sleep 0.05; done; cat; echo; exec sleep 600";
    let _ = world.spawn_sh("l", &flags, script).ok();
    world.write("p", "Something else\n");
    // Both have the prompt read anew: another daemon, and a pattern that is set.
    world.crash_daemon();
    world.start_daemon();
    let _ = world.swarm(&["ralph", "set", "l", "done_pattern=TASK_DON[E]"]).ok();
    world.write("gate", "");
    until_shown(&world, "l", "Work through");
    wait_out(&world);
    still_live(&world, &["l"]);
    assert_eq!(world.ralph_state("l")["current_iteration"], 1);
}

#[test]
fn done_pattern_from_before_the_prompt_does_not_count() {
    let world = World::new();
    let knobs = ["BANNER=restored: TASK_DONE", "REPLY=so far"];
    spawn(&world, &[&PATTERN[..], &["--prompt", "go on"]].concat(), &knobs);
    settled(&world);
    until_shown(&world, "w", "so far");
    wait_out(&world);
    still_live(&world, &["w"]);
    world.crash_daemon();
    world.start_daemon();
    wait_out(&world);
    still_live(&world, &["w"]);
}
