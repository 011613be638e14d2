//! Loops within sessions: how they are started and ended from a shell and from a prompt, and whose they are.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use serde_json::json;

use crate::turns::{Heard, Host, is_open_in};
use crate::world::{Ran, World};

const DONE: &str = "<promise>DONE</promise>";

fn start(world: &World, args: &[&str]) -> Ran {
    world.swarm(&[&["session", "start", "--session-id", "s1"], args].concat())
}

#[test]
fn known_fault_every_form_of_the_limit_is_parsed_or_refused() {
    let good: [(&[&str], u64); 7] = [
        (&["do it --max-iterations=3"], 3),
        (&["do it", "--max-iterations=3"], 3),
        (&["do it", "--max-iterations", "3"], 3),
        (&["do it", "-n3"], 3),
        (&["do", "it", "-n", "3"], 3),
        (&["do it"], 20),
        (&["do it", "-n", "0"], 0),
    ];
    for (args, limit) in good {
        let world = World::new();
        let ran = start(&world, &[args, &["--format", "json"]].concat()).ok();
        assert_eq!(ran.json()["max_iterations"].as_u64(), (limit > 0).then_some(limit), "{args:?}");
        assert_eq!(ran.err.contains("no iteration limit"), limit == 0, "{}", ran.err);
        let file = fs::read_to_string(world.work().join(".claude/ralph-loop.s1.local.md")).unwrap();
        assert!(file.ends_with("\n---\ndo it"), "{file}");
    }
    let bad: [&[&str]; 10] = [
        &["do it --max-iterations=three"],
        &["do it", "--max-iterations", "three"],
        &["do it", "-n", "-1"],
        &["do it", "--max-iterations=-1"],
        &["do it", "--max-iterations", "101"],
        &["do it", "--max-iteration", "3"],
        &["do it --max-iteration 3"],
        &["do it --max-iterations"],
        &["do it -n 3 -n 4"],
        &["do it", "-n", ""],
    ];
    for args in bad {
        let world = World::new();
        let ran = start(&world, args);
        assert_ne!(ran.code, Some(0), "{args:?}");
        assert!(ran.err.contains("iteration") || ran.err.contains("-n"), "{args:?}: {}", ran.err);
        assert!(!world.work().join(".claude").exists(), "{args:?}");
    }
}

#[test]
fn known_fault_an_empty_promise_or_no_task_starts_nothing() {
    let world = World::new();
    for args in [
        &["do it", "--completion-promise", ""][..],
        &["do it", "--promise", "  "],
        &["do it --completion-promise=''"],
        &["do it", "--completion-promise", "<promise>X</promise>"],
        &[],
        &["  "],
        &["--max-iterations", "3"],
        &["--max-iterations=3 --completion-promise X"],
        &["do it", "--on-promise-no-work", "maybe"],
        &["do it", "--ulw", "--do-it"],
    ] {
        let ran = start(&world, args);
        assert!(ran.code != Some(0) && !ran.err.is_empty(), "{args:?}");
        assert!(!world.work().join(".claude").exists(), "{args:?}");
    }
    start(&world, &[]).code(1).warns("no task given").warns("session start 'what is to be done'");
}

#[test]
fn session_start_requires_a_session_id() {
    let mut world = World::new();
    world
        .swarm(&["session", "start", "do it"])
        .code(1)
        .warns("no session: this command")
        .warns("--session-id ID");
    for id in ["", ".x", "a/b", "../x", "a b", &"x".repeat(129)] {
        world.swarm(&["session", "start", "do it", "--session-id", id]).code(2).warns("session id");
    }
    world.set("CLAUDE_CODE_SESSION_ID", "");
    world.swarm(&["session", "start", "do it"]).code(1).warns("no session: this command");
    world.set("CLAUDE_CODE_SESSION_ID", "around");
    world.swarm(&["session", "start", "do it"]).ok().says("iteration 1 of 20");
    assert!(world.work().join(".claude/ralph-loop.around.local.md").exists());
    world.swarm(&["session", "status"]).ok().says("active: iteration 1 of 20");
    world.swarm(&["session", "cancel"]).ok().says("canceled: removed");
}

#[test]
fn second_live_loop_is_refused_with_a_hint() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.start(&["one"]);
    host.works().says("x").goes_on();
    for args in [&["two"][..], &["one"], &[]] {
        start(&world, args).code(1).warns("a live loop already (iteration 2 of 20)").warns("/cancel-ralph");
    }
    host.swarm_session(&["cancel"]).ok();
    start(&world, &["two"]).ok();
}

