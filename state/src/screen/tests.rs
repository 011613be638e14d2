use std::sync::{LazyLock, Mutex};

use proptest::prelude::*;

use super::fixtures::SCREENS;
use super::*;
use crate::profiles;

const SIZE: (u16, u16) = (120, 40);
const PROMPT: &str = "When finished print TASK_DONE";

fn reader(cli: &str, pattern: &str, prompt: Option<&str>) -> ScreenReader {
    let profile = profiles::find(&profiles::table(), &[cli.to_owned()]);
    let done = Pattern::compile(pattern).unwrap();
    ScreenReader::new(&profile, Some(done), prompt.map(str::to_owned)).unwrap()
}

fn is_done(pattern: &str, prompt: &str, screen: &str) -> bool {
    let reader = reader("sh", pattern, Some(prompt));
    let done = reader.read(screen, SIZE).done;
    assert_eq!(reader.done_in(screen), done, "{screen}");
    done
}

#[test]
fn every_recorded_screen_has_the_meaning_of_its_folder() {
    for (path, text) in SCREENS {
        let (meaning, name) = path.split_once('/').unwrap();
        let cli = name.split_once('_').unwrap().0;
        let reading = reader(cli, "TASK_DONE", Some(PROMPT)).read(text, SIZE);
        let startup = reading.blocked.as_ref().map(|blocked| blocked.startup);
        let got = (reading.ready, reading.working, startup);
        match meaning {
            "ready" => assert_eq!(got, (true, false, None), "{path}: {reading:?}"),
            "working" => assert_eq!(got, (false, true, None), "{path}: {reading:?}"),
            "startup" => assert_eq!(got, (false, false, Some(true)), "{path}: {reading:?}"),
            "permission" => assert_eq!(got, (false, false, Some(false)), "{path}: {reading:?}"),
            "unknown" => assert_eq!(got, (false, false, None), "{path}: {reading:?}"),
            "echo" => assert!(!reading.done, "{path}: {reading:?}"),
            "done" => assert!(reading.done, "{path}: {reading:?}"),
            other => panic!("no such meaning: {other}"),
        }
        assert_eq!(reading.done, meaning == "done", "{path}");
    }
}

#[test]
fn the_text_in_the_input_box_is_read() {
    for (path, want) in [
        ("ready/claude_fresh", ""),
        ("ready/claude_folded", "[Pasted text #1 +39 lines]"),
        ("ready/codex_fresh", "Ask Codex to do anything"),
        ("ready/codex_folded", "[Pasted Content 1147 chars]"),
        ("ready/codex_text_in_box", "2 files need work\n  and a third"),
        ("ready/opencode_folded", "┃\n   ┃  [Pasted ~40 lines]\n   ┃"),
        ("ready/gemini_fresh", "Type your message or @path/to/file"),
        ("ready/gemini_yolo", "Type your message or @path/to/file"),
        ("ready/gemini_folded", "[Pasted Text: 705 lines]"),
        ("ready/gemini_text_in_box", "fix the test"),
        ("ready/qwen_fresh", "Type your message or @path/to/file"),
        ("ready/qwen_text_in_box", "hello there \u{200b}\n  and more"),
        ("working/qwen_timer", "Type your message or @path/to/file"),
        ("working/codex_timer", "Ask Codex to do anything"),
        ("working/gemini_thinking", "Type your message or @path/to/file"),
        ("ready/aider_text_in_box", "> one\n> ^Itwo\n>\n> three"),
    ] {
        let text = SCREENS.iter().find(|(name, _)| *name == path).unwrap().1;
        let cli = path.split_once('/').unwrap().1.split_once('_').unwrap().0;
        let input = reader(cli, "x", None).input(text, SIZE);
        assert_eq!(input.as_deref().map(str::trim), Some(want), "{path}");
    }
    for path in
        ["startup/codex_trust", "startup/codex_login", "unknown/codex_starting", "startup/claude_trust"]
    {
        let text = SCREENS.iter().find(|(name, _)| *name == path).unwrap().1;
        let cli = path.split_once('/').unwrap().1.split_once('_').unwrap().0;
        assert_eq!(reader(cli, "x", None).input(text, SIZE), None, "{path}");
    }
}

