use clap::CommandFactory;
use clap::error::ErrorKind;

use super::*;

fn parse(args: &[&str]) -> Result<Cli, clap::Error> {
    let words: Vec<OsString> = std::iter::once(&"swarm").chain(args).map(OsString::from).collect();
    Cli::from_words(&words)
}

fn spawn(args: &[&str]) -> Spawn {
    match parse(&[&["spawn"], args].concat()).unwrap_or_else(|e| panic!("{e}")).command {
        Command::Spawn(spawn) => *spawn,
        other => panic!("{other:?}"),
    }
}

#[test]
fn definition_passes_the_checks_of_clap() {
    Cli::command().debug_assert();
}

#[test]
fn arguments_after_the_name_of_send_are_text() {
    let meant = |words: &[&str]| -> Vec<String> {
        let args = std::iter::once(&"swarm").chain(words).map(OsString::from).collect();
        as_meant(args).into_iter().skip(1).map(|arg| arg.into_string().unwrap()).collect()
    };
    for (typed, at) in [
        (&["send", "w", "--help"][..], Some(2)),
        (&["send", "w", "-h", "me"], Some(2)),
        (&["-c", "f", "send", "w", "--help"], Some(4)),
        (&["--config=f", "send", "w", "--help"], Some(3)),
        (&["send", "--help"], None),
        (&["send", "--all", "--help"], None),
        (&["send", "w", "--file", "f"], None),
        (&["peek", "w", "--help"], None),
        (&["send", "w"], None),
        (&["send", "w", "--json"], None),
        (&["spawn", "--", "x", "--json"], None),
        (&[], None),
    ] {
        let mut wanted: Vec<&str> = typed.to_vec();
        if let Some(at) = at {
            wanted.insert(at, "--");
        }
        assert_eq!(meant(typed), wanted);
    }
    assert_eq!(meant(&["ls", "--json"]), ["ls", "--format=json"]);
    assert_eq!(meant(&["-c", "f", "status", "--json", "w"]), ["-c", "f", "status", "--format=json", "w"]);
}

#[test]
fn help_fits_on_one_screen_and_names_every_command() {
    for flag in ["--help", "-h"] {
        let error = parse(&[flag]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DisplayHelp);
        let text = error.render().to_string();
        assert!(text.lines().count() <= 50, "{} rows", text.lines().count());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let names = |command: &clap::Command, before: &str| -> Vec<String> {
            command.get_subcommands().map(|c| format!("{before}{}", c.get_name())).collect()
        };
        let root = Cli::command();
        let ralph = root.find_subcommand("ralph").unwrap();
        let all = names(&root, "").into_iter().filter(|n| n != "ralph").chain(names(ralph, "ralph "));
        for name in all {
            assert!(text.contains(&format!("  {name} ")), "{name} is not in the help");
        }
    }
}

#[test]
fn every_argument_and_command_has_help() {
    fn walk(command: &clap::Command) {
        assert!(command.get_about().is_some(), "{}", command.get_name());
        for arg in command.get_arguments() {
            assert!(arg.get_help().is_some(), "{} {}", command.get_name(), arg.get_id());
        }
        command.get_subcommands().for_each(walk);
    }
    walk(&Cli::command());
}

#[test]
fn documented_command_lines_parse() {
    let args = spawn(&[
        "--name",
        "agent",
        "--ralph",
        "--prompt-file",
        "./PROMPT.md",
        "--max-iterations",
        "10",
        "--",
        "claude",
    ]);
    assert_eq!(args.worker.name.map(String::from).as_deref(), Some("agent"));
    assert!(args.ralph.ralph && !args.detach);
    assert_eq!(args.ralph.max_iterations, Some(10));
    assert_eq!(args.cmd, ["claude"]);
    let args = spawn(&[
        "--tmux",
        "-d",
        "--ralph",
        "--ralph-dir",
        "ralph",
        "-n",
        "3",
        "--",
        "claude",
        "-p",
        "--",
        "x",
    ]);
    assert!(args.detach);
    assert_eq!(args.cmd, ["claude", "-p", "--", "x"]);
    for line in [
        "ralph pause agent",
        "ralph resume agent",
        "ralph status agent",
        "ralph init --force",
        "ralph template",
        "logs agent --follow",
        "ls --format json",
        "ls --format names",
        "attach agent",
        "kill agent",
        "ralph set agent max_iterations=20",
        "ralph clean --all",
        "ralph clean agent.1",
        "daemon run --ready-on-stdout",
        "demo",
        "completions fish",
        "-c f ls",
        "ls -c f",
        "kill --all --rm-worktree --force-dirty",
    ] {
        parse(&line.split(' ').collect::<Vec<_>>()).unwrap_or_else(|e| panic!("{line}: {e}"));
    }
}

#[test]
fn command_lines_of_worker_verbs_parse() {
    for line in [
        "eof agent",
        "wait a b --for idle --timeout 5 --format json",
        "wait --all",
        "wait --all --timeout 1h30m",
        "wait --all --timeout 0",
        "events",
        "events a b -f --since 7 --format json",
        "clean a b",
        "clean --all --keep-worktree",
        "clean a --force-dirty --discard-ignored",
        "kill a --rm-worktree --discard-ignored",
        "respawn a --clean-first --discard-ignored",
        "logs agent --iteration 3 --format json -n 5",
    ] {
        parse(&line.split(' ').collect::<Vec<_>>()).unwrap_or_else(|e| panic!("{line}: {e}"));
    }
}

