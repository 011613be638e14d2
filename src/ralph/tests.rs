//! The library's loop, on real git and real checks, with agents that are closures and a clock that does not wait.

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use swarm_state::engine::Now;
use tempfile::TempDir;

use super::*;

const DONE: &str = "All is done. <promise>COMPLETE</promise>";

/// A clock that is moved by hand; it notes what was waited for.
#[derive(Clone, Default)]
struct Hands(Arc<Mutex<(Duration, Vec<u64>)>>);

impl Hands {
    fn pass(&self, seconds: u64) {
        self.0.lock().unwrap().0 += Duration::from_secs(seconds);
    }

    fn waits(&self) -> Vec<u64> {
        self.0.lock().unwrap().1.clone()
    }
}

impl Clock for Hands {
    fn now(&self) -> Now {
        Now { mono: self.0.lock().unwrap().0, wall: chrono::Local::now().fixed_offset() }
    }

    fn wait(&mut self, how_long: Duration) {
        let mut hands = self.0.lock().unwrap();
        hands.0 += how_long;
        hands.1.push(how_long.as_secs());
    }
}

fn git(dir: &Path, args: &[&str]) -> String {
    let mut git = Command::new("git");
    git.current_dir(dir).args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(args);
    for (key, _) in std::env::vars_os().filter(|(key, _)| key.to_string_lossy().starts_with("GIT_")) {
        git.env_remove(key);
    }
    let output = git.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A repository with one commit, in a directory of its own.
fn repo() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let repo = place.path().join("repo");
    fs::create_dir(&repo).unwrap();
    git(&repo, &["init", "-q", "-b", "main"]);
    fs::write(repo.join("n"), "0\n").unwrap();
    git(&repo, &["add", "n"]);
    git(&repo, &["commit", "-q", "-m", "start"]);
    (place, repo)
}

fn config(check: &str) -> RalphConfig {
    RalphConfig { task: "Count in n".into(), checks: vec![check.into()], ..RalphConfig::default() }
}

/// The loop with a clock of ours.
fn on<F>(mut looped: RalphLoop<F>, hands: &Hands) -> RalphLoop<F> {
    looped.clock = Box::new(hands.clone());
    looped
}

/// An agent that writes its iteration into `n` and says that all is done.
fn counting(context: &AgentContext<'_>) -> impl FnMut(&str) -> AgentState + use<> {
    let (file, number) = (context.cwd.join("n"), context.iteration);
    move |_: &str| {
        fs::write(&file, format!("{number}\n")).unwrap();
        AgentState { text: DONE.into(), steps: Some(2), cost: Some(0.25), ..AgentState::default() }
    }
}

#[test]
fn agent_that_fixes_the_failed_check_succeeds() {
    let (_place, repo) = repo();
    let prompts = RefCell::new(vec![]);
    let agent = |context: &AgentContext<'_>| {
        let mut inner = counting(context);
        let prompts = &prompts;
        move |prompt: &str| {
            prompts.borrow_mut().push(prompt.to_owned());
            inner(prompt)
        }
    };
    let mut looped = RalphLoop::new(config("echo want 3, is $(cat n); grep -qx 3 n"), agent, &repo);
    let result = looped.run().unwrap();
    assert!(result.success, "{result:?}");
    assert_eq!((result.stop_reason.as_str(), result.total_iterations), ("all_checks_passed", 3));
    assert_eq!(result.total_cost, Some(0.75));
    assert!(!result.baseline[0].passed && result.worktree_path.is_empty());
    let passed: Vec<bool> = result.iterations.iter().map(|it| it.all_checks_passed).collect();
    assert_eq!(passed, [false, false, true]);
    let second = &result.iterations[1];
    assert_eq!((second.iteration, second.steps_taken, second.cost), (2, Some(2), Some(0.25)));
    assert!(second.completion_tag_found && second.error.is_none());
    assert!(second.check_results[0].output.starts_with("want 3, is 2"), "{second:?}");
    let prompts = prompts.borrow();
    let of_second = &prompts[1];
    for part in
        ["Count in n", "want 3, is 1", "-0\n+1\n", "Iteration 1 — FAIL", "<promise>COMPLETE</promise>"]
    {
        assert!(of_second.contains(part), "{part} in {of_second}");
    }
    // The snapshots stay, and nothing of the user's git has changed.
    let refs = git(&repo, &["for-each-ref", "--format=%(refname)", "refs/swarm"]);
    assert_eq!(refs.lines().count(), 4, "{refs}");
    assert_eq!(git(&repo, &["status", "--porcelain"]), "M n");
    assert!(repo.join(".swarm/ralph-progress.md").is_file());
    looped.cleanup_progress();
    assert!(!repo.join(".swarm").exists());
}

