//! Where the loops within sessions lie: the state file in the project, and the book beside the daemon's files.
//!
//! The state file is the truth of a loop, and a person may write, edit or remove it. The book (in SWARM_DIR) remembers
//! what a stop must know of the one before, and the log says what came of each; a loop goes on without both. All that
//! is read and then written is read and written under a lock. Used by [`super::stop`] and the session commands.
//! Deliberately absent: what follows from a stop (`swarm_state::session`).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fs2::FileExt;
use md5::{Digest, Md5};
use swarm_state::session::{
    Book, DO_IT_FILE, FileError, LogLine, STATE_DIR, SessionFile, SessionId, SessionKind,
};

use crate::paths::{Paths, private_dir};
use crate::store::{read_bounded, write_atomic, write_unsynced};

/// A state file or a book that is larger is none, bytes.
const LONGEST: u64 = 16 << 20;

/// A log that is longer begins anew; the one before is kept as `log.jsonl.1`.
const LONGEST_LOG: u64 = 4 << 20;

/// How long a command waits for a lock. A Stop hook that holds it may wait for a transcript.
pub const COMMAND_LOCK_WAIT: Duration = Duration::from_secs(5);

/// How often it is tried.
const TRY: Duration = Duration::from_millis(5);

/// The directory of the books.
#[derive(Clone, Debug)]
pub struct Sessions {
    root: PathBuf,
}

/// A state file.
#[derive(Debug)]
pub struct Located {
    /// Where it is.
    pub path: PathBuf,
    /// What it says.
    pub file: Result<SessionFile, FileError>,
}

impl Located {
    /// The project's directory: what holds the directory of the state file.
    pub fn project(&self) -> PathBuf {
        self.path.parent().and_then(Path::parent).unwrap_or(Path::new("/")).to_owned()
    }

    fn read(path: PathBuf) -> Option<Self> {
        let bytes = read_bounded(&path, LONGEST).ok()?;
        Some(Self { file: SessionFile::parse(&bytes), path })
    }
}

/// Held while a state file is read and written. The kernel drops it with its holder.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "the file is the lock")] File);

impl Sessions {
    /// Those of a state directory.
    pub fn of(paths: &Paths) -> Self {
        Self { root: paths.sessions_dir() }
    }

    fn dir(&self, session: &SessionId) -> PathBuf {
        self.root.join(session.as_str())
    }

    /// What is remembered of a session's loop.
    pub fn book(&self, session: &SessionId) -> Book {
        let bytes = read_bounded(&self.dir(session).join("loop.json"), LONGEST);
        bytes.map(|bytes| Book::parse(&bytes)).unwrap_or_default()
    }

    /// Writes it down.
    ///
    /// # Errors
    /// The system's own.
    pub fn keep_book(&self, session: &SessionId, book: &Book) -> io::Result<()> {
        private_dir(&self.dir(session)).map_err(io::Error::other)?;
        write_unsynced(&self.dir(session).join("loop.json"), &book.render())
    }

    /// Adds a line to the log of a session's loop.
    ///
    /// # Errors
    /// The system's own.
    pub fn log(&self, session: &SessionId, line: &LogLine) -> io::Result<()> {
        Self::log_in(&self.dir(session), line)
    }

    /// Adds a line to the log of the stops of which no session is known.
    ///
    /// # Errors
    /// The system's own.
    pub fn log_unknown(&self, line: &LogLine) -> io::Result<()> {
        Self::log_in(&self.root, line)
    }

