//! Usage limits of accounts: parks of all loops of an account, their end, and the status line that reports the limits.
//!
//! A fake Claude Code runs the status line that swarm passes, with the fields that Claude Code 2.1 sends.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::world::{Agent, Ran, SWARM, World};

/// A world with a fake `claude` and these settings.
fn world(settings: &str) -> World {
    let w = World::new();
    fs::create_dir(w.path("bin")).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/fake-claude.pl");
    std::os::unix::fs::symlink(script, w.path("bin/claude")).unwrap();
    w.write("PROMPT.md", "Do task A\n");
    configure(&w, settings);
    w
}

fn configure(w: &World, settings: &str) {
    let dir = w.path("home/.config/swarm");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("config.toml"), settings).unwrap();
}

const PARK_AT_90: &str = "[quota.claude]\npark_at = 90\n";

/// Spawns a loop of the fake Claude Code and returns its agent.
fn spawn(w: &mut World, name: &str) -> (Agent, Ran) {
    let agent = w.agent(name);
    w.set("FAKE", w.path(format!("agent-{name}")).display().to_string());
    let claude = w.path("bin/claude").display().to_string();
    let head = ["spawn", "--name", name, "--ralph", "--prompt-file", "./PROMPT.md", "-d", "-n", "5"];
    let tail = ["--inactivity-timeout", "900", "--", &claude];
    let ran = w.swarm(&[&head[..], &tail].concat());
    (agent, ran)
}

/// A loop whose first iteration has its prompt.
fn working(w: &mut World, name: &str) -> Agent {
    let (agent, ran) = spawn(w, name);
    let _ = ran.ok();
    agent.until_prompted(w, 1);
    agent
}

/// The status line of a subscriber: the fields that Claude Code adds to those of every hook.
fn limits(five_hour: f64, resets_in: i64) -> Value {
    let now = Utc::now().timestamp();
    json!({
        "model": {"id": "claude-opus-4-5", "display_name": "Opus 4.5"},
        "workspace": {"current_dir": "/", "project_dir": "/", "added_dirs": []},
        "version": "2.1.332",
        "cost": {"total_cost_usd": 0.1, "total_duration_ms": 5000, "total_api_duration_ms": 2000},
        "context_window": {"context_window_size": 200_000, "used_percentage": 8},
        "rate_limits": {
            "five_hour": {"used_percentage": five_hour, "resets_at": now + resets_in},
            "seven_day": {"used_percentage": 41.2, "resets_at": now + 300_000},
        },
    })
}

impl Agent {
    /// Has run N's status line shown, and returns what it printed.
    #[track_caller]
    fn status_line(&mut self, w: &World, run: usize, fields: &Value) -> String {
        let line = format!("{run} status.");
        let count = |agent: &Self| agent.file("answers").lines().filter(|l| *l == line).count();
        let before = count(self);
        self.tell(&format!("status {fields}"));
        w.until(&format!("{line} {}", self.file("answers")), || (count(self) > before).then_some(()));
        let answers = self.file("answers");
        let start = format!("{run} status ");
        answers.lines().rfind(|l| l.starts_with(&start)).unwrap().to_owned()
    }

    /// Ends run N with success.
    fn ends(&mut self, w: &World, run: usize) {
        self.tell("calm All done.");
        self.last_hook("Stop", &json!({ "last_assistant_message": "All done.", "background_tasks": [] }));
        w.until(&format!("run {run} ends"), || self.pid(run).filter(|pid| !is_alive(*pid)).map(drop));
    }
}

fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}/stat")).exists()
}

/// The account of `swarm quota` whose directory ends like this.
fn account(w: &World, end: &str) -> Value {
    let accounts = w.swarm(&["quota", "--format", "json"]).ok().json();
    let found = accounts.as_array().unwrap().iter().find(|a| a["directory"].as_str().unwrap().ends_with(end));
    found.unwrap_or_else(|| panic!("{accounts}")).clone()
}

fn waits(w: &World, name: &str) {
    let status = w.until_status(name, "waiting");
    assert_eq!(status["cause"]["kind"], "quota", "{status}");
}

