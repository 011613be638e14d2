//! `why`, `report`, `ralph diff` and `ralph restore`: what a loop tells of itself, in whatever state it is.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::world::{Ran, World};

/// Runs a loop over a shell script to its end.
#[track_caller]
fn looped(w: &World, name: &str, flags: &[&str], script: &str) -> Ran {
    w.write("PROMPT.md", "# Count\n\nCount in n.\n");
    let prompt = w.work().join("PROMPT.md").display().to_string();
    let head = ["spawn", "--name", name, "--ralph", "--prompt-file", &prompt, "--prompt-via", "stdin"];
    w.swarm(&[&head[..], flags, &["--", "sh", "-c", script]].concat())
}

/// Returns the output of `why`, without the proof of a complete loop: at most 13 lines, the last of them the next step.
#[track_caller]
fn why(w: &World, name: &str) -> String {
    let said = w.swarm(&["why", name]).ok().out;
    let is_short = said.lines().count() <= 13 || said.contains("\nproof:\n");
    assert!(is_short, "{said}");
    assert!(said.lines().last().unwrap_or_default().starts_with("next: "), "{said}");
    said
}

#[track_caller]
fn report(w: &World, name: &str) -> Value {
    let md = w.swarm(&["report", name]).ok().out;
    assert!(md.starts_with(&format!("# {name}\n\n")), "{md}");
    w.swarm(&["report", name, "--format", "json"]).ok().json()
}

#[track_caller]
fn git(w: &World, dir: &Path, args: &[&str]) -> String {
    let mut git = w.command("git");
    git.current_dir(dir).args(args);
    w.run(git).ok().out.trim().to_owned()
}

/// A check that waits while a file is there, and fails then.
fn held_check(hold: &Path) -> String {
    let hold = hold.display();
    format!("if test -e '{hold}'; then while test -e '{hold}'; do sleep 0.05; done; exit 1; fi")
}

#[test]
fn why_of_a_running_loop_names_the_running_check() {
    let w = World::new();
    let mut agent = w.agent("a");
    let hold = w.path("hold");
    let check = held_check(&hold);
    w.spawn_loop("a", &agent, &["--check", &check]);
    assert!(why(&w, "a").contains("next: nothing to do; to watch the agent: swarm attach a"));
    fs::write(&hold, "").unwrap();
    agent.tell("exit 0");
    let reason = format!("checking: {check}");
    w.until("the check is told", || (w.status("a")["reason"] == reason.as_str()).then_some(()));
    let said = why(&w, "a");
    assert!(said.starts_with(&format!("a: running (iteration 1/10): {reason}\n")), "{said}");
    assert!(said.contains("next: nothing to do; checks are running: after iteration 1"), "{said}");
    w.swarm(&["ls", "--format", "json"]).ok().says("checking: ");
    fs::remove_file(&hold).unwrap();
    agent.until_run(&w, 2);
    assert_eq!(w.status("a")["reason"], Value::Null);
    let said = why(&w, "a");
    for part in ["a: running (iteration 2/10)\n", "iteration 1 ended after ", &format!("  FAIL  {check}\n")] {
        assert!(said.contains(part), "{part:?} in {said}");
    }
    let report = report(&w, "a");
    assert_eq!(report["iterations"][0]["verdict"]["checks"][0]["passed"], false);
    assert_eq!((&report["end"], &report["baseline"][0]["passed"]), (&Value::Null, &Value::Bool(true)));
    w.swarm(&["kill", "a"]).ok();
    assert!(why(&w, "a").contains("then swarm respawn a"));
}

