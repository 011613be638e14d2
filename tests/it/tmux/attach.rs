//! A person looks at a window, and leaves in every way there is.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use swarm::tmux::{AttachPlan, Health, NewWindow, PANE_TERM};
use swarm_state::model::Pane;

use super::{World, until, window};

/// Somebody at a terminal of 70x20 (a pane of another server) attaches to the window. Gives their session.
async fn look(world: &World, outer: &World, pane: &Pane, attach: AttachPlan) -> String {
    let term = ["env".into(), "-u".into(), "TMUX".into(), format!("TERM={PANE_TERM}").into()];
    let argv: Vec<_> = term.into_iter().chain(attach.argv).collect();
    let terminal = NewWindow { argv, size: (70, 20), ..window("terminal", outer.dir.path()) };
    outer.tmux.new_window(terminal).await.unwrap();
    until("the attached size", async || {
        let row = world.row(&pane.id).await.unwrap();
        if row.size == (70, 19) { Ok(()) } else { Err((row, outer.run(&["list-panes", "-a"]))) }
    })
    .await;
    let sessions = world.run(&["list-sessions", "-F", "#{session_name}:#{session_attached}:#{window_id}"]);
    let view = sessions.lines().find(|line| line.starts_with("swarm-view-")).unwrap();
    assert!(view.ends_with(&format!(":1:{}", pane.window)), "{sessions}");
    view.split(':').next().unwrap().to_owned()
}

#[tokio::test]
async fn attach_resizes_only_its_window_and_restores_it() {
    let world = World::new().await;
    let outer = World::new().await;
    let other = world.tmux.new_window(window("other", world.dir.path())).await.unwrap();
    let pane = world.tmux.new_window(window("w", world.dir.path())).await.unwrap();
    // Several times each: a server that dies of it does so only now and then.
    for round in 0..20 {
        let attach = world.tmux.attach_argv(&pane.window, (120, 30), round % 2 == 1, "w");
        let after = attach.after.clone();
        let view = look(&world, &outer, &pane, attach).await;
        assert_eq!(world.row(&other.id).await.unwrap().size, (120, 30), "only the window they look at");
        assert_eq!(world.tmux.list().await.unwrap().len(), 2, "no pane twice");
        // While they look, the size stays theirs.
        assert!(AttachPlan::command(&after[1]).status().unwrap().success());
        assert_eq!(world.row(&pane.id).await.unwrap().size, (70, 19));
        if round % 3 == 0 {
            // Their terminal goes away.
            let pid = world.run(&["list-clients", "-t", &format!("={view}"), "-F", "#{client_pid}"]);
            kill(Pid::from_raw(pid.parse().unwrap()), Signal::SIGKILL).unwrap();
        } else {
            world.run(&["detach-client", "-s", &view]);
        }
        until("no trace of them", async || {
            let sessions = world.run(&["list-sessions", "-F", "#{session_name}"]);
            let size = world.row(&pane.id).await.unwrap().size;
            if sessions.contains("view") || size != (120, 30) { Err((sessions, size)) } else { Ok(()) }
        })
        .await;
        assert_eq!(world.run(&["show-options", "-wv", "-t", &pane.window, "window-size"]), "manual");
        for argv in &after {
            assert!(AttachPlan::command(argv).status().unwrap().success());
        }
        assert_eq!(world.tmux.health().await, Health::Alive { pid: world.server });
    }
}
