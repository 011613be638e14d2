//! The prompt of a run, read afresh. The messages are the ralph document's.

use std::path::Path;

use swarm_state::spec::{Prompt, WorkerSpec};

use crate::store::read_bounded;

/// The largest prompt, bytes.
const MAX_PROMPT_BYTES: u64 = 16 << 20;

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

/// The prompt of a worker's next run. A task that went blank is as one that is gone: nobody is to work on nothing.
///
/// # Errors
/// The documented message.
pub(crate) fn next(spec: &WorkerSpec) -> Result<Option<Vec<u8>>, String> {
    let prompt = read(&spec.prompt)?;
    refuse_blank(spec, prompt.as_deref())?;
    Ok(prompt)
}

/// Refuses a verified loop's task that says nothing; `/dev/null` is meant so by whoever typed it for a prompt.
pub(crate) fn refuse_blank(spec: &WorkerSpec, prompt: Option<&[u8]>) -> Result<(), String> {
    match (&spec.prompt, prompt) {
        (Prompt::File(path), Some(bytes))
            if spec.is_gated()
                && path != Path::new("/dev/null")
                && String::from_utf8_lossy(bytes).trim().is_empty() =>
        {
            Err(format!("prompt file is empty: {}", path.display()))
        }
        (Prompt::None | Prompt::Text(_) | Prompt::File(_), _) => Ok(()),
    }
}

/// The same for a file.
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
