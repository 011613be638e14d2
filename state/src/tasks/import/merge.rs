//! Adds imported stories to a list.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::stories::{ForeignStory, ImportFault, ImportedStories};
use crate::tasks::list::{TaskList, key};
use crate::tasks::selection::DependencyFault;
use crate::words::unique;

/// A list with the imported stories.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedList {
    /// The list.
    pub list: TaskList,
    /// The ids of the stories that are new.
    pub added: Vec<String>,
    /// The ids of the stories that were replaced.
    pub replaced: Vec<String>,
    /// The number of stories whose only criterion comes from the title.
    pub derived: usize,
    /// The number of commands that the imported stories have as checks.
    pub checks: usize,
}

/// Adds stories to the list of a file. New ones come last; with `replace`, one with a known id replaces the story. A
/// story without an id has that of the story with the same title, or the next free one. The blank story of a new list
/// is left out. Refuses an id that the list has already, and a result that would not be valid.
pub fn merge(target: &str, imported: ImportedStories, replace: bool) -> Result<MergedList, ImportFault> {
    let list = target_list(target)?;
    let faults_before = list.dependency_faults();
    let places = list.places();
    let derived = imported.stories.iter().filter(|story| story.criteria.is_empty()).count();
    let checks_of = |story: &ForeignStory| story.fields.get(key::CHECKS)?.as_array().map(Vec::len);
    let checks = imported.stories.iter().filter_map(checks_of).sum();
    let (texts, stories) = (imported.texts, imported.stories);
    let ids = assign_ids(&list, &stories)?;
    let (replaced, added): (Vec<String>, Vec<String>) =
        ids.iter().cloned().partition(|id| places.contains_key(id.as_str()));
    if !replace && !replaced.is_empty() {
        let text = format!("the list already has {}", replaced.join(", "));
        let hint = "to replace these stories and the state of their reviews: --replace";
        return Err(ImportFault::new(text, hint));
    }
    let mut value = list.value().clone();
    for (key, text) in texts {
        let is_blank = value.get(key).and_then(Value::as_str).is_none_or(|text| text.trim().is_empty());
        if is_blank {
            value.insert(key.to_owned(), text.into());
        }
    }
    if let Some(raw_stories) = value.get_mut(key::STORIES).and_then(Value::as_array_mut) {
        let count = raw_stories.len();
        for ((position, story), id) in (count + 1..).zip(stories).zip(ids) {
            let place = places.get(id.as_str());
            let raw = Value::Object(story.into_raw(id, position));
            match place {
                Some(place) => raw_stories[*place] = raw,
                None => raw_stories.push(raw),
            }
        }
    }
    let list =
        TaskList::parse(&Value::Object(value).to_string()).map_err(|fault| ImportFault::new(fault, None))?;
    let mut faults = list.dependency_faults();
    faults.retain(|fault| !faults_before.contains(fault));
    if !faults.is_empty() {
        let text: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let hint = match faults[..] {
            [DependencyFault::Cycle(_)] => "remove one of these dependencies from the input",
            _ => "add the missing stories to the input, or remove the dependency from it",
        };
        return Err(ImportFault::new(text.join("; "), hint));
    }
    Ok(MergedList { list, added, replaced, derived, checks })
}

fn target_list(text: &str) -> Result<TaskList, ImportFault> {
    TaskList::parse(text).or_else(|fault| {
        let without_blank = || {
            let mut value: Map<String, Value> = serde_json::from_str(text).ok()?;
            value.get_mut(key::STORIES)?.as_array_mut()?.retain(|story| !is_blank(story));
            TaskList::parse(&Value::Object(value).to_string()).ok()
        };
        without_blank().ok_or_else(|| ImportFault::in_target(&fault))
    })
}

/// Whether a story is the placeholder of a new list.
fn is_blank(story: &Value) -> bool {
    let is_empty = |field| match story.get(field) {
        Some(Value::String(text)) => text.trim().is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        _ => true,
    };
    ["title", "description", "acceptanceCriteria", key::NOTES].into_iter().all(is_empty)
        && story.get(key::PASSES) == Some(&Value::Bool(false))
}

/// The ids of the stories, in their order.
fn assign_ids(list: &TaskList, stories: &[ForeignStory]) -> Result<Vec<String>, ImportFault> {
    let mut taken: BTreeSet<&str> = BTreeSet::new();
    let given = stories.iter().filter_map(|story| story.id.as_deref());
    let twice = unique(given.filter(|id| !taken.insert(id)));
    if !twice.is_empty() {
        let text = format!("several of its stories have the id {}", twice.join(", "));
        return Err(ImportFault::new(text, "give each story an id of its own"));
    }
    let mut by_title: BTreeMap<&str, &str> =
        list.stories().iter().rev().map(|story| (story.title.as_str(), story.id.as_str())).collect();
    by_title.retain(|_, id| !taken.contains(id));
    taken.extend(list.stories().iter().map(|story| story.id.as_str()));
    let mut number = 0;
    let mut next = || {
        loop {
            number += 1;
            let id = format!("US-{number:03}");
            if !taken.contains(id.as_str()) {
                return id;
            }
        }
    };
    let id_of = |story: &ForeignStory| match &story.id {
        Some(id) => id.clone(),
        None => by_title.remove(story.title.as_str()).map_or_else(&mut next, str::to_owned),
    };
    Ok(stories.iter().map(id_of).collect())
}
