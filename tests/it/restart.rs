//! `spawn --restart`: a plain worker that is started again, under faults of every kind.
//!
//! Gaps are read from what the agents wrote down themselves, and only ever bounded from below: a busy machine
//! may take longer, never less.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::world::{SWARM, World, is_alive, signal};

/// Writes down when it ran, in milliseconds, and fails.
const FAILS: &str = "date +%s%3N >>rec; exit 1";

/// Milliseconds between the runs that a file tells of.
fn gaps(world: &World) -> Vec<u64> {
    let times: Vec<u64> = world.lines("work/rec").iter().map(|line| line.parse().unwrap()).collect();
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Waits until a file of the work directory has so many lines.
#[track_caller]
fn until_lines(world: &World, file: &str, count: usize) {
    world.until(&format!("{file} has {count} lines"), || {
        (world.lines(format!("work/{file}")).len() >= count).then_some(())
    });
}

/// Waits until at least so many failures in a row are counted and the next run is waited for. A busy machine may miss a
/// short wait; each wait is longer than the one before.
#[track_caller]
fn until_failed(world: &World, name: &str, failures: u64) -> Value {
    let mut poll = world.status_poll(name);
    world.until(&format!("{name} waits after failure {failures}"), || {
        let status = poll.look();
        let enough = status["restart"]["failures"].as_u64() >= Some(failures);
        (status["status"] == "retrying" && enough).then_some(status)
    })
}

#[test]
fn repeatedly_failing_worker_waits_longer_and_is_given_up() {
    let w = World::new();
    let _ = w.spawn_sh("w", &["--restart", "always", "--max-restarts", "3"], FAILS).ok();
    let status = w.until_status("w", "failed");
    assert_eq!(status["reason"], "gave up after 3 restarts: exit status 1");
    assert_eq!(status["cause"]["failure"], "exit status 1");
    assert_eq!((&status["restarts"], &status["exit_code"]), (&json!(3), &json!(1)));
    let gaps = gaps(&w);
    assert_eq!(gaps.len(), 3, "{gaps:?}");
    for (gap, least) in gaps.iter().zip([1000, 2000, 4000]) {
        assert!(*gap >= least, "{gaps:?}");
    }
    let _ = w.swarm(&["status", "w"]).code(1).says("reason     gave up after 3 restarts");
    let log = w.swarm(&["logs", "w", "--history"]).ok().out;
    for run in 1..=4 {
        assert!(log.contains(&format!("=== run {run}, ended ")), "{log}");
    }
    assert!(w.panes().is_empty(), "{}", w.report());
}

#[test]
fn status_shows_the_restart_policy_and_the_wait() {
    let w = World::new();
    let _ = w.spawn_sh("w", &["--restart", "on-failure"], FAILS).ok();
    let status = until_failed(&w, "w", 2);
    let restart = &status["restart"];
    assert_eq!((&restart["when"], &restart["max_restarts"]), (&json!("on-failure"), &json!(10)));
    let next = chrono::DateTime::parse_from_rfc3339(restart["next"].as_str().unwrap()).unwrap();
    let (failures, next) = (&restart["failures"], next.format("%H:%M:%S"));
    assert_eq!(status["reason"], format!("exit status 1, restart {failures}/10 at {next}"));
    let page = w.swarm(&["status", "w"]).ok().out;
    let shown = page.contains("restart    on-failure (failed in a row: ")
        && page.contains(", at most 10 restarts)\n");
    assert!(shown, "{page}");
    let listed = w.swarm(&["ls", "--format", "json"]).ok().json();
    assert_eq!(listed[0]["restart"]["when"], "on-failure");
    let _ = w.swarm(&["kill", "w"]).ok();
}

#[test]
fn restart_wait_and_count_survive_a_stopped_and_a_killed_daemon() {
    let w = World::new();
    let _ = w.spawn_sh("w", &["--restart", "always"], FAILS).ok();
    until_failed(&w, "w", 3);
    let _ = w.swarm(&["daemon", "stop"]).ok();
    let before = w.lines("work/rec").len() as u64;
    w.start_daemon();
    // The worker goes on waiting, and nobody has to resume it.
    let status = until_failed(&w, "w", before + 1);
    let failures = status["restart"]["failures"].as_u64().unwrap();
    assert_eq!(status["restarts"], failures - 1);
    w.crash_daemon();
    w.start_daemon();
    let status = w.status("w");
    assert!(status["restart"]["failures"].as_u64() >= Some(failures), "{status}");
    until_lines(&w, "rec", before as usize + 2);
    let gaps = gaps(&w);
    for (gap, least) in gaps.iter().zip([1000, 2000, 4000, 8000]) {
        assert!(*gap >= least, "{gaps:?}");
    }
    let _ = w.swarm(&["kill", "w"]).ok();
}

#[test]
fn killed_worker_is_not_restarted() {
    let w = World::new();
    let names: Vec<String> = (0..20).map(|i| format!("w{i}")).collect();
    for (i, name) in names.iter().enumerate() {
        // They end at all moments of the kills to come: while they run, are judged, wait, start again.
        let script = format!("echo $$ >>{name}; sleep 0.{}; exit 1", i % 10);
        let _ = w.spawn_sh(name, &["--restart", "always", "-d"], &script).ok();
    }
    let mut left = Vec::new();
    for name in &names {
        let _ = w.swarm(&["kill", name]).ok();
        left.push(w.lines(format!("work/{name}")).len());
    }
    // A worker that does go on, for longer than any of them could have been waiting.
    let _ = w.spawn_sh("clock", &["--restart", "always"], "echo >>ticks; exit 1").ok();
    until_lines(&w, "ticks", 4);
    for (name, left) in names.iter().zip(left) {
        let status = w.status(name);
        assert_eq!((&status["status"], &status["reason"]), (&json!("killed"), &json!("killed")), "{name}");
        assert_eq!(w.lines(format!("work/{name}")).len(), left, "{name} ran after its kill had returned");
    }
    let _ = w.swarm(&["kill", "clock"]).ok();
    assert!(w.panes().is_empty(), "{}", w.report());
}

#[test]
fn kill_between_two_runs_prevents_the_restart() {
    let w = World::new();
    let _ = w.spawn_sh("w", &["--restart", "always"], FAILS).ok();
    until_failed(&w, "w", 2);
    let _ = w.swarm(&["kill", "w"]).ok().says("killed w");
    let runs = w.lines("work/rec").len();
    w.crash_daemon();
    w.start_daemon();
    let status = w.status("w");
    assert_eq!((&status["status"], &status["reason"]), (&json!("killed"), &json!("killed")));
    assert_eq!((&status["restart"]["next"], w.lines("work/rec").len()), (&Value::Null, runs));
}

#[test]
fn exit_0_ends_an_on_failure_worker_and_resets_the_count_of_always() {
    let w = World::new();
    let script = "echo >>$0; [ $(wc -l <$0) -ge 3 ] || exit 9";
    let run = |name: &str, policy: &str| {
        let _ = w.spawn(name, &["--restart", policy], &["sh", "-c", script, name]).ok();
    };
    run("a", "on-failure");
    run("b", "always");
    let status = w.until_status("a", "done");
    assert_eq!((&status["restarts"], &status["exit_code"]), (&json!(2), &json!(0)));
    assert_eq!(w.lines("work/a").len(), 3);
    // The one that always starts again goes on, and counts from nothing.
    until_lines(&w, "b", 5);
    assert_eq!(w.status("b")["restart"]["failures"], 0);
    let _ = w.swarm(&["kill", "b"]).ok();
}

#[test]
fn done_pattern_of_an_earlier_run_does_not_complete_the_next() {
    let w = World::new();
    w.write("rec", "");
    nix::unistd::mkfifo(&w.path("work/go"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let script = "n=$(wc -l <rec); echo r >>rec; [ $n = 0 ] && { echo DONE_X; exit 1; }
echo second; read x <go; echo DONE_X; sleep 600";
    let _ = w.spawn_sh("w", &["--restart", "always", "--done-pattern", "DONE_X"], script).ok();
    until_lines(&w, "rec", 2);
    w.until_status("w", "running");
    // The same pattern ends another one that begins later: by then the second run was looked at as often.
    let mark = ["--done-pattern", "DONE_X"];
    let _ = w.spawn_sh("clock", &mark, "echo DONE_X; sleep 600").ok();
    w.until_status("clock", "done");
    assert_eq!(w.status("w")["status"], "running");
    // Nor after another daemon took it over.
    w.crash_daemon();
    w.start_daemon();
    let _ = w.spawn_sh("clock", &mark, "echo DONE_X; sleep 600").ok();
    w.until_status("clock", "done");
    assert_eq!((&w.status("w")["status"], w.lines("work/rec").len()), (&json!("running"), 2));
    std::fs::write(w.path("work/go"), "x\n").unwrap();
    let status = w.until_status("w", "done");
    assert_eq!((&status["reason"], &status["restarts"]), (&json!("done pattern matched"), &json!(1)));
    assert_eq!(w.lines("work/rec").len(), 2, "what is done is not started again");
}

#[test]
fn a_restart_has_the_environment_of_the_spawn() {
    let w = World::new();
    let script = "echo $FOO/$BAR >>$0; [ $(wc -l <$0) -gt 1 ] || exit 1; sleep 600";
    for (name, foo, flags) in
        [("a", Some("one"), &[][..]), ("b", None, &[]), ("c", Some("one"), &["--env", "FOO=own"])]
    {
        let mut command = w.command(SWARM);
        command.envs(foo.map(|foo| ("FOO", foo))).env("BAR", name);
        command.args(["spawn", "--name", name, "--restart", "on-failure"]).args(flags);
        command.args(["--", "sh", "-c", script, name]);
        let _ = w.run(command).ok();
    }
    // Another daemon, from another environment, and a tmux server that knows neither.
    w.crash_daemon();
    let mut command = w.command(SWARM);
    command.env("FOO", "two").args(["daemon", "start"]);
    let _ = w.run(command).ok();
    for (name, expected) in [("a", "one/a"), ("b", "/b"), ("c", "own/c")] {
        until_lines(&w, name, 2);
        assert_eq!(w.lines(format!("work/{name}")), [expected, expected]);
        let _ = w.swarm(&["kill", name]).ok();
    }
}

#[test]
fn killed_tmux_server_is_one_restart_with_a_policy_else_the_end() {
    let w = World::new();
    let (agents, daemon) = (["no", "on-failure", "always"], w.start_daemon());
    for policy in agents {
        let script = "echo $$ >>$0; sleep 600; true";
        let _ = w.spawn(policy, &["--restart", policy], &["sh", "-c", script, policy]).ok();
        until_lines(&w, policy, 1);
    }
    let first = |policy: &str| w.lines(format!("work/{policy}"))[0].parse::<u32>().unwrap();
    signal(w.tmux_pid(), Signal::SIGKILL);
    let status = w.until_status("no", "lost");
    assert_eq!((&status["exit_code"], &status["restarts"]), (&Value::Null, &json!(0)));
    for policy in ["on-failure", "always"] {
        until_lines(&w, policy, 2);
        let status = w.until_status(policy, "running");
        assert_eq!((&status["restarts"], &status["restart"]["failures"]), (&json!(1), &json!(1)), "{policy}");
    }
    for policy in agents {
        assert!(!is_alive(first(policy)), "{policy}: an agent of the dead server lives");
    }
    assert_eq!((w.panes().len(), w.daemon_pid()), (2, Some(daemon)));
    assert_eq!(w.lines("work/no").len(), 1);
    let _ = w.swarm(&["kill", "--all"]).ok();
    assert_eq!((w.lines("work/on-failure").len(), w.lines("work/always").len()), (2, 2), "once");
}

#[test]
fn unresponsive_tmux_does_not_end_a_worker() {
    let w = World::new();
    let script = "echo $$ >>rec; sleep 600";
    let _ = w.spawn_sh("w", &["--restart", "always"], script).ok();
    until_lines(&w, "rec", 1);
    let server = w.tmux_pid();
    signal(server, Signal::SIGSTOP);
    w.until_status("w", "unreachable");
    w.crash_daemon();
    w.start_daemon();
    w.until_status("w", "unreachable");
    signal(server, Signal::SIGCONT);
    let status = w.until_status("w", "running");
    assert_eq!((&status["restarts"], w.lines("work/rec").len()), (&json!(0), 1));
    let _ = w.swarm(&["kill", "w"]).ok();
}

#[test]
fn vanished_pane_is_a_failure_even_without_a_daemon() {
    let w = World::new();
    let script = "echo $$ >>$0; sleep 600";
    for name in ["a", "b"] {
        let policy: &[&str] = if name == "a" { &["--restart", "on-failure"] } else { &[] };
        let _ = w.spawn(name, policy, &["sh", "-c", script, name]).ok();
        until_lines(&w, name, 1);
    }
    let _ = w.tmux(&["kill-window", "-t", "=swarm:a"]).ok();
    until_lines(&w, "a", 2);
    assert_eq!(w.until_status("a", "running")["restart"]["failures"], 1);
    w.crash_daemon();
    for name in ["a", "b"] {
        let _ = w.tmux(&["kill-window", "-t", &format!("=swarm:{name}")]).ok();
    }
    w.start_daemon();
    until_lines(&w, "a", 3);
    let status = w.until_status("a", "running");
    assert_eq!((&status["restarts"], &status["restart"]["failures"]), (&json!(2), &json!(2)));
    let status = w.until_status("b", "failed");
    assert_eq!((&status["reason"], w.lines("work/b").len()), (&json!("its pane vanished"), 1));
    assert_eq!(w.panes().len(), 1);
    let _ = w.swarm(&["kill", "a"]).ok();
}

/// The wrapper of a run whose server died gives its agent seconds to end. A daemon that starts meanwhile waits
/// for that.
#[test]
fn daemon_start_waits_until_a_previous_run_has_ended() {
    let w = World::new();
    let script = "mkdir lock 2>/dev/null || echo overlap >>bad
trap '' HUP
trap 'rmdir lock; exit 7' TERM
echo $$ >>runs
while :; do sleep 0.1; done";
    for flags in [&["--restart", "on-failure"][..], &["--ralph", "--prompt-file", "p", "-n", "3", "-d"]] {
        w.write("p", "go\n");
        let _ = w.spawn_sh("w", flags, script).ok();
        until_lines(&w, "runs", 1);
        let first: u32 = w.lines("work/runs")[0].parse().unwrap();
        w.crash_daemon();
        signal(w.tmux_pid(), Signal::SIGKILL);
        w.start_daemon();
        assert!(is_alive(first), "it ended at once, which proves nothing");
        if flags[0] == "--ralph" {
            w.until_status("w", "lost");
            let _ = w.swarm(&["ralph", "resume", "w"]).ok();
        }
        until_lines(&w, "runs", 2);
        assert!(!is_alive(first) && w.lines("work/bad").is_empty(), "two at once\n{}", w.report());
        let _ = w.swarm(&["kill", "w"]).ok();
        std::fs::remove_file(w.path("work/runs")).unwrap();
        drop(std::fs::remove_dir(w.path("work/lock")));
    }
}

#[test]
fn processes_of_a_run_are_ended_before_the_next() {
    let w = World::new();
    let script = "sleep 600 & echo $! >>rec; exit 1";
    let _ = w.spawn_sh("w", &["--restart", "on-failure", "--max-restarts", "1"], script).ok();
    w.until_status("w", "failed");
    let pids: Vec<u32> = w.lines("work/rec").iter().map(|line| line.parse().unwrap()).collect();
    assert_eq!((pids.len(), pids.iter().filter(|pid| is_alive(**pid)).count()), (2, 0));
}

#[test]
fn a_first_run_that_cannot_start_leaves_nothing() {
    let w = World::new();
    let empty = w.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let mut git = w.command("git");
    git.current_dir(&empty).args(["init", "-q"]);
    let _ = w.run(git).ok();
    let flags = ["--restart", "always", "--worktree", "--cwd", empty.to_str().unwrap()];
    let _ = w.spawn("w", &flags, &["sleep", "600"]).code(1).warns("no commit yet");
    assert_eq!(w.status("w"), Value::Null);
}

#[test]
fn later_runs_that_cannot_start_are_failures() {
    let w = World::new();
    std::fs::create_dir(w.path("gone")).unwrap();
    let cwd = w.path("gone");
    let flags = ["--restart", "on-failure", "--max-restarts", "2", "--cwd", cwd.to_str().unwrap()];
    let _ = w.spawn_sh("w", &flags, "rmdir \"$PWD\"; exit 1").ok();
    let status = w.until("its want of a directory is told", || {
        let status = w.status("w");
        status["reason"].as_str().is_some_and(|r| r.starts_with("no such directory: ")).then_some(status)
    });
    assert_eq!(status["status"], "retrying");
    let status = w.until_status("w", "failed");
    let reason = status["reason"].as_str().unwrap();
    assert!(reason.starts_with("gave up after 2 restarts: no such directory: "), "{reason}");
    assert_eq!(status["restarts"], 2);
}

#[test]
fn restart_policy_is_refused_for_a_loop() {
    let w = World::new();
    w.write("p", "go\n");
    let flags = ["--ralph", "--prompt-file", "p", "-n", "3", "--restart", "always"];
    let ran = w.spawn("w", &flags, &["sleep", "600"]).code(2).warns("--restart cannot be used with --ralph");
    assert!(ran.err.contains("\nhint: "), "{}", ran.err);
    let _ = w.spawn("w", &["--max-restarts", "3"], &["sleep", "600"]).code(2).warns("--restart");
    let _ = w.spawn("w", &["--restart", "sometimes"], &["sleep", "600"]).code(2).warns("on-failure");
    assert_eq!(w.daemon_pid(), None);
    let _ = w.spawn("w", &["--restart", "no"], &["false"]).ok();
    assert_eq!(w.until_status("w", "failed")["reason"], "exit status 1");
}

#[test]
fn an_interactive_agent_that_dies_gets_its_prompt_again() {
    let w = World::new();
    let rec = format!("REC={}", w.path("work/rec").display());
    let tui = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/fake-tui.pl");
    let flags = ["--restart", "on-failure", "--prompt", "do it", "--prompt-via", "paste", "--env", &rec];
    let _ = w.spawn("w", &flags, &[tui]).ok();
    until_lines(&w, "rec", 1);
    let pid = w.status("w")["pid"].as_u64().unwrap();
    signal(u32::try_from(pid).unwrap(), Signal::SIGKILL);
    until_lines(&w, "rec", 2);
    let status = w.until_status("w", "running");
    assert_eq!((&status["restarts"], &status["restart"]["failures"]), (&json!(1), &json!(1)));
    for line in w.lines("work/rec") {
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["prompt"], "do it");
    }
    let _ = w.swarm(&["kill", "w"]).ok();
    assert_eq!(w.lines("work/rec").len(), 2);
}

/// A worker of three runs, of which two fail, and a daemon that dies at one point.
fn drill(points: &[&str]) {
    let script = "mkdir lock 2>/dev/null || echo overlap >>bad
echo run >>runs; sleep 0.1; rmdir lock; [ $(wc -l <runs) -ge 3 ] || exit 1";
    for point in points {
        let mut w = World::new();
        w.set("SWARM_CRASH_AT", *point);
        let first = w.start_daemon();
        w.unset("SWARM_CRASH_AT");
        let said = w.spawn_sh("w", &["--restart", "on-failure"], script);
        if said.code != Some(0) && w.status("w").is_null() {
            assert!(w.lines("work/runs").is_empty(), "{point}: {said:?}");
            let _ = w.spawn_sh("w", &["--restart", "on-failure"], script).ok();
        }
        w.until(&format!("{point}: the first daemon dies"), || (!is_alive(first)).then_some(()));
        w.start_daemon();
        let end = w.until_ended("w");
        let tell = || format!("{point}: {end}\n{}", w.report());
        assert_eq!((&end["status"], &end["exit_code"]), (&json!("done"), &json!(0)), "{}", tell());
        assert_eq!((&end["restarts"], w.lines("work/runs").len()), (&json!(2), 3), "{}", tell());
        assert!(w.lines("work/bad").is_empty(), "two at once, {}", tell());
        assert!(w.panes().is_empty(), "{}", tell());
    }
}

#[test]
fn daemon_crash_before_a_save_neither_loses_nor_adds_a_run() {
    drill(&["persist:3", "persist:4", "persist:5", "persist:6", "persist:8", "persist:12"]);
}

#[test]
fn daemon_crash_after_a_save_neither_loses_nor_adds_a_run() {
    drill(&["persist+:3", "persist+:4", "persist+:5", "persist+:6", "persist+:9"]);
}

#[test]
fn daemon_crash_around_a_launch_neither_loses_nor_adds_a_run() {
    drill(&["spawn:1", "spawn:2", "spawn+:2", "spawn:3", "spawn+:3"]);
}

#[test]
fn daemon_crash_around_a_run_end_neither_loses_nor_adds_a_run() {
    drill(&["evaluate:1", "evaluate+:1", "tell:2", "tell+:2", "evaluate+:3", "tell:4"]);
}
