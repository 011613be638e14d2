//! Loops that ended at a limit and continue: `ralph set`, `ralph resume`, and the setting that resumes loops after a
//! shutdown.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::verified::{DONE, Desk};
use crate::world::{SWARM, World, is_alive, signal};

/// An agent that reports a cost, and fails in its second run.
const AGENT: &str = r#"echo run >>runs
echo '{"type":"result","subtype":"success","is_error":false,"result":"more","total_cost_usd":0.6,"usage":{"input_tokens":100,"output_tokens":20}}'
[ $(grep -c run runs) -ne 2 ]"#;

impl World {
    /// Runs a line of a shell in which `swarm` is the program under test.
    fn shell(&self, line: &str) {
        let mut shell = self.command("sh");
        let path = format!("{}:{}", SWARM.rsplit_once('/').unwrap().0, std::env::var("PATH").unwrap());
        shell.args(["-c", line]).env("PATH", path);
        self.run(shell).ok();
    }

    /// Tries to resume a loop at its limit; the command of the hint.
    fn refused_at_limit(&self, name: &str, reason: &str) -> String {
        let ran = self.swarm(&["ralph", "resume", name]).code(1);
        let head = format!("swarm: error: the loop of worker '{name}' is still at its limit: {reason}");
        assert!(ran.err.starts_with(&head), "{}", ran.err);
        ran.err.lines().last().unwrap().strip_prefix("hint: ").unwrap().to_owned()
    }

    /// Writes the user's settings file.
    fn settings(&self, text: &str) {
        let dir = self.path("home/.config/swarm");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("config.toml"), text).unwrap();
    }

    fn until_runs(&self, count: usize) {
        self.until(&format!("run {count}"), || (self.lines("work/runs").len() == count).then_some(()));
    }
}

#[test]
fn loop_continues_after_each_kind_of_limit_was_raised() {
    let failed_once = AGENT.replace("]", "] && [ -e more ]");
    let two = "max iterations; out of budget (120 of 100 tokens)";
    for (flags, script, reason, status, change) in [
        (&["-n", "1"][..], AGENT, "max iterations", "done", "max_iterations=2"),
        (
            &["-n", "9", "--max-cost", "0.50"],
            AGENT,
            "out of budget ($0.60 of $0.50)",
            "failed",
            "max_cost=1.00",
        ),
        (
            &["-n", "9", "--max-tokens", "100"],
            AGENT,
            "out of budget (120 of 100 tokens)",
            "failed",
            "max_tokens=200",
        ),
        (&["-n", "1", "--max-tokens", "100"], AGENT, two, "done", "max_iterations=2 max_tokens=200"),
        (
            &["-n", "9", "--max-failures", "1"],
            &failed_once,
            "1 consecutive failure",
            "failed",
            "max_failures=2",
        ),
        (
            &["-n", "1"],
            &failed_once,
            "max iterations, and no iteration succeeded",
            "failed",
            "max_iterations=2",
        ),
    ] {
        let w = World::new();
        w.write("PROMPT.md", "go\n");
        let claude = w.path("claude");
        fs::write(&claude, format!("#!/bin/sh\ncat >/dev/null\n{script}\n")).unwrap();
        fs::set_permissions(&claude, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let head = ["--ralph", "--prompt-file", "PROMPT.md", "-d"];
        w.spawn("a", &[&head, flags].concat(), &[claude.to_str().unwrap(), "-p"]).ok();
        w.until_status("a", status);
        let hint = w.refused_at_limit("a", reason);
        assert_eq!(hint, format!("swarm ralph set a {change} && swarm ralph resume a"));
        w.swarm(&["why", "a"]).ok().says(&hint);
        assert_eq!(w.ralph_state("a")["current_iteration"], 1);
        w.shell(&hint);
        w.until_runs(2);
        w.until_ended("a");
        assert_eq!(w.ralph_state("a")["current_iteration"], 2, "{flags:?}");
        let log = w.iterations_log("a");
        let count = |text: &str| log.lines().filter(|line| line.contains(text)).count();
        assert_eq!((count("[RESUME]"), count("[START]"), count(" loop ")), (1, 2, 2), "{log}");
    }
}

#[test]
fn raised_time_counts_only_the_time_with_an_agent() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("a", &agent, &["--max-time", "3"]);
    w.until_status("a", "failed");
    let hint = w.refused_at_limit("a", "out of time (3s)");
    w.shell(&hint);
    agent.until_run(&w, 2);
    w.swarm(&["ralph", "set", "a", "max_time=null"]).ok();
    agent.tell("exit 0");
    agent.until_run(&w, 3);
    assert_eq!(w.ralph_state("a")["current_iteration"], 3);
}