#[test]
fn loops_of_a_limited_account_wait_and_another_account_continues() {
    let mut w = world(PARK_AT_90);
    configure(
        &w,
        &format!(
            "{PARK_AT_90}[notify]\ndelay = 0\ncommand = [\"sh\", \"-c\", \"cat >> {}/sent; echo >> {}/sent\"]\n",
            w.path("").display(),
            w.path("").display()
        ),
    );
    let (mut a, mut b) = (working(&mut w, "a"), working(&mut w, "b"));
    w.set("CLAUDE_CONFIG_DIR", w.path("other").display().to_string());
    let mut c = working(&mut w, "c");
    w.unset("CLAUDE_CONFIG_DIR");
    let reset = Instant::now() + Duration::from_secs(40);
    a.status_line(&w, 1, &limits(92.4, 40));
    c.status_line(&w, 1, &limits(12.0, 40));
    let known = account(&w, "/.claude");
    assert_eq!((&known["park_at"], &known["loops"]), (&json!(90), &json!(["a", "b"])), "{known}");
    assert_eq!(known["limits"][0]["used_percent"], 92);
    assert!(known["parked_until"].is_string() && known["parked"].as_array().unwrap().is_empty());
    assert_eq!(account(&w, "/other")["parked_until"], Value::Null);
    // The running iterations go on, and the next ones wait.
    a.ends(&w, 1);
    b.ends(&w, 1);
    c.ends(&w, 1);
    for name in ["a", "b"] {
        w.until_logged(name, "[WAIT] iteration 2 starts after ");
        assert!(w.iterations_log(name).contains("claude account ~/.claude used 92 % of its 5 hour limit"));
        assert_eq!(w.status(name)["iteration"], 1);
    }
    c.until_prompted(&w, 2);
    for agent in [&a, &b] {
        agent.until_prompted(&w, 2);
    }
    assert!(Instant::now() >= reset, "they did not wait");
    for name in ["a", "b"] {
        let log = w.iterations_log(name);
        assert_eq!(log.matches("[START] ").count(), 2, "{log}");
        assert!(log.contains("[START] iteration 2/5"), "{log}");
    }
    let sent = w
        .until("a message", || fs::read_to_string(w.path("sent")).ok().filter(|text| text.contains("fleet")));
    assert_eq!(sent.matches("\"cause\":\"quota\"").count(), 1, "{sent}");
    assert_eq!(account(&w, "/.claude")["parked"], json!([]));
}

#[test]
fn a_park_can_be_lifted_for_one_loop_and_for_all() {
    let mut w = world(PARK_AT_90);
    let (mut a, mut b) = (working(&mut w, "a"), working(&mut w, "b"));
    a.status_line(&w, 1, &limits(90.0, 7200));
    a.ends(&w, 1);
    b.ends(&w, 1);
    waits(&w, "a");
    waits(&w, "b");
    let text = w.swarm(&["status", "a"]).ok();
    assert!(text.out.contains("parked until ") && text.out.contains("(in 1h 5"), "{}", text.out);
    assert!(text.err.contains("swarm ralph resume --all --now"), "{}", text.err);
    w.swarm(&["ls"]).ok().says("m): 90 % of 5 hour limit");
    w.swarm(&["why", "a"]).ok().says("goes on: ");
    w.swarm(&["quota"]).ok().says("2 loops, parked: a, b").warns("swarm ralph resume --all --now");
    // A new loop waits too, and its spawn is answered.
    let (c, ran) = spawn(&mut w, "c");
    ran.ok().warns("the loop waits for the reset: claude account ~/.claude used 90 % of its 5 hour limit");
    waits(&w, "c");
    assert_eq!((c.starts(), &w.status("c")["iteration"]), (0, &json!(0)));
    // A single worker is not touched.
    let _ = w.spawn("plain", &[], &["sh", "-c", "true"]).ok();
    w.until_status("plain", "done");
    w.swarm(&["ralph", "resume", "b"]).ok();
    b.until_prompted(&w, 2);
    b.ends(&w, 2);
    b.until_prompted(&w, 3);
    waits(&w, "a");
    // An agent cannot lift it.
    a.until_run(&w, 1);
    b.tell(&format!("run {SWARM} ralph resume --all --now 2> {}", w.path("refused").display()));
    w.until("the refusal", || b.file("answers").lines().any(|l| l == "3 ran 1").then_some(()));
    assert!(fs::read_to_string(w.path("refused")).unwrap().contains("may not lift the park"));
    waits(&w, "a");
    let ran = w.swarm(&["ralph", "resume", "--all", "--now"]).ok();
    assert!(ran.out.contains("resumed ralph loop for a\n") && ran.out.contains("for c\n"), "{}", ran.out);
    a.until_prompted(&w, 2);
    c.until_prompted(&w, 1);
    a.ends(&w, 2);
    a.until_prompted(&w, 3);
    let known = account(&w, "/.claude");
    assert!(known["lifted_until"].is_string() && known["parked_until"].is_null(), "{known}");
    w.swarm(&["ralph", "resume", "--now", "a"]).code(2);
}

