//! The daemon under a service manager: in the foreground, its log on stderr, agents left alone.

use nix::sys::signal::Signal;

use crate::world::{World, is_alive};

fn unit() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/swarm.service");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn systemd_unit_ends_only_the_daemon() {
    let unit = unit();
    let lines: Vec<&str> = unit.lines().collect();
    // Everything else in the control group is tmux and the agents.
    assert!(lines.contains(&"KillMode=process"));
    // A daemon does not fork, and `daemon stop`, which ends it with 0, is not undone.
    assert!(lines.contains(&"Type=exec") && lines.contains(&"Restart=on-failure"));
    assert!(lines.contains(&"OOMPolicy=continue"));
    let command = lines.iter().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    assert_eq!(command.split_once("/swarm ").unwrap().1, "daemon run");
}

#[test]
fn daemon_run_stays_in_the_foreground_and_keeps_agents() {
    let w = World::new();
    let agent = w.agent("a");
    for (end, code) in [(Signal::SIGKILL, 128 + 9), (Signal::SIGTERM, 0)] {
        let mut daemon = w.follow(&["daemon", "run"]);
        daemon.until_says(&w, "serving");
        if agent.starts() == 0 {
            w.spawn_loop("agent", &agent, &[]);
        }
        assert!(is_alive(agent.pid(1).unwrap()));
        // A second one is told so, and does no harm.
        w.swarm(&["daemon", "run"]).code(1).warns("already running");
        assert!(!daemon.has_ended());
        daemon.signal(end);
        assert_eq!(daemon.wait(&w), code);
        assert!(is_alive(agent.pid(1).unwrap()), "the agent ended with the daemon");
    }
    assert!(!w.swarm_dir().join("daemon.log").exists(), "a journal needs no second copy");
    let daemon = w.follow(&["daemon", "run"]);
    daemon.until_says(&w, "serving");
    assert_eq!(w.ralph_state("agent")["paused_by"], "shutdown");
    w.swarm(&["ralph", "resume", "agent"]).ok();
    assert_eq!(agent.starts(), 1, "adopted, not started again");
    w.swarm(&["kill", "agent"]).ok();
}
