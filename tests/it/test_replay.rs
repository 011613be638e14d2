//! The replay of changed tests: an iteration does not count if the changed tests alone made its check pass.

use crate::canary::{FIX, UNITTEST, project, proofs};
use crate::cheats::error;
use crate::clean_room::{check_processes, repository};
use crate::verified::{DONE, Desk};
use crate::world::is_alive;

/// Changes a test so that it expects the fault.
const EDIT: &str = "sed -i 's/add(1, 2), 3/add(1, 2), -1/' tests/test_calc.py";

const REFUSED: &str =
    "it passes only because tests were changed: with all other files as before, it passes too";
const HOLDS: &str = "the changed tests fail with the old files";

#[test]
fn changed_tests_that_pass_with_the_old_files_do_not_count() {
    for cheat in [
        EDIT.to_owned(),
        // Other changes, also a commit, do not hide it.
        format!("{EDIT}; echo '# done' >>calc.py; touch notes; git add -A; git commit -qm done"),
        format!("{EDIT}; git update-index --assume-unchanged tests/test_calc.py"),
        format!("mv tests checked; ln -s checked tests; {EDIT}"),
    ] {
        let d = project();
        let agent = d.agent(&[&format!("{cheat}; {DONE}")]);
        let result = d.result(1, &["--check", UNITTEST, "-n", "1"], &agent);
        assert_eq!(error(&result, 1), format!("{UNITTEST}: {REFUSED} (tests/test_calc.py)"), "{cheat}");
        assert!(!d.w.swarm_dir().join("ralph/a/room").exists());
    }
}

#[test]
fn tests_and_snapshots_of_an_unknown_runner_are_replayed() {
    for (work, code) in [
        ("echo 0 >tests/snap/expected", 1),
        ("rm tests/snap/expected", 1),
        ("git mv tests/snap tests/old; mkdir tests/snap; echo 0 >tests/snap/expected", 1),
        ("echo 2 >value; echo 2 >tests/snap/expected", 0),
    ] {
        let d = Desk::new();
        d.commit("value", "0\n");
        d.commit("tests/snap/expected", "1\n");
        d.commit("tests/run.sh", "[ ! -e tests/snap/expected ] || cmp value tests/snap/expected\n");
        d.commit("Makefile", "test:\n\tsh tests/run.sh\n");
        let agent = d.agent(&[&format!("{work}; {DONE}")]);
        let ran = d.run(&["--check", "make test", "-n", "1"], &agent);
        assert_eq!(ran.code, Some(code), "{work}: {ran:?}");
    }
}

#[test]
fn honest_changes_of_tests_count() {
    let new = "    def test_new(self):\\n        self.assertEqual(add(2, 2), 4)\\n";
    for (work, replayed) in [
        (format!("{FIX}; printf '\\n{new}' >>tests/test_calc.py"), vec![HOLDS]),
        // The tests move with a new name of the function.
        (format!("{FIX}; sed -i 's/add\\b/plus/' calc.py tests/test_calc.py"), vec![HOLDS]),
        (format!("{FIX}; printf 'import unittest\\n' >tests/test_new.py"), vec![]),
    ] {
        let d = project();
        let agent = d.agent(&[&format!("{work}; {DONE}")]);
        let ran = d.run(&["--check", UNITTEST, "-n", "1"], &agent);
        assert_eq!(ran.code, Some(0), "{work}: {ran:?}");
        let found: Vec<String> = proofs(&d, "red_replay").into_iter().map(|(_, found)| found).collect();
        assert_eq!(found, replayed, "{work}");
    }
    // Nothing failed before the loop: the task is to write tests.
    let d = project();
    d.commit("calc.py", "def add(a, b):\n    return a + b\n");
    let agent = d.agent(&[&format!("printf '\\n{new}' >>tests/test_calc.py; {DONE}")]);
    d.result(0, &["--check", UNITTEST, "-n", "1"], &agent);
    assert_eq!(proofs(&d, "red_replay"), []);
    // The user allows it.
    let d = project();
    let agent = d.agent(&[&format!("{EDIT}; {DONE}")]);
    d.result(0, &["--check", UNITTEST, "-n", "1", "--allow-changed-checks"], &agent);
}

#[test]
fn checkout_that_is_not_a_faithful_copy_proves_nothing() {
    let d = Desk::new();
    d.commit("value", "0\n");
    // The test reads the worker's directory, also in a room.
    d.commit("tests/value.sh", &format!("grep 1 '{}'\n", d.w.work().join("value").display()));
    d.commit("Makefile", "test:\n\tcat tests/*.sh | sh\n");
    let agent = d.agent(&[&format!("echo 1 >value; echo '# clean' >>tests/value.sh; {DONE}")]);
    d.result(0, &["--check", "make test", "-n", "1"], &agent);
    let found = "a fresh checkout of the old files passes too, so the changed tests prove nothing";
    assert_eq!(proofs(&d, "red_replay"), [("unproven".to_owned(), found.to_owned())]);
}

#[test]
fn replay_checkout_is_removed_after_a_daemon_crash() {
    for point in ["room:1", "room:2", "test_replay:1", "concluded:1"] {
        let mut d = project();
        let before = (repository(&d), d.git(&["status", "--porcelain"]));
        d.w.set("SWARM_CRASH_AT", point);
        let first = d.w.start_daemon();
        d.w.unset("SWARM_CRASH_AT");
        let agent = d.agent(&[&format!("{EDIT}; git commit -qam 1; {DONE}")]);
        let _ = d.run(&["--check", UNITTEST, "-n", "1", "-d"], &agent);
        d.w.until(&format!("the daemon dies at {point}"), || (!is_alive(first)).then_some(()));
        d.w.start_daemon();
        d.w.until_status("a", "failed");
        d.w.swarm(&["why", "a"]).ok().says(REFUSED);
        assert!(!d.w.swarm_dir().join("ralph/a/room").exists(), "{point}");
        assert_eq!(check_processes(&d), Vec::<String>::new(), "{point}");
        assert_eq!((repository(&d), d.git(&["status", "--porcelain"])), before, "{point}");
        assert_eq!(d.turns(), 1, "{point}");
    }
}

#[test]
fn changed_tests_count_after_approval() {
    let d = project();
    let go = d.path("go");
    nix::unistd::mkfifo(&go, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let wait = format!("touch x \"$D/asked\"; read line <'{}'; {DONE}", go.display());
    let agent = d.agent(&[&format!("{EDIT}; {DONE}"), &wait]);
    let mut follower = d.w.follow(&d.words(&["--check", UNITTEST, "-n", "3"], &agent));
    d.w.until("the second iteration runs", || d.path("asked").exists().then_some(()));
    assert!(d.prompt(2).contains(REFUSED), "{}", d.prompt(2));
    let why = d.w.swarm(&["why", "a"]).ok().says(REFUSED);
    assert!(why.out.contains("to accept them: swarm ralph approve a"), "{}", why.out);
    d.w.swarm(&["ralph", "approve", "a"]).ok().says(REFUSED);
    let why = d.w.swarm(&["why", "a"]).ok();
    assert!(!why.out.contains("approve a"), "{}", why.out);
    d.w.swarm(&["ralph", "approve", "a"]).ok().warns("has changed");
    std::fs::write(&go, "go\n").unwrap();
    assert_eq!(follower.wait(&d.w), 0, "{}", follower.output());
    assert_eq!(d.turns(), 2);
}
