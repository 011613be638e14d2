//! Ignored files of a worktree: a removal names them, and deletes only caches unless a flag allows more.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::world::World;

/// Runs git in a directory.
#[track_caller]
fn git(world: &World, dir: &Path, args: &[&str]) {
    let mut git = world.command("git");
    git.current_dir(dir).args(args);
    let _ = world.run(git).ok();
}

/// A repository that ignores some files.
fn repo(world: &World) -> PathBuf {
    let repo = world.repo("repo");
    let rules = ".env\n*.db\nresults/\ntarget/\nnode_modules\nvenv/\n__pycache__/\nvendor/\nscratch/\n";
    fs::write(repo.join(".gitignore"), rules).unwrap();
    git(world, &repo, &["add", "."]);
    git(world, &repo, &["commit", "-qm", "rules"]);
    repo
}

/// Runs a script in a worktree to its end and gives the worktree's path.
#[track_caller]
fn ended(world: &World, repo: &Path, name: &str, script: &str) -> PathBuf {
    let flags = ["--cwd", repo.to_str().unwrap(), "--worktree"];
    let _ = world.spawn_sh(name, &flags, script).ok();
    world.until_status(name, "done")["worktree"]["path"].as_str().unwrap().into()
}

const DATA: &str = "echo KEY=1 >.env; echo rows >app.db; mkdir -p results/a; echo 1 >results/a/r";
const NAMED: &str =
    "holds ignored files that would be lost: .env (6 B), app.db (5 B), results/ (1 file, 2 B)\n";
const CACHES: &str = "mkdir -p target web/node_modules/x pkg/__pycache__ venv; echo x >target/x; \
    echo 1 >web/node_modules/x/i.js; : >pkg/__pycache__/a.pyc; : >venv/pyvenv.cfg";

#[test]
fn removals_refuse_ignored_files_until_they_are_discarded() {
    let world = World::new();
    let repo = repo(&world);
    for (name, verb) in [
        ("k", &["kill", "k", "--rm-worktree"][..]),
        ("c", &["clean", "c"]),
        ("r", &["respawn", "r", "--clean-first"]),
    ] {
        let tree =
            ended(&world, &repo, name, &format!("[ -e ../{name}.ran ] || {{ {DATA}; }}; : >../{name}.ran"));
        let refused = world.swarm(verb).code(1).warns(NAMED);
        let cure = [verb, &["--discard-ignored"]].concat();
        let hint = format!("hint: copy what you want to keep; or delete it: swarm {}\n", cure.join(" "));
        assert!(refused.err.contains(&hint), "{}", refused.err);
        assert_eq!(fs::read_to_string(tree.join(".env")).unwrap(), "KEY=1\n");
        let done = world.swarm(&cure).ok();
        let told = format!("{}{}", done.out, done.err);
        assert!(told.contains("ignored files: .env (6 B), app.db (5 B), results/ (1 file, 2 B)"), "{told}");
        if name != "r" {
            assert!(!tree.exists(), "{name}");
        }
    }
    world.until_status("r", "done");
    assert!(world.path("repo-worktrees/r").is_dir() && !world.path("repo-worktrees/r/.env").exists());
}

#[test]
fn force_dirty_does_not_discard_ignored_files() {
    let world = World::new();
    let repo = repo(&world);
    let tree = ended(&world, &repo, "w", "echo x >new.txt; echo KEY=1 >.env");
    let both = "holds work that would be lost: new.txt; and ignored files: .env (6 B)\n";
    let delete = "or delete it: swarm clean w --force-dirty --discard-ignored\n";
    let _ = world.swarm(&["clean", "w"]).code(1).warns(both).warns(delete);
    let ignored = "holds ignored files that would be lost: .env (6 B)\n";
    let _ = world.swarm(&["clean", "w", "--force-dirty"]).code(1).warns(ignored).warns(delete);
    let work = "holds work that would be lost: new.txt\n";
    let _ = world.swarm(&["clean", "w", "--discard-ignored"]).code(1).warns(work).warns(delete);
    assert!(tree.join("new.txt").exists() && tree.join(".env").exists());
    let _ = world.swarm(&["clean", "w", "--force-dirty", "--discard-ignored"]).ok().says("removed worktree");
    assert!(!tree.exists());
}

#[test]
fn deleted_caches_are_named() {
    let world = World::new();
    let repo = repo(&world);
    let tree = ended(&world, &repo, "w", CACHES);
    let done = world.swarm(&["clean", "w"]).ok();
    let named = "deleted ignored files: caches: pkg/__pycache__/ (1 file, 0 B), target/ (1 file, 2 B), \
        venv/ (1 file, 0 B), web/node_modules/ (1 file, 2 B)\n";
    assert!(done.out.contains(named), "{}", done.out);
    assert!(!tree.exists());
}

