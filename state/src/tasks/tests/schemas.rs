//! Check 1: the schema.

use super::*;

#[test]
fn a_valid_list_is_read() {
    let list = list(&[with(
        story("US-001", false, None, 0),
        json!({ "dependsOn": ["US-002"], "checks": ["true"] }),
    )]);
    assert_eq!(list.text("branchName"), "ralph/shop");
    let story = list.story("US-001").unwrap();
    assert_eq!(story.depends_on, ["US-002"]);
    assert_eq!(story.checks, ["true"]);
    assert_eq!(story.review, ReviewState::default());
}

#[test]
fn broken_json_has_its_line_and_column() {
    for (text, line, column) in [
        ("{\n  \"project\": \"x\",\n  \"userStories\": [\n}", 4, 1),
        ("{\"project\": 1,}", 1, 15),
        ("", 1, 0),
    ] {
        let error = TaskList::parse(text).unwrap_err().to_string();
        assert!(error.contains(&format!("at line {line}, column {column}")), "{text:?}: {error}");
    }
    let marked = format!("\u{feff}{}", text(&[story("US-001", false, None, 0)]));
    assert!(TaskList::parse(&marked).is_ok(), "a byte order mark is ignored");
    assert_eq!(TaskList::parse("[]").unwrap_err().to_string(), "it is not a JSON object");
}

#[test]
fn every_fault_of_a_list_names_the_field() {
    let whole: Value = serde_json::from_str(&text(&[])).unwrap();
    for (field, value, message) in [
        ("project", Value::Null, "the field \"project\" must be a string"),
        ("branchName", json!(1), "the field \"branchName\" must be a string"),
        ("description", json!([]), "the field \"description\" must be a string"),
        ("userStories", json!({}), "the field \"userStories\" must be an array"),
        (
            "verifyCommands",
            json!([1]),
            "the field \"verifyCommands\" must be an array of strings that are not empty",
        ),
        ("userStories", json!(["x"]), "userStories, story number 1 is not an object"),
    ] {
        let mut list = whole.clone();
        list[field] = value;
        assert_eq!(TaskList::parse(&list.to_string()).unwrap_err().to_string(), message);
    }
    for field in ["project", "branchName", "description", "userStories"] {
        let mut list = whole.clone();
        list.as_object_mut().unwrap().remove(field);
        let error = TaskList::parse(&list.to_string()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("the field \"{field}\" ")), "{error}");
    }
}

#[test]
fn every_fault_of_a_story_names_story_and_field() {
    for (field, value, rule) in [
        ("id", json!(""), "must be a string that is not empty"),
        ("id", json!(7), "must be a string that is not empty"),
        ("title", json!(null), "must be a string"),
        ("passes", json!("true"), "must be true or false"),
        ("priority", json!("1"), "must be a number"),
        ("acceptanceCriteria", json!([]), "must be an array with at least one entry"),
        ("acceptanceCriteria", json!("works"), "must be an array with at least one entry"),
        (
            "reviewStatus",
            json!("Done!"),
            "must be null, \"needs_review\", \"changes_requested\" or \"approved\"",
        ),
        (
            "reviewStatus",
            json!(false),
            "must be null, \"needs_review\", \"changes_requested\" or \"approved\"",
        ),
        ("reviewCount", json!(-1), "must be an integer, 0 or more"),
        ("reviewCount", json!(1.5), "must be an integer, 0 or more"),
        ("reviewFeedback", json!(null), "must be a string"),
        ("notes", json!(3), "must be a string"),
        ("dependsOn", json!("US-002"), "must be an array of strings that are not empty"),
        ("checks", json!([""]), "must be an array of strings that are not empty"),
    ] {
        let mut broken = story("US-001", false, None, 0);
        broken[field] = value;
        let error = TaskList::parse(&text(&[broken])).unwrap_err().to_string();
        let label = if field == "id" { "userStories, story number 1" } else { "story US-001" };
        assert_eq!(error, format!("{label}: the field \"{field}\" {rule}"));
    }
    for field in [
        "id",
        "title",
        "passes",
        "priority",
        "acceptanceCriteria",
        "reviewStatus",
        "reviewCount",
        "reviewFeedback",
    ] {
        let mut broken = story("US-001", false, None, 0);
        broken.as_object_mut().unwrap().remove(field);
        let error = TaskList::parse(&text(&[broken])).unwrap_err().to_string();
        assert!(error.ends_with("is missing") && error.contains(field), "{error}");
    }
}

#[test]
fn ids_are_unique_and_done_stories_have_notes() {
    let twice = text(&[story("US-001", false, None, 0), story("US-001", false, None, 0)]);
    let error = TaskList::parse(&twice).unwrap_err().to_string();
    assert_eq!(error, "two stories have the id \"US-001\"; ids must be unique");
    let no_notes = text(&[with(story("US-001", true, Some("approved"), 1), json!({ "notes": " " }))]);
    let error = TaskList::parse(&no_notes).unwrap_err().to_string();
    assert!(error.starts_with("story US-001 has passes=true but an empty \"notes\" field"), "{error}");
}

#[test]
fn unknown_fields_and_the_order_of_fields_survive_a_rewrite() {
    let text = r#"{
  "zeta": 1,
  "project": "p",
  "branchName": "b",
  "description": "",
  "userStories": [
    {
      "owner": "ann",
      "id": "1",
      "title": "t",
      "reviewFeedback": "",
      "reviewCount": 0,
      "reviewStatus": null,
      "acceptanceCriteria": [
        "x"
      ],
      "priority": 1.5,
      "passes": false
    }
  ],
  "alpha": null
}
"#;
    let mut list = TaskList::parse(text).unwrap();
    assert_eq!(list.to_text(), text);
    let review = ReviewState { review_status: Some(ReviewStatus::NeedsReview), ..ReviewState::default() };
    list.set_review("1", review, "");
    assert_eq!(list.to_text(), text.replace("\"reviewStatus\": null", "\"reviewStatus\": \"needs_review\""));
    assert_eq!(list.story("1").unwrap().review, review);
}
