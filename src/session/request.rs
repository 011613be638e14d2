//! The request to start a session loop.

use std::path::PathBuf;

use swarm_state::session::{SessionId, SessionKind, Words};

/// The request to start a session loop.
#[derive(Clone, Debug)]
pub struct StartRequest {
    /// The kind of loop.
    pub kind: SessionKind,
    /// The session that will own the loop.
    pub session: SessionId,
    /// The project's directory, or one below it.
    pub dir: PathBuf,
    /// The task and the options.
    pub words: Words,
}
