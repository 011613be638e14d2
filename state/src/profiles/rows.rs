//! The rows: one function for each CLI. Markers are from screens of the named versions, unless a comment states
//! otherwise.

use super::dialogs::{Marker, dialog, end, marker};
use super::profile::{HookStyle, Profile};
use super::sandbox;
use crate::model::PromptVia;
use crate::outage::{OutageKind, Wording};
use crate::words::words;

/// All rows; the last is [`Profile::generic`].
pub fn table() -> Vec<Profile> {
    vec![claude(), codex(), opencode(), gemini(), qwen(), aider(), Profile::generic()]
}

/// Claude Code's settings, of a project and of a person.
const CLAUDE_SETTINGS: [&str; 4] = [
    ".claude/settings.json",
    ".claude/settings.local.json",
    "~/.claude/settings.json",
    "~/.claude/settings.local.json",
];

/// Claude Code 2.1. With a terminal on stdout and a prompt on stdin it opens its screen and stays, so an
/// interactive command is pasted to; `-p` reads stdin and exits.
fn claude() -> Profile {
    // The input box: a row with the mark between two rules, then a short footer. The box may hold text.
    let input = r"^─{3}[^\n]*\n[❯>](?P<input>(?:[ \u00a0][^\n]*)?\n(?:(?:[ \u00a0][^\n]*)?\n)*?)─{3}[^\n]*";
    // A dialog's title, which is the row below a rule.
    let head = |title: &str| format!(r"^─{{3}}[^\n]*\n[ \u00a0]*{title}");
    // A message directly above the input box: only empty rows and right-aligned hints lie between.
    let message = |text: &str, what: &str| -> Marker {
        let gap = r"(?:\n(?: {12}[^\n]*)?)*?\n";
        marker(&format!(r"(?i)^ *⎿[ \u00a0]+(?:{text})[^\n]*{gap}(?-i:{input}){}", end(4)), what)
    };
    Profile {
        name: "claude".into(),
        commands: words(&["claude"]),
        sandbox: sandbox::claude(),
        one_shot: words(&["-p", "--print"]),
        bare_one_shot: true,
        model_flag: Some("--model".into()),
        interactive_via: PromptVia::Paste,
        one_shot_via: PromptVia::Stdin,
        session_flag: Some("--session-id".into()),
        hooks: HookStyle::Claude,
        session_own: words(&["--resume", "-r", "--continue", "-c", "--from-pr"]),
        tells_cost: true,
        unattended_args: words(&["--dangerously-skip-permissions"]),
        root_variable: Some("IS_SANDBOX".into()),
        permission_flags: words(&[
            "--dangerously-skip-permissions",
            "--permission-mode",
            "--allowedTools",
            "--allowed-tools",
            "--allow-dangerously-skip-permissions",
            "--permission-prompt-tool",
            "--permission-prompts",
            "--restricted",
            "--settings",
        ]),
        permission_files: words(&CLAUDE_SETTINGS),
        end_of_options: true,
        ready: vec![format!("{input}{}", end(4))],
        input: vec![format!("{input}{}", end(4))],
        working: vec![
            format!(r"^─{{3}}[^\n]*\n(?:[^\n]*\n){{0,3}}\s[^\n]*esc to interrupt[^\n]*{}", end(2)),
            // The spinner's row, for a pane too narrow for the whole footer. Answers never start in the
            // first column without their bullet.
            format!(r"^[·✢✳✶✻✽*] [^\n]*(?:…[^\n]*\([^\n)]*\d+s|retrying in \d+s)[^\n]*{}", end(10)),
        ],
        startup: vec![
            message("Credit balance (?:is )?too low", "no credit"),
            message("[^\n]*(?:Invalid API key|Please run /login)", "login needed"),
            dialog(&head(r"(?:\d+ )?new mcp servers? found"), r"\S", "MCP server dialog"),
            dialog(
                &head(r"allow external claude\.md file imports\?"),
                r"no\b|yes\b",
                "CLAUDE.md imports dialog",
            ),
            dialog(&head(r"settings error$"), r"\S", "settings error dialog"),
        ],
        permission: vec![
            dialog(r"do you want to [^\n]*|would you like to proceed", r"yes\b|no\b", "permission dialog"),
            message("Context limit reached", "context limit reached"),
        ],
        ..Profile::generic()
    }
}

