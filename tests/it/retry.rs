//! A command whose daemon dies under it: what can be asked for twice is asked of the next one, and happens once.
//!
//! Each story is one command. A dry run counts the crash points that the daemon passes until it has answered; then
//! the command is given once for each death among them, to a daemon that kills itself there.

use crate::crash_points::{self, CrashPoint, crash_points};
use crate::world::{World, is_alive};

/// A command, what has to be there before it, and how many runs of the agent there have been after it.
struct Story {
    before: fn(&World),
    words: &'static [&'static str],
    says: &'static str,
    runs: usize,
}

/// An agent that writes its runs down and stays; never two at once.
const AGENT: &str =
    "mkdir lock || echo overlap >>bad; trap 'rmdir lock; exit 0' TERM; echo run >>runs; sleep 600 & wait";

fn nothing(_: &World) {}

/// A worker `a` that lives.
fn lives(w: &World) {
    let _ = w.spawn_sh("a", &[], AGENT).ok();
    w.until("it runs", || (w.lines("work/runs").len() == 1).then_some(()));
}

/// A worker `a` with a worktree of its own.
fn with_worktree(w: &World) {
    let repo = w.repo("repo");
    let _ = w
        .spawn_sh(
            "a",
            &["--worktree", "--cwd", repo.to_str().unwrap()],
            &format!("cd '{}'; {AGENT}", w.work().display()),
        )
        .ok();
    w.until("it runs", || (w.lines("work/runs").len() == 1).then_some(()));
}

/// Gives the command, with a daemon that dies at `point` or passes all.
fn tell(story: &Story, variable: &str, point: &str) -> (World, bool) {
    let mut w = World::new();
    (story.before)(&w);
    if w.daemon_pid().is_some() {
        w.crash_daemon();
    }
    w.set(variable, point);
    let first = w.start_daemon();
    w.unset(variable);
    let ran = w.swarm(story.words);
    let died = !is_alive(first);
    assert!(ran.code == Some(0) && ran.out.starts_with(story.says), "{point}: {ran:?}\n{}", w.report());
    (w, died)
}

/// One worker, one pane, so many runs, and nothing kept of loops that never were.
fn check(story: &Story, w: &World, point: &str) {
    let name = w.swarm(&["ls", "--format", "json"]).ok().json();
    let workers = name.as_array().unwrap();
    assert_eq!(workers.len(), 1, "{point}: {name}");
    w.until("the agent runs", || (w.lines("work/runs").len() >= story.runs).then_some(()));
    assert_eq!(w.panes().len(), 1, "{point}: {}", w.report());
    let is_loop = story.words.contains(&"--ralph") || story.words[0] == "loop";
    let kept = std::fs::read_dir(w.swarm_dir().join("ralph")).map_or(0, |dir| dir.count());
    assert_eq!(kept, usize::from(is_loop), "{point}: {}", w.report());
    let _ = w.swarm(&["kill", workers[0]["name"].as_str().unwrap()]).ok();
    assert_eq!(w.lines("work/runs").len(), story.runs, "{point}: {}", w.report());
    assert!(w.lines("work/bad").is_empty(), "{point}: two at once");
}

#[track_caller]
fn walk(story: &Story) {
    let book = World::new();
    let file = book.path("points");
    let (w, _) = tell(story, "SWARM_CRASH_COUNT", file.to_str().unwrap());
    let points = crash_points(&book.lines("points"));
    check(story, &w, "no crash");
    drop(w);
    walk_all(&points, |point| {
        let (w, died) = tell(story, "SWARM_CRASH_AT", point);
        check(story, &w, point);
        died
    });
}

/// Does something at each point; it returns whether a daemon died there.
#[track_caller]
fn walk_all(points: &[CrashPoint], at: impl Fn(&str) -> bool + Sync) {
    let deaths = points.len() - crash_points::walk(points, at).len();
    let all: Vec<&str> = points.iter().map(|point| &*point.at).collect();
    assert!(deaths * 2 >= points.len() && deaths > 0, "only {deaths} of {all:?}");
}

const SPAWN: Story = Story {
    before: nothing,
    words: &["spawn", "--name", "a", "--", "sh", "-c", AGENT],
    says: "spawned a (tmux: ",
    runs: 1,
};

#[test]
fn spawn_during_a_daemon_crash_happens_once() {
    walk(&SPAWN);
}

#[test]
fn spawn_without_a_name_during_a_daemon_crash_is_one_worker() {
    walk(&Story { words: &["spawn", "--", "sh", "-c", AGENT], says: "spawned work (tmux: ", ..SPAWN });
}

#[test]
fn spawn_with_ready_wait_continues_with_the_next_daemon() {
    const TUI: &str = concat!(
        "echo run >>runs; export REC=rec BOOT=0.3; exec perl ",
        env!("CARGO_MANIFEST_DIR"),
        "/scripts/fake-tui.pl"
    );
    let words = &[
        "spawn",
        "--name",
        "a",
        "--ready-wait",
        "--prompt",
        "do it",
        "--prompt-via",
        "paste",
        "--",
        "sh",
        "-c",
        TUI,
    ];
    walk(&Story { words, ..SPAWN });
}

