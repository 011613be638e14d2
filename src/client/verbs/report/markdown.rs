//! The morning view as Markdown, as GitHub shows it.

use swarm_state::morning::{Morning, MorningRow, Period, brief_duration};
use swarm_state::screen::printable;

/// The characters that have a meaning in a line of Markdown.
const SPECIAL: [char; 14] = ['\\', '`', '*', '_', '{', '}', '[', ']', '<', '>', '#', '|', '~', '&'];

pub(super) fn morning(view: &Morning) -> Vec<String> {
    let mut lines = vec!["# swarm report".to_owned(), String::new(), escaped(&view.headline())];
    if !view.rows.is_empty() {
        lines.extend(
            ["", "| group | worker | status | iterations | cost | time | result | next |"].map(str::to_owned),
        );
        lines.push("|---|---|---|--:|--:|--:|---|---|".to_owned());
        lines.extend(view.rows.iter().map(|row| line(row, &view.period)));
    }
    lines.extend(view.remarks().iter().flat_map(|remark| [String::new(), escaped(remark)]));
    lines
}

fn line(row: &MorningRow, period: &Period) -> String {
    let cells = [
        escaped(row.group.title()),
        escaped(&row.name),
        row.status.to_string(),
        escaped(&row.iterations_text()),
        row.cost_text(),
        brief_duration(row.seconds(period) as u64),
        escaped(&row.result_text()),
        row.next.as_deref().map(code).unwrap_or_default(),
    ];
    format!("| {} |", cells.join(" | "))
}

/// A text without a meaning in Markdown and HTML, on one line.
pub(super) fn escaped(text: &str) -> String {
    let escaped = |c| SPECIAL.contains(&c).then_some('\\').into_iter().chain([c]);
    printable(text).chars().flat_map(escaped).collect()
}

/// A line of the text report as Markdown: words of an agent become no tags, images, links or mentions.
pub(super) fn inert(line: &str) -> String {
    line.replace('&', "&amp;").replace('<', "&lt;").replace("](", "]\\(").replace('@', "&#64;")
}

/// A text as code in the cell of a table. A code span cannot have a backslash before a `|`.
fn code(text: &str) -> String {
    if text.contains(['\\', '`']) {
        return format!("<code>{}</code>", escaped(text));
    }
    format!("`{}`", printable(text).replace('|', "\\|"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::sample::{night, with_texts};
    use super::*;

    #[test]
    fn report_line_contains_no_active_markdown() {
        assert_eq!(
            inert("  | <img src=x> [l](javascript:a) ![i](u) @all a & b"),
            "  | &lt;img src=x> [l]\\(javascript:a) ![i]\\(u) &#64;all a &amp; b"
        );
    }

    #[test]
    fn overview_is_a_markdown_table() {
        insta::assert_snapshot!(morning(&night()).join("\n"));
    }

    #[test]
    fn markdown_characters_are_escaped() {
        for (text, wanted) in [
            ("a|b", r"a\|b"),
            ("<script>", r"\<script\>"),
            ("a\nb", "a b"),
            ("*x* [y](z)", r"\*x\* \[y\](z)"),
            (r"\|", r"\\\|"),
        ] {
            assert_eq!(escaped(text), wanted);
        }
        for (text, wanted) in [
            ("a|b <i>", r"`a\|b <i>`"),
            ("a`b", r"<code>a\`b</code>"),
            (r"\|", r"<code>\\\|</code>"),
            ("a\nb", "`a b`"),
        ] {
            assert_eq!(code(text), wanted);
        }
    }

    proptest! {
        #[test]
        fn a_text_changes_neither_the_rows_nor_the_columns(text in r"[a|\\`<>&\n\r#*_\x1b\u{2028}-]{0,20}") {
            let lines = morning(&with_texts(&text));
            prop_assert_eq!(lines.len(), morning(&with_texts("a")).len());
            for line in lines.iter().filter(|line| line.starts_with('|')) {
                let has_break = line.contains(['\n', '\r', '\u{2028}', '\u{1b}']);
                prop_assert!(!has_break);
                let mut columns = 0;
                let mut is_escaped = false;
                for c in line.chars() {
                    columns += usize::from(c == '|' && !is_escaped);
                    is_escaped = c == '\\' && !is_escaped;
                }
                prop_assert_eq!(columns, 9, "{}", line);
            }
        }
    }
}
