//! `swarm ralph tasks`: the verbs that work on the file of a task list.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::world::{Ran, SWARM, World};

/// A world with a task list of these stories.
fn with_list(stories: &[Value]) -> World {
    let world = World::new();
    fs::create_dir(world.work().join("ralph")).unwrap();
    let list = json!({ "project": "shop", "branchName": "b", "description": "", "userStories": stories });
    world.write("ralph/tasks.json", &format!("{list:#}\n"));
    world
}

fn story(id: &str, status: Option<&str>, needs: &[&str]) -> Value {
    json!({
        "id": id, "title": format!("Title of {id}"), "acceptanceCriteria": ["It works"], "priority": 1,
        "passes": status == Some("approved"), "reviewStatus": status, "reviewCount": 0, "reviewFeedback": "fix it",
        "notes": "done", "dependsOn": needs,
    })
}

impl World {
    fn tasks(&self, args: &[&str]) -> Ran {
        self.swarm(&[&["ralph", "tasks"], args].concat())
    }

    fn list_text(&self) -> String {
        fs::read_to_string(self.work().join("ralph/tasks.json")).unwrap()
    }

    fn ids(&self) -> Vec<String> {
        self.tasks(&["ls", "--format", "names"]).ok().out.lines().map(str::to_owned).collect()
    }
}

#[test]
fn check_prints_the_counts_of_a_valid_list() {
    let w = with_list(&[story("A", Some("approved"), &[]), story("B", None, &["A"]), story("C", None, &[])]);
    w.tasks(&["check"]).ok().says("3 stories: 1 approved, 2 open; about 6 iterations\n");
    w.tasks(&["check", "--skip-review"]).ok().says("; about 2 iterations\n");
    w.tasks(&["check", "ralph/tasks.json"]).ok().says("3 stories");
    let w = with_list(&[story("A", Some("approved"), &[])]);
    w.tasks(&["check"]).ok().says("1 story: 1 approved; nothing is left to do\n");
    assert!(!w.swarm_dir().exists(), "no daemon is started");
}

#[test]
fn check_prints_every_problem_with_its_place() {
    let mut bad = story("A", Some("approved"), &["X"]);
    bad["title"] = json!(1);
    bad["passes"] = json!(false);
    let w = with_list(&[bad, story("A", None, &[])]);
    let ran = w.tasks(&["check"]).code(1);
    assert_eq!(ran.out, "");
    let errors: Vec<&str> = ran.err.lines().collect();
    assert_eq!(errors.len(), 4, "{ran:?}");
    assert_eq!(errors[0], "swarm: error: ralph/tasks.json: story A: the field \"title\" must be a string");
    assert!(ran.err.contains("two stories have the id \"A\"") && ran.err.contains("A depends on X"));
    w.write("ralph/tasks.json", "{\n  \"project\": 1,\n}\n");
    w.tasks(&["check"]).code(1).warns("trailing comma at line 3, column 1");
    w.tasks(&["ls"]).code(1).warns("hint: for all problems: swarm ralph tasks check");
}

#[test]
fn a_missing_list_is_reported_with_the_next_step() {
    let w = World::new();
    for verb in ["check", "ls", "graph", "export"] {
        let ran = w.tasks(&[verb]).code(1);
        let text = "swarm: error: no task list: ralph/tasks.json does not exist\nhint: to create one: swarm ralph init --tasks\n";
        assert_eq!(ran.err, text, "{verb}");
    }
    w.tasks(&["check", "x.json"]).code(1).warns("no task list: x.json does not exist");
    w.tasks(&["import", "x"]).code(1).warns("no task list");
    fs::create_dir_all(w.work().join("dir/tasks.json")).unwrap();
    w.tasks(&["check", "dir"])
        .code(1)
        .warns("dir: it is a directory\nhint: for the list in it: --ralph-dir dir");
    w.tasks(&["check", "--ralph-dir", "dir"]).code(1).warns("dir/tasks.json: it is a directory");
    w.write("dir/bytes", "");
    fs::write(w.work().join("dir/bytes"), b"\xff").unwrap();
    w.tasks(&["check", "dir/bytes"]).code(1).warns("it is not text in UTF-8");
    w.write("tasks.json", "{}");
    w.tasks(&["check"]).code(1).warns("hint: for the list in this directory: --ralph-dir .");
    w.tasks(&[]).code(2).warns("Usage: swarm ralph tasks [OPTIONS] <COMMAND>");
}

