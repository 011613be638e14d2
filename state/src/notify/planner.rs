//! The planner: which messages are due, and when to look again.
//!
//! A state is announced if it still holds after the delay, once. After five messages in a minute, the rest of that
//! minute is one digest. The states that hold at the end of the quiet hours are one digest too. Delays and minutes
//! count on the monotonic clock while the machine is awake, so a jump of the wall clock neither sends nor delays
//! anything; only the quiet hours follow the wall clock.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, FixedOffset, Timelike};

use super::{Notification, NotifyClass, QuietHours, is_retried, state_key};
use crate::cause::Cause;
use crate::engine::Now;
use crate::model::Status;

/// The messages about single states in one minute; later ones are in a digest.
pub const MAX_SINGLE_MESSAGES: usize = 5;

/// The time in which [`MAX_SINGLE_MESSAGES`] are sent.
pub const MESSAGE_MINUTE: Duration = Duration::from_secs(60);

/// A state that swarm interrupts to retry is the same state if it returns within this time.
const RETRY_GAP: Duration = Duration::from_secs(600);

/// After the start of a daemon, any state is the same if it returns within this time.
const START_GAP: Duration = Duration::from_secs(15);

/// The rules that a user sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifyRules {
    /// The classes that are announced.
    pub classes: Vec<NotifyClass>,
    /// How long a state must hold before it is announced.
    pub delay: Duration,
    /// The time of day in which nothing is sent.
    pub quiet: Option<QuietHours>,
}

/// The state of a worker as far as notifications depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the name explains the other fields")]
pub struct WorkerState {
    pub name: String,
    pub status: Status,
    pub cause: Option<Cause>,
    /// The number of its current or last run.
    pub run: u64,
    /// A person has looked at it since it finished.
    pub is_seen: bool,
    /// Another worker coordinates it.
    pub has_parent: bool,
}

/// A state that was announced, or that will be.
#[derive(Clone, Debug)]
struct KnownState {
    key: String,
    message: Notification,
    since: Duration,
    is_announced: bool,
    is_retried: bool,
    /// Since when the state does not hold.
    gone: Option<Duration>,
}

/// The minute that the first message began.
#[derive(Clone, Copy, Debug)]
struct Minute {
    start: Duration,
    sent: usize,
}

impl Minute {
    fn end(self) -> Duration {
        self.start + MESSAGE_MINUTE
    }
}

/// Decides which messages are due.
#[derive(Clone, Debug)]
pub struct NotifyPlanner {
    rules: NotifyRules,
    /// The keys of the states that an earlier daemon announced; `None` if none did. Used for the first observation.
    record: Option<BTreeMap<String, String>>,
    start: Option<Duration>,
    states: BTreeMap<String, KnownState>,
    minute: Option<Minute>,
    /// A state was due in the quiet hours.
    was_quiet: bool,
}

impl NotifyPlanner {
    /// A planner that continues an earlier record. Without one, all states at the first observation count as announced.
    pub fn new(rules: NotifyRules, record: Option<BTreeMap<String, String>>) -> Self {
        Self { rules, record, start: None, states: BTreeMap::new(), minute: None, was_quiet: false }
    }

    /// Changes the rules. A state of a class that is new in them is announced when it begins again.
    pub fn set_rules(&mut self, rules: NotifyRules) {
        self.rules = rules;
    }

    /// Updates the states of all workers.
    pub fn observe(&mut self, workers: impl IntoIterator<Item = WorkerState>, now: Now) {
        let is_baseline = self.start.is_none() && self.record.is_none();
        if self.start.is_none() {
            self.start = Some(now.mono);
            self.restore(now);
        }
        let mut present = BTreeSet::new();
        for worker in workers {
            match NotifyClass::of(&worker) {
                Some(class) => self.holds(&worker, class, now, is_baseline),
                None => self.ended(&worker.name, now.mono),
            }
            present.insert(worker.name);
        }
        self.states.retain(|name, _| present.contains(name));
        self.was_quiet |=
            self.is_quiet(now) && self.states.values().any(|state| state.is_due(self.rules.delay, now));
    }

    /// Adds the announced states of an earlier planner, as states that do not hold at the moment.
    fn restore(&mut self, now: Now) {
        let (at, now) = (second(now), now.mono);
        for (name, key) in self.record.take().into_iter().flatten() {
            let message = Notification::digest(vec![], at);
            let gone = Some(now);
            let state = KnownState { key, message, since: now, is_announced: true, is_retried: false, gone };
            self.states.insert(name, state);
        }
    }

