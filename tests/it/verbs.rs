//! The verbs of a worker: ls, status, peek, logs, send, interrupt, kill.

use std::fs;
use std::process::Stdio;

use serde_json::json;

use crate::world::{Agent, SWARM, World, is_alive};

/// Lets an agent read a line from its terminal, and waits until it is about to.
fn asking(w: &World, agent: &mut Agent) {
    agent.tell("run : >\"$dir/asking\"");
    agent.tell("ask");
    // Text that is typed before the read waits in the terminal's queue.
    w.until("it asks", || agent.has("asking").then_some(()));
}

/// Waits for what an agent read.
fn until_asked(w: &World, agent: &Agent, text: &str) {
    w.until(&format!("the agent reads {text:?}"), || {
        (agent.file("asked.1") == format!("{text}\n")).then_some(())
    });
}

#[test]
fn unknown_workers_are_usage_errors() {
    let w = World::new();
    for args in [
        &["status", "nobody"][..],
        &["peek", "nobody"],
        &["logs", "nobody"],
        &["logs", "--follow", "nobody"],
        &["send", "nobody", "x"],
        &["interrupt", "nobody"],
        &["kill", "nobody"],
    ] {
        w.swarm(args).code(2).warns("swarm: error: no worker named 'nobody'\n");
    }
}

#[test]
fn ls_filters_by_tag_and_status_and_prints_names() {
    let w = World::new();
    let (one, mut two, three) = (w.agent("a"), w.agent("b"), w.agent("c"));
    w.spawn_agent("one", &one, &["--tag", "x"]);
    w.spawn_agent("two", &two, &["--tag", "x", "--tag", "y"]);
    w.spawn_agent("three", &three, &[]);
    two.tell("exit 0");
    w.until_status("two", "done");
    let names = |more: &[&str]| {
        let args: Vec<&str> = ["ls", "--format", "names"].iter().chain(more).copied().collect();
        w.swarm(&args).ok().out
    };
    assert_eq!(names(&[]), "one\nthree\ntwo\n");
    assert_eq!(names(&["--tag", "x"]), "one\ntwo\n");
    assert_eq!(names(&["--tag", "x", "--tag", "y"]), "two\n");
    assert_eq!(names(&["--status", "live"]), "one\nthree\n");
    assert_eq!(names(&["--status", "finished"]), "two\n");
    assert_eq!(names(&["--tag", "none"]), "");
    w.swarm(&["ls"]).ok().says("NAME").says("three");
}

#[test]
fn ls_json_selects_loops_as_the_jq_example_does() {
    let w = World::new();
    let (one, two) = (w.agent("a"), w.agent("b"));
    w.spawn_agent("plain", &one, &[]);
    w.spawn_loop("agent", &two, &[]);
    let all = w.swarm(&["ls", "--format", "json"]).ok().json();
    let loops: Vec<_> = all
        .as_array()
        .unwrap()
        .iter()
        .filter(|v| v["metadata"]["ralph"] == true)
        .map(|v| v["name"].clone())
        .collect();
    assert_eq!(loops, [json!("agent")]);
    assert_eq!(w.swarm(&["ralph", "ls", "--format", "names"]).ok().out, "agent\n");
}

#[test]
fn ls_without_workers_is_empty() {
    let w = World::new();
    assert_eq!(w.swarm(&["ls", "--format", "json"]).ok().json(), json!([]));
    assert_eq!(w.swarm(&["ls", "--format", "names"]).ok().out, "");
    assert_eq!(w.swarm(&["ls"]).ok().out, "");
}

#[test]
fn status_exits_0_for_live_workers_1_for_ended_ones_2_for_none() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_agent("one", &agent, &[]);
    w.swarm(&["status", "one"]).code(0).says("one: running\n");
    agent.tell("exit 0");
    w.until_status("one", "done");
    w.swarm(&["status", "one"]).code(1).says("one: done\n");
    w.swarm(&["status", "two"]).code(2);
    w.swarm(&["status", "no/name"]).code(2);
}

