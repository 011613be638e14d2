//! Tests of the texts for the agent and the user.

use super::*;

#[test]
fn start_text_has_the_task_the_promise_rules_and_the_turn_limit() {
    let text = start_text(&ralph(20));
    for part in [
        "Only when the task is fully done",
        "<promise>DONE</promise>",
        "to the letter",
        "no white space",
        "no variant",
        "If the task is not fully done, do not output it",
        "up to 20 turns",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.ends_with("\n\nthe task"), "{text}");
    let without = start_text(&SessionLoop { completion: None, ..ralph(0) });
    assert!(!without.contains("promise") && without.ends_with("\n\nthe task"), "{without}");
}

#[test]
fn reminder_has_the_documented_text() {
    assert_eq!(
        block_text(&ralph(9), PromiseFound::Missing, 3),
        "You attempted to end the loop, but you did not output the completion promise `<promise>DONE</promise>`. \
         Continue working on the original task below. Only output the promise when the task is fully complete.\n\n\
         Original task:\n\nthe task"
    );
    let rejected = block_text(&ralph(9), PromiseFound::Rejected, 0);
    assert!(
        rejected.starts_with(
            "Promise detected, but no tool calls/work were performed; you must actually complete the task before emitting the promise"
        ),
        "{rejected}"
    );
    assert!(
        rejected.contains("`<promise>DONE</promise>`") && rejected.ends_with("Original task:\n\nthe task")
    );
}

#[test]
fn ulw_text_is_the_ralph_text_after_an_instruction() {
    let ulw = SessionLoop { kind: SessionKind::Ulw, ..ralph(9) };
    let front = start_text(&ulw).strip_suffix(&start_text(&ralph(9))).unwrap().to_owned();
    assert!(front.starts_with("ULTRAWORK MODE"));
    for found in [PromiseFound::Missing, PromiseFound::Rejected, PromiseFound::Error] {
        assert_eq!(block_text(&ulw, found, 0), front.clone() + &block_text(&ralph(9), found, 0));
    }
}

#[test]
fn contract_is_passed_unchanged() {
    let state = SessionLoop { body: b" a\r\n---\n{x} \xff\n\n".to_vec(), ..do_it(9) };
    for text in [
        start_text(&state),
        block_text(&state, PromiseFound::Missing, 0),
        block_text(&state, PromiseFound::Rejected, 0),
    ] {
        assert_eq!(text, " a\r\n---\n{x} \u{fffd}\n\n");
    }
}

#[test]
fn placeholders_are_filled_in_once() {
    let project = Ready { project_name: "{CWD} & {BRANCH_NAME}".into(), branch_name: "b".into(), ..ready(1) };
    let filled = |text: &[u8]| substitute(text, &project, "/p/{PROJECT_NAME}");
    assert_eq!(filled(b"{PROJECT_NAME}"), b"{CWD} & {BRANCH_NAME}");
    assert_eq!(filled(b"{{CWD}}"), b"{/p/{PROJECT_NAME}}");
    assert_eq!(filled(b"{PROJECT_TYPE}/{BRANCH_NAME}"), b"software/b");
    for same in [&b"{cwd} {CWD {PROJECT NAME} ${X} {} }{"[..], b"", b"\xff{\xfe}"] {
        assert_eq!(filled(same), same);
    }
}

#[test]
fn built_in_contract_has_the_documented_parts() {
    let text = built_in_contract();
    for part in [
        "{PROJECT_NAME}",
        "{PROJECT_TYPE}",
        "{BRANCH_NAME}",
        "{CWD}",
        ".do-it/specs/",
        ".do-it/specs/_meta.json",
        ".do-it/changes/",
        "archive/",
        ".do-it/progress.md",
        "AGENTS.md",
        "`review_mode`",
        "`safety_stops`",
        "`autonomy_level`",
        "### Decision needed",
        "### Needs grill",
        "\n<promise>COMPLETE</promise>\n",
        "\n<promise>PAUSE</promise>\n",
    ] {
        assert!(text.contains(part), "{part}");
    }
    let filled = String::from_utf8(substitute(text.as_bytes(), &ready(1), "/p")).unwrap();
    assert!(!filled.contains('{'), "{filled}");
}

#[test]
fn brief_has_the_documented_text() {
    let text = brief(&do_it(30));
    for part in [
        "Ralph loop active — iteration 1 of 30.\n",
        "It runs in THIS session. After each turn, the Stop hook feeds the same contract\nback and I work the next task. I stop automatically when:\n",
        "• every spec is satisfied → <promise>COMPLETE</promise>\n",
        "• a UI-first gate is reached → <promise>PAUSE</promise> (then run /do-it:review)\n",
        "• the iteration ceiling is hit → 30\n",
        "Cancel any time with /do-it:cancel-ralph (or delete .claude/do-it-ralph.local.md).\n",
        "Watch progress in .do-it/progress.md. Context accumulates across iterations; for\nvery long runs, cancel, /clear, and re-run /do-it:ralph to reset.\n",
    ] {
        assert!(text.contains(part), "{part}");
    }
    assert!(brief(&do_it(0)).contains("iteration 1 of unlimited"));
}
