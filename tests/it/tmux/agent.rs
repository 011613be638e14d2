//! The wrapper: how agents start, and how they end.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use swarm::procs;
use swarm::wrapper::{LaunchSpec, read_exit, started};

use super::{World, bounded, until};

#[tokio::test]
async fn keys_reach_the_program_through_copy_mode() {
    let world = World::new().await;
    let (pane, dir) = world.agent("w", "echo ready; read x; echo got $x; exec sleep 1000").await;
    world.screen_with(&pane.id, "ready").await;
    world.run(&["copy-mode", "-t", &pane.id]);
    world.tmux.keys(&pane.id, &["h", "i", "Enter"]).await.unwrap();
    world.screen_with(&pane.id, "got hi").await;
    // Ctrl-C ends the agent; the wrapper, in the same group, lives on to tell.
    world.run(&["copy-mode", "-t", &pane.id]);
    world.tmux.keys(&pane.id, &["C-c"]).await.unwrap();
    assert_eq!(world.exit(&dir).await.signal, Some(Signal::SIGINT as i32));
}

#[tokio::test]
async fn every_exit_is_recorded_and_passed_to_tmux() {
    let world = World::new().await;
    for (name, script, code, signal, status) in [
        ("zero", "exit 0", Some(0), None, 0),
        ("three", "exit 3", Some(3), None, 3),
        ("killed", "kill -KILL $$", None, Some(9), 137),
    ] {
        let (pane, dir) = world.agent(name, script).await;
        let record = world.exit(&dir).await;
        assert_eq!(
            (record.code, record.signal, record.hup, record.error),
            (code, signal, false, None),
            "{name}"
        );
        assert!(record.ended.is_some() && started(&dir).is_some());
        assert!(!dir.join("launch.json").exists(), "the secrets are gone");
        bounded("the wrapper's end", procs::wait_gone(pane.pid)).await;
        until("tmux's own status", async || {
            world.tmux.nudge().await;
            let row = world.row(&pane.id).await.unwrap();
            if row.dead && row.dead_status == Some(status) { Ok(()) } else { Err(row) }
        })
        .await;
    }
}

#[tokio::test]
async fn the_last_output_is_not_lost() {
    let world = World::new().await;
    let script =
        "i=1; while [ $i -le 3000 ]; do echo line $i of a program that ends at once; i=$((i+1)); done";
    for round in 0..3 {
        let (pane, dir) = world.agent(&format!("w{round}"), script).await;
        world.exit(&dir).await;
        bounded("the wrapper's end", procs::wait_gone(pane.pid)).await;
        let captured = world.capture(&pane.id).await;
        assert_eq!(captured.text.lines().count(), 3000);
        assert!(captured.text.ends_with("line 3000 of a program that ends at once"));
    }
}

#[tokio::test]
async fn run_ends_in_every_state_of_the_terminal() {
    let world = World::new().await;
    let group = "perl -MPOSIX -e '$SIG{TTOU} = \"IGNORE\"; setpgid(0, 0); tcsetpgrp(0, getpgrp) or die'";
    for (name, keys, script) in [
        ("held", "C-s", "stty ixon"),
        ("raw", "x", "stty raw -echo"),
        // The question is swallowed by what it stands in.
        ("sequence", "x", "printf '\\033Pq'"),
        ("group", "x", group),
    ] {
        let wait = "echo ready; until [ -e $0.go ]; do sleep 0.01; done";
        let script = format!("{}; {script} || exit 9; : >$0.done; exit 4", wait.replace("$0", name));
        let script = script.replace("$0", name);
        let (pane, dir) = world.agent(name, &script).await;
        world.screen_with(&pane.id, "ready").await;
        world.tmux.keys(&pane.id, &[keys]).await.unwrap();
        std::fs::write(world.path(&format!("{name}.go")), "").unwrap();
        assert_eq!(world.exit(&dir).await.code, Some(4), "{name}");
        bounded("the wrapper's end", procs::wait_gone(pane.pid)).await;
        assert!(world.path(&format!("{name}.done")).exists());
        let screen = world.capture(&pane.id).await.text;
        assert!(
            screen.starts_with("ready") && !screen.contains("[5n") && !screen.contains("[0n"),
            "{screen}"
        );
    }
}