#[test]
fn resumed_loop_keeps_its_baseline_snapshots_worktree_and_environment() {
    let mut d = Desk::new();
    d.w.set("TOKEN", "one");
    let agent = d.agent(&["echo $TOKEN >1", &format!("echo $TOKEN >2; touch done; {DONE}")]);
    d.run(&["--check", "test -e done", "-n", "1", "--worktree"], &agent).code(1);
    let before = d.w.swarm(&["report", "a", "--format", "json"]).ok().json();
    d.w.set("TOKEN", "another");
    d.w.swarm(&["ralph", "set", "a", "max_iterations=3"]).ok().warns("swarm ralph resume a");
    d.w.crash_daemon();
    let waiting = ["wait", "a"];
    d.w.swarm(&["ralph", "resume", "a"]).ok().says("resumed ralph loop for a\n");
    d.w.swarm(&waiting).ok();
    let after = d.w.swarm(&["report", "a", "--format", "json"]).ok().json();
    for key in ["baseline", "snapshots", "worktree"] {
        assert_eq!(before[key], after[key], "{key}");
    }
    assert_eq!((&after["end"], d.turns()), (&json!("all_checks_passed"), 2));
    let refs = after["snapshots"].as_str().unwrap();
    assert_eq!(d.git(&["show", &format!("{refs}/2:1"), &format!("{refs}/2:2")]), "one\none\n");
    assert!(d.git(&["ls-tree", "--name-only", &format!("{refs}/0")]).lines().all(|file| file != "1"));
}

#[test]
fn resume_with_env_and_an_edited_state_file_changes_the_next_run() {
    let w = World::new();
    w.write("PROMPT.md", "go\n");
    let flags = ["--ralph", "--prompt-file", "PROMPT.md", "-n", "1", "-d"];
    w.spawn_sh("a", &flags, "echo run$TOKEN >>runs").ok();
    w.until_status("a", "done");
    let file = w.swarm_dir().join("ralph/a/state.json");
    let text = fs::read_to_string(&file).unwrap();
    // Without a raised limit, neither the loop nor its environment changes.
    w.swarm(&["ralph", "resume", "a", "--env", "TOKEN=1"]).code(1).warns("max_iterations=2");
    fs::write(&file, text.replace("\"max_iterations\": 1", "\"max_iterations\": 2")).unwrap();
    w.swarm(&["ralph", "resume", "a", "--env", "TOKEN=2"]).ok();
    w.until_runs(2);
    w.until_status("a", "done");
    assert_eq!(w.lines("work/runs"), ["run", "run2"]);
}

#[test]
fn state_file_of_a_resume_that_was_not_saved_is_written_again() {
    let w = World::new();
    w.write("PROMPT.md", "go\n");
    w.spawn_sh("a", &["--ralph", "--prompt-file", "PROMPT.md", "-n", "1", "-d"], "true").ok();
    w.until_status("a", "done");
    w.crash_daemon();
    let file = w.swarm_dir().join("ralph/a/state.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"status\": \"stopped\"", "\"status\": \"running\"")).unwrap();
    assert_eq!(w.ralph_state("a")["status"], "running");
    w.start_daemon();
    w.until("the file shows the end", || (w.ralph_state("a")["status"] == "stopped").then_some(()));
}

#[test]
fn two_resumes_at_once_start_one_agent() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("a", &agent, &["-n", "1"]);
    agent.tell("exit 0");
    w.until_status("a", "done");
    w.swarm(&["ralph", "set", "a", "max_iterations=5"]).ok();
    let mut both = [w.follow(&["ralph", "resume", "a"]), w.follow(&["ralph", "resume", "a"])];
    assert_eq!(both.each_mut().map(|resume| resume.wait(&w)), [0, 0]);
    let said = both.map(|resume| resume.output()).concat();
    assert!(said.contains("resumed ralph loop for a") && said.contains("worker 'a' is not paused"), "{said}");
    agent.until_run(&w, 2);
    assert_eq!((agent.starts(), w.panes().len()), (2, 1), "{}", w.report());
}

