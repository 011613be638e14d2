//! The paths of all of swarm's files, from `SWARM_DIR` or the home directory.
//!
//! All paths are absolute and, as far as they exist, free of symbolic links, so that one directory reached in two
//! ways is one swarm. Only [`Paths::prepare_sockets`] creates anything: the directory of a socket.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use swarm_state::model::{Run, WorkerName};

use directories::BaseDirs;

use crate::error::{Error, ErrorCode, Result, failed};
use crate::files;

/// The longest path of a Unix socket without the closing NUL.
pub const MAX_SOCKET_PATH_BYTES: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// The hint for a place in which swarm cannot keep its files.
pub(crate) const OWN_DIRECTORY: &str = "set SWARM_DIR to a directory that belongs to you and is writable";

pub(crate) mod sockets;

/// All paths below one root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    root: PathBuf,
    /// Other hosts can use the root too.
    shared: bool,
}

impl Paths {
    /// The paths below `SWARM_DIR`, or below `~/.swarm`.
    ///
    /// # Errors
    /// [`ErrorCode::NoDaemon`] if neither is set, if the home directory is missing or another user's, if a file is in
    /// the way, or if a relative `SWARM_DIR` starts from a directory that is gone.
    pub fn from_env() -> Result<Self> {
        let (name, root) = match env::var_os("SWARM_DIR").filter(|dir| !dir.is_empty()) {
            Some(dir) => ("SWARM_DIR ", PathBuf::from(dir)),
            None => ("", default_root(&home()?)?),
        };
        let root = std::path::absolute(&root).map_err(|e| failed("find", &root, e))?;
        let paths = Self::new(root);
        if let Some(file) = file_in_the_way(&paths.root) {
            let below = if file == paths.root {
                String::new()
            } else {
                format!("'{}' cannot be made: ", paths.root.display())
            };
            let message = format!("{name}{below}'{}' is not a directory", file.display());
            return Err(Error::new(ErrorCode::NoDaemon, message).hint("set SWARM_DIR to a directory"));
        }
        Ok(paths)
    }

    /// The paths below `root`.
    pub fn new(root: PathBuf) -> Self {
        let root = resolve(&root);
        let shared = files::is_network(&root) || root.join(files::SHARED_MARK).exists();
        Self { root, shared }
    }

    /// Whether several hosts can use the directory at once: it lies on a network file system, or has a file `shared`.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// swarm's directory; mode 0700.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A worker's record.
    pub fn worker_file(&self, name: &WorkerName) -> PathBuf {
        self.workers_dir().join(format!("{name}.json"))
    }

    /// An empty file that records a change to a worker while its record cannot be written: `killed`, `paused`,
    /// `paused-by-shutdown` or `paused-without-progress`.
    pub fn mark(&self, name: &WorkerName, word: &str) -> PathBuf {
        self.workers_dir().join(format!("{name}.{word}"))
    }

    /// The directory of a loop.
    pub fn ralph_dir(&self, name: &WorkerName) -> PathBuf {
        self.ralph_root().join(name.as_str())
    }

    /// A loop's state file, which users may read and edit.
    pub fn ralph_state(&self, name: &WorkerName) -> PathBuf {
        self.ralph_dir(name).join("state.json")
    }

    /// A loop's log.
    pub fn iterations_log(&self, name: &WorkerName) -> PathBuf {
        self.ralph_dir(name).join("iterations.log")
    }

    /// The input and output of one iteration.
    pub fn iteration_dir(&self, name: &WorkerName, iteration: u32) -> PathBuf {
        self.ralph_dir(name).join("iterations").join(format!("{iteration:04}"))
    }

    /// A worker's output, run by run.
    pub fn worker_log(&self, name: &WorkerName) -> PathBuf {
        self.logs_dir().join(format!("{name}.log"))
    }

    /// A worker's complete raw output (`--record`).
    pub fn record_file(&self, name: &WorkerName) -> PathBuf {
        self.logs_dir().join(format!("{name}.raw"))
    }

    /// The environment, prompt and exit status of one run, while it lives.
    pub fn run_dir(&self, name: &WorkerName, run: Run) -> PathBuf {
        self.runs_dir().join(format!("{name}.{run}"))
    }

    /// The last daemon's copy of the swarm executable, from which wrappers, recorders and hooks start.
    pub fn helper(&self) -> PathBuf {
        self.helper_dir().join("swarm")
    }

    /// The user's settings: `swarm/config.toml` in `XDG_CONFIG_HOME` or `~/.config`, on every platform. Without a
    /// home directory, `config.toml` in the root.
    pub fn user_config(&self) -> PathBuf {
        let xdg = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
        match xdg.or_else(|| Some(home().ok()?.join(".config"))) {
            Some(dir) => dir.join("swarm").join("config.toml"),
            None => self.root.join("config.toml"),
        }
    }
}

