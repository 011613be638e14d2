//! The hooks of an agent in a sandbox reach the daemon.

use serde_json::json;

use super::is_here;
use crate::hook_reports;

#[test]
fn stop_hook_in_a_sandbox_ends_the_iteration_also_after_a_restart() {
    let (w, mut agent) = hook_reports::world();
    if !is_here(&w) {
        return;
    }
    let fake = w.path("agent-c").display().to_string();
    w.hooked_loop(&["-n", "2", "--sandbox", "bwrap", "--sandbox-rw", &fake], &[]);
    for run in [1, 2] {
        agent.until_prompted(&w, run);
        if run == 2 {
            w.swarm(&["daemon", "restart"]).ok();
        }
        agent.tell("calm All done.");
        let stop = json!({ "stop_hook_active": false, "last_assistant_message": "All done.", "background_tasks": [] });
        agent.hook(&w, run, "Stop", &stop);
    }
    w.until_status("l", "done");
    let log = w.iterations_log("l");
    for iteration in [1, 2] {
        assert!(log.contains(&format!("[END] iteration {iteration} exit=turn-over")), "{log}");
    }
    let report = w.swarm(&["report", "l", "--format", "json"]).ok().json();
    assert_eq!(report["sandbox"], "bwrap");
    // Its transcript is outside, where swarm reads it.
    assert!(w.path("home/.claude/projects/p").exists());
}
