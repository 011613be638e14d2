use proptest::prelude::*;

use super::*;

const USED: &str = r#"{"isSidechain":false,"type":"assistant","message":{"model":"claude-sonnet-4-5-20250929","usage":{"input_tokens":10,"cache_creation_input_tokens":20000,"cache_read_input_tokens":80000,"output_tokens":990}}}"#;

fn tail(lines: &[&str]) -> ContextTail {
    ContextTail::of(&format!("{}\n", lines.join("\n")))
}

fn estimate(bytes: u64, window: Option<u64>) -> ContextUse {
    ContextUse::of(&ContextTail::default(), bytes, window)
}

/// Section 5a of the document: the size of the file / 4, of 200,000 tokens.
#[test]
fn the_estimate_is_the_size_in_tokens_of_four_bytes() {
    for (bytes, window, percent) in [
        (0, None, 0),
        (399_999, None, 49),
        (400_000, None, 50),
        (720_000, None, 90),
        (9_000_000_000, None, 100),
        (u64::MAX, Some(1), 100),
        (40_000, Some(10_000), 100),
        (40_000, Some(20_000), 50),
        (400_000, Some(1_000_000), 10),
    ] {
        let context = estimate(bytes, window);
        assert_eq!((context.percent(), context.is_estimate), (percent, true), "{bytes} {window:?}");
    }
}

#[test]
fn each_threshold_is_due_once_and_a_jump_gives_the_highest() {
    let at = |percent: u64| estimate(percent * 8000, None);
    let mut last = 0;
    let mut given = vec![];
    for percent in 1..=100 {
        if let Some(threshold) = at(percent).due(last) {
            given.push((percent, threshold));
            last = threshold;
        }
    }
    assert_eq!(given, [(50, 50), (60, 60), (70, 70), (80, 80), (90, 90)]);
    for (percent, last, due) in [
        (49, 0, None),
        (75, 0, Some(70)),
        (75, 70, None),
        (100, 50, Some(90)),
        (100, 90, None),
        (60, 90, None),
    ] {
        assert_eq!(at(percent).due(last), due, "{percent} {last}");
    }
}

#[test]
fn tokens_of_the_last_request_replace_the_estimate_by_size() {
    let sub_agent = USED.replace("\"isSidechain\":false", "\"isSidechain\":true").replace("80000", "1");
    let failed =
        USED.replace("80000", "0").replace("20000", "0").replace("\"input_tokens\":10", "\"input_tokens\":0");
    let before = USED.replace("80000", "7");
    let result = r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"\"usage\""}]}}"#;
    let found = tail(&["torn {\"usage\"", &before, USED, &sub_agent, &failed, result, "{\"usage\":"]);
    let context = ContextUse::of(&found, 50_000_000, None);
    assert_eq!((context.tokens, context.window, context.percent()), (101_000, 200_000, 50));
    assert!(!context.is_estimate);
    assert!(!tail(&[result, &sub_agent, &failed, "plain text"]).is_known());
}

#[test]
fn context_window_is_that_of_the_model() {
    for (model, asked, window) in [
        ("claude-sonnet-4-5-20250929", None, 200_000),
        ("claude-opus-4-1-20250805", None, 200_000),
        ("claude-opus-4-6", Some("claude-opus-4-6[1m]"), 1_000_000),
        ("claude-sonnet-4-5[1m]", None, 1_000_000),
        ("claude-opus-4-7", None, 1_000_000),
        ("claude-opus-5-5", Some("claude-opus-5-5"), 1_000_000),
        ("claude-haiku-4-5-20251001", None, 200_000),
        ("another", None, 200_000),
    ] {
        let line = USED.replace("claude-sonnet-4-5-20250929", model);
        let asked = asked.map(|asked| format!("\"requestedModel\":\"{asked}\",")).unwrap_or_default();
        let line = line.replacen('{', &format!("{{{asked}"), 1);
        assert_eq!(ContextUse::of(&tail(&[&line]), 0, None).window, window, "{line}");
        assert_eq!(ContextUse::of(&tail(&[&line]), 0, Some(7)).window, 7, "the user's own comes first");
    }
    // More tokens than the window of the name holds.
    let large = ContextUse::of(&tail(&[&USED.replace("80000", "280000")]), 0, None);
    assert_eq!((large.window, large.percent()), (1_000_000, 30));
}

#[test]
fn codex_records_its_tokens_and_its_window() {
    let line = r#"{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":900000,"output_tokens":9},"last_token_usage":{"input_tokens":136000,"cached_input_tokens":100000,"output_tokens":0},"model_context_window":272000}}}"#;
    let none = r#"{"type":"event_msg","payload":{"type":"token_count","info":null}}"#;
    let context = ContextUse::of(&tail(&[line, none]), 0, None);
    assert_eq!((context.tokens, context.window, context.percent()), (136_000, 272_000, 50));
}

