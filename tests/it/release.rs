//! `swarm release` ends a hold, however it began.

use serde_json::Value;

use crate::attach::Terminal;
use crate::hold::working_loop;
use crate::hook_reports::stop;

#[test]
fn release_continues_the_loop_while_the_person_is_attached() {
    let (w, mut agent) = working_loop();
    agent.tell("calm All done.");
    let terminal = Terminal::look(&w, 0, &["l"]);
    w.until("held by typing", || {
        terminal.keys(&["h"]);
        (w.status("l")["held"]["by"] == "typing").then_some(())
    });
    // The command makes the hold last; one release ends both.
    w.swarm(&["hold", "l"]).ok().says("holding l");
    assert_eq!(w.status("l")["held"]["by"], "command");
    agent.hook(&w, 1, "Stop", &stop("All done."));
    w.swarm(&["release", "l"]).ok().says("released l");
    agent.until_prompted(&w, 2);
    assert_eq!(w.status("l")["held"], Value::Null);
    assert!(w.iterations_log("l").contains("[RELEASE]"));
}

#[test]
fn release_of_a_worker_that_is_not_held_is_only_a_warning() {
    let (w, _agent) = working_loop();
    w.swarm(&["release", "l"]).ok().warns("worker 'l' is not held");
    w.swarm(&["release", "nobody"]).code(2).warns("no worker named 'nobody'");
    w.swarm(&["kill", "l"]).ok();
    w.swarm(&["release", "l", "nobody"]).code(2).warns("worker 'l' is not held");
}
