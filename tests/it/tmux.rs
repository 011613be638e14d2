//! tmux and the wrapper, against a real tmux on a private socket.
//!
//! Every test has its own directory, socket and server; the server is ended by pid however the test ends.
//! Nothing sleeps for a fixed time: a state is waited for, bounded, and the wait says what it saw.

#![expect(clippy::unwrap_used, reason = "a helper of tests may panic")]

mod agent;
mod attach;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use swarm::procs;
use swarm::tmux::{Captured, Health, NewWindow, PANE_TERM, PaneRow, PasteOutcome, Socket, Tmux, TmuxOptions};
use swarm::wrapper::{ExitRecord, LaunchSpec, pane_argv, read_exit};
use swarm_state::model::Pane;
use tempfile::TempDir;

/// A server of the test's own.
struct World {
    tmux: Tmux,
    dir: TempDir,
    server: i32,
}

impl Drop for World {
    fn drop(&mut self) {
        // By pid, never by name, and everything that its panes left.
        if procs::name(self.server).is_some_and(|name| name.contains("tmux")) {
            let mut panes = procs::tree(self.server);
            panes.reverse();
            let _ = kill(Pid::from_raw(self.server), Signal::SIGKILL);
            for pane in panes.iter().filter(|pane| procs::start_time(pane.pid) == Some(pane.start_time)) {
                let _ = kill(Pid::from_raw(pane.pid), Signal::SIGKILL);
            }
        }
    }
}

impl World {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let tmux = Tmux::new(options(dir.path()));
        let mut world = Self { tmux, dir, server: 0 };
        world.server = world.tmux.ensure_server().await.unwrap();
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A window that runs the wrapper, which runs the shell script.
    async fn agent(&self, name: &str, script: &str) -> (Pane, PathBuf) {
        self.launch(name, |_| (), &["sh", "-c", script]).await
    }

    async fn launch(&self, name: &str, edit: impl FnOnce(&mut LaunchSpec), argv: &[&str]) -> (Pane, PathBuf) {
        let dir = self.path(&format!("{name}.run"));
        std::fs::create_dir(&dir).unwrap();
        let env = [("PATH", std::env::var("PATH").unwrap()), ("TERM", PANE_TERM.to_owned())];
        let mut spec = LaunchSpec {
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            env: env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<BTreeMap<_, _>>(),
            cwd: self.dir.path().to_owned(),
            stdin: None,
            end_leftovers: true,
            sandboxed: false,
            proxy: None,
            placeholders: vec![],
            caps: swarm_state::caps::Caps::default(),
        };
        edit(&mut spec);
        spec.write(&dir).unwrap();
        let argv = pane_argv(Path::new(env!("CARGO_BIN_EXE_swarm")), &dir);
        let pane = self.tmux.new_window(NewWindow { argv, ..window(name, self.dir.path()) }).await.unwrap();
        (pane, dir)
    }

    async fn row(&self, pane: &str) -> Option<PaneRow> {
        self.tmux.list().await.unwrap().into_iter().find(|row| row.pane == pane)
    }

    async fn capture(&self, pane: &str) -> Captured {
        self.tmux.capture(pane, u32::MAX).await.unwrap().expect("the pane is there")
    }

    async fn screen_with(&self, pane: &str, text: &str) -> Captured {
        until(&format!("{text:?} on the screen"), async || {
            let captured = self.capture(pane).await;
            if captured.text.contains(text) { Ok(captured) } else { Err(captured.text) }
        })
        .await
    }

    async fn exit(&self, dir: &Path) -> ExitRecord {
        until("exit.json", async || read_exit(dir).ok_or(())).await
    }

    /// A plain tmux command of the test's own.
    fn run(&self, words: &[&str]) -> String {
        let socket = self.tmux.socket_path();
        let output = std::process::Command::new("tmux").arg("-S").arg(socket).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }
}

