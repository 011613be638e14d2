//! Limits and waits of a loop, and its end when a limit is reached: time, money, tokens, failures, no progress,
//! outages.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::attach::Terminal;
use crate::verified::Desk;
use crate::world::{SWARM, World};

/// A run of a fake CLI that cost money and did not finish the work.
const WORKED: &str = r#"echo '{"type":"result","subtype":"success","is_error":false,"result":"more to do","total_cost_usd":0.6,"usage":{"input_tokens":100,"output_tokens":20},"session_id":"s"}'"#;

impl World {
    /// A CLI of that name: it takes its prompt, counts its runs in `$n`, and does what the script says.
    fn cli(&self, name: &str, script: &str) -> PathBuf {
        let dir = self.path("bin");
        fs::create_dir_all(&dir).unwrap();
        let (path, runs) = (dir.join(name), dir.join("runs"));
        let runs = runs.display();
        let head = format!("#!/bin/sh\ncat >/dev/null\necho run >>'{runs}'\nn=$(grep -c run '{runs}')\n");
        fs::write(&path, format!("{head}{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// How often it was run.
    fn cli_runs(&self) -> usize {
        fs::read_to_string(self.path("bin/runs")).unwrap_or_default().lines().count()
    }

    /// The words of `spawn --ralph` for such a CLI.
    fn cli_loop(&self, name: &str, flags: &[&str], cmd: &[&str]) -> Vec<String> {
        self.write("PROMPT.md", "Do it\n");
        let head = ["spawn", "--name", name, "--ralph", "--prompt-file", "PROMPT.md"];
        let words = head.iter().chain(flags).chain(&["--"]).chain(cmd);
        words.map(|word| (*word).to_owned()).collect()
    }

    /// A loop's report.
    fn ledger(&self, name: &str) -> Value {
        self.swarm(&["report", name, "--format", "json"]).ok().json()
    }

    /// How a loop ended, by all who are asked.
    #[track_caller]
    fn ended(&self, name: &str, end: &str, status: &str, slug: &str) {
        let state = self.ralph_state(name);
        assert_eq!((&state["status"], &state["reason"]), (&json!(status), &json!(slug)), "{state}");
        assert_eq!(self.ledger(name)["end"], end);
        assert!(
            self.iterations_log(name).contains(&format!("reason={slug}")),
            "{}",
            self.iterations_log(name)
        );
    }
}

#[test]
fn agent_is_ended_with_sigterm_at_the_time_limit_of_the_loop() {
    let w = World::new();
    let mut agent = w.agent("a");
    let mut follower = w.follow_loop("a", &agent, &["--max-time", "12"]);
    agent.tell(r#"run trap 'echo gently >"$dir/ended"; exit 0' TERM"#);
    assert_eq!(follower.wait(&w), 1);
    follower.says("[ralph] a: out of time (12s)\n");
    assert_eq!(agent.file("ended"), "gently\n");
    assert_eq!(agent.starts(), 1);
    assert!(w.iterations_log("a").contains("[TIMEOUT] iteration 1 max-time=12s"));
    w.ended("a", "timeout", "failed", "timeout");
}

#[test]
fn running_check_is_cut_short_at_the_time_limit_of_the_loop() {
    let d = Desk::new();
    let agent = d.agent(&["touch x"]);
    // At the base there is no x.
    let flags = ["--check", "test -e x || exit 1; sleep 600", "--no-promise", "--max-time", "12"];
    let result = d.result(1, &flags, &agent);
    assert_eq!((&result["stop_reason"], &result["success"]), (&json!("timeout"), &json!(false)));
    let it = &result["iterations"][0];
    let said = it["check_results"][0]["output"].as_str().unwrap();
    assert!(said.ends_with("ended: the loop's time was over"), "{said}");
    let cut = "the check 'test -e x || exit 1; sleep 600' did not end: the loop's time was over";
    assert!(d.w.iterations_log("a").contains(cut), "{}", d.w.iterations_log("a"));
    assert_eq!((d.turns(), &result["total_iterations"]), (1, &json!(1)));
}

#[test]
fn no_agent_starts_if_the_baseline_used_all_of_the_time() {
    let d = Desk::new();
    let agent = d.agent(&["touch x"]);
    let flags = ["--check", "sleep 600", "--check", "true", "--no-promise", "--max-time", "1"];
    let ran = d.run(&[&flags[..], &["--format", "json"]].concat(), &agent).code(1);
    let ran = ran.warns("the work before iteration 1 took all of the loop's time");
    let result = ran.json();
    assert_eq!((&result["stop_reason"], &result["total_iterations"]), (&json!("timeout"), &json!(0)));
    let said = result["baseline"][0]["output"].as_str().unwrap();
    assert!(said.ends_with("ended: the loop's time was over"), "{said}");
    assert_eq!(result["baseline"][1]["output"], "not run: the loop's time was over");
    assert_eq!(d.turns(), 0);
    let log = d.w.iterations_log("a");
    assert!(
        log.contains("[TIMEOUT] iteration 1 max-time=1s") && !log.contains("[START] iteration 2"),
        "{log}"
    );
    assert_eq!(d.w.ralph_state("a")["current_iteration"], 0);
    assert_eq!(d.w.status("a")["reason"], "out of time (1s)");
    let why = d.w.swarm(&["why", "a"]).ok();
    let why = why.says("the baseline used all of the loop's time (at 'sleep 600'); no agent was started\n");
    assert!(why.out.contains("next: allow more time (--max-time)"), "{}", why.out);
    let report = d.w.swarm(&["report", "a"]).ok().says("- FAIL (the loop's time ran out) sleep 600\n");
    report.says("the baseline used all of the loop's time").says("- FAIL (the loop's time ran out) true\n");
}

#[test]
fn iteration_without_an_agent_does_not_complete_a_loop() {
    let d = Desk::new();
    let agent = d.path("agent");
    fs::write(&agent, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    let flags = ["--check", "true", "--no-promise", "--max-failures", "1"];
    let result = d.result(1, &flags, &[agent.display().to_string()]);
    assert_eq!((&result["stop_reason"], &result["success"]), (&json!("failed"), &json!(false)));
    let error = result["iterations"][0]["error"].as_str().unwrap();
    assert!(
        error.contains("the agent was not started: cannot run ") && error.contains("No such file"),
        "{error}"
    );
    d.w.swarm(&["why", "a"]).ok().says("FAIL  the agent was not started: cannot run ");
    d.w.swarm(&["report", "a"]).ok().says("the agent was not started: cannot run ");
}

#[test]
fn loop_that_cannot_start_leaves_no_worker() {
    let d = Desk::without_git();
    let mut git = d.w.command("git");
    git.args(["init", "-q"]);
    d.w.run(git).ok();
    let agent = d.agent(&["true"]);
    let ran = d.run(&["--check", "true", "--worktree"], &agent).code(1);
    assert!(ran.err.contains("swarm: error: ") && ran.err.contains("commit"), "{}", ran.err);
    assert_eq!((ran.out.as_str(), d.turns(), d.w.status("a")), ("", 0, Value::Null));
}

#[test]
fn reason_of_a_failed_agent_start_is_in_why_report_and_result() {
    for (flags, end, slug, reason) in [
        (["-n", "9", "--max-failures", "1"], "failed", "consecutive_failures", "1 consecutive failure"),
        (
            ["-n", "2", "--max-failures", "5"],
            "max_iterations",
            "max_iterations",
            "max iterations, and not every gate holds",
        ),
    ] {
        let d = Desk::without_git();
        let dir = d.w.path("gone");
        fs::create_dir(&dir).unwrap();
        let place = dir.display().to_string();
        let agent = d.agent(&[&format!("rm -r '{place}'")]);
        let words = [&flags[..], &["--cwd", &place, "--check", "true", "--no-promise"]].concat();
        let result = d.result(1, &words, &agent);
        let cause = format!("no such directory: {place}");
        assert_eq!((&result["stop_reason"], &result["total_iterations"]), (&json!(end), &json!(2)));
        assert_eq!(result["iterations"][1]["error"], format!("the agent was not started: {cause}"));
        let why = d.w.swarm(&["why", "a"]).ok().says(&format!("FAIL  the agent was not started: {cause}\n"));
        assert!(why.out.contains(&format!("{reason}: {cause}\n")), "{}", why.out);
        // A resume would be refused until the directory exists.
        let next = "next: fix why the agent did not start, then swarm respawn a\n";
        assert!(why.out.contains(next), "{}", why.out);
        d.w.swarm(&["report", "a"]).ok().says("| not started |").says(&cause);
        let state = d.w.ralph_state("a");
        assert_eq!((&state["reason"], &state["message"]), (&json!(slug), &json!(cause)));
        assert_eq!(d.turns(), 1);
    }
}

#[test]
fn iteration_timeout_ends_the_iteration_and_the_loop_continues() {
    let w = World::new();
    let mut agent = w.agent("a");
    let mut follower = w.follow_loop("a", &agent, &["--iteration-timeout", "2", "-n", "2"]);
    agent.until_run(&w, 2);
    agent.tell("exit 0");
    assert_eq!(follower.wait(&w), 0);
    let log = w.iterations_log("a");
    assert!(log.contains("[TIMEOUT] iteration 1 iteration-timeout=2s"), "{log}");
    assert!(log.contains("[END] iteration 1 exit=timeout"), "{log}");
    assert!(log.contains("[START] iteration 2/2") && !log.contains("[FAIL]"), "{log}");
    w.ended("a", "max_iterations", "stopped", "max_iterations");
}

#[test]
fn cost_limit_ends_the_loop_after_the_iteration_that_exceeded_it() {
    let w = World::new();
    let claude = w.cli("claude", WORKED).display().to_string();
    let cmd = [claude.as_str(), "-p", "--output-format", "json"];
    let mut follower = w.follow(&w.cli_loop("a", &["-n", "9", "--max-cost", "1"], &cmd));
    assert_eq!(follower.wait(&w), 1);
    assert_eq!(w.cli_runs(), 2);
    w.ended("a", "budget_exhausted", "failed", "budget_exhausted");
    let ledger = w.ledger("a");
    assert_eq!((&ledger["cost_usd"], &ledger["tokens"]), (&json!(1.2), &json!(240)));
    assert!(ledger["reason"].as_str().unwrap().contains("$1.20 of $1.00"), "{ledger}");
}

#[test]
fn token_limit_ends_the_loop_after_the_iteration_that_exceeded_it() {
    let w = World::new();
    let claude = w.cli("claude", WORKED).display().to_string();
    let mut follower = w.follow(&w.cli_loop("a", &["-n", "9", "--max-tokens", "300"], &[&claude, "-p"]));
    assert_eq!(follower.wait(&w), 1);
    assert_eq!(w.cli_runs(), 3);
    w.ended("a", "budget_exhausted", "failed", "budget_exhausted");
}

#[test]
fn cost_limit_requires_a_reported_cost_or_prices() {
    let w = World::new();
    let turn = r#"echo '{"type":"turn.completed","usage":{"input_tokens":600000,"cached_input_tokens":100000,"output_tokens":10000}}'"#;
    let codex = w.cli("codex", turn).display().to_string();
    let args = w.cli_loop("a", &["-n", "9", "--max-cost", "1"], &[&codex, "exec", "--json"]);
    w.swarm(&args).code(1).warns("--max-cost: swarm cannot see the cost of 'codex'").warns("input_price");
    w.swarm(&w.cli_loop("g", &["-n", "9", "--max-cost", "1"], &["sh"])).code(1).warns("'generic'");
    assert_eq!(w.cli_runs(), 0);
    // Half of the prices is none.
    w.write("swarm.toml", "[agents.codex]\ninput_price = 1\n");
    w.swarm(&args).code(1).warns("cannot see");
    w.write("swarm.toml", "[agents.codex]\ninput_price = 1\ncached_price = 0.5\noutput_price = 5.0\n");
    assert_eq!(w.follow(&args).wait(&w), 1);
    // 500,000 at 1, 100,000 at 0.50 and 10,000 at 5 dollars a million: 60 cents.
    assert_eq!((w.cli_runs(), &w.ledger("a")["cost_usd"]), (2, &json!(1.2)));
    w.ended("a", "budget_exhausted", "failed", "budget_exhausted");
}

#[test]
fn iteration_without_a_reported_cost_or_tokens_is_a_warning() {
    let w = World::new();
    let claude = w.cli("claude", "echo done").display().to_string();
    let flags = ["-n", "1", "--max-cost", "1", "--max-tokens", "5", "--no-progress", "1"];
    let mut follower = w.follow(&w.cli_loop("a", &flags, &[&claude, "-p"]));
    assert_eq!(follower.wait(&w), 0);
    follower.says("warning: --max-cost could not count iteration 1: the agent reported no cost");
    follower.says("warning: --max-tokens could not count iteration 1: the agent reported no tokens");
    follower.says("warning: --no-progress cannot be checked");
}

#[test]
fn loop_without_a_usable_cost_or_token_count_is_paused_until_resumed() {
    let priced = "[agents.generic]\ninput_price = 1\noutput_price = 1\n";
    let absurd = |cost: &str, tokens: &str| {
        format!(
            r#"echo '{{"type":"result","subtype":"success","result":"more","total_cost_usd":{cost},"usage":{{"input_tokens":{tokens},"output_tokens":20}}}}'"#
        )
    };
    for (name, says, settings, limit) in [
        ("claude", "echo done".to_owned(), "", "--max-cost"),
        ("agent", "echo done".to_owned(), priced, "--max-cost"),
        ("agent", absurd("null", "99999999999999999999999"), priced, "--max-cost"),
        ("claude", absurd("-1000", "1"), "", "--max-cost"),
        ("claude", absurd("1e400", "1"), "", "--max-cost"),
        ("claude", absurd("1", "-1000"), "", "--max-tokens"),
    ] {
        let w = World::new();
        w.write("swarm.toml", settings);
        let cmd = w.cli(name, &says).display().to_string();
        let mut follower = w.follow(&w.cli_loop("a", &["-n", "9", limit, "1000"], &[&cmd, "-p"]));
        assert_eq!(follower.wait(&w), 1, "{says}");
        follower.says(
            "[ralph] a: paused (the agent did not report its usage, so its budget cannot be enforced)\n",
        );
        follower.says("max_cost=none, or max_tokens=none); then swarm ralph resume a\n");
        let warning = format!("{limit} could not count iteration 1: the agent reported no ");
        let why = w.swarm(&["why", "a"]).ok().says(&warning).says("its budget cannot be enforced");
        assert!(why.out.lines().last().unwrap().ends_with("; then swarm ralph resume a"), "{}", why.out);
        w.swarm(&["report", "a"]).ok().says(&warning);
        let ledger = w.ledger("a");
        assert!(ledger["iterations"][0]["warnings"][0].as_str().unwrap().starts_with(&warning), "{ledger}");
        assert_eq!((w.cli_runs(), &ledger["end"]), (1, &Value::Null));
        assert_eq!(w.ralph_state("a")["reason"], "budget_unseen");
    }
    let w = World::new();
    let claude = w.cli("claude", "echo done").display().to_string();
    assert_eq!(w.follow(&w.cli_loop("a", &["-n", "9", "--max-cost", "1"], &[&claude, "-p"])).wait(&w), 1);
    w.swarm(&["ralph", "resume", "a"]).ok();
    w.until("it is paused again", || {
        (w.ralph_state("a")["status"] == "paused" && w.cli_runs() == 2).then_some(())
    });
}

#[test]
fn max_failures_sets_the_consecutive_failures_that_end_a_loop() {
    let w = World::new();
    let agent = w.cli("agent", "exit 3").display().to_string();
    let mut follower = w.follow(&w.cli_loop("a", &["-n", "9", "--max-failures", "2"], &[&agent]));
    assert_eq!(follower.wait(&w), 1);
    follower.says("retrying in 1s (attempt 1/2)");
    follower.says("2 consecutive failures, stopping loop");
    assert_eq!(w.cli_runs(), 2);
    w.ended("a", "failed", "failed", "consecutive_failures");
}

#[test]
fn resumed_loop_uses_the_limits_of_ralph_set() {
    let w = World::new();
    let go = w.path("go");
    let script = format!("until [ -e '{}' ]; do sleep 0.1; done\n{WORKED}", go.display());
    let claude = w.cli("claude", &script).display().to_string();
    let flags = ["-n", "9", "--max-cost", "0.5", "--no-progress", "3", "--max-tokens", "130", "-d"];
    w.swarm(&w.cli_loop("a", &flags, &[&claude, "-p", "--output-format", "json"])).ok();
    w.until("the first run", || (w.cli_runs() == 1).then_some(()));
    for (change, error) in [
        ("max_cost=free", "max_cost: not an amount of dollars, as in 2.50"),
        ("max_time=1x", "max_time: invalid duration '1x': use 90, 90s, 10m, 8h or 1h30m"),
        ("max_failures=null", "max_failures: 'null' is not a whole number of at least 1"),
        ("no_progress=0", "no_progress: '0' is not a whole number of at least 1"),
        ("check=true", "unknown setting 'check'"),
    ] {
        w.swarm(&["ralph", "set", "a", change]).code(2).warns(error);
    }
    w.swarm(&["ralph", "pause", "a"]).ok();
    let set = [
        "ralph",
        "set",
        "a",
        "max_cost=1.50",
        "max_time=2h",
        "max_tokens=none",
        "max_failures=7",
        "no_progress=null",
        "question_timeout=10m",
        "inactivity_timeout=1h30m",
    ];
    w.swarm(&set).ok().says("set max_cost=1.50 for a\n").says("set max_time=2h for a\n");
    w.swarm(&["ralph", "set", "a", "done_pattern=x", "done_pattern=none"]).ok();
    assert_eq!(w.ralph_state("a")["done_pattern"], Value::Null);
    fs::write(&go, "").unwrap();
    w.until("it is paused", || {
        let state = w.ralph_state("a");
        (state["status"] == "paused" && state["current_iteration"] == 1 && w.ledger("a")["cost_usd"] == 0.6)
            .then_some(())
    });
    // The record on disk has the new limits.
    w.crash_daemon();
    let budgets = json!({"max_time": 7200, "max_cost": 1.5, "max_tokens": null, "max_failures": 7,
        "iteration_timeout": null, "no_progress": null, "max_context": null});
    assert_eq!(w.ledger("a")["budgets"], budgets);
    assert_eq!(w.ralph_state("a")["inactivity_timeout"], 5400);
    w.swarm(&["ralph", "resume", "a"]).ok();
    w.until_logged("a", "reason=budget_exhausted");
    assert_eq!((w.cli_runs(), &w.ledger("a")["cost_usd"]), (3, &json!(1.8)));
    w.swarm(&["ralph", "set", "a", "max_cost=9"]).ok().warns("hint: the loop has ended; to continue it: ");
}

#[test]
fn ralph_set_max_cost_is_refused_for_an_agent_without_a_cost() {
    let w = World::new();
    let agent = w.cli("agent", "sleep 600").display().to_string();
    w.swarm(&w.cli_loop("a", &["-n", "9", "-d"], &[&agent])).ok();
    w.swarm(&["ralph", "set", "a", "max_cost=9"]).code(1).warns("swarm cannot see the cost of ");
    w.swarm(&["ralph", "set", "a", "max_cost=null", "max_failures=1"]).ok();
}

#[test]
fn loop_without_progress_is_paused_and_can_be_resumed() {
    let w = World::new();
    let repo = w.repo("repo").display().to_string();
    let agent = w.cli("agent", "exit 0").display().to_string();
    let flags = ["-n", "9", "--no-progress", "2", "--check", "false", "--cwd", &repo];
    let mut follower = w.follow(&w.cli_loop("a", &flags, &[&agent]));
    assert_eq!(follower.wait(&w), 1);
    follower.says("[ralph] a: paused (no progress)\n");
    follower.says("change the task (swarm ralph set a prompt_file=FILE); then swarm ralph resume a\n");
    let paused = || {
        w.until("it is paused", || {
            let state = w.ralph_state("a");
            (state["status"] == "paused" && state["reason"] == "no_progress").then_some(state)
        })
    };
    assert_eq!(paused()["current_iteration"], 2);
    assert_eq!((w.cli_runs(), &w.ledger("a")["end"]), (2, &Value::Null));
    w.swarm(&["ralph", "resume", "a"]).ok().says("resumed");
    w.until_logged("a", "[START] iteration 4/9");
    w.until("it stands still again", || (w.cli_runs() == 4).then_some(()));
    assert_eq!(paused()["current_iteration"], 4);
    assert!(w.iterations_log("a").contains("[PAUSE] reason=no_progress"));
}

#[test]
fn spent_cost_is_kept_when_the_daemon_dies() {
    let w = World::new();
    let go = w.path("go");
    let script = format!("[ $n != 2 ] || until [ -e '{}' ]; do sleep 0.1; done\n{WORKED}", go.display());
    let claude = w.cli("claude", &script).display().to_string();
    w.swarm(&w.cli_loop("a", &["-n", "9", "--max-cost", "1", "-d"], &[&claude, "-p"])).ok();
    w.until("the second run", || (w.cli_runs() == 2).then_some(()));
    w.until_logged("a", "[START] iteration 2/9");
    w.crash_daemon();
    w.start_daemon();
    assert_eq!(w.ledger("a")["cost_usd"], 0.6);
    fs::write(&go, "").unwrap();
    w.until_logged("a", "reason=budget_exhausted");
    assert_eq!((w.cli_runs(), &w.ledger("a")["cost_usd"]), (2, &json!(1.2)));
}

/// A result that is an error, as the CLI prints it.
fn refused(message: &str, status: u16) -> String {
    format!(
        r#"[ $n != 1 ] || {{ echo '{{"type":"result","subtype":"success","is_error":true,"result":"{message}","api_error_status":{status},"usage":{{"input_tokens":0,"output_tokens":0}},"session_id":"s"}}'; exit 1; }}"#
    )
}

#[test]
fn usage_limit_is_waited_for_and_uses_no_iteration() {
    let w = World::new();
    let script = refused("You have hit your session limit, try again in 1s", 429);
    let claude = w.cli("claude", &script).display().to_string();
    let mut follower = w.follow(&w.cli_loop("a", &["-n", "1"], &[&claude, "-p"]));
    let waiting = w.until_status("a", "waiting");
    let reason = waiting["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("You have hit your session limit, try again in 1s (goes on by itself at "),
        "{reason}"
    );
    // The loop continues by itself, with the one iteration that it has.
    assert_eq!(follower.wait(&w), 0);
    follower.says("[ralph] a: waiting: You have hit your session limit, try again in 1s (next try in ");
    assert_eq!(w.cli_runs(), 2);
    let log = w.iterations_log("a");
    assert_eq!(log.matches("[START] iteration 1/1").count(), 2, "{log}");
    assert!(log.contains("[END] iteration 1 exit=outage") && !log.contains("[FAIL]"), "{log}");
    w.ended("a", "max_iterations", "stopped", "max_iterations");
}

#[test]
fn resume_ends_a_wait_for_an_outage_at_once() {
    // Without the resume these would take minutes; the last one by nobody's word but the screen's.
    let limit = refused("Claude usage limit reached.", 429);
    let login = refused("Invalid API key · Please run /login", 401);
    let plain = "[ $n != 1 ] || { echo 'usage limit reached'; exit 1; }".to_owned();
    for (script, words) in
        [(limit, "Claude usage limit reached."), (login, "Please run /login"), (plain, "usage limit reached")]
    {
        let w = World::new();
        let claude = w.cli("claude", &script).display().to_string();
        let mut follower = w.follow(&w.cli_loop("a", &["-n", "1"], &[&claude, "-p"]));
        let waiting = w.until_status("a", "waiting");
        assert!(waiting["reason"].as_str().unwrap().contains(words), "{waiting}");
        assert_eq!(waiting["metadata"]["ralph_iteration"], 0, "{waiting}");
        let next = if words == "Please run /login" {
            "log in with the agent's own command"
        } else {
            "to try at once"
        };
        w.swarm(&["status", "a"]).ok().warns(next).warns("swarm ralph resume a");
        w.swarm(&["ralph", "resume", "a"]).ok().says("resumed ralph loop for a");
        assert_eq!(follower.wait(&w), 0);
        assert_eq!(w.cli_runs(), 2);
        w.ended("a", "max_iterations", "stopped", "max_iterations");
        w.swarm(&["report", "a"]).ok().says("\n1 outage, ").says("s lost\n");
        let report = w.swarm(&["report", "a", "--format", "json"]).ok().json();
        assert!(report["outages"] == 1 && report["outage_seconds"].is_f64(), "{report}");
    }
}

#[test]
fn login_error_and_overloaded_api_are_waited_for_and_use_no_iteration() {
    let stated = |message: &str, status: u16| {
        format!(
            r#"echo '{{"type":"result","subtype":"success","is_error":true,"result":"{message}","api_error_status":{status},"usage":{{"input_tokens":0,"output_tokens":0}},"session_id":"s"}}'"#
        )
    };
    let rows = [
        (stated("Invalid API key · Please run /login", 401), "Invalid API key · Please run /login"),
        ("echo 'Invalid API key · Please run /login'".into(), "Please run /login"),
        (stated("Overloaded", 529), "Overloaded"),
        (stated("API Error: 503 no healthy upstream", 503), "no healthy upstream"),
        ("echo 'API Error: 529 overloaded_error'".into(), "overloaded_error"),
    ];
    for (says, words) in rows {
        let w = World::new();
        let go = w.path("go");
        let script = format!("[ -e '{}' ] || {{ {says}; exit 1; }}", go.display());
        let claude = w.cli("claude", &script).display().to_string();
        let mut follower = w.follow(&w.cli_loop("a", &["-n", "1", "--check", "true"], &[&claude, "-p"]));
        // The loop retries again and again; in between it waits.
        let waiting = w.until_status("a", "waiting");
        let reason = waiting["reason"].as_str().unwrap();
        let login = reason.starts_with("needs you: ");
        assert_eq!(login, words.contains("/login"), "{reason}");
        assert!(reason.contains(words) && (login || reason.contains(" (goes on by itself ")), "{reason}");
        let next = if login {
            let ls = w.swarm(&["ls"]).ok();
            assert!(ls.err.contains("worker 'a' needs you: "), "{}", ls.err);
            "with another key: swarm ralph resume a --env KEY"
        } else {
            "next: swarm goes on by itself; to try at once: swarm ralph resume a"
        };
        assert_eq!(waiting["metadata"]["ralph_iteration"], 0, "{waiting}");
        w.until("why says so", || {
            let why = w.swarm(&["why", "a"]).ok().out;
            (why.contains(words) && why.contains(next)).then_some(())
        });
        w.until("state.json says so", || {
            let state = w.ralph_state("a");
            let numbers =
                [&state["current_iteration"], &state["consecutive_failures"], &state["total_failures"]];
            (numbers == [0; 3] && state["status"] == "running").then_some(())
        });
        let ledger = w.ledger("a");
        assert_eq!((&ledger["end"], &ledger["consecutive_failures"]), (&Value::Null, &json!(0)), "{ledger}");
        fs::write(&go, "").unwrap();
        w.until("it is tried again", || {
            // A loop that was just about to retry by itself needs no resume.
            let _ = w.swarm(&["ralph", "resume", "a"]);
            follower.has_ended().then_some(())
        });
        assert_eq!(follower.wait(&w), 0, "{}", follower.output());
        let message = reason.trim_start_matches("needs you: ").split(" (goes").next().unwrap();
        follower.says(&format!("[ralph] a: waiting: {}", message.split(" (swarm").next().unwrap()));
        let log = w.iterations_log("a");
        assert_eq!(log.matches("[START] iteration 1/1").count(), w.cli_runs(), "{log}");
        assert!(log.contains("[END] iteration 1 exit=outage") && !log.contains("[FAIL]"), "{log}");
        let ledger = w.ledger("a");
        assert_eq!((&ledger["end"], &ledger["iteration"]), (&json!("all_checks_passed"), &json!(1)));
    }
}

#[test]
fn disabled_access_ends_the_loop_without_a_wait() {
    let w = World::new();
    let script = refused("Your access was disabled by your admin.", 403);
    let claude = w.cli("claude", &script).display().to_string();
    let mut follower = w.follow(&w.cli_loop("a", &["-n", "5"], &[&claude, "-p"]));
    assert_eq!(follower.wait(&w), 1);
    follower.says("disabled by your admin");
    assert_eq!(w.cli_runs(), 1);
    w.ended("a", "failed", "failed", "outage");
}

#[test]
fn wordings_of_an_outage_can_be_set() {
    let w = World::new();
    let agent =
        w.cli("agent", "[ $n != 1 ] || { echo 'sorry, out of beans'; exit 1; }").display().to_string();
    w.write("swarm.toml", "[outage]\nlimit = ['(?i)out of beans']\n");
    w.swarm(&w.cli_loop("a", &["-n", "1", "-d"], &[&agent])).ok();
    // They travel with the worker.
    w.write("swarm.toml", "");
    w.until_status("a", "waiting");
    w.crash_daemon();
    assert!(w.until_status("a", "waiting")["reason"].as_str().unwrap().contains("out of beans"));
    w.swarm(&["ralph", "resume", "a"]).ok();
    w.until_logged("a", "[DONE]");
    assert_eq!(w.cli_runs(), 2);
}

#[test]
fn defaults_of_loop_can_be_set() {
    let w = World::new();
    let repo = w.repo("repo").display().to_string();
    let claude = w.cli("claude", &format!("echo '<promise>FIN</promise>'\n{WORKED}")).display().to_string();
    w.write(
        "swarm.toml",
        "[ralph_loop]\nmax_iterations = 3\nmax_cost = 2.5\nmax_time = 900\ncompletion_tag = \"FIN\"\nagent = \"claude\"\n",
    );
    let args = ["loop", "--name", "a", "--cwd", &repo, "--check", "false", "work", "--", &claude, "-p"];
    assert_eq!(w.follow(&args).wait(&w), 1);
    let ledger = w.ledger("a");
    assert_eq!((&ledger["max_iterations"], &ledger["end"]), (&json!(3), &json!("max_iterations")));
    assert_eq!(ledger["budgets"]["max_cost"], 2.5);
    assert_eq!(ledger["budgets"]["max_time"], 900);
    assert_eq!(ledger["gates"]["promise"], "FIN");
    // The gates never held: the same word, another status.
    assert_eq!(w.ralph_state("a")["status"], "failed");
    w.write("swarm.toml", "[ralph_loop]\n\nagent = \"build\"\n");
    w.swarm(&args)
        .code(1)
        .warns("swarm.toml:3: 'ralph_loop.agent' names an unknown agent")
        .warns("one of: claude");
}

#[test]
fn progress_line_is_shown_on_a_terminal_and_removed_at_the_end() {
    let w = World::new();
    let repo = w.repo("repo").display().to_string();
    let go = w.path("go");
    let script = format!("[ $n != 2 ] || until [ -e '{}' ]; do sleep 0.1; done\n{WORKED}", go.display());
    let claude = w.cli("claude", &script).display().to_string();
    let args =
        ["loop", "--name", "a", "--cwd", &repo, "--no-promise", "-n", "2", "--check", "false", "work", "--"];
    let terminal = Terminal::run(&w, 0, &[&[SWARM], &args[..], &[&claude, "-p"]].concat());
    w.until("the line tells of the second iteration", || {
        let screen = terminal.screen();
        let lines: Vec<&str> = screen.lines().filter(|line| line.starts_with("iteration ")).collect();
        assert!(lines.len() <= 1, "{screen}");
        let line = lines.first()?;
        (line.starts_with("iteration 2/2 · running · ") && line.ends_with(" · $0.60 · last check FAIL false"))
            .then_some(())
    });
    fs::write(&go, "").unwrap();
    let screen = terminal.until_shows("code 1");
    assert!(screen.contains("[ralph] a: starting iteration 2/2\n"), "{screen}");
    assert!(!screen.lines().any(|line| line.starts_with("iteration ")), "{screen}");
    // No line of the loop stands behind the rest of another.
    assert!(
        screen.lines().filter(|line| line.contains("[ralph]")).all(|line| line.starts_with("[ralph]")),
        "{screen}"
    );
    // In a pipe there is none.
    let mut follower = w.follow(&[&args[..], &[&claude, "-p"]].concat());
    assert_eq!(follower.wait(&w), 1);
    assert!(!follower.output().contains('\r') && !follower.output().contains(" · "), "{}", follower.output());
}

#[test]
fn an_invalid_setting_changes_none_of_the_others() {
    let w = World::new();
    let agent = w.agent("a");
    w.spawn_loop("l", &agent, &["-n", "5"]);
    for (wrong, code) in [("bogus=1", 2), ("done_pattern=(", 1), ("max_time=x", 2), ("max_failures=0", 2)] {
        w.swarm(&["ralph", "set", "l", "max_iterations=9", wrong]).code(code);
        assert_eq!(w.ralph_state("l")["max_iterations"], 5, "{wrong}");
    }
    w.swarm(&["ralph", "set", "l", "max_iterations=9", "max_failures=3"]).ok();
    assert_eq!(w.ralph_state("l")["max_iterations"], 9);
}
