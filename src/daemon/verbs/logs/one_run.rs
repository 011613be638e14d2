//! The output of one iteration of a loop, or of one run of a plain worker: `logs --iteration N`.
//!
//! A loop stores each iteration's output in a file of its own, below `ralph/NAME/`. The runs of a plain worker, and
//! of a loop whose files were deleted, are in its log. A live run is in its pane.

use std::ops::RangeInclusive;

use crate::daemon::output::{OutputSource, lines_of};
use crate::daemon::pages::{self, LinesWanted};
use crate::daemon::reply::stopping;
use crate::daemon::slot::Slot;
use crate::error::{Error, ErrorCode, Result};
use crate::protocol::{Lines, is_run_header};
use crate::store::MAX_WORKER_LOG_BYTES;

/// The runs of a worker: their word and their numbers.
pub(super) struct KnownRuns {
    /// `iteration` or `run`.
    word: &'static str,
    last: u64,
    /// The number of the one that lives.
    live: Option<u64>,
}

impl KnownRuns {
    pub(super) fn of(slot: &Slot, source: &OutputSource) -> Self {
        let (word, last) = match slot.engine.ralph() {
            Some(ralph) => ("iteration", u64::from(ralph.iteration)),
            None => ("run", slot.engine.run().0),
        };
        Self { word, last, live: source.pane.is_some().then_some(last) }
    }
}

/// The output of run `number`.
pub(super) async fn find(
    known: KnownRuns,
    source: OutputSource,
    number: u32,
    wish: LinesWanted,
) -> Result<Lines> {
    let wanted_run = u64::from(number);
    if known.live == Some(wanted_run)
        && let Some(pane) = &source.pane
        && let Some(live) = source.tmux.capture(&pane.id, u32::MAX).await?
    {
        return Ok(Lines { picture: live.picture, ..pages::answer(lines_of(&live.text), wish) });
    }
    // The run may have ended meanwhile, so the stored output is read after the pane.
    let (store, name) = (&source.store, &source.name);
    let stored = if known.word == "iteration" { store.stored_iterations(name) } else { vec![] };
    if stored.contains(&number)
        && let Some(tail) = store.read_iteration_output(name, number, usize::MAX, 2 * MAX_WORKER_LOG_BYTES)?
    {
        return Ok(pages::answer(tail.lines, wish));
    }
    let log = if stored.is_empty() { whole_log(&source).await? } else { vec![] };
    let log = this_life(&log, &known);
    if let Some(rows) = section(log, known.word, wanted_run) {
        return Ok(pages::answer(rows, wish));
    }
    let mut there: Vec<u64> = stored.iter().map(|n| u64::from(*n)).collect();
    there.extend(log.iter().filter_map(|row| number_of(row, known.word)));
    there.extend(known.live);
    there.sort_unstable();
    there.dedup();
    let message = format!("worker '{name}' has no output of {} {number}", known.word);
    Err(Error::new(ErrorCode::Invalid, message).hint(match there.as_slice() {
        [] => format!("no {}s are stored", known.word),
        [one] => format!("there is only {} {one}", known.word),
        many => format!("there are {}s {}", known.word, in_words(many)),
    }))
}

/// All of a worker's log: it is bounded.
async fn whole_log(source: &OutputSource) -> Result<Vec<String>> {
    let (store, name) = (source.store.clone(), source.name.clone());
    let read = move || store.read_worker_log_tail(&name, usize::MAX, 2 * MAX_WORKER_LOG_BYTES);
    let tail = tokio::task::spawn_blocking(read).await;
    tail.map_err(|_| stopping())?.map(|tail| tail.lines)
}

/// The number in a header of a log: `=== run 3, ended …`.
fn number_of(row: &str, word: &str) -> Option<u64> {
    let rest = row.strip_prefix("=== ")?.strip_prefix(word)?.strip_prefix(' ')?;
    rest.split_once(',')?.0.parse().ok().filter(|_| is_run_header(row))
}

