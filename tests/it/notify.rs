//! Notifications: `[notify]` against servers on this machine, a recording `notify-send` and a command.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use serde_json::Value;

use crate::attach::Terminal;
use crate::world::{SWARM, World};

/// A request that a server received.
#[derive(Clone, Debug)]
struct Received {
    path: String,
    headers: Vec<String>,
    body: String,
}

impl Received {
    /// The value of a header.
    fn header(&self, name: &str) -> &str {
        let start = format!("{name}: ");
        self.headers.iter().find_map(|line| line.strip_prefix(&start)).unwrap_or_default()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A server on this machine that records requests and answers each with the same status. It ends with the process.
struct Recorder {
    url: String,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Recorder {
    fn start(status: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let all = received.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if let Some(request) = serve(stream.unwrap(), status) {
                    all.lock().unwrap().push(request);
                }
            }
        });
        Self { url, received }
    }

    fn all(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, status: u16) -> Option<Received> {
    let mut reader = BufReader::new(&stream);
    let mut headers = vec![];
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
        if line.trim_end().is_empty() {
            break;
        }
        headers.push(line.trim_end().to_owned());
    }
    let path = headers.first()?.split(' ').nth(1)?.to_owned();
    let mut request = Received { path, headers, body: String::new() };
    let mut body = vec![0; request.header("Content-Length").parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    request.body = String::from_utf8(body).ok()?;
    let answer = format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    (&stream).write_all(answer.as_bytes()).ok()?;
    Some(request)
}

/// Writes `[notify]` of the user's settings.
fn configure(world: &World, keys: &str) {
    fs::create_dir_all(world.path("home/.config/swarm")).unwrap();
    fs::write(world.path("home/.config/swarm/config.toml"), format!("[notify]\n{keys}\n")).unwrap();
}

/// Puts a program of this name first on the PATH.
fn program(world: &mut World, name: &str, script: &str) {
    let dir = world.path("programs");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    world.set("PATH", format!("{}:{}", dir.display(), std::env::var("PATH").unwrap()));
}

/// The secret file of a world.
fn secret(world: &World, mode: u32) -> String {
    let file = world.path("home/secret");
    fs::write(&file, "tk_key\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    file.display().to_string()
}

/// The names of the workers in a message or digest.
fn names(message: &Value) -> Vec<String> {
    let one = std::slice::from_ref(message);
    let events = message["events"].as_array().map_or(one, Vec::as_slice);
    events.iter().map(|event| event["name"].as_str().unwrap().to_owned()).collect()
}

/// The titles of the messages that a server received on an ntfy topic.
fn titles(server: &Recorder) -> Vec<String> {
    server.all().iter().map(|request| request.header("Title").to_owned()).collect()
}

#[track_caller]
fn until_count(world: &World, server: &Recorder, count: usize) -> Vec<Received> {
    world.until(&format!("{count} messages"), || Some(server.all()).filter(|all| all.len() >= count))
}

/// The signature of a body with the key of the tests.
fn signature(body: &str) -> String {
    let mut mac = <Hmac<sha2::Sha256> as KeyInit>::new_from_slice(b"tk_key").unwrap();
    mac.update(body.as_bytes());
    let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={hex}")
}

#[test]
fn twenty_ends_in_a_minute_give_five_messages_and_a_digest() {
    let mut w = World::new();
    let (ntfy, webhook) = (Recorder::start(200), Recorder::start(204));
    let record = format!("printf '%s|' \"$@\" >>{0}; echo >>{0}", w.path("shown").display());
    program(&mut w, "notify-send", &record);
    configure(
        &w,
        &format!(
            "delay = 0\ndesktop = true\nntfy = '{}/topic'\nwebhook = '{}/hook'\nsecret_file = '{}'\n\
             command = ['sh', '-c', 'cat >>{}']",
            ntfy.url,
            webhook.url,
            secret(&w, 0o600),
            w.path("commanded").display()
        ),
    );
    w.start_daemon();
    let script = "until test -e go; do sleep 0.2; done; exit $STATUS";
    for n in 0..20 {
        let status = format!("STATUS={}", n % 2);
        let _ = w.spawn_sh(&format!("w{n}"), &["-d", "--env", &status], script).ok();
    }
    w.write("go", "");
    let posts = until_count(&w, &webhook, 6);
    let messages: Vec<Value> = posts.iter().map(Received::json).collect();
    let (digest, single) = messages.split_last().unwrap();
    for message in single {
        assert_eq!((&message["schema"], &message["class"]), (&1.into(), &"ended".into()), "{message}");
        assert!(message["host"].is_null() && message["cause"] == "stopped", "{message}");
        let failed = message["status"] == "failed";
        assert_eq!(message["reason"], if failed { "exit status 1" } else { "exited" });
        chrono::DateTime::parse_from_rfc3339(message["at"].as_str().unwrap()).unwrap();
    }
    assert_eq!(digest["events"].as_array().map(Vec::len), Some(15), "{messages:#?}");
    assert!(digest["reason"].as_str().unwrap().starts_with("15 workers: "), "{digest}");
    let all: Vec<String> = messages.iter().flat_map(names).collect();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 20, "{all:?}");
    for post in &posts {
        assert_eq!((&*post.path, post.header("Content-Type")), ("/hook", "application/json"));
        assert_eq!(post.header("X-Swarm-Signature"), signature(&post.body));
    }
    // The other channels have the same messages.
    let posts = until_count(&w, &ntfy, 6);
    for (post, message) in posts.iter().zip(&messages) {
        let title = match message["name"].as_str() {
            Some(name) if message["status"] == "failed" => format!("{name} failed"),
            Some(name) => format!("{name} is done"),
            None => message["reason"].as_str().unwrap().to_owned(),
        };
        assert_eq!((&*post.path, post.header("Title")), ("/topic", &*title));
        assert_eq!(post.header("Authorization"), "Bearer tk_key");
        assert_eq!(post.header("Priority"), "default");
    }
    assert_eq!(posts[5].body.lines().count(), 15, "{}", posts[5].body);
    let lines = w.until("the command has all", || Some(w.lines("commanded")).filter(|all| all.len() >= 6));
    let lines: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, messages);
    w.until("the desktop has all", || {
        let shown = fs::read_to_string(w.path("shown")).unwrap_or_default();
        (shown.matches("--app-name=swarm|--urgency=").count() == 6).then_some(())
    });
}

