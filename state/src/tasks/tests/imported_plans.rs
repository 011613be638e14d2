//! The import of Markdown plans.

use super::import::{DONE_NOTE, merge, read};
use super::*;

fn plan(markdown: &str) -> TaskList {
    merge(&text(&[]), read(markdown, None, None).unwrap(), false).unwrap().list
}

fn story_of(markdown: &str) -> Story {
    plan(markdown).stories()[0].clone()
}

#[test]
fn checkboxes_are_stories_and_nested_checkboxes_their_criteria() {
    let list = plan(
        "\u{feff}# Größe\r\n\r\nA plan.\r\n\r\n## Backend\r\n\r\nIn Rust.\r\n\r\n- [ ] Add the table\r\n  - [ ] It exists\r\n    \
         - [x] It is fast\r\n- [x] Ünïcode 日本\r\n\r\n## Frontend\r\n\r\n* [X] Show it\r\n\r\n  As a table.\r\n1. [ ] Sort it\r\n",
    );
    let stories = list.stories();
    let titles: Vec<_> =
        stories.iter().map(|it| (it.id.as_str(), it.title.as_str(), it.state_word())).collect();
    assert_eq!(
        titles,
        [
            ("US-001", "Add the table", "open"),
            ("US-002", "Ünïcode 日本", "approved"),
            ("US-003", "Show it", "approved"),
            ("US-004", "Sort it", "open"),
        ]
    );
    assert_eq!(stories[0].criteria, ["It exists", "It is fast"]);
    assert_eq!(stories[0].notes, "done before the import: It is fast");
    assert_eq!(stories[0].description, "Backend\n\nIn Rust.");
    assert_eq!((stories[1].notes.as_str(), stories[1].review.review_count), (DONE_NOTE, 0));
    assert_eq!(stories[1].criteria, ["The change works as the title describes: Ünïcode 日本"]);
    assert_eq!(
        (stories[2].description.as_str(), stories[3].description.as_str()),
        ("As a table.", "Frontend")
    );
    assert!(stories.windows(2).all(|pair| pair[0].priority < pair[1].priority));
}

#[test]
fn ids_at_the_start_of_titles_are_recognized() {
    for (title, id, rest) in [
        ("US-001: Add it", "US-001", "Add it"),
        ("**US-001**: Add it", "US-001", "Add it"),
        ("**US-001: Add it**", "US-001", "Add it"),
        ("**US-001** Add it", "US-001", "Add it"),
        ("[API-2] Add it", "API-2", "Add it"),
        ("T001 [P] Add it", "T001", "[P] Add it"),
        ("2. Add it", "2", "Add it"),
        ("1.2. Add it", "1.2", "Add it"),
        ("1.2 Add it", "1.2", "Add it"),
        ("12 angry tests", "US-001", "12 angry tests"),
        ("#12: Add it", "#12", "Add it"),
        ("S3 upload", "US-001", "S3 upload"),
        ("Setup: add it", "US-001", "Setup: add it"),
        ("**Setup**: add it", "US-001", "**Setup**: add it"),
        ("Step 1: add it", "US-001", "Step 1: add it"),
        ("See https://x.org/1: add it", "US-001", "See https://x.org/1: add it"),
        ("v1.2 release", "US-001", "v1.2 release"),
    ] {
        let story = story_of(&format!("- [ ] {title}"));
        assert_eq!((story.id.as_str(), story.title.as_str()), (id, rest), "{title}");
    }
}

#[test]
fn entries_below_a_story_set_its_fields() {
    let list = plan(
        "- [ ] US-001: One\n- [ ] US-002: Two\n  - **Depends on:** US-001\n  - priority: high\n  - Notes: a\n    b\n  - Check: by eye\n",
    );
    let story = list.story("US-002").unwrap();
    assert_eq!((story.depends_on.as_slice(), story.priority), (["US-001".to_owned()].as_slice(), 1.0));
    assert_eq!((story.notes.as_str(), story.checks.len()), ("a\nb", 0));
    assert_eq!(story.description, "- Check: by eye");
    assert_eq!(story_of("- [~] Begun").state_word(), "open");
    let prose =
        story_of("- [ ] One\n  - Depends on: the API being ready\n  - Priority: soon\n  - Depends on: none");
    assert_eq!(prose.description, "Depends on: the API being ready\nPriority: soon");
    assert_eq!((prose.depends_on.len(), prose.priority), (0, 1.0));
}

