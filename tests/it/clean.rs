//! `swarm clean`: nothing of a worker that is over is left, and nothing that somebody may want is lost.

use std::fs;
use std::path::{Path, PathBuf};

use crate::world::{World, is_alive};

/// Runs git in a directory.
#[track_caller]
fn git(world: &World, dir: &Path, args: &[&str]) -> String {
    let mut git = world.command("git");
    git.current_dir(dir).args(args);
    world.run(git).ok().out.trim().to_owned()
}

/// Spawns a worker in a worktree of `repo`, waits for its end, and gives the worktree's path.
#[track_caller]
fn ended(world: &World, repo: &Path, name: &str, script: &str) -> PathBuf {
    let flags = ["--cwd", repo.to_str().unwrap(), "--worktree"];
    let _ = world.spawn_sh(name, &flags, script).ok();
    world.until_status(name, "done")["worktree"]["path"].as_str().unwrap().into()
}

/// Everything in the daemon's directory whose path names a worker.
fn left(world: &World, name: &str) -> Vec<String> {
    fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
        for path in fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                walk(&path, found);
            }
            found.push(path);
        }
    }
    let mut found = vec![];
    walk(&world.swarm_dir(), &mut found);
    let of = |path: &PathBuf| {
        let file = path.file_name().unwrap().to_str().unwrap();
        file.split('.').next().unwrap() == name
    };
    found.iter().filter(|path| of(path)).map(|path| path.display().to_string()).collect()
}

#[test]
fn clean_deletes_all_files_of_a_worker_and_none_of_another() {
    let world = World::new();
    let (mut one, mut ten) = (world.agent("task-1"), world.agent("task-10"));
    world.spawn_agent("task-1", &one, &["--record"]);
    world.spawn_agent("task-10", &ten, &["--record"]);
    one.tell("exit 0");
    world.until_status("task-1", "done");
    assert!(!left(&world, "task-1").is_empty());
    let before = left(&world, "task-10");
    world.swarm(&["clean", "task-1"]).ok().says("cleaned task-1\n");
    assert_eq!(left(&world, "task-1"), Vec::<String>::new());
    assert_eq!(left(&world, "task-10"), before);
    world.swarm(&["clean", "task-1"]).code(2).warns("no worker named 'task-1'");
    world.swarm(&["send", "task-1", "oops"]).code(2);
    assert_eq!(world.status("task-10")["status"], "running");
    // The neighbor received nothing so far, and still receives its own input.
    ten.tell("ask");
    world.swarm(&["send", "task-10", "hello"]).ok();
    world.until("it was told one thing", || (ten.file("asked.1") == "hello\n").then_some(()));
    // A daemon that comes after knows nothing of it either.
    world.swarm(&["daemon", "restart"]).ok();
    assert_eq!(world.swarm(&["ls", "--format", "names"]).ok().out, "task-10\n");
}

#[test]
fn clean_deletes_a_loop_with_its_earlier_loops() {
    let world = World::new();
    for round in 0..2 {
        let mut agent = world.agent(&format!("lp{round}"));
        world.spawn_loop("lp", &agent, &["-n", "1"]);
        agent.tell("exit 0");
        world.until_status("lp", "done");
    }
    for there in ["ralph/lp/state.json", "ralph/lp.1/state.json", "logs/lp.log", "workers/lp.json"] {
        assert!(world.swarm_dir().join(there).exists(), "{there}");
    }
    world.swarm(&["clean", "lp"]).ok();
    assert_eq!(left(&world, "lp"), Vec::<String>::new());
    // The name is as good as new.
    let agent = world.agent("again");
    world.spawn_loop("lp", &agent, &["-n", "1"]);
    assert!(!world.swarm_dir().join("ralph/lp.1").exists());
}