/// Defines the files and directories in swarm's directory.
macro_rules! places {
    ($($(#[$doc:meta])+ $name:ident: $place:literal,)+) => {
        impl Paths {
            $($(#[$doc])+
            pub fn $name(&self) -> PathBuf {
                self.root.join($place)
            })+
        }
    };
}

places! {
    /// The generated configuration of swarm's own tmux server.
    tmux_conf: "tmux.conf",
    /// The file that the daemon locks as long as it runs.
    lock: "daemon.lock",
    /// The daemons of another release that a client has reported.
    release_notice: "release-notice",
    /// The states of workers that were announced.
    notified: "notified.json",
    /// The time of the last morning view.
    looked: "looked.json",
    /// The used parts of the usage limits of accounts.
    quota: "quota.json",
    /// The key that signs the daemon's own files.
    signing_key: "signing-key",
    /// The daemon's log.
    daemon_log: "daemon.log",
    /// The event log.
    event_log: "events.jsonl",
    /// An empty file that exists while events could not be written to the log.
    events_unwritten: "events.unwritten",
    /// The predecessor's list of workers; read, never written.
    legacy_state: "state.json",
    /// The entries of that list that are finished for this swarm.
    legacy_over: "state.over.json",
    /// The directories of the workers on Slurm hosts.
    slurm_dir: "slurm",
    /// The state of session loops.
    sessions_dir: "sessions",
    /// The directory of the workers' records.
    workers_dir: "workers",
    /// The originals of agents' settings files that swarm changed.
    hooks_dir: "hooks",
    /// The directory of all loops.
    ralph_root: "ralph",
    /// The directory of the workers' logs.
    logs_dir: "logs",
    /// The directory of all runs.
    runs_dir: "runs",
    /// The directory of [`Paths::helper`].
    helper_dir: "bin",
    /// The repositories of code that other machines sent, and the worktrees made from them.
    sent_code_dir: "repos",
}

/// Makes `dir` and its missing parents with mode 0700. Removes other users' access to an existing directory: the
/// predecessor made it 0755. Fails when it cannot be made, is not a directory, or belongs to another user.
pub(crate) fn private_dir(dir: &Path) -> Result<()> {
    let fail = |cause: io::Error| {
        Error::system(format!("cannot use directory '{}'", dir.display()), cause).hint(OWN_DIRECTORY)
    };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(fail)?;
    let found = fs::metadata(dir).map_err(fail)?;
    if found.uid() != nix::unistd::geteuid().as_raw() {
        let text = format!("directory '{}' belongs to another user", dir.display());
        return Err(Error::new(ErrorCode::System, text).hint(OWN_DIRECTORY));
    }
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).map_err(fail)?;
    }
    Ok(())
}

/// The path of the running program. Linux marks a program that was removed or replaced; the mark is cut off. Fails when
/// the system does not return the path.
pub fn own_program() -> Result<PathBuf> {
    let path = env::current_exe().map_err(|e| Error::system("cannot find the path of this program", e))?;
    let unmarked = path.as_os_str().as_bytes().strip_suffix(b" (deleted)");
    Ok(unmarked.map(|bytes| PathBuf::from(OsStr::from_bytes(bytes))).unwrap_or(path))
}

/// The home directory from `HOME`. The system's user list is not consulted: a service without `HOME` would get a swarm
/// that its user cannot find. Fails with [`ErrorCode::NoDaemon`] if `HOME` is not set or not absolute.
pub(crate) fn home() -> Result<PathBuf> {
    let refuse = |what: &str| Error::new(ErrorCode::NoDaemon, what).hint("set HOME or SWARM_DIR");
    let home = env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let home = home.ok_or_else(|| refuse("HOME is not set"))?;
    let base = BaseDirs::new().filter(|_| home.is_absolute());
    base.map(|base| base.home_dir().to_owned()).ok_or_else(|| refuse("HOME is not an absolute path"))
}

/// `~/.swarm`. swarm never creates a home directory, and creates nothing in one of another user (`sudo`).
fn default_root(home: &Path) -> Result<PathBuf> {
    let root = home.join(".swarm");
    let why = match fs::metadata(home) {
        Ok(found) if found.uid() != nix::unistd::geteuid().as_raw() && !root.exists() => {
            "belongs to another user"
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => "does not exist",
        Ok(_) | Err(_) => return Ok(root),
    };
    let message = format!("HOME '{}' {why}", home.display());
    Err(Error::new(ErrorCode::NoDaemon, message).hint(OWN_DIRECTORY))
}

/// The file that is in the place of `dir` or of one of its parents.
fn file_in_the_way(dir: &Path) -> Option<PathBuf> {
    let found = dir.ancestors().find_map(|path| Some((path, fs::metadata(path).ok()?)));
    found.filter(|(_, metadata)| !metadata.is_dir()).map(|(path, _)| path.to_owned())
}

/// Resolves the symbolic links of the existing part of `path` and keeps the rest.
pub(crate) fn resolve(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for existing in path.ancestors() {
        let Ok(real) = fs::canonicalize(existing) else { continue };
        return match path.strip_prefix(existing) {
            Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
            _ => real,
        };
    }
    path
}

/// Makes a path that the user typed absolute and independent of the current directory. The directory part is resolved
/// now, so that renaming a directory which the path only passes through (`sub` in `sub/../PROMPT.md`) changes nothing.
/// A last component that is a symbolic link stays one: the user may change its target later. Fails when the path is
/// empty, or the current directory is gone.
pub(crate) fn pin(typed: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(typed)?;
    // `/`, and a path that ends in `..`, have no `file_name`.
    Ok(match (path.file_name(), path.parent()) {
        (Some(name), Some(parent)) => resolve(parent).join(name),
        _ => resolve(&path),
    })
}

#[cfg(test)]
mod tests {
    use super::sockets::stand_in_dir;
    use super::*;

    fn name(text: &str) -> WorkerName {
        WorkerName::new(text).unwrap()
    }

    #[test]
    fn all_paths_are_in_the_root_directory() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::new(dir.path().join("s"));
        let rel = |path: PathBuf| path.strip_prefix(paths.root()).unwrap().to_str().unwrap().to_owned();
        assert_eq!(rel(paths.worker_file(&name("a"))), "workers/a.json");
        assert_eq!(rel(paths.ralph_state(&name("a"))), "ralph/a/state.json");
        assert_eq!(rel(paths.iteration_dir(&name("a"), 5)), "ralph/a/iterations/0005");
        assert_eq!(rel(paths.iteration_dir(&name("a"), 12345)), "ralph/a/iterations/12345");
        assert_eq!(rel(paths.worker_log(&name("a"))), "logs/a.log");
        assert_eq!(rel(paths.run_dir(&name("a"), Run(7))), "runs/a.7");
        assert_eq!(rel(paths.socket()), "swarm.sock");
    }

    #[test]
    fn root_directory_behind_a_link_is_the_same_root() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("real")).unwrap();
        std::os::unix::fs::symlink("real", dir.path().join("link")).unwrap();
        let real = Paths::new(dir.path().join("real/not/there/yet"));
        assert_eq!(Paths::new(dir.path().join("link/not/there/yet")), real);
        assert_eq!(Paths::new(dir.path().join("link//not/there/./yet/")), real);
    }

    #[test]
    fn pinned_path_survives_a_rename_of_a_directory_it_passed_through() {
        let dir = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir_all(base.join("real/sub")).unwrap();
        fs::write(base.join("real/FILE"), "").unwrap();
        std::os::unix::fs::symlink("real", base.join("link")).unwrap();
        std::os::unix::fs::symlink("FILE", base.join("real/current")).unwrap();
        for (typed, wanted) in [
            ("real/sub/../FILE", "real/FILE"),
            ("real/sub/..", "real"),
            ("real/sub/../", "real"),
            ("real/sub/.", "real/sub"),
            ("link/FILE", "real/FILE"),
            ("link/sub/../FILE", "real/FILE"),
            // A link in the last place stays one.
            ("link", "link"),
            ("real/sub/../current", "real/current"),
            // Paths that do not exist yet.
            ("link/new", "real/new"),
            ("link/new/file", "real/new/file"),
        ] {
            assert_eq!(pin(&base.join(typed)).unwrap(), base.join(wanted), "{typed}");
        }
        assert_eq!(pin(Path::new("/")).unwrap(), Path::new("/"));
        assert_eq!(pin(Path::new("..")).unwrap(), fs::canonicalize("..").unwrap());
        assert!(pin(Path::new("")).is_err());
    }

    #[test]
    fn long_root_directory_gets_short_socket_paths() {
        let base = tempfile::tempdir().unwrap().path().to_owned();
        let long = |tail: &str| Paths::new(base.join("d".repeat(120)).join(tail));
        let (a, b) = (long("a"), long("b"));
        assert_ne!(a.socket(), b.socket());
        assert_ne!(a.socket(), a.tmux_socket());
        assert_eq!(a.socket().parent(), a.tmux_socket().parent());
        for path in [a.socket(), b.tmux_socket()] {
            assert!(path.as_os_str().len() <= MAX_SOCKET_PATH_BYTES, "{}", path.display());
        }
        // The change comes at the first byte that does not fit, and not before.
        let fill = |socket_len: usize| {
            let room = socket_len - "/swarm.sock".len() - base.as_os_str().len() - 1;
            Paths::new(base.join("x".repeat(room))).socket()
        };
        assert!(fill(MAX_SOCKET_PATH_BYTES).starts_with(&base));
        assert!(!fill(MAX_SOCKET_PATH_BYTES + 1).starts_with(&base));
    }

    #[test]
    fn file_in_place_of_a_directory_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(file_in_the_way(&file), Some(file.clone()));
        assert_eq!(file_in_the_way(&file.join("a/b")), Some(file.clone()));
        assert_eq!(file_in_the_way(&dir.path().join("not/there")), None);
        assert_eq!(file_in_the_way(dir.path()), None);
    }

    #[test]
    fn created_directories_are_private() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("s");
        fs::create_dir(&root).unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
        private_dir(&root).unwrap();
        assert_eq!(fs::metadata(&root).unwrap().mode() & 0o777, 0o700);
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(private_dir(&file).is_err());
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&root, &link).unwrap();
        assert!(private_dir(&link).is_ok() && stand_in_dir(&link).is_err());
    }
}