#[test]
fn peek_shows_the_screen_and_after_the_end_the_last_output() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_agent("one", &agent, &[]);
    for n in 1..=5 {
        agent.tell(&format!("print line {n}"));
    }
    w.until("the screen shows it", || w.swarm(&["peek", "one"]).ok().out.contains("line 5").then_some(()));
    assert_eq!(w.swarm(&["peek", "one", "-n", "2"]).ok().out, "line 4\nline 5\n");
    agent.tell("exit 0");
    w.until_status("one", "done");
    assert_eq!(w.swarm(&["peek", "one", "-n", "2"]).ok().out, "line 4\nline 5\n");
}

#[test]
fn logs_have_the_last_lines_of_a_fast_exit() {
    let w = World::new();
    w.swarm(&["spawn", "--name", "one", "--", "sh", "-c", "seq 1 300; echo the end"]).ok();
    w.until_status("one", "done");
    let out = w.swarm(&["logs", "one"]).ok().out;
    let wanted: String = (1..=300).map(|n| format!("{n}\n")).chain(["the end\n".to_owned()]).collect();
    assert_eq!(out, wanted);
    assert_eq!(w.swarm(&["logs", "one", "--lines", "2"]).ok().out, "300\nthe end\n");
}

#[test]
fn logs_keep_lines_that_look_like_a_run_header() {
    let w = World::new();
    w.swarm(&["spawn", "--name", "one", "--", "sh", "-c", "echo first; echo '=== tests ==='; echo last"])
        .ok();
    w.until_status("one", "done");
    assert_eq!(w.swarm(&["logs", "one"]).ok().out, "first\n=== tests ===\nlast\n");
}

#[test]
fn logs_show_the_current_run_and_with_history_all() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("agent", &agent, &[]);
    agent.tell("print from the first");
    agent.tell("exit 0");
    agent.until_run(&w, 2);
    agent.tell("print from the second");
    w.until("the log shows it", || {
        w.swarm(&["logs", "agent"]).ok().out.contains("from the second\n").then_some(())
    });
    assert_eq!(w.swarm(&["logs", "agent"]).ok().out, "from the second\n");
    let all = w.swarm(&["logs", "agent", "--history"]).ok().out;
    assert!(all.find("from the first\n").unwrap() < all.find("from the second\n").unwrap(), "{all}");
}

#[test]
fn logs_follow_prints_each_line_once_until_the_worker_ends() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("agent", &agent, &["-n", "3"]);
    agent.tell("print run 1 begins");
    w.until("it is on the screen", || {
        w.swarm(&["peek", "agent"]).ok().out.contains("run 1 begins").then_some(())
    });
    let mut logs = w.follow(&["logs", "--follow", "agent"]);
    logs.until_says(&w, "run 1 begins\n");
    for run in 1..=3 {
        agent.until_run(&w, run);
        agent.tell("run seq -f \"r$n line %g\" 1 120");
        if run == 2 {
            logs.until_says(&w, "r2 line 119\n");
        }
        agent.tell("print r$n last words");
        agent.tell("exit 0");
    }
    assert_eq!(logs.wait(&w), 0);
    let said = logs.output();
    let lines: Vec<&str> = said.lines().filter(|l| l.starts_with('r')).collect();
    let mut wanted = vec!["run 1 begins".to_owned()];
    for run in 1..=3 {
        wanted.extend((1..=120).map(|n| format!("r{run} line {n}")));
        wanted.push("r$n last words".to_owned());
    }
    assert_eq!(lines, wanted, "{said}");
}

#[test]
fn ralph_logs_follow_ends_with_the_loop() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("agent", &agent, &["-n", "2"]);
    let mut logs = w.follow(&["ralph", "logs", "--follow", "agent"]);
    logs.until_says(&w, "[START] iteration 1/2\n");
    agent.tell("exit 0");
    agent.until_run(&w, 2);
    agent.tell("exit 0");
    assert_eq!(logs.wait(&w), 0);
    assert_eq!(logs.output(), w.iterations_log("agent"));
    assert_eq!(w.swarm(&["ralph", "logs", "agent", "-n", "1"]).ok().out.lines().count(), 1);
}

