//! The import of other programs' JSON, and its result in a list.

use super::import::{DONE_NOTE, ImportFault, ImportFormat, MergedList, merge, read};
use super::*;

fn import_into(target: &str, input: &str) -> Result<MergedList, ImportFault> {
    merge(target, read(input, None, None)?, false)
}

fn imported(input: &Value) -> TaskList {
    import_into(&text(&[]), &input.to_string()).unwrap().list
}

#[test]
fn the_format_is_detected() {
    for (input, format) in [
        (r#"{"userStories":[{"id":1,"title":"a"}]}"#, ImportFormat::Prd),
        (r#"{"tasks":[{"id":1,"title":"a"}]}"#, ImportFormat::TaskMaster),
        (r#"{"master":{"tasks":[{"id":1,"title":"a"}],"metadata":{}}}"#, ImportFormat::TaskMaster),
        ("{\"id\":\"bd-1\",\"title\":\"a\"}\n\n{\"id\":\"bd-2\",\"title\":\"b\"}\n", ImportFormat::Beads),
        ("{\"_schema\":\"x\"}\n{\"id\":\"bd-2\",\"title\":\"b\"}", ImportFormat::Beads),
        (r#"[{"id":"bd-1","title":"a","issue_type":"task"}]"#, ImportFormat::Beads),
        (r#"[{"number":1,"title":"a","body":"","state":"OPEN"}]"#, ImportFormat::Github),
        ("[Spec](x.md)\n\n- [ ] a", ImportFormat::Markdown),
        ("- [ ] {\"tasks\": []}", ImportFormat::Markdown),
    ] {
        assert_eq!(read(input, None, None).unwrap().format, format, "{input}");
    }
}

#[test]
fn faults_of_json_are_named() {
    for (input, format, message) in [
        ("{\n  \"tasks\": [}", None, "it is not valid JSON: expected value at line 2, column 13"),
        (
            "{\"id\":\"a\",\"title\":\"a\"}\n{\"id\":",
            None,
            "it is not valid JSON: EOF while parsing a value at line 2, column 6",
        ),
        ("[]", None, "it has no stories"),
        ("{\"tasks\":[]}", None, "it has no stories"),
        (
            "{\"a\":1}",
            None,
            "its format is unknown: it is neither a known form of JSON nor Markdown with check boxes (- [ ] …) or headings such as ### US-001: Title",
        ),
        (
            "[1]",
            None,
            "its format is unknown: it is neither a known form of JSON nor Markdown with check boxes (- [ ] …) or headings such as ### US-001: Title",
        ),
        ("{\"tasks\":[{\"id\":1}]}", None, "story number 1 has no title"),
        (
            "{\"a\":1}",
            Some(ImportFormat::Prd),
            "it is not a list in the format prd.json: the field \"userStories\" is missing or is not an array",
        ),
        (
            "{\"a\":1}",
            Some(ImportFormat::TaskMaster),
            "it is not a list in the format task-master: no field \"tasks\" is an array",
        ),
        ("plain", Some(ImportFormat::Beads), "it is not valid JSON: expected value at line 1, column 1"),
        ("{\"x\":{\"tasks\":[]},\"y\":{\"tasks\":[]}}", None, "it has no tag \"master\"; its tags are x, y"),
    ] {
        assert_eq!(read(input, format, None).unwrap_err().to_string(), message, "{input}");
    }
}

#[test]
fn prd_stories_get_their_review_fields() {
    let list = imported(&json!({
        "project": "other", "branchName": "b", "userStories": [
            { "id": 1, "title": "One", "acceptanceCriteria": ["a"], "priority": 2, "passes": true, "notes": "", "owner": "ann" },
            { "id": "US-2", "title": "Two", "acceptanceCriteria": "b", "dependencies": [1], "dependsOn": ["1"] },
            { "id": "US-3", "title": "Three", "passes": true, "notes": "n", "reviewStatus": "approved", "reviewCount": 2 },
        ],
    }));
    assert_eq!(list.text("project"), "shop", "the list has its own");
    let [one, two, three] = list.stories() else { panic!() };
    assert_eq!((one.id.as_str(), one.state_word(), one.notes.as_str()), ("1", "approved", DONE_NOTE));
    assert_eq!((two.criteria.as_slice(), two.priority), (["b".to_owned()].as_slice(), 2.0));
    assert_eq!(two.depends_on, ["1"]);
    let checks = json!({ "userStories": [{ "title": "One", "checks": ["true", "make"] }] }).to_string();
    assert_eq!(import_into(&text(&[]), &checks).unwrap().checks, 2);
    assert_eq!((three.notes.as_str(), three.review.review_count), ("n", 2));
    assert!(list.to_text().contains("\"owner\": \"ann\""));
}

#[test]
fn task_master_subtasks_become_criteria() {
    let tasks = json!([
        { "id": 1, "title": "One", "status": "done", "priority": "high", "dependencies": [] },
        { "id": 2, "title": "Two", "description": "d", "details": "more", "testStrategy": "Run it", "status": "pending",
          "priority": "low", "dependencies": [1, "1.2", "2.1", 3], "subtasks": [
            { "id": 1, "title": "Part", "description": "of it", "status": "done" }, { "id": 2, "title": "Rest" } ] },
        { "id": 3, "title": "Never", "status": "cancelled" },
    ]);
    let list = imported(&json!({ "meta": { "projectName": "p" }, "tasks": tasks }));
    let [one, two] = list.stories() else { panic!() };
    assert_eq!((one.state_word(), one.priority), ("approved", 1.0));
    assert_eq!(two.criteria, ["Part: of it", "Rest", "Run it"]);
    assert_eq!((two.description.as_str(), two.notes.as_str()), ("d\n\nmore", "done before the import: Part"));
    assert_eq!((two.depends_on.as_slice(), two.priority), (["1".to_owned()].as_slice(), 3.0));
    let tagged = json!({ "master": { "tasks": tasks }, "next": { "tasks": [{ "id": 9, "title": "Nine" }] } })
        .to_string();
    assert_eq!(import_into(&text(&[]), &tagged).unwrap().list.stories(), list.stories());
    let next = merge(&text(&[]), read(&tagged, None, Some("next")).unwrap(), false).unwrap();
    assert_eq!((next.added, next.derived), (vec!["9".to_owned()], 1));
}

#[test]
fn beads_keep_the_dependencies_that_block() {
    let needs = |id: &str, kind: &str| json!({ "issue_id": "bd-2", "depends_on_id": id, "type": kind });
    let lines = [
        json!({ "_type": "memory", "key": "k", "value": "v" }),
        json!({ "id": "bd-1", "title": "One", "status": "closed", "priority": 0, "close_reason": "Merged" }),
        json!({ "_type": "issue", "id": "bd-2", "title": "Two", "description": "d", "design": "x", "status": "open", "priority": 1,
            "acceptance_criteria": "- It works\n2. [ ] It is fast\n\n3D is shown", "labels": ["ui"],
            "dependencies": [needs("bd-1", "blocks"), needs("bd-9", "related"), needs("bd-3", "blocks")] }),
        json!({ "id": "bd-3", "title": "Gone", "status": "tombstone" }),
    ];
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let read = read(&lines.join("\n"), None, None).unwrap();
    assert_eq!(read.left_out, 1);
    let list = merge(&text(&[]), read, false).unwrap().list;
    let [one, two] = list.stories() else { panic!() };
    assert_eq!((one.state_word(), one.notes.as_str()), ("approved", "Merged\nimported as done"));
    assert_eq!(two.criteria, ["It works", "It is fast", "3D is shown"]);
    assert_eq!(
        (two.description.as_str(), two.depends_on.as_slice()),
        ("d\n\nDesign:\nx", ["bd-1".to_owned()].as_slice())
    );
    assert!(list.to_text().contains("\"ui\""));
}

#[test]
fn issues_are_sorted_by_age_with_the_checkboxes_of_their_body() {
    let list = imported(&json!([
        { "number": 12, "title": "Two", "body": "Text\r\n- [ ] a\r\n- [x] b\r\n\r\n**Depends on:** #7, #99\r\nBlocked by #12", "state": "OPEN",
          "labels": [{ "name": "bug" }, { "name": "priority: high" }] },
        { "number": 9, "title": "No", "body": "", "state": "CLOSED", "stateReason": "NOT_PLANNED" },
        { "number": 7, "title": "One", "body": null, "state": "CLOSED" },
    ]));
    let [one, two] = list.stories() else { panic!() };
    assert_eq!((one.id.as_str(), one.state_word(), one.priority), ("7", "approved", 2.0));
    assert_eq!((two.criteria.join(","), two.priority), ("a,b".to_owned(), 1.0));
    assert_eq!(
        (two.depends_on.as_slice(), two.notes.as_str()),
        (["7".to_owned()].as_slice(), "done before the import: b")
    );
    assert!(two.description.starts_with("Text\n\n**Depends on"), "{}", two.description);
}

#[test]
fn imported_stories_are_added_last_and_existing_ones_kept() {
    let target = text(&[
        story("US-001", false, None, 0),
        with(story("US-002", true, Some("approved"), 1), json!({ "owner": "ann" })),
    ]);
    let input =
        json!({ "userStories": [{ "id": "US-001", "title": "New" }, { "title": "Free" }] }).to_string();
    let fault = import_into(&target, &input).unwrap_err();
    assert_eq!(fault.to_string(), "the list already has US-001");
    let merged = merge(&target, read(&input, None, None).unwrap(), true).unwrap();
    let found: Vec<_> = merged.list.stories().iter().map(|it| (it.id.as_str(), it.title.as_str())).collect();
    assert_eq!(found, [("US-001", "New"), ("US-002", "Title of US-002"), ("US-003", "Free")]);
    assert!(merged.list.to_text().contains("\"owner\": \"ann\""));
    assert_eq!(
        (merged.added, merged.replaced, merged.derived),
        (vec!["US-003".to_owned()], vec!["US-001".to_owned()], 2)
    );
}

#[test]
fn the_result_is_a_valid_list() {
    let needs = |needs: &str| {
        json!({ "userStories": [{ "id": "a", "title": "A", "dependsOn": [needs] }] }).to_string()
    };
    for (input, message) in [
        (needs("x"), "a depends on x, which does not exist"),
        (needs("a"), "stories depend on each other: a → a"),
        (
            json!({ "userStories": [{ "id": "a", "title": "A", "reviewStatus": "ok" }] }).to_string(),
            "story a: the field \"reviewStatus\" must be null, \"needs_review\", \"changes_requested\" or \"approved\"",
        ),
    ] {
        assert_eq!(import_into(&text(&[]), &input).unwrap_err().to_string(), message);
    }
    let of_list = with(story("US-001", false, None, 0), json!({ "dependsOn": ["x"] }));
    import_into(&text(&[of_list]), &needs("US-001")).expect("the fault was there before");
}

#[test]
fn empty_story_of_a_new_list_is_replaced() {
    let blank =
        with(story("US-001", false, None, 0), json!({ "title": "", "acceptanceCriteria": [], "notes": "" }));
    let target = json!({ "project": "", "branchName": "ralph/x", "description": "", "userStories": [blank] })
        .to_string();
    let merged = import_into(&target, "# Shop\n\nText.\n\n- [ ] One").unwrap();
    assert_eq!((merged.list.text("project"), merged.list.text("description")), ("Shop", "Text."));
    assert_eq!(merged.added, ["US-001"]);
    let fault = import_into("{\"project\": 1}", "- [ ] One").unwrap_err();
    assert_eq!(fault.to_string(), "the field \"project\" must be a string");
}
