//! Held-out checks: what they refuse, what the agent learns of them, and the pause after too many tries.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::cheats::error;
use crate::verified::{DONE, Desk};
use crate::world::SWARM;

/// A project whose only visible test is `add 1 2`, and a hidden test with other numbers.
fn project() -> Desk {
    let d = Desk::new();
    d.commit("add.sh", "echo 0\n");
    d.commit("tests/a.sh", "test \"$(sh add.sh 1 2)\" = 3\n");
    fs::create_dir(d.path("vault")).unwrap();
    let hidden =
        "test -e vaulted.txt && test \"$(sh add.sh 20 22)\" = 42 || { echo 'SECRET: wrong sum'; exit 1; }\n";
    fs::write(d.path("vault/vaulted.sh"), hidden).unwrap();
    fs::write(d.path("vault/vaulted.txt"), "").unwrap();
    d
}

const CHECK: [&str; 2] = ["--check", "sh tests/a.sh"];
const HARD_CODED: &str = "echo 'echo 3' >add.sh";
const HONEST: &str = "echo 'echo $(($1 + $2))' >add.sh";

/// The options of the project's held-out check.
fn flags<'a>(vault: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&CHECK[..], &["--final-check", "sh vaulted.sh", "--hidden", vault], more].concat()
}

/// The files of the agent's tree, without git's.
fn tree(d: &Desk) -> Vec<String> {
    let mut find = d.w.command("find");
    find.args([".", "-path", "./.git", "-prune", "-o", "-type", "f", "-print"]);
    let mut files: Vec<String> = d.w.run(find).ok().out.lines().map(str::to_owned).collect();
    files.sort();
    files
}

#[test]
fn hard_coded_answers_fail_the_held_out_check_and_it_stays_hidden() {
    let d = project();
    let vault = d.path("vault").display().to_string();
    let look =
        format!("env >$D/env; '{SWARM}' report a --format json >$D/report; '{SWARM}' why a >>$D/report");
    let agent = d.agent(&[
        &format!("{HARD_CODED}; {DONE}"),
        &format!("{look}; touch b; {DONE}"),
        &format!("{HONEST}; {DONE}"),
    ]);
    let result = d.result(0, &flags(&vault, &["-n", "5"]), &agent);
    assert_eq!((d.turns(), &result["stop_reason"]), (3, &"all_checks_passed".into()), "{result}");
    assert_eq!(error(&result, 1), "the held-out check failed (try 1 of 3)");
    assert_eq!(error(&result, 2), "the held-out check failed (try 2 of 3)");
    assert!(d.prompt(2).contains("the held-out check failed (try 1 of 3)"), "{}", d.prompt(2));
    let all = [d.prompt(1), d.prompt(2), d.prompt(3), d.read("env"), d.read("args.2"), d.read("report")];
    let progress = fs::read_to_string(d.w.work().join(".swarm/ralph-progress.md")).unwrap();
    for text in all.iter().chain([&progress]) {
        assert!(!text.contains("vault") && !text.contains("SECRET"), "{text}");
    }
    assert!(d.read("report").contains("held_out"), "{}", d.read("report"));
    assert_eq!(tree(&d), ["./.swarm/ralph-progress.md", "./add.sh", "./b", "./tests/a.sh"]);
    // People find the output.
    assert_eq!(d.kept(1, "held-out-1.txt"), "SECRET: wrong sum\n");
    let output = d.w.swarm_dir().join("ralph/a/iterations/0001/held-out-1.txt");
    d.w.swarm(&["report", "a"]).ok().says(&format!("output: {}", output.display()));
    assert!(!d.w.swarm_dir().join("ralph/a/room").exists());
}

#[test]
fn a_test_that_contradicts_its_specification_is_never_complete() {
    let d = project();
    // The visible test was mutated: the specification says that the script adds.
    d.commit("tests/a.sh", "test \"$(sh add.sh 1 2)\" = 5\n");
    let vault = d.path("vault").display().to_string();
    let special = "echo 'case $1$2 in 12) echo 5;; *) echo $(($1 * $2));; esac' >add.sh; date +%N >>notes";
    let agent = d.agent(&[&format!("{special}; {DONE}")]);
    let result = d.result(1, &flags(&vault, &["-n", "9"]), &agent);
    assert_eq!((d.turns(), &result["paused_by"]), (3, &"held_out".into()), "{result}");
    assert_eq!(d.w.ralph_state("a")["reason"], "held_out");
    assert!(d.w.iterations_log("a").contains("[PAUSE] reason=held_out"));
    d.w.swarm(&["why", "a"])
        .ok()
        .says("paused (iteration 3/9): the held-out check failed in all tries")
        .says("fix the task");
    // The count is on disk, and each resume permits another round.
    d.w.crash_daemon();
    d.w.swarm(&["ralph", "resume", "a"]).ok();
    d.w.until("the second round ends", || (d.turns() == 6).then_some(()));
    d.w.until_status("a", "paused");
    assert!(d.prompt(6).contains("the held-out check failed (try 2 of 3)"), "{}", d.prompt(6));
}

