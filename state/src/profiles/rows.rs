//! The rows: one function a CLI. Markers were taken from screens of the versions named there, unless the
//! comment says otherwise.

use super::dialogs::{dialog, end, marker};
use super::{HookStyle, Marker, Profile};
use crate::model::PromptVia;

pub(super) fn table() -> Vec<Profile> {
    vec![claude(), codex(), opencode(), gemini(), aider(), generic()]
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|&word| word.to_owned()).collect()
}

/// Anything else. A last row that starts with an input mark is ready: a program at its prompt. Not so where
/// the row looks like the chosen one of a list: with a number, or below an indented row.
pub(super) fn generic() -> Profile {
    Profile {
        name: "generic".into(),
        commands: vec![],
        one_shot: vec![],
        bare_one_shot: false,
        interactive_via: PromptVia::Auto,
        one_shot_via: PromptVia::Stdin,
        arg_flag: None,
        // Nobody knows whether the command takes `--`; a script would see it as its argument.
        end_of_options: false,
        session_flag: None,
        session_own: vec![],
        tells_cost: false,
        input_price: None,
        cached_price: None,
        output_price: None,
        outage: vec![],
        record_args: vec![],
        hooks: HookStyle::Off,
        model_flag: None,
        ready: words(&[
            r"^(?:❯|>|\$|>>>)\Z",
            // Without look-around, which takes a hundred times as long: each row is spelled out as what it may be.
            concat!(
                r"(?:\A|^(?:[^ \u00a0\n][^\n]*|[ \u00a0]+(?:[^\S \u00a0\n][^\n]*)?)?\n)(?:❯|>|\$|>>>)[ \u00a0]",
                r"[ \u00a0]*(?:[^ \u00a0\d\n][^\n]*|\d+(?:[^\d.)\n][^\n]*)?)?\Z",
            ),
        ]),
        working: vec![],
        startup: vec![],
        permission: vec![],
    }
}

/// Claude Code 2.1. With a terminal on stdout and a prompt on stdin it opens its screen and stays, so an
/// interactive command is pasted to; `-p` reads stdin and exits.
fn claude() -> Profile {
    // The input box: a row with the mark between two rules, then a short footer. The box may hold text.
    let input = r"^─{3}[^\n]*\n[❯>](?:[ \u00a0][^\n]*)?\n(?:(?:[ \u00a0][^\n]*)?\n)*?─{3}[^\n]*";
    // A message that stands directly above the input box: nothing but blank rows and right-aligned hints
    // lie between.
    let message = |text: &str, what: &str| -> Marker {
        let gap = r"(?:\n(?: {12}[^\n]*)?)*?\n";
        marker(&format!(r"(?i)^ *⎿[ \u00a0]+(?:{text})[^\n]*{gap}(?-i:{input}){}", end(4)), what)
    };
    Profile {
        name: "claude".into(),
        commands: words(&["claude"]),
        one_shot: words(&["-p", "--print"]),
        bare_one_shot: true,
        model_flag: Some("--model".into()),
        interactive_via: PromptVia::Paste,
        one_shot_via: PromptVia::Stdin,
        session_flag: Some("--session-id".into()),
        hooks: HookStyle::Claude,
        session_own: words(&["--resume", "-r", "--continue", "-c", "--from-pr"]),
        tells_cost: true,
        end_of_options: true,
        ready: vec![format!("{input}{}", end(4))],
        working: vec![
            format!(r"^─{{3}}[^\n]*\n(?:[^\n]*\n){{0,3}}\s[^\n]*esc to interrupt[^\n]*{}", end(2)),
            // The spinner's row, for a pane too narrow for the whole footer. Answers never start in the
            // first column without their bullet.
            format!(r"^[·✢✳✶✻✽*] [^\n]*(?:…[^\n]*\([^\n)]*\d+s|retrying in \d+s)[^\n]*{}", end(10)),
        ],
        startup: vec![
            message("Credit balance (?:is )?too low", "no credit"),
            message("[^\n]*(?:Invalid API key|Please run /login)", "login needed"),
        ],
        permission: vec![
            dialog(r"do you want to [^\n]*|would you like to proceed", r"yes\b|no\b", "permission dialog"),
            message("Context limit reached", "context limit reached"),
        ],
        ..generic()
    }
}

