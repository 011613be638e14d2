//! Verified loops: the baseline, and the contract, the verdict and the ledger entry of each iteration.
//!
//! The daemon's runs and the library's loop ([`crate::ralph`]) both use it, so they judge alike. The data that a
//! verdict is based on is in the loop's own folder, outside the agent's tree: the baseline with its hashes, and for
//! each iteration its contract, its output, the output of the checks, and the verdict. The engine decides what
//! follows from a verdict. Nothing here starts an agent or uses a pane.

mod account;
mod base;
mod canary;
mod contract;
mod gates;
mod hidden;
mod inventory;
mod progress;
mod proofs;
mod protect;
mod room;
mod room_checks;
mod run;
mod survivors;
mod task_list;
mod test_replay;
mod tree_index;
mod verdict;

pub(crate) use account::{last_growth, session_id, story};
pub(crate) use canary::{check as check_canary, undo_canaries, undo_canary};
pub(crate) use hidden::hidden_fault;
pub(crate) use progress::{check as check_progress, forget as forget_progress};
pub(crate) use protect::{check as check_protect, check_fix, check_tests, is_program};
pub(crate) use room::sweep as sweep_rooms;
pub(crate) use run::{CONTRACT_FILE, Finished, LoopRun, TASK_FILE, read_base};
pub(crate) use task_list::{NoTurn, check_task_files, foreign_marker, refuse_uncommitted_list, renew_marker};
pub(crate) use verdict::set as hurried;
