//! The time of the last morning view that a person was shown, on disk.
//!
//! The file is only a convenience: without it, the next view covers everything.

use chrono::{DateTime, FixedOffset};
use serde::{Deserialize, Serialize};

use crate::paths::Paths;
use crate::store::{read_bounded, write_unsynced};

const LOOKED_FORMAT: u32 = 1;

const MAX_LOOKED_BYTES: u64 = 1 << 12;

#[derive(Serialize, Deserialize)]
struct LookedFile {
    format: u32,
    until: DateTime<FixedOffset>,
}

/// Reads the time; `None` without a file that this version can read.
pub(crate) fn read(paths: &Paths) -> Option<DateTime<FixedOffset>> {
    let bytes = read_bounded(&paths.looked(), MAX_LOOKED_BYTES).ok()?;
    let file: LookedFile = serde_json::from_slice(&bytes).ok()?;
    (file.format <= LOOKED_FORMAT).then_some(file.until)
}

/// Writes the time. An error is logged.
pub(crate) fn write(paths: &Paths, until: DateTime<FixedOffset>) {
    let file = LookedFile { format: LOOKED_FORMAT, until };
    let bytes = serde_json::to_vec(&file).map_err(Into::into);
    if let Err(error) = bytes.and_then(|bytes| write_unsynced(&paths.looked(), &bytes)) {
        tracing::warn!(%error, "the time of the morning view cannot be written");
    }
}
