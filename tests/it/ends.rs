//! The ends of a verified loop that nobody wishes for, as the follower, its result, `state.json` and `why` tell them;
//! and the progress line on terminals that are narrow or want no colour.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::verified::Desk;
use crate::world::{Follower, SWARM};

/// An agent that waits in its iteration until `$D/go` is there.
const WAITS: &str = "touch x \"$D/there.$n\"; until [ -e \"$D/go\" ]; do sleep 0.05; done";

/// A loop that is followed in JSON, in its first iteration.
#[track_caller]
fn followed(d: &Desk, flags: &[&str]) -> Follower {
    let agent = d.agent(&[WAITS]);
    let flags = [&["--check", "false", "-n", "3", "--format", "json"], flags].concat();
    let follower = d.w.follow(&d.words(&flags, &agent));
    d.w.until("the first iteration", || d.path("there.1").exists().then_some(()));
    follower
}

/// The result among what the follower said.
#[track_caller]
fn result(follower: &Follower) -> Value {
    let said = follower.output();
    let at = said.find("\n{\n").unwrap_or_else(|| panic!("no JSON in {said}"));
    let mut values = serde_json::Deserializer::from_str(&said[at..]).into_iter::<Value>();
    values.next().unwrap().unwrap()
}

#[track_caller]
fn told(d: &Desk, follower: &mut Follower, code: i32, word: &str, state: [Value; 2], next: &str) {
    assert_eq!(follower.wait(&d.w), code, "{}", follower.output());
    let result = result(follower);
    assert_eq!((&result["stop_reason"], &result["success"]), (&json!(word), &json!(false)), "{result}");
    let is = d.w.ralph_state("a");
    assert_eq!([is["status"].clone(), is["reason"].clone()], state, "{is}");
    d.w.swarm(&["why", "a"]).ok().says(&format!("next: {next}"));
}

#[test]
fn loop_is_lost_with_the_tmux_server_and_can_be_resumed() {
    let d = Desk::new();
    let mut follower = followed(&d, &[]);
    crate::world::signal(d.w.tmux_pid(), Signal::SIGKILL);
    let state = [json!("running"), Value::Null];
    told(&d, &mut follower, 1, "lost", state, "swarm ralph resume a\n");
    follower.says("hint: to go on: swarm ralph resume a\n");
    assert_eq!(d.w.swarm(&["report", "a", "--format", "json"]).ok().json()["end"], "lost");
    d.w.swarm(&["why", "a"]).ok().says("a: lost (iteration 1/3): ");
    // The same iteration again.
    d.w.swarm(&["ralph", "resume", "a"]).ok();
    d.w.until("it is repeated", || d.path("there.2").exists().then_some(()));
    assert_eq!(d.w.ralph_state("a")["current_iteration"], 1);
}

#[test]
fn loop_interrupted_in_the_foreground_is_canceled_and_resumable() {
    let d = Desk::new();
    let mut follower = followed(&d, &[]);
    follower.signal(Signal::SIGINT);
    follower.until_says(&d.w, "pausing a: its current agent finishes first");
    d.w.until("it is paused", || (d.w.ralph_state("a")["status"] == "paused").then_some(()));
    fs::write(d.path("go"), "").unwrap();
    let state = [json!("paused"), Value::Null];
    told(&d, &mut follower, 1, "cancelled", state, "swarm ralph resume a\n");
    assert_eq!((&result(&follower)["total_iterations"], d.turns()), (&json!(1), 1));
    assert_eq!(d.w.swarm(&["report", "a", "--format", "json"]).ok().json()["end"], Value::Null);
    d.w.swarm(&["ralph", "resume", "a"]).ok();
    d.w.until_status("a", "failed");
    assert_eq!(d.turns(), 3);
}

#[test]
fn loop_left_by_a_second_interrupt_is_canceled() {
    let d = Desk::new();
    let mut follower = followed(&d, &[]);
    follower.signal(Signal::SIGTERM);
    follower.until_says(&d.w, "pausing a: ");
    follower.signal(Signal::SIGTERM);
    let state = [json!("paused"), Value::Null];
    told(&d, &mut follower, 130, "cancelled", state, "swarm ralph resume a\n");
    assert_eq!(d.w.panes().len(), 1, "its agent is left alone");
}

