//! A dialog or question on the screen.

/// Why an agent waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// True for a start-up dialog (login, trust, theme, bypass, no credit): the next run would meet it too.
    pub startup: bool,
    /// What it is, for a person.
    pub what: String,
}
