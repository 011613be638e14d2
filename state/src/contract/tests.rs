use proptest::prelude::*;

use super::*;

static NO_ROOMS: RoomGates = RoomGates {
    final_checks: vec![],
    hidden: None,
    final_tries: 3,
    clean_check: false,
    setup: vec![],
    fix: vec![],
};

#[test]
fn each_gate_in_a_checkout_has_a_rule_except_the_held_out_check() {
    let strings = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let text = |rooms: &RoomGates| Contract { rooms, ..bare("x") }.text();
    let clean = RoomGates { clean_check: true, ..NO_ROOMS.clone() };
    assert!(text(&clean).contains("run once more in a fresh checkout of your work, and must exit with 0"));
    let rooms = RoomGates { setup: strings(&["npm ci", "make"]), fix: strings(&["src/**", "lib"]), ..clean };
    let rooms = RoomGates { final_checks: strings(&["held"]), hidden: Some("/vault".into()), ..rooms };
    let text = text(&rooms);
    assert!(
        text.contains("checkout of your work, after running `npm ci` and `make` there, and must"),
        "{text}"
    );
    assert!(text.contains("by a change in these files: `src/**`, `lib`. With the old versions"), "{text}");
    assert!(!text.contains("held") && !text.contains("vault"), "{text}");
}

fn bare(task: &str) -> Contract<'_> {
    Contract {
        task,
        iteration: 2,
        max_iterations: 25,
        checks: &[],
        protected: &[],
        configured: &[],
        tests: false,
        rooms: &NO_ROOMS,
        promise: None,
        diff: Some(""),
        failed: &[],
        failed_at_base: &[],
        excused: &[],
        remarks: &[],
        progress: "",
    }
}

