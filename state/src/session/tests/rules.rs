//! The acceptance tests of the first document, and known faults of loops like this one.

use super::*;
use crate::transcript::Account;

const DONE: &str = "<promise>DONE</promise>";

#[test]
fn acceptance_1_it_stops_on_the_promise() {
    let mut world = World::new(ralph(20));
    assert_eq!(world.status(&says(DONE)), Some(SessionStatus::PromiseAccepted));
    assert_eq!(world.state, None);
}

#[test]
fn acceptance_2_it_blocks_a_stop_without_the_promise() {
    let mut world = World::new(ralph(20));
    let outcome = world.stop(&says("I'm done")).unwrap();
    let StopAnswer::Block(text) = outcome.answer else { panic!("let through") };
    assert!(text.contains(DONE) && text.ends_with("the task"));
    assert_eq!(world.state().iteration, 2);
}

#[test]
fn acceptance_3_it_ends_after_n_turns() {
    for turns in [1, 2, 3, 20, 100] {
        let mut world = World::new(ralph(turns));
        for turn in 1..turns {
            assert!(is_block(&world.stop(&says("at work")).unwrap()), "turn {turn} of {turns}");
        }
        assert_eq!(world.status(&says("at work")), Some(SessionStatus::MaxIterationsReached));
        assert_eq!(world.log.len(), turns as usize);
    }
}

#[test]
fn acceptance_4_it_rejects_a_promise_without_work() {
    let mut world = World::new(ralph(20));
    let outcome = world.stop(&Stop { tool_calls: Some(0), ..says(DONE) }).unwrap();
    let StopAnswer::Block(text) = outcome.answer else { panic!("let through") };
    assert!(text.starts_with("Promise detected, but no tool calls"));
    assert_eq!((world.log[0].promise, world.state().iteration), (PromiseFound::Rejected, 2));
}

#[test]
fn acceptance_5_it_finds_the_promise_anywhere_in_the_final_message() {
    for text in [
        DONE.to_owned(),
        format!("All is done.\n\n{DONE}"),
        format!("{DONE}\n\nThat was all."),
        format!("```\n{DONE}\n```"),
        format!("**{DONE}**"),
        format!("x{DONE}y"),
    ] {
        let mut world = World::new(ralph(20));
        assert_eq!(world.status(&says(&text)), Some(SessionStatus::PromiseAccepted), "{text}");
    }
}

/// A bare word ends the loop without the tag.
#[test]
fn only_the_promise_tag_counts() {
    let mut world = World::new(ralph(20));
    let answers: Vec<bool> = ["DONE", "  DONE\n", DONE]
        .into_iter()
        .map(|text| is_block(&world.stop(&says(text)).unwrap()))
        .collect();
    assert_eq!(answers, [true, true, false]);
    for text in [
        "<promise>done</promise>",
        "<promise> DONE </promise>",
        "<promise>\nDONE\n</promise>",
        "<promise>DONE",
        "<promise>DONE!</promise>",
        "<Promise>DONE</Promise>",
        "promise: DONE",
        "&lt;promise&gt;DONE&lt;/promise&gt;",
    ] {
        let mut world = World::new(ralph(20));
        assert!(is_block(&world.stop(&says(text)).unwrap()), "{text}");
    }
}

/// The promise stands in a prompt, a tool's result, a sub-agent's words or the CLI's own error.
#[test]
fn only_text_of_the_agent_counts() {
    let record = [
        r#"{"type":"user","message":{"role":"user","content":"say <promise>DONE</promise>"}}"#,
        r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"<promise>DONE</promise>"}]}}"#,
        r#"{"type":"assistant","isSidechain":true,"message":{"id":"1","content":[{"type":"text","text":"<promise>DONE</promise>"}]}}"#,
        r#"{"type":"assistant","message":{"id":"2","content":[{"type":"tool_use","id":"t","input":{"x":"<promise>DONE</promise>"}}]}}"#,
        r#"{"type":"assistant","isApiErrorMessage":true,"message":{"id":"3","content":[{"type":"text","text":"<promise>DONE</promise>"}]}}"#,
    ];
    let account = Account::of(&record.join("\n"));
    let mut world = World::new(ralph(20));
    assert!(is_block(&world.stop(&says(&account.texts.join("\n"))).unwrap()));
}

