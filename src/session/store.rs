//! Reads and writes the files of session loops: the state file in the project, the book and the log in SWARM_DIR.
//!
//! The state file defines the loop, and a person may write, edit or remove it. The book contains what a stop needs from
//! the previous one, and the log records the decision at each stop; a loop works without both. Every read-modify-write
//! holds a lock. Used by [`super::stop`] and the session commands. Deliberately absent: the decision at a stop.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use md5::{Digest, Md5};
use swarm_state::session::{
    After, Book, DO_IT_FILE, FileError, LogLine, SESSION_STATE_DIR, SessionFile, SessionId, SessionKind,
};

use crate::files::{entries, open_or_create};
use crate::paths::{Paths, private_dir};
use crate::store::{lock_within, read_bounded, write_atomic, write_unsynced};

/// The maximum size of a state file or book. A larger file is ignored.
const MAX_SESSION_FILE_BYTES: u64 = 16 << 20;

/// The size at which a log is rotated to `log.jsonl.1`.
const MAX_SESSION_LOG_BYTES: u64 = 4 << 20;

/// How long a command waits for the lock. A Stop hook that holds it may be waiting for a transcript.
pub const COMMAND_LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// The files of all session loops of one SWARM_DIR.
#[derive(Clone, Debug)]
pub struct SessionStore {
    root: PathBuf,
}

/// A state file that was found.
#[derive(Debug)]
pub struct LocatedLoop {
    /// Its path.
    pub path: PathBuf,
    /// Its content.
    pub file: Result<SessionFile, FileError>,
}

impl LocatedLoop {
    /// Returns the project's directory, the parent of the state file's directory.
    pub fn project(&self) -> PathBuf {
        self.path.parent().and_then(Path::parent).unwrap_or(Path::new("/")).to_owned()
    }

    pub(super) fn read(path: PathBuf) -> Option<Self> {
        let bytes = read_bounded(&path, MAX_SESSION_FILE_BYTES).ok()?;
        Some(Self { file: SessionFile::parse(&bytes), path })
    }

    /// Writes or removes the state file.
    pub(super) fn apply(&self, after: &After) -> io::Result<()> {
        match (after, &self.file) {
            (After::Write(state), Ok(file)) => {
                let mut file = file.clone();
                file.set((**state).clone());
                write_state(&self.path, &file)
            }
            (After::Remove, _) => fs::remove_file(&self.path),
            (After::Unchanged | After::Write(_), _) => Ok(()),
        }
    }
}

impl SessionStore {
    /// Opens the store of a SWARM_DIR.
    pub fn of(paths: &Paths) -> Self {
        Self { root: paths.sessions_dir() }
    }

    pub(super) fn dir(&self, session: &SessionId) -> PathBuf {
        self.root.join(session.as_str())
    }

    /// Reads the book of a session.
    pub fn book(&self, session: &SessionId) -> Book {
        let bytes = read_bounded(&self.dir(session).join("loop.json"), MAX_SESSION_FILE_BYTES);
        bytes.map(|bytes| Book::parse(&bytes)).unwrap_or_default()
    }

    /// Writes the book of a session.
    pub fn keep_book(&self, session: &SessionId, book: &Book) -> io::Result<()> {
        private_dir(&self.dir(session)).map_err(io::Error::other)?;
        write_unsynced(&self.dir(session).join("loop.json"), &book.render())
    }

    /// Adds a line to the log of a session.
    pub fn log(&self, session: &SessionId, line: &LogLine) -> io::Result<()> {
        Self::log_in(&self.dir(session), line)
    }

    /// Writes the book and adds a line to the log. The state file alone decides, so errors are ignored.
    pub(super) fn note(&self, session: &SessionId, book: &Book, line: Option<&LogLine>) {
        let _ = self.keep_book(session, book);
        let _ = line.map(|line| self.log(session, line));
    }

    /// Adds a line to the log of the stops whose session is unknown.
    pub fn log_unknown(&self, line: &LogLine) -> io::Result<()> {
        Self::log_in(&self.root, line)
    }