#[test]
fn ls_shows_the_stories_and_the_next_one() {
    let w = with_list(&[
        story("A", Some("approved"), &[]),
        story("B", None, &["A", "C"]),
        story("C", Some("changes_requested"), &[]),
    ]);
    let ran = w.tasks(&["ls"]).ok();
    let table = "\
ID  STATE              REVIEWS  PRIORITY  DEPENDS  TITLE
A   approved           0        1         -        Title of A
B   open               0        1         A,C      Title of B
C   changes_requested  0        1         -        Title of C
";
    assert_eq!((ran.out.as_str(), ran.err.as_str()), (table, "next: review-fix C\n"));
    assert_eq!(w.ids(), ["A", "B", "C"]);
    let stories = w.tasks(&["ls", "--json"]).ok().json();
    assert_eq!((&stories[1]["mode"], &stories[2]["mode"]), (&Value::Null, &json!("review-fix")));
    let w = with_list(&[story("A", None, &["B"]), story("B", None, &["A"])]);
    w.tasks(&["ls"])
        .ok()
        .warns("next: nothing; no story can be worked on: stories depend on each other: A → B → A");
}

#[test]
fn graph_shows_levels_and_reports_faults() {
    let w = with_list(&[story("C", None, &["A", "B"]), story("A", None, &[]), story("B", None, &["X"])]);
    let ran = w
        .tasks(&["graph"])
        .ok()
        .warns("swarm: warning: ralph/tasks.json: B depends on X, which does not exist");
    let table = "\
LEVEL  ID  STATE  DEPENDS  TITLE
1      A   open   -        Title of A
       B   open   X        Title of B
2      C   open   A,B      Title of C
";
    assert_eq!(ran.out, table);
    w.tasks(&["graph", "--format", "dot"]).ok().says("  \"A\" -> \"C\";\n");
    w.tasks(&["graph", "--format", "mermaid"]).ok().says("  s1 --> s0\n");
    let graph = w.tasks(&["graph", "--json"]).ok().json();
    assert_eq!(
        (&graph["levels"], &graph["missing"]),
        (&json!([["A", "B"], ["C"]]), &json!([{"story": "B", "needs": "X"}]))
    );
    let w = with_list(&[story("A", None, &["A"]), story("B", None, &["A"])]);
    w.tasks(&["graph"]).ok().says("cycle  A ").warns("stories depend on each other: A → A");
}