/// An empty promise completes at once.
#[test]
fn an_empty_promise_is_refused_and_completes_nothing() {
    for text in ["x --completion-promise ''", "x --completion-promise=", "x --completion-promise \"  \""] {
        assert!(loop_words(text).is_err(), "{text}");
    }
    // In a file an empty value is no promise.
    let file = SessionFile::new(SessionLoop { completion: None, ..ralph(3) }).render();
    let state = SessionFile::parse(&file).unwrap().state().clone();
    assert_eq!((state.completion.clone(), state.pause.clone()), (None, None));
    let mut world = World::new(state);
    for text in ["", "<promise></promise>"] {
        assert!(is_block(&world.stop(&says(text)).unwrap()), "{text}");
    }
    assert_eq!(world.status(&says(DONE)), Some(SessionStatus::MaxIterationsReached));
}

/// One session's loop captures the others.
#[test]
fn loop_continues_only_its_own_session() {
    for (owner, session, is_held) in [
        (Owner::Session(id("a")), Some(id("a")), true),
        (Owner::Session(id("a")), Some(id("b")), false),
        (Owner::Session(id("a")), None, false),
        (Owner::Nobody, Some(id("a")), false),
        (Owner::Nobody, None, false),
        (Owner::Unclaimed, Some(id("a")), false),
        (Owner::Unclaimed, None, false),
    ] {
        let state = SessionLoop { owner: owner.clone(), ..ralph(20) };
        let outcome = decide(&state, &Book::default(), &Stop { session: session.clone(), ..says("x") });
        assert_eq!(is_block(&outcome), is_held, "{owner:?} {session:?}");
        assert_eq!(outcome.after != After::Unchanged, is_held);
    }
}

/// `--max-iterations=3` was not understood, became part of the prompt, and the loop had no limit.
#[test]
fn every_form_of_the_limit_is_parsed_or_refused() {
    for (text, turns) in [
        ("do it --max-iterations=3", Some(3)),
        ("do it --max-iterations 3", Some(3)),
        ("do it -n3", Some(3)),
        ("do it -n 3", Some(3)),
        ("do it --max-iterations 0", Some(0)),
        ("do it", None),
    ] {
        let words = loop_words(text).unwrap();
        assert_eq!(
            (words.task.as_str(), words.max_iterations.map(Ceiling::turns)),
            ("do it", turns),
            "{text}"
        );
    }
    for text in [
        "--max-iterations three",
        "--max-iterations -1",
        "--max-iteration 3",
        "-n three",
        "--max-iterations=101",
    ] {
        assert!(loop_words(&format!("do it {text}")).is_err(), "{text}");
    }
    // Nothing is without a limit unless that was asked for.
    assert_eq!(loop_words("do it").unwrap().max_iterations.unwrap_or_default().turns(), 20);
}

/// The prompt is damaged by the state file's own format.
#[test]
fn task_is_repeated_unchanged_each_time() {
    for task in [
        "a\n---\nb: \"c\" # d\n---\n$x `y`",
        "---\niteration: 99\n---\n",
        "  indented\n\n\n",
        "\u{feff}x\r\ny\r\n",
        "'\"\\ %s {CWD} $(x) <promise>DONE</promise>",
        "",
    ] {
        let mut world = World::new(SessionLoop { body: task.as_bytes().to_vec(), ..ralph(20) });
        let mut texts = Vec::new();
        for _ in 0..5 {
            let StopAnswer::Block(text) = world.stop(&says("x")).unwrap().answer else {
                panic!("let through")
            };
            texts.push(text.split_once("Original task:\n\n").unwrap().1.to_owned());
        }
        assert_eq!(texts, vec![task; 5]);
    }
}
