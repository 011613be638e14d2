//! The report of one loop as an HTML page.

use std::fmt::Write;

use chrono::{DateTime, FixedOffset};
use swarm_state::ledger::Iteration;
use swarm_state::morning::{IterationPoint, MAX_CHARTED_ITERATIONS};

use super::charts::charts;
use super::html::{escaped, page as html_page};
use super::loop_page::{HEADER, after, baseline, cells, of_iteration, proof_lines, remarks, summary};
use crate::client::report::{before_first, used, worktree};
use crate::protocol::Report;

pub(super) fn page(report: &Report, since: Option<DateTime<FixedOffset>>) -> String {
    let used = used(report);
    let report = &after(report, since);
    let mut body = format!("<header>\n<h1>{}</h1>\n", escaped(&report.name));
    let task = Some(&report.task).filter(|task| !task.is_empty()).cloned();
    for line in task.into_iter().chain(summary(report, &used, since)).chain(before_first(report)) {
        let _ = writeln!(body, "<p>{}</p>", escaped(&line));
    }
    body.push_str("</header>\n");
    if !report.iterations.is_empty() {
        let points: Vec<IterationPoint> = report.iterations.iter().map(IterationPoint::of).collect();
        let shown = &points[points.len().saturating_sub(MAX_CHARTED_ITERATIONS)..];
        let charts = charts(shown, points.len() as u64);
        let _ = write!(body, "<section class=\"card\">\n{charts}{}</section>\n", table(&report.iterations));
    }
    for lines in [baseline(report), remarks(report), proof_lines(report)] {
        body.push_str(&block(&lines));
    }
    body.extend(report.iterations.iter().map(details));
    body.push_str(&block(&worktree(report)));
    html_page(&format!("swarm report {}", report.name), &body)
}

fn table(iterations: &[Iteration]) -> String {
    let row = |tag: &str, cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let rows: String = iterations.iter().map(|it| row("td", &cells(it))).collect();
    let head = row("th", &HEADER.map(str::to_owned));
    format!("<div class=\"scroll\">\n<table>\n{head}{rows}</table>\n</div>\n")
}

/// Lines as a block; empty without lines.
fn block(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| escaped(line)).collect();
    let text = lines.join("\n");
    let text = text.trim_matches('\n');
    if text.is_empty() { String::new() } else { format!("<pre>{text}</pre>\n") }
}

/// The gates of an iteration, folded.
fn details(it: &Iteration) -> String {
    let lines = of_iteration(it);
    let mut lines = lines.iter().skip_while(|line| line.is_empty());
    let Some(title) = lines.next() else { return String::new() };
    let rest: Vec<String> = lines.cloned().collect();
    let title = escaped(title.trim_end_matches(':'));
    format!("<details>\n<summary>{title}</summary>\n{}</details>\n", block(&rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// A loop of two iterations, whose texts from outside are all `text`.
    fn report(text: &str) -> Report {
        let answer = include_str!("../../../../tests/golden/calls.jsonl");
        let answer = answer.lines().find(|line| line.contains("\"snapshots\":\"refs/"));
        let mut report: Value = serde_json::from_str::<Value>(answer.unwrap()).unwrap()["ok"].take();
        for key in ["task", "reason"] {
            report[key] = json!(text);
        }
        report["warnings"] = json!([text]);
        let check = |passed| json!({"name": text, "passed": passed, "output": text, "seconds": 2.0});
        report["baseline"] = json!([check(false)]);
        let iteration = |number: u32| {
            json!({
                "iteration": number, "started": "2026-01-15T10:30:00+01:00", "ended": "2026-01-15T10:31:00+01:00",
                "seconds": 60.0, "exit_code": 3, "last_lines": [text], "warnings": [text],
                "verdict": {"checks": [check(true), check(false)], "cost": 120_000}
            })
        };
        report["iterations"] = json!([iteration(1), iteration(2)]);
        serde_json::from_value(report).unwrap()
    }

    #[test]
    fn the_page_of_a_loop_has_charts_a_table_and_the_gates() {
        let page = page(&report("make test"), None);
        assert_eq!(page.matches("<svg").count(), 3, "{page}");
        for part in [
            "<h1>agent</h1>",
            "<summary>Iteration 2 (the agent ended with exit status 3)</summary>",
            "- FAIL  make test\n",
            "<th>snapshot</th>",
            "<td>$0.12</td>",
            "2 passed</span>",
            "cost: $0.24",
        ] {
            assert!(page.contains(part), "{part:?} in {page}");
        }
        let late = DateTime::parse_from_rfc3339("2026-01-15T12:00:00+01:00").unwrap();
        let none = super::page(&report("make test"), Some(late));
        assert!(none.contains("since 2026-01-15 12:00: 0 iterations") && !none.contains("<svg"), "{none}");
    }

    proptest! {
        #[test]
        fn a_text_adds_no_markup(text in r#"a[<>&"'/= !\-\[\]\n\r\x00\x1b]{0,30}"#) {
            let (page, plain) = (page(&report(&text), None), page(&report("a"), None));
            for mark in ['<', '>'] {
                prop_assert_eq!(page.matches(mark).count(), plain.matches(mark).count(), "{}", mark);
            }
        }
    }
}