#[test]
fn result_of_a_loop_that_was_left_names_no_failure() {
    let d = Desk::new();
    let agent = d.agent(&[WAITS]);
    let mut follower = d.w.follow(&d.words(&["--check", "false", "-n", "3"], &agent));
    d.w.until("the first iteration", || d.path("there.1").exists().then_some(()));
    follower.signal(Signal::SIGTERM);
    follower.until_says(&d.w, "pausing a: ");
    follower.signal(Signal::SIGTERM);
    assert_eq!(follower.wait(&d.w), 130, "{}", follower.output());
    follower.says("a: cancelled (0 iterations, ");
    assert!(!follower.output().contains("  FAIL  "), "{}", follower.output());
}

#[test]
fn follower_does_not_restart_a_stopped_daemon() {
    let d = Desk::new();
    let mut follower = followed(&d, &[]);
    d.w.swarm(&["daemon", "stop"]).ok();
    assert_eq!(follower.wait(&d.w), 1, "{}", follower.output());
    follower.says("hint: to go on: swarm ralph resume a\n");
    d.w.swarm(&["daemon", "status"]).code(3);
    fs::write(d.path("go"), "").unwrap();
}

#[test]
fn loop_with_a_deleted_spec_fails_and_names_the_file() {
    let d = Desk::new();
    let spec = d.path("spec.md");
    fs::write(&spec, "make it right\n").unwrap();
    let mut follower = followed(&d, &["--spec", spec.to_str().unwrap()]);
    fs::remove_file(&spec).unwrap();
    fs::write(d.path("go"), "").unwrap();
    let next = format!("restore {}, then swarm respawn a\n", spec.display());
    let state = [json!("failed"), json!("prompt_file")];
    told(&d, &mut follower, 1, "prompt_missing", state, &next);
    follower.says(&format!("swarm: error: prompt file not found: {}\n", spec.display()));
    assert_eq!((d.turns(), d.w.status("a")["status"].clone()), (1, json!("failed")));
    assert_eq!(d.w.swarm(&["report", "a", "--format", "json"]).ok().json()["end"], "prompt_missing");
    // As it says.
    fs::write(&spec, "make it right\n").unwrap();
    d.w.swarm(&["respawn", "a", "-d"]).ok();
    d.w.until_status("a", "failed");
    assert_eq!(d.turns(), 4);
}

/// Returns the output of a loop of two iterations with a check of a long name on a terminal of so many columns.
fn drawn(columns: u32, environment: &str) -> String {
    let d = Desk::new();
    let agent = d.agent(&["touch x; sleep 1.2", "touch y"]);
    let check = "test -e a-file-with-a-name-that-is-longer-than-a-narrow-terminal-is-wide";
    let words = d.words(&["--check", check, "-n", "2"], &agent);
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let book = d.path("typescript");
    let line = format!("stty cols {columns} rows 20; {environment} '{SWARM}' {}", quoted.join(" "));
    let mut script = d.w.command("script");
    script.args(["-qec", &line]).arg(&book).stdin(std::process::Stdio::piped());
    let ran = d.w.run(script);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    d.read("typescript")
}

/// The progress lines in it, without their colour.
fn lines(text: &str) -> Vec<String> {
    let drawn = text.split('\r').filter(|part| part.ends_with("\x1b[K") || part.contains("\x1b[K"));
    let plain = |part: &str| {
        part.split("\x1b[K").next().unwrap_or_default().replace("\x1b[2m", "").replace("\x1b[0m", "")
    };
    drawn.map(plain).filter(|line| !line.is_empty()).collect()
}

#[test]
fn progress_line_fits_a_narrow_terminal_and_obeys_no_color() {
    let text = drawn(40, "NO_COLOR=1");
    let found = lines(&text);
    assert!(found.iter().any(|line| line.starts_with("iteration 1/2 · ")), "{found:?} in {text:?}");
    assert!(found.iter().all(|line| line.chars().count() <= 39), "{found:?}");
    assert!(found.iter().any(|line| line.ends_with('…')), "nothing was cut: {found:?}");
    let others = text.replace("\x1b[K", "");
    assert!(!others.contains('\x1b'), "a colour, or what is none of ours: {others:?}");
    let coloured = drawn(40, "");
    assert!(coloured.contains("\x1b[2miteration 1/2 · "), "{coloured:?}");
    assert!(lines(&coloured).iter().all(|line| line.chars().count() <= 39), "{coloured:?}");
}

#[test]
fn tiny_or_dumb_terminal_has_no_progress_line() {
    for (columns, environment) in [(10, ""), (80, "TERM=dumb")] {
        let text = drawn(columns, environment);
        assert!(!text.contains('\x1b') || !text.contains("iteration 1/2 · "), "{text:?}");
        assert!(lines(&text).is_empty() && text.contains("[ralph] a: starting iteration 2/2"), "{text:?}");
    }
}