#[test]
fn of_two_starts_at_once_in_two_directories_one_is_refused() {
    let world = World::new();
    for (round, second_task) in ["do it", "do something else"].into_iter().cycle().take(8).enumerate() {
        let session = format!("s{round}");
        let begin = |place: String, task: &str| {
            fs::create_dir(world.path(&place)).unwrap();
            let mut command = world.command(crate::world::SWARM);
            command.current_dir(world.path(&place)).args([
                "session",
                "start",
                task,
                "--session-id",
                &session,
            ]);
            world.start(command)
        };
        let mut started = [begin(format!("a{round}"), "do it"), begin(format!("b{round}"), second_task)];
        let mut codes = [started[0].wait(&world), started[1].wait(&world)];
        let output = started.each_ref().map(|start| start.output());
        codes.sort_unstable();
        assert_eq!(codes, [0, 1], "{output:?}");
        assert!(output.concat().contains("this session has a live loop already"), "{output:?}");
        let state_file = format!(".claude/ralph-loop.{session}.local.md");
        let has_loop = |place: &&str| world.path(format!("{place}{round}")).join(&state_file).exists();
        assert_eq!(["a", "b"].into_iter().filter(has_loop).count(), 1, "{output:?}");
    }
}

#[test]
fn a_start_in_another_directory_waits_for_the_lock_of_the_existing_loop() {
    let world = World::new();
    let host = Host::new(&world, "s1");
    host.start(&["one"]);
    fs::create_dir(world.path("other")).unwrap();
    let lock = host.lock();
    let mut command = world.command(crate::world::SWARM);
    command.current_dir(world.path("other")).args(["session", "start", "--session-id", "s1"]);
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    world.until("the start waits for the lock", || is_open_in(child.id(), &lock).then_some(()));
    drop(lock);
    assert_eq!(child.wait().unwrap().code(), Some(1), "its loop is live");
}

#[test]
fn hint_of_a_refused_start_ends_the_loop_in_question() {
    let world = World::new();
    let other_dir = world.path("other");
    fs::create_dir(&other_dir).unwrap();
    let (first, second) = (Host::new(&world, "s1"), Host::new(&world, "s2").in_dir(&other_dir));
    first.start(&["one"]);
    second.start(&["two"]);
    let ran =
        second.in_dir(world.work()).swarm_session(&["start", "three"]).code(1).warns("a live loop already");
    let hint = ran.err.split("to end it: ").nth(1).unwrap().split(", or ").next().unwrap();
    let words: Vec<&str> = hint.split_whitespace().skip(1).collect();
    world.swarm(&words).ok().says("other/.claude/ralph-loop.s2.local.md");
    assert!(first.state_file().exists());
    // The file of a loop without an owner can only be deleted.
    let file = fs::read_to_string(first.state_file()).unwrap();
    fs::write(first.state_file(), file.replace("session_id: \"s1\"\n", "")).unwrap();
    let rm = format!("to end it: rm {}", first.state_file().canonicalize().unwrap().display());
    start(&world, &["two"]).code(1).warns(&rm);
}

