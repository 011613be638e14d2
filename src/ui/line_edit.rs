//! A line of text that a person edits.

use swarm_state::screen::printable;

use super::keys::UiKey;

/// The text, and the position of the cursor in characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LineEdit {
    chars: Vec<char>,
    cursor: usize,
}

impl LineEdit {
    pub(super) fn new(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        Self { cursor: chars.len(), chars }
    }

    pub(super) fn text(&self) -> String {
        self.chars.iter().collect()
    }

    pub(super) fn parts(&self) -> (String, String) {
        let (before, after) = self.chars.split_at(self.cursor);
        (before.iter().collect(), after.iter().collect())
    }

    /// Inserts text without control characters.
    pub(super) fn insert(&mut self, text: &str) {
        for c in printable(&text.replace(['\n', '\r', '\t'], " ")).chars() {
            self.chars.insert(self.cursor, c);
            self.cursor += 1;
        }
    }

    /// Edits the line by a key, as readline does.
    pub(super) fn key(&mut self, key: &UiKey) {
        match key {
            UiKey::Control('a') | UiKey::Home => self.cursor = 0,
            UiKey::Control('e') | UiKey::End => self.cursor = self.chars.len(),
            UiKey::Control('u') => self.delete_back_to(0),
            UiKey::Control('w') => self.delete_back_to(self.word_start()),
            UiKey::Control('k') => self.chars.truncate(self.cursor),
            UiKey::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            UiKey::Paste(text) => self.insert(text),
            UiKey::Left => self.cursor = self.cursor.saturating_sub(1),
            UiKey::Right => self.cursor = (self.cursor + 1).min(self.chars.len()),
            UiKey::Backspace => self.delete_back_to(self.cursor.saturating_sub(1)),
            UiKey::Delete if self.cursor < self.chars.len() => {
                self.chars.remove(self.cursor);
            }
            _ => {}
        }
    }

    fn delete_back_to(&mut self, start: usize) {
        self.chars.drain(start..self.cursor);
        self.cursor = start;
    }

    fn word_start(&self) -> usize {
        let before = &self.chars[..self.cursor];
        let end = before.iter().rposition(|c| !c.is_whitespace()).map_or(0, |at| at + 1);
        before[..end].iter().rposition(|c| c.is_whitespace()).map_or(0, |at| at + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_edit_the_line() {
        let w = UiKey::Control('w');
        for (keys, before, after) in [
            (vec![UiKey::Char('x')], "one two x", ""),
            (vec![w.clone()], "one ", ""),
            (vec![w.clone(), w], "", ""),
            (vec![UiKey::Control('a'), UiKey::Delete], "", "ne two "),
            (vec![UiKey::Left, UiKey::Left, UiKey::Control('k')], "one tw", ""),
            (vec![UiKey::Left, UiKey::Control('u')], "", " "),
            (vec![UiKey::Home, UiKey::Right, UiKey::Backspace], "", "ne two "),
            (vec![UiKey::Home, UiKey::Backspace, UiKey::End], "one two ", ""),
            (vec![UiKey::Control('x'), UiKey::Up], "one two ", ""),
        ] {
            let mut line = LineEdit::new("one two ");
            keys.iter().for_each(|key| line.key(key));
            assert_eq!(line.parts(), (before.to_owned(), after.to_owned()), "{keys:?}");
        }
        let mut line = LineEdit::default();
        line.key(&UiKey::Paste("a\x1b[2J\nb日".into()));
        assert_eq!(line.text(), "a b日");
    }
}
