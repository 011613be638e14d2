//! Stories that run at the same time (`--jobs`): their order, the merges, and the coordinator's end.

use std::fs::{self, File, OpenOptions};
use std::path::PathBuf;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::task_loops::{Project, script, story};
use crate::world::{Follower, signal};

/// The stories of most tests: 4 needs 1, and 5 needs 2 and 4.
fn six() -> Vec<Value> {
    let needs = |id: &str, needed: &[&str]| {
        let mut story = story(id);
        story["dependsOn"] = json!(needed);
        story
    };
    let (four, five) = (needs("US-004", &["US-001"]), needs("US-005", &["US-002", "US-004"]));
    vec![story("US-001"), story("US-002"), story("US-003"), four, five, story("US-006")]
}

/// Keeps the agent of a story from working until it is dropped.
struct Hold {
    fifo: PathBuf,
    _writer: File,
}

impl Drop for Hold {
    fn drop(&mut self) {
        // First, so that an agent that has not opened it finds nothing. The others read the end of the file.
        fs::remove_file(&self.fifo).unwrap();
    }
}

/// A project whose stories run as worker `l` and its children.
struct Jobs(Project);

impl Jobs {
    fn new(stories: &[Value]) -> Self {
        let project = Project::new(stories);
        project.git(&["config", "user.name", "t"]);
        project.git(&["config", "user.email", "t@example.invalid"]);
        Self(project)
    }

    fn hold(&self, id: &str) -> Hold {
        self.hold_mode("implement", id)
    }

