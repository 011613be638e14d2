//! The requests of clients: one file for each, named as the client's verb.
//!
//! [`super::calls`] passes each request to its file. A verb checks the request, changes the worker's state through
//! the supervisor, and answers. What needs tmux, git or the disk for long runs in a task of its own.

pub(crate) mod attach;
pub(crate) mod clean;
pub(crate) mod daemon_status;
pub(crate) mod daemon_stop;
pub(crate) mod eof;
pub(crate) mod hook;
pub(crate) mod interrupt;
pub(crate) mod kill;
pub(crate) mod logs;
pub(crate) mod ls;
pub(crate) mod peek;
pub(crate) mod ralph_approve;
pub(crate) mod ralph_clean;
pub(crate) mod ralph_diff;
pub(crate) mod ralph_logs;
pub(crate) mod ralph_pause;
pub(crate) mod ralph_restore;
pub(crate) mod ralph_resume;
pub(crate) mod ralph_set;
pub(crate) mod ralph_status;
pub(crate) mod report;
pub(crate) mod respawn;
pub(crate) mod send;
pub(crate) mod spawn;
pub(crate) mod status;
pub(crate) mod subscribe;
