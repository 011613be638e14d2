//! A room: a temporary checkout of a snapshot, in the loop's folder and so outside of the agent's tree.
//!
//! The user's repository is only read ([`git::check_out_apart`]). A room has the files of the snapshot, and links to
//! the dependency folders that git ignores. Nothing is written through a link that the agent made, and removing a room
//! follows none. A room is removed when it is dropped; the rooms of a daemon that died are removed by [`sweep`].

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use swarm_state::ignored::is_generated;
use walkdir::{DirEntry, WalkDir};

use super::{hidden, protect};
use crate::error::{Error, Result};
use crate::files::if_exists;
use crate::{git, paths};

/// The folder for rooms in a loop's folder.
const ROOMS_DIR: &str = "room";

/// The folders that package managers fill. They are linked into a room if git ignores them.
const DEPENDENCY_DIRS: [&str; 4] = ["node_modules", ".venv", "venv", "vendor"];

/// The largest file in a virtual environment that is searched for the tree's path.
const MAX_PATH_FILE_BYTES: u64 = 1 << 20;

/// How deep below the top of the tree they are looked for.
const MAX_DEPENDENCY_DEPTH: usize = 4;

/// Those of them that are virtual environments of Python.
const ENVIRONMENT_DIRS: [&str; 2] = [".venv", "venv"];

#[derive(Debug)]
pub(super) struct Room {
    /// Holds nothing but the checkout.
    container: PathBuf,
    /// The top of the checkout. Its name is that of the tree's top.
    pub(super) top: PathBuf,
    /// The worker's directory in it.
    pub(super) cwd: PathBuf,
    /// The top of the agent's tree, in each form in which a command may contain it.
    pub(super) origins: Vec<PathBuf>,
    /// Files that the checks in the room may not change, relative to `cwd`, with their hashes.
    watched: BTreeMap<PathBuf, String>,
}

impl Room {
    /// Makes a room from a snapshot of the tree that holds `cwd`. `folder` is the loop's, `settings` are those of the
    /// baseline: an agent could add a filter that changes the files.
    pub(super) async fn make(
        folder: &Path,
        cwd: &Path,
        (head, commit): (Option<&str>, &str),
        settings: &BTreeMap<String, String>,
    ) -> Result<Self> {
        static ROOMS_MADE: AtomicU64 = AtomicU64::new(0);
        let origin = paths::resolve(&git::top(cwd).await?);
        let outside = || Error::invalid("the worker's directory is no longer in its repository");
        let below = paths::resolve(cwd).strip_prefix(&origin).map_err(|_| outside())?.to_owned();
        let number = ROOMS_MADE.fetch_add(1, Ordering::Relaxed);
        let container = folder.join(ROOMS_DIR).join(format!("{}-{number}", std::process::id()));
        paths::private_dir(&container)?;
        let top = container.join(origin.file_name().unwrap_or("tree".as_ref()));
        let typed = cwd.ancestors().nth(below.components().count()).map(Path::to_owned);
        let mut origins = vec![origin];
        origins.extend(typed.filter(|typed| cwd.ends_with(&below) && *typed != origins[0]));
        let room = Self { cwd: top.join(&below), container, top, origins, watched: BTreeMap::new() };
        git::check_out_apart(cwd, head, commit, &room.top, settings).await?;
        // A link in the snapshot may lead anywhere.
        if paths::resolve(&room.cwd) != paths::resolve(&room.top).join(&below) || !room.cwd.is_dir() {
            return Err(Error::invalid("the snapshot does not have the worker's directory"));
        }
        Ok(room)
    }

    /// Links the dependency folders that the snapshot does not have.
    pub(super) async fn link_dependencies(&self) -> Result<()> {
        let (origin, top) = (self.origins[0].clone(), self.top.clone());
        blocking("cannot link the dependency folders", move || link_all(&origin, &top)).await
    }