#[test]
fn a_failed_request_above_the_input_box_is_read() {
    let text = SCREENS.iter().find(|(name, _)| *name == "ready/gemini_api_error").unwrap().1;
    let error = r#"[API Error: {"error":{"code":401,"message":"Incorrect API key provided","status":"UNAUTHENTICATED"}}]"#;
    let shown = |cli: &str, text: &str| reader(cli, "x", None).shown_error(text);
    assert_eq!(shown("gemini", text).as_deref(), Some(error));
    // Text that has scrolled off does no harm, nor does text in the box.
    let longer = format!("{}{text}", "✦ I fixed a part.\n\n".repeat(200));
    assert_eq!(
        shown("gemini", &longer.replace("Type your message or @path/to/file", "go")).as_deref(),
        Some(error)
    );
    // Each CLI draws its own row.
    assert_eq!(shown("sh", text), None);
    assert_eq!(shown("qwen", text), None);
    let footer = text.split_once("\n────").map(|(_, rest)| format!("\n────{rest}")).unwrap();
    for (what, above) in [
        ("the agent went on", "✕ [API Error: 503]\n\n✦ It works again.\n"),
        ("it goes on with a tool", "✕ [API Error: 503]\n\n╭────╮\n│ ls │\n╰────╯\n"),
        ("a person went on", "✕ [API Error: 503]\n\n > go on\n"),
        ("it tries again", "✕ [API Error: 503]\n\n ⠧ Thinking... (esc to cancel, 8s)\n"),
        ("an answer", "✦ The log has:\n\n  ✕ [API Error: 401 Incorrect API key]\n"),
        ("an answer that begins so", "✦ ✕ [API Error: 401 Incorrect API key]\n"),
        ("a tool's output", "│ ✕ [API Error: 401 Incorrect API key] │\n╰────╯\n"),
        ("the prompt", " > fix this:\n   ✕ [API Error: 401 Incorrect API key]\n"),
        ("another word of the CLI", "✕ Unknown command: /x\n"),
        ("without the mark", "[API Error: 401 Incorrect API key]\n"),
    ] {
        assert_eq!(shown("gemini", &format!("{above}{footer}")), None, "{what}");
    }
    let one_shot = "✕ [API Error: 401 Incorrect API key]\n";
    assert_eq!(shown("gemini", one_shot), None, "no input box");
    let rule = "─".repeat(20);
    let qwen =
        |above: &str| format!("  > fix it\n\n{above}\n{rule}\n*   Type your message\n{rule}\n  YOLO mode\n");
    let error = "[API Error: 401 Incorrect API key]";
    assert_eq!(shown("qwen", &qwen(&format!("  ✕ {error}\n"))).as_deref(), Some(error));
    for (what, above) in [
        ("an answer", "  ✦ The log has:\n\n    ✕ [API Error: 401 Incorrect API key]\n"),
        ("the agent went on", "  ✕ [API Error: 503]\n\n  ✦ It works again.\n"),
        (
            "it tries again",
            "  ✕ [API Error: 429 x] (Retrying in 40s… (attempt 1/10))\n\n  ↻ Retrying in 40 seconds… (attempt 1/10)\n",
        ),
    ] {
        assert_eq!(shown("qwen", &qwen(above)), None, "{what}");
    }
}

