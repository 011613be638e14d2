//! A task list that a loop works on: nobody replaces it, `ls` and `status` show the story, and a story that cannot be
//! approved pauses the loop.

use std::fs;

use serde_json::json;

use crate::task_loops::{Project, story};

/// Perl code that deletes the marker, and works until a file appears.
const WORK_UNMARKED: &str =
    r#"unlink '.ralph-active'; while (!-e "$dir/go") { select(undef, undef, undef, 0.02) } "" "#;

#[test]
fn a_list_in_use_is_protected_although_its_marker_was_deleted() {
    let project = Project::new(&[story("US-001"), story("US-002")]);
    let world = &project.world;
    project.cheat(1, WORK_UNMARKED);
    project.write("plan.md", "- [ ] Three\n");
    let mut follower = world.follow(&project.args(&[]));
    let is_unmarked = || (project.calls() == 1 && !project.path(".ralph-active").exists()).then_some(());
    world.until("the agent deleted the marker", is_unmarked);
    let archive = ["ralph", "archive"];
    let init = ["ralph", "init", "--tasks", "--force"];
    let import = ["ralph", "tasks", "import", "plan.md"];
    let in_use = "worker 'l' works on the task list 'ralph'";
    for replace in [&archive[..], &init[..]] {
        world.swarm(replace).code(1).warns(in_use).warns("hint: to end the loop: swarm kill l; then retry");
    }
    world.swarm(&import).code(1).warns(in_use).warns("hint: swarm ralph pause l, or swarm kill l");
    world.swarm(&["ralph", "pause", "l"]).ok();
    fs::write(project.agent.join("go"), "").unwrap();
    world.until_status("l", "paused");
    world.swarm(&import).ok();
    // The next daemon has the same record.
    world.swarm(&["daemon", "stop"]).ok();
    let paused = "worker 'l' is paused and not finished with the task list 'ralph'";
    world.swarm(&archive).code(1).warns(paused).warns("swarm kill l");
    world.swarm(&init).code(1).warns(paused);
    world.swarm(&["kill", "l"]).ok();
    world.swarm(&archive).ok().warns("3 of 3 stories were not done; their list is in ralph-archive/");
    let _ = follower.wait(world);
}

#[test]
fn the_story_of_the_iteration_is_shown() {
    let project = Project::new(&[story("US-001"), story("US-002")]);
    let world = &project.world;
    project.cheat(4, "while (!-e \"$dir/go\") { select(undef, undef, undef, 0.02) } '' ");
    let mut follower = world.follow(&project.args(&[]));
    world.until("the second story is reviewed", || (project.calls() == 4).then_some(()));
    let work = json!({ "dir": "ralph", "mode": "review", "story": "US-002", "done": 1, "total": 2 });
    assert_eq!(world.swarm(&["status", "l", "--format", "json"]).ok().json()["tasks"], work);
    assert_eq!(world.swarm(&["ralph", "status", "l", "--format", "json"]).ok().json()["tasks"], work);
    world.swarm(&["status", "l"]).ok().says("\n  story      review US-002\n  stories    1/2 done\n");
    world.swarm(&["ralph", "status", "l"]).ok().says("\nStory: review US-002\nStories: 1/2 done\n");
    world.swarm(&["ls"]).ok().says("review US-002 (1/2 done)");
    // A new daemon reads it from its record.
    world.crash_daemon();
    world.start_daemon();
    assert_eq!(world.status("l")["tasks"], work);
    fs::write(project.agent.join("go"), "").unwrap();
    let _ = follower.wait(world);
    world.until_status("l", "done");
    assert_eq!(world.status("l")["tasks"]["done"], 2);
}

