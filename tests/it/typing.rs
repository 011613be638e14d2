//! Input that people send: when it is typed, into which box, and the message when the result is in doubt.

use std::process::Stdio;

use serde_json::json;

use crate::prompts::{prompts, record, recorded, spawn, tui};
use crate::world::{SWARM, World, is_alive};

/// Spawns the fake agent as one that nobody knows and without a prompt: swarm does not wait for its screen.
#[track_caller]
fn spawn_unknown(world: &World, knobs: &[&str]) {
    let rec = format!("REC={}", record(world).display());
    let envs: Vec<&str> = knobs.iter().chain([&rec.as_str()]).flat_map(|knob| ["--env", knob]).collect();
    let _ = world.spawn("w", &envs, &[&tui()]).ok();
}

/// Waits until a text stands on the worker's screen.
#[track_caller]
fn until_shown(world: &World, text: &str) {
    world.until(&format!("the screen shows {text:?}"), || {
        world.swarm(&["peek", "w"]).out.contains(text).then_some(())
    });
}

/// Lets an agent with `GATE` come up.
fn open_gate(world: &World) {
    world.write("gate", "");
}

#[test]
fn send_waits_until_a_starting_agent_reads() {
    let world = World::new();
    spawn_unknown(&world, &["BOOT=1.5"]);
    // On a machine so busy that it is not up in time, it is told that the text may be lost.
    world.until("a text is taken", || {
        let sent = world.swarm(&["send", "w", "hi there"]);
        assert!(sent.code == Some(0) || sent.err.contains("may have lost"), "{sent:?}");
        (sent.code == Some(0)).then_some(())
    });
    assert_eq!(prompts(&world, 1), ["hi there"]);
}

#[test]
fn send_waits_until_the_prompt_is_delivered() {
    let world = World::new();
    spawn(&world, &["--prompt", "first"], &["GATE=gate"]);
    let mut second = world.follow(&["send", "w", "second"]);
    until_shown(&world, "starting");
    // Longer than a text for an agent that is not waited for would be held.
    let _ = world.spawn("clock", &[], &["sleep", "6"]).ok();
    world.until_status("clock", "done");
    assert!(!second.has_ended(), "{}", second.output());
    open_gate(&world);
    assert_eq!(second.wait(&world), 0, "{}", second.output());
    assert_eq!(prompts(&world, 2), ["first", "second"]);
}

#[test]
fn send_fails_if_the_agent_never_becomes_ready() {
    let world = World::new();
    spawn(&world, &["--prompt", "first", "--ready-timeout", "2"], &["GATE=gate"]);
    let ran = world.swarm(&["send", "w", "second"]).code(5);
    let _ = ran.warns("nothing was sent, since worker 'w' is not ready: not ready after 2s");
    spawn(&world, &["--prompt", "first", "--replace"], &["GATE=gate"]);
    let mut second = world.follow(&["send", "w", "second"]);
    until_shown(&world, "starting");
    let _ = world.swarm(&["kill", "w"]).ok();
    assert_eq!(second.wait(&world), 1, "{}", second.output());
    assert!(recorded(&world).is_empty());
}

#[test]
fn send_fails_if_the_text_may_be_lost() {
    let world = World::new();
    spawn_unknown(&world, &["GATE=gate"]);
    let mut send = world.follow(&["send", "w", "hi there"]);
    until_shown(&world, "hi there");
    open_gate(&world);
    match send.wait(&world) {
        1 => {
            send.says("the agent switched to reading single keys during the send, and may have lost the text")
        }
        // The machine is so busy that the gate was opened when nobody looked any more.
        0 => send.says("worker 'w' has not read it yet"),
        other => panic!("{other}: {}", send.output()),
    }
    until_shown(&world, "Welcome");
    assert!(recorded(&world).is_empty());
    let _ = world.swarm(&["send", "w", "once more"]).ok();
    assert_eq!(prompts(&world, 1), ["once more"]);
}

#[test]
fn line_for_a_busy_script_is_queued_with_a_warning() {
    let world = World::new();
    let script = r#"until [ -e gate ]; do sleep 0.05; done; read -r l; echo "got $l"; exec sleep 600"#;
    let _ = world.spawn_sh("w", &[], script).ok();
    let ran = world.swarm(&["send", "w", "hello"]).ok();
    let _ = ran.warns("swarm: warning: worker 'w' has not read the text yet; the terminal queues it\n");
    open_gate(&world);
    until_shown(&world, "got hello");
}

