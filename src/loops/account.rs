//! Where an agent's own account of an iteration is: its CLI's transcript, else the result that the CLI printed.
//!
//! Claude Code takes a session id, so its transcript can be found whatever else runs beside it. Codex takes none,
//! but prints the one that it made before anything else, and its own record bears it in its name. Of the
//! others the JSON that they print is read, where they were asked for it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use chrono::{DateTime, FixedOffset};
use md5::{Digest, Md5};
use serde::Deserialize;
use swarm_state::promise::Source;
use swarm_state::transcript::{Account, Story, TranscriptReader};

use super::Finished;

#[cfg(test)]
mod tests;

/// The session id of a run: always the same for the same run, so that a daemon which dies in between passes
/// it again.
pub fn session_id(name: &str, id: &str, run: u64) -> String {
    let mut bytes: [u8; 16] = Md5::digest(format!("swarm {name} {id} {run}")).into();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}

/// What is known of an iteration, and where its words stand: the transcript of the session where there is one, completed
/// by what the CLI printed, unless that is `text`.
pub(super) fn of(env: &BTreeMap<String, String>, text: bool, finished: &Finished<'_>) -> (Account, Source) {
    let printed = if text { Account::default() } else { Account::of(finished.output) };
    let told = match (finished.session.as_deref(), finished.transcript.as_deref()) {
        (Some(id), _) => transcript(env, id).and_then(|path| read(&path)),
        (None, Some(path)) if lies_in(env, CLAUDE, path) => since(path, finished.started, false),
        (None, Some(path)) if lies_in(env, CODEX, path) => since(path, finished.started, true),
        (None, _) => {
            announced(finished.output).and_then(|id| since(&rollout(env, id)?, finished.started, true))
        }
    };
    // Whoever counts its tool calls has left a record: where that holds no words, none were said.
    let has_words = |account: &Account| !account.texts.is_empty() || account.tool_calls.is_some();
    let in_print = if has_words(&printed) { Source::Result } else { Source::Screen };
    let Some(told) = told else { return (printed, in_print) };
    // What a tool printed is no completion of a record that is there.
    let (texts, source) =
        if has_words(&told) { (told.texts, Source::Transcript) } else { (printed.texts, in_print) };
    let account = Account {
        texts,
        tool_calls: told.tool_calls.or(printed.tool_calls),
        usage: told.usage.or(printed.usage),
        cost: printed.cost.or(told.cost),
        session: told.session.or(printed.session),
        error: told.error.or(printed.error),
    };
    (account, source)
}

/// How long ago the agent's transcript grew, or one of its sub-agents'; `None` where there is none.
pub(crate) fn last_growth(
    env: &BTreeMap<String, String>,
    session: Option<&str>,
    told: Option<&Path>,
) -> Option<Duration> {
    let path = told.map(Path::to_owned).or_else(|| transcript(env, session?))?;
    let sub_agents = entries(&path.with_extension("").join("subagents"));
    let written = |path: &PathBuf| fs::metadata(path).and_then(|data| data.modified()).ok();
    let last = sub_agents.iter().chain([&path]).filter_map(written).max()?;
    // A clock that was set back says nothing.
    SystemTime::now().duration_since(last).ok()
}

/// Whether the agent's hooks told of a transcript in which nothing of the agent is any more. Such a record was there, so
/// what else shows its words may be anybody's.
pub(super) fn is_lost(env: &BTreeMap<String, String>, finished: &Finished<'_>) -> bool {
    let Some(path) = finished.transcript.as_deref() else { return false };
    let is_known = |kept| kept_in(env, kept).is_some_and(|dir| path.starts_with(dir));
    let is_ours = finished.session.is_some() || is_known(CLAUDE) || is_known(CODEX);
    is_ours && read(path).is_none_or(|told| told.texts.is_empty() && told.tool_calls.is_none())
}

/// Whether an agent was ended from outside while its transcript was there: one that was ended before its first words has
/// none in it. Some agents catch the signal and exit with 128 and its number.
pub(super) fn was_cut_off(finished: &Finished<'_>) -> bool {
    let exit = finished.exit;
    let was_ended = exit.signal().is_some() || matches!(exit.code(), Some(129 | 130 | 137 | 143));
    was_ended && finished.transcript.as_deref().is_some_and(Path::is_file)
}

