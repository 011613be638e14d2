//! Workers in a Docker sandbox, against a stand-in for `docker` that records each call (`scripts/fake-docker.pl`).

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::Value;

use crate::task_loops::{Project, script, story};
use crate::world::World;

/// A world whose `docker` is the stand-in, with a repository.
struct DockerCase {
    world: World,
}

/// An agent that commits a file with its prompt.
const COMMITS: &str = "#!/bin/sh\nfor text; do :; done\necho \"$text\" >>work.txt\ngit add -A\ngit commit -qm work\necho done\n";

impl DockerCase {
    fn new(agent: &str) -> Self {
        let mut world = World::new();
        use_stand_in(&mut world, agent);
        let case = Self { world };
        case.git(&["init", "-q"]);
        case.git(&["commit", "-q", "--allow-empty", "-m", "start"]);
        case
    }

    fn git(&self, args: &[&str]) {
        let mut git = self.world.command("git");
        git.args(args);
        self.world.run(git).ok();
    }

    /// The name of the sandbox.
    fn name(&self) -> String {
        swarm_state::docker::sandbox_name(&self.world.work())
    }

    /// The calls since the last time, in short.
    fn calls(&self) -> Vec<String> {
        calls(&self.world, &self.world.work())
    }
}

/// Puts the stand-in first on the PATH, and an agent into its templates.
fn use_stand_in(world: &mut World, agent: &str) {
    let dir = world.path("docker");
    fs::create_dir_all(dir.join("bin")).unwrap();
    let stand_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/fake-docker.pl");
    symlink(stand_in, dir.join("bin/docker")).unwrap();
    write_program(&dir.join("agent"), agent);
    let path = format!("{}:{}", dir.join("bin").display(), std::env::var("PATH").unwrap());
    world.set("PATH", path);
    world.set("FAKE_DOCKER", dir.display().to_string());
    // The stand-in has no files to synchronize.
    world.set("SWARM_DOCKER_SYNC_MS", "0");
}