/// A dialog that every profile knows.
const ASKS: &str = "printf 'Do you want to proceed?\\n❯ 1. Yes\\n  2. No\\n'; read x; exec cat";

#[test]
fn a_question_is_announced_once_and_not_to_a_person_who_sees_it() {
    let w = World::new();
    let ntfy = Recorder::start(200);
    configure(&w, &format!("delay = 0\nntfy = '{}/t'\nclasses = ['needs_you', 'ended']", ntfy.url));
    w.start_daemon();
    let _ = w.spawn_sh("killed", &["-d"], "exec cat").ok();
    let _ = w.swarm(&["kill", "killed"]).ok();
    let _ = w.spawn_sh("seen", &["-d"], &format!("until test -e ask; do sleep 0.2; done; {ASKS}")).ok();
    let terminal = Terminal::run(&w, 1, &[SWARM, "attach", "seen"]);
    terminal.until_shows("seen");
    w.write("ask", "");
    w.until_status("seen", "waiting");
    let _ = w.spawn_sh("asks", &["-d"], ASKS).ok();
    let posts = until_count(&w, &ntfy, 1);
    assert_eq!(
        titles(&ntfy),
        ["asks needs you"],
        "a killed worker and one that a person sees are not announced"
    );
    assert_eq!((posts[0].header("Priority"), &*posts[0].body), ("high", "asks for permission"));
    drop(terminal);
    // Neither the end of the attach nor other daemons announce the questions again.
    let _ = w.swarm(&["daemon", "restart"]).ok();
    w.crash_daemon();
    w.start_daemon();
    w.until_status("asks", "waiting");
    let _ = w.spawn_sh("end", &["-d"], "exit 0").ok();
    until_count(&w, &ntfy, 2);
    assert_eq!(titles(&ntfy), ["asks needs you", "end is done"]);
    // Without a channel nothing is kept.
    configure(&w, "");
    let _ = w.spawn_sh("other", &["-d"], "exit 0").ok();
    w.until("the record is gone", || (!w.swarm_dir().join("notified.json").exists()).then_some(()));
}