#[test]
fn line_longer_than_the_terminal_accepts_is_refused() {
    let world = World::new();
    let script = r#"while printf '> ' && read -r l; do echo "length ${#l}."; done"#;
    let _ = world.spawn_sh("w", &["--ready-wait"], script).ok();
    world.write("fits", &format!("{}\n", "p".repeat(4094)));
    world.write("long", &format!("short\n{}\n", "p".repeat(4095)));
    let _ = world.swarm(&["send", "w", "--file", "fits"]).ok();
    until_shown(&world, "length 4094.");
    let _ = world.swarm(&["send", "w", "--file", "long"]).code(1).warns("longer than 4094 bytes");
    let _ = world.swarm(&["send", "w", "end"]).ok();
    until_shown(&world, "length 3.");
    let logs = world.swarm(&["logs", "w"]).ok().out;
    assert_eq!(logs.matches("length").count(), 2, "{logs}");
    let flags = ["--replace", "--prompt-via", "paste", "--prompt-file", "long"];
    let _ = world.spawn_sh("w", &flags, script).ok();
    let seen = world.until_status("w", "waiting");
    assert!(seen["reason"].as_str().unwrap().contains("longer than 4094 bytes"), "{seen}");
}

#[test]
fn dialog_accepts_an_answer_and_no_prompt() {
    for order in ["TRUST=1", "TRUST=2"] {
        let world = World::new();
        spawn(&world, &["--prompt", "hi"], &[order]);
        world.until_status("w", "waiting");
        for text in ["2 files need work", "do this\nand that"] {
            let ran = world.swarm(&["send", "w", text]).code(1);
            let _ = ran.warns("the agent shows a dialog: trust dialog").warns("swarm attach w");
        }
        assert!(recorded(&world).is_empty());
        let yes = if order == "TRUST=1" { "2" } else { "1" };
        let _ = world.swarm(&["send", "w", yes]).ok();
        world.until("the prompt goes in", || (recorded(&world).len() == 2).then_some(()));
        assert_eq!(recorded(&world), [json!({"trust": 1}), json!({"prompt": "hi"})], "{order}");
    }
}

#[test]
fn a_list_that_looks_like_an_input_box_gets_no_prompt() {
    let world = World::new();
    spawn(&world, &["--prompt", "do it", "--ready-timeout", "2"], &["MENU=1"]);
    let seen = world.until_status("w", "waiting");
    assert!(seen["screen"].to_string().contains("vanilla"), "{seen}");
    assert!(recorded(&world).is_empty());
}

#[test]
fn text_that_looks_like_an_option_is_sent() {
    let world = World::new();
    spawn(&world, &["--prompt", "--help"], &[]);
    let texts = ["--help", "-h", "- [ ] do", "---\ntitle: x\n---\nbody", "--no-such-flag", "-"];
    for text in &texts[..5] {
        let _ = world.swarm(&["send", "w", text]).ok();
    }
    let mut send = world.command(SWARM);
    world.write("dash", "-");
    send.args(["send", "w", "-"]).stdin(std::fs::File::open(world.path("work/dash")).unwrap());
    let _ = world.run(send).ok();
    assert_eq!(prompts(&world, 7), [&["--help"][..], &texts].concat());
    let _ = world.swarm(&["send", "--help"]).ok().says("Type text into a worker");
    let _ = world.swarm(&["send", "w", "-"]).code(1).warns("nothing to send: standard input is empty");
    let _ = world.spawn_sh("v", &["--prompt", "---", "--prompt-via", "stdin"], "cat >got").ok();
    world.until_status("v", "done");
    assert_eq!(world.lines("work/got"), ["---"]);
}

#[test]
fn prompt_of_any_size_arrives_complete_by_every_route() {
    let world = World::new();
    for size in [255, 4095, 16_400, 200_000] {
        let text: String = (0..size).map(|i| char::from(b'a' + (i % 26) as u8)).collect();
        world.write("p", &text);
        let flags = ["--replace", "--prompt-file", "p", "--prompt-via"];
        let _ = world.spawn_sh("i", &[&flags[..], &["stdin"]].concat(), "cat >got.i").ok();
        let _ = std::fs::remove_file(record(&world));
        spawn(&world, &flags[..3], &[]);
        assert!(prompts(&world, 1) == [text.as_str()], "pasted: {size}");
        world.until_status("i", "done");
        assert!(world.lines("work/got.i") == [text.as_str()], "on standard input: {size}");
        let fits: String = text.chars().take(120_000).collect();
        let arg = ["--replace", "--prompt", &fits, "--prompt-via", "arg"];
        let print = r#"printf %s "$0" >got.a; printf %s "$1" >got.b"#;
        let _ = world.spawn("a", &arg, &["sh", "-c", print]).ok();
        world.until_status("a", "done");
        assert!(world.lines("work/got.a") == [fits.as_str()], "as argument: {size}");
        let _ = world.spawn("b", &["--replace"], &["sh", "-c", print, "x", &fits]).ok();
        world.until_status("b", "done");
        assert!(world.lines("work/got.b") == [fits.as_str()], "in the command: {size}");
    }
    world.write("p", &"p".repeat(1 << 20));
    let _ = world.swarm(&["send", "w", "--file", "p"]).code(1).warns("at most 1048576");
}

