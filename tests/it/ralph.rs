//! The ralph loop, scenario by scenario, as a user types it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use swarm_state::template::{PROMPT_TEMPLATE, TODO_TEMPLATE};

use crate::world::{World, is_alive};

/// Seconds of the day in a line of `iterations.log`.
fn seconds(line: &str) -> u64 {
    let number = |from: usize| line[from..from + 2].parse::<u64>().unwrap();
    number(11) * 3600 + number(14) * 60 + number(17)
}

/// A log line without its time.
fn without_time(line: &str) -> &str {
    line.get(20..).unwrap_or_default()
}

#[test]
fn basic_loop_spawns_in_tmux_and_gives_the_prompt_on_stdin() {
    let w = World::new();
    let agent = w.agent("a");
    let follower = w.follow_loop("agent", &agent, &[]);
    assert_eq!(
        follower.output().lines().next(),
        Some("spawned agent (tmux: swarm:agent) [ralph mode: iteration 1/10]")
    );
    assert_eq!(agent.prompt(1), "Do task A\n");
    w.tmux(&["list-windows", "-t", "=swarm", "-F", "#{window_name}"]).ok().says("agent");
    assert_eq!(w.ralph_state("agent")["current_iteration"], 1);
}

#[test]
fn the_state_file_holds_the_documented_fields() {
    let w = World::new();
    let agent = w.agent("a");
    w.spawn_loop("agent", &agent, &["--done-pattern", "All tasks complete", "--inactivity-timeout", "300"]);
    let state = w.ralph_state("agent");
    let prompt = w.work().join("PROMPT.md").display().to_string();
    for (key, value) in [
        ("worker_name", json!("agent")),
        ("prompt_file", json!(prompt)),
        ("max_iterations", json!(10)),
        ("current_iteration", json!(1)),
        ("status", json!("running")),
        ("consecutive_failures", json!(0)),
        ("total_failures", json!(0)),
        ("done_pattern", json!("All tasks complete")),
        ("inactivity_timeout", json!(300)),
    ] {
        assert_eq!(state[key], value, "{key} in {state}");
    }
    for key in ["started", "last_iteration_started"] {
        let text = state[key].as_str().unwrap();
        assert!(
            text.len() == 26 && chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.6f").is_ok(),
            "{text}"
        );
    }
}

#[test]
fn record_state_and_pid_are_there_when_spawn_returns() {
    let w = World::new();
    let agent = w.agent("a");
    let args = w.loop_args("agent", &agent, &["-d"]);
    w.swarm(&args).ok();
    assert_eq!(w.ralph_state("agent")["status"], "running");
    let record = fs::read_to_string(w.swarm_dir().join("workers/agent.json")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    assert_eq!(record["name"], "agent");
    assert_eq!(
        (&record["metadata"]["ralph"], &record["metadata"]["ralph_iteration"]),
        (&json!(true), &json!(1))
    );
    assert!(w.status("agent")["pid"].is_u64());
}

#[test]
fn ralph_requires_no_tmux_flag_and_accepts_one() {
    let w = World::new();
    let (one, two) = (w.agent("a"), w.agent("b"));
    w.spawn_loop("one", &one, &[]);
    w.spawn_loop("two", &two, &["--tmux"]);
    for name in ["one", "two"] {
        assert!(w.status(name)["tmux"]["pane"].as_str().unwrap().starts_with('%'));
    }
}

#[test]
fn iteration_restart_on_agent_exit_reads_the_prompt_again() {
    let w = World::new();
    let mut agent = w.agent("a");
    let follower = w.follow_loop("agent", &agent, &[]);
    w.write("PROMPT.md", "Do task B\n");
    agent.tell("exit 0");
    agent.until_run(&w, 2);
    follower.until_says(&w, "[ralph] agent: starting iteration 2/10\n");
    follower.says("[ralph] agent: iteration 1 completed (exit: 0, duration: ");
    assert_eq!((agent.prompt(1).as_str(), agent.prompt(2).as_str()), ("Do task A\n", "Do task B\n"));
    let ls = w.swarm(&["ls", "--format", "json"]).ok().json();
    assert_eq!(
        (&ls[0]["metadata"]["ralph"], &ls[0]["metadata"]["ralph_iteration"]),
        (&json!(true), &json!(2))
    );
    let log: Vec<String> = w.iterations_log("agent").lines().map(|l| without_time(l).to_owned()).collect();
    assert_eq!(log[0], "[START] iteration 1/10");
    assert!(log[1].starts_with("[END] iteration 1 exit=0 duration="), "{log:?}");
    assert_eq!(log[2], "[START] iteration 2/10");
}

#[test]
fn inactivity_timeout_kills_the_agent_and_restarts() {
    let w = World::new();
    let agent = w.agent("a");
    let mut agent = agent;
    let follower = w.follow_loop("agent", &agent, &["--inactivity-timeout", "2"]);
    let first = agent.pid(1).unwrap();
    agent.tell("print an answer");
    follower.until_says(&w, "[ralph] agent: inactivity timeout (2s), restarting\n");
    agent.until_run(&w, 2);
    assert!(!is_alive(first));
    let log = w.iterations_log("agent");
    assert!(log.contains("[TIMEOUT] iteration 1 inactivity=2s\n"), "{log}");
    assert!(log.contains("[END] iteration 1 exit=inactivity duration="), "{log}");
    assert_eq!(w.ralph_state("agent")["total_failures"], 0, "it had answered");
}

#[test]
fn inactivity_timeout_is_extended_while_the_agent_uses_cpu() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("agent", &agent, &["--inactivity-timeout", "3"]);
    agent.tell("run echo building; while [ ! -e \"$dir/go\" ]; do :; done & echo $! >\"$dir/busy\"");
    // A descendant computes, the agent itself waits: for ten time-outs at most.
    let extended = "[EXTEND] iteration 1 inactivity=3s reason=computing\n";
    w.until("three time-outs pass", || {
        (w.iterations_log("agent").matches(extended).count() >= 3).then_some(())
    });
    assert_eq!((agent.starts(), &w.status("agent")["status"]), (1, &"running".into()));
    // The agent stops computing and is silent now: that is a hang.
    agent.tell("run touch \"$dir/go\"");
    agent.until_run(&w, 2);
    assert!(w.iterations_log("agent").contains("[TIMEOUT] iteration 1 inactivity=3s\n"));
    w.swarm(&["kill", "agent"]).ok();
}

