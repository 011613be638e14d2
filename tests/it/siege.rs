//! Clients that speak rubbish, say nothing, never read or come by the hundred, and a daemon with few
//! descriptors: nobody else notices.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{PATIENCE, SWARM, Wire, World};

/// A raw connection that may do with it what no client does.
fn raw(world: &World) -> UnixStream {
    let path = swarm::paths::Paths::new(world.swarm_dir()).socket();
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends one line and insists on one answer, a refusal or not.
#[track_caller]
fn answer(wire: &mut Wire, line: &[u8]) -> Value {
    wire.send(&[line, b"\n"].concat());
    let answer = wire.line();
    let shown = String::from_utf8_lossy(&line[..line.len().min(300)]).into_owned();
    serde_json::from_str(&answer).unwrap_or_else(|e| panic!("{e}: {answer:?} to {shown}"))
}

/// Insists that the daemon is the same one and serves.
#[track_caller]
fn unharmed(world: &World, pid: Option<u32>) {
    world.swarm(&["ls"]).ok();
    assert_eq!(world.daemon_pid(), pid);
    let log = std::fs::read_to_string(world.swarm_dir().join("daemon.log")).unwrap_or_default();
    assert!(!log.contains("panicked"), "{log}");
}

/// Bytes that are different each time they are asked for, and the same in every test run.
fn noise(state: &mut u64, len: usize) -> Vec<u8> {
    let mut next = || {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    };
    (0..len).map(|_| (next() >> 24) as u8).map(|byte| if byte == b'\n' { b' ' } else { byte }).collect()
}

#[test]
fn invalid_line_gets_an_error_and_the_next_one_is_served() {
    let w = World::new();
    w.start_daemon();
    let pid = w.daemon_pid();
    let mut wire = w.connect().hello();
    let deep = "[".repeat(100_000);
    let wide = format!("{{\"id\":1,\"method\":\"ls\",\"params\":[{}0]}}", "0,".repeat(400_000));
    let known: Vec<&[u8]> = vec![
        b"",
        b" ",
        b"null",
        b"1",
        b"\"x\"",
        b"[]",
        b"{}",
        b"{",
        b"\0",
        b"\xff\xfe",
        b"{\"id\":-1,\"method\":\"ls\"}",
        b"{\"id\":1e400,\"method\":\"ls\"}",
        b"{\"id\":1,\"id\":2,\"method\":\"ls\"}",
        b"GET / HTTP/1.1\r",
        b"{\"id\":1,\"method\":\"ls\",\"params\":\"\\ud800\"}",
        b"{\"swarm\":1,\"client\":\"again\"}",
        deep.as_bytes(),
        wide.as_bytes(),
    ];
    for line in known {
        answer(&mut wire, line);
    }
    assert_eq!(
        answer(&mut wire, b"{\"id\":7,\"method\":5}")["id"],
        7,
        "the number is found where there is one"
    );
    let mut state = 0x5eed;
    for round in 0..500 {
        answer(&mut wire, &noise(&mut state, round % 97));
    }
    assert!(answer(&mut wire, b"{\"id\":8,\"method\":\"ls\"}")["ok"].is_object());
    unharmed(&w, pid);
}

/// Values that no parameter is meant to be.
fn junk() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(0),
        json!(u64::MAX),
        json!(1.5),
        json!(""),
        json!("\0"),
        json!("w"),
        json!("../x"),
        json!("l"),
        json!("x".repeat(5000)),
        json!([]),
        json!([[]]),
        json!(["\0", ""]),
        json!({}),
        json!({"": ""}),
        json!({"a=b": "\0"}),
        json!([0, 0]),
        json!([65535, 65535]),
    ]
}

