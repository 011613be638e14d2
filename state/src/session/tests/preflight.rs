//! Whether a project is ready.

use super::*;

const META: &str =
    r#"{"project_name": "Shop", "project_type": "software", "branch_name": "feature/x", "other": 1}"#;

fn change(name: &str, text: &str) -> Change {
    let path = format!(".do-it/changes/{name}/proposal.md");
    Change { name: name.into(), docs: vec![Doc { path, text: text.into() }] }
}

fn spec(text: &str) -> Doc {
    Doc { path: ".do-it/specs/shop.md".into(), text: text.into() }
}

/// A project that is ready.
fn project<'a>(meta: &'a str, changes: &'a [Change]) -> Project<'a> {
    Project {
        meta: Some(meta.as_bytes()),
        specs: &[],
        changes,
        branch: Branch::Exists,
        may_create_branch: false,
        ceiling: None,
    }
}

/// Returns the missing items; each has a fix.
fn missing(project: &Project<'_>) -> Vec<String> {
    let missing = preflight(project).err().unwrap_or_default();
    assert!(missing.iter().all(|missing| !missing.fix.is_empty()));
    missing.into_iter().map(|missing| missing.what).collect()
}

#[test]
fn ready_project_gives_its_values() {
    let changes = [change("0001-cart", "")];
    let ready = preflight(&project(META, &changes)).unwrap();
    let expected = Ready {
        project_name: "Shop".into(),
        project_type: ProjectType::Software,
        branch_name: "feature/x".into(),
        create_branch: false,
        ceiling: Ceiling::default(),
    };
    assert_eq!(ready, expected);
    assert_eq!(ready.project_type.word(), "software");
    assert_eq!(ProjectType::branch_of(META.as_bytes()).as_deref(), Some("feature/x"));
}

