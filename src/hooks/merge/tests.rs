//! Tests of the entries that the merge keeps, adds and removes, in tables and in values of any shape.

use proptest::prelude::*;

use super::*;

const EVENTS: [HookEvent; 2] = [HookEvent::UserPromptSubmit, HookEvent::Stop];

fn with(value: &Value) -> Result<Value, ShapeError> {
    with_hooks(value, &EVENTS, Path::new("/opt/swarm"))
}

fn ours(event: HookEvent) -> Value {
    json!({"hooks": [entry(Path::new("/opt/swarm"), event)]})
}

/// Equal with the order of keys.
#[track_caller]
fn same(a: &Value, b: &Value) {
    assert_eq!(a.to_string(), b.to_string());
}

#[test]
fn swarms_hooks_follow_the_users_and_the_rest_is_unchanged() {
    let theirs = json!({
        "zeta": 1,
        "hooks": {
            "Stop": [{"matcher": "x", "hooks": [{"type": "command", "command": "guard"}], "odd": true}],
            "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "deny"}]}],
            "Future": [7, "text", {"hooks": "none"}],
        },
        "alpha": {"b": 2, "a": 1},
    });
    let merged = with(&theirs).unwrap();
    let mut wanted = theirs.clone();
    wanted["hooks"]["Stop"].as_array_mut().unwrap().push(ours(HookEvent::Stop));
    wanted["hooks"]["UserPromptSubmit"] = json!([ours(HookEvent::UserPromptSubmit)]);
    // The new event stands last, whatever the order in which the two were written.
    let hooks = wanted["hooks"].as_object_mut().unwrap();
    assert_eq!(hooks.len(), 4);
    same(&merged, &wanted);
    same(&with(&merged).unwrap(), &merged);
    same(&without_hooks(&merged), &theirs);
}

#[test]
fn hook_of_an_earlier_release_is_updated_in_place() {
    let old = json!({"hooks": {
        "Stop": [
            {"hooks": [
                {"type": "command", "command": "/old/swarm hook stop", "timeout": 3},
                {"type": "command", "command": "guard"},
                {"type": "command", "command": "swarm hook stop"},
            ]},
            {"hooks": [{"type": "command", "command": "swarm hook stop"}]},
        ],
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "swarm hook pre-tool-use"}]}],
    }});
    let line = command(Path::new("/opt/swarm"), HookEvent::Stop);
    let wanted = json!({"hooks": {
        "Stop": [{"hooks": [
            {"type": "command", "command": line, "timeout": 3},
            {"type": "command", "command": "guard"},
        ]}],
        "UserPromptSubmit": [ours(HookEvent::UserPromptSubmit)],
    }});
    same(&with(&old).unwrap(), &wanted);
}

#[test]
fn hook_with_a_narrow_matcher_does_not_count_as_installed() {
    let narrow = json!({"hooks": {"Stop": [
        {"matcher": "x", "hooks": [{"type": "command", "command": "swarm hook stop"}]},
    ]}});
    let merged = with(&narrow).unwrap();
    same(&merged["hooks"]["Stop"], &json!([ours(HookEvent::Stop)]));
    let open = json!({"hooks": {"Stop": [
        {"matcher": "*", "hooks": [{"type": "command", "command": "swarm hook stop"}]},
    ]}});
    assert_eq!(with(&open).unwrap()["hooks"]["Stop"][0]["matcher"], "*");
}

#[test]
fn settings_of_another_shape_are_refused() {
    for odd in [
        json!([]),
        json!(null),
        json!("text"),
        json!({"hooks": []}),
        json!({"hooks": null}),
        json!({"hooks": {"Stop": {}}}),
        json!({"hooks": {"Other": 1}}),
    ] {
        assert!(with(&odd).is_err(), "{odd}");
        same(&without_hooks(&odd), &odd);
        assert!(!has_ours(&odd));
    }
    assert!(with_plugins(&json!({"enabledPlugins": []}), "/m").is_err());
    let other = json!({"extraKnownMarketplaces": {"swarm": {"source": {"source": "github", "repo": "a/b"}}}});
    assert!(with_plugins(&other, "/m").is_err());
    same(&without_plugins(&other), &other);
}

