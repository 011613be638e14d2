//! Names: what is none is refused by every verb, and one that is hits its own worker alone.

use clap::{Arg, CommandFactory};

use crate::world::World;

/// Invalid names: paths, patterns, text that tmux, git or a shell would read otherwise, and text that is far too long.
const BAD: [&str; 24] = [
    "../../precious",
    "",
    ".",
    "..",
    "/etc/x",
    "a/b",
    "-rf",
    "a\nb",
    "state.json",
    "live.json",
    "liv*",
    "*",
    "[l]ive",
    "a b",
    "ünï",
    "=live",
    "@live",
    "%1",
    "$1",
    "a.b",
    "a:b",
    "swarm:live",
    "\x1b[2J",
    "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn",
];

/// Every verb that takes the name of a worker, as the words to type; `None` where the name goes.
fn verbs(command: &clap::Command, path: &[String]) -> Vec<Vec<Option<String>>> {
    let mut found = vec![];
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        let path: Vec<String> = path.iter().cloned().chain([sub.get_name().to_owned()]).collect();
        found.extend(verbs(sub, &path));
        let is_name = |arg: &&Arg| matches!(arg.get_id().as_str(), "name" | "names" | "host");
        let Some(name) = sub.get_arguments().find(is_name) else { continue };
        let mut words: Vec<Option<String>> = path.into_iter().map(Some).collect();
        if !name.is_positional() {
            words.push(Some("--name".to_owned()));
        }
        words.push(None);
        // Something for what else must be there: a text to send, a setting, a command.
        let more = sub.get_positionals().filter(|arg| !is_name(arg));
        words.extend(more.flat_map(|arg| {
            let dashes = arg.is_last_set().then(|| "--".to_owned());
            dashes.into_iter().chain(["max_iterations=3".to_owned()]).map(Some)
        }));
        found.push(words);
    }
    found
}

#[test]
fn invalid_name_is_refused_by_every_command_and_changes_nothing() {
    let world = World::new();
    std::fs::create_dir(world.path("precious")).unwrap();
    std::fs::write(world.path("precious/file"), "mine").unwrap();
    let _ = world.spawn("live", &[], &["sleep", "600"]).ok();
    let files = || {
        let mut list: Vec<_> = ["", "workers", "ralph", "logs", "runs"]
            .iter()
            .flat_map(|sub| std::fs::read_dir(world.swarm_dir().join(sub)).unwrap().flatten())
            .map(|entry| entry.path())
            .collect();
        list.sort();
        list
    };
    // The event log is written a moment after the answer.
    let log = world.swarm_dir().join("events.jsonl");
    world.until("the event log is there", || log.exists().then_some(()));
    let before = files();
    let verbs = verbs(&swarm::cli::Cli::command(), &[]);
    let said: Vec<String> =
        verbs.iter().map(|words| words.iter().flatten().next().unwrap().clone()).collect();
    for known in ["spawn", "kill", "status", "logs", "peek", "send", "attach", "interrupt", "ralph"] {
        assert!(said.iter().any(|verb| verb == known), "{known} is not among {said:?}");
    }
    for words in &verbs {
        for bad in BAD {
            let args: Vec<String> =
                words.iter().map(|word| word.clone().unwrap_or_else(|| bad.to_owned())).collect();
            let ran = world.swarm(&args).code(2);
            assert!(
                ran.err.starts_with("swarm: error: ") && ran.out.is_empty(),
                "{args:?}: {}{}",
                ran.err,
                ran.out
            );
        }
    }
    assert_eq!(files(), before);
    assert_eq!(std::fs::read_to_string(world.path("precious/file")).unwrap(), "mine");
    assert_eq!(world.status("live")["status"], "running");
    assert_eq!(world.panes().len(), 1);
}

#[test]
fn name_that_is_a_prefix_of_another_affects_only_its_worker() {
    let world = World::new();
    let _ = world.spawn("task-1", &[], &["sleep", "600"]).ok();
    let _ = world
        .spawn_sh("task-10", &[], "trap 'echo hit >>got' INT; while read -r x; do echo \"$x\" >>got; done")
        .ok();
    let pane = world.status("task-1")["tmux"]["pane"].as_str().unwrap().to_owned();
    let _ = world.tmux(&["kill-pane", "-t", &pane]).ok();
    world.until_status("task-1", "failed");
    for name in ["task-1", "task"] {
        for verb in [&["send", name, "oops"][..], &["interrupt", name], &["ralph", "clean", name]] {
            assert_ne!(world.swarm(verb).code, Some(0), "{verb:?}");
        }
    }
    let _ = world.swarm(&["kill", "task-1"]).ok().says("it had ended before");
    let _ = world.swarm(&["kill", "task"]).code(2).warns("no worker named 'task'");
    let _ = world.swarm(&["attach", "task"]).code(2);
    assert_eq!(world.status("task-10")["status"], "running");
    // The name again, and its end again: the neighbour has heard of nothing.
    let _ = world.spawn("task-1", &[], &["sleep", "600"]).ok();
    let _ = world.swarm(&["kill", "task-1"]).ok();
    let _ = world.swarm(&["send", "task-10", "last"]).ok();
    world.until("it is taken", || (!world.lines("work/got").is_empty()).then_some(()));
    assert_eq!(world.lines("work/got"), ["last"]);
    assert_eq!(world.panes().len(), 1);
}

#[test]
fn every_valid_name_works_from_spawn_to_clean() {
    let world = World::new();
    // Numbers are windows' indexes to tmux, and some of these are names of ours.
    let longest = "n".repeat(64);
    let names = ["0", "1", "a_b", "a-b", "_", "x-", "swarm", "swarm-ctl", "ralph", &longest];
    for name in names {
        let _ = world.spawn_sh(name, &[], "read -r x; echo \"$0 $x\" >>\"$x\"; exec sleep 600").ok();
    }
    assert_eq!(world.panes().len(), names.len());
    for name in names {
        let file = format!("got-{name}");
        let _ = world.swarm(&["send", name, &file]).ok();
        world.until("its own text has come", || {
            (world.lines(format!("work/{file}")).len() == 1).then_some(())
        });
        assert_eq!(world.status(name)["tmux"]["window"], name);
        let _ = world.swarm(&["kill", name]).ok();
        assert_eq!(world.status(name)["status"], "killed");
    }
    world.until("no pane is left", || world.panes().is_empty().then_some(()));
}
