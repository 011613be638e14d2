//! Writes a list in the forms of other programs: Markdown with check boxes, and `prd.json`.

use serde_json::{Map, Value};

use super::graph::one_line;
use super::import::markdown::{code_block_end, is_special};
use super::import::plan_story::is_plain_id;
use super::list::{ReviewState, Story, TaskList, key};
use crate::screen::printable;

impl TaskList {
    /// Markdown with a check box for each story. The import reads the same stories from it, except for
    /// fields that swarm does not have.
    pub fn to_markdown(&self) -> String {
        let project = one_line(self.text("project"));
        let mut text = format!("# {}\n", if project.is_empty() { "Tasks" } else { &project });
        let description = self.text("description").trim();
        if !description.is_empty() {
            text.push('\n');
            push_lines(&mut text, "", description.lines().collect(), |line| line.starts_with('#'));
        }
        text.push('\n');
        for story in self.stories() {
            push_story(&mut text, story);
        }
        // A tab may be part of code.
        let line = |line: &str| line.split('\t').map(printable).collect::<Vec<_>>().join("\t") + "\n";
        text.lines().map(line).collect()
    }

    /// The list as `prd.json`: without the review fields, and stories without a review pass as they are.
    pub fn to_prd(&self) -> String {
        const STORY_FIELDS: [&str; 7] =
            ["id", "title", "description", "acceptanceCriteria", "priority", "passes", "notes"];
        let raw_stories = self.value().get(key::STORIES).and_then(Value::as_array).into_iter().flatten();
        let story = |(story, raw): (&Story, &Value)| {
            let field =
                |field: &str| (field.to_owned(), raw.get(field).cloned().unwrap_or_else(|| "".into()));
            let mut fields: Map<String, Value> = STORY_FIELDS.into_iter().map(field).collect();
            if !story.depends_on.is_empty() {
                fields.insert("dependsOn".into(), story.depends_on.clone().into());
            }
            Value::Object(fields)
        };
        let stories: Vec<Value> = self.stories().iter().zip(raw_stories).map(story).collect();
        let mut list: Map<String, Value> = ["project", "branchName", "description"]
            .into_iter()
            .map(|field| (field.to_owned(), self.text(field).into()))
            .collect();
        list.insert(key::STORIES.into(), stories.into());
        escaped(&format!("{:#}\n", Value::Object(list)))
    }
}

/// JSON whose strings have escapes in place of the control characters that JSON permits, such as U+009B.
fn escaped(json: &str) -> String {
    let escape = |c: char| match u32::from(c) {
        code @ 0x7f..=0x9f => format!("\\u{code:04x}"),
        _ => c.to_string(),
    };
    json.chars().map(escape).collect()
}

fn push_story(text: &mut String, story: &Story) {
    let mark = if story.review.passes { "[x]" } else { "[ ]" };
    let (id, title) = (&story.id, one_line(&story.title));
    let has_plain_id = is_plain_id(id);
    let shown_id = if has_plain_id { format!("{id}: ") } else { String::new() };
    text.push_str(&format!("- {mark} {shown_id}{title}\n"));
    if !story.description.trim().is_empty() {
        text.push('\n');
        push_lines(text, "  ", story.description.lines().collect(), |_| false);
        text.push('\n');
    }
    let mut field = |name: &str, value: &str| push_item(text, &format!("  - {name}: "), value);
    if !has_plain_id {
        field("Id", id);
    }
    field("Priority", &story.priority.to_string());
    if !story.depends_on.is_empty() {
        field("Depends on", &story.depends_on.join(", "));
    }
    if story.review != ReviewState::default() {
        let count = story.review.review_count;
        let reviews = if count == 1 { "review" } else { "reviews" };
        field("Review", &format!("{}, {count} {reviews}", story.state_word()));
    }
    for (name, value) in [("Feedback", &story.feedback), ("Notes", &story.notes)] {
        if !value.trim().is_empty() {
            field(name, value);
        }
    }
    for command in &story.checks {
        field("Check command", command);
    }
    for criterion in &story.criteria {
        push_item(text, &format!("  - {mark} "), criterion);
    }
    text.push('\n');
}

/// A list entry. Its further lines are indented.
fn push_item(text: &mut String, head: &str, value: &str) {
    let mut lines = value.trim().lines();
    text.push_str(&format!("{head}{}\n", lines.next().unwrap_or_default().trim()));
    push_lines(text, "    ", lines.collect(), |_| false);
}

/// Lines of text, so that none is read as something else.
fn push_lines(text: &mut String, indent: &str, lines: Vec<&str>, is_other: impl Fn(&str) -> bool) {
    let mut code_end = None;
    for (at, line) in lines.iter().enumerate() {
        code_end = code_end.filter(|end| at <= *end).or_else(|| code_block_end(&lines, at));
        let start = line.trim_start();
        let (space, line) = (&line[..line.len() - start.len()], start.trim_end());
        let escape = if code_end.is_none() && (is_special(line) || is_other(line)) { "\\" } else { "" };
        if !line.is_empty() {
            text.push_str(&format!("{indent}{space}{escape}{line}"));
        }
        text.push('\n');
    }
}
