//! `seen`: the daemon records that a person has looked at a finished worker. Programs do not count as persons.

use crate::attach::Terminal;
use crate::world::{SWARM, World};

#[test]
fn finished_worker_is_seen_after_a_person_names_it_until_its_next_run() {
    let world = World::new();
    let _ = world.spawn("w", &[], &["sh", "-c", "until test -e end; do sleep 0.05; done"]).ok();
    let in_terminal = |number, args: &[&str]| {
        let _ = Terminal::run(&world, number, &[&[SWARM], args].concat()).until_shows("code ");
    };
    let seen = || world.status("w")["seen"].as_bool().unwrap();
    in_terminal(0, &["status", "w"]);
    std::fs::write(world.work().join("end"), "").unwrap();
    let since = world.until_status("w", "done")["since"].clone();
    assert!(since.is_string() && since != world.status("w")["started"], "{since}");
    assert!(!seen(), "the worker was live when the person looked");

    for (number, args) in [["ls", "--format=table"], ["status", "--format=json"]].iter().enumerate() {
        let args = if args[0] == "status" { vec!["status", "w", args[1]] } else { args.to_vec() };
        in_terminal(number + 1, &args);
        assert!(!seen(), "{args:?}");
    }
    let _ = world.swarm(&["status", "w"]).code(1);
    assert!(!seen(), "no terminal");
    let script = format!("{SWARM} status w; touch looked; exec sleep 600");
    let _ = world.spawn_sh("agent", &[], &script).ok();
    world.until("the agent has looked", || world.work().join("looked").exists().then_some(()));
    assert!(!seen(), "an agent in its window");
    in_terminal(3, &["why", "w"]);
    assert!(seen());

    let _ = world.swarm(&["daemon", "restart"]).ok();
    assert!(seen(), "kept across daemons");
    assert_eq!(world.status("w")["since"], since);
    let _ = world.swarm(&["respawn", "w"]).ok();
    world.until_status("w", "done");
    assert!(!seen(), "another run");
}
