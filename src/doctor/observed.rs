//! Data that is read once and used by several checks.

use crate::paths::Paths;
use crate::store::DiskSurvey;
use crate::tmux::ServerSurvey;

/// Data that several checks need.
pub(super) struct Observed {
    pub(super) paths: Paths,
    pub(super) disk: DiskSurvey,
    /// Our own tmux server.
    pub(super) server: ServerSurvey,
}
