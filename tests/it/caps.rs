//! Resource caps in force: a run that uses up its memory has a named end, and nobody else is harmed.

use std::fs;

use serde_json::{Value, json};

use crate::world::World;

/// Allocates memory without bound.
const HOG: &str = "awk 'BEGIN { text = \"xxxxxxxx\"; while (1) text = text text }'";

/// Printed where the memory cap is a resource limit, so that a program gets an error instead.
const SKIPPED: &str = "skipped: swarm may use no cgroup here";

/// Starts a worker that sleeps.
fn sleeper(w: &World, name: &str, flags: &[&str]) -> Value {
    let _ = w.spawn(name, flags, &["sleep", "600"]).ok();
    w.until_status(name, "running")
}

/// A world in which a cgroup limits the memory of worker `one`.
fn capped_world() -> Option<(World, Value)> {
    let w = World::new();
    let one = sleeper(&w, "one", &["--memory", "200M", "--pids", "50", "--cpus", "0.5"]);
    if one["caps"]["memory"]["mechanism"] == "rlimit" {
        return None;
    }
    Some((w, one))
}

#[test]
fn worker_over_its_memory_limit_ends_with_that_reason_and_alone() {
    let Some((w, one)) = capped_world() else { return eprintln!("{SKIPPED}") };
    let two = sleeper(&w, "two", &[]);
    assert_eq!(
        (&one["caps"]["memory"]["limit"], &one["caps"]["cpus"]["limit"]),
        (&json!(209_715_200), &json!(0.5))
    );
    assert_eq!(two["caps"], json!({"memory": null, "cpus": null, "pids": null}));
    let _ = w.swarm(&["status", "one"]).ok().says("  caps       memory 200 MiB (cgroup");
    let daemon = w.daemon_pid();

    let _ = w.spawn_sh("hog", &["--memory", "200M"], &format!("exec {HOG}")).ok();
    let hog = w.until_ended("hog");
    assert_eq!((&hog["status"], &hog["reason"]), (&json!("failed"), &json!("out of memory (200 MiB)")));
    assert_eq!((&hog["exit_code"], &hog["signal"]), (&json!(137), &json!(9)));
    assert_eq!(
        (&hog["cause"]["kind"], &hog["cause"]["reason"]),
        (&json!("stopped"), &json!("out_of_memory"))
    );
    let advice = "next: a respawn keeps the memory cap; to raise it, start hog again with the options that it had, \
                  --replace and a higher --memory\n";
    let _ = w.swarm(&["why", "hog"]).ok().says("hog: failed: out of memory (200 MiB)\n").says(advice);

    for (name, before) in [("one", &one), ("two", &two)] {
        let now = w.status(name);
        assert_eq!((&now["status"], &now["pid"]), (&json!("running"), &before["pid"]), "{name}");
    }
    assert_eq!(w.daemon_pid(), daemon);
    let _ = w.swarm(&["respawn", "hog"]).ok();
    assert_eq!(w.until_ended("hog")["reason"], "out of memory (200 MiB)", "the cap survives a respawn");
}

#[test]
fn iteration_over_its_memory_limit_fails_with_that_reason() {
    let Some((w, _)) = capped_world() else { return eprintln!("{SKIPPED}") };
    w.write("p", "go\n");
    let flags = ["--ralph", "--prompt-file", "p", "-n", "1", "--memory", "100M"];
    let _ = w.spawn_sh("l", &flags, HOG).code(1).says("iteration 1 failed (exit: out-of-memory)");
    assert_eq!(
        w.status("l")["reason"],
        "max iterations, and no iteration succeeded: out of memory (100 MiB)"
    );
    let report = w.swarm(&["report", "l", "--format", "json"]).ok().json();
    let iteration = &report["iterations"][0];
    assert_eq!(
        (&iteration["end"], &iteration["reason"]),
        (&json!("out_of_memory"), &json!("out of memory (100 MiB)"))
    );
    let _ = w
        .swarm(&["why", "l"])
        .ok()
        .says(": out of memory (100 MiB)\n")
        .says("--replace and a higher --memory");
    assert!(w.iterations_log("l").contains("[END] iteration 1 exit=out-of-memory"));
}

#[test]
fn oom_killed_child_is_only_a_warning() {
    let Some((w, _)) = capped_world() else { return eprintln!("{SKIPPED}") };
    let _ = w.spawn_sh("parent", &["--memory", "100M"], &format!("{HOG}; exit 0")).ok();
    assert_eq!(w.until_ended("parent")["status"], "done");
    let warning = "parent: warning: out of memory (100 MiB): the kernel killed a process of the run";
    let _ = w.swarm(&["events", "parent"]).ok().says(warning);
}