#[test]
fn send_types_a_text_and_enter() {
    let w = World::new();
    for (name, flags, text) in [
        ("a", &["send", "one", "hello", "there"][..], "hello there"),
        ("b", &["send", "one", "-rf is text"], "-rf is text"),
        ("c", &["send", "one", "--", "--help", "-y"], "--help -y"),
        ("d", &["send", "one", "$(id); #{pane} '\"\\ é"], "$(id); #{pane} '\"\\ é"),
    ] {
        let mut agent = w.agent(name);
        w.spawn_agent("one", &agent, &["--replace"]);
        asking(&w, &mut agent);
        let ran = w.swarm(flags).ok();
        assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", ""));
        until_asked(&w, &agent, text);
    }
}

#[test]
fn send_reads_a_file_and_standard_input() {
    let w = World::new();
    w.write("words", "from a file\n");
    let mut agent = w.agent("a");
    w.spawn_agent("one", &agent, &[]);
    asking(&w, &mut agent);
    w.swarm(&["send", "--file", "words", "one"]).ok();
    until_asked(&w, &agent, "from a file");

    let mut agent = w.agent("b");
    w.spawn_agent("one", &agent, &["--replace"]);
    asking(&w, &mut agent);
    let mut command = w.command(SWARM);
    command.args(["send", "one", "-"]).stdin(Stdio::from(fs::File::open(w.work().join("words")).unwrap()));
    w.run(command).ok();
    until_asked(&w, &agent, "from a file");
    w.swarm(&["send", "--file", "missing", "one"]).code(1).warns("swarm: error: cannot read missing");
}

#[test]
fn send_without_enter_leaves_the_line_open() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_agent("one", &agent, &[]);
    asking(&w, &mut agent);
    w.swarm(&["send", "--no-enter", "one", "half"]).ok();
    w.until("it is typed", || w.swarm(&["peek", "one"]).ok().out.contains("half").then_some(()));
    assert_eq!(agent.file("asked.1"), "");
    w.swarm(&["send", "one", " and whole"]).ok();
    until_asked(&w, &agent, "half and whole");
}

#[test]
fn send_all_reaches_every_live_worker() {
    let w = World::new();
    let (mut one, mut two, mut over) = (w.agent("a"), w.agent("b"), w.agent("c"));
    w.swarm(&["send", "--all", "x"]).code(1).warns("swarm: error: no live workers\n");
    w.spawn_agent("one", &one, &[]);
    w.spawn_agent("two", &two, &[]);
    w.spawn_agent("over", &over, &[]);
    over.tell("exit 0");
    w.until_status("over", "done");
    asking(&w, &mut one);
    asking(&w, &mut two);
    w.swarm(&["send", "--all", "to", "everyone"]).ok();
    until_asked(&w, &one, "to everyone");
    until_asked(&w, &two, "to everyone");
    w.swarm(&["send", "over", "x"]).code(1).warns("swarm: error: worker 'over' is not running (done)\n");
}

#[test]
fn interrupt_sends_ctrl_c() {
    let w = World::new();
    let agent = w.agent("a");
    w.spawn_agent("one", &agent, &[]);
    w.swarm(&["interrupt", "one"]).ok();
    let view = w.until_status("one", "failed");
    assert_eq!(view["signal"], 2);
    w.swarm(&["interrupt", "one"]).code(1).warns("swarm: error: worker 'one' is not running (failed)\n");
}

#[test]
fn kill_ends_the_whole_process_tree() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_agent("one", &agent, &[]);
    agent.tell("run sleep 600 & echo $! >\"$dir/child\"; setsid sleep 601 & echo $! >\"$dir/far\"; echo ok >\"$dir/ok\"");
    w.until("the children run", || (agent.file("ok") == "ok\n").then_some(()));
    let pids: Vec<u32> = ["child", "far"].iter().map(|f| agent.file(f).trim().parse().unwrap()).collect();
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    w.swarm(&["kill", "one"]).ok().says("killed one\n");
    assert!(!is_alive(agent.pid(1).unwrap()));
    assert!(!pids.iter().any(|pid| is_alive(*pid)), "{pids:?}");
    let view = w.status("one");
    assert_eq!(
        (&view["status"], &view["reason"], &view["pid"]),
        (&json!("killed"), &json!("killed"), &json!(null))
    );
    w.swarm(&["kill", "one"]).ok().says("killed one (it had ended before)\n");
}

