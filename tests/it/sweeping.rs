//! Panes and agents that should not be there: whatever left them, the daemon ends them, at its start and while it
//! runs.

use nix::sys::signal::Signal;

use crate::world::{World, is_alive, signal};

/// Makes a window that claims to be a run of a worker; the pid of what runs in it.
#[track_caller]
fn plant(world: &World, worker: &str, run: u32, script: &str) -> u32 {
    // Its command names the folder of a run, as that of every window of swarm's does.
    let dir = world.swarm_dir().join(format!("runs/{worker}.{run}")).display().to_string();
    let made = ["new-window", "-d", "-a", "-P", "-F", "#{pane_id} #{pane_pid}", "-t", "=swarm:$"];
    let made = world.tmux(&[&made[..], &["sh", "-c", script, &dir]].concat()).ok().out;
    let (pane, pid) = made.trim().split_once(' ').unwrap();
    let run = run.to_string();
    for (option, value) in [("remain-on-exit", "on"), ("@swarm_run", &run), ("@swarm_worker", worker)] {
        let _ = world.tmux(&["set-option", "-p", "-t", pane, option, value]).ok();
    }
    pid.parse().unwrap()
}

/// Waits until these are the workers that have panes.
#[track_caller]
fn until_panes(world: &World, wanted: &[&str]) {
    world.until(&format!("only {wanted:?} have panes"), || {
        let panes = world.panes();
        let mut names: Vec<_> = panes.iter().filter_map(|line| line.split(' ').next()).collect();
        names.sort_unstable();
        (names == wanted).then_some(())
    });
}

/// A live worker, one that is over, and panes that claim to be runs of either: live, and dead.
fn world_with_leftovers() -> (World, [u32; 3]) {
    let world = World::new();
    let _ = world.spawn("live", &[], &["sleep", "600"]).ok();
    let _ = world.spawn("over", &[], &["true"]).ok();
    world.until_status("over", "done");
    until_panes(&world, &["live"]);
    let pids = [
        plant(&world, "over", 1, "sleep 600; :"),
        plant(&world, "over", 7, "trap '' HUP; sleep 600; :"),
        plant(&world, "live", 7, "sleep 600; :"),
    ];
    plant(&world, "over", 1, "read _ </dev/tty; exit 3");
    (world, pids)
}

#[test]
fn daemon_start_closes_leftover_panes_of_finished_workers() {
    for crash in [false, true] {
        let (world, pids) = world_with_leftovers();
        let seen = world.status("live");
        if crash {
            world.crash_daemon();
        } else {
            let _ = world.swarm(&["daemon", "stop"]).ok();
        }
        world.start_daemon();
        until_panes(&world, &["live"]);
        world.until("their agents end", || (!pids.iter().any(|pid| is_alive(*pid))).then_some(()));
        assert_eq!(world.status("live")["pid"], seen["pid"]);
    }
}

#[test]
fn end_of_a_worker_closes_leftover_panes_of_others() {
    let (world, pids) = world_with_leftovers();
    // Not of this directory, or not of a worker that is known here: another swarm's, or a user's.
    let mut other = vec!["live"];
    for (name, claims) in [("over", "elsewhere"), ("unknown", "runs/unknown.1")] {
        let dir = if name == "over" {
            claims.to_owned()
        } else {
            world.swarm_dir().join(claims).display().to_string()
        };
        let made =
            ["new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "=swarm:", "sh", "-c", "sleep 600; :", &dir];
        let pane = world.tmux(&made).ok().out;
        for (option, value) in [("@swarm_run", "1"), ("@swarm_worker", name)] {
            let _ = world.tmux(&["set-option", "-p", "-t", pane.trim(), option, value]).ok();
        }
        other.push(name);
    }
    let _ = world.spawn("last", &[], &["true"]).ok();
    world.until_status("last", "done");
    until_panes(&world, &other);
    world.until("their agents end", || (!pids.iter().any(|pid| is_alive(*pid))).then_some(()));
}

#[test]
fn a_window_that_tmux_makes_after_its_worker_was_killed_is_closed() {
    let world = World::new();
    let _ = world.spawn("live", &[], &["sleep", "600"]).ok();
    let tmux = world.tmux_pid();
    signal(tmux, Signal::SIGSTOP);
    let mut spawn =
        world.follow(&["spawn", "--name", "late", "--", "sh", "-c", "echo $$ >>late; exec sleep 600"]);
    world.until("the worker is there", || {
        let listed = world.swarm(&["ls"]).out;
        listed.contains("late").then_some(())
    });
    let killed = world.swarm(&["kill", "late"]);
    signal(tmux, Signal::SIGCONT);
    let _ = killed.ok();
    let _ = spawn.wait(&world);
    until_panes(&world, &["live"]);
    for pid in world.lines("work/late") {
        let pid: u32 = pid.parse().unwrap();
        world.until("its agent ends", || (!is_alive(pid)).then_some(()));
    }
}

#[test]
fn a_window_that_cannot_be_closed_at_once_is_closed_later() {
    let world = World::new();
    let agent = world.agent("w");
    let _ = world.spawn("live", &[], &["sleep", "600"]).ok();
    let _ = world.spawn_agent("w", &agent, &[]).ok();
    agent.until_run(&world, 1);
    let tmux = world.tmux_pid();
    signal(tmux, Signal::SIGSTOP);
    let killed = world.swarm(&["kill", "w"]);
    signal(tmux, Signal::SIGCONT);
    let _ = killed.ok();
    until_panes(&world, &["live"]);
    assert!(!is_alive(agent.pid(1).unwrap()));
}

#[test]
fn agent_that_outlived_its_wrapper_is_ended_before_the_next_run() {
    let world = World::new();
    world.write("PROMPT.md", "go\n");
    let script = "trap '' HUP TERM; first=$(head -n 1 runs)
        echo $$ >>runs
        case $(cat /proc/${first:-0}/stat 2>/dev/null) in ''|*') Z '*) ;; *) echo overlap >>bad; esac
        [ -z \"$first\" ] || exit 0
        while :; do sleep 600; done";
    let _ = world.spawn_sh("w", &["--ralph", "--prompt-file", "PROMPT.md", "-n", "2", "-d"], script).ok();
    world.until("the agent runs", || (world.lines("work/runs").len() == 1).then_some(()));
    let panes = world.panes();
    let wrapper: u32 = panes[0].rsplit(' ').next().unwrap().parse().unwrap();
    world.crash_daemon();
    signal(wrapper, Signal::SIGKILL);
    let agent: u32 = world.lines("work/runs")[0].parse().unwrap();
    assert!(is_alive(agent));
    world.start_daemon();
    world.until_status("w", "done");
    assert_eq!(world.lines("work/runs").len(), 2);
    assert!(!is_alive(agent), "{}", world.report());
    assert!(world.lines("work/bad").is_empty(), "{}", world.report());
}
