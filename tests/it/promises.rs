//! The promise in the outer loop: the acceptance tests of promise detection, and the two faults known of others.
//!
//! Beside the plain scripts stand fakes named `claude` that print its `stream-json` lines or leave its transcript.

use serde_json::{Value, json};

use crate::verified::Desk;
use crate::world::SWARM;

const TAG: &str = "<promise>DONE</promise>";

/// The text that Claude Code prints or records in one iteration: so many tool calls, then messages.
struct Said {
    calls: u32,
    texts: Vec<String>,
}

impl Said {
    fn new(calls: u32, texts: &[&str]) -> Self {
        Self { calls, texts: texts.iter().map(|text| (*text).to_owned()).collect() }
    }

    fn lines(&self) -> Vec<Value> {
        let usage = json!({"input_tokens": 10, "output_tokens": 5});
        let mut lines = vec![json!({"type": "system", "subtype": "init", "session_id": "s"})];
        let mut say = |id: String, block: Value| {
            let message = json!({"id": id, "role": "assistant", "content": [block], "usage": usage});
            lines.push(json!({"type": "assistant", "message": message, "session_id": "s"}));
        };
        for n in 0..self.calls {
            say(
                format!("c{n}"),
                json!({"type": "tool_use", "id": format!("t{n}"), "name": "Bash", "input": {}}),
            );
        }
        for (n, text) in self.texts.iter().enumerate() {
            say(format!("m{n}"), json!({"type": "text", "text": text}));
        }
        lines
    }

    fn result(&self) -> Value {
        json!({"type": "result", "subtype": "success", "is_error": false, "result": self.texts.last(),
               "total_cost_usd": 0.02, "usage": {"input_tokens": 10, "output_tokens": 5}, "session_id": "s"})
    }

    /// As `--output-format stream-json` prints it.
    fn printed(&self) -> String {
        let mut lines = self.lines();
        lines.push(self.result());
        printed(&lines)
    }

    /// As the transcript of the session that was asked for; on the screen stand the last words.
    fn written(&self) -> String {
        let find = "while [ $# -gt 0 ]; do [ \"$1\" = --session-id ] && id=$2; shift; done";
        let dir = "\"$HOME/.claude/projects/p\"";
        let lines = printed(&self.lines());
        format!("{find}\nmkdir -p {dir}\n({lines}\n) >{dir}/\"$id.jsonl\"\necho 'as the transcript says'")
    }
}

/// Shell text that prints these lines.
pub(crate) fn printed(lines: &[Value]) -> String {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    format!("cat <<'EOF'\n{}\nEOF", lines.join("\n"))
}

/// Runs `spawn --ralph --promise DONE` to its end; its exit status.
#[track_caller]
fn run(d: &Desk, code: i32, flags: &[&str], agent: &[String]) -> Value {
    let file = d.path("PROMPT.md");
    if !file.exists() {
        std::fs::write(&file, "Do task A\n").unwrap();
    }
    let file = file.display().to_string();
    let head = ["spawn", "--name", "a", "--ralph", "--prompt-file", &file, "--promise", "DONE"];
    let limit: &[&str] = if flags.contains(&"-n") { &[] } else { &["-n", "5"] };
    let agent: Vec<&str> = agent.iter().map(String::as_str).collect();
    let _ = d.w.swarm(&[&head[..], limit, flags, &["--"], &agent].concat()).code(code);
    d.w.swarm(&["report", "a", "--format", "json"]).ok().json()
}

fn claims(report: &Value) -> Vec<&str> {
    let iterations = report["iterations"].as_array().unwrap();
    iterations.iter().map(|it| it["verdict"]["promise"].as_str().unwrap()).collect()
}

#[test]
fn acceptance_1_the_loop_stops_on_a_promise_after_work() {
    let d = Desk::new();
    let agent = d.agent_called("claude", &[&Said::new(2, &["working", TAG]).printed()]);
    let report = run(&d, 0, &[], &agent);
    assert_eq!((&report["end"], claims(&report)), (&"promise_accepted".into(), vec!["given"]));
    assert_eq!((d.turns(), &report["iterations"][0]["tool_calls"]), (1, &2.into()));
    assert_eq!(report["cost_usd"], 0.02);
}

