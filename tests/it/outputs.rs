//! Streams that take nothing and arguments that mean nothing: no verb panics on them, and each says so by its
//! exit status.
//!
//! The verbs are read from the command line's definition, so a new one is held to the same.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStringExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::CommandFactory;
use nix::sys::signal::Signal;
use swarm::cli::{self, Cli};

use crate::world::{Ran, SWARM, World, signal};

/// Every verb that can be typed, with its words.
fn verbs() -> Vec<(Vec<OsString>, clap::Command)> {
    fn walk(command: &clap::Command, words: &[OsString], found: &mut Vec<(Vec<OsString>, clap::Command)>) {
        let children: Vec<_> = command.get_subcommands().filter(|c| !c.is_hide_set()).collect();
        if children.is_empty() {
            found.push((words.to_vec(), command.clone()));
        }
        for child in children {
            walk(child, &[words, &[child.get_name().into()]].concat(), found);
        }
    }
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let mut found = vec![];
    walk(&root, &[], &mut found);
    // Those that end what the others need come last.
    found.sort_by_key(|(words, _)| words[0] == "kill" || words[0] == "clean" || words[0] == "daemon");
    assert!(found.len() > 15, "{}", found.len());
    found
}

/// Returns the operands of a verb that requires some: the name of a worker, if there is nothing better.
fn operands(words: &[OsString], verb: &clap::Command) -> Vec<OsString> {
    let name: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let known: &[&str] = match name.join(" ").as_str() {
        "spawn" => &["--", "true"],
        "send" => &["w", "hello"],
        "wait" => &["w", "--timeout", "1"],
        "completions" => &["bash"],
        "ralph set" => &["l", "max_iterations=9"],
        "ralph clean" => &["none"],
        name if name.starts_with("ralph ") => &["l"],
        _ => &["w"],
    };
    let wanted = |arg: &clap::Arg| arg.is_required_set() || words[0] == "ralph";
    let any = verb.get_positionals().any(wanted) || matches!(known[0], "--");
    if any { known.iter().map(OsString::from).collect() } else { vec![] }
}

/// Runs a command to its end, or ends it: some verbs wait for what does not happen here.
fn run(world: &World, mut command: Command, patience: Duration) -> Ran {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let err = world.path(format!("stderr-{}", RUNS.fetch_add(1, Ordering::Relaxed)));
    command.stderr(OpenOptions::new().create(true).append(true).open(&err).unwrap());
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if start.elapsed() > patience * 2 => signal(child.id(), Signal::SIGKILL),
            None if start.elapsed() > patience => signal(child.id(), Signal::SIGTERM),
            None => {}
        }
        std::thread::park_timeout(Duration::from_millis(2));
    };
    let said = std::fs::read(&err).unwrap_or_default();
    drop(std::fs::remove_file(&err));
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(!said.contains("panicked"), "{command:?}: {said}");
    if start.elapsed() < patience {
        assert_ne!(status.code(), Some(101), "{command:?}: {said}");
        assert!(status.code().is_some(), "{command:?} ended by {status}: {said}");
    }
    Ran { code: status.code(), out: String::new(), err: said }
}

/// How long a verb may take here.
const PATIENCE: Duration = Duration::from_secs(20);

/// `swarm WORDS…` behind a shell that does something to its streams.
fn redirected<S: AsRef<OsStr>>(world: &World, how: &str, words: &[S]) -> Command {
    let mut command = world.command("sh");
    command.arg("-c").arg(format!("exec \"$0\" \"$@\" {how}")).arg(SWARM).args(words).stdout(Stdio::null());
    command
}

/// A world with a worker `w` and a loop `l`.
fn world() -> World {
    let mut world = World::new();
    world.set("TMPDIR", world.path("work").display().to_string());
    world.write("PROMPT.md", "do it\n");
    world.spawn("w", &[], &["sh", "-c", "echo hello; exec cat"]).ok();
    world.spawn("l", &["--ralph", "--prompt-file", "PROMPT.md", "-n", "3", "-d"], &["cat", "-"]).ok();
    world
}

/// Returns the exit status of a verb that prints to a file, and the number of bytes that it prints.
fn plainly(world: &World, words: &[OsString]) -> (Option<i32>, u64) {
    let path = world.path("stdout");
    let mut command = world.command(SWARM);
    command.args(words).stdout(File::create(&path).unwrap());
    let code = run(world, command, PATIENCE).code;
    (code, std::fs::metadata(&path).unwrap().len())
}

