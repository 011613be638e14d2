//! `swarm ralph archive`: what is moved, what is committed, and that nothing is lost.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use crate::world::{Ran, World};

#[track_caller]
fn archive(world: &World, args: &[&str]) -> Ran {
    world.swarm(&[&["ralph", "archive"], args].concat())
}

#[track_caller]
fn git(world: &World, args: &[&str]) -> String {
    let mut command = world.command("git");
    command.args(args);
    world.run(command).ok().out
}

fn read(world: &World, file: &str) -> String {
    fs::read_to_string(world.work().join(file)).unwrap()
}

/// The names of the archives, without their days.
fn archives(world: &World) -> Vec<String> {
    let Ok(entries) = fs::read_dir(world.work().join("ralph-archive")) else { return vec![] };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names.into_iter().map(|name| name[11..].to_owned()).collect()
}

/// The path of the only archive.
#[track_caller]
fn only(world: &World) -> String {
    assert_eq!(archives(world).len(), 1);
    let entry = fs::read_dir(world.work().join("ralph-archive")).unwrap().next().unwrap().unwrap();
    format!("ralph-archive/{}", entry.file_name().into_string().unwrap())
}

/// Three stories: one approved, one approved at the cap, one open.
fn list() -> String {
    let story = |id: &str, passes: bool, count: u32, feedback: &str| {
        json!({
            "id": id, "title": format!("Title of {id}"), "acceptanceCriteria": ["x"], "priority": 1,
            "passes": passes, "reviewStatus": passes.then_some("approved"), "reviewCount": count,
            "reviewFeedback": feedback, "notes": "done",
        })
    };
    let stories = [
        story("US-001", true, 1, ""),
        story("US-002", true, 5, "[AUTO-APPROVED AT CAP] It is slow"),
        story("US-003", false, 0, ""),
    ];
    let list = json!({ "project": "shop", "branchName": "ralph/checkout", "description": "Pay", "userStories": stories });
    format!("{list:#}\n")
}

/// A directory with a list, not a repository.
fn planned(world: &World) {
    world.swarm(&["ralph", "init", "--tasks"]).ok();
    world.write("ralph/prd.md", "A shop\n");
    world.write("ralph/tasks.json", &list());
}

/// A repository with a list that was committed.
fn committed(world: &World) {
    drop(world.repo("work"));
    planned(world);
    world.write("code", "1");
    git(world, &["add", "-A"]);
    git(world, &["commit", "-qm", "work"]);
}

#[test]
fn archive_moves_the_list_and_writes_a_summary() {
    let world = World::new();
    committed(&world);
    let prompt = read(&world, "ralph/prompt.md");
    let ran = archive(&world, &[]).ok().says("stories done: 2 of 3, reviews: 6\n").says("committed ");
    let folder = only(&world);
    assert!(ran.out.starts_with(&format!("archived the task list in {folder}\n")), "{}", ran.out);
    assert!(folder.ends_with("-checkout"), "{folder}");
    assert_eq!(read(&world, &format!("{folder}/prd.md")), "A shop\n");
    assert_eq!(read(&world, &format!("{folder}/tasks.json")), list());
    let summary = read(&world, &format!("{folder}/summary.md"));
    for line in [
        "- Stories done: 2 of 3",
        "- Reviews: 6",
        "- Approved at the review cap: US-002",
        "| US-002 | Title of US-002 | approved | 5 |",
    ] {
        assert!(summary.lines().any(|found| found == line), "{line}\n{summary}");
    }
    assert!(summary.contains("\n- Dates: 20"), "{summary}");
    // The prompt was not changed, so the archive has no copy.
    assert!(!world.work().join(format!("{folder}/prompt.md")).exists());
    assert_eq!(read(&world, "ralph/prompt.md"), prompt);
    assert!(read(&world, "ralph/prd.md").starts_with("# PRD: work\n"));
    assert!(read(&world, "ralph/tasks.json").contains("\"title\": \"\""));
    assert_eq!(git(&world, &["status", "--porcelain"]), "");
    archive(&world, &[]).code(1).warns("nothing to archive").warns("swarm ralph plan");
}

