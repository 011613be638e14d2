//! The state of notifications in the daemon: settings, planner, channels, and the clients that show them.
//!
//! [`super::notifying`] observes the workers and uses it.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::time::Duration;

use swarm_state::notify::{Notification, NotifyPlanner};
use tokio::time::Instant;

use crate::daemon::reply::Reply;
use crate::daemon::watched_settings::WatchedSettings;
use crate::notify::{Channel, Outbox};
use crate::paths::Paths;
use crate::protocol::{NextNotification, NotifyNextParams};
use crate::settings::NotifySettings;
use crate::store::{read_bounded, write_unsynced};

/// Between two observations. A shorter delay of the settings shortens it.
const OBSERVE_INTERVAL: Duration = Duration::from_secs(1);

/// The shortest time between two observations.
const MIN_OBSERVE_INTERVAL: Duration = Duration::from_millis(100);

const MAX_NOTIFIED_BYTES: u64 = 4 << 20;

pub(crate) struct Notifying {
    settings: NotifySettings,
    file: WatchedSettings,
    pub(crate) outbox: Outbox,
    pub(crate) listeners: NotifyListeners,
    pub(crate) planner: NotifyPlanner,
    pub(crate) observed: Option<Instant>,
    /// A state may have changed since the last observation.
    pub(crate) is_stale: bool,
    /// When to observe next, if no input comes before.
    pub(crate) wake: Option<Instant>,
    /// A task asks tmux who is attached.
    pub(crate) is_asking: bool,
    record: Option<BTreeMap<String, String>>,
}

impl Notifying {
    pub(crate) fn new(paths: &Paths, first: u64) -> Self {
        let (settings, record) = (NotifySettings::default(), read_record(paths));
        Self {
            planner: NotifyPlanner::new(settings.rules(), record.clone()),
            settings,
            file: WatchedSettings::default(),
            outbox: Outbox::start(vec![]),
            listeners: NotifyListeners::new(first),
            observed: None,
            is_stale: true,
            wake: None,
            is_asking: false,
            record,
        }
    }

    /// The last error of each channel whose last message failed.
    pub(crate) fn errors(&self) -> BTreeMap<String, String> {
        self.outbox.errors()
    }

    /// Reads the settings if their file has changed. A file with errors changes nothing.
    pub(crate) fn reload(&mut self, paths: &Paths) {
        let changed = self.file.changed(paths, "[notify]").map(|settings| settings.notify);
        let Some(settings) = changed.filter(|settings| *settings != self.settings) else { return };
        self.outbox = Outbox::start(Channel::of(&settings));
        self.planner.set_rules(settings.rules());
        self.settings = settings;
    }

    pub(crate) fn interval(&self) -> Duration {
        self.settings.rules().delay.clamp(MIN_OBSERVE_INTERVAL, OBSERVE_INTERVAL)
    }

    /// Writes which states were announced, so that the next daemon does not announce them again.
    pub(crate) fn save_record(&mut self, paths: &Paths) {
        let record = (!self.outbox.is_empty()).then(|| self.planner.record());
        if record == self.record {
            return;
        }
        let file = paths.notified();
        let outcome = match &record {
            Some(record) => {
                serde_json::to_vec(record).map_err(Into::into).and_then(|b| write_unsynced(&file, &b))
            }
            None => fs::remove_file(&file),
        };
        if let Err(error) = outcome {
            tracing::warn!(%error, "the record of notifications cannot be written");
        }
        self.record = record;
    }
}

/// The states that the last daemon announced.
fn read_record(paths: &Paths) -> Option<BTreeMap<String, String>> {
    serde_json::from_slice(&read_bounded(&paths.notified(), MAX_NOTIFIED_BYTES).ok()?).ok()
}

/// The notifications that are kept for clients that are about to ask for the next one.
const MAX_KEPT_NOTIFICATIONS: usize = 64;

/// How long a client counts as present after its last request.
const LISTENER_TIMEOUT: Duration = Duration::from_secs(10);

/// The clients that show notifications, and the last notifications.
pub(crate) struct NotifyListeners {
    /// The number of the last notification. It also grows over restarts of the daemon.
    seq: u64,
    kept: VecDeque<NextNotification>,
    waiting: Vec<Reply>,
    asked: Option<Instant>,
}

impl NotifyListeners {
    /// No listeners yet; the first notification has a number above `first`.
    pub(crate) fn new(first: u64) -> Self {
        Self { seq: first, kept: VecDeque::new(), waiting: vec![], asked: None }
    }

    /// Whether a client waits for notifications.
    pub(crate) fn is_present(&mut self) -> bool {
        self.waiting.retain(|reply| !reply.0.is_closed());
        !self.waiting.is_empty() || self.asked.is_some_and(|at| at.elapsed() < LISTENER_TIMEOUT)
    }

    pub(crate) fn send(&mut self, message: &Notification) {
        self.seq += 1;
        let next = NextNotification { seq: self.seq, message: Some(message.clone()) };
        for reply in self.waiting.drain(..) {
            reply.answer(Ok(&next));
        }
        self.asked = Some(Instant::now());
        self.kept.push_back(next);
        if self.kept.len() > MAX_KEPT_NOTIFICATIONS {
            self.kept.pop_front();
        }
    }

    /// Answers with the next notification, now or when there is one.
    pub(crate) fn next(&mut self, params: &NotifyNextParams, reply: Reply) {
        self.asked = Some(Instant::now());
        // A number above the last one is that of a daemon whose clock was ahead.
        match params.after.map(|after| after.min(self.seq)) {
            None => reply.answer(Ok(NextNotification { seq: self.seq, message: None })),
            Some(after) => match self.kept.iter().find(|next| next.seq > after) {
                Some(next) => reply.answer(Ok(next)),
                None => self.waiting.push(reply),
            },
        }
    }
}
