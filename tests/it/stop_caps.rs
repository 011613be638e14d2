//! Limits of a session loop: it may not hold a turn longer than its host lets it, or hammer an API that fails.

use serde_json::json;

use crate::turns::{Heard, Host};
use crate::world::World;

const DONE: &str = "<promise>DONE</promise>";

/// A loop of a session whose hooks run as Claude Code runs them.
fn in_claude<'w>(world: &'w World, args: &[&str]) -> Host<'w> {
    let mut host = Host::new(world, "s1");
    host.env = vec![("CLAUDECODE".into(), "1".into()), ("CLAUDE_CODE_ENTRYPOINT".into(), "cli".into())];
    host.start(&[&["build it", "-n", "60"], args].concat());
    host
}

#[test]
fn stop_is_allowed_after_eight_blocks_and_the_next_prompt_continues() {
    let world = World::new();
    let mut host = in_claude(&world, &[]);
    for turn in 0..8 {
        host.says(&format!("turn {turn}")).goes_on();
    }
    host.says("turn 8").ends("HOST_CAP");
    let status = host.status();
    assert_eq!((status["active"].clone(), status["status"].clone()), (json!(true), json!("HOST_CAP")));
    assert_eq!(status["iteration"], 9);
    host.swarm_session(&["status"]).ok().says("HOST_CAP");
    host.prompt("go on");
    host.works().says("turn 9").goes_on();
    assert_eq!(host.status()["status"], json!(null));
    host.says(DONE).ends("PROMISE_ACCEPTED");
}

#[test]
fn tool_call_resets_the_count_of_blocks() {
    let world = World::new();
    let mut host = in_claude(&world, &[]);
    for turn in 0..20 {
        host.works().says(&format!("turn {turn}")).goes_on();
    }
    for turn in 0..7 {
        host.says(&format!("idle {turn}")).goes_on();
    }
    host.says("idle 7").ends("HOST_CAP");
}

#[test]
fn block_cap_of_the_agents_environment_is_used() {
    for (cap, blocks) in [("3", 3), ("12", 12), ("junk", 8), ("", 8)] {
        let world = World::new();
        let mut host = in_claude(&world, &[]);
        host.env.push(("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP".into(), cap.into()));
        for turn in 0..blocks {
            host.says(&format!("turn {turn}")).goes_on();
        }
        host.says("one more").ends("HOST_CAP");
    }
    let world = World::new();
    let mut host = in_claude(&world, &[]);
    host.env.push(("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP".into(), "0".into()));
    for turn in 0..30 {
        host.says(&format!("turn {turn}")).goes_on();
    }
}

#[test]
fn a_capped_loop_can_also_be_resumed_by_starting_it_again() {
    let world = World::new();
    let mut host = in_claude(&world, &[]);
    host.env.push(("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP".into(), "1".into()));
    host.says("one").goes_on();
    host.says("two").ends("HOST_CAP");
    host.start(&[]).says("goes on: iteration 2 of 60");
    host.prompt("go on");
    host.says("three").goes_on();
}

#[test]
fn an_api_error_pauses_the_loop_and_a_start_without_a_task_resumes_it() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.start(&["build it"]);
    host.works().says("one").goes_on();
    let mut input = host.input("StopFailure", "API Error: 529 overloaded");
    input["error"] = json!("overloaded_error");
    Heard::of(host.hook("stop-failure", &input)).ends("PAUSED");
    let status = host.status();
    assert_eq!((status["active"].clone(), status["iteration"].clone()), (json!(false), json!(2)));
    assert!(status["reason"].as_str().unwrap().contains("overloaded_error"), "{status}");
    host.swarm_session(&["status"]).code(1).says("paused").says("API error");
    // While it is paused nobody is held, and what is said is no promise of it.
    host.prompt("what happened?");
    host.says(&format!("it would have been {DONE}")).is_let();
    host.swarm_session(&["start", "another task"]).code(1).warns("a paused loop");
    host.start(&[]).says("goes on: iteration 2 of 20");
    host.prompt("go on");
    host.works().says("two").goes_on();
    assert_eq!(host.status()["iteration"], 3);
    host.says(DONE).ends("PROMISE_ACCEPTED");
}

#[test]
fn resume_accepts_a_new_limit_and_warns_about_other_options() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.start(&["build it", "-n", "3"]);
    host.works().says("one").goes_on();
    let input = host.input("StopFailure", "API Error: 529");
    Heard::of(host.hook("stop-failure", &input)).ends("PAUSED");
    host.start(&["-n", "9", "--completion-promise", "OTHER"])
        .says("goes on: iteration 2 of 9")
        .warns("--completion-promise");
    host.prompt("go on");
    host.works().says("two").goes_on();
    assert_eq!(
        (host.status()["max_iterations"].clone(), host.status()["completion_promise"].clone()),
        (json!(9), json!("DONE"))
    );
}

#[test]
fn the_same_error_text_twice_in_a_row_pauses_the_loop() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.start(&["build it"]);
    let error = "API Error: 529 {\"type\":\"overloaded_error\"}";
    host.says(error).goes_on();
    host.says(error).ends("PAUSED");
    assert_eq!(host.status()["active"], false);
    assert!(host.state_file().exists());
}

#[test]
fn a_task_loop_pauses_when_its_tree_does_not_change() {
    let world = World::new();
    let repo = world.repo("repo");
    let mut host = Host::new(&world, "s1").in_dir(&repo);
    host.start(&["build it", "--no-diff-limit", "2"]);
    std::fs::write(repo.join("a"), "1").unwrap();
    host.works().says("one").goes_on();
    host.works().says("two").goes_on();
    std::fs::write(repo.join("a"), "2").unwrap();
    host.works().says("three").goes_on();
    host.works().says("four").goes_on();
    host.works().says("five").ends("PAUSED");
    assert!(host.status()["reason"].as_str().unwrap().contains("did not change"));
    host.start(&[]).says("goes on: iteration 5");
    host.prompt("go on");
    host.works().says("six").goes_on();
}
