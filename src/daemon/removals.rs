//! Reacts to the removal of the daemon's directory or files in it.
//!
//! If the whole directory is gone, the daemon ends: another daemon may already use a new directory of the same name.
//! If only records, or the directory of records, are missing, the daemon writes them again from memory, one second
//! after the last removal, so that it does not race with the removal of everything. [`super::directory_watch`]
//! notices removals; the looks at the screens check too.

use std::collections::BTreeSet;
use std::time::Duration;

use swarm_state::model::WorkerName;
use swarm_state::notice::{Entry, counted};

use crate::daemon::messages::DaemonInput;
use crate::daemon::supervisor::Supervisor;
use crate::error::Result;
use crate::store::Problem;

/// How long after the last removal missing files are restored.
const RESTORE_DELAY: Duration = Duration::from_secs(1);

impl Supervisor {
    /// Something was removed: ends the daemon if everything is gone, else plans to restore what is missing.
    pub(crate) fn directory_touched(&mut self) {
        self.end_if_removed();
        self.touches += 1;
        let (inbox, touch) = (self.inbox.clone(), self.touches);
        tokio::spawn(async move {
            tokio::time::sleep(RESTORE_DELAY).await;
            drop(inbox.send(DaemonInput::RemovalSettled(touch)));
        });
    }

    /// The delay after a removal has passed. Restores files if nothing more was removed meanwhile.
    pub(crate) fn removal_settled(&mut self, touch: u64) {
        if touch == self.touches {
            self.settled = touch;
            self.restore_removed();
        }
    }

    /// Checks for missing directories, which the watch may have missed.
    pub(crate) fn check_directories(&mut self) {
        if self.touches == self.settled && self.store.is_incomplete() {
            self.directory_touched();
        }
    }

    fn remake(&self) -> Result<()> {
        self.store.remake()?;
        if let Some(watch) = &self.removal {
            watch.renew(self.store.paths());
        }
        Ok(())
    }

    /// Writes missing records and loop files again.
    fn restore_removed(&mut self) {
        self.end_if_removed();
        if self.ended.is_some() {
            return;
        }
        if let Err(error) = self.remake() {
            // The next look retries. Saves that fail meanwhile are reported as usual.
            return tracing::warn!(%error, "a directory was removed and cannot be created again");
        }
        let mut missing = BTreeSet::new();
        for (name, slot) in self.slots.iter().filter(|(_, slot)| slot.origin.legacy.is_none()) {
            let loop_file = slot.saving.ralph_file.is_some() && !slot.engine.is_stopped();
            if !self.store.has_record(name) || loop_file && self.store.ralph_stamp(name).is_none() {
                missing.insert(name.clone());
            }
        }
        for name in &missing {
            self.save(name);
            if self.slots.get(name).is_some_and(|slot| slot.saving.is_unsaved()) {
                continue;
            }
            let message =
                "its files were removed while the daemon ran; the daemon wrote them again".to_owned();
            self.notify(name, Entry::Warning { message });
        }
        self.report_restored(&missing);
    }

    /// Reports the removal in every `ls` from now on, because it may happen again.
    fn report_restored(&mut self, missing: &BTreeSet<WorkerName>) {
        let Some(first) = missing.first() else { return };
        let dir = self.store.paths().workers_dir();
        let others = match missing.len() - 1 {
            0 => String::new(),
            more => format!(" and {}", counted(more, "other worker")),
        };
        let message = format!(
            "files of worker '{first}'{others} below '{}' were removed while the daemon ran; the daemon wrote them \
             again",
            dir.display()
        );
        tracing::warn!("{message}");
        if !self.problems.iter().any(|known| known.message == message) {
            self.problems.push(Problem::of(None, message));
        }
    }
}