#[test]
fn done_pattern_stops_loop_with_exit_0() {
    let w = World::new();
    let mut agent = w.agent("a");
    let mut follower = w.follow_loop("agent", &agent, &["--done-pattern", "All tasks complete"]);
    agent.tell("print So: All tasks complete!");
    agent.tell("exit 0");
    assert_eq!(follower.wait(&w), 0);
    follower.says("[ralph] agent: done pattern matched, stopping loop\n");
    assert_eq!(w.ralph_state("agent")["status"], "stopped");
    assert_eq!(agent.starts(), 1);
    let log = w.iterations_log("agent");
    assert!(log.ends_with("[DONE] loop complete after 1 iteration reason=done_pattern\n"), "{log}");
}

#[test]
fn done_pattern_counts_even_when_the_agent_fails() {
    let w = World::new();
    let mut agent = w.agent("a");
    let mut follower = w.follow_loop("agent", &agent, &["--done-pattern", "No remaining tasks"]);
    agent.tell("print No remaining tasks");
    agent.tell("exit 3");
    assert_eq!(follower.wait(&w), 0);
    assert_eq!(w.ralph_state("agent")["status"], "stopped");
}

#[test]
fn done_pattern_in_the_echoed_prompt_does_not_count() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.write("PROMPT.md", "work on it\nsay DONE-7 when all is done\n");
    let mut follower = w.follow_loop("agent", &agent, &["--done-pattern", "DONE-[0-9]"]);
    agent.tell(r#"run cat "$dir/prompt.$n""#);
    agent.tell("exit 0");
    agent.until_run(&w, 2);
    agent.tell(r#"run cat "$dir/prompt.$n""#);
    agent.tell("print I am through: DONE-7");
    agent.tell("exit 0");
    assert_eq!(follower.wait(&w), 0);
    follower.says("[ralph] agent: done pattern matched, stopping loop\n");
    assert_eq!(agent.starts(), 2);
}

#[test]
fn agent_that_stays_alive_after_the_done_pattern_is_ended_once_quiet() {
    let w = World::new();
    let mut agent = w.agent("a");
    let mut follower = w.follow_loop("agent", &agent, &["--done-pattern", "^All tasks complete"]);
    agent.tell("print All tasks complete");
    assert_eq!(follower.wait(&w), 0);
    assert!(!is_alive(agent.pid(1).unwrap()));
    assert_eq!(w.ralph_state("agent")["status"], "stopped");
    let log = w.iterations_log("agent");
    assert!(log.contains("[END] iteration 1 exit=done duration="), "{log}");
}

#[test]
fn done_pattern_uses_python_regex_syntax() {
    let w = World::new();
    let mut agent = w.agent("a");
    let pattern = r"(?P<what>task)s: (?!0 )\d+ done, (?P=what)s left: 0(?<=0)$";
    let mut follower = w.follow_loop("agent", &agent, &["--done-pattern", pattern]);
    agent.tell("print tasks: 0 done, tasks left: 0");
    agent.tell("exit 0");
    agent.until_run(&w, 2);
    agent.tell("print tasks: 7 done, tasks left: 0");
    agent.tell("exit 0");
    assert_eq!(follower.wait(&w), 0);
    assert_eq!(agent.starts(), 2);
}

#[test]
fn max_iterations_reached_ends_the_loop_with_exit_0() {
    let w = World::new();
    let mut agent = w.agent("a");
    let mut follower = w.follow_loop("agent", &agent, &["-n", "2"]);
    agent.tell("exit 0");
    agent.until_run(&w, 2);
    agent.tell("exit 0");
    assert_eq!(follower.wait(&w), 0);
    follower.says("[ralph] agent: loop complete after 2 iterations\n");
    let state = w.ralph_state("agent");
    assert_eq!((&state["status"], &state["current_iteration"]), (&json!("stopped"), &json!(2)));
    assert_eq!(agent.starts(), 2);
    assert!(
        w.iterations_log("agent")
            .ends_with("[DONE] loop complete after 2 iterations reason=max_iterations\n")
    );
}

#[test]
fn consecutive_failures_trigger_backoff_of_1_2_4_seconds() {
    let w = World::new();
    let mut agent = w.agent("a");
    let follower = w.follow_loop("agent", &agent, &[]);
    for run in 1..=3 {
        agent.until_run(&w, run);
        agent.tell("exit 1");
    }
    for (n, wait) in [(1, 1), (2, 2), (3, 4)] {
        let line =
            format!("[ralph] agent: iteration {n} failed (exit: 1), retrying in {wait}s (attempt {n}/5)\n");
        follower.until_says(&w, &line);
        w.until_logged("agent", &format!("[FAIL] iteration {n} exit=1 attempt={n}/5 backoff={wait}s\n"));
    }
    let log = w.iterations_log("agent");
    let at = |text: &str| seconds(log.lines().find(|l| l.contains(text)).unwrap());
    for (n, wait) in [(1, 1), (2, 2)] {
        let took = (at(&format!("[START] iteration {}/", n + 1)) + 86_400
            - at(&format!("[FAIL] iteration {n} ")))
            % 86_400;
        assert!((wait..wait + 30).contains(&took), "{log}");
    }
    let state = w.ralph_state("agent");
    assert_eq!((&state["consecutive_failures"], &state["total_failures"]), (&json!(3), &json!(3)));
    assert_eq!(w.status("agent")["status"], "retrying");
}

#[test]
fn five_consecutive_failures_stop_the_loop_with_exit_1() {
    let w = World::new();
    let mut agent = w.agent("a");
    let mut follower = w.follow_loop("agent", &agent, &[]);
    for run in 1..=5 {
        agent.until_run(&w, run);
        agent.tell("exit 1");
        if run < 5 {
            w.until("the failure is counted", || {
                (w.ralph_state("agent")["consecutive_failures"] == run).then_some(())
            });
            // Both at once ends the wait, and the count of failures stays.
            w.swarm(&["ralph", "pause", "agent"]).ok();
            w.swarm(&["ralph", "resume", "agent"]).ok();
        }
    }
    assert_eq!(follower.wait(&w), 1);
    follower.says("[ralph] agent: 5 consecutive failures, stopping loop\n");
    assert_eq!(w.ralph_state("agent")["status"], "failed");
    assert_eq!(agent.starts(), 5);
    assert_eq!(w.status("agent")["status"], "failed");
}

#[test]
fn a_successful_iteration_resets_the_consecutive_failures() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("agent", &agent, &[]);
    agent.tell("exit 1");
    agent.until_run(&w, 2);
    agent.tell("exit 0");
    agent.until_run(&w, 3);
    let state = w.ralph_state("agent");
    assert_eq!((&state["consecutive_failures"], &state["total_failures"]), (&json!(0), &json!(1)));
}

