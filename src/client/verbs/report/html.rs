//! Reports as one HTML file: no script, and nothing from elsewhere.
//!
//! Every text from outside goes through [`escaped`]. In addition, the page forbids scripts and requests by its own
//! policy. Here: the page and the morning view. The charts are in [`super::charts`], the page of one loop in
//! [`super::loop_html`].

use std::fmt::Write;

use swarm_state::attention::Attention;
use swarm_state::morning::{Morning, MorningRow, Period, brief_duration};
use swarm_state::notice::counted;
use swarm_state::screen::printable;

use super::charts::charts;

const STYLE: &str = include_str!("report.css");

/// The policy of the page: only its own style.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// A text as HTML, also in a quoted attribute. Control characters are removed.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in printable(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
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

/// The numbers of a worker in the period.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::sample::{night, with_texts};
    use super::*;

    #[test]
    fn the_page_of_the_view() {
        insta::assert_snapshot!(morning(&night()).replace(STYLE, "STYLE\n"));
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let page = morning(&night());
        for part in ["<script", "http:", "https:", "src=", "href=", "url(", "@import", "javascript"] {
            assert!(!page.contains(part), "{part}");
        }
        assert!(page.starts_with("<!DOCTYPE html>\n") && page.ends_with("</html>"));
        assert_eq!(page.matches("<article").count(), page.matches("</article>").count());
    }

    #[test]
    fn markup_in_a_text_is_text() {
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
}
