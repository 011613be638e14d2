//! Reads Markdown plans with check boxes.
//!
//! A check box is a story, and the boxes below it are its criteria. A heading with an id (`### US-001: Title`) is a
//! story too. Other text below a story is its description; a story without text has the headings and the text above
//! it. List entries such as `- Depends on: US-001` set fields ([`FIELDS`](super::markdown::FIELDS)), as the export
//! writes them; below a check box, they need no indentation. Code blocks are text.

use std::collections::BTreeSet;

use super::markdown::{bullet, check_box, code_block_end, field_of, indentation, unindented};
use super::plan_story::{PlanItem, PlanStory, block, is_strong_id, split_id};
use super::stories::{ImportFormat, ImportedStories};

pub(super) fn read(text: &str) -> ImportedStories {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let mut plan = PlanReader::default();
    let mut code_end = None;
    for (at, line) in lines.iter().enumerate() {
        code_end = code_end.filter(|end| at <= *end).or_else(|| code_block_end(&lines, at));
        plan.line(line, code_end.is_some());
    }
    let known: BTreeSet<String> = plan.stories.iter().filter_map(PlanStory::id).collect();
    let stories = plan.stories.into_iter().map(|story| story.finish(&known)).collect();
    let texts = [("project", plan.project), ("description", block(&plan.description))];
    ImportedStories {
        format: ImportFormat::Markdown,
        texts: texts.into_iter().filter(|(_, text)| !text.is_empty()).collect(),
        stories,
        left_out: 0,
    }
}

/// A line without the backslash at its start.
fn unescaped(line: &str) -> String {
    let rest = line.trim_start();
    match rest.strip_prefix('\\') {
        Some(text) => format!("{}{text}", &line[..line.len() - rest.len()]),
        None => line.to_owned(),
    }
}

#[derive(Default)]
struct PlanReader {
    project: String,
    description: Vec<String>,
    /// The headings above the line, except the title of the plan, and their levels.
    headings: Vec<(usize, String)>,
    /// The text below the last heading.
    section: Vec<String>,
    stories: Vec<PlanStory>,
    /// Lines belong to the last story.
    is_in_story: bool,
    /// The line before was not empty.
    is_in_paragraph: bool,
}

impl PlanReader {
    fn line(&mut self, line: &str, is_code: bool) {
        let (indent, rest) = indentation(line);
        let was_paragraph = std::mem::replace(&mut self.is_in_paragraph, !rest.is_empty());
        let heading = heading(rest).filter(|_| !is_code);
        let story = self.stories.last_mut().filter(|_| self.is_in_story);
        let is_field = !is_code && field_of(line).is_some();
        let story = story.filter(|story| is_field || belongs(story, indent, rest, heading));
        if let Some(story) = story {
            return story_line(story, line, is_code);
        }
        if let Some((level, text)) = heading {
            self.is_in_paragraph = false;
            return self.heading(level, text);
        }
        if let Some(found) = check_box(line).filter(|_| !is_code) {
            return self.begin(PlanStory {
                indent: Some(found.indent),
                content: found.content,
                title: found.text.to_owned(),
                is_checked: found.is_checked,
                ..PlanStory::default()
            });
        }
        let is_plain =
            !is_code && bullet(line).is_none() && rest.starts_with(|c: char| c.is_alphanumeric() || c == '`');
        let story = self.stories.last_mut().filter(|_| self.is_in_story);
        if let Some(story) = story.filter(|_| was_paragraph && is_plain) {
            return story.wrap(rest);
        }
        if std::mem::take(&mut self.is_in_story) {
            self.section.clear();
        }
        let is_title_text = self.headings.is_empty() && self.stories.is_empty();
        let lines = if is_title_text { &mut self.description } else { &mut self.section };
        lines.push(if is_code { line.to_owned() } else { unescaped(line) });
    }

    fn heading(&mut self, level: usize, text: &str) {
        self.section.clear();
        self.headings.retain(|(other, _)| *other < level);
        self.is_in_story = false;
        if has_id(text) {
            return self.begin(PlanStory { level, title: text.to_owned(), ..PlanStory::default() });
        }
        if level == 1 && self.project.is_empty() && self.stories.is_empty() && self.headings.is_empty() {
            text.clone_into(&mut self.project);
        } else {
            self.headings.push((level, text.to_owned()));
        }
    }

    fn begin(&mut self, mut story: PlanStory) {
        let headings: Vec<&str> = self.headings.iter().map(|(_, text)| text.as_str()).collect();
        let texts = [headings.join(" › "), block(&self.section)];
        story.section = texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
        self.stories.push(story);
        self.is_in_story = true;
    }
}

/// The level and the text of a heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    let is_heading = (1..=6).contains(&level) && text.starts_with([' ', '\t']);
    is_heading.then(|| (level, text.trim().trim_end_matches('#').trim_end()))
}

/// Whether a text has a story as a heading. Together with a check box, it is enough to recognize a plan.
pub(super) fn has_story_heading(text: &str) -> bool {
    text.lines().any(|line| heading(line.trim_end()).is_some_and(|(_, text)| has_id(text)))
}

/// Whether a heading begins a story.
fn has_id(heading: &str) -> bool {
    split_id(heading).is_some_and(|(id, _)| is_strong_id(id))
}

/// Whether a line is part of the story before it.
fn belongs(story: &PlanStory, indent: usize, rest: &str, heading: Option<(usize, &str)>) -> bool {
    match (story.indent, heading) {
        (Some(of_story), _) => rest.is_empty() || indent > of_story,
        (None, Some((level, text))) => level > story.level && !has_id(text),
        (None, None) => true,
    }
}

fn story_line(story: &mut PlanStory, line: &str, is_code: bool) {
    let (indent, rest) = indentation(line);
    let found = check_box(line).filter(|found| !is_code && !found.text.is_empty());
    if let Some(found) = found {
        return story.item(PlanItem {
            field: None,
            is_checked: found.is_checked,
            indent,
            content: found.content,
            lines: vec![found.text.to_owned()],
        });
    }
    let entry = bullet(line).zip(field_of(line)).filter(|_| !is_code);
    if let Some(((indent, content, _), (field, value))) = entry {
        let lines = vec![value.to_owned()];
        return story.item(PlanItem { field: Some(field), is_checked: false, indent, content, lines });
    }
    let columns = match story.open_item().map(|item| (item.indent, item.content)) {
        Some((of_item, content)) if rest.is_empty() || indent > of_item => content,
        _ => {
            story.is_in_item = false;
            story.content
        }
    };
    let text = unindented(line, columns);
    let text = if is_code { text.to_owned() } else { unescaped(text) };
    match story.open_item() {
        Some(item) => item.lines.push(text),
        None => story.description.push(text),
    }
}
