//! Iterations that fail, and how swarm shows that: the reason in the follower, the log, `why` and `report`.

use serde_json::json;

use crate::world::World;

/// An agent that prints nothing has done nothing that swarm could see.
#[test]
fn a_loop_whose_agents_print_nothing_and_hang_fails_and_names_the_reason() {
    let w = World::new();
    w.write("PROMPT.md", "go\n");
    let flags = ["spawn", "--name", "l", "--ralph", "--prompt-file", "PROMPT.md", "-n", "2"];
    let all =
        [&flags[..], &["--inactivity-timeout", "2", "--", "sh", "-c", "cat >/dev/null; sleep 600"]].concat();
    let followed = w.swarm(&all).code(1);
    let told = followed.out.as_str();
    let failed =
        "iteration 1 failed (exit: inactivity): nothing on screen for 2 s, retrying in 1s (attempt 1/5)\n";
    assert!(told.contains(failed), "{told}");
    let end = "loop failed after 2 iterations: max iterations, and no iteration succeeded\n";
    assert!(told.contains(end), "{told}");
    let state = w.ralph_state("l");
    assert_eq!((&state["status"], &state["reason"]), (&json!("failed"), &json!("all_failed")), "{state}");
    let why = w.swarm(&["why", "l"]).ok().out;
    assert!(
        why.contains("iteration 2 failed after ") && why.contains(": nothing on screen for 2 s\n"),
        "{why}"
    );
    assert!(!why.contains("signal"), "{why}");
    let report = w.swarm(&["report", "l", "--format", "json"]).ok().json();
    let last = &report["iterations"][1];
    assert_eq!((&last["end"], &last["reason"]), (&json!("silent"), &json!("nothing on screen for 2 s")));
}

#[test]
fn a_loop_in_which_every_iteration_failed_fails_and_why_shows_the_last_output() {
    let w = World::new();
    w.write("PROMPT.md", "go\n");
    let flags = ["spawn", "--name", "l", "--ralph", "--prompt-file", "PROMPT.md", "-n", "2", "--"];
    let _ = w.swarm(&[&flags[..], &["sh", "-c", "echo cannot find the parser; exit 7"]].concat()).code(1);
    let why = w.swarm(&["why", "l"]).ok().out;
    assert!(
        why.starts_with(
            "l: failed (iteration 2/2): max iterations, and no iteration succeeded: exit status 7\n"
        ),
        "{why}"
    );
    assert!(
        why.contains("iteration 2 failed after ") && why.contains(": the agent ended with exit status 7\n"),
        "{why}"
    );
    assert!(why.contains("  | cannot find the parser\n"), "{why}");
    // One that succeeds is enough.
    let once = "if [ -e failed ]; then exit 0; fi; touch failed; exit 1";
    let flags = ["spawn", "--name", "m", "--ralph", "--prompt-file", "PROMPT.md", "-n", "2", "--"];
    let followed = w.swarm(&[&flags[..], &["sh", "-c", once]].concat()).ok();
    assert!(followed.out.contains("loop complete after 2 iterations"), "{}", followed.out);
}

/// A loop that cannot log in goes on with the key that its person passes, and no other reader sees the key.
#[test]
fn a_new_key_is_used_from_the_next_run_on() {
    let mut w = World::new();
    w.set("API_KEY", "wrong");
    let script = r#"[ "$API_KEY" = right ] && exit 0; echo 'Invalid API key · Please run /login'; exit 1"#;
    w.write("PROMPT.md", "go\n");
    let flags = ["spawn", "--name", "l", "--ralph", "--prompt-file", "PROMPT.md", "-n", "1", "-d", "--"];
    let _ = w.swarm(&[&flags[..], &["sh", "-c", script]].concat()).ok();
    let waiting = w.until_status("l", "waiting");
    assert_eq!((&waiting["outage"], &waiting["metadata"]["ralph_iteration"]), (&json!("login"), &json!(0)));
    let _ = w
        .swarm(&["ralph", "resume", "l", "--env", "NO_SUCH"])
        .code(1)
        .warns("it is not set in your environment");
    w.set("API_KEY", "right");
    let _ = w
        .swarm(&["ralph", "resume", "l", "--env", "API_KEY"])
        .ok()
        .warns("the agent's next run gets the new value of API_KEY");
    w.until_status("l", "stopped");
    let state = w.ralph_state("l");
    assert_eq!((&state["current_iteration"], &state["total_failures"]), (&json!(1), &json!(0)), "{state}");
    assert_eq!(w.status("l")["env"]["API_KEY"], "***");
}
