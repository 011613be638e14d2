//! The daemon's directory: its place, the access to it, and its removal at run time.

use std::fs;

use nix::sys::signal::Signal;

use crate::world::{SWARM, World, is_alive, signal};

#[test]
fn clients_with_different_paths_to_the_directory_reach_one_daemon() {
    let world = World::new();
    let home = world.path("home");
    std::os::unix::fs::symlink(&home, world.path("link")).unwrap();
    for dir in ["one", "two"] {
        fs::create_dir(world.path("work").join(dir)).unwrap();
    }
    let ways: [(&str, String, &str); 6] = [
        ("HOME", home.display().to_string(), "one"),
        ("HOME", format!("{}/", home.display()), "two"),
        ("HOME", world.path("link").display().to_string(), "one"),
        ("SWARM_DIR", format!("{}/.swarm/", world.path("link").display()), "two"),
        ("SWARM_DIR", "../../home/./.swarm".to_owned(), "one"),
        ("SWARM_DIR", format!("{}//.swarm", home.display()), "."),
    ];
    let clients: Vec<_> = (0..24)
        .map(|i| {
            let (name, value, dir) = &ways[i % ways.len()];
            let mut ls = world.command(SWARM);
            ls.env_remove("SWARM_DIR").env(name, value).current_dir(world.work().join(dir)).arg("ls");
            world.start(ls)
        })
        .collect();
    for mut client in clients {
        assert_eq!(client.wait(&world), 0, "{}", client.output());
    }
    let log = fs::read_to_string(home.join(".swarm/daemon.log")).unwrap();
    assert_eq!(log.matches(" serving ").count(), 1, "{log}");
    let mut stop = world.command(SWARM);
    stop.env_remove("SWARM_DIR").args(["daemon", "stop"]);
    let _ = world.run(stop).ok().says("daemon stopped");
}

#[test]
fn two_long_home_directories_share_no_daemon() {
    let world = World::new();
    let homes = ["a", "b"].map(|end| world.path(format!("{}/{end}", "h".repeat(90))));
    let swarm = |home: &std::path::Path, args: &[&str]| {
        let mut swarm = world.command(SWARM);
        swarm.env_remove("SWARM_DIR").env("HOME", home).env("TMPDIR", home.join("t".repeat(200))).args(args);
        world.run(swarm)
    };
    for home in &homes {
        fs::create_dir_all(home).unwrap();
        let _ = swarm(home, &["spawn", "--name", "w", "--", "sleep", "600"]).ok();
    }
    let pid = |home| swarm(home, &["status", "w", "--format", "json"]).ok().json()["pid"].as_u64().unwrap();
    assert_ne!(pid(&homes[0]), pid(&homes[1]));
    let _ = swarm(&homes[0], &["kill", "w"]).ok();
    assert!(is_alive(u32::try_from(pid(&homes[1])).unwrap()));
    let _ = swarm(&homes[1], &["kill", "w"]).ok();
    for home in &homes {
        let _ = swarm(home, &["daemon", "stop"]).ok();
        let paths = swarm::paths::Paths::new(home.join(".swarm"));
        assert!(!paths.socket().exists());
        // tmux leaves the file of its socket.
        drop(fs::remove_file(paths.tmux_socket()));
    }
}

#[test]
fn daemon_without_its_directory_exits_and_the_next_finds_its_agents() {
    // With a screen to look at, and with nothing that would wake it.
    for pattern in [&[][..], &["--done-pattern", "never"]] {
        for moved in [false, true] {
            let world = World::new();
            let _ = world.spawn("w", pattern, &["sleep", "600"]).ok();
            let (daemon, server) = (world.daemon_pid().unwrap(), world.tmux_pid());
            let agent = u32::try_from(world.status("w")["pid"].as_u64().unwrap()).unwrap();
            if moved {
                fs::rename(world.swarm_dir(), world.path("elsewhere")).unwrap();
            } else {
                fs::remove_dir_all(world.swarm_dir()).unwrap();
            }
            world.until("the daemon leaves", || (!is_alive(daemon)).then_some(()));
            assert!(is_alive(agent), "it leaves its agents");
            assert!(!world.swarm_dir().exists(), "it writes nothing more");
            assert_eq!(world.status("w")["pid"], agent, "what runs is found, though its record is gone");
            assert_eq!(world.panes().len(), 1);
            // Put back, what was moved is as it was.
            if moved {
                let _ = world.swarm(&["daemon", "stop"]).ok();
                fs::remove_dir_all(world.swarm_dir()).unwrap();
                fs::rename(world.path("elsewhere"), world.swarm_dir()).unwrap();
                assert_eq!(world.status("w")["pid"], agent);
            }
            let _ = world.swarm(&["kill", "w"]).ok();
            assert!(!is_alive(agent));
            signal(server, Signal::SIGTERM);
        }
    }
}