    fn log_in(dir: &Path, line: &LogLine) -> io::Result<()> {
        private_dir(dir).map_err(io::Error::other)?;
        let path = dir.join("log.jsonl");
        if fs::metadata(&path).is_ok_and(|found| found.len() > LONGEST_LOG) {
            fs::rename(&path, dir.join("log.jsonl.1"))?;
        }
        let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path)?;
        file.write_all(line.render().as_bytes())
    }

    /// Where that log is.
    pub fn log_path(&self, session: &SessionId) -> PathBuf {
        self.dir(session).join("log.jsonl")
    }

    /// A place for a file that is gone again after use.
    pub(super) fn scratch(&self, session: &SessionId) -> PathBuf {
        // At the start of a loop its directory is not there yet; without one, nothing is known of the tree.
        let _ = private_dir(&self.dir(session));
        self.dir(session).join(format!("index.{}", std::process::id()))
    }

    /// The lines of that log, oldest first; torn ones are passed over.
    pub fn log_lines(&self, session: &SessionId) -> Vec<LogLine> {
        let bytes = read_bounded(&self.log_path(session), 2 * LONGEST_LOG).unwrap_or_default();
        String::from_utf8_lossy(&bytes).lines().filter_map(LogLine::parse).collect()
    }

    /// The sessions that have a book, sorted.
    pub fn known(&self) -> Vec<SessionId> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut ids: Vec<SessionId> = entries
            .filter(|entry| entry.path().join("loop.json").is_file())
            .filter_map(|entry| SessionId::new(entry.file_name().to_str()?).ok())
            .collect();
        ids.sort();
        ids
    }

    /// The session whose loop, around a directory, was the last one that something happened to, live or ended.
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

    /// The loop that holds a session: by the directories around it, nearest first, else by the book.
    pub fn find(&self, session: &SessionId, around: &[&Path]) -> Option<Located> {
        let near = around.iter().filter_map(|dir| dir.canonicalize().ok());
        let mut dirs: Vec<PathBuf> =
            near.flat_map(|dir| dir.ancestors().map(Path::to_owned).collect::<Vec<_>>()).collect();
        dirs.dedup();
        let named = |dir: &PathBuf| {
            let own = dir.join(STATE_DIR).join(SessionKind::Ralph.file_name(session));
            let shared = dir.join(STATE_DIR).join(DO_IT_FILE);
            [own, shared].into_iter().filter_map(Located::read).find(|found| is_of(found, session))
        };
        dirs.iter().find_map(named).or_else(|| {
            let found = Located::read(self.book(session).state_file?)?;
            // One that nobody can read is the one that the book remembers.
            (found.file.is_err() || is_of(&found, session)).then_some(found)
        })
    }

    /// Every state file around a directory, nearest first: those of all sessions.
    pub fn around(&self, dir: &Path) -> Vec<Located> {
        let Ok(dir) = dir.canonicalize() else { return vec![] };
        let mut found = vec![];
        for dir in dir.ancestors() {
            let mut names: Vec<PathBuf> = fs::read_dir(dir.join(STATE_DIR))
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path())
                .filter(|path| is_state_file(path))
                .collect();
            names.sort();
            found.extend(names.into_iter().filter_map(Located::read));
        }
        found
    }

    /// The branch of a project's last do-it loop.
    pub(super) fn last_branch(&self, project: &Path) -> Option<String> {
        let bytes = read_bounded(&self.branch_file(project), LONGEST).ok()?;
        String::from_utf8(bytes).ok().filter(|branch| !branch.is_empty())
    }

    /// Remembers it.
    pub(super) fn keep_last_branch(&self, project: &Path, branch: &str) -> io::Result<()> {
        let path = self.branch_file(project);
        private_dir(path.parent().unwrap_or(&self.root)).map_err(io::Error::other)?;
        write_unsynced(&path, branch.as_bytes())
    }

    fn branch_file(&self, project: &Path) -> PathBuf {
        self.root.join(".branches").join(digest(project))
    }

    /// Locks a state file for all who read and then write it, and waits for that no longer than `patience`.
    ///
    /// # Errors
    /// The system's own; `WouldBlock` when another process holds it for longer.
    pub fn lock(&self, state_file: &Path, patience: Duration) -> io::Result<Lock> {
        let dir = self.root.join(".locks");
        private_dir(&dir).map_err(io::Error::other)?;
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(dir.join(digest(state_file)))?;
        let start = Instant::now();
        while let Err(error) = FileExt::try_lock_exclusive(&file) {
            if start.elapsed() >= patience {
                return Err(error);
            }
            sleep(TRY);
        }
        Ok(Lock(file))
    }
}

/// A path as a file's name.
fn digest(path: &Path) -> String {
    format!("{:x}", Md5::digest(path.as_os_str().as_encoded_bytes()))
}

/// Whether a file can be of this session: one that nobody can read may be anybody's, and says so by its name alone.
fn is_of(found: &Located, session: &SessionId) -> bool {
    match &found.file {
        Ok(file) => file.state().belongs_to(session),
        Err(_) => found.path.file_name().is_some_and(|name| *name != *DO_IT_FILE),
    }
}

fn is_state_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // One without a session's name in it is another tool's.
    let session = name.strip_prefix("ralph-loop.").and_then(|rest| rest.strip_suffix(".local.md"));
    name == DO_IT_FILE || session.is_some_and(|session| SessionId::new(session).is_ok())
}

/// Writes a state file.
///
/// # Errors
/// The system's own; what was there is then still there.
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
    fn a_state_file_names_its_session_and_other_tools_files_are_left_alone() {
        let is = |name: &str| is_state_file(&Path::new("/p/.claude").join(name));
        assert!(is("do-it-ralph.local.md") && is("ralph-loop.9a408fc4-9d13.local.md"));
        for name in
            ["ralph-loop.local.md", "ralph-loop..local.md", "ralph-loop.a b.local.md", "other.local.md"]
        {
            assert!(!is(name), "{name}");
        }
    }
}
