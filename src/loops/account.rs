//! Where an agent's own account of an iteration is: its CLI's transcript, else the result that the CLI printed.
//!
//! Claude Code takes a session id, so its transcript can be found whatever else runs beside it. Of the others the
//! JSON that they print is read, where they were asked for it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use md5::{Digest, Md5};
use swarm_state::transcript::{Account, Reader};

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

/// What is known of an iteration: the transcript of the session where there is one, completed by what the CLI printed.
pub(super) fn of(env: &BTreeMap<String, String>, session: Option<&str>, output: &str) -> Account {
    let printed = Account::of(output);
    let Some(told) = session.and_then(|id| transcript(env, id)).and_then(|path| read(&path)) else {
        return printed;
    };
    Account {
        texts: if told.texts.is_empty() { printed.texts } else { told.texts },
        tool_calls: told.tool_calls.or(printed.tool_calls),
        usage: told.usage.or(printed.usage),
        cost: printed.cost.or(told.cost),
        session: told.session.or(printed.session),
        error: told.error.or(printed.error),
    }
}

/// The transcript of a Claude Code session.
fn transcript(env: &BTreeMap<String, String>, id: &str) -> Option<PathBuf> {
    let place = env.get("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let projects = place.or_else(|| Some(Path::new(env.get("HOME")?).join(".claude")))?.join("projects");
    let file = format!("{id}.jsonl");
    let dirs = fs::read_dir(projects).ok()?;
    dirs.filter_map(|dir| Some(dir.ok()?.path().join(&file))).find(|path| path.is_file())
}

fn read(path: &Path) -> Option<Account> {
    let mut lines = BufReader::new(fs::File::open(path).ok()?);
    let (mut reader, mut line) = (Reader::default(), vec![]);
    while lines.read_until(b'\n', &mut line).ok()? > 0 {
        reader.line(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Some(reader.finish())
}
