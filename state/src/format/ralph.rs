//! A loop's state: `ralph/NAME/state.json`. The document's fields, word for word, then swarm's.

use std::path::PathBuf;

use chrono::{DateTime, Datelike, NaiveDateTime, Timelike};
use serde_json::{Map, Value};

use super::json::{FORMAT, FormatError, need, object, take, to_bytes, value};
use crate::budget::BudgetEdits;
use crate::engine::Edits;
use crate::model::{LoopStatus, QUESTION_TIMEOUT_SECONDS, WorkerName};
use crate::notice::PauseBy;

/// The state of a loop. Times are local and have no offset, as in the document.
#[derive(Clone, Debug, PartialEq)]
pub struct RalphFile {
    /// The worker.
    pub worker_name: WorkerName,
    /// The prompt file, absolute.
    pub prompt_file: PathBuf,
    /// The most iterations. The loop never holds 0 here; a hand-edited file may.
    pub max_iterations: u32,
    /// The current (or last) iteration; 0 before the first.
    pub current_iteration: u32,
    /// The loop's status.
    pub status: LoopStatus,
    /// When it was spawned.
    pub started: NaiveDateTime,
    /// When the current (or last) iteration began; absent before the first.
    pub last_iteration_started: Option<NaiveDateTime>,
    /// Failed iterations in a row.
    pub consecutive_failures: u32,
    /// Failed iterations in all.
    pub total_failures: u32,
    /// The pattern that ends the loop.
    pub done_pattern: Option<String>,
    /// Seconds of an unchanged screen that end an iteration. A hand-edited file may hold 0.
    pub inactivity_timeout: u64,
    /// The reason for the status, if any.
    pub reason: Option<String>,
    /// The origin of the pause.
    pub paused_by: Option<PauseBy>,
    /// Seconds that a question may stay unanswered; 0: no limit. Not written if it is [`QUESTION_TIMEOUT_SECONDS`].
    pub question_timeout: u64,
    /// The error of the last iteration, if known; the file has the key only then.
    pub message: Option<String>,
    /// The format it was read in; writing always gives [`FORMAT`].
    pub format: u32,
    /// Unknown keys, which are kept.
    pub extra: Map<String, Value>,
}

impl RalphFile {
    /// The file: pretty JSON with a final newline, in the current format. Fails for a path that is not UTF-8.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FormatError> {
        // The document's keys come first, swarm's after `inactivity_timeout`.
        let mut ours: Vec<(&str, Value)> = vec![
            ("worker_name", value("worker_name", &self.worker_name)?),
            ("prompt_file", value("prompt_file", &self.prompt_file)?),
            ("max_iterations", self.max_iterations.into()),
            ("current_iteration", self.current_iteration.into()),
            ("status", value("status", &self.status)?),
            ("started", time(self.started).into()),
            ("last_iteration_started", self.last_iteration_started.map(time).into()),
            ("consecutive_failures", self.consecutive_failures.into()),
            ("total_failures", self.total_failures.into()),
            ("done_pattern", self.done_pattern.clone().into()),
            ("inactivity_timeout", self.inactivity_timeout.into()),
            ("reason", self.reason.clone().into()),
            ("paused_by", value("paused_by", &self.paused_by)?),
            ("format", FORMAT.into()),
        ];
        let asks = (self.question_timeout != QUESTION_TIMEOUT_SECONDS).then_some(self.question_timeout);
        ours.extend(asks.map(|seconds| ("question_timeout", seconds.into())));
        ours.extend(self.message.clone().map(|message| ("message", message.into())));
        to_bytes(ours, &self.extra)
    }
}