#[test]
fn a_failed_request_on_opencodes_screen_is_read() {
    let shown = |rows: &[&str], duration: &str| {
        let turn = format!("     ▣  Build · mock-model{duration}");
        let below = [
            "",
            "",
            "  ┃",
            "  ┃",
            "  ┃  Build · mock-model mock",
            "  ╹▀▀▀▀▀▀▀▀",
            "   /work  ctrl+p commands",
        ];
        let text = [rows, &[&turn], &below].concat().join("\n");
        reader("opencode", "x", None).shown_error(&text)
    };
    let user = ["  ┃", "  ┃  fix it", "  ┃", ""];
    let error = ["  ┃", "  ┃  Incorrect API key provided", "  ┃", ""];
    let found = Some("Incorrect API key provided");
    assert_eq!(shown(&[user, error].concat(), "").as_deref(), found);
    assert_eq!(shown(&[&["     I look at it.", ""], &error[..]].concat(), "").as_deref(), found);
    let long = ["  ┃", "  ┃  Incorrect API key provided", "  ┃  See the page of errors.", "  ┃", ""];
    assert_eq!(shown(&[&user[..], &long].concat(), "").as_deref(), found);
    // A wide screen has a column at the right.
    let side = |row: &str, right: &str| format!("{row:<150}{right}");
    let wide: Vec<String> = [user, error].concat().iter().map(|row| side(row, "0% used")).collect();
    assert_eq!(shown(&wide.iter().map(String::as_str).collect::<Vec<_>>(), "").as_deref(), found);
    let tool = ["  ┃", "  ┃  # List files", "  ┃", "  ┃  $ ls", "  ┃", ""];
    for (what, rows, duration) in [
        ("a turn that ended by itself", [user, error].concat(), " · 3.4s"),
        ("an agent that has not answered yet", user.to_vec(), ""),
        ("the same in a later turn", [&["     ▣  Build · mock-model · 3.4s", ""], &user[..]].concat(), ""),
        ("a tool that runs", [&user[..], &tool].concat(), ""),
        ("an answer", [&user[..], &["     Incorrect API key provided", ""]].concat(), ""),
        ("the agent went on", [&user[..], &error, &["     It works again.", ""]].concat(), ""),
    ] {
        assert_eq!(shown(&rows, duration), None, "{what}");
    }
}

#[test]
fn a_failed_request_at_the_end_of_aiders_output_is_read() {
    let shown = |text: &str| reader("aider", "x", None).shown_error(text);
    let error =
        "litellm.AuthenticationError: AuthenticationError: OpenAIException - Incorrect API key provided";
    let meaning = "The API provider is not able to authenticate you. Check your API key.";
    let rule = "─".repeat(80);
    let first = format!("Repo-map: using 1024 tokens, auto refresh\n\n  ░{error}\n{meaning}\n");
    assert_eq!(shown(&first).as_deref(), Some(error), "a one-shot command");
    assert_eq!(shown(&format!("{first}\n{rule}\n>")).as_deref(), Some(error), "its screen");
    assert_eq!(shown(&format!("{first}{rule}\narchitect multi> go on")).as_deref(), Some(error));
    for (what, text) in [
        (
            "it tries again",
            format!("{first}Retrying in 0.2 seconds...\n\nThat is all.\n\nTokens: 7 sent, 4 received.\n"),
        ),
        ("a quoted error", format!("The log has:\n{error}\n\nTokens: 7 sent, 4 received.\n{rule}\n> ")),
        ("a person went on", format!("{first}\n{rule}\n> go on\n\nThat is all.\n")),
    ] {
        assert_eq!(shown(&text), None, "{what}");
    }
}

#[test]
fn every_profile_recognizes_common_dialogs() {
    let text = "Do you trust the files in this folder?\n\n❯ No, exit\n  Yes, I trust this folder\n";
    for cli in ["claude", "codex", "opencode", "gemini", "aider", "sh"] {
        let reading = reader(cli, "x", None).read(text, SIZE);
        let blocked = reading.blocked.unwrap();
        assert_eq!((blocked.startup, blocked.what.as_str()), (true, "trust dialog"), "{cli}");
        assert!(!reading.ready);
    }
}

