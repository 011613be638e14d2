//! The Stop hook of a session loop: when the agent goes on, when it may stop, and what it is told.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use serde_json::json;

use crate::turns::{Host, assistant, user};
use crate::world::World;

const DONE: &str = "<promise>DONE</promise>";

#[test]
fn acceptance_1_a_promise_after_work_ends_the_loop() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.start(&["build it"]);
    host.works().says(&format!("all built. {DONE}")).ends("PROMISE_ACCEPTED");
    assert!(!host.state_file().exists());
    assert_eq!(host.found(), ["found \"PROMISE_ACCEPTED\""]);
    // The session is an ordinary one again.
    host.says("hello").is_let();
    assert_eq!(host.found().len(), 1);
}

#[test]
fn acceptance_2_a_stop_without_the_promise_is_blocked_with_the_task() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.start(&["build it"]);
    let heard = host.works().says("I'm done");
    let text = heard.goes_on();
    for part in [
        "You attempted to end the loop, but you did not output the completion promise",
        DONE,
        "Continue working on the original task below",
        "Only output the promise when the task is fully complete",
        "build it",
    ] {
        assert!(text.contains(part), "no {part:?}: {text}");
    }
    assert_eq!(host.status()["iteration"], 2);
    assert_eq!(host.found(), ["missing null"]);
}

#[test]
fn acceptance_3_without_a_promise_it_ends_after_exactly_its_turns() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.start(&["build it", "--max-iterations", "3"]);
    host.works().says("one").goes_on();
    host.works().says("two").goes_on();
    host.works().says("three").ends("MAX_ITERATIONS_REACHED");
    assert!(!host.state_file().exists());
    assert_eq!(host.found(), ["missing null", "missing null", "missing \"MAX_ITERATIONS_REACHED\""]);
    host.swarm_session(&["status"]).code(1).says("MAX_ITERATIONS_REACHED");
}

#[test]
fn acceptance_4_and_known_fault_a_promise_without_work_is_rejected() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.start(&["build it"]);
    let heard = host.says(DONE);
    let text = heard.goes_on();
    let wanted = "Promise detected, but no tool calls/work were performed; you must actually complete the task before emitting the promise";
    assert!(text.contains(wanted) && text.contains("build it"), "{text}");
    assert_eq!(host.found(), ["rejected null"]);
    // Work of any turn since the loop began counts.
    host.works().says("worked").goes_on();
    host.says(DONE).ends("PROMISE_ACCEPTED");
}

#[test]
fn acceptance_5_and_known_fault_a_final_promise_always_stops_the_loop() {
    let long = format!("{}\n```\n{DONE}\n```\n{}", "x".repeat(100_000), "y".repeat(100_000));
    let texts = [DONE.to_owned(), format!("a{DONE}b"), format!("```xml\n{DONE}\n```"), long];
    for tells_last in [true, false] {
        for text in &texts {
            let world = World::new();
            let mut host = Host::new(&world, "s1");
            host.tells_last = tells_last;
            host.start(&["build it"]);
            host.works().says("not yet").goes_on();
            host.works().says(text).ends("PROMISE_ACCEPTED");
        }
    }
}

#[test]
fn promise_before_the_last_text_counts_without_a_last_message() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.tells_last = false;
    host.start(&["build it"]);
    host.lines(&[assistant(90, json!([{"type":"text","text":DONE}]))]);
    host.works().says("that was it").ends("PROMISE_ACCEPTED");
}

#[test]
fn required_work_and_its_policy_can_be_set() {
    let world = World::new();
    let mut host = Host::new(&world, "two");
    host.start(&["build it", "--min-tool-calls", "2"]);
    let heard = host.works().says(DONE);
    assert!(heard.goes_on().contains("tool calls: 1, needed: 2"), "{heard:?}");
    host.works().says(DONE).ends("PROMISE_ACCEPTED");
    for (policy, found) in [("accept", "found"), ("warn", "doubtful")] {
        let mut host = Host::new(&world, policy);
        host.start(&["build it", "--on-promise-no-work", policy]);
        host.says(DONE).ends("PROMISE_ACCEPTED");
        assert_eq!(host.found(), [format!("{found} \"PROMISE_ACCEPTED\"")]);
    }
    let mut host = Host::new(&world, "none");
    host.start(&["build it", "--min-tool-calls", "0"]);
    host.says(DONE).ends("PROMISE_ACCEPTED");
}