/// The part of a log with the runs since the worker was last spawned or respawned. Earlier runs are numbered from 1
/// too, and may have higher numbers.
fn this_life<'a>(log: &'a [String], known: &KnownRuns) -> &'a [String] {
    // The live run may have ended and been logged meanwhile.
    let mut next = known.last + 1;
    let mut from = log.len();
    for at in (0..log.len()).rev().filter(|at| is_run_header(&log[*at])) {
        match number_of(&log[at], known.word) {
            // A second header with the same number belongs to the same life.
            Some(number) if number < next || from < log.len() && number == next => {
                (next, from) = (number, at)
            }
            Some(_) | None => break,
        }
    }
    &log[from..]
}

/// The lines below the last header of a run.
fn section(rows: &[String], word: &str, number: u64) -> Option<Vec<String>> {
    let from = rows.iter().rposition(|row| number_of(row, word) == Some(number))? + 1;
    let to = rows[from..].iter().position(|row| is_run_header(row)).map_or(rows.len(), |at| from + at);
    Some(rows[from..to].to_vec())
}

/// `1 to 4, 7`: numbers in order, each once.
fn in_words(numbers: &[u64]) -> String {
    let mut ranges: Vec<RangeInclusive<u64>> = vec![];
    for &number in numbers {
        match ranges.last_mut() {
            Some(range) if range.end() + 1 == number => *range = *range.start()..=number,
            _ => ranges.push(number..=number),
        }
    }
    let word = |range: &RangeInclusive<u64>| match range.end() - range.start() {
        0 => range.start().to_string(),
        1 => format!("{}, {}", range.start(), range.end()),
        _ => format!("{} to {}", range.start(), range.end()),
    };
    ranges.iter().map(word).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_numbers_are_printed_as_ranges() {
        assert_eq!(in_words(&[1, 2, 3, 4, 7]), "1 to 4, 7");
        assert_eq!(in_words(&[1, 2, 9, 10]), "1, 2, 9, 10");
        assert_eq!(in_words(&[3]), "3");
    }

    #[test]
    fn runs_before_the_last_spawn_are_left_out() {
        let head = |n: u64| format!("=== run {n}, ended x, exit code 0 ===");
        let check = |numbers: &[u64], last, live: Option<u64>, wanted: &[u64]| {
            let log: Vec<String> = numbers.iter().flat_map(|n| [head(*n), "text".to_owned()]).collect();
            let known = KnownRuns { word: "run", last, live };
            let found: Vec<u64> =
                this_life(&log, &known).iter().filter_map(|row| number_of(row, "run")).collect();
            assert_eq!(found, wanted, "{numbers:?} {last} {live:?}");
        };
        check(&[1, 2, 3], 3, None, &[1, 2, 3]);
        check(&[1, 2, 3], 4, Some(4), &[1, 2, 3]);
        check(&[1, 2, 3, 1], 1, None, &[1]);
        check(&[1, 2, 3, 1], 2, Some(2), &[1]);
        check(&[1, 2, 3], 1, Some(1), &[]);
        check(&[1, 2, 3], 2, Some(2), &[]);
        check(&[1, 2], 2, Some(2), &[1, 2]);
        check(&[1, 2, 2, 3], 3, None, &[1, 2, 2, 3]);
        check(&[], 1, None, &[]);
    }

    #[test]
    fn a_run_is_found_in_the_log_by_its_last_header() {
        let head = |n| format!("=== run {n}, ended x, exit code 0 ===");
        let rows = [head(1), "old".into(), head(12), "x".into(), head(1), "new".into(), head(2)];
        let found = |n| section(&rows, "run", n);
        assert_eq!(found(1).unwrap(), ["new"]);
        assert_eq!(found(2).unwrap(), Vec::<String>::new());
        assert_eq!(found(3), None);
        assert_eq!(section(&rows, "iteration", 1), None);
        assert_eq!(number_of("=== run 1 ===", "run"), None);
    }
}
