//! Every fixture of every version loads; nothing that is damaged passes for a value.

use chrono::FixedOffset;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::engine::{Edits, Worker};
use crate::model::{LoopStatus, PromptVia, RestartSpec, RestartWhen};
use crate::notice::PauseBy;
use crate::profiles::Profile;
use crate::spec::Prompt;

const V0_STATE: &[u8] = include_bytes!("../../fixtures/v0/state.json");
const V0_RALPH: &[u8] = include_bytes!("../../fixtures/v0/ralph/agent/state.json");
const V0_EARLY: &[u8] = include_bytes!("../../fixtures/v0/ralph/early/state.json");
const V1_AGENT: &[u8] = include_bytes!("../../fixtures/v1/workers/agent.json");
const V1_RESTARTING: &[u8] = include_bytes!("../../fixtures/v1/workers/restarting.json");
const V1_PLAIN: &[u8] = include_bytes!("../../fixtures/v1/workers/plain.json");
const V1_RALPH: &[u8] = include_bytes!("../../fixtures/v1/ralph/agent/state.json");
const V1_FRESH: &[u8] = include_bytes!("../../fixtures/v1/ralph/fresh/state.json");
const V1_EDITED: &[u8] = include_bytes!("../../fixtures/v1/ralph/edited/state.json");

fn east(at: chrono::NaiveDateTime) -> chrono::DateTime<FixedOffset> {
    let offset = FixedOffset::east_opt(3600).unwrap();
    at.and_local_timezone(offset).single().unwrap()
}

fn v0(bytes: &[u8]) -> Vec<Result<Record, v0::Unreadable>> {
    v0::parse_workers(bytes, &east).unwrap()
}

/// `bytes` as a JSON object, changed.
fn with(bytes: &[u8], key: &str, value: Value) -> Vec<u8> {
    let mut json: Value = serde_json::from_slice(bytes).unwrap();
    json[key] = value;
    serde_json::to_vec(&json).unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// All that `before` holds is in `after`, unchanged.
fn assert_kept(before: &Value, after: &Value, at: &str) {
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return assert_eq!(before, after, "{at}");
    };
    for (key, value) in before {
        assert_kept(value, after.get(key).unwrap_or(&Value::Null), &format!("{at}.{key}"));
    }
}

#[test]
fn a_record_is_read_and_written_as_it_was() {
    let record = parse_record(V1_AGENT).unwrap();
    assert_eq!((record.name.as_str(), record.format), ("agent", 1));
    assert_eq!(record.metadata.ralph_iteration, Some(5));
    assert_eq!(record.pane.as_ref().unwrap().id, "%7");
    assert_eq!(record.spec.ralph.as_ref().unwrap().max_iterations, 100);
    assert_eq!(record.engine, json!({"phase": "running"}));
    assert_eq!(record.legacy, None);
    let before: Value = serde_json::from_slice(V1_AGENT).unwrap();
    let after: Value = serde_json::from_slice(&record.to_bytes().unwrap()).unwrap();
    // Foreign keys (`colour`, `metadata.ticket`) too; beside them may stand what a later release added.
    assert_kept(&before, &after, "");
    assert_eq!(parse_record(&record.to_bytes().unwrap()).unwrap(), record);
}

/// Between two runs: its policy, the count and the wait are on disk, for every swarm to come.
#[test]
fn record_of_a_worker_that_waits_for_a_restart_is_unchanged() {
    let record = parse_record(V1_RESTARTING).unwrap();
    let spec = RestartSpec { when: RestartWhen::OnFailure, max_restarts: 5 };
    assert_eq!(record.spec.restart, Some(spec));
    let before: Value = serde_json::from_slice(V1_RESTARTING).unwrap();
    assert_kept(&before, &serde_json::from_slice(&record.to_bytes().unwrap()).unwrap(), "");
    let worker: Worker = serde_json::from_value(record.engine.clone()).unwrap();
    assert_eq!(worker.restarts().map(|r| (r.spec, r.failures)), Some((spec, 2)));
    assert_eq!(worker.reason().as_deref(), Some("exit status 1, restart 2/5 at 10:30:07"));
    assert_eq!(worker.deadline(), Some(std::time::Duration::from_secs(105)));
    assert_kept(&before["engine"], &serde_json::to_value(&worker).unwrap(), "");
}

