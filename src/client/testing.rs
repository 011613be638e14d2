//! What the client's tests share: views, and a daemon that says what it is told to.

use serde_json::{Value, json};

use crate::protocol::WorkerView;

/// A worker of this name and status.
pub(super) fn view(name: &str, status: &str, metadata: Value) -> WorkerView {
    serde_json::from_value(json!({
        "name": name, "status": status, "reason": null, "exit_code": null, "signal": null, "restarts": 0,
        "pid": 42, "cmd": ["claude"], "cwd": "/work", "tags": [], "env": {},
        "started": "2026-01-01T10:00:00+01:00",
        "tmux": {"socket": "/s", "session": "swarm", "window": name, "pane": "%1"},
        "worktree": null, "metadata": metadata
    }))
    .unwrap()
}
