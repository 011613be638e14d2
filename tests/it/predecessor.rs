//! The Python predecessor: its files load, its windows and files are left alone, its loops can be taken over.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::world::{World, is_alive};

/// Files that the predecessor itself wrote.
const FILES: [&str; 3] = ["state.json", "ralph/agent/state.json", "ralph/agent/iterations.log"];

/// A predecessor that runs: its tmux server, in tmux's usual directory, under a name that nobody else has.
struct Predecessor {
    socket: String,
    /// By window.
    pids: BTreeMap<String, u32>,
}

impl Predecessor {
    /// Starts it with two windows, and puts its files into the world's directory.
    fn start(world: &World) -> Self {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let socket = format!("swarm-it-v0-{}-{count}", std::process::id());
        let mut it = Self { socket, pids: BTreeMap::new() };
        let sleep = ["sh", "-c", "exec sleep 600"];
        let session = ["-f", "/dev/null", "new-session", "-d", "-s", "swarm-4d11d19c", "-n", "agent"];
        it.tmux(world, &[&session[..], &sleep[..]].concat());
        it.tmux(
            world,
            &[&["new-window", "-d", "-t", "swarm-4d11d19c:", "-n", "feature"], &sleep[..]].concat(),
        );
        let listed = it.tmux(world, &["list-panes", "-a", "-F", "#{window_name} #{pane_pid}"]);
        for line in listed.lines() {
            let (window, pid) = line.split_once(' ').unwrap();
            it.pids.insert(window.to_owned(), pid.parse().unwrap());
        }
        assert_eq!(it.pids.len(), 2, "{listed}");
        put_files(world, |text| text.replace("v0test", &it.socket).replace("\"pid\": 27014", "\"pid\": 1"));
        it
    }

    fn tmux(&self, world: &World, args: &[&str]) -> String {
        let mut tmux = world.command("tmux");
        tmux.env_remove("TMUX_TMPDIR").args(["-L", &self.socket]).args(args);
        world.run(tmux).ok().out
    }

    #[track_caller]
    fn is_untouched(&self) {
        for (window, pid) in &self.pids {
            assert!(is_alive(*pid), "the window {window} was ended");
        }
    }
}

impl Drop for Predecessor {
    fn drop(&mut self) {
        let tmux = |args: &[&str]| {
            let mut tmux = std::process::Command::new("tmux");
            tmux.env_remove("TMUX_TMPDIR").env_remove("TMUX").args(["-L", &self.socket]).args(args);
            tmux.output().map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default()
        };
        let path = tmux(&["display-message", "-p", "#{socket_path}"]);
        tmux(&["kill-server"]);
        if Path::new(&path).is_absolute() {
            drop(fs::remove_file(path));
        }
    }
}

fn put_files(world: &World, change: impl Fn(String) -> String) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("state/fixtures/predecessor");
    for file in FILES {
        let to = world.swarm_dir().join(file);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(to, change(fs::read_to_string(from.join(file)).unwrap())).unwrap();
    }
}

/// The predecessor's files, byte for byte.
fn bytes(world: &World) -> Vec<Vec<u8>> {
    FILES.iter().map(|file| fs::read(world.swarm_dir().join(file)).unwrap()).collect()
}

/// Changes a worker of the predecessor's list.
fn edit(world: &World, name: &str, change: impl FnOnce(&mut Value)) {
    let path = world.swarm_dir().join("state.json");
    let mut list: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    change(list["workers"].as_array_mut().unwrap().iter_mut().find(|w| w["name"] == name).unwrap());
    fs::write(path, serde_json::to_vec_pretty(&list).unwrap()).unwrap();
}

fn ralph_dir(world: &World) -> PathBuf {
    world.swarm_dir().join("ralph/agent")
}

#[test]
fn running_workers_of_the_predecessor_are_shown_and_not_changed() {
    let w = World::new();
    let theirs = Predecessor::start(&w);
    let before = bytes(&w);
    assert_eq!(w.swarm(&["ls", "--format", "names"]).ok().out, "agent\nbg\nfeature\n");
    let agent = w.status("agent");
    assert_eq!((&agent["status"], &agent["metadata"]["ralph_iteration"]), (&"lost".into(), &1.into()));
    assert!(agent["reason"].as_str().unwrap().contains("an earlier swarm"), "{agent}");
    assert_eq!(w.status("feature")["worktree"]["branch"], "feature");
    let loop_ = w.swarm(&["ralph", "status", "agent", "--format", "json"]).ok().json();
    assert_eq!((&loop_["iteration"], &loop_["max_iterations"]), (&1.into(), &10.into()));
    assert_eq!(loop_["started"].as_str().map(|t| &t[..10]), Some("2026-11-27"));
    w.swarm(&["ralph", "logs", "agent"]).ok().says("[START] iteration 1/10");

    for args in [
        &["kill", "agent"][..],
        &["kill", "feature"],
        &["kill", "bg"],
        &["ralph", "pause", "agent"],
        &["ralph", "set", "agent", "max_iterations=3"],
    ] {
        w.swarm(args).code(1).warns("earlier swarm and is not changed\nhint: ");
    }
    w.swarm(&["ralph", "resume", "agent"]).code(1).warns("still runs under the earlier swarm");
    for name in ["agent", "feature", "bg"] {
        w.spawn(name, &[], &["sleep", "600"]).code(1).warns("already exists: an earlier swarm");
    }
    let _ = w.swarm(&["ralph", "clean", "--all"]);
    w.swarm(&["daemon", "restart"]).ok();
    w.swarm(&["daemon", "stop"]).ok();
    w.start_daemon();
    w.crash_daemon();
    assert_eq!(w.swarm(&["ls", "--format", "names"]).ok().out, "agent\nbg\nfeature\n");
    w.swarm(&["daemon", "stop"]).ok();
    assert_eq!(bytes(&w), before);
    theirs.is_untouched();
}

