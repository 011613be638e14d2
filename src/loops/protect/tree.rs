//! Finds the files of a tree that the globs of `--protect` match, and those that git ignores.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use swarm_state::runners::DEPENDENCY_DIRS;
use walkdir::{DirEntry, WalkDir};

use crate::error::{Error, Result};

/// The file with git's ignore rules of a directory.
const RULES_FILE: &str = ".gitignore";

const MAX_RULES_BYTES: u64 = 1 << 20;

/// A glob without `./` at its start and `/` at its end.
pub(super) fn bare(text: &str) -> &str {
    text.trim_start_matches("./").trim_end_matches('/')
}

/// Compiles the globs of `--protect`. A directory matches everything in it. The error names an invalid glob.
pub(crate) fn globs(texts: &[String]) -> Result<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for text in texts {
        let bare = bare(text);
        let all_below = format!("{bare}/**");
        for pattern in [bare, &all_below] {
            set.add(glob(pattern).map_err(|e| {
                Error::usage(format!("--protect '{text}' is not a valid glob: {}", e.kind()))
                    .hint("for example --protect 'tests/**/*.py'; ** matches subdirectories")
            })?);
        }
    }
    set.build().map_err(|e| Error::invalid(format!("--protect: {e}")))
}

fn glob(pattern: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(pattern).literal_separator(true).build()
}

/// The files that match, relative to `root`, except git's and swarm's progress. `texts` are the globs as typed.
pub(super) fn matching(root: &Path, texts: &[String], globs: &GlobSet) -> Vec<PathBuf> {
    walk(root, texts, &|_| false).filter(|path| globs.is_match(path)).collect()
}

/// The ignore rules that apply to protected files: those of git's repository, of the directories above `root` in it,
/// and of the directories that [`matching`] reads, or of `all` directories. Dependency folders are left out. The keys
/// are absolute directories.
pub(super) fn ignore_rules(root: &Path, texts: &[String], all: bool) -> BTreeMap<String, String> {
    let mut rules = BTreeMap::new();
    let Some(top) = root.ancestors().find(|dir| dir.join(".git").exists()) else { return rules };
    let above = root.ancestors().take_while(|dir| dir.starts_with(top)).map(|dir| dir.join(RULES_FILE));
    let all = ["**".to_owned()].into_iter().filter(|_| all);
    let texts: Vec<String> = texts.iter().cloned().chain(all).collect();
    let below = walk(root, &texts, &is_dependency_dir)
        .filter(|path| path.ends_with(RULES_FILE))
        .map(|path| root.join(path));
    for file in above.chain(below).chain([top.join(".git/info/exclude")]) {
        let dir = if file.ends_with(RULES_FILE) { file.parent().unwrap_or(top) } else { top };
        if let Ok(text) = crate::files::read_bounded(&file, MAX_RULES_BYTES) {
            let all: &mut String = rules.entry(dir.to_string_lossy().into_owned()).or_default();
            all.push_str(&String::from_utf8_lossy(&text));
            all.push('\n');
        }
    }
    rules
}

/// git's ignore rules, the deepest directory first.
pub(super) struct IgnoreRules(Vec<Gitignore>);

impl IgnoreRules {
    /// Compiles rules. git ignores a rule that is invalid, and so does this.
    pub(super) fn new(rules: &BTreeMap<String, String>) -> Self {
        let compile = |(dir, text): (&String, &String)| {
            let mut builder = GitignoreBuilder::new(dir);
            for line in text.lines() {
                let _ = builder.add_line(None, line);
            }
            builder.build().ok()
        };
        // A directory sorts before the directories in it.
        Self(rules.iter().rev().filter_map(compile).collect())
    }

    /// Whether git ignores a file that it does not track. `path` is absolute.
    pub(super) fn ignore(&self, path: &Path) -> bool {
        self.is_ignored(path, false)
    }

    /// Whether git ignores the untracked files in a directory.
    pub(super) fn ignore_dir(&self, path: &Path) -> bool {
        self.is_ignored(path, true)
    }

    fn is_ignored(&self, path: &Path, is_dir: bool) -> bool {
        let own = self.0.iter().filter(|rules| path.starts_with(rules.path()));
        let mut verdicts = own.map(|rules| rules.matched_path_or_any_parents(path, is_dir));
        verdicts.find(|verdict| !verdict.is_none()).is_some_and(|verdict| verdict.is_ignore())
    }
}