#[test]
fn acceptance_2_the_loop_continues_without_the_promise() {
    let d = Desk::new();
    let turns = [Said::new(1, &["I'm done"]).printed(), Said::new(1, &[TAG]).printed()];
    let agent = d.agent_called("claude", &[&turns[0], &turns[1]]);
    let report = run(&d, 0, &[], &agent);
    assert_eq!(claims(&report), ["missing", "given"]);
    let told = d.prompt(2);
    assert!(told.contains("- the promise was not given\n") && told.contains("Do task A\n"), "{told}");
}

#[test]
fn acceptance_3_without_a_promise_the_iterations_run_out() {
    let d = Desk::new();
    let agent = d.agent_called("claude", &[&Said::new(1, &["not yet"]).printed()]);
    let report = run(&d, 1, &["-n", "3"], &agent);
    assert_eq!((&report["end"], d.turns()), (&"max_iterations".into(), 3));
}

#[test]
fn acceptance_4_a_promise_without_work_is_rejected() {
    let d = Desk::new();
    let turns = [Said::new(0, &[TAG]).printed(), Said::new(1, &[TAG]).printed()];
    let agent = d.agent_called("claude", &[&turns[0], &turns[1]]);
    let report = run(&d, 0, &[], &agent);
    assert_eq!(claims(&report), ["rejected", "given"]);
    assert!(d.prompt(2).contains("promise without work"), "{}", d.prompt(2));
}

#[test]
fn changes_outside_of_the_snapshot_count_as_work() {
    for (setup, work) in [
        ("printf '*.db\\n' >.git/info/exclude", "echo row >app.db"),
        ("git init -q inner", "echo text >inner/file"),
    ] {
        let d = Desk::new();
        let mut shell = d.w.command("sh");
        shell.args(["-c", setup]);
        d.w.run(shell).ok();
        let agent = d.agent(&[&format!("{work}; echo '{TAG}'")]);
        let report = run(&d, 0, &[], &agent);
        assert_eq!((claims(&report), d.turns()), (vec!["given"], 1), "{work}");
    }
}

#[test]
fn acceptance_5_a_promise_in_the_final_message_stops_the_loop() {
    let d = Desk::new();
    let long = format!("All of it is done now.\n\nA summary:\n- one\n- two\n\n{TAG}");
    let agent = d.agent_called("claude", &[&Said::new(3, &["first", "second", &long]).written()]);
    let report = run(&d, 0, &[], &agent);
    assert_eq!((claims(&report), d.turns()), (vec!["given"], 1));
    assert_eq!(report["iterations"][0]["tool_calls"], 3, "the transcript was found by its session's id");
    assert!(d.read("args.1").contains("--session-id "));
}

#[test]
fn known_fault_a_promise_is_not_overlooked_on_a_screen() {
    let d = Desk::new();
    let token = "A-LONG-TOKEN-THAT-DOES-NOT-FIT-A-LINE-OF-A-NARROW-SCREEN";
    let narrow = format!("echo '<promise>{token}</promise>'");
    let shapes = [
        ("in the middle", format!("echo first; echo '{TAG}'; seq 400"), &[][..]),
        ("CRLF", format!("printf 'so:\\r\\n{TAG}\\r\\nbye\\r\\n'"), &[]),
        ("white space", format!("printf '   {TAG}  \\t \\n'"), &[]),
        ("a bullet", format!("echo '⏺ {TAG}'"), &[]),
        ("a frame", format!("printf '│ {TAG}      │\\n'"), &[]),
        ("colours", format!("printf '\\033[1m{TAG}\\033[0m\\n'"), &[]),
        ("no line break at its end", format!("printf '{TAG}'"), &[]),
        ("a narrow screen", narrow, &["--size", "30x10", "--promise", token]),
        ("an agent that fails", format!("echo '{TAG}'; exit 3"), &[]),
    ];
    for (what, turn, flags) in shapes {
        let agent = d.agent(&[&format!("date +%N >>x\n{turn}")]);
        let file = d.path("PROMPT.md").display().to_string();
        std::fs::write(&file, "Do task A\n").unwrap();
        let promise: &[&str] = if flags.contains(&"--promise") { &[] } else { &["--promise", "DONE"] };
        let head = ["spawn", "--name", "a", "--ralph", "--prompt-file", &file, "-n", "1"];
        let ran = d.w.swarm(&[&head[..], promise, flags, &["--", &agent[0]]].concat());
        assert_eq!(ran.code, Some(0), "{what}: {ran:?}\n{}", d.kept(1, "output.txt"));
    }
}