#[test]
fn a_signal_that_swarm_did_not_send_is_a_failure() {
    let w = World::new();
    let mut agent = w.agent("a");
    let follower = w.follow_loop("agent", &agent, &[]);
    agent.tell("signal KILL");
    follower
        .until_says(&w, "[ralph] agent: iteration 1 failed (exit: signal-9), retrying in 1s (attempt 1/5)\n");
}

#[test]
fn pause_lets_the_current_agent_finish_and_starts_no_other() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("agent", &agent, &[]);
    let ran = w.swarm(&["ralph", "pause", "agent"]).ok();
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("paused ralph loop for agent\n", ""));
    assert_eq!(w.ralph_state("agent")["status"], "paused");
    assert!(is_alive(agent.pid(1).unwrap()));
    assert_eq!(w.status("agent")["status"], "running");
    agent.tell("exit 0");
    w.until_status("agent", "paused");
    assert_eq!(agent.starts(), 1);
    let state = w.ralph_state("agent");
    assert_eq!((&state["status"], &state["current_iteration"]), (&json!("paused"), &json!(1)));
    assert!(w.iterations_log("agent").contains("[PAUSE]\n"));
}

#[test]
fn while_paused_inactivity_never_kills() {
    let w = World::new();
    let agent = w.agent("a");
    let other = w.agent("b");
    w.spawn_loop("agent", &agent, &["--inactivity-timeout", "1"]);
    w.swarm(&["ralph", "pause", "agent"]).ok();
    let before = agent.starts();
    // A second loop, started later, measures the time: it was restarted, the paused one was not.
    w.spawn_loop("other", &other, &["--inactivity-timeout", "1"]);
    other.until_run(&w, 2);
    assert!(is_alive(agent.pid(before).unwrap()));
    assert_eq!(agent.starts(), before);
}

