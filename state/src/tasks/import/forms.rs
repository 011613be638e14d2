//! Reads the forms of JSON: `prd.json`, task-master, beads and GitHub issues.
//!
//! Texts and numbers are read leniently, since the programs and the agents that write them differ. Ids become strings.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::markdown::split_boxes;
use super::stories::{ForeignStory, ImportFault, ImportFormat, ImportedStories};

/// The tag of task-master that it uses without a tag.
const DEFAULT_TAG: &str = "master";

/// Reads `prd.json`. It has the fields of a task list, most of them optional.
pub(super) fn prd(values: &[Value]) -> Result<ImportedStories, ImportFault> {
    let format = ImportFormat::Prd;
    let list = values.first().filter(|_| values.len() == 1);
    let stories = list.and_then(|list| list.get("userStories")?.as_array());
    let reason = "the field \"userStories\" is missing or is not an array";
    let (Some(list), Some(stories)) = (list, stories) else {
        return Err(ImportFault::other_format(format, reason));
    };
    let texts = ["project", "branchName", "description"].into_iter().map(|key| (key, text(list, key)));
    Ok(ImportedStories {
        format,
        texts: texts.filter(|(_, text)| !text.is_empty()).collect(),
        stories: stories.iter().map(prd_story).collect(),
        left_out: 0,
    })
}

fn prd_story(raw: &Value) -> ForeignStory {
    const READ: [&str; 9] = [
        "id",
        "title",
        "description",
        "acceptanceCriteria",
        "priority",
        "passes",
        "notes",
        "dependsOn",
        "dependencies",
    ];
    let mut fields = raw.as_object().cloned().unwrap_or_default();
    fields.retain(|field, _| !READ.contains(&field.as_str()));
    ForeignStory {
        id: raw.get("id").and_then(id_text),
        title: text(raw, "title"),
        description: text(raw, "description"),
        criteria: texts(raw.get("acceptanceCriteria")),
        priority: raw.get("priority").and_then(priority),
        is_done: raw.get("passes").and_then(Value::as_bool).unwrap_or_default(),
        notes: text(raw, "notes"),
        depends_on: [raw.get("dependsOn"), raw.get("dependencies")].into_iter().flat_map(ids).collect(),
        fields,
    }
}

/// Reads a list of task-master. Subtasks and the test strategy become criteria.
pub(super) fn task_master(values: &[Value], tag: Option<&str>) -> Result<ImportedStories, ImportFault> {
    let format = ImportFormat::TaskMaster;
    let reason = "no field \"tasks\" is an array";
    let lists = values.first().and_then(Value::as_object).filter(|_| values.len() == 1);
    let lists = lists.ok_or_else(|| ImportFault::other_format(format, reason))?;
    let tasks_of = |value: &Value| value.get("tasks").and_then(Value::as_array).cloned();
    let tags: Vec<String> =
        lists.iter().filter(|(_, value)| tasks_of(value).is_some()).map(|(tag, _)| tag.clone()).collect();
    let tasks = match (lists.get("tasks").and_then(Value::as_array), tag, &tags[..]) {
        (Some(tasks), None, _) => tasks.clone(),
        (None, None, []) => return Err(ImportFault::other_format(format, reason)),
        (None, None, [only]) => lists.get(only).and_then(tasks_of).unwrap_or_default(),
        (_, tag, _) => {
            let tag = tag.unwrap_or(DEFAULT_TAG);
            let tasks = lists.get(tag).and_then(tasks_of);
            tasks.ok_or_else(|| {
                let text = format!("it has no tag \"{tag}\"; its tags are {}", tags.join(", "));
                ImportFault::new(text, "to select one: --tag TAG")
            })?
        }
    };
    let (dropped, kept): (Vec<&Value>, Vec<&Value>) =
        tasks.iter().partition(|task| matches!(text(task, "status").as_str(), "cancelled" | "canceled"));
    let dropped_ids: BTreeSet<String> =
        dropped.iter().filter_map(|task| task.get("id").and_then(id_text)).collect();
    let stories = kept.iter().map(|task| task_of(task, &dropped_ids)).collect();
    let project = lists.get("meta").map(|meta| text(meta, "projectName")).unwrap_or_default();
    let texts = [("project", project)].into_iter().filter(|(_, text)| !text.is_empty()).collect();
    Ok(ImportedStories { format, texts, stories, left_out: dropped.len() })
}