#[test]
fn start_warns_when_no_settings_mention_the_hooks() {
    /// Starts a loop in a directory of the world, and returns whether the command warned about missing hooks.
    fn is_warned(world: &World, dir: &str) -> bool {
        fs::create_dir_all(world.path(dir)).unwrap();
        let mut command = world.command(crate::world::SWARM);
        command.current_dir(world.path(dir)).args(["session", "start", "do it", "--format", "json"]);
        command.args(["--session-id", &dir.replace('/', ".")]);
        let ran = world.run(command).ok();
        assert_eq!(ran.json()["active"], true);
        ran.err.contains("nothing continues this loop; to install them for new sessions: swarm hooks install")
    }
    let mut world = World::new();
    assert!(is_warned(&world, "work"));
    world.swarm(&["hooks", "install"]).ok();
    assert!(!is_warned(&world, "work/below") && is_warned(&world, "other"));
    world.set("SWARM_WORKER", "w");
    assert!(!is_warned(&world, "in-a-worker"));
    world.unset("SWARM_WORKER");
    // A plugin of any marketplace, hooks of another agent, and a file that cannot be read count.
    let settings: [(&str, &[u8]); 4] = [
        ("a/.claude/settings.local.json", br#"{"enabledPlugins": {"swarm@team": true}}"#),
        ("b/.codex/hooks.json", br#"{"hooks": {"Stop": [{"hooks": [{"command": "swarm hook stop"}]}]}}"#),
        ("c/.opencode/plugin/swarm.js", b"const PROGRAM = \"swarm\";"),
        ("d/.claude/settings.json", b"\xff"),
    ];
    for (file, text) in settings {
        fs::create_dir_all(world.path(file).parent().unwrap()).unwrap();
        fs::write(world.path(file), text).unwrap();
        assert!(!is_warned(&world, &file[..1]), "{file}");
    }
    assert!(is_warned(&world, "e"));
    world.swarm(&["plugin", "install", "--scope", "user"]).ok();
    assert!(!is_warned(&world, "f"));
}

#[test]
fn list_distinguishes_a_paused_loop_from_one_whose_file_is_gone() {
    let world = World::new();
    let host = Host::new(&world, "s1");
    host.start(&["do it", "-n", "3"]);
    let file = fs::read_to_string(host.state_file()).unwrap();
    fs::write(host.state_file(), file.replace("active: true", "active: false")).unwrap();
    host.swarm_session(&["ls"]).ok().says("s1       ralph  1/3   paused");
    fs::remove_file(host.state_file()).unwrap();
    host.swarm_session(&["ls"]).ok().says("s1       ralph  1/3   gone");
}

#[test]
fn second_start_with_other_options_is_refused_at_once() {
    let world = World::new();
    start(&world, &["do it", "-n", "3"]).ok();
    start(&world, &["do it", "-n", "3", "--promise", "DONE"]).ok();
    for other in [["-n", "7"], ["--promise", "READY"]] {
        start(&world, &other).code(1).warns("a live loop already (iteration 1 of 3)");
    }
}

#[test]
fn cancel_of_a_loop_that_ends_meanwhile_finds_no_loop() {
    let world = World::new();
    let host = Host::new(&world, "s1");
    host.start(&["do it"]);
    let lock = host.lock();
    let mut command = world.command(crate::world::SWARM);
    command.args(["session", "cancel"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let cancel = command.spawn().unwrap();
    world.until("the command waits for the lock", || is_open_in(cancel.id(), &lock).then_some(()));
    fs::remove_file(host.state_file()).unwrap();
    drop(lock);
    Ran::from(cancel.wait_with_output().unwrap()).code(1).warns("no loop to cancel");
}

#[test]
fn missing_project_directory_is_reported_by_every_session_command() {
    let world = World::new();
    for verb in ["start", "status", "cancel", "logs"] {
        let ran = world.swarm(&["session", verb, "--session-id", "s1", "--cwd", "/missing"]);
        ran.code(1).warns("cannot use '/missing': No such file");
    }
}

#[test]
fn loop_continues_only_its_own_session_from_any_directory() {
    let world = World::new();
    let below = world.work().join("a/b");
    fs::create_dir_all(&below).unwrap();
    symlink(world.work(), world.path("linked")).unwrap();
    let mut own = Host::new(&world, "own");
    own.start(&["do it"]);
    let places = [world.work(), below, world.path("linked/a"), world.path("home"), world.path("gone")];
    for (n, place) in places.iter().enumerate() {
        own.dir.clone_from(place);
        own.works().says(&format!("turn {n}")).goes_on();
        // Nobody else is held there, under any name.
        for other in ["other", "own2", "ow", "OWN"] {
            Host::new(&world, other).in_dir(place).says(&format!("turn {n}")).is_let();
        }
        let mut nobody = Host::new(&world, "nobody").in_dir(place);
        for id in [json!(""), json!(null), json!(7), json!("../own"), json!("own/")] {
            nobody.more = json!({ "session_id": id });
            nobody.says("x").is_let();
        }
    }
    own.dir = world.work();
    assert_eq!(own.status()["iteration"], 6);
    // By the host's word on the project, too, when the book is lost.
    fs::remove_dir_all(world.swarm_dir().join("sessions/own")).unwrap();
    own.dir = world.path("home");
    own.env = vec![("CLAUDE_PROJECT_DIR".into(), world.work().display().to_string())];
    own.works().says("from home").goes_on();
}

#[test]
fn known_fault_a_state_file_without_an_owner_blocks_no_session() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.start(&["do it"]);
    let file = fs::read_to_string(host.state_file()).unwrap();
    for owner in ["session_id: \"\"\n", "session_id:\n", "session_id: \"a b\"\n", ""] {
        fs::write(host.state_file(), file.replace("session_id: \"s1\"\n", owner)).unwrap();
        host.says("x").is_let();
        Host::new(&world, "s2").says("x").is_let();
    }
}

#[test]
fn two_sessions_in_one_directory_have_a_loop_each() {
    let world = World::new();
    let (mut a, mut b) = (Host::new(&world, "a"), Host::new(&world, "b"));
    a.start(&["task a"]);
    b.start(&["task b", "-n", "2"]);
    assert!(a.says("x").goes_on().contains("task a"));
    assert!(b.says("x").goes_on().contains("task b"));
    b.says("y").ends("MAX_ITERATIONS_REACHED");
    assert_eq!(a.status()["iteration"], 2);
    let ran = world.swarm(&["session", "ls"]).ok();
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[0].starts_with("SESSION") && lines[0].contains("STATUS"), "{}", ran.out);
    assert!(
        lines[1].starts_with("a ") && lines[1].contains("2/20") && lines[1].contains("active"),
        "{}",
        ran.out
    );
    assert!(lines[2].contains("MAX_ITERATIONS_REACHED"), "{}", ran.out);
    let column = |line: &str, word: &str| line.find(word).unwrap();
    assert_eq!(column(lines[0], "STATUS"), column(lines[1], "active"));
    world.swarm(&["session", "ls", "--format", "names"]).ok().says("a\nb\n");
    assert_eq!(world.swarm(&["session", "ls", "--format", "json"]).ok().json()[1]["session"], "b");
}

#[test]
fn loop_ends_by_a_command_or_by_deleting_its_file() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.start(&["do it"]);
    host.works().says("x").goes_on();
    host.swarm_session(&["cancel"]).ok().says("canceled");
    host.says("y").is_let();
    assert_eq!(host.log().last().unwrap()["status"], "CANCELLED");
    host.swarm_session(&["cancel"]).code(1).warns("no loop to cancel").warns("swarm session ls");
    host.start(&["do it"]);
    fs::remove_file(host.state_file()).unwrap();
    host.works().says("z").is_let();
    host.start(&["do it again"]);
    assert!(host.works().says("x").goes_on().contains("do it again"));
}

#[test]
fn typed_commands_start_and_end_session_loops() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    let heard = host.types("/ralph-loop \"implement the parser\" --max-iterations 7 --completion-promise OK");
    let text = heard.context.unwrap();
    for part in ["implement the parser", "<promise>OK</promise>", "7 turns", "match to the letter"] {
        assert!(text.contains(part), "no {part:?}: {text}");
    }
    assert_eq!(host.status()["max_iterations"], 7);
    host.works().says("x").goes_on();
    let heard = host.types("/cancel-ralph");
    assert!(heard.goes_on().contains("cancelled"), "{heard:?}");
    host.says("x").is_let();
    assert!(host.types("/cancel-ralph").goes_on().contains("is cancelled"));
    let heard = host.types("/swarm:ulw-loop fix it");
    assert!(heard.context.unwrap().starts_with("ULTRAWORK MODE"));
    host.types("/swarm:cancel-ralph").goes_on();
    // An error is reported to the person; the agent receives nothing.
    for prompt in [
        "/ralph-loop",
        "/ralph-loop -n 5",
        "/ralph-loop x --max-iteration 3",
        "/do-it:ralph",
        "/do-it:ralph 101",
        "/do-it:ralph later",
    ] {
        assert!(host.types(prompt).goes_on().starts_with("swarm: "), "{prompt}");
        assert!(!host.state_file().exists(), "{prompt}");
    }
    for prompt in ["", "hello", "please /ralph-loop x", "/ralph-loops x", "/cancel"] {
        host.types(prompt).is_let();
    }
    host.more = json!({"session_id": ""});
    assert!(host.types("/ralph-loop x").goes_on().contains("no id"));
}

