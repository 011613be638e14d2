//! `swarm hooks`: what happens to settings files that are somebody else's.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::world::{Ran, SWARM, World};

/// Settings with hooks of the user's own, in an odd order.
const THEIRS: &str = r#"{
  "zeta": true,
  "hooks": {
    "Stop": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "echo guard"
          }
        ]
      }
    ],
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [
          {
            "type": "command",
            "command": "./deny.sh",
            "timeout": 5
          }
        ]
      }
    ]
  },
  "permissions": {"allow": ["Bash(ls:*)", "Read"], "deny": []},
  "alpha": 1.50
}"#;

struct Settings {
    world: World,
    file: PathBuf,
}

impl Settings {
    /// A project; with `text` for its settings, when there are any.
    fn new(text: Option<&str>) -> Self {
        let world = World::new();
        let file = world.work().join(".claude/settings.json");
        if let Some(text) = text {
            fs::create_dir(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
        }
        Self { world, file }
    }

    #[track_caller]
    fn hooks(&self, args: &[&str]) -> Ran {
        self.world.swarm(&[&["hooks"], args].concat())
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.file).unwrap()
    }

    fn value(&self) -> Value {
        serde_json::from_str(&self.text()).unwrap()
    }

    /// The commands of ours for an event.
    fn ours(&self, event: &str) -> Vec<String> {
        let value = self.value();
        let groups = value["hooks"][event].as_array().cloned().unwrap_or_default();
        let hooks = groups.iter().filter_map(|group| group["hooks"].as_array()).flatten();
        let commands = hooks.filter_map(|hook| hook["command"].as_str());
        commands.filter(|c| c.contains("swarm-hook")).map(str::to_owned).collect()
    }
}

#[test]
fn install_adds_hooks_once_and_uninstall_restores_the_file() {
    let s = Settings::new(Some(THEIRS));
    s.hooks(&["install"]).ok().says("added the hooks to");
    let once = s.text();
    for event in ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "StopFailure"] {
        assert_eq!(s.ours(event).len(), 1, "{event}: {once}");
    }
    s.hooks(&["install"]).ok().says("already");
    assert_eq!(s.text(), once);
    let before: Value = serde_json::from_str(THEIRS).unwrap();
    let after = s.value();
    assert_eq!(after["hooks"]["PreToolUse"], before["hooks"]["PreToolUse"]);
    assert_eq!(after["hooks"]["Stop"][0], before["hooks"]["Stop"][0]);
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&after), keys(&before));
    assert!(!once.ends_with('\n') && once.contains("\n  \"zeta\""), "{once}");
    s.hooks(&["uninstall"]).ok().says("restored the original");
    assert_eq!(s.text(), THEIRS);
    s.hooks(&["uninstall"]).ok().says("has no hooks of swarm");
    assert_eq!(s.text(), THEIRS);
}

#[test]
fn uninstall_keeps_later_changes_and_removes_only_swarms_hooks() {
    let s = Settings::new(Some(THEIRS));
    s.hooks(&["install"]).ok();
    let edited = s.text().replace("\"zeta\": true", "\"zeta\": false");
    fs::write(&s.file, edited).unwrap();
    s.hooks(&["install"]).ok().says("already");
    s.hooks(&["uninstall"]).ok().says("removed swarm's hooks from");
    let wanted: Value = serde_json::from_str(&THEIRS.replace("true", "false")).unwrap();
    assert_eq!(s.value().to_string(), wanted.to_string());
}

#[test]
fn created_settings_file_is_removed_with_its_directory() {
    let s = Settings::new(None);
    s.hooks(&["install"]).ok().says("created");
    assert!(s.text().ends_with("}\n"));
    s.hooks(&["uninstall"]).ok().says("removed");
    assert!(!s.file.parent().unwrap().exists());

    // Somebody else moved in.
    s.hooks(&["install"]).ok();
    let mut value = s.value();
    value["model"] = json!("x");
    fs::write(&s.file, value.to_string()).unwrap();
    s.hooks(&["uninstall"]).ok().says("removed swarm's hooks from");
    assert_eq!(s.value(), json!({"model": "x"}));
    // And away again: what is left holds nothing, and was made by us.
    s.hooks(&["install"]).ok();
    s.hooks(&["uninstall"]).ok().says("restored the original");
    assert_eq!(s.value(), json!({"model": "x"}));
}

#[test]
fn directory_that_is_not_empty_is_kept() {
    let s = Settings::new(None);
    s.hooks(&["install"]).ok();
    let other = s.file.with_file_name("notes.md");
    fs::write(&other, "mine").unwrap();
    s.hooks(&["uninstall"]).ok();
    assert!(other.exists() && !s.file.exists());
}

