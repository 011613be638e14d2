//! `swarm respawn`: a worker once more, as it was spawned, and nothing lost on the way.

use std::fs;
use std::os::unix::fs::MetadataExt;

use serde_json::{Value, json};

use crate::world::{SWARM, World, is_alive};

#[test]
fn respawn_of_a_finished_worker_uses_its_spawn_options() {
    let w = World::new();
    fs::create_dir(w.path("work/sub")).unwrap();
    let script = "echo $FOO/$OWN >>env; cat >>prompt; pwd >>where; exit 3";
    let mut command = w.command(SWARM);
    command.env("FOO", "one").args(["spawn", "--name", "w", "--cwd", "sub", "--tag", "night"]);
    command.args(["--env", "OWN=x", "--prompt", "do it", "--prompt-via", "stdin", "--", "sh", "-c", script]);
    let _ = w.run(command).ok();
    let first = w.until_status("w", "failed");
    // Another daemon, from another environment.
    w.crash_daemon();
    let mut command = w.command(SWARM);
    command.env("FOO", "two").args(["respawn", "w"]);
    assert_eq!(w.run(command).ok().out, "respawned w (tmux: swarm:w)\n");
    w.until("it ran twice", || (w.lines("work/sub/where").len() == 2).then_some(()));
    let second = w.until_status("w", "failed");
    assert_eq!(w.lines("work/sub/env"), ["one/x", "one/x"]);
    assert_eq!(w.lines("work/sub/prompt"), ["do itdo it"]);
    for key in ["cmd", "cwd", "tags", "env", "exit_code", "restarts"] {
        assert_eq!(first[key], second[key], "{key}");
    }
    assert_ne!(first["started"], second["started"]);
}

#[test]
fn respawn_ends_a_live_worker_first() {
    let w = World::new();
    let _ = w.spawn_sh("w", &[], "echo $$ >>pids; sleep 600; true").ok();
    w.until("it runs", || (w.lines("work/pids").len() == 1).then_some(()));
    let shown = w.swarm(&["respawn", "w", "--format", "json"]).ok().json();
    w.until("it runs again", || (w.lines("work/pids").len() == 2).then_some(()));
    let pids: Vec<u32> = w.lines("work/pids").iter().map(|line| line.parse().unwrap()).collect();
    assert_eq!((is_alive(pids[0]), is_alive(pids[1])), (false, true));
    assert_eq!((&shown["name"], &shown["status"]), (&json!("w"), &json!("running")));
    assert_eq!(w.panes().len(), 1);
}

#[test]
fn respawn_starts_killed_lost_and_waiting_workers() {
    let w = World::new();
    let script = "echo $$ >>$0; sleep 600";
    for name in ["killed", "lost"] {
        let _ = w.spawn(name, &[], &["sh", "-c", script, name]).ok();
        w.until("it runs", || (w.lines(format!("work/{name}")).len() == 1).then_some(()));
    }
    let _ = w.swarm(&["kill", "killed"]).ok();
    let _ = w.tmux(&["kill-server"]).ok();
    w.until_status("lost", "lost");
    let flags = ["--restart", "always", "--max-restarts", "4"];
    let _ = w.spawn("waiting", &flags, &["sh", "-c", "echo >>waiting; exit 1"]).ok();
    let mut poll = w.status_poll("waiting");
    w.until("it waits for a while", || (poll.look()["restart"]["failures"] == 3).then_some(()));
    for name in ["killed", "lost", "waiting"] {
        let _ = w.swarm(&["respawn", name]).ok().says(&format!("respawned {name} "));
    }
    for name in ["killed", "lost"] {
        w.until("it runs again", || (w.lines(format!("work/{name}")).len() == 2).then_some(()));
        w.until_status(name, "running");
    }
    // The policy is of the spec, and its count begins anew.
    w.until("it is counted from 1", || (poll.look()["restart"]["failures"] == 1).then_some(()));
    assert_eq!(w.status("waiting")["restart"]["max_restarts"], 4);
    let _ = w.swarm(&["kill", "--all"]).ok();
}