#[test]
fn resume_starts_the_next_iteration_when_no_agent_runs() {
    let w = World::new();
    let mut agent = w.agent("a");
    let follower = w.follow_loop("agent", &agent, &[]);
    w.swarm(&["ralph", "pause", "agent"]).ok();
    agent.tell("exit 0");
    w.until_status("agent", "paused");
    let ran = w.swarm(&["ralph", "resume", "agent"]).ok();
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("resumed ralph loop for agent\n", ""));
    assert_eq!(w.ralph_state("agent")["status"], "running");
    agent.until_run(&w, 2);
    follower.until_says(&w, "[ralph] agent: starting iteration 2/10\n");
    assert!(w.iterations_log("agent").contains("[RESUME]\n"));
}

#[test]
fn resume_keeps_watching_an_agent_that_is_still_alive() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("agent", &agent, &[]);
    w.swarm(&["ralph", "pause", "agent"]).ok();
    w.swarm(&["ralph", "resume", "agent"]).ok().says("resumed ralph loop for agent\n");
    assert_eq!(agent.starts(), 1);
    agent.tell("exit 0");
    agent.until_run(&w, 2);
    assert_eq!(w.ralph_state("agent")["current_iteration"], 2);
}

#[test]
fn pause_during_backoff_stops_the_wait_at_once() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("agent", &agent, &[]);
    for run in 1..=3 {
        agent.until_run(&w, run);
        agent.tell("exit 1");
    }
    w.until_logged("agent", "backoff=4s");
    w.swarm(&["ralph", "pause", "agent"]).ok();
    let status = w.status("agent");
    assert_eq!((&status["status"], &status["paused_by"]), (&json!("paused"), &json!("user")));
    w.swarm(&["ralph", "resume", "agent"]).ok();
    agent.until_run(&w, 4);
    assert_eq!(w.ralph_state("agent")["consecutive_failures"], 3);
}

#[test]
fn status_page_is_exactly_the_documented_one() {
    let w = World::new();
    let (one, two) = (w.agent("a"), w.agent("b"));
    w.spawn_loop("agent", &one, &["-n", "100"]);
    w.spawn_loop("other", &two, &["--done-pattern", "All tasks complete", "--inactivity-timeout", "300"]);
    let page = |name: &str, n: u32, timeout: u32, more: &str| {
        let state = w.ralph_state(name);
        let time = |key: &str| state[key].as_str().unwrap()[..19].replace('T', " ");
        format!(
            "Ralph Loop: {name}\nStatus: running\nIteration: 1/{n}\nStarted: {}\nCurrent iteration started: {}\n\
             Consecutive failures: 0\nTotal failures: 0\nInactivity timeout: {timeout}s\n{more}",
            time("started"),
            time("last_iteration_started"),
        )
    };
    assert_eq!(w.swarm(&["ralph", "status", "agent"]).ok().out, page("agent", 100, 60, ""));
    let with_pattern = page("other", 10, 300, "Done pattern: All tasks complete\n");
    assert_eq!(w.swarm(&["ralph", "status", "other"]).ok().out, with_pattern);
}

#[test]
fn a_relative_prompt_path_is_resolved_at_spawn_time() {
    let w = World::new();
    let agent = w.agent("a");
    fs::create_dir_all(w.work().join("sub/deeper")).unwrap();
    w.write("sub/P.md", "from afar\n");
    let mut command = w.command(crate::world::SWARM);
    command.current_dir(w.work().join("sub")).args([
        "spawn",
        "--name",
        "agent",
        "--ralph",
        "-d",
        "--prompt-file",
        "P.md",
    ]);
    command.args(["--cwd", "deeper", "-n", "3", "--"]).args(agent.command());
    w.run(command).ok();
    agent.until_run(&w, 1);
    assert_eq!(agent.prompt(1), "from afar\n");
    assert_eq!(w.ralph_state("agent")["prompt_file"], json!(w.work().join("sub/P.md")));
    assert_eq!(w.status("agent")["cwd"], json!(w.work().join("sub/deeper")));
}

#[test]
fn an_empty_prompt_file_is_allowed() {
    let w = World::new();
    let agent = w.agent("a");
    w.write("PROMPT.md", "");
    w.spawn_loop("agent", &agent, &[]);
    assert!(agent.has("prompt.1"), "standard input was no file");
    assert_eq!(agent.prompt(1), "");
}

