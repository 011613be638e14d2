//! Verified loops, end to end: the flow of `swarm loop`, its contract, its result, and the promise.
//!
//! The agents are shell scripts that do something else in each iteration and keep what they were told outside
//! of their tree. [`Desk`] is for the tests of cheats and of checks too.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::Value;

use crate::world::{Ran, World};

/// The command with which the agent prints its promise.
pub(crate) const DONE: &str = "echo '<promise>COMPLETE</promise>'";

/// A world whose working directory is a repository, with a scripted agent.
pub(crate) struct Desk {
    pub(crate) w: World,
}

impl Desk {
    /// A fresh repository.
    pub(crate) fn new() -> Self {
        let w = World::new();
        w.repo("work");
        fs::create_dir(w.path("desk")).unwrap();
        Self { w }
    }

    /// The same without git.
    pub(crate) fn without_git() -> Self {
        let w = World::new();
        fs::create_dir(w.path("desk")).unwrap();
        Self { w }
    }

    /// Writes a file of the tree and commits it.
    pub(crate) fn commit(&self, name: &str, text: &str) {
        let path = self.w.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        for args in [&["add", "-A"][..], &["commit", "-q", "-m", "more"]] {
            let mut git = self.w.command("git");
            git.args(args);
            self.w.run(git).ok();
        }
    }

    /// git in the tree; its standard output.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        let mut git = self.w.command("git");
        git.args(args);
        self.w.run(git).ok().out
    }

    /// An agent that does the first of these in iteration 1, and so on; the last one from then on. `$D` is a
    /// directory outside of the tree, where its prompts are kept.
    pub(crate) fn agent(&self, turns: &[&str]) -> Vec<String> {
        self.agent_called("agent", turns)
    }

    /// The same under the name of a known CLI.
    pub(crate) fn agent_called(&self, name: &str, turns: &[&str]) -> Vec<String> {
        let desk = self.path("").display().to_string();
        let mut script = format!("#!/bin/sh\nD='{desk}'\n");
        script += "n=$(($(cat \"$D/n\" 2>/dev/null || echo 0) + 1))\necho $n >\"$D/n\"\n";
        script += "cat >\"$D/prompt.$n\"\necho \"$@\" >\"$D/args.$n\"\ncase $n in\n";
        for (index, turn) in turns.iter().enumerate() {
            let label = if index + 1 == turns.len() { "*".into() } else { (index + 1).to_string() };
            script += &format!("{label})\n{turn}\n;;\n");
        }
        script += "esac\n";
        let path = self.path(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        let path = path.display().to_string();
        // Without it Claude Code is a TUI, and is waited for as one.
        if name == "claude" { vec![path, "-p".into()] } else { vec![path] }
    }

    /// A file outside of the tree.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.w.path("desk").join(name)
    }

    /// Returns the content of a file outside of the tree.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Returns the prompt of an iteration.
    pub(crate) fn prompt(&self, iteration: u32) -> String {
        self.read(&format!("prompt.{iteration}"))
    }

    /// How many iterations there were.
    pub(crate) fn turns(&self) -> u32 {
        self.read("n").trim().parse().unwrap_or(0)
    }

    /// The words of `swarm loop 'do it' --name a FLAGS -- AGENT`.
    pub(crate) fn words(&self, flags: &[&str], agent: &[String]) -> Vec<String> {
        let head = ["loop", "do the thing", "--name", "a"].iter().chain(flags).chain(&["--"]);
        head.map(|word| (*word).to_owned()).chain(agent.iter().cloned()).collect()
    }

    /// Runs a loop to its end.
    #[track_caller]
    pub(crate) fn run(&self, flags: &[&str], agent: &[String]) -> Ran {
        self.w.swarm(&self.words(flags, agent))
    }

    /// Runs a loop to its end; its exit status and its result.
    #[track_caller]
    pub(crate) fn result(&self, code: i32, flags: &[&str], agent: &[String]) -> Value {
        let ran = self.run(&[flags, &["--format", "json"]].concat(), agent).code(code);
        ran.json()
    }

    /// A file of an iteration's folder.
    pub(crate) fn kept(&self, iteration: u32, name: &str) -> String {
        let path = self.w.swarm_dir().join(format!("ralph/a/iterations/{iteration:04}/{name}"));
        fs::read_to_string(path).unwrap_or_default()
    }
}

