//! Builds the shell command that a CLI runs for a hook.
//!
//! The command fails open: it exits 0 when the program is missing or is an older swarm without hooks. A Stop hook that
//! exits 2 would keep the agent going.

use std::path::Path;

use swarm_state::hook::HookEvent;

use crate::shell::quote_path;

/// The timeout of a hook. Each entry that swarm writes contains it, and [`super::run`] answers earlier.
pub const TIMEOUT_SECONDS: u64 = 10;

/// The `$0` of the shell that runs a hook, by which its process is recognized.
pub(super) const SHELL_NAME: &str = "swarm-hook";

/// Runs the program, else the `swarm` on the PATH, else nothing. Always exits 0.
const SCRIPT: &str = r#"p=$1; [ -x "$p" ] || p=$(command -v swarm) || exit 0; "$p" hook "$2" || exit 0"#;

/// Returns the command for an event. It works in any shell that the CLI uses.
pub fn command(program: &Path, event: HookEvent) -> String {
    format!("sh -c '{SCRIPT}' {SHELL_NAME} {} {}", quote_path(program), event.word())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn it_fails_open_and_takes_any_path() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("it's a $(swarm)");
        let run = |path: &str| {
            let mut sh = Command::new("/bin/sh");
            let line = command(&program, HookEvent::Stop);
            sh.arg("-c").arg(line).env_clear().env("PATH", path).output().unwrap()
        };
        let gone = run("/usr/bin:/bin");
        assert_eq!((gone.status.code(), gone.stdout.len()), (Some(0), 0), "{gone:?}");
        let make = |path: &Path, text: &str| {
            std::fs::write(path, text).unwrap();
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        };
        make(&program, "#!/bin/sh\necho \"$@\"\nexit 2\n");
        let there = run("/usr/bin:/bin");
        assert_eq!((there.status.code(), &*there.stdout), (Some(0), &b"hook stop\n"[..]));
        std::fs::remove_file(&program).unwrap();
        make(&dir.path().join("swarm"), "#!/bin/sh\necho other \"$2\"\n");
        let other = run(&format!("{}:/usr/bin:/bin", dir.path().display()));
        assert_eq!(&*other.stdout, b"other stop\n");
    }
}
