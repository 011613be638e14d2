//! Reads keys from the bytes of a terminal, and edits a line of text with them.
//!
//! The reader of crossterm is not used: it neither returns at the end of the input nor before a sequence is complete,
//! so a terminal that is closed, or one slow byte, would stop everything. Deliberately absent: what a key does.

use swarm_state::screen::printable;

/// A key, or a text that was pasted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UiKey {
    Char(char),
    /// A letter with Control, in lower case.
    Control(char),
    Enter,
    Esc,
    Tab,
    BackTab,
    Backspace,
    Delete,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    Paste(String),
}

const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// The longest sequence of a key; a longer one is dropped.
const MAX_SEQUENCE_BYTES: usize = 32;

/// Turns bytes into keys. A sequence may arrive in parts.
#[derive(Debug, Default)]
pub(super) struct KeyReader {
    pending: Vec<u8>,
}

impl KeyReader {
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<UiKey> {
        self.pending.extend_from_slice(bytes);
        let mut keys = vec![];
        while let Some((used, key)) = first_key(&self.pending) {
            keys.extend(key);
            self.pending.drain(..used);
        }
        keys
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.pending.is_empty() && !self.pending.starts_with(PASTE_START)
    }

    /// No more bytes followed for a moment: an Esc was the key. The rest of another sequence is dropped.
    pub(super) fn finish(&mut self) -> Option<UiKey> {
        let is_esc = self.pending == b"\x1b";
        self.pending.clear();
        is_esc.then_some(UiKey::Esc)
    }
}

/// The first key and its length in bytes; no key for a sequence that has no meaning here. `None` if more bytes must
/// follow.
fn first_key(bytes: &[u8]) -> Option<(usize, Option<UiKey>)> {
    let simple = |key| Some((1, Some(key)));
    match *bytes.first()? {
        0x1b => escape_sequence(bytes),
        b'\r' | b'\n' => simple(UiKey::Enter),
        b'\t' => simple(UiKey::Tab),
        0x7f | 0x08 => simple(UiKey::Backspace),
        byte @ 0x01..=0x1a => simple(UiKey::Control((byte + b'a' - 1).into())),
        0x00..0x20 => Some((1, None)),
        _ => character(bytes),
    }
}

/// A character in UTF-8. An invalid byte is dropped.
fn character(bytes: &[u8]) -> Option<(usize, Option<UiKey>)> {
    let head = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => std::str::from_utf8(&head[..error.valid_up_to()]).ok()?,
        Err(error) => return error.error_len().map(|length| (length, None)),
    };
    let first = valid.chars().next()?;
    Some((first.len_utf8(), Some(UiKey::Char(first))))
}

fn escape_sequence(bytes: &[u8]) -> Option<(usize, Option<UiKey>)> {
    if bytes.starts_with(PASTE_START) {
        let end = bytes.windows(PASTE_END.len()).position(|window| window == PASTE_END)?;
        let text = String::from_utf8_lossy(&bytes[PASTE_START.len()..end]).into_owned();
        return Some((end + PASTE_END.len(), Some(UiKey::Paste(text))));
    }
    match bytes.get(1)? {
        b'[' => {}
        b'O' => return bytes.get(2).map(|last| (3, named(b"", *last))),
        // Alt with a key, or Esc and then a key.
        _ => return Some((1, Some(UiKey::Esc))),
    }
    let end = bytes.iter().skip(2).position(|byte| (0x40..=0x7e).contains(byte));
    match end {
        Some(length) => Some((length + 3, named(&bytes[2..length + 2], bytes[length + 2]))),
        None if bytes.len() > MAX_SEQUENCE_BYTES => Some((bytes.len(), None)),
        None => None,
    }
}

/// The key of a sequence with these parameters and this last byte. Modifiers are ignored.
fn named(parameters: &[u8], last: u8) -> Option<UiKey> {
    let number = parameters.split(|byte| *byte == b';').next().unwrap_or_default();
    Some(match (last, number) {
        (b'A', _) => UiKey::Up,
        (b'B', _) => UiKey::Down,
        (b'C', _) => UiKey::Right,
        (b'D', _) => UiKey::Left,
        (b'H', _) | (b'~', b"1" | b"7") => UiKey::Home,
        (b'F', _) | (b'~', b"4" | b"8") => UiKey::End,
        (b'Z', _) => UiKey::BackTab,
        (b'M', b"") => UiKey::Enter,
        (b'~', b"3") => UiKey::Delete,
        (b'~', b"5") => UiKey::PageUp,
        (b'~', b"6") => UiKey::PageDown,
        _ => return None,
    })
}

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
    fn input_bytes_are_decoded_to_keys() {
        let paste = "\x1b[200~a\nb\x1b[201~";
        for (bytes, keys) in [
            ("jK?", vec![UiKey::Char('j'), UiKey::Char('K'), UiKey::Char('?')]),
            ("日\u{e9}", vec![UiKey::Char('日'), UiKey::Char('é')]),
            ("\r\t\x7f\x03", vec![UiKey::Enter, UiKey::Tab, UiKey::Backspace, UiKey::Control('c')]),
            ("\x1b[A\x1bOB\x1b[1;5C\x1b[D", vec![UiKey::Up, UiKey::Down, UiKey::Right, UiKey::Left]),
            (
                "\x1b[H\x1b[4~\x1b[5~\x1b[6~\x1b[3~",
                vec![UiKey::Home, UiKey::End, UiKey::PageUp, UiKey::PageDown, UiKey::Delete],
            ),
            ("\x1b[Z\x1b[99u\x1b[<0;3;4Mx", vec![UiKey::BackTab, UiKey::Char('x')]),
            ("\x1bj", vec![UiKey::Esc, UiKey::Char('j')]),
            (paste, vec![UiKey::Paste("a\nb".into())]),
        ] {
            let mut whole = KeyReader::default();
            assert_eq!(whole.read(bytes.as_bytes()), keys, "{bytes:?}");
            let mut in_parts = KeyReader::default();
            let got: Vec<UiKey> = bytes.bytes().flat_map(|byte| in_parts.read(&[byte])).collect();
            assert_eq!(got, keys, "{bytes:?} byte by byte");
            assert!(!in_parts.is_waiting(), "{bytes:?}");
        }
    }

    #[test]
    fn single_escape_byte_is_a_key_and_invalid_bytes_are_dropped() {
        let mut reader = KeyReader::default();
        assert_eq!(reader.read(b"\x1b"), []);
        assert!(reader.is_waiting());
        assert_eq!(reader.finish(), Some(UiKey::Esc));
        assert_eq!(reader.read(b"\xff\xfea\xe6"), [UiKey::Char('a')]);
        assert_eq!(reader.finish(), None);
        assert_eq!(reader.read(&[&b"\x1b["[..], &[b'0'; 40]].concat()), []);
        assert_eq!(reader.read(b"q"), [UiKey::Char('q')]);
    }

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
