//! How agents end: codes and signals, whole process trees, last output, a tmux that dies or hangs.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::world::{World, is_alive, signal};

/// A second for what must be answered at once, and room for a busy machine.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Pids that a worker wrote into a file.
fn pids(world: &World, file: &str, count: usize) -> Vec<u32> {
    world.until(&format!("{count} pids in {file}"), || {
        let found: Vec<u32> = world.lines(file).iter().filter_map(|l| l.parse().ok()).collect();
        (found.len() == count).then_some(found)
    })
}

#[test]
fn signals_and_exit_codes_are_distinguished_and_are_failures() {
    let world = World::new();
    for (name, script) in [
        ("kill", "kill -KILL $$"),
        ("term", "kill -TERM $$"),
        ("segv", "kill -SEGV $$"),
        ("int", "kill -INT $$"),
        ("hup", "kill -HUP $$"),
        ("quit", "kill -QUIT $$"),
        ("pipe", "kill -PIPE $$"),
        ("code", "exit 143"),
    ] {
        let _ = world.spawn_sh(name, &[], script).ok();
    }
    for (name, code, by) in [
        ("kill", 137, Some(9)),
        ("term", 143, Some(15)),
        ("segv", 139, Some(11)),
        ("int", 130, Some(2)),
        ("hup", 129, Some(1)),
        ("quit", 131, Some(3)),
        ("pipe", 141, Some(13)),
        ("code", 143, None),
    ] {
        let seen = world.until_status(name, "failed");
        assert_eq!(seen["exit_code"], code, "{seen}");
        assert_eq!(seen["signal"].as_i64(), by, "{seen}");
        let _ = world.swarm(&["status", name]).code(1);
    }
}

#[test]
fn remaining_dead_pane_is_not_a_live_worker() {
    let world = World::new();
    std::fs::write(world.path("home/.tmux.conf"), "set -g remain-on-exit on\nset -g base-index 1\n").unwrap();
    let _ = world.spawn_sh("w", &[], "exit 5").ok();
    assert_eq!(world.until_status("w", "failed")["exit_code"], 5);
    world.until("its pane is closed", || world.panes().is_empty().then_some(()));
}

#[test]
fn missing_program_leaves_no_worker() {
    let world = World::new();
    let _ = world.spawn("w", &[], &["no-such-agent-xyz"]).code(1).warns("no-such-agent-xyz");
    assert_eq!(world.swarm(&["ls", "--format", "json"]).json(), serde_json::json!([]));
    let _ = world.spawn_sh("x", &[], "echo 'auth failed' >&2; exit 1").ok();
    assert_eq!(world.until_status("x", "failed")["exit_code"], 1);
    let _ = world.swarm(&["logs", "x"]).ok().says("auth failed");
}

#[test]
fn quick_exits_of_loops_are_all_recorded() {
    let world = World::new();
    std::fs::write(world.path("work/p"), "").unwrap();
    let names: Vec<String> = (0..5).map(|i| format!("q{i}")).collect();
    for name in &names {
        let _ = world.spawn("x", &["--replace"], &["true"]).ok();
        let _ = world
            .spawn(name, &["--ralph", "--prompt-file", "p", "-n", "12", "-d"], &["sh", "-c", "exit 0"])
            .ok();
    }
    for name in &names {
        world.until_status(name, "done");
        let log = world.iterations_log(name);
        assert_eq!(log.matches("exit=0 ").count(), 12, "{log}\n{}", world.report());
        assert_eq!(world.ralph_state(name)["total_failures"], 0, "{log}");
    }
}

