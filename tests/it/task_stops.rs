//! The Stop hook of an agent that works on a task list, as an agent CLI calls it.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::world::World;

/// A repository with a marker and a task list, and a session in it.
struct Session(World);

impl Session {
    fn new(marker: &Value, tasks: &str) -> Self {
        let session = Self(World::new());
        session.git(&["init", "-q"]);
        fs::create_dir(session.0.work().join("ralph")).unwrap();
        session.write("ralph/tasks.json", tasks);
        session.git(&["add", "-A"]);
        session.git(&["commit", "-qm", "plan"]);
        session.write(".git/info/exclude", ".ralph-active\n");
        session.write(".ralph-active", &marker.to_string());
        session
    }

    fn git(&self, args: &[&str]) {
        let mut git = self.0.command("git");
        git.args(args);
        let _ = self.0.run(git).ok();
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.work().join(file), text).unwrap();
    }

    /// The reason to go on; `None` if the agent may stop. `marks`: the variables of a swarm worker's agent.
    fn stop(&self, dir: &str, marks: &[(&str, &str)]) -> Option<String> {
        let mut hook = self.0.command(crate::world::SWARM);
        hook.args(["hook", "stop"]).envs(marks.iter().copied());
        let mut child = hook.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = json!({ "session_id": "s1", "hook_event_name": "Stop", "cwd": self.0.work().join(dir) });
        child.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        if text.is_empty() {
            return None;
        }
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["decision"], "block");
        Some(answer["reason"].as_str().unwrap().to_owned())
    }
}

fn list(passes: bool, status: Option<&str>, count: u64) -> String {
    json!({ "project": "shop", "branchName": "b", "description": "", "userStories": [{
        "id": "US-001", "title": "Pay", "acceptanceCriteria": ["x"], "priority": 1, "passes": passes, "reviewStatus": status,
        "reviewCount": count, "reviewFeedback": "", "notes": "did it",
    }] })
    .to_string()
}

fn implementing() -> Value {
    json!({ "timestamp": "2026-01-01T00:00:00Z", "pid": 1, "max_iterations": 15, "mode": "direct", "skipReview": false,
        "reviewCap": 5, "iterationMode": "implement",
        "preIterationSnapshot": { "US-001": { "passes": false, "reviewStatus": null, "reviewCount": 0 } } })
}

#[test]
fn each_violation_blocks_the_stop_and_a_valid_stop_prints_nothing() {
    let session = Session::new(&implementing(), &list(false, Some("needs_review"), 0));
    assert_eq!(session.stop("", &[]), None);
    session.write("work.txt", "x");
    let reason = session.stop("", &[]).unwrap();
    assert!(reason.contains("uncommitted changes") && reason.contains("?? work.txt"), "{reason}");
    for (tasks, message) in [
        ("{\"project\": ", "it is not valid JSON: EOF while parsing a value at line 1, column 12"),
        (&list(true, None, 0), "Story US-001 has passes=true but reviewStatus is 'null', not 'approved'"),
        (&list(true, Some("approved"), 0), "Implement iterations cannot set passes=true or approve stories"),
    ] {
        session.write("ralph/tasks.json", tasks);
        let reason = session.stop("", &[]).unwrap();
        assert!(reason.contains(message), "{reason}");
    }
    fs::remove_file(session.0.work().join("ralph/tasks.json")).unwrap();
    assert!(session.stop("", &[]).unwrap().starts_with("ralph/tasks.json is missing."));
    fs::remove_file(session.0.work().join(".ralph-active")).unwrap();
    assert_eq!(session.stop("", &[]), None, "without the marker nothing binds");
}

#[test]
fn marker_of_a_worker_applies_only_to_its_agent_in_the_whole_project() {
    let mut marker = implementing();
    let session = Session::new(&marker, &list(true, Some("approved"), 1));
    fs::create_dir(session.0.work().join("src")).unwrap();
    assert!(session.stop("src", &[]).is_some(), "a marker without a worker binds every session");
    let dir = session.0.swarm_dir().display().to_string();
    marker["worker"] = json!("checkout");
    marker["swarmDir"] = json!(dir);
    session.write(".ralph-active", &marker.to_string());
    let mark = |name| [("SWARM_WORKER", name), ("SWARM_RUN", "1")];
    assert!(session.stop("src", &mark("checkout")).is_some());
    assert_eq!(session.stop("src", &mark("other")), None);
    assert_eq!(session.stop("src", &[]), None);
}

#[test]
fn without_a_snapshot_the_stop_is_allowed_with_a_warning_in_the_log() {
    let session = Session::new(&json!({ "reviewCap": 5 }), &list(true, Some("approved"), 1));
    assert_eq!(session.stop("", &[]), None);
    let log = fs::read_dir(session.0.swarm_dir().join("sessions")).unwrap().flatten();
    let texts: Vec<String> = log
        .flat_map(|entry| walkdir(&entry.path()))
        .map(|path| fs::read_to_string(path).unwrap_or_default())
        .collect();
    let warning = "preIterationSnapshot is missing in .ralph-active, so transitions were not checked";
    assert!(texts.iter().any(|text| text.contains(warning)), "{texts:?}");
}

#[test]
fn a_list_that_swarm_restored_need_not_be_committed() {
    let mut marker = implementing();
    let session = Session::new(&marker, &list(false, Some("needs_review"), 0));
    // swarm undid an edit after the last commit.
    let restored = list(false, None, 0);
    session.write("ralph/tasks.json", &restored);
    assert!(session.stop("", &[]).unwrap().contains(" M ralph/tasks.json"));
    let mut sum = session.0.command("sha256sum");
    sum.arg("ralph/tasks.json");
    let hash = session.0.run(sum).ok().out.split(' ').next().unwrap().to_owned();
    marker["startHashes"] = json!({ "ralph/tasks.json": hash });
    session.write(".ralph-active", &marker.to_string());
    assert_eq!(session.stop("", &[]), None);
    session.write("ralph/tasks.json", &list(false, Some("needs_review"), 0).replace("Pay", "Pay later"));
    assert!(session.stop("", &[]).is_some(), "the agent changed it");
}

fn walkdir(path: &std::path::Path) -> Vec<std::path::PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    fs::read_dir(path).unwrap().flatten().flat_map(|entry| walkdir(&entry.path())).collect()
}
