//! Worktrees with submodules: removed only if everything in them also exists elsewhere.

use std::fs;
use std::path::{Path, PathBuf};

use crate::world::World;

/// Runs git in a directory.
#[track_caller]
fn git(world: &World, dir: &Path, args: &[&str]) -> String {
    let mut git = world.command("git");
    git.current_dir(dir).args(["-c", "protocol.file.allow=always"]).args(args);
    world.run(git).ok().out.trim().to_owned()
}

/// A repository with the submodule `lib`, which has the submodule `inner`.
fn repo(world: &mut World) -> PathBuf {
    // A local path as a remote has to be allowed, for the agents as well.
    for (name, value) in [("COUNT", "1"), ("KEY_0", "protocol.file.allow"), ("VALUE_0", "always")] {
        world.set(&format!("GIT_CONFIG_{name}"), value);
    }
    let (inner, lib, repo) = (world.repo("inner"), world.repo("lib"), world.repo("repo"));
    git(world, &lib, &["submodule", "add", "-q", inner.to_str().unwrap(), "inner"]);
    git(world, &lib, &["commit", "-qm", "inner"]);
    git(world, &repo, &["submodule", "add", "-q", lib.to_str().unwrap(), "lib"]);
    git(world, &repo, &["commit", "-qm", "lib"]);
    repo
}

const INIT: &str = "git -c protocol.file.allow=always submodule update --init --recursive -q";

/// Runs a script in a worktree with its submodules to its end and gives the worktree's path.
#[track_caller]
fn ended(world: &World, repo: &Path, name: &str, script: &str) -> PathBuf {
    let flags = ["--cwd", repo.to_str().unwrap(), "--worktree"];
    let _ = world.spawn_sh(name, &flags, &format!("{INIT} && {script}")).ok();
    world.until_status(name, "done")["worktree"]["path"].as_str().unwrap().into()
}

#[test]
fn clean_worktree_with_submodules_is_removed() {
    let mut world = World::new();
    let repo = repo(&mut world);
    let one = ended(&world, &repo, "one", "true");
    let two = ended(&world, &repo, "two", "true");
    assert!(one.join("lib/inner/.git").exists(), "the submodules are there");
    let _ = world.swarm(&["kill", "one", "--rm-worktree"]).ok().says("removed worktree");
    let _ = world.swarm(&["clean", "--all"]).ok().says("cleaned one\n").says("cleaned two\n");
    assert!(!one.exists() && !two.exists());
    assert!(!repo.join(".git/worktrees").exists());
    assert_eq!(git(&world, &repo, &["branch", "--format=%(refname:short)"]), "main");
}

#[test]
fn unpushed_work_in_a_submodule_keeps_the_worktree() {
    let mut world = World::new();
    let repo = repo(&mut world);
    let on_no_remote = "a commit that is on no remote";
    for (name, script, named) in [
        ("dirty", "echo x >lib/new.txt", "new.txt"),
        ("deep", "echo x >lib/inner/new.txt", "repository 'lib/inner' (new.txt)"),
        // Recorded in the repository, but its commit goes with the worktree.
        ("commit", "(cd lib && git commit -q --allow-empty -m own) && git commit -qam lib", on_no_remote),
        ("stash", "(cd lib && echo x >f && git add f && git stash -q)", "on no remote"),
        // Its working tree is gone; its repository is below .git/worktrees.
        (
            "deinit",
            "(cd lib && git checkout -qb own && git commit -q --allow-empty -m own) && rm -rf lib && mkdir lib",
            "submodule 'lib', not checked out (a commit that is on no remote)",
        ),
        (
            "deepinit",
            "(cd lib/inner && git checkout -qb own && git commit -q --allow-empty -m own) && \
             rm -rf lib && mkdir lib",
            "submodule 'lib/modules/inner', not checked out (a commit that is on no remote)",
        ),
        (
            "secret",
            "echo .env >>$(git -C lib rev-parse --git-path info/exclude); echo K >lib/.env",
            "lib/.env (2 B)",
        ),
    ] {
        let tree = ended(&world, &repo, name, script);
        let _ = world.swarm(&["clean", name]).code(1).warns("would be lost: ").warns(named);
        let _ = world.swarm(&["kill", name, "--rm-worktree"]).code(1).warns(named);
        assert!(tree.exists(), "{name}");
        let _ =
            world.swarm(&["clean", name, "--force-dirty", "--discard-ignored"]).ok().says("removed worktree");
        assert!(!tree.exists(), "{name}");
    }
}

#[test]
fn worktree_with_pushed_submodule_work_is_removed() {
    let mut world = World::new();
    let repo = repo(&mut world);
    let script = "cd lib && git checkout -qb own && git commit -q --allow-empty -m own && git push -q origin own && cd .. && \
        git commit -qam lib";
    let tree = ended(&world, &repo, "w", script);
    let _ = world.swarm(&["clean", "w"]).ok().says("removed worktree");
    assert!(!tree.exists());
}

#[test]
fn moved_or_locked_worktree_keeps_its_submodule_repositories() {
    let mut world = World::new();
    let repo = repo(&mut world);
    let commit = "(cd lib && git checkout -qb own && git commit -q --allow-empty -m own)";
    let tree = ended(&world, &repo, "moved", commit);
    fs::rename(&tree, world.path("elsewhere")).unwrap();
    let _ = world.swarm(&["clean", "moved"]).code(1).warns("submodule 'lib', not checked out");
    assert!(repo.join(".git/worktrees/moved/modules/lib").is_dir());
    git(&world, &repo, &["worktree", "repair", world.path("elsewhere").to_str().unwrap()]);
    let tree = ended(&world, &repo, "locked", "true");
    git(&world, &repo, &["worktree", "lock", tree.to_str().unwrap()]);
    for flags in [&[][..], &["--force-dirty"]] {
        let _ = world.swarm(&[&["clean", "locked"], flags].concat()).code(1).warns("locked");
        assert!(tree.join("lib/.git").exists());
    }
    git(&world, &repo, &["worktree", "unlock", tree.to_str().unwrap()]);
    let _ = world.swarm(&["clean", "locked"]).ok();
}
