//! A story of a Markdown plan: its lines are collected, then read.

use std::collections::BTreeSet;

use super::forms::{note_done_parts, priority_word};
use super::stories::ForeignStory;
use crate::tasks::list::{ReviewStatus, key};

#[derive(Default)]
pub(super) struct PlanStory {
    /// Lines with more indentation belong to the story. `None` for a heading.
    pub(super) indent: Option<usize>,
    /// The column of its text.
    pub(super) content: usize,
    /// The level of its heading.
    pub(super) level: usize,
    pub(super) title: String,
    pub(super) is_checked: bool,
    pub(super) description: Vec<String>,
    /// The headings and the text above the story.
    pub(super) section: String,
    pub(super) items: Vec<PlanItem>,
    /// Lines belong to the last item.
    pub(super) is_in_item: bool,
}

/// A criterion or a field of a story, with its lines.
pub(super) struct PlanItem {
    /// `None` for a criterion.
    pub(super) field: Option<&'static str>,
    pub(super) is_checked: bool,
    pub(super) indent: usize,
    /// The column of its text.
    pub(super) content: usize,
    pub(super) lines: Vec<String>,
}

impl PlanStory {
    pub(super) fn item(&mut self, item: PlanItem) {
        self.items.push(item);
        self.is_in_item = true;
    }

    pub(super) fn open_item(&mut self) -> Option<&mut PlanItem> {
        self.items.last_mut().filter(|_| self.is_in_item)
    }

    /// Adds a line that continues the one before it, although it is not indented.
    pub(super) fn wrap(&mut self, text: &str) {
        let has_description = !self.description.is_empty();
        let last = match self.open_item() {
            Some(item) => item.lines.last_mut(),
            None if has_description => self.description.last_mut(),
            None => Some(&mut self.title),
        };
        if let Some(line) = last {
            line.push(' ');
            line.push_str(text);
        }
    }

    fn values(&self, field: &str) -> impl Iterator<Item = String> {
        self.items.iter().filter(move |item| item.field == Some(field)).map(|item| block(&item.lines))
    }

    /// The id that the plan gives the story.
    pub(super) fn id(&self) -> Option<String> {
        let field = self.values("Id").next().filter(|id| !id.is_empty());
        field.or_else(|| split_id(&self.title).map(|(id, _)| id.to_owned()))
    }

    /// The story, with the ids of the plan. Values that cannot be read become part of the description.
    pub(super) fn finish(self, known: &BTreeSet<String>) -> ForeignStory {
        let has_id_field = self.values("Id").any(|id| !id.is_empty());
        let title =
            split_id(&self.title).filter(|_| !has_id_field).map_or(self.title.as_str(), |(_, title)| title);
        let mut story = ForeignStory { id: self.id(), title: title.to_owned(), ..ForeignStory::default() };
        let mut description = block(&self.description);
        let (mut done, mut checks, mut count) = (vec![], vec![], 0);
        for item in &self.items {
            let text = block(&item.lines);
            let mut is_read = true;
            match item.field {
                None => {
                    count += 1;
                    done.extend(Some(text.clone()).filter(|_| item.is_checked));
                    story.criteria.push(text.clone());
                }
                Some("Priority") => {
                    story.priority = priority_word(&text);
                    is_read = story.priority.is_some();
                }
                Some("Depends on") => is_read = depend(&mut story, &text, known),
                Some("Review") => is_read = review(&mut story, &text),
                Some("Feedback") => drop(story.fields.insert(key::FEEDBACK.to_owned(), text.as_str().into())),
                Some("Notes") => story.notes = text.clone(),
                Some("Check command") => checks.push(text.clone()),
                Some(_) => {}
            }
            if let (Some(field), false) = (item.field, is_read) {
                description = format!("{description}\n{field}: {text}").trim_start().to_owned();
            }
        }
        if !checks.is_empty() {
            story.fields.insert(key::CHECKS.to_owned(), checks.into());
        }
        let is_all_done = self.indent.is_none() && count > 0 && done.len() == count;
        story.is_done = self.is_checked || is_all_done;
        story.description = if description.is_empty() { self.section } else { description };
        note_done_parts(&mut story, &done);
        story
    }
}

