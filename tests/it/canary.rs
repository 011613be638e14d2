//! The canary: a test that swarm adds to prove that a check can fail, and that is never left in the tree.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::cheats::error;
use crate::verified::{DONE, Desk};
use crate::world::is_alive;

/// The check of [`project`].
pub(crate) const UNITTEST: &str = "python3 -m unittest discover -s tests";

/// The command that fixes [`project`].
pub(crate) const FIX: &str = "sed -i s/-/+/ calc.py";

/// A module with a fault, and two tests of it.
pub(crate) fn project() -> Desk {
    let d = Desk::new();
    d.commit(".gitignore", "__pycache__/\n");
    d.commit("calc.py", "def add(a, b):\n    return a - b\n");
    d.commit(
        "tests/test_calc.py",
        "import os\nimport sys\nimport unittest\n\nsys.path.insert(0, os.getcwd())\nfrom calc import add\n\n\n\
         class Calc(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n\n    \
         def test_zero(self):\n        self.assertEqual(add(0, 0), 0)\n",
    );
    d
}

/// The proofs of a layer in the last iteration: outcome and finding.
pub(crate) fn proofs(d: &Desk, layer: &str) -> Vec<(String, String)> {
    let report = d.w.swarm(&["report", "a", "--format", "json"]).ok().json();
    let last = report["iterations"].as_array().unwrap().last().unwrap();
    let of_layer =
        last["verdict"]["proofs"].as_array().unwrap().iter().filter(|proof| proof["layer"] == layer);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    of_layer.map(|proof| (text(&proof["outcome"]), text(&proof["found"]))).collect()
}

/// All files of the tree outside of `.git`, sorted.
fn files(root: &Path) -> Vec<String> {
    let mut found = vec![];
    for entry in fs::read_dir(root).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            let below = files(&path).into_iter().map(|file| path.join(file).display().to_string());
            found.extend(below);
        } else {
            found.push(path.display().to_string());
        }
    }
    found.retain(|path| !path.contains("/.git/"));
    found.sort();
    found
}

/// Insists that nothing of a canary is in the tree, in the snapshots, or in the loop's folder.
#[track_caller]
fn is_clean(d: &Desk) {
    let left: Vec<String> = files(&d.w.work()).into_iter().filter(|file| file.contains("canary")).collect();
    assert!(left.is_empty(), "{left:?}");
    for reference in d.git(&["for-each-ref", "--format=%(refname)", "refs/swarm"]).lines() {
        let tree = d.git(&["ls-tree", "-r", "--name-only", reference]);
        assert!(!tree.contains("canary"), "{reference}: {tree}");
    }
    assert!(!d.w.swarm_dir().join("ralph/a/canary.json").exists());
}

#[test]
fn honest_fix_completes_and_no_canary_file_is_left() {
    let d = project();
    let agent = d.agent(&[&format!("{FIX}; {DONE}")]);
    let ran = d.run(&["--check", UNITTEST, "-n", "1"], &agent).ok();
    assert!(ran.out.contains("running check 'canary: unittest' before the first iteration"), "{ran:?}");
    assert_eq!(proofs(&d, "canary"), [("holds".into(), "the check fails with a failing test".into())]);
    for iteration in [0, 1] {
        let output = d.kept(iteration, "canary-1.txt");
        assert!(output.contains("in test_swarm_canary_"), "{output}");
    }
    is_clean(&d);
}

#[test]
fn a_check_that_passes_although_a_test_fails_does_not_count() {
    for (cheat, expected) in [
        (
            r#"printf 'import os\nos.write(2, b"Ran 2 tests in 0.001s\\n\\nOK\\n")\nos._exit(0)\n' >calc.py"#,
            "the check passes although a test fails",
        ),
        // A module that shadows the runner.
        (
            r#"printf 'print("Ran 2 tests in 0.001s\\n\\nOK")\n' >unittest.py"#,
            "the check passes although a test fails",
        ),
        (
            "printf 'import os\\nos._exit(0)\\n' >calc.py",
            "the runner printed no count of tests; at the baseline, 2 tests ran",
        ),
    ] {
        let d = project();
        let agent = d.agent(&[&format!("{cheat}; {DONE}")]);
        // Otherwise the shadowing module is a watched file.
        let flags = ["--check", UNITTEST, "-n", "1", "--allow-changed-checks"];
        let result = d.result(1, &flags, &agent);
        assert_eq!(error(&result, 1), format!("{UNITTEST}: {expected}"), "{cheat}");
        assert_eq!(result["iterations"][0]["all_checks_passed"], true);
        is_clean(&d);
    }
}