#[test]
fn entries_below_a_checkbox_need_no_indentation() {
    let list = plan(
        "- [ ] US-001: One\n- Priority: 7\n- [ ] US-002: Two\n\n- Depends on: US-001\n- Notes: a\n  b\n\nText.\n- Priority: 9\n",
    );
    assert_eq!(list.story("US-001").unwrap().priority, 7.0);
    let story = list.story("US-002").unwrap();
    assert_eq!(
        (story.depends_on.as_slice(), story.notes.as_str()),
        (["US-001".to_owned()].as_slice(), "a\nb")
    );
    assert_ne!(story.priority, 9.0, "other text ends the story");
}

#[test]
fn headings_with_ids_need_no_checkbox() {
    let list = plan("# Shop\n\n### US-005: Pay\n\nBy card.\n\n- Depends on: US-006\n\n### US-006: Log in\n");
    let ids: Vec<_> = list.stories().iter().map(|it| (it.id.as_str(), it.title.as_str())).collect();
    assert_eq!(ids, [("US-005", "Pay"), ("US-006", "Log in")]);
    let story = list.story("US-005").unwrap();
    assert_eq!((story.description.as_str(), story.depends_on.len()), ("By card.", 1));
}

#[test]
fn headings_with_ids_are_stories() {
    let list = plan(
        "# Shop\n\n## User stories\n\n### US-001: Add it\n**Description:** As a user.\n\n#### Acceptance criteria\n- [x] Done\n- [x] Well\n\n\
         ### US-002: Show it\n- [x] One\n- [ ] Two\n\n## Later\n- [ ] Sort it\n",
    );
    let stories: Vec<_> =
        list.stories().iter().map(|it| (it.id.as_str(), it.state_word(), it.criteria.len())).collect();
    assert_eq!(stories, [("US-001", "approved", 2), ("US-002", "open", 2), ("US-003", "open", 1)]);
    assert!(list.story("US-001").unwrap().description.starts_with("**Description:** As a user."));
    assert_eq!(
        list.story("US-003").unwrap().description,
        "User stories › Later".trim_start_matches("User stories › ")
    );
}

#[test]
fn wrapped_lines_and_code_belong_to_their_entry() {
    let story = story_of(
        "- [ ] A long\ntitle\n  - [ ] a\n    criterion\nof three lines\n\n  ```\n  - [ ] code\n  ```\n",
    );
    assert_eq!(story.title, "A long title");
    assert_eq!(story.criteria, ["a\ncriterion of three lines"]);
    assert_eq!(story.description, "```\n- [ ] code\n```");
    assert_eq!(
        plan("- [ ] a\n\nBetween.\n\n```\n- [ ] code\n```\n- [ ] b").stories()[1].description,
        "Between.\n\n```\n- [ ] code\n```"
    );
}

#[test]
fn a_second_import_finds_its_stories_by_their_titles() {
    let read_plan = || read("- [ ] One\n- [ ] One\n- [ ] Two", None, None).unwrap();
    let list = plan("- [ ] Zero\n- [ ] One");
    let twice = merge(&list.to_text(), read_plan(), false).unwrap_err();
    assert_eq!(twice.to_string(), "the list already has US-002");
    let replaced = merge(&list.to_text(), read_plan(), true).unwrap();
    assert_eq!(
        (replaced.replaced, replaced.added),
        (vec!["US-002".into()], vec!["US-003".into(), "US-004".into()])
    );
}

#[test]
fn faults_of_a_plan_are_named() {
    for (markdown, message) in [
        ("", "it is empty"),
        (
            " \r\n\u{feff}",
            "its format is unknown: it is neither a known form of JSON nor Markdown with check boxes (- [ ] …) or headings such as ### US-001: Title",
        ),
        (
            "# Plan\n- one\n",
            "its format is unknown: it is neither a known form of JSON nor Markdown with check boxes (- [ ] …) or headings such as ### US-001: Title",
        ),
        ("- [ ] One\n- [ ] \n", "story number 2 has no title"),
    ] {
        assert_eq!(read(markdown, None, None).unwrap_err().to_string(), message, "{markdown:?}");
    }
    let twice = read("- [ ] A-1: One\n- [ ] A-1: Two", None, None).unwrap();
    assert_eq!(
        merge(&text(&[]), twice, true).unwrap_err().to_string(),
        "several of its stories have the id A-1"
    );
}