#[test]
fn why_shows_a_running_baseline_and_a_kill_ends_it() {
    let w = World::new();
    let hold = w.path("hold");
    fs::write(&hold, "").unwrap();
    let check = held_check(&hold);
    w.write("PROMPT.md", "Count\n");
    let words =
        ["spawn", "--name", "a", "--ralph", "--prompt-file", "./PROMPT.md", "-n", "3", "--check", &check];
    let _follower = w.follow(&[&words[..], &["--", "sh", "-c", "exit 0"]].concat());
    w.until("the check is told", || {
        let said = w.swarm(&["why", "a"]);
        said.out.contains("checking: ").then_some(())
    });
    let said = why(&w, "a");
    assert!(said.contains("next: nothing to do; checks are running: the baseline"), "{said}");
    w.swarm(&["kill", "a"]).ok();
    let status = w.until("it is killed", || Some(w.status("a")).filter(|s| s["status"] == "killed"));
    assert_eq!(status["reason"], "killed");
}

#[test]
fn failed_agent_exit_is_reported_even_if_the_gates_hold() {
    let w = World::new();
    for (name, end, how) in [
        ("shot", "kill -9 $$", "the agent was ended by signal 9"),
        ("bad", "exit 3", "the agent ended with exit status 3"),
    ] {
        let script = format!("printf '\\n<promise>OK</promise>\\n'; touch '{name}'; {end}");
        let flags = ["-n", "1", "--check", &format!("test -e '{name}'"), "--promise", "OK"];
        looped(&w, name, &flags, &script).code(0);
        assert_eq!(report(&w, name)["end"], "all_checks_passed");
        let said = why(&w, name);
        assert!(
            said.contains("\niteration 1 ended after ") && said.contains(&format!(": {how}\n")),
            "{said}"
        );
        let unproven = "no held-out check (--final-check): hard-coded answers would pass";
        let proof = "\nproof:\n  1 check passed\n  the agent printed its promise (screen)\n";
        assert!(said.contains(proof) && said.contains(&format!("\n  {unproven}\n")), "{said}");
        assert!(said.contains("\nunproven:\n  ") && !said.contains("in force"), "{said}");
        let json = w.swarm(&["why", name, "--format", "json"]).ok().json();
        assert_eq!(json["proof"], report(&w, name)["proof"]);
        assert_eq!(json["proof"]["complete"], true);
        let told = w.swarm(&["report", name]).ok();
        told.says(&format!("Iteration 1 ({how}):")).says("\nProof:\n\n- 1 check passed\n").says(unproven);
    }
}

#[test]
fn why_of_a_loop_paused_without_progress_suggests_a_look_at_its_work() {
    let w = World::new();
    let repo = w.repo("repo").display().to_string();
    looped(&w, "a", &["-n", "5", "--cwd", &repo, "--check", "false", "--no-progress", "2"], "exit 0").code(1);
    let said = why(&w, "a");
    assert!(said.contains("\nin force: 1 check, watched files, canary\n"), "{said}");
    assert!(said.starts_with("a: paused (iteration 2/5): no progress\n"), "{said}");
    assert!(said.contains("next: look at the iterations (swarm report a), "), "{said}");
    assert_eq!(report(&w, "a")["status"], "paused");
    let said = w.swarm(&["report", "a"]).ok().out;
    assert!(said.contains("\npaused, 2 iterations, ") && said.contains("s: no progress\n"), "{said}");
}

#[test]
fn why_of_a_loop_without_its_state_suggests_only_what_is_left() {
    let w = World::new();
    let repo = w.repo("repo").display().to_string();
    let flags = |check| ["-n", "1", "--cwd", &repo, "--check", check].map(str::to_owned);
    for (name, check, code, before, after) in [
        ("a", "test -e done", 0, "review the work: swarm ralph diff a", format!("review the work in {repo}")),
        ("b", "false", 1, "for details: swarm report b; to ", "to start it again: swarm respawn b".into()),
    ] {
        let flags = flags(check);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        looped(&w, name, &flags, "touch done").code(code);
        assert!(why(&w, name).contains(&format!("\nnext: {before}")), "{}", why(&w, name));
        w.swarm(&["ralph", "clean", name]).ok();
        assert!(why(&w, name).ends_with(&format!("\nnext: {after}\n")), "{}", why(&w, name));
    }
}

