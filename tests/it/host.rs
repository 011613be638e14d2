//! The machine around a worker: shells, environments, other tmux servers, a tmux that hangs or is not there.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nix::sys::signal::Signal;

use crate::world::{SWARM, World, is_alive, signal};

#[test]
fn login_shell_that_is_not_posix_is_not_used() {
    let mut world = World::new();
    let shell = world.path("fish");
    let script = "#!/bin/sh\necho \"$*\" >>\"$HOME/used\"\necho 'syntax error' >&2\nexit 127\n";
    fs::write(&shell, script).unwrap();
    fs::set_permissions(&shell, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(world.path("home/.tmux.conf"), format!("set -g default-shell {}\n", shell.display())).unwrap();
    fs::create_dir_all(world.path("home/.config/swarm")).unwrap();
    let source = format!("[tmux]\nsource = \"{}\"\n", world.path("home/.tmux.conf").display());
    fs::write(world.path("home/.config/swarm/config.toml"), source).unwrap();
    world.set("SHELL", shell.to_str().unwrap());
    world.write("p", "go && export X=1\n");
    let _ = world.spawn_sh("w", &["--env", "A=1 && 2"], "echo \"A=$A\" >>plain").ok();
    let _ = world
        .spawn_sh("l", &["--ralph", "--prompt-file", "p", "-n", "2", "-d", "--env", "A=1"], "cat >>loop")
        .ok();
    world.until_status("w", "done");
    world.until_status("l", "done");
    assert_eq!(world.lines("work/plain"), ["A=1 && 2"]);
    assert_eq!(world.lines("work/loop"), ["go && export X=1"; 2]);
    assert_eq!(world.lines("home/used"), [""; 0]);
}

/// Returns the environments that the runs of a worker recorded.
fn seen(world: &World, name: &str) -> Vec<String> {
    world.lines(format!("work/env-{name}"))
}

#[test]
fn each_worker_has_the_environment_of_its_own_spawn_also_in_later_runs() {
    let mut world = World::new();
    world.write("p", "go\n");
    let own = world.path("own");
    fs::create_dir(&own).unwrap();
    let path = std::env::var("PATH").unwrap();
    let script = r#"echo "${FOO-none} ${PATH%%:*} ${ADDED-none}" >>"env-$SWARM_WORKER"; read -r x <ctl"#;
    nix::unistd::mkfifo(&world.path("work/ctl"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let flags = ["--ralph", "--prompt-file", "p", "-n", "2", "-d"];
    let first = path.split(':').next().unwrap().to_owned();
    world.set("FOO", "one");
    let _ = world.spawn_sh("a", &flags, script).ok();
    world.set("FOO", "two");
    world.set("PATH", format!("{}:{path}", own.display()));
    let _ =
        world.spawn_sh("b", &[&flags[..], &["--env", "FOO=three", "--env", "ADDED=x"]].concat(), script).ok();
    world.unset("PATH");
    world.unset("FOO");
    let _ = world.spawn_sh("c", &flags, script).ok();
    let runs = |count: usize| {
        for name in ["a", "b", "c"] {
            world.until(&format!("run {count} of {name}"), || {
                (seen(&world, name).len() == count).then_some(())
            });
        }
    };
    runs(1);
    // Another daemon, from another environment, starts the second runs.
    let _ = world.swarm(&["daemon", "restart"]).ok();
    for _ in 0..3 {
        fs::write(world.path("work/ctl"), "\n").unwrap();
    }
    runs(2);
    assert_eq!(seen(&world, "a"), [format!("one {first} none"), format!("one {first} none")]);
    let b = format!("three {} x", own.display());
    assert_eq!(seen(&world, "b"), [b.clone(), b]);
    assert_eq!(seen(&world, "c"), [format!("none {first} none"), format!("none {first} none")]);
}

#[test]
fn worker_can_run_and_end_a_tmux_server_of_its_own() {
    let world = World::new();
    let _ = world.spawn("victim", &[], &["sleep", "600"]).ok();
    let users = |args: &[&str]| {
        let mut tmux = world.command("tmux");
        tmux.args(["-L", "user"]).args(args);
        world.run(tmux)
    };
    let _ = users(&["-f", "/dev/null", "new-session", "-d", "-s", "mine", "sleep", "600"]).ok();
    let pid = users(&["display-message", "-p", "#{pid}"]).ok().out.trim().parse().unwrap();
    // TMUX would win over TMUX_TMPDIR.
    fs::create_dir(world.path("iso")).unwrap();
    let tests = format!(
        "export TMUX_TMPDIR={}; tmux -f /dev/null new-session -d -s t 'sleep 600' && tmux ls >>ls && tmux kill-server; echo over >>ls",
        world.path("iso").display()
    );
    let _ = world.spawn_sh("w", &[], &tests).ok();
    world.until_status("w", "done");
    let ls = world.lines("work/ls");
    assert!(ls.len() == 2 && ls[0].starts_with("t: ") && ls[1] == "over", "{ls:?}");
    assert_eq!(world.status("victim")["status"], "running");
    assert_eq!(world.panes().len(), 1);
    assert!(is_alive(pid));
    let _ = users(&["kill-server"]).ok();
}

#[test]
fn swarm_works_with_only_home_and_path_set() {
    let world = World::new();
    let mut spawn = world.command(SWARM);
    spawn.env_clear().env("HOME", world.path("home")).env("SWARM_DIR", world.swarm_dir());
    spawn.env("PATH", std::env::var_os("PATH").unwrap());
    spawn.args([
        "spawn",
        "--name",
        "w",
        "--",
        "sh",
        "-c",
        "printf 'ünï\\n> '; echo \"$TERM\" >term; exec sleep 600",
    ]);
    let _ = world.run(spawn).ok();
    world.until("it runs in a terminal", || {
        world.lines("work/term").first().is_some_and(|t| !t.is_empty() && t != "dumb").then_some(())
    });
    world.until("its letters are whole", || world.swarm(&["peek", "w"]).out.contains("ünï").then_some(()));
    let _ = world.swarm(&["kill", "w"]).ok();
}

#[test]
fn spawn_without_tmux_fails_and_workers_become_unreachable() {
    let world = World::new();
    let repo = world.repo("repo");
    let cwd = ["--cwd", repo.to_str().unwrap(), "--worktree"];
    let _ = world.spawn("w", &cwd, &["sleep", "600"]).ok();
    let pid = u32::try_from(world.status("w")["pid"].as_u64().unwrap()).unwrap();
    let _ = world.swarm(&["daemon", "stop"]).ok();
    let bare = |args: &[&str]| {
        let mut swarm = world.command(SWARM);
        swarm.args(args).env("PATH", "/nonexistent");
        world.run(swarm)
    };
    let _ = bare(&["daemon", "start"]).ok();
    let _ = bare(&["spawn", "--name", "x", "--", "/bin/sleep", "600"]).code(1).warns("tmux is not installed");
    let ls = world.swarm(&["ls"]).ok();
    assert!(ls.out.contains("unreachable") && !ls.out.contains("x  "), "{}", ls.out);
    assert!(is_alive(pid) && world.path("repo-worktrees/w").exists());
    let _ = world.swarm(&["daemon", "restart"]).ok();
    world.until_status("w", "running");
    assert_eq!(world.status("w")["pid"], pid);
}

#[test]
fn spawn_under_a_hanging_tmux_times_out_and_starts_later() {
    let world = World::new();
    let _ = world.spawn("w", &[], &["sleep", "600"]).ok();
    let server = world.tmux_pid();
    signal(server, Signal::SIGSTOP);
    let _ = world
        .spawn("late", &[], &["sleep", "600"])
        .code(5)
        .warns("tmux does not answer")
        .warns("swarm kill late");
    let _ = world.spawn_sh("never", &[], "echo ran >>ran; sleep 600").code(5);
    assert_eq!(world.status("late")["status"], "unreachable");
    // A kill does not wait for it.
    let _ = world.swarm(&["kill", "never"]).ok();
    assert_eq!(world.status("never")["status"], "killed");
    signal(server, Signal::SIGCONT);
    world.until_status("late", "running");
    world.until_status("w", "running");
    world.until("the panes are those of the living", || (world.panes().len() == 2).then_some(()));
    assert_eq!(world.lines("work/ran"), [""; 0]);
    let _ = world.swarm(&["kill", "--all"]).ok();
}