    /// A linked folder whose contents refer to the agent's tree, so that checks in the room also test that tree.
    pub(super) fn leak(&self) -> Option<String> {
        let found = dependency_dirs(&self.origins[0]).into_iter().filter(|dir| {
            let is_environment = ENVIRONMENT_DIRS.iter().any(|name| dir.ends_with(name));
            is_environment && self.top.join(dir).is_symlink()
        });
        let mut leaks = found.filter(|dir| is_editable(&self.origins[0].join(dir), &self.origins));
        leaks.next().map(|dir| dir.display().to_string())
    }

    /// Makes watched files in the room those of the agent's tree `cwd`, which were found to be as approved, and watches
    /// them. `protected` has the paths and hashes of a baseline.
    pub(super) async fn lay_watched(
        &mut self,
        cwd: &Path,
        protected: BTreeMap<String, String>,
    ) -> Result<()> {
        let (from, to) = (cwd.to_owned(), self.cwd.clone());
        let is_inside = |file: &Path| file.components().all(|part| matches!(part, Component::Normal(_)));
        self.watched = blocking("cannot copy the watched files", move || {
            let files = protected.into_iter().map(|(file, hash)| (PathBuf::from(file), hash));
            let is_as_approved = |(file, hash): &(PathBuf, String)| {
                is_inside(file) && hash_of(&from.join(file)).as_ref() == Some(hash)
            };
            let watched: BTreeMap<PathBuf, String> = files.filter(is_as_approved).collect();
            let differs =
                |(file, hash): &(&PathBuf, &String)| hash_of(&to.join(file)).as_ref() != Some(*hash);
            for (file, _) in watched.iter().filter(differs) {
                lay(&from.join(file), &to, file)?;
            }
            Ok(watched)
        })
        .await?;
        Ok(())
    }

    /// Lays the files of a directory over the worker's directory, and watches them.
    pub(super) async fn lay_over(&mut self, from: &Path) -> Result<()> {
        let (from, to) = (from.to_owned(), self.cwd.clone());
        let laid = blocking("cannot copy the hidden files", move || {
            let mut laid = BTreeMap::new();
            for entry in hidden::files(&from) {
                let entry = entry?;
                let Ok(file) = entry.path().strip_prefix(&from) else { continue };
                if entry.file_type().is_dir() {
                    make_real_dir(&to, file)?;
                } else {
                    lay(entry.path(), &to, file)?;
                    laid.extend(hash_of(entry.path()).map(|hash| (file.to_owned(), hash)));
                }
            }
            Ok(laid)
        });
        self.watched.extend(laid.await?);
        Ok(())
    }

    pub(super) async fn changed(&self) -> Result<Vec<String>> {
        let (cwd, watched) = (self.cwd.clone(), self.watched.clone());
        blocking("cannot read the watched files", move || {
            let differs = |(file, hash): &(&PathBuf, &String)| {
                !is_generated(&file.to_string_lossy()) && hash_of(&cwd.join(file)).as_ref() != Some(*hash)
            };
            Ok(watched.iter().filter(differs).map(|(file, _)| file.display().to_string()).collect())
        })
        .await
    }

    /// Replaces the files that `is_meant` selects by their versions in the commit `old`; `new` is the room's. Paths
    /// are relative to the worker's directory. Returns how many files differ.
    pub(super) async fn put_back(
        &self,
        (old, new): (&str, &str),
        is_meant: impl Fn(&Path) -> bool,
    ) -> Result<usize> {
        let below = self.cwd.strip_prefix(&self.top).unwrap_or(Path::new(""));
        git::put_back(&self.top, (old, new), |path| path.strip_prefix(below).is_ok_and(&is_meant)).await
    }

    /// A command with the paths of the agent's tree replaced by those of the room.
    pub(super) fn command(&self, command: &str) -> String {
        let moved = |text: String, origin: &PathBuf| {
            replaced(&text, &origin.to_string_lossy(), &self.top.to_string_lossy())
        };
        self.origins.iter().fold(command.to_owned(), moved)
    }