fn options(dir: &Path) -> TmuxOptions {
    TmuxOptions {
        socket: Socket::Path(dir.join("s")),
        config: dir.join("conf/tmux.conf"),
        source: None,
        session: "swarm".into(),
    }
}

fn window(name: &str, cwd: &Path) -> NewWindow {
    NewWindow {
        name: name.into(),
        cwd: cwd.into(),
        argv: vec!["cat".into(), "-".into()],
        worker: name.into(),
        run: 7,
        size: (120, 30),
        record: None,
    }
}

/// Waits until it is so; says what it was instead when it never is.
async fn until<T, E: std::fmt::Debug>(what: &str, mut is_so: impl AsyncFnMut() -> Result<T, E>) -> T {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        match is_so().await {
            Ok(value) => return value,
            Err(seen) => assert!(Instant::now() < end, "waited in vain for {what}; saw {seen:?}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn bounded<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future).await.unwrap_or_else(|_| panic!("no end: {what}"))
}

#[tokio::test]
async fn tmux_server_starts_once_and_its_end_is_detected() {
    let mut world = World::new().await;
    assert_eq!(world.tmux.health().await, Health::Alive { pid: world.server });
    assert_eq!(world.tmux.ensure_server().await.unwrap(), world.server);
    assert!(world.tmux.version().await.is_some());
    // No marks of whoever started it, and the configuration without a complaint.
    let environment = world.run(&["show-environment", "-g"]);
    assert!(!environment.contains("CARGO"), "{environment}");
    assert_eq!(world.run(&["show-options", "-gv", "history-limit"]), "10000");
    assert_eq!(world.run(&["show-options", "-wgv", "remain-on-exit-format"]), "");
    world.tmux.new_window(window("a", world.dir.path())).await.unwrap();
    world.tmux.shutdown_if_empty().await.unwrap();
    assert_eq!(world.tmux.health().await, Health::Alive { pid: world.server });
    kill(Pid::from_raw(world.server), Signal::SIGKILL).unwrap();
    bounded("the server's death", procs::wait_gone(world.server)).await;
    assert_eq!(world.tmux.health().await, Health::Gone);
    assert!(world.tmux.list().await.is_err());
    assert!(
        world.tmux.new_window(window("b", world.dir.path())).await.is_err(),
        "no server is started by it"
    );
    assert_eq!(world.tmux.health().await, Health::Gone);
    world.server = world.tmux.ensure_server().await.unwrap();
    assert_eq!(world.tmux.list().await.unwrap(), []);
    world.tmux.shutdown_if_empty().await.unwrap();
    assert_eq!(world.tmux.health().await, Health::Gone);
    world.tmux.kill_server().await.unwrap();
}

#[tokio::test]
async fn stopped_tmux_server_is_unresponsive_and_not_gone() {
    let world = World::new().await;
    crate::world::signal(u32::try_from(world.server).unwrap(), Signal::SIGSTOP);
    assert_eq!(world.tmux.health().await, Health::Unresponsive);
    kill(Pid::from_raw(world.server), Signal::SIGCONT).unwrap();
    assert_eq!(world.tmux.health().await, Health::Alive { pid: world.server });
    assert_eq!(world.tmux.list().await.unwrap(), []);
}

#[tokio::test]
async fn a_server_whose_socket_was_deleted_is_found_again() {
    let world = World::new().await;
    std::fs::remove_file(world.tmux.socket_path()).unwrap();
    assert_eq!(world.tmux.health().await, Health::Alive { pid: world.server });
    // Also by a handle that was told nothing, or of what is no tmux server and gets no signal.
    std::fs::remove_file(world.tmux.socket_path()).unwrap();
    let other = Tmux::new(options(world.dir.path()));
    other.expect_server(std::process::id() as i32);
    assert_eq!(other.health().await, Health::Alive { pid: world.server });
    // And by one that was told of it.
    std::fs::remove_file(world.tmux.socket_path()).unwrap();
    let third = Tmux::new(options(world.dir.path()));
    third.expect_server(world.server);
    assert_eq!(third.ensure_server().await.unwrap(), world.server);
}

/// SIGUSR1 makes a server replace its socket: clients that connect at that moment fail.
#[tokio::test]
async fn a_server_that_is_starting_gets_no_signal() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path());
    let Socket::Path(socket) = &options.socket else { panic!("a path") };
    // A shell with the name and the arguments of a server that has not made its socket yet.
    let program = dir.path().join("tmux: server");
    std::os::unix::fs::symlink("/bin/sh", &program).unwrap();
    let script = format!(
        "trap 'echo signal >>{0}/log' USR1; echo up >{0}/log; while :; do sleep 0.02; done",
        dir.path().display()
    );
    let mut server = tokio::process::Command::new(&program);
    server.args(["-c", &script, "-S"]).arg(socket).arg("-f").arg(&options.config).kill_on_drop(true);
    let _server = server.spawn().unwrap();
    let log = || std::fs::read_to_string(dir.path().join("log"));
    until("it runs", async || if log().is_ok_and(|log| log == "up\n") { Ok(()) } else { Err(()) }).await;

    let tmux = Tmux::new(options.clone());
    let asked = async {
        let listener = tokio::net::UnixListener::bind(socket).unwrap();
        // The first connection finds the socket, the second is a command.
        for _ in 0..2 {
            drop(bounded("a connection", listener.accept()).await.unwrap());
        }
    };
    tokio::select! {
        biased;
        health = tmux.health() => panic!("nothing answered, but it is {health:?}"),
        () = asked => {}
    }
    assert_eq!(log().unwrap(), "up\n");
}