/// Insists that the pieces stand in a text, in this order.
#[track_caller]
fn in_order(text: &str, pieces: &[&str]) {
    let mut rest = text;
    for piece in pieces {
        let at = rest.find(piece).unwrap_or_else(|| panic!("no {piece:?} where it belongs in: {text}"));
        rest = &rest[at + piece.len()..];
    }
}

#[track_caller]
fn keys(value: &Value, expected: &[&str]) {
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    let found: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let mut sorted = found.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, expected);
}

/// Fails with a test error first, then with a lint warning, then passes.
const CHECKS: [&str; 4] = [
    "--check",
    "grep -q fixed code.txt || { echo 'code.txt:42: not fixed'; exit 1; }",
    "--check",
    "if grep -n TODO code.txt; then echo 'lint: a TODO is left'; exit 3; fi",
];

/// The document's flow: what its agent did, and the result.
fn three_iterations() -> (Desk, Value) {
    let d = Desk::new();
    d.commit("code.txt", "old TODO\n");
    let agent = d.agent(&[
        "echo 'broken TODO' >code.txt",
        "echo 'fixed TODO' >code.txt",
        &format!("echo fixed >code.txt; {DONE}"),
    ]);
    let result = d.result(0, &CHECKS, &agent);
    assert_eq!(d.turns(), 3);
    (d, result)
}

#[test]
fn the_result_has_the_documented_fields() {
    let (_desk, result) = three_iterations();
    keys(
        &result,
        &[
            "schema",
            "name",
            "status",
            "reason",
            "cause",
            "paused_by",
            "proof",
            "iterations",
            "total_iterations",
            "total_cost",
            "total_duration",
            "success",
            "stop_reason",
            "worktree_path",
            "baseline",
        ],
    );
    assert_eq!(result["stop_reason"], "all_checks_passed");
    assert_eq!((&result["success"], &result["total_iterations"]), (&true.into(), &3.into()));
    assert_eq!((&result["worktree_path"], &result["total_cost"]), (&"".into(), &Value::Null));
    assert!(result["total_duration"].is_f64());
    for (index, it) in result["iterations"].as_array().unwrap().iter().enumerate() {
        keys(
            it,
            &[
                "iteration",
                "steps_taken",
                "cost",
                "duration",
                "check_results",
                "all_checks_passed",
                "completion_tag_found",
                "error",
            ],
        );
        assert_eq!(it["iteration"], index + 1);
        assert!(it["steps_taken"].is_null() && it["cost"].is_null() && it["error"].is_null(), "{it}");
        keys(&it["check_results"][0], &["name", "passed", "output"]);
    }
    assert_eq!(result["baseline"][0]["output"], "code.txt:42: not fixed\nexit status 1");
}

#[test]
fn an_agent_that_fails_and_then_fixes_takes_three_iterations() {
    let (d, result) = three_iterations();
    let iterations = result["iterations"].as_array().unwrap();
    let passed = |it: usize| {
        let it = &iterations[it];
        let of = |n: usize| it["check_results"][n]["passed"].as_bool().unwrap();
        (
            of(0),
            of(1),
            it["all_checks_passed"].as_bool().unwrap(),
            it["completion_tag_found"].as_bool().unwrap(),
        )
    };
    assert_eq!(passed(0), (false, false, false, false));
    assert_eq!(passed(1), (true, false, false, false));
    assert_eq!(passed(2), (true, true, true, true));
    // The contract of the second, part by part.
    let told = d.prompt(2);
    in_order(
        &told,
        &[
            "# Task\n\ndo the thing\n",
            "# Rules\n",
            "iteration 2 of 25",
            "clean context",
            CHECKS[1],
            CHECKS[3],
            "<promise>COMPLETE</promise>",
            "# Changes since the start\n",
            "-old TODO\n+broken TODO\n",
            "# Checks that failed\n",
            CHECKS[1],
            "code.txt:42: not fixed\nexit status 1\n",
            CHECKS[3],
            "1:broken TODO\nlint: a TODO is left\nexit status 3\n",
            "# Why the last iteration did not count as done\n",
            "the promise was not given",
            "# Progress so far\n",
            "## Iteration 1 — FAIL\n",
        ],
    );
    assert!(!told.contains("Iteration 2 —"), "{told}");
    assert_eq!(d.kept(2, "contract.md"), told, "it is kept");
    let third = d.prompt(3);
    assert!(!third.contains("not fixed\nexit status"), "what passed is no longer told: {third}");
    in_order(
        &third,
        &["-old TODO\n+fixed TODO\n", "lint: a TODO is left", "Iteration 1 — FAIL", "Iteration 2 — FAIL"],
    );
    let progress = fs::read_to_string(d.w.work().join(".swarm/ralph-progress.md")).unwrap();
    in_order(&progress, &["Iteration 1 — FAIL", "Iteration 2 — FAIL", "Iteration 3 — PASS", "PASS", "PASS"]);
    assert!(!d.git(&["status", "--porcelain"]).contains(".swarm"));
}

