//! Sets SWARM_RELEASE: the version with the commit and its date, as in `0.1.0 (a95a3f4eee 2026-11-29)`. Links debug builds
//! so that they start quickly.
//!
//! The date is the commit's, so that two builds of a commit are equal. In an archive of `git archive`, git has replaced
//! the text below. Without git and without such an archive, SWARM_RELEASE is the version alone.

use std::path::Path;
use std::process::Command;

/// Replaced by `git archive`, as `.gitattributes` requires.
const ARCHIVED: &str = "$Format:%H %cs$";

/// The digits of a commit in the release, as many in a shallow clone as in a full one.
const COMMIT_DIGITS: usize = 10;

fn main() {
    println!("cargo:rerun-if-changed=scripts/build.rs");
    // The tests start the program thousands of times. A debug build that can be loaded at any address has 130,000
    // addresses to adjust at each start, which takes half of the time of `swarm --version`.
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|set| set == value);
    if is("PROFILE", "debug") && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let commit = match ARCHIVED.strip_prefix("$Format") {
        None => Some(ARCHIVED.to_owned()),
        Some(_) => checked_out(),
    };
    let commit = commit.as_deref().and_then(|line| line.split_once(' '));
    match commit.filter(|(commit, _)| commit.len() >= COMMIT_DIGITS) {
        Some((commit, date)) => {
            println!("cargo:rustc-env=SWARM_RELEASE={version} ({} {date})", &commit[..COMMIT_DIGITS]);
        }
        None => println!("cargo:rustc-env=SWARM_RELEASE={version}"),
    }
}

/// The commit that is checked out, and its date. Only of our own repository: an unpacked archive may be inside another.
fn checked_out() -> Option<String> {
    if !Path::new(".git").exists() {
        return None;
    }
    for file in ["HEAD", "logs/HEAD"] {
        // The log grows at each commit and checkout. Cargo would run this at each build for a missing file.
        let path = git(&["rev-parse", "--git-path", file])?;
        if Path::new(&path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    git(&["log", "-1", "--no-show-signature", "--format=%H %cs"])
}

fn git(args: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // A git hook that starts the build sets them for its own repository.
    let output = command.args(args).env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}
