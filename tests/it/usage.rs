//! Exit statuses that a script relies on: wrong use is 2 and names the cure, as every error of clap's; what the
//! documents word is 1; a reader that went away is no success of a loop.

use std::process::Stdio;

use serde_json::json;

use crate::verified::{DONE, Desk};
use crate::world::{SWARM, World};

#[test]
fn usage_errors_of_a_verified_loop_exit_with_2_and_a_hint() {
    let w = World::new();
    w.write("PROMPT.md", "Do task A\n");
    let spawn = ["spawn", "--name", "a", "--ralph", "--prompt-file", "PROMPT.md", "-n", "3"];
    let wrong: [(&[&str], &str); 26] = [
        (&["--check", ""], "hint: example: --check 'cargo test'"),
        (&["--check", "true", "--check", " \t"], "hint: example: --check 'cargo test'"),
        (&["--promise", ""], "hint: example: --promise COMPLETE"),
        (&["--promise", " "], "hint: example: --promise COMPLETE"),
        (&["--promise", "<promise>X</promise>"], "--promise: a promise cannot contain '<' or '>'"),
        (&["--check", "true", "--protect", "tests/[a"], "hint: for example --protect 'tests/**/*.py'"),
        (&["--check", "true", "--protect", "{a"], "hint: for example --protect 'tests/**/*.py'"),
        (
            &["--check", "true", "--protect", "/etc/*"],
            "hint: --protect accepts files in the worker's directory",
        ),
        (
            &["--check", "true", "--protect", "../t.sh"],
            "hint: --protect accepts paths below the worker's directory",
        ),
        (&["--check", "true", "--protect", ""], "hint: for example --protect 'tests/**/*.py'"),
        (&["--check", "true", "--protect", "./"], "hint: for example --protect 'tests/**/*.py'"),
        (&["--protect", "x"], "add the condition for a complete loop: --check COMMAND"),
        (&["--check-timeout", "0"], "at least 1s"),
        (&["--check-jobs", "0"], "give a whole number from 1 to 64"),
        (&["--check-jobs", "65"], "give a whole number from 1 to 64"),
        (&["--max-time", "0"], "at least 1s"),
        (&["--max-time", "1x"], "invalid duration '1x': use 90, 90s, 10m, 8h or 1h30m"),
        (&["--max-time", "-1"], "invalid duration '-1': use 90, 90s, 10m, 8h or 1h30m"),
        (&["--max-cost", "0"], "as in 2.50"),
        (&["--max-cost", "-5"], "the amount must be more than 0 and at most 1000000000, as in 2.50"),
        (&["--max-cost", "1e99"], "the amount must be more than 0 and at most 1000000000, as in 2.50"),
        (&["--max-tokens", "99999999999999999999"], "give a whole number from 1 to 18446744073709551615"),
        (&["--max-failures", "0"], "give a whole number from 1 to 4294967295"),
        (&["--iteration-timeout", "0m"], "at least 1s"),
        (&["--no-progress", "0"], "give a whole number from 1 to 4294967295"),
        (&["--prompt", "x"], "--prompt"),
    ];
    for (flags, cure) in wrong {
        let mut words = [&spawn[..], flags, &["--", "sh"]].concat();
        w.swarm(&words).code(2).warns("swarm: error: ").warns(cure);
        // A loop has a task and no prompt.
        if flags[0] != "--prompt" && flags != ["--protect", "x"] {
            words.splice(..spawn.len(), ["loop", "do it", "--check", "test -e done"]);
            w.swarm(&words).code(2).warns("swarm: error: ").warns(cure);
        }
    }
}

#[test]
fn loop_without_a_task_or_a_gate_is_a_usage_error() {
    let w = World::new();
    w.write("empty.md", "");
    w.write("blank.md", " \n\t\u{a0}\n");
    let wrong: [(&[&str], &str); 12] = [
        (&["loop", "", "--check", "true"], "hint: give the task as text, or as a file: --spec FILE"),
        (&["loop", " \n", "--check", "true"], "hint: give the task as text, or as a file: --spec FILE"),
        (&["loop", "--check", "true"], "hint: give the task as text, or as a file: --spec FILE"),
        (&["loop", "--spec", "empty.md", "--check", "true"], "the spec file is empty: empty.md"),
        (&["loop", "--spec", "blank.md", "--check", "true"], "the spec file is empty: blank.md"),
        (&["loop", "--spec", "/dev/null", "--check", "true"], "the spec file is empty: /dev/null"),
        (&["loop", "x"], "at least one --check"),
        (&["loop", "x", "--check", "true", "-n", "0"], "give a whole number from 1 to 100"),
        (&["loop", "x", "--check", "true", "-n", "101"], "give a whole number from 1 to 100"),
        (&["loop", "x", "--check", "true", "--agent", "nobody"], "hint: known agents: claude"),
        (&["loop", "x", "--check", "true", "--model", "m"], "hint: set the model in the command itself"),
        (&["loop", "x", "--check", "true", "--env", "=x"], "expected KEY=VALUE or KEY"),
    ];
    for (words, cure) in wrong {
        w.swarm(&[words, &["--", "sh"]].concat()).code(2).warns("swarm: error: ").warns(cure);
    }
    w.swarm(&["loop", "x", "--", "sh", "--check", "true"]).code(2).warns("hint: put --check before --");
    let ran = w.swarm(&["loop", "x", "--check", "true"]).code(2).warns("no command given");
    assert!(
        ran.err.contains("hint: example: swarm loop 'make") && !ran.err.contains("swarm spawn"),
        "{}",
        ran.err
    );
    let missing = ["loop", "--spec", "nosuch", "--check", "true", "--", "sh"];
    assert_eq!(w.swarm(&missing).code(1).err, "swarm: error: spec file not found: nosuch\n");
    let blank =
        ["spawn", "--name", "a", "--ralph", "--prompt-file", "blank.md", "-n", "1", "--check", "true"];
    w.swarm(&[&blank[..], &["--", "sh"]].concat()).code(1).warns("prompt file is empty: ");
    assert_eq!(w.swarm(&["ls", "--format", "json"]).ok().json(), json!([]), "nothing was made");
}