#[test]
fn two_hundred_quick_exits_are_all_recorded() {
    let world = World::new();
    world.start_daemon();
    let spawn = |i: usize| {
        let _ = world.spawn_sh(&format!("q{i}"), &[], if i % 10 == 7 { "exit 3" } else { "exit 0" }).ok();
    };
    std::thread::scope(|scope| {
        for first in 0..4 {
            scope.spawn(move || (first..200).step_by(4).for_each(spawn));
        }
    });
    let all = world.until("all have ended", || {
        let all = world.swarm(&["ls", "--format", "json"]).ok().json();
        let over = |w: &serde_json::Value| w["status"] == "done" || w["status"] == "failed";
        all.as_array().unwrap().iter().all(over).then_some(all)
    });
    for seen in all.as_array().unwrap() {
        let wanted = if seen["name"].as_str().unwrap().ends_with('7') { 3 } else { 0 };
        assert_eq!(seen["exit_code"], wanted, "{seen}");
        assert_eq!(seen["status"], if wanted == 0 { "done" } else { "failed" }, "{seen}");
    }
    assert_eq!(all.as_array().unwrap().len(), 200);
    world.until("no pane is left", || world.panes().is_empty().then_some(()));
}

#[test]
fn killed_wrapper_is_a_failure_and_leaves_no_process() {
    let world = World::new();
    let _ = world.spawn_sh("w", &[], "echo $$ >>pids; sleep 7779 & echo $! >>pids; wait").ok();
    let tree = pids(&world, "work/pids", 2);
    let wrapper = world.panes()[0].rsplit(' ').next().unwrap().parse().unwrap();
    signal(wrapper, Signal::SIGKILL);
    let seen = world.until_status("w", "failed");
    assert_ne!(seen["exit_code"], 0, "{seen}");
    world.until("nothing is left", || (!tree.iter().any(|pid| is_alive(*pid))).then_some(()));
    world.until("its pane is closed", || world.panes().is_empty().then_some(()));
}

#[test]
fn parallel_loops_do_not_affect_each_other() {
    let world = World::new();
    std::fs::write(world.path("work/p"), "").unwrap();
    for i in 0..5 {
        let name = format!("w{i}");
        let script = format!("echo run >>{name}; [ $(wc -l <{name}) -lt 3 ] || echo DONE {name}");
        let flags =
            ["--ralph", "--prompt-file", "p", "-n", "9", "-d", "--done-pattern", &format!("DONE {name}")];
        let _ = world.spawn_sh(&name, &flags, &script).ok();
    }
    for i in 0..5 {
        let name = format!("w{i}");
        let seen = world.until_status(&name, "done");
        assert_eq!(seen["reason"], "done pattern matched", "{}", world.iterations_log(&name));
        assert_eq!(world.lines(format!("work/{name}")).len(), 3);
    }
}

#[test]
fn the_last_output_of_a_fast_exit_is_kept() {
    let world = World::new();
    // 200 KB, and gone.
    let script = r#"i=0; while [ $i -lt 1000 ]; do printf 'line %04d %0189d\n' $i 0; i=$((i+1)); done"#;
    let _ = world.spawn_sh("w", &[], script).ok();
    world.until_status("w", "done");
    let text = world.swarm(&["logs", "w"]).ok().out;
    let numbers: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("line ")?.get(..4)).collect();
    assert_eq!((numbers.len(), numbers.last()), (1000, Some(&"0999")), "{}", &text[..text.len().min(2000)]);
}

#[test]
fn kill_ends_the_process_tree_and_names_forced_processes() {
    let world = World::new();
    let script = r#"put() { echo $1 >>pids; }
        setsid sh -c 'echo $$ >>pids; exec sleep 7771' &
        nohup sleep 7772 >/dev/null 2>&1 & put $!
        sh -c 'trap "" HUP TERM; echo $$ >>pids; while :; do sleep 7773; done' & 
        (setsid setsid sh -c 'echo $$ >>pids; exec sleep 7775' &)
        put $$; sleep 7774"#;
    let _ = world.spawn_sh("w", &[], script).ok();
    let tree = pids(&world, "work/pids", 5);
    let killed = world.swarm(&["kill", "w"]).ok();
    let left: Vec<_> = tree.into_iter().filter(|pid| is_alive(*pid)).collect();
    assert!(left.is_empty(), "{left:?} outlived the kill");
    let _ = killed.says("by force:").says(" sh");
    world.until("its pane is closed", || world.panes().is_empty().then_some(()));
}