#[test]
fn held_out_tries_count_across_daemon_crashes() {
    let d = project();
    let vault = d.path("vault").display().to_string();
    let wait = "test $n -ne 2 || while ! test -e $D/go; do sleep 0.05; done";
    let agent = d.agent(&[&format!("{HARD_CODED}; echo $n >>notes; {wait}; {DONE}")]);
    d.run(&flags(&vault, &["--final-tries", "2", "-n", "9", "-d"]), &agent).ok();
    d.w.until("the second iteration runs", || (d.turns() == 2).then_some(()));
    d.w.crash_daemon();
    d.w.start_daemon();
    fs::write(d.path("go"), "").unwrap();
    d.w.until_status("a", "paused");
    assert_eq!((d.turns(), &d.w.ralph_state("a")["reason"]), (2, &"held_out".into()));
}

#[test]
fn changed_held_out_files_fail_the_check_and_other_gates_run_first() {
    let d = project();
    let vault = d.path("vault").display().to_string();
    // The code under test replaces the hidden test, and an agent that links a directory writes nowhere else.
    fs::create_dir(d.path("vault/more")).unwrap();
    fs::write(d.path("vault/more/b.sh"), "sh add.sh 1 1 >/dev/null; sh vaulted.sh\n").unwrap();
    let cheat = "printf '%s\\n' 'test ! -e vaulted.sh || echo >vaulted.sh' 'echo 3' >add.sh; ln -s $D/out more; mkdir $D/out";
    let agent = d.agent(&[HARD_CODED, &format!("{cheat}; {DONE}")]);
    let flags = [
        &CHECK[..],
        &["--final-check", "sh more/b.sh", "--hidden", &vault, "--promise", "COMPLETE", "-n", "2"],
    ];
    let result = d.result(1, &flags.concat(), &agent);
    assert!(!error(&result, 1).contains("held-out"), "{result}");
    assert_eq!(error(&result, 2), "the held-out check failed (try 1 of 3)");
    d.w.swarm(&["report", "a"])
        .ok()
        .says("files of the held-out check were changed while it ran: vaulted.sh");
    assert_eq!(fs::read_dir(d.path("out")).unwrap().count(), 0);
}

#[test]
fn held_out_check_that_cannot_run_pauses_the_loop_and_uses_no_try() {
    let mut d = project();
    let vault = d.path("vault").display().to_string();
    let tools = d.path("tools");
    fs::create_dir(&tools).unwrap();
    let tool = tools.join("held-tool");
    let write_tool = || {
        fs::write(&tool, "#!/bin/sh\nexec sh vaulted.sh\n").unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o700)).unwrap();
    };
    write_tool();
    d.w.set("PATH", format!("{}:{}", tools.display(), std::env::var("PATH").unwrap()));
    let agent = d.agent(&[
        &format!("{HONEST}; rm $D/tools/held-tool; {DONE}"),
        &format!("mv $D/vault $D/elsewhere; {DONE}"),
        &format!("mkfifo $D/vault/pipe; {DONE}"),
        DONE,
    ]);
    let flags = [&CHECK[..], &["--final-check", "held-tool", "--hidden", &vault, "--final-tries", "1"]];
    let result = d.result(1, &flags.concat(), &agent);
    assert_eq!(result["paused_by"], "cannot_check");
    assert_eq!(error(&result, 1), "a check could not run");
    let why = |what: &str| d.w.swarm(&["why", "a"]).ok().says(what).says("next: fix that, then");
    why("paused (iteration 1/25): the held-out check 'held-tool' cannot run: no such program: held-tool");
    write_tool();
    d.w.swarm(&["ralph", "resume", "a"]).ok();
    d.w.until("the second iteration ends", || (d.turns() == 2).then_some(()));
    d.w.until_status("a", "paused");
    why(&format!("): the hidden directory '{vault}' does not exist"));
    assert!(!d.prompt(2).contains("held-tool") && !d.prompt(2).contains("vault"), "{}", d.prompt(2));
    fs::rename(d.path("elsewhere"), &vault).unwrap();
    d.w.swarm(&["ralph", "resume", "a"]).ok();
    d.w.until("the third iteration ends", || (d.turns() == 3).then_some(()));
    d.w.until_status("a", "paused");
    why("has a file that cannot be copied: ");
    fs::remove_file(d.path("vault/pipe")).unwrap();
    d.w.swarm(&["ralph", "resume", "a"]).ok();
    d.w.until_status("a", "done");
}

