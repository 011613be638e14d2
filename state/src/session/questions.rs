//! Finds the open questions of a document, which a person has to answer before an agent uses it.
//!
//! An item under a heading "Open questions" is open unless it is ticked, struck out or reads "none" or the like.
//! Fenced code, comments and lines indented below an item do not count, except an indented item with an empty box.
//! Used by the do-it preflight. Deliberately absent: the choice of documents.

/// The open items under each heading "Open questions" of a Markdown text.
pub fn open_questions(text: &str) -> Vec<String> {
    let mut reader = QuestionsReader::default();
    text.lines().for_each(|line| reader.line(line));
    reader.open
}

#[derive(Default)]
struct QuestionsReader {
    /// The level of the current heading "Open questions".
    level: Option<usize>,
    /// The fence that closes the current code block.
    fence: Option<String>,
    is_comment: bool,
    /// The indent of the current item; deeper lines are its details.
    item: Option<usize>,
    open: Vec<String>,
}

impl QuestionsReader {
    fn line(&mut self, line: &str) {
        let trimmed = line.trim();
        if let Some(fence) = &self.fence {
            let is_end = trimmed.starts_with(fence.as_str()) && trimmed.chars().all(|c| fence.contains(c));
            self.fence = self.fence.take().filter(|_| !is_end);
        } else if self.is_comment {
            self.is_comment = !trimmed.contains("-->");
        } else if let Some(fence) = fence(trimmed) {
            self.fence = Some(fence);
        } else if let Some(comment) = trimmed.strip_prefix("<!--") {
            self.is_comment = !comment.contains("-->");
        } else if let Some((level, title)) = heading(line) {
            self.heading(level, title);
        } else if self.level.is_some() {
            self.text(line);
        }
    }

    fn heading(&mut self, level: usize, title: &str) {
        // A title may be numbered, or emphasized.
        let title = title.trim_start_matches(|c: char| !c.is_alphabetic());
        let title = title.trim_end_matches(|c: char| !c.is_alphanumeric());
        self.item = None;
        if title.to_lowercase() == "open questions" {
            self.level = Some(level);
        } else if self.level.is_some_and(|above| level <= above) {
            self.level = None;
        }
    }

    fn text(&mut self, line: &str) {
        let Some(item) = item(line) else { return };
        let indent = line.len() - line.trim_start().len();
        let is_detail = self.item.is_some_and(|above| indent > above);
        if !is_detail {
            self.item = Some(indent);
        }
        let (is_open, text) = match unboxed(item) {
            Some((is_ticked, text)) => (!is_ticked, text),
            None => (!is_detail, item),
        };
        if is_open && is_question(text) {
            self.open.push(text.trim().to_owned());
        }
    }
}

/// The fence that opens code.
fn fence(line: &str) -> Option<String> {
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.chars().take_while(|c| *c == mark).count();
    // Inline code ends in the same line.
    let is_inline = mark == '`' && line.get(length..).is_some_and(|info| info.contains('`'));
    (length >= 3 && !is_inline).then(|| mark.to_string().repeat(length))
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let line = line.trim_end();
    let trimmed = line.trim_start();
    let level = trimmed.chars().take_while(|c| *c == '#').count();
    let title = trimmed.get(level..)?;
    let is_heading = (1..=6).contains(&level)
        && line.len() - trimmed.len() < 4
        && (title.is_empty() || title.starts_with([' ', '\t']));
    is_heading.then_some((level, title))
}

fn item(line: &str) -> Option<&str> {
    let line = line.trim();
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    let rest = match digits {
        0 => line.strip_prefix(['-', '*', '+'])?,
        _ => line.get(digits..)?.strip_prefix(['.', ')'])?,
    };
    rest.starts_with([' ', '\t']).then(|| rest.trim())
}

/// Whether an item's box is ticked, and the text after the box; `None` without a box.
fn unboxed(item: &str) -> Option<(bool, &str)> {
    let mut chars = item.strip_prefix('[')?.chars();
    let mark = chars.next()?;
    let text = chars.as_str().strip_prefix(']')?;
    // A link begins with a bracket, too.
    let is_box = text.is_empty() || text.starts_with([' ', '\t']);
    is_box.then_some((matches!(mark, 'x' | 'X' | '✓' | '✔' | '✗' | '-' | '~'), text))
}

fn is_question(text: &str) -> bool {
    let text = text.trim();
    let is_struck = text.len() > 4 && text.starts_with("~~") && text.trim_end_matches('.').ends_with("~~");
    let bare = text.trim_matches(|c: char| !c.is_alphanumeric() && c != '?').to_lowercase();
    let says_none = [
        "",
        "none",
        "n/a",
        "na",
        "nil",
        "nothing",
        "no open questions",
        "none at the moment",
        "none so far",
        "none yet",
        "none at this time",
        "none currently",
    ];
    !is_struck && !says_none.contains(&bare.as_str())
}