/// Lines without the empty ones at both ends.
pub(super) fn block(lines: &[String]) -> String {
    lines.join("\n").trim_matches('\n').to_owned()
}

/// Reads ids, separated by commas. False if it is prose.
fn depend(story: &mut ForeignStory, text: &str, known: &BTreeSet<String>) -> bool {
    let ids = text.split(',').map(|id| id.trim().trim_matches('`').trim_end_matches('.'));
    let id = |id: &str| {
        let is_known = known.contains(id);
        let plain = if is_known { id } else { id.trim_start_matches('#') };
        (is_known || !plain.contains(char::is_whitespace)).then(|| plain.to_owned())
    };
    let is_id =
        |id: &&str| !id.is_empty() && !matches!(id.to_lowercase().as_str(), "none" | "-" | "nothing" | "n/a");
    let ids = ids.filter(is_id).map(id).collect::<Option<Vec<String>>>();
    let is_read = ids.is_some();
    story.depends_on.extend(ids.into_iter().flatten());
    is_read
}

/// Reads a state and the number of reviews: `approved, 2 reviews`.
fn review(story: &mut ForeignStory, text: &str) -> bool {
    let (word, count) = text.split_once(',').unwrap_or((text, "0 reviews"));
    let status = match word.trim() {
        "open" | "done" => None,
        word => match ReviewStatus::of_word(word) {
            Some(status) => Some(status.word()),
            None => return false,
        },
    };
    let Ok(count) = count.trim().split(' ').next().unwrap_or_default().parse::<u64>() else { return false };
    story.fields.insert(key::REVIEW_STATUS.to_owned(), status.into());
    story.fields.insert(key::REVIEW_COUNT.to_owned(), count.into());
    true
}

/// The longest id that a title can begin with.
const MAX_ID_CHARS: usize = 40;

/// Whether the text can be an id at the start of a title: one word with a digit.
pub(in crate::tasks) fn is_plain_id(text: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "-_.#/".contains(c);
    text.chars().all(is_part)
        && text.contains(|c: char| c.is_ascii_digit())
        && text.chars().count() <= MAX_ID_CHARS
}

/// Whether a word is an id also without a colon after it: `US-001`, `T001`, but not `S3`.
pub(super) fn is_strong_id(text: &str) -> bool {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    is_plain_id(text)
        && text.starts_with(|c: char| c.is_alphabetic())
        && (digits >= 3 || (digits > 0 && text.contains(['-', '_'])))
}

/// The id and the rest of a title: `US-001: Title`, `**US-001** Title`, `[US-001] Title`, `T001 Title`, `1. Title`,
/// `1.2 Title`.
pub(in crate::tasks) fn split_id(title: &str) -> Option<(&str, &str)> {
    const ID_MARKS: [char; 4] = ['*', '`', '[', ']'];
    if let Some((before, after)) = title.split_once(':') {
        let (id, after) = (before.trim_matches(ID_MARKS), after.strip_prefix("**").unwrap_or(after));
        if is_plain_id(id) && (after.is_empty() || after.starts_with(' ')) {
            let is_bold = before.starts_with("**") && !before.ends_with("**");
            let after = if is_bold { after.trim_end_matches("**") } else { after };
            return Some((id, after.trim()));
        }
    }
    let (word, rest) = title.split_once(' ')?;
    let id = word.trim_matches(ID_MARKS);
    let is_marked = id.len() < word.len();
    let is_upper =
        !id.contains(|c: char| c.is_lowercase()) && id.chars().filter(char::is_ascii_digit).count() >= 3;
    let number = word.strip_suffix(['.', ')']).unwrap_or(if word.contains('.') { word } else { "" });
    if is_strong_id(id) && (is_marked || is_upper) {
        Some((id, rest.trim_start_matches([' ', '-', '–', '—'])))
    } else if number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || c == '.')
    {
        Some((number, rest.trim()))
    } else {
        None
    }
}