#[test]
fn all_missing_requirements_are_listed_at_once() {
    let changes = [change("a", "")];
    for (meta, words) in [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ("[]", "not a JSON object"),
        (r#"{"project_type":"generic"}"#, "no project_name"),
        (r#"{"project_type":"generic","project_name":" "}"#, "no project_name"),
        (r#"{"project_type":"generic","project_name":7}"#, "no project_name"),
        (r#"{"project_name":"S"}"#, "no project_type"),
        (r#"{"project_name":"S","project_type":"Software"}"#, "no project_type"),
        (r#"{"project_name":"S","project_type":"software"}"#, "branch_name"),
        (r#"{"project_name":"S","project_type":"software","branch_name":"-x"}"#, "branch_name"),
        (r#"{"project_name":"S","project_type":"software","branch_name":"a b"}"#, "branch_name"),
    ] {
        let found = missing(&project(meta, &changes));
        assert!(matches!(found.as_slice(), [one] if one.contains(words)), "{meta}: {found:?}");
        assert_eq!(ProjectType::branch_of(meta.as_bytes()), None);
    }
    let nothing = Project { meta: None, ..project("", &[]) };
    let found = missing(&nothing);
    assert!(
        matches!(found.as_slice(), [meta, work] if meta.contains("_meta.json is missing") && work.contains("nothing to iterate over"))
    );
    let none = Project { branch: Branch::Missing, ..project("{}", &[]) };
    assert_eq!(missing(&none).len(), 3);
}

#[test]
fn project_without_changes_and_specs_is_refused() {
    let archived = [change("archive", "## Open questions\n- what?")];
    assert_eq!(missing(&project(META, &archived)).len(), 1);
    let bootstrap = [spec("# Shop\nIt sells.")];
    assert!(preflight(&Project { specs: &bootstrap, ..project(META, &archived) }).is_ok());
    let blank = [spec(" \n")];
    assert_eq!(missing(&Project { specs: &blank, ..project(META, &[]) }).len(), 1);
}

#[test]
fn branch_must_exist_or_its_creation_be_approved() {
    let changes = [change("a", "")];
    let with = |branch, may_create_branch| Project { branch, may_create_branch, ..project(META, &changes) };
    assert!(missing(&with(Branch::Missing, false))[0].contains("feature/x does not exist"));
    assert!(missing(&with(Branch::NoRepository, true))[0].contains("no git repository"));
    assert!(preflight(&with(Branch::Missing, true)).unwrap().create_branch);
    assert!(!preflight(&with(Branch::Exists, true)).unwrap().create_branch);
    let generic = r#"{"project_name":"S","project_type":"generic","branch_name":"x"}"#;
    let ready = preflight(&Project { branch: Branch::NoRepository, ..project(generic, &changes) }).unwrap();
    assert_eq!((ready.project_type, ready.branch_name.as_str()), (ProjectType::Generic, ""));
}

#[test]
fn open_questions_in_pending_changes_are_refused() {
    let text = "# Cart\n## Open questions\n- [ ] Which currency?\n- [x] Which tax?\n- Who pays?\n";
    let changes = [change("a", text), change("b", "## Open questions\nNone.\n"), change("archive", text)];
    let found = missing(&project(META, &changes));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains(".do-it/changes/a/proposal.md: Which currency?"), "{found:?}");
    // Without an open change, the questions of the specs count.
    let specs = [spec(text)];
    assert_eq!(missing(&Project { specs: &specs, ..project(META, &[]) }).len(), 2);
    let ready = [change("b", "")];
    assert!(preflight(&Project { specs: &specs, ..project(META, &ready) }).is_ok());
}

#[test]
fn iteration_limit_is_the_argument_else_the_projects_else_20() {
    let changes = [change("a", "")];
    let meta = |value: &str| {
        format!(r#"{{"project_name":"S","project_type":"generic","max_iterations_default":{value}}}"#)
    };
    let turns = |value: &str, ceiling: Option<u32>| {
        let meta = meta(value);
        let ceiling = ceiling.map(|turns| Ceiling::new(turns).unwrap());
        preflight(&Project { ceiling, ..project(&meta, &changes) }).map(|ready| ready.ceiling.turns())
    };
    assert_eq!(turns("50", Some(7)), Ok(7));
    assert_eq!(turns("50", None), Ok(50));
    assert_eq!(turns("\"50\"", None), Ok(50));
    assert_eq!(turns("0", None), Ok(0));
    assert_eq!(turns("null", None), Ok(20));
    assert_eq!(turns("101", Some(7)), Ok(7));
    for bad in ["101", "-1", "1.5", "\"many\"", "true", "[]"] {
        let missing = turns(bad, None).unwrap_err();
        assert!(missing[0].what.contains("max_iterations_default in .do-it/specs/_meta.json"), "{missing:?}");
    }
}

#[test]
fn open_questions_are_the_unanswered_items() {
    for (text, open) in [
        ("- a?", &[][..]),
        (
            "# Open questions\n- a?\n* b?\n+ c?\n1. d?\n2) e?\n- [ ] f?\n- [] g?",
            &["a?", "b?", "c?", "d?", "e?", "f?", "[] g?"],
        ),
        ("### OPEN QUESTIONS:\n- a?", &["a?"]),
        ("## 7. Open Questions ##\r\n- a?\r\n", &["a?"]),
        ("## **Open questions**\n- a?", &["a?"]),
        ("## Open questions\n- [x] a?\n- [X] b?\n- ~~c?~~\n- ~~d?~~.\n- [-] e?", &[]),
        ("## Open questions\n- None\n- none.\n- n/a\n- N/A.\n- _None._\n- -\n-\n- [ ]\n- [ ] \n- …", &[]),
        ("## Open questions\nNone.\n\n- No open questions.", &[]),
        ("## Open questions\nnone\n## Next\n- a", &[]),
        ("## Open questions\n### Money\n- a?\n## Next\n- b\n# Open questions\n- c?", &["a?", "c?"]),
        ("## Open questions\n- [x] a?\n  - answered: b\n  - [ ] but c?\n- d?\n  - more", &["but c?", "d?"]),
        ("## Open questions\n```\n- a?\n```\n<!-- - b? -->\n<!--\n- c?\n-->\n- d?", &["d?"]),
        ("```\n## Open questions\n- a?\n```\n- b", &[]),
        ("## Open questions\n- [a link](x) is right?\n- [?] b", &["[a link](x) is right?", "b"]),
        ("## Open questions for later\n- a?", &[]),
        (
            "## Open questions\n- none of the shops has a till, why?\n- 何?",
            &["none of the shops has a till, why?", "何?"],
        ),
        ("#Open questions\n- a?", &[]),
    ] {
        assert_eq!(open_questions(text), open, "{text}");
    }
}
