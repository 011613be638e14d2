//! The prompt of a run, read afresh. The messages are the ralph document's.

use std::path::Path;

use swarm_state::model::{Prompt, WorkerSpec};

use crate::store::read_bounded;

/// The largest prompt, bytes.
const LIMIT: u64 = 16 << 20;

/// The prompt's bytes; `None` when there is none.
///
/// # Errors
/// The documented message.
pub(crate) fn read(prompt: &Prompt) -> Result<Option<Vec<u8>>, String> {
    match prompt {
        Prompt::None => Ok(None),
        Prompt::Text(text) => Ok(Some(text.clone().into_bytes())),
        Prompt::File(path) => read_file(path).map(Some),
    }
}

/// Refuses a measured loop whose task says nothing: its agents would be told rules and no work.
///
/// # Errors
/// Names the file.
pub(crate) fn refuse_blank(spec: &WorkerSpec, prompt: Option<&[u8]>) -> Result<(), String> {
    let measured = spec.ralph.as_ref().is_some_and(|ralph| !ralph.gates.is_empty());
    match (&spec.prompt, prompt) {
        (Prompt::File(path), Some(text)) if measured && text.trim_ascii().is_empty() => {
            Err(format!("the task is empty: {}", path.display()))
        }
        (Prompt::None | Prompt::Text(_) | Prompt::File(_), _) => Ok(()),
    }
}

/// The same for a file.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    read_bounded(path, LIMIT).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("prompt file not found: {}", path.display()),
        std::io::ErrorKind::FileTooLarge => {
            format!("cannot read prompt file: {} (it is larger than {} MiB)", path.display(), LIMIT >> 20)
        }
        _ => format!("cannot read prompt file: {}", path.display()),
    })
}
