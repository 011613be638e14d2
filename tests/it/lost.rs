//! Tmux servers that end, hang or cannot end under a daemon that was killed.
//!
//! A server that holds no pane any more is lost with its workers, whether or not its process exits. A server that
//! merely hangs while its agents live is unreachable.

use nix::sys::signal::Signal;

use crate::world::{World, is_alive, signal};

/// A world with the plain worker `plain` and the loop `loop`, each of which has noted its pid in `pids`.
fn world_with_workers() -> World {
    let world = World::new();
    world.write("PROMPT.md", "go\n");
    let script = "echo $$ >>pids; exec sleep 600";
    let _ = world.spawn_sh("plain", &[], script).ok();
    let _ = world.spawn_sh("loop", &["--ralph", "--prompt-file", "PROMPT.md", "-n", "5", "-d"], script).ok();
    world.until("both agents run", || (world.lines("work/pids").len() == 2).then_some(()));
    world
}

/// Tells the tmux server to end while the control client of a daemon that was killed cannot go: it waits for that
/// client forever. Returns the pids of the server and of that client.
fn server_that_cannot_end(world: &World) -> (u32, u32) {
    let server = world.tmux_pid();
    let client = world.until("the daemon's control client is attached", || {
        world.tmux(&["list-clients", "-F", "#{client_pid}"]).out.lines().next()?.parse::<u32>().ok()
    });
    signal(client, Signal::SIGSTOP);
    world.crash_daemon();
    let mut kill = world.command("tmux");
    let mut kill = kill.arg("-S").arg(world.tmux_socket()).arg("kill-server").spawn().unwrap();
    world.until("the agents are gone", || {
        world.lines("work/pids").iter().all(|pid| !is_alive(pid.parse().unwrap())).then_some(())
    });
    kill.kill().unwrap();
    kill.wait().unwrap();
    assert!(is_alive(server), "the server ended by itself");
    (server, client)
}

/// Every verb works on workers whose server cannot end.
fn check_every_verb(world: &World) {
    assert_eq!(world.swarm(&["status", "plain", "--format", "json"]).code(1).json()["status"], "lost");
    let state = world.ralph_state("loop");
    assert_eq!((&state["status"], &state["current_iteration"]), (&"running".into(), &1.into()), "{state}");
    assert_eq!(state["total_failures"], 0, "{state}");
    let _ = world.swarm(&["ls"]).ok().says("lost");
    let _ =
        world.swarm(&["why", "loop"]).ok().says("the tmux server went away").says("swarm ralph resume loop");
    let _ = world.swarm(&["ralph", "resume", "loop"]).ok();
    world.until("iteration 1 runs again", || (world.lines("work/pids").len() == 3).then_some(()));
    assert_eq!(world.ralph_state("loop")["current_iteration"], 1);
    let _ = world.swarm(&["respawn", "plain"]).ok();
    let _ = world.spawn_sh("new", &[], "sleep 600").ok();
    assert_eq!(world.panes().len(), 3, "{}", world.report());
    let _ = world.swarm(&["kill", "plain", "loop", "new"]).ok();
    let _ = world.swarm(&["clean", "plain", "loop", "new"]).ok();
}

#[test]
fn workers_of_a_stuck_tmux_server_are_lost_and_its_client_is_ended() {
    let world = world_with_workers();
    let (server, _) = server_that_cannot_end(&world);
    world.until_status("loop", "lost");
    check_every_verb(&world);
    assert!(!is_alive(server), "it waited for its last client and for nothing else");
}

#[test]
fn stuck_tmux_server_without_panes_is_replaced() {
    let world = world_with_workers();
    let (server, _) = server_that_cannot_end(&world);
    signal(server, Signal::SIGSTOP);
    world.until_status("loop", "lost");
    // The last processes in its panes may need a moment to be gone.
    let doctor = world.until("doctor finds a server without panes that does not exit", || {
        let ran = world.swarm(&["doctor"]);
        ran.out
            .contains(&format!("the tmux server (pid {server}) hangs after a request to exit"))
            .then_some(ran)
    });
    let _ = doctor.says(&format!("kill -9 {server}"));
    check_every_verb(&world);
    assert!(!is_alive(server), "it is still there beside the new one");
    let log = std::fs::read_to_string(world.swarm_dir().join("daemon.log")).unwrap();
    assert!(
        log.contains("killing a tmux server that has no panes") && log.contains(&format!("pid={server}")),
        "{log}"
    );
}

#[test]
fn worker_of_a_stuck_tmux_server_can_be_killed() {
    let world = world_with_workers();
    let (server, client) = server_that_cannot_end(&world);
    signal(server, Signal::SIGSTOP);
    let _ = world.swarm(&["kill", "plain", "loop"]).ok();
    assert_eq!(world.status("loop")["status"], "killed");
    let _ = world.swarm(&["clean", "plain", "loop"]).ok();
    for pid in [server, client] {
        signal(pid, Signal::SIGKILL);
    }
}

#[test]
fn hanging_tmux_server_with_live_agents_is_unreachable() {
    let world = world_with_workers();
    let server = world.tmux_pid();
    signal(server, Signal::SIGSTOP);
    world.crash_daemon();
    world.start_daemon();
    world.until_status("plain", "unreachable");
    world.until_status("loop", "unreachable");
    signal(server, Signal::SIGCONT);
    world.until_status("loop", "running");
    world.until_status("plain", "running");
    assert_eq!((world.tmux_pid(), world.lines("work/pids").len()), (server, 2));
}

/// The wrapper left no record, and tmux cannot be asked.
#[test]
fn agent_killed_with_its_wrapper_under_a_hanging_tmux_is_lost() {
    let world = world_with_workers();
    let server = world.tmux_pid();
    let wrappers: Vec<u32> =
        world.panes().iter().filter_map(|pane| pane.rsplit(' ').next()?.parse().ok()).collect();
    assert_eq!(wrappers.len(), 2, "{}", world.report());
    signal(server, Signal::SIGSTOP);
    world.crash_daemon();
    for wrapper in wrappers {
        signal(wrapper, Signal::SIGKILL);
    }
    for pid in world.lines("work/pids") {
        signal(pid.parse().unwrap(), Signal::SIGKILL);
    }
    world.start_daemon();
    world.until_status("loop", "lost");
    world.until_status("plain", "lost");
    assert_eq!(world.ralph_state("loop")["total_failures"], 0);
    signal(server, Signal::SIGCONT);
    let _ = world.swarm(&["ralph", "resume", "loop"]).ok();
    world.until("iteration 1 runs again", || (world.lines("work/pids").len() == 3).then_some(()));
    assert_eq!(world.ralph_state("loop")["current_iteration"], 1);
}
