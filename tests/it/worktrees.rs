//! Worktrees end to end: made for a worker, removed only when nothing is lost by it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::world::World;

/// Runs git in a directory.
#[track_caller]
fn git(world: &World, dir: &Path, args: &[&str]) -> String {
    let mut git = world.command("git");
    git.current_dir(dir).args(args);
    world.run(git).ok().out.trim().to_owned()
}

/// Spawns a worker in a worktree of `repo` and gives the worktree's path.
#[track_caller]
fn spawn(world: &World, repo: &Path, name: &str, flags: &[&str], script: &str) -> PathBuf {
    let cwd = ["--cwd", repo.to_str().unwrap(), "--worktree"];
    let _ = world.spawn_sh(name, &[&cwd, flags].concat(), script).ok();
    world.status(name)["worktree"]["path"].as_str().unwrap().into()
}

fn branches(world: &World, repo: &Path) -> Vec<String> {
    git(world, repo, &["for-each-ref", "--format=%(refname:short)", "refs/heads"])
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn worktree_and_branch_are_removed_if_nothing_is_lost() {
    let world = World::new();
    let repo = world.repo("repo");
    let tree = spawn(&world, &repo, "w", &[], "pwd >../where; sleep 600");
    assert_eq!(tree, world.path("repo-worktrees/w").canonicalize().unwrap());
    world.until("it tells where it is", || world.path("repo-worktrees/where").exists().then_some(()));
    world.until("the place is written", || {
        (world.lines("repo-worktrees/where") == [tree.to_str().unwrap()]).then_some(())
    });
    assert_eq!(branches(&world, &repo), ["main", "swarm/w"]);
    let _ = world.swarm(&["kill", "w", "--rm-worktree"]).ok().says("removed worktree");
    assert!(!tree.exists());
    assert_eq!(branches(&world, &repo), ["main"]);
    assert_eq!(git(&world, &repo, &["status", "--porcelain"]), "");
}

/// Some agents work where PWD says.
#[test]
fn pwd_of_the_agent_is_its_worktree() {
    let mut world = World::new();
    world.set("PWD", world.work().to_str().unwrap());
    world.set("OLDPWD", "/");
    let repo = world.repo("repo");
    let print = "open F, '>', '../pwd' or die; print F map { ($ENV{$_} // 'none') . qq(\n) } qw(PWD OLDPWD); close F; sleep 600";
    let flags = ["--worktree", "--cwd", repo.to_str().unwrap()];
    let _ = world.spawn("w", &flags, &["perl", "-e", print]).ok();
    let tree = world.status("w")["worktree"]["path"].as_str().unwrap().to_owned();
    world.until("it is written", || (world.lines("repo-worktrees/pwd") == [&tree, "none"]).then_some(()));
}

#[test]
fn failed_spawn_leaves_no_branch() {
    let world = World::new();
    let repo = world.repo("repo");
    let cwd = ["--cwd", repo.to_str().unwrap(), "--worktree"];
    let _ = world.spawn("w", &cwd, &["no-such-agent-xyz"]).code(1).warns("no-such-agent-xyz");
    for bad in ["a..b", "x.lock", "a~1", "@", "main/sub"] {
        let _ = world.spawn("w", &[&cwd[..], &["--branch", bad]].concat(), &["sleep", "600"]).code(1);
    }
    let _ = world.spawn("w", &[&cwd[..], &["--branch=-x"]].concat(), &["sleep", "600"]).code(1);
    assert_eq!(branches(&world, &repo), ["main"]);
    assert!(!world.path("repo-worktrees").exists());
    assert_eq!(world.swarm(&["ls", "--format", "names"]).ok().out, "");
    assert!(world.panes().is_empty());
}

#[test]
fn ambiguous_branch_name_is_refused() {
    let world = World::new();
    let repo = world.repo("repo");
    git(&world, &repo, &["tag", "v9"]);
    git(&world, &repo, &["tag", "swarm/tagged"]);
    git(&world, &repo, &["branch", "fix"]);
    git(&world, &repo, &["config", "core.ignorecase", "true"]);
    let before = (branches(&world, &repo), fs::read_to_string(repo.join(".git/config")).unwrap());
    let cwd = ["--cwd", repo.to_str().unwrap(), "--worktree"];
    for bad in [
        "v9",
        "fix/login",
        "FIX",
        "refs/heads/x",
        "heads/main",
        "a b",
        "a:b",
        "a@{b",
        "@{-1}",
        ".x",
        "x.",
        "a//b",
        "a/",
    ] {
        let flags = [&cwd[..], &["--branch", bad]].concat();
        let _ = world.spawn("w", &flags, &["sleep", "600"]).code(1).warns("--branch");
    }
    let _ = world.spawn("tagged", &cwd, &["sleep", "600"]).code(1).warns("refs/tags/swarm/tagged");
    assert_eq!((branches(&world, &repo), fs::read_to_string(repo.join(".git/config")).unwrap()), before);
    assert!(!world.path("repo-worktrees").exists());
    assert_eq!(world.swarm(&["ls", "--format", "names"]).ok().out, "");
}

#[test]
fn repository_without_a_commit_is_refused_with_the_text_of_git() {
    let world = World::new();
    let empty = world.path("empty");
    fs::create_dir(&empty).unwrap();
    git(&world, &empty, &["init", "-q"]);
    let cwd = ["--cwd", empty.to_str().unwrap(), "--worktree"];
    let _ = world
        .spawn_sh("w", &cwd, "pwd >ran")
        .code(1)
        .warns("no commit yet")
        .warns("fatal:")
        .warns("git commit");
    assert_eq!(git(&world, &empty, &["status", "--porcelain"]), "");
    let plain = ["--cwd", world.work().to_str().unwrap(), "--worktree"].map(str::to_owned);
    let _ = world.spawn("w", &plain.iter().map(String::as_str).collect::<Vec<_>>(), &["true"]).code(1);
}

#[test]
fn uncommitted_work_is_removed_only_on_request() {
    let world = World::new();
    let repo = world.repo("repo");
    // Untracked, staged, an operation in progress.
    for (name, script, named) in [
        ("untracked", "echo x >new.txt", "new.txt"),
        ("staged", "echo x >staged.txt; git add staged.txt", "staged.txt"),
        ("rebase", "mkdir -p \"$(git rev-parse --git-dir)/rebase-merge\"", "rebase"),
    ] {
        let tree = spawn(&world, &repo, name, &[], script);
        world.until_status(name, "done");
        let ran = world.swarm(&["kill", name, "--rm-worktree"]).code(1).says(&format!("killed {name} "));
        let _ = ran.warns("swarm: error: ").warns(named).warns("--force-dirty");
        assert!(tree.exists(), "{name}");
        let _ = world.swarm(&["kill", name, "--rm-worktree", "--force-dirty"]).ok().says("removed worktree");
        assert!(!tree.exists(), "{name}");
    }
}

#[test]
fn branch_with_unmerged_work_is_kept() {
    let world = World::new();
    let repo = world.repo("repo");
    let tree = spawn(&world, &repo, "w", &[], "git commit -q --allow-empty -m work");
    world.until_status("w", "done");
    let commit = git(&world, &tree, &["rev-parse", "HEAD"]);
    let _ = world.swarm(&["kill", "w", "--rm-worktree"]).ok().says("removed worktree").warns("swarm/w");
    assert!(!tree.exists());
    assert_eq!(git(&world, &repo, &["rev-parse", "swarm/w"]), commit);
    // The same name again goes on with it.
    let tree = spawn(&world, &repo, "w", &[], "sleep 600");
    assert_eq!(git(&world, &tree, &["rev-parse", "HEAD"]), commit);
}

#[test]
fn loop_keeps_one_worktree_for_all_iterations() {
    let world = World::new();
    let repo = world.repo("repo");
    fs::write(repo.join("p"), "go\n").unwrap();
    let prompt = repo.join("p");
    let flags = ["--ralph", "--prompt-file", prompt.to_str().unwrap(), "-n", "3", "-d"];
    let tree = spawn(&world, &repo, "w", &flags, "pwd >>runs");
    world.until_status("w", "done");
    let runs = fs::read_to_string(tree.join("runs")).unwrap();
    assert_eq!(runs.lines().collect::<Vec<_>>(), [tree.to_str().unwrap(); 3]);
}

#[test]
fn many_worktrees_can_be_created_at_once() {
    let world = World::new();
    let origin = world.repo("origin");
    git(&world, &world.work(), &["clone", "-q", origin.to_str().unwrap(), "../repo"]);
    let repo = world.path("repo");
    let config = fs::read_to_string(repo.join(".git/config")).unwrap();
    world.start_daemon();
    // Somebody else's git holds the lock for a moment.
    fs::write(repo.join(".git/config.lock"), "").unwrap();
    let cwd = repo.to_str().unwrap();
    let spawns: Vec<_> = (0..16)
        .map(|i| {
            world.follow(&[
                "spawn",
                "--name",
                &format!("p{i}"),
                "--cwd",
                cwd,
                "--worktree",
                "--",
                "sleep",
                "600",
            ])
        })
        .collect();
    world
        .until("a worker waits for its tree", || world.swarm(&["ls"]).out.contains("starting").then_some(()));
    fs::remove_file(repo.join(".git/config.lock")).unwrap();
    for mut spawn in spawns {
        assert_eq!(spawn.wait(&world), 0, "{}", spawn.output());
    }
    assert_eq!(git(&world, &repo, &["worktree", "list"]).lines().count(), 17);
    assert_eq!(branches(&world, &repo).len(), 17);
    assert_eq!(fs::read_to_string(repo.join(".git/config")).unwrap(), config);
}

#[test]
fn repository_set_to_bare_is_reported_and_kept() {
    let world = World::new();
    let repo = world.repo("repo");
    let tree = spawn(&world, &repo, "w", &[], "sleep 600");
    git(&world, &repo, &["config", "core.bare", "true"]);
    let cwd = ["--cwd", repo.to_str().unwrap(), "--worktree"];
    let _ = world.spawn("x", &cwd, &["sleep", "600"]).code(1).warns("core.bare");
    let _ = world.swarm(&["kill", "w", "--rm-worktree"]).code(1).warns("core.bare");
    assert!(tree.exists());
    git(&world, &repo, &["config", "core.bare", "false"]);
    let _ = world.swarm(&["kill", "w", "--rm-worktree"]).ok();
    assert!(!tree.exists());
}

#[test]
fn daemon_started_from_a_git_hook_ignores_the_hooks_repository() {
    let mut world = World::new();
    let (repo, other) = (world.repo("repo"), world.repo("other"));
    world.set("GIT_DIR", other.join(".git").to_str().unwrap());
    world.set("GIT_INDEX_FILE", other.join(".git/index").to_str().unwrap());
    let config = fs::read_to_string(other.join(".git/config")).unwrap();
    let _ = world.spawn("w", &["--cwd", repo.to_str().unwrap(), "--worktree"], &["sleep", "600"]).ok();
    world.unset("GIT_DIR");
    world.unset("GIT_INDEX_FILE");
    assert_eq!(branches(&world, &repo), ["main", "swarm/w"]);
    assert_eq!(branches(&world, &other), ["main"]);
    assert_eq!(fs::read_to_string(other.join(".git/config")).unwrap(), config);
}

#[test]
fn cause_before_the_last_line_of_git_is_shown() {
    let world = World::new();
    let repo = world.repo("repo");
    fs::write(repo.join(".gitattributes"), "*.bin filter=lfs\n").unwrap();
    fs::write(repo.join("a.bin"), "x").unwrap();
    git(&world, &repo, &["add", "."]);
    git(&world, &repo, &["commit", "-qm", "a"]);
    git(&world, &repo, &["config", "filter.lfs.process", "no-such-lfs-xyz filter-process"]);
    git(&world, &repo, &["config", "filter.lfs.required", "true"]);
    let cwd = ["--cwd", repo.to_str().unwrap(), "--worktree"];
    let ran = world.spawn("w", &cwd, &["true"]).code(1);
    let _ = ran.warns("cannot make worktree").warns("not found").warns("; fatal: ");
    assert!(!world.path("repo-worktrees").exists());
}
