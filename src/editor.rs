//! The person's editor, for `config edit` and `swarm ui`. Deliberately absent: running it, since one of them waits
//! and the other goes on.

use std::path::Path;

/// The editor that the person has set; `None` if none is.
pub(crate) fn of_person() -> Option<String> {
    let set = |name| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    set("VISUAL").or_else(|| set("EDITOR"))
}

/// The words of a command line that opens a file. As git does, a shell runs it, since VISUAL and EDITOR may hold
/// options. The program is `sh`.
pub(crate) fn shell_words(editor: &str, path: &Path) -> Vec<std::ffi::OsString> {
    vec!["-c".into(), format!("{editor} \"$@\"").into(), "sh".into(), path.into()]
}
