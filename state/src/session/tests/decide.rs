//! The decision.

use super::*;
use crate::promise::OnNoWork;

#[test]
fn first_of_two_promises_counts() {
    let done = "<promise>COMPLETE</promise>";
    let pause = "<promise>PAUSE</promise>";
    for (text, status, found) in [
        (done.to_owned(), Some(SessionStatus::PromiseAccepted), PromiseFound::Found),
        (pause.to_owned(), Some(SessionStatus::Paused), PromiseFound::Pause),
        (format!("{done} {pause}"), Some(SessionStatus::PromiseAccepted), PromiseFound::Found),
        (format!("{pause}{done}"), Some(SessionStatus::Paused), PromiseFound::Pause),
        ("PAUSE COMPLETE".to_owned(), None, PromiseFound::Missing),
        ("<promise>DONE</promise>".to_owned(), None, PromiseFound::Missing),
    ] {
        let mut world = World::new(do_it(20));
        let outcome = world.stop(&says(&text)).unwrap();
        assert_eq!(outcome.status, status, "{text}");
        assert_eq!(world.log[0].promise, found, "{text}");
        assert_eq!(world.state.is_none(), status.is_some(), "{text}");
    }
}

#[test]
fn work_is_required_only_for_the_completion_promise() {
    let lazy = |text: &str| Stop { tool_calls: Some(0), ..says(text) };
    let with = |on_no_work, min_tool_calls| SessionLoop {
        on_no_work,
        min_tool_calls,
        pause: Promise::new("PAUSE").ok(),
        ..ralph(9)
    };
    for (state, stop, found) in [
        (with(OnNoWork::Reject, 1), lazy("<promise>DONE</promise>"), PromiseFound::Rejected),
        (with(OnNoWork::Warn, 1), lazy("<promise>DONE</promise>"), PromiseFound::Doubtful),
        (with(OnNoWork::Accept, 1), lazy("<promise>DONE</promise>"), PromiseFound::Found),
        (with(OnNoWork::Reject, 0), lazy("<promise>DONE</promise>"), PromiseFound::Found),
        (with(OnNoWork::Reject, 2), says("<promise>DONE</promise>"), PromiseFound::Rejected),
        (with(OnNoWork::Reject, 1), lazy("<promise>PAUSE</promise>"), PromiseFound::Pause),
        (do_it(9), lazy("<promise>COMPLETE</promise>"), PromiseFound::Found),
        // Calls that were not counted may have been work: the promise counts, and the log records the doubt.
        (
            with(OnNoWork::Reject, 1),
            Stop { tool_calls: None, ..says("<promise>DONE</promise>") },
            PromiseFound::Doubtful,
        ),
        (
            with(OnNoWork::Reject, 5),
            Stop { is_cut: true, ..says("<promise>DONE</promise>") },
            PromiseFound::Doubtful,
        ),
    ] {
        let mut world = World::new(state);
        world.stop(&stop);
        assert_eq!(world.log[0].promise, found, "{stop:?}");
    }
}

#[test]
fn tool_calls_are_counted_since_the_start_of_the_loop() {
    let mut world = World::new(SessionLoop { min_tool_calls: 3, ..ralph(9) });
    assert!(is_block(&world.stop(&Stop { tool_calls: Some(2), ..says("at work") }).unwrap()));
    let outcome = world.stop(&Stop { tool_calls: Some(0), ..says("<promise>DONE</promise>") }).unwrap();
    let StopAnswer::Block(text) = outcome.answer else { panic!("accepted with 2 of 3") };
    assert!(text.contains("tool calls: 2, needed: 3"), "{text}");
    assert_eq!(
        world.status(&Stop { tool_calls: Some(1), ..says("<promise>DONE</promise>") }),
        Some(SessionStatus::PromiseAccepted)
    );
}

#[test]
fn cut_transcript_never_rejects_a_promise() {
    let mut world = World::new(ralph(9));
    world.stop(&Stop { tool_calls: Some(0), is_cut: true, ..says("at work") });
    let stop = Stop { tool_calls: Some(0), ..says("<promise>DONE</promise>") };
    assert_eq!(world.status(&stop), Some(SessionStatus::PromiseAccepted));
}