#[test]
fn canary_that_the_check_does_not_run_is_reported_as_unproven() {
    let d = project();
    d.commit("tests/__init__.py", "");
    let agent = d.agent(&[&format!("{FIX}; {DONE}")]);
    let check = "python3 -m unittest tests.test_calc";
    let _ = d.run(&["--check", check, "-n", "1"], &agent).ok();
    d.w.swarm(&["why", "a"]).ok().says("unittest does not run a new test in tests or ./");
    assert_eq!(proofs(&d, "canary")[0].0, "unproven");
    is_clean(&d);

    let d = project();
    let agent = d.agent(&[&format!("{FIX}; {DONE}")]);
    let ran = d.run(&["--check", UNITTEST, "-n", "1", "--no-canary"], &agent).ok();
    assert!(!ran.out.contains("canary"), "{ran:?}");
}

/// A check that runs all scripts in `t`, unless there is a file `skip`.
fn scripts() -> Desk {
    let d = Desk::new();
    d.commit("t/a.sh", "test -e fixed\n");
    d.commit("run.sh", "[ -e skip ] && exit 0\nfor t in t/*.sh; do sh $t || exit 1; done\n");
    d
}

#[test]
fn users_canary_works_for_any_check() {
    let canary = "t/b.sh=echo {token}; exit 1";
    let flags = ["--check", "sh run.sh", "--canary", canary, "-n", "1"];
    for (work, code, outcome, found) in [
        ("touch fixed", 0, "holds", "the check fails with a failing test"),
        ("touch skip", 0, "unproven", "it is unknown whether it runs that test"),
    ] {
        let d = scripts();
        let agent = d.agent(&[&format!("{work}; {DONE}")]);
        let _ = d.run(&flags, &agent).code(code);
        let proofs = proofs(&d, "canary");
        assert!(proofs[0].0 == outcome && proofs[0].1.contains(found), "{work}: {proofs:?}");
        assert!(!d.w.work().join("t/b.sh").exists());
    }
    // The check passed before the first iteration, so the baseline shows that it runs the canary.
    let d = scripts();
    d.commit("fixed", "");
    let agent = d.agent(&[&format!("touch skip; {DONE}")]);
    let result = d.result(1, &flags, &agent);
    assert_eq!(error(&result, 1), "sh run.sh: the check passes although a test fails");
}

#[test]
fn canary_is_never_written_outside_of_the_tree() {
    let d = project();
    d.git(&["mv", "tests", "old"]);
    let outside = d.path("outside");
    fs::rename(d.w.work().join("old"), &outside).unwrap();
    std::os::unix::fs::symlink(&outside, d.w.work().join("tests")).unwrap();
    let before = files(&outside);
    let agent = d.agent(&[&format!("{FIX}; {DONE}")]);
    let _ = d.run(&["--check", UNITTEST, "-n", "1"], &agent).ok();
    let proofs = proofs(&d, "canary");
    assert!(
        proofs[0].0 == "unproven" && proofs[0].1.contains("is not in the worker's directory"),
        "{proofs:?}"
    );
    let mut after = files(&outside);
    after.retain(|file| !file.contains("__pycache__"));
    assert_eq!(after, before);
}

