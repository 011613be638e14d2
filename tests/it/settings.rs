//! Settings files, as a spawn meets them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::world::World;

impl World {
    /// Writes the user's settings.
    fn user_settings(&self, text: &str) -> std::path::PathBuf {
        let path = self.path("home/.config/swarm/config.toml");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }
}

/// A command as a TOML list.
fn list(words: &[String]) -> String {
    serde_json::to_string(words).unwrap()
}

#[test]
fn the_default_command_comes_from_the_settings() {
    let w = World::new();
    let agent = w.agent("a");
    w.user_settings(&format!("command = {}\n", list(&agent.command())));
    w.swarm(&["spawn", "--name", "one"]).ok().says("spawned one (tmux: swarm:one)\n");
    agent.until_run(&w, 1);
    assert_eq!(w.status("one")["cmd"], json!(agent.command()));
}

#[test]
fn loop_defaults_come_from_the_settings_and_flags_win() {
    let w = World::new();
    let agent = w.agent("a");
    w.write("P.md", "from the settings\n");
    w.write(
        "swarm.toml",
        &format!(
            "command = {}\n[ralph]\nprompt_file = \"P.md\"\nmax_iterations = 7\ninactivity_timeout = 99\n\
             done_pattern = \"FIN\"\n",
            list(&agent.command())
        ),
    );
    w.swarm(&["spawn", "--name", "one", "--ralph", "-d"]).ok().says("[ralph mode: iteration 1/7]\n");
    agent.until_run(&w, 1);
    assert_eq!(agent.prompt(1), "from the settings\n");
    let state = w.ralph_state("one");
    assert_eq!((&state["inactivity_timeout"], &state["done_pattern"]), (&json!(99), &json!("FIN")));
    let args = ["spawn", "--name", "two", "--ralph", "-d", "-n", "3", "--inactivity-timeout", "5"];
    w.swarm(&args).ok().says("[ralph mode: iteration 1/3]\n");
    assert_eq!(w.ralph_state("two")["inactivity_timeout"], 5);
}

/// A one-task command prints nothing until its end; flags and settings go first.
#[test]
fn the_inactivity_timeout_of_a_one_task_command_is_half_an_hour() {
    let w = World::new();
    w.write("PROMPT.md", "x");
    let claude = w.path("claude");
    fs::write(&claude, "#!/bin/sh\nexec sleep 600\n").unwrap();
    fs::set_permissions(&claude, fs::Permissions::from_mode(0o755)).unwrap();
    let claude = claude.to_str().unwrap();
    let timeout = |name: &str, flags: &[&str], cmd: &[&str]| {
        let head = ["spawn", "--name", name, "--ralph", "-d", "-n", "3", "--prompt-file", "PROMPT.md"];
        let _ = w.swarm(&[&head, flags, &["--"], cmd].concat()).ok();
        w.ralph_state(name)["inactivity_timeout"].clone()
    };
    assert_eq!(timeout("one-task", &[], &[claude, "-p"]), 1800);
    assert_eq!(timeout("screen", &[], &[claude]), 60);
    assert_eq!(timeout("flag", &["--inactivity-timeout", "5"], &[claude, "-p"]), 5);
    w.user_settings("[ralph]\ninactivity_timeout = 99\n");
    assert_eq!(timeout("settings", &[], &[claude, "-p"]), 99);
}

#[test]
fn local_settings_override_the_users_and_config_option_both() {
    let w = World::new();
    let agent = w.agent("a");
    w.write("PROMPT.md", "x");
    w.user_settings(&format!("command = {}\n[ralph]\nmax_iterations = 2\n", list(&agent.command())));
    let spawn = |name: &str, more: &[&str], n: u32| {
        let mut args = more.to_vec();
        args.extend(["spawn", "--name", name, "--ralph", "-d", "--prompt-file", "PROMPT.md"]);
        w.swarm(&args).ok().says(&format!("[ralph mode: iteration 1/{n}]\n"));
    };
    spawn("one", &[], 2);
    w.write("swarm.toml", "[ralph]\nmax_iterations = 3\n");
    spawn("two", &[], 3);
    w.write("mine.toml", "[ralph]\nmax_iterations = 4\n");
    spawn("three", &["-c", "mine.toml"], 4);
}

