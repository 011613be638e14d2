//! swarm's own git never runs a program that the settings of a repository in an agent's tree name.

use std::path::Path;

use crate::world::World;

/// Every setting that can make git run a program, each of which leaves a file `ran-NAME` if it does.
const SETTINGS: &[(&str, &str)] = &[
    ("core.fsmonitor", "fsmonitor"),
    ("core.hooksPath", "hooks"),
    ("core.pager", "pager"),
    ("core.editor", "editor"),
    ("core.askPass", "askpass"),
    ("core.sshCommand", "ssh"),
    ("core.gitProxy", "proxy"),
    ("core.alternateRefsCommand", "alternates"),
    ("credential.helper", "credential"),
    ("diff.external", "external"),
    ("diff.x.command", "command"),
    ("diff.x.textconv", "textconv"),
    ("filter.x.clean", "clean"),
    ("filter.x.smudge", "smudge"),
    ("filter.a=b.clean", "clean-with-equals"),
    ("filter.p.process", "process"),
    ("merge.x.driver", "merge"),
    ("gpg.program", "gpg"),
    ("remote.o.uploadpack", "uploadpack"),
    ("sequence.editor", "sequence"),
    ("interactive.diffFilter", "interactive"),
];

const HOOKS: [&str; 8] = [
    "pre-commit",
    "post-commit",
    "post-checkout",
    "post-index-change",
    "post-merge",
    "reference-transaction",
    "prepare-commit-msg",
    "pre-auto-gc",
];

/// Makes a repository below the working directory whose settings name programs.
fn trap(world: &World, tree: &Path, name: &str) {
    let repo = tree.join(name);
    std::fs::create_dir_all(&repo).unwrap();
    let git = |args: &[&str]| {
        let mut git = world.command("git");
        git.arg("-C").arg(&repo).args(args);
        let _ = world.run(git).ok();
    };
    git(&["init", "-q"]);
    std::fs::write(repo.join("file"), "text\n").unwrap();
    git(&["add", "file"]);
    git(&["commit", "-qm", "inner"]);
    // The tree around it has it as a submodule, into which git looks.
    let mut add = world.command("git");
    add.arg("-C").arg(tree).args(["add", name]);
    let _ = world.run(add).ok();
    let traps = world.path("traps");
    std::fs::create_dir_all(traps.join("hooks")).unwrap();
    let program = |path: &Path, name: &str| {
        let text = format!("#!/bin/sh\ntouch {}/ran-{name}\nexit 1\n", world.path("").display());
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    };
    for hook in HOOKS {
        program(&traps.join("hooks").join(hook), hook);
        program(&repo.join(".git/hooks").join(hook), hook);
    }
    for (key, name) in SETTINGS.iter().filter(|(key, _)| *key != "core.hooksPath") {
        program(&traps.join(name), name);
        git(&["config", key, traps.join(name).to_str().unwrap()]);
    }
    git(&["config", "core.hooksPath", traps.join("hooks").to_str().unwrap()]);
    git(&["config", "remote.o.url", traps.to_str().unwrap()]);
    git(&["config", "remote.o.promisor", "true"]);
    let attributes = "* filter=x diff=x merge=x\nodd filter=a=b\np filter=p\n";
    std::fs::create_dir_all(repo.join(".git/info")).unwrap();
    std::fs::write(repo.join(".git/info/attributes"), attributes).unwrap();
    // git has to look at the contents.
    for file in ["file", "odd", "p"] {
        std::fs::write(repo.join(file), "TEXT\n").unwrap();
    }
}

#[test]
fn no_program_named_by_a_nested_repository_is_run() {
    let world = World::new();
    let repo = world.repo("work");
    drop(repo);
    let agent = "echo work >work; [ -e first ] || { touch first; exit 0; }; touch done";
    world.write("PROMPT.md", "x\n");
    world.write("agent.sh", &format!("{agent}\n"));
    for args in [&["add", "-A"][..], &["commit", "-qm", "agent"]] {
        let mut git = world.command("git");
        git.args(args);
        let _ = world.run(git).ok();
    }
    // The worktree exists before the loop, so that the trap is there from the beginning.
    let mut git = world.command("git");
    git.args(["worktree", "add", "-q", "-b", "trap", "../other"]);
    let _ = world.run(git).ok();
    trap(&world, &world.path("other"), "inner");
    trap(&world, &world.path("other"), "deep/inner");
    let other = world.path("other").display().to_string();
    let ran = world.swarm(&[
        "spawn",
        "--name",
        "l",
        "--cwd",
        &other,
        "--ralph",
        "--prompt-file",
        &world.path("work/PROMPT.md").display().to_string(),
        "-n",
        "3",
        "--check",
        "test -e done",
        "--clean-check",
        "--no-canary",
        "--",
        "sh",
        &world.path("work/agent.sh").display().to_string(),
    ]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    for args in [
        &["report", "l"][..],
        &["ralph", "diff", "l"],
        &["ralph", "restore", "l", "1"],
        &["why", "l"],
        &["ralph", "logs", "l"],
    ] {
        let _ = world.swarm(args).ok();
    }
    removed(&world);
    assert_eq!(ran_programs(&world), [""; 0]);
    // The trap works.
    let mut git = world.command("git");
    git.arg("-C").arg(world.path("other/inner")).args(["status", "--porcelain"]);
    let _ = world.run(git).ok();
    assert!(ran_programs(&world).contains(&"ran-fsmonitor".to_owned()));
}

/// Removes a worktree of swarm with a repository in it.
fn removed(world: &World) {
    world.spawn_sh("w", &["--worktree"], "sleep 1000").ok();
    let own = world.path("work-worktrees/w");
    trap(world, &own, "inner");
    world.swarm(&["kill", "w"]).ok();
    let refused = world.swarm(&["clean", "w"]);
    assert_ne!(refused.code, Some(0), "{}", refused.out);
    world.swarm(&["clean", "w", "--force-dirty"]).ok();
    assert!(!own.exists());
    world.swarm(&["clean", "l", "--force-dirty"]).ok();
}

fn ran_programs(world: &World) -> Vec<String> {
    let entries = std::fs::read_dir(world.path("")).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("ran-")).collect()
}
