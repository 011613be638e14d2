//! The places of sockets.
//!
//! A Unix socket's path holds at most [`MAX_SOCKET_PATH_BYTES`], and a socket works on one host only. Below a longer
//! root, or one on a network file system, the sockets move to `/tmp/swarm-UID/HASH.sock`, where HASH is a hash of the
//! root, so that two roots never share a socket. They do not move to a directory that a variable names, such as
//! `XDG_RUNTIME_DIR` or `SLURM_TMPDIR`: a login over ssh and a hook may lack it, and client and daemon must find the
//! same socket. `/run/user/UID` is removed at the last logout, so it is used only if `/tmp` lies on a network too.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{MAX_SOCKET_PATH_BYTES, Paths, private_dir};
use crate::error::{Error, ErrorCode, Result};
use crate::files;

impl Paths {
    /// The place of a socket of an earlier swarm, which put it on a network file system; `None` for another root.
    pub fn earlier_socket(&self) -> Option<PathBuf> {
        self.shared.then(|| self.root.join("swarm.sock"))
    }

    /// The daemon's socket.
    pub fn socket(&self) -> PathBuf {
        self.socket_named("swarm.sock", "sock")
    }

    /// The directory of the socket that accepts only reports of hooks. Sandboxes see it.
    pub fn hook_socket_dir(&self) -> PathBuf {
        match self.hook_socket().parent() {
            Some(dir) => dir.to_owned(),
            None => self.root.clone(),
        }
    }

    /// The socket that accepts only reports of hooks.
    pub fn hook_socket(&self) -> PathBuf {
        let socket = self.socket_named("hook-reports/swarm.sock", "hooks");
        match socket.starts_with(&self.root) {
            true => socket,
            // A directory of its own, because a sandbox sees the directory.
            false => socket.with_extension("hooks.d").join("s"),
        }
    }

    /// The socket for reports of hooks only, for a process in a sandbox, which may not see where the root lies.
    pub fn hook_socket_in_sandbox(&self) -> PathBuf {
        let elsewhere = Self { shared: true, ..self.clone() }.hook_socket();
        if elsewhere.exists() { elsewhere } else { self.hook_socket() }
    }

    /// The socket of swarm's own tmux server.
    pub fn tmux_socket(&self) -> PathBuf {
        self.socket_named("tmux.sock", "tmux")
    }

    /// Makes the directory of the sockets, private to this user. Call it before binding a socket and before trusting
    /// one. Fails when the directory cannot be made, or another user owns it.
    pub fn prepare_sockets(&self) -> Result<()> {
        for socket in [self.socket(), self.tmux_socket()] {
            match socket.parent() {
                Some(dir) if dir != self.root => stand_in_dir(dir)?,
                _ => private_dir(&self.root)?,
            }
        }
        self.keep_earlier_tmux();
        Ok(())
    }

    /// Links to the tmux server of an earlier swarm, with its agents, whose socket is on a network file system.
    fn keep_earlier_tmux(&self) {
        let (earlier, socket) = (self.root.join("tmux.sock"), self.tmux_socket());
        let answers = || std::os::unix::net::UnixStream::connect(&earlier).is_ok();
        if self.shared && fs::symlink_metadata(&socket).is_err() && answers() {
            // Without the link, these workers are lost.
            drop(std::os::unix::fs::symlink(&earlier, &socket));
        }
    }

    fn socket_named(&self, file: &str, ending: &str) -> PathBuf {
        let path = self.root.join(file);
        if !self.shared && path.as_os_str().len() <= MAX_SOCKET_PATH_BYTES {
            return path;
        }
        let uid = nix::unistd::geteuid();
        let hash = fnv1a(self.root.as_os_str());
        let of_user = Path::new("/run/user").join(uid.to_string());
        let run = || files::is_network(Path::new("/tmp")) && of_user.is_dir();
        let dir = if self.shared && run() {
            of_user.join("swarm")
        } else {
            PathBuf::from(format!("/tmp/swarm-{uid}"))
        };
        dir.join(format!("{hash:032x}.{ending}"))
    }
}

/// As [`private_dir`], in a place where other users can create links. (The root itself may be a link.)
pub(crate) fn stand_in_dir(dir: &Path) -> Result<()> {
    if dir.is_symlink() {
        let text = format!("'{}' is a symbolic link and cannot hold a socket", dir.display());
        return Err(Error::new(ErrorCode::System, text).hint("remove it, or use a shorter SWARM_DIR"));
    }
    private_dir(dir)
}

/// FNV-1a with 128 bits. It stays the same in every release; std's hashers do not promise that.
fn fnv1a(text: &OsStr) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    text.as_bytes().iter().fold(BASIS, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn sockets_of_a_shared_directory_are_in_a_local_one() {
        let dir = tempfile::tempdir().unwrap();
        let (local, root) = (Paths::new(dir.path().join("s")), dir.path().join("s"));
        fs::create_dir(&root).unwrap();
        assert!(!local.is_shared() && local.socket().starts_with(local.root()));
        assert_eq!(local.earlier_socket(), None);
        fs::write(root.join(files::SHARED_MARK), "").unwrap();
        let shared = Paths::new(root);
        assert!(shared.is_shared());
        for socket in [shared.socket(), shared.hook_socket(), shared.tmux_socket()] {
            assert!(!socket.starts_with(shared.root()), "{}", socket.display());
        }
        assert_eq!(shared.earlier_socket(), Some(local.socket()));

        assert_eq!(local.hook_socket_in_sandbox(), local.hook_socket());
        let hooks = shared.hook_socket_dir();
        fs::create_dir_all(&hooks).unwrap();
        fs::write(shared.hook_socket(), "").unwrap();
        assert_eq!(local.hook_socket_in_sandbox(), shared.hook_socket());
        fs::remove_dir_all(hooks).unwrap();
    }

    #[test]
    fn tmux_server_of_an_earlier_swarm_stays_reachable() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(files::SHARED_MARK), "").unwrap();
        let paths = Paths::new(dir.path().to_owned());
        // The file of a server that has ended.
        drop(UnixListener::bind(paths.root().join("tmux.sock")).unwrap());
        paths.prepare_sockets().unwrap();
        assert!(fs::symlink_metadata(paths.tmux_socket()).is_err());
        fs::remove_file(paths.root().join("tmux.sock")).unwrap();
        let _server = UnixListener::bind(paths.root().join("tmux.sock")).unwrap();
        paths.prepare_sockets().unwrap();
        assert_eq!(fs::read_link(paths.tmux_socket()).unwrap(), paths.root().join("tmux.sock"));
        fs::remove_file(paths.tmux_socket()).unwrap();
    }
}
