//! Stub.
use std::ffi::OsString;

use crate::protocol::AttachView;

/// Stub.
#[derive(Clone, Debug)]
pub struct Attach {
    /// Stub.
    pub run: Vec<OsString>,
    /// Stub.
    pub after: Vec<Vec<OsString>>,
}

/// Stub.
pub fn attach_commands(view: &AttachView, _read_only: bool, _id: u32) -> Attach {
    let run = vec!["tmux".into(), "-S".into(), view.socket.clone().into(), "attach".into()];
    Attach { run, after: vec![] }
}
