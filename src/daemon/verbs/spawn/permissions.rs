//! Warns about a loop whose agent may stop to ask for a permission while no person is there.
//!
//! The profile names the options and the files by which a user decides about permissions. Without a profile, or in
//! doubt, there is no warning.

use std::path::{Path, PathBuf};

use swarm_state::spec::WorkerSpec;

use crate::files::read_bounded;

const MAX_AGENT_SETTINGS_BYTES: u64 = 1 << 20;

/// How many options the warning suggests.
const MAX_SUGGESTED_FLAGS: usize = 3;

/// Words in an agent's settings with which a user decides about permissions.
const DECISIONS: [&str; 8] = [
    "permissions",
    "approval",
    "sandbox_mode",
    "trust_level",
    "autoaccept",
    "yes-always",
    "yes_always",
    "yolo",
];

/// The warning for a loop of a known agent without a decision about permissions.
pub(super) fn warning(spec: &WorkerSpec) -> Option<String> {
    let profile = &spec.profile;
    if spec.ralph.is_none() || spec.is_in_docker() || !profile.lacks_permissions(&spec.cmd) {
        return None;
    }
    let has_variable = spec.env.keys().any(|key| key.to_lowercase().ends_with("yes_always"));
    if has_variable || profile.permission_files.iter().any(|file| decides(&place(file, spec))) {
        return None;
    }
    let flags = &profile.permission_flags;
    let flags = flags.get(..MAX_SUGGESTED_FLAGS).unwrap_or(flags).join(", ");
    Some(format!(
        "{} may ask for permissions while you are away, and then wait; see its options {flags} (in a container or a \
         VM, it can work without asking)",
        profile.name
    ))
}

fn place(file: &str, spec: &WorkerSpec) -> PathBuf {
    match file.strip_prefix("~/") {
        Some(file) => Path::new(spec.env.get("HOME").map_or("/", String::as_str)).join(file),
        None => spec.cwd.join(file),
    }
}

fn decides(file: &Path) -> bool {
    let text = read_bounded(file, MAX_AGENT_SETTINGS_BYTES).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).to_lowercase();
    DECISIONS.iter().any(|word| text.contains(word))
}
