//! Getting a prompt into an interactive agent, end to end, against an agent that makes it hard.

use std::path::PathBuf;

use serde_json::Value;

use crate::world::{World, is_alive};

/// The fake agent's path, and under another name where a profile goes by the name.
pub(crate) fn tui() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/fake-tui.pl").to_owned()
}

/// The file that the fake agent writes what it got into.
pub(crate) fn record(world: &World) -> PathBuf {
    world.path("work/rec")
}

/// Returns the lines recorded so far.
pub(crate) fn recorded(world: &World) -> Vec<Value> {
    world.lines("work/rec").iter().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// Spawns the fake agent with some flags and knobs.
#[track_caller]
pub(crate) fn spawn(world: &World, flags: &[&str], knobs: &[&str]) {
    let rec = format!("REC={}", record(world).display());
    let envs: Vec<&str> = knobs.iter().chain([&rec.as_str()]).flat_map(|knob| ["--env", knob]).collect();
    let _ = world.spawn("w", &[flags, &["--prompt-via", "paste"], &envs].concat(), &[&tui()]).ok();
}

/// Waits until so many prompts were submitted and gives them.
#[track_caller]
pub(crate) fn prompts(world: &World, count: usize) -> Vec<String> {
    world.until(&format!("{count} prompts; got {:?}", recorded(world)), || {
        let all = recorded(world);
        (all.len() >= count)
            .then(|| all.iter().map(|v| v["prompt"].as_str().unwrap_or("?").to_owned()).collect())
    })
}

/// Waits until the worker has taken its prompt, so that a second one would have come by now.
#[track_caller]
pub(crate) fn settled(world: &World) {
    world.until("the prompt is taken", || {
        let log = std::fs::read_to_string(world.swarm_dir().join("daemon.log")).unwrap_or_default();
        log.contains("PromptSent").then_some(())
    });
}

#[test]
fn lost_enter_is_pressed_again() {
    let world = World::new();
    let text: String = (1..=40).map(|n| format!("line {n}\n")).collect();
    std::fs::write(world.path("work/p"), &text).unwrap();
    spawn(&world, &["--prompt-file", "p"], &["SETTLE=0.9"]);
    assert_eq!(prompts(&world, 1), [text.trim_end()]);
    settled(&world);
    let _ = world.swarm(&["send", "w", "once more\nand again"]).ok();
    assert_eq!(prompts(&world, 2)[1..], ["once more\nand again"]);
    assert_eq!(recorded(&world).len(), 2);
}

/// A text of so many lines, which the fake agent folds.
fn long_text(lines: usize) -> String {
    (1..=lines).map(|n| format!("line {n} of a long text\n")).collect()
}

#[test]
fn folded_text_is_sent_even_if_the_first_enter_has_no_effect() {
    for (knob, alt) in [("SETTLE=0.8", "ALT=0"), ("SETTLE=2.5", "ALT=0"), ("SETTLE=2.5", "ALT=1")] {
        let world = World::new();
        let text = long_text(200);
        std::fs::write(world.path("work/p"), &text).unwrap();
        spawn(&world, &["--prompt-file", "p"], &[knob, alt]);
        assert_eq!(prompts(&world, 1), [text.trim_end()], "{knob} {alt}");
        settled(&world);
        let _ = world.swarm(&["send", "w", "--file", "p"]).ok();
        // Accepted is what the agent has: nothing is waited for here.
        assert_eq!(recorded(&world).len(), 2, "{knob} {alt}");
    }
}

#[test]
fn agent_that_draws_late_has_the_text_when_send_returns() {
    for (late, alt) in [("LATE=0.5", "ALT=0"), ("LATE=2", "ALT=0"), ("LATE=2", "ALT=1")] {
        let world = World::new();
        spawn(&world, &["--ready-wait"], &[late, alt]);
        for (count, text) in ["hi", &long_text(200)].into_iter().enumerate() {
            std::fs::write(world.path("work/p"), text).unwrap();
            let _ = world.swarm(&["send", "w", "--file", "p"]).ok();
            assert_eq!(recorded(&world).len(), count + 1, "{late} {alt}");
        }
    }
}

#[test]
fn send_fails_if_the_text_stays_in_the_box() {
    let world = World::new();
    spawn(&world, &["--ready-wait"], &["DEAF=1"]);
    std::fs::write(world.path("work/p"), long_text(200)).unwrap();
    let ran = world.swarm(&["send", "w", "--file", "p"]).code(5);
    let _ = ran.warns("the agent did not accept it");
    assert!(recorded(&world).is_empty());
}

#[test]
fn dialog_that_replaces_the_input_box_gets_no_key() {
    let world = World::new();
    start_loop(&world, &["-n", "1", "--inactivity-timeout", "60"], &["SWAP=0.6", "LATE=3"]);
    let seen = world.until_status("w", "waiting");
    assert_eq!(seen["reason"], "trust dialog", "{seen}");
    // Longer than any Enter would be waited with.
    let _ = world.spawn("clock", &[], &["sleep", "4"]).ok();
    world.until_status("clock", "done");
    assert!(recorded(&world).is_empty(), "no key was pressed");
    let pane = seen["tmux"]["pane"].as_str().unwrap();
    let _ = world.tmux(&["send-keys", "-t", pane, "1"]).ok();
    world.until("the prompt after the answer", || (recorded(&world).len() == 2).then_some(()));
    assert_eq!(
        recorded(&world),
        [serde_json::json!({"trust": 1}), serde_json::json!({"prompt": "the task"})]
    );
    assert_eq!(world.ralph_state("w")["current_iteration"], 1);
}

#[test]
fn a_paste_that_reaches_the_box_behind_a_dialog_is_not_repeated() {
    let world = World::new();
    start_loop(&world, &["-n", "1", "--inactivity-timeout", "60"], &["SWAP=paste"]);
    let seen = world.until_status("w", "waiting");
    let pane = seen["tmux"]["pane"].as_str().unwrap();
    let _ = world.tmux(&["send-keys", "-t", pane, "1"]).ok();
    world.until("the prompt after the answer", || (recorded(&world).len() == 2).then_some(()));
    assert_eq!(
        recorded(&world),
        [serde_json::json!({"trust": 1}), serde_json::json!({"prompt": "the task"})]
    );
}

#[test]
fn clock_below_the_box_does_not_block_the_prompt_of_an_unknown_agent() {
    let world = World::new();
    let script = r#"stty raw -echo; printf '\033[2J\033[Hhello\r\n> '
        (n=0; while :; do n=$((n + 1)); printf '\0337\033[5;1Htick %s\0338' $n; sleep 0.1; done) &
        head -c 5 >got; printf '\r\nthanks\r\n> '; exec sleep 600"#;
    let flags = ["--prompt", "do it", "--prompt-via", "paste", "--ready-timeout", "20"];
    let _ = world.spawn_sh("w", &flags, script).ok();
    world.until("the text arrives", || (world.lines("work/got") == ["do it"]).then_some(()));
}

#[test]
fn slow_agent_start_loses_no_prompt() {
    let world = World::new();
    spawn(&world, &["--prompt", "do it"], &["BOOT=1.5"]);
    assert_eq!(prompts(&world, 1), ["do it"]);
    settled(&world);
    assert_eq!(recorded(&world).len(), 1);
}

#[test]
fn agent_that_is_never_ready_gets_no_prompt_and_is_reported() {
    let world = World::new();
    spawn(&world, &["--prompt", "do it", "--ready-timeout", "2"], &["BOOT=600"]);
    let seen = world.until_status("w", "waiting");
    assert!(seen["reason"].as_str().unwrap().contains("not ready after 2s"), "{seen}");
    assert!(recorded(&world).is_empty());
}

#[test]
fn prompt_of_many_lines_is_sent_once() {
    let world = World::new();
    std::fs::write(world.path("work/p"), "a\n\nb\nc\n").unwrap();
    spawn(&world, &["--prompt-file", "p"], &[]);
    assert_eq!(prompts(&world, 1), ["a\n\nb\nc"]);
    settled(&world);
    assert_eq!(recorded(&world).len(), 1);
}

#[test]
fn prompt_of_any_size_arrives_complete() {
    let world = World::new();
    spawn(&world, &["--ready-wait"], &[]);
    for (count, size) in [255, 1024, 4095, 16_300, 16_400, 200_000].into_iter().enumerate() {
        let text: String = (0..size).map(|i| char::from(b'a' + (i % 26) as u8)).collect();
        std::fs::write(world.path("work/p"), &text).unwrap();
        let _ = world.swarm(&["send", "w", "--file", "p"]).ok();
        let got = prompts(&world, count + 1).pop().unwrap();
        assert!(got == text, "{size} bytes became {}", got.len());
    }
}

#[test]
fn text_with_special_characters_is_sent_literally() {
    let world = World::new();
    spawn(&world, &["--ready-wait"], &[]);
    let odd = "a \\\nb $HOME `id` $(id) \"q\" 's' !! %d \\n ~ * #{pid} #(id) ; Enter";
    let texts = ["- [ ] do", "--help", "---\ntitle: x\n---\nbody", "é日🦀 ✓", odd];
    for (count, text) in texts.iter().enumerate() {
        let _ = world.swarm(&["send", "w", "--", text]).ok();
        assert_eq!(prompts(&world, count + 1).pop().unwrap(), *text);
    }
    std::fs::write(world.path("work/dash"), "-\n").unwrap();
    let _ = world.swarm(&["send", "w", "--file", "dash"]).ok();
    assert_eq!(prompts(&world, texts.len() + 1).pop().unwrap(), "-");
}

#[test]
fn stdin_and_argument_prompts_are_literal() {
    let world = World::new();
    let odd = "- [ ] a \\\nb $HOME `id` $(id) \"q\" 's' !! %d \\n ~ * #{pid}";
    std::fs::write(world.path("work/p"), odd).unwrap();
    let stdin = ["--prompt-file", "p", "--prompt-via", "stdin"];
    let _ = world.spawn_sh("i", &stdin, "cat >got.i").ok();
    let _ = world
        .spawn("a", &["--prompt", odd, "--prompt-via", "arg"], &["sh", "-c", r#"printf %s "$0" >got.a"#])
        .ok();
    for name in ["i", "a"] {
        // Standard input ends after the prompt.
        world.until_status(name, "done");
        assert_eq!(std::fs::read_to_string(world.path(format!("work/got.{name}"))).unwrap(), odd);
    }
}

#[test]
fn a_trust_dialog_is_not_answered() {
    let world = World::new();
    spawn(&world, &["--prompt", "hi"], &["TRUST=1"]);
    let seen = world.until_status("w", "waiting");
    assert_eq!(seen["reason"], "trust dialog", "{seen}");
    assert!(seen["screen"].to_string().contains("No, exit"), "{seen}");
    assert!(recorded(&world).is_empty());
    // A person answers; then the prompt goes in.
    let pane = seen["tmux"]["pane"].as_str().unwrap();
    let _ = world.tmux(&["send-keys", "-t", pane, "2"]).ok();
    world.until("the prompt after the answer", || (recorded(&world).len() == 2).then_some(()));
    assert_eq!(recorded(&world), [serde_json::json!({"trust": 1}), serde_json::json!({"prompt": "hi"})]);
}

#[test]
fn unknown_dialog_gets_no_prompt() {
    let world = World::new();
    spawn(&world, &["--prompt", "2 files need work", "--ready-timeout", "2"], &["THEME=1"]);
    let shown = |seen: &Value| seen["screen"].to_string().contains("Select theme");
    world.until("it waits and shows why", || {
        Some(world.status("w")).filter(|seen| seen["status"] == "waiting" && shown(seen))
    });
    assert!(recorded(&world).is_empty());
}

#[test]
fn done_pattern_in_the_prompt_does_not_count() {
    for (flags, knobs) in [(&[][..], &["ALT=0"][..]), (&["--size", "60x30"], &["ECHO=1"])] {
        let world = World::new();
        let text = "Work through all of it, and only when everything is really finished print TASK_DONE";
        let flags = [&["--done-pattern", "TASK_DONE", "--prompt", text], flags].concat();
        spawn(&world, &flags, &[&["WORK=1", "REPLY=so far"], knobs].concat());
        prompts(&world, 1);
        settled(&world);
        world.until("it has answered", || world.swarm(&["peek", "w"]).out.contains("so far").then_some(()));
        // A pattern that was seen would end it after a few quiet seconds.
        let _ = world.spawn("clock", &[], &["sleep", "7"]).ok();
        world.until_status("clock", "done");
        let seen = world.status("w");
        assert_eq!(seen["status"], "running", "{knobs:?}: {seen}\n{}", world.report());
    }
}

#[test]
fn done_pattern_in_the_agents_output_counts() {
    let world = World::new();
    let flags = ["--done-pattern", "TASK_DONE", "--prompt", "When finished print TASK_DONE"];
    spawn(&world, &flags, &["ECHO=1", "WORK=1", "REPLY=TASK_DONE"]);
    assert_eq!(world.until_status("w", "done")["reason"], "done pattern matched");
    assert_eq!(recorded(&world).len(), 1);
}

#[test]
fn done_pattern_of_an_earlier_run_does_not_end_a_new_one() {
    let world = World::new();
    std::fs::write(world.path("work/p"), "go\n").unwrap();
    let mut agent = world.agent("a");
    let cmd = agent.command();
    let cmd: Vec<&str> = cmd.iter().map(String::as_str).collect();
    let flags = ["--ralph", "--prompt-file", "p", "-n", "3", "-d", "--done-pattern", "DONE_X"];
    let _ = world.spawn("l", &flags, &cmd).ok();
    agent.until_run(&world, 1);
    // Taken back by the pattern's document: what a failed run printed counts when it ends.
    agent.tell("print nothing yet");
    agent.tell("exit 1");
    agent.until_run(&world, 2);
    world.crash_daemon();
    world.start_daemon();
    assert_eq!(world.status("l")["status"], "running");
    agent.tell("exit 0");
    agent.until_run(&world, 3);
    agent.tell("print DONE_X");
    agent.tell("exit 0");
    assert_eq!(world.until_status("l", "done")["reason"], "done pattern matched");
}

#[test]
fn done_pattern_printed_in_pieces_matches() {
    let world = World::new();
    let pieces = r"printf 'ALL\033[1Ctasks\033[1Cdone\n'; read x";
    let colours = r"printf '\033[32mTASK\033[0m_\033[1mDONE\033[0m\n\033]8;;http://x\033\\link\033]8;;\033\\ \033[3'; read x";
    let _ = world.spawn_sh("p", &["--done-pattern", "ALL tasks done"], pieces).ok();
    let _ = world.spawn_sh("c", &["--done-pattern", "TASK_DONE"], colours).ok();
    for name in ["p", "c"] {
        assert_eq!(world.until_status(name, "done")["reason"], "done pattern matched");
        let log = world.swarm(&["logs", name]).ok().out;
        assert!(!log.contains('\u{1b}'), "{log:?}");
    }
    let _ = world.swarm(&["logs", "c"]).ok().says("TASK_DONE").says("link");
}

#[test]
fn multibyte_and_invalid_text_do_not_panic() {
    let world = World::new();
    let text = "é日🦀".repeat(300);
    let script = r#"printf '%s\n\033✓\n\377\376\200\n' "$0"; read x"#;
    let _ = world
        .spawn("w", &["--prompt", &text, "--prompt-via", "arg", "--tag", &text], &["sh", "-c", script])
        .ok();
    world.until("it printed", || world.swarm(&["peek", "w"]).out.contains('🦀').then_some(()));
    let pid = world.daemon_pid();
    for columns in (20..=120).step_by(7) {
        let mut ls = world.command(crate::world::SWARM);
        ls.arg("ls").env("COLUMNS", columns.to_string());
        let _ = world.run(ls).ok();
    }
    let _ = world.swarm(&["logs", "w"]).ok();
    let _ = world.swarm(&["status", "w"]).ok();
    let _ = world.swarm(&["send", "w", &text]).ok();
    world.until_status("w", "done");
    assert_eq!(world.daemon_pid(), pid);
}

#[test]
fn pane_in_copy_mode_receives_sent_text() {
    let world = World::new();
    spawn(&world, &["--ready-wait"], &[]);
    let pane = world.status("w")["tmux"]["pane"].as_str().unwrap().to_owned();
    let _ = world.tmux(&["copy-mode", "-t", &pane]).ok();
    let _ = world.swarm(&["send", "w", "are you there"]).ok();
    assert_eq!(prompts(&world, 1), ["are you there"]);
}

#[test]
fn prompt_that_the_agent_does_not_accept_is_reported() {
    let world = World::new();
    spawn(&world, &["--prompt", "do it"], &["DEAF=1"]);
    let seen = world.until_status("w", "waiting");
    assert!(seen["reason"].as_str().unwrap().contains("did not accept it"), "{seen}");
}

#[test]
fn agent_that_exits_during_the_paste_has_failed() {
    let world = World::new();
    spawn(&world, &["--prompt", "do it"], &["DIE=paste"]);
    assert_eq!(world.until_status("w", "failed")["exit_code"], 3);
    let _ = world.spawn("next", &["--prompt-via", "stdin", "--prompt", "x"], &["cat"]).ok();
    world.until_status("next", "done");
}

// ---- loops ----

/// A loop around the fake agent under the name of a known one, with its screen.
fn start_loop(world: &World, flags: &[&str], knobs: &[&str]) {
    std::fs::write(world.path("work/p"), "the task\n").unwrap();
    std::fs::create_dir(world.path("bin")).unwrap();
    std::os::unix::fs::symlink(tui(), world.path("bin/claude")).unwrap();
    let rec = format!("REC={}", record(world).display());
    let envs: Vec<&str> =
        knobs.iter().chain([&rec.as_str(), &"ALT=1"]).flat_map(|knob| ["--env", knob]).collect();
    let claude = world.path("bin/claude");
    let head = ["--ralph", "--prompt-file", "p", "-d"];
    let _ = world.spawn("w", &[&head, flags, &envs].concat(), &[claude.to_str().unwrap()]).ok();
}

#[test]
fn loop_pastes_once_per_iteration_and_ends_it_by_inactivity() {
    let world = World::new();
    start_loop(&world, &["-n", "2", "--inactivity-timeout", "4"], &["WORK=1", "SETTLE=0.7"]);
    world.until_status("w", "done");
    assert_eq!(prompts(&world, 2), ["the task", "the task"]);
    let log = world.iterations_log("w");
    assert_eq!(log.matches("exit=inactivity").count(), 2, "{log}");
    assert_eq!(world.ralph_state("w")["total_failures"], 0);
    assert!(!log.contains("WARN"), "{log}");
}

#[test]
fn done_pattern_of_the_agent_ends_the_loop() {
    let world = World::new();
    let flags = ["-n", "5", "--inactivity-timeout", "30", "--done-pattern", "ALL IS WELL"];
    start_loop(&world, &flags, &["WORK=1", "REPLY=ALL IS WELL"]);
    assert_eq!(world.until_status("w", "done")["reason"], "done pattern matched");
    assert_eq!(prompts(&world, 1), ["the task"]);
    assert_eq!(world.ralph_state("w")["current_iteration"], 1);
}

#[test]
fn a_loop_that_waits_on_a_dialog_is_not_killed() {
    let world = World::new();
    start_loop(&world, &["-n", "3", "--inactivity-timeout", "2"], &["TRUST=1"]);
    let seen = world.until_status("w", "waiting");
    let pid: u32 = seen["pid"].as_u64().unwrap().try_into().unwrap();
    let _ = world.spawn("clock", &[], &["sleep", "6"]).ok();
    world.until_status("clock", "done");
    assert!(is_alive(pid));
    let seen = world.status("w");
    assert_eq!((&seen["status"], &seen["reason"]), (&"waiting".into(), &"trust dialog".into()));
    assert_eq!(world.ralph_state("w")["current_iteration"], 1);
    assert!(recorded(&world).is_empty());
}

#[test]
fn a_crash_around_the_paste_gives_one_prompt() {
    for point in ["deliver:1", "paste:1", "enter:1", "deliver+:1"] {
        let mut world = World::new();
        world.set("SWARM_CRASH_AT", point);
        let first = world.start_daemon();
        world.unset("SWARM_CRASH_AT");
        start_loop(&world, &["-n", "1", "--inactivity-timeout", "60"], &["WORK=1"]);
        world.until("the first daemon dies", || (!is_alive(first)).then_some(()));
        world.start_daemon();
        assert_eq!(prompts(&world, 1), ["the task"], "{point}");
        world.until(&format!("{point}: it runs"), || {
            let status = world.status("w");
            (status["status"] == "running" || status["status"] == "waiting").then_some(())
        });
        assert_eq!(world.status("w")["reason"], Value::Null, "{point}");
        assert_eq!(recorded(&world).len(), 1, "{point}");
    }
}

#[test]
fn a_gemini_with_a_bare_p_gets_its_prompt_on_standard_input() {
    let world = World::new();
    std::fs::create_dir(world.path("bin")).unwrap();
    let script =
        "#!/bin/sh\ncase \"$*\" in *-p*) echo usage; exit 1;; esac\nprintf '%s\\n' \"$*\" >args; cat >got\n";
    let gemini = world.path("bin/gemini");
    std::fs::write(&gemini, script).unwrap();
    std::fs::set_permissions(&gemini, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let text = "a long prompt\n".repeat(20_000);
    std::fs::write(world.path("work/p"), &text).unwrap();
    let command = [gemini.to_str().unwrap(), "-y", "-p"];
    let _ = world.spawn("w", &["--prompt-file", "p", "--ralph", "-n", "1", "-d"], &command).ok();
    world.until_status("w", "done");
    assert_eq!(world.lines("work/args"), ["-y"]);
    assert_eq!(std::fs::read_to_string(world.path("work/got")).unwrap(), text);
}

#[test]
fn prompt_that_cannot_be_an_argument_is_refused_at_spawn() {
    let w = World::new();
    let agent = w.agent("a");
    w.write("long.md", &"x".repeat(120_001));
    w.write("nul.md", "a\0b");
    for (file, why) in [("long.md", "it is longer than 120000 bytes"), ("nul.md", "it contains a NUL byte")] {
        let head = ["spawn", "--name", "one", "--prompt-via", "arg", "--prompt-file", file];
        for tail in [&["--"][..], &["--ralph", "-n", "2", "-d", "--"]] {
            let words = head.iter().chain(tail).map(|word| (*word).to_owned());
            let ran = w.swarm(&words.chain(agent.command()).collect::<Vec<_>>()).code(1);
            let _ =
                ran.warns(&format!("the prompt cannot be an argument: {why}\n")).warns("--prompt-via stdin");
        }
    }
    assert_eq!((w.swarm(&["ls", "--format", "names"]).ok().out.as_str(), agent.starts()), ("", 0));
    w.write("fits.md", &"x".repeat(120_000));
    w.spawn_agent("one", &agent, &["--prompt-via", "arg", "--prompt-file", "fits.md"]);
}