#[test]
fn a_last_row_that_lists_keys_is_a_dialog() {
    let reader = reader("claude", "x", None);
    for (row, waits) in [
        ("  Enter to stay · shift+Tab to leave · Esc to cancel", true),
        (" Esc to cancel · Tab to amend", true),
        ("  Press enter to confirm or esc to go back", true),
        ("│ Enter to confirm · Esc to exit │\n╰────────────────────────────────╯", true),
        ("  Enter to confirm · Esc to reject", true),
        ("⠋ Thinking (esc to cancel, 12s)", false),
        ("  Thinking (3s · esc to cancel)", false),
        ("  press Esc to cancel", false),
        ("  shift+tab to cycle · esc to interrupt", false),
        ("  ↑/↓ to scroll · Space, Enter, or Escape to dismiss", false),
        ("  Enter to stay · Esc to cancel\n❯", false),
        ("Enter to stay · Esc to cancel", false),
    ] {
        for (above, can_wait) in [("a text\n\n", true), ("a diff of a file\n", false)] {
            let blocked = reader.read(&format!("{above}{row}\n"), SIZE).blocked;
            assert_eq!(blocked.is_some(), waits && can_wait, "{above:?} {row:?}: {blocked:?}");
        }
    }
}

#[test]
fn permission_dialog_that_quotes_a_startup_dialog_is_not_startup() {
    let choices = " Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel · Tab to amend\n";
    for quoted in ["grep -rn 'settings error' src", "2 new mcp servers found", "Settings Error"] {
        let screen = format!("  Bash command\n\n  {quoted}\n\n{choices}");
        let blocked = reader("claude", "x", None).read(&screen, SIZE).blocked.unwrap();
        assert_eq!((blocked.startup, blocked.what.as_str()), (false, "permission dialog"), "{quoted}");
    }
}

#[test]
fn selected_row_of_an_unknown_list_is_not_an_input_box() {
    let reader = ScreenReader::new(&Profile::generic(), None, None).unwrap();
    for (screen, ready) in [
        ("❯", true),
        ("hello\n>", true),
        ("  indented words\n❯", true),
        ("~/src main\n❯ try \"fix it\"", true),
        ("\n> 2 files to go", true),
        ("$ ls -l", true),
        ("Which flavour?\n  mint\n❯ vanilla", false),
        ("Which flavour?\n  1. mint\n❯ 2. vanilla", false),
        ("Which flavour?\n❯ 1. mint", false),
        ("> 2) no, exit", false),
    ] {
        assert_eq!(reader.read(screen, (80, 24)).ready, ready, "{screen:?}");
    }
}

#[test]
fn every_text_sent_to_the_agent_is_treated_as_echo() {
    let mut reader =
        ScreenReader::new(&Profile::generic(), Some(Pattern::compile("TASK_DONE").unwrap()), None).unwrap();
    let second = "and when that is right too print TASK_DONE";
    let screen = format!("> When finished print TASK_DONE\nso far\n> {second}\n");
    assert!(reader.done_in(&screen));
    assert!(!reader.note_input("nothing of interest"));
    assert!(reader.note_input(PROMPT) && reader.note_input(second) && reader.note_input(second));
    assert_eq!(reader.echoes.len(), 2);
    assert!(!reader.done_in(&screen), "both are echo");
    assert!(reader.done_in(&format!("{screen}TASK_DONE\n")));
}

#[test]
fn markers_in_the_scrollback_are_ignored() {
    let old = "Do you trust the files in this folder?\n❯ No, exit\n".to_owned() + &"\n".repeat(5);
    let reading = reader("sh", "x", None).read(&format!("{old}{}", "❯ \n\n"), (80, 4));
    assert_eq!((reading.blocked, reading.ready), (None, true));
}