/// Reads a loop's state, also the predecessor's, which has fewer keys. [`FormatError`] names the bad or missing key.
pub fn parse_ralph(bytes: &[u8]) -> Result<RalphFile, FormatError> {
    let (mut map, format) = object(bytes, "a loop's state")?;
    map.remove("format");
    let file = RalphFile {
        worker_name: need(&mut map, "worker_name")?,
        prompt_file: need(&mut map, "prompt_file")?,
        max_iterations: need(&mut map, "max_iterations")?,
        current_iteration: need(&mut map, "current_iteration")?,
        status: need(&mut map, "status")?,
        started: take_time(&mut map, "started")?
            .ok_or_else(|| FormatError::Broken("`started` is missing".into()))?,
        last_iteration_started: take_time(&mut map, "last_iteration_started")?,
        consecutive_failures: take(&mut map, "consecutive_failures")?.unwrap_or(0),
        total_failures: take(&mut map, "total_failures")?.unwrap_or(0),
        done_pattern: take(&mut map, "done_pattern")?,
        // The document's default: the predecessor's first releases did not write the key.
        inactivity_timeout: take(&mut map, "inactivity_timeout")?.unwrap_or(60),
        reason: take(&mut map, "reason")?,
        paused_by: take(&mut map, "paused_by")?,
        question_timeout: take(&mut map, "question_timeout")?.unwrap_or(QUESTION_TIMEOUT_SECONDS),
        message: take(&mut map, "message")?,
        format,
        extra: map,
    };
    Ok(file)
}

/// `%Y-%m-%dT%H:%M:%S%.6f`.
fn time(at: NaiveDateTime) -> String {
    // A leap second is held as a fraction over one second.
    let micros = (at.nanosecond() / 1000).min(999_999);
    let (date, clock) = (at.date(), at.time());
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{micros:06}",
        date.year(),
        date.month(),
        date.day(),
        clock.hour(),
        clock.minute(),
        clock.second()
    )
}

fn take_time(map: &mut Map<String, Value>, key: &str) -> Result<Option<NaiveDateTime>, FormatError> {
    let Some(text) = take::<String>(map, key)?.filter(|text| !text.is_empty()) else { return Ok(None) };
    parse_time(&text).map(Some).ok_or_else(|| {
        FormatError::Broken(format!("`{key}`: {text:?} is not a time like 2024-01-15T10:30:00"))
    })
}

/// Local time; an offset is dropped, and a space instead of the `T` is accepted, as in hand-edited files.
pub(super) fn parse_time(text: &str) -> Option<NaiveDateTime> {
    let text = text.replacen(' ', "T", 1);
    let with_offset = || DateTime::parse_from_rfc3339(&text).ok().map(|at| at.naive_local());
    let at: Option<NaiveDateTime> = text.parse().ok().or_else(with_offset);
    // A year of another width would be written in a form that cannot be read again. Fractions below a
    // microsecond and leap seconds are not written.
    at.filter(|at| (0..=9999).contains(&at.year()))?
        .with_nanosecond(at?.nanosecond().min(999_999_999) / 1000 * 1000)
}

/// Compares the settings in the file with those the daemon knows. Changes of other keys are ignored, and a new done
/// pattern is not compiled. The file has no budgets. An invalid value rejects the whole edit; the error has one
/// sentence for each, joined by `; `.
pub fn edits(known: &RalphFile, on_disk: &RalphFile) -> Result<Edits, String> {
    let mut bad = vec![];
    if on_disk.max_iterations == 0 {
        bad.push("max_iterations must be at least 1".to_owned());
    }
    if on_disk.inactivity_timeout == 0 {
        bad.push("inactivity_timeout must be at least 1".to_owned());
    }
    if on_disk.done_pattern.as_deref() == Some("") {
        bad.push("done_pattern must not be empty (null means none)".to_owned());
    }
    // Not `Path::is_absolute`: the result must not depend on the platform of the reader.
    if !on_disk.prompt_file.has_root() {
        bad.push(format!("prompt_file must be an absolute path, not '{}'", on_disk.prompt_file.display()));
    }
    if !bad.is_empty() {
        return Err(bad.join("; "));
    }
    fn changed<T: PartialEq + Clone>(known: &T, on_disk: &T) -> Option<T> {
        (known != on_disk).then(|| on_disk.clone())
    }
    Ok(Edits {
        max_iterations: changed(&known.max_iterations, &on_disk.max_iterations),
        inactivity_timeout: changed(&known.inactivity_timeout, &on_disk.inactivity_timeout),
        question_timeout: changed(&known.question_timeout, &on_disk.question_timeout),
        done_pattern: changed(&known.done_pattern, &on_disk.done_pattern),
        prompt_file: changed(&known.prompt_file, &on_disk.prompt_file),
        budgets: BudgetEdits::default(),
    })
}