#[tokio::test]
async fn file_in_place_of_the_tmux_socket_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("s"), "mine").unwrap();
    let error = Tmux::new(options(dir.path())).ensure_server().await.unwrap_err();
    assert!(error.message.contains("is not a socket"), "{error}");
    assert_eq!(std::fs::read_to_string(dir.path().join("s")).unwrap(), "mine");
    let long = TmuxOptions { socket: Socket::Path(dir.path().join("x".repeat(120))), ..options(dir.path()) };
    assert!(Tmux::new(long).ensure_server().await.unwrap_err().hint.is_some());
}

#[tokio::test]
async fn windows_are_made_at_once_marked_and_listed() {
    let world = World::new().await;
    let make = |name: &'static str| world.tmux.new_window(window(name, world.dir.path()));
    let (one, two, three) = tokio::join!(make("one"), make("two"), make("three"));
    let mut panes = [one.unwrap(), two.unwrap(), three.unwrap()];
    panes.sort_by(|a, b| a.id.cmp(&b.id));
    let mut rows = world.tmux.list().await.unwrap();
    rows.sort_by(|a, b| a.pane.cmp(&b.pane));
    assert_eq!(rows.len(), 3);
    for (pane, row) in panes.iter().zip(&rows) {
        assert_eq!((&pane.id, &pane.window, pane.pid), (&row.pane, &row.window, row.pid));
        assert_eq!((pane.server_pid, pane.run.0), (world.server, 7));
        assert_eq!((row.run, row.size, row.dead), (Some(7), (120, 30), false));
        assert_eq!(row.start_command, "cat -");
        let name = world.run(&["display-message", "-p", "-t", &pane.id, "#{window_name}"]);
        assert_eq!(row.worker.as_deref(), Some(name.as_str()));
        assert_eq!(world.run(&["show-options", "-wv", "-t", &pane.window, "window-size"]), "manual");
    }
    // The short list, completed, says the same.
    assert_eq!(world.tmux.list().await.unwrap().len(), 3);
    // The last window takes the session with it; the next one makes it anew.
    for pane in &panes {
        world.tmux.close(pane).await.unwrap();
        world.tmux.close(pane).await.unwrap();
    }
    assert_eq!(world.tmux.list().await.unwrap(), []);
    let pane = make("four").await.unwrap();
    world.run(&["resize-window", "-t", &pane.window, "-x", "90", "-y", "20"]);
    assert_eq!(world.row(&pane.id).await.unwrap().size, (90, 20));
    assert_eq!(world.capture(&pane.id).await.size, (90, 20));
    // Closing by pane: only the very same one.
    world.tmux.close(&Pane { pid: pane.pid + 1, ..pane.clone() }).await.unwrap();
    world.tmux.close(&Pane { server_pid: 1, ..pane.clone() }).await.unwrap();
    assert!(world.row(&pane.id).await.is_some());
    world.tmux.close(&pane).await.unwrap();
    world.tmux.close(&pane).await.unwrap();
    assert!(world.row(&pane.id).await.is_none());
    assert_eq!(world.tmux.capture(&pane.id, 0).await.unwrap(), None);
}

