//! The Stop check: the document's order, and each of its reasons to block.

use super::*;

fn decided(marker: &Value, tasks: Result<&str, &str>, status: &str) -> StopCheck {
    let marker = RalphMarker::parse(&marker.to_string());
    let untouched = ["ralph/prd.md".to_owned()];
    let tasks_file = "ralph/tasks.json";
    stop_check(StopFacts { marker: &marker, tasks_file, tasks, status: Some(status), untouched: &untouched })
}

#[test]
fn a_file_that_swarm_restored_does_not_block() {
    let passes = text(&[]);
    let blocks = |status: &str| decided(&json!({}), Ok(&passes), status).block;
    assert_eq!(blocks(" M ralph/prd.md\n M sub/ralph/prd.md\n"), None);
    let block = blocks(" M ralph/prd.md\n M ralph/tasks.json\n").unwrap();
    assert!(block.ends_with(" M ralph/tasks.json\n") && !block.contains("prd.md"), "{block}");
    assert!(blocks(" M xralph/prd.md\n").is_some());
}

fn implementing(before: &[Value]) -> Value {
    json!({ "timestamp": "2026-01-01T00:00:00Z", "pid": 1, "max_iterations": 15, "mode": "sandbox", "skipReview": false,
        "reviewCap": 5, "iterationMode": "implement", "preIterationSnapshot": list(before).review_states() })
}

#[test]
fn first_fault_blocks_the_stop() {
    let before = [story("US-001", false, None, 0)];
    let marker = implementing(&before);
    let reason = |tasks: &str, status: &str| decided(&marker, Ok(tasks), status).block.unwrap_or_default();
    assert!(
        reason("{", " M a").starts_with("ralph/tasks.json is not a valid task list: it is not valid JSON")
    );
    let passes = text(&[story("US-001", true, None, 0)]);
    assert!(reason(&passes, " M a").starts_with("Story US-001 has passes=true but reviewStatus is 'null'"));
    let approved = text(&[story("US-001", true, Some("approved"), 0)]);
    assert!(reason(&approved, " M a").starts_with("Implement iterations cannot set passes=true"));
    let submitted = text(&[story("US-001", false, Some("needs_review"), 0)]);
    assert!(reason(&submitted, " M a\n?? b\n").starts_with("There are uncommitted changes."));
    assert_eq!(decided(&marker, Ok(&submitted), ""), StopCheck::default());
    assert!(
        decided(&marker, Err("is missing"), "").block.unwrap().starts_with("ralph/tasks.json is missing.")
    );
    let cyclic = text(&[with(story("US-001", false, None, 0), json!({ "dependsOn": ["US-001"] }))]);
    assert!(reason(&cyclic, "").contains("stories depend on each other"));
}

#[test]
fn without_reviews_only_schema_and_commits_count() {
    let marker = json!({ "skipReview": true });
    let passes = text(&[story("US-001", true, None, 0)]);
    assert_eq!(decided(&marker, Ok(&passes), ""), StopCheck::default());
    assert!(decided(&marker, Ok(&passes), "?? x").block.is_some());
    assert!(decided(&marker, Ok("[]"), "").block.is_some());
}

#[test]
fn a_missing_snapshot_skips_the_transitions_with_a_warning() {
    let marker = json!({ "iterationMode": "implement" });
    let approved = text(&[story("US-001", true, Some("approved"), 1)]);
    let decision = decided(&marker, Ok(&approved), "");
    assert_eq!(decision.block, None);
    assert_eq!(
        decision.warning.unwrap(),
        "preIterationSnapshot is missing in .ralph-active, so transitions were not checked"
    );
    let passes = text(&[story("US-001", true, Some("needs_review"), 1)]);
    assert!(decided(&marker, Ok(&passes), "").block.is_some(), "the invariants still hold");
    let no_mode = json!({ "preIterationSnapshot": {} });
    assert!(decided(&no_mode, Ok(&approved), "").warning.unwrap().starts_with("iterationMode is missing"));
}

#[test]
fn long_git_status_is_shortened() {
    let status: String = (0..25).map(|n| format!("?? file{n}\n")).collect();
    let passes = text(&[]);
    let block = decided(&json!({}), Ok(&passes), &status).block.unwrap();
    assert!(
        block.contains("?? file19\n… and 5 more\n") && block.contains("Update ralph/progress.txt"),
        "{block}"
    );
}

#[test]
fn marker_applies_to_its_worker_or_to_everyone() {
    let anyone = RalphMarker::parse("{}");
    assert!(anyone.binds(None, None) && anyone.binds(Some("a"), Some("/s")));
    let own =
        RalphMarker { worker: Some("a".into()), swarm_dir: Some("/s".into()), ..RalphMarker::default() };
    assert!(own.binds(Some("a"), Some("/s")));
    for (worker, dir) in [(None, None), (Some("b"), Some("/s")), (Some("a"), Some("/t"))] {
        assert!(!own.binds(worker, dir));
    }
    assert!(RalphMarker::parse("not json").binds(None, None));
    let again = RalphMarker::parse(&own.to_text());
    assert_eq!(again, own);
}

#[test]
fn marker_has_the_documented_fields() {
    let text = r#"{"timestamp":"2025-06-15T10:30:00Z","pid":12345,"max_iterations":15,"mode":"sandbox","skipReview":false,
      "reviewCap":5,"iterationMode":"review-fix","preIterationSnapshot":{
        "US-001":{"passes":false,"reviewStatus":null,"reviewCount":0},
        "US-002":{"passes":true,"reviewStatus":"approved","reviewCount":1}}}"#;
    let marker = RalphMarker::parse(text);
    assert_eq!(marker.iteration_mode, Some(IterationMode::ReviewFix));
    let expected: Value = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&marker.to_text()).unwrap(), expected);
}