#[test]
fn promise_counts_in_the_last_turn() {
    let mut world = World::new(ralph(1));
    assert_eq!(world.status(&says("<promise>DONE</promise>")), Some(SessionStatus::PromiseAccepted));
    let mut world = World::new(ralph(1));
    assert_eq!(world.status(&says("at work")), Some(SessionStatus::MaxIterationsReached));
    assert_eq!(world.state, None);
    let mut world = World::new(ralph(1));
    let stop = Stop { tool_calls: Some(0), ..says("<promise>DONE</promise>") };
    assert_eq!(world.status(&stop), Some(SessionStatus::MaxIterationsReached));
    assert_eq!(world.log[0].promise, PromiseFound::Rejected);
}

#[test]
fn stop_of_another_session_changes_nothing() {
    for stop in [
        Stop { session: None, ..says("x") },
        Stop { session: Some(id("other")), ..says("<promise>DONE</promise>") },
        Stop { is_sub_agent: true, ..says("<promise>DONE</promise>") },
    ] {
        let mut world = World::new(ralph(9));
        let outcome = world.stop(&stop).unwrap();
        assert_eq!(outcome.answer, StopAnswer::Allow(None));
        assert_eq!(
            (&outcome.after, &outcome.log, &outcome.book),
            (&After::Unchanged, &None, &Book::default())
        );
    }
}

#[test]
fn only_a_do_it_file_without_an_owner_is_claimed_by_a_session() {
    let mut world = World::new(SessionLoop { owner: Owner::Unclaimed, ..do_it(9) });
    assert!(is_block(&world.stop(&says("x")).unwrap()));
    assert_eq!(world.state().owner, Owner::Session(id("s")));
    assert!(!is_block(&world.stop(&Stop { session: Some(id("other")), ..says("y") }).unwrap()));
    for state in [
        SessionLoop { owner: Owner::Nobody, ..do_it(9) },
        SessionLoop { owner: Owner::Nobody, ..ralph(9) },
        SessionLoop { owner: Owner::Unclaimed, ..ralph(9) },
    ] {
        assert!(!is_block(&decide(&state, &Book::default(), &says("x"))), "{state:?}");
    }
}

#[test]
fn background_tasks_and_an_unreadable_record_allow_the_stop() {
    let before = Book { tool_calls: 4, blocks_in_a_row: 2, ..Book::default() };
    for stop in [
        Stop { background_tasks: 1, ..says("<promise>DONE</promise>") },
        Stop { said: None, tool_calls: None, ..says("") },
    ] {
        let outcome = decide(&ralph(9), &before, &stop);
        assert_eq!((&outcome.answer, &outcome.after), (&StopAnswer::Allow(None), &After::Unchanged));
        assert_eq!((&outcome.book, outcome.status), (&before, None));
        assert_eq!(outcome.log.unwrap().promise, PromiseFound::Unread);
    }
}

#[test]
fn paused_loop_allows_the_stop_and_resumes_at_the_same_turn() {
    let state = SessionLoop { active: false, iteration: 4, ..ralph(9) };
    let outcome = decide(&state, &Book::default(), &says("x"));
    assert_eq!((outcome.status, outcome.after), (Some(SessionStatus::NotActive), After::Unchanged));
    let book = Book { without_diff: 3, status: Some(SessionStatus::Paused), ..Book::default() };
    let outcome = resume(&state, &book, &id("s"), at(9));
    let After::Write(resumed) = outcome.after else { panic!("not written") };
    assert_eq!((resumed.active, resumed.iteration), (true, 4));
    assert_eq!((outcome.book.without_diff, outcome.book.status), (0, None));
    assert!(is_block(&decide(&resumed, &outcome.book, &says("x"))));
}