#[test]
fn loop_whose_check_always_fails_uses_all_iterations() {
    let (_place, repo) = repo();
    let made = RefCell::new(0);
    let agent = |context: &AgentContext<'_>| {
        *made.borrow_mut() += 1;
        counting(context)
    };
    let config = RalphConfig { max_iterations: 3, ..config("false") };
    let result = RalphLoop::new(config, agent, &repo).run().unwrap();
    assert!(!result.success);
    assert_eq!((result.stop_reason.as_str(), result.total_iterations), ("max_iterations", 3));
    assert_eq!(*made.borrow(), 3, "each iteration has an agent of its own");
}

#[test]
fn iteration_that_exceeds_the_budget_is_the_last() {
    let (_place, repo) = repo();
    let config = RalphConfig { max_cost: Some(0.4), ..config("false") };
    let result = RalphLoop::new(config, counting, &repo).run().unwrap();
    assert_eq!((result.stop_reason.as_str(), result.total_iterations), ("budget_exhausted", 2));
    assert_eq!(result.total_cost, Some(0.5));
}

#[test]
fn cost_limit_fails_iterations_of_an_agent_that_reports_no_cost() {
    let (_place, repo) = repo();
    let hands = Hands::default();
    let agent = |_: &AgentContext<'_>| |_: &str| AgentState::default();
    let config = RalphConfig { max_cost: Some(1.0), ..config("false") };
    let result = on(RalphLoop::new(config, agent, &repo), &hands).run().unwrap();
    assert_eq!((result.stop_reason.as_str(), result.total_iterations), ("failed", 5));
    assert!(result.iterations[0].error.as_ref().unwrap().contains("max_cost is set"), "{result:?}");
}

#[test]
fn time_limit_ends_a_loop_after_the_iteration_that_exceeded_it() {
    let (_place, repo) = repo();
    let hands = Hands::default();
    let left = RefCell::new(vec![]);
    let agent = |context: &AgentContext<'_>| {
        left.borrow_mut().push(context.time_left.unwrap().as_secs());
        let hands = hands.clone();
        move |_: &str| {
            hands.pass(40);
            AgentState::default()
        }
    };
    let config = RalphConfig { max_time: Some(60), ..config("false") };
    let result = on(RalphLoop::new(config, agent, &repo), &hands).run().unwrap();
    assert_eq!((result.stop_reason.as_str(), result.total_iterations), ("timeout", 2));
    assert_eq!(*left.borrow(), [60, 20]);
    assert_eq!(result.total_duration, 80.0);
}

#[test]
fn gates_that_hold_at_the_time_limit_complete_the_loop() {
    let (_place, repo) = repo();
    let hands = Hands::default();
    let agent = |context: &AgentContext<'_>| {
        let (hands, mut inner) = (hands.clone(), counting(context));
        move |prompt: &str| {
            hands.pass(100);
            inner(prompt)
        }
    };
    let config = RalphConfig { max_time: Some(60), ..config("grep -qx 1 n") };
    let result = on(RalphLoop::new(config, agent, &repo), &hands).run().unwrap();
    assert_eq!(result.stop_reason, "all_checks_passed");
}

#[test]
fn no_agent_starts_if_the_baseline_checks_used_all_of_the_time() {
    let (_place, repo) = repo();
    let agent = |_: &AgentContext<'_>| |_: &str| panic!("there is no time for it");
    let config = RalphConfig { max_time: Some(1), ..config("sleep 600") };
    let result = RalphLoop::new(config, agent, &repo).run().unwrap();
    assert_eq!((result.stop_reason.as_str(), result.total_iterations), ("timeout", 0));
    let said = &result.baseline[0].output;
    assert!(said.ends_with("ended: the loop's time was over"), "{said}");
}

#[test]
fn agent_command_is_ended_at_the_time_limit() {
    let (_place, repo) = repo();
    let config = RalphConfig { max_time: Some(1), ..config("test -e never") };
    let agent = command(["sh", "-c", "sleep 600 & echo $! > ../pid; wait"]);
    let result = RalphLoop::new(config, agent, &repo).run().unwrap();
    assert_eq!((result.stop_reason.as_str(), result.total_iterations), ("timeout", 1));
    let pid: i32 = fs::read_to_string(repo.join("../pid")).unwrap().trim().parse().unwrap();
    assert!(!crate::procs::is_alive(pid), "what it started is ended with it");
}