#[test]
fn a_restarted_daemon_keeps_the_park_and_ends_it_at_the_reset() {
    let mut w = world(PARK_AT_90);
    let mut a = working(&mut w, "a");
    a.status_line(&w, 1, &limits(95.0, 7200));
    a.ends(&w, 1);
    waits(&w, "a");
    w.crash_daemon();
    // A mistake in the settings must not send the loops into the limit.
    configure(&w, "[quota.claude]\npark_at = 900\n");
    w.start_daemon();
    waits(&w, "a");
    w.swarm(&["quota"]).ok().warns("[quota] has the values from before this error").warns("park_at");
    configure(&w, PARK_AT_90);
    assert_eq!((a.starts(), &w.status("a")["iteration"]), (1, &json!(1)));
    // The reset passes while no daemon runs.
    w.crash_daemon();
    let file = w.swarm_dir().join("quota.json");
    let mut saved: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    saved[0]["figures"]["five_hour"]["resets_at"] = json!(Utc::now().timestamp() - 5);
    fs::write(&file, saved.to_string()).unwrap();
    w.start_daemon();
    a.until_prompted(&w, 2);
    assert_eq!(w.status("a")["iteration"], 2);
}

#[test]
fn a_changed_setting_and_a_lower_figure_end_a_park() {
    let mut w = world(PARK_AT_90);
    let (mut a, mut b) = (working(&mut w, "a"), working(&mut w, "b"));
    a.status_line(&w, 1, &limits(92.0, 7200));
    a.ends(&w, 1);
    waits(&w, "a");
    configure(&w, "[quota.claude]\npark_at = 95\n");
    w.until("the park ends", || (account(&w, "/.claude")["parked"] == json!([])).then_some(()));
    a.until_prompted(&w, 2);
    b.status_line(&w, 1, &limits(97.0, 7200));
    a.ends(&w, 2);
    waits(&w, "a");
    // The account was upgraded.
    b.status_line(&w, 1, &limits(40.0, 7200));
    a.until_prompted(&w, 3);
}

#[test]
fn limit_reached_by_one_agent_parks_the_others() {
    let mut w = world("");
    let (mut a, mut b) = (working(&mut w, "a"), working(&mut w, "b"));
    a.status_line(&w, 1, &limits(99.0, 7200));
    let message = "You've hit your session limit, resets in 2 hours";
    a.last_hook("StopFailure", &json!({ "error": "rate_limit", "last_assistant_message": message }));
    let status = w.until_status("a", "waiting");
    assert_eq!((&status["cause"]["kind"], &status["iteration"]), (&json!("outage"), &json!(0)), "{status}");
    b.ends(&w, 1);
    waits(&w, "b");
    let text = w.swarm(&["status", "b"]).ok().out;
    assert!(text.contains("used 100 % of its usage limit"), "{text}");
    // A person tries at once: the loop that ran into the limit is not parked by it again.
    w.swarm(&["ralph", "resume", "a"]).ok();
    a.until_prompted(&w, 2);
    w.swarm(&["ralph", "resume", "--all", "--now"]).ok();
    b.until_prompted(&w, 2);
}