#[test]
fn clean_refuses_running_workers_and_all_skips_them() {
    let world = World::new();
    let (mut a, b, mut lp) = (world.agent("a"), world.agent("b"), world.agent("lp"));
    world.spawn_agent("a", &a, &[]);
    world.spawn_agent("b", &b, &[]);
    world.spawn_loop("lp", &lp, &[]);
    world.swarm(&["clean", "--all"]).ok().warns("no finished workers");
    world.swarm(&["clean", "b"]).code(1).warns("'b' has not stopped (running)").warns("swarm kill b");
    world.swarm(&["ralph", "pause", "lp"]).ok();
    lp.tell("exit 0");
    world.until_status("lp", "paused");
    let listed = world.swarm(&["ls", "--format", "names", "--status", "live"]).ok().out.lines().count();
    assert_eq!(world.swarm(&["daemon", "status", "--format", "json"]).ok().json()["live"], listed);
    a.tell("exit 2");
    world.until_status("a", "failed");
    let _ = world
        .swarm(&["clean", "a", "b", "lp"])
        .code(1)
        .says("cleaned a\n")
        .warns("'lp' has not stopped (it is paused)");
    assert_eq!(world.swarm(&["ls", "--format", "names"]).ok().out, "b\nlp\n");
    world.swarm(&["kill", "lp"]).ok();
    assert_eq!(world.swarm(&["clean", "--all"]).ok().out, "cleaned lp\n");
    // A worker that was lost with its tmux server can be cleaned, unless it is a loop.
    world.tmux(&["kill-server"]).ok();
    world.until_status("b", "lost");
    world.swarm(&["clean", "b"]).ok();
    assert_eq!(world.swarm(&["ls", "--format", "names"]).ok().out, "");
}

#[test]
fn clean_keeps_a_worker_with_unsaved_work_and_names_it() {
    let world = World::new();
    let repo = world.repo("repo");
    // Untracked, staged, an operation in progress, a commit that no branch holds.
    let cases = [
        ("untracked", "echo x >new.txt", "new.txt"),
        ("staged", "echo x >staged.txt; git add staged.txt", "staged.txt"),
        (
            "rebase",
            "echo 1 >f; git add f; git commit -qm 1; git branch other; echo 2 >f; git commit -qam 2; \
            git checkout -q other; echo 3 >f; git commit -qam 3; git rebase swarm/rebase; true",
            "a rebase in progress",
        ),
        ("detached", "git checkout -q --detach; git commit -q --allow-empty -m alone", "no branch holds"),
    ];
    let trees: Vec<_> = cases.iter().map(|(name, script, _)| ended(&world, &repo, name, script)).collect();
    for ((name, _, named), tree) in cases.iter().zip(&trees) {
        let ran = world.swarm(&["clean", name]).code(1).warns("swarm: error: ").warns(named);
        assert!(tree.exists() && ran.out.is_empty(), "{name}: {}", ran.out);
        assert_eq!(world.status(name)["worktree"]["path"], tree.to_str().unwrap());
        assert!(!left(&world, name).is_empty(), "{name}");
    }
    let ran = world.swarm(&["clean", "--all"]).code(1);
    for ((_, _, named), tree) in cases.iter().zip(&trees) {
        assert!(tree.exists() && ran.err.contains(named), "{}", ran.err);
    }
    // Only on its own word, or without the tree.
    world.swarm(&["clean", "untracked", "--force-dirty"]).ok().says("removed worktree");
    assert!(!trees[0].exists());
    world.swarm(&["clean", "staged", "--keep-worktree"]).ok().says("left worktree");
    assert!(trees[1].join("staged.txt").exists());
    assert_eq!(left(&world, "staged"), Vec::<String>::new());
}

#[test]
fn clean_keeps_a_branch_with_commits_and_a_stash() {
    let world = World::new();
    let repo = world.repo("repo");
    let work = ended(&world, &repo, "work", "git commit -q --allow-empty -m work");
    let commit = git(&world, &work, &["rev-parse", "HEAD"]);
    let stash = ended(&world, &repo, "stash", "echo x >f; git add f; git stash -q");
    let none = ended(&world, &repo, "none", "true");
    let ran = world.swarm(&["clean", "--all"]).ok();
    for (name, tree) in [("work", &work), ("stash", &stash), ("none", &none)] {
        assert!(ran.out.contains(&format!("cleaned {name}\n")) && !tree.exists(), "{}", ran.out);
    }
    let _ = ran.warns("branch 'swarm/work' is kept");
    assert_eq!(git(&world, &repo, &["rev-parse", "swarm/work"]), commit);
    assert_eq!(git(&world, &repo, &["branch", "--format=%(refname:short)"]), "main\nswarm/work");
    assert_eq!(git(&world, &repo, &["stash", "list"]).lines().count(), 1);
    assert_eq!(git(&world, &repo, &["show", "stash@{0}:f"]), "x");
    assert_eq!(git(&world, &repo, &["fsck", "--no-reflogs", "--lost-found"]), "");
}

