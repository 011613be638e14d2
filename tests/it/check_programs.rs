//! Checks whose program cannot run, and the other warnings at the start of a loop.

use std::fs;

use serde_json::Value;

use crate::verified::{DONE, Desk};

/// Writes a file of the tree that is not executable.
fn write_script(d: &Desk, name: &str, text: &str) {
    fs::write(d.w.work().join(name), text).unwrap();
}

#[test]
fn check_whose_program_cannot_run_is_refused_before_anything_starts() {
    let d = Desk::new();
    let agent = d.agent(&["true"]);
    write_script(&d, "closed.sh", "#!/bin/sh\n");
    let closed = d.w.work().join("closed.sh");
    let chmod = format!("hint: chmod +x {}\n", closed.display());
    let outside = d.path("closed");
    fs::write(&outside, "").unwrap();
    for (check, why, cure) in [
        (
            "no-such-program -q",
            "no such program: no-such-program",
            "hint: install it, or add its directory to PATH",
        ),
        ("./closed.sh", "./closed.sh is not executable", chmod.as_str()),
        (closed.to_str().unwrap(), "is not executable", chmod.as_str()),
        (outside.to_str().unwrap(), "is not executable", "hint: chmod +x "),
    ] {
        let ran = d.run(&["--check", "true", "--check", check], &agent).code(1);
        let ran =
            ran.warns(&format!("swarm: error: the check '{check}' cannot run: ")).warns(why).warns(cure);
        assert_eq!((ran.out.as_str(), d.turns(), d.w.status("a")), ("", 0, Value::Null), "{check}");
    }
    assert!(!d.w.swarm_dir().join("ralph/a").exists());
}

#[test]
fn command_outside_of_the_tree_whose_program_cannot_run_is_refused() {
    let d = Desk::new();
    let agent = d.agent(&["true"]);
    fs::create_dir(d.path("vault")).unwrap();
    fs::write(d.path("vault/closed.sh"), "#!/bin/sh\n").unwrap();
    let (vault, gone) = (d.path("vault").display().to_string(), d.path("gone.sh").display().to_string());
    for (option, command, what, why) in [
        ("--final-check", "no-such-program -q", "held-out check", "no such program: no-such-program"),
        ("--final-check", "./closed.sh", "held-out check", "./closed.sh is not executable"),
        ("--final-check", &gone, "held-out check", "gone.sh does not exist"),
        ("--setup", "no-such-program", "setup command", "no such program: no-such-program"),
    ] {
        let held_out = ["--check", "true", "--final-check", "sh closed.sh", "--hidden", &vault];
        let ran = d.run(&[&held_out[..], &[option, command]].concat(), &agent).code(1);
        ran.warns(&format!("swarm: error: the {what} '{command}' cannot run: ")).warns(why).warns("hint: ");
        assert_eq!((d.turns(), d.w.status("a")), (0, Value::Null), "{command}");
    }
    // The script of the hidden directory is found.
    let flags = ["--check", "true", "--final-check", "sh closed.sh", "--hidden", &vault, "-n", "1"];
    let ran = d.run(&flags, &d.agent(&[&format!("touch x; {DONE}")])).ok();
    assert!(!ran.err.contains("cannot run"), "{}", ran.err);
}

#[test]
fn script_that_does_not_exist_yet_is_a_warning_and_the_agent_may_write_it() {
    let d = Desk::new();
    let script = "printf '#!/bin/sh\\n' >check.sh; chmod +x check.sh";
    let agent = d.agent(&[&format!("{script}; {DONE}")]);
    let ran = d.run(&["--check", "./check.sh", "--check", "sh check.sh"], &agent).ok();
    let why = "cannot run: check.sh does not exist yet; the agent has to write it";
    ran.warns(&format!("the check './check.sh' {}", why.replace(": ", ": ./")))
        .warns(&format!("the check 'sh check.sh' {why}"));
}

#[test]
fn check_that_may_run_is_never_refused() {
    let mut d = Desk::new();
    let agent = d.agent(&[DONE]);
    let path = std::env::var("PATH").unwrap();
    write_script(&d, "closed.sh", "#!/bin/sh\n");
    for (check, variable) in [
        ("no-such-program || true", ("A", "b".to_owned())),
        ("$NO_SUCH_VARIABLE", ("A", "b".to_owned())),
        ("no-such-program 'a b'", ("A", "b".to_owned())),
        ("sh closed.sh", ("A", "b".to_owned())),
        (":", ("A", "b".to_owned())),
        ("helper", ("BASH_FUNC_helper%%", "() { true; }".to_owned())),
        ("helper", ("PATH", format!("{path}:{}/bin", d.w.work().display()))),
        ("helper", ("PATH", format!("{path}:node_modules/.bin"))),
    ] {
        d.w.set(variable.0, variable.1);
        let ran = d.run(&["--check", check, "-n", "1"], &agent);
        assert!(ran.out.contains("starting iteration 1/1"), "{check}: {}", ran.err);
        d.w.set("PATH", path.clone());
    }
    // The commit may have other permissions than the file here.
    let ran = d.run(&["--check", "./closed.sh", "-n", "1", "--worktree"], &agent).code(1);
    ran.warns("the check './closed.sh' cannot run: ./closed.sh is not executable")
        .says("starting iteration 1/1");
}

#[test]
fn loop_outside_of_git_gets_a_warning_at_the_start() {
    let d = Desk::without_git();
    let agent = d.agent(&[DONE]);
    let words = d.words(&["--check", "true", "-d"], &agent);
    d.w.swarm(&words)
        .ok()
        .warns("warning: the directory is not in a git repository: swarm takes no snapshots");
    let d = Desk::new();
    let ran = d.run(&["--check", "true"], &d.agent(&[&format!("touch x; {DONE}")])).ok();
    assert!(!ran.err.contains("git repository"), "{}", ran.err);
}

#[test]
fn loop_of_a_known_agent_without_permissions_gets_a_warning() {
    let mut d = Desk::new();
    let warning = "warning: claude may ask for permissions while you are away, and then wait; see its options \
        --dangerously-skip-permissions, --permission-mode, --allowedTools";
    let claude = d.agent_called("claude", &[DONE]);
    let warned = |d: &Desk, options: &[&str]| {
        let agent: Vec<String> =
            claude.iter().cloned().chain(options.iter().map(|o| (*o).to_owned())).collect();
        d.run(&["--check", "true", "-n", "1"], &agent).err.contains(warning)
    };
    assert!(warned(&d, &[]));
    assert!(!warned(&d, &["--dangerously-skip-permissions"]));
    d.w.set("CLAUDE_YES_ALWAYS", "1");
    assert!(!warned(&d, &[]));
    d.w.unset("CLAUDE_YES_ALWAYS");
    for file in [d.w.path("home/.claude/settings.json"), d.w.work().join(".claude/settings.local.json")] {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, r#"{"permissions": {"allow": ["Bash"]}}"#).unwrap();
        assert!(!warned(&d, &[]), "{}", file.display());
        fs::remove_file(file).unwrap();
    }
    // A worker that is not a loop has a person who answers.
    let ran = d.w.spawn("plain", &[], &[&claude[0], "-p"]).ok();
    assert!(!ran.err.contains("permissions"), "{}", ran.err);
}
