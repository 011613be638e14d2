//! Tests of the typed words.

use super::*;
use crate::promise::OnNoWork;

fn read(text: &str) -> Words {
    loop_words(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn options_are_read_at_any_position() {
    for text in [
        "do it --max-iterations 3",
        "do it --max-iterations=3",
        "do it --max-iterations=\"3\"",
        "do it --max-iterations '3'",
        "do it -n3",
        "do it -n 3",
        "do it -n=3",
        "--max-iterations=3 do it",
        "-n3 do it",
        "do --max-iterations 3 it",
        "  do -n 3   it \n",
        "\"do it\" --max-iterations 3",
        "--max-iterations 3 'do it'",
        "“do it” --max-iterations 3",
        "«do it» -n 3",
        "„do it“ -n3",
    ] {
        let words = read(text);
        assert_eq!((words.task.as_str(), words.max_iterations.unwrap().turns()), ("do it", 3), "{text}");
    }
    let words = read(
        "x --completion-promise \"ALL TESTS PASS\" --min-tool-calls=0 --on-promise-no-work warn --no-diff-limit 4",
    );
    let expected = Words {
        task: "x".into(),
        completion_promise: Promise::new("ALL TESTS PASS").ok(),
        min_tool_calls: Some(0),
        on_no_work: Some(OnNoWork::Warn),
        no_diff_limit: Some(4),
        ..Words::default()
    };
    assert_eq!(words, expected);
    let promise = |text: &str| read(text).completion_promise.unwrap().token().to_owned();
    assert_eq!(promise("x --completion-promise=DONE"), "DONE");
    assert_eq!(promise("x --completion-promise=\"ALL DONE\""), "ALL DONE");
    assert_eq!(promise("x --completion-promise “ALL DONE”"), "ALL DONE");
    assert_eq!(read("--max-iterations 3").task, "");
}

#[test]
fn task_text_is_kept_as_typed() {
    for (text, task) in [
        ("don't stop -n3", "don't stop"),
        ("say \"hi there\" to 'x y' -n3", "say \"hi there\" to 'x y'"),
        ("use `find -name x` -n3", "use `find -name x`"),
        ("add a --verbose flag and -v -n3", "add a --verbose flag and -v"),
        ("a\n\n  b -n3\n\nc", "a\n\n  b\n\nc"),
        ("a -n3\nb", "a\nb"),
        ("a\n-n3\nb", "a\nb"),
        ("\"add a --max-iterations 5 flag\" -n3", "add a --max-iterations 5 flag"),
        ("add \"--max-iterations 5\" -n3", "add \"--max-iterations 5\""),
        ("\"say \\\"hi\\\" now\" -n3", "say \"hi\" now"),
        ("'C:\\new \"x\"' -n3", "C:\\new \"x\""),
        ("-n3 -- about --max-iterations 5", "about --max-iterations 5"),
        ("-n3 the parser -- it is -n 5 broken", "the parser -- it is -n 5 broken"),
        ("\"  two  \" -n3", "  two  "),
        ("5' and 6\" wide -n3", "5' and 6\" wide"),
        ("\"never closed -n3", "\"never closed"),
        ("say '' and \"\" -n3", "say '' and \"\""),
        ("run with --contract x --create-branch -n3", "run with --contract x --create-branch"),
        ("count to -1 -n3", "count to -1"),
        ("—really— -n3", "—really—"),
    ] {
        let words = read(text);
        assert_eq!((words.task.as_str(), words.max_iterations.unwrap().turns()), (task, 3), "{text}");
    }
}

#[test]
fn misspelled_option_or_bad_value_is_an_error_with_the_right_form() {
    for (text, names) in [
        ("x --max-iteration 3", "\"--max-iteration\" is not an option; the right form is --max-iterations N"),
        ("x --max-iteration=3", "--max-iterations N"),
        ("x --max_iterations 3", "--max-iterations N"),
        ("x --maxiterations 3", "--max-iterations N"),
        ("x --Max-Iterations 3", "--max-iterations N"),
        ("x --max-iter 3", "--max-iterations N"),
        ("x -max-iterations 3", "--max-iterations N"),
        ("x —max-iterations 3", "--max-iterations N"),
        ("x --iterations 3", "--max-iterations N"),
        ("x --completion-promises D", "--completion-promise WORD"),
        ("x --completion_promise D", "--completion-promise WORD"),
        ("x --promise D", "--completion-promise WORD"),
        ("x --min-tool-call 3", "--min-tool-calls N"),
        ("x --on-promise-nowork warn", "--on-promise-no-work reject|warn|accept"),
        ("x --max-iterations three", "--max-iterations N: \"three\" is not a number"),
        ("x --max-iterations -1", "\"-1\""),
        ("x --max-iterations=-1", "\"-1\""),
        ("x --max-iterations=", "\"\""),
        ("x --max-iterations", "needs a value"),
        ("x --max-iterations --min-tool-calls 3", "--max-iterations N: it needs a value"),
        ("x --max-iterations 101", "101 iterations are more than the 100"),
        ("x --max-iterations 99999999999999", "more than the 100"),
        ("x --max-iterations 3.", "\"3.\""),
        ("x --max-iterations 3 -n 4", "twice"),
        ("x -n", "needs a value"),
        ("x -n three", "\"three\""),
        ("x -n-1", "\"-1\""),
        ("x --completion-promise ''", "cannot be empty"),
        ("x --completion-promise=", "cannot be empty"),
        ("x --completion-promise <promise>DONE</promise>", "cannot contain"),
        ("x --completion-promise --max-iterations 3", "--completion-promise WORD: it needs a value"),
        ("x --min-tool-calls many", "\"many\""),
        ("x --on-promise-no-work maybe", "reject, warn or accept"),
        ("x --no-diff-limit -2", "\"-2\""),
    ] {
        let error = loop_words(text).unwrap_err().to_string();
        assert!(error.contains(names), "{text}: {error}");
    }
}

#[test]
fn do_it_loop_accepts_a_plain_number_and_options() {
    let turns = |text: &str| do_it_words(text).unwrap().max_iterations.map(Ceiling::turns);
    assert_eq!(turns(""), None);
    assert_eq!(turns(" 30 "), Some(30));
    assert_eq!(turns("\"30\""), Some(30));
    assert_eq!(turns("0"), Some(0));
    assert_eq!(turns("--max-iterations=5"), Some(5));
    let words = do_it_words(
        "30 --archive-on-branch-change --no-diff-limit 3 --create-branch --contract 'my file.md'",
    );
    let expected = Words {
        max_iterations: Ceiling::new(30).ok(),
        archive_on_branch_change: true,
        no_diff_limit: Some(3),
        create_branch: true,
        contract: Some("my file.md".into()),
        ..Words::default()
    };
    assert_eq!(words, Ok(expected));
    for (text, names) in [
        ("three", "no task"),
        ("-1", "\"-1\" is not a number"),
        ("101", "more than the 100"),
        ("1.5", "\"1.5\""),
        ("30 40", "twice"),
        ("--max-iteration 3", "--max-iterations N"),
        ("--archive-on-branch-changes", "--archive-on-branch-change"),
        ("--create-branch=yes", "takes no value"),
        ("--completion-promise X", "no task"),
        ("--contract ''", "needs a file"),
    ] {
        let error = do_it_words(text).unwrap_err().to_string();
        assert!(error.contains(names), "{text}: {error}");
    }
}

#[test]
fn iteration_limit_is_1_to_100_or_0_with_a_warning() {
    for good in [1, 20, 100] {
        let ceiling = Ceiling::new(good).unwrap();
        assert_eq!((ceiling.turns(), ceiling.warning()), (good, None));
    }
    assert!(Ceiling::new(0).unwrap().warning().is_some());
    assert_eq!(Ceiling::default().turns(), 20);
    for (bad, is_high) in
        [("101", true), ("18446744073709551616", true), ("", false), ("+3", false), ("٣", false)]
    {
        let error = Ceiling::parse(bad).unwrap_err();
        assert_eq!(error.contains(" iterations are more than the 100 "), is_high, "{bad}");
    }
}