#[test]
fn work_stays_in_the_tree_after_the_loop_and_a_new_start() {
    let world = World::new();
    let repo = world.repo("repo");
    fs::write(repo.join("p"), "go\n").unwrap();
    let prompt = repo.join("p");
    let flags = ["--cwd", repo.to_str().unwrap(), "--worktree", "-d", "--ralph", "-n", "2", "--prompt-file"];
    let flags = [&flags[..], &[prompt.to_str().unwrap()]].concat();
    let script = "echo x >>new.txt; echo x >>staged.txt; git add staged.txt";
    for lines in [2, 4] {
        let _ = world.spawn_sh("lp", &flags, script).ok();
        let tree = world.until_status("lp", "done")["worktree"]["path"].as_str().unwrap().to_owned();
        for file in ["new.txt", "staged.txt"] {
            let text = fs::read_to_string(Path::new(&tree).join(file)).unwrap();
            assert_eq!(text.lines().count(), lines, "{file}");
        }
    }
    world.swarm(&["daemon", "restart"]).ok();
    let _ = world.swarm(&["clean", "lp"]).code(1).warns("new.txt").warns("staged.txt");
    let _ = world.swarm(&["kill", "lp", "--rm-worktree"]).code(1).warns("new.txt");
}

#[test]
fn clean_refuses_a_repository_that_was_set_to_bare() {
    let world = World::new();
    let repo = world.repo("repo");
    let tree = ended(&world, &repo, "w", "true");
    git(&world, &repo, &["config", "core.bare", "true"]);
    let config = fs::read_to_string(repo.join(".git/config")).unwrap();
    world.swarm(&["ls"]).ok().says("w");
    for args in [&["clean", "w"][..], &["clean", "--all"], &["clean", "w", "--force-dirty"]] {
        let _ = world.swarm(args).code(1).warns("core.bare").warns("core.bare false");
        assert!(tree.exists() && !left(&world, "w").is_empty());
    }
    assert_eq!(fs::read_to_string(repo.join(".git/config")).unwrap(), config);
    git(&world, &repo, &["config", "core.bare", "false"]);
    world.swarm(&["clean", "w"]).ok().says("removed worktree");
    assert!(!tree.exists());
    assert_eq!(git(&world, &repo, &["branch", "--format=%(refname:short)"]), "main");
}

#[test]
fn clean_keep_worktree_works_without_the_repository() {
    let world = World::new();
    let repo = world.repo("repo");
    ended(&world, &repo, "w", "true");
    fs::remove_dir_all(&repo).unwrap();
    let _ = world.swarm(&["clean", "w"]).code(1).warns("--keep-worktree");
    world.swarm(&["clean", "w", "--keep-worktree"]).ok();
    assert_eq!(left(&world, "w"), Vec::<String>::new());
}

#[test]
fn clean_interrupted_by_a_crash_is_finished_by_the_next_one() {
    for point in ["clean_tree+:1", "clean_files+:1"] {
        let mut world = World::new();
        let repo = world.repo("repo");
        world.set("SWARM_CRASH_AT", point);
        let tree = ended(&world, &repo, "w", "true");
        let daemon = world.daemon_pid().unwrap();
        world.unset("SWARM_CRASH_AT");
        world.swarm(&["clean", "w"]).code(3);
        world.until("the daemon is gone", || (!is_alive(daemon)).then_some(()));
        assert!(!tree.exists(), "{point}");
        assert_eq!(world.swarm(&["ls", "--format", "names"]).ok().out, "w\n", "{point}");
        world.swarm(&["clean", "w"]).ok();
        assert_eq!(left(&world, "w"), Vec::<String>::new(), "{point}");
        assert_eq!(git(&world, &repo, &["branch", "--format=%(refname:short)"]), "main");
        assert_eq!(git(&world, &repo, &["worktree", "list"]).lines().count(), 1);
    }
}

