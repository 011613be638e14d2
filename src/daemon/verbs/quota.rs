//! `quota` and `quota.lift`: the usage limits of accounts, and the end of their parks by a person.

use std::collections::BTreeMap;

use chrono::DateTime;
use swarm_state::quota::QuotaAccount;

use crate::daemon::caller::{refuse_own, workers_of};
use crate::daemon::quotas::{account_of, title_of};
use crate::daemon::slot::Slot;
use crate::daemon::supervisor::Supervisor;
use crate::error::{Error, Result};
use crate::protocol::{QuotaAccountView, QuotaFigureView, QuotaLifted, QuotaView};

/// The account for a person to read, by the daemon's own home directory.
fn title(account: &QuotaAccount) -> String {
    account.title(directories::BaseDirs::new().as_ref().map(directories::BaseDirs::home_dir))
}

impl Supervisor {
    /// Shows each account that has figures or live loops.
    pub(crate) fn quota(&mut self) -> QuotaView {
        self.apply_quotas();
        let mut loops: BTreeMap<QuotaAccount, Vec<&Slot>> = BTreeMap::new();
        for slot in self.slots.values().filter(|slot| {
            slot.spec.ralph.is_some() && slot.status().is_live_or_paused() && !slot.engine.is_stopped()
        }) {
            if let Some(account) = account_of(slot).filter(|_| slot.origin.legacy.is_none()) {
                loops.entry(account).or_default().push(slot);
            }
        }
        let known = self.quotas.accounts().keys().filter(|account| !loops.contains_key(account)).cloned();
        for account in known.collect::<Vec<_>>() {
            loops.insert(account, vec![]);
        }
        QuotaView {
            accounts: loops.iter().map(|(account, slots)| self.account_view(account, slots)).collect(),
        }
    }

    fn account_view(&self, account: &QuotaAccount, slots: &[&Slot]) -> QuotaAccountView {
        let now = self.now().wall;
        let time = |seconds: i64| {
            DateTime::from_timestamp(seconds, 0).map(|at| at.with_timezone(&now.timezone()).to_rfc3339())
        };
        let quota = self.quotas.accounts().get(account);
        let figures = quota.into_iter().flat_map(|quota| quota.figures.values());
        let figures =
            figures.filter(|figure| figure.is_current(now.timestamp())).map(|figure| QuotaFigureView {
                window: figure.window.clone(),
                title: figure.title(),
                used: figure.used,
                resets_at: figure.resets_at.and_then(time),
                read_at: time(figure.read_at),
            });
        let parking = self.quotas.parking(account, now.timestamp());
        let names = |is_meant: fn(&Slot) -> bool| {
            slots.iter().filter(|slot| is_meant(slot)).map(|slot| slot.spec.name.to_string()).collect()
        };
        QuotaAccountView {
            agent: account.agent,
            dir: account.dir.clone(),
            title: slots.first().map_or_else(|| title(account), |slot| title_of(slot, account)),
            park_at: self.quotas.park_at(account),
            parked_until: parking.and_then(|figure| time(figure.resets_at?)),
            lifted_until: quota.and_then(|quota| time(quota.lifted_until?)),
            loops: names(|_| true),
            parked: names(|slot| slot.engine.is_parked()),
            figures: figures.collect(),
        }
    }

    /// Lifts the parks of all accounts until their resets. Parked loops continue at once.
    pub(crate) fn quota_lift(&mut self, peer: Option<i32>) -> Result<QuotaLifted> {
        for slot in self.slots.values().filter(|slot| slot.engine.has_pane()) {
            refuse_own(slot, peer, "lift the park of its account")?;
        }
        if !workers_of(peer, &self.store).is_empty() {
            let message = "a worker may not lift the park of an account";
            return Err(Error::conflict(message).hint("run this from outside the workers"));
        }
        self.apply_quotas();
        let parked = |slots: &BTreeMap<_, Slot>| {
            let names =
                slots.values().filter(|slot| slot.engine.is_parked()).map(|slot| slot.spec.name.to_string());
            names.collect::<Vec<String>>()
        };
        let before = parked(&self.slots);
        let lifted = self.quotas.lift_all(self.now().wall.timestamp());
        self.apply_quotas();
        let after = parked(&self.slots);
        Ok(QuotaLifted {
            accounts: lifted.len(),
            resumed: before.into_iter().filter(|name| !after.contains(name)).collect(),
        })
    }
}
