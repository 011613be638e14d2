//! The context monitor (`swarm hook post-tool-use`): alerts, the percentage of a worker, and `--max-context`.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::hook_reports;
use crate::turns::{Heard, Host};
use crate::world::World;

impl Host<'_> {
    /// Sets the size of the transcript, in percent of 200,000 tokens of 4 bytes.
    fn fills(&self, percent: u64) {
        fs::write(&self.transcript, vec![b'x'; usize::try_from(percent * 8000).unwrap()]).unwrap();
    }

    /// Runs the hook after a tool call, and returns the alert.
    #[track_caller]
    fn uses_tool(&self) -> Option<String> {
        let ran = self.hook("post-tool-use", &self.input("PostToolUse", ""));
        if !ran.out.is_empty() {
            assert_eq!(ran.json()["hookSpecificOutput"]["hookEventName"], "PostToolUse");
        }
        Heard::of(ran).context
    }

    /// Runs the hook at the start of a session.
    #[track_caller]
    fn session_starts(&self, source: &str) {
        let mut input = self.input("SessionStart", "");
        input["source"] = json!(source);
        Heard::of(self.hook("session-start", &input)).is_let();
    }

    /// The severity of the alert at a percentage.
    #[track_caller]
    fn severity_at(&self, percent: u64) -> Option<String> {
        self.fills(percent);
        let alert = self.uses_tool()?;
        assert!(alert.contains(&format!("{percent}% used")), "{alert}");
        Some(alert.split([' ', ':']).nth(1).unwrap().to_owned())
    }
}

fn request(model: &str, tokens: u64) -> Value {
    json!({"type": "assistant", "isSidechain": false, "message": {"id": format!("m{tokens}"), "model": model,
        "content": [], "usage": {"input_tokens": 1000, "cache_read_input_tokens": tokens - 1000, "output_tokens": 0}}})
}

const SONNET: &str = "claude-sonnet-4-5-20250929";

/// The document's verification plan, 3.
#[test]
fn alerts_fire_at_the_thresholds_and_each_threshold_fires_once() {
    let world = World::new();
    let host = Host::new(&world, "s1");
    let rows = [
        (10, None),
        (49, None),
        (50, Some("NOTICE")),
        (50, None),
        (59, None),
        (60, Some("NOTICE")),
        (69, None),
        (70, Some("WARNING")),
        (79, None),
        (80, Some("WARNING")),
        (80, None),
        (90, Some("CRITICAL")),
        (99, None),
        (90, None),
    ];
    for (percent, severity) in rows {
        assert_eq!(host.severity_at(percent).as_deref(), severity, "{percent}");
    }
    // Another session has its own thresholds, and a jump gives the highest of them.
    let other = Host::new(&world, "s2");
    assert_eq!(other.severity_at(85).as_deref(), Some("WARNING"));
    assert_eq!(other.severity_at(75), None);
    assert_eq!(other.severity_at(95).as_deref(), Some("CRITICAL"));
}

#[test]
fn session_start_resets_the_alert_thresholds() {
    let world = World::new();
    let host = Host::new(&world, "s1");
    for source in ["startup", "resume", "clear", "compact"] {
        assert_eq!(host.severity_at(55).as_deref(), Some("NOTICE"), "{source}");
        assert_eq!(host.severity_at(55), None);
        host.session_starts(source);
    }
}

#[test]
fn context_window_from_the_settings_replaces_the_default() {
    let world = World::new();
    for (window, percent) in
        [("400000", None), ("100000", Some("100%")), ("0", Some("50%")), ("x", Some("50%"))]
    {
        let mut host = Host::new(&world, &format!("s-{window}"));
        host.env.push(("CLAUDE_CONTEXT_WINDOW".to_owned(), window.to_owned()));
        host.fills(50);
        let alert = host.uses_tool();
        assert_eq!(alert.is_some(), percent.is_some(), "{window}: {alert:?}");
        if let Some(percent) = percent {
            assert!(alert.unwrap().contains(&format!("{percent} used")), "{window}");
        }
    }
}

#[test]
fn images_do_not_count_in_the_context_estimate() {
    let world = World::new();
    let host = Host::new(&world, "s1");
    let image = format!("{{\"type\":\"user\",\"data\":\"{}\"}}\n", "iVBORw0KGgo5".repeat(40_000));
    fs::write(&host.transcript, format!("{}\n{}", request(SONNET, 20_000), image.repeat(12))).unwrap();
    assert_eq!(host.uses_tool(), None);
}

