//! Reports of an agent's hooks, end to end: a fake Claude Code runs the hooks that it is given.

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::world::{Agent, SWARM, World, signal};

/// A world in which a fake agent is called `claude`, and the agent.
pub(crate) fn world() -> (World, Agent) {
    let mut w = World::new();
    fs::create_dir(w.path("bin")).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/fake-claude.pl");
    std::os::unix::fs::symlink(script, w.path("bin/claude")).unwrap();
    let agent = w.agent("c");
    w.set("FAKE", w.path("agent-c").display().to_string());
    w.write("PROMPT.md", "Do task A\n");
    (w, agent)
}

impl World {
    fn claude(&self) -> String {
        self.path("bin/claude").display().to_string()
    }

    /// Spawns a loop that nothing but a hook ends soon.
    #[track_caller]
    pub(crate) fn hooked_loop(&self, flags: &[&str], args: &[&str]) {
        let head = ["spawn", "--name", "l", "--ralph", "--prompt-file", "./PROMPT.md", "-d", "-n", "3"];
        let head = if flags.contains(&"-n") { &head[..7] } else { &head };
        let claude = self.claude();
        let tail = ["--inactivity-timeout", "900", "--", &claude];
        let _ = self.swarm(&[head, flags, &tail, args].concat()).ok();
    }

    /// Lets some time pass in which nothing is to happen.
    #[track_caller]
    pub(crate) fn let_pass(&self, seconds: u32) {
        let name = format!("clock-{seconds}");
        let _ = self.spawn(&name, &[], &["sleep", &seconds.to_string()]).ok();
        self.until_status(&name, "done");
        let _ = self.swarm(&["clean", &name]).ok();
    }
}

impl Agent {
    /// Waits until run N has its prompt, and obeys.
    #[track_caller]
    pub(crate) fn until_prompted(&self, w: &World, run: usize) {
        let line = format!("prompted {run}");
        w.until(&line, || self.runs().lines().any(|l| l == line).then_some(()));
    }

    /// Has run N's hooks of an event run, with more fields in their input, and waits until they have.
    #[track_caller]
    pub(crate) fn hook(&mut self, w: &World, run: usize, event: &str, more: &Value) {
        let line = format!("{run} {event}.");
        let count = |agent: &Self| agent.file("answers").lines().filter(|l| *l == line).count();
        let before = count(self);
        self.tell(&format!("hook {event} {more}"));
        w.until(&format!("{line} {}", self.file("answers")), || (count(self) > before).then_some(()));
    }

    /// The same for an event that ends the run before its hooks have.
    pub(crate) fn last_hook(&mut self, event: &str, more: &Value) {
        self.tell(&format!("hook {event} {more}"));
    }

    /// The id of run N's session.
    fn session(&self, run: usize) -> String {
        let args = self.file(&format!("args.{run}"));
        let at = args.lines().position(|l| l == "--session-id").unwrap();
        args.lines().nth(at + 1).unwrap().to_owned()
    }
}

/// A turn that is over, with the agent's last words.
pub(crate) fn stop(words: &str) -> Value {
    json!({ "stop_hook_active": false, "last_assistant_message": words, "background_tasks": [] })
}

#[test]
fn turn_end_ends_the_iteration_and_the_next_one_starts() {
    let (w, mut agent) = world();
    w.hooked_loop(&["-n", "2"], &[]);
    for run in [1, 2] {
        agent.until_prompted(&w, run);
        agent.tell("calm All done.");
        agent.hook(&w, run, "Stop", &stop("All done."));
    }
    w.until_status("l", "done");
    let log = w.iterations_log("l");
    for iteration in [1, 2] {
        assert!(log.contains(&format!("[END] iteration {iteration} exit=turn-over")), "{log}");
    }
    assert!(agent.file("answers").lines().all(|l| !l.contains("Stop 0 {")), "{}", agent.file("answers"));
    assert_eq!(agent.file("keys.2"), "Enter\n");
}

