//! The shell command that a CLI runs for a hook.
//!
//! It fails open: a program that has gone, or an older one that knows no hooks, must never hold an agent. A Stop
//! hook that ends with status 2 would.

use std::path::Path;

use swarm_state::hook::HookEvent;

use crate::shell::quote_path;

/// Seconds that an agent gives one of our hooks. Each entry that we write says so, and [`super::run`] stays below it.
pub const TIMEOUT_SECONDS: u64 = 10;

/// The name that [`command`] gives its shell.
pub(super) const MARK: &str = "swarm-hook";

/// What is run: the program, else the one on the PATH, else nothing; and whatever comes of it is no error.
const SCRIPT: &str = r#"p=$1; [ -x "$p" ] || p=$(command -v swarm) || exit 0; "$p" hook "$2" || exit 0"#;

/// The command for an event, for whatever shell the CLI uses.
pub fn command(program: &Path, event: HookEvent) -> String {
    format!("sh -c '{SCRIPT}' {MARK} {} {}", quote_path(program), event.word())
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
