//! `swarm doctor`: each finding provoked, each with a cure, and nothing changed by the look.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::world::{Ran, SWARM, World, is_alive, signal};

/// The findings of `doctor`: its exit status and its checks.
struct Found {
    code: Option<i32>,
    checks: Vec<Value>,
}

impl Found {
    fn of(ran: &Ran) -> Self {
        let report = ran.json();
        let checks = report["checks"].as_array().unwrap().clone();
        let failed = checks.iter().any(|check| check["level"] == "fail");
        assert_eq!((ran.code, &report["ok"]), (Some(i32::from(failed)), &Value::from(!failed)), "{ran:?}");
        for check in &checks {
            assert_eq!(check["hint"].is_null(), check["level"] == "ok", "a cure with each finding: {check}");
        }
        Self { code: ran.code, checks }
    }

    /// Insists on a finding; gives its cure.
    #[track_caller]
    fn has(&self, check: &str, level: &str, text: &str) -> String {
        let matches = |c: &&Value| {
            c["check"] == check && c["level"] == level && c["message"].as_str().unwrap().contains(text)
        };
        let found = self.checks.iter().find(matches);
        let found = found.unwrap_or_else(|| panic!("no {check} {level} {text:?} in {:#?}", self.checks));
        found["hint"].as_str().unwrap_or_default().to_owned()
    }

    /// Insists that nothing else is wrong than these.
    #[track_caller]
    fn only(&self, wrong: &[&str]) {
        // How full the machine's disk is, and who is logged in to it, is not the test's to say.
        let not_ours = |c: &&Value| c["check"] == "logout" || c["check"] == "disk" && c["level"] == "warn";
        let mut found: Vec<&str> = self
            .checks
            .iter()
            .filter(|c| c["level"] != "ok" && !not_ours(c))
            .map(|c| c["check"].as_str().unwrap())
            .collect();
        found.dedup();
        assert_eq!(found, wrong, "{:#?}", self.checks);
    }
}

#[track_caller]
fn doctor(w: &World) -> Found {
    Found::of(&w.swarm(&["doctor", "--format", "json"]))
}

/// Every file below a directory, with what is in it.
fn tree(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(tree(&path));
        }
        found.insert(path.clone(), fs::read(&path).unwrap_or_default());
    }
    found
}

/// A directory for a PATH with these programs of the machine, and a place for others.
fn programs(w: &World, names: &[&str]) -> PathBuf {
    let dir = w.path("programs");
    fs::create_dir(&dir).unwrap();
    for name in names {
        let path = std::env::var_os("PATH").unwrap();
        let real = std::env::split_paths(&path).map(|dir| dir.join(name)).find(|path| path.exists()).unwrap();
        symlink(real, dir.join(name)).unwrap();
    }
    dir
}