#[test]
fn cancel_removes_the_state_file_and_is_recorded() {
    let outcome = cancel(&ralph(9), &Book::default(), at(5));
    assert_eq!((outcome.after, outcome.status), (After::Remove, Some(SessionStatus::Cancelled)));
    assert_eq!(outcome.book.status, Some(SessionStatus::Cancelled));
    assert_eq!(outcome.log.unwrap().status, Some(SessionStatus::Cancelled));
}

#[test]
fn block_cap_of_the_agent_is_never_exceeded() {
    let held = |text: &str| Stop {
        tool_calls: Some(0),
        stop_hook_active: Some(true),
        host_cap: Some(8),
        ..says(text)
    };
    let mut world = World::new(ralph(100));
    assert!(is_block(&world.stop(&Stop { stop_hook_active: Some(false), ..held("0") }).unwrap()));
    for n in 1..8 {
        assert!(is_block(&world.stop(&held(&n.to_string())).unwrap()), "{n}");
    }
    assert_eq!(world.status(&held("8")), Some(SessionStatus::HostCap));
    assert_eq!((world.state().active, world.state().iteration), (true, 9));
    // The next prompt begins a new row, and so does a tool call.
    assert!(is_block(&world.stop(&Stop { stop_hook_active: Some(false), ..held("9") }).unwrap()));
    assert_eq!(world.book.blocks_in_a_row, 1);
    world.stop(&held("10"));
    world.stop(&Stop { tool_calls: Some(1), ..held("11") });
    assert_eq!(world.book.blocks_in_a_row, 1);
    for n in 12..15 {
        world.stop(&held(&n.to_string()));
    }
    assert_eq!(world.book.blocks_in_a_row, 4);
    // A prompt of the user ends the row, too.
    world.stop(&Stop { stop_hook_active: Some(false), ..held("15") });
    assert_eq!(world.book.blocks_in_a_row, 1);
    for cap in [None, Some(0)] {
        let mut world = World::new(ralph(100));
        for n in 0..50 {
            assert!(is_block(&world.stop(&Stop { host_cap: cap, ..held(&n.to_string()) }).unwrap()));
        }
    }
}

#[test]
fn an_api_error_pauses_with_its_reason() {
    let mut world = World::new(ralph(9));
    let stop = Stop { failure: Some(Failure::Reported("529 overloaded".into())), said: None, ..says("") };
    let outcome = world.stop(&stop).unwrap();
    assert_eq!(outcome.status, Some(SessionStatus::Paused));
    assert_eq!(world.book.why.as_deref(), Some("API error: 529 overloaded"));
    assert_eq!((world.state().active, world.state().iteration), (false, 1));
}

#[test]
fn repeated_error_pauses_and_another_text_does_not() {
    let idle = |text: &str| Stop { tool_calls: Some(0), ..says(text) };
    let marked = |text: &str| Stop { failure: Some(Failure::Marked(text.into())), ..idle("") };
    for (first, second, is_paused) in [
        (idle("API Error: 529 overloaded"), idle("API Error: 529 overloaded"), true),
        (idle("Credit balance is too low"), idle("Credit balance is too low"), true),
        (idle("API Error: 529"), idle("API Error: 500"), false),
        (idle("still at it"), idle("still at it"), false),
        (idle("API Error: 529"), says("API Error: 529"), false),
        (marked("529"), marked("500"), true),
        (marked("529"), idle("on it again"), false),
        (idle("x"), marked("529"), false),
    ] {
        let mut world = World::new(ralph(9));
        assert!(is_block(&world.stop(&first).unwrap()), "{first:?}");
        let outcome = world.stop(&second).unwrap();
        assert_eq!(outcome.status == Some(SessionStatus::Paused), is_paused, "{first:?} {second:?}");
        assert_eq!(world.state().active, !is_paused);
    }
}

