//! The limit of turns of a session loop.
//!
//! Used by `swarm session start` for a typed number and for a project's default. Deliberately absent: the limit in a
//! state file that was written by hand, which swarm accepts as it is.

use crate::words::excerpt;

/// Default limit of turns.
pub const DEFAULT_CEILING: u32 = 20;

/// Maximum limit of turns.
pub const MAX_CEILING: u32 = 100;

/// A valid limit of turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ceiling(u32);

impl Default for Ceiling {
    fn default() -> Self {
        Self(DEFAULT_CEILING)
    }
}

impl Ceiling {
    /// Parses a typed number; fails when the text is not a number, or the number is too high.
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number {
            let text = excerpt(text);
            return Err(format!(
                "{text} is not a number of iterations: 1 to {MAX_CEILING}, or 0 for no limit"
            ));
        }
        // Only a number above the range of `u32` fails here.
        text.parse().map_err(|_| too_high(text)).and_then(Self::new)
    }

    /// Checks a number; fails when it is too high.
    pub fn new(turns: u32) -> Result<Self, String> {
        if turns > MAX_CEILING { Err(too_high(&turns.to_string())) } else { Ok(Self(turns)) }
    }

    /// The number; 0 for no limit.
    pub fn turns(self) -> u32 {
        self.0
    }

    /// A warning for the user.
    pub fn warning(self) -> Option<&'static str> {
        (self.0 == 0)
            .then_some("the loop has no iteration limit: only a promise, a cancel or the agent CLI ends it")
    }
}

fn too_high(turns: &str) -> String {
    format!(
        "{turns} iterations are more than the {MAX_CEILING} that a session loop may have; 0 is for no limit"
    )
}
