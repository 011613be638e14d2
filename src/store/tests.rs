//! In directories of their own, with the format's fixtures.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::thread;

use proptest::prelude::*;
use swarm_state::format::{RalphFile, Record, parse_ralph, parse_record};
use swarm_state::model::Run;
use tempfile::TempDir;

use super::*;
use crate::error::ErrorCode;

mod logs;
mod ralph;
mod records;

const AGENT: &[u8] = include_bytes!("../../state/fixtures/v1/workers/agent.json");
const PLAIN: &[u8] = include_bytes!("../../state/fixtures/v1/workers/plain.json");
const RALPH: &[u8] = include_bytes!("../../state/fixtures/v1/ralph/agent/state.json");
const EDITED: &[u8] = include_bytes!("../../state/fixtures/v1/ralph/edited/state.json");
const OLD_STATE: &[u8] = include_bytes!("../../state/fixtures/v0/state.json");
const OLD_RALPH: &[u8] = include_bytes!("../../state/fixtures/v0/ralph/agent/state.json");

struct Fixture {
    _dir: TempDir,
    store: Store,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(Paths::new(dir.path().join("swarm"))).unwrap();
        Self { _dir: dir, store }
    }

    fn paths(&self) -> &Paths {
        self.store.paths()
    }

    /// A store that knows nothing of what this one reserved.
    fn reopened(&self) -> Store {
        Store::open(self.paths().clone()).unwrap()
    }

    fn files(&self, dir: &Path) -> Vec<String> {
        entries(dir).iter().map(|path| file_name(path).to_owned()).collect()
    }
}

fn name(text: &str) -> WorkerName {
    WorkerName::new(text).unwrap()
}

fn agent() -> Record {
    parse_record(AGENT).unwrap()
}

fn record(text: &str) -> Record {
    let mut record = parse_record(PLAIN).unwrap();
    record.name = name(text);
    record.spec.name = name(text);
    record
}

fn ralph() -> RalphFile {
    parse_ralph(RALPH).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o777
}

/// Everything below `dir`.
fn walk(dir: &Path) -> Vec<PathBuf> {
    let below = entries(dir).into_iter().flat_map(|path| {
        let inner = if path.is_dir() { walk(&path) } else { vec![] };
        [vec![path], inner].concat()
    });
    below.collect()
}