#[test]
fn invalid_settings_file_is_refused_and_not_changed() {
    for (text, why) in [
        ("{\n  \"hooks\": {},\n}\n", "is not valid JSON"),
        ("// mine\n{}\n", "is not valid JSON"),
        ("[1]", "it is not an object"),
        ("{\"hooks\": []}", "\"hooks\" is not an object"),
        ("{\"hooks\": {\"Stop\": {}}}", "\"hooks.Stop\" is not a list"),
    ] {
        let s = Settings::new(Some(text));
        let ran = s.hooks(&["install"]).code(1);
        assert!(ran.err.contains(why) && ran.err.contains("hint:"), "{text}: {}", ran.err);
        assert_eq!(s.text(), text);
        let entries = fs::read_dir(s.file.parent().unwrap()).unwrap().count();
        assert_eq!(entries, 1, "something was left beside it");
    }
    let s = Settings::new(Some(""));
    fs::write(&s.file, b"{\"a\": \"\xff\"}").unwrap();
    s.hooks(&["install"]).code(1).warns("is not valid JSON");
    fs::remove_file(&s.file).unwrap();
    fs::create_dir(&s.file).unwrap();
    s.hooks(&["install"]).code(1).warns("is not a settings file");
}

#[test]
fn symlink_and_file_mode_are_kept() {
    let s = Settings::new(Some(THEIRS));
    let real = s.world.path("dotfiles.json");
    fs::rename(&s.file, &real).unwrap();
    fs::set_permissions(&real, PermissionsExt::from_mode(0o640)).unwrap();
    symlink("../../dotfiles.json", &s.file).unwrap();
    let mode = || fs::metadata(&real).unwrap().permissions().mode() & 0o777;
    s.hooks(&["install"]).ok();
    assert!(s.file.is_symlink() && s.ours("Stop").len() == 1);
    assert_eq!(mode(), 0o640);
    s.hooks(&["uninstall"]).ok();
    assert!(s.file.is_symlink());
    assert_eq!((fs::read_to_string(&real).unwrap().as_str(), mode()), (THEIRS, 0o640));

    // A link to nowhere: the file that it names is made, and goes again.
    fs::remove_file(&real).unwrap();
    s.hooks(&["install"]).ok().says("created");
    assert!(real.exists() && s.file.is_symlink());
    s.hooks(&["uninstall"]).ok();
    assert!(!real.exists() && s.file.is_symlink());
    fs::remove_file(&s.file).unwrap();
    symlink("settings.json", &s.file).unwrap();
    s.hooks(&["install"]).code(1).warns("is a symbolic link in a circle");
}

#[test]
fn a_read_only_file_is_an_error() {
    let s = Settings::new(Some(THEIRS));
    fs::set_permissions(&s.file, PermissionsExt::from_mode(0o444)).unwrap();
    s.hooks(&["install"]).code(1).warns("is read-only");
    assert_eq!(s.text(), THEIRS);
    // Nothing is to be done: nothing has to be written.
    s.hooks(&["uninstall"]).ok();
}

#[test]
fn concurrent_installs_add_each_hook_once() {
    let s = Settings::new(Some(THEIRS));
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| s.hooks(&["install"]).ok());
        }
    });
    assert_eq!((s.ours("Stop").len(), s.ours("UserPromptSubmit").len()), (1, 1));
    assert_eq!(fs::read_dir(s.file.parent().unwrap()).unwrap().count(), 1);
    s.hooks(&["uninstall"]).ok();
    assert_eq!(s.text(), THEIRS);
}

#[test]
fn tabs_line_ends_and_byte_order_mark_are_kept() {
    let text = "\u{feff}{\r\n\t\"b\": 1,\r\n\t\"a\": {\r\n\t\t\"x\": []\r\n\t}\r\n}\r\n";
    let s = Settings::new(Some(text));
    s.hooks(&["install"]).ok();
    let now = s.text();
    assert!(
        now.starts_with("\u{feff}{\r\n\t\"b\": 1,\r\n\t\"a\": {\r\n\t\t\"x\": []\r\n\t},\r\n\t\"hooks\""),
        "{now:?}"
    );
    assert!(!now.replace("\r\n", "").contains('\n'));
    s.hooks(&["uninstall"]).ok();
    assert_eq!(s.text(), text);
}

