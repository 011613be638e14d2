//! `swarm answer`: requests of an agent that its hook holds open.

use serde_json::{Value, json};

use crate::hook_reports;
use crate::world::{Agent, World};

/// A worker `l` whose agent has its prompt and shows a dialog.
fn in_dialog() -> (World, Agent) {
    let (w, mut agent) = hook_reports::world();
    w.hooked_loop(&[], &[]);
    agent.until_prompted(&w, 1);
    agent.tell("bare Do you want to proceed?");
    (w, agent)
}

fn request(w: &World) -> Value {
    w.until("an open request", || {
        let worker = w.swarm(&["status", "l", "--format", "json"]).json();
        let open = worker["requests"][0].clone();
        (open.is_object() && worker["cause"]["answerable"] == true).then_some(open)
    })
}

fn decision(w: &World, agent: &Agent, count: usize) -> Value {
    let decided = |line: &str| {
        let text = line.strip_prefix("1 PermissionRequest 0 ")?;
        serde_json::from_str::<Value>(text).ok()
    };
    let found = w.until(&format!("{count} decisions"), || {
        let answers: Vec<Value> = agent.file("answers").lines().filter_map(decided).collect();
        (answers.len() == count).then(|| answers.last().cloned()).flatten()
    });
    found["hookSpecificOutput"]["decision"].clone()
}

#[test]
fn a_request_is_allowed_denied_and_answered_through_the_hook() {
    let (w, mut agent) = in_dialog();
    let bash = json!({"tool_name": "Bash", "tool_input": {"command": "rm -rf build/"},
        "permission_suggestions": [{"type": "setMode"}]});
    let question = json!({"tool_name": "AskUserQuestion", "tool_input": {"questions": [
        {"question": "Keep the flag?", "options": [{"label": "keep"}, {"label": "drop"}]}]}});
    for (count, input, text, answer, expected) in [
        (1, &bash, "Bash: rm -rf build/", "yes", json!({"behavior": "allow"})),
        (2, &bash, "Bash: rm -rf build/", "use make", json!({"behavior": "deny", "message": "use make"})),
        (
            3,
            &bash,
            "Bash: rm -rf build/",
            "always",
            json!({"behavior": "allow", "updatedPermissions": [{"type": "setMode"}]}),
        ),
    ] {
        agent.last_hook("PermissionRequest", input);
        let open = request(&w);
        assert_eq!((&open["text"], &open["kind"]), (&json!(text), &json!("permission")));
        if count == 1 {
            assert!(w.swarm(&["ls"]).out.contains("permission: Bash: rm -rf build/"));
            assert!(w.swarm(&["answer", "l"]).ok().out.contains("permission: Bash: rm -rf build/ ("));
            w.swarm(&["answer", "--request", "another", "l", "yes"])
                .code(1)
                .warns("does not hold this request");
        }
        let answered = w.swarm(&["answer", "l", answer]).ok();
        assert_eq!(answered.out, "answered permission: Bash: rm -rf build/\n");
        assert_eq!(decision(&w, &agent, count), expected);
        w.swarm(&["answer", "l", "yes"]).code(1).warns("holds no request open");
    }
    agent.last_hook("PermissionRequest", &question);
    let open = request(&w);
    assert_eq!(open["text"], "Keep the flag? [keep | drop]");
    w.swarm(&["answer", "l", " "]).code(1).warns("the answer is empty");
    // The hook asks the next daemon too.
    w.crash_daemon();
    assert_eq!(request(&w)["id"], open["id"]);
    w.swarm(&["answer", "--request", open["id"].as_str().unwrap(), "l", "drop"]).ok();
    assert_eq!(decision(&w, &agent, 4)["updatedInput"]["answers"], json!({"Keep the flag?": "drop"}));
}

#[test]
fn unanswered_request_is_left_to_the_dialog() {
    let (w, mut agent) = hook_reports::world();
    let config = w.path("home/.config/swarm/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(config, "[agents.claude]\nhold = \"1s\"\n").unwrap();
    w.hooked_loop(&[], &[]);
    agent.until_prompted(&w, 1);
    agent.tell("bare Do you want to proceed?");
    agent.hook(&w, 1, "PermissionRequest", &json!({"tool_name": "Bash", "tool_input": {"command": "make"}}));
    let line = "1 PermissionRequest 0 ";
    assert!(agent.file("answers").lines().any(|found| found.trim_end() == line.trim_end()));
    w.swarm(&["answer", "l", "yes"]).code(1).warns("answer there: swarm attach l");
}

#[test]
fn enter_waits_for_the_dialog_that_the_hook_announced() {
    let (w, mut agent) = hook_reports::world();
    w.hooked_loop(&[], &[]);
    agent.until_prompted(&w, 1);
    agent.tell("work Running it.");
    agent.tell(&format!("ask {}", json!({"tool_name": "Bash", "tool_input": {"command": "make"}})));
    let _ = request(&w);
    w.swarm(&["send", "l", ""]).ok();
    assert_eq!(agent.file("keys.1"), "Enter\nallowed\n");
}
