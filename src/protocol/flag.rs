//! Serde's helper for flags of the protocol.

/// Whether to omit a flag that is false.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
pub(super) fn is_no(mark: &bool) -> bool {
    !mark
}
