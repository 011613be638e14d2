//! The usage limits of agents' accounts, and the parks that follow from them.
//!
//! The figures come from hooks of agents ([`super::verbs`]), from transcripts and from the limits that agents ran into.
//! They are kept in a file, so that a restarted daemon parks the same loops. The decision is
//! [`swarm_state::quota`]'s; each loop of an account receives it as an event. `[quota]` of the user's own settings is
//! read again when the file has changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use swarm_state::engine::Event;
use swarm_state::gates::Verdict;
use swarm_state::model::WorkerName;
use swarm_state::quota::{AccountQuota, Park, QuotaAccount, QuotaFigure, REACHED, is_account_limit};
use tokio::time::Instant;

use crate::daemon::slot::Slot;
use crate::daemon::supervisor::Supervisor;
use crate::error::sentence;
use crate::paths::Paths;
use crate::settings::{QuotaSettings, Settings};
use crate::store::{read_bounded, write_unsynced};

/// Between two looks at the settings file and at figures that have ended.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The largest file of figures that is read.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The most figures of one report, and the longest name of a limit.
const MAX_FIGURES: usize = 8;
const MAX_WINDOW_CHARS: usize = 32;

/// The figures of all accounts, and the settings.
pub(crate) struct Quotas {
    settings: QuotaSettings,
    /// The time and size of the settings file that was read last.
    stamp: Option<(SystemTime, u64)>,
    accounts: BTreeMap<QuotaAccount, AccountQuota>,
    /// The figures have changed since the last save.
    is_unsaved: bool,
    checked: Option<Instant>,
}

/// One account in the file of figures.
#[derive(Serialize, Deserialize)]
struct SavedAccount {
    #[serde(flatten)]
    account: QuotaAccount,
    #[serde(flatten)]
    quota: AccountQuota,
}

impl Quotas {
    /// Reads the figures of an earlier daemon. A file that cannot be read counts as empty: the agents report
    /// their figures again.
    pub(crate) fn load(paths: &Paths) -> Self {
        let bytes = read_bounded(&paths.quota(), MAX_FILE_BYTES).unwrap_or_default();
        let saved: Vec<serde_json::Value> = serde_json::from_slice(&bytes).unwrap_or_default();
        let accounts =
            saved.into_iter().filter_map(|value| serde_json::from_value::<SavedAccount>(value).ok());
        let accounts = accounts.map(|saved| (saved.account, saved.quota)).collect();
        let mut quotas = Self {
            settings: QuotaSettings::default(),
            stamp: None,
            accounts,
            is_unsaved: false,
            checked: None,
        };
        quotas.reload(paths);
        quotas
    }

    /// Reads the settings if their file has changed. A file with errors changes nothing.
    fn reload(&mut self, paths: &Paths) {
        let file = paths.user_config();
        let stamp = fs::metadata(&file).ok().and_then(|found| Some((found.modified().ok()?, found.len())));
        if stamp == self.stamp {
            return;
        }
        self.stamp = stamp;
        match Settings::load(&file, None, None) {
            Ok(settings) => self.settings = settings.quota,
            Err(error) => tracing::warn!("[quota] is unchanged: {}", sentence(&error)),
        }
    }

    /// The accounts with figures.
    pub(crate) fn accounts(&self) -> &BTreeMap<QuotaAccount, AccountQuota> {
        &self.accounts
    }

    /// The percentage from which on the account's loops are parked; `None` if the settings have none.
    pub(crate) fn park_at(&self, account: &QuotaAccount) -> Option<u8> {
        self.settings.park_at.get(&account.agent).copied()
    }

    /// The figure that parks an account.
    pub(crate) fn parking(&self, account: &QuotaAccount, now: i64) -> Option<&QuotaFigure> {
        self.accounts.get(account)?.parking(self.park_at(account), now)
    }

    /// Changes what is known of an account.
    fn change(&mut self, account: QuotaAccount, change: impl FnOnce(&mut AccountQuota) -> bool) {
        let quota = self.accounts.entry(account).or_default();
        self.is_unsaved |= change(quota);
        self.accounts.retain(|_, quota| !quota.is_empty());
    }

    /// Lifts the parks of all accounts until their resets. Returns the accounts and the resets.
    pub(crate) fn lift_all(&mut self, now: i64) -> Vec<(QuotaAccount, i64)> {
        let park_at = &self.settings.park_at;
        let lift = |(account, quota): (&QuotaAccount, &mut AccountQuota)| {
            let until = quota.lift(park_at.get(&account.agent).copied(), now)?;
            Some((account.clone(), until))
        };
        let lifted: Vec<_> = self.accounts.iter_mut().filter_map(lift).collect();
        self.is_unsaved |= !lifted.is_empty();
        lifted
    }