#[test]
fn every_loop_end_is_reported_with_the_next_step() {
    let w = World::new();
    for (name, flags, script, code, end, next) in [
        ("done", &["-n", "2", "--check", "true"][..], "exit 0", 0, "all_checks_passed", "work in /"),
        (
            "max",
            &["-n", "1", "--check", "false"],
            "exit 0",
            1,
            "max_iterations",
            "max_iterations=2 && swarm ralph resume max",
        ),
        (
            "count",
            &["-n", "1"],
            "exit 0",
            0,
            "max_iterations",
            "max_iterations=2 && swarm ralph resume count",
        ),
        (
            "bad",
            &["-n", "3", "--max-failures", "1", "--check", "false"],
            "exit 3",
            1,
            "failed",
            "swarm logs bad",
        ),
        ("said", &["-n", "3", "--done-pattern", "ALL DONE"], "echo ALL DONE", 0, "done_pattern", "work in /"),
        (
            "slow",
            &["-n", "3", "--max-time", "12", "--check", "false"],
            "exec sleep 600",
            1,
            "timeout",
            "swarm ralph set slow max_time=24s && swarm ralph resume slow",
        ),
        ("gone", &["-n", "3"], "rm -f PROMPT.md", 1, "prompt_missing", "then swarm respawn gone"),
        (
            "vow",
            &["-n", "3", "--promise", "OK"],
            "printf '\\n<promise>OK</promise>\\n'",
            0,
            "promise_accepted",
            "work in /",
        ),
    ] {
        looped(&w, name, flags, script).code(code);
        let said = why(&w, name);
        assert!(said.lines().last().unwrap().contains(next), "{name}: {said}");
        assert_eq!(report(&w, name)["end"], end, "{name}");
        w.swarm(&["report", name]).ok().says(&format!("{end}, 1 iteration, "));
    }
}

#[test]
fn loop_without_gates_has_a_report() {
    let w = World::new();
    looped(&w, "a", &["-n", "2"], "exit 0").ok();
    assert!(why(&w, "a").contains("task: Count\n"));
    let report = report(&w, "a");
    let exits: Vec<&Value> =
        report["iterations"].as_array().unwrap().iter().map(|it| &it["exit_code"]).collect();
    assert_eq!(exits, [0, 0]);
    assert!(!w.work().join(".swarm").exists(), "no progress file without gates");
}

#[test]
fn loop_commands_refuse_plain_and_unknown_workers() {
    let w = World::new();
    w.spawn_sh("plain", &[], "exec sleep 600").ok();
    for verb in [&["report"][..], &["ralph", "diff"]] {
        w.swarm(&[verb, &["plain"]].concat()).code(1).warns("worker 'plain' is not a ralph worker");
    }
    w.swarm(&["why", "nobody"]).code(2);
    w.swarm(&["report", "nobody"]).code(2);
    w.swarm(&["ralph", "restore", "plain", "1"]).code(1).warns("is not a ralph worker");
}

#[test]
fn why_of_a_failed_plain_worker_shows_its_last_output_and_the_next_step() {
    let w = World::new();
    w.spawn_sh("plain", &[], "seq 101 120; echo cannot find the parser; exit 7").ok();
    w.until_status("plain", "failed");
    w.swarm(&["status", "plain"]).code(1).warns("hint: swarm why plain\n");
    let said = w.swarm(&["why", "plain"]).ok().out;
    assert!(said.starts_with("plain: failed: exit status 7\n"), "{said}");
    for part in [
        "\nexit status: 7\nthe last output (full log: swarm logs plain):\n  | 107\n",
        "  | 120\n  | cannot find the parser\nnext: fix the cause, then swarm respawn plain\n",
    ] {
        assert!(said.contains(part), "{part:?} in {said}");
    }
    w.spawn_sh("busy", &[], "echo at work; exec sleep 600").ok();
    w.until("its output appears", || w.swarm(&["why", "busy"]).out.contains("  | at work\n").then_some(()));
    let said = w.swarm(&["why", "busy"]).ok().out;
    assert!(said.starts_with("busy: running\n") && !said.contains("exit status"), "{said}");
    assert!(said.ends_with("next: nothing to do; to watch the agent: swarm attach busy\n"), "{said}");
}

