//! `swarm ralph init --tasks` and `swarm ralph plan`: the files of a task list, and the agent that plans it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use serde_json::Value;

use crate::attach::Terminal;
use crate::world::{Ran, SWARM, World};

const FILES: [&str; 4] = ["prd.md", "tasks.json", "progress.txt", "prompt.md"];

#[track_caller]
fn init(world: &World, args: &[&str]) -> Ran {
    world.swarm(&[&["ralph", "init", "--tasks"], args].concat())
}

fn read(world: &World, file: &str) -> String {
    fs::read_to_string(world.work().join(file)).unwrap()
}

/// All files of the working directory and its `ralph`, with their texts.
fn files(world: &World) -> Vec<(PathBuf, Vec<u8>)> {
    let found = walkdir::WalkDir::new(world.work()).sort_by_file_name().into_iter().map(Result::unwrap);
    let found = found.filter(|entry| entry.file_type().is_file());
    found.map(|entry| (entry.path().to_owned(), fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn init_writes_the_files_of_a_task_list() {
    let world = World::new();
    world.write(".gitignore", "target");
    let ran = init(&world, &["--name", "checkout"]).ok().warns("not a git repository");
    let created = FILES.map(|file| format!("created ralph/{file}\n")).concat();
    assert_eq!(ran.out, created + "added .ralph-active to .gitignore\n");
    let ran = ran.warns("  swarm ralph plan ").warns("  swarm ralph tasks check ");
    assert!(
        ran.err.ends_with("  swarm spawn --name checkout --ralph --ralph-dir ralph -- claude\n"),
        "{}",
        ran.err
    );
    assert_eq!(read(&world, ".gitignore"), "target\n.ralph-active\n");
    let list: Value = serde_json::from_str(&read(&world, "ralph/tasks.json")).unwrap();
    assert_eq!((&list["project"], &list["branchName"]), (&"work".into(), &"ralph/checkout".into()));
    let progress = read(&world, "ralph/progress.txt");
    assert!(progress.contains("\nStarted: 20") && progress.contains("\nPRD: work\n"), "{progress}");
    assert!(read(&world, "ralph/prd.md").starts_with("# PRD: work\n"));
    // Each iteration fills these in.
    assert!(read(&world, "ralph/prompt.md").contains("$RALPH_ITERATION"));
    let mode = fs::metadata(world.work().join("ralph/prd.md")).unwrap().permissions().mode();
    assert_eq!(mode & 0o600, 0o600);
}

#[test]
fn init_keeps_existing_files_and_force_overwrites_them() {
    let world = World::new();
    drop(world.repo("work"));
    init(&world, &[]).ok();
    world.write("ralph/prd.md", "A shop");
    fs::remove_file(world.work().join("ralph/prompt.md")).unwrap();
    let ran = init(&world, &["--name", "other"]).ok().warns("--name was not used");
    assert_eq!(
        ran.out,
        "kept ralph/prd.md\nkept ralph/tasks.json\nkept ralph/progress.txt\ncreated ralph/prompt.md\n"
    );
    assert!(ran.err.contains("--force") && !ran.err.contains("not a git repository"), "{}", ran.err);
    assert_eq!(
        (read(&world, "ralph/prd.md"), read(&world, ".gitignore")),
        ("A shop".into(), ".ralph-active\n".into())
    );
    let before = files(&world);
    init(&world, &[]).ok();
    assert_eq!(files(&world), before);

    let marker = |pid: u32| format!("{{\"pid\": {pid}, \"worker\": \"checkout\"}}");
    world.write(".ralph-active", &marker(std::process::id()));
    init(&world, &["--force"])
        .code(1)
        .warns("worker 'checkout' works on")
        .warns("swarm ralph pause checkout");
    init(&world, &[]).ok();
    assert_eq!(read(&world, "ralph/prd.md"), "A shop");
    // The program that wrote it is gone.
    world.write(".ralph-active", &marker(u32::MAX));
    init(&world, &["--force", "--name", "other"]).ok().says("overwrote ralph/prd.md");
    assert!(read(&world, "ralph/prd.md").starts_with("# PRD"));
    assert!(read(&world, "ralph/tasks.json").contains("\"ralph/other\""));
}

#[test]
fn init_writes_nothing_if_a_file_is_in_the_way() {
    let world = World::new();
    for name in ["a b", "", "../x", "a..b", "x.lock", "a\nb"] {
        init(&world, &["--name", name]).code(1).warns("cannot be part of a branch name");
    }
    init(&world, &["--cwd", "missing"]).code(1).warns("no such directory");
    world.swarm(&["ralph", "init", "--name", "x"]).code(2).warns("--tasks");
    assert_eq!(files(&world), []);

    let (dir, prd) = (world.work().join("ralph"), world.work().join("ralph/prd.md"));
    fs::write(&dir, "").unwrap();
    init(&world, &[]).code(1).warns("'ralph' is not a directory");
    fs::remove_file(&dir).unwrap();
    symlink("nowhere", &dir).unwrap();
    init(&world, &["--force"]).code(1).warns("'ralph' is a link to a missing directory");
    fs::remove_file(&dir).unwrap();
    fs::create_dir(&dir).unwrap();
    symlink("nowhere", &prd).unwrap();
    init(&world, &[]).code(1).warns("'ralph/prd.md': it is a link to a missing file");
    fs::create_dir(dir.join("prompt.md")).unwrap();
    init(&world, &["--force"]).code(1).warns("'ralph/prompt.md': it is a directory");
    fs::remove_dir(dir.join("prompt.md")).unwrap();
    fs::create_dir(world.work().join(".gitignore")).unwrap();
    init(&world, &["--force"]).code(1).warns("cannot read");
    assert_eq!(files(&world), []);
    fs::remove_dir(world.work().join(".gitignore")).unwrap();
    init(&world, &["--force"]).ok().says("overwrote ralph/prd.md").says("created ralph/tasks.json");
    assert!(!prd.is_symlink());
}

#[test]
fn init_and_plan_accept_another_directory() {
    let world = World::new();
    fs::create_dir(world.work().join("shop")).unwrap();
    init(&world, &["--project-dir", "shop"]).ok().says("created shop/ralph/prd.md").warns("  cd ");
    let prompt = world.swarm(&["ralph", "plan", "--print", "--ralph-dir", "shop/ralph"]).ok();
    prompt.says("Use mode 1: `shop/ralph/prd.md`").says("The directory is `shop/ralph`");
}

#[test]
fn plan_chooses_its_mode_by_the_requirements() {
    let world = World::new();
    let plan = |args: &[&str]| world.swarm(&[&["ralph", "plan"], args].concat());
    plan(&[]).code(1).warns("no such directory: ralph").warns("swarm ralph init --tasks");
    init(&world, &[]).ok();
    plan(&["--print"])
        .ok()
        .says("# Plan a feature")
        .says("Use mode 1: `ralph/prd.md` has no requirements yet.");
    world.write("ralph/prd.md", &format!("{}\nA shop\n", read(&world, "ralph/prd.md")));
    plan(&["--print"]).ok().says("Use mode 2: `ralph/prd.md` has requirements.");
    fs::remove_file(world.work().join("ralph/prd.md")).unwrap();
    plan(&["--print"]).ok().says("Use mode 1");
    plan(&[]).code(1).warns("this is not a terminal").warns("swarm ralph plan --print");
    world.write(".ralph-active", &format!("{{\"pid\": {}}}", std::process::id()));
    plan(&[]).code(1).warns("a loop (process ").warns("rm ");
}

#[test]
fn plan_starts_the_agent_with_the_prompt() {
    let world = World::new();
    init(&world, &[]).ok();
    let agent = world.work().join("agent.sh");
    fs::write(&agent, "#!/bin/sh\nprintf '%s|%s|%s' $# \"$1\" \"$2\" >got\nexit 7\n").unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o700)).unwrap();
    let terminal = Terminal::run(&world, 0, &[SWARM, "ralph", "plan", "--", "./agent.sh", "--model"]);
    terminal.until_shows("code 7");
    let got = read(&world, "got");
    assert!(got.starts_with("2|--model|# Plan a feature"), "{got}");
    assert!(got.ends_with("has no requirements yet.\n"), "{got}");

    // Of the settings.
    world.write("swarm.toml", "command = [\"./agent.sh\"]\n");
    Terminal::run(&world, 1, &[SWARM, "ralph", "plan"]).until_shows("code 7");
    assert!(read(&world, "got").starts_with("1|# Plan a feature"));
    let refused = Terminal::run(&world, 2, &[SWARM, "ralph", "plan", "--", "claude", "-p"]);
    assert!(refused.until_shows("code 1").contains("'claude -p' cannot begin a conversation"));
    let missing = Terminal::run(&world, 3, &[SWARM, "ralph", "plan", "--", "./missing"]);
    assert!(missing.until_shows("code 1").contains("cannot run './missing'"));
}
