//! `swarm logs --iteration N`: what one iteration, or one run, printed.

use std::fs;

use serde_json::json;

use crate::world::World;

#[test]
fn each_iteration_has_what_it_printed_also_the_one_that_runs() {
    let world = World::new();
    let mut agent = world.agent("lp");
    world.spawn_loop("lp", &agent, &[]);
    for n in 1..=3 {
        agent.until_run(&world, n);
        agent.tell(&format!("print words of {n}"));
        agent.tell(&format!("print more of {n}"));
        if n < 3 {
            agent.tell("exit 0");
        }
    }
    let of = |n: &str, more: &[&str]| world.swarm(&[&["logs", "lp", "--iteration", n], more].concat());
    assert_eq!(of("1", &[]).ok().out, "words of 1\nmore of 1\n");
    assert_eq!(of("2", &["-n", "1"]).ok().out, "more of 2\n");
    world.until("the one that runs", || (of("3", &[]).ok().out == "words of 3\nmore of 3\n").then_some(()));
    let wanted =
        json!({"worker": "lp", "iteration": 2, "lines": ["words of 2", "more of 2"], "truncated": false});
    assert_eq!(of("2", &["--format", "json"]).ok().json(), wanted);
    let _ = of("7", &[])
        .code(1)
        .warns("swarm: error: worker 'lp' has no output of iteration 7\n")
        .warns("hint: there are iterations 1 to 3\n");
    agent.tell("exit 0");
    agent.until_run(&world, 4);
    assert_eq!(of("3", &[]).ok().out, "words of 3\nmore of 3\n");
    world.swarm(&["logs", "nobody", "--iteration", "1"]).code(2);
    assert_eq!(
        world.swarm(&["logs", "lp", "--format", "json"]).ok().json(),
        json!({"worker": "lp", "iteration": null, "lines": [], "truncated": false})
    );
}

#[test]
fn an_iteration_is_never_one_of_an_earlier_loop_of_the_name() {
    let world = World::new();
    let mut first = world.agent("first");
    world.spawn_loop("lp", &first, &["-n", "2"]);
    for n in 1..=2 {
        first.until_run(&world, n);
        first.tell(&format!("print old {n}"));
        first.tell("exit 0");
    }
    world.until_status("lp", "stopped");
    let mut second = world.agent("second");
    world.spawn_loop("lp", &second, &["-n", "5"]);
    second.tell("print new 1");
    let of = |n: &str| world.swarm(&["logs", "lp", "--iteration", n]);
    world.until("the new one", || (of("1").ok().out == "new 1\n").then_some(()));
    let _ = of("2").code(1).warns("has no output of iteration 2\n").warns("there is only iteration 1\n");
    second.tell("exit 0");
    second.until_run(&world, 2);
    assert_eq!(of("1").ok().out, "new 1\n");
    // Where the files were cleaned, the log still has it.
    world.swarm(&["kill", "lp"]).ok();
    world.swarm(&["ralph", "clean", "lp"]).ok();
    assert_eq!(of("1").ok().out, "new 1\n");
    let _ = of("3").code(1);
}

#[test]
fn a_worker_that_is_no_loop_has_runs() {
    let world = World::new();
    world.spawn_sh("w", &[], "echo hello").ok();
    world.until_status("w", "stopped");
    assert_eq!(world.swarm(&["logs", "w", "--iteration", "1"]).ok().out, "hello\n");
    let _ = world.swarm(&["logs", "w", "--iteration", "2"]).code(1).warns("no output of run 2\n");
    fs::remove_file(world.swarm_dir().join("logs/w.log")).unwrap();
    let _ = world.swarm(&["logs", "w", "--iteration", "1"]).code(1).warns("nothing of its runs is kept");
}
