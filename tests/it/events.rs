//! `swarm events`: the notice stream as a user gets it: whole, resumable, and never with a silent hole.

use std::process::Command;

use serde_json::Value;

use crate::world::{Ran, SWARM, World};

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

fn seq(line: &Value) -> u64 {
    line["seq"].as_u64().unwrap()
}

fn kinds(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["kind"].as_str().unwrap()).collect()
}

/// A worker that ran and ended.
#[track_caller]
fn ran(world: &World, name: &str) {
    world.spawn_sh(name, &[], "exit 0").ok();
    world.until_status(name, "done");
}

fn events(world: &World, args: &[&str]) -> Vec<Value> {
    lines(&world.swarm(&[&["events", "--format", "json"], args].concat()).ok().out)
}

#[test]
fn times_are_in_the_zone_of_the_client() {
    let mut world = World::new();
    let _ = world.spawn("w", &[], &["sleep", "600"]).ok();
    let printed = |world: &World| -> Vec<String> {
        let status = world.swarm(&["status", "w"]).ok().out;
        let started = status.lines().find_map(|line| line.trim().strip_prefix("started")).unwrap();
        let event = world.swarm(&["events", "w"]).ok().out;
        [started, &event].map(|text| text.trim().chars().take(13).collect()).to_vec()
    };
    let utc = printed(&world);
    world.set("TZ", "XXX-9");
    let ahead = printed(&world);
    for (utc, ahead) in utc.iter().zip(&ahead) {
        let hour = |text: &str| text[11..].parse::<u32>().unwrap();
        assert_eq!((hour(utc) + 9) % 24, hour(ahead), "{utc} {ahead}");
    }
}

#[test]
fn stored_events_are_printed_from_any_sequence_number() {
    let world = World::new();
    assert_eq!(world.swarm(&["events"]).ok().out, "");
    ran(&world, "a");
    ran(&world, "b");
    let all = events(&world, &[]);
    assert_eq!(kinds(&all), ["started", "stopped", "started", "stopped"]);
    assert!(all.windows(2).all(|pair| seq(&pair[0]) < seq(&pair[1])), "{all:?}");
    assert_eq!(all[1]["exit_code"], 0);
    for (at, line) in all.iter().enumerate() {
        assert_eq!(events(&world, &["--since", &seq(line).to_string()]), all[at + 1..]);
    }
    assert_eq!(events(&world, &["--since", "0"]), all);
    assert_eq!(events(&world, &["b"]), all[2..]);
    assert_eq!(events(&world, &["a", "b", "a"]), all);
    let text = world.swarm(&["events", "a"]).ok().out;
    assert!(text.contains("  a: run 1 started\n") && text.ends_with("  a: finished: exited\n"), "{text}");
    world.swarm(&["clean", "a"]).ok();
    let told = events(&world, &["--since", &seq(&all[3]).to_string()]);
    assert_eq!((kinds(&told), &told[0]["name"]), (vec!["cleaned"], &"a".into()));
    world.swarm(&["events", "nobody"]).code(2).warns("no worker named 'nobody'");
    world.swarm(&["events", "--follow", "b", "nobody"]).code(2).warns("no worker named 'nobody'");
}

#[test]
fn events_survive_daemon_crashes_and_a_follower_misses_none() {
    let world = World::new();
    ran(&world, "a");
    let before = events(&world, &[]);
    let last = seq(before.last().unwrap()).to_string();
    let follower = world.follow(&["events", "--follow", "--format", "json"]);
    follower.until_says(&world, "\n");
    let first = lines(&follower.output());
    assert_eq!((first.len(), &first[0]["kind"], &first[0]["gap"]), (1, &"snapshot".into(), &false.into()));
    assert_eq!(first[0]["workers"][0]["name"], "a");
    let resumed = world.follow(&["events", "-f", "--format", "json", "--since", &last]);
    ran(&world, "b");
    for follower in [&follower, &resumed] {
        follower.until_says(&world, "\"kind\":\"stopped\"");
    }
    world.crash_daemon();
    ran(&world, "c");
    world.swarm(&["daemon", "restart"]).ok();
    ran(&world, "d");
    for (follower, head) in [(&follower, 1), (&resumed, 0)] {
        world.until("all events", || follower.output().contains("\"name\":\"d\",").then_some(()));
        world.until("the last event", || (lines(&follower.output()).len() == head + 6).then_some(()));
        let told = lines(&follower.output());
        assert_eq!(kinds(&told)[head..], ["started", "stopped", "started", "stopped", "started", "stopped"]);
        assert!(told.windows(2).all(|pair| seq(&pair[0]) <= seq(&pair[1])), "{told:?}");
    }
    let all = events(&world, &[]);
    assert_eq!((all.len(), &all[..2]), (8, &before[..]));
    assert_eq!(events(&world, &["--since", &last]), all[2..]);
    // A number that no daemon has given.
    assert_eq!(events(&world, &["--since", &u64::MAX.to_string()])[0]["gap"], true);
}