#[test]
fn alert_names_the_task_list_of_a_task_loop() {
    let world = World::new();
    let alert = |session: &str, dir: &Path| {
        let host = Host::new(&world, session).in_dir(dir);
        host.fills(90);
        host.uses_tool().unwrap()
    };
    assert!(!alert("s1", &world.work()).contains("tasks.json"));
    fs::create_dir(world.work().join("ralph")).unwrap();
    world.write("ralph/tasks.json", "{}");
    assert!(!alert("s0", &world.work()).contains("tasks.json"), "no loop works on it");
    world.write(".ralph-active", "{}");
    let text = "(1) create tasks in tasks.json for any remaining work, (2) write implementation details, insights, and \
                handoff notes to progress.txt, (3) commit all changes, (4) stop. The next iteration will continue from \
                where you left off.";
    assert!(alert("s2", &world.work()).ends_with(text));
    let sub = world.work().join("sub");
    fs::create_dir(&sub).unwrap();
    assert!(alert("s3", &sub).ends_with(text));
    fs::create_dir(sub.join(".git")).unwrap();
    assert!(!alert("s4", &sub).contains("tasks.json"), "another repository");
}

#[test]
fn reported_tokens_replace_the_estimate_and_compaction_resets_alerts() {
    let world = World::new();
    let host = Host::new(&world, "s1");
    let output = json!({"type": "user", "message": {"content": "x".repeat(700_000)}});
    let says = |lines: &[&Value]| {
        let lines: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&host.transcript, lines.concat()).unwrap();
        host.uses_tool()
    };
    // The estimate would be 87%. A long output follows the request, so that the first part read has none.
    assert_eq!(says(&[&request(SONNET, 99_999), &output]), None);
    assert!(
        says(&[&output, &request(SONNET, 190_000)])
            .unwrap()
            .starts_with("Context CRITICAL: 95% used (190000 of 200000")
    );
    assert_eq!(says(&[&output, &request(SONNET, 195_000)]), None);
    let boundary = json!({"type": "system", "subtype": "compact_boundary"});
    assert_eq!(says(&[&output, &request(SONNET, 195_000), &boundary]), None);
    assert!(says(&[&boundary, &request(SONNET, 110_000)]).unwrap().starts_with("Context NOTICE: 55% used"));
    assert_eq!(says(&[&request("claude-opus-5-5", 495_000)]), None, "a window of a million tokens");
}

#[test]
fn two_hooks_at_once_give_one_alert() {
    let world = World::new();
    let host = Host::new(&world, "s1");
    for percent in [50, 60, 70, 80, 90] {
        host.fills(percent);
        let heard = host.both("post-tool-use", &host.input("PostToolUse", ""));
        assert_eq!(heard.iter().filter(|heard| heard.context.is_some()).count(), 1, "{percent}: {heard:?}");
    }
}

#[test]
fn invalid_hook_input_gets_no_alert() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.fills(95);
    for more in [
        json!({"session_id": "../../x"}),
        json!({"session_id": ".hidden"}),
        json!({"session_id": "a/b\u{7f}"}),
        json!({"session_id": null}),
        json!({"transcript_path": null}),
        json!({"transcript_path": "/dev/zero"}),
        json!({"transcript_path": "/none"}),
        json!({"agent_id": "a1", "agent_type": "Explore"}),
    ] {
        host.more = more;
        assert_eq!(host.uses_tool(), None, "{}", host.more);
    }
    assert!(!world.swarm_dir().join("sessions").exists());
    for input in ["", "{", "[]", "7"] {
        Heard::of(host.hook_bytes("post-tool-use", input.as_bytes())).is_let();
    }
}

#[test]
fn records_of_alerts_are_private_and_old_ones_removed() {
    let world = World::new();
    let host = Host::new(&world, "old");
    assert!(host.severity_at(90).is_some());
    let root = world.swarm_dir().join("sessions/.context");
    for (path, mode) in [(root.join("old"), 0o700), (root.join("old/90"), 0o600)] {
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode, "{}", path.display());
    }
    let month_ago = SystemTime::now() - Duration::from_secs(31 * 24 * 60 * 60);
    fs::File::open(root.join("old")).unwrap().set_modified(month_ago).unwrap();
    let new = Host::new(&world, "new");
    assert!(new.severity_at(90).is_some());
    Host::new(&world, "third").session_starts("startup");
    assert_eq!((root.join("old").exists(), root.join("new").exists()), (false, true));
}

