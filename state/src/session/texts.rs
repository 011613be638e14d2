//! What a session loop tells the agent, and what the user is told when one begins.
//!
//! The task or contract itself always goes in byte for byte, at the end. Used by [`crate::session::decide`] for what a Stop hook feeds
//! back and by `swarm session start`. Deliberately absent: when which of them is due.

use crate::session::{Found, Kind, SessionLoop};

/// What a do-it contract's placeholders stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// `{PROJECT_NAME}`.
    pub project_name: String,
    /// `{PROJECT_TYPE}`.
    pub project_type: String,
    /// `{BRANCH_NAME}`; empty for a project without one.
    pub branch_name: String,
    /// `{CWD}`: the absolute path of the project's root.
    pub cwd: String,
}

/// The contract of a do-it loop when no other was given, with its placeholders.
pub fn built_in_contract() -> &'static str {
    include_str!("contract.md")
}

/// Fills in a contract's placeholders, in one pass: what a value says is not looked at again, and other braces stay.
pub fn substitute(contract: &[u8], values: &Values) -> Vec<u8> {
    let _ = values;
    contract.to_vec()
}

/// What the agent is told when the loop begins, or when it goes on after a pause.
pub fn start_text(state: &SessionLoop) -> String {
    let _ = Kind::Ralph;
    String::from_utf8_lossy(&state.body).into_owned()
}

/// What the agent is told in place of its stop. `tool_calls` is how many there were since the loop began.
pub fn block_text(state: &SessionLoop, found: Found, tool_calls: u64) -> String {
    let _ = (found, tool_calls);
    String::from_utf8_lossy(&state.body).into_owned()
}

/// What the user is told when a do-it loop begins or goes on.
pub fn brief(state: &SessionLoop) -> String {
    let _ = state;
    String::new()
}