#[test]
fn concurrent_cleans_clean_each_worker_once() {
    let world = World::new();
    let repo = world.repo("repo");
    let names: Vec<String> = (0..6).map(|n| format!("w{n}")).collect();
    for name in &names {
        ended(&world, &repo, name, "true");
    }
    let cleans: Vec<_> = (0..4).map(|_| world.follow(&["clean", "--all"])).collect();
    let mut said = String::new();
    for mut clean in cleans {
        clean.wait(&world);
        said.push_str(&clean.output());
    }
    for name in &names {
        assert_eq!(said.matches(&format!("cleaned {name}\n")).count(), 1, "{said}");
    }
    assert_eq!(world.swarm(&["ls", "--format", "names"]).ok().out, "");
    assert_eq!(git(&world, &repo, &["branch", "--format=%(refname:short)"]), "main");
    assert_eq!(git(&world, &repo, &["worktree", "list"]).lines().count(), 1);
    assert!(!world.path("repo-worktrees").exists());
}

#[test]
fn clean_keeps_a_worktree_that_another_worker_uses() {
    let world = World::new();
    let repo = world.repo("repo");
    let tree = ended(&world, &repo, "w", "true");
    fs::create_dir(tree.join("sub")).unwrap();
    let inside = tree.join("sub");
    let _ = world.spawn("guest", &["--cwd", inside.to_str().unwrap()], &["sleep", "600"]).ok();
    let wanted = "swarm: error: worker 'guest' works in worktree";
    let _ = world.swarm(&["clean", "w", "--force-dirty"]).code(1).warns(wanted).warns("swarm kill guest");
    let _ = world.swarm(&["kill", "w", "--rm-worktree"]).code(1).warns(wanted);
    assert!(inside.exists());
    world.swarm(&["kill", "guest"]).ok();
    world.swarm(&["clean", "w"]).ok().says("removed worktree");
}

