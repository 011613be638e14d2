//! `ui`: the full-screen interface in a terminal, against a real daemon.

use nix::sys::signal::Signal;
use serde_json::json;

use crate::attach::{Terminal, views};
use crate::hook_reports;
use crate::world::{SWARM, World, is_alive, signal};

/// Prints what it reads.
const READER: &str = "stty -echo; echo reads; while read -r line; do echo \"got $line\"; done";

fn open(world: &World) -> Terminal<'_> {
    let terminal = Terminal::sized(world, 0, ("100", "30"), &[SWARM, "ui"]);
    terminal.until_shows("? keys");
    terminal
}

/// Waits until a text is no longer on the screen.
#[track_caller]
fn until_hides(world: &World, terminal: &Terminal<'_>, text: &str) {
    world.until(&format!("no {text:?}"), || (!terminal.screen().contains(text)).then_some(()));
}

#[test]
fn keys_select_filter_message_attach_and_kill() {
    let world = World::new();
    let _ = world.spawn_sh("bad", &[], "exit 3").ok();
    let _ = world.spawn_sh("reader", &[], READER).ok();
    let _ = world.spawn_sh("other", &[], "echo other-screen; exec sleep 1000").ok();
    world.until_status("bad", "failed");
    let terminal = open(&world);
    terminal.until_shows("─ failed or lost (1)");
    terminal.until_shows("─ working (2)");
    assert!(terminal.screen().contains("1 failed or lost · 2 working"), "{}", terminal.screen());

    terminal.keys(&["j"]);
    terminal.until_shows("▸· other");
    terminal.until_shows("other-screen");
    terminal.keys(&["/", "reader", "Enter"]);
    terminal.until_shows("filter 'reader'");
    terminal.until_shows("▸· reader");
    until_hides(&world, &terminal, "· other");
    terminal.keys(&["Escape"]);
    terminal.until_shows("· other");

    terminal.keys(&["m", "by message", "Enter"]);
    terminal.until_shows("got by message");
    terminal.keys(&["Enter"]);
    world.until("the window is open", || (views(&world).len() == 1).then_some(()));
    world.until("the terminal shows the window alone", || {
        let screen = terminal.screen();
        (screen.contains("got by message") && !screen.contains("? keys")).then_some(())
    });
    terminal.keys(&["by hand", "Enter"]);
    terminal.until_shows("got by hand");
    terminal.keys(&["C-b", "d"]);
    terminal.until_shows("? keys");
    terminal.until_shows("─ working (2)");

    let pid = world.status("reader")["pid"].to_string();
    terminal.keys(&["K"]);
    terminal.until_shows(&format!("kill reader? ends sh (pid {pid}) [y/N]"));
    terminal.keys(&["n"]);
    terminal.until_shows("? keys");
    assert_eq!(world.status("reader")["status"], "running");
    terminal.keys(&["K", "y"]);
    world.until_status("reader", "killed");
    terminal.until_shows("─ the rest (1)");

    terminal.keys(&["q"]);
    terminal.until_shows("code 0");
    assert_eq!(terminal.tmux(&["display-message", "-p", "#{alternate_on}"]).out, "0\n");
    assert_eq!(world.status("other")["status"], "running");
}