    fn hold_mode(&self, mode: &str, id: &str) -> Hold {
        let fifo = self.0.agent.join(format!("wait-{mode}-{id}"));
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let writer = OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
        Hold { fifo, _writer: writer }
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.agent.join(file), text).unwrap();
    }

    fn start(&self, options: &[&str]) -> Follower {
        self.start_with("3", options)
    }

    fn start_with(&self, count: &str, options: &[&str]) -> Follower {
        let (agent, dir) = (script(), self.0.agent.to_str().unwrap());
        let fixed =
            ["spawn", "--name", "l", "--ralph", "--ralph-dir", "ralph", "--jobs", count, "--sandbox-rw", dir];
        self.0.world.follow(&[&fixed[..], options, &["--", agent.to_str().unwrap(), dir]].concat())
    }

    /// The calls of the agent in order: `start implement US-001`.
    fn log(&self) -> Vec<String> {
        let log = fs::read_to_string(self.0.agent.join("log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    fn until_logged(&self, line: &str) {
        self.0.world.until(&format!("the agents log {line}"), || {
            self.log().iter().any(|logged| logged == line).then_some(())
        });
    }

    fn count(&self, line: &str) -> usize {
        self.log().iter().filter(|logged| *logged == line).count()
    }

    fn place(&self, line: &str) -> usize {
        self.log()
            .iter()
            .rposition(|logged| logged == line)
            .unwrap_or_else(|| panic!("{line} in {:?}", self.log()))
    }

    /// A file of the integration branch.
    fn file(&self, file: &str) -> String {
        self.0.git(&["show", &format!("swarm/l:{file}")]).out
    }

    /// The approved stories of the integration branch.
    fn approved(&self) -> Vec<String> {
        let list: Value = serde_json::from_str(&self.file("ralph/tasks.json")).unwrap();
        let stories = list["userStories"].as_array().unwrap().iter();
        let approved = stories.filter(|story| story["reviewStatus"] == "approved" && story["passes"] == true);
        approved.map(|story| story["id"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn six_stories_are_merged_in_the_order_of_their_dependencies() {
    let jobs = Jobs::new(&six());
    let (world, before) = (&jobs.0.world, jobs.0.git(&["rev-parse", "HEAD"]).out);
    for id in ["US-002", "US-003"] {
        jobs.write(&format!("code-{id}"), &format!("spew('shared.txt', \"by {id}\\n\")"));
    }
    let holds = ["US-002", "US-003"].map(|id| jobs.hold(id));
    let mut follower = jobs.start(&[]);
    for id in ["US-002", "US-003"] {
        jobs.until_logged(&format!("start implement {id}"));
    }
    drop(holds);
    assert_eq!(follower.wait(world), 0, "{}", follower.output());
    follower.says("sent back: conflict in shared.txt");
    follower.says("all 6 stories are on branch swarm/l");
    assert_eq!(jobs.approved(), ["US-001", "US-002", "US-003", "US-004", "US-005", "US-006"]);
    let shared = jobs.file("shared.txt");
    assert!(shared.contains("by US-002") && shared.contains("by US-003"), "{shared}");
    for (first, then) in [("US-001", "US-004"), ("US-002", "US-005"), ("US-004", "US-005")] {
        let (end, start) = (format!("end review {first}"), format!("start implement {then}"));
        assert!(jobs.place(&end) < jobs.place(&start), "{then} before {first}: {:?}", jobs.log());
    }
    let mut live = 0_i32;
    for line in jobs.log() {
        live += if line.starts_with("start") { 1 } else { -1 };
        assert!((0..=3).contains(&live), "{:?}", jobs.log());
    }
    let fixes = jobs.log().iter().filter(|line| line.starts_with("end review-fix")).count();
    assert_eq!(fixes, 1, "{:?}", jobs.log());
    assert_eq!(jobs.file("ralph/progress.txt").lines().count(), 14, "{}", jobs.file("ralph/progress.txt"));
    // Nothing changed in the user's directory, and only the integration branch is left.
    assert_eq!(jobs.0.git(&["rev-parse", "HEAD"]).out, before);
    assert_eq!(jobs.0.git(&["status", "--porcelain"]).out, "");
    let branches = jobs.0.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/swarm"]).out;
    assert_eq!(branches.trim(), "swarm/l");
    assert_eq!(world.status("l-US-003")["status"], "done");
    let report = world.swarm(&["report", "l-US-003", "--format", "json"]).ok().json();
    assert_eq!(
        (&report["gates"]["tasks"]["story"], &report["stories"][0]["story"]),
        (&json!("US-003"), &json!("US-003"))
    );
}

#[test]
fn a_failed_story_stops_only_those_that_depend_on_it() {
    let jobs = Jobs::new(&six());
    let world = &jobs.0.world;
    jobs.write("break-US-001", "");
    let mut follower = jobs.start(&["-n", "2", "--max-failures", "9"]);
    assert_eq!(follower.wait(world), 1, "{}", follower.output());
    follower.says("US-001 failed: ");
    follower.says("(swarm why l-US-001)");
    follower.says("US-004 was not started: it depends on US-001");
    follower.says("US-005 was not started: it depends on US-004");
    follower.says("3 of 6 stories are on branch swarm/l");
    assert_eq!(jobs.approved(), ["US-002", "US-003", "US-006"]);
    assert_eq!(jobs.count("start implement US-004"), 0);
    fs::remove_file(jobs.0.agent.join("break-US-001")).unwrap();
    world.swarm(&["respawn", "l"]).ok();
    assert_eq!(world.until_ended("l")["status"], "done", "{}", world.swarm(&["logs", "l"]).out);
    assert_eq!(jobs.approved().len(), 6);
    assert_eq!(jobs.count("start implement US-002"), 1);
}

#[test]
fn restarted_coordinator_continues_and_repeats_no_story() {
    let jobs = Jobs::new(&six());
    let world = &jobs.0.world;
    let hold = jobs.hold("US-002");
    let mut follower = jobs.start(&[]);
    jobs.until_logged("start implement US-002");
    let pid = world.status("l")["pid"].as_u64().unwrap();
    signal(u32::try_from(pid).unwrap(), Signal::SIGKILL);
    world.until("the coordinator is restarted", || {
        let status = world.status("l");
        (status["restarts"] == 1 && status["status"] == "running").then_some(())
    });
    world.crash_daemon();
    drop(hold);
    assert_eq!(follower.wait(world), 0, "{}", follower.output());
    assert_eq!(jobs.approved().len(), 6);
    for id in 1..=6 {
        assert_eq!(jobs.count(&format!("start implement US-00{id}")), 1, "{:?}", jobs.log());
    }
}

#[test]
fn kill_ends_the_stories_and_respawn_continues_them() {
    let jobs = Jobs::new(&[story("US-001"), story("US-002")]);
    let world = &jobs.0.world;
    let holds = ["US-001", "US-002"].map(|id| jobs.hold(id));
    let mut follower = jobs.start(&[]);
    for id in ["US-001", "US-002"] {
        jobs.until_logged(&format!("start implement {id}"));
    }
    world.swarm(&["kill", "l"]).ok();
    for name in ["l", "l-US-001", "l-US-002"] {
        assert_eq!(world.status(name)["status"], "killed", "{name}");
    }
    assert_eq!(follower.wait(world), 1, "{}", follower.output());
    drop(holds);
    world.swarm(&["respawn", "l"]).ok();
    assert_eq!(world.until_ended("l")["status"], "done", "{}", world.swarm(&["logs", "l"]).out);
    assert_eq!(jobs.approved(), ["US-001", "US-002"]);
}

#[test]
fn respawn_of_a_live_coordinator_starts_its_stories_again() {
    let jobs = Jobs::new(&[story("US-001"), story("US-002")]);
    let world = &jobs.0.world;
    let holds = ["US-001", "US-002"].map(|id| jobs.hold(id));
    let _follower = jobs.start(&[]);
    for id in ["US-001", "US-002"] {
        jobs.until_logged(&format!("start implement {id}"));
    }
    world.swarm(&["ralph", "init", "--tasks", "--force"]).ok().warns("works on a copy of this list");
    jobs.0.git(&["checkout", "-q", "--", "ralph"]);
    world.swarm(&["respawn", "l"]).ok();
    drop(holds);
    assert_eq!(world.until_ended("l")["status"], "done", "{}", world.swarm(&["logs", "l"]).out);
    assert_eq!(jobs.approved(), ["US-001", "US-002"]);
}

#[test]
fn approved_stories_need_the_checks_and_titles_lose_control_characters() {
    let mut only = story("US-001");
    only["title"] = json!("Pay\u{1b}[31m\nnow");
    let jobs = Jobs::new(&[only]);
    let world = &jobs.0.world;
    let mut follower = jobs.start(&["--check", "test ! -e bad"]);
    assert_eq!(follower.wait(world), 0, "{}", follower.output());
    let subject = jobs.0.git(&["log", "-1", "--format=%s", "swarm/l"]).out;
    assert!(subject.starts_with("Merge US-001: Pay") && !subject.contains('\u{1b}'), "{subject:?}");
    let tree = PathBuf::from(world.status("l")["worktree"]["path"].as_str().unwrap());
    fs::write(tree.join("bad"), "").unwrap();
    world.swarm(&["respawn", "l"]).ok();
    assert_eq!(world.until_ended("l")["status"], "failed", "{}", world.swarm(&["logs", "l"]).out);
    let log = world.swarm(&["logs", "l"]).out;
    assert!(log.contains("`test ! -e bad` fails on branch swarm/l"), "{log}");
}

#[test]
fn check_that_fails_after_the_merge_reopens_the_story() {
    let jobs = Jobs::new(&[story("US-001"), story("US-002")]);
    let holds = ["US-001", "US-002"].map(|id| jobs.hold(id));
    let check = "test ! -e US-001.txt || test ! -e US-002.txt || grep -q fixed US-00*.txt";
    let mut follower = jobs.start(&["--check", check]);
    for id in ["US-001", "US-002"] {
        jobs.until_logged(&format!("start implement {id}"));
    }
    drop(holds);
    assert_eq!(follower.wait(&jobs.0.world), 0, "{}", follower.output());
    follower.says("sent back: failed on the merge: test ! -e US-001.txt");
    assert_eq!(jobs.approved(), ["US-001", "US-002"]);
}

#[test]
fn no_new_story_starts_at_the_limit_of_stories_in_review() {
    let jobs = Jobs::new(&[story("US-001"), story("US-002"), story("US-003")]);
    let world = &jobs.0.world;
    let review = jobs.hold_mode("review", "US-001");
    // The second story ends after the first one waits for its review.
    let second = jobs.hold("US-002");
    let mut follower = jobs.start_with("2", &["--max-in-review", "1"]);
    jobs.until_logged("start review US-001");
    drop(second);
    follower.until_says(world, "US-002: merged");
    drop(review);
    assert_eq!(follower.wait(world), 0, "{}", follower.output());
    assert_eq!(jobs.approved().len(), 3);
    assert!(jobs.place("end implement US-002") < jobs.place("end review US-001"), "{:?}", jobs.log());
    // The coordinator does one thing after the other. A place was free since the merge of the second story.
    let output = follower.output();
    let line = |text: &str| output.find(text).unwrap_or_else(|| panic!("{text} in {output}"));
    assert!(line("US-002: merged") < line("US-001: approved"), "{output}");
    assert!(line("US-001: approved") < line("US-003: started"), "{output}");
}

#[test]
fn a_list_that_is_not_committed_is_refused() {
    let jobs = Jobs::new(&[story("US-001"), story("US-002")]);
    jobs.0.git(&["rm", "-rq", "--cached", "ralph"]);
    jobs.0.git(&["commit", "-qm", "remove"]);
    let mut follower = jobs.start(&[]);
    assert_eq!(follower.wait(&jobs.0.world), 1, "{}", follower.output());
    follower.says("commit them: git add ralph && git commit");
}
