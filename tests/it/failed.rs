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

/// No silence ends an agent that asks; a question that nobody answers in time fails the iteration and is its reason.
#[test]
fn a_question_without_an_answer_fails_the_iteration_after_the_question_timeout() {
    let w = World::new();
    w.write("PROMPT.md", "go\n");
    let ask = "echo x >>runs; printf 'Delete the build folder? [y/N] '; read -r answer </dev/tty; echo got $answer >>answers";
    let spawn = |name: &str, flags: &[&str]| {
        let head = [
            "spawn",
            "--name",
            name,
            "--ralph",
            "--prompt-file",
            "PROMPT.md",
            "-n",
            "1",
            "--max-failures",
            "1",
        ];
        w.follow(&[&head, flags, &["--", "sh", "-c", ask]].concat())
    };
    // The silence of this one is longer than its timeout allows, while the other's question waits.
    let mut answered = spawn("a", &["--inactivity-timeout", "1"]);
    w.until_status("a", "waiting");
    let mut unanswered = spawn("u", &["--question-timeout", "3", "--inactivity-timeout", "600"]);
    assert_eq!(unanswered.wait(&w), 1);
    let reason = "not answered within 3s: a question to be answered with yes or no";
    assert!(unanswered.output().contains(reason), "{}", unanswered.output());
    let _ = w.swarm(&["why", "u"]).ok().says(reason);
    assert!(w.lines("work/answers").is_empty(), "swarm answered it");
    let _ = w.swarm(&["send", "a", "y"]).ok();
    assert_eq!(answered.wait(&w), 0, "{}", answered.output());
    assert_eq!(w.lines("work/answers"), ["got y"]);
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