#[test]
fn open_standard_input_of_the_caller_does_not_block_spawn() {
    let world = World::new();
    let flags = ["spawn", "--name", "w", "--prompt", "hi", "--prompt-via", "stdin", "--"];
    let mut command = world.command(SWARM);
    command.args(flags).args(["sh", "-c", "cat >got"]).stdin(Stdio::piped()).stdout(Stdio::null());
    // The pipe stays open as long as the child is not dropped.
    let mut child = command.spawn().unwrap();
    world.until("spawn returns", || child.try_wait().unwrap().filter(std::process::ExitStatus::success));
    world.until_status("w", "done");
    assert_eq!(world.lines("work/got"), ["hi"]);
}

#[test]
fn users_tmux_settings_do_not_disturb_prompts() {
    let settings = "set -g base-index 1\nset -g pane-base-index 1\nset -g renumber-windows on\n\
                    set -g remain-on-exit on\nset -g default-shell /bin/false\nset -g prefix C-a\n";
    for sourced in [false, true] {
        let world = World::new();
        std::fs::create_dir_all(world.path("home/.config/tmux")).unwrap();
        std::fs::create_dir_all(world.path("home/.config/swarm")).unwrap();
        for file in ["home/.tmux.conf", "home/.config/tmux/tmux.conf"] {
            std::fs::write(world.path(file), settings).unwrap();
        }
        if sourced {
            let source = format!("[tmux]\nsource = \"{}\"\n", world.path("home/.tmux.conf").display());
            std::fs::write(world.path("home/.config/swarm/config.toml"), source).unwrap();
        }
        let _ = world.spawn("other", &[], &["sleep", "600"]).ok();
        spawn(&world, &["--prompt", "hi"], &[]);
        assert_eq!(prompts(&world, 1), ["hi"], "sourced: {sourced}");
        let _ = world.swarm(&["send", "w", "more"]).ok();
        assert_eq!(prompts(&world, 2)[1], "more");
        let _ = world.swarm(&["kill", "other"]).ok();
        let _ = world.swarm(&["send", "w", "again"]).ok();
        assert_eq!(prompts(&world, 3)[2], "again");
        let _ = world.spawn_sh("x", &[], "exit 5").ok();
        assert_eq!(world.until_status("x", "failed")["exit_code"], 5);
        let index = world.tmux(&["show-options", "-gv", "base-index"]).ok().out;
        assert_eq!(index.trim(), if sourced { "1" } else { "0" });
    }
}

#[test]
fn send_fails_if_the_agent_exits_on_the_text() {
    let world = World::new();
    spawn(&world, &["--ready-wait"], &["DIE=paste"]);
    let _ = world.swarm(&["send", "w", "job"]).code(1).warns("ended");
    assert_eq!(world.until_status("w", "failed")["exit_code"], 3);
}

#[test]
fn adopted_agent_accepts_sent_text() {
    let world = World::new();
    spawn(&world, &["--ready-wait"], &[]);
    let (seen, panes) = (world.status("w"), world.panes());
    for stop in [true, false] {
        if stop {
            let _ = world.swarm(&["daemon", "stop"]).ok();
        } else {
            world.crash_daemon();
        }
        world.start_daemon();
        let now = world.status("w");
        assert_eq!((&now["status"], &now["pid"]), (&json!("running"), &seen["pid"]));
        assert_eq!(world.panes(), panes);
        let before = recorded(&world).len();
        let _ = world.swarm(&["send", "w", "hi"]).ok();
        assert_eq!(prompts(&world, before + 1)[before], "hi");
    }
    assert!(is_alive(seen["pid"].as_u64().unwrap().try_into().unwrap()));
}