#[test]
fn an_unknown_key_or_a_bad_value_names_file_line_and_key() {
    let w = World::new();
    let path = w.user_settings("# mine\n[ralph]\nmax_iteration = 3\n");
    let error = w.swarm(&["spawn", "--", "sh"]).code(1).err;
    assert!(
        error.starts_with("swarm: error: ") && error.contains(&format!("{}:3", path.display())),
        "{error}"
    );
    assert!(error.contains("ralph.max_iteration"), "{error}");
    w.user_settings("\n\n[ralph]\n\nmax_iterations = \"many\"\n");
    let error = w.swarm(&["spawn", "--", "sh"]).code(1).err;
    assert!(
        error.contains(&format!("{}:5", path.display())) && error.contains("ralph.max_iterations"),
        "{error}"
    );
    w.user_settings("command = [\n");
    let error = w.swarm(&["spawn", "--", "sh"]).code(1).err;
    assert!(error.contains(&format!("{}:", path.display())), "{error}");
    assert_eq!(w.daemon_pid(), None);
}

#[test]
fn requested_settings_file_must_exist() {
    let w = World::new();
    for verb in [
        &["spawn", "--", "sh"][..],
        &["ls"],
        &["daemon", "start"],
        &["daemon", "run"],
        &["ralph", "template"],
    ] {
        w.swarm(&[&["-c", "missing.toml"], verb].concat()).code(1).warns("missing.toml");
    }
    w.write("bad.toml", "comand = []\n");
    w.swarm(&["ls", "-c", "bad.toml"]).code(1).warns("bad.toml:1: unknown key 'comand'");
    assert_eq!(w.daemon_pid(), None);
    w.swarm(&["daemon", "start"]).ok();
    w.swarm(&["-c", "bad.toml", "daemon", "status"]).ok().says("daemon running");
    w.swarm(&["-c", "missing.toml", "daemon", "stop"]).ok().says("daemon stopped");
}

#[test]
fn profile_in_the_settings_sets_when_an_agent_is_ready() {
    let w = World::new();
    let script = w.work().join("myagent");
    fs::write(
        &script,
        "#!/bin/sh\nprintf 'wait\\nMYREADY '; read -r line; echo \"got: $line\"; exec sleep 600\n",
    )
    .unwrap();
    fs::set_permissions(&script, PermissionsExt::from_mode(0o700)).unwrap();
    w.write("swarm.toml", "[agents.mine]\ncommands = [\"myagent\"]\nready = [\"^MYREADY\"]\n");
    let args = ["spawn", "--name", "one", "--prompt", "go on", "--prompt-via", "paste", "--", "./myagent"];
    w.swarm(&args).ok();
    w.until("the prompt was taken", || {
        w.swarm(&["peek", "one"]).ok().out.contains("got: go on").then_some(())
    });
}

#[test]
fn config_show_names_the_place_of_each_value_and_what_it_overrides() {
    let w = World::new();
    let user = w.user_settings("command = ['claude']\n[ralph]\nmax_iterations = 5\n");
    w.write("swarm.toml", "[ralph_loop]\nmax_iterations = 7\n[ralph]\nmax_iterations = 6\n");
    let text = w.swarm(&["config", "show"]).ok().out;
    let line = |key: &str| {
        let line = text.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("{key}: {text}"));
        line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    let user = user.display();
    assert_eq!(line("command"), format!("[\"claude\"] {user}:1"));
    assert_eq!(line("ralph.max_iterations"), format!("6 swarm.toml:4, overrides 5 ({user}:3)"));
    assert_eq!(line("ralph_loop.max_iterations"), "7 swarm.toml:2, overrides 25 (default)");
    assert_eq!((line("tmux.size"), line("tmux.source")), ("\"200x50\" default".into(), "-".into()));
    let shown = w.swarm(&["config", "show", "--format", "json"]).ok().json();
    let row = shown["settings"].as_array().unwrap().iter().find(|row| row["key"] == "ralph.max_iterations");
    let old = json!({"value": 5, "file": user.to_string(), "line": 3});
    let wanted = json!({"key": "ralph.max_iterations", "value": 6, "file": "swarm.toml", "line": 4, "overrides": [old]});
    assert_eq!((row.unwrap(), &shown["schema"]), (&wanted, &json!(1)));
    assert_eq!(w.daemon_pid(), None);
}

