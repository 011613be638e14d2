//! Sends text and keys to a pane.
//!
//! A prompt goes through a paste buffer, bracketed if the program requested that, with its line feeds. tmux reads the
//! text from standard input, so it is in no argv and in no file. The caller decides about Enter and waiting,
//! from the agent's profile.

use tmux_interface::{CopyMode, LoadBuffer, SourceFile};

use super::handle::{Tmux, unique};
use super::plain::{self, Words};
use super::quote;
use super::types::PasteOutcome;
use super::window::quoted;
use crate::error::{Error, ErrorCode, Result};

impl Tmux {
    /// Pastes text into a pane, after leaving copy mode. Removes escape sequences and control characters ([`clean`]),
    /// so that the text cannot end its own paste or press keys.
    pub async fn paste(&self, pane: &str, text: &[u8]) -> Result<PasteOutcome> {
        let text = clean(text);
        if text.is_empty() {
            return Ok(PasteOutcome::Done);
        }
        let buffer = format!("swarm-{}-{}", std::process::id(), unique());
        let target = quoted(pane);
        // Before tmux 3.4, a paste into a dead pane ends the whole server, so one command tests and pastes.
        let dead = format!("delete-buffer -b {buffer} ; display-message -p dead");
        let alive = format!("paste-buffer -p -r -d -b {buffer} -t {target}");
        let commands = [
            CopyMode::new().cancel().target_pane(pane).build().into(),
            LoadBuffer::new().buffer_name(&buffer).path("-").build().into(),
            Words::from(["if-shell", "-F", "-t", pane, "#{pane_dead}", &dead, &alive]),
        ];
        let output = self.0.run_with(&commands, Some(&text)).await?;
        if output.ok {
            let dead = output.stdout.starts_with(b"dead");
            return Ok(if dead { PasteOutcome::PaneDead } else { PasteOutcome::Done });
        }
        // tmux 3.4 and later refuse the paste themselves if the program ends between test and paste.
        if output.stderr.contains("can't find pane") || output.stderr.contains("has exited") {
            return Ok(PasteOutcome::PaneDead);
        }
        Err(plain::refusal("paste", &output.stderr))
    }

    /// Sends keys by their tmux names: `Enter`, `C-c`, `Escape`, after leaving copy mode. A dead pane ignores them.
    ///
    /// # Errors
    /// `not_found` if there is no such pane; other codes if tmux does not respond or refuses.
    pub async fn keys(&self, pane: &str, keys: &[&str]) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let leave = CopyMode::new().cancel().target_pane(pane).build().into();
        let press = Words::from(["send-keys", "-t", pane, "--"]).and(keys.iter().copied());
        let output = self.0.run(&[leave, press]).await?;
        if !output.ok && output.stderr.contains("can't find pane") {
            return Err(Error::new(ErrorCode::NotFound, format!("there is no pane {pane}")));
        }
        output.into_result("press keys").map(drop)
    }

    /// Types a text key by key, so that the program sees keys and not a paste. Omits control characters. tmux reads
    /// the text from standard input, so it is in no argv.
    pub async fn type_text(&self, pane: &str, text: &str) -> Result<PasteOutcome> {
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        if text.is_empty() {
            return Ok(PasteOutcome::Done);
        }
        let leave = CopyMode::new().cancel().target_pane(pane).build().into();
        let read = SourceFile::new().path("-").build().into();
        let press = quote::line(&["send-keys", "-l", "-t", pane, "--", &text]);
        let output = self.0.run_with(&[leave, read], Some(&press)).await?;
        if !output.ok && output.stderr.contains("can't find pane") {
            return Ok(PasteOutcome::PaneDead);
        }
        output.into_result("type keys").map(|_| PasteOutcome::Done)
    }
}

/// The text without escape sequences and control characters other than tab and line feed. A carriage return becomes a
/// line feed. Everything else stays byte for byte, valid UTF-8 or not.
pub(super) fn clean(text: &[u8]) -> Vec<u8> {
    let mut clean = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match *first {
            0x1b => rest = &rest[sequence(rest)..],
            b'\r' => {
                clean.push(b'\n');
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            b'\t' | b'\n' => clean.push(*first),
            0..0x20 | 0x7f => {}
            // C1 controls in UTF-8 (U+009B is a CSI on some terminals).
            0xc2 if matches!(rest.first(), Some(0x80..=0x9f)) => rest = &rest[1..],
            _ => clean.push(*first),
        }
    }
    clean
}

/// The length of the escape sequence whose ESC was just read. An unfinished sequence counts as its first byte, so
/// that it cannot swallow the text after it.
fn sequence(after: &[u8]) -> usize {
    let Some(kind) = after.first() else { return 0 };
    match kind {
        b'[' => {
            let inner = after[1..].iter().take_while(|byte| matches!(byte, 0x20..=0x3f)).count();
            match after.get(1 + inner) {
                Some(0x40..=0x7e) => inner + 2,
                _ => 1,
            }
        }
        b']' | b'P' | b'X' | b'^' | b'_' => {
            let end = after.iter().position(|byte| matches!(byte, 0x07 | 0x1b | b'\n'));
            match end.map(|at| (at, &after[at..])) {
                Some((at, [0x07, ..])) => at + 1,
                Some((at, [0x1b, b'\\', ..])) => at + 2,
                _ => 1,
            }
        }
        0x20..=0x2f => 1 + usize::from(matches!(after.get(1), Some(0x30..=0x7e))),
        0x30..=0x7e => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escape_sequences_are_removed_and_text_is_kept() {
        for (text, cleaned) in [
            (&b"a\x1b[201~b"[..], &b"ab"[..]),
            (b"\x1b[1;31mred\x1b[0m", b"red"),
            (b"\x1b]0;title\x07x\x1b]8;;u\x1b\\y", b"xy"),
            (b"\x1b]never ended, so it stays", b"never ended, so it stays"),
            (b"\x1b[", b""),
            (b"\x1b", b""),
            (b"\x1b\x1b[201~x", b"x"),
            (b"\x1b(Bx\x1bMy", b"xy"),
            (b"a\r\nb\rc\n\td", b"a\nb\nc\n\td"),
            (b"\x03\x04\x00\x7f", b""),
            (b"\xc2\x9b201~", b"201~"),
            ("é – 漢字 \u{a0}".as_bytes(), "é – 漢字 \u{a0}".as_bytes()),
            (b"\xff\xfe", b"\xff\xfe"),
        ] {
            assert_eq!(clean(text), cleaned, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn cleaned_input_has_no_escapes_and_plain_text_is_unchanged(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let once = clean(&bytes);
            prop_assert!(!once.contains(&0x1b) && !once.contains(&b'\r'));
            let safe: Vec<u8> = bytes.iter().copied().filter(|b| matches!(b, 9 | 10 | 0x20..=0x7e)).collect();
            prop_assert_eq!(clean(&safe), safe);
        }
    }
}