/// The agent's messages and tool calls as plain text, from its transcript; `None` where it keeps none that is known.
///
/// `session` is the id that swarm passed, `told` the path that the agent's hooks reported, `output` what it printed.
pub(crate) fn story(
    env: &BTreeMap<String, String>,
    session: Option<&str>,
    told: Option<&Path>,
    output: &str,
    started: Option<DateTime<FixedOffset>>,
) -> Option<String> {
    let path = match (session, told) {
        (Some(id), _) => transcript(env, id)?,
        (None, Some(path)) if lies_in(env, CLAUDE, path) || lies_in(env, CODEX, path) => path.to_owned(),
        (None, _) => rollout(env, announced(output)?)?,
    };
    let (mut story, mut is_old) = (Story::default(), true);
    each_line(&path, |line| {
        is_old = is_old && started.is_some_and(|started| stamp(line).is_none_or(|at| at < started));
        if !is_old {
            story.line(line);
        }
    })?;
    story.finish()
}

/// Where a CLI keeps its transcripts: the variable that says so, the directory at home, and the one within.
type Kept = (&'static str, &'static str, &'static str);

const CLAUDE: Kept = ("CLAUDE_CONFIG_DIR", ".claude", "projects");
const CODEX: Kept = ("CODEX_HOME", ".codex", "sessions");

/// Whether a transcript that a hook named is where the CLI keeps them: what lies elsewhere anybody may have
/// written.
fn lies_in(env: &BTreeMap<String, String>, kept: Kept, path: &Path) -> bool {
    let dir = kept_in(env, kept).and_then(|dir| dir.canonicalize().ok());
    path.canonicalize().is_ok_and(|path| dir.is_some_and(|dir| path.starts_with(dir)))
}

fn kept_in(env: &BTreeMap<String, String>, (variable, name, within): Kept) -> Option<PathBuf> {
    Some(home(env, variable, name)?.join(within))
}

/// The transcript of a Claude Code session.
fn transcript(env: &BTreeMap<String, String>, id: &str) -> Option<PathBuf> {
    let file = format!("{id}.jsonl");
    let projects = kept_in(env, CLAUDE)?;
    entries(&projects).into_iter().map(|dir| dir.join(&file)).find(|path| path.is_file())
}

/// The session that Codex announces in its head, above the prompt and all that the agent says.
fn announced(output: &str) -> Option<&str> {
    let id = output.lines().find_map(|line| line.trim().strip_prefix("session id: "))?.trim();
    let is_id = id.len() == 36 && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_id.then_some(id)
}

/// Codex's record of a session; it lies under the day on which the session began.
fn rollout(env: &BTreeMap<String, String>, id: &str) -> Option<PathBuf> {
    let end = format!("-{id}.jsonl");
    let is_it = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("rollout-") && name.ends_with(&end)
    };
    let newest_first = |dir: PathBuf| entries(&dir).into_iter().rev();
    newest_first(kept_in(env, CODEX)?)
        .flat_map(newest_first)
        .flat_map(newest_first)
        .flat_map(newest_first)
        .find(is_it)
}

/// The directory of a CLI: what a variable says, else one of that name at home.
fn home(env: &BTreeMap<String, String>, variable: &str, name: &str) -> Option<PathBuf> {
    let named = env.get(variable).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    named.or_else(|| Some(Path::new(env.get("HOME")?).join(name)))
}

/// What is in a directory, sorted by name; nothing where it cannot be read.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(dir).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort_unstable();
    paths
}

fn read(path: &Path) -> Option<Account> {
    let mut reader = TranscriptReader::default();
    each_line(path, |line| reader.line(line))?;
    Some(reader.finish())
}

/// What a record says from a moment on: a session that was resumed has its earlier turns in it, and a promise of
/// those is none of this iteration. `sums`: its tokens are a running sum.
fn since(path: &Path, started: Option<DateTime<FixedOffset>>, sums: bool) -> Option<Account> {
    let (mut before, mut reader, mut is_old) =
        (TranscriptReader::default(), TranscriptReader::default(), true);
    each_line(path, |line| {
        // Once it is of this iteration, all that follows is.
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

/// When a line was written.
fn stamp(line: &str) -> Option<DateTime<FixedOffset>> {
    #[derive(Deserialize)]
    struct Stamped<'a> {
        timestamp: &'a str,
    }
    DateTime::parse_from_rfc3339(serde_json::from_str::<Stamped<'_>>(line).ok()?.timestamp).ok()
}

fn each_line(path: &Path, mut take: impl FnMut(&str)) -> Option<()> {
    let (mut lines, mut line) = (BufReader::new(fs::File::open(path).ok()?), vec![]);
    while lines.read_until(b'\n', &mut line).ok()? > 0 {
        take(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Some(())
}