#[test]
fn usage_errors_of_loop_commands_exit_with_2_and_others_with_1() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("a", &agent, &["-n", "1"]);
    for (change, cure) in [
        ("max_iterations=0", "hint: as in max_iterations=20"),
        ("max_iterations=many", "hint: as in max_iterations=20"),
        ("inactivity_timeout=-1", "use 90, 90s, 10m, 8h or 1h30m"),
        ("gates=none", "hint: one of: max_iterations"),
        ("max_iterations", "as in max_iterations=20"),
    ] {
        w.swarm(&["ralph", "set", "a", change]).code(2).warns("swarm: error: ").warns(cure);
    }
    for words in [&["diff", "a", "0"][..], &["diff", "a", "x"], &["restore", "a", "-1"], &["restore", "a"]] {
        w.swarm(&[&["ralph"], words].concat()).code(2).warns("swarm: error: ");
    }
    let verbs = ["pause", "resume", "status", "diff", "approve", "logs", "clean", "set", "restore"];
    for verb in verbs {
        let more: &[&str] = match verb {
            "set" => &["max_iterations=9"],
            "restore" => &["1"],
            _ => &[],
        };
        let words = [&["ralph", verb, "nobody"], more].concat();
        w.swarm(&words).code(2).warns("swarm: error: no worker named 'nobody'\nhint: swarm ls\n");
    }
    agent.tell("exit 0");
    w.until_status("a", "done");
    let ran = w.swarm(&["ralph", "pause", "a"]).code(1);
    let message = "swarm: error: the loop of worker 'a' has ended (stopped)\nhint: ";
    assert!(ran.err.starts_with(message) && ran.out.is_empty(), "{}", ran.err);
}

#[test]
fn command_of_another_tool_gets_a_hint_and_exits_with_2() {
    let w = World::new();
    for (words, hint) in [
        (
            &["pause", "a"][..],
            "swarm: error: unknown command 'pause'\nhint: to pause a loop: swarm ralph pause NAME\n",
        ),
        (&["ps"], "swarm: error: unknown command 'ps'\nhint: to list workers: swarm ls\n"),
    ] {
        assert_eq!(w.swarm(words).code(2).err, hint);
    }
    w.swarm(&["statsu"]).code(2).warns("tip: a similar subcommand exists: 'status'");
    w.swarm(&["ralph", "stop"]).code(2).warns("swarm: error: unrecognized subcommand 'stop'\n");
}

#[test]
fn loop_with_a_closed_output_exits_with_1_silently() {
    let task: &[&str] = &["loop", "do it"];
    let file = &["spawn", "--ralph", "--prompt-file", "PROMPT.md", "-n", "1"];
    for (verb, flags) in [
        (task, &[][..]),
        (task, &["--quiet"]),
        (task, &["--format", "json"]),
        (file, &[]),
        (file, &["--format", "json"]),
    ] {
        let d = Desk::new();
        d.w.write("PROMPT.md", "Do task A\n");
        let agent = d.agent(&[&format!("touch x; {DONE}")]);
        let log = d.path("err");
        let unread = |words: Vec<String>| {
            let mut command = d.w.command(SWARM);
            command.args(words).stdout(Stdio::piped()).stderr(std::fs::File::create(&log).unwrap());
            let mut child = command.spawn().unwrap();
            drop(child.stdout.take());
            let status = d.w.until("it ends", || child.try_wait().unwrap());
            let said = d.read("err");
            assert!(!said.contains("error") && !said.to_lowercase().contains("pipe"), "{flags:?}: {said}");
            status.code()
        };
        let words = [verb, &["--name", "a", "--check", "true"], flags, &["--"]].concat();
        let words: Vec<String> = words.into_iter().map(str::to_owned).chain(agent).collect();
        assert_eq!(unread(words), Some(1), "{verb:?} {flags:?}");
        d.w.swarm(&["kill", "a"]).ok();
        assert_eq!(unread(["respawn", "a"].map(str::to_owned).to_vec()), Some(1), "{verb:?} {flags:?}");
    }
}