#[test]
fn no_pattern_and_an_empty_screen_are_never_done() {
    let reader = ScreenReader::new(&Profile::generic(), None, None).unwrap();
    assert_eq!(reader.read("DONE", SIZE), Reading { ..reader.read("DONE", SIZE) });
    assert!(!reader.read("DONE", SIZE).done && !reader.done_in("DONE"));
    assert!(!self::reader("sh", ".*", None).read("\n \n", SIZE).done);
    assert!(self::reader("sh", ".*", None).read("x", SIZE).done);
}

#[test]
fn a_bad_marker_of_a_profile_is_an_error() {
    let profile = Profile { ready: vec!["(".into()], ..Profile::generic() };
    assert_eq!(ScreenReader::new(&profile, None, None).unwrap_err().pattern, "(");
}

#[test]
fn pattern_matches_text_with_escapes() {
    for (pattern, raw) in [
        ("ALL tasks done", "ALL\x1b[1Ctasks\x1b[1Cdone\n"),
        ("^TASK_DONE$", "x\r\n\x1b[32mTASK\x1b[0m_\x1b[1mDONE\x1b[0m \r\n"),
        ("TASK_DONE", "\x1b]8;;http://x\x1b\\TASK_DONE\x1b]8;;\x1b\\"),
        ("TASK_DONE", "\x1b✓ \u{fffd} é日🦀 TASK_DONE \x1b["),
        ("TASK_DONE", "\x1b]8;;http://x\nTASK_DONE"),
    ] {
        assert!(is_done(pattern, "go", raw), "{raw:?}");
    }
}

#[test]
fn line_pattern_ignores_bullets_and_indentation() {
    assert!(is_done("^TASK_DONE$", PROMPT, "❯ When finished print TASK_DONE\n\n● TASK_DONE\n"));
    assert!(is_done("^TASK_DONE$", PROMPT, "❯ When finished print TASK_DONE\n\n● So:\n\n  TASK_DONE\n"));
    assert!(!is_done("^TASK_DONE$", PROMPT, "❯ When finished print\n  TASK_DONE\n\n● Working\n"));
    assert!(!is_done("^TASK_DONE$", PROMPT, "● not TASK_DONE\n"));
}

#[test]
fn echo_of_the_prompt_is_not_done() {
    for pattern in
        ["TASK_DONE", ".*DONE", "^.*TASK_DONE.*$", r"(?i)task_done\b", r"(?<!x)TASK_DONE", "(?=TASK_DONE)"]
    {
        assert!(
            !is_done(pattern, PROMPT, "fake> When finished print TASK_DONE\n✻ Thinking… 3s\n"),
            "{pattern}"
        );
        assert!(!is_done(pattern, PROMPT, "❯ When finished\n  print TASK_DONE\n"), "{pattern}");
        let answer = "> When finished print TASK_DONE\nTASK_DONE\n";
        assert!(is_done(pattern, PROMPT, answer), "{pattern}");
    }
}

#[test]
fn answer_with_words_of_the_prompt_is_found() {
    for (pattern, prompt, screen) in [
        ("TASK_DONE", "DONE", "❯ DONE\nTASK_DONE"),
        (r"\d+ tests passed", "5", "15 tests passed"),
        ("DONE", "say ok DONE", "● ok DONE"),
        ("TASK_DONE", PROMPT, "● I am finished and print TASK_DONE"),
        ("TASK_DONE", "- [ ] work\n- TASK_DONE when it works\n", "- TASK_DONE"),
        ("All tasks complete", "All tasks complete", "All tasks complete"),
        ("DONE", "DONE", "DONE"),
        ("COMPLETE", "At the end print:\nRALPH STATUS: COMPLETE\nand stop", "RALPH STATUS: COMPLETE"),
        (
            "COMPLETE",
            "Print:\n=== REPORT ===\nSTATUS: COMPLETE\nand stop",
            "=== REPORT ===\nSTATUS: COMPLETE",
        ),
        ("DONE", "DONE DONE print DONE", "❯ DONE DONE print DONE\nDONE"),
        ("DONE", "DONE, print DONE", "❯ DONE, print DONE\n\n● DONE"),
    ] {
        assert!(is_done(pattern, prompt, screen), "{pattern} {screen:?}");
    }
    assert!(!is_done("DONE", "DONE", "> DONE\n✻ Thinking… 1s"));
    assert!(!is_done("DONE", "DONE", "❯ DONE"));
}

