//! `ralph.status`: one loop.

use crate::daemon::supervisor::Supervisor;
use crate::daemon::views;
use crate::error::{Error, Result};
use crate::protocol::RalphView;

impl Supervisor {
    pub(crate) fn ralph_status(&mut self, name: &str) -> Result<RalphView> {
        let (name, _) = self.find_loop(name)?;
        self.apply_file_edits(&name);
        let view = self.slots.get(&name).and_then(views::ralph);
        view.ok_or_else(|| Error::internal("a loop without numbers"))
    }
}