#[test]
fn why_without_a_name_covers_all_workers_the_worst_first() {
    let w = World::new();
    w.swarm(&["why"]).ok().warns("no workers\n");
    w.spawn_sh("done", &[], "exit 0").ok();
    w.until_status("done", "done");
    let repo = w.repo("repo").display().to_string();
    looped(&w, "held", &["-n", "5", "--cwd", &repo, "--check", "false", "--no-progress", "2"], "exit 0")
        .code(1);
    let check = "seq 5; echo the parser is missing; exit 1";
    looped(&w, "bad", &["-n", "2", "--check", check], "exit 0").code(1);
    w.spawn_sh("plain", &[], "seq 5; exit 3").ok();
    w.until_status("plain", "failed");
    let said = w.swarm(&["why"]).ok().out;
    let expected = "\
bad: failed (iteration 2/2), max iterations, and not every gate holds
  FAIL  seq 5; echo the parser is missing; exit 1
  | 5
  | the parser is missing
  | exit status 1
  next: for details: swarm report bad; to continue it:
        swarm ralph set bad max_iterations=4 && swarm ralph resume bad
plain: failed, exit status 3
  | 3
  | 4
  | 5
  next: fix the cause, then swarm respawn plain
held: paused (iteration 2/5), no progress
  FAIL  false
  | exit status 1
  next: look at the iterations (swarm report held),
        and change the task (swarm ralph set held prompt_file=FILE);
        then swarm ralph resume held
done: done, exited
";
    assert_eq!(said, expected);
}

#[test]
fn why_and_report_work_without_the_loops_folder() {
    let w = World::new();
    looped(&w, "a", &["-n", "2", "--check", "false"], "exit 0").code(1);
    fs::remove_dir_all(w.swarm_dir().join("ralph/a")).unwrap();
    assert!(why(&w, "a").contains("a: failed (iteration 2/2)"), "{}", why(&w, "a"));
    assert_eq!(report(&w, "a")["iterations"].as_array().unwrap().len(), 0);
    w.swarm(&["ralph", "diff", "a"]).code(1).warns("no snapshot of any iteration of 'a'");
}

