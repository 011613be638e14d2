//! The check that reports every problem.

use super::check::check;
use super::*;

fn messages(text: &str, options: ReviewOptions) -> Vec<String> {
    check(text, options).1.into_iter().map(|problem| problem.message).collect()
}

#[test]
fn every_problem_is_reported_with_story_and_field() {
    let mut broken = story("US-001", true, None, 0);
    broken.as_object_mut().unwrap().remove("priority");
    broken["title"] = json!(7);
    let needs = with(story("US-002", false, None, 0), json!({ "dependsOn": ["US-009"] }));
    let text = text(&[broken, needs, json!("x"), story("US-002", false, Some("approved"), 9)]);
    let (list, problems) = check(&text, ReviewOptions::default());
    assert_eq!(list.unwrap().stories().len(), 3);
    let found: Vec<_> = problems.iter().map(|it| (it.story.as_deref(), it.field)).collect();
    assert_eq!(
        found,
        [
            (Some("US-001"), Some("title")),
            (Some("US-001"), Some("priority")),
            (None, None),
            (Some("US-002"), Some("id")),
            (Some("US-002"), Some("dependsOn")),
            (Some("US-001"), None),
            (Some("US-002"), None),
        ]
    );
    assert_eq!(problems[2].message, "userStories, story number 3 is not an object");
    assert_eq!(problems[4].message, "US-002 depends on US-009, which does not exist");
}

#[test]
fn a_list_needs_stories_and_a_story_a_title() {
    let options = ReviewOptions::default();
    assert_eq!(messages(&text(&[]), options), ["it has no stories"]);
    let untitled = with(story("US-001", false, None, 0), json!({ "title": " " }));
    let text = text(&[untitled, story("US-002", false, None, 0)]);
    assert_eq!(messages(&text, options), ["story US-001: the field \"title\" must not be empty"]);
    assert!(TaskList::parse(&text).is_ok(), "the Stop check accepts it");
}

#[test]
fn the_options_decide_about_the_review_fields() {
    let text = text(&[story("US-001", true, None, 0), story("US-002", false, Some("needs_review"), 3)]);
    let options = ReviewOptions::default();
    assert_eq!(messages(&text, options).len(), 1);
    assert_eq!(messages(&text, ReviewOptions { skip_review: true, ..options }), [""; 0]);
    assert_eq!(messages(&text, ReviewOptions { review_cap: 1, ..options }).len(), 2);
}

#[test]
fn broken_json_is_reported_with_line_and_column() {
    let (list, problems) = check("{\n  \"project\": }", ReviewOptions::default());
    assert_eq!((list, problems[0].place), (None, Some((2, 14))));
}
