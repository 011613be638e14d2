//! A dialog or question on the screen.

/// Why an agent waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// True for a start-up dialog (login, trust, theme, bypass, no credit), which the next run would show again.
    pub startup: bool,
    /// A short description for a person.
    pub what: String,
}
