//! A person takes a worker over: by typing into it through a real client of tmux, or by `swarm hold`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::attach::Terminal;
use crate::hook_reports::{self, stop};
use crate::world::{Agent, World};

/// How long a hold by typing lasts here after the detach.
pub(crate) const RELEASE_DELAY: Duration = Duration::from_secs(3);

/// A loop `l` of at most three iterations whose agent has its prompt and works.
pub(crate) fn working_loop() -> (World, Agent) {
    let (mut w, agent) = hook_reports::world();
    w.set("SWARM_RELEASE_DELAY_MS", RELEASE_DELAY.as_millis().to_string());
    w.hooked_loop(&[], &[]);
    agent.until_prompted(&w, 1);
    (w, agent)
}

/// The cause of worker `l`.
fn cause(w: &World) -> Value {
    w.status("l")["cause"].clone()
}

/// Types until swarm has noticed it: tmux reports whole seconds, and input directly after the attach may come from the
/// terminal. Then types the rest of a line and presses no Enter.
fn take_over(w: &World, terminal: &Terminal<'_>) {
    w.until("held by typing", || {
        terminal.keys(&["h"]);
        (w.status("l")["held"]["by"] == "typing").then_some(())
    });
    terminal.keys(&["-l", "alf a line"]);
    terminal.until_shows("half a line");
}

/// Reports the end of the turn of run 1. Without a hold, the iteration would end about two seconds later.
fn end_turn(w: &World, agent: &mut Agent) {
    agent.hook(w, 1, "Stop", &stop("All done."));
}

fn ends_of_iteration_1(w: &World) -> usize {
    w.iterations_log("l").matches("[END] iteration 1").count()
}

#[test]
fn half_typed_line_survives_the_turn_end_and_detach_continues_the_loop() {
    let (w, mut agent) = working_loop();
    agent.tell("calm All done.");
    let terminal = Terminal::look(&w, 0, &["l"]);
    terminal.until_shows("All done.");
    take_over(&w, &terminal);
    end_turn(&w, &mut agent);
    // Typed once, then idle: it is held for as long as the client is attached.
    w.let_pass(7);
    assert!(terminal.screen().contains("half a line"), "{}", terminal.screen());
    assert_eq!((agent.starts(), ends_of_iteration_1(&w)), (1, 0));
    assert_eq!(w.status("l")["iteration"], 1);

    let worker = w.status("l");
    assert_eq!(
        (&worker["status"], &worker["cause"]["by"]),
        (&json!("running"), &json!("typing")),
        "{worker}"
    );
    assert!(worker["reason"].as_str().unwrap().starts_with("held by you since "), "{worker}");
    let page = w.swarm(&["status", "l"]).ok();
    page.says("(a person types)").warns("swarm goes on 30 s after you detach; at once: swarm release l");
    w.swarm(&["ls"]).ok().says("held by you since ");
    w.swarm(&["why", "l"]).ok().says("held by you since ").says("swarm release l");
    assert!(w.swarm(&["events", "--kind", "held"]).ok().out.contains("held while you type"));

    terminal.keys(&["C-b", "d"]);
    terminal.until_shows("code 0");
    let left = Instant::now();
    agent.until_prompted(&w, 2);
    assert!(left.elapsed() >= RELEASE_DELAY);
    assert_eq!(ends_of_iteration_1(&w), 1);
    let log = w.iterations_log("l");
    let at = |text: &str| log.find(text).unwrap_or_else(|| panic!("no {text:?}: {log}"));
    assert!(
        at("[HOLD]") < at("[RELEASE]") && at("[RELEASE]") < at("[END] iteration 1 exit=turn-over"),
        "{log}"
    );
    assert_eq!(w.status("l")["held"], Value::Null);
}

#[test]
fn watching_a_worker_does_not_hold_it_and_neither_does_send() {
    let (w, mut agent) = working_loop();
    agent.tell("calm All done.");
    let watching = Terminal::look(&w, 0, &["l"]);
    let reading = Terminal::run(&w, 1, &[crate::world::SWARM, "attach", "--read-only", "l"]);
    reading.until_shows("All done.");
    // Keys of tmux, of a client that may not type, and reports of the terminal.
    for _ in 0..3 {
        w.let_pass(1);
        reading.keys(&["x"]);
        watching.keys(&["C-b", "[", "j"]);
        watching.tmux(&["resize-window", "-x", "90", "-y", "30"]).ok();
        w.let_pass(1);
        watching.keys(&["q"]);
    }
    w.swarm(&["send", "l", "and the docs"]).ok();
    w.until("the text", || agent.file("prompt.1").contains("and the docs").then_some(()));
    assert_eq!(w.status("l")["held"], Value::Null);
    assert!(!w.iterations_log("l").contains("[HOLD]"));
    agent.tell("calm All done.");
    end_turn(&w, &mut agent);
    agent.until_prompted(&w, 2);
}

#[test]
fn hint_of_a_hold_names_only_the_workers_that_it_changed() {
    let w = World::new();
    w.spawn("held", &[], &["sleep", "600"]).ok();
    w.spawn("c", &[], &["sleep", "600"]).ok();
    w.swarm(&["hold", "held"]).ok();
    let ran =
        w.swarm(&["hold", "nope", "held", "c"]).code(2).says("holding c\n").warns("no worker named 'nope'");
    assert!(ran.err.ends_with("hint: swarm goes on after: swarm release c\n"), "{}", ran.err);
    let ran = w.swarm(&["hold", "nope", "held"]).code(2);
    assert!(!ran.err.contains("swarm release"), "{}", ran.err);
}

