//! Quotes words for a POSIX shell: in lines that swarm runs through one, and in commands that it prints for the user.
//!
//! Names the person's editor, which a shell starts. How tmux quotes its own commands is in [`crate::tmux`].

use std::borrow::Cow;
use std::path::Path;

use shlex::bytes::Quoter;

/// Whether a word needs no quotes. `shlex` also quotes `--option=value`.
fn is_plain(word: &[u8]) -> bool {
    let is_plain_byte = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./:=@%+,".contains(byte);
    // zsh looks up a command for a word that begins with `=`.
    !word.is_empty() && !word.starts_with(b"=") && word.iter().all(is_plain_byte)
}

/// `word` as one word of a shell line. A NUL stays; no shell and no argv can carry it.
pub(crate) fn quote_bytes(word: &[u8]) -> Cow<'_, [u8]> {
    if is_plain(word) {
        return word.into();
    }
    Quoter::new().allow_nul(true).quote(word).unwrap_or_else(|_| word.into())
}

/// As [`quote_bytes`].
pub(crate) fn quote(word: &str) -> String {
    String::from_utf8_lossy(&quote_bytes(word.as_bytes())).into_owned()
}

/// A path as one word of a shell line, so that a printed command can be pasted.
pub(crate) fn quote_path(path: &Path) -> String {
    quote(&path.to_string_lossy())
}

/// A command as a user would type it.
pub(crate) fn join(words: &[String]) -> String {
    words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
}

/// The editor that the person has set; `None` if none is.
pub(crate) fn editor_of_person() -> Option<String> {
    let set = |name| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    set("VISUAL").or_else(|| set("EDITOR"))
}

/// The words of a command line that opens a file. As git does, a shell runs it, since VISUAL and EDITOR may hold
/// options. The program is `sh`.
pub(crate) fn editor_words(editor: &str, path: &Path) -> Vec<std::ffi::OsString> {
    vec!["-c".into(), format!("{editor} \"$@\"").into(), "sh".into(), path.into()]
}