fn script(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn doctor_reports_a_healthy_swarm_and_starts_nothing() {
    let w = World::new();
    let found = doctor(&w);
    found.only(&[]);
    found.has("directory", "ok", "does not exist yet");
    found.has("daemon", "ok", "not running");
    found.has("caps", "ok", "memory (");
    found.has("tmux-server", "ok", "does not run");
    assert!(!w.swarm_dir().exists(), "the look made the directory");

    let agent = w.agent("a");
    w.spawn_loop("agent", &agent, &[]);
    let found = doctor(&w);
    found.only(&[]);
    found.has("daemon", "ok", "1 of 1 worker live");
    found.has("tmux-server", "ok", "1 live pane");
    found.has("state-files", "ok", "1 worker, all readable");
    found.has("git", "ok", "version 2");
    let said = w.swarm(&["doctor"]).ok();
    assert!(said.out.lines().any(|line| line.starts_with("ok    daemon: it runs")), "{}", said.out);
    assert!(!said.out.contains("hint:") || said.out.contains("warn"), "{}", said.out);
}

#[test]
fn doctor_checks_the_rest_without_a_usable_directory() {
    let mut w = World::new();
    w.write("file", "");
    w.set("SWARM_DIR", w.work().join("file").display().to_string());
    let found = doctor(&w);
    found.has("directory", "fail", "is not a directory");
    found.has("tmux", "ok", "version");
    found.has("git", "ok", "version");
    w.set("SWARM_DIR", "");
    for home in ["", "relative"] {
        w.set("HOME", home);
        let found = doctor(&w);
        assert!(found.has("directory", "fail", "HOME is not").contains("set HOME or SWARM_DIR"));
        assert_eq!(found.code, Some(1));
    }
}

#[test]
fn missing_old_or_hanging_tmux_is_a_failure_with_a_hint() {
    let mut w = World::new();
    let dir = programs(&w, &["git", "sh", "sleep"]);
    w.set("PATH", dir.display().to_string());
    assert!(doctor(&w).has("tmux", "fail", "not installed").contains("install tmux"));
    script(&dir.join("tmux"), "#!/bin/sh\necho tmux 2.9a\n");
    assert!(doctor(&w).has("tmux", "fail", "2.9a is too old").contains("newer"));
    let pids = w.path("pids");
    script(&dir.join("tmux"), &format!("#!/bin/sh\necho $$ >>'{}'\nexec sleep 30\n", pids.display()));
    let ran = w.swarm(&["doctor", "--format", "json"]);
    // The world's own end needs a tmux that answers.
    w.unset("PATH");
    Found::of(&ran).has("tmux", "fail", "did not respond");
    for pid in w.lines("pids") {
        let pid = pid.parse().unwrap();
        w.until("the tmux that hung is gone", || (!is_alive(pid)).then_some(()));
    }
}

#[test]
fn a_missing_git_is_a_warning() {
    let mut w = World::new();
    let dir = programs(&w, &["tmux"]);
    w.set("PATH", dir.display().to_string());
    let found = doctor(&w);
    found.only(&["git", "sandbox"]);
    assert!(found.has("sandbox", "warn", "bwrap is not installed").contains("apt install bubblewrap"));
    assert!(found.has("git", "warn", "only worktrees").contains("install git"));
    assert_eq!(found.code, Some(0));
}

#[test]
fn stopped_tmux_server_and_one_without_its_socket_are_found() {
    let w = World::new();
    w.spawn("one", &[], &["sleep", "600"]).ok();
    let server = w.tmux_pid();
    w.crash_daemon();
    signal(server, Signal::SIGSTOP);
    let ran = w.swarm(&["doctor", "--format", "json"]);
    // Whatever it said: the end of the world waits for the server's answer.
    signal(server, Signal::SIGCONT);
    let found = Found::of(&ran);
    let cure = found.has("tmux-server", "fail", "does not respond");
    assert!(cure.contains(&format!("kill -CONT {server}")), "{cure}");

    fs::remove_file(w.tmux_socket()).unwrap();
    let cure = doctor(&w).has("tmux-server", "fail", "is gone");
    assert_eq!(cure, format!("to make it again: kill -USR1 {server}"));
    signal(server, Signal::SIGUSR1);
    w.until("the cure helps", || w.tmux_socket().exists().then_some(()));
    w.until("it says so", || {
        doctor(&w).checks.iter().any(|c| c["check"] == "tmux-server" && c["level"] == "ok").then_some(())
    });
}

#[test]
fn dead_stopped_or_socketless_daemon_is_found() {
    let w = World::new();
    w.spawn("one", &[], &["sleep", "600"]).ok();
    w.crash_daemon();
    let found = doctor(&w);
    found.only(&["socket", "daemon"]);
    found.has("socket", "warn", "a leftover of a killed daemon");
    assert_eq!(
        found.has("daemon", "warn", "not running: 1 live worker without a supervisor"),
        "swarm daemon start"
    );
    assert_eq!(w.daemon_pid(), None, "the look started it");

    let pid = w.start_daemon();
    signal(pid, Signal::SIGSTOP);
    let ran = w.swarm(&["doctor", "--format", "json"]);
    signal(pid, Signal::SIGCONT);
    let found = Found::of(&ran);
    assert!(found.has("daemon", "fail", "does not answer").contains(&format!("kill -9 {pid}")));

    fs::remove_file(swarm::paths::Paths::new(w.swarm_dir()).socket()).unwrap();
    let cure = doctor(&w).has("daemon", "fail", &format!("a daemon runs (pid {pid})"));
    assert!(cure.ends_with(&format!(": kill {pid}")), "{cure}");
}

#[test]
fn other_program_on_the_socket_is_named() {
    let w = World::new();
    fs::create_dir(w.swarm_dir()).unwrap();
    fs::set_permissions(w.swarm_dir(), fs::Permissions::from_mode(0o700)).unwrap();
    let socket = swarm::paths::Paths::new(w.swarm_dir()).socket();
    fs::write(&socket, "mine").unwrap();
    assert!(doctor(&w).has("socket", "fail", "is not a socket").contains("mv "));
    assert_eq!(fs::read(&socket).unwrap(), b"mine");
    fs::remove_file(&socket).unwrap();

    let view = r#"{"id":1,"ok":{"pid":1,"version":"0.0.1","protocol":1,"started":"2026-01-15T10:30:00+01:00","swarm_dir":"/x","socket":"/x/s","tmux":null,"live":0,"workers":0,"paused_by_shutdown":[]}}"#;
    for (hello, answer, level, text) in [
        ("rubbish", "", "fail", "is not a swarm daemon"),
        (r#"{"swarm":99,"daemon":"9.9.9","pid":1}"#, "", "fail", "speaks protocol 99"),
        (r#"{"swarm":1,"daemon":"0.0.1","pid":1}"#, view, "warn", "runs swarm 0.0.1"),
    ] {
        let listener = UnixListener::bind(&socket).unwrap();
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o600)).unwrap();
        let mut asked = w.follow(&["doctor", "--format", "json"]);
        // The client may connect more than once.
        listener.set_nonblocking(true).unwrap();
        w.until("it has looked", || {
            if let Ok((stream, _)) = listener.accept() {
                stream.set_nonblocking(false).unwrap();
                serve(stream, hello, answer);
            }
            asked.has_ended().then_some(())
        });
        let output = asked.output();
        let code = asked.wait(&w);
        let found = Found::of(&Ran { code: Some(code), out: output, err: String::new() });
        assert!(found.has("daemon", level, text).len() > 3);
        fs::remove_file(&socket).unwrap();
    }
}

/// Answers a hello and one call with these lines.
fn serve(stream: std::os::unix::net::UnixStream, hello: &str, answer: &str) {
    let mut write = stream.try_clone().unwrap();
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    for say in [hello, answer].into_iter().filter(|say| !say.is_empty()) {
        drop(lines.read_line(&mut line));
        drop(writeln!(write, "{say}"));
    }
    // Until it hangs up: what was said is read then.
    drop(lines.read_line(&mut line));
}

#[test]
fn damaged_and_leftover_files_are_found_and_not_changed() {
    let w = World::new();
    w.spawn("good", &[], &["true"]).ok();
    w.until_status("good", "done");
    w.swarm(&["daemon", "stop"]).ok();
    let dir = w.swarm_dir();
    let good = fs::read_to_string(dir.join("workers/good.json")).unwrap();
    let put = |path: &str, text: &str| {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put("workers/torn.json", good.split_inclusive('}').next().unwrap());
    put("workers/newer.json", &good.replace("\"format\": 1", "\"format\": 99"));
    put("workers/old.json.corrupt-20260101T000000", "x");
    fs::create_dir(dir.join("workers/dir.json")).unwrap();
    put("ralph/loop/state.json", "{}");
    put("ralph/loop/state.json.corrupt-20260101T000000", "x");
    put("workers/.good.json.999999999-3.tmp", "x");
    put("runs/nobody.4/started", "1");
    put("state.json", "[]");
    put("events.jsonl.corrupt-20260101T000000", "x");
    put("events.jsonl", "{\"format\":1,\"after\":0,\"earlier\":false}\n{\"seq\":\ngarbage\n{\"unfinished");
    put("events.jsonl.1/x", "");
    let before = tree(&dir);
    let found = doctor(&w);
    found.has("state-files", "fail", "torn.json' cannot be read");
    found.has("state-files", "fail", "dir.json' cannot be read");
    let hint = found.has("state-files", "fail", "ralph/loop/state.json' cannot be read");
    assert_eq!(hint, "if the loop is paused: swarm ralph resume loop; otherwise move the file away");
    assert!(found.has("state-files", "fail", "written by a newer swarm").contains("newer swarm"));
    found.has("state-files", "warn", "old.json.corrupt-20260101T000000' could not be read and was set aside");
    found.has("state-files", "warn", "state.json.corrupt-20260101T000000'");
    found.has("state-files", "warn", "state.json' was not changed");
    found.has(
        "state-files",
        "warn",
        "events.jsonl.corrupt-20260101T000000' could not be read and was set aside",
    );
    found.has("state-files", "fail", "events.jsonl.1' cannot be read");
    found.has("event-log", "warn", "events.jsonl' is damaged: 2 lines cannot be read");
    assert!(found.has("leftovers", "warn", ".tmp").starts_with("rm "));
    assert_eq!(found.has("leftovers", "warn", "runs/nobody.4"), "to remove it: swarm daemon restart");
    assert_eq!(tree(&dir), before, "the look changed something");
}

#[test]
fn a_pane_a_worktree_and_a_branch_of_no_worker_are_found() {
    let w = World::new();
    let repo = w.repo("work/repo");
    let spawn = |name: &str, flags: &[&str]| {
        let mut command = w.command(SWARM);
        command.current_dir(&repo).args(["spawn", "--name", name]).args(flags).args(["--", "sleep", "600"]);
        w.run(command).ok();
    };
    spawn("kept", &["--worktree"]);
    spawn("gone", &["--worktree"]);
    let look = || {
        let mut command = w.command(SWARM);
        command.current_dir(&repo).args(["doctor", "--format", "json"]);
        Found::of(&w.run(command))
    };
    look().only(&[]);
    w.swarm(&["daemon", "stop"]).ok();
    fs::remove_file(w.swarm_dir().join("workers/gone.json")).unwrap();
    let mut git = w.command("git");
    git.current_dir(&repo).args(["branch", "swarm/mine"]);
    w.run(git).ok();
    let found = look();
    let cure = found.has("orphans", "warn", "is marked as worker 'gone', which has no record");
    assert!(cure.contains("swarm daemon restart"));
    let cure =
        found.has("orphans", "warn", "repo-worktrees/gone' on branch 'swarm/gone' belongs to no worker");
    assert!(
        !found.checks.iter().any(|c| c["message"].to_string().contains("swarm/mine")),
        "it is the user's"
    );
    assert!(!found.checks.iter().any(|c| c["message"].to_string().contains("swarm/kept")));
    // The cures are commands that work, after a look.
    let (first, cure) = cure.split_once("; then: ").unwrap();
    assert!(first.contains("another SWARM_DIR"), "{first}");
    w.swarm(&["ls"]).ok();
    w.swarm(&["kill", "gone"]).ok();
    w.swarm(&["daemon", "stop"]).ok();
    fs::remove_file(w.swarm_dir().join("workers/gone.json")).unwrap();
    let mut shell = w.command("sh");
    shell.args(["-c", cure]);
    w.run(shell).ok();
    look().only(&["daemon"]);
}

/// Runs the command after the last colon of a cure, exactly as printed.
#[track_caller]
fn do_as_told(w: &World, cure: &str) {
    let (_, command) = cure.rsplit_once(": ").unwrap();
    assert!(command.starts_with("swarm "), "{cure}");
    let path = format!("{}:{}", Path::new(SWARM).parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut shell = w.command("sh");
    shell.args(["-c", command]).env("PATH", path);
    w.run(shell).ok();
}

#[test]
fn loops_without_records_are_found_and_the_hints_work_as_printed() {
    let w = World::new();
    let agent = w.agent("a");
    w.spawn_loop("live", &agent, &["-n", "3"]);
    let looped = |name: &str, flags: &[&str]| {
        let head = ["spawn", "--name", name, "--ralph", "--prompt-file", "/dev/null", "-n", "1"];
        w.swarm(&[&head[..], flags, &["--", "true"]].concat())
    };
    looped("over", &[]).ok();
    looped("twice", &[]).ok();
    looped("twice", &["--check", "false"]).code(1);
    looped("kept", &[]).ok();
    let look = || Found::of(&w.swarm(&["doctor", "--format", "json"]));
    look().only(&[]);
    w.swarm(&["daemon", "stop"]).ok();
    for name in ["live", "over", "twice"] {
        fs::remove_file(w.swarm_dir().join(format!("workers/{name}.json"))).unwrap();
    }
    let found = look();
    found.only(&["daemon", "leftovers", "orphans"]);
    assert!(!found.checks.iter().any(|c| c["message"].to_string().contains("runs/live")), "it lives");
    let back = found.has("orphans", "warn", "is marked as worker 'live', which has no record");
    assert!(back.contains("as a worker that is not a loop"), "{back}");
    let cures: Vec<String> = ["over", "twice"]
        .map(|name| {
            found.has(
                "leftovers",
                "warn",
                &format!("ralph/{name}' belongs to a loop whose worker has no record"),
            )
        })
        .to_vec();
    cures.iter().for_each(|cure| do_as_told(&w, cure));
    // These have started a daemon, which has found the agent and says so until the next one looks.
    let found = look();
    found.only(&["daemon"]);
    assert_eq!(
        found.has("daemon", "warn", "'live': its record is gone"),
        "to check again: swarm daemon restart"
    );
    do_as_told(&w, &back);
    look().only(&[]);
    for name in ["over", "twice"] {
        assert!(!w.swarm_dir().join("ralph").join(name).exists());
    }
    assert!(w.swarm_dir().join("ralph/kept/state.json").exists());
    assert_eq!(w.status("live")["status"], "running");
    w.swarm(&["kill", "live"]).ok();
    w.swarm(&["clean", "live"]).ok();
    look().only(&[]);
    assert!(!w.swarm_dir().join("ralph/live").exists());
}

#[test]
fn open_permissions_are_found() {
    let w = World::new();
    w.spawn("one", &[], &["true"]).ok();
    // Nothing is written any more then.
    w.until_status("one", "done");
    let chmod = |path: PathBuf, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let record = w.swarm_dir().join("workers/one.json");
    chmod(record.clone(), 0o644);
    let found = doctor(&w);
    found.only(&["permissions"]);
    let cure = found.has("permissions", "warn", "one.json' (mode 0644)");
    chmod(w.swarm_dir(), 0o755);
    doctor(&w).has("permissions", "warn", "is open to other users (mode 0755)");
    let mut shell = w.command("sh");
    shell.args(["-c", &cure]);
    w.run(shell).ok();
    doctor(&w).only(&[]);
}

#[test]
fn settings_that_cannot_be_read_are_found() {
    let w = World::new();
    w.write("swarm.toml", "[ralph]\nmax_iterations = \"many\"\n");
    doctor(&w).has("settings", "fail", "swarm.toml");
}

#[test]
fn a_guard_that_is_off_is_found() {
    let w = World::new();
    doctor(&w).has("guard", "ok", "(0 allowed patterns)");
    fs::create_dir_all(w.path("home/.config/swarm")).unwrap();
    fs::write(w.path("home/.config/swarm/config.toml"), "[guard]\noff = true\n").unwrap();
    doctor(&w).has("guard", "warn", "it is off");
}

#[test]
fn full_disk_is_found() {
    let dir = tempfile::Builder::new().prefix("swarm-it-room-").tempdir_in("/tmp").unwrap();
    let w = World::new().with_swarm_dir(dir.path());
    let mut mount = w.command("mount");
    mount.args(["-t", "tmpfs", "-o", "size=4m,mode=700", "none"]).arg(dir.path());
    if w.run(mount).code != Some(0) {
        eprintln!("skipped: mounting a small file system is not permitted here");
        return;
    }
    let ran = w.swarm(&["doctor", "--format", "json"]);
    let mut umount = w.command("umount");
    umount.arg("-l").arg(dir.path());
    w.run(umount).ok();
    let found = Found::of(&ran);
    found.only(&["disk"]);
    assert!(found.has("disk", "fail", "only ").contains("free some space"));
}

#[test]
fn doctor_shows_the_socket_of_a_long_directory() {
    let w = World::new().with_swarm_dir("d".repeat(120));
    doctor(&w).has("socket", "ok", "SWARM_DIR is too long for a socket; it is /tmp/swarm-");
}

/// The command of a cure, which stands at its end, run as it is printed.
#[track_caller]
fn type_in(w: &World, cure: &str) -> Ran {
    let command = cure.rsplit_once(": ").map_or(cure, |(_, command)| command);
    let mut shell = w.command("sh");
    let dir = Path::new(SWARM).parent().unwrap().display();
    shell.current_dir(w.work()).args(["-c", &format!("PATH='{dir}':$PATH; {command}")]);
    w.run(shell).ok()
}

#[test]
fn hints_for_leftover_worktrees_work_as_printed_and_lose_nothing() {
    let w = World::new();
    let repo = w.repo("work/it's a repo");
    let look = || {
        let mut command = w.command(SWARM);
        command.current_dir(&repo).args(["doctor", "--format", "json"]);
        Found::of(&w.run(command))
    };
    let flags = ["--cwd", repo.to_str().unwrap(), "--worktree"];
    w.spawn_sh("kept", &flags, "echo precious >new.txt").ok();
    let tree = PathBuf::from(w.until_status("kept", "done")["worktree"]["path"].as_str().unwrap());
    w.swarm(&["clean", "kept", "--keep-worktree"]).ok();
    // Work that stands nowhere else is named, and the cure shows it.
    let cure = look().has("orphans", "warn", "holds work that exists nowhere else: new.txt");
    assert!(type_in(&w, &cure).out.contains("new.txt"));
    let mut shell = w.command("sh");
    shell.current_dir(&tree).args(["-c", "git add . && git commit -qm kept"]);
    w.run(shell).ok();
    // Its commits are on the branch, which stays.
    let cure = look().has("orphans", "warn", "on branch 'swarm/kept' belongs to no worker");
    type_in(&w, &cure);
    assert!(!tree.exists());
    let cure = look().has("orphans", "warn", "branch 'swarm/kept' in ");
    assert!(type_in(&w, &cure).out.contains("kept"));
    let mut merge = w.command("git");
    merge.current_dir(&repo).args(["merge", "-q", "swarm/kept"]);
    w.run(merge).ok();
    let cure = look().has("orphans", "warn", "branch 'swarm/kept' in ");
    type_in(&w, &cure);
    look().only(&[]);
}

#[test]
fn hints_for_leftovers_of_a_killed_daemon_work_as_printed() {
    let w = World::new();
    w.spawn("one", &[], &["sleep", "600"]).ok();
    let record = w.swarm_dir().join("workers/one.json");
    w.crash_daemon();
    let open = fs::Permissions::from_mode(0o644);
    fs::set_permissions(&record, open).unwrap();
    fs::write(w.swarm_dir().join("workers/.one.json.999999999-3.tmp"), "x").unwrap();
    fs::create_dir_all(w.swarm_dir().join("runs/nobody.4")).unwrap();
    fs::write(w.swarm_dir().join("runs/nobody.4/started"), "1").unwrap();
    let found = doctor(&w);
    for (check, text) in [
        ("socket", "a leftover of a killed daemon"),
        ("daemon", "without a supervisor"),
        ("permissions", "open to other"),
    ] {
        type_in(&w, &found.has(check, "warn", text));
    }
    for cure in found.checks.iter().filter(|c| c["check"] == "leftovers") {
        let path = cure["message"].as_str().unwrap().split('\'').nth(1).unwrap();
        if Path::new(path).exists() {
            type_in(&w, cure["hint"].as_str().unwrap());
        }
    }
    w.until("all is well", || doctor(&w).checks.iter().all(|c| c["check"] != "leftovers").then_some(()));
    doctor(&w).only(&[]);
}

#[test]
fn doctor_without_tmux_does_not_suggest_a_kill() {
    let mut w = World::new();
    w.spawn("one", &[], &["sleep", "600"]).ok();
    let path = programs(&w, &["git", "sh"]);
    w.set("PATH", path.display().to_string());
    let ran = w.swarm(&["doctor", "--format", "json"]);
    w.unset("PATH");
    let found = Found::of(&ran);
    let cure = found.has("tmux-server", "fail", "unknown without a working tmux");
    assert!(cure.contains("install tmux"), "{cure}");
    assert!(!ran.out.contains("kill"), "{}", ran.out);
}
