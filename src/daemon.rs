//! Stub.
use crate::error::{Error, Result};

/// Stub.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions {
    /// Stub.
    pub ready_on_stdout: bool,
}

/// Stub.
pub fn run(_options: RunOptions) -> Result<()> {
    Err(Error::invalid("there is no daemon in this build"))
}