#[test]
fn spec_is_read_again_for_each_iteration() {
    let d = Desk::new();
    let spec = d.path("spec.md");
    fs::write(&spec, "the first text\n").unwrap();
    let agent = d.agent(&["echo 'the second text' >\"$D/spec.md\"", &format!("touch done; {DONE}")]);
    // The change needs approval, but the next agent gets the new text.
    d.run(&["--spec", spec.to_str().unwrap(), "--check", "test -e done", "-n", "2"], &agent).code(1);
    assert!(d.prompt(1).starts_with("# Task\n\nthe first text\n"), "{}", d.prompt(1));
    assert!(d.prompt(2).starts_with("# Task\n\nthe second text\n"), "{}", d.prompt(2));
    assert!(!d.prompt(1).contains("do the thing"), "{}", d.prompt(1));
}

#[test]
fn spec_with_only_spaces_ends_the_loop_like_a_missing_one() {
    let d = Desk::new();
    let spec = d.path("spec.md");
    fs::write(&spec, "the first text\n").unwrap();
    let agent = d.agent(&["echo ' ' >\"$D/spec.md\"", &format!("touch done; {DONE}")]);
    let result = d.result(1, &["--spec", spec.to_str().unwrap(), "--check", "test -e done"], &agent);
    assert_eq!((&result["stop_reason"], d.turns()), (&"prompt_missing".into(), 1));
    d.w.swarm(&["why", "a"]).ok().says("prompt file is empty: ").says("then swarm respawn a");
    d.w.swarm(&["respawn", "a", "-d"]).code(1).warns("prompt file is empty: ");
}

#[test]
fn checks_run_side_by_side_when_asked_for() {
    let d = Desk::new();
    let fifo = d.path("f");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    // Each needs the other.
    let (one, two) = (format!("echo met >'{0}'", fifo.display()), format!("cat '{0}'", fifo.display()));
    let agent = d.agent(&[&format!("touch x; {DONE}")]);
    let result = d.result(0, &["--check", &one, "--check", &two, "--check-jobs", "2"], &agent);
    assert_eq!(result["iterations"][0]["check_results"][1]["output"], "met");
}

#[test]
fn done_pattern_with_other_gates_is_an_additional_gate() {
    let d = Desk::new();
    let agent = d.agent(&[
        &format!("touch ok; {DONE}"),
        "echo ALL-TASKS-ARE-OVER",
        &format!("touch more; echo ALL-TASKS-ARE-OVER; {DONE}"),
    ]);
    let result = d.result(0, &["--check", "test -e ok", "--done-pattern", "ALL-TASKS-ARE-OVER"], &agent);
    assert_eq!(
        (&result["total_iterations"], &result["stop_reason"]),
        (&3.into(), &"all_checks_passed".into())
    );
    let error = result["iterations"][0]["error"].as_str().unwrap();
    assert!(error.contains("the done pattern did not appear"), "{error}");
}

#[test]
fn loop_whose_gates_never_held_exits_with_1_at_its_last_iteration() {
    let d = Desk::new();
    let agent = d.agent(&["date +%N >>x"]);
    let result = d.result(1, &["--check", "false", "-n", "2"], &agent);
    assert_eq!((&result["stop_reason"], &result["success"]), (&"max_iterations".into(), &false.into()));
    assert_eq!((d.turns(), &result["total_iterations"]), (2, &2.into()));
}

