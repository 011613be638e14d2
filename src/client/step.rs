//! Breaks a next step into lines. Commands are never cut, so that a person can copy them.

use unicode_width::UnicodeWidthStr;

/// Breaks a next step into lines of `width` columns behind `head`, only after punctuation: a command stays on one line.
pub(super) fn wrapped(head: &str, next: &str, width: usize) -> Vec<String> {
    let mut parts = vec![String::new()];
    for word in next.split_inclusive(' ') {
        let can_break = parts.last().is_some_and(|part| part.trim_end().ends_with([',', ';', ':']));
        match parts.last_mut().filter(|_| !can_break) {
            Some(part) => part.push_str(word),
            None => parts.push(word.to_owned()),
        }
    }
    let mut lines = vec![head.to_owned()];
    for (index, part) in parts.iter().enumerate() {
        match lines.last_mut() {
            Some(line) if index == 0 || line.width() + part.trim_end().width() <= width => {
                line.push_str(part)
            }
            _ => lines.push(" ".repeat(head.len()) + part),
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}
