use clap::Parser;

use swarm_state::model::RestartWhen;

use super::*;
use crate::cli::{Cli, Command};

/// A directory with a prompt file, and one that is none.
fn files() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("prompt.md"), "Do task A\n").unwrap();
    let path = dir.path().join("prompt.md").display().to_string();
    (dir, path)
}

fn spawn(args: &[&str]) -> Box<Spawn> {
    let cli = Cli::try_parse_from(["swarm", "spawn"].iter().chain(args)).unwrap_or_else(|e| panic!("{e}"));
    let Command::Spawn(args) = cli.command else { panic!("not spawn") };
    args
}

fn check(args: &[&str], settings: &Settings) -> (Result<SpawnParams>, Vec<String>) {
    let mut warnings = vec![];
    (params(&spawn(args), settings, &mut warnings), warnings)
}

/// The error of these arguments: its message and exit status.
fn refused(args: &[&str]) -> (String, u8) {
    let error = check(args, &Settings::default()).0.expect_err("taken");
    (error.message, error.code.exit_status())
}

fn taken(args: &[&str], settings: &Settings) -> SpawnParams {
    check(args, settings).0.unwrap_or_else(|e| panic!("{args:?}: {e}"))
}

#[test]
fn errors_have_the_documented_text_and_order() {
    let (dir, file) = files();
    assert_eq!(refused(&["--ralph", "--", "c"]), ("--ralph requires --prompt-file".into(), 1));
    assert_eq!(refused(&["--ralph", "-n", "3", "--", "c"]), ("--ralph requires --prompt-file".into(), 1));
    let no_max = refused(&["--ralph", "--prompt-file", "./missing.md", "--", "c"]);
    assert_eq!(no_max, ("--ralph requires --max-iterations".into(), 1));
    let missing = refused(&["--ralph", "--prompt-file", "./missing.md", "-n", "10", "--", "c"]);
    assert_eq!(missing, ("prompt file not found: ./missing.md".into(), 1));
    let dir_path = dir.path().display().to_string();
    let directory = refused(&["--ralph", "--prompt-file", &dir_path, "-n", "10", "--", "c"]);
    assert_eq!(directory, (format!("cannot read prompt file: {dir_path}"), 1));
    let below = format!("{file}/x");
    let not_dir = refused(&["--prompt-file", &below, "--", "c"]);
    assert_eq!(not_dir, (format!("prompt file not found: {below}"), 1));
}

#[test]
fn prompt_file_that_is_a_pipe_is_refused_without_blocking() {
    let (dir, _) = files();
    let pipe = dir.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(prompt_file(&pipe).unwrap_err().message.starts_with("cannot read prompt file: "));
    assert_eq!(prompt_file(Path::new("/dev/null")).unwrap(), Path::new("/dev/null"));
}

#[test]
fn hidden_path_is_relative_to_the_directory_of_the_command() {
    let (dir, file) = files();
    let cwd = dir.path().display().to_string();
    let args =
        ["--ralph", "--prompt-file", &file, "-n", "1", "--cwd", &cwd, "--check", "a", "--final-check", "b"];
    let params = taken(&[&args[..], &["--hidden", "../vault", "--", "c"]].concat(), &Settings::default());
    let here = std::env::current_dir().unwrap();
    assert_eq!(params.ralph.unwrap().gates.rooms.hidden, Some(here.parent().unwrap().join("vault")));
}

#[test]
fn many_iterations_are_warned_about() {
    let (_dir, file) = files();
    let spawn =
        |n: &str| check(&["--ralph", "--prompt-file", &file, "-n", n, "--", "c"], &Settings::default()).1;
    assert!(spawn("50").iter().all(|w| !w.contains("iteration count")));
    assert!(spawn("51").contains(&"high iteration count (>50) may consume significant resources".to_owned()));
}

