//! `[quota.AGENT]`: when the loops of an agent's account are parked. Only the user's own file may have this section:
//! an account is shared by all projects.

use std::collections::BTreeMap;

use swarm_state::quota::QuotaAgent;

use super::read::{Fault, SettingEntry};

/// `[quota]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaSettings {
    /// The used percentage of a limit from which on no iteration starts, by agent.
    pub park_at: BTreeMap<QuotaAgent, u8>,
}

/// The keys of `[quota.AGENT]`.
const QUOTA_KEYS: [&str; 1] = ["park_at"];

/// Every key of all sections, without a default.
pub(super) fn all_keys() -> Vec<(String, Option<toml::Value>)> {
    let of = |agent: QuotaAgent| QUOTA_KEYS.map(|key| (format!("quota.{}.{key}", agent.word()), None));
    QuotaAgent::ALL.into_iter().flat_map(of).collect()
}

/// Reads the section of one agent.
pub(super) fn read(to: &mut QuotaSettings, section: &SettingEntry<'_>) -> Result<(), Fault> {
    let Some(agent) = QuotaAgent::ALL.into_iter().find(|agent| agent.word() == section.key) else {
        let names = QuotaAgent::ALL.map(QuotaAgent::word);
        let message = format!("names an agent that does not report its limits ({} do)", names.join(" and "));
        return Err(section.fault(&message));
    };
    section.each(|entry| match entry.key {
        "park_at" => {
            to.park_at.insert(agent, entry.percent()?);
            Ok(())
        }
        _ => Err(entry.unknown(&QUOTA_KEYS)),
    })
}
