//! The state file.

use super::*;
use crate::promise::OnNoWork;

const BY_HAND: &str = "---
active: true
iteration: 1
max_iterations: 30
completion_promise: \"COMPLETE\"
pause_promise: \"PAUSE\"
started_at: \"2026-11-28T10:00:00Z\"
project: \"Shop\"
branch: \"\"
---
the contract
";

fn read(text: &str) -> SessionLoop {
    SessionFile::parse(text.as_bytes()).unwrap().state().clone()
}

fn rewritten(text: &str, change: impl FnOnce(&mut SessionLoop)) -> String {
    let mut file = SessionFile::parse(text.as_bytes()).unwrap();
    let mut state = file.state().clone();
    change(&mut state);
    file.set(state);
    String::from_utf8(file.render()).unwrap()
}

#[test]
fn do_it_file_has_the_documented_keys_in_order_and_the_session() {
    let state = SessionLoop { project: "My \"Shop\" \\ ü".into(), ..do_it(20) };
    let text = String::from_utf8(SessionFile::new(state.clone()).render()).unwrap();
    assert_eq!(
        text,
        "---\nactive: true\niteration: 1\nmax_iterations: 20\ncompletion_promise: \"COMPLETE\"\npause_promise: \"PAUSE\"\n\
         started_at: \"1970-01-01T00:00:00.000Z\"\nproject: \"My \\\"Shop\\\" \\\\ ü\"\nbranch: \"main\"\nsession_id: \"s\"\n---\nthe contract\n"
    );
    assert_eq!(read(&text), state);
}

#[test]
fn ralph_file_has_the_documented_keys_and_more() {
    let text = String::from_utf8(SessionFile::new(ralph(3)).render()).unwrap();
    assert_eq!(
        text,
        "---\nactive: true\niteration: 1\nmax_iterations: 3\ncompletion_promise: \"DONE\"\npause_promise: \"\"\n\
         started_at: \"1970-01-01T00:00:00.000Z\"\nproject: \"\"\nbranch: \"\"\nsession_id: \"s\"\nkind: ralph\nmin_tool_calls: 1\n\
         on_promise_no_work: reject\nno_diff_limit: 0\n---\nthe task"
    );
    assert_eq!(read(&text), ralph(3));
}

#[test]
fn handwritten_file_is_read_and_gets_its_session_id() {
    let state = read(BY_HAND);
    assert_eq!(
        (state.kind, state.active, state.iteration, state.max_iterations),
        (SessionKind::DoIt, true, 1, 30)
    );
    assert_eq!((state.owner.clone(), state.min_tool_calls), (Owner::Unclaimed, 0));
    assert_eq!(
        state.started_at,
        Some(DateTime::parse_from_rfc3339("2026-11-28T10:00:00Z").unwrap().to_utc())
    );
    let marked = rewritten(BY_HAND, |state| {
        state.owner = Owner::Session(id("s"));
        state.iteration = 2;
    });
    let expected = BY_HAND
        .replace("iteration: 1\n", "iteration: 2\n")
        .replace("branch: \"\"\n", "branch: \"\"\nsession_id: \"s\"\n");
    assert_eq!(marked, expected);
}

#[test]
fn other_yaml_notations_are_read() {
    let text = "\u{feff}--- \r\n# mine\r\n\r\niteration:3   # so far\r\nmax_iterations: \"7\"\r\nextra:\r\n  - a: 1\r\n- b\r\ncompletion_promise: ALL DONE #x\r\n\
                pause_promise: 'it''s'\r\nproject: a#b \"c\"\r\nbranch:\r\nsession_id: null\r\nmin_tool_calls: 2\r\n---\r\nbody\r\n---\r\n";
    let state = read(text);
    assert_eq!((state.iteration, state.max_iterations, state.active), (3, 7, true));
    assert_eq!(state.completion.as_ref().map(Promise::token), Some("ALL DONE"));
    assert_eq!(state.pause.as_ref().map(Promise::token), Some("it's"));
    assert_eq!((state.project.as_str(), state.branch.as_str()), ("a#b \"c\"", ""));
    assert_eq!((state.owner.clone(), state.min_tool_calls, state.started_at), (Owner::Nobody, 2, None));
    assert_eq!(state.body, b"body\r\n---\r\n");
    assert_eq!(rewritten(text, |_| ()), text);
    let changed = rewritten(text, |state| {
        state.iteration = 4;
        state.branch = "b".into();
        state.active = false;
        state.owner = Owner::Session(id("s"));
        state.pause = None;
    });
    let expected = text
        .replace("iteration:3 ", "iteration: 4 ")
        .replace("branch:\r\n", "branch: \"b\"\r\n")
        .replace("'it''s'", "\"\"")
        .replace("session_id: null", "session_id: \"s\"")
        .replace("min_tool_calls: 2\r\n", "min_tool_calls: 2\r\nactive: false\r\n");
    assert_eq!(changed, expected);
}

