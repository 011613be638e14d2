//! Hooks when something is odd: a hook exits with 0, holds nobody by mistake, and keeps the loop.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::turns::{Heard, Host, assistant, is_open_in};
use crate::world::{SWARM, World};

const DONE: &str = "<promise>DONE</promise>";

#[test]
fn repeated_stop_counts_once() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.start(&["build it"]);
    host.works();
    host.lines(&[assistant(70, json!([{"type":"text","text":"one"}]))]);
    let input = host.input("Stop", "one");
    let first = Heard::of(host.hook("stop", &input));
    // A hook that is called after the first has answered may be the next stop's: the agent is kept going, without the
    // task.
    let has_task = |heard: &Heard| heard.block.as_ref().unwrap().contains("build it");
    let second = Heard::of(host.hook("stop", &input));
    assert_eq!((has_task(&first), has_task(&second)), (true, false));
    host.takes(&first);
    assert_eq!(host.status()["iteration"], 2);
    // Side by side, in a later turn, with the same words.
    host.works();
    host.lines(&[assistant(71, json!([{"type":"text","text":"one"}]))]);
    let heard = host.several(&host.input("Stop", "one"), 2);
    let [answer] = &answers(&heard)[..] else { panic!("{heard:?}") };
    assert!(has_task(answer));
    host.takes(answer);
    assert_eq!(host.status()["iteration"], 3);
    assert_eq!(host.found().len(), 2);
    host.lines(&[assistant(72, json!([{"type":"text","text":DONE}]))]);
    let heard = host.several(&host.input("Stop", DONE), 2);
    let [answer] = &answers(&heard)[..] else { panic!("{heard:?}") };
    answer.ends("PROMISE_ACCEPTED");
    assert_eq!(host.found().len(), 3);
}

/// Those of several hooks that answered.
fn answers(heard: &[Heard]) -> Vec<&Heard> {
    heard.iter().filter(|heard| **heard != Heard::default()).collect()
}

#[test]
fn exactly_one_of_twenty_hooks_of_a_stop_answers() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.start(&["build it"]);
    for turn in 1..=3 {
        host.works();
        host.lines(&[assistant(70 + turn, json!([{"type":"text","text":"one"}]))]);
        let heard = host.several(&host.input("Stop", "one"), 20);
        let [answer] = &answers(&heard)[..] else { panic!("{heard:?}\n{:?}", host.log()) };
        assert!(answer.goes_on().contains("build it"));
        host.takes(answer);
        assert_eq!(host.status()["iteration"], turn + 1);
    }
}

#[test]
fn hook_started_before_another_answered_prints_nothing() {
    let world = World::new();
    let (mut host, _, input) = begun(&world);
    host.lines(&[assistant(70, json!([{"type":"text","text":"one"}]))]);
    let go = world.path("go");
    let mut shell = world.command("sh");
    let script = format!("until [ -e {} ]; do :; done; \"$1\" hook \"$2\" || exit 0", go.display());
    shell.args(["-c", &script, "swarm-hook", SWARM, "stop"]).current_dir(&host.dir);
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut late = shell.spawn().unwrap();
    late.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
    // Its start is known to a hundredth of a second.
    std::thread::park_timeout(std::time::Duration::from_millis(50));
    let first = Heard::of(host.hook("stop", &input));
    first.goes_on();
    fs::write(&go, "").unwrap();
    Heard::of(late.wait_with_output().unwrap().into()).is_let();
    host.takes(&first);
    assert_eq!((host.status()["iteration"].clone(), host.found().len()), (json!(2), 1));
    host.works().says("two").goes_on();
}

#[test]
fn stop_waits_for_a_locked_state_file() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.start(&["build it"]);
    host.works();
    host.lines(&[assistant(70, json!([{"type":"text","text":"one"}]))]);
    let lock = host.lock();
    let child = host.begin("stop", &host.input("Stop", "one"));
    let pid = child.id();
    // Far longer than its holder needs, and far shorter than its host waits.
    world.until("the hook waits for the lock", || is_open_in(pid, &lock).then_some(()));
    std::thread::park_timeout(std::time::Duration::from_millis(500));
    drop(lock);
    let heard = Heard::of(child.wait_with_output().unwrap().into());
    assert!(heard.goes_on().contains("build it"));
}