#[test]
fn plugins_are_enabled_except_those_the_user_disabled() {
    let theirs = json!({"enabledPlugins": {"do-it@swarm": false, "x@y": true}, "a": 1});
    let merged = with_plugins(&theirs, "/m").unwrap();
    assert_eq!(marketplace(&merged), Some("/m"));
    same(&merged["enabledPlugins"], &json!({"do-it@swarm": false, "x@y": true, "swarm@swarm": true}));
    same(&with_plugins(&merged, "/m").unwrap(), &merged);
    same(&without_plugins(&merged), &json!({"enabledPlugins": {"x@y": true}, "a": 1}));
    same(&without_plugins(&with_plugins(&json!({"a": 1}), "/m").unwrap()), &json!({"a": 1}));
}

/// A value like those of a settings file: keys that matter are likely.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z ]{0,8}".prop_map(Value::from),
        Just(json!({"type": "command", "command": "guard"})),
        Just(json!({"type": "command", "command": "/x/swarm hook stop"})),
        Just(json!({"type": "command", "command": "swarm hook pre-compact"})),
    ];
    let key = prop_oneof![
        Just("hooks".to_owned()),
        Just("Stop".to_owned()),
        Just("UserPromptSubmit".to_owned()),
        Just("matcher".to_owned()),
        Just("enabledPlugins".to_owned()),
        "[a-z]{1,4}",
    ];
    leaf.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..5)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// Settings that an agent takes.
fn settings() -> impl Strategy<Value = Value> {
    let events = prop::collection::vec(
        (
            prop_oneof![Just("Stop"), Just("UserPromptSubmit"), Just("PreToolUse"), Just("Later")],
            prop::collection::vec(any_value(), 0..4),
        ),
        0..4,
    );
    (any_value(), prop::option::of(events)).prop_map(|(value, events)| {
        let mut root = value.as_object().cloned().unwrap_or_default();
        root.shift_remove("hooks");
        if let Some(events) = events {
            let groups = |list: Vec<Value>| {
                Value::from(list.iter().map(|v| json!({"hooks": [v]})).collect::<Vec<_>>())
            };
            let hooks = events.into_iter().map(|(event, list)| (event.to_owned(), groups(list)));
            root.insert("hooks".to_owned(), Value::Object(hooks.collect()));
        }
        Value::Object(root)
    })
}

/// Everything in a value that is not ours, as lines: path and leaf.
fn theirs(value: &Value, path: &str, lines: &mut Vec<String>) {
    match value {
        Value::Object(_) if of_ours(value).is_some() => {}
        Value::Object(object) => {
            for (key, value) in object {
                theirs(value, &format!("{path}.{key}"), lines);
            }
        }
        Value::Array(list) => {
            for value in list {
                theirs(value, &format!("{path}[]"), lines);
            }
        }
        leaf => lines.push(format!("{path} {leaf}")),
    }
}

fn lines(value: &Value) -> Vec<String> {
    let mut found = vec![];
    theirs(value, "", &mut found);
    found
}

proptest! {
    #[test]
    fn merging_a_random_value_does_not_panic(value in any_value()) {
        let _ = with(&value).map(|merged| without_hooks(&merged));
        let _ = with_plugins(&value, "/m").map(|merged| without_plugins(&merged));
        let _ = (found(&value), has_ours(&value));
    }

    #[test]
    fn installing_twice_adds_each_event_once(value in settings()) {
        let merged = with(&value).unwrap();
        let mut events: Vec<String> = found(&merged).into_iter().map(|f| f.event).collect();
        events.sort();
        prop_assert_eq!(events, ["Stop", "UserPromptSubmit"]);
        prop_assert_eq!(with(&merged).unwrap().to_string(), merged.to_string());
    }

    #[test]
    fn install_and_uninstall_keep_all_of_the_users_hooks(value in settings()) {
        let merged = with(&value).unwrap();
        prop_assert_eq!(lines(&merged), lines(&value));
        let out = without_hooks(&merged);
        prop_assert!(!has_ours(&out) || marketplace(&out).is_some());
        prop_assert_eq!(lines(&out), lines(&value));
        prop_assert_eq!(without_hooks(&out).to_string(), out.to_string());
    }
}
