//! The ralph loop's error conditions and warnings, word for word.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::world::World;

/// A world with a prompt file and nothing else.
fn prompted() -> World {
    let w = World::new();
    w.write("PROMPT.md", "Do task A\n");
    w
}

/// Nothing was made of a refused spawn.
fn nothing_left(w: &World) {
    assert_eq!(w.swarm(&["ls", "--format", "json"]).ok().json(), json!([]));
    assert!(!w.swarm_dir().join("ralph/agent").exists());
    assert!(!w.swarm_dir().join("workers/agent.json").exists());
}

#[test]
fn ralph_without_prompt_file_is_the_first_error() {
    let w = prompted();
    for flags in [&["--max-iterations", "5"][..], &[]] {
        let mut args = vec!["spawn", "--name", "agent", "--ralph"];
        args.extend(flags);
        args.extend(["--", "sh"]);
        w.swarm(&args).code(1).warns("swarm: error: --ralph requires --prompt-file\n");
    }
    nothing_left(&w);
}

#[test]
fn ralph_without_max_iterations_is_an_error() {
    let w = prompted();
    let args = ["spawn", "--name", "agent", "--ralph", "--prompt-file", "./PROMPT.md", "--", "sh"];
    assert_eq!(w.swarm(&args).code(1).err, "swarm: error: --ralph requires --max-iterations\n");
    nothing_left(&w);
}

#[test]
fn missing_prompt_file_is_named_as_it_was_typed() {
    let w = prompted();
    let args =
        ["spawn", "--ralph", "--prompt-file", "./missing.md", "--max-iterations", "10", "--", "claude"];
    assert_eq!(w.swarm(&args).code(1).err, "swarm: error: prompt file not found: ./missing.md\n");
    nothing_left(&w);
}

#[test]
fn a_directory_as_prompt_file_cannot_be_read() {
    let w = prompted();
    let args = ["spawn", "--ralph", "--prompt-file", "/tmp", "--max-iterations", "10", "--", "sh"];
    assert_eq!(w.swarm(&args).code(1).err, "swarm: error: cannot read prompt file: /tmp\n");
    nothing_left(&w);
}

#[test]
fn more_than_50_iterations_is_a_warning_and_spawns() {
    let w = World::new();
    let (one, two) = (w.agent("a"), w.agent("b"));
    let warning = "swarm: warning: high iteration count (>50) may consume significant resources\n";
    let other = w.path("other");
    fs::create_dir(&other).unwrap();
    let ran = w.swarm(&w.loop_args("one", &one, &["-n", "51", "-d", "--cwd", other.to_str().unwrap()])).ok();
    assert_eq!(ran.err, warning);
    assert_eq!(ran.out, "spawned one (tmux: swarm:one) [ralph mode: iteration 1/51]\n");
    one.until_run(&w, 1);
    assert_eq!(w.swarm(&w.loop_args("two", &two, &["-n", "50", "-d"])).ok().err, "");
}

#[test]
fn prompt_file_that_is_empty_or_not_text_is_a_warning_and_spawns() {
    for (text, warning) in
        [("", "is empty"), (" \n\t\n", "is empty"), ("a\0b\n", "is not text (it contains NUL bytes)")]
    {
        let w = World::new();
        w.write("odd.md", text);
        let agent = w.agent("a");
        let file = w.work().join("odd.md");
        let mut args: Vec<String> =
            ["spawn", "--name", "a", "--ralph", "--prompt-file", "odd.md", "-n", "1", "-d", "--"]
                .map(str::to_owned)
                .into();
        args.extend(agent.command());
        let ran = w.swarm(&args).ok();
        assert_eq!(ran.err, format!("swarm: warning: prompt file {warning}: {}\n", file.display()));
        agent.until_run(&w, 1);
        assert_eq!(agent.prompt(1), text);
    }
    let w = World::new();
    let args =
        ["spawn", "--name", "a", "--ralph", "--prompt-file", "/dev/null", "-n", "1", "-d", "--", "cat"];
    assert_eq!(w.swarm(&args).ok().err, "");
}

#[test]
fn live_loop_in_the_same_directory_is_a_warning_and_spawns() {
    let w = World::new();
    w.repo("work");
    let agents = ["a", "b", "c", "d"].map(|name| w.agent(name));
    let spawn = |name: &str, flags: &[&str]| {
        let agent = &agents[usize::from(name.as_bytes()[0] - b'a')];
        w.swarm(&w.loop_args(name, agent, &[&["-d"], flags].concat())).ok().err
    };
    let warning = format!(
        "swarm: warning: loop 'a' uses the same directory: {} (to separate the loops: --worktree)\n",
        w.work().display()
    );
    assert_eq!(spawn("a", &[]), "");
    assert_eq!(spawn("b", &[]), warning);
    assert_eq!(spawn("c", &["--worktree"]), "");
    for name in ["a", "b"] {
        w.swarm(&["kill", name]).ok();
    }
    // A loop in a worktree does not share the directory, and neither does a killed loop.
    assert_eq!(spawn("d", &[]), "");
    let ran = w.swarm(&["respawn", "b", "-d"]).ok();
    assert_eq!(ran.err, warning.replace("'a'", "'d'"));
}

