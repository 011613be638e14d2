//! Which variables of one's own environment would mislead an agent or a check.
//!
//! The client leaves them out of what a worker gets, the library's loop of what its checks get. Deliberately
//! absent: what else stands in an environment.

use std::ffi::OsStr;

/// The git variables that say *where* a repository is. Set by a git hook or an alias, they would make an
/// agent's git work on another repository. Identity (`GIT_AUTHOR_NAME`, …) and the like stay.
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

/// Whether a variable speaks of the terminal, the repository or the swarm around its owner.
pub(crate) fn misleads(name: &OsStr) -> bool {
    let text = name.as_encoded_bytes();
    text.starts_with(b"TMUX")
        || text.starts_with(b"SWARM_")
        || GIT_LOCATION.iter().any(|git| text == git.as_bytes())
}