/// Codex 0.171. `codex exec` reads stdin; the interactive one refuses a stdin that is not a terminal.
fn codex() -> Profile {
    // The model and the directory. They are missing while Codex starts, and a dialog may still follow.
    let footer = r"  [^\n]*(?:· (?:[^e\n]|e[^s\n]|es[^c\n])|context left)[^\n]*(?:\n  [^\n]*){0,2}\Z";
    Profile {
        name: "codex".into(),
        commands: words(&["codex"]),
        sandbox: sandbox::codex(),
        hooks: HookStyle::Codex,
        // Without one of them, `exec` may only read files, and the interactive command asks.
        unattended_args: words(&["--dangerously-bypass-approvals-and-sandbox"]),
        permission_flags: words(&[
            "--full-auto",
            "--sandbox",
            "--dangerously-bypass-approvals-and-sandbox",
            "-s",
            "--ask-for-approval",
            "-a",
            "--yolo",
            "--profile",
            "-p",
            "--config",
            "-c",
        ]),
        permission_files: words(&[".codex/config.toml", "~/.codex/config.toml"]),
        one_shot: words(&["exec", "e"]),
        bare_one_shot: true,
        model_flag: Some("--model".into()),
        interactive_via: PromptVia::Paste,
        one_shot_via: PromptVia::Stdin,
        end_of_options: true,
        ready: vec![format!(
            // The input row (not a numbered option), more rows of a long text, and the footer.
            r"^›(?: (?:[^\d\n][^\n]*|\d+(?:[^.\d\n][^\n]*)?)?)?(?:\n(?:  [^\n]*)?)*?\n\n{footer}"
        )],
        input: vec![format!(r"^›(?P<input>(?: [^\n]*)?(?:\n(?:  [^\n]*)?)*?)\n\n{footer}")],
        settle_ms: 1000,
        working: vec![
            format!(r"^[•◦] [^\n]*\([^\n)]*esc to interrupt\)[^\n]*{}", end(24)),
            // The agent has the prompt, and begins when it has started.
            r"^  Waiting for startup[^\n]*esc cancel[^\n]*\Z".into(),
        ],
        startup: vec![
            dialog("hooks need review", r"review\b|trust all|continue", "hooks review dialog"),
            dialog("choose how you want to use codex|sign in with chatgpt", r"sign in\b", "login dialog"),
        ],
        permission: vec![dialog(
            r"would you like to [^\n]*\?|allow command\?",
            r"yes\b|no\b",
            "approval dialog",
        )],
        ..Profile::generic()
    }
}

/// opencode 1.18. `run` reads stdin, and unlike an argument, that text is not quoted. Its messages and tool output look
/// alike, except with `--format json`, which also has steps and prices.
fn opencode() -> Profile {
    Profile {
        name: "opencode".into(),
        commands: words(&["opencode"]),
        sandbox: sandbox::opencode(),
        one_shot: words(&["run"]),
        bare_one_shot: true,
        // Its plain argument is a directory.
        chat_flag: Some("--prompt".into()),
        tells_cost: true,
        record_args: words(&["--format", "json"]),
        model_flag: Some("--model".into()),
        interactive_via: PromptVia::Paste,
        one_shot_via: PromptVia::Stdin,
        // The box: framed rows and the lower edge. The first screen has many rows below it.
        ready: words(&[r"^\s*┃[^\n]*\n\s*╹▀{8}"]),
        // The last row of the frame names the mode and the model.
        input: words(&[r"^(?P<input>(?:[ ]*┃[^\n]*\n)+?)[ ]*┃  [^\n]* · [^\n]*\n[ ]*╹▀{8}"]),
        error: vec![opencode_error()],
        working: vec![format!(r"\besc (?:again to )?interrupt\b[^\n]*{}", end(3))],
        // This dialog is not from a real screen.
        permission: vec![marker(
            &format!(
                r"^\s*┃?\s*△ Permission required[^\n]*\n(?:[^\n]*\n){{0,16}}?[^\n]*\bAllow once\b[^\n]*{}",
                end(6)
            ),
            "permission dialog",
        )],
        ..Profile::generic()
    }
}

