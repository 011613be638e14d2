//! Turns terminal text into plain text: removes escapes and control characters, and computes fingerprints.
//!
//! Used for captured screens, logs and tables. Deliberately absent: a terminal emulation. Text that moves the cursor
//! is made readable, but not laid out.

use std::borrow::Cow;

use md5::{Digest, Md5};

/// The rows that the fingerprint covers.
const FINGERPRINT_ROWS: usize = 20;

/// Maximum number of spaces for one cursor-forward, to limit memory: wider than any terminal.
const MAX_FORWARD_COLUMNS: usize = 200;

/// Removes escape sequences and control characters from terminal output. A cursor-forward becomes spaces,
/// since tmux writes the gaps between words so. A tab becomes one space, a carriage return without a newline becomes a
/// newline (the overwritten text stays readable). Of a sequence that is incomplete at the end of its line, only the
/// introducer goes.
pub fn strip(text: &str) -> String {
    plain(text).into_owned()
}

/// [`strip`], without a copy if nothing has to be removed.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let text = text.replace("\r\r\n", "\n").replace("\r\n", "\n").replace('\r', "\n");
    let mut out = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            out.push('\n');
        }
        // A parser for each line: no valid sequence spans two lines, and a broken one must not hide the
        // next line.
        out.push_str(&strip_ansi_escapes::strip_str(defuse(line)));
    }
    Cow::Owned(out)
}

/// True if a newline is the only control character, as on nearly every screen. Characters are decoded only if a byte
/// may belong to another control character.
fn is_plain(text: &str) -> bool {
    // The control characters beyond ASCII begin with C2.
    let suspect = |byte: u8| (byte < b' ' && byte != b'\n') || byte == 0x7f || byte == 0xc2;
    !text.bytes().fold(false, |found, byte| found | suspect(byte))
        || !text.chars().any(|c| c.is_control() && c != '\n')
}