#[test]
fn keys_missing_in_an_older_record_have_defaults_except_required_ones() {
    let record = parse_record(V1_PLAIN).unwrap();
    assert_eq!(record.spec.profile, Profile::generic());
    assert_eq!((record.spec.ready_wait, record.spec.ready_timeout), (false, 30));
    assert_eq!((record.metadata, record.spec.restart), (Metadata::default(), None));
    assert_eq!(record.engine, Value::Null);
    // But not those without which it is no worker.
    let spec: Value = serde_json::from_slice::<Value>(V1_PLAIN).unwrap()["spec"].clone();
    for key in ["name", "cmd", "cwd", "env", "prompt", "prompt_via"] {
        let mut spec = spec.clone();
        spec.as_object_mut().unwrap().remove(key);
        let error = parse_record(&with(V1_PLAIN, "spec", spec)).unwrap_err();
        assert!(error.to_string().contains(key), "{error}");
    }
}

#[test]
fn loop_state_file_has_documented_keys_first_byte_for_byte() {
    for bytes in [V1_RALPH, V1_FRESH] {
        assert_eq!(text(&parse_ralph(bytes).unwrap().to_bytes().unwrap()), text(bytes));
    }
    let file = parse_ralph(V1_RALPH).unwrap();
    assert_eq!((file.status, file.paused_by), (LoopStatus::Paused, Some(PauseBy::Shutdown)));
    let told = RalphFile { message: Some("no room".into()), question_timeout: 5, ..file };
    let written = told.to_bytes().unwrap();
    let keys = "\n  \"question_timeout\": 5,\n  \"message\": \"no room\"";
    assert!(text(&written).contains(keys), "{}", text(&written));
    assert_eq!(parse_ralph(&written).unwrap(), told);
}

#[test]
fn loop_state_of_the_predecessor_is_read() {
    let file = parse_ralph(V0_RALPH).unwrap();
    assert_eq!((file.format, file.status, file.total_failures), (0, LoopStatus::Running, 2));
    let written = file.to_bytes().unwrap();
    // Its own lines are unchanged, but for the fraction that Python leaves out when it is zero.
    let old = text(V0_RALPH).replace("12:45:00\"", "12:45:00.000000\"");
    let common = old.trim_end().trim_end_matches('}').trim_end();
    assert!(text(&written).starts_with(common), "{}", text(&written));
    let early = parse_ralph(V0_EARLY).unwrap();
    assert_eq!((early.last_iteration_started, early.inactivity_timeout), (None, 60));
}

#[test]
fn workers_of_the_predecessor_are_read() {
    let mut workers = v0(V0_STATE);
    let bad = workers.pop().unwrap().unwrap_err();
    assert_eq!(bad.name.as_deref(), Some("not.a.name"));
    assert!(bad.message.contains("invalid worker name"), "{}", bad.message);
    let mut workers: Vec<Record> = workers.into_iter().map(Result::unwrap).collect();
    let names: Vec<&str> = workers.iter().map(|worker| worker.name.as_str()).collect();
    assert_eq!(names, ["agent", "login-form", "server"]);
    assert!(workers.iter().all(|w| w.format == 0 && w.engine.is_null() && w.pane.is_none()));
    let legacy = workers[1].legacy.as_ref().unwrap();
    assert_eq!(
        (legacy.status.as_str(), legacy.tmux.as_ref().unwrap().socket.as_deref()),
        ("stopped", Some("work"))
    );
    assert_eq!(workers[1].spec.env_names, ["API_BASE"]);
    assert_eq!(workers[2].legacy.as_ref().unwrap().pid, Some(4711));
    assert_eq!(workers[2].extra["note"], "a key of somebody's own");
    let agent = &mut workers[0];
    assert_eq!(agent.started.to_string(), "2024-01-15 10:30:00.125 +01:00");
    assert!(agent.metadata.ralph && agent.spec.ralph.is_none());
    v0::join_ralph(agent, &parse_ralph(V0_RALPH).unwrap());
    assert_eq!(agent.spec.ralph.as_ref().unwrap().inactivity_timeout, 300);
    assert_eq!(agent.spec.prompt, Prompt::File("/home/ann/shop/PROMPT.md".into()));
    assert_eq!(agent.spec.prompt_via, PromptVia::Stdin);
    // Kept as a record of ours, it still says where it came from.
    let kept = parse_record(&agent.to_bytes().unwrap()).unwrap();
    assert_eq!(kept.legacy, agent.legacy);
}