#[test]
fn a_held_loop_starts_no_iteration_after_its_agent_has_ended() {
    let (w, mut agent) = working_loop();
    w.swarm(&["hold", "l"]).ok().says("holding l").warns("swarm goes on after: swarm release l");
    w.swarm(&["hold", "l"]).ok().warns("worker 'l' is already held");
    agent.tell("exit 0");
    w.until_logged("l", "[END] iteration 1 exit=0");
    let worker = w.until_status("l", "waiting");
    assert_eq!(worker["cause"]["kind"], "held");
    assert_eq!(worker["screen"], json!([]));
    // The hold survives a daemon, and the loop its release.
    w.crash_daemon();
    assert_eq!(cause(&w)["by"], "command");
    w.let_pass(3);
    assert_eq!(agent.starts(), 1);
    w.swarm(&["status", "l"]).ok().warns("swarm release l");
    w.swarm(&["release", "l"]).ok().says("released l");
    agent.until_prompted(&w, 2);
    w.swarm(&["kill", "l"]).ok();
}

#[test]
fn held_worker_gets_only_the_text_that_a_person_sends() {
    let (w, mut agent) = hook_reports::world();
    // The agent starts slowly: it waits for as long as this file exists.
    let stay = w.path("agent-c/stay");
    fs::write(&stay, "").unwrap();
    fs::remove_file(w.path("bin/claude")).unwrap();
    let fake = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/fake-claude.pl");
    let script = format!("#!/bin/sh\nwhile [ -e \"$FAKE/stay\" ]; do sleep 0.05; done\nexec {fake} \"$@\"\n");
    fs::write(w.path("bin/claude"), script).unwrap();
    fs::set_permissions(w.path("bin/claude"), fs::Permissions::from_mode(0o755)).unwrap();
    w.hooked_loop(&[], &[]);
    w.swarm(&["hold", "l"]).ok();
    fs::remove_file(stay).unwrap();
    w.until("its box", || agent.runs().contains("ready 1").then_some(()));
    w.let_pass(4);
    assert!(!agent.runs().contains("prompted"), "{}", agent.runs());
    assert_eq!(w.status("l")["status"], "starting");
    w.swarm(&["send", "l", "first this"]).ok();
    w.until("the text", || agent.file("prompt.1").contains("first this").then_some(()));
    // The prompt of the iteration follows when the agent shows its box.
    agent.tell("calm Done.");
    w.swarm(&["release", "l"]).ok();
    w.until("the prompt", || agent.file("prompt.1").contains("Do task A").then_some(()));
}

#[test]
fn kill_respawn_and_resume_end_a_hold() {
    let (w, mut agent) = working_loop();
    agent.tell("calm All done.");
    let terminal = Terminal::look(&w, 0, &["l"]);
    take_over(&w, &terminal);
    w.swarm(&["kill", "l"]).ok();
    let worker = w.status("l");
    assert_eq!((&worker["status"], &worker["held"]), (&json!("killed"), &Value::Null));
    w.swarm(&["hold", "l"]).code(1).warns("worker 'l' has finished");
    w.swarm(&["hold", "nobody"]).code(2).warns("no worker named 'nobody'");
    // A respawn of a held worker starts one that is not held.
    w.swarm(&["respawn", "-d", "l"]).ok();
    agent.until_prompted(&w, 2);
    w.swarm(&["hold", "l"]).ok();
    w.swarm(&["respawn", "-d", "l"]).ok();
    agent.until_prompted(&w, 3);
    assert_eq!(w.status("l")["held"], Value::Null);
    // So does a resume, once no agent runs.
    w.swarm(&["hold", "l"]).ok();
    w.swarm(&["ralph", "pause", "l"]).ok();
    agent.tell("exit 0");
    w.until_status("l", "paused");
    w.swarm(&["ralph", "resume", "l"]).ok();
    agent.until_prompted(&w, 4);
    assert_eq!(w.status("l")["held"], Value::Null);
}

#[test]
fn hold_by_typing_survives_a_daemon_crash() {
    let (w, mut agent) = working_loop();
    agent.tell("calm All done.");
    let terminal = Terminal::look(&w, 0, &["l"]);
    take_over(&w, &terminal);
    end_turn(&w, &mut agent);
    w.crash_daemon();
    assert_eq!(cause(&w)["by"], "typing");
    w.let_pass(6);
    assert_eq!((agent.starts(), cause(&w)["by"].clone()), (1, json!("typing")));
    terminal.keys(&["C-b", "d"]);
    agent.until_prompted(&w, 2);
}

#[test]
fn an_agent_cannot_hold_or_release_itself() {
    let (w, mut agent) = working_loop();
    let swarm = crate::world::SWARM;
    agent.tell(&format!("run {swarm} hold l"));
    w.until("the refusal", || agent.file("answers").contains("1 ran 1").then_some(()));
    assert_eq!(w.status("l")["held"], Value::Null);
    w.swarm(&["hold", "l"]).ok();
    agent.tell(&format!("run {swarm} release l"));
    w.until("the refusal", || (agent.file("answers").matches("1 ran 1").count() == 2).then_some(()));
    assert_eq!(cause(&w)["by"], "command");
}