    fn holds(&mut self, worker: &WorkerState, class: NotifyClass, now: Now, is_baseline: bool) {
        let key = state_key(worker, class);
        let at = second(now);
        let is_retried = is_retried(worker);
        let known = self.states.get(&worker.name);
        let (since, at, is_announced) = match known.filter(|known| known.key == key) {
            Some(known) if known.message.name.is_some() => {
                (known.since, known.message.at, known.is_announced)
            }
            Some(known) => (known.since, at, known.is_announced),
            None => {
                // A text that changes all the time would otherwise restart the delay each time.
                let waits = known.filter(|known| known.waits() && known.message.class == class);
                (waits.map_or(now.mono, |known| known.since), at, !self.rules.classes.contains(&class))
            }
        };
        let message = Notification::of(worker, class, at);
        let is_announced = is_announced || is_baseline;
        let state = KnownState { key, message, since, is_announced, is_retried, gone: None };
        self.states.insert(worker.name.clone(), state);
    }

    /// The worker is in no state that is announced. Keeps its last state while that may return.
    fn ended(&mut self, name: &str, now: Duration) {
        let is_starting = self.start.is_some_and(|start| now < start + START_GAP);
        let Some(known) = self.states.get_mut(name) else { return };
        let gone = *known.gone.get_or_insert(now);
        let may_return = is_starting || known.is_retried && now < gone + RETRY_GAP;
        if !known.is_announced || !may_return {
            self.states.remove(name);
        }
    }

    /// When to observe the workers again because a message may be due; `None` if no state waits for its message.
    pub fn next(&self, now: Now) -> Option<Duration> {
        let waiting = self.states.values().filter(|state| state.waits());
        let delayed = waiting.map(|state| state.since + self.rules.delay).min()?;
        let full = self.minute.filter(|minute| minute.sent >= MAX_SINGLE_MESSAGES);
        let at = delayed.max(full.map_or(Duration::ZERO, Minute::end));
        let quiet = self.rules.quiet.filter(|_| at <= now.mono).and_then(|quiet| quiet.left(now.wall));
        Some(quiet.map_or(at, |left| now.mono + left))
    }

    /// Whether a message is due.
    pub fn is_due(&self, now: Now) -> bool {
        self.next(now).is_some_and(|at| at <= now.mono)
    }

    /// Returns the messages that are due. States of `attached` workers count as announced, since a person sees them.
    pub fn take_due(&mut self, attached: &BTreeSet<String>, now: Now) -> Vec<Notification> {
        if self.is_quiet(now) {
            return vec![];
        }
        let delay = self.rules.delay;
        for (_, state) in self.states.iter_mut().filter(|(name, _)| attached.contains(*name)) {
            state.is_announced |= state.is_due(delay, now);
        }
        let mut due: Vec<&mut KnownState> =
            self.states.values_mut().filter(|state| state.is_due(delay, now)).collect();
        due.sort_by_key(|state| (state.message.class, state.since));
        let (current, last) = match self.minute {
            Some(minute) if now.mono < minute.end() => (Some(minute), None),
            other => (None, other.filter(|minute| minute.sent >= MAX_SINGLE_MESSAGES)),
        };
        // The rest of a full minute.
        let has_rest = last.is_some_and(|minute| due.iter().any(|state| state.since + delay < minute.end()));
        let mut minute = current.unwrap_or(Minute { start: now.mono, sent: 0 });
        let free = MAX_SINGLE_MESSAGES.saturating_sub(minute.sent);
        let is_late = std::mem::take(&mut self.was_quiet) || has_rest;
        let is_digest = is_late && due.len() > 1 && free > 0;
        let count = if is_digest { due.len() } else { free };
        let mut messages = vec![];
        for state in due.into_iter().take(count) {
            state.is_announced = true;
            messages.push(state.message.clone());
        }
        if is_digest {
            messages = vec![Notification::digest(messages, second(now))];
        }
        minute.sent += messages.len();
        self.minute = (minute.sent > 0).then_some(minute);
        messages
    }

    /// Treats the states that are due as announced, because messages have no receiver.
    pub fn drop_due(&mut self, now: Now) {
        for state in self.states.values_mut() {
            state.is_announced |= state.is_due(self.rules.delay, now);
        }
    }

    fn is_quiet(&self, now: Now) -> bool {
        self.rules.quiet.and_then(|quiet| quiet.left(now.wall)).is_some()
    }

    /// The announced states, for the planner of the next daemon.
    pub fn record(&self) -> BTreeMap<String, String> {
        let announced = self.states.iter().filter(|(_, state)| state.is_announced);
        announced.map(|(name, state)| (name.clone(), state.key.clone())).collect()
    }
}

/// The wall clock in whole seconds.
fn second(now: Now) -> DateTime<FixedOffset> {
    now.wall.with_nanosecond(0).unwrap_or(now.wall)
}

impl KnownState {
    /// Whether it holds and is not announced yet.
    fn waits(&self) -> bool {
        !self.is_announced && self.gone.is_none()
    }

    /// Whether it is to be announced, because it has held for the delay.
    fn is_due(&self, delay: Duration, now: Now) -> bool {
        self.waits() && self.since + delay <= now.mono
    }
}