#[test]
fn a_channel_that_is_configured_later_announces_no_old_states() {
    let w = World::new();
    let ntfy = Recorder::start(200);
    configure(&w, "delay = 0");
    w.start_daemon();
    let _ = w.spawn_sh("old", &["-d"], "exit 0").ok();
    w.until_status("old", "done");
    // Another worker lives for three observation intervals of 0.1 s: the daemon has observed the first one's end.
    let _ = w.spawn_sh("between", &["-d"], "sleep 0.3").ok();
    w.until_status("between", "done");
    configure(&w, &format!("delay = 0\nntfy = '{}/t'", ntfy.url));
    let _ = w.spawn_sh("new", &["-d"], "exit 0").ok();
    w.until("the new end is announced", || {
        titles(&ntfy).iter().any(|title| title.starts_with("new")).then_some(())
    });
    assert!(!titles(&ntfy).iter().any(|title| title.starts_with("old")), "{:?}", titles(&ntfy));
}

#[test]
fn a_channel_that_fails_delays_nothing_and_is_shown() {
    let w = World::new();
    let webhook = Recorder::start(200);
    let refused = Recorder::start(503);
    let hangs = format!("echo $$ >>{}; exec sleep 600", w.path("hanging").display());
    configure(
        &w,
        &format!(
            "delay = 0\nntfy = '{}/t'\nwebhook = '{}'\ncommand = ['sh', '-c', '{hangs}']",
            refused.url, webhook.url
        ),
    );
    w.start_daemon();
    let _ = w.spawn_sh("a", &["-d"], "exit 0").ok();
    until_count(&w, &webhook, 1);
    w.until("the command hangs", || (!w.lines("hanging").is_empty()).then_some(()));
    let _ = w.swarm(&["ls"]).ok().says("a");
    let _ = w.spawn_sh("b", &["-d"], "exit 0").ok();
    until_count(&w, &webhook, 2);
    let doctor = w.until("doctor shows both errors", || {
        let said = w.swarm(&["doctor"]).out;
        (said.contains("notify: ntfy") && said.contains("notify: command")).then_some(said)
    });
    let fault =
        "notify: command: the last notification was not sent: sh did not end within 10 s and was killed";
    assert!(doctor.contains(fault), "{doctor}");
    let fault = "answered with HTTP status 503\n      hint: to try each channel: swarm notify test";
    assert!(doctor.contains(fault), "{doctor}");
    assert!(refused.all().len() >= 3, "three tries");
    let pid: u32 = w.lines("hanging")[0].parse().unwrap();
    assert!(!crate::world::is_alive(pid));
    let log = fs::read_to_string(w.swarm_dir().join("daemon.log")).unwrap();
    assert_eq!(log.matches("HTTP status 503").count(), 1, "{log}");
}

