//! Checks swarm's directory (owner, permissions, free space) and the settings files.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;
use swarm_state::notice::counted;

use super::check::Check;
use crate::paths::Paths;
use crate::procs::memory_pressure;
use crate::settings::{GuardSettings, Settings};
use crate::shell::quote_path;

/// Free bytes below which state may not be saved, and below which this is near.
const MIN_FREE_BYTES: u64 = 64 << 20;
const LOW_FREE_BYTES: u64 = 1 << 30;

/// How many files the permission check reads at most.
const MAX_CHECKED_FILES: usize = 20_000;

/// Checks the owner of the directory and the permissions of everything in it.
pub(super) fn directory(paths: &Paths) -> Vec<Check> {
    let root = paths.root();
    let shown = root.display();
    let found = match fs::metadata(root) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return vec![Check::ok(
                "directory",
                format!("{shown} does not exist yet; the first command makes it"),
            )];
        }
        Err(error) => {
            let message = format!("{shown} cannot be read: {error}");
            return vec![Check::fail("directory", message, "set SWARM_DIR to a directory of your own")];
        }
    };
    if found.uid() != nix::unistd::geteuid().as_raw() {
        let message = format!("{shown} belongs to another user (uid {})", found.uid());
        return vec![Check::fail("directory", message, "set SWARM_DIR to a directory of your own")];
    }
    let mut open = vec![];
    collect_open(root, &mut open, &mut 0);
    let hint = format!("chmod -R go-rwx {}", quote_path(root));
    if found.mode() & 0o077 != 0 {
        let message = format!("{shown} is open to other users (mode {:04o})", found.mode() & 0o7777);
        return vec![Check::warn("permissions", message, hint)];
    }
    if let Some((first, mode)) = open.first() {
        let others = match open.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let message = format!("'{}' (mode {mode:04o}){others} would be open to other users", first.display());
        return vec![Check::warn("permissions", message, hint)];
    }
    vec![Check::ok("directory", format!("{shown} is yours alone"))]
}

/// Files below `dir` that other users can access, with their mode. Does not follow links.
fn collect_open(dir: &Path, open: &mut Vec<(PathBuf, u32)>, count: &mut usize) {
    let Ok(list) = fs::read_dir(dir) else { return };
    for entry in list.flatten() {
        *count += 1;
        if *count > MAX_CHECKED_FILES {
            return;
        }
        let Ok(found) = entry.metadata() else { continue };
        if found.mode() & 0o077 != 0 && !found.is_symlink() {
            open.push((entry.path(), found.mode() & 0o7777));
        }
        if found.is_dir() {
            collect_open(&entry.path(), open, count);
        }
    }
}

pub(super) fn room(paths: &Paths) -> Check {
    let root = paths.root();
    let Some(place) = root.ancestors().find(|path| path.is_dir()) else {
        return Check::fail("disk", format!("no part of {} exists", root.display()), "set SWARM_DIR");
    };
    let (free, no_inodes) = match room_of(place) {
        Ok(room) => room,
        Err(error) => {
            let message = format!("the free space at {} is unknown: {error}", place.display());
            return Check::warn("disk", message, format!("check it: df {}", quote_path(place)));
        }
    };
    let free_mib = free >> 20;
    let hint = format!("free some space; to check it: df {}", quote_path(place));
    if no_inodes {
        return Check::fail(
            "disk",
            format!("no file can be made at {}: no inodes are left", place.display()),
            hint,
        );
    }
    let message = format!("{free_mib} MiB are free at {}", place.display());
    match free {
        0..MIN_FREE_BYTES => Check::fail("disk", format!("only {message}: state may not be saved"), hint),
        MIN_FREE_BYTES..LOW_FREE_BYTES => Check::warn("disk", format!("only {message}"), hint),
        LOW_FREE_BYTES.. => Check::ok("disk", message),
    }
}

/// The free bytes, and whether there are no inodes left.
fn room_of(place: &Path) -> std::io::Result<(u64, bool)> {
    let stat = statvfs(place)?;
    // Some file systems do not count inodes and report 0 of 0.
    Ok((fs2::available_space(place)?, stat.files() > 0 && stat.files_available() == 0))
}

/// Checks the settings files, and whether the guard is on.
pub(super) fn settings(paths: &Paths) -> Vec<Check> {
    let settings = match Settings::load(&paths.user_config(), Some(Path::new("swarm.toml")), None) {
        Ok(settings) => settings,
        Err(error) => return vec![Check::of("settings", error, "fix the file, or move it away")],
    };
    let files: Vec<String> = settings.files.iter().map(|file| file.display().to_string()).collect();
    let message = match files.as_slice() {
        [] => "no settings file; defaults apply".to_owned(),
        files => format!("read from {}", files.join(", ")),
    };
    let read = if settings.limits.pressure.is_some() && memory_pressure().is_none() {
        let message = "limits.pressure has no effect: this kernel does not report memory pressure";
        Check::warn("settings", message, "start the kernel with psi=1, or remove the key")
    } else {
        Check::ok("settings", message)
    };
    vec![read, guard(&settings.guard)]
}

fn guard(settings: &GuardSettings) -> Check {
    let allowed = counted(settings.allow.as_ref().map_or(0, Vec::len), "allowed pattern");
    if settings.off == Some(true) {
        let message = "it is off: dangerous commands of agents are not stopped";
        return Check::warn("guard", message, "remove off under [guard]: swarm config edit");
    }
    Check::ok("guard", format!("it stops dangerous commands of agents with hooks ({allowed})"))
}