#[test]
fn several_loops_run_at_once() {
    let w = World::new();
    let mut agents: Vec<_> = ["a", "b", "c"].map(|n| (n, w.agent(n))).into();
    for (name, agent) in &agents {
        w.spawn_loop(name, agent, &[]);
    }
    for (_, agent) in &mut agents {
        agent.tell("exit 0");
    }
    for (name, agent) in &agents {
        agent.until_run(&w, 2);
        assert_eq!(w.ralph_state(name)["current_iteration"], 2);
        assert_eq!(agent.starts(), 2);
    }
}

#[test]
fn killing_a_loop_stops_it() {
    let w = World::new();
    let agent = w.agent("a");
    let mut follower = w.follow_loop("agent", &agent, &[]);
    w.swarm(&["kill", "agent"]).ok().says("killed agent\n");
    assert!(!is_alive(agent.pid(1).unwrap()));
    assert_eq!(w.ralph_state("agent")["status"], "stopped");
    assert_eq!(follower.wait(&w), 1);
    assert_eq!(agent.starts(), 1);
}

#[test]
fn killing_a_paused_loop_stops_it() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("agent", &agent, &[]);
    w.swarm(&["ralph", "pause", "agent"]).ok();
    agent.tell("exit 0");
    w.until_status("agent", "paused");
    w.swarm(&["kill", "agent"]).ok();
    assert_eq!(w.ralph_state("agent")["status"], "stopped");
}

#[test]
fn a_name_used_again_archives_the_old_loop() {
    let w = World::new();
    let (one, two, three) = (w.agent("a"), w.agent("b"), w.agent("c"));
    w.spawn_loop("agent", &one, &["-n", "5"]);
    w.swarm(&["kill", "agent"]).ok();
    w.spawn_loop("agent", &two, &["-n", "6"]);
    w.swarm(&["kill", "agent"]).ok();
    w.spawn_loop("agent", &three, &["-n", "7"]);
    for (dir, max) in [("agent.1", 5), ("agent.2", 6), ("agent", 7)] {
        assert_eq!(w.ralph_state(dir)["max_iterations"], max, "{dir}");
        assert!(w.iterations_log(dir).contains(&format!("[START] iteration 1/{max}\n")), "{dir}");
    }
}

#[test]
fn name_of_a_live_loop_is_refused() {
    let w = World::new();
    let (one, two) = (w.agent("a"), w.agent("b"));
    w.spawn_loop("agent", &one, &[]);
    w.swarm(&w.loop_args("agent", &two, &["-d"]))
        .code(1)
        .warns("swarm: error: worker 'agent' already exists (running)\n");
    assert_eq!((one.starts(), two.starts()), (1, 0));
}

#[test]
fn max_iterations_edited_in_the_state_file_is_used() {
    let w = World::new();
    let mut agent = w.agent("a");
    let mut follower = w.follow_loop("agent", &agent, &["-n", "9"]);
    edit_state(&w, "agent", |state| state["max_iterations"] = json!(2));
    agent.tell("exit 0");
    agent.until_run(&w, 2);
    follower.until_says(&w, "[ralph] agent: starting iteration 2/2\n");
    agent.tell("exit 0");
    assert_eq!(follower.wait(&w), 0);
    follower.says("[ralph] agent: loop complete after 2 iterations\n");
}

#[test]
fn unknown_keys_in_the_state_file_survive() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("agent", &agent, &[]);
    edit_state(&w, "agent", |state| state["note"] = json!({"mine": [1, 2]}));
    agent.tell("exit 0");
    agent.until_run(&w, 2);
    let state = w.ralph_state("agent");
    assert_eq!((&state["note"], &state["current_iteration"]), (&json!({"mine": [1, 2]}), &json!(2)));
}

#[test]
fn broken_state_file_is_set_aside_and_the_loop_continues() {
    let w = World::new();
    let mut agent = w.agent("a");
    let follower = w.follow_loop("agent", &agent, &[]);
    let dir = w.swarm_dir().join("ralph/agent");
    fs::write(dir.join("state.json"), "{ \"max_iter").unwrap();
    agent.tell("exit 0");
    agent.until_run(&w, 2);
    assert_eq!(w.ralph_state("agent")["current_iteration"], 2);
    let aside: Vec<_> = fs::read_dir(&dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.display().to_string().contains("state.json.corrupt-"))
        .collect();
    assert_eq!(aside.len(), 1, "{aside:?}");
    assert_eq!(fs::read_to_string(&aside[0]).unwrap(), "{ \"max_iter");
    follower.until_says(&w, "[ralph] agent: warning: ");
    follower.says("state.json.corrupt-");
}

#[test]
fn a_state_file_removed_mid_loop_is_written_again() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("agent", &agent, &[]);
    fs::remove_dir_all(w.swarm_dir().join("ralph/agent")).unwrap();
    agent.tell("exit 0");
    agent.until_run(&w, 2);
    assert_eq!(w.ralph_state("agent")["current_iteration"], 2);
}

