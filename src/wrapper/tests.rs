//! The files; the wrapper itself is tested in a real pane (`tests/it/tmux.rs`).

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use swarm_state::caps::Caps;

use super::*;

#[test]
fn launch_file_is_private_and_removed_after_reading() {
    let dir = tempfile::tempdir().unwrap();
    let spec = LaunchSpec {
        argv: vec!["a".into(), "s3cr3t".into()],
        env: [("K".to_owned(), "s3cr3t".to_owned())].into(),
        cwd: "/".into(),
        stdin: None,
        end_leftovers: true,
        sandboxed: false,
        proxy: None,
        placeholders: vec![],
        caps: Caps { memory: Some(16 << 20), ..Caps::default() },
    };
    assert!(!format!("{spec:?}").contains("s3cr3t"));
    spec.write(dir.path()).unwrap();
    let mode = std::fs::metadata(dir.path().join("launch.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(LaunchSpec::take(dir.path()).unwrap(), spec);
    assert_eq!(LaunchSpec::take(dir.path()).unwrap_err().kind(), std::io::ErrorKind::NotFound);
    for file in std::fs::read_dir(dir.path()).unwrap() {
        assert_eq!(std::fs::read_to_string(file.unwrap().path()).unwrap(), "", "no secret is left");
    }
    assert!(!withdraw_launch(dir.path()), "a wrapper has it");
}

#[test]
fn a_withdrawn_launch_starts_nothing() {
    let dir = tempfile::tempdir().unwrap();
    assert!(withdraw_launch(dir.path()), "none was written");
    let spec = LaunchSpec {
        argv: vec!["a".into()],
        env: BTreeMap::new(),
        cwd: "/".into(),
        stdin: None,
        end_leftovers: true,
        sandboxed: false,
        proxy: None,
        placeholders: vec![],
        caps: Caps::default(),
    };
    spec.write(dir.path()).unwrap();
    assert!(withdraw_launch(dir.path()));
    assert_eq!(main(dir.path()), 127);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the folder belongs to the next wrapper");
}

#[test]
fn exit_record_fits_the_reserved_space() {
    let dir = tempfile::tempdir().unwrap();
    let record = ExitRecord { code: Some(3), ended: Some(1), ..ExitRecord::default() };
    files::reserve(dir.path());
    let reserved = std::fs::metadata(dir.path().join("exit.json.part")).unwrap().len();
    assert_eq!(read_exit(dir.path()), None);
    files::write_exit(dir.path(), &record).unwrap();
    assert_eq!(read_exit(dir.path()), Some(record.clone()));
    assert_eq!(std::fs::metadata(dir.path().join("exit.json")).unwrap().len(), reserved);
    // Also without the room, and longer than it.
    let long = ExitRecord { error: Some("x".repeat(5000)), ..record };
    files::write_exit(dir.path(), &long).unwrap();
    assert_eq!(read_exit(dir.path()), Some(long));
}

#[test]
fn broken_exit_record_is_ignored() {
    let dir = tempfile::tempdir().unwrap();
    for text in ["", "{", "[]", "\"x\"", "{\"code\":\"x\"}"] {
        std::fs::write(dir.path().join("exit.json"), text).unwrap();
        assert_eq!(read_exit(dir.path()), None, "{text}");
        std::fs::write(dir.path().join("started"), text).unwrap();
        assert_eq!(started(dir.path()), None, "{text}");
    }
}

#[test]
fn exit_status_follows_the_shells_convention() {
    let record = |code, signal| ExitRecord { code, signal, ..ExitRecord::default() };
    assert_eq!(record(Some(3), None).status(), 3);
    assert_eq!(record(None, Some(9)).status(), 137);
    assert_eq!(record(None, None).status(), 1, "unknown is never success");
}
