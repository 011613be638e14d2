//! Decides whether a screen shows output of the agent: rows that were not there before the prompt and do not repeat the
//! prompt.
//!
//! Rows are compared by their letters and digits, and a run of digits counts as one, so that frames, marks and a
//! clock make no row new. Deliberately absent: whether the output holds the done pattern, which requires more care
//! ([`super::echo`]).

use std::collections::HashSet;

/// Minimum letters and digits of a row within a line of the prompt that make it a copy.
const MIN_COPY_CHARS: usize = 24;

/// Text that is not output of the agent: its input, and the screen before.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownText {
    before: HashSet<String>,
    texts: Vec<Text>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Text {
    ink: String,
    lines: HashSet<String>,
}

impl KnownText {
    pub(super) fn note(&mut self, text: &str) {
        let text = Text { ink: ink(text), lines: text.lines().map(ink).collect() };
        if !text.ink.is_empty() && !self.texts.contains(&text) {
            self.texts.push(text);
        }
    }

    pub(super) fn set_before(&mut self, rows: &[&str]) {
        self.before = rows.iter().map(|row| ink(row)).collect();
    }

    /// Whether some row is the agent's own.
    pub(super) fn leaves_output(&self, rows: &[&str]) -> bool {
        // The row above, while it repeats a given text: a box may wrap a line anywhere.
        let mut copied = String::new();
        rows.iter().any(|row| {
            let ink = ink(row);
            if ink.is_empty() {
                return false;
            }
            let wrapped = copied.clone() + &ink;
            let is_copy = |text: &Text| {
                let whole =
                    text.lines.contains(&ink) || ink.len() >= MIN_COPY_CHARS && text.ink.contains(&ink);
                whole || (!copied.is_empty() && text.ink.contains(&wrapped))
            };
            let copy = self.texts.iter().any(is_copy);
            copied = if copy { ink.clone() } else { String::new() };
            !copy && !self.before.contains(&ink) && !is_folded(row)
        })
    }
}

/// Letters and digits, each run of digits as one.
fn ink(text: &str) -> String {
    let mut ink = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '0'..='9' if ink.ends_with('0') => {}
            '0'..='9' => ink.push('0'),
            c if c.is_alphanumeric() => ink.push(c),
            _ => {}
        }
    }
    ink
}

/// Whether a row has the token that an agent shows instead of a long paste.
fn is_folded(row: &str) -> bool {
    row.contains("[Pasted ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(before: &[&str], text: &str) -> KnownText {
        let mut known_text = KnownText::default();
        known_text.set_before(before);
        known_text.note(text);
        known_text
    }

    #[test]
    fn screen_with_only_the_prompt_is_not_output() {
        let long = "Fix the parser so that it reads every one of the recorded files, then print DONE.";
        for (before, text, now) in [
            (&["welcome", "❯ ", "12:01"] as &[_], "do it", &["welcome", "❯ do it", "❯ ", "12:02"] as &[_]),
            (
                &["❯ "],
                long,
                &[
                    "❯ Fix the parser so that it reads every one of",
                    "  the recorded files, then print",
                    "  DONE.",
                ],
            ),
            (&["❯ "], "a\nb\nc", &["❯ [Pasted text #1 +2 lines]", "────"]),
            (&[], "", &["", "────"]),
        ] {
            assert!(!given(before, text).leaves_output(now), "{now:?}");
        }
    }

    #[test]
    fn text_of_the_agent_is_output_even_if_it_repeats_the_prompt() {
        for (before, text, now) in [
            (
                &["❯ "] as &[_],
                "say DONE when you are through",
                &["❯ say DONE when you are through", "● DONE"] as &[_],
            ),
            (&["❯ "], "do it", &["❯ do it", "✻ Thinking… (3s · esc to interrupt)"]),
            (&[], "", &["hello"]),
        ] {
            assert!(given(before, text).leaves_output(now), "{now:?}");
        }
    }
}