#[test]
fn repeatedly_oom_killed_worker_is_given_up_with_that_reason() {
    let Some((w, _)) = capped_world() else { return eprintln!("{SKIPPED}") };
    let flags = ["--restart", "on-failure", "--max-restarts", "1", "--memory", "100M"];
    let _ = w.spawn_sh("r", &flags, &format!("exec {HOG}")).ok();
    let end = w.until_status("r", "failed");
    assert_eq!(end["reason"], "gave up after 1 restart: out of memory (100 MiB)");
    assert_eq!(end["cause"]["failure"], "out of memory (100 MiB)");
    let _ = w.swarm(&["ls"]).ok().says("out of memory (100 MiB)");
    let _ = w.swarm(&["why", "r"]).ok().says("out of memory (100 MiB)\n").says("and a higher --memory");
}

#[test]
fn oom_killed_child_in_an_iteration_is_a_warning() {
    let Some((w, _)) = capped_world() else { return eprintln!("{SKIPPED}") };
    w.write("p", "go\n");
    let flags = ["--ralph", "--prompt-file", "p", "-n", "1", "--memory", "100M"];
    let _ = w.spawn_sh("l", &flags, &format!("{HOG}; exit 7")).code(1);
    let warning = "out of memory (100 MiB): the kernel killed a process of the run";
    let _ = w.swarm(&["report", "l"]).ok().says(&format!("- warning: {warning}\n"));
    let why = w.swarm(&["why", "l"]).ok();
    let _ = why.says(&format!("  warning: {warning}\n")).says("exit status 7").says("and a higher --memory");
    let report = w.swarm(&["report", "l", "--format", "json"]).ok().json();
    assert_eq!(report["iterations"][0]["warnings"], json!([warning]));
    let events = w.swarm(&["events", "l"]).ok().out;
    assert_eq!(events.matches(warning).count(), 1, "{events}");
}

#[test]
fn agent_works_with_the_smallest_process_limit() {
    let w = World::new();
    let _ = w
        .spawn_sh("few", &["--pids", "4"], "exit 3")
        .code(2)
        .warns("give a whole number, 5 to 4194304 (an agent");
    let _ = w.spawn_sh("few", &["--pids", "5"], "/bin/true && exit 3").ok();
    assert_eq!(w.until_ended("few")["reason"], "exit status 3");
}

#[test]
fn kernel_kills_an_agent_before_the_daemon() {
    let w = World::new();
    let agent = sleeper(&w, "one", &[]);
    let score = |pid: &str| fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
    assert_eq!(score(&agent["pid"].to_string()), "500\n");
    let wrapper = w.panes()[0].rsplit(' ').next().unwrap().to_owned();
    let own = score("self");
    assert_eq!([score(&wrapper), score(&w.daemon_pid().unwrap().to_string())], [own.clone(), own]);
}

/// Writes a pressure file, whole.
fn set_pressure(w: &World, percent: &str) {
    let part = w.path("pressure.part");
    fs::write(&part, format!("some avg10={percent} avg60=0.00 avg300=0.00 total=0\n")).unwrap();
    fs::rename(part, w.path("pressure")).unwrap();
}

#[test]
fn an_iteration_waits_while_the_memory_pressure_is_high() {
    let mut w = World::new();
    set_pressure(&w, "34.20");
    w.set("SWARM_PRESSURE_FILE", w.path("pressure").to_str().unwrap());
    w.write("swarm.toml", "[limits]\npressure = 20\n");
    w.write("p", "go\n");
    let args = ["spawn", "--name", "l", "--ralph", "--prompt-file", "p", "-n", "1", "-d", "--", "true"];
    let _ = w.swarm(&args).ok().warns("the iteration waits: the memory pressure is 35 %, the limit 20 %");
    let status = w.status("l");
    assert_eq!(status["status"], "waiting");
    assert_eq!(status["cause"], json!({"kind": "memory_pressure", "percent": 35, "limit": 20}));
    assert_eq!(status["reason"], "waits until the memory pressure has fallen: 35 % (limit 20 %)");
    // A pause, a resume and a crash of the daemon leave it at that.
    let _ = w.swarm(&["ralph", "pause", "l"]).ok();
    assert_eq!(w.until_status("l", "paused")["iteration"], 0);
    let _ = w.swarm(&["ralph", "resume", "l"]).ok();
    let _ = w.until_status("l", "waiting");
    w.crash_daemon();
    let _ = w.until_status("l", "waiting");
    assert!(!w.iterations_log("l").contains("[END]"));
    set_pressure(&w, "20.00");
    assert_eq!(w.until_ended("l")["status"], "done");
}