#[test]
fn lock_that_is_never_released_allows_the_stop_and_is_logged() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.start(&["build it"]);
    host.works();
    let lock = host.lock();
    let start = std::time::Instant::now();
    host.says("one").is_let();
    // Its host gives it ten seconds.
    let took = start.elapsed().as_secs();
    assert!((5..10).contains(&took), "{took}");
    drop(lock);
    let last = host.log().pop().unwrap();
    assert_eq!((&last["decision"], &last["iteration"]), (&json!("allow"), &json!(1)));
    assert!(last["reason"].as_str().unwrap().starts_with("the loop's state file stayed locked"), "{last}");
    assert_eq!(host.status()["active"], true);
}

#[test]
fn a_stop_whose_input_names_no_session_is_logged() {
    let world = World::new();
    let (host, _, _) = begun(&world);
    for bytes in [&b"garbage"[..], b"{\"cwd\":\"/\"}", b""] {
        Heard::of(host.hook_bytes("stop", bytes)).is_let();
    }
    let log = fs::read_to_string(world.swarm_dir().join("sessions/log.jsonl")).unwrap();
    assert_eq!(log.matches("the input of a Stop hook was not JSON with a session_id").count(), 3, "{log}");
    host.swarm_session(&["ls"]).ok().says("s1");
}

#[test]
fn same_text_in_the_next_turn_is_another_stop() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.start(&["build it", "-n", "4"]);
    for _ in 0..3 {
        host.says("stuck").goes_on();
    }
    host.says("stuck").ends("MAX_ITERATIONS_REACHED");
}

#[test]
fn stop_of_a_sub_agent_is_ignored() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.start(&["build it"]);
    host.works();
    let mut input = host.input("SubagentStop", DONE);
    input["agent_type"] = json!("general-purpose");
    Heard::of(host.hook("subagent-stop", &input)).is_let();
    input["agent_type"] = json!("");
    Heard::of(host.hook("subagent-stop", &input)).is_let();
    // Also where somebody's settings call the wrong word for it.
    Heard::of(host.hook("stop", &input)).is_let();
    assert_eq!(
        (host.status()["active"].clone(), host.status()["iteration"].clone()),
        (json!(true), json!(1))
    );
    assert!(host.found().is_empty());
    host.says(DONE).ends("PROMISE_ACCEPTED");
}

#[test]
fn running_background_tasks_allow_the_stop_and_keep_the_loop() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.start(&["build it"]);
    host.more = json!({"background_tasks": [{"id":"1","status":"running"}]});
    let heard = host.works().says("waiting");
    assert_eq!(heard.block, None);
    assert_eq!(
        (host.status()["active"].clone(), host.status()["iteration"].clone()),
        (json!(true), json!(1))
    );
    host.more = json!({"background_tasks": [{"id":"1","status":"completed"}]});
    host.prompt("<task-notification>1</task-notification>");
    host.says("it is back").goes_on();
    // The work before the wait is not forgotten.
    host.says(DONE).ends("PROMISE_ACCEPTED");
}

#[test]
fn codex_hooks_work_without_a_block_cap() {
    let world = World::new();
    let mut host = Host::new(&world, "c1");
    host.env = vec![("CLAUDECODE".into(), "1".into())];
    host.start(&["build it", "-n", "30"]);
    let item = |payload: Value| json!({"type":"response_item","timestamp":"2099-01-01T00:00:00.000Z","payload":payload});
    for turn in 1..=12 {
        host.more = json!({"turn_id": format!("u{turn}")});
        host.lines(&[item(
            json!({"type":"message","role":"assistant","content":[{"type":"output_text","text":"no"}]}),
        )]);
        host.stop("no").goes_on();
    }
    host.lines(&[item(
        json!({"type":"function_call","call_id":"k1","name":"exec_command","arguments":"{}"}),
    )]);
    host.lines(&[item(
        json!({"type":"message","role":"assistant","content":[{"type":"output_text","text":DONE}]}),
    )]);
    host.more = json!({"turn_id": "u13"});
    let heard = host.stop(DONE);
    assert_eq!(heard, Heard::default());
    assert_eq!(host.found().last().unwrap(), "found \"PROMISE_ACCEPTED\"");
}

#[test]
fn older_claude_without_last_message_and_tasks_is_continued() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.tells_last = false;
    host.more = json!({"background_tasks": null, "session_crons": null, "prompt_id": null});
    host.env = vec![("CLAUDECODE".into(), "1".into())];
    host.start(&["build it", "-n", "30"]);
    for turn in 0..10 {
        host.says(&format!("turn {turn}")).goes_on();
    }
    host.works().says(DONE).ends("PROMISE_ACCEPTED");
}