#[test]
fn known_fault_a_bare_word_or_a_variant_is_not_a_promise() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.start(&["build it", "--completion-promise", "DONE"]);
    for text in [
        "DONE",
        "  DONE\n",
        "<promise> DONE </promise>",
        "<promise>done</promise>",
        "<promise>DONE</ promise>",
    ] {
        host.works().says(text).goes_on();
    }
    host.says(DONE).ends("PROMISE_ACCEPTED");
}

#[test]
fn known_fault_a_promise_outside_of_the_agents_text_does_not_count() {
    let world = World::new();
    for tells_last in [true, false] {
        let mut host = Host::new(&world, if tells_last { "told" } else { "read" });
        host.tells_last = tells_last;
        host.start(&["build it"]);
        host.prompt(&format!("say {DONE} when done"));
        host.works();
        let mut side = assistant(91, json!([{"type":"text","text":DONE}]));
        side["isSidechain"] = json!(true);
        let result = user(json!([{"type":"tool_result","tool_use_id":"t1","content":DONE}]));
        let thought = assistant(92, json!([{"type":"thinking","thinking":DONE}]));
        host.lines(&[side, result, thought]);
        host.says("not yet").goes_on();
        host.says(DONE).ends("PROMISE_ACCEPTED");
    }
}

#[test]
fn a_last_message_that_is_only_a_tool_call_is_a_stop_without_a_promise() {
    let world = World::new();
    for tells_last in [true, false] {
        let mut host = Host::new(&world, if tells_last { "told" } else { "read" });
        host.tells_last = tells_last;
        host.start(&["build it"]);
        let call =
            |n: u32| assistant(n, json!([{"type":"tool_use","id":format!("t{n}"),"name":"Bash","input":{}}]));
        host.lines(&[call(90)]);
        host.stop("").goes_on();
        host.lines(&[call(91)]);
        host.stop("").goes_on();
        assert_eq!(host.found(), ["missing null", "missing null"]);
    }
}

#[test]
fn known_fault_a_late_transcript_is_waited_for() {
    let world = World::new();
    for tells_last in [true, false] {
        let mut host = Host::new(&world, if tells_last { "told" } else { "read" });
        (host.tells_last, host.late) = (tells_last, Duration::from_millis(800));
        host.start(&["build it"]);
        host.works().says("work").goes_on();
        host.says(DONE).ends("PROMISE_ACCEPTED");
        assert_eq!(host.found(), ["missing null", "found \"PROMISE_ACCEPTED\""]);
    }
}

#[test]
fn missing_transcript_allows_the_stop_and_keeps_the_loop() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.tells_last = false;
    host.start(&["build it"]);
    host.stop("").is_let();
    assert_eq!(
        (host.status()["active"].clone(), host.status()["iteration"].clone()),
        (json!(true), json!(1))
    );
    let log = host.log();
    assert!(log.last().unwrap()["reason"].as_str().unwrap().contains("could not be read"), "{log:?}");
    // With the words told, it does not take the transcript to go on.
    host.tells_last = true;
    host.stop("one").goes_on();
}

#[test]
fn known_fault_a_damaged_huge_or_linked_transcript_is_handled() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.transcript = world.path("home/a dir with spaces/ü.jsonl");
    host.tells_last = false;
    host.start(&["build it"]);
    // Not text, no JSON, JSON of another kind, and far more than is read of it.
    host.bytes(b"\xff\xfe\0{\n{\"type\":\"assistant\"\n[]\nnull\n\"assistant\"\n{\"type\":\"assistant\",\"message\":7}\n");
    let filler = format!("{}\n", json!({"type":"attachment","data":"z".repeat(1 << 20)}));
    for _ in 0..40 {
        host.bytes(filler.as_bytes());
    }
    host.works().says("one").goes_on();
    // A line cut in the middle is waited for, then the stop happens in doubt.
    host.bytes(b"{\"type\":\"assistant\",\"message\":{\"id\":\"cut\",\"content\":[{\"type\":\"te");
    host.stop("").is_let();
    assert_eq!(host.status()["iteration"], 2);
    host.bytes(b"xt\",\"text\":\"two\"}]}}\n");
    host.stop("").goes_on();
    let link = world.path("linked");
    symlink(world.path("home"), &link).unwrap();
    host.transcript = link.join("a dir with spaces/ü.jsonl");
    host.says(DONE).ends("PROMISE_ACCEPTED");
}