#[test]
fn only_an_answer_is_typed_into_a_question_of_an_unknown_agent() {
    let world = World::new();
    let ask = |name: &str, question: &str| {
        let script =
            format!("printf '{question}'; stty raw -echo; head -c 1 >{name}.key; stty sane; sleep 600");
        let _ = world.spawn_sh(name, &[], &script).ok();
        world.until_status(name, "waiting")
    };
    let list = ask("list", "Which flavour?\\n\\n> 1. mint\\n  2. vanilla\\n");
    assert_eq!(list["reason"], "a list to choose from");
    let yes_no = ask("yes", "Write over a.rs? [y/N] ");
    assert_eq!(yes_no["reason"], "a question to be answered with yes or no");
    for (name, answer) in [("list", "2"), ("yes", "y")] {
        let key = world.work().join(format!("{name}.key"));
        let attach = format!("hint: to see its screen and answer: swarm attach {name}");
        let offered = if name == "list" { "1, 2" } else { "y, n, yes, no" };
        let accepts = format!(
            "hint: it accepts: {offered}, or Enter (swarm send {name} ''); or answer in its window: swarm attach {name}\n"
        );
        for text in ["go on with the work", "stop"] {
            let ran = world.swarm(&["send", name, text]).code(1);
            let _ = ran.warns("the agent shows a dialog").warns(&accepts);
        }
        let _ = world.swarm(&["eof", name]).code(1).warns("the agent shows a dialog").warns(&attach);
        assert_eq!(std::fs::read(&key).unwrap(), b"", "no key was pressed");
        let _ = world.swarm(&["send", "--no-enter", name, answer]).ok();
        let has_answer = || (std::fs::read(&key).unwrap() == answer.as_bytes()).then_some(());
        world.until("the answer is there", has_answer);
    }
}

/// Spawns the fake agent with a list whose highlighted row is "Yes", and waits for the list.
#[track_caller]
fn spawn_asking(world: &World, knobs: &[&str]) {
    spawn_unknown(world, knobs);
    let seen = world.until_status("w", "waiting");
    assert_eq!(seen["reason"], "permission dialog", "{seen}");
}

#[test]
fn a_text_that_a_list_does_not_offer_presses_no_key() {
    let world = World::new();
    spawn_asking(&world, &["ASK=1"]);
    let accepts =
        "hint: it accepts: 1, 2, 3, or Enter (swarm send w ''); or answer in its window: swarm attach w\n";
    for text in ["no", "stop", "/cost", "y", "4"] {
        let ran = world.swarm(&["send", "w", text]).code(1);
        let _ = ran.warns("the agent shows a dialog: permission dialog").warns(accepts);
        let _ = world.swarm(&["send", "--keys", "w", text]).code(1).warns(accepts);
    }
    // Text for several workers is no answer, even where one of them offers it.
    for text in ["stop", "1", ""] {
        let _ = world.swarm(&["send", "--all", text]).code(1).warns("the agent shows a dialog");
    }
    // Keys are read in order: the first one that the agent got is the one of the answer.
    let _ = world.swarm(&["send", "w", "2"]).ok();
    until_shown(&world, "Welcome");
    assert_eq!(recorded(&world), [json!({"key": "2"}), json!({"ask": 2})]);
}

#[test]
fn enter_is_pressed_only_on_the_chosen_row() {
    for (digits, text, keys) in [
        ("move", "2", &["2", "\r"][..]),
        ("ignore", "1", &["1", "\r"]),
        ("move", "", &["\r"]),
        ("ignore", "3", &["3"]),
    ] {
        let world = World::new();
        spawn_asking(&world, &["ASK=1", &format!("DIGITS={digits}")]);
        let ran = world.swarm(&["send", "w", text]);
        let mut wanted: Vec<_> = keys.iter().map(|key| json!({"key": key})).collect();
        if keys.ends_with(&["\r"]) {
            let _ = ran.ok();
            wanted.push(json!({"ask": text.parse().unwrap_or(1)}));
            until_shown(&world, "Welcome");
        } else {
            let _ = ran.code(1).warns("the agent did not accept the answer '3'").warns("swarm attach w");
        }
        assert_eq!(recorded(&world), wanted, "{digits} {text:?}");
    }
}

#[test]
fn an_answer_does_not_answer_the_next_dialog_with_the_same_rows() {
    let world = World::new();
    spawn_asking(&world, &["ASK=2"]);
    let _ =
        world.swarm(&["send", "w", "1"]).ok().warns("worker 'w' shows a dialog again: permission dialog\n");
    assert_eq!(recorded(&world), [json!({"key": "1"}), json!({"ask": 1})]);
}