/// The methods, each with parameters that make sense here: about the worker `w`, or a new one.
fn calls() -> Vec<(String, Value)> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/calls.jsonl"));
    let text = text.unwrap();
    let mut calls = vec![];
    for call in text.lines().step_by(2).map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let method = call["method"].as_str().unwrap().to_owned();
        let mut params = call["params"].clone();
        if let Some(name) = params.get_mut("name") {
            *name = json!("w");
        }
        if method == "spawn" {
            let own = json!({"name": "s", "cmd": ["true"], "cwd": "/", "replace": true, "worktree": null,
                "tmux_socket": null, "ready_wait": false, "prompt": "none", "ralph": null});
            for (key, value) in own.as_object().unwrap() {
                params[key] = value.clone();
            }
        }
        // These end the daemon or the connection, whatever they are given.
        if !["daemon.stop", "daemon.handover", "subscribe", "wait"].contains(&method.as_str()) {
            calls.push((method, params));
        }
    }
    assert!(calls.len() > 10);
    calls
}

#[test]
fn parameters_of_any_type_get_an_answer() {
    let w = World::new();
    w.write("PROMPT.md", "x");
    w.spawn("w", &[], &["cat"]).ok();
    w.spawn("l", &["--ralph", "--prompt-file", "PROMPT.md", "-n", "2", "-d"], &["sh", "-c", "sleep 1000"])
        .ok();
    let pid = w.daemon_pid();
    let mut wire = w.connect().hello();
    let mut ask = |method: &str, params: &Value| {
        answer(&mut wire, json!({"id": 1, "method": method, "params": params}).to_string().as_bytes());
    };
    for (method, params) in calls() {
        let keys: Vec<String> = params.as_object().map(|p| p.keys().cloned().collect()).unwrap_or_default();
        for value in junk() {
            ask(&method, &value);
            // Another server than the test's own is nobody's to start, and ready is waited for in vain.
            for key in keys
                .iter()
                .filter(|key| !["tmux_socket", "ready_wait", "wait", "timeout"].contains(&key.as_str()))
            {
                let mut params = params.clone();
                params[key] = value.clone();
                // The next notification may never come.
                if method == "notify.next" && value.is_u64() {
                    let line = json!({"id": 1, "method": method, "params": params}).to_string();
                    w.connect().hello().send(&[line.as_bytes(), b"\n"].concat());
                } else {
                    ask(&method, &params);
                }
            }
        }
    }
    unharmed(&w, pid);
}

#[test]
fn silent_and_interrupted_clients_do_not_disturb_the_daemon() {
    let w = World::new();
    w.start_daemon();
    let pid = w.daemon_pid();
    let silent: Vec<UnixStream> = (0..150).map(|_| raw(&w)).collect();
    let greeted: Vec<Wire> = (0..50).map(|_| w.connect().hello()).collect();
    for part in [
        &b""[..],
        b"{\"swarm\":",
        b"\xff\n\xff",
        b"{\"swarm\":99,\"client\":\"x\"}\n",
        b"{\"swarm\":1,\"client\":\"x\"}\n{\"id\":1,",
    ] {
        let mut stream = raw(&w);
        drop(stream.write_all(part));
        drop(stream);
    }
    // A byte at a time is a line too.
    let mut slow = raw(&w);
    for byte in b"{\"swarm\":1,\"client\":\"slow\"}\n{\"id\":3,\"method\":\"ls\"}\n" {
        slow.write_all(&[*byte]).unwrap();
        std::thread::park_timeout(Duration::from_millis(1));
    }
    let mut said = vec![0; 4096];
    w.until("the slow one is answered", || {
        let count = slow.read(&mut said).unwrap();
        String::from_utf8_lossy(&said[..count]).contains("\"id\":3").then_some(())
    });
    unharmed(&w, pid);
    drop((silent, greeted));
}

#[test]
fn two_hundred_clients_at_once_are_served() {
    let w = World::new();
    w.spawn("w", &[], &["cat"]).ok();
    let mut wires: Vec<Wire> = (0..200).map(|_| w.connect().hello()).collect();
    for wire in &mut wires {
        wire.send(b"{\"id\":1,\"method\":\"status\",\"params\":{\"name\":\"w\"}}\n");
    }
    for wire in &mut wires {
        assert!(wire.line().contains("\"running\""));
    }
    drop(wires);
    let mut clients: Vec<_> = (0..200).map(|_| w.follow(&["ls", "--format", "names"])).collect();
    for client in &mut clients {
        assert_eq!(client.wait(&w), 0, "{}", client.output());
        assert_eq!(client.output(), "w\n");
    }
}

