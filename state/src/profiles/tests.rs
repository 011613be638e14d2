use proptest::prelude::*;

use super::*;
use crate::model::PromptVia;
use crate::pattern::Pattern;
use crate::screen::ScreenReader;
use crate::transcript::{Account, Usage};

fn cmd(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

#[test]
fn cost_is_the_reported_cost_or_the_tokens_times_their_prices() {
    let account = |cost, usage| Account { cost, usage, ..Account::default() };
    let usage = Usage { input: 1_000_000, cached: 1_000_000, output: 1 };
    let row = Profile::generic();
    assert_eq!(row.cost(&account(Some(0.25), Some(usage))), Some(250_000));
    assert_eq!(row.cost(&account(None, Some(usage))), None, "no price");
    for absurd in [f64::NAN, f64::INFINITY, -1.0] {
        assert_eq!(row.cost(&account(Some(absurd), None)), None);
    }
    let half = Profile { input_price: Some(3_000_000), ..row };
    assert!(!half.knows_cost());
    let priced = Profile { output_price: Some(500_000), ..half };
    assert!(priced.knows_cost() && !priced.tells_cost);
    // Cached tokens cost as much as input tokens unless they have a price; a fraction of a millionth is rounded up.
    assert_eq!(priced.cost(&account(None, Some(usage))), Some(6_000_001));
    let cached = Profile { cached_price: Some(0), ..priced.clone() };
    assert_eq!(cached.cost(&account(None, Some(usage))), Some(3_000_001));
    assert_eq!(priced.cost(&account(Some(0.1), Some(usage))), Some(100_000), "the command knows better");
    assert_eq!(priced.cost(&account(None, None)), None);
    let most = Usage { input: u64::MAX, cached: u64::MAX, output: u64::MAX };
    assert_eq!(priced.cost(&account(None, Some(most))), Some(u64::MAX));
}

#[test]
fn command_without_an_option_about_permissions_lacks_them() {
    for (command, lacks) in [
        ("claude", true),
        ("claude -p", true),
        ("env A=b claude -p --model x", true),
        ("claude -p --dangerously-skip-permissions", false),
        ("claude --permission-mode acceptEdits", false),
        ("claude -p --allowedTools=Bash", false),
        ("claude -p --settings x.json", false),
        ("codex", true),
        ("codex exec --json", true),
        ("codex exec --full-auto", false),
        ("codex exec -s workspace-write", false),
        ("codex exec -sworkspace-write", false),
        ("codex --ask-for-approval never", false),
        ("codex exec -c sandbox_mode=workspace-write", false),
        ("gemini -p", true),
        ("gemini -y", false),
        ("gemini --approval-mode=yolo", false),
        ("qwen --yolo", false),
        ("qwen", true),
        ("aider --message x", true),
        ("aider --yes-always", false),
        // opencode asks for nothing unless its settings say so.
        ("opencode run", false),
        ("sh agent.sh", false),
    ] {
        let command = cmd(command);
        assert_eq!(find(&table(), &command).lacks_permissions(&command), lacks, "{command:?}");
    }
}

#[test]
fn agents_that_report_their_cost() {
    let names: Vec<String> = table().into_iter().filter(Profile::knows_cost).map(|row| row.name).collect();
    assert_eq!(names, ["claude", "opencode"]);
}

#[test]
fn every_marker_of_the_table_compiles() {
    for row in table() {
        ScreenReader::new(&row, None, None).unwrap_or_else(|error| panic!("{}: {error}", row.name));
    }
    for marker in common_startup().iter().chain(&common_permission()) {
        Pattern::compile(&marker.pattern).unwrap_or_else(|error| panic!("{}: {error}", marker.what));
    }
}

#[test]
fn every_marker_is_linear() {
    let rows = table().into_iter().flat_map(|row| {
        let dialogs = row.startup.into_iter().chain(row.permission).map(|marker| marker.pattern);
        row.ready.into_iter().chain(row.working).chain(row.error).chain(dialogs).collect::<Vec<_>>()
    });
    let common = common_startup().into_iter().chain(common_permission()).map(|marker| marker.pattern);
    for pattern in rows.chain(common) {
        assert!(Pattern::compile(&pattern).unwrap().is_linear(), "{pattern}");
    }
}

proptest! {
    /// The marker for an input row, which is written without look-around, says what it would say with it.
    #[test]
    fn input_row_marker_equals_its_look_around_form(
        text in "(?:[ \u{a0}\u{3000}]{0,2}[a>$]{0,2}[ 1)]{0,2}\n){0,3}[ a]{0,1}(?:❯|>|\\$|>>>)[ \u{a0}\u{3000}]{0,2}[1a.]{0,2}[).]?[ x]{0,2}\n?"
    ) {
        let short = r"(?:\A|^(?![ \u00a0]+\S)[^\n]*\n)(?:❯|>|\$|>>>)[ \u00a0](?![ \u00a0]*\d+[.)])[^\n]*\Z";
        let (short, ours) = (Pattern::compile(short).unwrap(), Pattern::compile(&Profile::generic().ready[1]).unwrap());
        prop_assert_eq!(short.is_match(&text), ours.is_match(&text));
    }
}

#[test]
fn a_profile_is_chosen_by_the_programs_base_name() {
    for (text, want) in [
        ("claude", "claude"),
        ("/usr/local/bin/claude --model x", "claude"),
        ("env A=1 B=c=d claude -p", "claude"),
        ("/usr/bin/env -i -u HOME A=1 env -C /tmp codex exec", "codex"),
        ("opencode", "opencode"),
        ("gemini -y", "gemini"),
        ("qwen -y", "qwen"),
        ("aider", "aider"),
        ("sh -c claude", "generic"),
        ("claude-like", "generic"),
        ("env A=1", "generic"),
        ("env -u", "generic"),
        ("", "generic"),
    ] {
        assert_eq!(find(&table(), &cmd(text)).name, want, "{text}");
    }
    assert_eq!(find(&[], &[]), Profile::generic());
}

#[test]
fn prompt_route_follows_from_the_command() {
    use PromptVia::{Arg, Auto, Paste, Stdin};
    for (text, looped, alone) in [
        ("claude", Paste, Paste),
        ("claude --dangerously-skip-permissions -p", Stdin, Stdin),
        ("claude --print --model x", Stdin, Stdin),
        ("claude -- -p", Paste, Paste),
        ("codex", Paste, Paste),
        ("codex -m gpt exec --json", Stdin, Stdin),
        ("codex e", Stdin, Stdin),
        ("opencode", Paste, Paste),
        ("opencode run", Stdin, Stdin),
        ("gemini", Paste, Paste),
        ("gemini -m x -p", Stdin, Stdin),
        ("gemini --prompt=hi", Stdin, Stdin),
        ("aider --model x", Arg, Arg),
        ("./agent.sh", Stdin, Paste),
        ("env -i A=1 ./agent.sh -p", Stdin, Paste),
    ] {
        let cmd = cmd(text);
        let row = find(&table(), &cmd);
        assert_eq!(row.route(&cmd, Auto, true), looped, "{text} in a loop");
        assert_eq!(row.route(&cmd, Auto, false), alone, "{text}");
        for wanted in [Arg, Paste, Stdin] {
            assert_eq!(row.route(&cmd, wanted, true), wanted);
        }
    }
}

#[test]
fn added_options_are_behind_a_subcommand_and_before_the_value_of_a_flag() {
    for (text, want) in [
        ("claude -p", "claude --dangerously-skip-permissions --model m -p"),
        ("codex exec --json", "codex exec --dangerously-bypass-approvals-and-sandbox --model m --json"),
        ("gemini -p work", "gemini --yolo --model m -p work"),
        ("env A=1 aider --message work", "env A=1 aider --yes-always --model m --message work"),
        ("opencode -- run", "opencode --model m -- run"),
    ] {
        let profile = find(&table(), &cmd(text));
        let with_model = profile.command_with_model(&cmd(text), "m").unwrap();
        assert_eq!(profile.command_unattended(&with_model).join(" "), want);
    }
}

#[test]
fn a_prompt_in_an_argument_is_never_an_option() {
    for (text, prompt, want) in [
        ("claude -p", "fix it", vec!["claude", "-p", "fix it"]),
        ("claude -p", "- [ ] fix", vec!["claude", "-p", "--", "- [ ] fix"]),
        ("codex exec --", "--help", vec!["codex", "exec", "--", "--help"]),
        ("aider", "fix it", vec!["aider", "--message", "fix it"]),
        ("aider", "--help", vec!["aider", "--message=--help"]),
        ("./a.sh x", "-n", vec!["./a.sh", "x", "-n"]),
        ("./a.sh", "", vec!["./a.sh", ""]),
        ("gemini -p -m x", "fix it", vec!["gemini", "-p", "fix it", "-m", "x"]),
        ("gemini -y -p", "- [ ] fix", vec!["gemini", "-y", "--prompt=- [ ] fix"]),
        ("gemini -y", "fix it", vec!["gemini", "-y", "--prompt", "fix it"]),
    ] {
        let cmd = cmd(text);
        assert_eq!(find(&table(), &cmd).command_with_prompt(&cmd, prompt), want, "{text} {prompt}");
    }
}

#[test]
fn prompt_option_without_a_value_is_removed_for_standard_input() {
    for (text, want) in [
        ("gemini -y -p", "gemini -y"),
        ("gemini -p -m x", "gemini -m x"),
        ("gemini --prompt", "gemini"),
        ("gemini -p now", "gemini -p now"),
        ("gemini --prompt=now", "gemini --prompt=now"),
        ("gemini -- -p", "gemini -- -p"),
        ("env A=1 qwen -p", "env A=1 qwen"),
        ("claude -p", "claude -p"),
        ("codex exec", "codex exec"),
        ("./a.sh -p", "./a.sh -p"),
    ] {
        let cmd = cmd(text);
        assert_eq!(find(&table(), &cmd).command_for_stdin(&cmd).join(" "), want, "{text}");
    }
}

#[test]
fn a_row_of_settings_may_leave_fields_out() {
    let row: Profile = serde_json::from_str(r#"{"name":"mine","commands":["mine"]}"#).unwrap();
    assert_eq!(row.ready, Profile::generic().ready);
    assert_eq!(row.route(&cmd("mine"), PromptVia::Auto, true), PromptVia::Stdin);
    let text = serde_json::to_string(&table()).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Profile>>(&text).unwrap(), table());
}

#[test]
fn the_command_of_a_loop_leaves_a_record() {
    let row = |name: &str| table().into_iter().find(|row| row.name == name).unwrap();
    assert_eq!(row("opencode").loop_command(), cmd("opencode run --format json"));
    assert_eq!(row("codex").loop_command(), cmd("codex exec"));
    assert_eq!(row("claude").loop_command(), cmd("claude -p"));
    for row in table() {
        assert!(row.leaves_record(&row.loop_command()) || row.loop_command().is_empty(), "{}", row.name);
    }
    let opencode = row("opencode");
    assert!(opencode.leaves_record(&cmd("opencode run --format=json -m x")));
    assert!(!opencode.leaves_record(&cmd("opencode run --format default")));
    assert!(!opencode.leaves_record(&cmd("opencode run")));
}

#[test]
fn commands_with_text_output_print_no_record() {
    let shows = |words: &[&str], via| {
        let cmd: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        find(&table(), &cmd).shows_text(&cmd, via)
    };
    assert!(shows(&["opencode", "run"], PromptVia::Stdin));
    assert!(shows(&["claude"], PromptVia::Paste) && shows(&["gemini"], PromptVia::Paste));
    assert!(!shows(&["opencode", "run", "--format", "json"], PromptVia::Stdin));
    assert!(!shows(&["claude", "-p"], PromptVia::Stdin) && !shows(&["codex", "exec"], PromptVia::Stdin));
    // Gemini prints JSON when it is asked to, on a stdin that is not a terminal.
    assert!(!shows(&["gemini", "--output-format", "json"], PromptVia::Stdin));
    assert!(!shows(&["./agent.sh"], PromptVia::Paste), "whatever that is");
}

#[test]
fn chat_command_passes_the_first_prompt_if_supported() {
    let chat = |command: &str| {
        let command = cmd(command);
        find(&table(), &command).command_for_chat(&command, "plan it").map(|cmd| cmd.join(" "))
    };
    for (command, expected) in [
        ("claude --model opus", Some("claude --model opus plan it")),
        ("codex", Some("codex plan it")),
        ("opencode", Some("opencode --prompt plan it")),
        ("gemini", Some("gemini --prompt-interactive plan it")),
        ("./agent.sh", Some("./agent.sh plan it")),
        ("aider", None),
        ("claude -p", None),
        ("codex exec", None),
    ] {
        assert_eq!(chat(command).as_deref(), expected, "{command}");
    }
}