#[test]
fn prompt_reported_by_two_hooks_starts_one_loop() {
    let world = World::new();
    let host = Host::new(&world, "s1");
    let mut input = host.input("UserPromptSubmit", "");
    input["prompt"] = json!("/ralph-loop build it -n 5");
    let [a, b] = host.both("user-prompt-submit", &input);
    // The agent has the task once.
    assert_ne!(a.context.is_some(), b.context.is_some());
    let told = a.context.or(b.context).unwrap();
    assert!(told.contains("build it"), "{told}");
    Heard::of(host.hook("user-prompt-submit", &input)).is_let();
    assert_eq!(host.log().len(), 1);
}

#[test]
fn typed_task_is_kept_literally() {
    let tasks = [
        "a\n---\nb: \"c\" # d\n---\n$x `y` $(touch /tmp/x) it's",
        "say “hello” — and ‘bye’",
        "--- line\n---\n\n  indented\n\ttab",
        "C:\\path\\n \\\" end",
        "<promise>DONE</promise> is what you say",
    ];
    for (n, task) in tasks.into_iter().enumerate() {
        let world = World::new();
        let mut host = Host::new(&world, &format!("s{n}"));
        let heard = host.types(&format!("/ralph-loop {task} -n 9"));
        assert!(heard.context.as_deref().is_some_and(|text| text.ends_with(task)), "{heard:?}");
        for turn in 0..2 {
            let heard = host.works().says(&format!("turn {turn}"));
            assert!(heard.goes_on().ends_with(&format!("Original task:\n\n{task}")), "{heard:?}");
        }
        assert_eq!(host.status()["max_iterations"], 9);
    }
}