#[test]
fn loop_that_ended_otherwise_or_lost_its_files_is_not_resumed() {
    let d = Desk::new();
    let again = "swarm respawn a";
    let refused = |message: &str| {
        let ran = d.w.swarm(&["ralph", "resume", "a"]).code(1);
        assert!(ran.err.contains(message) && ran.err.contains(again), "{}", ran.err);
    };
    let agent = d.agent(&["true", &format!("touch done; {DONE}")]);
    d.run(&["--check", "true"], &agent).ok();
    refused("the loop of worker 'a' has ended (every gate holds)");
    d.w.swarm(&["ralph", "set", "a", "max_iterations=9"])
        .code(1)
        .warns("has ended (every gate holds)")
        .warns(again);
    d.run(&["--check", "sleep 600", "--check-timeout", "600", "-d"], &agent).ok();
    d.w.swarm(&["kill", "a"]).ok();
    refused("the loop of worker 'a' has ended (killed)");

    let idle = d.agent(&["true"]);
    let end_at_limit = || {
        d.run(&["--check", "test -e never", "-n", "1", "--worktree"], &idle).code(1);
        d.w.swarm(&["ralph", "set", "a", "max_iterations=9"]).ok();
    };
    end_at_limit();
    d.w.swarm(&["ralph", "clean", "a"]).ok();
    refused("no baseline to compare with");
    end_at_limit();
    let tree = d.w.status("a")["worktree"]["path"].as_str().unwrap().to_owned();
    fs::remove_dir_all(&tree).unwrap();
    refused(&format!("the worktree of worker 'a' does not exist: {tree}"));
    assert_eq!(d.w.status("a")["status"], "failed");
    d.w.swarm(&["clean", "a", "--keep-worktree"]).ok();
    d.w.swarm(&["ralph", "resume", "a"]).code(2).warns("no worker named 'a'");
}

/// Three loops: `works` with a live agent, `rests` paused by a person, and `ended` at its limit.
fn three_loops(w: &World) {
    w.write("PROMPT.md", "go\n");
    let head = ["--ralph", "--prompt-file", "PROMPT.md", "-d", "-n"];
    for (name, limit, script) in
        [("works", "9", "sleep 600"), ("rests", "9", "sleep 600"), ("ended", "1", "true")]
    {
        let script = format!("echo $$ >>{name}; {script}");
        w.spawn_sh(name, &[&head[..], &[limit]].concat(), &script).ok();
    }
    w.until_status("ended", "done");
    w.until("both run", || (w.lines("work/works").len() + w.lines("work/rests").len() == 2).then_some(()));
    w.swarm(&["ralph", "pause", "rests"]).ok();
}

fn loop_states(w: &World) -> [Value; 3] {
    ["works", "rests", "ended"].map(|name| w.ralph_state(name)["status"].clone())
}

#[test]
fn resume_all_continues_paused_loops_and_not_ended_ones() {
    let w = World::new();
    three_loops(&w);
    w.swarm(&["daemon", "stop"]).ok();
    w.swarm(&["daemon", "start"]).ok().says("swarm ralph resume works");
    assert_eq!(loop_states(&w), ["paused", "paused", "stopped"]);
    let ran = w.swarm(&["ralph", "resume", "--all"]).ok();
    assert_eq!(ran.out, "resumed ralph loop for rests\nresumed ralph loop for works\n");
    assert_eq!(loop_states(&w), ["running", "running", "stopped"]);
}

#[test]
fn setting_resumes_loops_paused_by_a_shutdown_and_not_by_a_person() {
    let w = World::new();
    w.settings("[daemon]\nresume_after_shutdown = true\n");
    three_loops(&w);
    let agent: u32 = w.lines("work/works")[0].parse().unwrap();
    w.swarm(&["daemon", "stop"]).ok();
    assert_eq!(loop_states(&w), ["paused", "paused", "stopped"]);
    w.swarm(&["daemon", "start"]).ok();
    assert_eq!(loop_states(&w), ["running", "paused", "stopped"]);
    assert!(is_alive(agent) && w.lines("work/works").len() == 1, "the agent goes on");
    // As a reboot does: the tmux server ends with all agents.
    w.swarm(&["daemon", "stop"]).ok();
    w.tmux(&["kill-server"]).ok();
    w.until("the agent is gone", || (!is_alive(agent)).then_some(()));
    w.swarm(&["daemon", "start"]).ok();
    w.until("the iteration is repeated", || (w.lines("work/works").len() == 2).then_some(()));
    assert_eq!(w.ralph_state("works")["current_iteration"], 1);
    assert_eq!(
        (loop_states(&w), w.lines("work/rests").len()),
        (["running", "paused", "stopped"].map(Value::from), 1)
    );
}

#[test]
fn setting_resumes_loops_after_a_power_failure() {
    let w = World::new();
    w.settings("[daemon]\nresume_after_shutdown = true\n");
    three_loops(&w);
    let server = w.tmux_pid();
    w.crash_daemon();
    for pid in [w.lines("work/works"), w.lines("work/rests")].concat() {
        signal(pid.parse().unwrap(), Signal::SIGKILL);
    }
    signal(server, Signal::SIGKILL);
    w.until("tmux is gone", || (!is_alive(server)).then_some(()));
    w.swarm(&["daemon", "start"]).ok();
    w.until("the iteration is repeated", || (w.lines("work/works").len() == 2).then_some(()));
    assert_eq!(
        (loop_states(&w), w.lines("work/rests").len()),
        (["running", "paused", "stopped"].map(Value::from), 1)
    );
}