/// A framed text, then the row that ends a turn of opencode's, without the turn's duration. A prompt is framed too, but
/// follows no text of the same turn. A tool's frame starts with `#`. A wide screen has a column of its own at the
/// right.
fn opencode_error() -> String {
    let right = r"(?: {3,}[^\n]*)?";
    let gap = r"(?: {60,}[^\n]*)?";
    let framed =
        format!(r"  ┃{right}\n  ┃  (?P<error>[^#\s][^\n]*?){right}(?:\n  ┃  [^\n]*){{0,8}}?\n  ┃{right}");
    format!(
        concat!(
            r"^(?:  ┃| {{5}}[^▣\s])[^\n]*\n{gap}\n{framed}\n{gap}\n {{5}}▣  [^·\n]+ · [^·\n]+?{right}",
            r"(?:\n(?: {{60,}}[^\n]*| {{0,4}}(?:[^ \n][^\n]*)?))*\Z",
        ),
        gap = gap,
        framed = framed,
        right = right
    )
}

/// Gemini CLI 0.61. A stdin that is not a terminal makes it run once; with `-p` that comes after the text, and `-p`
/// without a text is a usage error.
fn gemini() -> Profile {
    let box_below = r"─{8}[^\n]*\n(?: [^\n>]*\n|\n){0,3}? [>*][ \u00a0][^\n]*(?:\n(?: [^\n]*)?)*\Z";
    // Its API refuses a key with status 400.
    let refused = r"(?i)\bAPI key not valid\b|\bAPI_KEY_INVALID\b|\bUNAUTHENTICATED\b";
    Profile {
        name: "gemini".into(),
        commands: words(&["gemini"]),
        sandbox: sandbox::gemini("~/.gemini"),
        one_shot: words(&["-p", "--prompt"]),
        one_shot_takes_prompt: true,
        arg_flag: Some("--prompt".into()),
        chat_flag: Some("--prompt-interactive".into()),
        unattended_args: words(&["--yolo"]),
        permission_flags: words(&["--yolo", "--approval-mode", "--allowed-tools", "-y"]),
        permission_files: words(&[".gemini/settings.json", "~/.gemini/settings.json"]),
        model_flag: Some("--model".into()),
        interactive_via: PromptVia::Paste,
        one_shot_via: PromptVia::Stdin,
        ready: vec![
            format!(r"^[\s│]*[>*]\s+Type your message or @path/to/file[^\n]*{}", end(8)),
            format!("^{box_below}"),
        ],
        // The rows of the box, then those of the footer, which are less indented.
        input: words(&[concat!(
            r"^─{8}[^\n]*\n(?: [^\n>]*\n|\n){0,3}? [>*](?P<input>[ \u00a0][^\n]*(?:\n(?: {3}[^\n]*)?)*?)",
            r"(?:\n(?: [^ \n][^\n]*)?){0,6}\Z",
        )]),
        // Below the error: its further rows, the CLI's notes (`ℹ`), hints at the right. An answer's rows are indented.
        error: vec![format!(
            concat!(
                r"^✕ (?P<error>\[API Error:[^\n]*(?:\n {{2}}[^\n]*)*)",
                r"(?:\n(?: {{8}}[^\n]*|ℹ [^\n]*(?:\n {{2}}[^\n]*)*)?)*\n{}",
            ),
            box_below
        )],
        outage: vec![Wording { pattern: refused.into(), kind: OutageKind::Login }],
        working: vec![format!(r"^\s*[\u2800-\u28ff] [^\n]*\(esc to cancel[^\n]*{}", end(14))],
        permission: vec![dialog(
            r"allow execution of|apply this change\?|do you want to proceed\?",
            r"allow\b|yes\b|no\b",
            "approval dialog",
        )],
        ..Profile::generic()
    }
}