    fn log_in(dir: &Path, line: &LogLine) -> io::Result<()> {
        private_dir(dir).map_err(io::Error::other)?;
        let path = dir.join("log.jsonl");
        if fs::metadata(&path).is_ok_and(|found| found.len() > MAX_SESSION_LOG_BYTES) {
            fs::rename(&path, dir.join("log.jsonl.1"))?;
        }
        let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path)?;
        file.write_all(line.render().as_bytes())
    }

    /// Returns the path of a session's log.
    pub fn log_path(&self, session: &SessionId) -> PathBuf {
        self.dir(session).join("log.jsonl")
    }

    pub(super) fn scratch(&self, session: &SessionId) -> PathBuf {
        // At the start of a loop the directory does not exist yet. If it cannot be made, git returns no fingerprint.
        let _ = private_dir(&self.dir(session));
        self.dir(session).join(format!("index.{}", std::process::id()))
    }

    /// Reads the lines of a session's log, oldest first. Incomplete lines are skipped.
    pub fn log_lines(&self, session: &SessionId) -> Vec<LogLine> {
        let bytes = read_bounded(&self.log_path(session), 2 * MAX_SESSION_LOG_BYTES).unwrap_or_default();
        String::from_utf8_lossy(&bytes).lines().filter_map(LogLine::parse).collect()
    }

    /// Lists the sessions that have a book, sorted.
    pub fn known(&self) -> Vec<SessionId> {
        let with_book = entries(&self.root).into_iter().filter(|dir| dir.join("loop.json").is_file());
        with_book.filter_map(|dir| SessionId::new(dir.file_name()?.to_str()?).ok()).collect()
    }

    /// Returns the session of the project around a directory whose log or book changed last.
    pub fn last_around(&self, dir: &Path) -> Option<SessionId> {
        let dir = dir.canonicalize().ok()?;
        let is_around = |session: &SessionId| {
            let project = self.book(session).project_dir;
            project.is_some_and(|project| dir.starts_with(project.canonicalize().unwrap_or(project)))
        };
        let changed = |session: &SessionId| {
            let read =
                |name: &str| fs::metadata(self.dir(session).join(name)).and_then(|found| found.modified());
            read("log.jsonl").or_else(|_| read("loop.json")).ok()
        };
        self.known().into_iter().filter(is_around).max_by_key(changed)
    }

    /// Finds the loop of a session: in the directories of `around` and their parents, nearest first, else by the book.
    pub fn find(&self, session: &SessionId, around: &[&Path]) -> Option<LocatedLoop> {
        let near = around.iter().filter_map(|dir| dir.canonicalize().ok());
        let dirs: Vec<PathBuf> =
            near.flat_map(|dir| dir.ancestors().map(Path::to_owned).collect::<Vec<_>>()).collect();
        let named = |dir: &PathBuf| {
            let own = dir.join(SESSION_STATE_DIR).join(SessionKind::Ralph.file_name(session));
            let shared = dir.join(SESSION_STATE_DIR).join(DO_IT_FILE);
            [own, shared].into_iter().filter_map(LocatedLoop::read).find(|found| is_of(found, session))
        };
        dirs.iter().find_map(named).or_else(|| {
            let found = LocatedLoop::read(self.book(session).state_file?)?;
            // An unreadable file counts as the one of the book.
            (found.file.is_err() || is_of(&found, session)).then_some(found)
        })
    }

    /// Finds the state files of all sessions in a directory and its parents, nearest first.
    pub fn around(&self, dir: &Path) -> Vec<LocatedLoop> {
        let Ok(dir) = dir.canonicalize() else { return vec![] };
        let paths = dir.ancestors().flat_map(|dir| entries(&dir.join(SESSION_STATE_DIR)));
        paths.filter(|path| is_state_file(path)).filter_map(LocatedLoop::read).collect()
    }

    /// Reads the branch of a project's last do-it loop.
    pub(super) fn last_branch(&self, project: &Path) -> Option<String> {
        let bytes = read_bounded(&self.branch_file(project), MAX_SESSION_FILE_BYTES).ok()?;
        String::from_utf8(bytes).ok().filter(|branch| !branch.is_empty())
    }

    /// Writes the branch of a project's last do-it loop.
    pub(super) fn keep_last_branch(&self, project: &Path, branch: &str) -> io::Result<()> {
        let path = self.branch_file(project);
        private_dir(path.parent().unwrap_or(&self.root)).map_err(io::Error::other)?;
        write_unsynced(&path, branch.as_bytes())
    }

    fn branch_file(&self, project: &Path) -> PathBuf {
        self.root.join(".branches").join(digest(project))
    }

    /// Locks a state file, or a session's directory, for a read-modify-write. Waits for the lock at most `timeout`.
    /// Dropping the file releases the lock. [`io::ErrorKind::WouldBlock`] when another process holds it for longer.
    pub fn lock(&self, path: &Path, timeout: Duration) -> io::Result<File> {
        let dir = self.root.join(".locks");
        private_dir(&dir).map_err(io::Error::other)?;
        let file = open_or_create(&dir.join(digest(path)))?;
        if lock_within(&file, timeout)? { Ok(file) } else { Err(fs2::lock_contended_error()) }
    }
}

/// Returns a file name for a path.
fn digest(path: &Path) -> String {
    format!("{:x}", Md5::digest(path.as_os_str().as_encoded_bytes()))
}

/// Whether a file belongs to this session. An unreadable file is identified by its name alone.
fn is_of(found: &LocatedLoop, session: &SessionId) -> bool {
    match &found.file {
        Ok(file) => file.state().belongs_to(session),
        Err(_) => found.path.file_name().is_some_and(|name| *name != *DO_IT_FILE),
    }
}

fn is_state_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // A file without a session id in its name belongs to another tool.
    let session = name.strip_prefix("ralph-loop.").and_then(|rest| rest.strip_suffix(".local.md"));
    name == DO_IT_FILE || session.is_some_and(|session| SessionId::new(session).is_ok())
}

/// Writes a state file. After an error of the file system, the former file is unchanged.
pub fn write_state(path: &Path, file: &SessionFile) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    write_atomic(path, &file.render())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_files_are_recognized_by_name_and_other_files_are_not() {
        let is = |name: &str| is_state_file(&Path::new("/p/.claude").join(name));
        assert!(is("do-it-ralph.local.md") && is("ralph-loop.9a408fc4-9d13.local.md"));
        for name in
            ["ralph-loop.local.md", "ralph-loop..local.md", "ralph-loop.a b.local.md", "other.local.md"]
        {
            assert!(!is(name), "{name}");
        }
    }
}