#[test]
fn hidden_files_in_another_worktree_of_the_repository_are_refused() {
    let d = project();
    d.git(&["worktree", "add", "-q", "../linked"]);
    d.git(&["worktree", "add", "-q", "../third"]);
    let linked = d.w.path("linked").display().to_string();
    let agent = d.agent(&[DONE]);
    for (cwd, dir) in
        [(&linked, "tests"), (&linked, ".git/info"), (&linked, "../third/tests"), (&linked, "../linked")]
    {
        let hidden = d.w.work().join(dir).display().to_string();
        let flags = [&CHECK[..], &["--final-check", "x", "--hidden", &hidden, "--cwd", cwd]].concat();
        let ran = d.run(&flags, &agent).code(2);
        let what =
            if dir == "../linked" { "where the agent works" } else { "which is of the same repository" };
        assert!(ran.err.contains(what), "{dir}: {}", ran.err);
    }
}

#[test]
fn invalid_held_out_options_are_refused_at_the_start() {
    let d = project();
    let vault = d.path("vault").display().to_string();
    fs::create_dir(d.w.work().join("inside")).unwrap();
    fs::write(d.w.work().join("inside/x"), "").unwrap();
    fs::create_dir(d.path("empty")).unwrap();
    let (file, above, empty) = (d.path("vault/vaulted.sh"), d.w.path("."), d.path("empty"));
    let [file, above, empty] = [file, above, empty].map(|path| path.display().to_string());
    let agent = d.agent(&[DONE]);
    let sub = d.w.work().join("tests").display().to_string();
    let of = |hidden: &'static str| ["--final-check", "make hidden", "--hidden", hidden];
    for (flags, message) in [
        (&of("nowhere")[..], "does not exist"),
        (&["--final-check", "x", "--hidden", &file], "is not a directory that can be read"),
        (&["--final-check", "x", "--hidden", &empty], "is empty"),
        (&of("inside"), "where the agent works"),
        (&[&of("inside")[..], &["--cwd", &sub]].concat(), "where the agent works"),
        (&["--final-check", "x", "--hidden", &above], "contains"),
        (&["--final-check", " sh tests/a.sh"], "a --final-check is the same command as a --check"),
        (&["--final-check", " "], "--final-check cannot be empty"),
        (&["--final-check", "x", "--final-tries", "0"], "--final-tries"),
        (&["--hidden", &vault], "--hidden has no effect without a --final-check"),
        (&["--final-tries", "3"], "--final-tries has no effect without a --final-check"),
        (&["--check", "sh tests/a.sh "], "the same --check is given twice"),
        (&["--setup", "npm ci"], "--setup has no effect without"),
        (&["--clean-check", "--setup", ""], "--setup cannot be empty"),
        (&["--fix", "nothing/**"], "--fix 'nothing/**' matches no file"),
        (&["--fix", "../**"], "--fix '../**' is not in the worker's directory"),
        (&["--fix", "a{"], "--fix 'a{' is not a valid glob"),
        (&["--fix", ""], "--fix cannot be empty"),
    ] {
        let all = [&CHECK[..], flags].concat();
        let ran = d.run(&all, &agent).code(2);
        assert!(ran.err.contains(message), "{flags:?}: {}", ran.err);
        assert!(ran.err.contains("hint: ") || flags.contains(&"0"), "{flags:?}: {}", ran.err);
    }
    assert_eq!(d.turns(), 0);

    let d = Desk::without_git();
    let agent = d.agent(&[DONE]);
    for flags in [&["--clean-check"][..], &["--final-check", "x"], &["--fix", "*"]] {
        let ran = d.run(&[&["--check", "true"], flags].concat(), &agent).code(2);
        assert!(ran.err.contains("is not in a git repository"), "{flags:?}: {}", ran.err);
    }
}