#[test]
fn respawn_of_unknown_workers_and_missing_programs_is_refused() {
    let w = World::new();
    let _ = w.swarm(&["respawn", "nobody"]).code(2).warns("no worker named 'nobody'");
    let _ = w.swarm(&["respawn", "../x"]).code(2);
    let _ = w.swarm(&["respawn"]).code(2);
    // Its program is gone: the live one is not ended for that.
    let program = w.path("work/agent.sh");
    fs::write(&program, "#!/bin/sh\nsleep 600\n").unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let _ = w.spawn("w", &[], &["./agent.sh"]).ok();
    let pid = w.until("it runs", || w.status("w")["pid"].as_u64());
    fs::remove_file(&program).unwrap();
    let _ = w.swarm(&["respawn", "w"]).code(1).warns("no such program: ./agent.sh");
    assert_eq!(w.status("w")["pid"], pid);
}

#[test]
fn agent_cannot_respawn_itself() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_agent("w", &agent, &[]);
    agent.tell(&format!("run {SWARM} respawn w 2>\"$dir/said\"; echo $? >\"$dir/code\""));
    w.until("it was told", || (agent.file("code") == "1\n").then_some(()));
    assert!(agent.file("said").contains("worker 'w' may not respawn itself"), "{}", agent.file("said"));
    assert_eq!(agent.starts(), 1);
}

