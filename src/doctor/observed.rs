//! Data that is read once and used by several checks.

use crate::paths::Paths;
use crate::store::DiskSurvey;
use crate::tmux::{ServerSurvey, Socket, Tmux, TmuxOptions};

/// Data that several checks need.
pub(super) struct Observed {
    pub(super) paths: Paths,
    pub(super) disk: DiskSurvey,
    /// Our own tmux server.
    pub(super) server: ServerSurvey,
}

/// The tmux server of this directory.
pub(super) fn own_server(paths: &Paths) -> Tmux {
    Tmux::new(TmuxOptions {
        socket: Socket::Path(paths.tmux_socket()),
        config: paths.tmux_conf(),
        source: None,
        session: "swarm".into(),
    })
}
