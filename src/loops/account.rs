//! Finds the agent's own record of an iteration: its CLI's transcript, or else the result that the CLI printed.
//!
//! Claude Code accepts a session id, so its transcript can be found even if other sessions run. Codex does not, but
//! it first prints the id that it made, which is also in the name of its transcript. Of other CLIs, swarm reads the
//! JSON that they print on request.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use chrono::{DateTime, FixedOffset};
use md5::{Digest, Md5};
use serde::Deserialize;
use swarm_state::promise::Source;
use swarm_state::transcript::{Account, TranscriptReader, TranscriptStory};

use super::run::Finished;
use crate::files::{entries, open_regular};

#[cfg(test)]
mod tests;

/// The maximum length of a line in a transcript. A line holds the output of a tool, or an image.
const MAX_TRANSCRIPT_LINE_BYTES: u64 = 64 << 20;

/// The session id of a run. It is always the same for the same run, so a restarted daemon passes it again.
pub(crate) fn session_id(name: &str, id: &str, run: u64) -> String {
    let mut bytes: [u8; 16] = Md5::digest(format!("swarm {name} {id} {run}")).into();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = crate::files::hex(&bytes);
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}

/// The account of an iteration and the source of its text: the session's transcript if there is one, completed by the
/// CLI's output, unless that output is `text`.
pub(super) fn of(env: &BTreeMap<String, String>, text: bool, finished: &Finished<'_>) -> (Account, Source) {
    let printed = if text { Account::default() } else { Account::of(finished.output) };
    let recorded = match (finished.session.as_deref(), finished.transcript.as_deref()) {
        (Some(id), _) => transcript(env, id).and_then(|path| read(&path)),
        (None, Some(path)) if lies_in(env, CLAUDE_DIR, path) => since(path, finished.started, false),
        (None, Some(path)) if lies_in(env, CODEX_DIR, path) => since(path, finished.started, true),
        (None, _) => {
            announced(finished.output).and_then(|id| since(&rollout(env, id)?, finished.started, true))
        }
    };
    // An account with a count of tool calls is a record. If it has no text, the agent printed none.
    let has_words = |account: &Account| !account.texts.is_empty() || account.tool_calls.is_some();
    let in_print = if has_words(&printed) { Source::Result } else { Source::Screen };
    let Some(recorded) = recorded else { return (printed, in_print) };
    // Output of a tool must not complete an existing record.
    let (texts, source) =
        if has_words(&recorded) { (recorded.texts, Source::Transcript) } else { (printed.texts, in_print) };
    let account = Account {
        texts,
        tool_calls: recorded.tool_calls.or(printed.tool_calls),
        usage: recorded.usage.or(printed.usage),
        cost: printed.cost.into_iter().chain(recorded.cost).max_by(f64::total_cmp),
        session: recorded.session.or(printed.session),
        error: recorded.error.or(printed.error),
        limits: if recorded.limits.is_empty() { printed.limits } else { recorded.limits },
    };
    (account, source)
}

/// The time since the transcript of the agent, or of one of its sub-agents, last grew; `None` if there is none.
pub(crate) fn last_growth(
    env: &BTreeMap<String, String>,
    session: Option<&str>,
    reported: Option<&Path>,
) -> Option<Duration> {
    let path = reported.map(Path::to_owned).or_else(|| transcript(env, session?))?;
    let sub_agents = entries(&path.with_extension("").join("subagents"));
    let written = |path: &PathBuf| fs::metadata(path).and_then(|data| data.modified()).ok();
    let last = sub_agents.iter().chain([&path]).filter_map(written).max()?;
    // After a clock was set back, the time is unknown.
    SystemTime::now().duration_since(last).ok()
}

/// Whether the agent's hooks reported a transcript that now has no text of the agent. There was a record, so text
/// from any other source may not be the agent's.
pub(super) fn is_lost(env: &BTreeMap<String, String>, finished: &Finished<'_>) -> bool {
    let Some(path) = finished.transcript.as_deref() else { return false };
    let is_known = |kept| transcript_dir(env, kept).is_some_and(|dir| path.starts_with(dir));
    let is_ours = finished.session.is_some() || is_known(CLAUDE_DIR) || is_known(CODEX_DIR);
    is_ours && read(path).is_none_or(|account| account.texts.is_empty() && account.tool_calls.is_none())
}

/// Whether an agent was killed while its transcript existed. If it was killed early, the transcript is empty. Some
/// agents catch the signal and exit with 128 plus its number.
pub(super) fn was_cut_off(finished: &Finished<'_>) -> bool {
    let exit = finished.exit;
    let was_ended = exit.signal().is_some() || matches!(exit.code(), Some(129 | 130 | 137 | 143));
    was_ended && finished.transcript.as_deref().is_some_and(Path::is_file)
}