#[test]
fn prompt_may_start_with_a_dash() {
    assert_eq!(spawn(&["--prompt", "- [ ] x", "--", "c"]).prompt.prompt.as_deref(), Some("- [ ] x"));
    assert_eq!(spawn(&["--prompt", "--help", "--", "c"]).prompt.prompt.as_deref(), Some("--help"));
    assert_eq!(
        spawn(&["--done-pattern", "-DONE-", "--", "c"]).prompt.done_pattern.as_deref(),
        Some("-DONE-")
    );
}

#[test]
fn invalid_command_lines_exit_with_2() {
    for line in [
        "spawn --name a/b/c -- x",
        "spawn --name= -- x",
        "spawn --name -rf -- x",
        "status ../x",
        "kill",
        "kill --all a",
        "spawn --ralph --max-iterations 0 -- x",
        "spawn --ralph --inactivity-timeout 0 -- x",
        "spawn --max-iterations 3 -- x",
        "spawn --prompt a --prompt-file b -- x",
        "spawn --branch b -- x",
        "spawn --size 200 -- x",
        "spawn --size 0x9 -- x",
        "spawn --size 19x50 -- x",
        "spawn --size 5000x50 -- x",
        "spawn --tag= -- x",
        "spawn --prompt-via pipe -- x",
        "spawn x",
        "ralph set a",
        "ralph set a max",
        "ralph clean",
        "ralph clean --all a",
        "ralph clean a.b",
        "ralph clean ../a",
        "ralph clean a.1/../b",
        "ralph clean .1",
        "kill --force-dirty a",
        "peek a -n 0",
        "eof ../a",
        "eof",
        "wait",
        "wait --all a",
        "wait a/b/c",
        "wait a --for ever",
        "wait a --timeout -1",
        "events .",
        "events --since x",
        "clean",
        "clean --all a",
        "clean ../../precious",
        "clean -rf",
        "clean a --keep-worktree --force-dirty",
        "clean a --keep-worktree --discard-ignored",
        "kill a --discard-ignored",
        "respawn a --discard-ignored",
        "logs a --iteration 0",
        "logs a --iteration 1 --history",
        "logs a --iteration 1 --follow",
        "logs a --follow --format json",
        "completions elvish",
        "nonsense",
        "",
    ] {
        let words: Vec<&str> = line.split(' ').filter(|w| !w.is_empty()).collect();
        let error = parse(&words).err().unwrap_or_else(|| panic!("{line} was accepted"));
        assert_eq!(error.exit_code(), 2, "{line}");
    }
    let error = parse(&["status", "a b"]).unwrap_err().to_string();
    assert!(error.contains("use 1 to 64 of A-Z a-z 0-9 _ -"), "{error}");
}

#[test]
fn missing_loop_flags_pass_the_parser() {
    assert!(spawn(&["--ralph", "--", "x"]).ralph.ralph);
    assert!(spawn(&["--ralph"]).cmd.is_empty());
}

#[test]
fn durations_are_in_seconds() {
    let args = spawn(&["--ready-timeout", "2m", "--max-time", "8h", "--check-timeout", "90", "--", "x"]);
    assert_eq!(args.prompt.ready_timeout, 120);
    assert_eq!(
        (args.budgets.max_time, args.gates.check_timeout),
        (Some(OptionLimit(Some(28_800))), Some(90))
    );
    assert_eq!(spawn(&["--", "x"]).prompt.ready_timeout, 120);
    for (flag, value, message) in [
        ("--inactivity-timeout", "0m", "the duration must be at least 1s"),
        ("--max-time", "1x", "invalid duration '1x': use 90, 90s, 10m, 8h or 1h30m"),
    ] {
        let error = parse(&["spawn", "--ralph", flag, value, "--", "x"]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn size_is_columns_x_rows() {
    assert_eq!(spawn(&["--size", "120x40", "--", "x"]).worker.size, Some((120, 40)));
}

#[test]
fn help_of_clean_names_every_deleted_cache() {
    use swarm_state::ignored::{CACHE_DIRS, CACHE_ENDINGS, CACHE_FILES, CACHE_MARKERS};
    let text = after::CLEAN_LONG;
    let markers = CACHE_MARKERS.iter().map(|(file, _)| *file);
    for name in CACHE_DIRS.into_iter().chain(CACHE_ENDINGS).chain(CACHE_FILES).chain(markers) {
        let is_named = text.split([' ', ',', '\n']).any(|word| word.trim_end_matches('.') == name);
        assert!(is_named, "{name}");
    }
}

#[test]
fn help_of_loop_names_every_profile() {
    let help = parse(&["loop", "--help"]).unwrap_err().to_string();
    for profile in swarm_state::profiles::table() {
        let is_named = help.split([' ', ',', '\n', '(', ')']).any(|word| word == profile.name);
        assert!(is_named, "{}", profile.name);
    }
}

/// A pasted hint acts on the right machine: each command gets the host, except those that `--on` refuses or that no
/// hint names.
#[test]
fn commands_in_hints_get_the_host() {
    let local =
        ["ui", "session", "hook", "hooks", "plugin", "config", "notify", "host", "demo", "completions"];
    for command in Cli::command().get_subcommands().map(clap::Command::get_name) {
        let hint = swarm_state::host::with_host(&format!("swarm {command} x"), "gpu1");
        assert_eq!(hint.contains("--on gpu1"), !local.contains(&command), "{command}");
    }
}