#[test]
fn clean_wait_eof_events_and_logs_refuse_invalid_names() {
    let world = World::new();
    let precious = world.path("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("state.json"), "x").unwrap();
    world.start_daemon();
    let long = "n".repeat(300);
    for name in ["../../precious", "", ".", "..", "/etc/x", "a/b/c", "a\nb", &long, "state.json", "a b"] {
        for verb in ["clean", "wait", "eof", "events", "logs"] {
            let _ = world.swarm(&[verb, "--", name]).code(2).warns("use 1 to 64 of A-Z a-z 0-9 _ -");
        }
        // By hand, past the command line's own check.
        let mut wire = world.connect().hello();
        let name = serde_json::Value::from(name);
        for (method, more) in [
            ("clean", r#","keep_worktree":false,"force_dirty":true"#),
            ("eof", ""),
            ("logs", r#","lines":null,"history":false,"iteration":1"#),
        ] {
            wire.send(
                format!("{{\"id\":1,\"method\":\"{method}\",\"params\":{{\"name\":{name}{more}}}}}\n")
                    .as_bytes(),
            );
            let answer = wire.line();
            assert!(answer.contains("\"code\":\"invalid\""), "{method} {name}: {answer}");
        }
        wire.send(
            format!("{{\"id\":1,\"method\":\"subscribe\",\"params\":{{\"worker\":{name}}}}}\n").as_bytes(),
        );
        let answer = wire.line();
        assert!(answer.contains("\"code\":\"invalid\""), "subscribe {name}: {answer}");
    }
    for flag in ["-rf", "--all-of-it"] {
        let _ = world.swarm(&["clean", flag]).code(2);
    }
    assert_eq!(fs::read_to_string(precious.join("state.json")).unwrap(), "x");
    assert_eq!(fs::read_dir(world.swarm_dir().join("workers")).unwrap().count(), 0);
}

#[test]
fn clean_keeps_a_worktree_that_a_process_uses() {
    let world = World::new();
    let repo = world.repo("repo");
    let script = "setsid sh -c 'echo $$ >../pid.$SWARM_WORKER; exec sleep 7781' & \
        while [ ! -s ../pid.$SWARM_WORKER ]; do sleep 0.01; done";
    let (tree, other) = (ended(&world, &repo, "w", script), ended(&world, &repo, "v", script));
    let pid = |name: &str| {
        let file = world.path("repo-worktrees").join(format!("pid.{name}"));
        let text = fs::read_to_string(&file).unwrap();
        fs::remove_file(file).unwrap();
        text.trim().parse::<u32>().unwrap()
    };
    let (one, two) = (pid("w"), pid("v"));
    for verb in [&["clean", "w"][..], &["clean", "w", "--force-dirty"], &["kill", "w", "--rm-worktree"]] {
        let ran = world.swarm(verb).code(1).warns("processes of worker 'w' still use worktree");
        assert!(ran.err.contains(&format!(": {one} (sleep)\n")), "{}", ran.err);
        assert!(ran.err.contains(&format!("hint: kill {one}\n")), "{}", ran.err);
        assert!(tree.exists() && is_alive(one), "{verb:?}");
    }
    world.swarm(&["respawn", "w", "--clean-first"]).code(1).warns("still use worktree");
    // The cure, as it is printed.
    let mut shell = world.command("sh");
    shell.args(["-c", &format!("kill {one}")]);
    world.run(shell).ok();
    world.swarm(&["clean", "w"]).ok().says("removed worktree");
    assert!(!tree.exists() && is_alive(two) && other.exists());
    // Without the worktree nothing is taken away from it.
    world.swarm(&["clean", "v", "--keep-worktree"]).ok();
    assert!(is_alive(two));
    let mut shell = world.command("sh");
    shell.args(["-c", &format!("kill {two}")]);
    world.run(shell).ok();
    world.until("it is gone", || (!is_alive(two)).then_some(()));
}

#[test]
fn clean_looks_into_ignored_repositories() {
    let world = World::new();
    let repo = world.repo("repo");
    fs::write(repo.join(".git/info/exclude"), "vendor/\n").unwrap();
    let script = "git init -q vendor/tool && cd vendor/tool && git commit -q --allow-empty -m own";
    let tree = ended(&world, &repo, "w", script);
    for verb in [&["clean", "w"][..], &["kill", "w", "--rm-worktree"]] {
        let ran = world.swarm(verb).code(1).warns("repository 'vendor/tool' (a commit that is on no remote)");
        let cure = format!("or delete it: swarm {} --force-dirty", verb.join(" "));
        assert!(ran.err.contains(&cure) && tree.exists(), "{}", ran.err);
    }
    world.swarm(&["clean", "w", "--force-dirty"]).ok().says("removed worktree");
    assert!(!tree.exists());
}

#[test]
fn clean_keeps_state_of_a_newer_release() {
    let w = World::new();
    w.swarm(&["loop", "t", "--name", "d", "-n", "1", "--no-promise", "--check", "false", "--", "true"])
        .code(1);
    let path = w.swarm_dir().join("ralph/d/state.json");
    let state = fs::read_to_string(&path).unwrap();
    let newer = state.replace("\"format\": 1", "\"format\": 99");
    assert_ne!(newer, state);
    fs::write(&path, &newer).unwrap();
    for verb in [&["clean", "d"][..], &["ralph", "clean", "d"]] {
        w.swarm(verb)
            .code(1)
            .warns("newer")
            .warns("hint: use the swarm that wrote it, or move the file away");
        assert_eq!(fs::read_to_string(&path).unwrap(), newer);
    }
    w.swarm(&["ralph", "set", "d", "max_iterations=9"])
        .code(1)
        .warns("nothing was changed: ")
        .warns("hint: use the swarm that wrote it, or move the file away, then retry");
}