#[test]
fn passing_checks_without_the_promise_do_not_complete() {
    let (_place, repo) = repo();
    let agent = |context: &AgentContext<'_>| {
        let (mut inner, number) = (counting(context), context.iteration);
        move |prompt: &str| {
            let text = if number == 1 { "Done: COMPLETE" } else { DONE };
            AgentState { text: text.into(), ..inner(prompt) }
        }
    };
    let result = RalphLoop::new(config("true"), agent, &repo).run().unwrap();
    assert_eq!((result.success, result.total_iterations), (true, 2));
    let first = &result.iterations[0];
    assert!(first.all_checks_passed && !first.completion_tag_found);

    let none = RalphConfig { completion_tag: None, ..config("true") };
    let agent = |_: &AgentContext<'_>| |_: &str| AgentState::default();
    let result = RalphLoop::new(none, agent, &repo).run().unwrap();
    assert_eq!((result.stop_reason.as_str(), result.total_iterations), ("all_checks_passed", 1));
}

#[test]
fn a_promise_without_work_does_not_count() {
    let (_place, repo) = repo();
    let agent = |_: &AgentContext<'_>| |_: &str| AgentState { text: DONE.into(), ..AgentState::default() };
    let config = RalphConfig { max_iterations: 2, ..config("true") };
    let result = RalphLoop::new(config, agent, &repo).run().unwrap();
    assert_eq!(result.stop_reason, "max_iterations");
    let error = result.iterations[0].error.clone().unwrap();
    assert!(error.contains("promise without work"), "{error}");
}

#[test]
fn promise_in_the_echoed_prompt_does_not_count() {
    let (_place, repo) = repo();
    let config = RalphConfig { max_iterations: 1, ..config("true") };
    let result = RalphLoop::new(config.clone(), command(["cat"]), &repo).run().unwrap();
    assert_eq!(result.stop_reason, "max_iterations");
    assert!(!result.iterations[0].completion_tag_found);
    let says = "cat > it\\'s; echo 'I did it.'; echo '<promise>COMPLETE</promise>'";
    let result = RalphLoop::new(config, command(["sh", "-c", says]), &repo).run().unwrap();
    assert!(result.success, "{result:?}");
    assert!(fs::read_to_string(repo.join("it's")).unwrap().contains("Count in n"));
}

#[test]
fn failing_agent_is_retried_with_growing_waits_and_then_given_up() {
    let (_place, repo) = repo();
    let hands = Hands::default();
    let agent = |_: &AgentContext<'_>| {
        |_: &str| AgentState { error: Some("the model is out".into()), ..AgentState::default() }
    };
    let result = on(RalphLoop::new(config("false"), agent, &repo), &hands).run().unwrap();
    assert_eq!((result.stop_reason.as_str(), result.total_iterations), ("failed", 5));
    assert_eq!(hands.waits(), [1, 2, 4, 8]);
    assert_eq!(result.iterations[4].error.as_deref(), Some("the model is out"));

    let result =
        on(RalphLoop::new(config("false"), command(["sh", "-c", "exit 3"]), &repo), &hands).run().unwrap();
    assert_eq!(result.iterations[0].error.as_deref(), Some("exit status 3"));
}

#[test]
fn worktree_has_the_work_and_is_removed_only_if_nothing_is_lost() {
    let (_place, repo) = repo();
    let config = RalphConfig { use_worktree: true, ..config("grep -qx 1 n") };
    let mut looped = RalphLoop::new(config, counting, &repo).named("count");
    assert!(!looped.cleanup_worktree().unwrap(), "there is none yet");
    let result = looped.run().unwrap();
    let tree = PathBuf::from(&result.worktree_path);
    assert!(result.success && tree.ends_with("repo-worktrees/count"), "{result:?}");
    assert_eq!(fs::read_to_string(tree.join("n")).unwrap(), "1\n");
    assert_eq!(fs::read_to_string(repo.join("n")).unwrap(), "0\n");
    let refused = looped.cleanup_worktree().unwrap_err();
    assert_eq!(refused.code, ErrorCode::Conflict);
    assert!(refused.message.contains('n') && tree.join("n").exists(), "{refused:?}");
    git(&tree, &["commit", "-qam", "count"]);
    assert!(looped.cleanup_worktree().unwrap());
    assert!(!tree.exists());
    assert_eq!(
        git(&repo, &["rev-parse", "--verify", "-q", "swarm/count"]).len(),
        40,
        "its branch is not merged"
    );
    assert!(!git(&repo, &["for-each-ref", "refs/swarm/count"]).is_empty(), "and the snapshots stay");
}