    /// An environment with the paths of the agent's tree replaced by those that exist in the room.
    pub(super) fn environment(&self, env: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let there = |item: &str| {
            let mut below =
                self.origins.iter().filter_map(|origin| Path::new(item).strip_prefix(origin).ok());
            let path = self.top.join(below.next()?);
            path.exists().then(|| path.to_string_lossy().into_owned())
        };
        let moved = |value: &String| {
            let items = value.split(':').map(|item| there(item).unwrap_or_else(|| item.to_owned()));
            items.collect::<Vec<_>>().join(":")
        };
        env.iter().map(|(key, value)| (key.clone(), moved(value))).collect()
    }

    pub(super) async fn remove(mut self) {
        let container = std::mem::take(&mut self.container);
        drop(tokio::task::spawn_blocking(move || remove_room(&container)).await);
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let container = std::mem::take(&mut self.container);
        // The caller was canceled and does not wait for the end of the removal.
        if container != Path::new("") {
            drop(std::thread::spawn(move || remove_room(&container)));
        }
    }
}

/// Removes a room, and the folder for rooms unless another one is in it.
fn remove_room(container: &Path) {
    if let Err(error) = remove_tree(container) {
        tracing::warn!(%error, "cannot remove the room '{}'", container.display());
    }
    let _ = container.parent().map(fs::remove_dir);
}

/// Removes the rooms of a daemon that died. `root` has the folders of all loops.
pub(crate) fn sweep(root: &Path) {
    for folder in fs::read_dir(root).into_iter().flatten().flatten() {
        if let Err(error) = remove_tree(&folder.path().join(ROOMS_DIR)) {
            tracing::warn!(%error, "cannot remove a room in '{}'", folder.path().display());
        }
    }
}

/// Removes a directory without following a link, also if a check made directories in it read-only.
fn remove_tree(dir: &Path) -> io::Result<()> {
    if if_exists(fs::remove_dir_all(dir)).is_ok() {
        return Ok(());
    }
    // The walk changes a directory before it reads it.
    let writable = |entry: &DirEntry| {
        if entry.file_type().is_dir() {
            drop(fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o700)));
        }
        true
    };
    WalkDir::new(dir).into_iter().filter_entry(writable).for_each(drop);
    fs::remove_dir_all(dir)
}

async fn blocking<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(io::Error::from).and_then(|done| done).map_err(|error| Error::system(what, error))
}

/// A file's hash as a watched file; `None` if it cannot be read.
fn hash_of(path: &Path) -> Option<String> {
    protect::hash(path).ok()
}

/// Replaces a path in a text where it is a whole path, or the beginning of one.
fn replaced(text: &str, from: &str, to: &str) -> String {
    let is_in_name = |char: char| char.is_alphanumeric() || ['.', '_', '-'].contains(&char);
    let mut parts = vec![];
    let mut done = 0;
    for (at, _) in text.match_indices(from) {
        let ends = text[at + from.len()..].chars().next().is_none_or(|next| !is_in_name(next));
        let begins = text[..at].chars().next_back().is_none_or(|last| !is_in_name(last) && last != '/');
        if ends && begins {
            parts.extend([&text[done..at], to]);
            done = at + from.len();
        }
    }
    parts.push(&text[done..]);
    parts.concat()
}

/// The dependency folders of a tree, relative to it.
fn dependency_dirs(origin: &Path) -> Vec<PathBuf> {
    let is_dependency =
        |entry: &DirEntry| entry.depth() > 0 && DEPENDENCY_DIRS.iter().any(|name| entry.file_name() == *name);
    let mut found = vec![];
    let mut walk = WalkDir::new(origin).max_depth(MAX_DEPENDENCY_DEPTH).into_iter();
    while let Some(entry) = walk.next() {
        let Ok(entry) = entry else { continue };
        let is_git = entry.file_name() == ".git";
        if is_dependency(&entry) && entry.path().is_dir() {
            found.extend(entry.path().strip_prefix(origin).map(Path::to_owned));
        }
        if entry.file_type().is_dir() && (is_git || is_dependency(&entry)) {
            walk.skip_current_dir();
        }
    }
    found
}

