//! Many at once: a hundred spawns, a hundred kills, and nothing of it is left.

use std::fs;

use crate::world::{Follower, World, is_alive};

/// Runs one command a worker, all at once, and insists that each ends well.
fn all_at_once(world: &World, commands: impl Iterator<Item = Vec<String>>) {
    let mut started: Vec<Follower> = commands.map(|words| world.follow(&words)).collect();
    for follower in &mut started {
        assert_eq!(follower.wait(world), 0, "{}", follower.output());
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn names(world: &World, count: usize) -> usize {
    let listed = world.swarm(&["ls", "--format", "json"]).ok().json();
    let running = listed.as_array().map_or(0, |all| all.iter().filter(|w| w["status"] == "running").count());
    assert!(running <= count);
    running
}

/// The files below a directory of the daemon's that belong to one run or one write.
fn short_lived(world: &World) -> Vec<String> {
    let dirs = ["", "runs", "workers", "ralph", "logs"];
    let files = dirs.iter().flat_map(|dir| fs::read_dir(world.swarm_dir().join(dir)).into_iter().flatten());
    let paths = files.flatten().map(|entry| entry.path().display().to_string());
    paths.filter(|path| path.contains("/runs/") || path.ends_with(".tmp")).collect()
}

#[test]
fn a_hundred_spawns_and_a_hundred_kills() {
    let world = World::new();
    let script = "echo $$ >>book; exec sleep 600";
    all_at_once(
        &world,
        (0..100).map(|n| {
            let mut spawn = words(&format!("spawn --name w{n} -- sh -c"));
            spawn.push(script.to_owned());
            spawn
        }),
    );
    assert_eq!(names(&world, 100), 100, "{}", world.report());
    world.until("each wrote itself down", || (world.lines("work/book").len() == 100).then_some(()));
    assert_eq!(world.panes().len(), 100);
    let daemon = world.daemon_pid();
    all_at_once(&world, (0..100).map(|n| words(&format!("kill w{n}"))));
    assert_eq!(names(&world, 0), 0);
    assert_eq!(world.panes(), [""; 0]);
    let alive: Vec<_> =
        world.lines("work/book").iter().filter(|pid| is_alive(pid.parse().unwrap())).cloned().collect();
    assert!(alive.is_empty(), "alive: {alive:?}");
    assert_eq!(world.lines("work/book").len(), 100, "none was started twice");
    assert_eq!(world.daemon_pid(), daemon, "one daemon for all of it");
    world.until("no run folder is left", || short_lived(&world).is_empty().then_some(()));
}

#[test]
fn sixteen_spawns_and_kills_with_worktrees() {
    let world = World::new();
    let repo = world.repo("repo");
    let git = |args: &[&str]| {
        let mut git = world.command("git");
        git.current_dir(&repo).args(args);
        world.run(git).ok().out
    };
    let spawn =
        |n: usize| words(&format!("spawn --name w{n} --cwd {} --worktree -- sleep 600", repo.display()));
    all_at_once(&world, (0..16).map(spawn));
    assert_eq!(names(&world, 16), 16, "{}", world.report());
    assert_eq!(git(&["branch", "--list", "swarm/*"]).lines().count(), 16);
    assert_eq!(git(&["worktree", "list"]).lines().count(), 17);
    all_at_once(&world, (0..16).map(|n| words(&format!("kill w{n} --rm-worktree"))));
    assert_eq!(names(&world, 0), 0);
    assert_eq!(world.panes(), [""; 0]);
    assert_eq!(git(&["branch", "--list", "swarm/*"]), "");
    assert_eq!(git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(git(&["status", "--porcelain"]), "");
    assert!(!world.path("repo-worktrees").exists());
    world.until("no run folder is left", || short_lived(&world).is_empty().then_some(()));
}