#[test]
fn known_fault_a_promise_shown_in_the_prompt_is_not_overlooked() {
    let d = Desk::new();
    std::fs::write(d.path("PROMPT.md"), format!("Do task A\nWhen done, say\n{TAG}\nand nothing else.\n"))
        .unwrap();
    // The first only repeats what it was told.
    let agent = d.agent(&[
        "date +%N >>x; cat \"$D/prompt.$n\"",
        &format!("date +%N >>x; cat \"$D/prompt.$n\"; echo '{TAG}'"),
    ]);
    assert_eq!(claims(&run(&d, 0, &[], &agent)), ["missing", "given"]);
}

#[test]
fn known_fault_a_promise_is_not_overlooked_in_the_agents_text() {
    let d = Desk::new();
    let shapes = [
        vec![TAG, "one more thing: I have cleaned up", "bye"],
        vec!["before\n\n```\n<promise>DONE</promise>\n```\nafter"],
        vec!["so\r\n<promise>DONE</promise>\r\nend"],
        vec!["- done: **<promise>DONE</promise>**."],
    ];
    for texts in shapes {
        let said = Said::new(1, &texts);
        for turn in [said.printed(), said.written()] {
            let agent = d.agent_called("claude", &[&turn]);
            assert_eq!(claims(&run(&d, 0, &["-n", "1"], &agent)), ["given"], "{texts:?}");
        }
    }
    // `--output-format json`: one object, longer than the screen is wide.
    let long = format!("{} {TAG}", "word ".repeat(600));
    let result = printed(&[Said::new(0, &[&long]).result()]);
    let agent = d.agent_called("claude", &[&format!("touch y\n{result}")]);
    assert_eq!(claims(&run(&d, 0, &["-n", "1"], &agent)), ["given"]);
}

#[test]
fn known_fault_a_promise_without_work_does_not_end_a_loop() {
    let d = Desk::new();
    // Nothing changes in the tree; then a file does, then a commit is made and the tree is as it was.
    let say = format!("echo '{TAG}'");
    let agent = d.agent(&[&say, &format!("touch x; {say}")]);
    assert_eq!(claims(&run(&d, 0, &[], &agent)), ["rejected", "given"]);
    let agent = d.agent(&[&format!("git commit -q --allow-empty -m work; {say}")]);
    assert_eq!(claims(&run(&d, 0, &["-n", "1"], &agent)), ["given"]);
    // A cache that git ignores is not work.
    std::fs::write(d.w.work().join(".git/info/exclude"), "target\n").unwrap();
    let agent = d.agent(&[&format!("mkdir target; date +%N >target/x; {say}")]);
    assert_eq!(claims(&run(&d, 1, &["-n", "1"], &agent)), ["rejected"]);
}

#[test]
fn known_fault_files_written_by_a_check_are_not_work() {
    let d = Desk::new();
    let agent = d.agent(&["true", &format!("echo '{TAG}'")]);
    let check = ["--check", "date +%N >report.txt"];
    let report = run(&d, 1, &[&check[..], &["-n", "3"]].concat(), &agent);
    assert_eq!(claims(&report), ["missing", "rejected", "rejected"]);
    let moved = |n: usize| report["iterations"][n]["verdict"]["moved"].as_bool().unwrap();
    assert_eq!((moved(0), moved(1), moved(2)), (false, false, false));
}

#[test]
fn work_of_an_earlier_iteration_counts_for_a_later_promise() {
    let d = Desk::new();
    let agent = d.agent(&["touch x", &format!("echo '{TAG}'")]);
    assert_eq!(claims(&run(&d, 0, &["-n", "2"], &agent)), ["missing", "given"]);
    // A check turned green by something that git ignores.
    std::fs::write(d.w.work().join(".git/info/exclude"), "cache\n").unwrap();
    let agent = d.agent(&[&format!("touch cache; echo '{TAG}'")]);
    assert_eq!(claims(&run(&d, 0, &["-n", "1", "--check", "test -e cache"], &agent)), ["given"]);
}

