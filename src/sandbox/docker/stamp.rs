//! The files of a project as one text. Another text means that files were edited.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sha2::{Digest, Sha256};
use swarm_state::tasks::marker::MARKER_FILE;
use walkdir::{DirEntry, WalkDir};

/// Files that swarm writes between two runs.
const OWN_FILES: [&str; 2] = [MARKER_FILE, ".swarm"];

/// Hashes the paths, sizes, times and modes of all files, also of ignored ones and those of git; `None` if they cannot
/// be read.
pub(super) fn of(project: &Path) -> Option<String> {
    let is_users = |entry: &DirEntry| !OWN_FILES.iter().any(|own| entry.path() == project.join(own));
    let mut hash = Sha256::new();
    for entry in WalkDir::new(project).sort_by_file_name().into_iter().filter_entry(is_users) {
        let entry = entry.ok()?;
        if entry.file_type().is_dir() {
            continue;
        }
        let data = entry.metadata().ok()?;
        let numbers = [data.len().cast_signed(), data.mtime(), data.mtime_nsec(), i64::from(data.mode())];
        hash.update(entry.path().as_os_str().as_encoded_bytes());
        writeln!(hash, "\0{numbers:?}").ok()?;
    }
    Some(crate::files::hex(&hash.finalize()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::of;

    #[test]
    fn every_edit_changes_the_stamp() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name);
        fs::create_dir_all(file("sub")).unwrap();
        fs::write(file("sub/a"), "one").unwrap();
        let mut known = vec![of(dir.path()).unwrap()];
        assert_eq!(of(dir.path()).as_ref(), known.last());
        let edits: [&dyn Fn(); 4] = [
            &|| fs::write(file("sub/a"), "longer").unwrap(),
            &|| fs::write(file(".env"), "").unwrap(),
            &|| fs::rename(file(".env"), file("env")).unwrap(),
            &|| fs::remove_file(file("env")).unwrap(),
        ];
        for edit in edits.iter().take(3) {
            edit();
            let now = of(dir.path()).unwrap();
            assert!(!known.contains(&now));
            known.push(now);
        }
        edits[3]();
        assert_eq!(of(dir.path()).as_ref(), known.get(1));
        fs::write(file(".ralph-active"), "{}").unwrap();
        assert_eq!(of(dir.path()).as_ref(), known.get(1), "swarm's own file");
    }
}