#[test]
fn archive_commits_only_its_own_files() {
    let world = World::new();
    committed(&world);
    world.write("ralph/prompt.md", "mine");
    world.write("code", "2");
    world.write("staged", "1");
    world.write("untracked", "1");
    git(&world, &["add", "staged", "code"]);
    world.write("code", "3");
    archive(&world, &["--label", "v1"]).ok().warns("kept your ralph/prompt.md");
    let folder = only(&world);
    assert_eq!(read(&world, "ralph/prompt.md"), "mine");
    let mut changed: Vec<String> = ["prd.md", "progress.txt", "prompt.md", "summary.md", "tasks.json"]
        .map(|file| format!("{folder}/{file}"))
        .into();
    changed.extend(["ralph/prd.md", "ralph/tasks.json"].map(str::to_owned));
    let listed = git(&world, &["show", "--no-renames", "--name-only", "--format=%s"]);
    let mut lines = listed.lines();
    assert_eq!(
        lines.next().unwrap(),
        format!("chore: archive task list {}", &folder["ralph-archive/".len()..])
    );
    assert_eq!(lines.filter(|line| !line.is_empty()).collect::<Vec<_>>(), changed);
    assert_eq!(
        git(&world, &["status", "--porcelain"]),
        "MM code\n M ralph/prompt.md\nA  staged\n?? untracked\n"
    );
}