#[test]
fn events_are_selected_by_time_kind_and_worker_even_of_a_deleted_one() {
    let world = World::new();
    ran(&world, "a");
    ran(&world, "b");
    world.swarm(&["clean", "a"]).ok();
    let all = events(&world, &[]);
    for (args, wanted) in [
        (&["--since", "1h"][..], &all[..]),
        (&["--since", "2000-01-01"], &all),
        (&["--since", all[1]["at"].as_str().unwrap()], &all[1..]),
        (&["--worker", "b"], &all[2..4]),
        (&["--kind", "stopped", "--kind", "cleaned", "a"], &[all[1].clone(), all[4].clone()]),
        (&["--kind", "started", "--since", "1h", "--worker", "a"], &all[..1]),
        (&["--kind", "missing", "--kind", "snapshot"], &[]),
    ] {
        assert_eq!(events(&world, args), wanted, "{args:?}");
    }
    let ran = world.swarm(&["events", "--since", "1s", "a", "nobody"]).code(2);
    ran.warns("no worker named 'nobody'");
    world.swarm(&["events", "--kind", "start"]).code(2).warns("a similar value exists: 'started'");
    world.swarm(&["events", "--since", "2999-01-01"]).code(2).warns("'2999-01-01' is in the future");
    world.swarm(&["events", "--since", "soon"]).code(2).warns("invalid time 'soon': use 22:00, 8h,");
}

#[test]
fn missing_events_are_reported_at_their_position() {
    let world = World::new();
    ran(&world, "a");
    let log = world.swarm_dir().join("events.jsonl");
    let before = events(&world, &[]);
    world.crash_daemon();
    // A line that a power cut tore.
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, &text[..text.len() - 20]).unwrap();
    ran(&world, "b");
    let all = events(&world, &[]);
    assert_eq!(kinds(&all), ["started", "missing", "started", "stopped"]);
    assert_eq!((&all[1]["reason"], &all[1]["seq"]), (&"damaged".into(), &before[0]["seq"]));
    assert_eq!(events(&world, &["--kind", "missing"]), all[1..2]);
    let text = world.swarm(&["events", "--since", "1h"]).ok().out;
    assert_eq!(text.lines().nth(1), Some("(events are missing here: the event log is damaged)"), "{text}");
    // Somebody who saw the lost event knows its number.
    assert_eq!(events(&world, &["--since", &before[1]["seq"].to_string()]), all[2..]);
    let told = events(&world, &["--since", &before[0]["seq"].to_string()]);
    assert_eq!(kinds(&told), ["snapshot", "missing", "started", "stopped"]);
    // A disk that refuses: the daemon goes on, and the next one reports what it lost.
    let away = world.swarm_dir().join("away");
    std::fs::rename(&log, &away).unwrap();
    std::fs::create_dir(&log).unwrap();
    ran(&world, "c");
    assert_eq!(kinds(&events(&world, &["c"])), ["missing", "started", "stopped"]);
    world.crash_daemon();
    std::fs::remove_dir(&log).unwrap();
    std::fs::rename(&away, &log).unwrap();
    let text = world.swarm(&["events"]).ok().out;
    let last = "(events are missing here: they could not be written to disk)";
    assert_eq!((text.lines().count(), text.lines().last()), (5, Some(last)), "{text}");
    // The files are gone: what is asked for is not there any more.
    world.swarm(&["daemon", "stop"]).ok();
    std::fs::remove_file(&log).unwrap();
    let told = events(&world, &["--since", &before[0]["seq"].to_string()]);
    assert_eq!((kinds(&told), &told[0]["gap"]), (vec!["snapshot"], &true.into()));
}

#[test]
fn daemon_stop_ends_the_event_stream_with_an_error() {
    let world = World::new();
    ran(&world, "a");
    let mut follower = world.follow(&["events", "--follow", "--format", "json"]);
    follower.until_says(&world, "snapshot");
    world.swarm(&["daemon", "stop"]).ok();
    assert_eq!(follower.wait(&world), 3, "{}", follower.output());
    follower.says("swarm: error: the daemon was stopped");
}

fn shell(world: &World, script: &str) -> Ran {
    let mut sh: Command = world.command("bash");
    sh.arg("-c").arg(format!("{script}; echo \"${{PIPESTATUS[*]}}\"")).arg(SWARM);
    world.run(sh)
}

#[test]
fn events_end_silently_when_the_reader_closes_the_pipe() {
    let world = World::new();
    ran(&world, "a");
    for args in ["events --format json", "events --follow --format json", "events --follow --since 0"] {
        // Nothing happens after the first line that could break the pipe.
        let ran = shell(&world, &format!("\"$0\" {args} | head -1")).ok();
        assert_eq!(ran.err, "", "{args}");
        assert!(ran.out.ends_with("\n0 0\n") && ran.out.lines().count() == 2, "{args}: {}", ran.out);
    }
    let ran = shell(&world, "\"$0\" events --follow | true").ok();
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("0 0\n", ""));
    let ran = shell(&world, "\"$0\" events >/dev/full").ok();
    assert!(ran.out == "1\n" && ran.err.contains("cannot write to standard output"), "{ran:?}");
}
