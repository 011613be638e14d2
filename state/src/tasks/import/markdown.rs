//! The syntax of Markdown plans: check boxes, fields and code blocks.
//!
//! Used by [`super::plan`], by the import of issues, and by the export.

/// The fields of a story that list entries set.
pub(in crate::tasks) const FIELDS: [&str; 7] =
    ["Id", "Priority", "Depends on", "Review", "Feedback", "Notes", "Check command"];

pub(super) struct CheckBox<'a> {
    pub(super) indent: usize,
    /// The column of its text in Markdown: that after the bullet.
    pub(super) content: usize,
    pub(super) is_checked: bool,
    pub(super) text: &'a str,
}

/// The check box of a line: `- [ ] text`, `* [x] text`, `1. [ ] text`.
pub(super) fn check_box(line: &str) -> Option<CheckBox<'_>> {
    let (indent, content, rest) = bullet(line)?;
    let (mark, text) = rest.strip_prefix('[')?.split_once(']')?;
    let is_checked = match mark {
        // Other marks stand for work in progress.
        " " | "" | "-" | "/" | "~" | ">" => false,
        "x" | "X" => true,
        _ => return None,
    };
    let is_text = text.is_empty() || text.starts_with([' ', '\t']);
    is_text.then_some(CheckBox { indent, content, is_checked, text: text.trim() })
}

/// The indentation of a list entry, the column of its content, and the content.
pub(super) fn bullet(line: &str) -> Option<(usize, usize, &str)> {
    let (indent, rest) = indentation(line);
    let number = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let after = match rest.strip_prefix(['-', '*', '+']) {
        Some(after) => after,
        None if number.len() < rest.len() => number.strip_prefix(['.', ')'])?,
        None => return None,
    };
    let content = after.trim_start_matches([' ', '\t']);
    let width = rest.len() - after.len();
    (content.len() < after.len()).then_some((indent, indent + width + 1, content))
}

/// The columns of spaces at the start of a line, and the rest. A tab counts as four.
pub(super) fn indentation(line: &str) -> (usize, &str) {
    let rest = line.trim_start_matches([' ', '\t']);
    let columns = line[..line.len() - rest.len()].chars().map(|c| if c == '\t' { 4 } else { 1 });
    (columns.sum(), rest)
}

/// A line without the first columns of spaces.
pub(super) fn unindented(line: &str, columns: usize) -> &str {
    let mut used = 0;
    let is_kept = |c: char| {
        used += match c {
            ' ' => 1,
            '\t' => 4,
            _ => columns + 1,
        };
        used > columns
    };
    line.find(is_kept).map_or("", |at| &line[at..])
}

/// The field and the value of an entry such as `- Priority: 2`.
pub(in crate::tasks) fn field_of(line: &str) -> Option<(&'static str, &str)> {
    let (_, _, content) = bullet(line)?;
    let (name, value) = content.split_once(':')?;
    let emphasis = name.len() - name.trim_start_matches(['*', '_']).len();
    let field = FIELDS.into_iter().find(|field| field.eq_ignore_ascii_case(name[emphasis..].trim()))?;
    let value = if emphasis > 0 { value.trim_start_matches(['*', '_']) } else { value };
    Some((field, value.trim()))
}

/// The place of the line that ends the code block which begins at `at`; `None` if none begins, or if it has no end.
pub(in crate::tasks) fn code_block_end(lines: &[&str], at: usize) -> Option<usize> {
    let first = lines.get(at)?.trim_start();
    let fence = ["```", "~~~"].into_iter().find(|fence| first.starts_with(fence))?;
    let end = lines.iter().skip(at + 1).position(|line| line.trim_start().starts_with(fence))?;
    Some(at + 1 + end)
}

/// Whether the line of a text would be read as something else. A backslash before it prevents that.
pub(in crate::tasks) fn is_special(line: &str) -> bool {
    let start = line.trim_start();
    check_box(line).is_some()
        || field_of(line).is_some()
        || ["```", "~~~", "\\"].into_iter().any(|head| start.starts_with(head))
}

/// Separates the check boxes of a text from the rest: whether each is checked, and its text.
pub(super) fn split_boxes(text: &str) -> (String, Vec<(bool, String)>) {
    let lines: Vec<&str> = text.lines().collect();
    let (mut rest, mut boxes, mut code_end) = (vec![], vec![], None);
    for (at, line) in lines.iter().enumerate() {
        code_end = code_end.filter(|end| at <= *end).or_else(|| code_block_end(&lines, at));
        match check_box(line).filter(|it| code_end.is_none() && !it.text.is_empty()) {
            Some(found) => boxes.push((found.is_checked, found.text.to_owned())),
            None => rest.push(*line),
        }
    }
    (rest.join("\n").trim().to_owned(), boxes)
}
