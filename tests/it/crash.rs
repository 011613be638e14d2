//! The daemon dies at every point of a worker's life; the worker must come out as if nothing had happened.
//!
//! A story is one life of one worker. A dry run counts the crash points of that life; then the story is told
//! once for each death among them, in a world of its own, with a daemon that kills itself there and a second one that
//! goes on. The books must be right each time: the runs as the agent counted them, `iterations.log`,
//! `state.json` and `status` agree, never two agents at once, and no pane, process, run folder, branch or
//! temporary file is left.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;

use crate::crash_points::{self, CrashPoint, crash_points};
use crate::world::{SWARM, World, is_alive, signal};

/// One life of the worker `w`: lived, and then checked.
struct Story {
    live: fn(&World),
    check: fn(&World),
}

/// A loop whose second iteration fails and whose third says the word.
const FAILING_LOOP: Story = Story {
    live: |world| {
        world.write("PROMPT.md", "go\n");
        spawn(
            world,
            &["--ralph", "--prompt-file", "PROMPT.md", "-n", "9", "--done-pattern", "ALL DONE", "-d"],
            AGENT,
        );
        until_over(world);
    },
    check: |world| {
        check_log(
            world,
            3,
            &[
                "[END] iteration 1 exit=0",
                "[END] iteration 2 exit=1",
                "[FAIL] iteration 2 exit=1 attempt=1/5 backoff=1s",
                "[END] iteration 3 exit=0",
                "[DONE] loop complete after 3 iterations reason=done_pattern",
            ],
        );
        check_state(world, 3, 1, "done");
    },
};

/// An agent that writes its runs down, and whether another one was there.
const AGENT: &str = r#"mkdir lock 2>/dev/null || echo overlap >>bad
echo run >>runs
n=$(wc -l <runs)
[ "$n" -lt 3 ] || printf '\033[?1049hALL DONE\r\n'
sleep 0.1
printf '\033[?1049l'
rmdir lock
[ "$n" -ne 2 ]"#;

