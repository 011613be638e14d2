//! Quotes text so that tmux keeps it unchanged. Three places have three rules.
//!
//! Pure. tmux parses an argv element (a `;` at its end separates commands), a line of control mode or of a
//! configuration file (with its own shell-like quotes), and, in some arguments, a format (`#{…}`, and `%` where the
//! text also goes through strftime).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Quotes one argv element of a `tmux` process: a bare `;` at its end would end the command.
pub(super) fn argument(text: &OsStr) -> OsString {
    let bytes = text.as_bytes();
    match bytes.split_last() {
        Some((b';', head)) => OsString::from_vec([head, b"\\;"].concat()),
        _ => text.to_owned(),
    }
}

/// Quotes one word of a control-mode line or configuration file with double quotes. Bytes that tmux interprets become
/// octal escapes, so the word never spans two lines. A NUL is dropped, since no C string can hold one.
pub(super) fn word(bytes: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(bytes.len() + 2);
    quoted.push(b'"');
    for byte in bytes.iter().copied() {
        match byte {
            0 => {}
            1..=0x1f | 0x7f | b'"' | b'\\' | b'$' | b'~' => {
                quoted.extend_from_slice(format!("\\{byte:03o}").as_bytes());
            }
            _ => quoted.push(byte),
        }
    }
    quoted.push(b'"');
    quoted
}

/// One line of control mode: the quoted words and a newline.
pub(super) fn line<S: AsRef<[u8]>>(words: &[S]) -> Vec<u8> {
    let mut line = words.iter().map(|text| word(text.as_ref())).collect::<Vec<_>>().join(&b' ');
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Parses a double-quoted word as tmux does (its lexer, rewritten for these tests).
    fn unquote(quoted: &[u8]) -> Option<Vec<u8>> {
        let inner = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        let (mut text, mut at) = (Vec::new(), 0);
        while at < inner.len() {
            match inner[at] {
                b'\\' => {
                    let digits = std::str::from_utf8(inner.get(at + 1..at + 4)?).ok()?;
                    text.push(u8::from_str_radix(digits, 8).ok()?);
                    at += 4;
                }
                b'"' | b'$' | b'~' | b'\n' => return None,
                byte => {
                    text.push(byte);
                    at += 1;
                }
            }
        }
        Some(text)
    }

    proptest! {
        #[test]
        fn quoted_word_is_unquoted_to_the_same_bytes(bytes in prop::collection::vec(1u8.., 0..200)) {
            prop_assert_eq!(unquote(&word(&bytes)), Some(bytes));
        }

        #[test]
        fn quoted_line_has_one_newline_at_its_end(words in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..5)) {
            let line = line(&words);
            prop_assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
            prop_assert_eq!(line.last(), Some(&b'\n'));
        }

        #[test]
        fn no_argument_ends_in_a_bare_semicolon(bytes in prop::collection::vec(1u8.., 0..20)) {
            let given = argument(OsStr::from_bytes(&[&bytes[..], b";"].concat()));
            prop_assert!(given.as_bytes().ends_with(b"\\;"));
            // tmux drops the `\` before a `;` at the end.
            let seen = [&given.as_bytes()[..given.len() - 2], b";"].concat();
            prop_assert_eq!(seen, [&bytes[..], b";"].concat());
        }
    }

    #[test]
    fn plain_arguments_are_not_changed() {
        for text in ["", "a;b", "-x", "#{pane_id}", "a b"] {
            assert_eq!(argument(OsStr::new(text)), text);
        }
    }
}
