//! The task list of a loop on disk.
//!
//! [`begin`] starts an iteration, [`finish`] ends it, [`marker`] writes `.ralph-active`, and [`mod@check`] looks at the
//! files before the loop starts. swarm's own record of the list is signed and outside of the agent's tree
//! ([`files`]). `swarm_state::tasks` decides. Used by the daemon's runs.

mod begin;
mod check;
mod files;
mod finish;
mod marker;

pub(crate) use begin::NoTurn;
pub(crate) use check::{check_task_files, refuse_uncommitted_list};
pub(crate) use finish::Reviewed;
pub(crate) use marker::{foreign as foreign_marker, renew as renew_marker};
