//! A person at a terminal attaches to a worker: what they see, where their keys go, what they leave.
//!
//! The terminal is a pane of a tmux server of the test's own; a key is `send-keys`, the screen a capture.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::Signal;

use super::world::{Ran, SWARM, World, is_alive, signal};

/// A terminal in which a command runs; when that ends, `code N` stands there.
pub(crate) struct Terminal<'a> {
    world: &'a World,
    socket: PathBuf,
}

impl<'a> Terminal<'a> {
    /// One of 70x20.
    pub(crate) fn run(world: &'a World, number: usize, command: &[&str]) -> Self {
        Self::sized(world, number, ("70", "21"), command)
    }

    pub(crate) fn sized(
        world: &'a World,
        number: usize,
        (columns, lines): (&str, &str),
        command: &[&str],
    ) -> Self {
        let terminal = Self { world, socket: world.path(format!("tmux/terminal-{number}")) };
        let script = "trap : INT; \"$@\"; code=$?; trap '' INT; echo \"code $code\"; exec cat";
        let start =
            ["-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", lines, "--", "sh", "-c", script];
        terminal.tmux(&[&start[..], &["sh"], command].concat()).ok();
        terminal
    }

    /// One with `swarm attach`, and the worker's window is on it.
    pub(crate) fn look(world: &'a World, number: usize, args: &[&str]) -> Self {
        let terminal = Self::run(world, number, &[&[SWARM, "attach"], args].concat());
        world.until("somebody looks", || {
            let seen = terminal.screen();
            (views(world).len() == 1).then_some(()).or_else(|| {
                assert!(!seen.contains("code "), "{seen}");
                None
            })
        });
        terminal
    }

    pub(crate) fn tmux(&self, args: &[&str]) -> Ran {
        let mut command = self.world.command("tmux");
        command.arg("-S").arg(&self.socket).args(args);
        self.world.run(command)
    }

    pub(crate) fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat()).ok();
    }

    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J", "-S", "-"]).out
    }

    /// Waits for a text on the screen, and gives all of it.
    #[track_caller]
    pub(crate) fn until_shows(&self, text: &str) -> String {
        self.world.until(&format!("{text:?} on the terminal"), || {
            Some(self.screen()).filter(|screen| screen.contains(text))
        })
    }

    /// The terminal goes away, as when its window is closed.
    fn close(&self) {
        self.tmux(&["kill-server"]).ok();
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let mut command = self.world.command("tmux");
        drop(command.arg("-S").arg(&self.socket).arg("kill-server").output());
    }
}

/// The sessions of people who look: `SESSION ATTACHED PANES WORKER RUN` each.
pub(crate) fn views(world: &World) -> Vec<String> {
    let format = "#{session_name} #{session_attached} #{session_windows} #{@swarm_worker} #{@swarm_run}";
    let ran = world.tmux(&["list-panes", "-a", "-F", format]);
    ran.out.lines().filter(|line| line.starts_with("swarm-view-")).map(str::to_owned).collect()
}

/// Waits until nobody looks and each window has its own size, which it keeps.
#[track_caller]
fn until_no_trace(world: &World) {
    world.until("no trace of who looked", || {
        let sessions = world.tmux(&["list-sessions", "-F", "#{session_name}"]).ok().out;
        let format = "#{session_name} #{window_width}x#{window_height} #{window-size}";
        let windows = world.tmux(&["list-windows", "-a", "-F", format]).ok().out;
        let mut windows = windows.lines().filter(|line| line.starts_with("swarm "));
        let sized = windows.all(|line| line == "swarm 200x50 manual");
        (!sessions.contains("view") && sized).then_some(())
    });
}

#[test]
fn keys_typed_after_an_iteration_reach_no_other_worker() {
    let mut world = World::new();
    // The keys hold the loop.
    world.set("SWARM_RELEASE_DELAY_MS", "500");
    world.spawn_sh("other", &[], "stty -echo; cat >other.got").ok();
    let got = world.work().join("other.got");
    world.until("the other worker reads", || got.exists().then_some(()));
    let mut agent = world.agent("lp");
    world.spawn_loop("lp", &agent, &["-n", "3"]);
    let terminal = Terminal::look(&world, 0, &["lp"]);
    for run in 1..=3 {
        let seen = views(&world).join("\n");
        assert!(seen.contains(&format!(" 1 1 lp {run}")) && seen.lines().count() == 1, "{seen}");
        agent.tell("exit 0");
        world.until("the next run is on the terminal, or the end", || {
            terminal.keys(&["secret answer", "Enter"]);
            let next = format!(" lp {}", run + 1);
            let over = run == 3 && terminal.screen().contains("\ncode ");
            (over || views(&world).iter().any(|view| view.ends_with(&next))).then_some(())
        });
    }
    let screen = terminal.screen();
    // (What is printed just before tmux takes the terminal may be flushed by it.)
    for line in ["swarm: lp has ended (", "code 0"] {
        assert!(screen.contains(line), "no {line:?} in {screen}");
    }
    until_no_trace(&world);
    // Text that reaches it now shows that none reached it before.
    world.swarm(&["send", "other", "from the test"]).ok();
    let text = world.until("what was sent", || {
        fs::read_to_string(&got).ok().filter(|text| text.contains("from the test"))
    });
    assert_eq!(text.trim_end(), "from the test");
}