#[test]
fn config_check_prints_every_error_of_every_file() {
    let w = World::new();
    w.swarm(&["config", "check"]).ok().says("no settings files; to create one: swarm config edit\n");
    let user = w.user_settings("[ralph]\nmax_cost = 1\n");
    w.swarm(&["config", "check"]).code(1).warns("in [ralph_loop])\n");
    w.write("swarm.toml", "[tmux]\nsize = 1\n[ralph]\nmax_iteration = 3\n");
    let error = w.swarm(&["config", "check"]).code(1).err;
    for wanted in [
        format!("{}:2: unknown key 'ralph.max_cost' (this key belongs in [ralph_loop])", user.display()),
        "swarm.toml:2: 'tmux.size' must be a text".to_owned(),
        "swarm.toml:4: unknown key 'ralph.max_iteration' (did you mean 'max_iterations'?)".to_owned(),
    ] {
        assert!(error.contains(&format!("swarm: error: {wanted}\n")), "{error}");
    }
    w.user_settings("");
    w.write("swarm.toml", "");
    w.swarm(&["config", "check"]).ok().says(&format!("{}: ok\nswarm.toml: ok\n", user.display()));
}

#[test]
fn config_edit_creates_the_file_and_keeps_an_edit_with_an_error() {
    let mut w = World::new();
    let user = w.path("home/.config/swarm/config.toml");
    w.set("EDITOR", "false");
    w.swarm(&["config", "edit"])
        .code(1)
        .warns("the editor 'false' failed")
        .warns("hint: set VISUAL or EDITOR");
    assert!(!user.exists(), "an untouched template stayed");
    w.set("VISUAL", "sed -i s/#command/comand/");
    let said = w.swarm(&["config", "edit"]).code(1).err;
    assert!(said.contains("unknown key 'comand' (did you mean 'command'?)\n"), "{said}");
    assert!(said.starts_with("your changes are saved\n"), "{said}");
    assert!(said.ends_with("hint: to correct the file: swarm config edit\n"), "{said}");
    assert!(fs::read_to_string(&user).unwrap().contains("\ncomand = "));
    w.set("VISUAL", "true");
    let said = w.swarm(&["config", "edit"]).code(1).err;
    assert!(said.starts_with("nothing was changed\n") && !said.contains("saved"), "{said}");
    assert!(said.ends_with("hint: to correct the file: swarm config edit\n"), "{said}");
    w.set("VISUAL", "sed -i s/comand/command/");
    w.swarm(&["config", "edit"]).ok().says("config.toml: ok\n").warns("your changes are saved");
    assert!(!w.work().join("swarm.toml").exists());
    w.swarm(&["config", "edit", "--project"]).ok().says("swarm.toml: ok\n");
    assert!(w.work().join("swarm.toml").exists());
}

#[test]
fn config_edit_and_check_agree_on_a_file_that_is_missing() {
    let mut w = World::new();
    w.set("EDITOR", "true");
    // --config names the file to edit.
    w.swarm(&["config", "edit", "-c", "own.toml"]).ok().says("own.toml: ok\n");
    w.swarm(&["config", "edit", "-c", "own.toml", "--project"]).code(2).warns("--project and --config");
    // An error in another file is not in the edited one.
    w.write("swarm.toml", "x = 1\n");
    let said = w.swarm(&["config", "edit"]).code(1).err;
    assert!(said.contains("swarm.toml:1: ") && !said.contains("your changes are saved"), "{said}");
    fs::remove_file(w.work().join("swarm.toml")).unwrap();

    let user = w.path("home/.config/swarm/config.toml");
    let target = w.path("dotfiles.toml");
    fs::remove_file(&user).unwrap();
    std::os::unix::fs::symlink(&target, &user).unwrap();
    w.swarm(&["config", "check"])
        .code(1)
        .warns("is a link to a file that does not exist")
        .warns("hint: create that file, or remove the link");
    w.set("EDITOR", "false");
    w.swarm(&["config", "edit"]).code(1);
    assert!(user.is_symlink() && !target.exists());
    w.set("EDITOR", "true");
    w.swarm(&["config", "edit"]).ok().says("config.toml: ok\n");
    assert!(user.is_symlink() && target.exists());
}
