//! Environment variables that would mislead an agent or a check.
//!
//! The client removes them from a worker's environment, the library's loop from the environment of its checks. All
//! other variables stay.

use std::ffi::OsStr;

/// The git variables that name the location of a repository. A git hook or an alias sets them, and the agent's git
/// would then work on the wrong repository. Others, such as `GIT_AUTHOR_NAME`, stay.
const GIT_LOCATION: [&str; 12] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
    "GIT_NAMESPACE",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
];

/// Whether a variable describes the caller's terminal, repository or worker.
pub(crate) fn misleads(name: &OsStr) -> bool {
    let text = name.as_encoded_bytes();
    text.starts_with(b"TMUX")
        || text.starts_with(b"SWARM_")
        || GIT_LOCATION.iter().any(|git| text == git.as_bytes())
}