/// Codex 0.171. `codex exec` reads stdin; the interactive one refuses a stdin that is no terminal.
fn codex() -> Profile {
    Profile {
        name: "codex".into(),
        commands: words(&["codex"]),
        hooks: HookStyle::Codex,
        one_shot: words(&["exec", "e"]),
        bare_one_shot: true,
        model_flag: Some("--model".into()),
        interactive_via: PromptVia::Paste,
        one_shot_via: PromptVia::Stdin,
        end_of_options: true,
        ready: vec![format!(
            // The input row (not a numbered option), more rows of a long text, and the footer.
            r"^›(?: (?:[^\d\n][^\n]*|\d+(?:[^.\d\n][^\n]*)?)?)?(?:\n(?:  [^\n]*)?)*?\n\n  [^\n]*(?:·|for shortcuts|context left)[^\n]*(?:\n  [^\n]*){{0,2}}\Z"
        )],
        working: vec![format!(r"^[•◦] [^\n]*\([^\n)]*esc to interrupt\)[^\n]*{}", end(24))],
        startup: vec![dialog("hooks need review", r"review\b|trust all|continue", "hooks review dialog")],
        permission: vec![dialog(
            r"would you like to [^\n]*\?|allow command\?",
            r"yes\b|no\b",
            "approval dialog",
        )],
        ..generic()
    }
}

/// opencode 1.18. `run` reads stdin, and unlike an argument what it reads there is not put in quotes. It prints
/// its words and its tools' output alike, but for `--format json`, where steps and price stand too.
fn opencode() -> Profile {
    Profile {
        name: "opencode".into(),
        commands: words(&["opencode"]),
        one_shot: words(&["run"]),
        bare_one_shot: true,
        tells_cost: true,
        record_args: words(&["--format", "json"]),
        model_flag: Some("--model".into()),
        interactive_via: PromptVia::Paste,
        one_shot_via: PromptVia::Stdin,
        // The box: framed rows, the lower edge. On the first screen much stands below it.
        ready: words(&[r"^\s*┃[^\n]*\n\s*╹▀{8}"]),
        working: vec![format!(r"\besc (?:again to )?interrupt\b[^\n]*{}", end(3))],
        // This dialog was not seen on a screen of ours.
        permission: vec![marker(
            &format!(
                r"^\s*┃?\s*△ Permission required[^\n]*\n(?:[^\n]*\n){{0,16}}?[^\n]*\bAllow once\b[^\n]*{}",
                end(6)
            ),
            "permission dialog",
        )],
        ..generic()
    }
}

/// Gemini CLI 0.61. A stdin that is no terminal makes it run once; with `-p` that comes after the text.
fn gemini() -> Profile {
    Profile {
        name: "gemini".into(),
        commands: words(&["gemini"]),
        one_shot: words(&["-p", "--prompt"]),
        model_flag: Some("--model".into()),
        interactive_via: PromptVia::Paste,
        one_shot_via: PromptVia::Stdin,
        ready: vec![
            format!(r"^[\s│]*>\s+Type your message or @path/to/file[^\n]*{}", end(8)),
            format!(r"^─{{8}}[^\n]*\n(?: [^\n>]*\n|\n){{0,3}} >[ \u00a0][^\n]*(?:\n(?: [^\n]*)?)*\Z"),
        ],
        working: vec![format!(r"^\s*[\u2800-\u28ff] [^\n]*\(esc to cancel[^\n]*{}", end(14))],
        permission: vec![dialog(
            r"allow execution of|apply this change\?|do you want to proceed\?",
            r"allow\b|yes\b|no\b",
            "approval dialog",
        )],
        ..generic()
    }
}

/// aider 0.86. Only `--message` was tried: it works on the message and exits. The screens are from its
/// documentation: a rule and a `>` mark, and questions that end in `(Y)es/(N)o`.
fn aider() -> Profile {
    Profile {
        name: "aider".into(),
        commands: words(&["aider"]),
        model_flag: Some("--model".into()),
        one_shot: words(&["--message", "--msg", "-m", "--message-file", "-f"]),
        interactive_via: PromptVia::Arg,
        one_shot_via: PromptVia::Arg,
        arg_flag: Some("--message".into()),
        ready: words(&[r"^(?:[a-z-]+(?: multi)?)?>(?:[ \u00a0][^\n]*)?\Z"]),
        startup: vec![marker(r"(?i)^[^\n]*\blog ?in to [^\n]*\(Y\)es/\(N\)o[^\n]*\Z", "login dialog")],
        permission: vec![marker(r"^[^\n]*\(Y\)es/\(N\)o[^\n]*:\Z", "question")],
        ..generic()
    }
}