/// A loop in its first turn, its state file, and what a stop would tell.
fn begun(world: &World) -> (Host<'_>, String, Value) {
    let mut host = Host::new(world, "s1");
    host.start(&["build it"]);
    host.works();
    let file = fs::read_to_string(host.state_file()).unwrap();
    let input = host.input("Stop", "one");
    (host, file, input)
}

#[test]
fn full_disk_allows_the_stop_and_keeps_the_loop() {
    let world = World::new();
    let (mut host, file, input) = begun(&world);
    let mut sh = world.command("sh");
    // Without the signal a write fails as on a full disk.
    sh.args(["-c", &format!("trap '' XFSZ; ulimit -f 0; exec {SWARM} hook stop")]).current_dir(&host.dir);
    Heard::of(host.hook_by(sh, input.to_string().as_bytes())).is_let();
    assert_eq!(fs::read_to_string(host.state_file()).unwrap(), file);
    let litter = fs::read_dir(world.work().join(".claude")).unwrap().count();
    assert_eq!(litter, 1);
    host.says("one").goes_on();
}

#[test]
fn missing_state_directory_is_created_and_a_file_there_allows_the_stop() {
    let world = World::new();
    let (host, file, input) = begun(&world);
    let dir = world.swarm_dir();
    fs::rename(&dir, world.path("away")).unwrap();
    fs::write(&dir, "a file").unwrap();
    Heard::of(host.hook("stop", &input)).is_let();
    assert_eq!(fs::read_to_string(host.state_file()).unwrap(), file);
    fs::remove_file(&dir).unwrap();
    // The book is lost with it; the loop is not.
    Heard::of(host.hook("stop", &input)).goes_on();
    assert_eq!(host.status()["iteration"], 2);
}

#[test]
fn unwritable_state_directory_or_project_allows_the_stop() {
    let world = World::new();
    let (mut host, file, input) = begun(&world);
    // Nobody makes a directory below a file, not the superuser either.
    fs::write(world.path("plain"), "").unwrap();
    let mut command = host.hook_command("stop");
    command.env("SWARM_DIR", world.path("plain/below"));
    Heard::of(host.hook_by(command, input.to_string().as_bytes())).is_let();
    assert_eq!(fs::read_to_string(host.state_file()).unwrap(), file);
    if !nix::unistd::geteuid().is_root() {
        let mode = |bits| {
            fs::set_permissions(world.work().join(".claude"), fs::Permissions::from_mode(bits)).unwrap()
        };
        mode(0o500);
        let heard = Heard::of(host.hook("stop", &input));
        mode(0o700);
        heard.is_let();
        assert_eq!(fs::read_to_string(host.state_file()).unwrap(), file);
        assert!(host.log().last().unwrap()["reason"].as_str().unwrap().contains("could not be written"));
    }
    host.says("one").goes_on();
}

#[test]
fn hook_exits_with_0_and_prints_nothing_on_invalid_input() {
    let world = World::new();
    let (host, file, input) = begun(&world);
    let deep = [b'['; 200_000];
    let long = format!("{{\"session_id\":\"another\",\"x\":\"{}\"}}", "x".repeat(20 << 20));
    let inputs: [&[u8]; 9] = [
        b"",
        b"\n",
        b"null",
        b"garbage",
        b"\xff\xfe\0",
        b"{\"session_id\":",
        b"{\"session_id\":7,\"cwd\":[]}",
        &deep,
        long.as_bytes(),
    ];
    for bytes in inputs {
        for event in ["stop", "stop-failure", "user-prompt-submit", "codex-notify", "no-such-event"] {
            Heard::of(host.hook_bytes(event, bytes)).is_let();
        }
    }
    Heard::of(host.hook("stop", &input)).goes_on();
    assert_eq!(
        fs::read_to_string(host.state_file()).unwrap(),
        file.replace("iteration: 1\n", "iteration: 2\n")
    );
}

#[test]
fn unknown_or_missing_events_and_unknown_fields_are_accepted() {
    let world = World::new();
    let (host, _, mut input) = begun(&world);
    input["hook_event_name"] = json!("Later");
    input["new_field"] = json!({"deep": [1, {"er": null}]});
    for words in [
        &["hook", "later"][..],
        &["hook"],
        &["hook", "--stop"],
        &["hook", "stop", "{", "more"],
        &["hook", ""],
    ] {
        let mut command = world.command(SWARM);
        command.args(words).current_dir(&host.dir);
        Heard::of(host.hook_by(command, input.to_string().as_bytes())).is_let();
    }
    Heard::of(host.hook("stop", &input)).goes_on();
}