#[test]
fn a_prompt_that_is_shown_as_rendered_markdown_is_not_done() {
    let prompt = "Study **specs/README.md**.\n\n1. use `cargo test`\n\n- add *tests* where they are missing\n- commit and \
                  push when you are done\nWhen no task is left, print: All tasks complete\n";
    let whole = "› Study specs/README.md.\n\n  1. use cargo test\n\n  • add tests where they are missing\n  • commit and push \
                 when you are done\n    When no task is left, print: All tasks complete\n\n• One task is left.\n";
    let part =
        "    • commit and push when you are done\n      When no task is left, print: All tasks complete\n\n";
    for screen in
        [whole, part, &whole.replace("    When", "  When"), &whole.replace("print: All", "print:\n    All")]
    {
        assert!(!is_done("All tasks complete", prompt, screen), "{screen}");
        let answered = format!("{screen}\n• All tasks complete\n");
        assert!(is_done("All tasks complete", prompt, &answered), "{answered}");
    }
    // A prompt without a letter has no rendering.
    assert!(is_done("---", "- - -", "one\n---"));
}

#[test]
fn a_part_of_a_long_prompt_is_not_done() {
    let prompt = "Study the plan and pick one task.\nRun the tests after each change.\nWhen all tasks are \
                  finished, print the marker TASK_DONE on a line and stop.\nNever push to main.";
    for part in [
        "  finished, print the marker TASK_DONE on a\n  line and stop.\n  Never push to main.\n\n● Working\n",
        "● Hello\n────\n❯ Study the plan and pick one task.\n  Run the tests after each change.\n  When all tasks are finished, print the marker TASK_DONE\n────\n",
        "│ Run the tests after each change.        │\n│ When all tasks are finished, print the  │\n│ marker                                  │\n│ TASK_DONE                               │\n│ on a line and stop.                     │\n",
    ] {
        assert!(!is_done("TASK_DONE", prompt, part), "{part}");
        assert!(is_done("TASK_DONE", prompt, &format!("{part}\n● TASK_DONE\n")), "{part}");
    }
}

#[test]
fn last_row_of_a_scrolled_prompt_is_not_done() {
    let reader = reader("claude", "TASK_DONE", Some(PROMPT));
    let screen = "  TASK_DONE\n\n● Working\n\n────\n❯\n────\n  footer";
    assert!(!reader.read(screen, (80, 8)).done, "a full screen may have lost the row above");
    assert!(reader.read(screen, (80, 40)).done, "nothing has scrolled off a screen that is half empty");
    assert!(reader.read(&screen.replace("Working", "TASK_DONE"), (80, 8)).done);
}

#[test]
fn text_from_before_the_prompt_does_not_count() {
    let mut reader = reader("sh", "TASK_DONE", Some(PROMPT));
    let before = "$ start\nhello\nTASK_DONE\nbye\n❯ ";
    reader.set_baseline(before);
    let done = |text: &str, rows: u16| reader.read(text, (80, rows)).done;
    assert!(!done(before, 24));
    assert!(!done("$ start\nhello\nTASK_DONE\nbye\n❯ When finished print TASK_DONE\nworking", 24));
    assert!(done("$ start\nhello\nTASK_DONE\nbye\n❯ more\nTASK_DONE\n❯ ", 24));
    assert!(!done("hello\nTASK_DONE\nbye\n❯ more\nworking\n", 5), "scrolled by a row");
    assert!(done("bye\n❯ more\na\nb\nTASK_DONE\n", 5), "the old one scrolled off");
    assert!(done("a\nb\nc\nd\nTASK_DONE\n", 5), "everything scrolled off");
    assert!(!done("$ start hello\nTASK_DONE bye\n❯ ", 24), "wrapped anew");
    assert!(!reader.done_in("older\nTASK_DONE\n$ start\nhello\nTASK_DONE\nbye\n❯ more\nworking"));
    assert!(reader.done_in("older\nTASK_DONE\n$ start\nhello\nTASK_DONE\nbye\n❯ more\nTASK_DONE"));
}