#[test]
fn kill_accepts_several_names_and_all() {
    let w = World::new();
    let agents: Vec<_> = ["a", "b", "c", "d"].map(|n| (n, w.agent(n))).into();
    for (name, agent) in &agents[..3] {
        w.spawn_agent(name, agent, &[]);
    }
    w.spawn_loop("d", &agents[3].1, &[]);
    // As for an unknown name alone, and the others have their turn.
    w.swarm(&["kill", "a", "nobody", "b"]).code(2).says("killed a\n").says("killed b\n").warns("'nobody'");
    w.swarm(&["clean", "a", "nobody"]).code(2).says("cleaned a\n").warns("'nobody'");
    w.swarm(&["clean", "nobody", "c", "b"]).code(2).says("cleaned b\n").warns("'c' has not stopped");
    w.swarm(&["clean", "c", "d"]).code(1).warns("'d' has not stopped");
    w.swarm(&["kill", "--all"]).ok().says("killed c\n").says("killed d\n");
    for (_, agent) in &agents {
        assert!(!is_alive(agent.pid(1).unwrap()));
    }
    assert_eq!(w.ralph_state("d")["status"], "stopped");
    assert_eq!(w.swarm(&["kill", "--all"]).ok().out, "");
    assert_eq!(w.swarm(&["ls", "--format", "names", "--status", "live"]).ok().out, "");
}

#[test]
fn ralph_clean_removes_only_finished_loops() {
    let w = World::new();
    let (one, two) = (w.agent("a"), w.agent("b"));
    w.spawn_loop("old", &one, &[]);
    w.swarm(&["kill", "old"]).ok();
    w.spawn_loop("live", &two, &[]);
    w.swarm(&["ralph", "clean", "live"]).code(1).warns("the loop of live has not ended");
    let earlier = w.swarm_dir().join("ralph/old.1");
    fs::create_dir(&earlier).unwrap();
    w.swarm(&["ralph", "clean", "old.2"]).code(1).warns("no ralph state for 'old.2'");
    assert_eq!(w.swarm(&["ralph", "clean", "old.1"]).ok().out, "removed ralph state of old.1\n");
    assert!(!earlier.exists() && w.swarm_dir().join("ralph/old").exists());
    w.swarm(&["ralph", "clean", "--all"]).ok().says("removed ralph state of old\n");
    assert!(!w.swarm_dir().join("ralph/old").exists());
    assert!(w.swarm_dir().join("ralph/live/state.json").exists());
}

#[test]
fn closed_pipe_prints_no_error() {
    let w = World::new();
    w.swarm(&["spawn", "--name", "one", "--", "sh", "-c", "seq 1 5000"]).ok();
    w.until_status("one", "done");
    let mut shell = w.command("sh");
    shell.arg("-c").arg(format!("{SWARM} logs one | head -n 1"));
    let ran = w.run(shell).ok();
    assert_eq!((ran.out.lines().count(), ran.err.as_str()), (1, ""));
}

#[test]
fn daemon_status_reports_whether_the_daemon_runs() {
    let w = World::new();
    assert_eq!(w.swarm(&["daemon", "status"]).code(3).out, "daemon not running\n");
    assert_eq!(w.swarm(&["daemon", "stop"]).ok().out, "daemon not running\n");
    w.swarm(&["daemon", "start"]).ok().says("daemon started (pid ");
    let pid = w.daemon_pid().unwrap();
    w.swarm(&["daemon", "start"]).ok().says(&format!("daemon already running (pid {pid})\n"));
    assert_eq!(w.swarm(&["daemon", "status", "--format", "json"]).ok().json()["pid"], pid);
    w.swarm(&["daemon", "stop"]).ok();
    assert_eq!(w.daemon_pid(), None);
}

#[test]
fn fetch_without_a_host_claims_nothing_about_the_worker() {
    let w = World::new();
    let said = w.swarm(&["fetch", "nope"]).code(2).warns("hint: name it as HOST/NAME").err;
    assert!(said.contains("fetch is for a worker on a remote host"), "{said}");
    assert_eq!(w.daemon_pid(), None);
}
