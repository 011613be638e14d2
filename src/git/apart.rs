//! Checks a snapshot out into a repository of its own, outside of the user's.
//!
//! The new repository borrows the user's objects and has copies of its refs. The user's repository is only read: it
//! gets no worktree, ref, setting or lock. No hook and no template is used. `refs/swarm/` is not copied. Submodules
//! that are checked out in the user's working tree become such repositories too.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::SHORT_TIMEOUT;
use super::listing::gitlinks;
use super::run::{GitOutput, LONG_TIMEOUT, ask, git, git_with};
use super::snapshot::{BATCH_FILES, QUIET_OPTIONS};
use crate::error::{Error, ErrorCode, Result, failed};

const CANNOT_READ: &str = "cannot read the repository";

/// The refs that a check may use.
const COPIED_REFS: [&str; 3] = ["refs/heads", "refs/remotes", "refs/tags"];

/// The settings that change the contents of files between the repository and the working tree.
const CONTENT_SETTINGS: &str =
    "^(filter\\.|lfs\\.storage$|core\\.(autocrlf|eol|symlinks|filemode|attributesfile)$)";

/// The settings of a repository that decide about the contents of files in its working tree: filters and line ends.
pub(crate) async fn checkout_settings(dir: &Path) -> BTreeMap<String, String> {
    // Without any, git exits with 1.
    let Ok(said) = git(dir, SHORT_TIMEOUT, &["config", "-z", "--get-regexp", CONTENT_SETTINGS]).await else {
        return BTreeMap::new();
    };
    let text = String::from_utf8_lossy(said.bytes());
    let entries = text.split('\0').filter_map(|entry| entry.split_once('\n'));
    let mut found: BTreeMap<String, String> =
        entries.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    if found.keys().any(|key| key.starts_with("filter.lfs.")) && !found.contains_key("lfs.storage") {
        let args = ["rev-parse", "--path-format=absolute", "--git-path", "lfs"];
        let storage = git(dir, SHORT_TIMEOUT, &args).await.ok().filter(|said| said.ok);
        found.extend(storage.map(|said| ("lfs.storage".to_owned(), said.text())));
    }
    found
}

/// The top of the working tree that holds `dir`. Fails when `dir` is not in a working tree.
pub(crate) async fn top(dir: &Path) -> Result<PathBuf> {
    let said = ask(dir, "not in a working tree", &["rev-parse", "--show-toplevel"]).await?;
    Ok(said.path())
}

/// Makes the repository `to`, with the files of `commit` and with `head` checked out. `from` is in the user's working
/// tree. The directory above `to` exists; `to` does not, or is empty. `settings` are [`checkout_settings`].
pub(crate) async fn check_out_apart(
    from: &Path,
    head: Option<&str>,
    commit: &str,
    to: &Path,
    settings: &BTreeMap<String, String>,
) -> Result<()> {
    make_repository(from, head, to).await?;
    for (key, value) in settings {
        made(&git(to, SHORT_TIMEOUT, &["config", "--", key, value]).await?)?;
    }
    let workers = ["-c", "checkout.workers=0", "read-tree", "--reset", "-u", commit];
    made(&git(to, LONG_TIMEOUT, &[&QUIET_OPTIONS[..], &workers].concat()).await?)?;
    let listed = ask(to, CANNOT_READ, &["ls-files", "-z", "--stage"]).await?;
    let links = gitlinks(listed.bytes());
    if links.is_empty() {
        return Ok(());
    }
    let top = top(from).await?;
    for (commit, path) in &links {
        let (from, to) = (top.join(path), to.join(path));
        if from.join(".git").exists() {
            Box::pin(check_out_apart(&from, Some(commit), commit, &to, settings)).await?;
        }
    }
    Ok(())
}