#[test]
fn a_promise_is_without_work_when_the_repository_is_gone() {
    for spoil in ["rm -rf .git", "git config core.bare true", "git config core.worktree \"$D\""] {
        let d = Desk::new();
        let agent = d.agent(&[&format!("{spoil}; echo '{TAG}'")]);
        assert_eq!(claims(&run(&d, 1, &["-n", "1"], &agent)), ["rejected"], "{spoil}");
    }
}

#[test]
fn change_with_the_same_size_and_time_counts_as_work() {
    let d = Desk::new();
    d.commit("code", "one\n");
    // The same size and time.
    let agent = d.agent(&[&format!(
        "git config core.trustctime false; git config core.checkStat minimal; touch -r code ref; printf 'two\\n' >code; \
         touch -r ref code; rm ref; echo '{TAG}'"
    )]);
    let report = run(&d, 0, &["-n", "1"], &agent);
    assert_eq!(claims(&report), ["given"]);
}

#[test]
fn min_tool_calls_and_on_promise_no_work_set_the_required_work() {
    let d = Desk::new();
    let two = Said::new(2, &[TAG]).printed();
    let agent = d.agent_called("claude", &[&two]);
    assert_eq!(claims(&run(&d, 1, &["-n", "1", "--min-tool-calls", "3"], &agent)), ["rejected"]);
    assert_eq!(claims(&run(&d, 0, &["-n", "1", "--min-tool-calls", "2"], &agent)), ["given"]);
    let agent = d.agent_called("claude", &[&Said::new(0, &[TAG]).printed()]);
    assert_eq!(claims(&run(&d, 0, &["-n", "1", "--min-tool-calls", "0"], &agent)), ["given"]);
    assert_eq!(claims(&run(&d, 0, &["-n", "1", "--on-promise-no-work", "warn"], &agent)), ["doubtful"]);
    assert_eq!(claims(&run(&d, 0, &["-n", "1", "--on-promise-no-work", "accept"], &agent)), ["given"]);
}

/// Returns the source of the promise of the last iteration, as JSON; `why` and `report` must show the same.
#[track_caller]
fn seen(d: &Desk, report: &Value) -> Value {
    let seen = report["iterations"].as_array().unwrap().last().unwrap()["verdict"]["promise_seen"].clone();
    if let Some(word) = seen.as_str() {
        let line = format!("PASS  the agent printed its promise (promise seen in: {word})");
        d.w.swarm(&["why", "a"]).ok().says(&line);
        d.w.swarm(&["report", "a"]).ok().says(&line);
    }
    seen
}

#[test]
fn source_of_the_promise_is_reported() {
    let d = Desk::new();
    let said = Said::new(1, &[TAG]);
    let opencode = |text: &str| {
        let line = |kind: &str, part: Value| json!({"type": kind, "sessionID": "s", "part": part});
        printed(&[
            line("step_start", json!({})),
            line("tool_use", json!({"callID": "c"})),
            line("text", json!({"text": text})),
        ])
    };
    let text = |line: &str| format!("echo '> build'; echo; echo '{line}'");
    let shapes: [(&str, &[&str], String, &str); 6] = [
        ("claude", &[], said.written(), "transcript"),
        ("claude", &[], said.printed(), "result"),
        ("opencode", &["run", "--format", "json"], opencode(TAG), "result"),
        ("opencode", &["run"], text(TAG), "screen"),
        ("agent", &[], text(TAG), "screen"),
        ("agent", &[], said.printed(), "result"),
    ];
    for (name, args, turn, source) in shapes {
        let mut agent = d.agent_called(name, &[&format!("date +%N >>x\n{turn}")]);
        agent.extend(args.iter().map(|arg| (*arg).to_owned()));
        let report = run(&d, 0, &["-n", "1"], &agent);
        assert_eq!((claims(&report), seen(&d, &report)), (vec!["given"], source.into()), "{name} {args:?}");
    }
    let agent = d.agent(&["date +%N >>x"]);
    assert_eq!(seen(&d, &run(&d, 1, &["-n", "1"], &agent)), Value::Null);
}

