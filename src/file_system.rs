//! Whether a directory lies on a file system that several hosts can use at once.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::sys::statfs::statfs;

/// Whether the file system of `path`, or of its nearest existing parent, is a network file system.
pub(crate) fn is_network(path: &Path) -> bool {
    let found = path.ancestors().find_map(|path| Some((path, statfs(path).ok()?)));
    found.is_some_and(|(path, found)| is_network_kind(path, &found))
}

#[cfg(target_os = "linux")]
fn is_network_kind(path: &Path, found: &nix::sys::statfs::Statfs) -> bool {
    // The type of the number differs between systems; the number itself has 32 bits.
    let magic = found.filesystem_type().0 as u64;
    let device = std::fs::metadata(path).map_or(0, |found| found.dev());
    let mounts = || std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    swarm_state::owner::is_network(magic, None)
        && swarm_state::owner::is_network(magic, kind_of(&mounts(), device).as_deref())
}

#[cfg(not(target_os = "linux"))]
fn is_network_kind(_path: &Path, found: &nix::sys::statfs::Statfs) -> bool {
    !found.flags().contains(nix::mount::MntFlags::MNT_LOCAL)
}

/// The name of the file system on a device, from the list of mounts.
fn kind_of(mounts: &str, device: u64) -> Option<String> {
    let (major, minor) = (nix::sys::stat::major(device), nix::sys::stat::minor(device));
    let wanted = format!("{major}:{minor}");
    let mut found = mounts.lines().filter(|line| line.split(' ').nth(2) == Some(&wanted));
    let (_, rest) = found.next_back()?.split_once(" - ")?;
    rest.split(' ').next().map(str::to_owned)
}

/// The file that marks a directory as shared between hosts, for file systems that swarm does not recognize.
pub(crate) const SHARED_MARK: &str = "shared";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_of_a_mount_is_found_by_its_device() {
        let mounts = "36 35 0:41 / /home rw,relatime shared:1 - fuse.sshfs me@x:/ rw\n\
                      37 35 8:1 / / rw - ext4 /dev/sda1 rw\n\
                      broken\n";
        let device = |major, minor| nix::sys::stat::makedev(major, minor);
        assert_eq!(kind_of(mounts, device(0, 41)).as_deref(), Some("fuse.sshfs"));
        assert_eq!(kind_of(mounts, device(8, 1)).as_deref(), Some("ext4"));
        assert_eq!(kind_of(mounts, device(8, 2)), None);
    }

    #[test]
    fn local_directory_is_not_a_network_file_system() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_network(dir.path()));
        assert!(!is_network(&dir.path().join("not/there")));
    }
}
