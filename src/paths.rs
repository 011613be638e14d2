//! Stub.
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Stub.
#[derive(Clone, Debug)]
pub struct Paths {
    root: PathBuf,
}

impl Paths {
    /// Stub.
    pub fn from_env() -> Result<Self> {
        let root = match std::env::var_os("SWARM_DIR") {
            Some(dir) if !dir.is_empty() => PathBuf::from(dir),
            _ => PathBuf::from(std::env::var_os("HOME").ok_or_else(|| Error::invalid("no home"))?)
                .join(".swarm"),
        };
        Ok(Self { root: std::path::absolute(root).map_err(|e| Error::system("cwd", e))? })
    }
    /// Stub.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }
    /// Stub.
    pub fn root(&self) -> &Path {
        &self.root
    }
    /// Stub.
    pub fn socket(&self) -> PathBuf {
        self.root.join("swarm.sock")
    }
    /// Stub.
    pub fn daemon_log(&self) -> PathBuf {
        self.root.join("daemon.log")
    }
    /// Stub.
    pub fn lock(&self) -> PathBuf {
        self.root.join("daemon.lock")
    }
    /// Stub.
    pub fn user_config(&self) -> PathBuf {
        self.root.join("config.toml")
    }
}
