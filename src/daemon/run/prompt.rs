//! Reads the prompt of a run, each time again. The messages are documented.

use std::path::Path;

use swarm_state::spec::{Prompt, WorkerSpec};

use crate::store::read_bounded;

const MAX_PROMPT_BYTES: u64 = 16 << 20;

/// Reads the prompt of a worker's next run. An empty task file is an error, as a missing one is.
pub(crate) fn next(spec: &WorkerSpec) -> Result<Option<Vec<u8>>, String> {
    // The file with a task that was given as text is a copy, which the agent can change.
    if let Some(task) = spec.ralph.as_ref().and_then(|ralph| ralph.task.as_ref()) {
        return Ok(Some(task.clone().into_bytes()));
    }
    let prompt = match &spec.prompt {
        Prompt::None => None,
        Prompt::Text(text) => Some(text.clone().into_bytes()),
        Prompt::File(path) => Some(read_file(path)?),
    };
    refuse_blank(spec, prompt.as_deref())?;
    Ok(prompt)
}

/// True for a prompt file without text. `/dev/null` does not count as empty: a person chose it.
pub(crate) fn is_empty(path: &Path, bytes: &[u8]) -> bool {
    path != Path::new("/dev/null") && String::from_utf8_lossy(bytes).trim().is_empty()
}

/// Refuses an empty task of a verified loop.
pub(crate) fn refuse_blank(spec: &WorkerSpec, prompt: Option<&[u8]>) -> Result<(), String> {
    match (&spec.prompt, prompt) {
        (Prompt::File(path), Some(bytes)) if spec.is_gated() && is_empty(path, bytes) => {
            Err(format!("prompt file is empty: {}", path.display()))
        }
        (Prompt::None | Prompt::Text(_) | Prompt::File(_), _) => Ok(()),
    }
}

pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    read_bounded(path, MAX_PROMPT_BYTES).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("prompt file not found: {}", path.display()),
        std::io::ErrorKind::FileTooLarge => {
            format!(
                "cannot read prompt file: {} (it is larger than {} MiB)",
                path.display(),
                MAX_PROMPT_BYTES >> 20
            )
        }
        _ => format!("cannot read prompt file: {}", path.display()),
    })
}
