//! When a loop is complete.
//!
//! A gate is a condition that the user asked for. At the end of a run the engine asks for a verdict, the
//! edge tries every gate, and the verdict comes back as data. A gate that was not asked for has no say;
//! a loop without gates is never complete, it only runs out of iterations. Deliberately absent: how a
//! gate is tried (that is the edge's work).

/// What became of the gates at the end of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the done pattern stands in new output; `None` when none was asked for.
    pub done_pattern: Option<bool>,
}

impl Verdict {
    /// True when at least one gate was asked for and all that were asked for hold.
    pub fn is_complete(self) -> bool {
        self.done_pattern == Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_gate_never_completes() {
        assert!(!Verdict::default().is_complete());
        assert!(!Verdict { done_pattern: Some(false) }.is_complete());
        assert!(Verdict { done_pattern: Some(true) }.is_complete());
    }
}
