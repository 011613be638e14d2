//! Distinguishes new matches from old ones, which were on the screen before the prompt was delivered.
//!
//! A screen keeps its old rows in place or scrolls them up, below a header that may not move. Rows that align with
//! the old screen are old, all others are new. If no row aligns, the text was wrapped again or is gone. Then an old
//! match is recognized by the text before it.

use std::ops::Range;

use super::echo::{Detail, Ink};
use crate::pattern::Pattern;

/// Characters before a match that identify it when the rows have changed.
const CONTEXT_CHARS: usize = 80;

/// The screen before the prompt.
#[derive(Clone, Debug)]
pub(super) struct Baseline {
    rows: Vec<String>,
}

impl Baseline {
    /// Of a view: trimmed rows, joined with newlines.
    pub(super) fn new(view: &str) -> Self {
        Self { rows: view.split('\n').map(str::to_owned).collect() }
    }

    /// True when one of the matches `found` in `view` is not an old one.
    pub(super) fn has_fresh(&self, done: &Pattern, view: &str, found: &[Range<usize>]) -> bool {
        let rows: Vec<&str> = view.split('\n').collect();
        // Indents are left out, since the view may have lost them.
        let old: Vec<&str> = self.rows.iter().map(|row| bare(row)).collect();
        let now: Vec<&str> = rows.iter().map(|row| bare(row)).collect();
        let Some(kept) = aligned(&old, &now) else { return self.has_new_context(done, view, found) };
        // Bytes, since the last byte of a match may lie within a character.
        let row_of = |at: usize| view.bytes().take(at).filter(|byte| *byte == b'\n').count();
        found.iter().any(|range| {
            let last = row_of(range.end.saturating_sub(1).max(range.start));
            !kept.iter().any(|kept| kept.contains(&last))
        })
    }

    /// Whether some text now precedes more matches than before.
    fn has_new_context(&self, done: &Pattern, view: &str, found: &[Range<usize>]) -> bool {
        let text = self.rows.join("\n");
        let old_ink = Ink::of(&text, Detail::Signs);
        let mut old: Vec<String> =
            done.find_all(&text).iter().map(|range| old_ink.until(range.end, CONTEXT_CHARS)).collect();
        let ink = Ink::of(view, Detail::Signs);
        found.iter().any(|range| {
            let context = ink.until(range.end, CONTEXT_CHARS);
            match old.iter().position(|old| old.ends_with(&context)) {
                Some(index) => {
                    old.swap_remove(index);
                    false
                }
                None => true,
            }
        })
    }
}

fn bare(row: &str) -> &str {
    let row = row.trim();
    row.strip_prefix(['●', '•', '⏺', '✦']).map_or(row, str::trim_start)
}

/// The rows of `now` that are rows of `old`: the head that stays in place and the block that moved; `None` if no
/// written row lines up. Rows above the old screen (a capture with scrollback) are old.
fn aligned(old: &[&str], now: &[&str]) -> Option<Vec<Range<usize>>> {
    let run = |from: usize, at: usize| {
        old[from..]
            .iter()
            .zip(&now[at..])
            .take_while(|(a, b)| a == b)
            .map(|(a, _)| usize::from(!a.is_empty()))
    };
    let head = run(0, 0).count();
    let head_ink: usize = run(0, 0).sum();
    // Up: the rows after the head were further down.
    let up = (head + 1..old.len())
        .map(|from| (run(from, head).sum::<usize>(), run(from, head).count()))
        .max()
        .unwrap_or_default();
    // Down: the whole old screen is below older rows.
    let down = (1..now.len())
        .map(|at| (run(0, at).sum::<usize>(), at + run(0, at).count()))
        .max()
        .unwrap_or_default();
    if down.0 > head_ink + up.0 && down.0 * 2 > old.iter().filter(|row| !row.is_empty()).count() {
        return Some([0..down.1, 0..0].into());
    }
    (head_ink + up.0 > 0).then(|| [0..head, head..head + up.1].into())
}
