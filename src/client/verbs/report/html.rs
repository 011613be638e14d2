//! Reports as one HTML file: no script, and nothing from elsewhere.
//!
//! Every text from outside goes through [`escaped`]. In addition, the page forbids scripts and requests by its own
//! policy. The charts are in [`super::charts`].

use std::fmt::Write;

use chrono::{DateTime, FixedOffset};
use swarm_state::attention::Attention;
use swarm_state::ledger::Iteration;
use swarm_state::morning::{
    IterationPoint, MAX_CHARTED_ITERATIONS, Morning, MorningRow, Period, brief_duration,
};
use swarm_state::notice::counted;
use swarm_state::screen::printable;

use super::charts::charts;
use super::loop_page::{HEADER, after, baseline, cells, of_iteration, proof_lines, remarks, summary};
use crate::client::report::{before_first, used, worktree};
use crate::protocol::Report;

const STYLE: &str = include_str!("report.css");

/// The policy of the page: only its own style.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// A text as HTML, also in a quoted attribute. Control characters are removed.
pub(super) fn escaped(text: &str) -> String {
    printable(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

/// A whole page. `body` is HTML.
pub(super) fn page(title: &str, body: &str) -> String {
    let title = escaped(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>"
    )
}

pub(super) fn morning(view: &Morning) -> String {
    let until = view.period.until.format("%Y-%m-%d %H:%M");
    let mut body = format!(
        "<header>\n<h1>swarm report</h1>\n<p>{}</p>\n<p class=\"dim\">{until}</p>\n</header>\n",
        escaped(&view.headline())
    );
    for (group, rows) in view.groups() {
        let _ = writeln!(
            body,
            "<section>\n<h2 class=\"{}\">{}</h2>\n<div class=\"cards\">",
            class(group),
            group.title()
        );
        rows.iter().for_each(|row| card(&mut body, row, &view.period));
        body.push_str("</div>\n</section>\n");
    }
    let remarks = view.remarks();
    if !remarks.is_empty() {
        body.push_str("<footer>\n");
        remarks.iter().for_each(|remark| body.push_str(&format!("<p>{}</p>\n", escaped(remark))));
        body.push_str("</footer>\n");
    }
    page("swarm report", &body)
}

fn class(group: Attention) -> &'static str {
    match group {
        Attention::NeedsYou => "needs",
        Attention::FailedOrLost => "bad",
        Attention::Working => "live",
        Attention::Parked | Attention::Rest => "quiet",
        Attention::FinishedUnseen => "good",
    }
}

fn card(body: &mut String, row: &MorningRow, period: &Period) {
    let _ = writeln!(
        body,
        "<article class=\"{}\">\n<h3>{} <span class=\"badge\">{}</span></h3>",
        class(row.group),
        escaped(&row.name),
        row.status
    );
    let _ = writeln!(body, "<p class=\"dim\">{}</p>", escaped(&facts(row, period).join(" · ")));
    let result = row.result_text();
    if !result.is_empty() {
        let _ = writeln!(body, "<p>{}</p>", escaped(&result));
    }
    if let Some(next) = &row.next {
        let _ = writeln!(body, "<pre class=\"next\">{}</pre>", escaped(next));
    }
    body.push_str(&charts(&row.history, row.work.iterations));
    body.push_str("</article>\n");
}

fn facts(row: &MorningRow, period: &Period) -> Vec<String> {
    let mut facts = vec![];
    if row.is_loop {
        facts.push(format!("iteration {}", row.iterations_text()));
    }
    if row.work.failed > 0 {
        facts.push(format!("{} of {} failed", row.work.failed, counted(row.work.iterations, "iteration")));
    }
    facts.push(brief_duration(row.seconds(period) as u64));
    facts.extend(row.work.cost.map(|_| row.cost_text()));
    facts.extend(row.branch.as_ref().map(|branch| format!("branch {branch}")));
    facts
}

pub(super) fn loop_report(report: &Report, since: Option<DateTime<FixedOffset>>) -> String {
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
    page(&format!("swarm report {}", report.name), &body)
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

    use super::super::sample::{night, with_texts};
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn html_page_of_the_overview() {
        insta::assert_snapshot!(morning(&night()).replace(STYLE, "STYLE\n"));
    }

    #[test]
    fn page_loads_nothing_external() {
        let page = morning(&night());
        for part in ["<script", "http:", "https:", "src=", "href=", "url(", "@import", "javascript"] {
            assert!(!page.contains(part), "{part}");
        }
        assert!(page.starts_with("<!DOCTYPE html>\n") && page.ends_with("</html>"));
        assert_eq!(page.matches("<article").count(), page.matches("</article>").count());
    }

    #[test]
    fn markup_in_a_text_is_escaped() {
        let page = morning(&with_texts("<script>alert('a' & \"b\")</script>"));
        assert!(!page.contains("<script"));
        assert!(page.contains("&lt;script&gt;alert(&#39;a&#39; &amp; &quot;b&quot;)&lt;/script&gt;"));
    }

    proptest! {
        #[test]
        fn a_text_adds_no_markup(text in r#"[a<>&"'/= !\-\[\]\n\r\x00\x1b\u{202e}]{0,30}|.{0,20}"#) {
            let (page, plain) = (morning(&with_texts(&text)), morning(&with_texts("a")));
            for mark in ['<', '>', '"', '\''] {
                let count = |page: &str| page.matches(mark).count();
                // An empty reason has no paragraph.
                if mark == '"' || mark == '\'' || !printable(&text).is_empty() {
                    prop_assert_eq!(count(&page), count(&plain), "{}", mark);
                }
            }
            prop_assert!(!page.contains(|c: char| c.is_control() && c != '\n'));
            let shown = escaped(&text);
            prop_assert!(page.contains(&shown));
        }
    }

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
        let page = loop_report(&report("make test"), None);
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
        let none = loop_report(&report("make test"), Some(late));
        assert!(none.contains("since 2026-01-15 12:00: 0 iterations") && !none.contains("<svg"), "{none}");
    }

    proptest! {
        #[test]
        fn a_text_adds_no_markup_to_a_loop(text in r#"a[<>&"'/= !\-\[\]\n\r\x00\x1b]{0,30}"#) {
            let (page, plain) = (loop_report(&report(&text), None), loop_report(&report("a"), None));
            for mark in ['<', '>'] {
                prop_assert_eq!(page.matches(mark).count(), plain.matches(mark).count(), "{}", mark);
            }
        }
    }
}