#[test]
fn hook_works_with_closed_and_never_closed_input() {
    let world = World::new();
    let (host, _, input) = begun(&world);
    let mut sh = world.command("sh");
    sh.args(["-c", &format!("exec {SWARM} hook stop <&-")]).current_dir(&host.dir);
    Heard::of(world.run(sh)).is_let();
    // Never closed: what was written is all there is.
    let mut command = host.hook_command("stop");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.to_string().as_bytes()).unwrap();
    let waited = std::thread::spawn(move || child.wait_with_output().unwrap());
    world.until("the hook ends", || waited.is_finished().then_some(()));
    Heard::of(waited.join().unwrap().into()).goes_on();
    drop(stdin);
}

#[test]
fn hook_works_without_a_home_and_with_a_full_output() {
    let world = World::new();
    let (host, _, input) = begun(&world);
    let mut command = host.hook_command("stop");
    command.env_remove("HOME").env_remove("SWARM_DIR");
    host.hook_by(command, input.to_string().as_bytes()).ok();
    let mut sh = world.command("sh");
    sh.args(["-c", &format!("exec {SWARM} hook stop >/dev/full")]).current_dir(&host.dir);
    host.hook_by(sh, input.to_string().as_bytes()).ok();
}

#[test]
fn broken_state_file_allows_the_stop_and_is_reported_with_its_line() {
    let world = World::new();
    let (mut host, file, _) = begun(&world);
    let broken = file.replace("iteration: 1\n", "iteration: one\n");
    fs::write(host.state_file(), &broken).unwrap();
    host.says("one").is_let();
    assert_eq!(fs::read_to_string(host.state_file()).unwrap(), broken);
    host.swarm_session(&["status"]).code(1).warns("line 3").warns("fix that line");
    host.swarm_session(&["start", "build it"]).code(1).warns("line 3");
    host.swarm_session(&["logs"]).ok().says("line 3");
    fs::write(host.state_file(), &file).unwrap();
    host.says("one").goes_on();
}

#[test]
fn lost_or_damaged_loop_record_keeps_the_loop() {
    let world = World::new();
    let (mut host, _, _) = begun(&world);
    host.says("one").goes_on();
    let book = world.swarm_dir().join("sessions/s1/loop.json");
    for text in ["", "{", "[]", "{\"tool_calls\": \"many\"}", "\u{fffd}"] {
        fs::write(&book, text).unwrap();
        host.works().says("more").goes_on();
    }
    // One odd value does not take the others with it.
    let text = fs::read_to_string(&book).unwrap().replace("\"without_diff\": 0", "\"without_diff\": -1");
    assert!(text.contains("-1"));
    fs::write(&book, text).unwrap();
    host.says(DONE).ends("PROMISE_ACCEPTED");
    assert_eq!(host.found().len(), 7);
}

/// Numbers that look random and are the same each time.
fn next(seed: &mut u64) -> usize {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    usize::try_from(*seed >> 33).unwrap()
}

#[test]
fn hook_never_fails_on_damaged_files_and_input() {
    let world = World::new();
    let mut host = Host::new(&world, "s1");
    host.start(&["build it"]);
    host.works();
    host.lines(&[assistant(60, json!([{"type":"text","text":DONE}]))]);
    let input = host.input("Stop", "one").to_string().into_bytes();
    let book = world.swarm_dir().join("sessions/s1/loop.json");
    let read = |path: &std::path::Path| fs::read(path).unwrap();
    let sound = [input, read(&host.transcript), read(&host.state_file()), read(&book)];
    let mut seed = 0x9e37_79b9_7f4a_7c15;
    for round in 0..60 {
        let mut now = sound.clone();
        let bytes = &mut now[round % 4];
        for _ in 0..=next(&mut seed) % 4 {
            let at = next(&mut seed) % (bytes.len() + 1);
            let end = (at + next(&mut seed) % 5).min(bytes.len());
            bytes.splice(at..end, [b"\"{}[]\n\0\xff-9"[next(&mut seed) % 10]]);
        }
        let [input, transcript, file, book_bytes] = &now;
        fs::write(&host.transcript, transcript).unwrap();
        fs::write(host.state_file(), file).unwrap();
        fs::write(&book, book_bytes).unwrap();
        // The hook exits with 0 and prints JSON or nothing.
        Heard::of(host.hook_bytes("stop", input));
    }
}