#[test]
fn attach_works_with_a_terminal_that_tmux_does_not_know() {
    let world = World::new();
    let mut agent = world.agent("w");
    let _ = world.spawn_agent("w", &agent, &[]);
    agent.tell("print here I am");
    let term = "TERM=xterm-no-such-terminal";
    let terminal = Terminal::run(&world, 0, &["env", term, SWARM, "attach", "w"]);
    let _ = terminal.until_shows("here I am");
    terminal.keys(&["C-b", "d"]);
    let screen = terminal.until_shows("code ");
    assert!(screen.contains("code 0"), "{screen}");
    let note = "tmux has no terminfo entry for 'xterm-no-such-terminal'; using xterm-256color";
    assert!(screen.replace('\n', "").contains(note), "{screen}");
    until_no_trace(&world);
}

#[test]
fn only_a_client_that_stays_is_told_of_the_end_of_the_worker() {
    let world = World::new();
    let mut agent = world.agent("w");
    let _ = world.spawn_agent("w", &agent, &[]);
    let terminal = Terminal::look(&world, 0, &["w"]);
    terminal.keys(&["C-b", "d"]);
    let screen = terminal.until_shows("code ");
    assert!(screen.contains("code 0") && !screen.contains("ended"), "{screen}");
    until_no_trace(&world);
    let terminal = Terminal::look(&world, 1, &["w", "--read-only"]);
    terminal.keys(&["C-c"]);
    agent.tell("print still here");
    terminal.until_shows("still here");
    agent.tell("exit 3");
    let screen = terminal.until_shows("code ");
    assert!(screen.contains("swarm: w has ended (") && screen.contains("code 0"), "{screen}");
    until_no_trace(&world);
}

#[test]
fn twenty_attaches_leave_the_tmux_server_and_sizes_unchanged() {
    let world = World::new();
    let _ = world.spawn_agent("other", &world.agent("other"), &[]);
    let _ = world.spawn_agent("w", &world.agent("w"), &[]);
    let server = world.tmux_pid();
    for round in 0..20 {
        let terminal = Terminal::look(&world, round, &["w"]);
        let clients = world.tmux(&["list-clients", "-F", "#{client_pid} #{session_name}"]).out;
        match round % 4 {
            0 => {
                let client = clients.lines().find_map(|line| line.split_once(" swarm-view-")).unwrap().0;
                signal(client.parse().unwrap(), Signal::SIGKILL);
                terminal.until_shows("code 137");
            }
            1 => terminal.close(),
            _ => {
                terminal.keys(&["C-b", "d"]);
                terminal.until_shows("code 0");
            }
        }
        until_no_trace(&world);
        assert!(is_alive(server) && world.tmux_pid() == server);
    }
    assert_eq!(world.status("w")["status"], "running");
}

#[test]
fn status_line_has_the_name_the_iteration_and_the_keys_that_leave() {
    let world = World::new();
    let mut agent = world.agent("lp");
    world.spawn_loop("lp", &agent, &["-n", "3"]);
    // A tmux around it shows the whole screen of the command, its last line too.
    let terminal = Terminal::run(&world, 0, &["env", "-u", "TMUX", SWARM, "attach", "lp"]);
    let screen = terminal.until_shows(" lp: iteration 1/3 ");
    assert!(screen.lines().any(|line| line.trim_end().ends_with("  leave: Ctrl-b d")), "{screen}");
    agent.tell("exit 0");
    terminal.until_shows(" lp: iteration 2/3 ");
    terminal.close();
    let terminal = Terminal::look(&world, 1, &["lp", "--read-only"]);
    let screen = terminal.until_shows("lp: iteration 2/3 (read-only)");
    assert!(screen.contains("leave: Ctrl-b d, or Ctrl-b Ctrl-b d"), "{screen}");
    // In a narrow terminal, the title is cut first.
    for (columns, line) in [
        (60, " lp: iteration 2/3 (rea…leave: Ctrl-b d, or Ctrl-b Ctrl-b d"),
        (37, "leave: Ctrl-b d, or Ctrl-b Ctrl-b d"),
        (30, " Ctrl-b d, or Ctrl-b Ctrl-b d"),
    ] {
        terminal.tmux(&["resize-window", "-x", &columns.to_string()]).ok();
        world.until("the line of this width", || {
            let screen = terminal.screen();
            screen
                .lines()
                .rfind(|text| !text.is_empty())
                .is_some_and(|last| last.trim() == line.trim())
                .then_some(())
        });
    }
    world.swarm(&["kill", "lp"]).ok();
}