#[tokio::test]
async fn last_window_can_be_closed_while_another_is_created() {
    let world = World::new().await;
    let mut last = world.tmux.new_window(window("w", world.dir.path())).await.unwrap();
    for _ in 0..15 {
        let new = window("w", world.dir.path());
        let (closed, made) = tokio::join!(world.tmux.close(&last), world.tmux.new_window(new));
        closed.unwrap();
        last = made.unwrap();
        assert!(world.row(&last.id).await.is_some());
    }
}

#[tokio::test]
async fn two_last_windows_that_close_at_once_do_not_crash_the_server() {
    let world = World::new().await;
    for round in 0..40 {
        // The list is asked for by the control client, without which nothing crashes.
        assert!(world.tmux.list().await.unwrap().is_empty());
        let mut panes = vec![];
        for name in ["a", "b", "c"] {
            let new = window(&format!("{name}{round}"), world.dir.path());
            panes.push(world.tmux.new_window(new).await.unwrap());
        }
        let [a, b, c] = [&panes[0], &panes[1], &panes[2]].map(|pane| world.tmux.close(pane));
        let (a, b, c) = tokio::join!(a, b, c);
        a.and(b).and(c).unwrap();
        assert_eq!(world.tmux.health().await, Health::Alive { pid: world.server }, "round {round}");
    }
}

#[tokio::test]
async fn arguments_arrive_as_they_are() {
    let world = World::new().await;
    let out = world.path("out;");
    let odd = ["a;", ";", "\\;", "#{pane_id}", "$(id)", "it's \"x\"", "", "-t", "é\n%H", "#[x]"];
    let script = "for a in \"$@\"; do printf '%s\\0' \"$a\"; done >\"$0\"; exec cat -";
    let mut argv = vec!["sh".into(), "-c".into(), script.into(), out.clone().into_os_string()];
    argv.extend(odd.iter().map(std::ffi::OsString::from));
    let cwd = world.path("a#{b");
    std::fs::create_dir(&cwd).unwrap();
    world.tmux.new_window(NewWindow { argv, cwd, ..window("w", world.dir.path()) }).await.unwrap();
    let whole: String = odd.iter().map(|word| format!("{word}\0")).collect();
    until("the arguments", async || match std::fs::read_to_string(&out) {
        Ok(text) if text == whole => Ok(()),
        other => Err(other.ok()),
    })
    .await;
}

