use serde_json::json;
use swarm_state::cause::Cause;
use swarm_state::model::Worktree;

use super::*;
use crate::client::testing;

fn in_worktree(status: &str, metadata: serde_json::Value) -> WorkerView {
    let tree = Worktree {
        path: "/home/u/my repo-worktrees/a".into(),
        branch: "swarm/a".into(),
        base_repo: "/home/u/my repo".into(),
    };
    WorkerView { worktree: Some(tree), ..testing::view("a", status, metadata) }
}

#[test]
fn only_a_worker_that_succeeded_is_proposed_for_a_merge() {
    let looping = || json!({"ralph": true, "ralph_iteration": 3});
    let work = |commits, uncommitted| Some(UnmergedWork { commits, uncommitted });
    let merge = Some("git -C '/home/u/my repo' merge swarm/a");
    let commit = Some("to commit and merge its work: swarm report a");
    for (status, metadata, unmerged, step) in [
        ("done", looping(), work(2, 0), merge),
        ("done", looping(), work(2, 1), commit),
        ("done", looping(), work(0, 1), commit),
        ("done", looping(), work(0, 0), None),
        ("done", looping(), None, None),
        ("done", json!({}), work(2, 0), merge),
        ("done", json!({}), work(0, 1), Some("to see its work: git -C '/home/u/my repo-worktrees/a' status")),
        ("failed", looping(), work(2, 0), Some("swarm why a")),
        ("killed", looping(), work(2, 0), Some("swarm ralph diff a")),
        ("killed", json!({}), work(2, 0), None),
        ("running", looping(), None, None),
    ] {
        let worker = in_worktree(status, metadata);
        assert_eq!(next(&worker, unmerged).as_deref(), step, "{status} {unmerged:?}");
    }
}

#[test]
fn a_row_has_the_request_and_its_answer() {
    let mut worker = testing::view("a", "waiting", json!({}));
    worker.cause = Some(Cause::NeedsPerson { text: "Bash: \u{1b}[2Jmake\nall".into(), answerable: true });
    let row = row(&worker, WorkerWork::default());
    assert_eq!((row.group, row.why.as_str()), (Attention::NeedsYou, "Bash: make all"));
    assert_eq!(row.next.as_deref(), Some("swarm answer a yes, no, always or a text; or: swarm attach a"));
}

#[test]
fn workers_are_joined_with_their_work() {
    let mut one = WorkerWork { name: "b".into(), ..WorkerWork::default() };
    one.work.iterations = 3;
    let of = MorningView {
        since: Some("2026-01-14T22:41:00+01:00".into()),
        until: "2026-01-15T07:53:10+01:00".into(),
        workers: vec![one, WorkerWork { name: "deleted".into(), ..WorkerWork::default() }],
        ..MorningView::default()
    };
    let workers = [testing::view("a", "running", json!({})), testing::view("b", "failed", json!({}))];
    let found = view(&workers, of.clone()).unwrap();
    let rows: Vec<_> = found.rows.iter().map(|row| (row.name.as_str(), row.work.iterations)).collect();
    assert_eq!(rows, [("b", 3), ("a", 0)]);
    let broken = MorningView { until: "now".into(), ..of };
    assert!(view(&workers, broken).is_err());
}
