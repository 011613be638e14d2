//! The constant properties of panes, kept between two full lists.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::rows::ListedPane;
use super::types::PaneRow;

/// How long the constant properties of panes are kept. (A user can move a pane to another window.)
const KNOWN_PANES_AGE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct KnownPanes {
    pub(super) panes: HashMap<String, ListedPane>,
    pub(super) at: Option<Instant>,
}

impl KnownPanes {
    /// Adds what the short list leaves out. `None` if a pane is new or the data is too old.
    pub(super) fn complete(&self, short: Vec<ListedPane>) -> Option<Vec<ListedPane>> {
        if self.at?.elapsed() > KNOWN_PANES_AGE {
            return None;
        }
        let complete = |ListedPane { row, .. }: ListedPane| {
            let known = self.panes.get(&row.pane).filter(|known| known.row.pid == row.pid)?;
            let PaneRow { window, worker, run, start_command, .. } = known.row.clone();
            Some(ListedPane {
                row: PaneRow { window, worker, run, start_command, ..row },
                session: known.session.clone(),
            })
        };
        short.into_iter().map(complete).collect()
    }
}