#[test]
fn known_fault_the_task_is_repeated_unchanged_each_time() {
    let task = "a\n---\nb: \"c\" # d\n---\n$x `y` $(z) \\ 'q' “typographic” {CWD}\n\n  end";
    let world = World::new();
    for command in ["ralph", "ulw"] {
        let mut host = Host::new(&world, command);
        let flags: &[&str] = if command == "ulw" { &["--ulw"] } else { &[] };
        host.start(&[&[task], flags].concat());
        for n in 0..3 {
            let heard = host.works().says(&format!("turn {n}"));
            assert!(heard.goes_on().ends_with(&format!("Original task:\n\n{task}")), "{heard:?}");
            let file = fs::read_to_string(host.state_file()).unwrap();
            assert!(file.ends_with(&format!("\n---\n{task}")), "{file}");
        }
    }
}

#[test]
fn ulw_loop_puts_its_instruction_before_each_text() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.start(&["build it", "--ulw"]).says("ULTRAWORK MODE");
    for n in 0..2 {
        let heard = host.works().says(&format!("turn {n}"));
        let text = heard.goes_on();
        assert!(
            text.starts_with("ULTRAWORK MODE") && text.contains("did not output the completion promise"),
            "{text}"
        );
    }
    host.says(DONE).ends("PROMISE_ACCEPTED");
}

#[test]
fn text_from_before_the_loop_or_of_an_earlier_loop_does_not_count() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.tells_last = false;
    let old = |mut line: serde_json::Value| {
        line["timestamp"] = json!("2026-01-01T00:00:00.000Z");
        line
    };
    host.lines(&[
        old(assistant(80, json!([{"type":"tool_use","id":"t80","name":"Bash"}]))),
        old(assistant(81, json!([{"type":"text","text":DONE}]))),
    ]);
    host.start(&["build it"]);
    host.says("first").goes_on();
    host.works().says(DONE).ends("PROMISE_ACCEPTED");
    host.start(&["build more"]);
    host.says("again").goes_on();
    assert!(host.says(DONE).goes_on().contains("no tool calls/work were performed"));
}

/// A line about the CLI's queue of messages.
fn queue(operation: &str, text: Option<&str>) -> serde_json::Value {
    let mut line = json!({"type":"queue-operation","operation":operation,"sessionId":"s1"});
    line["timestamp"] = assistant(0, json!([]))["timestamp"].clone();
    if let Some(text) = text {
        line["content"] = json!(text);
    }
    line
}

#[test]
fn message_queued_during_a_turn_is_let_through_and_the_loop_continues() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.start(&["build it", "-n", "9"]);
    host.works().says("one").goes_on();
    host.works().lines(&[queue("enqueue", Some("please use tabs"))]);
    let heard = host.says("two");
    let told = heard.message.as_deref().unwrap_or_default();
    assert!(heard.block.is_none() && told.contains("a queued message goes to the agent first"), "{heard:?}");
    assert_eq!((&host.status()["active"], &host.status()["iteration"]), (&json!(true), &json!(2)));
    host.lines(&[queue("dequeue", None)]);
    let mut typed = user(json!("please use tabs"));
    typed["origin"] = json!({"kind": "human"});
    host.lines(&[typed]);
    assert!(host.says("tabs it is").goes_on().contains("build it"));
    // A message that the agent received within its turn does not let it stop.
    host.lines(&[queue("enqueue", Some("and this")), queue("remove", Some("and this"))]);
    host.works().says("three").goes_on();
    host.swarm_session(&["logs"])
        .ok()
        .says("allowed  (no promise was given; a queued message goes to the agent first)");
    host.says(DONE).ends("PROMISE_ACCEPTED");
}

#[test]
fn cancel_typed_during_a_turn_ends_the_loop_at_the_next_stop() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.start(&["build it", "-n", "9"]);
    host.works().lines(&[queue("enqueue", Some("/cancel-ralph"))]);
    host.says("one").ends("CANCELLED");
    assert!(!host.state_file().exists());
    // The CLI submits it then.
    let heard = host.types("/cancel-ralph");
    assert!(heard.goes_on().contains("the loop is cancelled"), "{heard:?}");
    host.says("two").is_let();
}
