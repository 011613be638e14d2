//! The sandbox.

pub mod bridge;
pub(crate) mod proxy;