#[test]
fn import_adds_stories_and_keeps_the_others() {
    let w = with_list(&[story("A", Some("approved"), &[])]);
    let path = w.work().join("ralph/tasks.json");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    fs::rename(&path, w.path("real.json")).unwrap();
    symlink(w.path("real.json"), &path).unwrap();
    w.write("plan.md", "\u{feff}- [ ] B-1: Zwei\r\n  - Depends on: A\r\n- [x] Drei\r\n");
    let before = w.list_text();
    let ran = w.tasks(&["import", "plan.md", "--dry-run"]).ok().warns("would have imported 2 stories");
    assert_eq!(w.list_text(), before);
    let ran = (w.tasks(&["import", "plan.md"]).ok(), ran.out);
    assert_eq!(ran.0.out, "imported 2 stories from plan.md (Markdown) into ralph/tasks.json\n");
    let warning = "swarm: warning: 2 stories had no acceptance criteria, so swarm wrote one from the title\n";
    assert_eq!(ran.0.err, warning);
    assert_eq!(w.list_text(), ran.1, "as the dry run printed it");
    assert_eq!(w.ids(), ["A", "B-1", "US-001"]);
    w.tasks(&["check"]).ok().says("3 stories: 2 approved, 1 open");
    assert_eq!(fs::metadata(w.path("real.json")).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(path.is_symlink());
    let ran = w.tasks(&["import", "plan.md"]).code(1).warns("the list already has B-1, US-001\n");
    assert!(ran.err.contains("--replace"), "{ran:?}");
    w.tasks(&["import", "plan.md", "--replace"]).ok().says("into ralph/tasks.json: 0 added, 2 replaced\n");
}

#[test]
fn import_reads_pipes_and_refuses_other_inputs() {
    let w = with_list(&[]);
    let before = w.list_text();
    w.write("plan.md", "- [ ] One\n");
    for (args, message) in [
        (&["import", "-"][..], "cannot import standard input: it is empty"),
        (&["import", "no.md"], "no such file: no.md"),
        (&["import", "ralph"], "cannot read ralph: it is a directory"),
        (&["import", "plan.md", "--from", "beads"], "it is not valid JSON"),
        (&["import", "ralph/tasks.json"], "cannot import ralph/tasks.json: it has no stories"),
    ] {
        w.tasks(args).code(1).warns(message);
    }
    assert_eq!(w.list_text(), before);
    let mut shell = w.command("sh");
    shell
        .arg("-c")
        .arg(format!("printf '{{\"id\":\"bd-1\",\"title\":\"One\"}}\\n' | {SWARM} ralph tasks import -"));
    w.run(shell).ok().says("imported 1 story from standard input (beads) into ralph/tasks.json\n");
    let mut closed = w.command("sh");
    closed.arg("-c").arg(format!("exec {SWARM} ralph tasks import - <&-"));
    w.run(closed).code(1).warns("it is empty");
}

#[test]
fn import_refuses_while_a_loop_works_on_the_list() {
    let w = with_list(&[]);
    w.write("plan.md", "- [ ] One\n");
    let mut sleeper = w.command("sleep").arg("1000").stdout(Stdio::null()).spawn().unwrap();
    w.write(
        ".ralph-active",
        &json!({ "pid": sleeper.id(), "worker": "checkout", "ralphDir": "ralph" }).to_string(),
    );
    let ran = w.tasks(&["import", "plan.md"]).code(1);
    let text =
        "swarm: error: worker 'checkout' works on the task list 'ralph'\nhint: swarm ralph pause checkout";
    assert!(ran.err.starts_with(text), "{ran:?}");
    w.write(".ralph-active", &json!({ "pid": sleeper.id(), "ralphDir": "other" }).to_string());
    w.tasks(&["import", "plan.md", "--dry-run"]).ok();
    w.write(".ralph-active", &json!({ "pid": sleeper.id() }).to_string());
    w.tasks(&["import", "plan.md"]).code(1).warns("a loop (process ");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    w.tasks(&["import", "plan.md"]).ok();
}

#[test]
fn export_is_imported_to_the_same_list() {
    let w = with_list(&[story("A-1", Some("approved"), &[]), story("my id", Some("needs_review"), &["A-1"])]);
    let before: Value = serde_json::from_str(&w.list_text()).unwrap();
    w.tasks(&["export", "-o", "plan.md"]).ok();
    w.tasks(&["import", "plan.md", "--replace"]).ok();
    let mut after: Value = serde_json::from_str(&w.list_text()).unwrap();
    for story in after["userStories"].as_array_mut().unwrap() {
        assert_eq!(story.as_object_mut().unwrap().shift_remove("description"), Some("".into()));
    }
    assert_eq!(after, before);
    w.tasks(&["export"]).ok().says("- [x] A-1: Title of A-1\n");
    assert_eq!(w.tasks(&["export", "--format", "prd"]).ok().json()["userStories"][1]["passes"], false);
    w.tasks(&["export", "-o", "./ralph/tasks.json"]).code(1).warns("the export would overwrite the list");
    w.tasks(&["export", "-o", "no/plan.md"]).code(1).warns("cannot write no/plan.md");
}
