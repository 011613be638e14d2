//! Moves the files that a client on another machine sent for a new worktree into it.
//!
//! The client has put them below `swarm-include/BRANCH` of the repository ([`crate::remote::code`]). They come from
//! another machine and lie where agents can write: no link is followed, and no existing file is replaced.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

/// The directory in the repository.
const DIRECTORY: &str = "swarm-include";

/// Moves the files for `branch` into the worktree. Returns the error message for files that remain there.
pub(super) fn move_included(common: &Path, branch: &str, tree: &Path) -> Option<String> {
    let from = common.join(DIRECTORY).join(branch);
    if !fs::symlink_metadata(&from).is_ok_and(|found| found.is_dir()) {
        return None;
    }
    let moved = copy_below(&from, tree).and_then(|()| fs::remove_dir_all(&from));
    moved.err().map(|error| format!("the files in '{}' were not copied: {error}", from.display()))
}

fn copy_below(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        let existing = fs::symlink_metadata(&target).ok();
        if kind.is_dir() && existing.as_ref().is_none_or(fs::Metadata::is_dir) {
            if existing.is_none() {
                fs::create_dir(&target)?;
            }
            copy_below(&entry.path(), &target)?;
        } else if kind.is_file() && existing.is_none() {
            let mut source = fs::File::open(entry.path())?;
            let mut file = OpenOptions::new().write(true).create_new(true).open(&target)?;
            io::copy(&mut source, &mut file)?;
            file.set_permissions(source.metadata()?.permissions())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn included_files_replace_no_file_and_follow_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        let from = at("repo/swarm-include/swarm/fix");
        fs::create_dir_all(from.join("sub/deep")).unwrap();
        fs::create_dir_all(from.join("out")).unwrap();
        fs::create_dir_all(at("tree")).unwrap();
        fs::create_dir(at("elsewhere")).unwrap();
        for name in ["env", "tracked", "sub/deep/key", "out/file"] {
            fs::write(from.join(name), "sent").unwrap();
        }
        symlink("/etc/passwd", from.join("link")).unwrap();
        fs::write(at("tree/tracked"), "committed").unwrap();
        symlink(at("elsewhere"), at("tree/out")).unwrap();
        assert_eq!(move_included(&at("repo"), "swarm/fix", &at("tree")), None);
        let text = |path: &str| fs::read_to_string(at("tree").join(path)).unwrap();
        assert_eq!(
            (text("env"), text("sub/deep/key"), text("tracked")),
            ("sent".into(), "sent".into(), "committed".into())
        );
        assert!(fs::symlink_metadata(at("tree/link")).is_err());
        assert_eq!(fs::read_dir(at("elsewhere")).unwrap().count(), 0);
        assert!(!from.exists());
        assert_eq!(move_included(&at("repo"), "swarm/fix", &at("tree")), None);
    }
}
