//! Captured text -> what it means.
//!
//! The edge captures a pane, this module says what is on it: a fingerprint (did it change?), whether the
//! agent is ready, working or blocked, and whether the done pattern stands in new output.

/// What one look at a pane says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// MD5 of the last 20 lines, escapes stripped, blank rows at the end trimmed first.
    pub fingerprint: [u8; 16],
    /// Columns and rows of the pane; a change of size is not activity.
    pub size: (u16, u16),
    /// The input box is there and nothing blocks it.
    pub ready: bool,
    /// The agent says that it is at work.
    pub working: bool,
    /// It waits for a person.
    pub blocked: Option<Blocked>,
    /// The done pattern stands in output that is new and not the prompt's echo.
    pub done: bool,
}

/// Why an agent waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// True for a start-up dialog (login, trust, theme, bypass, no credit): the next run would meet it too.
    pub startup: bool,
    /// What it is, for a person.
    pub what: String,
}

/// Stub.
#[derive(Clone, Debug)]
pub struct Pattern(regex::Regex);

/// Stub.
pub type PatternError = regex::Error;

impl Pattern {
    /// Stub.
    ///
    /// # Errors
    /// Stub.
    pub fn compile(text: &str) -> Result<Self, PatternError> {
        regex::Regex::new(text).map(Self)
    }
    /// Stub.
    pub fn matches_everything(&self) -> bool {
        self.0.is_match("")
    }
}

/// Stub.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