#[test]
fn removing_the_ralph_directory_of_a_stopped_loop_cleans_it_up() {
    let w = World::new();
    let (one, two) = (w.agent("a"), w.agent("b"));
    w.spawn_loop("agent", &one, &[]);
    w.swarm(&["kill", "agent"]).ok();
    fs::remove_dir_all(w.swarm_dir().join("ralph/agent")).unwrap();
    w.swarm(&["ralph", "status", "agent"]).ok().says("Status: stopped\n");
    w.swarm(&["ls"]).ok();
    w.spawn_loop("agent", &two, &[]);
    assert!(!w.swarm_dir().join("ralph/agent.1").exists());
    assert_eq!(w.ralph_state("agent")["status"], "running");
}

#[test]
fn ralph_set_changes_a_running_loop() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.write("OTHER.md", "Do the other thing\n");
    let mut follower = w.follow_loop("agent", &agent, &[]);
    let set = ["ralph", "set", "agent", "max_iterations=2", "done_pattern=FIN", "prompt_file=OTHER.md"];
    w.swarm(&set).ok().says("set max_iterations=2 for agent\n");
    let state = w.ralph_state("agent");
    assert_eq!((&state["max_iterations"], &state["done_pattern"]), (&json!(2), &json!("FIN")));
    agent.tell("exit 0");
    agent.until_run(&w, 2);
    assert_eq!(agent.prompt(2), "Do the other thing\n");
    agent.tell("exit 0");
    assert_eq!(follower.wait(&w), 0);
}

#[test]
fn a_loop_works_in_a_worktree() {
    let w = World::new();
    let mut agent = w.agent("a");
    let repo = w.repo("work/repo");
    let repo = repo.to_str().unwrap();
    w.spawn_loop("agent", &agent, &["--worktree", "--cwd", repo]);
    let tree = w.work().join("repo-worktrees/agent");
    let status = w.status("agent");
    assert_eq!(status["worktree"], json!({"path": tree, "branch": "swarm/agent", "base_repo": repo}));
    agent.tell("run pwd >\"$dir/pwd.$n\"; git commit -q --allow-empty -m work");
    agent.tell("exit 0");
    agent.until_run(&w, 2);
    agent.tell("run pwd >\"$dir/pwd.$n\"; git log --format=%s >\"$dir/log\"");
    w.until("the second run looked", || agent.file("log").starts_with("work\n").then_some(()));
    for run in [1, 2] {
        assert_eq!(agent.file(&format!("pwd.{run}")), format!("{}\n", tree.display()));
    }
}

#[test]
fn loop_state_survives_a_daemon_crash_and_the_loop_continues() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("agent", &agent, &[]);
    w.crash_daemon();
    assert_eq!(w.ralph_state("agent")["status"], "running");
    w.swarm(&["ralph", "status", "agent"]).ok().says("Iteration: 1/10\n");
    assert!(is_alive(agent.pid(1).unwrap()));
    agent.tell("exit 0");
    agent.until_run(&w, 2);
    w.crash_daemon();
    agent.tell("exit 0");
    w.swarm(&["ralph", "status", "agent"]).ok();
    agent.until_run(&w, 3);
    assert_eq!(w.ralph_state("agent")["current_iteration"], 3);
    assert_eq!(agent.starts(), 3);
}

#[test]
fn a_lost_loop_resumes_with_the_same_iteration() {
    let w = World::new();
    let mut agent = w.agent("a");
    let mut follower = w.follow_loop("agent", &agent, &[]);
    agent.tell("exit 0");
    agent.until_run(&w, 2);
    w.tmux(&["kill-server"]).ok();
    assert_eq!(follower.wait(&w), 1);
    follower.says("swarm ralph resume agent");
    let status = w.until_status("agent", "lost");
    assert_eq!(status["paused_by"], Value::Null);
    assert_eq!(w.ralph_state("agent")["status"], "running");
    w.swarm(&["status", "agent"]).code(1);
    w.swarm(&["ralph", "resume", "agent"]).ok().says("resumed ralph loop for agent\n");
    agent.until_run(&w, 3);
    assert_eq!(w.ralph_state("agent")["current_iteration"], 2);
    assert_eq!(w.status("agent")["metadata"]["ralph_iteration"], 2);
}

#[test]
fn pause_survives_a_daemon_crash() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("agent", &agent, &[]);
    w.swarm(&["ralph", "pause", "agent"]).ok();
    w.crash_daemon();
    agent.tell("exit 0");
    w.until_status("agent", "paused");
    assert_eq!((w.ralph_state("agent")["status"].as_str(), agent.starts()), (Some("paused"), 1));
    w.swarm(&["ralph", "resume", "agent"]).ok();
    agent.until_run(&w, 2);
}

