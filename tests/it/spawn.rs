//! `swarm spawn` of plain workers: what it makes, what it passes on, and what a refusal leaves behind.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::world::{SWARM, World, is_alive};

#[test]
fn spawn_prints_the_name_and_the_tmux_window() {
    let w = World::new();
    let agent = w.agent("a");
    assert_eq!(w.spawn_agent("one", &agent, &[]).out, "spawned one (tmux: swarm:one)\n");
}

#[test]
fn a_name_is_made_from_the_directory_and_made_unique() {
    let w = World::new();
    w.swarm(&["spawn", "--", "sleep", "600"]).ok().says("spawned work (tmux: swarm:work)\n");
    w.swarm(&["spawn", "--", "sleep", "600"]).ok().says("spawned work-2 (tmux: swarm:work-2)\n");
}

#[test]
fn a_bad_name_is_a_usage_error() {
    let w = World::new();
    for name in ["a/b", "", "a b", "../x", "-x"] {
        w.swarm(&["spawn", &format!("--name={name}"), "--", "sh"]).code(2).warns("swarm: error: ");
    }
}

#[test]
fn status_json_has_the_documented_fields() {
    let w = World::new();
    let agent = w.agent("a");
    w.spawn_agent("one", &agent, &["--tag", "x", "--tag", "y", "--env", "K=V"]);
    let status = w.swarm(&["status", "one", "--format", "json"]).ok().json();
    let of = |key: &str| status.get(key).cloned().unwrap_or_else(|| panic!("no {key} in {status}"));
    for (key, value) in [
        ("name", json!("one")),
        ("status", json!("running")),
        ("reason", json!(null)),
        ("exit_code", json!(null)),
        ("signal", json!(null)),
        ("restarts", json!(0)),
        ("pid", json!(agent.pid(1))),
        ("cmd", json!(agent.command())),
        ("cwd", json!(w.work())),
        ("tags", json!(["x", "y"])),
        ("env", json!({"K": "***"})),
        ("worktree", json!(null)),
    ] {
        assert_eq!(of(key), value, "{key}");
    }
    assert!(chrono::DateTime::parse_from_rfc3339(of("started").as_str().unwrap()).is_ok());
    let tmux = of("tmux");
    assert_eq!(tmux["socket"], json!(w.swarm_dir().join("tmux.sock")));
    assert_eq!((&tmux["session"], &tmux["window"]), (&json!("swarm"), &json!("one")));
    assert!(tmux["pane"].as_str().unwrap().starts_with('%'));
    assert!(of("metadata").is_object());
    assert_eq!(w.swarm(&["ls", "--format", "json"]).ok().json(), json!([status]));
}

#[test]
fn env_reaches_the_agent_and_its_values_are_masked() {
    let w = World::new();
    let mut agent = w.agent("a");
    let mut command = w.command(SWARM);
    command
        .env("TOKEN", "s3cr3t-taken")
        .args(["spawn", "--name", "one", "--env", "A=b c", "--env", "TOKEN", "--"]);
    command.args(agent.command());
    w.run(command).ok();
    agent.until_run(&w, 1);
    agent.tell("run printf '%s/%s\\n' \"$A\" \"$TOKEN\" >\"$dir/env\"");
    w.until("the agent wrote it", || (agent.file("env") == "b c/s3cr3t-taken\n").then_some(()));
    assert_eq!(w.status("one")["env"], json!({"A": "***", "TOKEN": "***"}));
    for args in [&["status", "one"][..], &["ls"], &["ls", "--format", "json"]] {
        assert!(!w.swarm(args).ok().out.contains("s3cr3t"), "{args:?}");
    }
    let record = w.swarm_dir().join("workers/one.json");
    assert_eq!(mode(&record), 0o600);
    assert_eq!(mode(&w.swarm_dir()), 0o700);
}

