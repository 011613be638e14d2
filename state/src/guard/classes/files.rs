//! Judges that look at the paths of a command.

use crate::guard::place::{Protected, SOME, UNKNOWN, is_below, patched_files};
use crate::guard::scene::Scene;
use crate::guard::shell::Redirect;

/// Programs that do not print the contents of their files, or use a key without printing it.
const METADATA: [&str; 20] = [
    "ls",
    "stat",
    "test",
    "[",
    "[[",
    "chmod",
    "chown",
    "mkdir",
    "file",
    "touch",
    "echo",
    "printf",
    "cd",
    "ssh",
    "rm",
    "ssh-keygen",
    "ssh-add",
    "ssh-copy-id",
    "git",
    "du",
];

/// Programs that write or delete every file that they name.
const WRITERS: [&str; 9] = ["tee", "rm", "unlink", "shred", "truncate", "touch", "chmod", "chown", "mv"];

/// The files that a command writes or deletes.
fn written<'a>(scene: &Scene<'a>) -> Vec<&'a str> {
    let redirects = scene.command.redirects.iter().filter(|redirect| redirect.writes);
    let mut words: Vec<&str> = redirects.map(|redirect| redirect.file.as_str()).collect();
    let operands: Vec<&str> = scene.operands().collect();
    let value = |options: &[&str]| scene.pairs().find(|pair| options.contains(&pair.0)).map(|pair| pair.1);
    match scene.program() {
        program if WRITERS.contains(&program) => words.extend(operands),
        "cp" | "ln" | "install" | "rsync" | "scp" => {
            words.extend(operands.last().filter(|_| operands.len() > 1))
        }
        "sed" | "perl" if scene.words().any(|word| word.starts_with("-i") || word == "-pi") => {
            words.extend(operands)
        }
        "dd" => words.extend(operands.iter().filter_map(|word| word.strip_prefix("of="))),
        "curl" | "wget" => words.extend(value(&["-o", "--output", "-O"])),
        _ => {}
    }
    words
}

pub(super) fn writes(scene: &Scene<'_>, group: Protected) -> bool {
    let patch = scene.command.input.as_deref().filter(|_| scene.program() == "apply_patch");
    let patched = patch.map(patched_files).unwrap_or_default();
    let mut words = written(scene).into_iter().chain(patched.iter().map(String::as_str));
    words.any(|word| scene.path(word).is_some_and(|path| scene.place.written(&path) == Some(group)))
}

/// The path that a deletion of `word` affects: `DIR/*` is the whole directory.
fn emptied(word: &str) -> &str {
    let (dir, name) = word.rsplit_once('/').unwrap_or((".", word));
    let is_all = name.contains('*') && name.chars().all(|c| "*.".contains(c));
    match (is_all, dir) {
        (true, "") => "/",
        (true, dir) => dir,
        (false, _) => word,
    }
}

/// Whether a path is outside of the files that the agent may delete.
fn is_outside(scene: &Scene<'_>, word: &str) -> bool {
    if let Some(rest) = word.strip_prefix(UNKNOWN) {
        // If the variable is empty, the rest is a path from the root.
        return ["/", "/*", "/."].contains(&rest);
    }
    scene.path(emptied(word)).is_some_and(|path| !scene.place.is_own(&path))
}

pub(super) fn deletes_outside(scene: &Scene<'_>) -> bool {
    let is_outside = |word: &str| is_outside(scene, word);
    match scene.program() {
        "rm" => {
            let is_long = scene.words().any(|word| word == "--recursive");
            (is_long || scene.has_letter('r') || scene.has_letter('R')) && scene.operands().any(is_outside)
        }
        "find" if scene.words().any(|word| word == "-delete") => {
            let mut dirs = scene.words().take_while(|word| !word.starts_with(['-', '(', '!']));
            dirs.any(|dir| is_outside(&format!("{dir}/{SOME}")))
        }
        "rsync" if scene.words().any(|word| word.starts_with("--del")) => {
            scene.operands().last().is_some_and(is_outside)
        }
        "mv" => scene.operands().any(|word| scene.path(word).is_some_and(|path| is_root(scene, &path))),
        "rimraf" | "trash" => scene.operands().any(is_outside),
        _ => false,
    }
}

/// Whether a path is a directory at the root, the home directory, or a project or above one.
fn is_root(scene: &Scene<'_>, path: &str) -> bool {
    let is_top = path.rfind('/') == Some(0) && path != "/tmp";
    is_top || path == scene.place.home || scene.place.project.iter().any(|dir| is_below(dir, path))
}

pub(super) fn changes_permissions(scene: &Scene<'_>) -> bool {
    const OPEN: [&str; 6] = ["a+w", "o+w", "a+rwx", "o+rwx", "ugo+rwx", "a=rwx"];
    if !["chmod", "chown", "chgrp", "setfacl"].contains(&scene.program()) {
        return false;
    }
    let is_recursive = scene.has_letter('R') || scene.words().any(|word| word == "--recursive");
    let is_open = |mode: &str| {
        let is_octal = mode.len() >= 3 && mode.chars().all(|c| c.is_ascii_digit());
        is_octal && mode.ends_with(['2', '3', '6', '7']) || OPEN.contains(&mode)
    };
    let opens = scene.program() == "chmod" && scene.operands().next().is_some_and(is_open);
    let is_wide = |word: &str| {
        let Some(path) = scene.path(emptied(word)) else { return false };
        let is_own = scene.place.is_own(&path) || scene.place.project.contains(&path);
        (is_recursive || is_root(scene, &path)) && !is_own
    };
    is_recursive && opens || scene.operands().skip(1).any(is_wide)
}

pub(super) fn reads_credentials(scene: &Scene<'_>) -> bool {
    let is_credential = |word: &str| scene.path(word).is_some_and(|path| scene.place.is_credential(&path));
    // The key of `ssh -i KEY` is used and not shown.
    let key = scene.pairs().find(|pair| pair.0 == "-i").map(|pair| pair.1);
    let mut files = scene
        .words()
        .filter(|word| Some(*word) != key)
        .map(|word| word.rsplit_once(['=', '@']).map_or(word, |(_, value)| value));
    let is_read = |redirect: &Redirect| !redirect.writes && is_credential(&redirect.file);
    !METADATA.contains(&scene.program()) && files.any(is_credential)
        || scene.command.redirects.iter().any(is_read)
}
