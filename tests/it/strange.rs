//! Strange things in the place of files, and a record that is gone: found by a hostile reading.

use std::fs;
use std::path::Path;

use nix::sys::signal::Signal;

use crate::world::{World, is_alive, signal};

fn fifo(path: &Path) {
    drop(fs::remove_file(path));
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
}

#[test]
fn prompt_file_that_became_a_fifo_fails_only_its_loop() {
    let w = World::new();
    let mut agent = w.agent("a");
    let mut follower = w.follow_loop("agent", &agent, &[]);
    agent.until_run(&w, 1);
    fifo(&w.work().join("PROMPT.md"));
    agent.tell("exit 0");
    assert_eq!(follower.wait(&w), 1);
    assert!(follower.output().contains("cannot read prompt file: "), "{}", follower.output());
    w.swarm(&["ls"]).ok();
    assert_eq!(w.status("agent")["status"], "failed");
}

#[test]
fn prompt_file_that_became_a_device_is_refused() {
    let w = World::new();
    let mut agent = w.agent("a");
    let mut follower = w.follow_loop("agent", &agent, &[]);
    agent.until_run(&w, 1);
    fs::remove_file(w.work().join("PROMPT.md")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", w.work().join("PROMPT.md")).unwrap();
    agent.tell("exit 0");
    assert_eq!(follower.wait(&w), 1);
    assert!(follower.output().contains("cannot read prompt file: "), "{}", follower.output());
}

#[test]
fn unwritable_state_file_stops_new_iterations_and_allows_a_kill() {
    for strange in ["newer", "fifo"] {
        let w = World::new();
        let mut agent = w.agent("a");
        let mut follower = w.follow_loop("agent", &agent, &[]);
        agent.until_run(&w, 1);
        let path = w.swarm_dir().join("ralph/agent/state.json");
        match strange {
            "newer" => {
                let text = fs::read_to_string(&path).unwrap().replace("\"format\": 1", "\"format\": 99");
                fs::write(&path, text).unwrap();
            }
            _ => fifo(&path),
        }
        agent.tell("exit 0");
        w.until("the status says why nothing goes on", || {
            let reason = w.status("agent")["reason"].to_string();
            reason.contains("cannot be saved").then_some(())
        });
        assert!(w.swarm(&["ls"]).ok().err.contains("agent"), "ls says nothing of it");
        assert_eq!(agent.starts(), 1, "nothing is started that is not written down");
        w.swarm(&["kill", "agent"]).ok();
        assert_eq!(follower.wait(&w), 1);
    }
}

#[test]
fn broken_state_file_is_reported_by_ls() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("agent", &agent, &[]);
    fs::write(w.swarm_dir().join("ralph/agent/state.json"), "{\"x\":").unwrap();
    agent.tell("exit 0");
    agent.until_run(&w, 2);
    w.swarm(&["ls"]).ok().warns("state.json");
}

#[test]
fn live_agent_with_a_broken_record_is_found_again() {
    let w = World::new();
    let agent = w.agent("a");
    w.spawn_agent("w1", &agent, &[]);
    let pid = agent.pid(1).unwrap();
    w.swarm(&["daemon", "stop"]).ok();
    fs::write(w.swarm_dir().join("workers/w1.json"), "garbage").unwrap();
    let listed = w.swarm(&["ls", "--format", "names"]).ok().warns("w1");
    assert_eq!(listed.out, "w1\n");
    w.swarm(&["spawn", "--name", "w1", "--", "sleep", "60"]).code(1).warns("already exists");
    assert!(is_alive(pid));
    w.swarm(&["kill", "w1"]).ok();
    assert!(!is_alive(pid), "the one that was found is the one that is killed");
}

#[test]
fn stopped_tmux_is_not_a_failure_of_the_agent() {
    let w = World::new();
    let mut agent = w.agent("a");
    w.spawn_loop("agent", &agent, &[]);
    let server = w.tmux_pid();
    signal(server, Signal::SIGSTOP);
    agent.tell("exit 0");
    w.until("it is seen", || (w.status("agent")["status"] == "unreachable").then_some(()));
    signal(server, Signal::SIGCONT);
    agent.until_run(&w, 2);
    assert!(!w.iterations_log("agent").contains("[FAIL]"), "{}", w.iterations_log("agent"));
    assert_eq!(w.ralph_state("agent")["total_failures"], 0);
}

#[test]
fn a_stopped_daemon_leaves_no_empty_tmux_server() {
    let w = World::new();
    let agent = w.agent("a");
    w.spawn_agent("w1", &agent, &[]);
    let server = w.tmux_pid();
    w.swarm(&["kill", "w1"]).ok();
    w.swarm(&["daemon", "stop"]).ok();
    w.until("the server is gone", || (!is_alive(server)).then_some(()));
}

#[test]
fn binary_prompt_arrives_unchanged() {
    let w = World::new();
    let bytes: Vec<u8> = (0..=255).chain([0xff, 0xfe, b'\r', b'\n', 0]).collect();
    fs::write(w.work().join("odd"), &bytes).unwrap();
    w.swarm(&[
        "spawn",
        "--name",
        "o",
        "--prompt-file",
        "odd",
        "--prompt-via",
        "stdin",
        "--",
        "sh",
        "-c",
        "cat >got",
    ])
    .ok();
    w.until_status("o", "done");
    assert_eq!(fs::read(w.work().join("got")).unwrap(), bytes);
}

#[test]
fn broken_records_are_set_aside_and_their_agents_found_again() {
    let w = World::new();
    let names = ["empty", "cut", "object", "list", "zeros"];
    for name in names {
        w.spawn(name, &[], &["sleep", "600"]).ok();
    }
    let pids: Vec<_> = names.iter().map(|name| w.status(name)["pid"].clone()).collect();
    w.swarm(&["daemon", "stop"]).ok();
    let mut broken = vec![];
    for name in names {
        let path = w.swarm_dir().join(format!("workers/{name}.json"));
        let text = fs::read(&path).unwrap();
        let bytes = match name {
            "empty" => vec![],
            "cut" => text[..text.len() * 2 / 5].to_vec(),
            "object" => b"{}".to_vec(),
            "list" => b"[]".to_vec(),
            _ => vec![0; text.len()],
        };
        fs::write(&path, &bytes).unwrap();
        broken.push(bytes);
    }
    let listed = w.swarm(&["ls", "--format", "names"]).ok();
    for name in names {
        assert!(listed.out.lines().any(|line| line == name), "{}", listed.out);
        assert!(
            listed.err.contains(&format!("{name}.json' cannot be read and was set aside")),
            "{}",
            listed.err
        );
    }
    w.spawn("new", &[], &["sleep", "600"]).ok();
    for ((name, pid), bytes) in names.iter().zip(pids).zip(broken) {
        let seen = w.until_status(name, "running");
        assert_eq!(seen["pid"], pid);
        let aside = fs::read_dir(w.swarm_dir().join("workers")).unwrap().flatten().map(|e| e.path());
        let head = format!("{name}.json.corrupt-");
        let mut aside =
            aside.filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(&head)));
        assert_eq!(fs::read(aside.next().unwrap()).unwrap(), bytes, "{name}");
        w.swarm(&["kill", name]).ok();
    }
    assert_eq!(w.panes().len(), 1);
    // Once told is not for ever: a later daemon still says what lies there.
    w.swarm(&["daemon", "restart"]).ok();
    w.swarm(&["ls"]).ok().warns("cut.json.corrupt-");
}
