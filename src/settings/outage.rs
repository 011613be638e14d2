//! `[outage]` and `[agents.NAME.outage]`: patterns for messages of agents that cannot work.
//!
//! There is a list of patterns for each meaning. An agent's patterns come first, then those for all agents, then the
//! built-in ones. They travel with the profile in the worker's spec.

use std::collections::BTreeMap;

use swarm_state::outage::{OutageKind, Wording};
use swarm_state::profiles::Profile;

use super::read::{Fault, SettingEntry};

/// Patterns by the name of their meaning. A later file replaces them name by name.
pub(super) type Wordings = BTreeMap<&'static str, Vec<Wording>>;

/// One key: the patterns of one meaning.
pub(super) fn key(entry: &SettingEntry<'_>) -> Result<(&'static str, Vec<Wording>), Fault> {
    let Some(kind) = OutageKind::of(entry.key) else {
        return Err(entry.unknown(&OutageKind::ALL.map(OutageKind::word)));
    };
    let wording = |pattern| Wording { pattern, kind };
    Ok((kind.word(), entry.patterns()?.into_iter().map(wording).collect()))
}

/// A whole table, in the order in which patterns are tried.
pub(super) fn read(entry: &SettingEntry<'_>) -> Result<Vec<Wording>, Fault> {
    let mut wordings = Wordings::new();
    for entry in entry.table()? {
        let (word, patterns) = key(&entry)?;
        wordings.insert(word, patterns);
    }
    Ok(in_order(&wordings))
}

/// `forbidden` comes first: if it matches, waiting does not help.
fn in_order(wordings: &Wordings) -> Vec<Wording> {
    const ORDER: [OutageKind; 4] =
        [OutageKind::Forbidden, OutageKind::Limit, OutageKind::Login, OutageKind::Overload];
    ORDER.iter().filter_map(|kind| wordings.get(kind.word())).flatten().cloned().collect()
}

/// Adds the patterns for all agents to every profile.
pub(super) fn spread(wordings: &Wordings, agents: &mut [Profile]) {
    for profile in agents {
        profile.outage.extend(in_order(wordings));
    }
}