#[test]
fn comment_starts_only_after_white_space() {
    for (line, branch) in [
        ("branch:#", "#"),
        ("branch:#x # y", "#x"),
        ("branch: #x", ""),
        ("branch: a#b\t# c", "a#b"),
        ("branch: 'a' # c", "a"),
    ] {
        let text = BY_HAND.replace("branch: \"\"", line);
        assert_eq!(read(&text).branch, branch, "{line}");
        let changed = rewritten(&text, |state| state.branch = "new".into());
        assert_eq!(read(&changed).branch, "new", "{line}: {changed}");
    }
}

#[test]
fn additional_keys_in_a_handwritten_file_are_read() {
    let text = BY_HAND.replace("branch", "kind: ulw\non_promise_no_work: warn\nno_diff_limit: 4\nbranch");
    let state = read(&text);
    assert_eq!((state.kind, state.on_no_work, state.no_diff_limit), (SessionKind::Ulw, OnNoWork::Warn, 4));
    assert_eq!(state.min_tool_calls, 1);
    assert_eq!(rewritten(&text, |state| state.no_diff_limit = 0), text.replace("limit: 4", "limit: 0"));
}

#[test]
fn broken_front_matter_is_an_error_with_its_line() {
    let with = |from: &str, to: &str| BY_HAND.replace(from, to);
    for (text, line, word) in [
        (String::new(), 1, "begins"),
        ("iteration: 1\n".into(), 1, "begins"),
        ("--\n".into(), 1, "begins"),
        ("---\niteration: 1\n".into(), 3, "closed"),
        ("---\n---\n".into(), 2, "`iteration` is missing"),
        (with("max_iterations: 30\n", ""), 9, "`max_iterations` is missing"),
        (with("iteration: 1\n", "iteration: one\n"), 3, "\"one\" is not a whole number"),
        (with("iteration: 1\n", "iteration: -1\n"), 3, "\"-1\""),
        (with("iteration: 1\n", "iteration:\n"), 3, "\"\""),
        (with("iteration: 1\n", "iteration: 99999999999\n"), 3, "whole number"),
        (with("iteration: 1\n", "iteration: 1\niteration: 2\n"), 4, "appears twice"),
        (with("active: true", "active: maybe"), 2, "true or false"),
        (with("\"COMPLETE\"", "\"COMPLETE"), 5, "closing quote is missing"),
        (with("\"COMPLETE\"", "\"COMPLETE\" x"), 5, "follows the closing quote"),
        (with("\"COMPLETE\"", "\"<promise>\""), 5, "cannot contain"),
        (with("\"COMPLETE\"", "'COMPLETE"), 5, "closing quote is missing"),
        (with("\"Shop\"", "\"C:\\Shop\""), 8, "backslash"),
        (with("project", "what is this\nproject"), 8, "not `key: value`"),
        (with("project", "  more\nproject"), 8, "left edge"),
        (with("branch", "kind: other\nbranch"), 9, "ralph, ulw or do-it"),
    ] {
        let error = SessionFile::parse(text.as_bytes()).unwrap_err();
        assert_eq!(error.line, line, "{text} {error}");
        assert!(error.to_string().contains(word), "{error}");
    }
    let mut bytes = BY_HAND.as_bytes().to_vec();
    let at = BY_HAND.find("Shop").unwrap();
    bytes[at] = 0xff;
    assert_eq!(SessionFile::parse(&bytes).unwrap_err().line, 8);
}

#[test]
fn body_of_the_file_is_kept_as_bytes() {
    let front = BY_HAND.strip_suffix("the contract\n").unwrap();
    for body in
        [&b""[..], b"\n", b"---\n", b"a\n---\nb: \"c\" # d\n---\n$x `y`", b"\xff\x00\r\n---", b"\r\n\r\n"]
    {
        let bytes = [front.as_bytes(), body].concat();
        let file = SessionFile::parse(&bytes).unwrap();
        assert_eq!(file.state().body, body);
        assert_eq!(file.render(), bytes);
        let state = SessionLoop { body: body.to_vec(), ..ralph(3) };
        let bytes = SessionFile::new(state.clone()).render();
        assert_eq!(SessionFile::parse(&bytes).unwrap().state(), &state);
    }
    // In a file that ends after its front matter, the body starts on a new line.
    let mut file = SessionFile::parse(front.trim_end().as_bytes()).unwrap();
    assert_eq!(file.render(), front.trim_end().as_bytes());
    file.set(SessionLoop { body: b"x".to_vec(), ..file.state().clone() });
    assert_eq!(file.render(), format!("{front}x").as_bytes());
}

#[test]
fn man_page_example_matches_a_written_file() {
    let page = include_str!("../../../../man/swarm-state.5").replace("\\-", "-");
    let section = page.split_once(".SH SESSION LOOPS\n").unwrap().1;
    let example = section.split_once(".EX\n").unwrap().1.split_once(".EE\n").unwrap().0;
    let file = SessionFile::parse(example.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(SessionFile::new(file.state().clone()).render()).unwrap(), example);
}