#[test]
fn spec_is_read_in_each_iteration_and_ends_the_loop_if_missing() {
    let (place, repo) = repo();
    let spec = place.path().join("spec.md");
    fs::write(&spec, "the first words").unwrap();
    let agent = |context: &AgentContext<'_>| {
        let (spec, number) = (spec.clone(), context.iteration);
        move |prompt: &str| {
            let expected = if number == 1 { "the first words" } else { "the second words" };
            assert!(prompt.contains(expected), "{prompt}");
            if number == 1 {
                fs::write(&spec, "the second words").unwrap();
            } else {
                fs::remove_file(&spec).unwrap();
            }
            AgentState::default()
        }
    };
    let config = RalphConfig { spec_file: Some(spec.clone()), task: String::new(), ..config("false") };
    let result = RalphLoop::new(config, agent, &repo).run().unwrap();
    assert_eq!((result.stop_reason.as_str(), result.iterations.len()), ("prompt_missing", 2));
}

#[test]
fn invalid_config_is_refused_before_anything_runs() {
    let place = tempfile::tempdir().unwrap();
    let good = config("true");
    for (bad, says) in [
        (RalphConfig { checks: vec![], ..good.clone() }, "at least one check"),
        (RalphConfig { checks: vec![" ".into()], ..good.clone() }, "a check cannot be empty"),
        (RalphConfig { task: " ".into(), ..good.clone() }, "a task or a spec"),
        (RalphConfig { max_iterations: 0, ..good.clone() }, "1 to 100"),
        (RalphConfig { max_iterations: 101, ..good.clone() }, "1 to 100"),
        (RalphConfig { max_cost: Some(f64::NAN), ..good.clone() }, "max_cost"),
        (RalphConfig { max_time: Some(0), ..good.clone() }, "max_time"),
        (RalphConfig { completion_tag: Some(String::new()), ..good.clone() }, "completion_tag"),
        (RalphConfig { use_worktree: true, ..good.clone() }, "git"),
    ] {
        let agent = |_: &AgentContext<'_>| -> CommandAgent { panic!("an agent was made") };
        let error = RalphLoop::new(bad, agent, place.path()).run().unwrap_err();
        assert!(error.message.contains(says), "{says}: {error:?}");
    }
    let gone = RalphLoop::new(good, command(["true"]), place.path().join("gone")).run().unwrap_err();
    assert!(gone.message.contains("cannot use directory"), "{gone:?}");
}

#[test]
fn loop_keeps_its_folder_only_on_request_and_runs_in_a_runtime() {
    let place = tempfile::tempdir().unwrap();
    let (work, kept) = (place.path().join("work"), place.path().join("kept"));
    fs::create_dir(&work).unwrap();
    let seen = RefCell::new(PathBuf::new());
    let agent = |context: &AgentContext<'_>| {
        *seen.borrow_mut() = context.folder.to_owned();
        counting(context)
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        assert!(RalphLoop::new(config("true"), agent, &work).run().unwrap().success);
    });
    assert!(seen.borrow().is_absolute() && !seen.borrow().exists());
    let said = command(["sh", "-c", "echo '<promise>COMPLETE</promise>'"]);
    assert!(RalphLoop::new(config("true"), said, &work).keep_in(&kept).run().unwrap().success);
    for file in [
        "base.json",
        "iterations/0001/contract.md",
        "iterations/0001/output.txt",
        "iterations/0001/result.json",
    ] {
        assert!(kept.join(file).is_file(), "{file}");
    }
}

#[test]
fn check_that_cannot_fail_does_not_count() {
    for (work, success) in [
        ("def add(a, b): return a + b\n", true),
        ("import os\nos.write(2, b'Ran 1 test in 0.001s\\n\\nOK\\n')\nos._exit(0)\n", false),
    ] {
        let (_place, repo) = repo();
        fs::write(repo.join("calc.py"), "def add(a, b): return a - b\n").unwrap();
        let test = "import unittest\nfrom calc import add\n\n\nclass T(unittest.TestCase):\n    def test_add(self):\n        \
                    self.assertEqual(add(1, 2), 3)\n";
        fs::write(repo.join("test_calc.py"), test).unwrap();
        let config = RalphConfig { max_iterations: 1, ..config("python3 -m unittest") };
        let agent = |context: &AgentContext<'_>| {
            let file = context.cwd.join("calc.py");
            move |_: &str| {
                fs::write(&file, work).unwrap();
                AgentState { output: "<promise>COMPLETE</promise>".into(), ..AgentState::default() }
            }
        };
        let result = RalphLoop::new(config, agent, &repo).run().unwrap();
        assert_eq!(result.success, success, "{result:?}");
        assert!(result.iterations[0].all_checks_passed);
        let left = fs::read_dir(&repo).unwrap().flatten().map(|entry| entry.file_name());
        assert!(left.into_iter().all(|name| !name.to_string_lossy().contains("canary")));
    }
}
