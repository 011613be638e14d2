//! Workers in a bubblewrap sandbox: what an agent there cannot do, and what still works.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use crate::world::World;

mod docker;
mod escapes;
mod git;
mod hooks;
mod works;

/// A row of a table: its name, and a shell script.
type Row = (&'static str, &'static str);

/// Whether a sandbox can be built here. In CI it can; elsewhere the tests print that they did not run.
pub(crate) fn is_here(world: &World) -> bool {
    let doctor = world.swarm(&["doctor", "--format", "json"]).json();
    let check =
        doctor["checks"].as_array().unwrap().iter().find(|check| check["check"] == "sandbox").unwrap();
    let works = check["level"] == "ok";
    if !works {
        assert!(std::env::var_os("CI").is_none(), "no sandbox in CI: {check}");
        let line = format!("** NOT RUN: no sandbox can be built here: {} **\n", check["message"]);
        std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).unwrap();
    }
    works
}

/// A world with a repository, a home directory with secrets, and programs and sockets outside.
struct SandboxCase {
    world: World,
    victim: std::process::Child,
    _sockets: Vec<UnixListener>,
}

impl SandboxCase {
    fn new() -> Option<Self> {
        let mut world = World::new();
        if !is_here(&world) {
            return None;
        }
        for (file, text) in [
            ("home/.ssh/id_rsa", "SECRET\n"),
            ("home/.bashrc", "\n"),
            ("home/.npmrc", "SECRET\n"),
            ("home/.gitconfig", "[user]\n\tname = Config\n"),
            ("home/.claude/settings.json", "{}\n"),
            ("home/.claude/CLAUDE.md", "\n"),
            ("home/.claude/.credentials.json", "{}\n"),
            ("home/.claude.json", "{\"userID\":\"u\"}\n"),
            ("home/.npm/_cacache/index", "seeded\n"),
            ("home/.cargo/registry/cache/x.crate", "seeded\n"),
            ("home/.local/bin/tool", "#!/bin/sh\necho from the home directory\n"),
            ("secrets/file", "SECRET\n"),
            ("shared/file", "shared\n"),
            ("work/f", "one\n"),
            ("work/swarm.toml", "\n"),
            ("work/agent.sh", AGENT),
        ] {
            let path = world.path(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
        }
        fs::set_permissions(world.path("home/.local/bin/tool"), fs::Permissions::from_mode(0o755)).unwrap();
        let mut sockets = vec![];
        let tmux = format!("tmux/tmux-{}", nix::unistd::getuid());
        fs::create_dir_all(world.path(&tmux)).unwrap();
        for socket in ["agent.sock".to_owned(), format!("{tmux}/default")] {
            sockets.push(UnixListener::bind(world.path(socket)).unwrap());
        }
        let path = std::env::var("PATH").unwrap();
        world.set("PATH", format!("{}:{path}", world.path("home/.local/bin").display()));
        world.set("SSH_AUTH_SOCK", world.path("agent.sock").display().to_string());
        let victim = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let case = Self { world, victim, _sockets: sockets };
        case.git(&["init", "-q"]);
        case.git(&["config", "remote.origin.url", "nowhere"]);
        case.git(&["add", "-A"]);
        case.git(&["commit", "-qm", "one"]);
        case.git(&["branch", "packed"]);
        case.git(&["pack-refs", "--all"]);
        case.git(&["worktree", "add", "-q", "../other"]);
        Some(case)
    }

    fn git(&self, args: &[&str]) -> String {
        let mut git = self.world.command("git");
        git.args(args);
        self.world.run(git).ok().out
    }

    /// Runs the rows in one worker, as an agent that the profile of Claude Code is for. Returns the exit status and the
    /// output of each.
    fn run(&self, name: &str, options: &[&str], rows: &[Row]) -> BTreeMap<String, (i32, String)> {
        let tree = self.tree(name, options);
        let home = self.world.path("home").display().to_string();
        let variables = [
            ("VICTIM", self.victim.id().to_string()),
            ("OUT", self.world.path("").display().to_string()),
            ("REAL_HOME", home),
        ];
        let set: Vec<String> =
            variables.iter().map(|(key, value)| format!("export {key}={value}\n")).collect();
        let rows_dir = self.world.path(format!("rows-{name}"));
        fs::create_dir_all(&rows_dir).unwrap();
        for (number, (row, script)) in rows.iter().enumerate() {
            let text = format!("{}{script}\n", set.concat());
            fs::write(rows_dir.join(format!("{number:03}-{row}")), text).unwrap();
        }
        let claude = self.world.path("shared/claude");
        fs::write(&claude, "#!/bin/sh\nexec sh ./agent.sh \"$ROWS\"\n").unwrap();
        fs::set_permissions(&claude, fs::Permissions::from_mode(0o755)).unwrap();
        let rows_dir = rows_dir.to_str().unwrap().to_owned();
        let shared = self.world.path("shared").display().to_string();
        let fixed = ["--sandbox", "bwrap", "--sandbox-ro", &rows_dir, "--sandbox-ro", &shared];
        let env = format!("ROWS={rows_dir}");
        let flags = [&fixed[..], options, &["--env", &env]].concat();
        self.world.spawn(name, &flags, &[claude.to_str().unwrap(), "-p"]).ok();
        let ended = self.world.until_ended(name);
        let log = || self.world.swarm(&["logs", name]).out;
        assert_eq!((&ended["status"], &ended["sandbox"]), (&"done".into(), &"bwrap".into()), "{}", log());
        let result = |(number, (row, _)): (usize, &Row)| {
            let file =
                |kind: &str| fs::read_to_string(tree.join(format!("results/{number:03}-{row}.{kind}")));
            let code = file("rc").unwrap_or_else(|_| panic!("{row} did not run: {}", log()));
            ((*row).to_owned(), (code.trim().parse().unwrap(), file("out").unwrap_or_default()))
        };
        rows.iter().enumerate().map(result).collect()
    }

    fn tree(&self, name: &str, options: &[&str]) -> PathBuf {
        match options.contains(&"--worktree") {
            true => self.world.path(format!("work-worktrees/{name}")),
            false => self.world.work(),
        }
    }

    /// All files outside of the tree of `name`, except those that change by themselves.
    fn outside(&self, name: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let changes = |path: &Path| {
            let path = path.strip_prefix(self.world.path("")).unwrap();
            let starts = [
                format!("work-worktrees/{name}"),
                format!("work/.git/worktrees/{name}"),
                format!("rows-{name}"),
                "swarm".into(),
                "work/.git/objects".into(),
                "work/.git/refs".into(),
                "work/.git/logs".into(),
                "home/.claude/projects".into(),
            ];
            starts.iter().any(|start| path.starts_with(start)) || path.starts_with("tmux")
        };
        let files = walkdir::WalkDir::new(self.world.path("")).into_iter().flatten();
        let files = files.filter(|entry| entry.file_type().is_file() && !changes(entry.path()));
        files.map(|entry| (entry.path().to_owned(), fs::read(entry.path()).unwrap_or_default())).collect()
    }
}

impl Drop for SandboxCase {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// Runs each script of a directory and records its exit status and its output.
const AGENT: &str = r#"
mkdir -p results
for row in "$1"/*; do
    name=${row##*/}
    timeout -k 1 60 sh "$row" >"results/$name.out" 2>&1
    echo $? >"results/$name.rc"
done
"#;

#[test]
fn replace_keeps_the_worker_if_the_new_one_cannot_start() {
    let world = World::new();
    if !is_here(&world) {
        return;
    }
    world.spawn("live", &[], &["sleep", "600"]).ok();
    let replace = |options: &[&str]| {
        let head = ["spawn", "--name", "live", "--replace", "--sandbox", "bwrap"];
        world.swarm(&[&head, options, &["--", "sleep", "600"]].concat())
    };
    let home = world.path("home").display().to_string();
    replace(&["--cwd", &home]).code(6).warns("it contains the home directory");
    let own = world.swarm_dir().display().to_string();
    replace(&["--sandbox-rw", &own]).code(1).warns("swarm's own files are there");
    replace(&["--allow-host", "npm"]).code(2).warns("--net allow");
    assert_eq!(world.swarm(&["status", "live", "--format", "json"]).json()["status"], "running");
}

#[test]
fn sandbox_that_cannot_be_built_is_an_error_except_with_auto() {
    let mut world = World::new();
    world.set("PATH", "/nowhere:/usr/bin/none");
    let sh = ["--", "/bin/sh", "-c", "true"];
    let spawn = |flags: &[&str]| world.swarm(&[&["spawn", "--name", "a"], flags, &sh].concat());
    let ran = spawn(&["--sandbox", "bwrap"]).code(6);
    assert!(
        ran.err.contains("bwrap is not installed") && ran.err.contains("hint: apt install bubblewrap"),
        "{}",
        ran.err
    );
    spawn(&["--sandbox"]).code(6).warns("--sandbox bwrap");
    assert!(!world.swarm_dir().join("workers/a.json").exists());
    world.set("PATH", std::env::var("PATH").unwrap());
    let none = world.path("empty");
    fs::create_dir(&none).unwrap();
    for tool in ["tmux", "git", "sh"] {
        let path = std::env::var_os("PATH").unwrap();
        let found = std::env::split_paths(&path).map(|dir| dir.join(tool));
        let found = { found }.find(|file| file.is_file()).unwrap();
        std::os::unix::fs::symlink(found, none.join(tool)).unwrap();
    }
    world.set("PATH", none.display().to_string());
    let ran = world.swarm(&[&["spawn", "--name", "a", "--sandbox", "auto"][..], &sh].concat()).ok();
    assert!(ran.err.contains("no sandbox: the agent and the checks can read and change all"), "{}", ran.err);
    let doctor = world.swarm(&["doctor"]);
    assert!(doctor.out.contains("sandbox: no bubblewrap sandbox can be built"), "{}", doctor.out);
    world.until_ended("a");
}

#[test]
fn sandbox_is_refused_for_a_parent_of_the_home_directory() {
    let world = World::new();
    if !is_here(&world) {
        return;
    }
    let place = world.path("").display().to_string();
    let ran = world.spawn_sh("a", &["--sandbox", "bwrap", "--cwd", &place], "true").code(6);
    assert!(ran.err.contains("it contains the home directory"), "{}", ran.err);
}