#[test]
fn a_spawn_that_replaces_a_name_keeps_the_predecessors_files_and_windows() {
    let w = World::new();
    let theirs = Predecessor::start(&w);
    let before = bytes(&w);
    w.spawn("agent", &["--replace"], &["sleep", "600"]).ok();
    w.swarm(&["kill", "agent"]).ok();
    theirs.is_untouched();
    let list = fs::read(w.swarm_dir().join("state.json")).unwrap();
    let kept = |file: &str| fs::read(w.swarm_dir().join("ralph/agent.1").join(file)).unwrap();
    assert_eq!([list, kept("state.json"), kept("iterations.log")].to_vec(), before);
    w.swarm(&["daemon", "restart"]).ok();
    assert_eq!(w.status("agent")["reason"], "killed", "the predecessor's is not back");
}

#[test]
fn resume_continues_a_predecessors_loop_without_a_window() {
    let w = World::new();
    let mut agent = w.agent("a");
    put_files(&w, |text| text.replace("v0test", "swarm-it-v0-none"));
    w.write("PROMPT.md", "go on\n");
    edit(&w, "agent", |worker| {
        worker["cmd"] = agent.command().into();
        worker["cwd"] = w.work().display().to_string().into();
        worker["env"] = serde_json::json!({"PATH": std::env::var("PATH").unwrap()});
    });
    let state = ralph_dir(&w).join("state.json");
    let text = fs::read_to_string(&state).unwrap();
    let text = text.replace("/home/u/proj/PROMPT.md", w.work().join("PROMPT.md").to_str().unwrap());
    let text = text.replace("\"current_iteration\": 1", "\"current_iteration\": 4");
    fs::write(&state, text.replace("\"total_failures\": 0", "\"total_failures\": 2")).unwrap();
    let before = bytes(&w);

    w.swarm(&["ralph", "resume", "agent"]).ok();
    agent.until_run(&w, 1);
    let now = w.ralph_state("agent");
    assert_eq!((&now["current_iteration"], &now["total_failures"]), (&4.into(), &2.into()), "repeated");
    assert_eq!(fs::read(ralph_dir(&w).join("state.json.v0")).unwrap(), before[1], "a way back");
    assert_eq!(fs::read(w.swarm_dir().join("state.json")).unwrap(), before[0]);
    let log = w.iterations_log("agent");
    assert!(log.as_bytes().starts_with(&before[2]), "{log}");
    // The loop belongs to this swarm now.
    agent.tell("exit 0");
    agent.until_run(&w, 2);
    assert_eq!(w.ralph_state("agent")["current_iteration"], 5);
    w.swarm(&["kill", "agent"]).ok();
    w.swarm(&["daemon", "restart"]).ok();
    assert_eq!(w.status("agent")["status"], "killed");
}

#[test]
fn stopped_workers_of_the_predecessor_are_finished() {
    let w = World::new();
    put_files(&w, |text| text.replace("\"status\": \"running\"", "\"status\": \"stopped\""));
    assert_eq!(w.status("agent")["status"], "killed");
    assert_eq!(w.status("bg")["status"], "killed");
    w.swarm(&["ralph", "resume", "agent"]).code(1).warns("the loop of worker 'agent' has ended (killed)");
    assert_eq!(w.panes(), Vec::<String>::new(), "nothing was started");
    w.spawn("bg", &[], &["sleep", "600"]).ok();
    assert_eq!(w.status("bg")["status"], "running");
}

#[test]
fn predecessors_finished_worker_is_cleaned_only_by_its_name() {
    let w = World::new();
    let theirs = Predecessor::start(&w);
    let before = bytes(&w);
    w.start_daemon();
    for name in ["agent", "feature", "bg"] {
        w.swarm(&["clean", name]).code(1).warns("still runs under the earlier swarm");
    }
    drop(theirs);
    w.swarm(&["clean", "--all"]).ok().warns("no finished workers");
    for name in ["agent", "feature"] {
        w.swarm(&["clean", name]).ok().says(&format!("cleaned {name}\n"));
        w.swarm(&["clean", name]).code(2).warns("no worker named");
    }
    w.crash_daemon();
    assert_eq!(w.swarm(&["ls", "--format", "names"]).ok().out, "bg\n", "they stay away");
    assert_eq!(bytes(&w), before, "nothing of the predecessor's is changed");
    edit(&w, "bg", |worker| worker["pid"] = 0x3fff_ffff.into());
    w.crash_daemon();
    w.swarm(&["clean", "bg"]).ok();
    w.swarm(&["ls"]).ok().warns("no workers");
}