/// Holds one command line to every kind of stream that takes or gives nothing. True when it prints something,
/// and so had to complain.
fn hold(world: &World, words: &[OsString]) -> bool {
    let (code, printed) = plainly(world, words);

    let mut full = world.command(SWARM);
    full.args(words).stdout(OpenOptions::new().write(true).open("/dev/full").unwrap());
    let full = run(world, full, PATIENCE);

    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut left = world.command(SWARM);
    left.args(words).stdout(writer);
    let left = run(world, left, PATIENCE);
    assert!(!left.err.to_lowercase().contains("broken pipe"), "{words:?}: {}", left.err);

    let mut codes = vec![];
    // A closed stream is as good as /dev/null, whichever way that was opened.
    for how in [">&-", "1<>/dev/null", "<&-", "2>&-", "2>/dev/full", "<&- >&- 2>&-"] {
        codes.push((how, run(world, redirected(world, how, words), PATIENCE).code));
    }

    // A verb that changes the world may have another result the second time.
    let again = plainly(world, words);
    let prints = printed > 0 && again.1 > 0;
    if again.0 != code {
        return false;
    }
    for (how, other) in codes {
        assert_eq!(other, code, "{words:?} {how}");
    }
    if prints {
        assert_eq!(full.code, Some(1), "{words:?} on a full disk: {}", full.err);
        assert!(full.err.contains("cannot write to standard output"), "{words:?}: {}", full.err);
        assert_eq!(left.code, Some(0), "{words:?} into a closed pipe: {}", left.err);
    }
    prints
}

#[test]
fn every_command_survives_closed_and_full_streams() {
    let w = world();
    let mut complained = 0;
    for (words, verb) in verbs() {
        if words[0] == "demo" {
            continue;
        }
        let words = [&words[..], &operands(&words, &verb)].concat();
        complained += usize::from(hold(&w, &words));
    }
    assert!(complained > 10, "{complained}");
}