#[test]
fn a_compaction_makes_alerts_due_again() {
    let boundary = r#"{"type":"system","subtype":"compact_boundary","compactMetadata":{"trigger":"auto"}}"#;
    let summary = r#"{"type":"user","isCompactSummary":true,"message":{"content":"in short"}}"#;
    let compacted = ContextUse::of(&tail(&[USED, boundary, summary]), 9_000_000, None);
    assert_eq!((compacted.tokens, compacted.is_estimate), (summary.len() as u64 / 4, true));
    assert_eq!(compacted.rearmed(90), Some(0));
    let after = ContextUse::of(&tail(&[boundary, summary, USED]), 9_000_000, None);
    assert_eq!((after.percent(), after.rearmed(90)), (50, Some(50)));
    // Neither small changes nor an estimate, which cannot shrink, are compactions.
    assert_eq!((after.rearmed(0), after.rearmed(50)), (None, None));
    assert_eq!(estimate(8000, None).rearmed(90), None);
}

/// The table of section 5a, word for word where the agent works on a task list.
#[test]
fn alert_names_the_task_list_only_if_the_agent_has_one() {
    let context = estimate(416_000, None);
    let notice = "Context NOTICE: 52% used (about 104000 of 200000 tokens). Be mindful of remaining space. Plan to \
                  finish your current task within this session.";
    assert_eq!(context.alert(50, false), notice);
    let tasks = " If you discover follow-up work, add new stories to tasks.json — the next iteration will pick them up.";
    assert_eq!(context.alert(60, true), format!("{notice}{tasks}"));
    for (threshold, severity) in
        [(50, "NOTICE"), (60, "NOTICE"), (70, "WARNING"), (80, "WARNING"), (90, "CRITICAL")]
    {
        assert!(context.alert(threshold, true).starts_with(&format!("Context {severity}: ")), "{threshold}");
        assert!(context.alert(threshold, true).contains("tasks.json"), "{threshold}");
        let plain = context.alert(threshold, false);
        for word in ["tasks.json", "progress.txt", "stories", "iteration"] {
            assert!(!plain.contains(word), "{threshold}: {plain}");
        }
    }
}

#[test]
fn impossible_numbers_of_tokens_are_ignored() {
    let huge = USED.replace("80000", "18446744073709551615");
    let codex = r#"{"payload":{"type":"token_count","info":{"last_token_usage":{"input_tokens":18446744073709551615,"output_tokens":0}}}}"#;
    for line in [&huge, codex] {
        assert_eq!(ContextUse::of(&tail(&[USED, line]), 0, None).tokens, 101_000, "{line}");
        assert!(!tail(&[line]).is_known(), "{line}");
    }
}

#[test]
fn attachments_do_not_count_in_an_estimate() {
    let image = "aB3+/".repeat(1000);
    let line = format!(r#"{{"type":"user","data":"{image}==","text":"{}"}}"#, "x".repeat(5000));
    assert_eq!(attachment_bytes(&line), 5002);
    // Its start was not read.
    assert_eq!(attachment_bytes(&line[50..]), 5002 - 50 + line.find(&image).unwrap() as u64);
    assert_eq!(attachment_bytes(&"a long line of text, with Words and 12345 numbers\n".repeat(100)), 0);
    let boundary = r#"{"type":"system","subtype":"compact_boundary"}"#;
    let compacted = ContextUse::of(&tail(&[boundary, &line]), 9_000_000, None);
    assert_eq!(compacted.tokens, (line.len() as u64 + 1 - 5002) / 4);
}

#[test]
fn the_nudge_names_both_limits() {
    let context = estimate(584_000, None);
    assert_eq!(
        context.nudge(70),
        "Context LIMIT: 73% used; this iteration may use 70%. Wrap up now: commit your work, then stop. swarm ends this \
         iteration when 85% is used."
    );
    assert!(context.nudge(90).ends_with("swarm ends this iteration when the context is full."));
    assert_eq!([1, 85, 86, 100].map(end_at), [Some(16), Some(100), None, None]);
}

/// A transcript of Claude Code 2.1.332. The estimate does not see the system prompt and the definitions of the tools.
#[test]
fn estimate_is_compared_with_the_usage_of_a_recorded_transcript() {
    let recorded = include_str!("../../fixtures/transcripts/claude.jsonl");
    let real = ContextUse::of(&ContextTail::of(recorded), recorded.len() as u64, None);
    let rough = estimate(recorded.len() as u64, None);
    println!(
        "real: {} of {} tokens; estimate: {} of {}",
        real.tokens, real.window, rough.tokens, rough.window
    );
    assert_eq!((real.tokens, real.window, real.is_estimate), (12_777, 1_000_000, false));
    assert_eq!((rough.tokens, rough.window), (1926, 200_000));
}

proptest! {
    #[test]
    fn random_text_does_not_panic(text in "(\\PC|\n|usage|compact|\\{\"type\":\"assistant\"){0,60}", size: u64, last: u8) {
        let context = ContextUse::of(&ContextTail::of(&text), size, None);
        prop_assert!(context.percent() <= 100 && context.due(last).is_none_or(|due| due > last));
    }
}
