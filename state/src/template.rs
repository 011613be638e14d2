//! Stub.
/// Stub.
pub const PROMPT_TEMPLATE: &str = "study specs/README.md\n";