#[test]
fn settings_are_defaults_and_flags_override_them() {
    let (dir, file) = files();
    let mut settings = Settings { command: Some(vec!["claude".into(), "-p".into()]), ..Settings::default() };
    settings.ralph.prompt_file = Some(file.clone().into());
    settings.ralph.max_iterations = Some(7);
    settings.ralph.done_pattern = Some("DONE".into());
    let params = taken(&["--ralph"], &settings);
    let ralph = params.ralph.unwrap();
    assert_eq!((ralph.max_iterations, ralph.inactivity_timeout), (7, 60));
    assert_eq!(params.cmd, ["claude", "-p"]);
    assert_eq!(params.done_pattern.as_deref(), Some("DONE"));
    let cwd = dir.path().display().to_string();
    std::fs::create_dir(dir.path().join("ralph")).unwrap();
    std::fs::write(dir.path().join("ralph/prompt.md"), "do it").unwrap();
    let of_list = ["--ralph", "--cwd", &cwd, "--ralph-dir", "ralph", "--inactivity-timeout", "9", "--", "x"];
    let params = taken(&of_list, &settings);
    let ralph = params.ralph.unwrap();
    assert_eq!((ralph.prompt_file, ralph.max_iterations), (dir.path().join("ralph/prompt.md"), 15));
    assert_eq!((ralph.inactivity_timeout, params.cmd), (9, vec!["x".to_owned()]));
    // A plain worker takes no default of loops.
    let params = taken(&["--", "x"], &settings);
    assert_eq!((params.prompt, params.ralph, params.done_pattern), (Prompt::None, None, None));
}

#[test]
fn missing_command_is_a_usage_error() {
    let error = check(&["--name", "a"], &Settings::default()).0.expect_err("taken");
    assert_eq!(error.code.exit_status(), 2);
    assert!(error.message.starts_with("no command given"), "{}", error.message);
}

#[test]
fn prompt_options_of_a_plain_worker_are_read() {
    let (dir, file) = files();
    let none = Settings::default();
    assert_eq!(taken(&["--prompt", "- [ ] x", "--", "c"], &none).prompt, Prompt::Text("- [ ] x".into()));
    let params = taken(&["--prompt-file", &file, "--prompt-via", "stdin", "--", "c"], &none);
    assert_eq!(params.prompt, Prompt::File(file.into()));
    assert_eq!(params.prompt_via, swarm_state::model::PromptVia::Stdin);
    let cwd = dir.path().display().to_string();
    std::fs::create_dir(dir.path().join("ralph")).unwrap();
    std::fs::write(dir.path().join("ralph/prompt.md"), "do it").unwrap();
    let both = ["--ralph", "--cwd", &cwd, "--ralph-dir", "ralph", "--prompt", "x", "--", "c"];
    let (message, status) = refused(&both);
    assert!(message.starts_with("--prompt cannot be used with --ralph"), "{message}");
    assert_eq!(status, 2);
}

#[test]
fn invalid_done_pattern_is_refused_and_a_broad_one_warns() {
    let (message, status) = refused(&["--done-pattern", "(", "--", "c"]);
    assert!(message.starts_with("invalid done pattern: "), "{message}");
    assert_eq!(status, 2);
    assert!(refused(&["--done-pattern", "", "--", "c"]).0.starts_with("invalid done pattern: "));
    let (params, warnings) = check(&["--done-pattern", ".*", "--", "c"], &Settings::default());
    assert!(params.is_ok());
    assert!(warnings.iter().any(|w| w.contains("matches any output")), "{warnings:?}");
}

#[test]
fn relative_paths_start_at_the_current_directory() {
    let none = Settings::default();
    let params = taken(&["--worktree", "--worktree-dir", "wt", "--tmux-socket", "./s", "--", "c"], &none);
    let here = std::env::current_dir().unwrap();
    assert_eq!(params.worktree.unwrap().dir, Some(here.join("wt")));
    assert_eq!(params.tmux_socket, Some(here.join("s").display().to_string()));
    assert_eq!(params.cwd, here);
    assert_eq!(taken(&["--tmux-socket", "name", "--", "c"], &none).tmux_socket.as_deref(), Some("name"));
    assert!(refused(&["--cwd", "/no/such/dir", "--", "c"]).0.starts_with("no such directory: "));
}

#[test]
fn spawned_line_has_the_documented_text() {
    let worker = crate::client::testing::view("agent", "running", serde_json::json!({}));
    assert_eq!(spawn_line("spawned", &worker, None), "spawned agent (tmux: swarm:agent)");
    assert_eq!(
        spawn_line("spawned", &worker, Some(10)),
        "spawned agent (tmux: swarm:agent) [ralph mode: iteration 1/10]"
    );
}

#[test]
fn the_spawned_line_names_the_options_that_swarm_added() {
    let (_dir, file) = files();
    let note = |args: &[&str]| {
        let args = [&["--ralph", "--prompt-file", &file, "-n", "2"], args].concat();
        let settings = Settings { agents: profiles::table(), ..Settings::default() };
        unattended_note(&spawn(&args), &settings, None)
    };
    assert_eq!(note(&["--unattended", "--", "gemini"]), " [unattended: --yolo]");
    for args in
        [&["--", "gemini"][..], &["--unattended", "--", "gemini", "-y"], &["--unattended", "--", "opencode"]]
    {
        assert_eq!(note(args), "", "{args:?}");
    }
}