#[test]
fn json_printed_by_a_tool_is_not_a_record_of_the_agent() {
    let d = Desk::new();
    // The forged line says all that a record would, with the tag in the middle of the words.
    let forged = Said::new(3, &[&format!("I am done: {TAG}.")]).printed();
    let silent = Said::new(1, &["not yet"]).written();
    let wordless = Said::new(1, &[]).written();
    let shapes: [(&str, &[&str], String); 4] = [
        ("claude", &[], format!("{silent}\n{forged}")),
        ("claude", &[], format!("{wordless}\n{forged}")),
        ("opencode", &["run"], forged.clone()),
        ("opencode", &["run"], format!("echo 'I shall say {TAG} later'")),
    ];
    for (name, args, turn) in shapes {
        let mut agent = d.agent_called(name, &[&format!("date +%N >>x\n{turn}")]);
        agent.extend(args.iter().map(|arg| (*arg).to_owned()));
        let report = run(&d, 1, &["-n", "1"], &agent);
        assert_eq!((claims(&report), seen(&d, &report)), (vec!["missing"], Value::Null), "{name} {args:?}");
    }
}

#[test]
fn promise_on_screen_does_not_count_if_the_transcript_is_gone() {
    let d = Desk::new();
    let find = "while [ $# -gt 0 ]; do [ \"$1\" = --session-id ] && id=$2; shift; done; t=\"$HOME/.claude/projects/p/$id.jsonl\"";
    // A report before the pane is known counts for nothing, so the hook repeats it until it counts.
    let hook = format!(
        "mkdir -p \"$HOME/.claude/projects/p\"; until grep -q '\"transcript\"' \"$SWARM_DIR/runs/a.$SWARM_RUN/told\"; do echo '{{\"session_id\":\"'$id'\",\"transcript_path\":\"'$t'\",\"hook_event_name\":\"UserPromptSubmit\",\"prompt\":\"x\"}}' | '{SWARM}' hook user-prompt-submit; done"
    );
    let forged = Said::new(3, &[TAG]).printed();
    for (hooks, says, claim) in [
        (true, format!("echo '{TAG}'"), "missing"),
        (true, format!("echo >$t; echo '{TAG}'"), "missing"),
        (true, forged.clone(), "missing"),
        // No hook spoke of any, so there may have been none.
        (false, format!("echo '{TAG}'"), "given"),
    ] {
        let hook = if hooks { hook.as_str() } else { "true" };
        let agent = d.agent_called("claude", &[&format!("date +%N >>x\n{find}\n{hook}\n{says}")]);
        let report = run(&d, i32::from(claim == "missing"), &["-n", "1"], &agent);
        assert_eq!(claims(&report), [claim], "{says}");
        let why = d.w.swarm(&["why", "a"]).ok();
        let reason = "FAIL  the agent's transcript is gone or empty";
        assert_eq!(why.out.contains(reason), claim == "missing", "{}", why.out);
    }
}

#[test]
fn line_done_pattern_matches_json_output() {
    let d = Desk::new();
    std::fs::write(d.path("PROMPT.md"), "Do task A\n").unwrap();
    let file = d.path("PROMPT.md").display().to_string();
    let iterations = |turn: &str| {
        let agent = d.agent_called("claude", &[&format!("date +%N >>x\n{turn}")]);
        let agent: Vec<&str> = agent.iter().map(String::as_str).collect();
        let head = ["spawn", "--name", "a", "--ralph", "--prompt-file", &file, "-n", "2"];
        let flags = ["--done-pattern", "^ALL TASKS DONE$", "--"];
        d.w.swarm(&[&head[..], &flags, &agent].concat()).ok();
        let report = d.w.swarm(&["report", "a", "--format", "json"]).ok().json();
        report["iterations"].as_array().map(Vec::len)
    };
    let words = "All of it is done.\n\nALL TASKS DONE";
    assert_eq!(iterations(&Said::new(1, &[words]).printed()), Some(1));
    assert_eq!(iterations(&printed(&[Said::new(1, &[words]).result()])), Some(1));
    // The output of a tool is not part of the agent's words.
    let tool = json!({"type": "user", "message": {"content": [{"type": "tool_result", "content": words}]}});
    assert_eq!(iterations(&printed(&[tool, Said::new(1, &["not yet"]).result()])), Some(2));
}