#[test]
fn help_and_completions_survive_closed_and_full_streams() {
    let w = World::new();
    let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
    for some in
        [&["--help"][..], &["-h"], &["--version"], &["help"], &["help", "ralph", "set"], &[], &["no-such"]]
    {
        assert_eq!(hold(&w, &words(some)), !some.is_empty() && *some != ["no-such"], "{some:?}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(hold(&w, &words(&["completions", shell])));
    }
    for (verb, _) in verbs() {
        assert!(hold(&w, &[&verb[..], &["--help".into()]].concat()));
    }
}

#[test]
fn demo_with_a_closed_pipe_leaves_no_files() {
    let mut w = World::new();
    let tmp = w.path("tmp");
    std::fs::create_dir(&tmp).unwrap();
    w.set("TMPDIR", tmp.display().to_string());
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut demo = w.command(SWARM);
    demo.arg("demo").stdout(writer);
    let ran = run(&w, demo, PATIENCE);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let mut demo = w.command(SWARM);
    demo.arg("demo").stdout(OpenOptions::new().write(true).open("/dev/full").unwrap());
    let ran = run(&w, demo, PATIENCE);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let left: Vec<_> = std::fs::read_dir(&tmp).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn commands_work_with_any_term_columns_and_locale() {
    let mut w = world();
    let wide = "9".repeat(30);
    let odd = [
        ("TERM", ""),
        ("TERM", "no-such-terminal"),
        ("TERM", "\u{1b}[2J"),
        ("COLUMNS", "0"),
        ("COLUMNS", "1"),
        ("COLUMNS", "-1"),
        ("COLUMNS", &wide),
        ("COLUMNS", "4294967296"),
        ("LANG", "C"),
        ("LC_ALL", "C"),
        ("NO_COLOR", "1"),
    ];
    for (name, value) in odd {
        w.set(name, value);
        for words in [
            &["ls"][..],
            &["status", "w"],
            &["ralph", "ls"],
            &["--help"],
            &["help", "spawn"],
            &["peek", "w"],
            &["spawn", "--no-such"],
        ] {
            let ran = w.swarm(words);
            assert!(!ran.err.contains("panicked"), "{name}={value} {words:?}: {}", ran.err);
            assert_eq!(
                ran.code,
                Some(if words[0] == "spawn" { 2 } else { 0 }),
                "{name}={value} {words:?}: {}",
                ran.err
            );
        }
        w.unset(name);
    }
    let mut bare = w.command(SWARM);
    bare.env_remove("TERM").env_remove("LANG").env_remove("USER").arg("ls");
    w.run(bare).ok();
}

/// Values that nobody means.
fn odd_values() -> Vec<OsString> {
    vec![
        OsString::new(),
        OsString::from_vec(vec![b'a', 0xff, 0xfe]),
        "x".repeat(100_000).into(),
        "-".into(),
        "../..".into(),
        "a\nb\u{1b}[2J".into(),
        "18446744073709551616".into(),
        "0".into(),
    ]
}

/// Holds one command line to an end without a panic, and to an exit status that is documented. False when it
/// went on for longer than `patience`, and was ended.
fn ends_well(world: &World, words: &[OsString], patience: Duration) -> bool {
    let mut command = world.command(SWARM);
    command.args(words).stdout(Stdio::null());
    let start = Instant::now();
    let ran = run(world, command, patience);
    if start.elapsed() > patience {
        return false;
    }
    let shown = format!("{words:.200?}");
    assert!(matches!(ran.code, Some(0..=2 | 5)), "{shown:.400}: {:?} {}", ran.code, ran.err);
    if ran.code != Some(0) {
        assert!(ran.err.contains("swarm: ") || ran.err.is_empty(), "{shown:.400}: {}", ran.err);
    }
    true
}

/// Whether the command line's parser refuses these words. It does not see those of `hook` and `connect`.
fn is_refused(words: &[OsString]) -> bool {
    if words[0] == "hook" || words[0] == "connect" {
        return false;
    }
    let words = cli::as_meant([&[OsString::from("swarm")], words].concat());
    let Err(error) = Cli::from_words(&words) else { return false };
    assert_eq!(error.exit_code(), 2, "{words:.200?}");
    let shown = cli::explain(&words, &error).map_or_else(|| error.to_string(), |error| error.to_string());
    assert!(!shown.is_empty(), "{words:.200?}");
    true
}

/// Gives each argument of one verb each odd value.
fn hold_arguments(world: &World, words: &[OsString], verb: &clap::Command) {
    let mut patience = PATIENCE;
    for value in odd_values() {
        let operands = operands(words, verb);
        let mut refusal_shown = false;
        // A name of a tmux socket is a server outside of this world.
        let stays = |arg: &&clap::Arg| arg.get_action().takes_values() && arg.get_id() != "tmux_socket";
        for arg in verb.get_arguments().filter(stays) {
            let given = match arg.get_long() {
                Some(long) => {
                    let mut flag = OsString::from(format!("--{long}="));
                    flag.push(&value);
                    [words, &[flag], &operands].concat()
                }
                None => [words, &["--".into(), value.clone()]].concat(),
            };
            // The parser refuses most values: one process shows how a refusal ends.
            if is_refused(&given) && std::mem::replace(&mut refusal_shown, true) {
                continue;
            }
            if !ends_well(world, &given, patience) {
                // A verb that waited in vain will wait in vain again.
                patience = Duration::from_secs(1);
            }
        }
    }
}

#[test]
fn every_argument_survives_any_value() {
    let w = world();
    // The other verbs need the daemon that these would end; and a demo has no arguments.
    let left_out = |words: &[OsString]| words[0] == "demo" || words[0] == "daemon" && words[1] != "status";
    let verbs: Vec<_> = verbs().into_iter().filter(|(words, _)| !left_out(words)).collect();
    let ends = |words: &[OsString]| words[0] == "kill" || words[0] == "clean";
    let (last, first): (Vec<_>, Vec<_>) = verbs.into_iter().partition(|(words, _)| ends(words));
    let next = AtomicUsize::new(0);
    // Several at once: some of them wait in vain until their patience ends.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((words, verb)) = first.get(next.fetch_add(1, Ordering::Relaxed)) {
                    hold_arguments(&w, words, verb);
                }
            });
        }
    });
    for (words, verb) in &last {
        hold_arguments(&w, words, verb);
    }
    w.swarm(&["ls"]).ok();
}

#[test]
fn wrapper_survives_any_launch_file() {
    let w = World::new();
    let good = r#"{"argv":["true"],"env":{},"cwd":"/","stdin":null,"end_leftovers":false}"#;
    let cases = [
        (good.to_owned(), 0),
        (good.replace("[\"true\"]", "[]"), 127),
        (good.replace("\"true\"", "\"\""), 127),
        (good.replace("\"true\"", "\"true\",\"\\u0000\""), 127),
        (good.replace("{}", "{\"\":\"\",\"A=B\":\"C\"}"), 0),
        (good.replace("{}", "{\"A\":\"\\u0000\"}"), 127),
        (good.replace("\"/\"", "\"/no/such\""), 127),
        (good.replace("null", "\"/no/such\""), 127),
        (good[..30].to_owned(), 127),
        (String::new(), 127),
        ("[".repeat(100_000), 127),
    ];
    for (text, code) in cases {
        let dir = w.path("run");
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("launch.json"), &text).unwrap();
        let mut pane = w.command(SWARM);
        pane.arg("__pane").arg(&dir).stdout(Stdio::null());
        let ran = run(&w, pane, PATIENCE);
        assert_eq!(ran.code, Some(code), "{text:.200}: {}", ran.err);
        let record = swarm::wrapper::read_exit(&dir).expect("how it ended is written down");
        assert_eq!(record.code, Some(code), "{text:.200}");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