#[test]
fn links_caches_and_pushed_clones_do_not_prevent_a_removal() {
    let world = World::new();
    let repo = repo(&world);
    // A link, an empty directory, a cache inside an ignored directory, a clone that its remote has.
    let script = format!(
        "ln -s {0}/.git node_modules; mkdir results; mkdir -p scratch/target; echo x >scratch/target/x; \
         git clone -q {0} vendor/tool",
        repo.display()
    );
    let tree = ended(&world, &repo, "w", &script);
    let _ = world.swarm(&["clean", "w"]).ok();
    assert!(!tree.exists() && repo.join(".git").is_dir());
}

#[test]
fn ignored_files_of_a_repository_inside_are_named() {
    let world = World::new();
    let repo = repo(&world);
    let tree = ended(
        &world,
        &repo,
        "w",
        &format!("git clone -q {} vendor/tool; echo K >vendor/tool/.env", repo.display()),
    );
    let _ = world
        .swarm(&["clean", "w"])
        .code(1)
        .warns("ignored files that would be lost: vendor/tool/.env (2 B)\n");
    assert!(tree.exists());
}

#[test]
fn names_with_newlines_and_a_tree_of_links_do_not_confuse_the_list() {
    let world = World::new();
    let repo = repo(&world);
    let script = "mkdir results; cd results; printf x >'a\nb'; ln -s . loop; ln -s / root; ln -s nowhere gone; \
        mkfifo pipe; cd ..; printf y >'n\nl.db'";
    let tree = ended(&world, &repo, "w", script);
    // The pipe counts as a file; links do not.
    let named = "would be lost: n l.db (1 B), results/ (2 files, 1 B)\n";
    let _ = world.swarm(&["clean", "w"]).code(1).warns(named);
    let _ = world.swarm(&["clean", "w", "--discard-ignored"]).ok();
    assert!(!tree.exists());
}

#[test]
fn clean_all_keeps_only_the_worker_with_ignored_files() {
    let world = World::new();
    let repo = repo(&world);
    let names: Vec<String> = (0..10).map(|n| format!("w{n}")).collect();
    for name in &names {
        let script = if name == "w4" { DATA } else { CACHES };
        let _ = world.spawn_sh(name, &["--cwd", repo.to_str().unwrap(), "--worktree"], script).ok();
    }
    for name in &names {
        world.until_status(name, "done");
    }
    let done = world.swarm(&["clean", "--all"]).code(1).warns(&format!(
        "swarm: error: w4: worktree '{}' {NAMED}",
        world.path("repo-worktrees/w4").canonicalize().unwrap().display()
    ));
    assert_eq!(done.out.matches("removed worktree").count(), 9, "{}", done.out);
    assert_eq!(world.swarm(&["ls", "--format", "names"]).ok().out, "w4\n");
}

#[test]
fn loop_end_names_the_files_that_clean_would_delete() {
    let world = World::new();
    let repo = repo(&world);
    let run = |name: &str, script: &str| {
        let cwd = ["--cwd", repo.to_str().unwrap(), "--worktree", "--no-promise", "--check", "test -e done"];
        let script = format!("{script}; : >done; git add done; git commit -qm done");
        let words = [&["loop", "task", "--name", name][..], &cwd, &["--", "sh", "-c", &script]].concat();
        world.swarm(&words).ok()
    };
    let ran = run("w", &format!("{DATA}; {CACHES}"));
    let told = format!("{}{}", ran.out, ran.err);
    let list = ".env (6 B), app.db (5 B), results/ (1 file, 2 B); caches: ";
    assert!(told.contains("keep:   copy the ignored files that you need"), "{told}");
    assert!(
        told.contains(&format!("remove: swarm clean w --discard-ignored  (deletes ignored files: {list}")),
        "{told}"
    );
    let report: Value = world.swarm(&["report", "w", "--format", "json"]).ok().json();
    assert_eq!(report["ignored"]["data"]["paths"][0]["path"], ".env", "{report}");
    // The progress file is swarm's own.
    let told = {
        let ran = run("v", "true");
        format!("{}{}", ran.out, ran.err)
    };
    assert!(told.contains("remove: swarm clean v\n"), "{told}");
    let _ = world.swarm(&["clean", "v"]).ok().says("removed worktree");
}