#[tokio::test]
async fn a_capture_joins_wrapped_rows_and_holds_the_history() {
    let world = World::new().await;
    let script = "i=1; while [ $i -le 60 ]; do echo line $i; i=$((i+1)); done; \
                  printf '%0300d\\n' 7; printf 'back\\\\slash \\\\n \"q\" $x ~\\n'; \
                  printf '%%end 1 2 1\\n%%exit\\ncaf\\303\\251 end  \\n'; exec cat -";
    let (pane, _) = world.agent("w", script).await;
    let captured = world.screen_with(&pane.id, "end").await;
    let long = format!("{:0300}", 7);
    let mut expected: Vec<String> = (1..=60).map(|i| format!("line {i}")).collect();
    expected.extend([long, "back\\slash \\n \"q\" $x ~".into(), "%end 1 2 1".into()]);
    expected.extend(["%exit".into(), "café end".into()]);
    assert_eq!(captured.text, expected.join("\n"));
    assert_eq!((captured.size, captured.alternate), ((120, 30), false));
    // 60 + 3 + 4 rows and the one the cursor is in, less the screen.
    assert_eq!((captured.history, captured.history_taken), (38, 38));
    let screen = world.tmux.capture(&pane.id, 0).await.unwrap().unwrap();
    assert_eq!(screen.text, expected[38..].join("\n"));
    assert_eq!((screen.history, screen.history_taken), (38, 0));
    let some = world.tmux.capture(&pane.id, 5).await.unwrap().unwrap();
    assert_eq!(some.text, expected[33..].join("\n"));
    assert_eq!(world.tmux.capture("%999", 0).await.unwrap(), None);
    assert_eq!(world.run(&["list-buffers"]), "", "no buffer is left behind");
}

#[tokio::test]
async fn alternate_screen_stays_when_its_program_leaves_it() {
    let world = World::new().await;
    let script = "i=1; while [ $i -le 60 ]; do echo line $i; i=$((i+1)); done; \
                  printf '\\033[?1049h\\033[H\\033[2Jalt here\\033[5;1Hbelow\\033[2;1H'; read x; \
                  printf '\\033[?1049lleft\\n'; exec cat -";
    let (pane, _) = world.agent("w", script).await;
    let captured = world.screen_with(&pane.id, "below").await;
    assert!(captured.picture && !captured.alternate);
    let screen = world.tmux.capture(&pane.id, 0).await.unwrap().unwrap();
    assert_eq!((screen.text.as_str(), screen.history_taken), ("alt here\n\n\n\nbelow", 0));
    assert!(world.capture(&pane.id).await.text.starts_with("line 1\nline 2\n"), "what was there before");
    world.run(&["send-keys", "-t", &pane.id, "Enter"]);
    let captured = world.screen_with(&pane.id, "left").await;
    assert!(captured.text.contains("alt here\n"), "{}", captured.text);
}