fn task_of(task: &Value, dropped: &BTreeSet<String>) -> ForeignStory {
    let is_done = |task: &Value| matches!(text(task, "status").as_str(), "done" | "completed");
    let subtasks: Vec<&Value> =
        task.get("subtasks").and_then(Value::as_array).into_iter().flatten().collect();
    let criterion = |subtask: &&Value| join(&[text(subtask, "title"), text(subtask, "description")], ": ");
    let mut criteria: Vec<String> = subtasks.iter().map(criterion).filter(|text| !text.is_empty()).collect();
    criteria.extend(Some(text(task, "testStrategy")).filter(|text| !text.is_empty()));
    let id = task.get("id").and_then(id_text);
    // A dependency on the subtask 2.1 is one on its task.
    let parent = |id: String| id.split('.').next().unwrap_or_default().to_owned();
    let mut depends_on: Vec<String> = ids(task.get("dependencies")).into_iter().map(parent).collect();
    depends_on.retain(|needed| Some(needed) != id.as_ref() && !dropped.contains(needed));
    let mut story = ForeignStory {
        id,
        title: text(task, "title"),
        description: join(&[text(task, "description"), text(task, "details")], "\n\n"),
        criteria,
        priority: task.get("priority").and_then(priority),
        is_done: is_done(task),
        depends_on,
        ..ForeignStory::default()
    };
    let done: Vec<String> =
        subtasks.into_iter().filter(|subtask| is_done(subtask)).map(|it| text(it, "title")).collect();
    note_done_parts(&mut story, &done);
    story
}

/// Reads the issues of beads. Only dependencies that block count.
pub(super) fn beads(values: Vec<Value>) -> Result<ImportedStories, ImportFault> {
    let is_issue = |value: &Value| {
        value.get("_schema").is_none() && value.get("_type").is_none_or(|kind| kind.as_str() == Some("issue"))
    };
    let issues: Vec<Value> = values.into_iter().filter(is_issue).collect();
    let is_dropped = |issue: &Value| {
        text(issue, "status") == "tombstone"
            || issue.get("is_template").and_then(Value::as_bool) == Some(true)
    };
    let (dropped, kept): (Vec<Value>, Vec<Value>) = issues.into_iter().partition(is_dropped);
    let dropped_ids: BTreeSet<String> = dropped.iter().map(|issue| text(issue, "id")).collect();
    let story = |issue: &Value| {
        let mut story = bead(issue);
        story.depends_on.retain(|needed| !dropped_ids.contains(needed));
        story
    };
    let stories = kept.iter().map(story).collect();
    Ok(ImportedStories { format: ImportFormat::Beads, texts: vec![], stories, left_out: dropped.len() })
}

fn bead(issue: &Value) -> ForeignStory {
    let blocks = |dependency: &&Value| {
        matches!(text(dependency, "type").as_str(), "" | "blocks" | "conditional-blocks" | "waits-for")
    };
    let dependencies = issue.get("dependencies").and_then(Value::as_array);
    let design = text(issue, "design");
    let design = if design.is_empty() { design } else { format!("Design:\n{design}") };
    let mut story = ForeignStory {
        id: issue.get("id").and_then(id_text),
        title: text(issue, "title"),
        description: join(&[text(issue, "description"), design], "\n\n"),
        criteria: items(&text(issue, "acceptance_criteria")),
        priority: issue.get("priority").and_then(priority),
        is_done: text(issue, "status") == "closed",
        notes: text(issue, "notes"),
        depends_on: dependencies
            .into_iter()
            .flatten()
            .filter(blocks)
            .filter_map(|dependency| dependency.get("depends_on_id").and_then(id_text))
            .collect(),
        fields: labels(issue),
    };
    if story.is_done {
        story.note(&text(issue, "close_reason"));
    }
    story
}

/// Reads the issues of `gh issue list --json`, the oldest first. Check boxes in the body become criteria.
pub(super) fn github(mut values: Vec<Value>) -> Result<ImportedStories, ImportFault> {
    let format = ImportFormat::Github;
    if values.iter().any(|issue| issue.get("number").is_none() || issue.get("title").is_none()) {
        let reason = "an issue has no field \"number\" or \"title\"; run gh issue list --json number,title,body,labels,state";
        return Err(ImportFault::other_format(format, reason));
    }
    values.sort_by_key(|issue| issue.get("number").and_then(Value::as_u64));
    let is_dropped = |issue: &Value| text(issue, "stateReason").eq_ignore_ascii_case("NOT_PLANNED");
    let (dropped, kept): (Vec<Value>, Vec<Value>) = values.into_iter().partition(is_dropped);
    let numbers: BTreeSet<String> = kept.iter().filter_map(|issue| id_text(issue.get("number")?)).collect();
    let stories = kept.iter().map(|issue| github_issue(issue, &numbers)).collect();
    Ok(ImportedStories { format, texts: vec![], stories, left_out: dropped.len() })
}

