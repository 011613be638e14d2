//! Builds the shell command that a CLI runs for a hook, and recognizes such commands in a settings file.
//!
//! The command fails open: it exits 0 when the program is missing or is an older swarm without hooks. A Stop hook that
//! exits 2 would keep the agent going. A hook is recognized by its form: the program may have moved, and another
//! release may have another script. A command that does more than swarm's belongs to the user.

use std::path::Path;

use swarm_state::hook::HookEvent;

use crate::shell::quote_path;

/// The timeout of a hook. Each entry that swarm writes contains it, and [`super::run`] answers earlier.
pub const TIMEOUT_SECONDS: u64 = 10;

/// The `$0` of the shell that runs a hook, by which its process is recognized.
pub(super) const SHELL_NAME: &str = "swarm-hook";

/// Runs the program, else the `swarm` on the PATH, else nothing. Always exits 0.
const HOOK_SCRIPT: &str = r#"p=$1; [ -x "$p" ] || p=$(command -v swarm) || exit 0; "$p" hook "$2" || exit 0"#;

/// Returns the command for an event. It works in any shell that the CLI uses.
pub fn command(program: &Path, event: HookEvent) -> String {
    format!("sh -c '{HOOK_SCRIPT}' {SHELL_NAME} {} {}", quote_path(program), event.word())
}

/// A hook of swarm, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnHook {
    /// The program that it runs first. A name without a slash is found in `PATH`.
    pub binary: String,
    /// The word of the event.
    pub word: String,
}

/// Parses `line` when it is a hook of swarm: `sh` with [`SHELL_NAME`], or a bare `swarm hook WORD`.
pub fn recognize(line: &str) -> Option<OwnHook> {
    let words = shlex::split(line)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (binary, word) = match words[..] {
        ["sh", "-c", _, SHELL_NAME, binary, word] if is_word(word) => (binary, word),
        [binary, "hook", word] if HookEvent::of(word).is_some() && is_named_swarm(binary) => (binary, word),
        _ => return None,
    };
    Some(OwnHook { binary: binary.to_owned(), word: word.to_owned() })
}

/// A later release may have more events, so any word counts.
fn is_word(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
}

/// Whether the path is one of swarm and not a part of a longer command that the shell would expand or split.
fn is_named_swarm(binary: &str) -> bool {
    let is_plain = !binary.starts_with('~') && !binary.contains(|c| "|&;<>()$`*?[\n".contains(c));
    is_plain && Path::new(binary).file_name().is_some_and(|name| name == "swarm")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hook_command_exits_0_without_the_program_and_quotes_its_path() {
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

    #[test]
    fn hooks_of_swarm_are_recognized_and_others_are_not() {
        let ours = [
            "swarm hook stop",
            " /usr/bin/swarm hook stop ",
            "'/a b/swarm' hook user-prompt-submit",
            "\"/a b/swarm\" hook stop",
            r"/a\ b/swarm hook stop",
            "sh -c 'a later script' swarm-hook /x/swarm later-event",
            "sh -c 'exec \"$1\" hook \"$2\"' swarm-hook /old/swarm stop",
            &command(Path::new("swarm"), HookEvent::StopFailure),
            &command(Path::new("/it's/here/swarm"), HookEvent::Stop),
        ];
        for line in ours {
            assert!(recognize(line).is_some(), "{line}");
        }
        let foreign = [
            "",
            "swarm",
            "swarm hook",
            "swarm hook dance",
            "swarm hook stop --verbose",
            "guard && swarm hook stop",
            "swarm hook stop | tee /tmp/log",
            "swarm hook stop; guard",
            "/usr/bin/hornet hook stop",
            "my-swarm hook stop",
            "sh -c 'guard' swarm-hook /x/swarm 'stop now'",
            "sh -c 'guard' sh /x/swarm stop",
            "swarm hook 'stop",
            "$HOME/bin/swarm hook stop",
            "echo swarm hook stop",
            "guard;/usr/bin/swarm hook stop",
            "\"$(guard)/swarm\" hook stop",
        ];
        for line in foreign {
            assert_eq!(recognize(line), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn written_hook_command_is_recognized(
            binary in "[^\0]{1,40}",
            event in proptest::sample::select(&HookEvent::ALL[..]),
        ) {
            let line = command(Path::new(&binary), event);
            prop_assert_eq!(recognize(&line), Some(OwnHook { binary, word: event.word().to_owned() }));
        }

        #[test]
        fn recognizing_a_random_line_does_not_panic(line in "\\PC*") {
            let _ = recognize(&line);
        }
    }
}
