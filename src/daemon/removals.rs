//! Whether somebody removes the daemon's directory or what is in it, told without a wake-up until it happens.
//!
//! The look at the screens asks the same questions; with nobody to look at there is none, and a daemon of a
//! directory that is gone would stay for ever. Only Linux can tell; elsewhere the looks have to do.
//!
//! A daemon whose whole directory is gone leaves: another may be at work in a new one. One that only misses
//! records, or a directory of them, writes them anew from what it holds, a moment after the removal: whoever
//! removes everything must not be raced.

use std::collections::BTreeSet;
use std::time::Duration;

use swarm_state::model::WorkerName;
use swarm_state::notice::{Entry, counted};

use crate::daemon::messages::Input;
use crate::daemon::supervisor::Supervisor;
use crate::error::Result;
use crate::store::Problem;

/// How long after a removal the rest is looked at.
const RESTORE_DELAY: Duration = Duration::from_secs(1);

impl Supervisor {
    /// Something was removed: leaves at once if it was everything, else looks what is missing when it is over.
    pub(crate) fn directory_touched(&mut self) {
        self.end_if_removed();
        self.touches += 1;
        let (inbox, touch) = (self.inbox.clone(), self.touches);
        tokio::spawn(async move {
            tokio::time::sleep(RESTORE_DELAY).await;
            drop(inbox.send(Input::RemovalSettled(touch)));
        });
    }

    /// A while has passed since; if nothing more was removed meanwhile, it is over.
    pub(crate) fn removal_settled(&mut self, touch: u64) {
        if touch == self.touches {
            self.settled = touch;
            self.restore_removed();
        }
    }

    /// Sees what the watch may not have told: directories that are not there.
    pub(crate) fn check_directories(&mut self) {
        if self.touches == self.settled && self.store.lacks_a_directory() {
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

    /// Writes anew what is missing of the records and of the loops' files.
    fn restore_removed(&mut self) {
        self.end_if_removed();
        if self.ended.is_some() {
            return;
        }
        if let Err(error) = self.remake() {
            // Tried again with the next look; what cannot be saved meanwhile is told as ever.
            return tracing::warn!(%error, "a directory was removed and cannot be made again");
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
                "its files were removed while it was looked after; they are written anew".to_owned();
            self.notify(name, Entry::Warning { message });
        }
        self.report_restored(&missing);
    }

    /// Tells it in every `ls` from here on: somebody did this, and may do it again.
    fn report_restored(&mut self, missing: &BTreeSet<WorkerName>) {
        let Some(first) = missing.first() else { return };
        let dir = self.store.paths().workers_dir();
        let others = match missing.len() - 1 {
            0 => String::new(),
            more => format!(" and {}", counted(more, "other worker")),
        };
        let message = format!(
            "files of worker '{first}'{others} were removed from '{}' or beside it while the daemon ran; it wrote \
             them anew",
            dir.display()
        );
        tracing::warn!("{message}");
        if !self.problems.iter().any(|known| known.message == message) {
            self.problems.push(Problem { message, name: None, reserved: false });
        }
    }
}