#[test]
fn a_worktree_needs_the_committed_list() {
    let project = Project::new(&[story("US-001")]);
    let world = &project.world;
    let mut list = project.list();
    list["userStories"].as_array_mut().unwrap().push(story("US-002"));
    project.write("ralph/tasks.json", &list.to_string());
    for options in [&["--worktree"][..], &["--jobs", "2"]] {
        let (code, text) = project.run(options);
        assert_eq!(code, 1, "{text}");
        assert!(
            text.contains("uncommitted files: ralph/tasks.json (commit them: git add ralph && "),
            "{text}"
        );
        assert!(!world.swarm(&["ls", "--format", "names"]).ok().out.contains('l'));
    }
    project.git(&["commit", "-qam", "plan more"]);
    project.git(&["rm", "-q", "--cached", "ralph/prd.md"]);
    project.git(&["commit", "-qm", "forget"]);
    project.write(".gitignore", "prd.md\n");
    assert!(project.run(&["--worktree"]).1.contains("uncommitted files: ralph/prd.md"));
    project.git(&["add", "-f", "ralph"]);
    project.git(&["commit", "-qm", "plan"]);
    let (code, text) = project.run(&["--worktree"]);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn a_story_that_fails_its_checks_at_the_cap_pauses_the_loop() {
    let mut checked = story("US-001");
    checked["checks"] = json!(["test -e good"]);
    let project = Project::new(&[checked]);
    let world = &project.world;
    let (code, text) = project.run(&["--review-cap", "1", "-n", "30"]);
    assert_eq!((code, project.calls()), (1, 6), "{text}");
    let status = world.until_status("l", "paused");
    let why = "paused: story US-001 has reached its review cap, and its checks or the gates failed after 3 approvals in a row";
    assert_eq!((&status["reason"], &status["paused_by"]), (&json!(why), &json!("story_stuck")));
    world.swarm(&["status", "l"]).ok().warns("hint: look at the work (swarm ralph diff l)");
    assert_eq!(world.ralph_state("l")["reason"], "story_stuck");
    // The person decided: the work was good.
    project.write("good", "");
    world.swarm(&["ralph", "resume", "l"]).ok();
    world.until_status("l", "done");
    assert_eq!(project.calls(), 8);
    project.approved("US-001", 2);
}

#[test]
fn a_changed_check_is_named_with_the_iteration_that_changed_it() {
    let project = Project::new(&[story("US-001")]);
    project.write("check.sh", "true\n");
    project.git(&["add", "-A"]);
    project.git(&["commit", "-qm", "check"]);
    project.cheat(1, "spew('check.sh', \"exit 0\\n\"); '' ");
    project.cheat(3, "spew('check.sh', \"true\\n\"); '' ");
    let (code, text) = project.run(&["--check", "sh check.sh"]);
    assert_eq!(code, 0, "{text}");
    let named = "iteration 1 changed the protected file check.sh (restore it, or a person accepts the change: swarm ralph approve l)";
    assert!(
        project.undone(2).contains(&format!("a gate of the loop does not hold: {named}")),
        "{}",
        project.undone(2)
    );
    assert!(project.prompt(3).contains(named), "{}", project.prompt(3));
    project.approved("US-001", 2);
}

#[test]
fn the_directory_of_the_project_cannot_be_the_list() {
    let project = Project::new(&[story("US-001")]);
    let run = |args: &[&str], dir: &str| {
        let mut swarm = project.world.command(crate::world::SWARM);
        swarm.args(args).current_dir(project.path(dir));
        project.world.run(swarm)
    };
    let spawn = ["spawn", "--ralph", "--ralph-dir", ".", "--", "true"];
    let why = "--ralph-dir: the task list needs a directory of its own below the project";
    run(&spawn, "ralph").code(2).warns(why).warns("hint: start the loop in the project: --cwd ");
    let there = [
        "spawn",
        "-d",
        "--name",
        "l",
        "--ralph",
        "--ralph-dir",
        ".",
        "--cwd",
        "..",
        "--no-unattended",
        "--",
        "true",
    ];
    run(&there, "ralph").ok();
}

#[test]
fn the_list_is_in_the_directory_of_the_worker() {
    let project = Project::new(&[story("US-001")]);
    let other = project.world.path("other");
    fs::create_dir_all(other.join("ralph")).unwrap();
    fs::write(other.join("ralph/prd.md"), "").unwrap();
    fs::write(other.join("ralph/prompt.md"), "work").unwrap();
    fs::write(other.join("ralph/tasks.json"), "{ broken").unwrap();
    let args = project.args(&["--cwd", other.to_str().unwrap()]);
    project.world.swarm(&args).code(1).warns("other/ralph/tasks.json: it is not valid JSON");
}