#[test]
fn fixed_header_does_not_hide_scrolled_text() {
    let mut reader = reader("sh", "TASK_DONE", None);
    reader.set_baseline("HEAD\n====\none\ntwo\nTASK_DONE\nthree");
    assert!(!reader.read("HEAD\n====\ntwo\nTASK_DONE\nthree\nfour", (80, 6)).done);
    assert!(reader.read("HEAD\n====\nTASK_DONE\nthree\nfour\nTASK_DONE", (80, 6)).done);
}

/// Words as an agent's screen shows them: wrapped, framed, indented, with the mark before the first row.
fn wrapped(prompt: &str, width: usize, mark: &str, indent: &str, hard: bool) -> Vec<String> {
    let mut rows = vec![String::new()];
    for paragraph in prompt.split('\n') {
        for word in paragraph.split(' ') {
            let len = rows.last().map_or(0, |row| row.chars().count());
            if len > 0 && len + 1 + word.chars().count() > width {
                rows.push(String::new());
            }
            for c in word.chars() {
                if hard && rows.last().is_some_and(|row| row.chars().count() >= width) {
                    rows.push(String::new());
                }
                rows.last_mut().unwrap().push(c);
            }
            rows.last_mut().unwrap().push(' ');
        }
        rows.push(String::new());
    }
    let lead = |at: usize| if at == 0 { mark } else { indent };
    rows.iter().enumerate().map(|(at, row)| format!("{}{}", lead(at), row.trim_end())).collect()
}

fn prompts() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        3 => "[a-zA-Z.,é日>|-]{1,9}",
        1 => Just("MARK_ER".to_owned()),
        1 => Just("\nprint".to_owned()),
    ];
    (prop::collection::vec(word.clone(), 1..12), prop::collection::vec(word, 1..12))
        .prop_map(|(a, b)| format!("go {} MARK_ER {}", a.join(" "), b.join(" ")))
}

/// The final output alone: what a whole reading says besides has its own tests.
fn finally_done(pattern: &str, prompt: &str, output: &str) -> bool {
    let done = Pattern::compile(pattern).unwrap();
    let profile = Profile { ready: vec![], ..Profile::generic() };
    ScreenReader::new(&profile, Some(done), Some(prompt.to_owned())).unwrap().done_in(output)
}