#[test]
fn canaries_that_cannot_work_are_refused_at_the_start() {
    let d = scripts();
    let agent = d.agent(&["true"]);
    for (flags, code, message, hint) in [
        (
            &["--canary", "t/a.sh=exit 1 # {token}"][..],
            2,
            "--canary: the file 't/a.sh' exists already",
            "name a new file",
        ),
        (&["--canary", "x.sh"], 2, "--canary requires PATH=TEXT", "example: --canary"),
        (
            &["--canary", "../x.sh={token}"],
            2,
            "requires a path in the worker's directory",
            "example: --canary",
        ),
        (&["--canary", "x.sh=exit 1"], 2, "--canary requires a text with {token}", "example: --canary"),
        (&["--canary", "x={token}", "--no-canary"], 2, "cannot be used with --no-canary", "omit one"),
        (
            &["--report", "xunit=a.xml"],
            2,
            "the formats are junit, tap, libtest",
            "--report junit=build/junit.xml",
        ),
        (&["--report", "junit"], 2, "--report requires FORMAT=PATH", "--report junit=build/junit.xml"),
    ] {
        let flags = [&["--check", "sh run.sh"], flags].concat();
        let ran = d.run(&flags, &agent).code(code);
        assert!(ran.err.contains(message) && ran.err.contains(hint), "{flags:?}: {ran:?}");
        assert_eq!(d.turns(), 0);
    }
}

#[test]
fn canary_is_removed_after_a_daemon_crash_at_any_point() {
    for word in ["canary_journal", "canary_written", "canary_run", "canary_removed"] {
        // At the baseline, and at the end of the iteration.
        for nth in [1, 2] {
            let mut d = project();
            d.w.set("SWARM_CRASH_AT", format!("{word}:{nth}"));
            let first = d.w.start_daemon();
            d.w.unset("SWARM_CRASH_AT");
            let agent = d.agent(&[&format!("{FIX}; {DONE}")]);
            let words = d.words(&["--check", UNITTEST, "-n", "2", "--detach"], &agent);
            let _ = d.w.swarm(&words);
            d.w.until("the daemon dies", || (!is_alive(first)).then_some(()));
            d.w.start_daemon();
            d.w.until_status("a", "done");
            is_clean(&d);
            assert_eq!(d.turns(), 1, "{word}:{nth}");
        }
    }
}

#[test]
fn running_canary_is_removed_after_a_kill_a_daemon_stop_or_a_crash() {
    for end in ["kill", "stop", "crash"] {
        let d = scripts();
        let (go, inside) = (d.path("go"), d.path("in"));
        let canary = format!(
            "t/b.sh=[ -e '{}' ] && touch '{}' && sleep 600; echo {{token}}; exit 1",
            go.display(),
            inside.display()
        );
        let agent = d.agent(&[&format!("touch fixed '{}'; {DONE}", go.display())]);
        let flags = ["--check", "sh run.sh", "--canary", &canary, "-n", "1", "--detach"];
        let _ = d.w.swarm(&d.words(&flags, &agent)).ok();
        d.w.until("the canary runs", || inside.exists().then_some(()));
        let file = d.w.work().join("t/b.sh");
        assert!(file.exists());
        let gone = || (!file.exists()).then_some(());
        match end {
            "kill" => drop(d.w.swarm(&["kill", "a"]).ok()),
            "stop" => drop(d.w.swarm(&["daemon", "stop"]).ok()),
            _ => d.w.crash_daemon(),
        }
        if end == "crash" {
            assert!(file.exists());
            fs::remove_file(&go).unwrap();
            d.w.start_daemon();
            d.w.until_status("a", "done");
        }
        d.w.until(end, gone);
        assert!(!d.w.swarm_dir().join("ralph/a/canary.json").exists(), "{end}");
    }
}

#[test]
fn canary_and_report_options_are_in_the_report() {
    let d = scripts();
    d.commit("fixed", "");
    let agent = d.agent(&[&format!("touch x; {DONE}")]);
    let flags = [
        "--check",
        "sh run.sh",
        "--canary",
        "./t/b.sh=echo {token}; exit 1",
        "--report",
        "tap=out.tap",
        "-n",
        "1",
    ];
    let _ = d.run(&flags, &agent).ok();
    let gates = &d.w.swarm(&["report", "a", "--format", "json"]).ok().json()["gates"];
    assert_eq!(gates["canaries"], json!([{"path": "t/b.sh", "text": "echo {token}; exit 1\n"}]));
    assert_eq!(gates["reports"], json!([{"format": "tap", "path": "out.tap"}]));
    assert_eq!(gates["no_canary"], false);
    assert_eq!(proofs(&d, "inventory"), [("unproven".into(), "out.tap: the check wrote no report".into())]);
}