#[test]
fn clients_above_the_descriptor_limit_get_an_error() {
    let w = World::new();
    w.start_daemon();
    w.crash_daemon();
    let mut start = w.command("sh");
    start.args(["-c", "ulimit -n 64; exec \"$0\" daemon start", SWARM]);
    w.run(start).ok();
    let pid = w.daemon_pid();
    let held: Vec<Wire> = (0..16).map(|_| w.connect().hello()).collect();
    w.swarm(&["ls"]).code(1).warns("clients").warns("ulimit -n");
    drop(held);
    w.until("the daemon sees that they left", || (w.swarm(&["ls"]).code == Some(0)).then_some(()));
    unharmed(&w, pid);
}

#[test]
fn daemon_with_few_descriptors_supervises_many_workers() {
    let w = World::new();
    w.spawn("first", &[], &["cat"]).ok();
    w.crash_daemon();
    // The tmux server, and with it the agents, keeps its own limit.
    let mut start = w.command("sh");
    start.args(["-c", "ulimit -n 64; exec \"$0\" daemon start", SWARM]);
    w.run(start).ok();
    let pid = w.daemon_pid();
    let names: Vec<String> = (1..=50).map(|n| format!("w{n}")).collect();
    // Several at once: what they start takes descriptors for a moment.
    for some in names.chunks(10) {
        let spawn = |name: &String| w.follow(&["spawn", "--name", name, "--", "cat"]);
        let mut spawns: Vec<_> = some.iter().map(spawn).collect();
        for spawn in &mut spawns {
            assert_eq!(spawn.wait(&w), 0, "{}", spawn.output());
        }
    }
    for name in ["w1", "w49", "w50"] {
        let agent = w.status(name)["pid"].as_u64().unwrap();
        crate::world::signal(u32::try_from(agent).unwrap(), nix::sys::signal::Signal::SIGKILL);
        let end = w.until_status(name, "failed");
        assert_eq!(end["signal"], 9);
    }
    for some in names.chunks(10) {
        let words: Vec<&str> = ["kill"].into_iter().chain(some.iter().map(String::as_str)).collect();
        w.swarm(&words).ok();
    }
    assert_eq!(w.panes().len(), 1, "{:?}", w.panes());
    unharmed(&w, pid);
}

#[test]
fn followers_that_never_read_do_not_block_the_daemon() {
    let w = World::new();
    w.write("PROMPT.md", "x");
    w.spawn("l", &["--ralph", "--prompt-file", "PROMPT.md", "-n", "2", "-d"], &["sh", "-c", "sleep 1000"])
        .ok();
    let pid = w.daemon_pid();
    let deaf: Vec<Wire> = (0..20)
        .map(|_| {
            let mut wire = w.connect().hello();
            wire.send(b"{\"id\":1,\"method\":\"subscribe\",\"params\":{}}\n");
            wire
        })
        .collect();
    let mut wire = w.connect().hello();
    // More than a socket holds: Linux counts about a kilobyte for each of its lines.
    for _ in 0..300 {
        for method in ["ralph.pause", "ralph.resume"] {
            let call = json!({"id": 1, "method": method, "params": {"name": "l"}});
            assert_eq!(answer(&mut wire, call.to_string().as_bytes())["ok"]["changed"], true);
        }
    }
    unharmed(&w, pid);
    drop(deaf);
}

#[test]
fn a_list_of_workers_with_very_long_commands_is_shown() {
    let w = World::new();
    let long = "x".repeat(100_000);
    for n in 1..=12 {
        w.spawn(&format!("w{n}"), &[], &["sh", "-c", "exec cat", "sh", &long]).ok();
    }
    let listed = w.swarm(&["ls", "--format", "json"]).ok().json();
    assert_eq!(listed.as_array().unwrap().len(), 12);
    w.swarm(&["ls"]).ok().says("w12");
    assert_eq!(w.status("w1")["cmd"][4], long, "one alone is shown whole");
}