proptest! {
    #[test]
    fn echo_of_any_prompt_never_counts_and_its_answer_does(
        prompt in prompts(), width in 8usize..100, hard in any::<bool>(),
        lead in prop::sample::select(vec![("❯ ", "  "), ("› ", "  "), ("> ", ""), ("", ""), ("┃  ", "┃  "), ("│ > ", "│   "), (" >   ", "     ")]),
        pattern in prop::sample::select(vec!["MARK_ER", "^MARK_ER$", "MARK_ER.*", r"(?<!\w)MARK_ER"]),
        answer in prop::sample::select(vec!["MARK_ER", "● MARK_ER", "  MARK_ER"]),
    ) {
        let echo = wrapped(&prompt, width, lead.0, lead.1, hard).join("\n");
        prop_assert!(!finally_done(pattern, &prompt, &echo), "{}", echo);
        let answered = format!("{echo}\n{answer}\n");
        prop_assert!(finally_done(pattern, &prompt, &answered), "{}", answered);
    }

    #[test]
    fn part_of_the_echo_never_counts(
        words in prop::collection::vec("[a-z]{4,9}", 40..60), at in 15usize..25, width in 30usize..60, cut in 0usize..30, rows in 2usize..6,
    ) {
        let mut words = words;
        words.insert(at, "MARK_ER".to_owned());
        let prompt = words.join(" ");
        let all = wrapped(&prompt, width, "❯ ", "  ", false);
        let from = cut.min(all.len() - 1);
        let part = all[from..(from + rows).min(all.len())].join("\n");
        prop_assert!(!finally_done("MARK_ER", &prompt, &part), "{}", part);
    }

    #[test]
    fn random_screen_does_not_panic(
        text in prop::collection::vec(prop_oneof!["\\PC{0,12}", Just("\x1b[".to_owned()), Just("\n".to_owned()), Just("MARK ".to_owned()), Just("❯ 1. Yes\n".to_owned()), any::<char>().prop_map(String::from)], 0..30),
        before in "(MARK|x|\n| ){0,12}", prompt in "(MARK|go|é|\n| ){0,9}", rows in 0u16..60,
    ) {
        let text = text.concat();
        static READERS: LazyLock<Mutex<Vec<ScreenReader>>> = LazyLock::new(|| {
            Mutex::new(profiles::table().iter().map(|row| reader(&row.name, "^MARK|MARK", None)).collect())
        });
        for reader in READERS.lock().unwrap().iter_mut() {
            reader.echoes = reader.done.iter().filter_map(|done| Echo::new(done, &prompt)).collect();
            reader.set_baseline(&before);
            let reading = reader.read(&text, (80, rows));
            prop_assert!(!(reading.ready && (reading.working || reading.blocked.is_some())));
            reader.done_in(&text);
        }
    }
}

#[test]
fn questions_are_recognized_by_their_shape() {
    let reader = ScreenReader::new(&Profile::generic(), None, None).unwrap();
    for (screen, blocked) in [
        ("Which flavour?\n❯ 1. mint\n  2. vanilla", true),
        ("Which flavour?\n  1. mint\n❯ 2. vanilla\n\n  enter to choose", true),
        ("> 1. Yes\n  2. No, and say why", true),
        ("│ ● 1) mint │\n│   2) vanilla │\n╰───╯", true),
        ("❯ 1. mint\n     cool and green\n\n  2. vanilla", true),
        ("Overwrite a.rs? [y/N]", true),
        ("Overwrite a.rs? (yes/no): ", true),
        ("Overwrite a.rs? [Y/n/all]", true),
        ("Are you sure (y/n)?", true),
        ("Overwrite? (yes/no) [no]: ", true),
        ("Are you sure you want to continue connecting (yes/no/[fingerprint])? ", true),
        ("Password: ", true),
        ("[sudo] password for me:", true),
        ("me@gpu1's password: ", true),
        ("Password for 'https://me@github.com': ", true),
        ("Enter passphrase for key '/home/me/.ssh/id_ed25519': ", true),
        ("Username for 'https://github.com': ", true),
        ("Password: \nsudo: 3 incorrect password attempts\n$ ", false),
        ("the password is: hunter2", false),
        ("the user name and password are checked", false),
        ("❯ 1. mint", false),
        ("1. mint\n2. vanilla", false),
        ("> 1. mint\n  2. vanilla\nworking on it", false),
        ("> 1. mint\n  2. vanilla\n\n> ", false),
        ("────\n❯ 1. mint\n  2. vanilla\n────\n  ? for help", false),
        ("Overwrite a.rs? [y/N] y", false),
        ("Overwrite a.rs? [y/N]\nskipped\n$ ", false),
        ("see [y] and [n]", false),
    ] {
        let reading = reader.read(screen, (80, 24));
        assert_eq!(reading.blocked.is_some(), blocked, "{screen:?}: {reading:?}");
    }
}