#[test]
fn report_longer_than_one_answer_is_complete() {
    let w = World::new();
    // Characters of four bytes, and one that doubles in JSON: with few checks, eight iterations are more than two
    // answers.
    w.write("noisy.sh", "yes '😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀' | head -n 200\n");
    w.write("quotes.sh", "yes '\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"' | head -n 200\n");
    let mut flags = vec!["-n", "8", "--check", "false", "--check", "sh quotes.sh", "--check-jobs", "8"];
    let noisy: Vec<String> = (0..24).map(|number| format!("sh noisy.sh {number}")).collect();
    flags.extend(noisy.iter().flat_map(|check| ["--check", check]));
    looped(&w, "a", &flags, "exit 0").code(1);
    let report = w.swarm(&["report", "a", "--format", "json"]).ok();
    assert!(report.out.len() > 1 << 20, "{}", report.out.len());
    let numbers: Vec<u64> = report.json()["iterations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["iteration"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(report.json()["next"].is_null());
    let said = why(&w, "a");
    assert!(said.contains(" more: swarm report a"), "{said}");
}

/// A loop of two iterations in a worktree, which have written a file each.
fn in_a_worktree(w: &World) -> (PathBuf, PathBuf) {
    let repo = w.repo("repo");
    let flags = ["-n", "2", "--worktree", "--cwd", &repo.display().to_string(), "--check", "test -e never"];
    looped(w, "a", &flags, "if test -e one; then echo 2 > two; else echo 1 > one; fi").code(1);
    let tree = w.path("repo-worktrees/a");
    assert!(tree.join("two").exists());
    (repo, tree)
}

#[test]
fn printed_commands_merge_the_work_and_remove_the_worktree() {
    let w = World::new();
    let (repo, tree) = in_a_worktree(&w);
    let said = w.swarm(&["report", "a"]).ok().out;
    for label in ["commit:", "merge:"] {
        let line = said.lines().find_map(|line| line.trim_start().strip_prefix(label)).unwrap();
        let mut shell = w.command("sh");
        shell.args(["-c", line]);
        w.run(shell).ok();
    }
    assert!(repo.join("one").exists() && repo.join("two").exists());
    assert!(said.contains("  remove: swarm clean a\n"), "{said}");
    w.swarm(&["clean", "a"]).ok().says("removed worktree ");
    assert!(!tree.exists());
    assert_eq!(git(&w, &repo, &["status", "--porcelain"]), "");
    assert_eq!(git(&w, &repo, &["branch", "--list", "swarm/a"]), "");
}

#[test]
fn ralph_diff_shows_one_iteration_or_all() {
    let w = World::new();
    in_a_worktree(&w);
    let diff = |which: &[&str]| w.swarm(&[&["ralph", "diff", "a"], which].concat());
    let all = diff(&[]).ok().out;
    assert!(all.contains("+1\n") && all.contains("+2\n"), "{all}");
    let second = diff(&["2"]).ok().out;
    assert!(second.contains("+++ b/two\n") && second.contains("+2\n"), "{second}");
    assert!(!second.contains("+1\n") && !second.contains("b/one"), "{second}");
    assert!(!diff(&["1"]).ok().out.contains("two"));
    diff(&["3"]).code(1).warns("no snapshot of iteration 3 of 'a'");
    diff(&["0"]).code(2).warns("give a whole number from 1 to 4294967295");
    let report = report(&w, "a");
    assert_eq!(report["iterations"][1]["diff"]["files"], 1);
    w.swarm(&["report", "a"]).ok().says("| 1 file +1 -0 |").says("  merge:  git -C ");

    looped(&w, "bare", &["-n", "1", "--check", "false"], "exit 0").code(1);
    w.swarm(&["ralph", "diff", "bare"]).code(1).warns("no snapshot of any iteration of 'bare'");
    w.swarm(&["ralph", "restore", "bare", "1"]).code(1).warns("no snapshot of iteration 1 of 'bare'");
}

#[test]
fn nested_repositories_without_snapshots_are_warned_about() {
    let w = World::new();
    let repo = w.repo("repo");
    let make = |name: &str| {
        let dir = repo.join(name);
        fs::create_dir_all(&dir).unwrap();
        git(&w, &dir, &["init", "-q"]);
        dir
    };
    git(&w, &make("lib/known"), &["commit", "-q", "--allow-empty", "-m", "inner"]);
    git(&w, &repo, &["-c", "advice.addEmbeddedRepo=false", "add", "lib/known"]);
    git(&w, &repo, &["commit", "-q", "-m", "with a link"]);
    make("fresh");
    fs::write(make("ignored").join("x"), "").unwrap();
    fs::write(repo.join(".gitignore"), "ignored/\n").unwrap();
    let warning = "snapshots do not contain the repositories inside this one: fresh, lib/known";
    // Of a loop without gates too, since it has snapshots as well; and wherever in the tree it works.
    let cwd = repo.join("lib").display().to_string();
    let ran = looped(&w, "a", &["-n", "1", "--cwd", &cwd], "exit 0").ok();
    assert_eq!((ran.err.matches(warning).count(), ran.out.matches(warning).count()), (1, 0), "{ran:?}");
    assert_eq!(report(&w, "a")["warnings"], serde_json::json!([warning]));
    w.swarm(&["report", "a"]).ok().says(&format!("- warning: {warning}\n"));
    fs::remove_dir_all(repo.join("fresh")).unwrap();
    fs::remove_dir_all(repo.join("lib/known/.git")).unwrap();
    let ran = looped(&w, "b", &["-n", "1", "--cwd", &cwd], "exit 0").ok();
    assert!(!ran.err.contains("warning"), "{}", ran.err);
}

#[test]
fn loop_without_gates_continues_after_its_baseline_was_deleted() {
    let w = World::new();
    let repo = w.repo("repo").display().to_string();
    let base = w.swarm_dir().join("ralph/a/base.json");
    let script = format!("rm -f '{}'; date +%N >>n", base.display());
    looped(&w, "a", &["-n", "3", "--cwd", &repo], &script).ok();
    assert_eq!(report(&w, "a")["iterations"].as_array().unwrap().len(), 3);
    assert!(!base.exists());
    // The diff still starts from the tree at the beginning.
    let all = w.swarm(&["ralph", "diff", "a"]).ok().out;
    assert!(all.contains("new file") && all.matches("\n+").count() >= 3, "{all}");
}

#[test]
fn restore_checks_out_an_iteration_into_a_new_worktree() {
    let w = World::new();
    let (repo, tree) = in_a_worktree(&w);
    let restore = |words: &[&str]| w.swarm(&[&["ralph", "restore", "a"], words].concat());
    let first = restore(&["1"]).ok();
    let made = w.path("repo-worktrees/a-1");
    assert_eq!(first.out, format!("{}\n", made.display()), "the path alone");
    assert!(made.join("one").exists() && !made.join("two").exists());
    assert_eq!(git(&w, &made, &["branch", "--show-current"]), "swarm/a-1");
    restore(&["1"]).code(1).warns("is not an empty directory").warns("--dir");
    restore(&["1", "--dir", "../elsewhere"])
        .code(1)
        .warns("branch 'swarm/a-1' already exists")
        .warns("--branch");
    restore(&["9"]).code(1).warns("no snapshot of iteration 9");
    let base = w.path("base");
    let words = ["0", "--dir", base.to_str().unwrap(), "--branch", "before"];
    assert_eq!(restore(&words).ok().out, format!("{}\n", base.display()));
    assert!(!base.join("one").exists());

    // The worktree goes by force, the daemon goes, the worker goes: its snapshots stay.
    w.swarm(&["clean", "a"]).code(1).warns("holds work that would be lost").warns("one");
    assert!(tree.join("two").exists());
    git(&w, &repo, &["worktree", "remove", "--force", tree.to_str().unwrap()]);
    w.swarm(&["daemon", "restart"]).ok();
    let again = restore(&["2"]).ok();
    assert!(Path::new(again.out.trim_end()).join("two").exists());
    w.swarm(&["ralph", "diff", "a", "2"]).ok().says("+2");
    // A person deletes a ref; the command of the hint restores it.
    let second = git(&w, &repo, &["for-each-ref", "--format=%(refname)", "refs/swarm/a/*/2"]);
    git(&w, &repo, &["update-ref", "-d", &second]);
    let gone = format!("iteration 2 of 'a' has no snapshot any more: {second} was deleted\n");
    w.swarm(&["ralph", "restore", "a", "2", "--dir", "gone"]).code(1).warns(&gone);
    let err = w.swarm(&["ralph", "diff", "a"]).code(1).warns(&gone).err;
    let (_, hint) = err.split_once("hint: to restore the ref: git ").expect("a hint");
    git(&w, &repo, &hint.trim_end().split(' ').collect::<Vec<_>>());
    w.swarm(&["ralph", "diff", "a", "2"]).ok().says("+2");
    w.swarm(&["clean", "a"]).ok();
    let refs = git(&w, &repo, &["for-each-ref", "--format=%(refname:lstrip=4)", "refs/swarm/a/"]);
    assert_eq!(refs, "0\n1\n2");
}

#[test]
fn worktree_with_uncommitted_work_is_kept_despite_a_snapshot() {
    let w = World::new();
    let (_, tree) = in_a_worktree(&w);
    w.swarm(&["kill", "a", "--rm-worktree"]).code(1).warns("holds work that would be lost").warns("one");
    assert!(tree.join("one").exists());
    git(&w, &tree, &["add", "."]);
    git(&w, &tree, &["commit", "-qm", "work"]);
    w.swarm(&["clean", "a"]).ok();
    assert!(!tree.exists());
    assert_eq!(git(&w, &w.path("repo"), &["log", "-1", "--format=%s", "swarm/a"]), "work");
}

#[test]
fn why_lists_all_workers_the_worst_first_or_those_changed_since() {
    let w = World::new();
    looped(&w, "good", &["-n", "1", "--check", "true"], "exit 0").ok();
    let now = w.swarm(&["events", "--format", "json"]).ok().out;
    let last: Value = serde_json::from_str(now.lines().last().unwrap()).unwrap();
    let since = chrono::DateTime::parse_from_rfc3339(last["at"].as_str().unwrap()).unwrap();
    let since = (since + chrono::TimeDelta::microseconds(1)).to_rfc3339();
    w.swarm(&["why", "--since", &since]).ok().warns("no worker has changed since ");
    looped(&w, "bad", &["-n", "2", "--max-failures", "2"], "echo no key; exit 3").code(1);
    w.spawn_sh("plain", &[], "echo oops; exit 4").ok();
    w.until_status("plain", "failed");
    let names = |args: &[&str], wanted: &[&str]| {
        let found = w.swarm(&[args, &["--format", "json"]].concat()).ok().json();
        let names: Vec<&str> =
            found.as_array().unwrap().iter().map(|worker| worker["name"].as_str().unwrap()).collect();
        assert_eq!(names, wanted, "{args:?}");
        found
    };
    names(&["why"], &["bad", "plain", "good"]);
    let report = |name: &str| w.swarm(&["report", name, "--format", "json"]).ok().json();
    let (bad, good) = (report("bad"), report("good"));
    assert_eq!((&bad["outages"], &bad["check_seconds"]), (&0.into(), &Value::Null));
    assert!(good["agent_seconds"].is_f64() && good["check_seconds"].is_f64(), "{good}");
    assert!(good["iterations"][0]["check_seconds"].is_f64(), "{good}");
    let told = names(&["why", "--since", &since], &["bad", "plain"]);
    let evidence =
        |worker: usize| (&told[worker]["evidence"][0]["source"], &told[worker]["evidence"][0]["lines"][0]);
    assert_eq!(evidence(0), (&"agent".into(), &"no key".into()));
    assert_eq!(evidence(1), (&"agent".into(), &"oops".into()));
    assert!(told[0]["next"].as_str().unwrap().contains("swarm ralph resume bad"), "{told}");
    let one = w.swarm(&["why", "bad", "--format", "json"]).ok().json();
    assert_eq!(one, told[0]);
    let text = w.swarm(&["report", "bad"]).ok().out;
    assert!(text.contains("Iteration 2 (the agent ended with exit status 3):\n"), "{text}");
    // Of one loop, only the iterations since then.
    let report = w.swarm(&["report", "good", "--since", &since, "--format", "json"]).ok().json();
    assert_eq!(report["iterations"], serde_json::json!([]));
    w.swarm(&["report", "good", "--since", &since]).ok().says(": 0 iterations\n");
    w.swarm(&["why", "good", "--since", "1h"]).code(2).warns("cannot be used with");
}

#[test]
fn follower_names_the_running_check_and_quotes_failed_output() {
    let w = World::new();
    let check = "echo 'left: 1'; test -e n || exit 7";
    let ran =
        looped(&w, "a", &["-n", "2", "--check", check], "echo no key; test -e m && touch n; touch m; exit 3");
    let said = ran.code(0).out;
    let wanted = [
        format!("[ralph] a: running check '{check}' before the first iteration\n"),
        format!("[ralph] a: running check '{check}'\n[ralph] a: check '{check}' failed ("),
        format!(
            "[ralph] a: not done: the check '{check}' failed\n  FAIL  {check}\n  | left: 1\n  | exit status 7\n"
        ),
        "[ralph] a: iteration 1 failed (exit: 3), retrying in 1s (attempt 1/5)\n  | no key\n".to_owned(),
    ];
    let mut rest = said.as_str();
    for part in &wanted {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part:?} in {said}"));
        rest = &rest[at + part.len()..];
    }
    w.swarm(&["report", "a"]).ok().says(&format!("- FAIL  {check}\n  | left: 1\n  | exit status 7\n"));
}