#[test]
fn respawned_loop_starts_at_iteration_1_and_is_followed() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("l", &agent, &["-n", "5"]);
    agent.tell("exit 0");
    agent.until_run(&w, 2);
    let _ = w.swarm(&["ralph", "set", "l", "max_iterations=2"]).ok();
    agent.tell("exit 0");
    w.until_status("l", "done");
    let mut follower = w.follow(&["respawn", "l"]);
    agent.until_run(&w, 3);
    follower.until_says(&w, "respawned l (tmux: swarm:l) [ralph mode: iteration 1/2]\n");
    let state = w.ralph_state("l");
    assert_eq!((&state["current_iteration"], &state["max_iterations"]), (&json!(1), &json!(2)));
    let earlier = fs::read_to_string(w.swarm_dir().join("ralph/l.1/state.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&earlier).unwrap()["current_iteration"], 2);
    agent.tell("exit 0");
    agent.until_run(&w, 4);
    agent.tell("exit 0");
    assert_eq!(follower.wait(&w), 0);
    follower.says("[ralph] l: iteration 2 completed");
    // With -d it does not wait for the end, of a live loop as well.
    let _ = w.swarm(&["respawn", "l", "-d"]).ok();
    agent.until_run(&w, 5);
    let _ = w.swarm(&["respawn", "l", "-d"]).ok();
    agent.until_run(&w, 6);
    assert!(!is_alive(agent.pid(5).unwrap()));
    assert_eq!((w.ralph_state("l")["current_iteration"].as_u64(), w.panes().len()), (Some(1), 1));
}

/// A worker in a worktree of a repository; gives the worktree's path.
fn in_worktree(w: &World, script: &str) -> std::path::PathBuf {
    let repo = w.repo("repo");
    let flags = ["--worktree", "--cwd", repo.to_str().unwrap()];
    let _ = w.spawn_sh("w", &flags, script).ok();
    w.status("w")["worktree"]["path"].as_str().unwrap().into()
}

fn git(w: &World, dir: &std::path::Path, args: &[&str]) -> String {
    let mut git = w.command("git");
    git.current_dir(dir).args(args);
    w.run(git).ok().out
}

#[test]
fn respawn_keeps_the_worktree_and_its_files() {
    let w = World::new();
    let tree = in_worktree(&w, "echo run >>runs");
    w.until_status("w", "done");
    let _ = w.swarm(&["respawn", "w"]).ok();
    w.until("both runs worked there", || (w.lines(tree.join("runs")).len() == 2).then_some(()));
    w.until_status("w", "done");
    assert_eq!(w.status("w")["worktree"]["path"], tree.to_str().unwrap());
}

#[test]
fn clean_first_recreates_the_worktree_and_keeps_its_commits() {
    let w = World::new();
    let tree = in_worktree(&w, "pwd >>../runs; sleep 600");
    let runs = || w.lines("repo-worktrees/runs").len();
    w.until("it runs", || (runs() == 1).then_some(()));
    // An ignored file is no work, and marks the old tree.
    fs::create_dir_all(w.path("repo/.git/info")).unwrap();
    fs::write(w.path("repo/.git/info/exclude"), "mark\n").unwrap();
    fs::write(tree.join("mark"), "").unwrap();
    git(&w, &tree, &["commit", "-q", "--allow-empty", "-m", "its work"]);
    let _ = w
        .swarm(&["respawn", "w", "--clean-first", "--discard-ignored"])
        .ok()
        .warns("it has unmerged commits");
    w.until("it runs again", || (runs() == 2).then_some(()));
    assert!(tree.is_dir() && !tree.join("mark").exists());
    assert!(git(&w, &tree, &["log", "--format=%s"]).starts_with("its work\n"));
    assert_eq!(w.status("w")["worktree"]["branch"], "swarm/w");
    assert_eq!(git(&w, &w.path("repo"), &["worktree", "list"]).lines().count(), 2);
}

#[test]
fn clean_first_refuses_to_lose_work_and_ends_nothing() {
    let w = World::new();
    let tree = in_worktree(&w, "echo x >new.txt; sleep 600");
    w.until("it has work", || tree.join("new.txt").exists().then_some(()));
    let pid = w.status("w")["pid"].clone();
    let refused = w.swarm(&["respawn", "w", "--clean-first"]).code(1).warns("new.txt");
    assert!(refused.err.contains("hint: commit it"), "{}", refused.err);
    assert!(!refused.err.contains("remove it with it"), "{}", refused.err);
    assert_eq!((&w.status("w")["pid"], tree.join("new.txt").exists()), (&pid, true));
    // Ended, it is refused as well, and stays as it is.
    let _ = w.swarm(&["kill", "w"]).ok();
    let _ = w.swarm(&["respawn", "w", "--clean-first"]).code(1).warns("new.txt");
    assert_eq!((&w.status("w")["status"], tree.join("new.txt").exists()), (&json!("killed"), true));
}

#[test]
fn respawn_recreates_a_deleted_worktree() {
    let w = World::new();
    let tree = in_worktree(&w, "pwd >>../runs; sleep 600");
    w.until("it runs", || (w.lines("repo-worktrees/runs").len() == 1).then_some(()));
    let _ = w.swarm(&["kill", "w"]).ok();
    fs::remove_dir_all(&tree).unwrap();
    let _ = w.swarm(&["respawn", "w"]).ok();
    w.until("it runs again", || (w.lines("repo-worktrees/runs").len() == 2).then_some(()));
    assert!(tree.is_dir());
}

/// Whatever goes wrong on the way, the worker and its record stay.
#[test]
fn failed_respawn_keeps_the_worker() {
    let w = World::new();
    let tree = in_worktree(&w, "sleep 600");
    let _ = w.swarm(&["kill", "w", "--rm-worktree"]).ok();
    assert!(!tree.exists());
    // The place of its worktree is taken.
    fs::create_dir_all(&tree).unwrap();
    fs::write(tree.join("mine"), "").unwrap();
    let _ = w.swarm(&["respawn", "w"]).code(1).warns("already exists and is not an empty directory");
    assert_eq!(w.until_status("w", "failed")["restarts"], 0);
    w.crash_daemon();
    w.start_daemon();
    assert_eq!(w.status("w")["status"], "failed");
    fs::remove_file(tree.join("mine")).unwrap();
    let _ = w.swarm(&["respawn", "w"]).ok();
    w.until_status("w", "running");
}

#[test]
fn kill_during_a_respawn_wins() {
    let w = World::new();
    let script = "trap '' TERM; echo $$ >>pids; while :; do sleep 0.1; done";
    let _ = w.spawn_sh("w", &[], script).ok();
    w.until("it runs", || (w.lines("work/pids").len() == 1).then_some(()));
    // The process ignores SIGTERM, so both wait for its end.
    let mut respawn = w.follow(&["respawn", "w"]);
    w.until("it is being ended", || (w.status("w")["reason"] == "ending: killed").then_some(()));
    let _ = w.swarm(&["kill", "w"]).ok();
    assert_eq!(respawn.wait(&w), 1, "{}", respawn.output());
    respawn.says("worker 'w' was killed meanwhile");
    assert_eq!((&w.status("w")["status"], w.lines("work/pids").len()), (&json!("killed"), 1));
}

/// Several commands at once: how each ended, and what it said.
fn at_once(w: &World, commands: &[&[&str]]) -> Vec<(i32, String)> {
    let mut running: Vec<_> = commands.iter().map(|args| w.follow(args)).collect();
    running.iter_mut().map(|one| (one.wait(w), one.output())).collect()
}

#[test]
fn concurrent_respawns_start_one_run_and_refuse_the_others() {
    let w = World::new();
    let _ = w.spawn_sh("w", &[], "echo $$ >>pids; trap 'sleep 0.3; exit' TERM; sleep 600 & wait").ok();
    w.until("it runs", || (w.lines("work/pids").len() == 1).then_some(()));
    let respawn = ["respawn", "w"];
    let ended = at_once(&w, &[&respawn[..]; 6]);
    let done = ended.iter().filter(|(code, _)| *code == 0).count();
    // A request that came after the first had finished is a respawn of its own.
    assert!(done >= 1, "{ended:?}");
    for (code, said) in ended.iter().filter(|(code, _)| *code != 0) {
        let told = said.contains("is being respawned") || said.contains("is starting");
        assert!(*code == 1 && told && said.contains("hint: wait a moment, then retry"), "{said}");
    }
    w.until("as many ran as were said to", || (w.lines("work/pids").len() == 1 + done).then_some(()));
    let pids: Vec<u32> = w.lines("work/pids").iter().map(|line| line.parse().unwrap()).collect();
    assert_eq!(pids.iter().filter(|pid| is_alive(**pid)).count(), 1, "{pids:?}");
    assert_eq!((w.panes().len(), w.status("w")["status"].as_str()), (1, Some("running")));
}

#[test]
fn spawn_and_clean_are_refused_during_a_respawn_and_a_kill_cancels_it() {
    let w = World::new();
    let script = "trap 'until [ -e go ]; do sleep 0.05; done; exit' TERM; echo >>runs; sleep 600 & wait";
    let _ = w.spawn_sh("w", &[], script).ok();
    w.until("it runs", || (w.lines("work/runs").len() == 1).then_some(()));
    let mut respawn = w.follow(&["respawn", "w"]);
    w.until("it is being ended", || {
        w.status("w")["reason"].as_str().is_some_and(|why| why.contains("killed")).then_some(())
    });
    for flags in [&[][..], &["--replace"]] {
        let _ = w.spawn("w", flags, &["sleep", "600"]).code(1).warns("worker 'w' is being respawned");
    }
    let _ = w.swarm(&["clean", "w"]).code(1).warns("worker 'w' is being respawned");
    let _ = w.swarm(&["respawn", "w"]).code(1).warns("worker 'w' is being respawned");
    // A kill that was heard is written down, whatever was there before.
    let version = || fs::metadata(w.swarm_dir().join("workers/w.json")).unwrap().ino();
    let before = version();
    let mut kill = w.follow(&["kill", "w"]);
    w.until("it is heard", || (version() != before).then_some(()));
    w.write("go", "");
    let (killed, respawned) = (kill.wait(&w), respawn.wait(&w));
    let said = respawn.output();
    assert_eq!((killed, respawned), (0, 1), "{} {said}", kill.output());
    assert!(said.contains("killed meanwhile"), "{said}");
    w.until_status("w", "killed");
    assert_eq!((w.lines("work/runs").len(), w.panes().len()), (1, 0));
    let _ = w.swarm(&["respawn", "w"]).ok();
}
