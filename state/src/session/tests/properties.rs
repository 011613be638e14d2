//! Properties that hold for every input.

use proptest::prelude::*;

use super::*;
use crate::promise::OnNoWork;

fn promise() -> impl Strategy<Value = Option<Promise>> {
    proptest::option::of("\\PC{1,20}").prop_map(|token| token.and_then(|token| Promise::new(&token).ok()))
}

fn owner() -> impl Strategy<Value = Owner> {
    prop_oneof![
        Just(Owner::Unclaimed),
        Just(Owner::Nobody),
        "[A-Za-z0-9_-][A-Za-z0-9._-]{0,40}".prop_map(|text| Owner::Session(id(&text))),
    ]
}

prop_compose! {
    fn any_loop()(
        kind in prop_oneof![Just(SessionKind::Ralph), Just(SessionKind::Ulw), Just(SessionKind::DoIt)],
        active in any::<bool>(),
        numbers in any::<(u32, u32, u64, u32)>(),
        promises in (promise(), promise()),
        millis in proptest::option::of(0_i64..4_000_000_000_000),
        names in ("\\PC{0,30}|[\\x00-\\x7f]{0,30}", "\\PC{0,30}"),
        owner in owner(),
        on_no_work in prop_oneof![Just(OnNoWork::Reject), Just(OnNoWork::Warn), Just(OnNoWork::Accept)],
        body in proptest::collection::vec(any::<u8>(), 0..200),
    ) -> SessionLoop {
        SessionLoop {
            kind,
            active,
            iteration: numbers.0,
            max_iterations: numbers.1,
            completion: promises.0,
            pause: promises.1,
            started_at: millis.and_then(DateTime::from_timestamp_millis),
            project: names.0,
            branch: names.1,
            owner,
            min_tool_calls: numbers.2,
            on_no_work,
            no_diff_limit: numbers.3,
            body,
        }
    }
}

/// Lines of front matter, good and bad, in any order.
fn front_matter() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        "(active|iteration|max_iterations|completion_promise|pause_promise|started_at|project|branch|session_id|kind|x): ?(\"[^\"]{0,8}\"?|'[a-z']{0,8}'?|[a-z0-9# ]{0,8})\r?\n",
        "iteration: [0-9]{1,3}\n",
        "max_iterations: [0-9]{1,3}\n",
        "completion_promise: \"?[A-Z]{1,4}\"?\n",
        "\\PC{0,20}\n",
        Just("---\n".to_owned()),
    ];
    let lines = proptest::collection::vec(line, 0..14);
    (lines, proptest::collection::vec(any::<u8>(), 0..40)).prop_map(|(lines, tail)| {
        let mut bytes = b"---\n".to_vec();
        lines.iter().for_each(|line| bytes.extend(line.as_bytes()));
        bytes.extend(tail);
        bytes
    })
}

/// Generates the changes to the queue between two stops: mostly none.
fn any_queue() -> impl Strategy<Value = Vec<QueueChange>> {
    let text = prop_oneof![4 => Just("look here".to_owned()), 1 => Just("/cancel-ralph".to_owned())];
    let change = prop_oneof![
        text.clone().prop_map(QueueChange::Added),
        text.prop_map(QueueChange::Removed),
        Just(QueueChange::Submitted),
        Just(QueueChange::Prompted),
    ];
    prop_oneof![5 => Just(vec![]), 1 => proptest::collection::vec(change, 0..5)]
}

/// Generates a stop.
fn any_stop() -> impl Strategy<Value = Stop> {
    let said = prop_oneof![
        3 => Just(Some("at work".to_owned())),
        1 => Just(Some("<promise>DONE</promise>".to_owned())),
        1 => Just(Some("API Error: 529 overloaded".to_owned())),
        1 => Just(None),
        1 => "\\PC{0,30}".prop_map(Some),
    ];
    let session = prop_oneof![6 => Just(Some(id("s"))), 1 => Just(Some(id("t"))), 1 => Just(None)];
    let failure = prop_oneof![
        8 => Just(None),
        1 => Just(Some(Failure::Reported("529".to_owned()))),
        1 => Just(Some(Failure::Marked("529".to_owned()))),
    ];
    let counts = (proptest::option::of(0_u64..3), proptest::option::of(0_u32..4), 0_usize..6);
    let flags = (any::<bool>(), proptest::option::of(any::<bool>()), any::<[bool; 3]>());
    (said, session, failure, counts, flags, proptest::option::of("[ab]"), any_queue()).prop_map(
        |(
            said,
            session,
            failure,
            (tool_calls, host_cap, background),
            (is_cut, active, rare),
            tree,
            queue,
        )| Stop {
            session,
            is_sub_agent: rare == [true; 3],
            background_tasks: usize::from(background == 0),
            key: StopKey::of(None, active, said.as_deref()),
            said,
            tool_calls,
            is_cut: is_cut && rare[0],
            stop_hook_active: active,
            host_cap,
            failure,
            tree,
            is_news: Some(!(rare[1] && rare[2])),
            queue,
            ..Stop::default()
        },
    )
}