#[test]
fn broken_file_is_an_error_and_not_an_empty_record() {
    let torn = &V1_AGENT[..V1_AGENT.len() * 2 / 5];
    let zeros = [0; 400];
    let cases: [&[u8]; 12] = [
        b"",
        b" \n",
        b"{}",
        b"[]",
        b"null",
        b"7",
        b"\"x\"",
        b"{\"format\":1}",
        torn,
        &zeros,
        b"\xff\xfe",
        b"\xef\xbb\xbf",
    ];
    for bytes in cases {
        let shown = String::from_utf8_lossy(bytes);
        assert!(matches!(parse_record(bytes), Err(FormatError::Broken(_))), "record: {shown}");
        assert!(matches!(parse_ralph(bytes), Err(FormatError::Broken(_))), "loop: {shown}");
        assert!(matches!(v0::parse_workers(bytes, &east), Err(FormatError::Broken(_))), "list: {shown}");
    }
    // An empty list is a list; nesting without end is none.
    assert_eq!(v0(b"{\"workers\": []}"), vec![]);
    assert!(parse_record("[".repeat(100_000).as_bytes()).is_err());
    let renamed = parse_record(&with(V1_AGENT, "name", json!("other"))).unwrap_err();
    assert!(renamed.to_string().contains("`spec.name` is 'agent'"), "{renamed}");
}

#[test]
fn newer_format_is_distinguished_from_a_broken_file() {
    for newer in [json!(2), json!(u64::MAX)] {
        for bytes in [V1_AGENT, V1_RALPH] {
            let bytes = with(bytes, "format", newer.clone());
            assert_eq!(parse_record(&bytes).unwrap_err(), FormatError::Newer(newer.as_u64().unwrap()));
            assert_eq!(parse_ralph(&bytes).unwrap_err(), FormatError::Newer(newer.as_u64().unwrap()));
        }
    }
    for broken in [json!("1"), json!(-1), json!(1.5), json!(null)] {
        let error = parse_ralph(&with(V1_RALPH, "format", broken)).unwrap_err();
        assert!(matches!(error, FormatError::Broken(_)), "{error}");
    }
}

#[test]
fn wrong_value_is_named_in_the_error() {
    let cases = [
        ("max_iterations", json!(-1)),
        ("max_iterations", json!("200")),
        ("max_iterations", json!(null)),
        ("current_iteration", json!(5_000_000_000_u64)),
        ("status", json!("pausd")),
        ("started", json!("yesterday")),
        ("started", json!("+12345-01-01T00:00:00")),
        ("done_pattern", json!(["x"])),
    ];
    for (key, value) in cases {
        let error = parse_ralph(&with(V1_RALPH, key, value)).unwrap_err();
        assert!(error.to_string().contains(&format!("`{key}`")), "{error}");
    }
}

#[test]
fn manual_edit_of_the_state_file_is_found() {
    let known = parse_ralph(V1_RALPH).unwrap();
    assert!(edits(&known, &known).unwrap().is_empty());
    let edited = parse_ralph(V1_EDITED).unwrap();
    assert_eq!(
        edits(&known, &edited).unwrap(),
        Edits {
            max_iterations: Some(200),
            inactivity_timeout: None,
            question_timeout: None,
            done_pattern: Some(None),
            prompt_file: Some("/home/ann/shop/OTHER.md".into()),
            ..Edits::default()
        }
    );
    assert_eq!(edited.started, known.started, "a space for the T");
    // Precision that the file cannot hold is cut off on reading, so that a second reading gives the same.
    for odd in ["2024-01-15T10:30:59.999999999", "2024-01-15T10:30:60", "2024-01-15T10:30:59.9999995+02:00"] {
        let file = parse_ralph(&with(V1_RALPH, "started", json!(odd))).unwrap();
        assert_eq!(parse_ralph(&file.to_bytes().unwrap()), Ok(file));
    }
    assert_eq!(edited.extra["my_note"]["since"], 3);
    // A changed field that is not a setting does not count as an edit.
    let counted = RalphFile { current_iteration: 99, status: LoopStatus::Stopped, ..known.clone() };
    assert!(edits(&known, &counted).unwrap().is_empty());
}

