//! The wire, held by golden lines: a change of a name, a type or the order of fields fails here.
//!
//! The files in `tests/golden/` are append-only: a line that a released swarm wrote must be read for ever. A
//! new method or notice gets new lines.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use swarm::error::ErrorCode;
use swarm::protocol::{
    Answered, Approved, AttachView, Call, Changed, Cleaned, ClientHello, DaemonHello, DaemonStopped,
    DaemonView, DiffView, Empty, Forgotten, HoldChanged, HookAnswer, Killed, Lines, Listing, MorningView,
    NextNotification, Peeked, QuotaLifted, QuotaView, RalphView, Report, Request, Response, Restored, Sent,
    Snapshot, Spawned, WorkerView,
};
use swarm_state::notice::Entry;

fn golden(name: &str) -> Vec<String> {
    let path = format!("{}/tests/golden/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

/// Reads a line and insists that writing it gives the same bytes.
#[track_caller]
fn same<T: Serialize + DeserializeOwned>(line: &str) -> T {
    let value: T = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    assert_eq!(serde_json::to_string(&value).unwrap(), line);
    value
}

/// The same for a part of a line.
#[track_caller]
fn same_part<T: Serialize + DeserializeOwned>(part: &Value) {
    same::<T>(&part.to_string());
}

/// Checks an answer against the type that the documentation of its method names.
fn check_answer(method: &str, answer: &Value) {
    match answer_types()[method].as_str() {
        "Answered" => same_part::<Answered>(answer),
        "Approved" => same_part::<Approved>(answer),
        "AttachView" => same_part::<AttachView>(answer),
        "Changed" => same_part::<Changed>(answer),
        "Cleaned" => same_part::<Cleaned>(answer),
        "DaemonStopped" => same_part::<DaemonStopped>(answer),
        "DaemonView" => same_part::<DaemonView>(answer),
        "DiffView" => same_part::<DiffView>(answer),
        "Empty" => same_part::<Empty>(answer),
        "Forgotten" => same_part::<Forgotten>(answer),
        "HookAnswer" => same_part::<HookAnswer>(answer),
        "Killed" => same_part::<Killed>(answer),
        "Lines" => same_part::<Lines>(answer),
        "Listing" => same_part::<Listing>(answer),
        "NextNotification" => same_part::<NextNotification>(answer),
        "Peeked" => same_part::<Peeked>(answer),
        "QuotaLifted" => same_part::<QuotaLifted>(answer),
        "QuotaView" => same_part::<QuotaView>(answer),
        "RalphView" => same_part::<RalphView>(answer),
        "Report" => same_part::<Report>(answer),
        "HoldChanged" => same_part::<HoldChanged>(answer),
        "MorningView" => same_part::<MorningView>(answer),
        "Restored" => same_part::<Restored>(answer),
        "Sent" => same_part::<Sent>(answer),
        "Snapshot" => same_part::<Snapshot>(answer),
        "Spawned" => same_part::<Spawned>(answer),
        "WorkerView" => same_part::<WorkerView>(answer),
        other => panic!("the answer of '{method}' has the unknown type {other}"),
    }
}

/// The methods of the wire, each with the type of its answer: "answers [`Type`]" in its documentation.
fn answer_types() -> BTreeMap<String, String> {
    let source = include_str!("../../src/protocol.rs");
    let (_, calls) = source.split_once("pub enum Call {").unwrap();
    let (calls, _) = calls.split_once("\n}").unwrap();
    let method = Regex::new(r#"answers \[`(\w+)`\][^#]*#\[serde\(rename = "([^"]+)""#).unwrap();
    let types: BTreeMap<String, String> =
        method.captures_iter(calls).map(|found| (found[2].to_owned(), found[1].to_owned())).collect();
    assert_eq!(
        types.len(),
        calls.matches("#[serde(rename").count(),
        "a method without its answer: {types:?}"
    );
    types
}

#[test]
fn hellos_keep_their_shape() {
    let lines = golden("hello");
    same::<ClientHello>(&lines[0]);
    same::<DaemonHello>(&lines[1]);
}

#[test]
fn every_call_and_its_answer_keep_their_shape() {
    let mut seen = BTreeSet::new();
    for pair in golden("calls").chunks(2) {
        let [request, answer] = pair else { panic!("a call without its answer") };
        let request: Request = same(request);
        let mut whole = serde_json::Map::new();
        whole.insert("method".into(), request.method.clone().into());
        whole.insert("params".into(), request.params);
        same::<Call>(&Value::Object(whole).to_string());
        let answer: Response = same(answer);
        assert_eq!(answer.id, request.id);
        check_answer(&request.method, &answer.ok.unwrap());
        seen.insert(request.method);
    }
    assert_eq!(seen, answer_types().into_keys().collect(), "each method has its lines");
}

#[test]
fn call_without_parameters_may_omit_them() {
    let request: Request = serde_json::from_str(r#"{"id":1,"method":"ls"}"#).unwrap();
    assert!(request.params.is_null());
}

#[test]
fn errors_keep_their_shape_and_codes() {
    let codes: Vec<ErrorCode> =
        golden("errors").iter().map(|line| same::<Response>(line).err.unwrap().code).collect();
    for code in &codes {
        // A new code must come to this table and to the golden lines.
        match code {
            ErrorCode::Invalid
            | ErrorCode::NotFound
            | ErrorCode::Exists
            | ErrorCode::Conflict
            | ErrorCode::Timeout
            | ErrorCode::NoDaemon
            | ErrorCode::Version
            | ErrorCode::System
            | ErrorCode::Internal
            | ErrorCode::Usage
            | ErrorCode::Sandbox
            | ErrorCode::OtherHost
            | ErrorCode::Unreachable => {}
        }
    }
    assert_eq!(codes.len(), 13);
}

/// How many kinds of notices there are; to be raised with each new one.
const KINDS: usize = 30;

#[test]
fn every_notice_keeps_its_shape() {
    let mut kinds = BTreeSet::new();
    for line in golden("notices") {
        let notice = same::<Response>(&line).notice.unwrap();
        // A new kind must come to this table and to the golden lines.
        kinds.insert(match notice.entry {
            Entry::Started { .. } => 1,
            Entry::Ready { .. } => 2,
            Entry::PromptSent { .. } => 3,
            Entry::PromptFailed { .. } => 4,
            Entry::Waiting { .. } => 5,
            Entry::IterationStarted { .. } => 6,
            Entry::IterationEnded { .. } => 7,
            Entry::IterationFailed { .. } => 8,
            Entry::Inactivity { .. } => 9,
            Entry::InactivityExtended { .. } => 10,
            Entry::DonePatternMatched { .. } => 11,
            Entry::LoopComplete { .. } => 12,
            Entry::LoopFailed { .. } => 13,
            Entry::Paused { .. } => 14,
            Entry::Resumed => 15,
            Entry::Stopped { .. } => 16,
            Entry::Lost { .. } => 17,
            Entry::Warning { .. } => 18,
            Entry::RunEnded { .. } => 21,
            Entry::Idle { .. } => 19,
            Entry::Cleaned => 20,
            Entry::GatesMissed { .. } => 22,
            Entry::GatesHeld { .. } => 23,
            Entry::Outage { .. } => 24,
            Entry::OutOfTime { .. } => 25,
            Entry::Checked { .. } => 26,
            Entry::CheckStarted { .. } => 27,
            Entry::StoryStarted { .. } => 28,
            Entry::Held { .. } => 29,
            Entry::Released => 30,
        });
    }
    assert_eq!(kinds.len(), KINDS);
}