#[tokio::test]
async fn a_lost_control_client_is_replaced() {
    let world = World::new().await;
    let (pane, _) = world.agent("w", "echo here; exec cat -").await;
    world.screen_with(&pane.id, "here").await;
    let clients = || world.run(&["list-clients", "-F", "#{client_pid}:#{client_session}:#{client_flags}"]);
    let before = clients();
    assert!(before.contains(":swarm-ctl:") && before.contains("no-output"), "{before}");
    // No second client for more questions, and none for two at once.
    let (a, b) = tokio::join!(world.tmux.list(), world.tmux.capture(&pane.id, 0));
    assert!(a.unwrap().len() == 1 && b.unwrap().unwrap().text == "here");
    assert_eq!(clients(), before);
    let pid: i32 = before.split(':').next().unwrap().parse().unwrap();
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    // At once by plain processes, then by a new client.
    assert_eq!(world.tmux.list().await.unwrap().len(), 1);
    assert_eq!(world.capture(&pane.id).await.text, "here");
    until("a new client", async || {
        world.tmux.list().await.unwrap();
        let now = clients();
        if !now.is_empty() && now != before { Ok(()) } else { Err(now) }
    })
    .await;
    world.run(&["kill-session", "-t", "=swarm-ctl"]);
    assert_eq!(world.capture(&pane.id).await.text, "here");
    assert_eq!(world.tmux.list().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_large_paste_arrives_exactly_and_bracketed() {
    let world = World::new().await;
    let out = world.path("out");
    // Raw mode and bracketed paste, as a TUI has them.
    let script = "stty raw -echo; printf '\\033[?2004h'; echo ready; exec cat >out";
    let (pane, _) = world.agent("w", script).await;
    world.screen_with(&pane.id, "ready").await;
    let line = "-q \"double\" 'single' $HOME `x` #{y} \\ \t tab é 漢字;\n";
    let text = line.repeat(100_000 / line.len() + 1);
    world.run(&["copy-mode", "-t", &pane.id]);
    assert_eq!(world.tmux.paste(&pane.id, text.as_bytes()).await.unwrap(), PasteOutcome::Done);
    assert_eq!(world.tmux.paste(&pane.id, b"a\x1b[201~b").await.unwrap(), PasteOutcome::Done);
    assert_eq!(world.tmux.paste(&pane.id, b"").await.unwrap(), PasteOutcome::Done);
    let expected = format!("\x1b[200~{text}\x1b[201~\x1b[200~ab\x1b[201~");
    until("the paste", async || {
        let got = std::fs::read(&out).unwrap_or_default();
        if got == expected.as_bytes() { Ok(()) } else { Err((got.len(), expected.len())) }
    })
    .await;
    assert_eq!(world.run(&["list-buffers"]), "");
}

#[tokio::test]
async fn commands_on_a_dead_pane_do_not_end_the_tmux_server() {
    let world = World::new().await;
    let (pane, dir) = world.agent("w", "echo gone").await;
    world.exit(&dir).await;
    bounded("the wrapper's end", procs::wait_gone(pane.pid)).await;
    until("a dead pane", async || {
        world.tmux.nudge().await;
        let row = world.row(&pane.id).await.unwrap();
        if row.dead { Ok(()) } else { Err(row) }
    })
    .await;
    assert_eq!(world.tmux.paste(&pane.id, b"text").await.unwrap(), PasteOutcome::PaneDead);
    world.tmux.keys(&pane.id, &["Enter", "C-c"]).await.unwrap();
    world.run(&["resize-window", "-t", &pane.window, "-x", "100", "-y", "20"]);
    assert_eq!(world.capture(&pane.id).await.size, (100, 20));
    assert_eq!(world.tmux.health().await, Health::Alive { pid: world.server });
    world.tmux.close(&pane).await.unwrap();
    assert_eq!(world.tmux.paste(&pane.id, b"text").await.unwrap(), PasteOutcome::PaneDead);
    assert!(world.tmux.keys(&pane.id, &["Enter"]).await.is_err());
    assert_eq!(world.run(&["list-buffers"]), "");
}

#[tokio::test]
async fn recording_has_every_byte() {
    let world = World::new().await;
    let file = world.path("it's 100% #{x}.log");
    let argv = ["sh", "-c", "printf 'a\\033[1mb\\n'; exec cat -"].iter().map(Into::into).collect();
    let recorder = vec![crate::world::SWARM.into(), "__record".into(), file.clone().into()];
    let new = NewWindow { argv, record: Some(recorder), ..window("w", world.dir.path()) };
    world.tmux.new_window(new).await.unwrap();
    until("the bytes", async || match std::fs::read(&file) {
        Ok(bytes) if bytes == b"a\x1b[1mb\r\n" => Ok(()),
        other => Err(other),
    })
    .await;
}

#[tokio::test]
async fn users_tmux_conf_cannot_end_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("user [1].conf");
    let text = "set -g destroy-unattached on\nset -g window-size manual\nset -g remain-on-exit off\n\
                set -s exit-empty on\nset -g status-left mine\n";
    std::fs::write(&source, text).unwrap();
    let tmux = Tmux::new(TmuxOptions { source: Some(source), ..options(dir.path()) });
    let server = tmux.ensure_server().await.unwrap();
    let world = World { tmux, dir, server };
    assert_eq!(world.run(&["show-options", "-gv", "status-left"]), "mine");
    for name in ["a", "b"] {
        world.tmux.new_window(window(name, world.dir.path())).await.unwrap();
    }
    assert_eq!(world.tmux.list().await.unwrap().len(), 2);
    assert_eq!(world.tmux.health().await, Health::Alive { pid: server });
}