/// qwen-code 0.15, a relative of Gemini CLI with a box of its own: a mark between two rules. With `-p` it runs
/// once; a prompt on its standard input is enough for that too.
fn qwen() -> Profile {
    let input = r"^─{8}[^\n]*\n[>*](?P<input>[ \u00a0][^\n]*\n(?:(?:[ \u00a0][^\n]*)?\n)*?)─{8}[^\n]*";
    Profile {
        name: "qwen".into(),
        commands: words(&["qwen"]),
        sandbox: sandbox::gemini("~/.qwen"),
        permission_files: words(&[".qwen/settings.json", "~/.qwen/settings.json"]),
        ready: vec![format!("{input}{}", end(6))],
        input: vec![format!("{input}{}", end(10))],
        // All its rows are indented by two, those of an answer by four.
        error: vec![format!(
            concat!(
                r"^  ✕ (?P<error>\[API Error:[^\n]*(?:\n {{4}}[^\n]*)*)",
                r"(?:\n(?: {{8}}[^\n]*|  ℹ [^\n]*(?:\n {{4}}[^\n]*)*)?)*\n{}{}",
            ),
            input.trim_start_matches('^'),
            end(10)
        )],
        working: vec![format!(r"^\s*(?:[\u2800-\u28ff]|\.{{1,3}}) [^\n]*esc to cancel[^\n]*{}", end(14))],
        ..gemini()
    }
}

/// aider 0.86: a rule and a `>` mark, and questions that end in `(Y)es/(N)o`. With `--message`, it does the task and
/// exits.
fn aider() -> Profile {
    Profile {
        name: "aider".into(),
        commands: words(&["aider"]),
        sandbox: sandbox::aider(),
        model_flag: Some("--model".into()),
        one_shot: words(&["--message", "--msg", "-m", "--message-file", "-f"]),
        interactive_via: PromptVia::Arg,
        one_shot_via: PromptVia::Arg,
        arg_flag: Some("--message".into()),
        unattended_args: words(&["--yes-always"]),
        permission_flags: words(&["--yes-always", "--yes"]),
        permission_files: words(&[".aider.conf.yml", "~/.aider.conf.yml", ".env"]),
        ready: words(&[r"^(?:[a-z-]+(?: multi)?)?>(?:[ \u00a0][^\n]*)?\Z"]),
        // Each line of a text has a mark of its own.
        input: words(&[concat!(
            r"^(?P<input>(?:(?:[a-z-]+(?: multi)?)?>(?:[ \u00a0][^\n]*)?\n)*",
            r"(?:[a-z-]+(?: multi)?)?>(?:[ \u00a0][^\n]*)?)\Z",
        )]),
        // An explanation and the mark may follow. After an answer, the tokens follow.
        error: words(&[concat!(
            r"^[ ░]*(?P<error>litellm\.\w+: [^\n]*)(?:\n[^\n]+){0,3}?",
            r"(?:\n\n?─{8}[^\n]*\n(?:[a-z-]+(?: multi)?)?>[^\n]*)?\s*\Z",
        )]),
        outage: vec![
            Wording { pattern: r"^litellm\.AuthenticationError\b".into(), kind: OutageKind::Login },
            Wording {
                pattern: r"^litellm\.(?:RateLimit|ServiceUnavailable|InternalServer)Error\b".into(),
                kind: OutageKind::Overload,
            },
        ],
        hides_input: true,
        startup: vec![marker(r"(?i)^[^\n]*\blog ?in to [^\n]*\(Y\)es/\(N\)o[^\n]*\Z", "login dialog")],
        permission: vec![marker(r"^[^\n]*\(Y\)es/\(N\)o[^\n]*:\Z", "question")],
        ..Profile::generic()
    }
}