fn write_program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The calls since the last time. The sandbox's name is `NAME`, paths start at the world's directory, and a script of
/// swarm is shortened to what it does.
fn calls(world: &World, project: &Path) -> Vec<String> {
    let file = world.path("docker/calls");
    let text = fs::read_to_string(&file).unwrap_or_default();
    fs::write(&file, "").unwrap();
    let name = swarm_state::docker::sandbox_name(project);
    let short = |word: &str| {
        let kinds = [
            ("rm -rf /home/agent", "LINK"),
            ("git config --global", "IDENTITY"),
            ("cat /home/agent/.swarm-setup", "MARK"),
            (r#"mv -f -- "$t""#, "PUT"),
            (r#"rm -rf -- "$1""#, "REMOVE"),
        ];
        let kind = kinds.iter().find(|(text, _)| word.contains(text)).map(|(_, kind)| (*kind).to_owned());
        let root = format!("{}/", world.path("").display().to_string().trim_end_matches('/'));
        kind.unwrap_or_else(|| word.replace(&root, "").replace(&name, "NAME").trim_end().replace('\n', "|"))
    };
    let joined = |line: &str| {
        let mut words: Vec<String> = serde_json::from_str(line).unwrap();
        if let Some(at) = words.iter().position(|word| word == "--session-id") {
            words[at + 1] = "ID".into();
        }
        words.iter().map(|word| short(word)).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(joined).collect()
}

/// The first verification of the ralph document.
#[test]
fn a_sandbox_is_created_and_set_up_once() {
    let case = DockerCase::new(
        "#!/bin/sh\necho \"$1 $2\" >answer; cat ~/.claude.json >>answer; git config user.email >>answer\n",
    );
    let world = &case.world;
    let spawn = |name: &str| {
        let prompt = ["--prompt", "Respond with: OK"];
        world
            .swarm(&[&["spawn", "--name", name, "--sandbox"][..], &prompt, &["--", "claude", "-p"]].concat())
            .ok();
        assert_eq!(world.until_ended(name)["status"], "done");
    };
    spawn("a");
    let create = "sandbox create --name NAME claude work home/.dclaude_state";
    let setup = ["sandbox exec -u root NAME bash -c LINK", "sandbox exec NAME bash -c IDENTITY"];
    let run = "sandbox run NAME -- -p Respond with: OK";
    // The first list is the client's.
    let list = "sandbox ls";
    assert_eq!(case.calls(), [list, list, create, setup[0], setup[1], run]);
    let answer = || fs::read_to_string(world.work().join("answer")).unwrap();
    assert_eq!(answer(), "-p Respond with: OK\n{}\nralph@localhost\n");
    // Later runs only start the agent. The login is kept.
    let state = world.path("home/.dclaude_state");
    fs::write(state.join(".claude.json"), "{\"login\":1}\n").unwrap();
    fs::write(state.join(".claude/credentials"), "secret\n").unwrap();
    spawn("b");
    assert_eq!(case.calls(), [list, list, "sandbox exec NAME sh -c MARK", run]);
    // Also by a new sandbox.
    let mut rm = world.command("docker");
    rm.args(["sandbox", "rm", &case.name()]);
    world.run(rm).ok();
    case.calls();
    spawn("c");
    assert_eq!(case.calls(), [list, list, create, setup[0], setup[1], run]);
    assert!(answer().contains("{\"login\":1}"));
    let home = world.path("docker/homes").join(case.name());
    assert_eq!(fs::read_to_string(home.join(".claude/credentials")).unwrap(), "secret\n");
}

/// The fifth verification of the ralph document: one iteration on a task list.
#[test]
fn a_task_list_is_worked_on_in_the_sandbox() {
    let project = task_project(&[story("US-001")]);
    let (code, text) = run(&project, &["--sandbox", "-n", "1"]);
    assert_eq!(code, 1, "{text}");
    assert_eq!(project.state("US-001"), (false, Some("needs_review".into()), 0), "{text}");
    let prompt = project.prompt(1);
    assert!(prompt.starts_with("Iteration 1 of 1: implement US-001"), "{prompt}");
    let calls = calls(&project.world, &project.world.work());
    let list = "sandbox ls";
    let head = [
        list,
        list,
        "sandbox create --name NAME claude work home/.dclaude_state",
        "sandbox exec -u root NAME bash -c LINK",
        "sandbox exec NAME bash -c IDENTITY",
        // git ignores two files of swarm, the progress file and the marker.
        "sandbox exec -i NAME sh -c PUT swarm work/.git/info/exclude 644",
        "sandbox exec -i NAME sh -c PUT swarm work/.swarm/ralph-progress.md 600",
        "sandbox exec -i NAME sh -c PUT swarm work/.git/info/exclude 644",
        "sandbox exec -i NAME sh -c PUT swarm work/.ralph-active 644",
    ];
    let shape: Vec<&str> =
        calls.iter().map(|call| call.trim_end_matches(char::is_numeric).trim_end()).collect();
    assert_eq!(&shape[..head.len()], head, "{calls:#?}");
    assert!(
        calls[head.len()]
            .starts_with("sandbox run NAME -- --session-id ID -p Iteration 1 of 1: implement US-001"),
        "{calls:#?}"
    );
    let tail = [
        "sandbox exec -i NAME sh -c PUT swarm work/.swarm/ralph-progress.md 600",
        "sandbox exec NAME sh -c REMOVE swarm work/.ralph-active",
    ];
    assert_eq!(&shape[head.len() + 1..], tail, "{calls:#?}");
    assert!(!project.path(".ralph-active").exists());
    // The marker has the mode of the document.
    let marker: Value =
        serde_json::from_str(&fs::read_to_string(project.agent.join("marker")).unwrap()).unwrap();
    assert_eq!(marker["mode"], "sandbox");
}

/// A project whose agent in the sandbox is the scripted one, as `claude -p`.
fn task_project(stories: &[Value]) -> Project {
    let mut project = Project::new(stories);
    let agent = format!(
        "#!/bin/sh\nfor prompt; do :; done\n[ -e .ralph-active ] && cp .ralph-active '{dir}/marker'\n\
         printf '%s' \"$prompt\" | exec '{script}' '{dir}'\n",
        dir = project.agent.display(),
        script = script().display()
    );
    use_stand_in(&mut project.world, &agent);
    project
}

fn run(project: &Project, options: &[&str]) -> (i32, String) {
    let fixed = ["spawn", "--name", "l", "--ralph", "--ralph-dir", "ralph"];
    let output = project.world.swarm(&[&fixed[..], options, &["--", "claude", "-p"]].concat());
    (output.code.unwrap(), format!("{}{}", output.out, output.err))
}

/// An agent that waits for a word in `$FAKE_DOCKER/go`, and commits.
const WAITS: &str = "#!/bin/sh\nread -r word <\"$FAKE_DOCKER/go\"\necho \"$word\" >>work.txt\ngit add -A\ngit commit -qm work\n";

#[test]
fn files_edited_during_a_pause_are_read_again() {
    let case = DockerCase::new(WAITS);
    let world = &case.world;
    let go = world.path("docker/go");
    nix::unistd::mkfifo(&go, nix::sys::stat::Mode::S_IRWXU).unwrap();
    world.write("PROMPT.md", "Do it\n");
    let flags =
        ["--name", "l", "--ralph", "--prompt-file", "PROMPT.md", "-n", "3", "-d", "--sandbox", "docker"];
    world.swarm(&[&["spawn"][..], &flags, &["--", "claude", "-p"]].concat()).ok();
    let mut seen = vec![];
    let mut until_run = || {
        world.until("the agent runs", || {
            seen.extend(case.calls());
            seen.last().is_some_and(|call| call.starts_with("sandbox run")).then(|| std::mem::take(&mut seen))
        })
    };
    // The next iteration starts only when the pause has ended.
    let pause = || {
        world.swarm(&["ralph", "pause", "l"]).ok();
        fs::write(&go, "word\n").unwrap();
        world.until_status("l", "paused");
    };
    let run = "sandbox run NAME -- --session-id ID -p Do it";
    until_run();
    pause();
    world.swarm(&["ralph", "resume", "l"]).ok();
    assert_eq!(until_run(), ["sandbox ls", "sandbox exec NAME sh -c MARK", run], "nothing was edited");
    pause();
    fs::write(world.work().join("work.txt"), "edited\n").unwrap();
    world.swarm(&["ralph", "resume", "l"]).ok();
    let restarted = ["sandbox ls", "sandbox stop NAME", "sandbox exec NAME sh -c MARK", run];
    assert_eq!(until_run(), restarted);
    fs::write(&go, "word\n").unwrap();
    world.until_status("l", "done");
    assert_eq!(fs::read_to_string(world.work().join("work.txt")).unwrap(), "edited\nword\n");
}

#[test]
fn task_list_files_are_restored_in_the_docker_sandbox() {
    let project = task_project(&[story("US-001")]);
    project.cheat(1, "$story->{passes} = JSON::PP::true; spew('ralph/prd.md', 'less'); 0");
    let (code, text) = run(&project, &["--sandbox", "-n", "1"]);
    assert_eq!(code, 1, "{text}");
    assert_eq!(project.state("US-001"), (false, None, 0), "{text}");
    assert_eq!(fs::read_to_string(project.path("ralph/prd.md")).unwrap(), "# Shop\n");
    let calls = calls(&project.world, &project.world.work());
    let after = calls.iter().skip_while(|call| !call.starts_with("sandbox run")).skip(1);
    let files: Vec<&str> = after.map(|call| call.split_once(" swarm ").unwrap_or_default().1).collect();
    let files: Vec<&str> = files.iter().map(|file| file.split(' ').next().unwrap_or_default()).collect();
    let written =
        ["work/ralph/prd.md", "work/ralph/tasks.json", "work/.swarm/ralph-progress.md", "work/.ralph-active"];
    assert_eq!(files, written, "{calls:#?}");
}

#[test]
fn unusable_docker_is_an_error_with_a_hint() {
    let case = DockerCase::new(COMMITS);
    let world = &case.world;
    let file = |name: &str| world.path("docker").join(name);
    let spawn = |kind: &str| world.spawn("a", &["--sandbox", kind, "--prompt", "x"], &["claude", "-p"]);
    let fix = "hint: install Docker Desktop 4.58 or later and enable sandboxes in its settings, or use --sandbox bwrap";
    for (name, why) in [
        ("old", "docker: 'sandbox' is not a docker command."),
        ("fail-ls", "ls failed in the stand-in"),
        ("hang", "docker sandbox ls: it did not answer in 10 s"),
    ] {
        fs::write(file(name), "").unwrap();
        let ran = spawn("docker").code(6);
        assert!(ran.err.contains(&format!("no Docker sandbox can be built: {why}")), "{}", ran.err);
        assert!(ran.err.contains(fix), "{}", ran.err);
        let _ = fs::remove_file(file(name));
    }
    // A sandbox that cannot be created has the same exit status.
    fs::write(file("fail-create"), "").unwrap();
    let ran = spawn("docker").code(6);
    assert!(ran.err.contains("docker sandbox create: create failed in the stand-in"), "{}", ran.err);
    assert!(!world.swarm_dir().join("workers/a.json").exists());
    write_program(&file("bin/claude"), COMMITS);
    // `auto` uses another sandbox, or none, and never fails.
    fs::write(file("old"), "").unwrap();
    spawn("auto").ok();
    assert_ne!(world.until_ended("a")["sandbox"], "docker");
}

#[test]
fn failed_sandbox_setup_is_repeated() {
    let case = DockerCase::new(COMMITS);
    let world = &case.world;
    let spawn = || world.spawn("a", &["--sandbox", "docker", "--prompt", "x"], &["claude", "-p"]);
    let (list, mark) = ("sandbox ls", "sandbox exec NAME sh -c MARK");
    let create = "sandbox create --name NAME claude work home/.dclaude_state";
    let (link, identity) = ("sandbox exec -u root NAME bash -c LINK", "sandbox exec NAME bash -c IDENTITY");
    fs::write(world.path("docker/fail-root"), "").unwrap();
    spawn().code(6).warns("root failed in the stand-in");
    assert_eq!(case.calls(), [list, list, create, link]);
    fs::write(world.path("docker/fail-setup"), "").unwrap();
    spawn().code(6).warns("setup failed in the stand-in");
    // Whether its files are old is not known.
    let stop = "sandbox stop NAME";
    assert_eq!(case.calls(), [list, list, stop, mark, link, identity]);
    spawn().ok();
    world.until_ended("a");
    assert_eq!(case.calls(), [list, list, stop, mark, link, identity, "sandbox run NAME -- -p x"]);
    let log = world.command("git").args(["log", "-1", "--format=%an <%ae> %s"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&log.stdout), "Ralph Loop <ralph@localhost> work\n");
}

#[test]
fn the_network_is_limited_by_a_printed_command() {
    let case = DockerCase::new(COMMITS);
    let world = &case.world;
    let spawn = |name: &str, net: &[&str]| {
        let flags = [&["--sandbox", "docker", "--prompt", "x", "--replace"], net].concat();
        let ran = world.spawn(name, &flags, &["claude", "-p"]).ok();
        world.until_ended(name);
        ran.err
    };
    let deny = format!("docker sandbox network proxy {} --policy deny", case.name());
    let text = spawn("a", &["--net", "off"]);
    assert!(text.lines().any(|line| line.ends_with(&format!("until you run: {deny}"))), "{text}");
    let text = spawn("b", &["--net", "allow", "--allow-host", "example.org"]);
    let hosts =
        ["api.anthropic.com", "console.anthropic.com", "platform.claude.com", "claude.ai", "example.org"];
    let allow: String = hosts.iter().map(|host| format!(" --allow-host {host}")).collect();
    assert!(text.lines().any(|line| line.ends_with(&format!("until you run: {deny}{allow}"))), "{text}");
    assert!(!spawn("c", &[]).contains("network proxy"));
    // swarm runs none of them.
    assert!(case.calls().iter().all(|call| !call.contains("network")));
    let ran = world.swarm(&["allow", "b", "example.com"]).code(1);
    ran.warns(&format!("docker sandbox network proxy {} --allow-host example.com", case.name()));
}

#[test]
fn checks_run_inside_with_the_variables_of_the_user() {
    let case = DockerCase::new(
        "#!/bin/sh\necho work >>work.txt\nenv >agent-env\necho '<promise>COMPLETE</promise>'\n",
    );
    let world = &case.world;
    let check = "[ -n \"$INSIDE\" ] && [ \"$TOKEN\" = 't 1' ] && [ -z \"$SWARM_WORKER\" ] && [ -e work.txt ]";
    let flags = ["--check", check, "-n", "2", "--sandbox", "docker", "--env", "TOKEN=t 1", "--no-canary"];
    let ran = world.swarm(&[&["loop", "do it", "--name", "l"][..], &flags, &["--", "claude", "-p"]].concat());
    let text = format!("{}{}", ran.out, ran.err);
    assert_eq!(ran.code, Some(0), "{text}\n{:#?}", case.calls());
    assert!(text.contains("the checks get TOKEN, but the agent does not"), "{text}");
    assert!(text.contains("swarm cannot see whether the agent replaced a program of the checks"), "{text}");
    assert!(!fs::read_to_string(world.work().join("agent-env")).unwrap().contains("TOKEN"));
    let calls = case.calls();
    let runs: Vec<_> = calls.iter().filter(|call| call.contains("sh -c [ -n")).collect();
    // The baseline and one iteration. The values are in no argument.
    let start = "sandbox exec -w work --env-file swarm/sandbox/l/docker.env NAME timeout -k 2";
    assert!(runs.len() == 2 && runs.iter().all(|call| call.starts_with(start)), "{calls:#?}");
    assert!(calls.iter().all(|call| !call.contains("t 1'\u{1f}") && !call.contains("TOKEN=t")), "{calls:#?}");
}

#[test]
fn killing_a_worker_stops_its_sandbox() {
    let case = DockerCase::new("#!/bin/sh\necho up >up\nexec sleep 1000\n");
    let world = &case.world;
    world.spawn("a", &["--sandbox", "docker", "--prompt", "x"], &["claude", "-p"]).ok();
    world.until("the agent runs", || world.work().join("up").exists().then_some(()));
    // Another worker would share the sandbox.
    let other = world.spawn("b", &["--sandbox", "docker", "--prompt", "x"], &["claude", "-p"]).code(1);
    assert!(other.err.contains("worker 'a' uses the Docker sandbox of"), "{}", other.err);
    world.swarm(&["kill", "a"]).ok();
    assert_eq!(case.calls().last().map(String::as_str), Some("sandbox stop NAME"));
}

#[test]
fn unsupported_options_are_refused_and_auto_uses_another_sandbox() {
    let case = DockerCase::new(COMMITS);
    let world = &case.world;
    fs::create_dir(world.work().join("sub")).unwrap();
    let home = world.path("home").display().to_string();
    fs::write(world.path("home/file"), "").unwrap();
    let file = world.path("home/file").display().to_string();
    for (flags, cmd, why) in [
        (&["--memory", "1G"][..], &["claude"][..], "--memory has no effect in a Docker sandbox"),
        (
            &[],
            &["env", "A=1", "claude"],
            "the command starts with 'env': a Docker sandbox starts 'claude' itself",
        ),
        (&[], &["opencode"], "Docker Sandbox has no template for 'opencode'"),
        (&["--cwd", "sub"], &["claude"], "is not the top of its git repository"),
        (&["--cwd", &home], &["claude"], "would show"),
        (&["--sandbox-ro", &file], &["claude"], "is not a directory"),
    ] {
        let ran = world.spawn("a", &[&["--sandbox", "docker"], flags].concat(), cmd).code(6);
        assert!(ran.err.contains(why), "{}", ran.err);
    }
    let jobs = ["loop", "x", "--check", "true", "--clean-check", "--sandbox", "docker", "--", "claude", "-p"];
    world.swarm(&jobs).code(6).warns("--clean-check has no effect in a Docker sandbox");
    assert!(case.calls().iter().all(|call| call == "sandbox ls"));
    write_program(&world.path("docker/bin/claude"), COMMITS);
    // `auto` prefers Docker if it can do everything.
    let spawn = |name: &str, flags: &[&str]| {
        let flags = [&["--sandbox", "auto", "--prompt", "x"], flags].concat();
        world.spawn(name, &flags, &["claude", "-p"]).ok();
        world.swarm(&["kill", name]).ok();
        world.status(name)["sandbox"].clone()
    };
    assert_eq!(spawn("d", &[]), "docker");
    for (name, flags) in [("e", ["--pids", "50"]), ("f", ["--sandbox-ro", &file])] {
        assert_ne!(spawn(name, &flags), "docker", "{flags:?}");
    }
    let doctor = world.swarm(&["doctor"]);
    assert!(doctor.out.contains("ok    docker-sandbox: docker sandbox works ("), "{}", doctor.out);
}

#[test]
fn docker_sandbox_has_the_worktree_and_its_repository() {
    let case = DockerCase::new(COMMITS);
    let world = &case.world;
    let extra = world.path("extra");
    fs::create_dir(&extra).unwrap();
    let extra = extra.to_str().unwrap();
    let flags = ["--sandbox", "docker", "--worktree", "--prompt", "x", "--sandbox-ro", extra];
    world.spawn("a", &flags, &["claude", "-p"]).ok();
    assert_eq!(world.until_ended("a")["status"], "done");
    let calls = calls(world, &world.path("work-worktrees/a"));
    let create = "sandbox create --name NAME claude work-worktrees/a home/.dclaude_state work/.git extra:ro";
    assert!(calls.contains(&create.to_owned()), "{calls:#?}");
    let mut log = world.command("git");
    log.args(["log", "-1", "--format=%s", "swarm/a"]);
    assert_eq!(world.run(log).ok().out, "work\n");
}

#[test]
fn canary_is_added_and_removed_in_the_docker_sandbox() {
    let case = DockerCase::new("#!/bin/sh\ntouch fixed\necho '<promise>COMPLETE</promise>'\n");
    let world = &case.world;
    fs::create_dir(world.work().join("t")).unwrap();
    world.write("t/a.sh", "[ -e fixed ]\n");
    case.git(&["add", "-A"]);
    case.git(&["commit", "-qm", "test"]);
    let check = "for test in t/*.sh; do sh \"$test\" || exit 1; done";
    let flags = ["--check", check, "--canary", "t/x/c.sh=exit 1 # {token}", "-n", "1", "--sandbox", "docker"];
    world.write(
        "t/all.sh",
        "for test in t/x/*.sh; do [ ! -e $test ] || sh $test || { cat $test; exit 1; }; done\n",
    );
    let ran = world.swarm(&[&["loop", "do it", "--name", "l"][..], &flags, &["--", "claude", "-p"]].concat());
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(!world.work().join("t/x").exists());
    let calls = case.calls();
    let of = |end: &str| calls.iter().filter(|call| call.ends_with(end)).count();
    // Before the first iteration, and after the last one.
    assert_eq!(
        (of("mkdir -- \"$1\" swarm work/t/x"), of("REMOVE swarm work/t/x/c.sh")),
        (2, 2),
        "{calls:#?}"
    );
    let report = world.swarm(&["report", "l", "--format", "json"]).ok().json();
    let proofs = report["iterations"][0]["verdict"]["proofs"].as_array().unwrap();
    let canary = proofs.iter().find(|proof| proof["layer"] == "canary").unwrap();
    assert_eq!(canary["outcome"], "holds", "{canary}");
}