#[test]
fn invalid_edit_is_refused_and_all_its_faults_are_named() {
    let known = parse_ralph(V1_RALPH).unwrap();
    let edited = RalphFile {
        max_iterations: 0,
        inactivity_timeout: 0,
        done_pattern: Some(String::new()),
        prompt_file: "PROMPT.md".into(),
        ..known.clone()
    };
    let error = edits(&known, &edited).unwrap_err();
    for key in ["max_iterations must be", "inactivity_timeout must", "done_pattern must", "'PROMPT.md'"] {
        assert!(error.contains(key), "{error}");
    }
}

/// A change somewhere in a JSON value.
fn mutate(value: &mut Value, path: &[u8], with: &Value) {
    let Some((step, rest)) = path.split_first() else {
        *value = with.clone();
        return;
    };
    let child = match value {
        Value::Object(map) => {
            let len = map.len().max(1);
            map.values_mut().nth(usize::from(*step) % len)
        }
        Value::Array(list) => {
            let len = list.len().max(1);
            list.get_mut(usize::from(*step) % len)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    };
    match child {
        Some(child) => mutate(child, rest, with),
        None => *value = with.clone(),
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i16>().prop_map(|n| Value::from(f64::from(n) / 4.0)),
        Just(json!(u64::MAX)),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("[a-z_]{0,6}", inner), 0..3)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// Whatever is read can be written, and reads the same again.
fn round(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(record) = parse_record(bytes) {
        prop_assert!(!record.spec.cmd.is_empty());
        let again = parse_record(&record.to_bytes().unwrap());
        prop_assert_eq!(again, Ok(record));
    }
    if let Ok(mut file) = parse_ralph(bytes) {
        let again = parse_ralph(&file.to_bytes().unwrap());
        file.format = FORMAT;
        let _ = edits(&file, &file);
        prop_assert_eq!(again, Ok(file));
    }
    if let Ok(workers) = v0::parse_workers(bytes, &east) {
        for record in workers.into_iter().flatten() {
            prop_assert!(!record.spec.cmd.is_empty() && record.legacy.is_some());
        }
    }
    Ok(())
}

const ALL: [&[u8]; 9] =
    [V0_STATE, V0_RALPH, V0_EARLY, V1_AGENT, V1_PLAIN, V1_RESTARTING, V1_RALPH, V1_FRESH, V1_EDITED];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_are_not_a_valid_file(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(parse_record(&bytes).is_err());
        prop_assert!(parse_ralph(&bytes).is_err());
        prop_assert!(v0::parse_workers(&bytes, &east).is_err());
    }

    #[test]
    fn truncated_file_is_not_valid(file in 0..ALL.len(), cut in any::<prop::sample::Index>()) {
        let whole = ALL[file].trim_ascii_end();
        let cut = &whole[..cut.index(whole.len())];
        prop_assert!(parse_record(cut).is_err());
        prop_assert!(parse_ralph(cut).is_err());
        prop_assert!(v0::parse_workers(cut, &east).is_err());
    }

    #[test]
    fn flipped_byte_does_not_panic(file in 0..ALL.len(), at in any::<prop::sample::Index>(), byte: u8) {
        let mut bytes = ALL[file].to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        round(&bytes)?;
    }

    #[test]
    fn changed_value_does_not_panic(
        file in 0..ALL.len(),
        path in prop::collection::vec(any::<u8>(), 0..5),
        with in any_json(),
    ) {
        let mut json: Value = serde_json::from_slice(ALL[file]).unwrap();
        mutate(&mut json, &path, &with);
        round(&serde_json::to_vec(&json).unwrap())?;
    }
}