fn mode(path: &std::path::Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn env_without_a_value_must_be_set() {
    let w = World::new();
    let ran = w.swarm(&["spawn", "--env", "NO_SUCH", "--", "sh"]).code(1);
    assert!(
        ran.err.starts_with("swarm: error: --env NO_SUCH: it is not set in your environment\n"),
        "{}",
        ran.err
    );
}

#[test]
fn secrets_are_in_no_process_arguments() {
    let w = World::new();
    let agent = w.agent("a");
    let secret = format!("s3cr3t-{}", w.work().display());
    let over = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut seen = Vec::new();
            while !over.load(Ordering::Relaxed) {
                seen.extend(argv_with(&secret));
            }
            seen
        });
        let mut command = w.command(SWARM);
        command.env("TOKEN", &secret).args(w.loop_args("agent", &agent, &["-d", "--env", "TOKEN"]));
        w.run(command).ok();
        agent.until_run(&w, 1);
        over.store(true, Ordering::Relaxed);
        watch.join().unwrap()
    });
    assert_eq!(seen, Vec::<String>::new());
    for name in ["daemon.log", "tmux.conf"] {
        let text = fs::read_to_string(w.swarm_dir().join(name)).unwrap_or_default();
        assert!(!text.contains(&secret), "{name}");
    }
}

/// The command lines that hold a text now.
fn argv_with(text: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let argv = processes.filter_map(|p| fs::read(p.path().join("cmdline")).ok());
    argv.map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "))
        .filter(|line| line.contains(text))
        .collect()
}

#[test]
fn agent_gets_the_callers_environment_without_tmux_and_git_variables() {
    let w = World::new();
    let mut agent = w.agent("a");
    let mut command = w.command(SWARM);
    command.env("MINE", "kept").env("GIT_DIR", "/nowhere").env("TMUX", "/x,1,2").env("TMUX_PANE", "%9");
    command.args(["spawn", "--name", "one", "--"]).args(agent.command());
    w.run(command).ok();
    agent.until_run(&w, 1);
    agent.tell("run env >\"$dir/env\"; echo ok >\"$dir/ok\"");
    w.until("the agent wrote its environment", || (agent.file("ok") == "ok\n").then_some(()));
    let env = agent.file("env");
    assert!(env.contains("MINE=kept\n") && env.contains("GIT_AUTHOR_NAME=t\n"), "{env}");
    assert!(!env.lines().any(|l| l.starts_with("TMUX") || l.starts_with("GIT_DIR=")), "{env}");
}

#[test]
fn arguments_reach_the_agent_literally() {
    let w = World::new();
    let agent = w.agent("a");
    let odd = ["a b", "", "$(id)", "; rm x", "#{pane_id}", "'\"\\", "-x", "%1", "é", "*", "~"];
    let mut args: Vec<String> = ["spawn", "--name", "one", "--"].map(str::to_owned).into();
    args.extend(agent.command());
    args.extend(odd.map(str::to_owned));
    w.swarm(&args).ok();
    agent.until_run(&w, 1);
    assert_eq!(agent.file("args.1").lines().collect::<Vec<_>>(), odd);
}

#[test]
fn prompt_text_and_prompt_file_reach_a_plain_worker() {
    let w = World::new();
    let (one, two, three) = (w.agent("a"), w.agent("b"), w.agent("c"));
    w.write("P.md", "from a file\n");
    w.spawn_agent("one", &one, &["--prompt", "-do this", "--prompt-via", "stdin"]);
    w.spawn_agent("two", &two, &["--prompt-file", "P.md", "--prompt-via", "stdin"]);
    w.spawn_agent("three", &three, &["--prompt", "do that", "--prompt-via", "arg"]);
    assert_eq!(one.prompt(1).trim_end(), "-do this");
    assert_eq!(two.prompt(1), "from a file\n");
    assert_eq!(three.file("args.1"), "do that\n");
}

