//! The morning view as text: a table, with the reason and the next step of a worker.

use swarm_state::attention::Attention;
use swarm_state::morning::{Morning, MorningRow, brief_duration};
use unicode_width::UnicodeWidthStr;

use crate::client::report::wrapped;
use crate::out::{Color, DEFAULT_COLUMNS, Out, fit, table};

/// The columns before a name.
const INDENT: &str = "  ";

/// The columns before a reason or next step on a line of its own.
const BELOW: &str = "      ";

const MIN_NAME_COLUMNS: usize = 20;

pub(super) fn morning(view: &Morning, out: Out) -> Vec<String> {
    let mut lines = vec![view.headline()];
    let (head, rows) = columns(view, out);
    let mut rows = rows.into_iter();
    if !view.rows.is_empty() {
        lines.extend([String::new(), format!("{INDENT}{}", out.paint(Color::Dim, head.trim_end()))]);
    }
    for (group, workers) in view.groups() {
        lines.push(out.paint(color(group), group.title()).into_owned());
        for (worker, row) in workers.iter().zip(rows.by_ref()) {
            lines.extend(worker_lines(worker, &row, out));
        }
    }
    let remarks = view.remarks();
    if !remarks.is_empty() {
        lines.push(String::new());
        lines.extend(remarks);
    }
    lines
}

fn color(group: Attention) -> Color {
    match group {
        Attention::NeedsYou => Color::Yellow,
        Attention::FailedOrLost => Color::Red,
        Attention::Working | Attention::FinishedUnseen => Color::Green,
        Attention::Parked | Attention::Rest => Color::Bold,
    }
}

/// The columns that every worker has, aligned and of equal length: the head, and a row for each worker.
fn columns(view: &Morning, out: Out) -> (String, Vec<String>) {
    let cells = |row: &MorningRow| {
        let seconds = row.seconds(&view.period) as u64;
        vec![
            row.name.clone(),
            row.status.to_string(),
            row.iterations_text(),
            row.cost_text(),
            brief_duration(seconds),
        ]
    };
    let rows: Vec<Vec<String>> = view.rows.iter().map(cells).collect();
    let width = out.width.map(|width| (width / 2).saturating_sub(INDENT.len()).max(48));
    let lines = table(&["NAME", "STATUS", "ITER", "COST", "TIME"], &rows, &[(0, MIN_NAME_COLUMNS)], width);
    let longest = lines.iter().map(|line| line.width()).max().unwrap_or(0);
    let pad = |line: String| {
        let gap = longest - line.width();
        line + &" ".repeat(gap)
    };
    let mut lines = lines.into_iter().map(pad);
    (lines.next().unwrap_or_default(), lines.collect())
}

/// The row of a worker, its result behind the row or below it, and its next step.
fn worker_lines(worker: &MorningRow, row: &str, out: Out) -> Vec<String> {
    let width = out.width.unwrap_or(DEFAULT_COLUMNS);
    let result = worker.result_text();
    let whole = format!("{INDENT}{row}  {result}");
    let mut lines = if out.width.is_none_or(|width| whole.width() <= width) {
        vec![whole.trim_end().to_owned()]
    } else {
        vec![format!("{INDENT}{}", row.trim_end()), fit(&format!("{BELOW}{result}"), width)]
    };
    lines.extend(worker.next.iter().flat_map(|next| wrapped(BELOW, next, width)));
    lines
}

#[cfg(test)]
mod tests {
    use super::super::sample::night;
    use super::*;

    fn at(width: Option<usize>) -> String {
        let mut out = Out::plain();
        out.width = width;
        morning(&night(), out).join("\n")
    }

    #[test]
    fn overview_at_80_columns() {
        let lines = at(Some(80));
        insta::assert_snapshot!(lines);
        let is_long = |line: &&str| line.width() > 80 && !line.contains("swarm ") && !line.contains("git ");
        assert_eq!(lines.lines().find(is_long), None);
    }

    #[test]
    fn overview_at_120_columns() {
        insta::assert_snapshot!(at(Some(120)));
    }

    #[test]
    fn overview_in_a_pipe() {
        insta::assert_snapshot!(at(None));
    }

    #[test]
    fn a_narrow_terminal_cuts_only_reasons() {
        for width in 1..200 {
            let lines = at(Some(width));
            assert!(lines.contains("git -C /home/u/repo merge swarm/fix"), "{lines}");
        }
    }
}
