//! Answers that fit a line of the protocol: the end of a text, or a page of it from a given place.
//!
//! A place is the number of a piece: a line, or a part of a line that is too long for an answer. Pure.

use crate::error::Result;
use crate::protocol::Lines;

/// The most bytes of text in an answer; JSON can double a line.
pub(crate) const MAX_PAGE_BYTES: usize = 400_000;

/// The bytes of JSON that each line needs in addition to its text.
const LINE_OVERHEAD_BYTES: usize = 8;

#[derive(Clone, Copy, Debug)]
pub(crate) struct LinesWanted {
    /// This many from the end; all if absent.
    pub(crate) last: Option<usize>,
    /// From this place on.
    pub(crate) from: Option<u64>,
}

impl LinesWanted {
    /// How many rows from the end are needed.
    fn rows(self) -> usize {
        self.last.filter(|_| self.from.is_none()).unwrap_or(usize::MAX)
    }
}

/// Answers a request. `rows` returns at least this many rows from the end.
pub(crate) fn answer_from(wish: LinesWanted, rows: impl Fn(usize) -> Result<Vec<String>>) -> Result<Lines> {
    let answer_of_few = answer(rows(wish.rows())?, wish);
    if answer_of_few.truncated && wish.last.is_some() {
        // A place is counted from the first row of all.
        return Ok(answer(rows(usize::MAX)?, wish));
    }
    Ok(answer_of_few)
}

/// Answers a request from all rows.
pub(crate) fn answer(rows: Vec<String>, wish: LinesWanted) -> Lines {
    match wish.from {
        Some(from) => page(&rows, usize::try_from(from).unwrap_or(usize::MAX)),
        None => cut(rows, wish.last.unwrap_or(usize::MAX)),
    }
}

/// The last `wanted` rows, as far as they fit.
fn cut(rows: Vec<String>, wanted: usize) -> Lines {
    let total = rows.len() as u64;
    let skip = rows.len().saturating_sub(wanted);
    let before: usize = rows[..skip].iter().map(|row| pieces(row).count()).sum();
    let (lines, dropped) = fit(rows.into_iter().skip(skip).collect());
    let whole = (dropped > 0).then_some(before as u64);
    Lines { lines, truncated: dropped > 0, total, whole, ..Lines::default() }
}

/// The last rows that fit an answer, and how many did not.
pub(crate) fn fit(rows: Vec<String>) -> (Vec<String>, u64) {
    let mut room = MAX_PAGE_BYTES;
    let fitting = rows.iter().rev().take_while(|row| {
        let cost = row.len() + LINE_OVERHEAD_BYTES;
        let fits = cost <= room;
        room = room.saturating_sub(cost);
        fits
    });
    let dropped = rows.len() - fitting.count();
    (rows.into_iter().skip(dropped).collect(), dropped as u64)
}

/// The pieces from `from` on that fit an answer; one whose line goes on is the last of its answer.
fn page(rows: &[String], from: usize) -> Lines {
    let mut left = rows.iter().flat_map(|row| pieces(row)).skip(from).peekable();
    let (mut room, mut lines, mut open) = (MAX_PAGE_BYTES, vec![], false);
    while let Some((piece, goes_on)) = left.next_if(|(piece, _)| piece.len() + LINE_OVERHEAD_BYTES <= room) {
        room -= piece.len() + LINE_OVERHEAD_BYTES;
        lines.push(piece.to_owned());
        open = goes_on;
        if open {
            break;
        }
    }
    let next = left.peek().is_some().then(|| (from + lines.len()) as u64);
    Lines { lines, total: rows.len() as u64, next, open, ..Lines::default() }
}

/// A row in pieces that fit an answer; with each, whether the row goes on after it.
fn pieces(row: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut left = Some(row);
    std::iter::from_fn(move || {
        let text = left.take()?;
        let mut end = text.len().min(MAX_PAGE_BYTES - LINE_OVERHEAD_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let (piece, rest) = text.split_at(end);
        left = (!rest.is_empty()).then_some(rest);
        Some((piece, left.is_some()))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn long_answers_keep_the_last_lines() {
        let rows: Vec<String> = (0..100_000).map(|n| format!("line {n}")).collect();
        let lines = cut(rows, usize::MAX);
        assert!(lines.truncated && lines.whole == Some(0));
        assert_eq!(lines.total, 100_000);
        assert_eq!(lines.lines.last().unwrap(), "line 99999");
        assert_eq!(cut(vec!["a".into(), "b".into()], 1).lines, ["b"]);
    }

    /// All pages from a place on, put together as a client does.
    fn all(rows: &[String], from: u64) -> String {
        let (mut text, mut at) = (String::new(), Some(from));
        while let Some(from) = at {
            let page = answer(rows.to_vec(), LinesWanted { last: None, from: Some(from) });
            assert!(
                page.lines.iter().map(|line| line.len() + LINE_OVERHEAD_BYTES).sum::<usize>()
                    <= MAX_PAGE_BYTES
            );
            assert!(page.next.is_none_or(|next| next > from), "it comes to an end");
            text.push_str(&page.lines.join("\n"));
            text.push_str(if page.open { "" } else { "\n" });
            at = page.next;
        }
        text
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn pages_together_contain_all_requested_lines(
            sizes in prop::collection::vec(prop_oneof![0..20usize, 100_000..900_000usize], 1..8),
            wanted in 1..9usize,
        ) {
            let rows: Vec<String> = sizes.iter().map(|size| "é1".repeat(size / 3 + 1)).collect();
            let skip = rows.len().saturating_sub(wanted);
            let expected = rows[skip..].join("\n") + "\n";
            let end = answer(rows.clone(), LinesWanted { last: Some(wanted), from: None });
            match end.whole {
                Some(from) => prop_assert!(all(&rows, from) == expected),
                None => prop_assert!(end.lines.join("\n") + "\n" == expected),
            }
            // A place that is not there, or not any more.
            let nowhere = answer(rows, LinesWanted { last: None, from: Some(u64::MAX) });
            prop_assert!(nowhere.lines.is_empty());
        }
    }
}