#[test]
fn a_key_that_a_question_ignores_is_not_followed_by_enter() {
    let world = World::new();
    let script =
        "stty raw -echo; printf 'Delete it? [Y/n] '; head -c 1 >got; head -c 1 >>got; stty sane; sleep 600";
    let _ = world.spawn_sh("w", &[], script).ok();
    world.until_status("w", "waiting");
    let _ = world.swarm(&["send", "w", "n"]).code(1).warns("the agent did not accept the answer 'n'");
    assert_eq!(std::fs::read(world.path("work/got")).unwrap(), b"n");
}

/// The keys stand behind the question then, and only Enter sends them.
#[test]
fn an_answer_to_a_question_that_reads_a_line_is_sent_with_enter() {
    let world = World::new();
    for (name, mode) in [("lines", ""), ("keys", "stty -icanon -icrnl;")] {
        let script =
            format!("{mode} printf 'Delete it? [y/N] '; head -c 2 >{name}.got; stty sane; sleep 600");
        let _ = world.spawn_sh(name, &[], &script).ok();
        world.until_status(name, "waiting");
        let _ = world.swarm(&["send", name, "y"]).ok();
        let got =
            || std::fs::read(world.work().join(format!("{name}.got"))).ok().filter(|got| got.len() == 2);
        let got = world.until("the answer is there", got);
        assert_eq!(got, if name == "lines" { *b"y\n" } else { *b"y\r" });
    }
}

#[test]
fn keys_arrive_as_keys_and_a_text_as_a_paste() {
    let world = World::new();
    let script =
        r#"printf '\033[?2004h> '; stty raw -echo; head -c 9 >keys; head -c 13 >paste; exec sleep 600"#;
    let _ = world.spawn_sh("w", &[], script).ok();
    until_shown(&world, ">");
    let _ = world.swarm(&["send", "--keys", "w", "/compact"]).ok();
    world.until("the keys arrive", || (world.lines("work/keys") == ["/compact\r"]).then_some(()));
    let _ = world.swarm(&["send", "w", "a"]).ok();
    world.until("the paste arrives", || (!world.lines("work/paste").is_empty()).then_some(()));
    assert_eq!(world.lines("work/paste"), ["\u{1b}[200~a\u{1b}[201~"]);
    let _ = world.swarm(&["send", "--keys", "w", "a\nb"]).code(1).warns("--keys accepts one line");
}

#[test]
fn a_slash_command_is_submitted_as_it_was_typed() {
    let world = World::new();
    spawn(&world, &["--ready-wait"], &["ALT=1"]);
    let _ = world.swarm(&["send", "--keys", "w", "/compact keep `x` and $(y);"]).ok();
    assert_eq!(prompts(&world, 1), ["/compact keep `x` and $(y);"]);
}

/// Starts a daemon that dies when it has typed a text and not pressed Enter, and has it do so.
#[track_caller]
fn die_while_typing(world: &mut World, spawn: impl FnOnce(&World)) {
    world.set("SWARM_CRASH_AT", "typed:1");
    let first = world.start_daemon();
    world.unset("SWARM_CRASH_AT");
    spawn(world);
    let _ = world.swarm(&["send", "w", "half a"]).code(3);
    world.until("the first daemon dies", || (!is_alive(first)).then_some(()));
    until_shown(world, "half a");
}

#[test]
fn text_is_not_appended_to_leftover_text_in_the_box() {
    let mut world = World::new();
    die_while_typing(&mut world, |world| spawn(world, &["--ready-wait"], &[]));
    let _ = world.swarm(&["send", "w", "whole"]).ok();
    assert_eq!(prompts(&world, 1), ["whole"]);
    // Text that was sent since then is not a leftover, though it is on the screen.
    let _ = world.swarm(&["send", "w", "--no-enter", "two "]).ok();
    let _ = world.swarm(&["send", "w", "halves"]).ok();
    assert_eq!(prompts(&world, 2)[1], "two halves");
}

#[test]
fn line_is_not_appended_to_a_leftover_line_on_the_terminal() {
    let mut world = World::new();
    die_while_typing(&mut world, |world| {
        let _ = world.spawn_sh("w", &[], "while read -r line; do echo \"$line\" >>got; done").ok();
    });
    let _ = world.swarm(&["send", "w", "whole"]).ok();
    world.until("the line is read", || (!world.lines("work/got").is_empty()).then_some(()));
    assert_eq!(world.lines("work/got"), ["whole"]);
}