#[test]
fn a_pasted_prompt_waits_for_the_ready_screen() {
    let w = World::new();
    let script = "printf 'starting\\n> '; read -r line; echo \"got: $line\"; exec sleep 600";
    let args = [
        "spawn",
        "--name",
        "one",
        "--prompt",
        "hello there",
        "--prompt-via",
        "paste",
        "--",
        "sh",
        "-c",
        script,
    ];
    w.swarm(&args).ok();
    w.until("the prompt was taken", || {
        w.swarm(&["peek", "one"]).ok().out.contains("got: hello there").then_some(())
    });
}

#[test]
fn ready_wait_returns_when_the_agent_is_ready_and_times_out_with_5() {
    let w = World::new();
    let script = "printf 'hello\\n> '; exec sleep 600";
    w.swarm(&["spawn", "--name", "one", "--ready-wait", "--", "sh", "-c", script]).ok();
    assert_eq!(w.swarm(&["peek", "one"]).ok().out, "hello\n>\n");
    let args = ["spawn", "--name", "two", "--ready-wait", "--ready-timeout", "1", "--", "sleep", "600"];
    w.swarm(&args).code(5).warns("swarm: error: worker 'two' is not ready");
}

#[test]
fn exit_status_0_is_done_and_any_other_failed() {
    let w = World::new();
    let mut agent = w.agent("a");
    for (name, end, status, code, signal) in [
        ("good", "exit 0", "done", json!(0), json!(null)),
        ("bad", "exit 7", "failed", json!(7), json!(null)),
        ("hit", "signal TERM", "failed", json!(143), json!(15)),
    ] {
        let run = agent.starts() + 1;
        let words: Vec<String> =
            ["spawn", "--name", name, "--"].map(str::to_owned).into_iter().chain(agent.command()).collect();
        w.swarm(&words).ok();
        agent.until_run(&w, run);
        agent.tell(end);
        let view = w.until_status(name, status);
        assert_eq!((&view["exit_code"], &view["signal"]), (&code, &signal), "{name}");
        w.swarm(&["status", name]).code(1);
    }
}

#[test]
fn missing_program_leaves_no_worker_and_no_worktree() {
    let w = World::new();
    let repo = w.repo("work/repo");
    w.write("PROMPT.md", "x");
    let keeper = w.agent("keep");
    w.spawn_agent("keeper", &keeper, &[]);
    let repo_text = repo.to_str().unwrap();
    for more in [&[][..], &["--ralph", "--prompt-file", "PROMPT.md", "-n", "3"]] {
        let mut args = vec!["spawn", "--name", "gone", "--worktree", "--cwd", repo_text];
        args.extend(more);
        args.extend(["--", "no-such-program-anywhere"]);
        w.swarm(&args).code(1).warns("no-such-program-anywhere");
        w.swarm(&["status", "gone"]).code(2);
        assert_eq!(w.swarm(&["ls", "--format", "names"]).ok().out, "keeper\n");
        for path in ["workers/gone.json", "ralph/gone", "logs/gone.log"] {
            assert!(!w.swarm_dir().join(path).exists(), "{path}");
        }
        let mut git = w.command("git");
        git.current_dir(&repo).args(["branch", "--list", "swarm/*"]);
        assert_eq!(w.run(git).ok().out, "");
        assert!(!w.work().join("repo-worktrees/gone").exists());
        assert!(!w.tmux(&["list-windows", "-a", "-F", "#{window_name}"]).ok().out.contains("gone"));
    }
}

#[test]
fn missing_command_without_a_default_is_a_usage_error() {
    let w = World::new();
    w.swarm(&["spawn", "--name", "one"]).code(2).warns("swarm: error: no command given");
}