#[test]
fn invalid_numbers_of_iterations_are_usage_errors() {
    let w = prompted();
    for (flag, value) in [("-n", "0"), ("-n", "many"), ("--inactivity-timeout", "0")] {
        let args = ["spawn", "--ralph", "--prompt-file", "PROMPT.md", "-n", "3", flag, value, "--", "sh"];
        let args: Vec<&str> = if flag == "-n" { [&args[..4], &args[6..]].concat() } else { args.to_vec() };
        w.swarm(&args).code(2).warns("swarm: error: ");
    }
    assert_eq!(w.daemon_pid(), None);
}

#[test]
fn loop_flags_without_ralph_are_refused() {
    let w = prompted();
    w.swarm(&["spawn", "-n", "3", "--", "sh"]).code(2).warns("--ralph");
}

#[test]
fn a_bad_done_pattern_is_refused() {
    let w = prompted();
    let agent = w.agent("a");
    w.swarm(&w.loop_args("agent", &agent, &["--done-pattern", "(unclosed", "-d"]))
        .code(2)
        .warns("swarm: error: invalid done pattern: unclosed group at position 0\n");
    nothing_left(&w);
}

#[test]
fn prompt_file_deleted_mid_loop_fails_the_loop() {
    let w = World::new();
    let mut agent = w.agent("a");
    let mut follower = w.follow_loop("agent", &agent, &[]);
    let prompt = w.work().join("PROMPT.md");
    fs::remove_file(&prompt).unwrap();
    agent.tell("exit 0");
    assert_eq!(follower.wait(&w), 1);
    follower.says(&format!("swarm: error: prompt file not found: {}\n", prompt.display()));
    failed_by_prompt(&w, agent.starts());
}

#[test]
fn prompt_file_unreadable_mid_loop_fails_the_loop() {
    let w = World::new();
    let mut agent = w.agent("a");
    let mut follower = w.follow_loop("agent", &agent, &[]);
    let prompt = w.work().join("PROMPT.md");
    // Root reads whatever its mode is, so the mode alone would not do.
    fs::set_permissions(&prompt, fs::Permissions::from_mode(0o0)).unwrap();
    fs::remove_file(&prompt).unwrap();
    fs::create_dir(&prompt).unwrap();
    agent.tell("exit 0");
    assert_eq!(follower.wait(&w), 1);
    follower.says(&format!("swarm: error: cannot read prompt file: {}\n", prompt.display()));
    failed_by_prompt(&w, agent.starts());
}

fn failed_by_prompt(w: &World, starts: usize) {
    let state = w.ralph_state("agent");
    assert_eq!((&state["status"], &state["reason"], starts), (&json!("failed"), &json!("prompt_file"), 1));
    let status = w.status("agent");
    assert_eq!(status["status"], "failed");
    assert!(w.iterations_log("agent").contains("reason=prompt_file\n"));
}

#[test]
fn ralph_commands_refuse_a_worker_that_is_not_a_loop() {
    let w = World::new();
    let agent = w.agent("a");
    w.spawn_agent("plain", &agent, &[]);
    for verb in ["pause", "resume", "status"] {
        let line = "swarm: error: worker 'plain' is not a ralph worker\n";
        w.swarm(&["ralph", verb, "plain"]).code(1).warns(line);
    }
}

#[test]
fn pausing_a_paused_loop_is_a_warning() {
    let w = World::new();
    let agent = w.agent("a");
    w.spawn_loop("agent", &agent, &[]);
    w.swarm(&["ralph", "pause", "agent"]).ok();
    let ran = w.swarm(&["ralph", "pause", "agent"]).ok();
    assert_eq!(
        (ran.out.as_str(), ran.err.as_str()),
        ("", "swarm: warning: worker 'agent' is already paused\n")
    );
}

#[test]
fn resuming_a_loop_that_is_not_paused_is_a_warning() {
    let w = World::new();
    let agent = w.agent("a");
    w.spawn_loop("agent", &agent, &[]);
    let ran = w.swarm(&["ralph", "resume", "agent"]).ok();
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", "swarm: warning: worker 'agent' is not paused\n"));
    assert_eq!(agent.starts(), 1);
}

#[test]
fn command_that_cannot_be_started_again_backs_off_with_the_reason() {
    let w = World::new();
    let mut agent = w.agent("a");
    let tool = w.path("tool");
    fs::copy(&agent.command()[0], &tool).unwrap();
    let mut args = w.loop_args("agent", &agent, &[]);
    let at = args.len() - 2;
    args[at] = tool.display().to_string();
    let follower = w.follow(&args);
    agent.until_run(&w, 1);
    fs::remove_file(&tool).unwrap();
    agent.tell("exit 0");
    follower.until_says(&w, "retrying in 1s (attempt 1/5)\n");
    follower.says("[ralph] agent: iteration 2 failed (exit: ");
    fs::copy(&agent.command()[0], &tool).unwrap();
    agent.until_run(&w, 2);
}

#[test]
fn broken_record_is_set_aside_unchanged_and_reported() {
    let w = World::new();
    let agent = w.agent("a");
    w.spawn_agent("plain", &agent, &[]);
    w.crash_daemon();
    let workers = w.swarm_dir().join("workers");
    fs::write(workers.join("broken.json"), b"{\"name\": \xff").unwrap();
    w.swarm(&["ls"]).ok().warns("swarm: warning: ");
    let aside = fs::read_dir(&workers).unwrap().map(|e| e.unwrap().path());
    let aside =
        aside.filter(|p| p.display().to_string().contains("broken.json.corrupt-")).collect::<Vec<_>>();
    assert_eq!(fs::read(&aside[0]).unwrap(), b"{\"name\": \xff");
    assert_eq!(w.status("plain")["status"], "running");
}