#[test]
fn replace_during_a_daemon_crash_happens_once() {
    let words = &["spawn", "--name", "a", "--replace", "--", "sh", "-c", AGENT];
    walk(&Story { before: lives, words, runs: 2, ..SPAWN });
}

#[test]
fn daemon_crash_before_a_loop_is_detached_gives_one_loop() {
    let words =
        &["loop", "do it", "--name", "a", "-d", "--check", "false", "-n", "1", "--", "sh", "-c", AGENT];
    walk(&Story { words, ..SPAWN });
    let words = &[
        "spawn",
        "--name",
        "a",
        "--ralph",
        "--prompt-file",
        "/dev/null",
        "-n",
        "1",
        "-d",
        "--",
        "sh",
        "-c",
        AGENT,
    ];
    walk(&Story { words, ..SPAWN });
}

#[test]
fn respawn_during_a_daemon_crash_happens_once() {
    let words = &["respawn", "a"];
    walk(&Story { before: lives, words, says: "respawned a (tmux: ", runs: 2 });
    let words = &["respawn", "a", "--clean-first"];
    walk(&Story { before: with_worktree, words, says: "respawned a (tmux: ", runs: 2 });
}

/// Waits until one daemon is there and none is on its way: a follower that ends may just have begun to start one, which
/// would outlive this world.
fn alone(w: &World) {
    w.start_daemon();
    let mark = format!("SWARM_DIR={}", w.swarm_dir().display());
    let has = |pid: &std::path::Path, file: &str, text: &str| {
        let words = std::fs::read(pid.join(file)).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == text.as_bytes())
    };
    w.until("one daemon", || {
        let all = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let daemons =
            all.filter(|pid| has(pid, "cmdline", "--ready-on-stdout") && has(pid, "environ", &mark));
        (daemons.count() == 1).then_some(())
    });
}

/// A verified loop, followed to its end in one command, with a daemon that dies at any point of its life.
#[test]
fn followed_loop_completes_at_every_crash_point_of_the_daemon() {
    const WORK: &str = "echo run >>../runs; [ $(wc -l <../runs) -lt 2 ] || { touch done; echo '<promise>COMPLETE</promise>'; }";
    let words = [
        "loop",
        "do it",
        "--name",
        "a",
        "--check",
        "test -e done",
        "--format",
        "json",
        "--",
        "sh",
        "-c",
        WORK,
    ];
    let run = |variable: &str, point: &str| {
        let mut w = World::new();
        w.repo("work");
        w.set(variable, point);
        let first = w.start_daemon();
        w.unset(variable);
        let ran = w.swarm(&words);
        assert_eq!(ran.code, Some(0), "{point}: {ran:?}\n{}", w.report());
        let result = ran.json();
        assert_eq!(
            (&result["stop_reason"], &result["total_iterations"], w.lines("runs").len()),
            (&"all_checks_passed".into(), &2.into(), 2),
            "{point}: {result}"
        );
        let died = !is_alive(first);
        alone(&w);
        died
    };
    let book = World::new();
    run("SWARM_CRASH_COUNT", book.path("points").to_str().unwrap());
    walk_all(&crash_points(&book.lines("points")), |point| run("SWARM_CRASH_AT", point));
}

#[test]
fn invalid_spawn_is_refused_by_the_next_daemon() {
    let mut w = World::new();
    w.set("SWARM_CRASH_AT", "create:1");
    let first = w.start_daemon();
    w.unset("SWARM_CRASH_AT");
    std::fs::create_dir(w.path("work/prompt")).unwrap();
    let words = ["spawn", "--name", "a", "--worktree", "--", "sleep", "600"];
    let ran = w.swarm(&words).code(1).warns("swarm: error: ").warns("git");
    assert!(!is_alive(first), "{ran:?}");
    assert_eq!(w.swarm(&["ls", "--format", "json"]).ok().json(), serde_json::json!([]));
}

#[test]
fn idempotent_requests_are_retried_with_the_next_daemon() {
    let verbs: [&[&str]; 5] = [
        &["ls"],
        &["status", "a"],
        &["peek", "a"],
        &["logs", "a"],
        &["ralph", "set", "a", "max_iterations=7"],
    ];
    for verb in verbs {
        let w = World::new();
        let agent = w.agent("a");
        w.spawn_loop("a", &agent, &["-n", "2"]);
        let first = w.daemon_pid().unwrap();
        // The daemon gets the request and dies before it answers.
        crate::world::signal(first, nix::sys::signal::Signal::SIGSTOP);
        let mut asks = w.follow(verb);
        let waits = || {
            let queue = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
            let socket = w.swarm_dir().join("swarm.sock").display().to_string();
            // One line is the listener's, the other the connection's end that nobody has taken yet.
            (queue.lines().filter(|line| line.ends_with(&socket)).count() > 1).then_some(())
        };
        w.until("it is asked", waits);
        crate::world::signal(first, nix::sys::signal::Signal::SIGKILL);
        assert_eq!(asks.wait(&w), 0, "{verb:?}: {}", asks.output());
    }
}
