//! Tests of the order and of the blocks.

use serde_json::{Value, json};
use swarm_state::cause::Cause;
use swarm_state::model::Exit;
use swarm_state::notice::{PauseBy, StopReason};
use swarm_state::profiles::YES_OR_NO;

use super::super::rank;
use super::*;
use crate::client::testing::view;

fn empty() -> Facts {
    Facts::default()
}

fn looping(name: &str, status: &str, more: Value) -> WorkerView {
    let mut metadata = json!({"ralph": true, "ralph_iteration": 3, "max_iterations": 9, "status": "running"});
    if let (Some(all), Value::Object(more)) = (metadata.as_object_mut(), more) {
        all.extend(more);
    }
    view(name, status, metadata)
}

#[test]
fn the_worst_status_is_first() {
    let words = [
        "failed",
        "lost",
        "unreachable",
        "waiting",
        "retrying",
        "paused",
        "killed",
        "starting",
        "running",
        "done",
    ];
    let mut workers: Vec<WorkerView> = words.iter().rev().map(|word| view(word, word, json!({}))).collect();
    workers.sort_by_key(|worker| rank(worker.status));
    let sorted: Vec<&str> = workers.iter().map(|worker| worker.name.as_str()).collect();
    // Starting and running workers keep their order.
    assert_eq!(sorted[..7], words[..7]);
    assert_eq!(sorted[7..], ["running", "starting", "done"]);
}

#[test]
fn worker_that_needs_no_action_is_one_line() {
    let out = Out::plain();
    assert_eq!(block(&looping("a", "running", json!({})), &empty(), out), ["a: running (iteration 3/9)"]);
    let killed = Cause::stopped(StopReason::Killed);
    let worker = WorkerView { cause: Some(killed), ..view("a", "killed", json!({})) };
    assert_eq!(block(&worker, &empty(), out), ["a: killed"]);
    let exited = Cause::stopped(StopReason::Exited(Exit::Code(0)));
    let worker = WorkerView { cause: Some(exited), ..view("a", "done", json!({})) };
    assert_eq!(block(&worker, &empty(), out), ["a: done, exited"]);
}

#[test]
fn a_block_has_the_cause_the_evidence_and_the_next_step() {
    let out = Out::plain();
    let output: Vec<String> = ["one", "two", "", "three", "four\x1b[2J", ""].map(str::to_owned).to_vec();
    let worker = WorkerView { reason: Some("exit status 3".into()), ..view("a", "failed", json!({})) };
    let lines = block(&worker, &Facts { output, ..Facts::default() }, out);
    assert_eq!(lines[..3], ["a: failed, exit status 3", "  | two", "  | three"]);
    assert!(lines[3].starts_with("  | four") && !lines[3].contains('\x1b'), "{lines:?}");
    assert_eq!(lines[4..], ["  next: fix the cause, then swarm respawn a"]);

    let screen = ["Delete it?", "(y/n):"].map(str::to_owned).to_vec();
    let cause = Some(Cause::NeedsPerson { text: YES_OR_NO.into(), answerable: false });
    let worker = WorkerView { cause, screen, ..looping("a", "waiting", json!({})) };
    assert_eq!(
        block(&worker, &empty(), out),
        [
            "a: waiting (iteration 3/9), asks: Delete it?",
            "  | Delete it?",
            "  | (y/n):",
            "  next: answer as it asks (swarm send a y), or: swarm attach a",
        ]
    );
}

#[test]
fn long_lines_are_wrapped_and_commands_are_not() {
    let name = "n".repeat(64);
    let cause = Some(Cause::NeedsPerson { text: "long ".repeat(30), answerable: false });
    let screen = vec!["wide ".repeat(30)];
    let worker = WorkerView { cause, screen, ..looping(&name, "waiting", json!({})) };
    let lines = block(&worker, &empty(), Out::plain());
    assert!(lines[..3].iter().all(|line| line.width() <= 80), "{lines:?}");
    assert_eq!(lines[2..], ["  next: the agent waits for you:", &format!("        swarm attach {name}")]);

    let cause = Some(Cause::Paused { by: PauseBy::BudgetUnseen, detail: None });
    let worker = WorkerView { cause, ..looping("a", "paused", json!({"status": "paused"})) };
    assert_eq!(
        block(&worker, &empty(), Out::plain())[1..],
        [
            "  next: make the agent print its usage (claude -p --output-format json),",
            "        or remove the limit that you have set (swarm ralph set a max_cost=none,",
            "        or max_tokens=none); then swarm ralph resume a",
        ]
    );
}

#[test]
fn a_failed_iteration_shows_its_agent_or_its_check_or_its_gate() {
    let it = |value: Value| serde_json::from_value::<Iteration>(value).unwrap();
    let check =
        json!({"name": "make test", "passed": false, "output": "a\nb\nc\nexit status 2", "seconds": 1.0});
    let verdict = json!({"checks": [check]});
    let agent = it(json!({"exit_code": 3, "last_lines": ["no key"], "verdict": verdict}));
    assert_eq!(of_iteration(&agent), ["  | no key"]);
    let checks = it(json!({"exit_code": 0, "last_lines": ["all done"], "verdict": verdict}));
    assert_eq!(of_iteration(&checks), ["  FAIL  make test", "  | b", "  | c", "  | exit status 2"]);
    let promise = it(json!({"exit_code": 0, "verdict": {"promise": "missing"}}));
    assert_eq!(of_iteration(&promise), ["  FAIL  the promise was not given"]);
    assert!(of_iteration(&it(json!({"exit_code": 0}))).is_empty());
}
