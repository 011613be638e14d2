//! The prompt of a run, read afresh. The messages are the ralph document's.

use std::path::Path;

use swarm_state::model::Prompt;

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