#[test]
fn notify_test_reports_the_result_of_each_channel() {
    let mut w = World::new();
    let _ = w.swarm(&["notify", "test"]).code(1).says("no channel in [notify]").warns("ntfy = \"https://");
    let (ntfy, webhook) = (Recorder::start(200), Recorder::start(403));
    let commanded = w.path("commanded");
    let keys = |secret: &str, command: &str| {
        format!("ntfy = '{}/t'\nwebhook = '{}/hook'\n{secret}command = {command}", ntfy.url, webhook.url)
    };
    configure(&w, &keys("", &format!("['sh', '-c', 'cat >{}']", commanded.display())));
    let ran =
        w.swarm(&["notify", "test"]).code(1).says("ok    ntfy: HTTP status 200\n").says("ok    command: ");
    let fault =
        format!("fail  webhook: {} answered with HTTP status 403\n      hint: check the secret", webhook.url);
    let _ = ran.says(&fault);
    let message: Value = serde_json::from_str(&fs::read_to_string(commanded).unwrap()).unwrap();
    assert_eq!((&message["class"], &message["name"]), (&"needs_you".into(), &"test".into()));
    assert_eq!(ntfy.all()[0].header("Title"), "test needs you");
    configure(
        &w,
        &keys(&format!("secret_file = '{}'\n", secret(&w, 0o644)), "['sh', '-c', 'echo no >&2; exit 3']"),
    );
    let ran = w.swarm(&["notify", "test"]).code(1).says("fail  command: sh failed (exit status: 3): no\n");
    let _ = ran.says(
        "secret' cannot be used: others can read it\n      hint: write the secret into it, then: chmod 600 ",
    );
    assert_eq!(ntfy.all().len(), 1, "nothing was sent without the secret");
    // Programs that are missing.
    w.set("PATH", w.path("empty").display().to_string());
    configure(&w, &format!("desktop = true\nntfy = '{}/t'\ncommand = ['nothing']", ntfy.url));
    let ran = w.swarm(&["notify", "test"]).code(1).says("fail  command: no such program: nothing\n");
    let ran =
        ran.says("fail  ntfy: no such program: curl\n      hint: install it, for example: apt install curl");
    let _ = ran.says(
        "fail  desktop: no such program: notify-send\n      hint: install it, for example: apt install ",
    );
}

#[test]
fn a_terminal_shows_notifications_without_any_channel() {
    let w = World::new();
    configure(&w, "delay = 0");
    w.start_daemon();
    let terminal = Terminal::run(&w, 1, &[SWARM, "events", "--notify"]);
    let raw = w.path("raw");
    terminal.tmux(&["pipe-pane", &format!("exec cat >>{}", raw.display())]).ok();
    // The first message may come before the command listens.
    let shown = w.until("a notification on the terminal", || {
        let name = format!("end-{}", raw.metadata().map_or(0, |file| file.len()));
        let _ = w.spawn_sh(&name, &[], "exit 0");
        let shown = String::from_utf8_lossy(&fs::read(&raw).unwrap_or_default()).into_owned();
        shown.contains("\x1bPtmux;\x1b\x1b]9;end-").then_some(shown)
    });
    assert!(shown.contains(" is done: exited\x07\x1b\\\x07"), "{shown:?}");
    let _ = w.swarm(&["events", "--notify"]).code(2).warns("--notify needs a terminal");
}

#[test]
fn the_status_line_of_tmux_counts_workers_and_never_fails() {
    let w = World::new();
    let _ = w.swarm(&["status", "--format", "tmux"]).ok().says("no daemon\n");
    assert!(w.daemon_pid().is_none());
    w.start_daemon();
    let _ = w.swarm(&["status", "--format", "tmux"]).ok().says("no workers\n");
    let _ = w.spawn_sh("works", &[], "exec cat").ok();
    let _ = w.spawn_sh("fails", &["-d"], "exit 1").ok();
    let _ = w.spawn_sh("asks", &["-d"], ASKS).ok();
    w.until_status("asks", "waiting");
    w.until_ended("fails");
    let _ = w.swarm(&["status", "--format", "tmux"]).ok().says("1 needs you · 1 failed · 1 working\n");
    let _ = w.swarm(&["status", "--format", "json"]).code(2).warns("no worker given");
    let _ = w.swarm(&["status", "works", "--format", "tmux"]).code(2).warns("accepts no name");
}