#[test]
fn old_hook_path_is_updated_and_uninstall_works_without_a_backup() {
    let old =
        r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"/gone/swarm hook stop"}]}]},"a":1}"#;
    let s = Settings::new(Some(old));
    s.hooks(&["install"]).ok();
    let line = s.ours("Stop").pop().unwrap();
    assert!(line.contains(SWARM) && !s.text().contains("/gone/"), "{line}");
    s.hooks(&["uninstall"]).ok().says("removed swarm's hooks from");
    assert_eq!(s.value(), json!({"a": 1}));

    // The data that swarm kept about the file is lost.
    s.hooks(&["install"]).ok();
    fs::remove_dir_all(s.world.swarm_dir()).unwrap();
    s.hooks(&["uninstall"]).ok();
    assert_eq!(s.value(), json!({"a": 1}));
}

#[test]
fn user_and_codex_settings_are_in_the_agents_directories() {
    let mut s = Settings::new(None);
    s.hooks(&["install", "--scope", "user"]).ok();
    s.hooks(&["install", "--agent", "codex"]).ok();
    s.hooks(&["install", "--agent", "codex", "--scope", "user"]).ok();
    let home = s.world.path("home");
    for file in [
        home.join(".claude/settings.json"),
        home.join(".codex/hooks.json"),
        s.world.work().join(".codex/hooks.json"),
    ] {
        let value: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert!(value["hooks"]["Stop"].is_array(), "{}", file.display());
    }
    assert!(!s.file.exists());
    let elsewhere = s.world.path("elsewhere");
    s.world.set("CLAUDE_CONFIG_DIR", elsewhere.to_str().unwrap());
    s.world.set("CODEX_HOME", elsewhere.to_str().unwrap());
    s.hooks(&["install", "--scope", "user"]).ok();
    s.hooks(&["install", "--scope", "user", "--agent", "codex"]).ok();
    assert!(elsewhere.join("settings.json").exists() && elsewhere.join("hooks.json").exists());
}

#[test]
fn hooks_status_shows_each_file_and_a_missing_program() {
    let s = Settings::new(Some(THEIRS));
    s.hooks(&["install"]).ok();
    let of = |args: &[&str]| s.hooks(&[&["status", "--format", "json"], args].concat()).ok().json();
    let all = of(&[]);
    let places: Vec<_> = all["hooks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|h| (h["agent"].clone(), h["scope"].clone(), h["state"].clone()))
        .collect();
    assert_eq!(
        places,
        [
            ("claude", "project", "installed"),
            ("claude", "user", "absent"),
            ("codex", "project", "absent"),
            ("codex", "user", "absent")
        ]
        .map(|(a, b, c)| (json!(a), json!(b), json!(c)))
    );
    let ours = &of(&["--agent", "claude", "--scope", "project"])["hooks"][0];
    assert_eq!(ours["program"], SWARM);
    assert_eq!(ours["program_found"], true);
    assert_eq!(ours["file"], s.file.to_str().unwrap());
    s.hooks(&["status"]).ok().says("installed");

    fs::write(&s.file, s.text().replace(SWARM, "/gone/swarm").replace("StopFailure", "Later")).unwrap();
    let ours = &of(&["--agent", "claude"])["hooks"][0];
    assert_eq!((&ours["state"], &ours["program_found"]), (&json!("partial"), &json!(false)));
    s.hooks(&["status"]).ok().warns("their program does not exist");
    fs::write(&s.file, "{").unwrap();
    assert_eq!(of(&["--agent", "claude"])["hooks"][0]["state"], "unreadable");
    s.hooks(&["status"]).ok().warns("is not valid JSON");
}

/// An agent takes exit status 2 for "do not stop".
#[test]
fn hook_without_its_program_exits_with_0() {
    let s = Settings::new(None);
    s.hooks(&["install"]).ok();
    let line = s.ours("Stop").pop().unwrap().replace(SWARM, "/gone/swarm");
    let other = s.world.path("bin");
    fs::create_dir(&other).unwrap();
    let run = |path: &str| {
        let mut command: Command = s.world.command("/bin/sh");
        command.args(["-c", &line]).env("PATH", path);
        s.world.run(command)
    };
    let gone = run("/usr/bin:/bin").ok();
    assert_eq!((gone.out.as_str(), gone.err.as_str()), ("", ""));
    // Another program of that name, or a swarm that knows no hooks.
    fs::write(other.join("swarm"), "#!/bin/sh\necho 'unknown command' >&2\nexit 2\n").unwrap();
    fs::set_permissions(other.join("swarm"), PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", other.display());
    assert_eq!(run(&path).ok().out, "");
}
