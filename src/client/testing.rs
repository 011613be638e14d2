//! Sample views for the client's tests.

use serde_json::{Value, json};

use swarm_state::model::{LoopStatus, Status};

use crate::protocol::{RalphView, WorkerView};

/// A worker of this name and status.
pub(crate) fn view(name: &str, status: &str, metadata: Value) -> WorkerView {
    serde_json::from_value(json!({
        "name": name, "status": status, "reason": null, "exit_code": null, "signal": null, "restarts": 0,
        "pid": 42, "cmd": ["claude"], "cwd": "/work", "tags": [], "env": {},
        "started": "2026-01-01T10:00:00+01:00",
        "tmux": {"socket": "/s", "session": "swarm", "window": name, "pane": "%1"},
        "worktree": null, "metadata": metadata
    }))
    .unwrap()
}

/// A loop in its seventh iteration.
pub(super) fn ralph_view() -> RalphView {
    RalphView {
        worker_name: "agent".into(),
        status: LoopStatus::Running,
        worker_status: Status::Running,
        reason: None,
        cause: None,
        prompt_file: "/home/u/PROMPT.md".into(),
        max_iterations: 100,
        current_iteration: 7,
        started: "2024-01-15T10:30:00.000000".into(),
        last_iteration_started: Some("2024-01-15T12:45:00.123456".into()),
        consecutive_failures: 0,
        total_failures: 2,
        done_pattern: Some("All tasks complete".into()),
        inactivity_timeout: 60,
        question_timeout: Some(600),
        paused_by: None,
        state_file: "/s/state.json".into(),
        raise: None,
        tasks: None,
    }
}