#[test]
fn killed_loop_does_not_start_again() {
    let world = World::new();
    std::fs::write(world.path("work/p"), "").unwrap();
    for i in 0..6 {
        let name = format!("w{i}");
        let script = format!("echo run >>{name}; sleep 0.{i}; exit 1");
        let _ = world.spawn_sh(&name, &["--ralph", "--prompt-file", "p", "-n", "99", "-d"], &script).ok();
        let _ = world.swarm(&["kill", &name]).ok();
    }
    let runs = |i: usize| world.lines(format!("work/w{i}")).len();
    let before: Vec<_> = (0..6).map(runs).collect();
    // A loop that would go on does so within its backoff of a second.
    let _ = world.spawn("clock", &[], &["sleep", "3"]).ok();
    world.until_status("clock", "done");
    assert_eq!((0..6).map(runs).collect::<Vec<_>>(), before);
    for i in 0..6 {
        assert_eq!(world.status(&format!("w{i}"))["status"], "killed");
    }
    world.until("no pane is left", || world.panes().is_empty().then_some(()));
}

#[test]
fn death_of_the_tmux_server_makes_its_workers_lost() {
    for how in [Signal::SIGKILL, Signal::SIGTERM] {
        let world = World::new();
        std::fs::write(world.path("work/p"), "").unwrap();
        let _ = world.spawn_sh("w", &[], "echo $$ >>pids; sleep 7776").ok();
        let mut loops = world.agent("a");
        let cmd = loops.command();
        let cmd: Vec<&str> = cmd.iter().map(String::as_str).collect();
        let flags = ["spawn", "--name", "l", "--ralph", "--prompt-file", "p", "-n", "2", "--"];
        let mut follower = world.follow(&[&flags[..], &cmd[..]].concat());
        loops.until_run(&world, 1);
        let tree = pids(&world, "work/pids", 1);
        signal(world.tmux_pid(), how);
        let seen = world.until_status("w", "lost");
        assert_eq!(seen["exit_code"], serde_json::Value::Null, "{seen}");
        let _ = world.swarm(&["status", "w"]).code(1);
        world.until("the agent is gone", || (!is_alive(tree[0])).then_some(()));
        world.until_status("l", "lost");
        assert_eq!(follower.wait(&world), 1, "{}", follower.output());
        assert!(follower.output().contains("swarm ralph resume l"), "{}", follower.output());
        assert_eq!(world.ralph_state("l")["status"], "running");
        let _ = world.swarm(&["ralph", "resume", "l"]).ok();
        loops.until_run(&world, 2);
        assert_eq!(world.ralph_state("l")["current_iteration"], 1);
        loops.tell("exit 0");
        loops.until_run(&world, 3);
        loops.tell("exit 0");
        world.until_status("l", "done");
        assert_eq!(loops.starts(), 3);
    }
}

#[test]
fn hanging_tmux_delays_no_command_and_ends_no_worker() {
    let world = World::new();
    let _ = world.spawn_sh("w", &[], "echo $$ >>pids; sleep 7777").ok();
    let _ = world.spawn_sh("v", &[], "echo $$ >>pids; sleep 7778").ok();
    let tree = pids(&world, "work/pids", 2);
    let server = world.tmux_pid();
    signal(server, Signal::SIGSTOP);
    let quick = |args: &[&str]| {
        let start = Instant::now();
        let ran = world.swarm(args);
        assert!(start.elapsed() < AT_ONCE, "{args:?} took {:?}", start.elapsed());
        ran
    };
    let _ = quick(&["ls"]).ok().says("w");
    world.until_status("w", "unreachable");
    let _ = quick(&["ls"]).ok().says("unreachable");
    let _ = quick(&["status", "w"]).ok();
    // A kill needs no tmux.
    let kill = world.follow(&["kill", "w"]);
    world.until("the killed agent is gone", || (!is_alive(tree[0])).then_some(()));
    assert!(is_alive(tree[1]));
    // A daemon that starts now takes nobody for dead either.
    world.crash_daemon();
    drop(kill);
    world.start_daemon();
    world.until_status("v", "unreachable");
    signal(server, Signal::SIGCONT);
    world.until_status("v", "running");
    world.until_status("w", "killed");
    assert!(is_alive(tree[1]));
    assert_eq!(world.panes().len(), 1, "{:?}", world.panes());
}
