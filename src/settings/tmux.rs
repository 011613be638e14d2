//! `[tmux]`: settings of swarm's own tmux server.

use std::path::PathBuf;

use super::{Key, set};

/// `[tmux]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TmuxSettings {
    /// A tmux configuration to read after swarm's own; absolute.
    pub source: Option<PathBuf>,
    /// Columns and rows of a window without a client.
    pub size: Option<(u16, u16)>,
}

/// The keys of `[tmux]`.
pub(super) const KEYS: &[Key<TmuxSettings>] = &[
    ("size", "\"200x50\"", |to, entry| {
        let size = size(&entry.text()?).ok_or_else(|| entry.must_be(SIZE));
        set(&mut to.size, size)
    }),
    ("source", "", |to, entry| set(&mut to.source, entry.path())),
];

/// The format of [`size`], for messages.
pub const SIZE: &str = "a size like \"200x50\" (20x5 to 1000x500)";

/// Parses columns and rows, such as `200x50`. Below the limits no agent's screen is readable; above them a capture is
/// too large.
pub fn size(text: &str) -> Option<(u16, u16)> {
    let (columns, rows) = text.split_once('x')?;
    let (columns, rows) = (columns.parse().ok()?, rows.parse().ok()?);
    ((20..=1000).contains(&columns) && (5..=500).contains(&rows)).then_some((columns, rows))
}
