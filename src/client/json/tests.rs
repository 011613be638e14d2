use chrono::DateTime;
use serde::de::DeserializeOwned;
use swarm_state::model::Worktree;
use swarm_state::morning::{Morning, Period};

use super::*;
use crate::client::testing;
use crate::client::verbs::report::morning::row;
use crate::protocol::{Listing, MorningView, WorkerWork};

/// The golden answers of the protocol as JSON for people, one line each.
fn converted() -> Vec<String> {
    let calls: Vec<Value> = include_str!("../../../tests/golden/calls.jsonl")
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let mut objects = vec![];
    for pair in calls.chunks(2) {
        let answer = &pair[1]["ok"];
        match pair[0]["method"].as_str().unwrap() {
            "spawn" | "respawn" => {
                let view: WorkerView = read(&answer["worker"]);
                objects.push(("worker", worker(&view)));
            }
            "morning" => objects.push(("morning", morning(&read(answer)))),
            "status" => objects.push(("worker", worker(&read(answer)))),
            "ls" => {
                objects.extend(read::<Listing>(answer).workers.iter().map(|view| ("worker", worker(view))))
            }
            "ralph.report" => {
                let of: Report = read(answer);
                objects.push(("report", report(&of, &of.iterations)));
            }
            "ralph.status" | "ralph.set" => {
                let of = testing::view("agent", "running", json!({"iteration_started": null}));
                objects.push(("ralph_status", ralph(&read(answer), &of)));
            }
            _ => {}
        }
    }
    for line in include_str!("../../../tests/golden/notices.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        objects.push(("event", events::notice(&read(&line["notice"]))));
    }
    objects
        .into_iter()
        .map(|(object, json)| {
            let mut json = json.as_object().unwrap().clone();
            json.shift_insert(0, "schema".into(), crate::out::json::JSON_SCHEMA.into());
            json!({"object": object, "json": json}).to_string()
        })
        .collect()
}

/// The golden work of a loop, which needs its worktree to be merged, and of a worker without news.
fn morning(answer: &MorningView) -> Value {
    let at = |text: &str| DateTime::parse_from_rfc3339(text).unwrap();
    let period = Period { since: answer.since.as_deref().map(at), until: at(&answer.until) };
    let tree = Worktree {
        path: "/home/u/repo-worktrees/agent".into(),
        branch: "swarm/agent".into(),
        base_repo: "/home/u/repo".into(),
    };
    let metadata = json!({"ralph": true, "ralph_iteration": 5, "max_iterations": 10});
    let worker = WorkerView { worktree: Some(tree), ..testing::view("agent", "done", metadata) };
    let quiet = WorkerView { idle: true, ..testing::view("web", "running", json!({})) };
    let work = answer.workers.first().cloned().unwrap_or_default();
    let rows = vec![row(&worker, work), row(&quiet, WorkerWork::default())];
    morning::morning(&Morning::new(period, rows, answer.removed.clone()))
}

fn read<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

/// `UPDATE_DOCS=1` writes the file again. An object of a release never loses a field.
#[test]
fn golden_answers_give_the_golden_objects() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/json.jsonl");
    let lines = converted();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, lines.join("\n") + "\n").unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap_or_default();
    for (line, golden) in lines.iter().zip(golden.lines()) {
        assert_eq!(line, golden);
    }
    assert_eq!(lines.len(), golden.lines().count());
}
