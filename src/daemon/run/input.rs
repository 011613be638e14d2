//! The input of a run, kept in its folder: its prompt and the texts that people typed.
//!
//! The driver writes the input before the agent sees it. The files are pasted, and the screen reader recognizes their
//! text as echo. So an edit of the prompt file, a new done pattern or another daemon does not change what this run
//! received. Not here: the prompt file itself ([`super::prompt`]).

use std::path::Path;

use swarm_state::pattern::Pattern;
use swarm_state::screen::ScreenReader;
use swarm_state::spec::WorkerSpec;

use crate::daemon::messages::SharedReader;
use crate::error::{Error, Result};
use crate::files::if_exists;
use crate::store::{write_atomic, write_unsynced};

/// The prompt; also the standard input of an agent that reads its prompt there.
pub(crate) const RUN_PROMPT_FILE: &str = "prompt";

/// Texts that people typed and whose echo could look like output: a JSON list.
const TYPED_FILE: &str = "typed";

/// The screen just before the prompt of a run was pasted. Exists from then on.
const PASTED_MARK: &str = "prompt.pasted";

/// The same for a delivery that a dialog interrupted.
const INTERRUPTED_MARK: &str = "prompt.interrupted";

/// Writes the prompt of a run to its folder, and passes it to the screen reader.
pub(crate) fn keep_prompt(dir: &Path, prompt: &[u8], reader: &SharedReader) -> Result<()> {
    let file = dir.join(RUN_PROMPT_FILE);
    write_unsynced(&file, prompt)
        .map_err(|e| Error::system(format!("cannot write {}", file.display()), e))?;
    note(reader, &String::from_utf8_lossy(prompt));
    Ok(())
}

/// Passes a typed text to the screen reader, and writes it to the folder if its echo could look like output.
pub(crate) fn keep_typed(dir: &Path, text: &str, reader: &SharedReader) -> Result<()> {
    if !note(reader, text) {
        return Ok(());
    }
    let mut texts = typed(dir);
    texts.push(text.to_owned());
    let json = serde_json::to_vec(&texts).map_err(|e| Error::system("cannot record the typed text", e))?;
    write_atomic(&dir.join(TYPED_FILE), &json).map_err(|e| Error::system("cannot record the typed text", e))
}

fn note(reader: &SharedReader, text: &str) -> bool {
    reader.lock().is_ok_and(|mut reader| reader.note_input(text))
}

fn typed(dir: &Path) -> Vec<String> {
    std::fs::read(dir.join(TYPED_FILE))
        .ok()
        .and_then(|json| serde_json::from_slice(&json).ok())
        .unwrap_or_default()
}

/// The screen of a run before its prompt was pasted; `None` if it was not pasted.
pub(crate) fn screen_before(dir: &Path) -> Option<String> {
    std::fs::read(dir.join(PASTED_MARK)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Records the screen before the prompt is pasted, and passes it to the reader.
pub(crate) fn keep_screen_before(dir: &Path, screen: &str, reader: &SharedReader) -> Result<()> {
    write_atomic(&dir.join(PASTED_MARK), screen.as_bytes())
        .map_err(|e| Error::system("cannot mark the prompt as pasted", e))?;
    if let Ok(mut reader) = reader.lock() {
        reader.set_baseline(screen);
    }
    Ok(())
}

/// Records that a dialog replaced the input box: the paste was lost, or is in the box and not submitted.
pub(crate) fn note_interrupted(dir: &Path) -> Result<()> {
    if_exists(std::fs::rename(dir.join(PASTED_MARK), dir.join(INTERRUPTED_MARK)))
        .map(drop)
        .map_err(|e| Error::system("cannot mark the prompt as not sent", e))
}

/// Whether a paste of this run may still be in the input box.
pub(crate) fn was_pasted(dir: &Path) -> bool {
    dir.join(PASTED_MARK).exists() || dir.join(INTERRUPTED_MARK).exists()
}

/// Gives a new reader of a live run all input that the previous reader had.
pub(crate) fn restore_reader(dir: &Path, reader: &mut ScreenReader) {
    if let Ok(prompt) = std::fs::read(dir.join(RUN_PROMPT_FILE)) {
        reader.note_input(&String::from_utf8_lossy(&prompt));
    }
    for text in typed(dir) {
        reader.note_input(&text);
    }
    if let Some(screen) = screen_before(dir) {
        reader.set_baseline(&screen);
    }
}

/// A screen reader for one run. Each run has a new one, because text from an earlier run's screen does not count. The
/// code that sends input to the run passes it to the reader.
pub(crate) fn reader(spec: &WorkerSpec) -> Result<ScreenReader> {
    let invalid = |e: &dyn std::fmt::Display| Error::invalid(format!("invalid pattern: {e}"));
    let done = spec.done_pattern.as_deref().map(Pattern::compile).transpose().map_err(|e| invalid(&e))?;
    ScreenReader::new(&spec.profile, done, None).map_err(|e| invalid(&e))
}

/// Replaces the reader of a run by one for this spec: the reviewer of a story is another agent.
pub(crate) fn replace_reader(spec: &WorkerSpec, shared: &SharedReader) {
    if let (Ok(fresh), Ok(mut shared)) = (reader(spec), shared.lock()) {
        *shared = fresh;
    }
}
