//! The usage limits of agents' accounts: their figures, and `[quota]` of the settings.
//!
//! The figures are kept in a file, so that a restarted daemon parks the same loops. `[quota]` of the user's own
//! settings is read again when the file has changed. Deliberately absent: the loops that wait ([`super::parks`]), and
//! the decision ([`swarm_state::quota`]).

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use swarm_state::quota::{AccountQuota, QuotaAccount, QuotaFigure};
use tokio::time::Instant;

use crate::daemon::slot::Slot;
use crate::daemon::watched_settings::WatchedSettings;
use crate::files::if_exists;
use crate::paths::Paths;
use crate::settings::QuotaSettings;
use crate::store::{read_bounded, write_unsynced};

const MAX_QUOTA_FILE_BYTES: u64 = 1 << 20;

pub(crate) struct Quotas {
    settings: QuotaSettings,
    file: WatchedSettings,
    accounts: BTreeMap<QuotaAccount, AccountQuota>,
    /// The figures have changed since the last save.
    is_unsaved: bool,
    /// When the loops were last checked.
    pub(crate) checked: Option<Instant>,
}

#[derive(Serialize, Deserialize)]
struct SavedAccount {
    #[serde(flatten)]
    account: QuotaAccount,
    #[serde(flatten)]
    quota: AccountQuota,
    /// The setting of the last daemon, for one that starts while the settings have an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    park_at: Option<u8>,
}

impl Quotas {
    /// Reads an earlier daemon's figures. An unreadable file counts as empty: the agents report their figures again.
    pub(crate) fn load(paths: &Paths) -> Self {
        let bytes = read_bounded(&paths.quota(), MAX_QUOTA_FILE_BYTES).unwrap_or_default();
        let saved: Vec<serde_json::Value> = serde_json::from_slice(&bytes).unwrap_or_default();
        let accounts =
            saved.into_iter().filter_map(|value| serde_json::from_value::<SavedAccount>(value).ok());
        let mut settings = QuotaSettings::default();
        let accounts = accounts.map(|saved| {
            settings.park_at.extend(saved.park_at.map(|percent| (saved.account.agent, percent)));
            (saved.account, saved.quota)
        });
        let accounts = accounts.collect();
        let mut quotas =
            Self { settings, file: WatchedSettings::default(), accounts, is_unsaved: false, checked: None };
        quotas.reload(paths);
        quotas
    }

    /// Reads the settings if their file has changed. A file with errors changes nothing.
    pub(crate) fn reload(&mut self, paths: &Paths) {
        if let Some(settings) = self.file.changed(paths, "[quota]") {
            self.is_unsaved |= self.settings.park_at != settings.quota.park_at;
            self.settings = settings.quota;
        }
    }

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

    /// Changes what is known of an account. Returns what `change` does: whether it changed something.
    pub(crate) fn change(
        &mut self,
        account: QuotaAccount,
        change: impl FnOnce(&mut AccountQuota) -> bool,
    ) -> bool {
        let is_changed = change(self.accounts.entry(account).or_default());
        self.is_unsaved |= is_changed;
        self.accounts.retain(|_, quota| !quota.is_empty());
        is_changed
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
    pub(crate) fn save(&mut self, paths: &Paths, now: i64) {
        for quota in self.accounts.values_mut() {
            self.is_unsaved |= quota.expire(now);
        }
        self.accounts.retain(|_, quota| !quota.is_empty());
        if !std::mem::take(&mut self.is_unsaved) {
            return;
        }
        let saved = self.accounts.iter().map(|(account, quota)| SavedAccount {
            account: account.clone(),
            quota: quota.clone(),
            park_at: self.park_at(account),
        });
        let saved: Vec<SavedAccount> = saved.collect();
        let file = paths.quota();
        let outcome = match saved.as_slice() {
            [] => fs::remove_file(&file),
            _ => serde_json::to_vec(&saved).map_err(Into::into).and_then(|b| write_unsynced(&file, &b)),
        };
        if let Err(error) = if_exists(outcome) {
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
