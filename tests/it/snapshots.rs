//! Snapshots of a loop, and how `clean` and `ralph clean` delete them once a branch of the user's has the work.

use std::path::Path;

use crate::verified::{DONE, Desk};
use crate::world::World;

#[track_caller]
fn git(world: &World, repo: &Path, args: &[&str]) -> String {
    let mut git = world.command("git");
    git.current_dir(repo).args(args);
    world.run(git).ok().out
}

/// How many snapshots a worker has.
fn count(world: &World, repo: &Path, name: &str) -> usize {
    git(world, repo, &["for-each-ref", &format!("refs/swarm/{name}/")]).lines().count()
}

/// Runs a loop of one iteration to its end.
#[track_caller]
fn run(world: &World, repo: &Path, name: &str, flags: &[&str], script: &str) {
    let prompt = world.path("prompt");
    std::fs::write(&prompt, "go\n").unwrap();
    let (cwd, prompt) = (repo.to_str().unwrap(), prompt.to_str().unwrap());
    let common = ["--cwd", cwd, "-d", "--ralph", "-n", "1", "--prompt-file", prompt];
    let _ = world.spawn_sh(name, &[&common[..], flags].concat(), script).ok();
    world.until_status(name, "done");
    assert_eq!(count(world, repo, name), 2, "before and after the iteration");
}

const COMMIT: &str = "echo x >$SWARM_WORKER; git add .; git commit -qm work";

#[test]
fn committed_work_needs_no_snapshots() {
    let world = World::new();
    let repo = world.repo("repo");
    run(&world, &repo, "done", &[], COMMIT);
    run(&world, &repo, "other", &[], "true");
    let _ = world.swarm(&["clean", "done"]).ok().says("removed 2 snapshots (refs/swarm/done/");
    assert_eq!((count(&world, &repo, "done"), count(&world, &repo, "other")), (0, 2));
    // A loop without changes: its files are those of the commit where it started.
    let _ = world.swarm(&["ralph", "clean", "other"]).ok().says("removed 2 snapshots (refs/swarm/other/");
    assert_eq!(count(&world, &repo, "other"), 0);
}

#[test]
fn merged_work_needs_no_snapshots_and_a_branch_of_swarm_is_not_enough() {
    let world = World::new();
    let repo = world.repo("repo");
    for name in ["merged", "waiting"] {
        run(&world, &repo, name, &["--worktree"], COMMIT);
    }
    git(&world, &repo, &["merge", "-q", "--no-ff", "-m", "merge", "swarm/merged"]);
    let _ = world.swarm(&["clean", "merged"]).ok().says("removed 2 snapshots");
    let ran = world.swarm(&["clean", "waiting"]).ok().says("left 2 snapshots (refs/swarm/waiting/");
    assert_eq!((count(&world, &repo, "merged"), count(&world, &repo, "waiting")), (0, 2));
    // The command of the hint deletes them.
    let (_, hint) = ran.err.split_once("hint: to delete them: ").expect("a hint");
    let mut shell = world.command("sh");
    shell.args(["-c", hint.lines().next().unwrap()]);
    let _ = world.run(shell).ok();
    assert_eq!(count(&world, &repo, "waiting"), 0);
}

#[test]
fn work_that_is_only_in_a_snapshot_stays_until_it_is_discarded() {
    let world = World::new();
    let repo = world.repo("repo");
    run(&world, &repo, "dirty", &["--worktree"], "echo precious >new.txt");
    let _ = world.swarm(&["clean", "dirty", "--force-dirty"]).ok().says("left 2 snapshots");
    let last = git(&world, &repo, &["for-each-ref", "--format=%(refname)", "refs/swarm/dirty/*/1"]);
    assert_eq!(git(&world, &repo, &["show", &format!("{}:new.txt", last.trim())]), "precious\n");
    for verb in [&["clean", "gone"][..], &["ralph", "clean", "gone"]] {
        run(&world, &repo, "gone", &[], "echo x >untracked");
        let _ = world.swarm(&[verb, &["--discard"]].concat()).ok().says("removed 2 snapshots");
        assert_eq!(count(&world, &repo, "gone"), 0);
    }
    assert_eq!(count(&world, &repo, "dirty"), 2);
    // `ralph clean` keeps them without the loop's files.
    for verb in [&["clean", "late"][..], &["ralph", "clean", "late"]] {
        run(&world, &repo, "late", &[], "echo x >>late");
        let _ = world.swarm(&["ralph", "clean", "late"]).ok().says("left 2 snapshots");
        let told = world.swarm(&["why", "late"]).ok();
        assert!(told.out.ends_with("next: to start it again: swarm respawn late\n"), "{}", told.out);
        let _ = world
            .swarm(&["ralph", "resume", "late"])
            .code(1)
            .warns("start the loop again: swarm respawn late");
        let again = "to start it again from the first iteration: swarm respawn late";
        let _ = world.swarm(&["ralph", "set", "late", "max_iterations=5"]).ok().warns(again);
        let _ = world.swarm(&[verb, &["--discard"]].concat()).ok().says("removed 2 snapshots");
        assert_eq!(count(&world, &repo, "late"), 0);
    }
    let _ = world.swarm(&["ralph", "clean", "late", "--discard"]).code(1).warns("no ralph state for 'late'");
}

/// The files of an iteration's snapshot.
fn files(desk: &Desk, iteration: u32) -> String {
    let refs = desk.git(&["for-each-ref", "--format=%(refname)", "refs/swarm/a"]);
    let reference = refs.lines().find(|line| line.ends_with(&format!("/{iteration}"))).unwrap();
    desk.git(&["ls-tree", "-r", "--name-only", reference])
}

#[test]
fn forged_git_index_hides_no_change_from_a_snapshot() {
    let d = Desk::new();
    d.commit("a.txt", "old\n");
    let index = d.w.swarm_dir().join("ralph/a/index");
    let forge = format!("GIT_INDEX_FILE='{}' git update-index --assume-unchanged a.txt", index.display());
    let turns =
        ["echo 1 >new", &format!("test -e '{}' && {forge} && echo new >a.txt; {DONE}", index.display())];
    let check = ["--check", "grep -q new a.txt", "-n", "3"];
    d.run(&check, &d.agent(&turns)).code(0);
    d.w.swarm(&["ralph", "diff", "a"]).ok().says("-old\n+new\n");
}

#[test]
fn a_file_that_git_ignores_since_the_last_snapshot_is_not_in_the_next() {
    let d = Desk::new();
    let turns = ["mkdir out; touch out/x y", &format!("echo out/ >.gitignore; {DONE}")];
    d.run(&["--check", "test -e .gitignore", "-n", "3"], &d.agent(&turns)).code(0);
    assert!(files(&d, 1).contains("out/x\n"));
    let last = files(&d, 2);
    assert!(!last.contains("out/x") && last.contains("y\n"), "{last}");
}

#[test]
fn recreated_repository_has_snapshots() {
    let d = Desk::new();
    d.commit("a.txt", "old\n");
    let turns = ["touch x", &format!("rm -rf .git; git init -q; touch z; {DONE}")];
    d.run(&["--check", "test -e z", "-n", "3"], &d.agent(&turns)).code(0);
    assert!(files(&d, 2).contains("a.txt\n"), "{}", files(&d, 2));
}
