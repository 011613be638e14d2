//! Alerts an agent that fills its context: the part of `swarm hook post-tool-use` that touches files.
//!
//! Only the end of the transcript is read, because the hook runs after each tool call. For each alert that was sent,
//! a session has an empty file named after its threshold. The file is created exclusively, so two hooks at once give
//! one alert. Used by [`super::run`]. Deliberately absent: the measure and the text ([`swarm_state::context`]).

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use swarm_state::context::{ContextTail, ContextUse, attachment_bytes};
use swarm_state::hook::HookInput;
use swarm_state::session::SessionId;
use swarm_state::tasks::marker::MARKER_FILE;

use crate::paths::{Paths, private_dir};

/// How much of a transcript is read. The output of one tool can be longer than the first part.
const READ_BYTES: [u64; 2] = [256 << 10, 2 << 20];

/// The alerts of a session are deleted after this time without a change.
const MAX_ALERTS_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The file for an iteration that has reached `--max-context`.
const LIMIT_FILE: &str = "limit";

/// Measures the context of the agent that called the hook; `None` without a transcript.
pub(super) fn measure(input: &HookInput) -> Option<ContextUse> {
    let (tail, size) = read_tail(input.transcript.as_deref()?).ok()?;
    let window = env::var("CLAUDE_CONTEXT_WINDOW").ok().and_then(|text| text.trim().parse().ok());
    Some(ContextUse::of(&tail, size, window.filter(|window| *window > 0)))
}

/// Reads the end of a transcript. Also returns its size in bytes without attachments: their share in the part that was
/// read counts for the whole file.
fn read_tail(path: &Path) -> io::Result<(ContextTail, u64)> {
    let size = fs::metadata(path).ok().filter(fs::Metadata::is_file).ok_or(io::ErrorKind::NotFound)?.len();
    let mut file = File::open(path)?;
    let (mut tail, mut text_size) = (ContextTail::default(), size);
    for limit in READ_BYTES {
        file.seek(SeekFrom::Start(size.saturating_sub(limit)))?;
        let mut bytes = vec![];
        (&mut file).take(limit).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        tail = ContextTail::of(&text);
        if tail.is_known() {
            break;
        }
        let (read, skipped) = (u128::from(text.len().max(1) as u64), u128::from(attachment_bytes(&text)));
        text_size = u64::try_from(u128::from(size) * (read - skipped.min(read)) / read).unwrap_or(size);
        if size <= limit {
            break;
        }
    }
    Ok((tail, text_size))
}

/// Returns the output of the hook if an alert is due. An alert that cannot be remembered is not sent: it would be
/// repeated after each tool call. `max`: the limit of the worker's iteration.
pub(super) fn alert(
    paths: &Paths,
    input: &HookInput,
    context: ContextUse,
    max: Option<u8>,
) -> Option<String> {
    // A sub-agent has a context of its own.
    if input.is_sub_agent {
        return None;
    }
    let sent = SentAlerts::of(paths, input)?;
    let mut last = sent.last();
    if let Some(rearmed) = context.rearmed(last) {
        sent.forget();
        let _ = sent.claim(&rearmed.to_string());
        last = rearmed;
    }
    let due = context.due(last).filter(|threshold| sent.claim(&threshold.to_string()));
    let texts = [
        due.map(|threshold| context.alert(threshold, has_tasks(input))),
        max.filter(|max| context.percent() >= *max && sent.claim(LIMIT_FILE)).map(|max| context.nudge(max)),
    ];
    let text = texts.into_iter().flatten().collect::<Vec<_>>().join("\n\n");
    let event = json!({ "hookEventName": "PostToolUse", "additionalContext": text });
    (!text.is_empty()).then(|| json!({ "hookSpecificOutput": event }).to_string())
}

/// Makes all alerts of a session due again, and deletes those of old sessions.
pub(super) fn rearm(paths: &Paths, input: &HookInput) {
    if let Some(sent) = SentAlerts::of(paths, input) {
        sent.forget();
    }
    let is_old = |entry: &fs::DirEntry| {
        let changed = entry.metadata().and_then(|found| found.modified()).ok();
        changed.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > MAX_ALERTS_AGE)
    };
    for entry in fs::read_dir(root(paths)).into_iter().flatten().flatten().filter(is_old) {
        let _ = fs::remove_dir_all(entry.path());
    }
}

/// Whether a loop with a task list runs: in the agent's directory, or above it in the same repository.
fn has_tasks(input: &HookInput) -> bool {
    let Some(cwd) = input.cwd.clone().or_else(|| env::current_dir().ok()) else { return false };
    for dir in cwd.ancestors() {
        if dir.join(MARKER_FILE).exists() {
            return true;
        }
        if dir.join(".git").exists() {
            break;
        }
    }
    false
}

fn root(paths: &Paths) -> PathBuf {
    paths.sessions_dir().join(".context")
}

/// The alerts sent to a session.
struct SentAlerts {
    dir: PathBuf,
}

impl SentAlerts {
    /// `None` for a session without a valid id.
    fn of(paths: &Paths, input: &HookInput) -> Option<Self> {
        let session = SessionId::new(input.session.as_deref()?).ok()?;
        Some(Self { dir: root(paths).join(session.as_str()) })
    }

    /// The highest threshold, 0 for none.
    fn last(&self) -> u8 {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).max().unwrap_or(0)
    }

    /// Records an alert; false if it was sent already.
    fn claim(&self, name: &str) -> bool {
        let mut options = OpenOptions::new();
        private_dir(&self.dir).is_ok()
            && options.write(true).create_new(true).mode(0o600).open(self.dir.join(name)).is_ok()
    }

    fn forget(&self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}