#[test]
fn max_context_asks_the_agent_to_stop_and_then_ends_the_iteration() {
    let (w, mut agent) = hook_reports::world();
    w.hooked_loop(&["--max-context", "70"], &[]);
    agent.until_prompted(&w, 1);
    let no_percent = |w: &World| assert_eq!(w.status("l")["context_percent"], Value::Null);
    no_percent(&w);
    for (tokens, percent) in [(80_000, 40), (146_000, 73), (168_000, 84)] {
        agent.tell(&format!("line {}", request(SONNET, tokens)));
        agent.hook(&w, 1, "PostToolUse", &json!({ "tool_name": "Bash" }));
        assert_eq!(w.status("l")["context_percent"], percent);
    }
    w.swarm(&["status", "l"]).ok().says("context    84% used");
    let mut wide = w.command(crate::world::SWARM);
    wide.args(["ls"]);
    w.run(wide).ok().says("CONTEXT").says("84%");
    let answers = agent.file("answers");
    let nudge = "Context LIMIT: 73% used; this iteration may use 70%. Wrap up now: commit your work, then stop. swarm \
                 ends this iteration when 85% is used.";
    assert_eq!(answers.matches(nudge).count(), 1, "{answers}");
    assert_eq!(answers.matches("Context WARNING: ").count(), 2, "{answers}");
    agent.tell(&format!("line {}", request(SONNET, 172_000)));
    agent.last_hook("PostToolUse", &json!({ "tool_name": "Bash" }));
    agent.until_prompted(&w, 2);
    no_percent(&w);
    w.until_logged("l", "[END] iteration 1 exit=context-spent");
    let reason = "its context is 86% full; --max-context 70 ends it at 85%";
    w.until_logged("l", &format!("[WARN] iteration 1: {reason}"));
    w.swarm(&["why", "l"]).ok().says(reason);
    let report = w.swarm(&["report", "l", "--format", "json"]).ok().json();
    assert_eq!(
        (&report["budgets"]["max_context"], &report["iterations"][0]["reason"]),
        (&json!(70), &json!(reason))
    );
    // The next iteration is a new session, whose first report only asks it to stop.
    w.swarm(&["ralph", "set", "l", "max_context=20"]).ok();
    agent.tell(&format!("line {}", request(SONNET, 90_000)));
    agent.hook(&w, 2, "PostToolUse", &json!({ "tool_name": "Bash" }));
    assert!(agent.file("answers").contains("this iteration may use 20%"));
    assert_eq!(w.status("l")["iteration"], 2);
}

#[test]
fn bad_limits_of_the_context_are_refused() {
    let (w, agent) = hook_reports::world();
    for bad in ["0", "101", "-1", "70%", "x", ""] {
        let args = [
            "loop",
            "a task",
            "-n",
            "1",
            "-d",
            "--check",
            "true",
            &format!("--max-context={bad}"),
            "--",
            "claude",
        ];
        w.swarm(&args).code(2).warns("give a whole number from 1 to 100");
    }
    let sh = [
        "loop",
        "a task",
        "-n",
        "1",
        "-d",
        "--check",
        "true",
        "--max-context",
        "70",
        "--",
        "sh",
        "-c",
        "true",
    ];
    w.swarm(&sh)
        .code(1)
        .warns("--max-context: swarm cannot see the context of 'generic'")
        .warns("--iteration-timeout");
    w.hooked_loop(&[], &[]);
    agent.until_prompted(&w, 1);
    for bad in ["0", "101", "x"] {
        w.swarm(&["ralph", "set", "l", &format!("max_context={bad}")]).code(2).warns("max_context: ");
    }
    w.swarm(&["ralph", "set", "l", "max_context=100"]).ok();
    w.swarm(&["ralph", "set", "l", "max_context=null"]).ok();
}

#[test]
fn default_context_limit_requires_hooks_and_can_be_turned_off() {
    let (w, _agent) = hook_reports::world();
    w.write("swarm.toml", "[ralph_loop]\nmax_context = 50\nmax_time = '1h'\n");
    let claude = w.path("bin/claude").display().to_string();
    let start = |name: &str, flags: &[&str], cmd: &str| {
        let args = [&["loop", "a task", "-d", "--name", name, "--check", "false", "-n", "1"], flags];
        w.swarm(&[&args.concat()[..], &["--", cmd]].concat())
    };
    let limits = |name: &str| {
        let budgets = &w.swarm(&["report", name, "--format", "json"]).ok().json()["budgets"];
        (budgets["max_context"].clone(), budgets["max_time"].clone())
    };
    let warning = "max_context of the settings has no effect: 'generic' has no hooks";
    start("script", &[], "true").ok().warns(warning);
    assert_eq!(limits("script"), (Value::Null, json!(3600)));
    start("free", &["--max-context", "none", "--max-time=none"], &claude).ok();
    assert_eq!(limits("free"), (Value::Null, Value::Null));
    start("usual", &[], &claude).ok();
    assert_eq!(limits("usual"), (json!(50), json!(3600)));
    fs::create_dir_all(w.path("home/.config/swarm")).unwrap();
    fs::write(w.path("home/.config/swarm/config.toml"), "[agents.claude]\nhooks = \"off\"\n").unwrap();
    start("off", &["--max-context", "50"], &claude).code(1).warns("of 'claude': its hooks are off");
}

/// The hook runs after each tool call. A whole read of this transcript would exceed its timeout.
#[test]
fn a_transcript_is_read_from_its_end() {
    let world = World::new();
    let host = Host::new(&world, "s1");
    let file = fs::File::create(&host.transcript).unwrap();
    file.set_len(1 << 40).unwrap();
    file.write_all_at(format!("\n{}\n", request(SONNET, 100_000)).as_bytes(), 1 << 40).unwrap();
    assert!(host.uses_tool().unwrap().contains("50% used"));
}
