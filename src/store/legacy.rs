//! The predecessor's list of workers, and which of them are finished.
//!
//! swarm reads the predecessor's `state.json` and never writes it, so it keeps a list of its own: an entry is
//! finished once a worker of ours had its name and was removed. An entry is identified by name and start time, so a
//! worker that the predecessor starts later under the same name appears again.

use std::collections::BTreeSet;

use chrono::{DateTime, FixedOffset, Local, NaiveDateTime, TimeDelta, TimeZone};
use serde::{Deserialize, Serialize};
use swarm_state::format::{self, Record, v0};
use swarm_state::model::WorkerName;

use super::{Problem, Store, failed, read, write_atomic};
use crate::error::Result;

/// An entry of the predecessor's list that is finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Over {
    name: WorkerName,
    started: DateTime<FixedOffset>,
}

impl Over {
    fn of(record: &Record) -> Self {
        Self { name: record.name.clone(), started: record.started }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct OverFile {
    over: Vec<Over>,
}

impl Store {
    /// Adds the predecessor's workers. Its file is never renamed, since the predecessor may still use it.
    pub(super) fn load_legacy(&self, records: &mut Vec<Record>, problems: &mut Vec<Problem>) {
        let path = self.paths.legacy_state();
        let listed = match read(&path) {
            Ok(None) => return,
            Ok(Some(bytes)) => v0::parse_workers(&bytes, &local).map_err(|e| e.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let listed = match listed {
            Ok(listed) => listed,
            Err(cause) => {
                let message = format!("'{}' was not changed: {cause}", path.display());
                return problems.push(Problem::of(None, message));
            }
        };
        let over = self.legacy_over().unwrap_or_else(|error| {
            problems.push(Problem::of(None, error.message));
            vec![]
        });
        let mut taken: BTreeSet<_> = records.iter().map(|record| record.name.clone()).collect();
        for worker in listed {
            match worker {
                Ok(mut record) => {
                    let hidden = self.is_reserved(&record.name) || over.contains(&Over::of(&record));
                    if hidden || !taken.insert(record.name.clone()) {
                        continue;
                    }
                    // This only reads. A broken file is found and reported when the file is next written.
                    if let Ok(Some(bytes)) = read(&self.paths.ralph_state(&record.name))
                        && let Ok(file) = format::parse_ralph(&bytes)
                    {
                        v0::join_ralph(&mut record, &file);
                    }
                    records.push(record);
                }
                Err(bad) => {
                    let who = bad.name.as_deref().unwrap_or("without a name");
                    let message =
                        format!("worker {who:?} in '{}' cannot be read: {}", path.display(), bad.message);
                    let name = bad.name.and_then(|name| WorkerName::new(&name).ok());
                    problems.push(Problem::of(name.as_ref(), message));
                }
            }
        }
    }

    /// Marks what the predecessor listed under this name as finished.
    pub(super) fn dismiss_legacy(&self, name: &WorkerName) -> Result<()> {
        let Ok(Some(bytes)) = read(&self.paths.legacy_state()) else { return Ok(()) };
        let Ok(listed) = v0::parse_workers(&bytes, &local) else { return Ok(()) };
        let mut over = self.legacy_over().unwrap_or_default();
        let before = over.len();
        for entry in listed.iter().flatten().filter(|record| record.name == *name).map(Over::of) {
            if !over.contains(&entry) {
                over.push(entry);
            }
        }
        if over.len() == before {
            return Ok(());
        }
        let path = self.paths.legacy_over();
        let bytes = serde_json::to_vec_pretty(&OverFile { over }).map_err(|e| failed("write", &path, e))?;
        write_atomic(&path, &bytes).map_err(|e| failed("write", &path, e))
    }

    fn legacy_over(&self) -> Result<Vec<Over>> {
        let path = self.paths.legacy_over();
        let Some(bytes) = read(&path).map_err(|e| failed("read", &path, e))? else { return Ok(vec![]) };
        let file: OverFile = serde_json::from_slice(&bytes).map_err(|e| failed("read", &path, e))?;
        Ok(file.over)
    }
}

/// Converts local time. In the hour that a clock change repeats, this uses the earlier time. A time that a clock
/// change skips is read as if the clock had not changed yet.
fn local(at: NaiveDateTime) -> DateTime<FixedOffset> {
    let place = |at: NaiveDateTime| Local.from_local_datetime(&at).earliest();
    let hour = TimeDelta::hours(1);
    let earlier = || place(at.checked_sub_signed(hour)?)?.checked_add_signed(hour);
    place(at).or_else(earlier).map_or_else(|| at.and_utc().fixed_offset(), |time| time.fixed_offset())
}