#[test]
fn unchanged_tree_pauses_only_with_a_no_diff_limit() {
    let sees = |tree: &str| Stop { tree: Some(tree.into()), ..says("at work") };
    let mut world = World::new(do_it(90));
    world.book = Book { tree: Some("a".into()), ..Book::default() };
    for _ in 0..50 {
        assert!(is_block(&world.stop(&sees("a")).unwrap()));
    }
    let limited = Book {
        do_it: DoItOptions { no_diff_limit: 3, ..DoItOptions::default() },
        tree: Some("a".into()),
        ..Book::default()
    };
    let mut world = World::new(do_it(90));
    world.book = limited.clone();
    for tree in ["a", "a", "b", "b", "b"] {
        assert!(is_block(&world.stop(&sees(tree)).unwrap()), "{tree}");
    }
    let outcome = world.stop(&sees("b")).unwrap();
    assert_eq!(outcome.status, Some(SessionStatus::Paused));
    assert!(outcome.note.unwrap().contains("3 iterations in a row"));
    assert!(!world.state().active);
    // A tree that cannot be read neither adds to a row nor ends it.
    let mut world = World::new(do_it(90));
    world.book = limited;
    for stop in [sees("a"), says("x"), sees("a"), says("y")] {
        assert!(is_block(&world.stop(&stop).unwrap()));
    }
    assert_eq!(world.stop(&sees("a")).unwrap().status, Some(SessionStatus::Paused));
    // And it does not count as no progress.
    let mut world = World::new(SessionLoop { no_diff_limit: 1, ..ralph(9) });
    world.book = Book { tree: Some("a".into()), ..Book::default() };
    assert!(is_block(&world.stop(&says("x")).unwrap()));
    assert_eq!(world.status(&sees("a")), Some(SessionStatus::Paused));
}

#[test]
fn repeated_stop_counts_once() {
    for (first, second, is_same) in
        [(Some(true), Some(false), true), (Some(true), Some(true), false), (None, None, true)]
    {
        let mut world = World::new(ralph(9));
        let stop = says("x");
        let one = world.stop(&Stop { is_news: first, ..stop.clone() }).unwrap();
        let two = world.stop(&Stop { is_news: second, ..stop }).unwrap();
        assert!(is_block(&one) && is_block(&two));
        // The agent receives the task once.
        let has_task = |outcome: &StopOutcome| matches!(&outcome.answer, StopAnswer::Block(text) if text.ends_with("the task"));
        assert_eq!((has_task(&one), has_task(&two)), (true, !is_same));
        assert_eq!((world.state().iteration, world.log.len()), if is_same { (2, 1) } else { (3, 2) });
    }
    // Without a transcript, the time decides.
    let mut world = World::new(ralph(9));
    let stop = Stop { is_news: None, ..says("x") };
    for seconds in [0, 1, 3] {
        world.stop(&Stop { now: at(seconds), ..stop.clone() });
    }
    assert_eq!((world.state().iteration, world.log.len()), (3, 2));
    // Another turn or another text is another stop.
    let mut world = World::new(ralph(9));
    for key in [
        StopKey::of(Some("1"), Some(false), Some("x")),
        StopKey::of(Some("2"), Some(false), Some("x")),
        StopKey::of(Some("2"), Some(true), Some("x")),
        StopKey::of(Some("2"), Some(true), Some("y")),
        StopKey::of(Some("2"), Some(true), None),
    ] {
        world.stop(&Stop { key, is_news: Some(false), ..says("x") });
    }
    assert_eq!(world.state().iteration, 6);
}