#[test]
fn attach_that_waits_for_the_next_run_can_be_interrupted() {
    let world = World::new();
    let mut agent = world.agent("lp");
    world.spawn_loop("lp", &agent, &[]);
    let terminal = Terminal::look(&world, 0, &["lp"]);
    agent.tell("exit 1");
    let waiting = " ended, waiting for the next";
    // If the next run was quicker, Ctrl-C ends that run, and the wait after it is longer.
    let screen = world.until("it ends", || {
        let screen = terminal.screen();
        if screen.contains("code ") {
            return Some(screen);
        }
        if screen.contains(waiting) || views(&world).iter().any(|view| !view.ends_with(" lp 1")) {
            terminal.keys(&["C-c"]);
        }
        None
    });
    assert!(screen.contains("code 130"), "{screen}");
    until_no_trace(&world);
    world.swarm(&["kill", "lp"]).ok();
}

#[test]
fn attach_waits_for_the_window_of_a_starting_loop() {
    let world = World::new();
    let agent = world.agent("lp");
    let command = agent.command();
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    fs::write(world.path("work/p"), "go\n").unwrap();
    // The check runs before the first iteration, and holds it until the file is there.
    let check = "while ! test -e go; do sleep 0.1; done; false";
    let options = ["--ralph", "--prompt-file", "p", "-n", "2", "-d", "--check", check];
    world.spawn("lp", &options, &command).ok();
    let terminal = Terminal::run(&world, 0, &[SWARM, "attach", "lp"]);
    terminal.until_shows("swarm: lp is starting, waiting for its window");
    fs::write(world.path("work/go"), "").unwrap();
    terminal.until_shows("lp: iteration 1");
    world.swarm(&["kill", "lp"]).ok();
    let _ = terminal.until_shows("code 0");
    until_no_trace(&world);
}

#[test]
fn attach_to_a_paused_loop_ends_with_its_run() {
    let world = World::new();
    let mut agent = world.agent("lp");
    world.spawn_loop("lp", &agent, &[]);
    let terminal = Terminal::look(&world, 0, &["lp"]);
    world.swarm(&["ralph", "pause", "lp"]).ok();
    agent.tell("exit 0");
    let screen = terminal.until_shows("code ");
    for line in ["swarm: lp is paused", "hint: swarm ralph resume lp", "code 0"] {
        assert!(screen.contains(line), "no {line:?} in {screen}");
    }
    until_no_trace(&world);
}

#[test]
fn attach_without_a_usable_terminal_is_an_error() {
    let world = World::new();
    world.swarm(&["attach", "nobody"]).code(2).warns("nobody");
    let _ = world.spawn_agent("w", &world.agent("w"), &[]);
    world
        .swarm(&["attach", "w"])
        .code(1)
        .warns("swarm: error: attach needs a terminal")
        .warns("swarm peek w");
    let cases = [("TERM=dumb", "TERM is dumb"), ("-uTERM", "TERM is not set")];
    for (number, (term, why)) in cases.into_iter().enumerate() {
        let terminal = Terminal::run(&world, number, &["env", term, SWARM, "attach", "w"]);
        let screen = terminal.until_shows("code ");
        for text in ["swarm: error: ", why, "hint: TERM=xterm-256color swarm attach w", "code 1"] {
            assert!(screen.contains(text), "no {text:?} in {screen}");
        }
        assert_eq!(views(&world), Vec::<String>::new());
    }
    until_no_trace(&world);
}

/// Everything about a tmux server that somebody else could have changed.
fn all_of(terminal: &Terminal<'_>) -> Vec<String> {
    let asked: [&[&str]; 9] = [
        &["list-sessions", "-F", "#{session_id} #{session_name} #{session_windows} #{session_group}"],
        &["list-panes", "-a", "-F", "#{window_id} #{window_layout} #{pane_id} #{pane_pid} #{pane_title}"],
        &["list-clients"],
        &["list-buffers"],
        &["list-keys"],
        &["show-options", "-g"],
        &["show-options", "-s"],
        &["show-hooks", "-g"],
        &["show-environment", "-g"],
    ];
    asked.iter().map(|words| terminal.tmux(words).ok().out).collect()
}

#[test]
fn attach_inside_another_tmux_leaves_that_tmux_unchanged() {
    let world = World::new();
    let mut agent = world.agent("w");
    let _ = world.spawn_agent("w", &agent, &[]);
    let script = "echo \"inside ${TMUX%%,*}\"; read line; exec \"$0\" attach w";
    let terminal = Terminal::run(&world, 0, &["sh", "-c", script, SWARM]);
    terminal.until_shows(&format!("inside {}", terminal.socket.display()));
    let before = all_of(&terminal);
    terminal.keys(&["Enter"]);
    world.until("somebody looks", || (views(&world).len() == 1).then_some(()));
    assert_eq!(all_of(&terminal), before);
    agent.tell("print hello from the agent");
    terminal.until_shows("hello from the agent");
    agent.tell("ask");
    terminal.keys(&["an answer", "Enter"]);
    world.until("the agent is answered", || (agent.file("asked.1") == "an answer\n").then_some(()));
    terminal.keys(&["C-b", "d"]);
    let screen = terminal.until_shows("code ");
    assert!(screen.contains("code 0") && !screen.contains("nested"), "{screen}");
    assert_eq!(all_of(&terminal), before);
    until_no_trace(&world);
}