#[test]
fn contract_has_all_sections_in_order() {
    let checks = ["cargo test".to_owned(), "cargo clippy".to_owned()];
    let promise = Promise::new("COMPLETE").unwrap();
    let contract = Contract {
        checks: &checks,
        promise: Some(&promise),
        diff: Some("diff --git a/x b/x\n@@ -1 +1 @@\n-a\n+b\n"),
        failed: &[Failed { check: "cargo test", output: "test x ... FAILED" }],
        failed_at_base: &checks[..1],
        remarks: &["promise without work".to_owned()],
        progress: "# Progress\n\n## Iteration 1 — FAIL\n",
        ..bare("Mend it.\n\nAll of it.")
    };
    let text = contract.text();
    let parts = [
        "# Task\n\nMend it.\n\nAll of it.\n\n# Rules\n",
        "iteration 2 of 25",
        "  - `cargo test`\n  - `cargo clippy`\n",
        "failed already before any work was done:\n  - `cargo test`\n",
        "<promise>COMPLETE</promise>",
        "# Changes since the start\n\n```diff\ndiff --git a/x b/x\n@@ -1 +1 @@\n-a\n+b\n```\n",
        "# Checks that failed\n\n`cargo test`:\n```\ntest x ... FAILED\n```\n",
        "- promise without work\n",
        "# Progress so far\n\n# Progress\n\n## Iteration 1 — FAIL\n",
    ];
    let mut rest = text.as_str();
    for part in parts {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part:?} is missing or out of order in\n{text}"));
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn checks_that_may_fail_are_listed_separately() {
    let checks = ["old".to_owned(), "new".to_owned()];
    let (failed_at_base, excused) = (&checks[..1], &checks[..1]);
    let text = Contract { checks: &checks, failed_at_base, excused, ..bare("x") }.text();
    assert!(
        text.contains("every one of them must exit with 0:\n  - `new`\n- These commands are run too"),
        "{text}"
    );
    assert!(text.contains("may go on failing:\n  - `old`\n") && text.matches("`old`").count() == 1, "{text}");
    let text = Contract { checks: &checks[..1], failed_at_base, excused, ..bare("x") }.text();
    assert!(!text.contains("must exit with 0"), "{text}");
}

#[test]
fn gates_that_were_not_requested_are_not_mentioned() {
    let text = bare("x").text();
    for word in ["promise", "check", "failed", "Progress"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
    assert!(text.contains("Nothing has changed yet."));
    let elsewhere = Contract { diff: None, ..bare("x") }.text();
    assert!(elsewhere.contains("no git repository"));
}

#[test]
fn a_long_diff_is_cut_and_the_rest_is_counted() {
    let long = "+é\n".repeat(3000);
    let diff = format!(
        "diff --git a/first b/first\n@@ -1 +1 @@\n-a\n+b\ndiff --git a/big b/big\n--- a/big\n+++ b/big\n@@ -1 +1 @@\n-o\n{long}diff --git a/last b/last\n@@ -1,2 +0,0 @@\n-x\n-y\n"
    );
    let cut = shortened(&diff);
    let (shown, rest) = cut.split_once("\n… cut here").unwrap();
    assert_eq!(shown.chars().count(), MAX_DIFF_CHARS);
    assert!(diff.starts_with(shown));
    assert!(rest.ends_with("  big: +3000 -1\n  last: +0 -2\n"), "{rest}");
    assert_eq!(shortened("short"), "short");
}

#[test]
fn contract_quotes_the_end_of_a_checks_output() {
    let output = format!("{}the end ✗", "x".repeat(5000));
    let text = Contract { failed: &[Failed { check: "t", output: &output }], ..bare("x") }.text();
    assert!(text.contains("the end ✗"));
    assert!(!text.contains(&"x".repeat(MAX_OUTPUT_CHARS)));
    assert_eq!(last_characters("añb", 2), "ñb");
    assert_eq!(last_characters("añb", 9), "añb");
    assert_eq!(last_characters("añb", 0), "");
}

#[test]
fn code_fence_in_the_output_does_not_end_the_block() {
    let text = Contract { failed: &[Failed { check: "t", output: "a\n```\nb\n````\n" }], ..bare("x") }.text();
    assert!(text.contains("`````\na\n```\nb\n````\n`````\n"), "{text}");
}

#[test]
fn the_progress_entry_has_the_documented_form() {
    let entry = ProgressEntry {
        iteration: 1,
        passed: false,
        steps: Some(8),
        cost: Some(0.0234),
        duration: 15.2,
        checks: vec![
            ("pytest tests/", true, "ok"),
            ("ruff check src/", false, "one\nsrc/auth.py:42:1: F841 unused\n--\n"),
        ],
        remarks: &[],
    };
    assert_eq!(
        entry.to_string(),
        "## Iteration 1 — FAIL\n- Steps: 8\n- Cost: $0.0234\n- Duration: 15.2s\n- Checks:\n  - pytest tests/: PASS\n  - ruff check src/: FAIL — src/auth.py:42:1: F841 unused\n"
    );
    let unknown = ProgressEntry { steps: None, cost: None, checks: vec![], passed: true, ..entry };
    assert_eq!(
        unknown.to_string(),
        "## Iteration 1 — PASS\n- Steps: unknown\n- Cost: unknown\n- Duration: 15.2s\n"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_task_is_never_changed(task in "[^\n](?s:.{0,300})[^\n]", output in "(?s).{0,3000}", diff in "(?s).{0,6000}") {
        let failed = [Failed { check: "c", output: &output }];
        let text = Contract { diff: Some(&diff), failed: &failed, ..bare(&task) }.text();
        prop_assert!(text.contains(&task));
        prop_assert!(text.ends_with('\n'));
    }

    #[test]
    fn cut_diff_is_the_start_of_the_diff(diff in "(diff --git a/x b/x\n|[+-]é\n|@@\n){0,2500}") {
        let short = shortened(&diff);
        let shown = short.split("\n… cut here").next().unwrap();
        prop_assert!(diff.starts_with(shown));
        prop_assert!(shown.chars().count() <= MAX_DIFF_CHARS);
    }
}