#[test]
fn long_task_from_standard_input_is_complete() {
    let world = World::new();
    let task = format!("{}\n--max-iterations is a word here\n", "long ".repeat(100_000));
    let file = world.path("task");
    fs::write(&file, format!("-- {task}")).unwrap();
    let mut command = world.command(crate::world::SWARM);
    command.args(["session", "start", "-", "--session-id", "s1"]).stdin(fs::File::open(&file).unwrap());
    world.run(command).ok();
    let heard = Host::new(&world, "s1").works().says("x");
    assert!(
        heard.goes_on().ends_with(task.trim_end()),
        "…{}",
        &heard.goes_on()[heard.goes_on().len() - 80..]
    );
}

#[test]
fn session_log_has_each_iteration_with_its_result_and_reason() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.swarm_session(&["logs"]).ok().says("the log of this session is empty");
    host.swarm_session(&["status"]).code(1).says("no loop here");
    host.start(&["do it"]);
    host.says(DONE).goes_on();
    host.works().says("x").goes_on();
    host.says(DONE).ends("PROMISE_ACCEPTED");
    let ran = host.swarm_session(&["logs"]).ok();
    for part in [
        "iteration 1  promise rejected  goes on  (the promise was given without work)",
        "iteration 2  promise missing  goes on  (no promise was given)",
        "iteration 3  promise found  PROMISE_ACCEPTED  (the promise was given)",
    ] {
        assert!(ran.out.contains(part), "no {part:?}: {}", ran.out);
    }
    assert!(ran.out.lines().next().unwrap().ends_with("  iteration 1  (started)"), "{}", ran.out);
    host.swarm_session(&["status"]).code(1).says("PROMISE_ACCEPTED");
    assert_eq!(host.status()["status"], "PROMISE_ACCEPTED");
}

#[test]
fn the_log_of_an_ended_loop_is_found_in_its_directory() {
    let world = World::new();
    let here = |args: &[&str]| {
        let mut command = world.command(crate::world::SWARM);
        command.current_dir(world.work()).args(["session"]).args(args);
        world.run(command)
    };
    here(&["logs"]).code(1).warns("no session loop was run in this directory").warns("swarm session ls");
    here(&["status"]).code(1).says("no loop here");
    let mut first = Host::new(&world, "s1");
    first.start(&["do it", "-n", "2"]);
    first.works().says("x").goes_on();
    first.works().says("y").ends("MAX_ITERATIONS_REACHED");
    here(&["logs"]).ok().says("iteration 2  promise missing  MAX_ITERATIONS_REACHED");
    here(&["status"]).code(1).says("the last one ended: MAX_ITERATIONS_REACHED").says("session: s1");
    here(&["ls"]).ok().says("ralph  2/2");
    // The last of several is shown, and a live one comes first.
    let mut second = Host::new(&world, "s2");
    second.start(&["do it"]);
    second.works().says(DONE).ends("PROMISE_ACCEPTED");
    here(&["logs"]).ok().says("PROMISE_ACCEPTED");
    let below = world.work().join("below");
    fs::create_dir(&below).unwrap();
    let mut command = world.command(crate::world::SWARM);
    command.current_dir(&below).args(["session", "logs", "--format", "json"]);
    assert_eq!(world.run(command).ok().json().as_array().unwrap().len(), 2);
    let third = Host::new(&world, "s3");
    third.start(&["do it"]);
    first.start(&["more"]);
    first.swarm_session(&["cancel"]).ok();
    let ran = here(&["logs"]).ok();
    assert!(!ran.out.contains("CANCELLED") && ran.out.contains("(started)"), "{}", ran.out);
}