proptest! {
    #[test]
    fn written_file_is_read_back_unchanged(state in any_loop()) {
        let bytes = SessionFile::new(state.clone()).render();
        let file = SessionFile::parse(&bytes).unwrap();
        prop_assert_eq!(file.render(), bytes);
        // A do-it file holds a value without a documented key only if it differs from the default.
        prop_assert_eq!(file.state(), &state);
    }

    #[test]
    fn rewrite_changes_values_and_keeps_other_lines(from in any_loop(), to in any_loop()) {
        let to = SessionLoop { kind: from.kind, ..to };
        let to = if to.owner == Owner::Unclaimed { SessionLoop { owner: from.owner.clone(), ..to } } else { to };
        let text = SessionFile::new(from.clone()).render();
        let head = text.get(4..text.len() - from.body.len() - 4).unwrap();
        let marked = [&b"---\n# first\nmine: 1\n"[..], head, b"last: 'x'\n---\n", from.body.as_slice()].concat();
        let mut file = SessionFile::parse(&marked).unwrap();
        prop_assert_eq!(file.render(), marked);
        file.set(to.clone());
        let bytes = file.render();
        prop_assert!(bytes.starts_with(b"---\n# first\nmine: 1\n"));
        prop_assert!(String::from_utf8_lossy(&bytes).contains("\nlast: 'x'\n"));
        let again = SessionFile::parse(&bytes).unwrap();
        prop_assert_eq!(again.state(), &to);
    }

    #[test]
    fn random_bytes_do_not_panic_and_are_written_back(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(file) = SessionFile::parse(&bytes) {
            prop_assert_eq!(file.render(), bytes.clone());
        }
        Book::parse(&bytes);
        let text = String::from_utf8_lossy(&bytes);
        LogLine::parse(&text);
        let _ = (loop_words(&text), do_it_words(&text), open_questions(&text));
        ProjectType::branch_of(&bytes);
        substitute(&bytes, &ready(1), "/p");
    }

    #[test]
    fn random_front_matter_does_not_panic_and_can_be_changed(bytes in front_matter()) {
        if let Ok(mut file) = SessionFile::parse(&bytes) {
            prop_assert_eq!(file.render(), bytes);
            let iteration = file.state().iteration.wrapping_add(1);
            let state = SessionLoop { iteration, owner: Owner::Session(id("s")), ..file.state().clone() };
            file.set(state.clone());
            let again = SessionFile::parse(&file.render()).unwrap();
            prop_assert_eq!(again.state(), &state);
        }
    }

    #[test]
    fn random_arguments_do_not_panic(text in "([-—]{0,2}(max-iterations|n|completion-promise|x|\\PC{0,4})|[ =\"'“”‘’\\\\\n0-9]){0,12}") {
        let _ = do_it_words(&text);
        if let Ok(words) = loop_words(&text) {
            // A task in quotes is read as the same task.
            if !words.task.contains(['"', '\\']) && !words.task.is_empty() {
                let again = loop_words(&format!("\"{}\"", words.task)).unwrap();
                prop_assert_eq!(again.task, words.task);
            }
        }
    }

    #[test]
    fn quoted_text_is_literal(task in "[^\"\\\\]{1,40}", turns in 0_u32..=100) {
        let words = loop_words(&format!("-n {turns} \"{task}\"")).unwrap();
        prop_assert_eq!(words.max_iterations.map(Ceiling::turns), Some(turns));
        // A quote closes at the first mark before white space, and there is none within.
        prop_assert_eq!(words.task, task);
    }

    #[test]
    fn random_open_questions_do_not_panic(text in "(#{0,7} ?(Open questions|x)?|[-*] (\\[[ x]?\\])?|```|<!--|-->|~~|\\PC{0,6}|[ \n]){0,30}") {
        open_questions(&text);
    }

    #[test]
    fn loop_has_exactly_its_number_of_turns(turns in 1_u32..=40, cap in proptest::option::of(0_u32..2)) {
        let mut world = World::new(ralph(turns));
        let stop = Stop { host_cap: cap, ..says("at work") };
        let mut done = 1;
        while is_block(&world.stop(&stop).unwrap()) {
            done += 1;
            prop_assert!(done <= turns);
        }
        prop_assert_eq!((done, world.book.status), (turns, Some(SessionStatus::MaxIterationsReached)));
    }

    #[test]
    fn invariants_hold_after_any_stops(state in any_loop(), active in any::<bool>(), stops in proptest::collection::vec(any_stop(), 0..40)) {
        let limit = state.max_iterations % 12;
        let owner = Owner::Session(id("s"));
        let state = SessionLoop { owner, active, iteration: 1, max_iterations: limit, completion: Promise::new("DONE").ok(), ..state };
        let mut world = World::new(state);
        let mut row = 0_u32;
        for stop in stops {
            let Some(before) = world.state.clone() else { break };
            let book = world.book.clone();
            let outcome = world.stop(&stop).unwrap();
            let is_ours = stop.session == Some(id("s")) && !stop.is_sub_agent;
            // A stop of another session is not held and changes nothing.
            if !is_ours {
                prop_assert!(!is_block(&outcome));
                prop_assert_eq!((&world.state, &world.book), (&Some(before.clone()), &book));
                continue;
            }
            // The promise ends the loop only if the agent printed it.
            if outcome.status == Some(SessionStatus::PromiseAccepted) && outcome.log.is_some() {
                prop_assert!(stop.said.as_ref().is_some_and(|said| said.contains("<promise>DONE</promise>")));
            }
            let is_new_block = is_block(&outcome) && outcome.log.is_some();
            // No queued message waits while the agent continues.
            if is_new_block && !stop.queue.is_empty() {
                prop_assert!(world.book.queue.is_empty());
            }
            // Only a new block increases the counter, by one, and the counter stays within the limit.
            let now = world.state.as_ref().map_or(before.iteration, |state| state.iteration);
            prop_assert_eq!(now, before.iteration + u32::from(is_new_block));
            prop_assert!(limit == 0 || now <= limit);
            // As the CLI counts: a prompt of the user and a tool call begin a new row.
            if stop.stop_hook_active == Some(false) || stop.tool_calls.unwrap_or(0) > 0 || stop.is_cut || stop.host_cap.unwrap_or(0) == 0 || !is_block(&outcome) {
                row = 0;
            }
            row += u32::from(is_new_block);
            if let Some(cap) = stop.host_cap.filter(|cap| *cap > 0 && is_new_block) {
                prop_assert!(row <= cap, "{} of {}", row, cap);
            }
            // A loop without a file has ended, and the outcome has its status.
            prop_assert!(world.state.is_some() || outcome.status.is_some());
        }
    }

    #[test]
    fn repeated_stop_gets_the_same_answer_and_counts_once(state in any_loop(), stop in any_stop()) {
        let state = SessionLoop { owner: Owner::Session(id("s")), iteration: 1, ..state };
        let mut world = World::new(state);
        let one = world.stop(&Stop { is_news: Some(true), ..stop.clone() }).unwrap();
        let (kept, book) = (world.state.clone(), world.book.clone());
        let again = Stop { is_news: Some(false), ..stop };
        if let Some(two) = world.stop(&again) {
            prop_assert_eq!((is_block(&one), one.status), (is_block(&two), two.status));
            if !is_block(&one) {
                prop_assert_eq!(&one.answer, &two.answer);
            }
            prop_assert_eq!((&world.state, &world.book), (&kept, &book));
        }
        // A hook that certainly reports the same stop has no answer of its own.
        if let Some(three) = world.stop(&Stop { called: Some(again.now), is_news: Some(true), ..again })
            && world.book.last_stop.is_some()
        {
            let held = three.answer.is_held();
            prop_assert_eq!((three.answer, held), (StopAnswer::Answered { held }, is_block(&one)));
            prop_assert_eq!((world.state, world.book), (kept, book));
        }
    }
}