#[test]
fn missing_or_invalid_limits_park_no_loop() {
    let mut w = world(PARK_AT_90);
    let mut a = working(&mut w, "a");
    let mut odd = limits(99.0, 7200);
    for limits in
        [Value::Null, json!("x"), json!({"five_hour": 99}), json!({"five_hour": {"used_percentage": "99"}})]
    {
        odd["rate_limits"] = limits;
        a.status_line(&w, 1, &odd);
    }
    // The reset of another window, and one that has passed.
    a.status_line(&w, 1, &limits(99.0, 8 * 3600));
    a.status_line(&w, 1, &limits(99.0, -60));
    a.ends(&w, 1);
    a.until_prompted(&w, 2);
}

// ---- the status line ----

/// Writes the user's settings of Claude Code.
fn user_settings(w: &World, command: &str) {
    fs::create_dir_all(w.path("home/.claude")).unwrap();
    let settings = json!({"statusLine": {"type": "command", "command": command, "padding": 2}});
    fs::write(w.path("home/.claude/settings.json"), settings.to_string()).unwrap();
}

#[test]
fn status_line_of_the_user_is_shown() {
    let mut w = world("");
    user_settings(&w, "echo \"mine: $(cat | grep -o 'total_cost_usd.*total' | head -c 20)\"");
    let mut a = working(&mut w, "a");
    assert_eq!(a.status_line(&w, 1, &limits(5.0, 600)), "1 status 0 mine: total_cost_usd\":0.1,");
    // The project's comes first, also when it is written during the run.
    fs::create_dir_all(w.work().join(".claude")).unwrap();
    w.write(
        ".claude/settings.json",
        &json!({"statusLine": {"type": "command", "command": "echo project"}}).to_string(),
    );
    let mut fields = limits(5.0, 600);
    fields["workspace"]["project_dir"] = json!(w.work());
    assert_eq!(a.status_line(&w, 1, &fields), "1 status 0 project");
    let passed = a.file("args.1");
    let at = passed.lines().position(|line| line == "--settings").unwrap();
    let file = passed.lines().nth(at + 1).unwrap();
    let line =
        serde_json::from_str::<Value>(&fs::read_to_string(file).unwrap()).unwrap()["statusLine"].clone();
    assert_eq!((&line["type"], &line["padding"]), (&json!("command"), &json!(2)));
}

/// Runs `swarm hook status-line` outside of any worker.
fn hook(w: &World, input: &str) -> Ran {
    let mut command = w.command(SWARM);
    command.args(["hook", "status-line"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    child.wait_with_output().unwrap().into()
}

#[test]
fn a_status_line_never_fails() {
    let w = World::new();
    let input = limits(95.0, 600).to_string();
    let shown = |input: &str| {
        let ran = hook(&w, input).ok();
        assert_eq!(ran.err, "");
        ran.out
    };
    assert_eq!(shown(&input), "", "no settings, no daemon");
    user_settings(&w, "echo mine");
    for input in [&*input, "", "{", "[]", "null", "\u{0}"] {
        assert_eq!(shown(input), "mine\n", "{input}");
    }
    for command in ["exit 3", "no-such-program", "swarm hook status-line", ""] {
        user_settings(&w, command);
        assert_eq!(shown(&input), "", "{command}");
    }
    let began = Instant::now();
    user_settings(&w, &format!("echo $$ > {}; sleep 1000", w.path("pid").display()));
    assert_eq!(shown(&input), "");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    let pid: u32 = fs::read_to_string(w.path("pid")).unwrap().trim().parse().unwrap();
    w.until("the command ends", || (!is_alive(pid)).then_some(()));
    assert!(!w.swarm_dir().join("quota.json").exists());
}

#[test]
fn quota_shows_usage_and_resets() {
    let mut w = world("");
    w.swarm(&["quota"]).ok().warns("no loop of an agent that reports its limits");
    let mut a = working(&mut w, "a");
    w.swarm(&["quota"]).ok().says("claude account ~/.claude  -");
    a.status_line(&w, 1, &limits(23.5, 7200));
    let out = w.swarm(&["quota"]).ok().says("5 hour limit  23 %  1h 5").out;
    assert!(out.contains("7 day limit   41 %  3d 11h"), "{out}");
    let known = account(&w, "/.claude");
    let reset = known["limits"][0]["resets_at"].as_str().unwrap();
    assert!(DateTime::parse_from_rfc3339(reset).unwrap() > Utc::now());
    assert_eq!(known["park_at"], Value::Null);
}