#[test]
fn pause_survives_a_daemon_restart() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("agent", &agent, &[]);
    w.swarm(&["ralph", "pause", "agent"]).ok();
    agent.tell("exit 0");
    w.until_status("agent", "paused");
    w.swarm(&["daemon", "restart"]).ok();
    let status = w.status("agent");
    assert_eq!((&status["status"], &status["paused_by"]), (&json!("paused"), &json!("user")));
    assert_eq!(agent.starts(), 1);
    w.swarm(&["ralph", "resume", "agent"]).ok();
    agent.until_run(&w, 2);
    assert_eq!(w.ralph_state("agent")["current_iteration"], 2);
}

#[test]
fn vanished_pane_is_a_failure_and_the_loop_continues() {
    let w = World::new();
    let (agent, other) = (w.agent("a"), w.agent("b"));
    w.spawn_loop("other", &other, &[]);
    let follower = w.follow_loop("agent", &agent, &[]);
    w.tmux(&["kill-window", "-t", "=swarm:agent"]).ok();
    follower.until_says(&w, "[ralph] agent: iteration 1 failed (exit: lost), retrying in 1s (attempt 1/5)\n");
    agent.until_run(&w, 2);
    assert!(!is_alive(agent.pid(1).unwrap()));
    assert_eq!(other.starts(), 1);
}

#[test]
fn agent_has_no_tmux_variables_and_its_worker_name() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("agent", &agent, &[]);
    agent.tell("run env >\"$dir/env\"; echo ok >\"$dir/ok\"");
    w.until("the agent wrote its environment", || (agent.file("ok") == "ok\n").then_some(()));
    let env = agent.file("env");
    assert!(!env.lines().any(|l| l.starts_with("TMUX")), "{env}");
    assert!(env.contains("SWARM_WORKER=agent\n"), "{env}");
}

#[test]
fn backoff_does_not_count_toward_inactivity() {
    let w = World::new();
    w.write("PROMPT.md", "x");
    let flags = ["--inactivity-timeout", "1", "-n", "9", "-d", "--", "sh", "-c", "exit 1"];
    let args: Vec<&str> = ["spawn", "--name", "agent", "--ralph", "--prompt-file", "PROMPT.md"]
        .into_iter()
        .chain(flags)
        .collect();
    w.swarm(&args).ok();
    w.until_logged("agent", "[FAIL] iteration 3 exit=1 attempt=3/5 backoff=4s\n");
    let log = w.iterations_log("agent");
    assert!(!log.contains("[TIMEOUT]"), "{log}");
}

#[test]
fn ready_wait_is_implicit_a_pasted_prompt_comes_when_the_agent_is_ready() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("agent", &agent, &["--prompt-via", "paste"]);
    assert_eq!(w.status("agent")["status"], "starting");
    agent.tell("run printf '> '");
    agent.tell("ask");
    w.until("the prompt was taken", || (agent.file("asked.1") == "Do task A\n").then_some(()));
    w.until_status("agent", "running");
}

#[test]
fn pause_kill_and_spawn_again_changes_the_limit() {
    let w = World::new();
    let (one, two) = (w.agent("a"), w.agent("b"));
    w.spawn_loop("agent", &one, &["-n", "10"]);
    w.swarm(&["ralph", "pause", "agent"]).ok();
    w.swarm(&["kill", "agent"]).ok();
    w.spawn_loop("agent", &two, &["-n", "20"]);
    let state = w.ralph_state("agent");
    assert_eq!(
        (&state["max_iterations"], &state["current_iteration"], &state["status"]),
        (&json!(20), &json!(1), &json!("running"))
    );
}

#[test]
fn the_dashboard_example_shows_loops_and_plain_workers() {
    let w = World::new();
    let (one, two) = (w.agent("a"), w.agent("b"));
    w.spawn_loop("agent", &one, &[]);
    w.spawn_agent("plain", &two, &[]);
    let mut shell = w.command("sh");
    let swarm = crate::world::SWARM;
    shell.arg("-c").arg(format!(
        "for w in $({swarm} ls --format names); do echo \"=== $w ===\"; \
         {swarm} ralph status $w 2>/dev/null || {swarm} status $w; done"
    ));
    let ran = w.run(shell).ok();
    assert!(ran.out.starts_with("=== agent ===\nRalph Loop: agent\nStatus: running\n"), "{}", ran.out);
    assert!(ran.out.contains("\n=== plain ===\nplain: running\n"), "{}", ran.out);
}