/// A plain worker with a prompt that is pasted.
const PASTE: Story = Story {
    live: |world| {
        let tui = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/fake-tui.pl");
        let script = format!("echo run >>runs; export REC=rec EXIT=0; exec perl {tui}");
        spawn(world, &["--prompt", "do it", "--prompt-via", "paste"], &script);
        until_over(world);
    },
    check: |world| {
        assert_eq!(world.lines("work/runs").len(), 1, "runs");
        assert_eq!(world.lines("work/rec"), [r#"{"prompt":"do it"}"#], "what the agent got");
        assert_eq!(world.status("w")["status"], "done");
        assert_eq!(world.status("w")["exit_code"], 0);
    },
};

/// A loop of one iteration that prints nothing, and is ended for that.
const SILENT: Story = Story {
    live: |world| {
        world.write("PROMPT.md", "go\n");
        let flags = ["--ralph", "--prompt-file", "PROMPT.md", "-n", "1", "--inactivity-timeout", "1", "-d"];
        spawn(world, &flags, "echo run >>runs; trap 'exit 0' TERM; sleep 600 & wait");
        until_over(world);
    },
    check: |world| {
        check_log(
            world,
            1,
            &[
                "[TIMEOUT] iteration 1",
                "[END] iteration 1 exit=inactivity",
                "[FAIL] iteration 1 exit=inactivity",
                "[FAIL] loop failed after 1 iteration reason=all_failed",
            ],
        );
        check_state(world, 1, 1, "failed");
    },
};

/// A plain worker that does not listen to SIGTERM, killed.
const KILL: Story = Story {
    live: |world| {
        spawn(world, &[], "echo $$ >>runs; trap '' TERM; while :; do sleep 600; done");
        world.until("the agent runs", || (!world.lines("work/runs").is_empty()).then_some(()));
        insist(world, &["kill", "w"]);
    },
    check: |world| {
        let runs = world.lines("work/runs");
        assert_eq!(runs.len(), 1, "runs");
        assert!(!is_alive(runs[0].parse().unwrap()), "the agent lives");
        assert_eq!(world.status("w")["status"], "killed");
    },
};

/// A worker with a worktree of its own, killed with its worktree.
const WORKTREE: Story = Story {
    live: |world| {
        let repo = world.path("repo");
        if !repo.exists() {
            world.repo("repo");
        }
        let flags = ["--cwd", repo.to_str().unwrap(), "--worktree"];
        spawn(world, &flags, "pwd >>../../work/runs; sleep 600");
        world.until("the agent runs", || (!world.lines("work/runs").is_empty()).then_some(()));
        assert_eq!(branches(world), ["main", "swarm/w"]);
        insist(world, &["kill", "w", "--rm-worktree"]);
    },
    check: |world| {
        assert_eq!(world.lines("work/runs"), [world.path("repo-worktrees/w").to_str().unwrap()]);
        assert_eq!(branches(world), ["main"]);
        assert!(!world.path("repo-worktrees").exists(), "the worktree is left");
        assert_eq!(world.status("w")["status"], "killed");
    },
};

/// A loop that cannot start, which is known only after the worktree was made: its prompt cannot be an argument. In the
/// end there is either nothing, or a record that names the worktree.
const DISCARDED: Story = Story {
    live: |world| {
        let repo = world.repo("repo");
        std::fs::write(world.work().join("PROMPT.md"), b"go \xff\n").unwrap();
        let (prompt, repo) = (world.work().join("PROMPT.md"), repo.to_str().unwrap());
        let flags = [
            "--cwd",
            repo,
            "--worktree",
            "--ralph",
            "--prompt-file",
            prompt.to_str().unwrap(),
            "--prompt-via",
            "arg",
            "-n",
            "1",
            "-d",
        ];
        let _ = world.spawn_sh("w", &flags, "echo run >>../../work/runs");
        awake(world);
        world.until("w is discarded or cleaned", || {
            (world.status("w").is_null() || world.swarm(&["clean", "w"]).code == Some(0)).then_some(())
        });
    },
    check: |world| {
        assert!(world.lines("work/runs").is_empty(), "an agent ran");
        assert_eq!(branches(world), ["main"]);
        assert!(!world.path("repo-worktrees").exists(), "the worktree is left");
        assert!(world.status("w").is_null());
    },
};

/// A loop that is paused in its first iteration and resumed when that is over.
const PAUSE: Story = Story {
    live: |world| {
        world.write("PROMPT.md", "go\n");
        nix::unistd::mkfifo(&world.path("work/hold"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        // Open for as long as the story lasts, so that a write waits for nobody and is not lost.
        let hold = std::fs::OpenOptions::new().read(true).write(true).open(world.path("work/hold")).unwrap();
        let go_on = || std::io::Write::write_all(&mut &hold, b"x\n").unwrap();
        let runs = |n: usize| {
            world.until(&format!("run {n}"), || {
                awake(world);
                (world.lines("work/runs").len() == n).then_some(())
            });
        };
        let flags = ["--ralph", "--prompt-file", "PROMPT.md", "-n", "2", "-d"];
        spawn(world, &flags, "echo run >>runs; read x <>hold");
        runs(1);
        insist(world, &["ralph", "pause", "w"]);
        go_on();
        world.until("it rests", || {
            awake(world);
            world.iterations_log("w").contains("[END] iteration 1 exit=0").then_some(())
        });
        assert_eq!(world.ralph_state("w")["status"], "paused");
        insist(world, &["ralph", "resume", "w"]);
        runs(2);
        go_on();
        until_over(world);
    },
    check: |world| {
        check_log(
            world,
            2,
            &[
                "[PAUSE]",
                "[RESUME]",
                "[END] iteration 1 exit=0",
                "[END] iteration 2 exit=0",
                "[DONE] loop complete after 2 iterations reason=max_iterations",
            ],
        );
        check_state(world, 2, 0, "done");
    },
};

/// A loop that ends at its limit, which is then raised.
const RAISED: Story = Story {
    live: |world| {
        world.write("PROMPT.md", "go\n");
        spawn(world, &["--ralph", "--prompt-file", "PROMPT.md", "-n", "1", "-d"], "echo run >>runs");
        until_over(world);
        insist(world, &["ralph", "set", "w", "max_iterations=2"]);
        world.until("it is resumed", || {
            let _ = world.swarm(&["ralph", "resume", "w"]);
            awake(world);
            (world.lines("work/runs").len() == 2).then_some(())
        });
        until_over(world);
    },
    check: |world| {
        check_log(
            world,
            2,
            &[
                "[END] iteration 1 exit=0",
                "[DONE] loop complete after 1 iteration reason=max_iterations",
                "[RESUME]",
                "[END] iteration 2 exit=0",
                "[DONE] loop complete after 2 iterations reason=max_iterations",
            ],
        );
        check_state(world, 2, 0, "done");
    },
};

/// A verified loop in a repository: its first iteration leaves work and does not pass, its second does.
const VERIFIED: Story = Story {
    live: |world| {
        let repo = world.path("repo");
        if !repo.exists() {
            world.repo("repo");
        }
        world.write("PROMPT.md", "go\n");
        let flags =
            ["--ralph", "--prompt-file", "PROMPT.md", "-n", "5", "--check", "test -e done", "--promise"];
        let flags = [&flags[..], &["DONE", "--cwd", repo.to_str().unwrap(), "-d"]].concat();
        let script = "echo run >>../work/runs; n=$(wc -l <../work/runs); echo $n >file-$n; [ $n -lt 2 ] || { touch done; echo '<promise>DONE</promise>'; }";
        spawn(world, &flags, script);
        until_over(world);
    },
    check: |world| {
        let log = world.iterations_log("w");
        assert_eq!(world.lines("work/runs").len(), 2, "runs\n{log}");
        let count = |text: &str| log.lines().filter(|line| line.contains(text)).count();
        for line in [
            "[START] iteration 1/",
            "[END] iteration 1 exit=0",
            "[START] iteration 2/",
            "[END] iteration 2 exit=0",
        ] {
            assert_eq!(count(line), 1, "{line}\n{log}");
        }
        assert_eq!(count("[DONE] loop complete after 2 iterations reason=all_checks_passed"), 1, "{log}");
        check_state(world, 2, 0, "done");
        let report = world.swarm(&["report", "w", "--format", "json"]).ok().json();
        assert_eq!(report["baseline"][0]["passed"], false);
        let passed: Vec<_> = [0, 1]
            .iter()
            .map(|n| report["iterations"][n]["verdict"]["checks"][0]["passed"].clone())
            .collect();
        assert_eq!(passed, [false, true], "{report}");
        let mut git = world.command("git");
        let refs = format!("{}/1:file-1", report["snapshots"].as_str().unwrap());
        git.current_dir(world.path("repo")).args(["show", &refs]);
        assert_eq!(world.run(git).ok().out, "1\n");
    },
};

// ---- living with a daemon that dies ----

/// Sees to it that a daemon is there.
fn awake(world: &World) {
    if world.daemon_pid().is_none() {
        let _ = world.swarm(&["daemon", "start"]);
    }
}

/// Spawns `w`, again when the daemon died before it was written down.
fn spawn(world: &World, flags: &[&str], script: &str) {
    world.until("w is spawned", || {
        let ran = world.spawn_sh("w", flags, script);
        awake(world);
        (ran.code == Some(0) || !world.status("w").is_null()).then_some(())
    });
}

/// Says something until a daemon has done it.
fn insist(world: &World, words: &[&str]) {
    world.until(&format!("{words:?}"), || {
        let ran = world.swarm(words);
        awake(world);
        (ran.code == Some(0)).then_some(())
    });
}

fn until_over(world: &World) {
    let mut poll = world.status_poll("w");
    world.until("w is over", || {
        awake(world);
        let status = poll.look()["status"].take();
        (status == "done" || status == "failed").then_some(())
    });
}

// ---- the books ----

/// Each line once, as many runs and starts as there are iterations, and never two runs at once.
fn check_log(world: &World, iterations: usize, lines: &[&str]) {
    let log = world.iterations_log("w");
    assert_eq!(world.lines("work/runs").len(), iterations, "runs\n{log}");
    assert!(world.lines("work/bad").is_empty(), "two at once\n{log}");
    let count = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    for line in lines {
        assert_eq!(count(line), 1, "{line}\n{log}");
    }
    for iteration in 1..=iterations {
        assert_eq!(count(&format!("[START] iteration {iteration}/")), 1, "{log}");
    }
    assert_eq!((count("[START]"), log.lines().count()), (iterations, iterations + lines.len()), "{log}");
    let kept = std::fs::read_to_string(world.swarm_dir().join("logs/w.log")).unwrap();
    for iteration in 1..=iterations {
        assert!(
            kept.contains(&format!("=== iteration {iteration}, ended")),
            "no output of {iteration}\n{kept}"
        );
    }
}

fn check_state(world: &World, iteration: u64, failures: u64, status: &str) {
    let (state, shown) = (world.ralph_state("w"), world.status("w"));
    let word = if status == "done" { "stopped" } else { status };
    assert_eq!((&state["status"], &shown["status"]), (&word.into(), &status.into()), "{state}\n{shown}");
    assert_eq!(state["current_iteration"], iteration, "{state}");
    assert_eq!(state["total_failures"], failures, "{state}");
    assert_eq!(
        (&shown["iteration"], &shown["total_failures"], &shown["cause"]["reason"]),
        (&state["current_iteration"], &state["total_failures"], &state["reason"]),
        "{state}\n{shown}"
    );
}

fn branches(world: &World) -> Vec<String> {
    let mut git = world.command("git");
    git.current_dir(world.path("repo")).args(["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
    world.run(git).ok().out.lines().map(str::to_owned).collect()
}

/// Nothing is left of a worker that is over.
fn check_left_overs(world: &World) {
    world.until("no pane is left", || world.panes().is_empty().then_some(()));
    let stray = || files(&world.swarm_dir()).into_iter().filter(|path| is_stray(path)).collect::<Vec<_>>();
    let mut left = vec![];
    world.until(&format!("no run folder or temporary file is left: {:?}", stray()), || {
        left = stray();
        left.is_empty().then_some(())
    });
}

fn is_stray(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".tmp") || path.parent().is_some_and(|dir| dir.ends_with("runs"))
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let Ok(list) = std::fs::read_dir(dir) else { return vec![] };
    let paths = list.flatten().map(|entry| entry.path());
    paths
        .flat_map(|path| if path.is_dir() { [files(&path), vec![path]].concat() } else { vec![path] })
        .collect()
}

// ---- the walk ----

/// The points of a story, as a dry run passes them.
fn points(story: &Story) -> Vec<CrashPoint> {
    let mut world = World::new();
    let book = world.path("points");
    world.set("SWARM_CRASH_COUNT", book.to_str().unwrap());
    let _ = world.swarm(&["daemon", "start"]).ok();
    world.unset("SWARM_CRASH_COUNT");
    (story.live)(&world);
    (story.check)(&world);
    check_left_overs(&world);
    crash_points(&world.lines("points"))
}

/// Tells a story with a daemon that dies at a point; says whether it came there.
fn tell(story: &Story, point: &str) -> bool {
    let mut world = World::new();
    world.set("SWARM_CRASH_AT", point);
    let _ = world.swarm(&["daemon", "start"]);
    world.unset("SWARM_CRASH_AT");
    let first = world.daemon_pid();
    let mut died = false;
    let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        (story.live)(&world);
        died = first.is_none_or(|pid| !is_alive(pid));
        awake(&world);
        (story.check)(&world);
        check_left_overs(&world);
    }));
    if told.is_err() {
        panic!("the crash was at {point}\n{}", world.report());
    }
    died
}

/// Tells a story once for each of its deaths, and gives the words of the points that they are.
#[expect(clippy::print_stderr, reason = "the number of points is for whoever asks with --nocapture")]
fn walk(name: &str, story: &Story) -> BTreeSet<String> {
    let points = points(story);
    let passed_by = crash_points::walk(&points, |point| tell(story, point));
    let passed_by: Vec<&str> = passed_by.iter().map(|point| &*point.at).collect();
    eprintln!("{name}: {} points, not reached: {passed_by:?}", points.len());
    // A look more or less at a screen is a point more or less; most are the same in each telling.
    assert!(passed_by.len() * 10 <= points.len(), "not reached: {passed_by:?}");
    let died = points.iter().filter(|point| !passed_by.contains(&&*point.at));
    died.flat_map(|point| point.words.clone()).collect()
}

/// Insists that a walk met these words.
fn met(walk: &BTreeSet<String>, words: &[&str]) {
    for word in words {
        assert!(walk.contains(*word), "no daemon died at {word:?}: {walk:?}");
    }
}

#[test]
fn loop_with_a_failure_survives_every_crash_point() {
    let seen = walk("loop", &FAILING_LOOP);
    met(&seen, &["persist", "record", "persist+", "tell", "tell+", "spawn", "launch", "spawn+", "exited"]);
    met(&seen, &["evaluate", "stored", "verdict", "evaluate+", "leave"]);
}

#[test]
fn pasted_prompt_survives_every_crash_point() {
    met(&walk("paste", &PASTE), &["deliver", "paste", "enter", "taken", "deliver+"]);
}

#[test]
fn inactivity_timeout_survives_every_crash_point() {
    met(&walk("silent", &SILENT), &["probe", "probe+", "terminate", "terminate+"]);
}

#[test]
fn forced_kill_survives_every_crash_point() {
    met(&walk("kill", &KILL), &["terminate", "terminate+", "force_kill", "force_kill+"]);
}

#[test]
fn worktree_creation_and_removal_survive_every_crash_point() {
    met(&walk("worktree", &WORKTREE), &["create", "worktree", "remove", "remove+"]);
}

#[test]
fn removal_of_a_failed_starts_worktree_survives_every_crash_point() {
    met(&walk("discarded", &DISCARDED), &["worktree", "remove", "remove+", "discard_tree+"]);
}

#[test]
fn pause_and_resume_survive_every_crash_point() {
    walk("pause", &PAUSE);
}

#[test]
fn resume_at_a_raised_limit_survives_every_crash_point() {
    met(&walk("raised", &RAISED), &["record", "persist+", "tell", "tell+", "spawn", "spawn+"]);
}

#[test]
fn verified_loop_survives_every_crash_point() {
    met(&walk("verified", &VERIFIED), &["base", "stored", "concluded", "result", "verdict", "leave"]);
}

#[test]
fn agent_is_launched_once_if_tmux_hangs_afterwards() {
    let mut world = World::new();
    std::fs::write(world.work().join("PROMPT.md"), "go\n").unwrap();
    nix::unistd::mkfifo(&world.path("work/hold"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    world.set("SWARM_CRASH_AT", "spawn+:1");
    let first = world.start_daemon();
    world.unset("SWARM_CRASH_AT");
    let flags = ["--ralph", "--prompt-file", "PROMPT.md", "-n", "1", "-d"];
    let _ = world.spawn_sh("w", &flags, "echo $$ >>runs; read x <hold");
    world.until("the first daemon dies", || (!is_alive(first)).then_some(()));
    // The client may have started another daemon by now; it adopts.
    let server = world.tmux_pid();
    signal(server, Signal::SIGSTOP);
    if let Some(pid) = world.daemon_pid() {
        signal(pid, Signal::SIGKILL);
        world.until("the second is gone", || (!is_alive(pid)).then_some(()));
    }
    world.start_daemon();
    world.until_status("w", "unreachable");
    signal(server, Signal::SIGCONT);
    world.until_status("w", "running");
    assert_eq!((world.lines("work/runs").len(), world.panes().len()), (1, 1), "{}", world.report());
    std::fs::write(world.path("work/hold"), "x\n").unwrap();
    world.until_status("w", "done");
    assert_eq!(world.lines("work/runs").len(), 1);
}

#[test]
fn late_window_of_a_dead_daemon_starts_no_second_agent() {
    let mut world = World::new();
    let mut agent = world.agent("a");
    world.set("SWARM_CRASH_AT", "launch:1");
    let first = world.start_daemon();
    world.unset("SWARM_CRASH_AT");
    world.spawn_loop("w", &agent, &["-n", "1"]);
    assert!(!is_alive(first), "{}", world.report());
    let dir = world.swarm_dir().join("runs/w.1");
    assert!(!dir.exists(), "the launch of the dead daemon is withdrawn");
    let late = world.command(SWARM).arg("__pane").arg(&dir).output().unwrap();
    assert_eq!(late.status.code(), Some(127), "{late:?}");
    assert!(
        String::from_utf8_lossy(&late.stderr).contains("another daemon of swarm has taken over"),
        "{late:?}"
    );
    let seen = world.status("w");
    assert_eq!((&seen["status"], &seen["pid"]), (&"running".into(), &agent.pid(1).into()), "{seen}");
    agent.tell("exit 0");
    world.until_status("w", "done");
    let failures = &world.ralph_state("w")["total_failures"];
    assert_eq!((agent.starts(), failures), (1, &0.into()), "{}", world.report());
}
