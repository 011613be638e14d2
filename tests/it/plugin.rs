//! `swarm plugin`: what is written where, and that nothing of anybody else's is touched.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::world::{Ran, SWARM, World};

const BARE: [&str; 3] = ["cancel-ralph.md", "ralph-loop.md", "ulw-loop.md"];

const SKILL: &str = "swarm/skills/ralph-plan/SKILL.md";

#[track_caller]
fn plugin(world: &World, args: &[&str]) -> Ran {
    world.swarm(&[&["plugin"], args].concat())
}

fn value(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// Every file below `dir`, with its text.
fn tree(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = walkdir::WalkDir::new(dir).sort_by_file_name().into_iter().map(Result::unwrap);
    let files = files.filter(|entry| entry.file_type().is_file());
    files.map(|entry| (entry.path().to_owned(), fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn plugins_are_written_enabled_and_removed() {
    let world = World::new();
    let claude = world.work().join(".claude");
    plugin(&world, &["install"]).ok().says("enabled the plugins").warns("claude plugin marketplace add");
    let market = world.swarm_dir().join("claude-plugin");
    let settings = value(&claude.join("settings.json"));
    assert_eq!(
        settings,
        json!({
            "extraKnownMarketplaces": {"swarm": {"source": {"source": "directory", "path": market.to_str().unwrap()}}},
            "enabledPlugins": {"swarm@swarm": true, "do-it@swarm": true},
        })
    );
    for name in BARE {
        let bare = fs::read_to_string(claude.join("commands").join(name)).unwrap();
        assert_eq!(bare, fs::read_to_string(market.join("swarm/commands").join(name)).unwrap());
    }
    let skill = fs::read_to_string(market.join(SKILL)).unwrap();
    assert_eq!(fs::read_to_string(claude.join("commands/ralph-plan.md")).unwrap(), skill);
    for name in ["swarm", "do-it"] {
        let hooks = value(&market.join(name).join("hooks/hooks.json"));
        let line = hooks["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap().to_owned();
        assert!(line.contains(SWARM), "{line}");
        assert_eq!(value(&market.join(name).join(".claude-plugin/plugin.json"))["name"], name);
    }
    let listed = value(&market.join(".claude-plugin/marketplace.json"));
    for plugin in listed["plugins"].as_array().unwrap() {
        assert!(market.join(plugin["source"].as_str().unwrap()).is_dir(), "{plugin}");
    }

    let before = (tree(&claude), tree(&market));
    plugin(&world, &["install"]).ok().says("already installed");
    assert_eq!((tree(&claude), tree(&market)), before);
    plugin(&world, &["uninstall"]).ok();
    assert!(!claude.exists() && !market.exists());
    plugin(&world, &["uninstall"]).ok().says("has no plugins of swarm");
}

#[test]
fn install_is_refused_if_a_file_of_the_user_is_in_the_way() {
    let world = World::new();
    let claude = world.work().join(".claude");
    fs::create_dir_all(claude.join("commands")).unwrap();
    fs::write(claude.join("commands/ulw-loop.md"), "mine").unwrap();
    plugin(&world, &["install"]).code(1).warns("is not a file of swarm");
    assert_eq!(tree(&claude).len(), 1);
    assert!(!world.swarm_dir().join("claude-plugin").exists());

    fs::remove_file(claude.join("commands/ulw-loop.md")).unwrap();
    fs::write(claude.join("settings.json"), "{,}").unwrap();
    plugin(&world, &["install"]).code(1).warns("is not valid JSON");
    assert_eq!(tree(&claude).len(), 1);
}

#[test]
fn uninstall_with_broken_settings_changes_nothing() {
    let world = World::new();
    plugin(&world, &["install"]).ok();
    let settings = world.work().join(".claude/settings.json");
    let good = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, "{").unwrap();
    let before = tree(&world.swarm_dir().join("claude-plugin"));
    plugin(&world, &["uninstall"]).code(1).warns("is not valid JSON");
    assert_eq!(tree(&world.swarm_dir().join("claude-plugin")), before);
    fs::write(&settings, good).unwrap();
    plugin(&world, &["uninstall"]).ok();
    assert!(!world.work().join(".claude").exists());
}

#[test]
fn changed_plugin_file_is_kept() {
    let world = World::new();
    let file = world.work().join(".claude/commands/ralph-loop.md");
    plugin(&world, &["install"]).ok();
    fs::write(&file, "better").unwrap();
    plugin(&world, &["install"]).code(1).warns("is not a file of swarm");
    plugin(&world, &["uninstall"]).code(1).warns("was changed since its installation; it is kept");
    assert_eq!(tree(&world.work().join(".claude")), [(file, b"better".to_vec())]);
}

/// An earlier release's file is replaced: it is as it was written then.
#[test]
fn plugin_file_of_an_earlier_release_is_replaced() {
    let world = World::new();
    plugin(&world, &["install"]).ok();
    let file = world.work().join(".claude/commands/ralph-loop.md");
    let now = fs::read_to_string(&file).unwrap();
    let record = world.swarm_dir().join("hooks/plugin.json");
    let known = fs::read_to_string(&record).unwrap();
    fs::write(&file, "").unwrap();
    // SHA-256 of nothing.
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let mut value: Value = serde_json::from_str(&known).unwrap();
    for entry in value.as_object_mut().unwrap().values_mut() {
        entry["files"][file.to_str().unwrap()] = json!(empty);
    }
    fs::write(&record, value.to_string()).unwrap();
    plugin(&world, &["install"]).ok().says("wrote");
    assert_eq!(fs::read_to_string(&file).unwrap(), now);
}

#[test]
fn marketplace_is_removed_with_its_last_installation() {
    let world = World::new();
    plugin(&world, &["install"]).ok();
    plugin(&world, &["install", "--scope", "user"]).ok();
    let market = world.swarm_dir().join("claude-plugin");
    let home = world.path("home/.claude");
    assert!(home.join("commands/ralph-loop.md").exists());
    plugin(&world, &["uninstall"]).ok();
    assert!(market.join("swarm/hooks/hooks.json").exists() && !world.work().join(".claude").exists());
    plugin(&world, &["uninstall", "--scope", "user"]).ok();
    assert!(!market.exists() && !home.exists());
}

#[test]
fn hooks_and_plugins_in_one_file_can_be_removed_in_any_order() {
    let text = "{\"model\": \"x\",   \"hooks\": {}}";
    for out in [["hooks", "plugin"], ["plugin", "hooks"]] {
        let world = World::new();
        let file = world.work().join(".claude/settings.json");
        fs::create_dir(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        world.swarm(&["hooks", "install"]).ok();
        world.swarm(&["plugin", "install"]).ok();
        let both = value(&file);
        assert!(both["hooks"]["Stop"].is_array() && both["enabledPlugins"].is_object(), "{both}");
        world.swarm(&[out[0], "uninstall"]).ok();
        let one = value(&file);
        assert_eq!(one["hooks"]["Stop"].is_array(), out[0] == "plugin", "{one}");
        world.swarm(&[out[1], "uninstall"]).ok();
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
}

#[test]
fn plugin_directory_can_be_chosen_and_opencode_gets_one_file() {
    let world = World::new();
    plugin(&world, &["install", "--dir", "market"]).ok();
    let settings = value(&world.work().join(".claude/settings.json"));
    let named = settings["extraKnownMarketplaces"]["swarm"]["source"]["path"].as_str().unwrap().to_owned();
    assert!(Path::new(&named).is_absolute() && Path::new(&named).join("do-it/README.md").exists());
    plugin(&world, &["uninstall"]).ok().says("removed the plugins in");
    assert!(!world.work().join("market").exists());

    plugin(&world, &["install", "--agent", "opencode"]).ok();
    let file = world.work().join(".opencode/plugin/swarm.js");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains(&format!("const PROGRAM = {};", json!(SWARM))), "{text}");
    plugin(&world, &["install", "--agent", "opencode"]).ok().says("already");
    plugin(&world, &["uninstall", "--agent", "opencode"]).ok();
    assert!(!world.work().join(".opencode").exists());
    plugin(&world, &["install", "--agent", "opencode", "--dir", "x"]).code(2);
}