/// Makes the repository without files.
async fn make_repository(from: &Path, head: Option<&str>, to: &Path) -> Result<()> {
    let format = ask(from, CANNOT_READ, &["rev-parse", "--show-object-format"]).await?.text();
    let place = async |name| {
        let args = ["rev-parse", "--path-format=absolute", "--git-path", name];
        Ok::<_, Error>(ask(from, CANNOT_READ, &args).await?.path())
    };
    let (objects, shallow) = (place("objects").await?, place("shallow").await?);
    let attributes = place("info/attributes").await?;
    if objects.as_os_str().as_bytes().contains(&b'\n') {
        return Err(Error::invalid("the repository's path contains a newline"));
    }
    let above = to.parent().unwrap_or(to);
    let format = format!("--object-format={format}");
    let args = ["init", "--quiet", "--template=", &format, "--"].map(OsStr::new);
    // Below, the refs are written as a file.
    let env = [("GIT_DEFAULT_REF_FORMAT", OsStr::new("files"))];
    made(&git_with(above, SHORT_TIMEOUT, &env, &[], &[&args[..], &[to.as_os_str()]].concat()).await?)?;
    let refs = [&["for-each-ref", "--format=%(objectname) %(refname)"][..], &COPIED_REFS].concat();
    // Without refs, only checks that name one fail.
    let refs = git(from, SHORT_TIMEOUT, &refs).await?;
    let own = to.join(".git");
    let write = || -> std::io::Result<()> {
        fs::create_dir_all(own.join("objects/info"))?;
        let line = [objects.as_os_str().as_bytes(), b"\n"].concat();
        fs::write(own.join("objects/info/alternates"), line)?;
        fs::write(own.join("packed-refs"), refs.bytes())?;
        if let Some(head) = head {
            fs::write(own.join("HEAD"), format!("{head}\n"))?;
        }
        if shallow.exists() {
            fs::copy(&shallow, own.join("shallow"))?;
        }
        if attributes.exists() {
            fs::create_dir_all(own.join("info"))?;
            fs::copy(&attributes, own.join("info/attributes"))?;
        }
        Ok(())
    };
    write().map_err(|e| failed("write in", to, e))
}

/// Replaces files in such a repository by those of the commit `old`: the files that differ from `new` and that
/// `is_meant` selects by their path from the top. Returns how many there are.
pub(crate) async fn put_back(
    top: &Path,
    (old, new): (&str, &str),
    is_meant: impl Fn(&Path) -> bool,
) -> Result<usize> {
    let args = ["diff", "--name-status", "-z", "--no-renames", "--no-ext-diff", old, new, "--"];
    let listed = git(top, LONG_TIMEOUT, &[&QUIET_OPTIONS[..], &args].concat()).await?;
    made(&listed)?;
    let mut words = listed.bytes().split(|byte| *byte == 0);
    let mut changes = vec![];
    while let (Some(status), Some(path)) = (words.next(), words.next()) {
        changes.push((status, PathBuf::from(OsStr::from_bytes(path))));
    }
    // A module that became a package: `a.py` was deleted, and `a/__init__.py` takes its place.
    let deleted = changes.iter().filter(|(status, path)| *status == b"D" && is_meant(path));
    let packages: Vec<PathBuf> = deleted.map(|(_, path)| path.with_extension("")).collect();
    let is_in_package = |path: &Path| packages.iter().any(|package| path.starts_with(package));
    let (added, others): (Vec<_>, Vec<_>) = changes
        .into_iter()
        .filter(|(status, path)| is_meant(path) || *status == b"A" && is_in_package(path))
        .partition(|(status, _)| *status == b"A");
    let [added, others] =
        [added, others].map(|list| list.into_iter().map(|(_, path)| path).collect::<Vec<_>>());
    for path in &added {
        let whole = top.join(path);
        let trouble = |e| failed("remove", &whole, e);
        fs::remove_file(&whole).map_err(trouble)?;
        // The old version may have a file in the directory's place.
        for dir in path.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty()) {
            if fs::remove_dir(top.join(dir)).is_err() {
                break;
            }
        }
    }
    for paths in others.chunks(BATCH_FILES) {
        let words = [&QUIET_OPTIONS[..], &["--literal-pathspecs", "checkout", "--quiet", old, "--"]].concat();
        let mut args: Vec<&OsStr> = words.into_iter().map(OsStr::new).collect();
        args.extend(paths.iter().map(|path| path.as_os_str()));
        made(&git(top, LONG_TIMEOUT, &args).await?)?;
    }
    Ok(added.len() + others.len())
}

fn made(said: &GitOutput) -> Result<()> {
    if said.ok { Ok(()) } else { Err(Error::new(ErrorCode::System, said.complaint())) }
}
