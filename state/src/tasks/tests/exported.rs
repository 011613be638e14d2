//! The export, and the import of what it wrote.

use super::import::{merge, read};
use super::*;

/// The stories that the import reads from an exported text.
fn imported(exported: &str) -> Vec<Story> {
    let read = read(exported, None, None).unwrap_or_else(|fault| panic!("{fault}\n{exported}"));
    let merged = merge(&text(&[]), read, false).unwrap_or_else(|fault| panic!("{fault}\n{exported}"));
    merged.list.stories().to_vec()
}

#[test]
fn exported_markdown_has_the_documented_form() {
    let one = with(
        story("US-001", true, Some("approved"), 2),
        json!({ "description": "Add the table.", "checks": ["cargo test"], "acceptanceCriteria": ["It exists", "It\nworks"] }),
    );
    let two = with(story("my id", false, None, 0), json!({ "dependsOn": ["US-001"], "notes": "" }));
    assert_eq!(
        list(&[one, two]).to_markdown(),
        "\
# shop

A shop

- [x] US-001: Title of US-001

  Add the table.

  - Priority: 1
  - Review: approved, 2 reviews
  - Notes: done
  - Check command: cargo test
  - [x] It exists
  - [x] It
    works

- [ ] Title of my id
  - Id: my id
  - Priority: 1
  - Depends on: US-001
  - [ ] It works

"
    );
}

#[test]
fn no_control_character_reaches_the_terminal() {
    let odd = "a\u{1b}[31mb\u{9b}2Jc\u{202e}d";
    let one = with(
        story("US-001", false, None, 0),
        json!({ "title": odd, "description": format!("{odd}\n\tcode"), "notes": odd, "acceptanceCriteria": [odd] }),
    );
    let list = list(&[one]);
    let dates = archive::LoopDates::default();
    let summary = archive::summary_text(Ok(&list), "2026-01-15", &dates);
    for text in [list.to_markdown(), list.to_dot(), list.to_mermaid(), list.to_prd(), summary] {
        let is_bad = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
        assert!(!text.contains(is_bad), "{text:?}");
    }
    assert!(list.to_markdown().contains("\n  \tcode\n"), "{}", list.to_markdown());
    let prd: Value = serde_json::from_str(&list.to_prd()).unwrap();
    assert_eq!(prd["userStories"][0]["title"], odd);
}

#[test]
fn prd_has_the_fields_of_its_program() {
    let one = with(story("US-001", true, Some("approved"), 2), json!({ "owner": "ann" }));
    let two = with(story("US-002", false, None, 0), json!({ "dependsOn": ["US-001"] }));
    let value: Value = serde_json::from_str(&list(&[one, two]).to_prd()).unwrap();
    let stories = value["userStories"].as_array().unwrap();
    let keys = |story: &Value| story.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let fields = ["id", "title", "description", "acceptanceCriteria", "priority", "passes", "notes"];
    assert_eq!(keys(&stories[0]), fields);
    assert_eq!(stories[1]["dependsOn"], json!(["US-001"]));
    assert_eq!(keys(&value), ["project", "branchName", "description", "userStories"]);
    assert_eq!(imported(&value.to_string())[0].review.review_status, Some(ReviewStatus::Approved));
}

#[test]
fn description_with_plan_syntax_survives_export_and_import() {
    for description in [
        "- [ ] not a story",
        "Text\n\n- Notes: none\n  - [x] deep\n# heading\n## US-7: heading",
        "```\n- [ ] code\n\n# code\n```\nafter",
        "```\nnot closed",
        "\\- escaped\n\\\\ twice",
        "- plain entry\n  with text\n1. [x] number",
        "~~~\n```\n~~~\n```",
    ] {
        let fields = json!({ "description": description, "notes": description, "acceptanceCriteria": [description, "b"] });
        let list = list(&[with(story("US-001", false, None, 0), fields), story("US-002", false, None, 0)]);
        assert_eq!(imported(&list.to_markdown()), list.stories(), "{}", list.to_markdown());
    }
}

/// Lines of text: those that the formats have a meaning for, and others.
fn lines(max: usize) -> impl Strategy<Value = String> {
    let heads =
        ["", "  ", "- ", "- [ ] ", "* [x] ", "# ", "```", "\\", "- Notes: ", "1. ", "**Id**: ", "> ", "\t- "];
    let line = (prop::sample::select(heads.to_vec()), "[a-zé日:*_`,#\\[\\] 0-9-]{0,12}")
        .prop_map(|(head, tail)| format!("{head}{tail}").trim_end().to_owned());
    prop::collection::vec(line, 1..max).prop_map(|lines| lines.join("\n").trim().to_owned())
}

fn stories() -> impl Strategy<Value = Vec<Value>> {
    let status =
        prop::sample::select(vec![None, Some("needs_review"), Some("changes_requested"), Some("approved")]);
    let texts = (lines(2), lines(6), lines(4), lines(3), prop::collection::vec(lines(3), 1..4), lines(2));
    let fields = (any::<bool>(), status, 0_u64..4, -9..9_i32, any::<bool>(), any::<bool>());
    let story = (texts, fields).prop_map(|(texts, fields)| {
        let (title, description, notes, feedback, criteria, check) = texts;
        let (passes, status, count, priority, has_odd_id, needs) = fields;
        let or = |text: String, other: &str| if text.is_empty() { other.to_owned() } else { text };
        let criteria: Vec<String> = criteria.into_iter().map(|text| or(text, "c")).collect();
        json!({
            "id": has_odd_id, "title": or(title, "t"), "description": description, "acceptanceCriteria": criteria,
            "priority": f64::from(priority) / 2.0, "passes": passes, "reviewStatus": status, "reviewCount": count,
            "reviewFeedback": feedback, "notes": or(notes, "n"), "dependsOn": needs, "checks": [or(check, "true")],
        })
    });
    prop::collection::vec(story, 1..5).prop_map(|mut stories| {
        let ids: Vec<String> =
            stories
                .iter()
                .zip(1..)
                .map(|(story, number): (_, u32)| {
                    if story["id"] == true { format!("my [id] {number}") } else { format!("US-{number:03}") }
                })
                .collect();
        for (place, story) in stories.iter_mut().enumerate() {
            let needs: Vec<&String> = ids.iter().take(place).filter(|_| story["dependsOn"] == true).collect();
            story["dependsOn"] = json!(needs);
            story["id"] = json!(ids[place]);
        }
        stories
    })
}

proptest! {
    #[test]
    fn exported_markdown_imports_to_the_same_stories(stories in stories(), description in lines(4)) {
        let mut value: Value = serde_json::from_str(&text(&stories)).unwrap();
        value["description"] = json!(description);
        let list = TaskList::parse(&value.to_string()).unwrap();
        let markdown = list.to_markdown();
        prop_assert_eq!(imported(&markdown), list.stories(), "{}", markdown);
        let with_windows_line_ends = markdown.replace('\n', "\r\n");
        prop_assert_eq!(imported(&with_windows_line_ends), list.stories());
    }

    #[test]
    fn no_text_stops_the_import(text in lines(20)) {
        if let Ok(read) = read(&text, None, None) {
            let _ = merge(&super::text(&[]), read, false);
        }
    }
}
