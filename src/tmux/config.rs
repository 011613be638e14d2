//! Generates the configuration of swarm's own tmux server.
//!
//! Keys keep tmux's defaults (prefix C-b). `window-size manual` is never set globally: on tmux 3.3a to 3.6 that ends
//! the server at the next window. It is set for each window, and lines after the user's file undo a global setting.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use swarm_state::spec::DEFAULT_SIZE;

use super::quote;
use super::types::{PANE_TERM, TmuxOptions};
use super::version::Version;
use crate::error::{Error, Result};
use crate::files::write_unsynced;

/// Rows of scrollback that a pane keeps (about 0.5 KB each).
const HISTORY_LIMIT: u32 = 10_000;

/// Options that override the user's file. The server outlives its last window, no session ends for lack of a client,
/// a dead pane stays until its output was read, and no global size ends the server.
const NEEDED: &[u8] = b"\
set-option -s exit-empty off
set-option -s exit-unattached off
set-option -g destroy-unattached off
set-option -g detach-on-destroy on
set-window-option -g remain-on-exit on
set-window-option -g window-size latest
";

pub(super) fn text(options: &TmuxOptions, version: Option<Version>) -> Vec<u8> {
    let (columns, rows) = DEFAULT_SIZE;
    let mut text = format!(
        "# Written by swarm at each start of its tmux server; changes here are lost.\n\
         set-option -s escape-time 10\n\
         set-option -s focus-events on\n\
         set-option -s default-terminal {PANE_TERM}\n\
         set-option -g history-limit {HISTORY_LIMIT}\n\
         set-option -g default-size {columns}x{rows}\n\
         set-option -g set-titles off\n\
         set-option -g update-environment ''\n\
         set-window-option -g allow-rename off\n\
         set-window-option -g automatic-rename off\n"
    )
    .into_bytes();
    // The default format would scroll the screen by one row. Before 3.3 there is neither the line nor the option.
    if version.is_none_or(|version| version >= Version::new(3, 3)) {
        text.extend_from_slice(b"set-window-option -g remain-on-exit-format ''\n");
    }
    if let Some(source) = &options.source {
        text.extend_from_slice(b"source-file -q ");
        // source-file expands a glob pattern.
        let mut pattern = Vec::new();
        for byte in source.as_os_str().as_bytes() {
            if matches!(byte, b'*' | b'?' | b'[' | b'\\') {
                pattern.push(b'\\');
            }
            pattern.push(*byte);
        }
        text.extend_from_slice(&quote::word(&pattern));
        text.push(b'\n');
    }
    text.extend_from_slice(NEEDED);
    text
}

/// Writes the file (0600), and makes its directory (0700) if it is missing.
pub(super) fn write(options: &TmuxOptions, version: Option<Version>) -> Result<()> {
    let path = &options.config;
    let attempt = || -> std::io::Result<()> {
        let dir = path.parent().unwrap_or(Path::new("."));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        write_unsynced(path, &text(options, version))
    };
    attempt().map_err(|cause| Error::system(format_args!("cannot write {}", path.display()), cause))
}

#[cfg(test)]
mod tests {
    use super::super::types::Socket;
    use super::*;

    fn options(source: Option<&str>) -> TmuxOptions {
        TmuxOptions {
            socket: Socket::Name("x".into()),
            config: "/nowhere/tmux.conf".into(),
            source: source.map(Into::into),
            session: "swarm".into(),
        }
    }

    #[test]
    fn config_has_no_option_that_crashes_tmux_or_needs_a_newer_one() {
        let new = String::from_utf8(text(&options(None), Some(Version::new(3, 6)))).unwrap();
        assert!(new.contains("remain-on-exit-format ''"));
        assert!(!new.contains("manual") && !new.contains("prefix") && !new.contains("source-file"));
        let old = String::from_utf8(text(&options(None), Some(Version::new(3, 2)))).unwrap();
        assert!(!old.contains("remain-on-exit-format"));
    }

    #[test]
    fn users_tmux_conf_is_quoted_and_comes_before_required_options() {
        let text = String::from_utf8(text(&options(Some("/h/a b/$x[1].conf")), None)).unwrap();
        let (_, after) = text.split_once("source-file -q \"/h/a b/\\044x\\134[1].conf\"\n").unwrap();
        assert_eq!(after.as_bytes(), NEEDED);
    }
}