#[test]
fn labels_stay_below_the_directory_of_archives() {
    let world = World::new();
    let long = "x".repeat(300);
    let labels = ["../x", "a/b", "", &long, "größe 日本", "a\nb", "--"];
    for label in labels {
        planned(&world);
        archive(&world, &[&format!("--label={label}")]).ok();
        world.swarm(&["ralph", "init", "--tasks"]).ok();
    }
    planned(&world);
    world.write("ralph/prd.md", "Another shop\n");
    archive(&world, &["--label", "x"]).ok();
    let mut expected = vec![
        "x".to_owned(),
        "a-b".into(),
        "checkout".into(),
        "x".repeat(80),
        "größe-日本".into(),
        "x-2".into(),
    ];
    expected.push("checkout-2".to_owned());
    expected.sort();
    // The last label has nothing that is kept, and the list is that of `checkout`: the same files need no second copy.
    expected.retain(|name| name != "checkout-2");
    assert_eq!(archives(&world), expected);
    let above: Vec<_> =
        fs::read_dir(world.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(above.iter().all(|name| name != "x"), "{above:?}");
}

#[test]
fn archive_refuses_while_a_loop_works_on_the_list() {
    let world = World::new();
    committed(&world);
    let marker = |pid: u32| format!("{{\"pid\": {pid}, \"worker\": \"checkout\"}}");
    world.write(".ralph-active", &marker(std::process::id()));
    let ran = archive(&world, &[]).code(1).warns("worker 'checkout' works on the task list 'ralph'");
    ran.warns("swarm ralph pause checkout, or swarm kill checkout").warns("rm ");
    fs::create_dir(world.work().join("sub")).unwrap();
    archive(&world, &["--cwd", "sub", "--ralph-dir", "ralph"]).code(1).warns("worker 'checkout'");
    // Above the project, the loop may work on another list.
    world.swarm(&["ralph", "init", "--tasks", "--cwd", "sub"]).ok();
    world.write("sub/ralph/prd.md", "A part\n");
    world
        .write(".ralph-active", &format!("{{\"pid\": {}, \"ralphDir\": \"sub/ralph\"}}", std::process::id()));
    archive(&world, &["--cwd", "sub"]).code(1).warns("works on the task list 'sub/ralph'");
    world.write(".ralph-active", &marker(std::process::id()));
    archive(&world, &["--cwd", "sub", "--no-commit"]).ok();
    assert_eq!((archives(&world), read(&world, "ralph/tasks.json")), (vec![], list()));
    world.write(".ralph-active", &marker(u32::MAX));
    archive(&world, &[]).ok();
}

#[test]
fn archive_without_a_commit_prints_the_reason() {
    let world = World::new();
    planned(&world);
    archive(&world, &[]).ok().warns("not committed, since the project is not in a git repository");
    drop(world.repo("work"));
    planned(&world);
    archive(&world, &["--no-commit", "--label", "b"]).ok().warns("not committed, because of --no-commit");
    planned(&world);
    world.write(".gitignore", ".ralph-active\nralph*\n");
    archive(&world, &["--label", "c"]).ok().warns("not committed, since git ignores these files");
    assert_eq!(git(&world, &["log", "--format=%s"]), "start\n");

    world.write(".gitignore", ".ralph-active\n");
    planned(&world);
    let hook = world.work().join(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\ntouch ran\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(world.work().join(".git/MERGE_HEAD"), git(&world, &["rev-parse", "HEAD"])).unwrap();
    let ran = archive(&world, &["--label", "d", "--format", "json"]).code(1).warns("cannot commit it");
    assert!(ran.json()["error"]["message"].as_str().unwrap().contains("during a merge"), "{}", ran.out);
    assert!(!world.work().join("ran").exists(), "no hook runs");
    assert_eq!(archives(&world), ["b", "c", "checkout", "d"]);
    assert_eq!(git(&world, &["log", "--format=%s"]), "start\n");
}

/// swarm was killed after it had copied two files, or while it wrote the empty ones.
#[test]
fn archive_continues_an_interrupted_one() {
    let world = World::new();
    committed(&world);
    archive(&world, &["--no-commit"]).ok();
    let folder = only(&world);
    fs::remove_file(world.work().join(format!("{folder}/summary.md"))).unwrap();
    fs::remove_file(world.work().join(format!("{folder}/progress.txt"))).unwrap();
    // prd.md is empty already, the list is not.
    world.write("ralph/tasks.json", &list());
    archive(&world, &[]).ok().says("committed ");
    assert_eq!(only(&world), folder);
    assert_eq!(read(&world, &format!("{folder}/prd.md")), "A shop\n");
    assert_eq!(read(&world, &format!("{folder}/tasks.json")), list());
    assert!(read(&world, &format!("{folder}/summary.md")).contains("- Stories done: 2 of 3"));
    assert_eq!(git(&world, &["status", "--porcelain"]), "");
}

#[test]
fn archive_accepts_a_broken_list_and_links() {
    let world = World::new();
    planned(&world);
    world.write("ralph/tasks.json", "{broken");
    world.write("requirements", "Shared");
    fs::remove_file(world.work().join("ralph/prd.md")).unwrap();
    symlink("../requirements", world.work().join("ralph/prd.md")).unwrap();
    let ran = archive(&world, &["--format", "json"]).ok().warns("not committed, since").json();
    assert_eq!((&ran["stories"], &ran["commit"]), (&Value::Null, &Value::Null));
    let folder = only(&world);
    assert_eq!(read(&world, &format!("{folder}/tasks.json")), "{broken");
    assert!(read(&world, &format!("{folder}/summary.md")).contains("not a valid task list"));
    assert_eq!(
        (read(&world, &format!("{folder}/prd.md")), read(&world, "requirements")),
        ("Shared".into(), "Shared".into())
    );

    planned(&world);
    fs::remove_dir_all(world.work().join("ralph-archive")).unwrap();
    world.write("ralph-archive", "");
    archive(&world, &[]).code(1).warns("ralph-archive");
    assert_eq!(read(&world, "ralph/tasks.json"), list());
    fs::remove_dir_all(world.work().join("ralph")).unwrap();
    archive(&world, &[]).code(1).warns("swarm ralph init --tasks");
}

#[test]
fn same_list_can_be_archived_twice_and_a_tracked_ignored_list_too() {
    let world = World::new();
    committed(&world);
    archive(&world, &[]).ok().says("committed ");
    planned(&world);
    archive(&world, &[]).ok().says("committed ");
    assert_eq!(archives(&world), ["checkout", "checkout-2"]);
    planned(&world);
    world.write(".gitignore", "/ralph/\n");
    archive(&world, &[]).ok().says("committed ");
    assert_eq!(git(&world, &["status", "--porcelain"]), " M .gitignore\n");
}

#[test]
fn archive_names_a_list_that_is_the_repository_or_leads_out_of_it() {
    let world = World::new();
    committed(&world);
    archive(&world, &["--ralph-dir", "."]).code(1).warns("is the whole repository").warns("such as ralph");
    let out = world.path("other");
    fs::rename(world.work().join("ralph"), out.join("ralph"))
        .or_else(|_| {
            fs::create_dir(&out).and_then(|()| fs::rename(world.work().join("ralph"), out.join("ralph")))
        })
        .unwrap();
    symlink(out.join("ralph"), world.work().join("ralph")).unwrap();
    let real = fs::canonicalize(&out).unwrap().display().to_string();
    let hint = format!("--cwd {real} --ralph-dir {real}/ralph");
    archive(&world, &[]).code(1).warns("not in the same repository").warns(&hint);
    archive(&world, &["--cwd", &real, "--ralph-dir", &format!("{real}/ralph")]).ok();
}