#[test]
fn hook_called_before_another_one_answered_prints_nothing() {
    let mut world = World::new(ralph(9));
    let stop = Stop { now: at(5), called: Some(at(4)), ..says("x") };
    let one = world.stop(&stop).unwrap();
    assert!(is_block(&one));
    // Its transcript may have news: the CLI writes while it waits for its hooks.
    for is_news in [Some(true), Some(false), None] {
        for called in [3, 5] {
            let two =
                world.stop(&Stop { now: at(9), called: Some(at(called)), is_news, ..stop.clone() }).unwrap();
            assert_eq!((two.answer, two.log), (StopAnswer::Answered { held: true }, None));
        }
    }
    assert_eq!((world.state().iteration, world.log.len()), (2, 1));
    // A hook that was called later may report the next stop, so the loop decides on it.
    let later = Stop { now: at(9), called: Some(at(6)), is_news: Some(false), ..stop.clone() };
    assert!(is_block(&world.stop(&later).unwrap()));
    assert_eq!(world.state().iteration, 2);
    let next = Stop { now: at(9), called: Some(at(6)), is_news: Some(true), ..stop };
    assert!(is_block(&world.stop(&next).unwrap()));
    assert_eq!(world.state().iteration, 3);
    // An end is reported once, too.
    let mut world = World::new(ralph(9));
    let failed =
        Stop { now: at(5), called: Some(at(4)), failure: Some(Failure::Reported("x".into())), ..says("") };
    world.stop(&failed).unwrap();
    assert_eq!(world.stop(&failed).unwrap().answer, StopAnswer::Answered { held: false });
}

#[test]
fn repeated_pause_report_gives_the_same_answer() {
    let mut world = World::new(ralph(9));
    let stop = Stop { failure: Some(Failure::Reported("x".into())), ..says("") };
    let one = world.stop(&stop).unwrap();
    let two = world.stop(&Stop { is_news: Some(false), ..stop }).unwrap();
    assert_eq!((one.answer, one.status), (two.answer, two.status));
    assert_eq!(world.log.len(), 1);
}

#[test]
fn lost_or_broken_loop_record_keeps_the_loop() {
    for bytes in [&b""[..], b"{", b"[]", b"{\"tool_calls\":-1}"] {
        assert_eq!(Book::parse(bytes), Book::default());
    }
    assert_eq!(Book::parse(b"{\"tool_calls\":3,\"later\":1}").tool_calls, 3);
    let odd = br#"{"tool_calls":3,"without_diff":-1,"last_stop":{"key":7},"status":"LATER","do_it":{"no_diff_limit":2}}"#;
    let sound = Book::parse(odd);
    assert_eq!((sound.tool_calls, sound.do_it.no_diff_limit), (3, 2));
    assert_eq!((sound.without_diff, sound.last_stop, sound.status), (0, None, None));
    let state = SessionLoop { iteration: 7, ..ralph(9) };
    let outcome = decide(&state, &Book::default(), &says("x"));
    let After::Write(next) = outcome.after else { panic!("not written") };
    assert_eq!(next.iteration, 8);
}

#[test]
fn session_id_must_be_usable_in_a_file_name() {
    for good in ["9a408fc4-9d13-460c-af6e-b4340da6c68b", "a", "A.b_c-1", &"x".repeat(128)] {
        assert_eq!(SessionId::new(good).unwrap().as_str(), good);
    }
    for bad in ["", ".", "..", ".a", "a/b", "a b", "a\n", "ä", "a\0", &"x".repeat(129)] {
        assert!(SessionId::new(bad).is_err(), "{bad:?}");
    }
    assert_eq!(SessionKind::Ulw.file_name(&id("s1")), "ralph-loop.s1.local.md");
    assert_eq!(SessionKind::DoIt.file_name(&id("s1")), "do-it-ralph.local.md");
}

#[test]
fn status_words_match_the_log() {
    use SessionStatus::{Cancelled, HostCap, MaxIterationsReached, NotActive, Paused, PromiseAccepted};
    for status in [PromiseAccepted, MaxIterationsReached, Paused, Cancelled, NotActive, HostCap] {
        assert_eq!(serde_json::to_value(status).unwrap(), status.word());
    }
    let line = LogLine {
        time: at(0),
        iteration: 2,
        promise: PromiseFound::Rejected,
        decision: Decision::Block,
        status: None,
        why: "x".into(),
    };
    assert_eq!(
        line.render(),
        "{\"time\":\"1970-01-01T00:00:00Z\",\"iteration\":2,\"promise\":\"rejected\",\"decision\":\"block\",\"status\":null,\"why\":\"x\"}\n"
    );
    assert_eq!(LogLine::parse("{\"time\":"), None);
}
