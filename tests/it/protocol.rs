//! The wire, held by golden lines: a change of a name, a type or the order of fields fails here.
//!
//! The files in `tests/golden/` are append-only: a line that a released swarm wrote must be read for ever. A
//! new method or notice gets new lines; the tables below do not compile without it.

use std::collections::BTreeSet;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use swarm::error::ErrorCode;
use swarm::protocol::{
    Approved, AttachView, Call, Changed, Cleaned, ClientHello, DaemonHello, DaemonStopped, DaemonView,
    DiffView, Empty, Forgotten, HookHeard, Killed, Lines, Listing, Peeked, RalphView, Report, Request,
    Response, Restored, Sent, Snapshot, Spawned, WorkerView,
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

/// The method of a call, the type of its answer checked; no wildcard, so that a new one must come here.
fn check_call(call: &Call, answer: &Value) {
    match call {
        Call::Spawn(_) | Call::Respawn(_) => same_part::<Spawned>(answer),
        Call::Ls(_) => same_part::<Listing>(answer),
        Call::Status(_) => same_part::<WorkerView>(answer),
        Call::Peek(_) => same_part::<Peeked>(answer),
        Call::Logs(_) | Call::RalphLogs(_) => same_part::<Lines>(answer),
        Call::Send(_) => same_part::<Sent>(answer),
        Call::Interrupt(_) | Call::Eof(_) | Call::DaemonHandover(_) => same_part::<Empty>(answer),
        Call::Attach(_) => same_part::<AttachView>(answer),
        Call::Kill(_) => same_part::<Killed>(answer),
        Call::Clean(_) => same_part::<Forgotten>(answer),
        Call::RalphPause(_) | Call::RalphResume(_) => same_part::<Changed>(answer),
        Call::RalphStatus(_) | Call::RalphSet(_) => same_part::<RalphView>(answer),
        Call::RalphReport(_) => same_part::<Report>(answer),
        Call::RalphDiff(_) => same_part::<DiffView>(answer),
        Call::RalphRestore(_) => same_part::<Restored>(answer),
        Call::RalphApprove(_) => same_part::<Approved>(answer),
        Call::Hook(_) => same_part::<HookHeard>(answer),
        Call::RalphClean(_) => same_part::<Cleaned>(answer),
        Call::Subscribe(_) => same_part::<Snapshot>(answer),
        Call::DaemonStatus(_) => same_part::<DaemonView>(answer),
        Call::DaemonStop(_) => same_part::<DaemonStopped>(answer),
    }
}

/// How many methods the wire has: each has a name.
fn methods() -> usize {
    let source = include_str!("../../src/protocol.rs");
    let (_, calls) = source.split_once("pub enum Call {").unwrap();
    let (calls, _) = calls.split_once("\n}").unwrap();
    calls.matches("#[serde(rename").count()
}

#[test]
fn hellos_keep_their_shape_for_ever() {
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
        let call: Call = same(&Value::Object(whole).to_string());
        let answer: Response = same(answer);
        assert_eq!(answer.id, request.id);
        check_call(&call, &answer.ok.unwrap());
        seen.insert(request.method);
    }
    assert_eq!(seen.len(), methods(), "{seen:?}");
}

#[test]
fn a_call_without_parameters_may_leave_them_out() {
    let request: Request = serde_json::from_str(r#"{"id":1,"method":"ls"}"#).unwrap();
    assert!(request.params.is_null());
}

#[test]
fn refusals_keep_their_shape_and_words() {
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
            | ErrorCode::Usage => {}
        }
    }
    assert_eq!(codes.len(), 10);
}

/// How many kinds of notices there are; to be raised with each new one.
const KINDS: usize = 26;

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
        });
    }
    assert_eq!(kinds.len(), KINDS);
}