#[test]
fn name_of_a_live_worker_is_refused_and_replace_ends_it() {
    let w = World::new();
    let (one, two) = (w.agent("a"), w.agent("b"));
    w.spawn_agent("x", &one, &[]);
    w.swarm(&["spawn", "--name", "x", "--", "sh"])
        .code(1)
        .warns("swarm: error: worker 'x' already exists (running)\n");
    w.spawn_agent("x", &two, &["--replace"]);
    assert!(!is_alive(one.pid(1).unwrap()));
    assert!(is_alive(two.pid(1).unwrap()));
    assert_eq!(w.swarm(&["ls", "--format", "names"]).ok().out, "x\n");
}

#[test]
fn a_worktree_is_made_kept_and_removed_on_request() {
    let w = World::new();
    let agent = w.agent("a");
    let repo = w.repo("work/repo");
    let tree = w.work().join("repo-worktrees/x");
    w.spawn_agent("x", &agent, &["--worktree", "--cwd", repo.to_str().unwrap()]);
    assert!(tree.join(".git").exists());
    w.swarm(&["kill", "x"]).ok();
    assert!(tree.exists());
    fs::write(tree.join("new"), "work").unwrap();
    w.swarm(&["kill", "x", "--rm-worktree"]).code(1);
    assert!(tree.join("new").exists());
    w.swarm(&["kill", "x", "--rm-worktree", "--force-dirty"]).ok().says("removed worktree ");
    assert!(!tree.exists());
}

#[test]
fn a_worktree_outside_a_repository_is_refused() {
    let w = World::new();
    w.swarm(&["spawn", "--name", "x", "--worktree", "--", "sh"]).code(1).warns("swarm: error: ");
    w.swarm(&["status", "x"]).code(2);
}

#[test]
fn completions_are_printed_without_a_daemon() {
    let w = World::new();
    for shell in ["bash", "zsh", "fish"] {
        w.swarm(&["completions", shell]).ok().says("swarm").says("SWARM_COMPLETE");
    }
    w.swarm(&["completions", "cmd"]).code(2);
    assert_eq!(w.daemon_pid(), None);
}

#[test]
fn program_that_cannot_run_and_missing_program_are_distinguished() {
    let mut w = World::new();
    fs::create_dir(w.work().join("folder")).unwrap();
    w.write("textfile", "#!/bin/sh\n");
    let path = std::env::var("PATH").unwrap();
    w.set("PATH", format!("{path}:{}", w.work().display()));
    let file = w.work().join("textfile").display().to_string();
    let (chmod, below) =
        (format!("hint: chmod +x {file}"), format!("hint: a relative path starts at {}", w.work().display()));
    for (program, code, words, hint) in [
        ("./folder", 1, "cannot run ./folder: it is a directory", ""),
        ("./textfile", 1, "cannot run ./textfile: it is not executable", "hint: chmod +x "),
        ("./none", 1, "no such program: ./none", &below),
        ("textfile", 1, "cannot run textfile: it is not executable", &chmod),
        ("folder", 1, "no such program: folder", "hint: give a program on the PATH"),
        (
            "claude -p",
            2,
            "no such program: claude -p",
            "hint: give the command without quotes: -- claude -p\n",
        ),
        ("a && b", 2, "no such program: a && b", "hint: for a shell command: -- sh -c 'a && b'\n"),
        ("A=1 b", 2, "no such program: A=1 b", "hint: for a shell command: -- sh -c 'A=1 b'\n"),
        ("A=1", 2, "no such program: A=1", "hint: to set a variable: --env A=1\n"),
    ] {
        w.spawn("one", &[], &[program]).code(code).warns(&format!("swarm: error: {words}\n")).warns(hint);
    }
}

#[test]
fn gates_and_budgets_without_a_loop_are_refused() {
    let w = World::new();
    for flags in [&["--check", "false"][..], &["--promise", "X"], &["--max-cost", "1"], &["--max-time", "1"]]
    {
        let words = [&["spawn", "--name", "pl"], flags, &["--", "true"]].concat();
        w.swarm(&words).code(2).warns("gates and budgets require a loop").warns("use swarm loop");
    }
    w.swarm(&["status", "pl"]).code(2);
}