#[test]
fn a_daemon_that_restarts_hangs_or_stops_is_reported_and_found_again() {
    let world = World::new();
    let _ = world.spawn_sh("first", &[], "exec sleep 1000").ok();
    let terminal = open(&world);
    terminal.until_shows("▸· first");
    let _ = world.swarm(&["daemon", "restart"]).ok();
    let _ = world.spawn_sh("second", &[], "exec sleep 1000").ok();
    terminal.until_shows("· second");
    world.crash_daemon();
    let daemon = world.until("the interface starts a daemon", || world.daemon_pid());
    terminal.until_shows("2 working");

    signal(daemon, Signal::SIGSTOP);
    let screen = terminal.until_shows("✖ the daemon does not answer; swarm retries");
    assert!(screen.contains("· second"), "{screen}");
    signal(daemon, Signal::SIGCONT);
    terminal.until_shows("2 working");

    let _ = world.swarm(&["daemon", "stop"]).ok();
    terminal.until_shows("✖ the daemon is stopped (swarm daemon start); swarm retries");
    assert!(world.daemon_pid().is_none(), "a stopped daemon stays stopped");
    let _ = world.swarm(&["daemon", "start"]).ok();
    terminal.until_shows("2 working");

    let pid = terminal.tmux(&["display-message", "-p", "#{pane_pid}"]).out.trim().to_owned();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let ui: u32 = children.split_whitespace().next().unwrap().parse().unwrap();
    signal(ui, Signal::SIGTERM);
    terminal.until_shows("code 143");
    assert_eq!(terminal.tmux(&["display-message", "-p", "#{alternate_on}"]).out, "0\n");
    assert!(!is_alive(ui));
}

#[test]
fn a_preview_shows_text_and_sends_no_sequences_to_the_terminal() {
    let world = World::new();
    let script = r"printf '\033]0;title\007\033[31mred\033[0m \377\376 日本語 🦀\r\nend\033[?1049h\033[5;5Hdeep'; exec sleep 1000";
    let _ = world.spawn_sh("odd", &[], script).ok();
    let terminal = open(&world);
    terminal.until_shows("deep");
    for (columns, lines) in [("50", "20"), ("20", "5"), ("120", "40")] {
        terminal.tmux(&["resize-window", "-x", columns, "-y", lines]).ok();
        world.until("the screen has the new size", || {
            let screen = terminal.tmux(&["capture-pane", "-p"]).out;
            let is_wide = columns == "120";
            let shown =
                screen.contains("? keys") && screen.contains("odd") && screen.contains("deep") == is_wide;
            shown.then_some(())
        });
    }
    assert_ne!(terminal.tmux(&["display-message", "-p", "#{pane_title}"]).out, "title\n");
    terminal.keys(&["v"]);
    until_hides(&world, &terminal, "─ working");
    terminal.keys(&["q"]);
    terminal.until_shows("─ working");
    terminal.keys(&["C-c"]);
    terminal.until_shows("code 0");
}

#[test]
fn ui_without_a_usable_terminal_prints_the_next_step() {
    let world = World::new();
    let _ = world.swarm(&["ui"]).code(1).warns("ui needs a terminal\nhint: without a terminal: swarm ls");
    let terminal = Terminal::run(&world, 0, &["env", "TERM=dumb", SWARM, "ui"]);
    let screen = terminal.until_shows("code 1");
    assert!(
        screen.contains("TERM is dumb") && screen.contains("hint: TERM=xterm-256color swarm ui"),
        "{screen}"
    );
}

#[test]
fn a_key_answers_the_request_of_the_selected_worker() {
    let (mut world, mut agent) = hook_reports::world();
    world.set("EDITOR", "printf 'Do task B\\n' >");
    world.hooked_loop(&[], &[]);
    agent.until_prompted(&world, 1);
    agent.tell(&format!("ask {}", json!({"tool_name": "Bash", "tool_input": {"command": "make"}})));
    let terminal = open(&world);
    terminal.until_shows("▸! l permission: Bash: make");
    terminal.until_shows("y n a allow, deny, always");
    let allowed = r#""decision":{"behavior":"allow"}"#;
    world.until("the hook has the answer", || {
        terminal.keys(&["y"]);
        agent.file("answers").contains(allowed).then_some(())
    });
    terminal.keys(&["e"]);
    let prompt = world.work().join("PROMPT.md");
    let edited = || std::fs::read_to_string(&prompt).is_ok_and(|text| text == "Do task B\n");
    world.until("the prompt is edited", || edited().then_some(()));
    terminal.until_shows("? keys");
    terminal.keys(&["f"]);
    terminal.until_shows("pause 1 loop after the current iteration? [y/N]");
    terminal.keys(&["y"]);
    world.until("the loop pauses", || (world.status("l")["paused_by"] == "user").then_some(()));
}