/// Rewrites one line so that it holds complete escape sequences only, and no other control character.
fn defuse(line: &str) -> String {
    let chars: Vec<char> = line.chars().collect();
    let mut out = String::with_capacity(line.len());
    let mut i = 0;
    while i < chars.len() {
        let c = chars[i];
        i += 1;
        match c {
            '\x1b' => i = escape(&chars, i, &mut out),
            '\t' => out.push(' '),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// Handles the sequence after an ESC at `start`; returns the position to continue at.
fn escape(chars: &[char], start: usize, out: &mut String) -> usize {
    let span = |from: usize, low: char, high: char| {
        from + chars.iter().skip(from).take_while(|c| (low..=high).contains(*c)).count()
    };
    let Some(&kind) = chars.get(start) else { return start };
    match kind {
        '[' => {
            let params = span(start + 1, '0', '?');
            let end = span(params, ' ', '/');
            match chars.get(end) {
                Some('C') => {
                    let n: String = chars[start + 1..params].iter().collect();
                    let n = n.parse().unwrap_or(1usize).clamp(1, MAX_FORWARD_COLUMNS);
                    out.extend(std::iter::repeat_n(' ', n));
                    end + 1
                }
                Some('@'..='~') => keep(chars, start, end + 1, out),
                _ => end,
            }
        }
        ']' | 'P' | 'X' | '^' | '_' => {
            let stops = |c: char| matches!(c, '\x1b' | '\x18' | '\x1a') || (c == '\x07' && kind == ']');
            let Some(len) = chars[start + 1..].iter().position(|&c| stops(c)) else { return start + 1 };
            let end = start + 1 + len;
            let st = chars[end] == '\x1b' && chars.get(end + 1) == Some(&'\\');
            if st {
                end + 2
            } else if chars[end] == '\x1b' {
                end
            } else {
                end + 1
            }
        }
        _ => {
            let end = span(start, ' ', '/');
            match chars.get(end) {
                Some('0'..='~') => keep(chars, start, end + 1, out),
                _ => start,
            }
        }
    }
}

/// Passes a complete sequence on to the stripper.
fn keep(chars: &[char], start: usize, end: usize, out: &mut String) -> usize {
    out.push('\x1b');
    out.extend(&chars[start..end]);
    end
}

/// One harmless line: escapes stripped, newlines and tabs as spaces, other control and reordering characters removed.
pub fn printable(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    plain(text)
        .chars()
        .map(|c| if matches!(c, '\n' | '\u{2028}' | '\u{2029}') { ' ' } else { c })
        .filter(|&c| !hidden(c))
        .collect()
}

/// A row with its colors and attributes: only SGR escapes (`ESC [ … m`) stay, and each character is [`printable`].
pub fn styled(row: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(row.len()), row);
    while let Some(at) = rest.find("\x1b[") {
        let (before, sequence) = (&rest[..at], &rest[at + 2..]);
        let length = sequence.bytes().take_while(|byte| matches!(byte, b'0'..=b'9' | b';' | b':')).count();
        out.push_str(&printable(before));
        rest = &sequence[length..];
        if let Some(after) = rest.strip_prefix('m') {
            out.push_str(&format!("\x1b[{}m", &sequence[..length]));
            rest = after;
        } else {
            // The text up to the next sequence decides what another escape removes.
            let end = rest.find("\x1b[").unwrap_or(rest.len());
            out.push_str(&printable(&format!("\x1b[{}{}", &sequence[..length], &rest[..end])));
            rest = &rest[end..];
        }
    }
    out.push_str(&printable(rest));
    out
}

/// The rows of a stripped text, without trailing spaces and without empty rows at the end.
pub(crate) fn rows(plain: &str) -> Vec<&str> {
    let mut rows: Vec<&str> = plain.split('\n').map(str::trim_end).collect();
    while rows.last().is_some_and(|row| row.is_empty()) {
        rows.pop();
    }
    rows
}

/// MD5 of the last 20 rows, joined with newlines.
pub(crate) fn fingerprint(rows: &[&str]) -> [u8; 16] {
    let mut md5 = Md5::new();
    for row in &rows[rows.len().saturating_sub(FINGERPRINT_ROWS)..] {
        md5.update(row);
        md5.update("\n");
    }
    md5.finalize().into()
}

/// As [`fingerprint`], but a clock or a spinner does not change it.
pub(crate) fn calm_fingerprint(rows: &[&str]) -> [u8; 16] {
    let calm = |row: &&str| {
        let mut line = String::with_capacity(row.len());
        for c in row.chars() {
            let sign = match c {
                '0'..='9' => '0',
                c if c.is_whitespace() => ' ',
                c if is_spinner(c) => '*',
                c => c,
            };
            let merges = matches!(sign, '0' | ' ' | '*');
            if !(merges && line.ends_with(sign)) {
                line.push(sign);
            }
        }
        line
    };
    let last = rows[rows.len().saturating_sub(FINGERPRINT_ROWS)..].iter().map(calm).collect::<Vec<_>>();
    fingerprint(&last.iter().map(|line| line.trim()).collect::<Vec<_>>())
}

/// Characters that agents use as spinners.
fn is_spinner(c: char) -> bool {
    matches!(c, '\u{2800}'..='\u{28ff}' | '\u{25d0}'..='\u{25d7}' | '\u{25dc}'..='\u{25e1}' | '\u{25f0}'..='\u{25f7}')
        || "|/-\\*·•✢✳✶✻✽✺✹✸✷✴".contains(c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn colors_stay_in_a_styled_row() {
        for (raw, want) in [
            ("\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mx", "\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mx"),
            ("\x1b[mplain\x1b[2J\x1b[Hend", "\x1b[mplainend"),
            ("\x1b]8;;https://x.y/z\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b]0;t\x07a\x07\u{202e}b\x1b[", "ab"),
            ("a\x1b[2Cb\x1b[?25lc", "a  bc"),
        ] {
            assert_eq!(styled(raw), want, "{raw:?}");
        }
    }

    proptest! {
        #[test]
        fn a_styled_row_has_no_other_escapes(raw in "[a\x1b\\[\\];0-9m\x07J?\n日]{0,40}") {
            let kept = styled(&raw);
            for part in kept.split('\x1b').skip(1) {
                let parameters = part.strip_prefix('[').map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ';' | ':')));
                prop_assert!(parameters.is_some_and(|rest| rest.starts_with('m')), "{raw:?} {kept:?}");
            }
            prop_assert!(!kept.chars().any(|c| c.is_control() && c != '\x1b'));
        }
    }

    #[test]
    fn escapes_are_removed_and_gaps_are_kept() {
        for (raw, want) in [
            ("plain", "plain"),
            ("ALL\x1b[1Ctasks\x1b[1Cdone", "ALL tasks done"),
            ("a\x1b[Cb\x1b[3Cc", "a b   c"),
            ("\x1b[32mTASK\x1b[0m_\x1b[1mDONE\x1b[0m", "TASK_DONE"),
            ("\x1b]8;;https://x.y/z\x1b\\link\x1b]8;;\x1b\\ end", "link end"),
            ("\x1b]0;title\x07text", "text"),
            ("\x1bPq#0\x1b\\text", "text"),
            ("\x1b(Bx\x1b=y\x1b>z", "xyz"),
            ("a\tb\r\nc\r\r\nd", "a b\nc\nd"),
            ("10%\r100%", "10%\n100%"),
            ("bell\x07 back\x08 \u{9b}31m", "bell back 31m"),
        ] {
            assert_eq!(strip(raw), want, "{raw:?}");
        }
    }

    #[test]
    fn broken_escape_removes_no_following_text() {
        for (raw, want) in [
            ("\x1b✓ DONE", "✓ DONE"),
            ("\x1b[31\nDONE", "\nDONE"),
            ("\x1b[31✓DONE", "✓DONE"),
            ("\x1b]8;;http://x\nDONE", "8;;http://x\nDONE"),
            ("\x1b]8;; DONE", "8;; DONE"),
            ("DONE\x1b", "DONE"),
            ("DONE\x1b[", "DONE"),
            ("\x1bP DONE", " DONE"),
            ("\x1b\x1b[1mDONE", "DONE"),
            ("\u{fffd}\u{fffd}DONE", "\u{fffd}\u{fffd}DONE"),
        ] {
            assert_eq!(strip(raw), want, "{raw:?}");
        }
    }

    #[test]
    fn table_cell_is_one_line_without_control_characters() {
        assert_eq!(printable("a\x1b[2Jb\nc\td\x07\u{202e}e"), "ab c de");
    }

    #[test]
    fn fingerprint_covers_the_last_20_rows_without_trailing_spaces() {
        let print = |text: &str| fingerprint(&rows(&plain(text)));
        assert_eq!(print("a\nb"), print("a  \nb\t\n\n   \n"));
        assert_eq!(print("\x1b[1ma\x1b[0m\nb"), print("a\nb"));
        assert_ne!(print("a\nb"), print("b\na"));
        assert_ne!(print("a\n\nb"), print("a\nb"));
        let long: String = (0..20).map(|n| format!("row {n}\n")).collect();
        assert_eq!(print(&format!("above\n{long}\n\n")), print(&format!("other\n{long}")));
        assert_eq!(print(""), print("\n \n"));
    }

    #[test]
    fn calm_fingerprint_ignores_only_clocks_and_spinners() {
        let print = |text: &str| calm_fingerprint(&rows(&plain(text)));
        for (a, b) in [
            ("done\n12:59:58", "done\n13:00:00"),
            ("✻ Cooking… (9s · 12 tokens)", "✶ Cooking… (10s · 4 tokens)"),
            ("⠋ work", "⠙ work"),
            ("- load", "\\ load"),
            ("9s  │", "10s │"),
        ] {
            assert_eq!(print(a), print(b), "{a:?} {b:?}");
        }
        for (a, b) in [("a", "b"), ("step 1", "step 1\nstep 2"), ("ok 1", "failed 1"), ("x", "x 1")] {
            assert_ne!(print(a), print(b), "{a:?} {b:?}");
        }
    }

    proptest! {
        #[test]
        fn plain_text_has_no_control_characters(text in "[a-z é\n]{0,3}[\\x00-\\u{a3}]{0,2}\\PC{0,3}") {
            prop_assert_eq!(is_plain(&text), !text.chars().any(|c| c.is_control() && c != '\n'));
        }

        #[test]
        fn stripping_does_not_panic_and_leaves_no_control_characters(
            parts in prop::collection::vec(prop_oneof![
                Just("\x1b".to_owned()), Just("\x1b[".to_owned()), Just("\x1b]".to_owned()), Just("\x07".to_owned()),
                Just("\r".to_owned()), Just("\n".to_owned()), "[0-9;?]{1,3}", "[A-Za-z]", "\\PC{0,4}", any::<char>().prop_map(String::from),
            ], 0..40)
        ) {
            let out = strip(&parts.concat());
            prop_assert!(!out.chars().any(|c| c.is_control() && c != '\n'), "{:?}", out);
            prop_assert_eq!(&strip(&out), &out);
            prop_assert!(!printable(&out).contains('\n'));
        }
    }
}