#[test]
fn caps_of_the_command_line_override_the_settings() {
    let limits = Caps { memory: Some(1 << 30), cpu_percent: None, pids: Some(500), pressure: Some(20) };
    let settings = Settings { limits, ..Settings::default() };
    let caps = |args: &[&str]| taken(&[args, &["--", "c"]].concat(), &settings).caps;
    assert_eq!(caps(&[]), Caps { pressure: None, ..limits });
    let typed = caps(&["--memory", "200M", "--cpus=1.5", "--pids", "9"]);
    assert_eq!(
        typed,
        Caps { memory: Some(200 << 20), cpu_percent: Some(150), pids: Some(9), pressure: None }
    );
    let lifted = caps(&["--memory", "none", "--cpus=none", "--pids", "none"]);
    assert_eq!(lifted, Caps::default());
    let (_dir, file) = files();
    assert_eq!(caps(&["--ralph", "--prompt-file", &file, "-n", "3"]), limits);
}

#[test]
fn a_restart_policy_is_for_plain_workers() {
    let (_dir, file) = files();
    let policy = |args: &[&str]| taken(&[args, &["--", "c"]].concat(), &Settings::default()).restart;
    let spec = |when, max_restarts| Some(RestartSpec { when, max_restarts });
    assert_eq!(policy(&[]), None);
    assert_eq!(policy(&["--restart", "no", "--max-restarts", "3"]), None);
    assert_eq!(policy(&["--restart", "on-failure"]), spec(RestartWhen::OnFailure, 10));
    assert_eq!(policy(&["--restart=always", "--max-restarts=0"]), spec(RestartWhen::Always, 0));
    let both = ["--ralph", "--prompt-file", &file, "-n", "3", "--restart", "no", "--", "c"];
    let error = check(&both, &Settings::default()).0.unwrap_err();
    assert_eq!((error.code, error.hint.is_some()), (ErrorCode::Usage, true));
}

#[test]
fn jobs_option_starts_a_coordinator_with_the_loop_of_a_story() {
    let dir = tempfile::tempdir().unwrap();
    let ralph = dir.path().join("ralph");
    std::fs::create_dir(&ralph).unwrap();
    std::fs::write(ralph.join("prompt.md"), "Do it\n").unwrap();
    let cwd = dir.path().display().to_string();
    let spawn = |more: &[&str]| {
        let fixed = ["--name", "l", "--cwd", &cwd, "--ralph", "--ralph-dir", "ralph", "--check", "true"];
        taken(&[&fixed[..], more, &["--env", "KEY=s3cr3t", "--", "c"]].concat(), &Settings::default())
    };
    let one = spawn(&["--jobs", "1"]);
    assert!(one.ralph.is_some() && one.worktree.is_none());
    let coordinator = spawn(&["--jobs", "3", "--max-in-review", "2"]);
    assert_eq!(coordinator.cmd.last().map(String::as_str), Some("__stories"));
    assert_eq!(coordinator.restart.map(|restart| restart.when), Some(RestartWhen::OnAbnormal));
    assert!(coordinator.ralph.is_none() && coordinator.worktree.is_some());
    assert_eq!(coordinator.env.get("KEY").map(String::as_str), Some("s3cr3t"));
    let Prompt::Text(plan) = &coordinator.prompt else { panic!("no plan") };
    assert!(!plan.contains("s3cr3t"), "{plan}");
    let plan: crate::protocol::StoriesPlan = serde_json::from_str(plan).unwrap();
    assert_eq!((plan.jobs, plan.max_in_review), (3, Some(2)));
    assert_eq!(plan.child.cmd, ["c"]);
    assert_eq!(plan.child.ralph.unwrap().gates.checks, ["true"]);
    for wrong in [&["--jobs", "0"][..], &["--max-in-review", "2"], &["--jobs", "2", "--allow-preexisting"]] {
        let fixed = ["swarm", "spawn", "--ralph", "--ralph-dir", "ralph"];
        assert!(Cli::try_parse_from(fixed.iter().chain(wrong).chain(&["--", "c"])).is_err(), "{wrong:?}");
    }
}