#[test]
fn ralph_init_writes_the_prompt_and_the_tasks_once() {
    let w = World::new();
    let read = |file: &str| fs::read_to_string(w.work().join(file)).unwrap();
    let ran = w.swarm(&["ralph", "init"]).ok();
    assert_eq!(ran.out, "created PROMPT.md\n");
    assert!(ran.err.starts_with("created TODO.md "), "{}", ran.err);
    assert_eq!(read("PROMPT.md"), PROMPT_TEMPLATE);
    assert_eq!(read("TODO.md"), TODO_TEMPLATE);
    w.write("PROMPT.md", "mine");
    w.write("TODO.md", "- [x] mine\n");
    let ran = w.swarm(&["ralph", "init"]).code(1);
    assert_eq!(ran.err, "swarm: error: PROMPT.md already exists (use --force to overwrite)\n");
    assert_eq!(read("PROMPT.md"), "mine");
    let ran = w.swarm(&["ralph", "init", "--force"]).ok();
    assert_eq!(ran.out, "created PROMPT.md (overwritten)\n");
    assert!(ran.err.starts_with("kept the existing TODO.md"), "{}", ran.err);
    assert_eq!(read("PROMPT.md"), PROMPT_TEMPLATE);
    assert_eq!(read("TODO.md"), "- [x] mine\n");
}

#[test]
fn a_loop_of_ralph_init_runs_as_printed_until_all_tasks_are_checked_off() {
    let w = World::new();
    let bin = w.path("bin");
    fs::create_dir(&bin).unwrap();
    let claude = bin.join("claude");
    // Each run checks off the first open task. The run that finds none left prints the text of the prompt's last line.
    let script = "#!/bin/sh\nprompt=$(cat)\necho \"$prompt\"\necho \"args: $*\" >>args\n\
        n=$(grep -n '\\[ \\]' TODO.md | head -1 | cut -d: -f1)\nsed -i \"${n}s/\\[ \\]/[x]/\" TODO.md\n\
        grep -q '\\[ \\]' TODO.md || printf '%s\\n' \"$prompt\" | sed -n '$s/.*print: //p'\n";
    fs::write(&claude, script).unwrap();
    fs::set_permissions(&claude, fs::Permissions::from_mode(0o700)).unwrap();
    let err = w.swarm(&["ralph", "init"]).ok().err;
    let printed = &err[err.find("  swarm spawn ").expect(&err)..];
    let mut shell = w.command("sh");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let own = std::path::Path::new(crate::world::SWARM).parent().unwrap().display();
    shell.arg("-c").arg(printed).env("PATH", format!("{own}:{path}"));
    let ran = w.run(shell).ok();
    assert!(ran.out.contains(": done pattern matched, stopping loop\n"), "{}", ran.out);
    assert!(
        ran.out.contains("starting iteration 2/10\n") && !ran.out.contains("iteration 3/10"),
        "{}",
        ran.out
    );
    let args = fs::read_to_string(w.work().join("args")).unwrap();
    assert!(args.lines().all(|line| line.contains("--dangerously-skip-permissions")), "{args}");
    assert!(!fs::read_to_string(w.work().join("TODO.md")).unwrap().contains("[ ]"));
}

#[test]
fn ralph_template_prints_and_writes_nothing_and_starts_no_daemon() {
    let w = World::new();
    let ran = w.swarm(&["ralph", "template"]).ok();
    assert_eq!((ran.out.as_str(), ran.err.as_str()), (PROMPT_TEMPLATE, ""));
    assert_eq!(fs::read_dir(w.work()).unwrap().count(), 0);
    assert_eq!(w.daemon_pid(), None);
}

#[test]
fn template_written_to_another_file_works_as_prompt() {
    let w = World::new();
    let agent = w.agent("a");
    let mut shell = w.command("sh");
    shell.arg("-c").arg(format!("{} ralph template > BUILD_PROMPT.md", crate::world::SWARM));
    w.run(shell).ok();
    let mut args: Vec<String> =
        ["spawn", "--ralph", "-d", "--name", "agent", "--prompt-file", "BUILD_PROMPT.md", "-n", "1", "--"]
            .map(str::to_owned)
            .into();
    args.extend(agent.command());
    w.swarm(&args).ok();
    agent.until_run(&w, 1);
    assert_eq!(agent.prompt(1), PROMPT_TEMPLATE);
}

#[test]
fn kill_ends_an_agent_that_ignores_sighup_and_sigterm() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("agent", &agent, &[]);
    agent.tell("run trap '' HUP TERM; echo ok >\"$dir/ok\"");
    w.until("the traps are set", || (agent.file("ok") == "ok\n").then_some(()));
    w.swarm(&["kill", "agent"]).ok().says("killed agent (by force: ");
    assert!(!is_alive(agent.pid(1).unwrap()));
}

/// Edits a loop's state file as an editor would.
fn edit_state(w: &World, name: &str, edit: impl FnOnce(&mut Value)) {
    let path = w.swarm_dir().join(format!("ralph/{name}/state.json"));
    let mut state = w.ralph_state(name);
    edit(&mut state);
    fs::write(path, serde_json::to_string_pretty(&state).unwrap()).unwrap();
}
