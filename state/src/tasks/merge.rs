//! Merges the files of a task list when stories that ran at the same time are put together.

use super::TaskList;
use super::list::key;

/// The list of the integration branch with a story as its own loop left it. Everything else is from the integration
/// branch, also the story's checks and dependencies. Stories that the loop added are appended.
pub fn with_story(own: &TaskList, of_loop: &TaskList, id: &str) -> TaskList {
    let mut list = own.clone();
    if list.story(id).is_none() {
        return list;
    }
    list.restore_story(id, of_loop);
    for field in [key::CHECKS, key::DEPENDS_ON] {
        list.restore_field(id, field, own);
    }
    let new = || of_loop.stories().iter().filter(|story| own.story(&story.id).is_none());
    let mut longer = list.clone();
    new().for_each(|story| longer.append_story(&story.id, of_loop));
    if longer.dependency_faults().len() > list.dependency_faults().len() { list } else { longer }
}

/// Joins two versions of a file to which both sides appended lines: `ours`, then the text of `theirs` after `base`. If
/// `theirs` does not start with `base`: its lines that are in neither `base` nor `ours`.
pub fn union(base: &str, ours: &str, theirs: &str) -> String {
    let new = match theirs.strip_prefix(base) {
        Some(new) => new.to_owned(),
        None => {
            let is_known = |line: &str| base.lines().chain(ours.lines()).any(|known| known == line);
            let lines = theirs.lines().filter(|line| !is_known(line));
            lines.map(|line| format!("{line}\n")).collect()
        }
    };
    let gap = if ours.is_empty() || ours.ends_with('\n') { "" } else { "\n" };
    format!("{ours}{gap}{new}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::tasks::ReviewStatus;

    fn story(id: &str, more: &Value) -> Value {
        let mut story = json!({
            "id": id, "title": id, "description": "", "acceptanceCriteria": ["x"], "priority": 1, "passes": false,
            "reviewStatus": null, "reviewCount": 0, "reviewFeedback": "", "notes": "", "dependsOn": [],
        });
        story.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        story
    }

    fn list(stories: &[Value]) -> TaskList {
        let value = json!({ "project": "p", "branchName": "b", "description": "", "verifyCommands": [],
            "userStories": stories });
        TaskList::parse(&value.to_string()).unwrap()
    }

    #[test]
    fn only_the_fields_of_the_story_come_from_its_loop() {
        let approved = json!({ "passes": true, "reviewStatus": "approved", "reviewCount": 1, "notes": "n",
            "checks": ["true"], "dependsOn": [], "mood": "good" });
        let own =
            list(&[story("A", &json!({})), story("B", &json!({ "checks": ["make"], "dependsOn": ["A"] }))]);
        let of_loop = list(&[story("A", &approved), story("B", &approved), story("C", &json!({}))]);
        let merged = with_story(&own, &of_loop, "B");
        let ids: Vec<&str> = merged.stories().iter().map(|story| story.id.as_str()).collect();
        assert_eq!(ids, ["A", "B", "C"]);
        assert_eq!(merged.story("A"), own.story("A"));
        let story = merged.story("B").unwrap();
        assert_eq!(story.review.review_status, Some(ReviewStatus::Approved));
        assert_eq!((story.checks.join(""), story.depends_on.join("")), ("make".into(), "A".into()));
        assert_eq!(merged.raw("B").unwrap()["mood"], "good");
        TaskList::parse(&merged.to_text()).unwrap();
    }

    #[test]
    fn a_new_story_with_a_fault_is_left_out() {
        let own = list(&[story("A", &json!({}))]);
        let of_loop = list(&[story("A", &json!({})), story("B", &json!({ "dependsOn": ["Z"] }))]);
        assert_eq!(with_story(&own, &of_loop, "A"), own);
    }

    #[test]
    fn appended_lines_of_both_sides_stay() {
        for (base, ours, theirs, joined) in [
            ("a\n", "a\nb\n", "a\nc\n", "a\nb\nc\n"),
            ("", "b", "c\n", "b\nc\n"),
            ("a\n", "a\nb\n", "new head\na\nc\n", "a\nb\nnew head\nc\n"),
            ("", "", "", ""),
        ] {
            assert_eq!(union(base, ours, theirs), joined);
        }
    }
}
