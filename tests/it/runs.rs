//! `swarm logs --iteration N`: what one iteration, or one run, printed.

use std::fs;

use serde_json::json;

use crate::world::World;

#[test]
fn logs_show_the_output_of_each_iteration_and_of_the_running_one() {
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
    let wanted = json!({"schema": 1, "name": "lp", "iteration": 2, "lines": ["words of 2", "more of 2"]});
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
        json!({"schema": 1, "name": "lp", "iteration": null, "lines": []})
    );
}

#[test]
fn logs_never_show_an_iteration_of_an_earlier_loop() {
    let world = World::new();
    let mut first = world.agent("first");
    world.spawn_loop("lp", &first, &["-n", "2"]);
    for n in 1..=2 {
        first.until_run(&world, n);
        first.tell(&format!("print old {n}"));
        first.tell("exit 0");
    }
    world.until_status("lp", "done");
    let mut second = world.agent("second");
    world.spawn_loop("lp", &second, &["-n", "5"]);
    second.tell("print new 1");
    let of = |n: &str| world.swarm(&["logs", "lp", "--iteration", n]);
    world.until("the new one", || (of("1").ok().out == "new 1\n").then_some(()));
    let _ = of("2").code(1).warns("has no output of iteration 2\n").warns("there is only iteration 1\n");
    second.tell("exit 0");
    second.until_run(&world, 2);
    assert_eq!(of("1").ok().out, "new 1\n");
    // After the files are cleaned, the log still has the output.
    world.swarm(&["kill", "lp"]).ok();
    world.swarm(&["ralph", "clean", "lp"]).ok();
    assert_eq!(of("1").ok().out, "new 1\n");
    let _ = of("3").code(1);
}

#[test]
fn logs_show_runs_of_a_plain_worker() {
    let world = World::new();
    world.spawn_sh("w", &[], "echo hello").ok();
    world.until_status("w", "done");
    assert_eq!(world.swarm(&["logs", "w", "--iteration", "1"]).ok().out, "hello\n");
    let _ = world.swarm(&["logs", "w", "--iteration", "2"]).code(1).warns("no output of run 2\n");
    fs::remove_file(world.swarm_dir().join("logs/w.log")).unwrap();
    let _ = world.swarm(&["logs", "w", "--iteration", "1"]).code(1).warns("no runs are stored");
}

#[test]
fn log_longer_than_one_answer_is_complete() {
    // Less than the 10,000 rows that a pane keeps.
    let world = World::new();
    let words = "and some words that make it long, ".repeat(4).trim_end().to_owned();
    let script = format!("seq -f '%g {words}' 4000; head -c 900000 /dev/zero | tr '\\0' x; echo; echo end");
    let mut expected: Vec<String> = (1..=4000).map(|n| format!("{n} {words}")).collect();
    expected.extend(["x".repeat(900_000), "end".into()]);
    let same = |args: &[&str], expected: &[String]| {
        let out = world.swarm(&[&["logs", "w"], args].concat()).ok().out;
        let (got, wanted) = (out.lines().count(), expected.len());
        assert!(out.lines().eq(expected), "{args:?}: {got} of {wanted} lines, {} bytes", out.len());
    };
    world.spawn_sh("w", &[], &format!("{script}; touch printed; read line")).ok();
    world.until("it has printed", || world.path("work/printed").exists().then_some(()));
    let last = || world.swarm(&["logs", "w", "-n", "1"]).ok().out;
    world.until("its pane has it", || (last() == "end\n").then_some(()));
    same(&[], &expected);
    world.swarm(&["send", "w", "done"]).ok();
    world.until_status("w", "done");
    let out = world.swarm(&["logs", "w"]).ok().out;
    let extra: Vec<String> = out.lines().skip(expected.len()).map(str::to_owned).collect();
    expected.extend(extra);
    assert!(expected.len() < 4010);
    same(&[], &expected);
    same(&["--iteration", "1"], &expected);
    same(&["-n", "3000"], &expected[expected.len() - 3_000..]);
    same(&["-n", "15"], &expected[expected.len() - 15..]);
    let json = world.swarm(&["logs", "w", "--format", "json"]).ok().json();
    assert!(json["lines"].as_array().unwrap().iter().eq(expected.iter()));
    let all = world.swarm(&["logs", "w", "--history"]).ok().out;
    assert!(all.starts_with("=== run 1, ended ") && all.lines().skip(1).eq(&expected));
}

#[test]
fn runs_are_counted_from_the_last_spawn() {
    let world = World::new();
    let restart = ["--restart", "always", "--max-restarts", "1"];
    // Runs 2 and 6 wait to be killed, so that no other run follows meanwhile.
    let script = "echo x >>runs; n=$(wc -l <runs); echo run $n; [ $((n % 4)) != 2 ] || exec cat";
    world.spawn_sh("w", &restart, script).ok();
    let of = |n: &str| world.swarm(&["logs", "w", "--iteration", n]);
    world.until("it ran twice", || (of("2").out == "run 2\n").then_some(()));
    assert_eq!(of("1").ok().out, "run 1\n");
    let _ = of("3").code(1).warns("worker 'w' has no output of run 3\n").warns("hint: there are runs 1, 2\n");
    world.swarm(&["kill", "w"]).ok();
    world.write("runs", "x\nx\nx\nx\n");
    world.swarm(&["respawn", "w"]).ok();
    world.until("it began anew", || (of("1").out == "run 5\n").then_some(()));
    world.until("it ran again", || (of("2").out == "run 6\n").then_some(()));
    world.swarm(&["kill", "w"]).ok();
    // The runs before the respawn are in the history.
    let history = world.swarm(&["logs", "w", "--history"]).ok().out;
    for n in [1, 2, 5, 6] {
        assert!(history.contains(&format!("\nrun {n}\n")), "{history}");
    }
    // An earlier run is not shown in place of a run after the respawn whose output was lost.
    let log = world.swarm_dir().join("logs/w.log");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.split_inclusive("run 2\n").next().unwrap()).unwrap();
    world.swarm(&["respawn", "w"]).ok();
    world.until("it began once more", || (of("1").out == "run 7\n").then_some(()));
}