#[test]
fn loop_with_a_passing_baseline_still_runs_one_iteration() {
    let d = Desk::new();
    let agent = d.agent(&[&format!("touch x; {DONE}")]);
    let result = d.result(0, &["--check", "true"], &agent);
    assert_eq!((d.turns(), &result["total_iterations"]), (1, &1.into()));
    assert_eq!(result["baseline"][0]["passed"], true);
}

#[test]
fn checks_that_failed_in_the_baseline_may_fail_with_allow_preexisting() {
    let d = Desk::new();
    let agent = d.agent(&["touch new", &format!("rm new; touch x; {DONE}")]);
    let flags =
        ["--check", "echo broken since long; exit 1", "--check", "test ! -e new", "--allow-preexisting"];
    let result = d.result(0, &flags, &agent);
    assert_eq!((&result["total_iterations"], &result["success"]), (&2.into(), &true.into()));
    assert_eq!(result["iterations"][1]["all_checks_passed"], true);
    assert_eq!(result["iterations"][1]["check_results"][0]["passed"], false);
    in_order(&d.prompt(1), &["failed already before any work", "echo broken since long"]);
    // Without it the same is never done.
    let again = d.result(1, &[&flags[..4], &["-n", "1", "--replace"]].concat(), &agent);
    assert_eq!(again["success"], false);
}

#[test]
fn loop_with_only_excused_checks_does_not_start() {
    let d = Desk::new();
    let agent = d.agent(&["touch x"]);
    let flags = ["--check", "exit 1", "--check", "false", "--allow-preexisting", "--no-promise"];
    let result = d.result(1, &flags, &agent);
    assert_eq!((&result["stop_reason"], &result["success"]), (&"failed".into(), &false.into()));
    assert_eq!((&result["total_iterations"], d.turns()), (&0.into(), 0));
    let cause =
        "no gate is left: every check failed before the first iteration, and --allow-preexisting excuses it";
    let state = d.w.ralph_state("a");
    assert_eq!((&state["status"], &state["reason"]), (&"failed".into(), &"no_gate".into()));
    d.w.swarm(&["why", "a"]).ok().says(cause).says("next: require a check that passes at the start");
    d.w.swarm(&["report", "a"]).ok().says(cause);
    // If a promise is required too, it decides, and the contract lists the checks that need not pass.
    let done = d.agent(&[&format!("touch x; {DONE}")]);
    let result = d.result(0, &[&flags[..5], &["--replace"]].concat(), &done);
    assert_eq!((&result["stop_reason"], &result["success"]), (&"promise_accepted".into(), &true.into()));
    let told = d.prompt(1);
    assert!(!told.contains("must exit with 0"), "{told}");
    in_order(
        &told,
        &["already before any work was done, and may go on failing:\n", "  - `exit 1`\n  - `false`\n"],
    );
}

#[test]
fn contract_states_that_the_directory_has_no_git() {
    let d = Desk::without_git();
    let agent = d.agent(&["true", &format!("touch x; {DONE}")]);
    let result = d.result(0, &["--check", "test -e x"], &agent);
    assert_eq!(result["total_iterations"], 2);
    in_order(&d.prompt(2), &["# Changes since the start\n", "in no git repository", "Iteration 1 — FAIL"]);
}

#[test]
fn quiet_prints_the_result_only() {
    let d = Desk::new();
    let agent = d.agent(&["true", &format!("date +%N >>x; {DONE}")]);
    let ran = d.run(&["--check", "test -e x", "--quiet"], &agent).ok();
    assert_eq!(ran.err, "");
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[0].starts_with("a: all_checks_passed (2 iterations, "), "{lines:?}");
    assert_eq!(
        lines[1..],
        ["  PASS  test -e x", "  PASS  the agent printed its promise (promise seen in: screen)"]
    );
    let json = d.run(&["--check", "test -e x", "--quiet", "--format", "json"], &agent).ok();
    assert_eq!((json.err.as_str(), &json.json()["success"]), ("", &true.into()));
}
