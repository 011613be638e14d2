//! Evidence that an agent showed during a run reaches the verdict and the log, whatever ended the run.

use std::fs;
use std::path::PathBuf;

use crate::world::World;

const PATTERN: [&str; 2] = ["--done-pattern", "ALL TASKS DONE"];

/// An agent that shows the pattern on its alternate screen for a moment, leaves it and exits by itself.
const BRIEF: &str = r"printf '\033[?1049h\033[H\033[2Jworking\r\nALL TASKS DONE\r\n'; sleep 0.2
printf '\033[?1049l'; echo bye";

/// An agent that shows the pattern, clears screen and history when it is told to, and goes on until it is told to exit.
const CLEARS: &str = r"printf '\033[?1049hALL TASKS DONE\r\n'; until [ -e cleared ]; do echo tick; sleep 0.1; done
printf '\033[H\033[2J\033[3J'; until [ -e ended ]; do echo tock; sleep 0.1; done
printf '\033[H\033[2J\033[3J'";

impl World {
    fn saw_the_pattern(&self, name: &str) -> bool {
        let record = fs::read_to_string(self.swarm_dir().join(format!("workers/{name}.json"))).unwrap();
        let record: serde_json::Value = serde_json::from_str(&record).unwrap();
        record["engine"]["evidence"]["done"] == true
    }
}

#[test]
fn pattern_on_a_short_lived_alternate_screen_counts_and_is_logged() {
    let world = World::new();
    let _ = world.spawn_sh("plain", &PATTERN, BRIEF).ok();
    world.write("PROMPT.md", "go\n");
    let looped = ["--ralph", "--prompt-file", "PROMPT.md", "-n", "3", "-d"];
    let _ = world.spawn_sh("loop", &[&PATTERN[..], &looped].concat(), BRIEF).ok();
    let checked = [&PATTERN[..], &looped, &["--check", "true"]].concat();
    let _ = world.spawn_sh("checked", &checked, BRIEF).ok();
    for name in ["plain", "loop", "checked"] {
        world.until_status(name, "done");
        let log = world.swarm(&["logs", name]).ok().out;
        assert!(log.contains("working\nALL TASKS DONE\n") && log.contains("bye"), "{name}: {log}");
    }
    assert_eq!(world.status("plain")["reason"], "done pattern matched");
    assert!(world.iterations_log("loop").contains("after 1 iteration reason=done_pattern"));
    assert!(world.iterations_log("checked").contains("[DONE] loop complete after 1 iteration"));
    let log = world.swarm(&["logs", "loop", "--iteration", "1"]).ok().out;
    assert!(log.contains("ALL TASKS DONE"), "{log}");
}

#[test]
fn seen_pattern_survives_a_cleared_screen_and_a_daemon_crash() {
    let world = World::new();
    world.write("PROMPT.md", "go\n");
    let flags = [&PATTERN[..], &["--ralph", "--prompt-file", "PROMPT.md", "-n", "3", "-d"]].concat();
    let _ = world.spawn_sh("l", &flags, CLEARS).ok();
    world.until("the pattern is in the record", || world.saw_the_pattern("l").then_some(()));
    world.write("cleared", "");
    world
        .until("the screen is cleared", || (!world.swarm(&["peek", "l"]).out.contains("DONE")).then_some(()));
    world.crash_daemon();
    world.write("ended", "");
    world.start_daemon();
    world.until_status("l", "done");
    let log = world.iterations_log("l");
    assert!(log.contains("after 1 iteration reason=done_pattern"), "{log}");
}

#[test]
fn last_screen_of_a_vanished_pane_is_in_the_log() {
    let world = World::new();
    world.write("PROMPT.md", "go\n");
    let flags = [&PATTERN[..], &["--ralph", "--prompt-file", "PROMPT.md", "-n", "3", "-d"]].concat();
    let _ = world.spawn_sh("l", &flags, "echo ALL TASKS DONE; while :; do echo tick; sleep 0.1; done").ok();
    world.until("the pattern is in the record", || world.saw_the_pattern("l").then_some(()));
    let _ = world.tmux(&["kill-window", "-t", "=swarm:l"]).ok();
    world.until_status("l", "done");
    assert!(world.iterations_log("l").contains("after 1 iteration reason=done_pattern"));
    let log = world.swarm(&["logs", "l", "--iteration", "1"]).ok().out;
    assert!(log.contains("ALL TASKS DONE\ntick\n"), "{log}");
}

#[test]
fn transcript_is_part_of_the_log() {
    let world = World::new();
    let claude: PathBuf = world.path("claude");
    let script = r#"#!/bin/sh
while [ "$1" != --session-id ]; do shift; done
mkdir -p "$HOME/.claude/projects/p"
cat >"$HOME/.claude/projects/p/$2.jsonl" <<'END'
{"type":"user","message":{"role":"user","content":"the prompt"}}
{"type":"assistant","timestamp":"2999-01-01T00:00:00Z","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make test"}}]}}
{"type":"assistant","timestamp":"2999-01-01T00:00:00Z","message":{"id":"m2","content":[{"type":"text","text":"The tests pass."}]}}
END
echo on the screen
"#;
    fs::write(&claude, script).unwrap();
    fs::set_permissions(&claude, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    world.write("PROMPT.md", "go\n");
    let flags = ["--ralph", "--prompt-file", "PROMPT.md", "-n", "1", "-d"];
    let _ = world.spawn("l", &flags, &[&claude.display().to_string(), "-p"]).ok();
    world.until_status("l", "done");
    for args in [&["logs", "l", "--iteration", "1"][..], &["logs", "l"]] {
        let log = world.swarm(args).ok().out;
        assert_eq!(
            log, "on the screen\n\n--- transcript ---\n[Bash] make test\n\nThe tests pass.\n",
            "{args:?}"
        );
    }
}