    /// Drops what has ended, and writes the figures if they have changed.
    fn save(&mut self, paths: &Paths, now: i64) {
        for quota in self.accounts.values_mut() {
            self.is_unsaved |= quota.expire(now);
        }
        self.accounts.retain(|_, quota| !quota.is_empty());
        if !std::mem::take(&mut self.is_unsaved) {
            return;
        }
        let saved = self
            .accounts
            .iter()
            .map(|(account, quota)| SavedAccount { account: account.clone(), quota: quota.clone() });
        let saved: Vec<SavedAccount> = saved.collect();
        let file = paths.quota();
        let outcome = match saved.as_slice() {
            [] => fs::remove_file(&file),
            _ => serde_json::to_vec(&saved).map_err(Into::into).and_then(|b| write_unsynced(&file, &b)),
        };
        if let Err(error) =
            outcome.or_else(|e| if e.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(e) })
        {
            tracing::warn!(%error, "the figures of usage limits cannot be written");
        }
    }
}

/// The account that a worker's agent uses; `None` for an agent that reports no limits.
pub(crate) fn account_of(slot: &Slot) -> Option<QuotaAccount> {
    QuotaAccount::of(slot.spec.profile.hooks, &slot.spec.env)
}

/// The account of a worker for a person to read.
pub(crate) fn title_of(slot: &Slot, account: &QuotaAccount) -> String {
    let home = slot.spec.env.get("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    account.title(home.as_deref())
}

impl Supervisor {
    /// Parks the loops of each account or ends their park, at most once in [`CHECK_INTERVAL`].
    pub(crate) fn check_quotas(&mut self) {
        let now = Instant::now();
        if self.quotas.checked.is_none_or(|checked| now >= checked + CHECK_INTERVAL) {
            self.apply_quotas();
        }
    }

    /// The same at once.
    pub(crate) fn apply_quotas(&mut self) {
        self.quotas.checked = Some(Instant::now());
        self.quotas.reload(self.store.paths());
        let changed: Vec<(WorkerName, Option<Park>)> = self
            .slots
            .iter()
            .filter(|(_, slot)| slot.origin.legacy.is_none())
            .filter_map(|(name, slot)| {
                let park = self.park_of(slot);
                slot.engine.is_news(park.as_ref()).then(|| (name.clone(), park))
            })
            .collect();
        for (name, park) in changed {
            self.step(&name, Event::Quota(park));
        }
        let now = self.now().wall.timestamp();
        self.quotas.save(self.store.paths(), now);
    }

    /// The park of the account that a loop uses.
    pub(crate) fn park_of(&self, slot: &Slot) -> Option<Park> {
        if self.quotas.accounts.is_empty() || slot.spec.ralph.is_none() {
            return None;
        }
        let wall = self.now().wall;
        let account = account_of(slot)?;
        let figure = self.quotas.parking(&account, wall.timestamp())?;
        Park::of(title_of(slot, &account), figure, wall)
    }

    /// Adds the figures that a worker's agent reports or has recorded.
    pub(crate) fn note_figures(&mut self, name: &WorkerName, figures: &[QuotaFigure]) {
        let now = self.now().wall.timestamp();
        let Some(account) = self.slots.get(name).and_then(account_of) else { return };
        let fits = |figure: &&QuotaFigure| {
            figure.window != REACHED && figure.window.len() <= MAX_WINDOW_CHARS && figure.read_at <= now + 60
        };
        let figures: Vec<QuotaFigure> = figures.iter().filter(fits).take(MAX_FIGURES).cloned().collect();
        let mut is_new = false;
        self.quotas.change(account, |quota| {
            is_new = quota.report(name.as_str(), &figures, now);
            is_new
        });
        if is_new {
            self.apply_quotas();
        }
    }

    /// Adds the limit that an agent ran into, according to the verdict about its iteration. A later iteration of the
    /// account that works ends it.
    pub(crate) fn note_limits(&mut self, name: &WorkerName, verdict: &Verdict) {
        let now = self.now().wall.timestamp();
        let Some(slot) = self.slots.get(name).filter(|slot| slot.spec.ralph.is_some()) else { return };
        let Some(account) = account_of(slot) else { return };
        let started = slot.engine.ralph().and_then(|ralph| ralph.iteration_started).map(|at| at.timestamp());
        let mut is_new = false;
        self.quotas.change(account, |quota| {
            is_new = match &verdict.outage {
                Some(outage) => {
                    let reset = outage.until.filter(|_| is_account_limit(outage)).map(|at| at.timestamp());
                    reset.is_some_and(|at| quota.add(&QuotaFigure::reached(at, now), true, now))
                }
                None => {
                    let is_over =
                        |figure: &QuotaFigure| started.is_some_and(|started| figure.read_at < started);
                    let has_worked =
                        verdict.tokens.is_some_and(|tokens| tokens > 0) && verdict.api_error.is_none();
                    let is_over = has_worked && quota.figures.get(REACHED).is_some_and(is_over);
                    is_over && quota.figures.remove(REACHED).is_some()
                }
            };
            is_new
        });
        if is_new {
            self.apply_quotas();
        }
    }
}
