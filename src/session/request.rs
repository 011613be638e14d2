//! What is to be started.

use std::path::PathBuf;

use swarm_state::session::{SessionId, SessionKind, Words};

/// What is to be started.
#[derive(Clone, Debug)]
pub struct StartRequest {
    /// Which command.
    pub kind: SessionKind,
    /// Whose it will be.
    pub session: SessionId,
    /// The project's directory, or one below it.
    pub dir: PathBuf,
    /// The task and the options.
    pub words: Words,
}