#[test]
fn agent_continued_by_another_hook_keeps_its_iteration() {
    let (w, mut agent) = world();
    let own = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"echo '{\"decision\":\"block\",\"reason\":\"more\"}'"}]}]}}"#;
    w.write("own.json", own);
    w.hooked_loop(&["-n", "2"], &["--settings", "own.json"]);
    agent.until_prompted(&w, 1);
    agent.hook(&w, 1, "Stop", &stop("Done, I think."));
    agent.tell("work More, then.");
    w.let_pass(3);
    assert_eq!(agent.starts(), 1, "{}", w.report());
    // Its own hook ran, with ours beside it.
    let answers = agent.file("answers");
    assert!(answers.contains(r#"1 Stop 0 {"decision":"block","reason":"more"}"#), "{answers}");
    assert!(answers.lines().any(|l| l == "1 Stop 0 "), "{answers}");
    // When it stands still, the turn is over, as it said.
    agent.tell("calm Now it is done.");
    agent.until_prompted(&w, 2);
}

#[test]
fn stop_with_background_tasks_does_not_end_the_iteration() {
    let (w, mut agent) = world();
    w.hooked_loop(&[], &[]);
    agent.until_prompted(&w, 1);
    agent.tell("calm I wait for the tests.");
    let tasks = json!([{ "id": "b1", "type": "shell", "status": "running" }]);
    agent.hook(&w, 1, "Stop", &json!({ "last_assistant_message": "waiting", "background_tasks": tasks }));
    // A minute later it says that it waits, whatever it waits for.
    let idle = json!({ "notification_type": "idle_prompt", "message": "Claude is waiting for your input" });
    agent.hook(&w, 1, "Notification", &idle);
    w.let_pass(3);
    assert_eq!(agent.starts(), 1);
    agent.hook(&w, 1, "UserPromptSubmit", &json!({ "prompt": "<task-notification>b1</task-notification>" }));
    let tasks = json!([{ "id": "b1", "type": "shell", "status": "completed" }]);
    agent.hook(&w, 1, "Stop", &json!({ "last_assistant_message": "done", "background_tasks": tasks }));
    agent.until_prompted(&w, 2);
}

#[test]
fn session_loop_keeps_the_iteration_until_its_promise() {
    let (w, mut agent) = world();
    w.hooked_loop(&[], &[]);
    agent.until_prompted(&w, 1);
    agent.tell(&format!("run {SWARM} session start 'all of it' --min-tool-calls 0 --session-id $SESSION"));
    w.until("the loop is there", || agent.file("answers").contains("1 ran 0").then_some(()));
    agent.tell("calm So far.");
    for turn in ["t1", "t2"] {
        let mut told = stop(&format!("{turn} so far"));
        told["prompt_id"] = json!(turn);
        agent.hook(&w, 1, "Stop", &told);
    }
    let blocks =
        agent.file("answers").lines().filter(|l| l.starts_with(r#"1 Stop 0 {"decision":"block""#)).count();
    assert_eq!(blocks, 2, "{}", agent.file("answers"));
    w.let_pass(3);
    assert_eq!(agent.starts(), 1);
    let mut told = stop("All of it.\n<promise>DONE</promise>");
    told["prompt_id"] = json!("t3");
    agent.hook(&w, 1, "Stop", &told);
    agent.until_prompted(&w, 2);
    let ended = w.swarm(&["session", "logs", "--session-id", &agent.session(1)]);
    assert!(ended.out.contains("PROMISE_ACCEPTED"), "{ended:?}");
}

#[test]
fn full_context_ends_the_iteration() {
    let (w, mut agent) = world();
    w.hooked_loop(&[], &[]);
    agent.until_prompted(&w, 1);
    agent.last_hook("PreCompact", &json!({ "trigger": "auto", "custom_instructions": "" }));
    agent.until_prompted(&w, 2);
    w.until_logged("l", "[END] iteration 1 exit=context-spent");
}

#[test]
fn usage_limit_from_a_hook_is_waited_for_and_uses_no_iteration() {
    let (w, mut agent) = world();
    w.hooked_loop(&[], &[]);
    agent.until_prompted(&w, 1);
    let words = json!({ "error": "rate_limit", "last_assistant_message": "You've hit your limit" });
    agent.last_hook("StopFailure", &words);
    let seen = w.until_status("l", "waiting");
    assert!(seen["reason"].as_str().unwrap().contains("hit your limit"), "{seen}");
    let state = w.ralph_state("l");
    assert_eq!((&state["current_iteration"], &state["total_failures"]), (&json!(0), &json!(0)), "{state}");
    assert!(w.iterations_log("l").contains("[END] iteration 1 exit=outage"), "{}", w.iterations_log("l"));
}

#[test]
fn other_api_error_fails_the_iteration() {
    let (w, mut agent) = world();
    w.hooked_loop(&[], &[]);
    agent.until_prompted(&w, 1);
    let words = json!({ "error": "invalid_request", "last_assistant_message": "Prompt is too long" });
    agent.last_hook("StopFailure", &words);
    agent.until_prompted(&w, 2);
    let log = w.iterations_log("l");
    assert!(log.contains("iteration 1 exit=api-error"), "{log}");
    assert_eq!(w.ralph_state("l")["total_failures"], 1);
}

#[test]
fn question_text_is_the_reason_until_the_agent_continues() {
    let (w, mut agent) = world();
    w.hooked_loop(&[], &[]);
    agent.until_prompted(&w, 1);
    let asks = json!({ "notification_type": "permission_prompt", "message": "Claude needs your permission to use Bash" });
    agent.hook(&w, 1, "Notification", &asks);
    let seen = w.until_status("l", "waiting");
    assert_eq!(seen["reason"], "Claude needs your permission to use Bash");
    agent.tell("work It was given.");
    w.until_status("l", "running");
    assert_eq!(agent.starts(), 1);
}

#[test]
fn prompt_reported_by_a_hook_gets_no_second_enter() {
    for (knob, enters) in [("DEAF=1", 1), ("QUIET=1", 2)] {
        let (w, agent) = world();
        let claude = w.claude();
        // Its screen shows nothing of it, so that only its word is left.
        let flags = ["--prompt", "do it", "--env", "DEAF=1", "--env", knob];
        let _ = w.spawn("w", &flags, &[&claude]).ok();
        let keys = || agent.file("keys.1").lines().count();
        if enters > 1 {
            w.until("Enter is pressed again", || (keys() >= enters).then_some(()));
            continue;
        }
        w.until("the prompt is taken", || {
            let log = fs::read_to_string(w.swarm_dir().join("daemon.log")).unwrap_or_default();
            log.contains("PromptSent").then_some(())
        });
        w.let_pass(3);
        assert_eq!((keys(), agent.file("prompt.1").as_str()), (enters, "do it"));
    }
}

#[test]
fn hook_reports_of_other_agents_are_ignored() {
    let (w, mut agent) = world();
    let other = w.agent("d");
    w.hooked_loop(&[], &[]);
    agent.until_prompted(&w, 1);
    agent.tell("calm Still at it, though it looks idle.");
    // An agent that the agent started has its environment, and a session of its own.
    let mut nested = stop("Done.");
    nested["session_id"] = json!("nested");
    agent.hook(&w, 1, "SessionStart", &json!({ "session_id": "nested", "source": "startup" }));
    agent.hook(&w, 1, "Stop", &nested);
    // Somebody outside knows all there is to know.
    let session = agent.session(1);
    let params = json!({ "name": "l", "run": 1, "session": session, "news": { "kind": "turn_over" } });
    let mut wire = w.connect().hello();
    wire.send(format!("{}\n", json!({ "id": 1, "method": "hook", "params": params })).as_bytes());
    let answer = wire.line();
    assert!(answer.contains(r#""heard":false"#), "{answer}");
    // Another worker's agent takes this one's name.
    let fake = format!("FAKE={}", w.path("agent-d").display());
    let claude = w.claude();
    let _ = w.spawn("d", &["--env", &fake], &[&claude]).ok();
    let mut other = other;
    other.until_run(&w, 1);
    other.tell("env SWARM_WORKER=l");
    other.hook(&w, 1, "Stop", &json!({ "session_id": session }));
    w.let_pass(4);
    assert_eq!(agent.starts(), 1, "{}", w.report());
    // A hook of an earlier run comes late.
    agent.hook(&w, 1, "Stop", &stop("Done."));
    agent.until_prompted(&w, 2);
    agent.tell("calm Idle, as it seems.");
    agent.tell("env SWARM_RUN=1");
    agent.hook(&w, 2, "Stop", &stop("Done."));
    w.let_pass(4);
    assert_eq!(agent.starts(), 2, "{}", w.report());
    agent.tell("env SWARM_RUN=2");
    agent.hook(&w, 2, "Stop", &stop("Done."));
    agent.until_prompted(&w, 3);
}

#[test]
fn turn_end_reported_before_a_daemon_crash_ends_the_iteration() {
    let (w, mut agent) = world();
    w.hooked_loop(&[], &[]);
    agent.until_prompted(&w, 1);
    agent.tell("calm All done.");
    agent.hook(&w, 1, "Stop", &stop("All done."));
    w.crash_daemon();
    w.start_daemon();
    agent.until_prompted(&w, 2);
    assert!(w.iterations_log("l").contains("[END] iteration 1 exit=turn-over"), "{}", w.iterations_log("l"));
}

#[test]
fn slow_daemon_receives_a_report_of_a_hook_that_did_not_wait() {
    let (w, mut agent) = world();
    w.hooked_loop(&[], &[]);
    agent.until_prompted(&w, 1);
    agent.tell("calm All done.");
    let daemon = w.daemon_pid().unwrap();
    signal(daemon, Signal::SIGSTOP);
    // Another session's word is worth nothing, whether it can be asked where it comes from or not.
    agent.hook(&w, 1, "Stop", &json!({ "session_id": "nested" }));
    signal(daemon, Signal::SIGCONT);
    w.let_pass(3);
    assert_eq!(agent.starts(), 1);
    signal(daemon, Signal::SIGSTOP);
    agent.hook(&w, 1, "Stop", &stop("All done."));
    signal(daemon, Signal::SIGCONT);
    agent.until_prompted(&w, 2);
}

#[test]
fn turn_end_does_not_end_a_command_that_exits_by_itself() {
    let (w, mut agent) = world();
    w.hooked_loop(&[], &["-p"]);
    agent.until_prompted(&w, 1);
    agent.hook(&w, 1, "Stop", &stop("All done."));
    w.let_pass(3);
    assert_eq!(agent.starts(), 1);
    agent.tell("exit 0");
    agent.until_prompted(&w, 2);
    assert!(w.iterations_log("l").contains("[END] iteration 1 exit=0"), "{}", w.iterations_log("l"));
}

#[test]
fn hooks_can_be_turned_off() {
    let (w, agent) = world();
    fs::create_dir_all(w.path("home/.config/swarm")).unwrap();
    fs::write(w.path("home/.config/swarm/config.toml"), "[agents.claude]\nhooks = \"off\"\n").unwrap();
    w.hooked_loop(&[], &[]);
    agent.until_prompted(&w, 1);
    assert!(!agent.file("args.1").contains("--settings"), "{}", agent.file("args.1"));
    assert_eq!(agent.file("answers"), "1 UserPromptSubmit.\n");
}

#[test]
fn session_without_a_known_id_is_found_by_its_hooks() {
    let (w, mut agent) = world();
    w.hooked_loop(&["--promise", "FINISHED"], &["--continue"]);
    agent.until_prompted(&w, 1);
    let message = json!({
        "id": "m1", "type": "message", "role": "assistant", "model": "m",
        "content": [
            { "type": "tool_use", "id": "t1", "name": "Bash", "input": {} },
            { "type": "text", "text": "<promise>FINISHED</promise>" },
        ],
        "usage": { "input_tokens": 1000, "output_tokens": 50 },
    });
    let line = json!({ "type": "assistant", "isSidechain": false, "timestamp": chrono::Utc::now(), "message": message });
    agent.tell(&format!("line {line}"));
    agent.tell("calm Finished.");
    agent.hook(&w, 1, "Stop", &stop("<promise>FINISHED</promise>"));
    w.until_status("l", "done");
    assert!(!agent.file("args.1").contains("--session-id"), "{}", agent.file("args.1"));
    let report = w.swarm(&["report", "l", "--format", "json"]).ok().json();
    assert_eq!(
        (&report["tokens"], &report["iterations"][0]["tool_calls"]),
        (&json!(1050), &json!(1)),
        "{report}"
    );
}

#[test]
fn the_guard_denies_a_dangerous_command_and_the_worker_has_a_warning() {
    let (w, mut agent) = world();
    w.hooked_loop(&["-n", "1"], &[]);
    agent.until_prompted(&w, 1);
    fs::create_dir_all(w.path("home/.config/swarm")).unwrap();
    let mut calls = 0;
    let mut denied = |settings: &str, input: Value| {
        fs::write(w.path("home/.config/swarm/config.toml"), settings).unwrap();
        agent.hook(&w, 1, "PreToolUse", &input);
        calls += 1;
        let answers = agent.file("answers");
        let answer =
            answers.lines().filter_map(|l| l.strip_prefix("1 PreToolUse 0 ")).nth(calls - 1).unwrap();
        let answer: Value = serde_json::from_str(answer).ok()?;
        let output = &answer["hookSpecificOutput"];
        assert_eq!(
            (&output["hookEventName"], &output["permissionDecision"]),
            (&json!("PreToolUse"), &json!("deny"))
        );
        Some(output["permissionDecisionReason"].as_str().unwrap().to_owned())
    };
    let bash = |command: &str| json!({ "tool_name": "Bash", "tool_input": { "command": command } });
    let reason = denied("", bash("ls && rm -rf ~")).unwrap();
    assert!(
        reason.starts_with("swarm's guard stopped: rm -rf ~ (recursive deletion outside the project)."),
        "{reason}"
    );
    assert!(reason.contains("home/.config/swarm/config.toml"), "{reason}");
    assert_eq!(denied("", bash("ls && rm -rf build")), None);
    let hooks = w.path("home/.gitconfig").display().to_string();
    assert!(denied("", json!({ "tool_name": "Write", "tool_input": { "file_path": hooks } })).is_some());
    let allow = "[guard]\nallow = ['git push --force( .*)?']\n";
    assert_eq!(denied(allow, bash("git push --force origin a")), None);
    assert!(denied(allow, bash("git push --force; rm -rf ~")).is_some());
    // The guard stays on if the settings cannot be read.
    assert!(denied("[guard", bash("reboot")).is_some());
    assert_eq!(denied("[guard]\noff = true\n", bash("reboot")), None);
    let warning = "[WARN] the guard stopped: reboot (shutdown)";
    w.until("the warning", || w.iterations_log("l").contains(warning).then_some(()));
    let log = w.iterations_log("l");
    assert_eq!(log.matches("the guard stopped").count(), 4, "{log}");
}

#[test]
fn hook_waits_for_slow_input() {
    let w = World::new();
    let start = ["session", "start", "all of it", "--session-id", "s", "--max-iterations", "0"];
    let _ = w.swarm(&start).ok();
    // A try in which the machine took longer than any host says nothing.
    w.until("a try in time", || {
        let mut hook = w.command(SWARM);
        hook.args(["hook", "stop"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let start = Instant::now();
        let mut hook = hook.spawn().unwrap();
        let mut host = hook.stdin.take().unwrap();
        for part in [r#"{"session_id":"s","last_assist"#, r#"ant_message":"so far"}"#] {
            std::thread::park_timeout(Duration::from_millis(300));
            host.write_all(part.as_bytes()).unwrap();
        }
        let in_time = start.elapsed() < Duration::from_millis(900);
        // The hook's input is not closed before the hook answers.
        let answer = hook.wait_with_output().unwrap();
        drop(host);
        in_time.then(|| assert!(answer.stdout.starts_with(br#"{"decision":"block""#), "{answer:?}"))
    });
}

#[test]
fn plain_worker_is_idle_after_a_reported_turn_end() {
    let (w, mut agent) = world();
    let claude = w.claude();
    let _ = w.spawn("w", &[], &[&claude]).ok();
    agent.until_run(&w, 1);
    // No box is to be seen, so only its word can be what is gone by.
    agent.tell("bare Whatever.");
    let mut early = w.follow(&["wait", "w", "--for", "idle"]);
    agent.hook(&w, 1, "Stop", &stop("All done."));
    assert_eq!(early.wait(&w), 0, "{}", early.output());
    let _ = w.swarm(&["wait", "w", "--for", "idle", "--timeout", "20"]).ok();
    agent.hook(&w, 1, "UserPromptSubmit", &json!({ "prompt": "more" }));
    let late = w.swarm(&["wait", "w", "--for", "idle", "--timeout", "0"]);
    assert_eq!(late.code, Some(5), "{late:?}");
}
