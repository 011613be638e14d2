//! How many turns a session loop may take.
//!
//! Used by `swarm session start` for a number that was typed and for a project's own default. Deliberately
//! absent: what a hand-written state file says, which counts as it stands.

use crate::words::excerpt;

/// The turns when nobody says how many.
pub const DEFAULT_CEILING: u32 = 20;

/// The highest number that is believed to be meant.
pub const MAX_CEILING: u32 = 100;

/// A number of turns that was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ceiling(u32);

/// Why a number is no ceiling.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CeilingError {
    /// It is none at all.
    #[error("{} is no number of iterations: 1 to {MAX_CEILING}, or 0 for no limit", excerpt(.0))]
    NoNumber(String),
    /// It is too high.
    #[error("{0} iterations are more than the {MAX_CEILING} that a session loop may have; 0 is for no limit")]
    TooHigh(String),
}

impl Default for Ceiling {
    fn default() -> Self {
        Self(DEFAULT_CEILING)
    }
}

impl Ceiling {
    /// Takes a number as it was typed.
    ///
    /// # Errors
    ///
    /// Says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, CeilingError> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number {
            return Err(CeilingError::NoNumber(text.to_owned()));
        }
        // Digits alone that are no `u32` are too many.
        text.parse().map_err(|_| CeilingError::TooHigh(text.to_owned())).and_then(Self::new)
    }

    /// Takes a number.
    ///
    /// # Errors
    ///
    /// When it is too high.
    pub fn new(turns: u32) -> Result<Self, CeilingError> {
        if turns > MAX_CEILING {
            return Err(CeilingError::TooHigh(turns.to_string()));
        }
        Ok(Self(turns))
    }

    /// The number; 0 for no limit.
    pub fn turns(self) -> u32 {
        self.0
    }

    /// What the user should know of it.
    pub fn warning(self) -> Option<&'static str> {
        (self.0 == 0).then_some(
            "there is no limit of iterations: nothing but a promise, a cancel or the host ends this loop",
        )
    }
}