/// All files that a glob may match. A linked directory is entered only if a glob names it, or a directory in it:
/// `**` does not leave the tree.
fn walk<'a>(
    root: &Path,
    texts: &[String],
    is_left_out: &'a dyn Fn(&str) -> bool,
) -> impl Iterator<Item = PathBuf> + use<'a> {
    let prefixes: Vec<PathBuf> = texts.iter().map(|text| literal_prefix(bare(text))).collect();
    let root = root.to_owned();
    let top = root.clone();
    let may_enter = move |entry: &DirEntry| {
        let name = entry.file_name().to_string_lossy();
        if [".git", ".swarm"].contains(&name.as_ref()) || entry.file_type().is_dir() && is_left_out(&name) {
            return false;
        }
        let Ok(path) = entry.path().strip_prefix(&top) else { return true };
        let is_link = entry.path_is_symlink();
        !entry.file_type().is_dir()
            || prefixes.iter().any(|prefix| {
                let is_named = path.starts_with(prefix) || prefix.starts_with(path);
                is_named && !(is_link && prefix.as_os_str().is_empty())
            })
    };
    let walk = WalkDir::new(&root).min_depth(1).follow_links(true).into_iter().filter_entry(may_enter);
    walk.filter_map(move |entry| {
        let path = match entry {
            Ok(entry) if entry.file_type().is_dir() => return None,
            Ok(entry) => entry.into_path(),
            // A link to nothing is a file too.
            Err(error) => {
                let path = error.path()?;
                fs::symlink_metadata(path).ok().filter(fs::Metadata::is_symlink)?;
                path.to_owned()
            }
        };
        Some(path.strip_prefix(&root).ok()?.to_owned())
    })
}

/// The directories at the start of a glob, without wildcards.
fn literal_prefix(glob: &str) -> PathBuf {
    glob.split('/').take_while(|part| !part.contains(['*', '?', '[', '{', '\\'])).collect()
}

/// The path relative to the tree, if it is a file in it, or a file next to it that a check names from inside.
pub(super) fn within(root: &Path, path: &Path) -> Option<PathBuf> {
    let relative: PathBuf = if path.is_absolute() {
        path.strip_prefix(root).ok()?.to_owned()
    } else {
        path.components().filter(|part| *part != Component::CurDir).collect()
    };
    if !root.join(&relative).is_file() {
        return None;
    }
    if relative.components().all(|part| matches!(part, Component::Normal(_))) {
        return Some(relative);
    }
    // The part before `..` may be a link, so this asks the disk.
    let dir = root.join(&relative).parent()?.canonicalize().ok()?;
    let whole = dir.join(relative.file_name()?);
    Some(
        root.canonicalize()
            .ok()
            .and_then(|root| Some(whole.strip_prefix(root).ok()?.to_owned()))
            .unwrap_or(relative),
    )
}

/// Whether a package manager fills directories of this name. `vendor` and `venv` can be directories of the project.
pub(super) fn is_dependency_dir(name: &str) -> bool {
    DEPENDENCY_DIRS.contains(&name) && !["vendor", "venv"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignore_rules_apply_as_in_git() {
        let rules = |list: &[(&str, &str)]| list.iter().map(|(d, t)| ((*d).into(), (*t).into())).collect();
        let rules = IgnoreRules::new(&rules(&[
            ("/r", "*.log\n/out/\n# comment\n!keep.log\n"),
            ("/r/tests", "tmp/\n!a.log\n"),
        ]));
        for (path, ignored) in [
            ("/r/x.log", true),
            ("/r/keep.log", false),
            ("/r/tests/b.log", true),
            ("/r/tests/a.log", false),
            ("/r/tests/tmp/x/y", true),
            ("/r/out/x", true),
            ("/r/tests/out/x", false),
            ("/other/x.log", false),
        ] {
            assert_eq!(rules.ignore(Path::new(path)), ignored, "{path}");
        }
    }

    #[test]
    fn only_linked_directories_that_a_glob_names_are_entered() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
        for dir in [root.join("tests"), root.join("src"), outside.clone()] {
            fs::create_dir_all(dir).unwrap();
        }
        for file in [root.join("tests/a.py"), root.join("src/b.py"), outside.join("c.py")] {
            fs::write(file, "").unwrap();
        }
        std::os::unix::fs::symlink("../../outside", root.join("tests/data")).unwrap();
        std::os::unix::fs::symlink("../../outside", root.join("src/data")).unwrap();
        std::os::unix::fs::symlink("nothing", root.join("tests/broken")).unwrap();
        std::os::unix::fs::symlink(".", root.join("tests/loop")).unwrap();
        let found = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            let mut found = matching(&root, &texts, &globs(&texts).unwrap());
            found.sort();
            found.into_iter().map(|path| path.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(found(&["tests/**"]), ["tests/a.py", "tests/broken", "tests/data/c.py", "tests/loop"]);
        assert_eq!(found(&["**/*.py"]), ["src/b.py", "tests/a.py"]);
        assert_eq!(found(&["tests/data"]), ["tests/data/c.py"]);
    }
}