#[tokio::test]
async fn an_agent_has_its_own_environment_directory_and_input() {
    let world = World::new().await;
    let prompt = world.path("prompt");
    std::fs::write(&prompt, "do\nit").unwrap();
    let place = world.path("a b#{x");
    std::fs::create_dir(&place).unwrap();
    let edit = |spec: &mut LaunchSpec| {
        spec.env.insert("SECRET".into(), "s3cr3t\n;".into());
        spec.stdin = Some(prompt.clone());
        spec.cwd = place.clone();
    };
    let script = "cat >input; env -0 >environment; tty <&1 >/dev/null && echo on a terminal";
    let (pane, dir) = world.launch("w", edit, &["sh", "-c", script]).await;
    assert_eq!(world.exit(&dir).await.code, Some(0));
    assert_eq!(std::fs::read_to_string(place.join("input")).unwrap(), "do\nit");
    let environment = std::fs::read_to_string(place.join("environment")).unwrap();
    let mut names: Vec<&str> = environment.split('\0').filter_map(|line| line.split('=').next()).collect();
    names.retain(|name| !matches!(*name, "" | "PWD" | "OLDPWD" | "SHLVL" | "_"));
    names.sort_unstable();
    assert_eq!(names, ["PATH", "SECRET", "TERM"]);
    assert!(environment.contains("SECRET=s3cr3t\n;\0"));
    world.screen_with(&pane.id, "on a terminal").await;
}

#[tokio::test]
async fn program_that_cannot_start_has_an_error_record() {
    let world = World::new().await;
    let none = |_: &mut LaunchSpec| ();
    let missing = world.path("missing");
    for (name, argv, edit) in [
        ("program", vec!["no-such-program"], Box::new(none) as Box<dyn FnOnce(&mut LaunchSpec)>),
        ("empty", vec![], Box::new(none)),
        ("cwd", vec!["true"], Box::new(|spec: &mut LaunchSpec| spec.cwd = missing.clone())),
        ("stdin", vec!["true"], Box::new(|spec: &mut LaunchSpec| spec.stdin = Some(missing.clone()))),
    ] {
        let (pane, dir) = world.launch(name, edit, &argv).await;
        let record = world.exit(&dir).await;
        assert_eq!((record.code, record.signal), (Some(127), None), "{name}");
        let error = record.error.unwrap();
        world.screen_with(&pane.id, &format!("swarm: error: {}", &error[..error.len().min(40)])).await;
        assert_eq!(started(&dir), None);
    }
    let record = read_exit(&world.path("program.run")).unwrap().error.unwrap();
    assert!(record.starts_with("cannot run no-such-program: "), "{record}");
}

#[tokio::test]
async fn leftover_processes_are_ended_even_detached_stubborn_ones() {
    let world = World::new().await;
    let script = "setsid sh -c 'trap \"\" TERM HUP; echo $$ >left; while :; do sleep 0.1; done' & \
                  until [ -s left ]; do sleep 0.01; done; exit 5";
    let (pane, dir) = world.agent("w", script).await;
    assert_eq!(world.exit(&dir).await.code, Some(5));
    let left: i32 = std::fs::read_to_string(world.path("left")).unwrap().trim().parse().unwrap();
    bounded("the wrapper's end", procs::wait_gone(pane.pid)).await;
    assert!(!procs::is_alive(left));
}

#[tokio::test]
async fn closed_pane_ends_its_process_tree() {
    let world = World::new().await;
    let script = "trap 'exit 9' HUP; (trap '' HUP; exec sleep 1000) & echo $! >child; echo ready; while :; do sleep 0.05; done";
    let (pane, dir) = world.agent("w", script).await;
    world.screen_with(&pane.id, "ready").await;
    let child: i32 = std::fs::read_to_string(world.path("child")).unwrap().trim().parse().unwrap();
    let agent = until("the agent's number", async || started(&dir).ok_or(())).await;
    assert!(procs::ancestors(child).contains(&pane.pid));
    world.tmux.close(&pane).await.unwrap();
    let record = world.exit(&dir).await;
    assert_eq!((record.hup, record.code, record.signal), (true, Some(9), None));
    bounded("the wrapper's end", procs::wait_gone(pane.pid)).await;
    assert!(!procs::is_alive(child) && !procs::is_alive(agent));
    assert_eq!(procs::tree(pane.pid), []);
}

#[tokio::test]
async fn killed_wrapper_leaves_no_exit_record() {
    let world = World::new().await;
    let (pane, dir) = world.agent("w", "trap '' HUP; echo ready; exec sleep 1000").await;
    world.screen_with(&pane.id, "ready").await;
    let agent = until("the agent's number", async || started(&dir).ok_or(())).await;
    kill(Pid::from_raw(pane.pid), Signal::SIGKILL).unwrap();
    bounded("the wrapper's death", procs::wait_gone(pane.pid)).await;
    assert_eq!(read_exit(&dir), None);
    // Its tree is still found, by its session.
    let left = procs::signal_tree(pane.pid, Signal::SIGKILL);
    assert_eq!(left.iter().map(|proc| proc.pid).collect::<Vec<_>>(), [agent]);
    bounded("the agent's death", procs::wait_gone(left[0].pid)).await;
}