/// Links the dependency folders of a tree into the room `top`, unless the snapshot has them.
fn link_all(origin: &Path, top: &Path) -> io::Result<()> {
    for dir in dependency_dirs(origin) {
        let (from, to) = (origin.join(&dir), top.join(&dir));
        let parent = to.parent().filter(|parent| parent.is_dir());
        let is_inside = parent.is_some_and(|dir| paths::resolve(dir).starts_with(paths::resolve(top)));
        if to.symlink_metadata().is_ok() || !is_inside {
            continue;
        }
        if dir.ends_with("node_modules") {
            link_entries(origin, &from, top, &to)?;
        } else {
            symlink(&from, &to)?;
        }
    }
    Ok(())
}

/// Makes `to` a directory with links to the entries of `from`. Links to a monorepo's workspaces lead into
/// the room.
fn link_entries(origin: &Path, from: &Path, top: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, link) = (entry.path(), to.join(entry.file_name()));
        let is_scope = entry.file_name().as_encoded_bytes().starts_with(b"@");
        if is_scope && entry.file_type()?.is_dir() {
            link_entries(origin, &path, top, &link)?;
            continue;
        }
        let target = entry.file_type()?.is_symlink().then(|| paths::resolve(&path));
        let below = target.as_ref().and_then(|target| target.strip_prefix(origin).ok());
        let is_workspace = |below: &&Path| !below.components().any(|part| part.as_os_str() == "node_modules");
        match below.filter(is_workspace) {
            Some(below) => symlink(top.join(below), &link)?,
            None => symlink(&path, &link)?,
        }
    }
    Ok(())
}

/// Whether a virtual environment refers to the tree, as after `pip install -e`.
fn is_editable(environment: &Path, origins: &[PathBuf]) -> bool {
    let names_tree = |file: &Path| {
        let text = crate::files::read_bounded(file, MAX_PATH_FILE_BYTES).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        origins.iter().any(|origin| text.contains(&*origin.to_string_lossy()))
    };
    let is_path_file = |entry: &DirEntry| {
        let name = entry.file_name().to_string_lossy();
        name.ends_with(".pth") || name.starts_with("__editable__")
    };
    // lib/python3.12/site-packages/FILE
    let files = WalkDir::new(environment.join("lib")).min_depth(3).max_depth(3).into_iter().flatten();
    files.filter(|entry| entry.file_type().is_file() && is_path_file(entry)).any(|e| names_tree(e.path()))
}

/// Makes `below` a directory in `root`, and replaces links and files on the way.
fn make_real_dir(root: &Path, below: &Path) -> io::Result<()> {
    let mut dir = root.to_owned();
    for part in below.components().filter(|part| matches!(part, Component::Normal(_))) {
        dir.push(part);
        match dir.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            found => {
                if found.is_ok() {
                    fs::remove_file(&dir)?;
                }
                fs::create_dir(&dir)?;
            }
        }
    }
    Ok(())
}

/// Copies a file or a link to `below` in `root`, with its permissions. Replaces anything that is there.
fn lay(from: &Path, root: &Path, below: &Path) -> io::Result<()> {
    make_real_dir(root, below.parent().unwrap_or(Path::new("")))?;
    let to = root.join(below);
    match to.symlink_metadata() {
        Ok(found) if found.is_dir() => remove_tree(&to)?,
        Ok(_) => fs::remove_file(&to)?,
        Err(_) => {}
    }
    let found = from.symlink_metadata()?;
    if found.is_symlink() {
        symlink(fs::read_link(from)?, &to)
    } else if found.is_file() {
        fs::copy(from, &to).map(drop)
    } else {
        // Neither pipes nor sockets are files of a check.
        Ok(())
    }
}

#[cfg(test)]
mod tests;
