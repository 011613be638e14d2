//! A settings file comes back as it was, whatever it was.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::json;
use swarm_state::hook::HookEvent;

use super::*;

struct Disk {
    dir: tempfile::TempDir,
    paths: Paths,
}

impl Disk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::new(dir.path().join("swarm"));
        Self { dir, paths }
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("settings.json")
    }

    fn install(&self) -> Result<FileChange> {
        let events = [HookEvent::Stop, HookEvent::UserPromptSubmit];
        change(&self.paths, &self.file(), |value| merge::with_hooks(value, &events, Path::new("/opt/swarm")))
    }

    fn uninstall(&self) -> Result<FileChange> {
        change(&self.paths, &self.file(), |value| Ok(merge::without_hooks(value)))
    }
}

#[test]
fn backup_of_the_settings_is_private_and_removed_by_uninstall() {
    let disk = Disk::new();
    fs::write(disk.file(), "{\"secret\": 1}").unwrap();
    disk.install().unwrap();
    let kept: Vec<_> = fs::read_dir(disk.paths.hooks_dir()).unwrap().map(|e| e.unwrap().path()).collect();
    let kept: Vec<_> = kept.iter().filter(|path| path.extension().is_some()).collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(fs::metadata(kept[0]).unwrap().permissions().mode() & 0o077, 0);
    disk.uninstall().unwrap();
    assert!(!kept[0].exists());
}

#[test]
fn uninstall_works_with_a_broken_backup() {
    let disk = Disk::new();
    fs::write(disk.file(), "{ \"a\": 1 }").unwrap();
    disk.install().unwrap();
    for entry in fs::read_dir(disk.paths.hooks_dir()).unwrap() {
        fs::write(entry.unwrap().path(), "{").unwrap();
    }
    assert_eq!(disk.uninstall().unwrap(), FileChange::Changed);
    let left: Value = serde_json::from_str(&fs::read_to_string(disk.file()).unwrap()).unwrap();
    assert_eq!(left, json!({"a": 1}));
}

#[test]
fn concurrent_change_of_the_settings_file_is_kept() {
    let disk = Disk::new();
    fs::write(disk.file(), "{}").unwrap();
    let error = change(&disk.paths, &disk.file(), |value| {
        fs::write(disk.file(), "{\"just\": \"now\"}").unwrap();
        merge::with_hooks(value, &[HookEvent::Stop], Path::new("/opt/swarm"))
    });
    assert_eq!(error.unwrap_err().code, ErrorCode::Conflict);
    assert_eq!(fs::read_to_string(disk.file()).unwrap(), "{\"just\": \"now\"}");
    // And the next one finds its way.
    disk.install().unwrap();
    disk.uninstall().unwrap();
    assert_eq!(fs::read_to_string(disk.file()).unwrap(), "{\"just\": \"now\"}");
}

/// A text of JSON in some layout.
fn any_text() -> impl Strategy<Value = String> {
    let value = prop::collection::btree_map("[a-zA-Zé\"\\\\ ]{0,6}", "\\PC{0,12}", 0..5);
    let layout = prop_oneof![Just(""), Just(" "), Just("  "), Just("\t"), Just("\n"), Just("\r\n   ")];
    (value, layout, any::<bool>(), any::<bool>()).prop_map(|(value, space, hooks, ends)| {
        let mut pairs: Vec<String> = value
            .iter()
            .filter(|(key, _)| *key != "hooks")
            .map(|(key, text)| format!("{space}{}:{space}{}", json!(key), json!(text)))
            .collect();
        if hooks {
            pairs.push(format!("{space}\"hooks\":{space}{{\"Stop\":{space}[]}}"));
        }
        let end = if ends { "\n" } else { "" };
        format!("{space}{{{}{space}}}{end}", pairs.join(","))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn uninstall_restores_any_settings_file_byte_for_byte(text in any_text()) {
        let disk = Disk::new();
        fs::write(disk.file(), &text).unwrap();
        prop_assert_eq!(disk.install().unwrap(), FileChange::Changed);
        let with = fs::read_to_string(disk.file()).unwrap();
        prop_assert_eq!(disk.install().unwrap(), FileChange::None);
        prop_assert_eq!(fs::read_to_string(disk.file()).unwrap(), with);
        prop_assert_eq!(disk.uninstall().unwrap(), FileChange::Restored);
        prop_assert_eq!(fs::read_to_string(disk.file()).unwrap(), text);
    }

    #[test]
    fn install_and_uninstall_keep_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let disk = Disk::new();
        fs::write(disk.file(), &bytes).unwrap();
        if disk.install().is_ok() {
            disk.uninstall().unwrap();
        }
        prop_assert_eq!(fs::read(disk.file()).unwrap(), bytes);
    }
}