fn github_issue(issue: &Value, numbers: &BTreeSet<String>) -> ForeignStory {
    let (description, boxes) = split_boxes(&text(issue, "body"));
    let fields = labels(issue);
    let words = fields.get("labels").and_then(Value::as_array).into_iter().flatten();
    let id = issue.get("number").and_then(id_text);
    let mut depends_on: Vec<String> = description.lines().flat_map(blocking_issues).collect();
    depends_on.retain(|needed| numbers.contains(needed) && Some(needed) != id.as_ref());
    let mut story = ForeignStory {
        priority: words.filter_map(label_priority).next().or(Some(MEDIUM_PRIORITY)),
        id,
        title: text(issue, "title"),
        description,
        criteria: boxes.iter().map(|(_, text)| text.clone()).collect(),
        is_done: text(issue, "state").eq_ignore_ascii_case("CLOSED"),
        depends_on,
        fields,
        ..ForeignStory::default()
    };
    let done: Vec<String> = boxes.into_iter().filter(|(done, _)| *done).map(|(_, text)| text).collect();
    note_done_parts(&mut story, &done);
    story
}

/// The numbers in a line such as `Depends on #12, #13` or `Blocked by: #12`. GitHub has no field for them.
fn blocking_issues(line: &str) -> Vec<String> {
    let line = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    let head: String = line.chars().take(10).collect::<String>().to_lowercase();
    if !head.starts_with("depends on") && !head.starts_with("blocked by") {
        return vec![];
    }
    let number = |part: &str| part.chars().take_while(char::is_ascii_digit).collect::<String>();
    line.split('#').skip(1).map(number).filter(|number| !number.is_empty()).collect()
}

/// Writes down which parts of an open story were done before the import. The criteria themselves have no state.
pub(super) fn note_done_parts(story: &mut ForeignStory, done: &[String]) {
    if !story.is_done && !done.is_empty() {
        story.note(&format!("done before the import: {}", done.join("; ")));
    }
}

/// A text field without line ends of Windows and without spaces at its ends; empty if it is missing.
fn text(value: &Value, field: &str) -> String {
    let text = value.get(field).and_then(Value::as_str).unwrap_or_default();
    text.replace("\r\n", "\n").trim().to_owned()
}

/// A field with one text or several.
fn texts(value: Option<&Value>) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match value {
        None | Some(Value::Null) => vec![],
        Some(Value::Array(values)) => values.iter().map(text).collect(),
        Some(value) => vec![text(value)],
    }
}

/// An id, which may be a number.
fn id_text(value: &Value) -> Option<String> {
    let id = match value {
        Value::String(id) => id.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    Some(id).filter(|id| !id.is_empty())
}

fn ids(value: Option<&Value>) -> Vec<String> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(id_text).collect()
}

/// The priority of an item without one, where priorities are words.
const MEDIUM_PRIORITY: f64 = 2.0;

/// A priority: a number, or a word.
pub(super) fn priority(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| priority_word(value.as_str()?))
}

/// The number of a word such as `high`, `P1` or `1.5`.
pub(super) fn priority_word(word: &str) -> Option<f64> {
    match word.trim().to_lowercase().as_str() {
        "critical" | "urgent" => Some(0.0),
        "high" => Some(1.0),
        "medium" | "normal" => Some(MEDIUM_PRIORITY),
        "low" => Some(3.0),
        word => word.strip_prefix('p').unwrap_or(word).parse().ok().filter(|number: &f64| number.is_finite()),
    }
}

/// The priority of a label such as `P1` or `priority: high`.
fn label_priority(label: &Value) -> Option<f64> {
    let label = label.as_str()?.to_lowercase();
    let is_p = label.strip_prefix('p').is_some_and(|digits| digits.len() == 1);
    match label.strip_prefix("priority") {
        Some(word) => priority_word(word.trim_start_matches([':', '/', '-', ' '])),
        None => priority_word(&label).filter(|_| is_p),
    }
}

/// The labels of an item: texts, or objects with a name.
fn labels(item: &Value) -> Map<String, Value> {
    let name = |label: &Value| label.as_str().or_else(|| label.get("name")?.as_str()).map(str::to_owned);
    let labels: Vec<String> =
        item.get("labels").and_then(Value::as_array).into_iter().flatten().filter_map(name).collect();
    let field = ("labels".to_owned(), labels.clone().into());
    Some(field).filter(|_| !labels.is_empty()).into_iter().collect()
}

/// The lines of a text as entries, without their bullets, numbers and check boxes.
fn items(text: &str) -> Vec<String> {
    let entry = |line: &str| {
        let line = line.trim().trim_start_matches(['-', '*', '+', '•']).trim_start();
        let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let line = match number.strip_prefix(['.', ')']) {
            Some(rest) if number.len() < line.len() && rest.starts_with(' ') => rest.trim_start(),
            _ => line,
        };
        let unchecked = ["[ ] ", "[x] ", "[X] "].iter().find_map(|head| line.strip_prefix(head));
        unchecked.unwrap_or(line).trim().to_owned()
    };
    text.lines().map(entry).filter(|entry| !entry.is_empty()).collect()
}

fn join(texts: &[String], between: &str) -> String {
    let texts: Vec<&str> = texts.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    texts.join(between)
}
