//! Agents that take the short cut: they change what is measured, or say the words where they count for nothing.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::promises::printed;
use crate::verified::{DONE, Desk};
use crate::world::SWARM;

/// The error of an iteration in a result.
#[track_caller]
pub(crate) fn error(result: &Value, iteration: usize) -> String {
    result["iterations"][iteration - 1]["error"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn edited_check_script_does_not_count_until_a_person_approves_it() {
    let d = Desk::new();
    d.commit("check.sh", "exit 1\n");
    let approve = format!("'{SWARM}' ralph approve a >>\"$D/approve\" 2>&1");
    let go = d.path("go");
    nix::unistd::mkfifo(&go, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let agent = d.agent(&[
        &format!("echo 'exit 0' >check.sh; {approve}; {DONE}"),
        &format!("{approve}; touch x \"$D/asked\"; read line <'{}'; {DONE}", go.display()),
    ]);
    let mut follower = d.w.follow(&d.words(&["--check", "sh check.sh", "-n", "5"], &agent));
    d.w.until("the second iteration tried too", || d.path("asked").exists().then_some(()));
    let refused = "swarm: error: worker 'a' may not approve its own changes\n";
    assert_eq!(d.read("approve").matches(refused).count(), 2, "{}", d.read("approve"));
    assert!(d.prompt(2).contains("- protected files were changed: check.sh\n"), "{}", d.prompt(2));
    let why = d.w.swarm(&["why", "a"]).ok().says("FAIL  protected files were changed: check.sh");
    assert!(why.out.contains("to accept them: swarm ralph approve a"), "{}", why.out);
    d.w.swarm(&["report", "a"]).ok().says("protected files were changed: check.sh");
    d.w.swarm(&["ralph", "approve", "a"]).ok().says("approved check.sh\n");
    std::fs::write(&go, "go\n").unwrap();
    assert_eq!(follower.wait(&d.w), 0, "{}", follower.output());
    assert_eq!(d.turns(), 2);
}

#[test]
fn checks_and_detached_processes_of_the_agent_cannot_approve() {
    let d = Desk::new();
    d.commit("check.sh", "exit 1\n");
    // Runs `ralph approve` from within the check, and from a process that is no longer below the pane.
    let approve =
        format!("SWARM_DIR='{}' '{SWARM}' ralph approve a >>\"$D/said\" 2>&1", d.w.swarm_dir().display());
    let detached = format!(
        "(setsid sh -c '{}; touch \"$D/tried\"' &); until [ -e \"$D/tried\" ]; do sleep 0.02; done",
        approve.replace('\'', "")
    );
    let agent = d.agent(&[
        &format!(
            "export D; cat >check.sh <<EOF\n{}\nexit 0\nEOF\n{DONE}",
            approve.replace("$D", &d.path("").display().to_string())
        ),
        &format!("export D; touch x; {detached}; {DONE}"),
    ]);
    let result = d.result(1, &["--check", "sh check.sh", "-n", "2"], &agent);
    for iteration in [1, 2] {
        assert_eq!(error(&result, iteration), "protected files were changed: check.sh");
    }
    let said = d.read("said");
    assert_eq!(
        said.matches("swarm: error: worker 'a' may not approve its own changes\n").count(),
        3,
        "{said}"
    );
    assert!(!said.contains("approved"), "{said}");
}

#[test]
fn loop_with_a_deleted_or_damaged_baseline_fails_and_takes_no_approval() {
    for spoil in ["rm -f", "truncate -s 3"] {
        let d = Desk::new();
        d.commit("check.sh", "exit 1\n");
        let base = d.w.swarm_dir().join("ralph/a/base.json");
        let agent = d.agent(&[&format!("echo 'exit 0' >check.sh; {spoil} '{}'; {DONE}", base.display())]);
        let result = d.result(1, &["--check", "sh check.sh", "-n", "5", "--max-failures", "1"], &agent);
        assert_eq!((d.turns(), &result["stop_reason"]), (1, &"failed".into()), "{spoil}");
        let error = error(&result, 1);
        assert!(error.contains("no baseline to compare with: '"), "{error}");
        assert!(error.contains("(start the loop again: swarm respawn a)"), "{error}");
        d.w.swarm(&["why", "a"]).ok().says("FAIL  the agent was not started: no baseline");
        d.w.swarm(&["ralph", "approve", "a"]).code(1).warns("no baseline to compare with");
    }
}

/// A shell command that edits a file below SWARM_DIR.
fn forge(d: &Desk, file: &str, from: &str, to: &str) -> String {
    let path = d.w.swarm_dir().join(file);
    format!("sed -i 's/{from}/{to}/' '{}'", path.display())
}

#[test]
fn verdict_written_by_the_agent_is_ignored() {
    let d = Desk::new();
    let verdict = r#"{"checks":[{"name":"false","passed":true,"output":"","seconds":0.1}]}"#;
    let run = d.w.swarm_dir().join("runs/a.1").display().to_string();
    let output = r#"{"output":"nothing"}"#;
    let agent =
        d.agent(&[&format!("echo '{verdict}' >'{run}/verdict'; echo '{output}' >'{run}/output'; echo \"the agent's last words\"; {DONE}")]);
    let ran = d.run(&["--check", "false", "-n", "1"], &agent).code(1).says("the check 'false' failed");
    for file in ["verdict", "output"] {
        let message = format!("runs/a.1/{file}' was ignored: swarm did not write it");
        assert!(ran.out.contains(&message), "{ran:?}");
    }
    d.w.swarm(&["logs", "a"]).ok().says("the agent's last words");
}

#[test]
fn baseline_or_result_edited_by_the_agent_does_not_count() {
    let d = Desk::new();
    d.commit("check.sh", "exit 1\n");
    let agent = d.agent(&[&format!(
        "{}; {DONE}",
        forge(&d, "ralph/a/base.json", "\"passed\": false", "\"passed\": true")
    )]);
    let result = d.result(1, &["--check", "sh check.sh", "--max-failures", "1", "-n", "2"], &agent);
    assert_eq!((d.turns(), &result["stop_reason"]), (1, &"failed".into()), "{result}");
    assert!(error(&result, 1).contains("no baseline to compare with: '"), "{result}");

    let d = Desk::new();
    let edit = forge(&d, "ralph/a/iterations/0001/result.json", "\"name\": \"false\"", "\"name\": \"true\"");
    let agent = d.agent(&["true", &format!("{edit}; {DONE}")]);
    d.result(1, &["--check", "false", "-n", "3"], &agent);
    let report = d.w.swarm(&["report", "a", "--format", "json"]).ok().json();
    let known: Vec<&Value> =
        report["iterations"].as_array().unwrap().iter().map(|it| &it["iteration"]).collect();
    assert_eq!(known, [&json!(2), &json!(3)], "{report}");
}

#[test]
fn record_changed_while_no_daemon_ran_is_set_aside() {
    let d = Desk::new();
    let agent = d.agent(&["true"]);
    d.result(1, &["--check", "false", "-n", "1"], &agent);
    d.w.swarm(&["daemon", "stop"]).ok();
    let path = d.w.swarm_dir().join("workers/a.json");
    let record = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, record.replace("\"false\"", "\"true\"")).unwrap();
    let listed = d.w.swarm(&["ls"]).ok();
    assert!(listed.err.contains("another program changed it: its signature is wrong"), "{listed:?}");
    // The file and the loop's folder are still there.
    let kept = std::fs::read_dir(d.w.swarm_dir().join("workers")).unwrap();
    let kept: Vec<String> = kept.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(kept.iter().any(|name| name.starts_with("a.json.corrupt-")), "{kept:?}");
    assert!(d.w.swarm_dir().join("ralph/a/base.json").exists());
}

#[test]
fn deleted_signing_key_loses_no_worker() {
    let d = Desk::new();
    let key = d.w.swarm_dir().join("signing-key");
    let agent = d.agent(&["true"]);
    d.result(1, &["--check", "false", "-n", "1"], &agent);
    let before = std::fs::read(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    d.w.until("the daemon has written the key again", || key.exists().then_some(()));
    assert_eq!(std::fs::read(&key).unwrap(), before);
    d.w.swarm(&["daemon", "stop"]).ok();
    std::fs::remove_file(&key).unwrap();
    let listed = d.w.swarm(&["ls"]).ok().says("max iterations");
    assert!(listed.err.contains("signing-key' was missing or damaged"), "{listed:?}");
    assert_eq!(
        d.w.swarm(&["report", "a", "--format", "json"]).ok().json()["iterations"].as_array().unwrap().len(),
        1
    );
}

/// A program of that name outside of the tree, as the word of a check: it passes where `file` holds `OK`.
fn builder(d: &Desk, name: &str, file: &str) -> String {
    let path = d.path(name);
    std::fs::write(&path, format!("#!/bin/sh\ngrep -q OK {file}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("'{}' test", path.display())
}

#[test]
fn changed_make_target_needs_approval() {
    let d = Desk::new();
    d.commit("Makefile", "test:\n\tfalse\n");
    let check = builder(&d, "make", "Makefile");
    let agent = d.agent(&[&format!("printf '\\ttrue # OK\\n' >>Makefile; {DONE}")]);
    let result = d.result(1, &["--check", &check, "-n", "1"], &agent);
    assert_eq!(error(&result, 1), "protected files were changed: Makefile (target test)");
    d.w.swarm(&["why", "a"]).ok().says("watched: Makefile (target test)\n");
    assert!(d.prompt(1).contains("The configuration of make and the programs"), "{}", d.prompt(1));
}

#[test]
fn only_the_scripts_of_package_json_are_watched() {
    let package =
        |scripts: &str, more: &str| format!(r#"{{"scripts":{{"test":"{scripts}"}},"more":"{more}"}}"#);
    for (scripts, code, expected) in
        [("jest", 0, ""), ("true", 1, "protected files were changed: web/package.json (scripts.test)")]
    {
        let d = Desk::new();
        d.commit("web/package.json", &package("jest", ""));
        let check = format!("cd web && {}", builder(&d, "npm", "package.json"));
        let agent = d.agent(&[&format!("echo '{}' >web/package.json; {DONE}", package(scripts, "OK"))]);
        let result = d.result(code, &["--check", &check, "-n", "1"], &agent);
        assert_eq!(error(&result, 1), expected);
    }
}

#[test]
fn checks_without_watched_files_are_warned_about_once_and_in_why() {
    let d = Desk::new();
    d.commit("tests/a.sh", "exit 0\n");
    d.commit("check.sh", "exit 0\n");
    let agent = d.agent(&[&format!("date +%N >>x; {DONE}")]);
    let bare = "swarm: warning: no file of 'true' and 1 more check is watched: an iteration may change what is tested";
    let ran = d.run(&["--check", "true", "--check", "sh check.sh", "--check", "test -e x"], &agent).ok();
    assert_eq!((ran.err.matches(bare).count(), ran.out.matches("no file of '").count()), (1, 0), "{ran:?}");
    d.w.swarm(&["why", "a"]).ok().says("watched: check.sh\n");
    d.w.swarm(&["report", "a"])
        .ok()
        .says("- watched: check.sh\n")
        .says("- warning: no file of 'true' and 1 more check is watched");
    // A user who named files has chosen them; a pattern that matches no file still gets a warning.
    let ran = d.run(&["--check", "true", "--protect", "tests/**"], &agent).ok();
    assert!(!ran.err.contains("warning"), "{}", ran.err);
    d.w.swarm(&["why", "a"]).ok().says("watched: tests/a.sh\n");
    let _ = d
        .run(&["--check", "true", "--protect", "test/**"], &agent)
        .ok()
        .warns("--protect 'test/**' matches no file")
        .warns("no file of 'true' is watched: ");
    d.w.swarm(&["why", "a"])
        .ok()
        .says("watched: no file; --protect matches none\n")
        .says("warning: --protect 'test/**' matches no file");
    for flag in ["--quiet", "--allow-changed-checks"] {
        let ran = d.run(&["--check", "true", flag], &agent).ok();
        assert!(!ran.err.contains("warning"), "{}", ran.err);
    }
    d.w.swarm(&["why", "a"]).ok().says("watched: no file, because of --allow-changed-checks\n");
    // A client that does not follow gets the warning too.
    let words = d.words(&["--check", "true", "--detach"], &agent);
    d.w.swarm(&words).ok().warns("no file of 'true' is watched");
    d.w.until_status("a", "done");
    assert!(!d.w.iterations_log("a").contains("WARN"), "{}", d.w.iterations_log("a"));
}

#[test]
fn restored_check_script_counts_as_unchanged() {
    let d = Desk::new();
    d.commit("ci/check.sh", "test -e fixed\n");
    let agent = d.agent(&[
        &format!("echo 'exit 0' >ci/check.sh; {DONE}"),
        &format!("rm ci/check.sh; touch fixed; {DONE}"),
        &format!("git checkout -q ci/check.sh; {DONE}"),
    ]);
    let result = d.result(0, &["--check", "cd . && bash -e ./ci/check.sh"], &agent);
    assert_eq!(result["total_iterations"], 3);
    for iteration in [1, 2] {
        assert_eq!(error(&result, iteration), "protected files were changed: ci/check.sh");
    }
}

#[test]
fn changed_checks_count_with_allow_changed_checks() {
    let d = Desk::new();
    d.commit("check.sh", "exit 1\n");
    let agent = d.agent(&[&format!("echo 'exit 0' >check.sh; {DONE}")]);
    let result = d.result(0, &["--check", "sh check.sh", "-n", "1", "--allow-changed-checks"], &agent);
    assert_eq!((&result["success"], error(&result, 1)), (&true.into(), String::new()));
}

#[test]
fn deleted_failing_test_does_not_complete_the_loop() {
    let d = Desk::new();
    d.commit("tests/good.sh", "exit 0\n");
    d.commit("tests/deep/bad.sh", "exit 1\n");
    let check = "for t in $(find tests -name '*.sh'); do sh $t || exit 1; done";
    let agent = d.agent(&[&format!("rm tests/deep/bad.sh; echo 'exit 0' >tests/new.sh; {DONE}")]);
    let flags = ["--check", check, "--protect", "tests/**/*.sh", "-n", "1"];
    let result = d.result(1, &flags, &agent);
    assert_eq!(result["iterations"][0]["all_checks_passed"], true);
    assert_eq!((&result["success"], &result["stop_reason"]), (&false.into(), &"max_iterations".into()));
    assert_eq!(error(&result, 1), "protected files were changed: tests/deep/bad.sh, tests/new.sh");
    d.w.swarm(&["why", "a"]).ok().says("tests/deep/bad.sh, tests/new.sh");
}

#[test]
fn changed_spec_in_the_tree_needs_approval() {
    let d = Desk::new();
    d.commit("spec.md", "make it right\n");
    let agent = d.agent(&[&format!("echo 'nothing to do' >spec.md; {DONE}")]);
    let result = d.result(1, &["--spec", "spec.md", "--check", "true", "-n", "1"], &agent);
    assert_eq!(error(&result, 1), "protected files were changed: spec.md");
}

#[test]
fn promise_outside_of_the_agents_text_does_not_count() {
    let d = Desk::new();
    let tag = "<promise>COMPLETE</promise>";
    let said = |message: Value| json!({"type": "assistant", "message": message, "session_id": "s"});
    let tool = said(
        json!({"id": "m1", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": format!("echo '{tag}'")}}]}),
    );
    let of_tool = json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": tag}]}});
    let words = said(json!({"id": "m2", "content": [{"type": "text", "text": "I ran it."}]}));
    let mut of_sub_agent = said(json!({"id": "m3", "content": [{"type": "text", "text": tag}]}));
    of_sub_agent["parent_tool_use_id"] = "t1".into();
    let result = |text: &str| json!({"type": "result", "subtype": "success", "is_error": false, "result": text, "session_id": "s"});
    let refused = json!({"type": "result", "subtype": "success", "is_error": true, "result": format!("API Error: {tag}"), "session_id": "s"});
    let silent = "find=; while [ $# -gt 0 ]; do [ \"$1\" = --session-id ] && id=$2; shift; done; mkdir -p ~/.claude/projects/p";
    let shapes = [
        (
            "claude",
            "in a tool result",
            printed(&[tool.clone(), of_tool.clone(), words.clone(), result("I ran it.")]),
        ),
        (
            "claude",
            "in a sub-agent's words",
            printed(&[tool.clone(), of_sub_agent, words, result("I ran it.")]),
        ),
        ("claude", "in an error of its API", printed(&[tool.clone(), refused])),
        // The transcript has no words; on the screen stands what a tool printed.
        (
            "claude",
            "on the screen beside a record",
            format!(
                "{silent}; ({}) >~/.claude/projects/p/$id.jsonl; echo '{tag}'",
                printed(&[tool, of_tool])
            ),
        ),
        ("agent", "in the prompt's echo", "cat \"$D/prompt.$n\"".into()),
        ("agent", "in a longer line", format!("echo 'I shall say {tag} later'")),
        (
            "agent",
            "in other words",
            "echo '<promise>complete</promise>'; echo '<promise> COMPLETE </promise>'".into(),
        ),
        ("agent", "in the output of an iteration before", "true".into()),
    ];
    for (name, what, turn) in shapes {
        let agent = d.agent_called(name, &[&format!("date +%N >>x\n{turn}")]);
        let result = d.result(1, &["--check", "true", "-n", "1"], &agent);
        let it = &result["iterations"][0];
        assert_eq!(
            (&it["all_checks_passed"], &it["completion_tag_found"]),
            (&true.into(), &false.into()),
            "{what}"
        );
        d.w.swarm(&["why", "a"]).ok().says("FAIL  the promise was not given");
    }
}

#[test]
fn protect_accepts_an_absolute_path_and_detects_a_changed_mode() {
    let d = Desk::new();
    d.commit("t/run.sh", "exit 1\n");
    let whole = d.w.work().join("t/run.sh");
    let agent = d.agent(&[&format!("chmod 755 t/run.sh; {DONE}")]);
    let flags = ["--check", "true", "--protect", whole.to_str().unwrap(), "-n", "1"];
    assert_eq!(error(&d.result(1, &flags, &agent), 1), "protected files were changed: t/run.sh");
    d.run(&["--check", "true", "--protect", "/etc/*"], &agent).code(2).warns("is not in ");
}

#[test]
fn new_scripts_and_files_that_are_only_read_are_not_watched() {
    let d = Desk::new();
    d.commit("TODO.md", "open\n");
    let agent = d.agent(&[&format!("echo DONE >TODO.md; echo 'exit 0' >main.sh; {DONE}")]);
    let flags = ["--check", "grep -q DONE < TODO.md", "--check", "sh main.sh", "-n", "1"];
    assert_eq!(d.result(0, &flags, &agent)["stop_reason"], "all_checks_passed");
    assert!(!d.prompt(1).contains("must stay as they are"), "{}", d.prompt(1));
}

/// An agent that tries to have its loop steered, and waits until that was tried; what was said stands in `said`.
fn steering(d: &Desk, how: &str) -> Vec<String> {
    d.agent(&[&format!(
        "exec 2>>\"$D/trouble\"; {how}\nuntil [ -e \"$D/tried\" ]; do sleep 0.02; done; {DONE}"
    )])
}

/// Shell text that runs a swarm command from a place that knows only where swarm is.
fn from_elsewhere(d: &Desk, verb: &str) -> String {
    let (dir, said, tried) = (d.w.swarm_dir(), d.path("said"), d.path("tried"));
    format!("SWARM_DIR={} {SWARM} {verb} >>{} 2>&1; touch {}", dir.display(), said.display(), tried.display())
}

#[test]
fn loop_cannot_be_controlled_from_swarms_tmux_server() {
    let verbs = ["ralph approve a", "ralph resume a", "ralph set a max_iterations=9", "respawn a"];
    let doors = ["new-window -d", "split-window -d -t swarm:a", "run-shell -b", "new-session -d -s mine"];
    for (verb, door) in verbs.into_iter().zip(doors) {
        let d = Desk::new();
        d.commit("check.sh", "exit 1\n");
        let socket = d.w.tmux_socket();
        let how = format!(
            "echo 'exit 0' >check.sh; tmux -S '{}' {door} '{}'",
            socket.display(),
            from_elsewhere(&d, verb)
        );
        let result = d.result(1, &["--check", "sh check.sh", "-n", "1"], &steering(&d, &how));
        assert_eq!(error(&result, 1), "protected files were changed: check.sh", "{}", d.read("trouble"));
        let said = d.read("said");
        assert!(
            said.starts_with(
                "swarm: error: this request comes from inside swarm's tmux server and could be from worker 'a'"
            ),
            "{said}"
        );
        assert!(said.contains("hint: run the command in your own terminal"), "{said}");
    }
}

#[test]
fn worker_spawned_by_the_agent_cannot_approve_for_it() {
    let d = Desk::new();
    d.commit("check.sh", "exit 1\n");
    let (socket, dir) = (d.w.tmux_socket(), d.w.swarm_dir());
    // `b` by the agent itself, and by a window of swarm's tmux server; `b` spawns `c`, which approves.
    for (n, door) in [(1, String::new()), (2, format!("tmux -S '{}' new-window -d ", socket.display()))] {
        let script = |name: &str, text: &str| {
            let path = d.path(&format!("{name}{n}.sh"));
            std::fs::write(&path, text).unwrap();
            format!("sh '{}'", path.display())
        };
        let approve = script("c", &from_elsewhere(&d, "ralph approve a"));
        let inner = script("b", &format!("'{SWARM}' spawn --name c{n} -- {approve}"));
        let spawn = format!("SWARM_DIR='{}' '{SWARM}' spawn --name b{n} -- {inner} >&2", dir.display());
        let how = format!("echo 'exit 0' >check.sh; {door}{} >&2", script("a", &spawn));
        let result = d.result(1, &["--check", "sh check.sh", "-n", "1"], &steering(&d, &how));
        assert_eq!(error(&result, 1), "protected files were changed: check.sh", "{}", d.read("trouble"));
        let said = d.read("said");
        assert!(said.starts_with("swarm: error: worker 'a' may not approve its own changes\n"), "{said}");
        for file in ["said", "tried"] {
            std::fs::remove_file(d.path(file)).unwrap();
        }
        d.git(&["checkout", "-q", "check.sh"]);
    }
}

#[test]
fn agent_cannot_replace_its_own_loop() {
    let d = Desk::new();
    let how = format!(
        "touch x; '{SWARM}' loop easy --name a --replace -d --check true -- true >\"$D/said\" 2>&1; touch \"$D/tried\""
    );
    let result = d.result(1, &["--check", "false", "-n", "1"], &steering(&d, &how));
    assert_eq!(result["stop_reason"], "max_iterations");
    let said = d.read("said");
    assert!(said.contains("swarm: error: worker 'a' may not replace itself\n"), "{said}");
}

#[test]
fn agent_can_control_other_loops_and_a_person_can_control_all() {
    let d = Desk::new();
    let mut other = d.w.agent("b");
    d.w.spawn_loop("b", &other, &["-n", "2"]);
    let how = format!(
        "touch x; '{SWARM}' ralph pause b >\"$D/said\" 2>&1; '{SWARM}' ralph resume b >>\"$D/said\" 2>&1; touch \"$D/tried\""
    );
    d.result(0, &["--check", "true", "-n", "1"], &steering(&d, &how));
    assert_eq!(d.read("said"), "paused ralph loop for b\nresumed ralph loop for b\n");
    // A window of a tmux server of the user's own is a terminal like any other.
    let (own, socket) = (d.path("own"), d.path("own.sock"));
    let mut tmux = d.w.command("tmux");
    let script = format!(
        "'{SWARM}' ralph set b max_iterations=3 >'{}' 2>&1; touch '{}.end'",
        own.display(),
        own.display()
    );
    tmux.arg("-S").arg(&socket).args(["-f", "/dev/null", "new-session", "-d", &script]);
    d.w.run(tmux).ok();
    d.w.until("it was said", || d.path("own.end").exists().then_some(()));
    let mut end = d.w.command("tmux");
    end.arg("-S").arg(&socket).arg("kill-server");
    let _ = d.w.run(end);
    assert_eq!(d.read("own"), "set max_iterations=3 for b\n");
    other.tell("exit 0");
}

#[test]
fn respawn_is_refused_while_changed_checks_are_not_approved() {
    let refused = "swarm: error: watched files of 'a' were changed without approval: check.sh\n";
    let hint = "hint: show the changes: swarm ralph diff a; accept them: swarm ralph approve a; or restore the files";
    for flags in [&[][..], &["--worktree"]] {
        let d = Desk::new();
        d.commit("check.sh", "exit 1\n");
        let agent = d.agent(&[&format!("echo 'exit 0' >check.sh; {DONE}"), &format!("touch x; {DONE}")]);
        d.run(&[&["--check", "sh check.sh", "-n", "1"], flags].concat(), &agent).code(1);
        d.w.swarm(&["respawn", "a"]).code(1).warns(refused).warns(hint);
        d.w.swarm(&["ralph", "approve", "a"]).ok().says("approved check.sh\n");
        // Nothing is left to take, so what is to be done now is said.
        let why =
            d.w.swarm(&["why", "a"])
                .ok()
                .says("next: all watched files are as approved: swarm ralph set a max_iterations=");
        assert!(!why.out.contains("ralph approve"), "{}", why.out);
        d.w.swarm(&["respawn", "a"]).ok();
        assert_eq!(d.turns(), 2, "a refused respawn starts nothing");
    }
}

#[test]
fn changed_checks_of_a_killed_loop_are_shown_and_block_a_respawn() {
    let d = Desk::new();
    d.commit("check.sh", "exit 1\n");
    let agent = d.agent(&[
        "echo 'exit 0' >check.sh; touch \"$D/there\"; while :; do sleep 0.1; done",
        &format!("touch x; {DONE}"),
    ]);
    d.w.swarm(&d.words(&["--check", "sh check.sh", "-n", "1", "-d"], &agent)).ok();
    d.w.until("the agent changed it", || d.path("there").exists().then_some(()));
    d.w.swarm(&["respawn", "a"]).code(1).warns("were changed without approval: check.sh\n");
    assert_eq!(d.w.status("a")["status"], "running", "what is refused is refused before anything is ended");
    d.w.swarm(&["kill", "a"]).ok();
    let _ =
        d.w.swarm(&["why", "a"])
            .ok()
            .says("check.sh\n")
            .says("to accept them: swarm ralph approve a, then swarm respawn a\n");
    d.w.swarm(&["respawn", "a"]).code(1).warns("were changed without approval: check.sh\n");
    d.git(&["checkout", "-q", "check.sh"]);
    let why = d.w.swarm(&["why", "a"]).ok();
    assert!(!why.out.contains("ralph approve"), "{}", why.out);
    d.w.swarm(&["respawn", "a"]).code(1).says("check 'sh check.sh' failed before the first iteration");
    assert_eq!(d.turns(), 2);
}

#[test]
fn worker_spawned_by_the_agent_cannot_clean_its_loop() {
    let d = Desk::new();
    let (go, helper) = (d.path("go"), d.path("b.sh"));
    let run = |verb: &str| format!("'{SWARM}' {verb} >>'{}' 2>&1", d.path("said").display());
    let script = format!(
        "export SWARM_DIR='{}'\nuntil [ -e '{}' ]; do sleep 0.02; done\n{}\n{}\n{}\n{}\ntouch '{}'\n",
        d.w.swarm_dir().display(),
        go.display(),
        run("clean a"),
        run("ralph clean a"),
        run("ralph clean"),
        run("loop easy --name a -d --check true -- true"),
        d.path("tried").display()
    );
    std::fs::write(&helper, script).unwrap();
    let agent =
        d.agent(&[&format!("touch x; '{SWARM}' spawn --name b -- sh '{}' >&2; {DONE}", helper.display())]);
    d.result(1, &["--check", "false", "-n", "1"], &agent);
    std::fs::write(&go, "").unwrap();
    d.w.until("all of it was tried", || d.path("tried").exists().then_some(()));
    let said = d.read("said");
    for refused in ["remove itself", "delete the files of its own loop", "replace itself"] {
        assert!(said.contains(&format!("swarm: error: worker 'a' may not {refused}\n")), "{said}");
    }
    d.w.swarm(&["why", "a"]).ok().says("FAIL  false\n");
    d.w.swarm(&["clean", "a"]).ok();
}

#[test]
fn added_file_that_changes_a_build_tool_needs_approval() {
    for (tool, there, added, part) in
        [("make", "Makefile", "GNUmakefile", " (target test)"), ("npm", "package.json", ".npmrc", "")]
    {
        let d = Desk::new();
        d.commit(there, "{}\n");
        let check = builder(&d, tool, added);
        let agent = d.agent(&[&format!("echo OK >{added}; {DONE}")]);
        let result = d.result(1, &["--check", &check, "-n", "1"], &agent);
        assert_eq!(error(&result, 1), format!("protected files were changed: {added}{part}"));
    }
}

#[test]
fn script_that_a_check_runs_indirectly_is_watched() {
    for (flags, changed) in [
        (&["--check", "cd s && sh ../t.sh"][..], "t.sh"),
        (&["--check", "sh s/../t.sh"], "t.sh"),
        (&["--check", "if ./t.sh; then true; else exit 1; fi"], "t.sh"),
        (&["--check", "test \"$(sh t.sh; echo $?)\" = 0"], "t.sh"),
        (&["--check", "sh < t.sh"], "t.sh"),
        (&["--cwd", "s", "--check", "sh ../t.sh"], "../t.sh"),
    ] {
        let d = Desk::new();
        d.commit("s/kept", "");
        d.commit("t.sh", "exit 1\n");
        let whole = d.w.work().join("t.sh");
        let agent = d.agent(&[&format!("echo 'exit 0' >'{0}'; chmod +x '{0}'; {DONE}", whole.display())]);
        let result = d.result(1, &[flags, &["-n", "1"]].concat(), &agent);
        assert_eq!(error(&result, 1), format!("protected files were changed: {changed}"), "{flags:?}");
    }
}

#[test]
fn emptied_spec_ends_the_loop_like_a_missing_one() {
    let d = Desk::new();
    let spec = d.path("spec.md");
    std::fs::write(&spec, "do it\n").unwrap();
    let agent = d.agent(&["echo >\"$D/spec.md\"; touch x"]);
    let result = d.result(1, &["--spec", spec.to_str().unwrap(), "--check", "false", "-n", "3"], &agent);
    assert_eq!((&result["stop_reason"], d.turns()), (&"prompt_missing".into(), 1));
    d.w.swarm(&["why", "a"]).ok().says("prompt file is empty: ");
}
