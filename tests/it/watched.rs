//! Watched files: which files count as changed, and which belong to checks and caches.

use crate::cheats::error;
use crate::verified::{DONE, Desk};

#[test]
fn files_that_checks_and_caches_write_do_not_count_as_changed() {
    let d = Desk::new();
    d.commit(".gitignore", "*.log\nnode_modules\n");
    d.commit("tests/test_a.py", "assert True\n");
    d.commit("tests/a.snap", "1\n");
    // Writes a cache, a report with a new name, an ignored file and a snapshot, as test runners do.
    let check = "mkdir -p tests/__pycache__ tests/out; date +%N >tests/__pycache__/a.pyc; date >tests/out/$(date +%N).xml; \
                 date +%N >tests/run.log; date +%N >tests/a.snap; test -e fixed";
    let agent = d.agent(&[
        &format!("date +%N >tests/own.log; mkdir -p tests/node_modules; date >tests/node_modules/x; touch x; {DONE}"),
        &format!("git clean -qfdx tests; touch fixed; {DONE}"),
    ]);
    let result = d.result(0, &["--check", check, "--protect", "tests/**", "-n", "3"], &agent);
    assert_eq!((d.turns(), &result["stop_reason"]), (2, &"all_checks_passed".into()), "{result}");
    assert_eq!(error(&result, 1), "", "{result}");
    let prompt = d.prompt(1);
    assert!(prompt.contains("  - `tests/**`\n") && !prompt.contains("tests/test_a.py"), "{prompt}");
}

#[test]
fn tracked_or_named_files_are_watched_in_any_directory() {
    let d = Desk::new();
    d.commit("tests/target/a.py", "assert False\n");
    d.commit("tests/b.pyc", "1\n");
    std::fs::write(d.w.work().join(".git/info/exclude"), ".env\n").unwrap();
    std::fs::write(d.w.work().join(".env"), "KEY=1\n").unwrap();
    let agent = d.agent(&[&format!(
        "echo >tests/target/a.py; echo >tests/target/conftest.py; echo >tests/b.pyc; echo >.env; touch x; {DONE}"
    )]);
    let flags = ["--check", "true", "--protect", "tests/**", "--protect", ".env", "-n", "1"];
    let expected =
        "protected files were changed: .env, tests/b.pyc, tests/target/a.py, tests/target/conftest.py";
    assert_eq!(error(&d.result(1, &flags, &agent), 1), expected);
}

#[test]
fn ignore_rules_that_the_agent_adds_hide_no_file() {
    let d = Desk::new();
    d.commit("tests/test_a.py", "assert False\n");
    let agent = d.agent(&[&format!("echo conftest.py >.gitignore; touch tests/conftest.py fixed; {DONE}")]);
    let flags = ["--check", "test -e fixed", "--protect", "tests/**", "-n", "1"];
    assert_eq!(error(&d.result(1, &flags, &agent), 1), "protected files were changed: tests/conftest.py");
}

#[test]
fn a_file_that_is_replaced_while_the_checks_run_does_not_count() {
    let d = Desk::new();
    d.commit("tests/a.sh", "exit 1\n");
    d.commit("code.sh", "true\n");
    // The code under test replaces the test before it is read.
    let agent = d.agent(&[&format!("echo 'echo exit 0 >tests/a.sh' >code.sh; {DONE}")]);
    let flags = ["--check", ". ./code.sh; sh tests/a.sh", "--protect", "tests/**", "--allow-changed-checks"];
    d.result(0, &[&flags[..], &["-n", "1"]].concat(), &agent);

    let d = Desk::new();
    d.commit("tests/a.sh", "exit 1\n");
    d.commit("code/run", "true\n");
    let agent = d.agent(&[&format!("echo 'echo exit 0 >tests/a.sh' >code/run; {DONE}")]);
    let check = "eval \"$(cat code/run)\"; sh tests/a.sh";
    let result = d.result(1, &["--check", check, "--protect", "tests/**", "-n", "1"], &agent);
    assert_eq!(error(&result, 1), "protected files were changed while the checks ran: tests/a.sh");
}

#[test]
fn protected_directories_may_be_links() {
    let d = Desk::new();
    std::fs::create_dir_all(d.path("shared")).unwrap();
    std::fs::write(d.path("shared/a.sh"), "exit 1\n").unwrap();
    std::os::unix::fs::symlink(d.path("shared"), d.w.work().join("tests")).unwrap();
    let agent = d.agent(&[&format!("echo exit 0 >tests/a.sh; touch fixed; {DONE}")]);
    let result = d.result(1, &["--check", "test -e fixed", "--protect", "tests/**", "-n", "1"], &agent);
    assert_eq!(error(&result, 1), "protected files were changed: tests/a.sh");
}

#[test]
fn spec_outside_of_the_tree_is_watched() {
    let d = Desk::new();
    d.commit("spec.md", "make it right\n");
    let outside = d.path("spec.md").display().to_string();
    for (spec, flags) in
        [(outside, &[][..]), (d.w.work().join("spec.md").display().to_string(), &["--worktree"])]
    {
        std::fs::write(&spec, "make it right\n").unwrap();
        let agent = d.agent(&[&format!("echo 'nothing to do' >'{spec}'; touch x; {DONE}")]);
        let all = [&["--spec", &spec, "--check", "true", "-n", "1"], flags].concat();
        let result = d.result(1, &all, &agent);
        assert_eq!(error(&result, 1), format!("protected files were changed: {spec}"));
    }
}

#[test]
fn task_text_cannot_be_changed_by_the_agent() {
    let d = Desk::new();
    let task = d.w.swarm_dir().join("ralph/a/task.md").display().to_string();
    let agent = d.agent(&[&format!("echo 'nothing to do' >'{task}'"), DONE]);
    d.result(1, &["--check", "false", "-n", "2"], &agent);
    let prompt = d.prompt(2);
    assert!(prompt.contains("do the thing") && !prompt.contains("nothing to do"), "{prompt}");
}
