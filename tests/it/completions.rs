//! `swarm completions`: the scripts of the shells, and the candidates that they get.

use std::path::Path;
use std::process::Command;

use crate::attach::Terminal;
use crate::world::{Ran, SWARM, World};

/// The candidates for the last word, without descriptions.
#[track_caller]
fn complete(world: &World, words: &[&str]) -> Vec<String> {
    let mut command = world.command(SWARM);
    command.env("SWARM_COMPLETE", "fish").args(["--", "swarm"]).args(words);
    let ran = world.run(command).ok();
    assert_eq!(ran.err, "");
    ran.out.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

/// Runs a script with swarm on PATH; `None` if the shell is not installed.
fn shell(world: &World, shell: &str, args: &[&str]) -> Option<Ran> {
    Command::new(shell).arg("--version").output().ok()?;
    let mut command = world.command("env");
    command.args([&path_with_swarm(), shell]).args(args);
    Some(world.run(command))
}

/// `PATH=…` with the program under test.
fn path_with_swarm() -> String {
    let dir = Path::new(SWARM).parent().unwrap().display();
    format!("PATH={dir}:{}", std::env::var("PATH").unwrap_or_default())
}

#[test]
fn names_iterations_settings_and_agents_are_completed() {
    let world = World::new();
    let mut agent = world.agent("lp");
    world.spawn_loop("lp", &agent, &["-n", "2"]);
    for run in 1..=2 {
        agent.until_run(&world, run);
        agent.tell("exit 0");
    }
    world.until_status("lp", "done");
    let _ = world.spawn("plain", &[], &["sleep", "600"]).ok();
    let bin = world.path("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink("/bin/true", bin.join("codex")).unwrap();
    let cases: [(&[&str], &[&str]); 13] = [
        (&["report", ""], &["lp", "plain"]),
        (&["attach", ""], &["plain"]),
        (&["events", "--worker", ""], &["lp", "plain"]),
        (&["clean", ""], &["lp"]),
        (&["ralph", "status", ""], &["lp"]),
        (&["ralph", "diff", "lp", ""], &["2", "1"]),
        (&["ralph", "restore", "lp", ""], &["2", "1", "0"]),
        (&["logs", "lp", "--iteration", ""], &["2", "1"]),
        (&["ralph", "set", "lp", "max_f"], &["max_failures="]),
        (&["loop", "--agent", "co"], &["codex"]),
        (&["hooks", "install", "--agent", "co"], &["codex"]),
        (&["spawn", "--name", ""], &[]),
        (&["attach", "--re"], &["--read-only"]),
    ];
    for (words, candidates) in cases {
        assert_eq!(complete(&world, words), candidates, "{words:?}");
    }
    let mut with_agent = world.command(SWARM);
    let path = std::env::var("PATH").unwrap_or_default();
    with_agent.env("PATH", format!("{}:{path}", bin.display())).env("SWARM_COMPLETE", "zsh");
    with_agent.env("_CLAP_COMPLETE_INDEX", "3").args(["--", "swarm", "spawn", "--", "cod"]);
    assert_eq!(world.run(with_agent).ok().out, "codex");

    let words = "COMP_WORDS=(swarm attach pl) COMP_CWORD=2 COMP_TYPE=9; _clap_complete_swarm swarm pl attach";
    let script = format!("source <(swarm completions bash); {words}; echo \"${{COMPREPLY[@]}}\"");
    assert_eq!(shell(&world, "bash", &["-c", &script]).expect("bash").ok().out, "plain\n");
    let script = "swarm completions fish | source; complete -C 'swarm attach pl'";
    if let Some(ran) = shell(&world, "fish", &["-c", script]) {
        assert_eq!(ran.ok().out, "plain\trunning\n");
    }
}

#[test]
fn completion_starts_no_daemon() {
    let world = World::new();
    assert_eq!(complete(&world, &["attach", ""]), ["--read-only", "--config", "--on", "--help"]);
    assert_eq!(complete(&world, &["ralph", "pa"]), ["pause"]);
    assert!(!world.swarm_dir().exists());
}

#[test]
fn zsh_completes_with_the_script_in_fpath() {
    let world = World::new();
    if Command::new("zsh").arg("--version").output().is_err() {
        return;
    }
    std::fs::write(world.path("home/_swarm"), world.swarm(&["completions", "zsh"]).ok().out).unwrap();
    let terminal = Terminal::run(&world, 0, &["env", &path_with_swarm(), "zsh", "-f", "-i"]);
    terminal.keys(&["fpath=(~ $fpath); autoload -U compinit; compinit -D -u; echo rea''dy", "Enter"]);
    terminal.until_shows("ready");
    terminal.keys(&["swarm ralph pau", "Tab"]);
    terminal.until_shows("swarm ralph pause");
}