/// The agent's messages and tool calls as plain text, from its transcript; `None` if there is no known one.
///
/// `session` is the id that swarm passed, `reported` the path from the agent's hooks, `output` the agent's output.
pub(crate) fn story(
    env: &BTreeMap<String, String>,
    session: Option<&str>,
    reported: Option<&Path>,
    output: &str,
    started: Option<DateTime<FixedOffset>>,
) -> Option<String> {
    let path = match (session, reported) {
        (Some(id), _) => transcript(env, id)?,
        (None, Some(path)) if lies_in(env, CLAUDE_DIR, path) || lies_in(env, CODEX_DIR, path) => {
            path.to_owned()
        }
        (None, _) => rollout(env, announced(output)?)?,
    };
    let (mut story, mut is_old) = (TranscriptStory::default(), true);
    each_line(&path, |line| {
        is_old = is_old && started.is_some_and(|started| stamp(line).is_none_or(|at| at < started));
        if !is_old {
            story.line(line);
        }
    })?;
    story.finish()
}

/// A CLI's transcripts: the variable with its directory, that directory's name in the home, and the directory in it.
type TranscriptDir = (&'static str, &'static str, &'static str);

const CLAUDE_DIR: TranscriptDir = ("CLAUDE_CONFIG_DIR", ".claude", "projects");
const CODEX_DIR: TranscriptDir = ("CODEX_HOME", ".codex", "sessions");

/// Whether a reported transcript is in the CLI's own directory. Any program may have written one elsewhere.
fn lies_in(env: &BTreeMap<String, String>, kept: TranscriptDir, path: &Path) -> bool {
    let dir = transcript_dir(env, kept).and_then(|dir| dir.canonicalize().ok());
    path.canonicalize().is_ok_and(|path| dir.is_some_and(|dir| path.starts_with(dir)))
}

fn transcript_dir(
    env: &BTreeMap<String, String>,
    (variable, name, within): TranscriptDir,
) -> Option<PathBuf> {
    Some(home(env, variable, name)?.join(within))
}

/// The transcript of a Claude Code session.
fn transcript(env: &BTreeMap<String, String>, id: &str) -> Option<PathBuf> {
    let file = format!("{id}.jsonl");
    let projects = transcript_dir(env, CLAUDE_DIR)?;
    entries(&projects).into_iter().map(|dir| dir.join(&file)).find(|path| path.is_file())
}

/// The session that Codex announces in its header, above the prompt and the agent's output.
fn announced(output: &str) -> Option<&str> {
    let id = output.lines().find_map(|line| line.trim().strip_prefix("session id: "))?.trim();
    let is_id = id.len() == 36 && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_id.then_some(id)
}

/// Codex's transcript of a session, which is in the folder of the day on which the session began.
fn rollout(env: &BTreeMap<String, String>, id: &str) -> Option<PathBuf> {
    let end = format!("-{id}.jsonl");
    let is_it = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("rollout-") && name.ends_with(&end)
    };
    let newest_first = |dir: PathBuf| entries(&dir).into_iter().rev();
    newest_first(transcript_dir(env, CODEX_DIR)?)
        .flat_map(newest_first)
        .flat_map(newest_first)
        .flat_map(newest_first)
        .find(is_it)
}

/// The directory of a CLI: the variable's value, or the name in the home directory.
fn home(env: &BTreeMap<String, String>, variable: &str, name: &str) -> Option<PathBuf> {
    let named = env.get(variable).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    named.or_else(|| Some(Path::new(env.get("HOME")?).join(name)))
}

fn read(path: &Path) -> Option<Account> {
    let mut reader = TranscriptReader::default();
    each_line(path, |line| reader.line(line))?;
    Some(reader.finish())
}

/// The part of a transcript from a time on. A resumed session contains earlier turns, whose promise does not count
/// for this iteration. `sums`: its token counts are running sums.
fn since(path: &Path, started: Option<DateTime<FixedOffset>>, sums: bool) -> Option<Account> {
    let (mut before, mut reader, mut is_old) =
        (TranscriptReader::default(), TranscriptReader::default(), true);
    each_line(path, |line| {
        // After the first line of this iteration, all lines belong to it.
        is_old = is_old && started.is_some_and(|started| stamp(line).is_none_or(|at| at < started));
        let reader = if is_old { &mut before } else { &mut reader };
        reader.line(line);
    })?;
    let (before, mut account) = (before.finish(), reader.finish());
    if sums {
        account.usage = account.usage.map(|usage| usage.since(before.usage.unwrap_or_default()));
    }
    account.session = account.session.or(before.session);
    account.tool_calls = account.tool_calls.or(before.tool_calls.map(|_| 0));
    Some(account)
}

/// The time at which a line was written.
fn stamp(line: &str) -> Option<DateTime<FixedOffset>> {
    #[derive(Deserialize)]
    struct Stamped<'a> {
        timestamp: &'a str,
    }
    DateTime::parse_from_rfc3339(serde_json::from_str::<Stamped<'_>>(line).ok()?.timestamp).ok()
}

/// Calls `take` for each line; `None` for a file that cannot be a transcript: an agent can name any file as its own.
fn each_line(path: &Path, mut take: impl FnMut(&str)) -> Option<()> {
    let (mut lines, mut line) = (BufReader::new(open_regular(path).ok()?), vec![]);
    while (&mut lines).take(MAX_TRANSCRIPT_LINE_BYTES).read_until(b'\n', &mut line).ok()? > 0 {
        if line.len() as u64 >= MAX_TRANSCRIPT_LINE_BYTES {
            return None;
        }
        take(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Some(())
}
