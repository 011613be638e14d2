//! The state file of a session loop: front matter and a body.
//!
//! People write and edit such files, so a rewrite changes only the values that differ; unknown keys stay in place, and
//! the body is kept as bytes. Invalid front matter is an error with its line, never a guess. Used by `swarm hook` and
//! `swarm session`. Deliberately absent: the file's path, and writing it.

mod front;
mod keys;
mod values;

use crate::session::state::SessionLoop;
pub use front::FileError;
use front::Line;
use keys::Key;

/// A state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFile {
    state: SessionLoop,
    /// The state in its lines, without a body.
    read: SessionLoop,
    /// The line that opens the front matter. All lines here are bytes with their line ends.
    open: Vec<u8>,
    lines: Vec<Line>,
    close: Vec<u8>,
}

impl SessionFile {
    /// A new file, in the documented form.
    pub fn new(state: SessionLoop) -> Self {
        let line = |key: Key| key.text(&state).map(|text| Line::new(key, &text, b"\n"));
        let lines = Key::ALL.into_iter().filter_map(line).collect();
        let read = SessionLoop { body: Vec::new(), ..state.clone() };
        Self { state, read, open: b"---\n".to_vec(), lines, close: b"---\n".to_vec() }
    }

    /// Reads a file; fails if its front matter is invalid.
    pub fn parse(bytes: &[u8]) -> Result<Self, FileError> {
        let front = front::split(bytes)?;
        let read = values::read(&front)?;
        let state = SessionLoop { body: front.body.to_vec(), ..read.clone() };
        let front::Front { open, lines, close, .. } = front;
        Ok(Self { state, read, open: open.to_vec(), lines, close: close.to_vec() })
    }

    /// Returns the current state.
    pub fn state(&self) -> &SessionLoop {
        &self.state
    }

    /// Replaces the state; [`Self::render`] then changes only the values that differ.
    pub fn set(&mut self, state: SessionLoop) {
        self.state = state;
    }

    /// The file's bytes.
    pub fn render(&self) -> Vec<u8> {
        let mut bytes = self.open.clone();
        for line in &self.lines {
            line.render(&self.read, &self.state, &mut bytes);
        }
        for key in Key::ALL.into_iter().filter(|key| !self.has(*key)) {
            let text = key.text(&self.state);
            if let Some(text) = text.filter(|text| key.text(&self.read).as_ref() != Some(text)) {
                bytes.extend(Line::new(key, &text, self.end_of_line()).raw);
            }
        }
        bytes.extend(&self.close);
        if !self.state.body.is_empty() && !self.close.ends_with(b"\n") {
            bytes.extend(self.end_of_line());
        }
        bytes.extend(&self.state.body);
        bytes
    }

    fn has(&self, key: Key) -> bool {
        self.lines.iter().any(|line| line.value.as_ref().is_some_and(|(known, _)| *known == key))
    }

    fn end_of_line(&self) -> &'static [u8] {
        if self.open.ends_with(b"\r\n") { b"\r\n" } else { b"\n" }
    }
}
