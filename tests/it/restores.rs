//! Work that every iteration left is brought back after the agent threw it away.

use std::fs;
use std::path::{Path, PathBuf};

use crate::verified::{DONE, Desk};

/// Three iterations: tracked and untracked work, more of it, and then all of it thrown away.
fn turns() -> [String; 3] {
    [
        "echo one >tracked.txt; mkdir -p new/deep; echo 'u 1' >'new/deep/un tracked'; ln -s tracked.txt link".into(),
        "git add -A; git commit -q -m two; echo two >tracked.txt; chmod +x tracked.txt; echo 'u 2' >loose; touch ignored.log".into(),
        format!("git reset -q --hard \"$(git rev-list --max-parents=0 HEAD)\" && git clean -fdxq; touch end; {DONE}"),
    ]
}

/// Restores an iteration and gives the new worktree.
#[track_caller]
fn restore(d: &Desk, iteration: u32) -> PathBuf {
    let ran = d.w.swarm(&["ralph", "restore", "a", &iteration.to_string()]).ok();
    PathBuf::from(ran.out.lines().last().unwrap())
}

fn read(dir: &Path, name: &str) -> Option<String> {
    fs::read_to_string(dir.join(name)).ok()
}

#[track_caller]
fn all_is_back(d: &Desk) {
    let one = restore(d, 1);
    assert_eq!(read(&one, "tracked.txt").as_deref(), Some("one\n"));
    assert_eq!(read(&one, "new/deep/un tracked").as_deref(), Some("u 1\n"));
    assert_eq!(fs::read_link(one.join("link")).unwrap(), Path::new("tracked.txt"));
    assert_eq!(read(&one, "loose"), None);
    let two = restore(d, 2);
    assert_eq!(read(&two, "tracked.txt").as_deref(), Some("two\n"));
    assert_eq!(read(&two, "new/deep/un tracked").as_deref(), Some("u 1\n"));
    assert_eq!(read(&two, "loose").as_deref(), Some("u 2\n"));
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&two.join("tracked.txt").metadata().unwrap().permissions());
    assert_ne!(mode & 0o100, 0);
    assert_eq!(read(&two, "ignored.log"), None, "what git ignores is not covered");
    let three = restore(d, 3);
    assert_eq!((read(&three, "tracked.txt"), read(&three, "end").as_deref()), (None, Some("")));
    let none = restore(d, 0);
    assert_eq!((read(&none, "tracked.txt"), read(&none, "end")), (None, None));
}

#[test]
fn every_iteration_can_be_restored_after_a_hard_reset_and_clean() {
    let d = Desk::new();
    fs::write(d.w.work().join(".git/info/exclude"), "*.log\n").unwrap();
    let turns = turns();
    let agent = d.agent(&[&turns[0], &turns[1], &turns[2]]);
    let (head, stash) = (d.git(&["symbolic-ref", "HEAD"]), d.git(&["stash", "list"]));
    let result = d.result(0, &["--check", "test -e end"], &agent);
    assert_eq!(result["total_iterations"], 3);
    assert!(!d.w.work().join("tracked.txt").exists(), "the agent threw it away");
    let status = d.git(&["status", "--porcelain"]);
    all_is_back(&d);
    assert_eq!((d.git(&["symbolic-ref", "HEAD"]), d.git(&["stash", "list"])), (head, stash));
    assert_eq!(d.git(&["status", "--porcelain"]), status, "the tree was left alone");
    d.w.swarm(&["ralph", "diff", "a", "2"]).ok().says("-one\n+two\n");
}

#[test]
fn every_iteration_of_a_loop_in_a_worktree_can_be_restored() {
    let d = Desk::new();
    fs::write(d.w.work().join(".git/info/exclude"), "*.log\n").unwrap();
    let turns = turns();
    let agent = d.agent(&[&turns[0], &turns[1], &turns[2]]);
    let result = d.result(0, &["--check", "test -e end", "--worktree"], &agent);
    let worktree = PathBuf::from(result["worktree_path"].as_str().unwrap());
    assert!(worktree.join("end").exists() && !worktree.join("tracked.txt").exists());
    assert!(!d.w.work().join("end").exists(), "the user's own tree was left alone");
    all_is_back(&d);
}

#[test]
fn work_discarded_by_the_next_agent_can_be_restored() {
    let d = Desk::new();
    let agent = d.agent(&["echo precious >work", "git clean -fdxq; sleep 1000"]);
    let mut follower =
        d.w.follow(&d.words(&["--check", "test -e end", "--inactivity-timeout", "600"], &agent));
    d.w.until("the second agent is at it", || {
        (d.turns() == 2 && !d.w.work().join("work").exists()).then_some(())
    });
    let _ = d.w.swarm(&["kill", "a"]).ok();
    assert_eq!(follower.wait(&d.w), 1);
    assert_eq!(read(&restore(&d, 1), "work").as_deref(), Some("precious\n"));
}

#[test]
fn kill_saves_a_snapshot_of_the_current_iteration() {
    let d = Desk::new();
    let agent = d.agent(&["echo precious >work; sleep 600"]);
    let mut follower = d.w.follow(&d.words(&["--check", "false"], &agent));
    d.w.until("the agent has worked", || d.w.work().join("work").exists().then_some(()));
    d.w.swarm(&["kill", "a"]).ok();
    assert_eq!(follower.wait(&d.w), 1, "{}", follower.output());
    fs::remove_file(d.w.work().join("work")).unwrap();
    assert_eq!(read(&restore(&d, 1), "work").as_deref(), Some("precious\n"));
}
