use serde_json::{Value, json};

use super::*;

#[test]
fn only_an_unchanged_file_of_the_same_purpose_is_accepted() {
    let key = SigningKey::random().unwrap();
    let value = json!({"passed": true, "text": "a\",\n  \"signature\": \"00\"\n}\n"});
    let signed = key.sign(Purpose::Verdict("a", None, 1), &value).unwrap();
    // Other programs read the file as JSON.
    let read: Value = serde_json::from_slice(&signed).unwrap();
    assert_eq!((&read["passed"], read["signature"].as_str().map(str::len)), (&json!(true), Some(64)));
    assert_eq!(key.open::<Value>(Purpose::Verdict("a", None, 1), &signed), Some(value.clone()));

    let text = String::from_utf8(signed.clone()).unwrap();
    for forged in [
        text.replace("true", "false"),
        text.replace("\n}\n", "\n}"),
        serde_json::to_string_pretty(&value).unwrap() + "\n",
        text.replace(read["signature"].as_str().unwrap(), ""),
        text.replace(read["signature"].as_str().unwrap(), &"0".repeat(64)),
        text.replace(read["signature"].as_str().unwrap(), "x\u{e9}"),
        String::new(),
    ] {
        assert_eq!(key.open::<Value>(Purpose::Verdict("a", None, 1), forged.as_bytes()), None, "{forged}");
    }
    for other in [
        Purpose::Verdict("a", None, 2),
        Purpose::Verdict("b", None, 1),
        Purpose::Verdict("a", Some("id"), 1),
        Purpose::Output("a", None, 1),
        Purpose::Worker("a"),
    ] {
        assert_eq!(key.open::<Value>(other, &signed), None, "{other:?}");
    }
    assert_eq!(SigningKey::random().unwrap().open::<Value>(Purpose::Verdict("a", None, 1), &signed), None);
}

#[test]
fn signing_key_is_read_back_and_never_printed() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    assert!(SigningKey::read(&path).unwrap().is_none());
    let key = SigningKey::create(&path).unwrap();
    let signed = key.sign(Purpose::Baseline("a"), &json!({"a": 1})).unwrap();
    let again = SigningKey::read(&path).unwrap().unwrap();
    assert_eq!(again.open::<Value>(Purpose::Baseline("a"), &signed), Some(json!({"a": 1})));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(format!("{key:?}"), "SigningKey");
    for broken in [vec![], vec![1; KEY_BYTES - 1], vec![1; KEY_BYTES + 1]] {
        std::fs::write(&path, broken).unwrap();
        assert!(SigningKey::read(&path).unwrap().is_none());
    }
}
