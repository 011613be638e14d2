//! `[outage]` and `[agents.NAME.outage]`: what agents say when they cannot work.
//!
//! A list of patterns for each meaning. They come before the built-in wordings and do not replace them; those of an agent
//! come before those for all. They travel with the profile in the worker's spec.

use std::collections::BTreeMap;

use swarm_state::outage::{OutageKind, Wording};
use swarm_state::profiles::Profile;

use super::read::{Entry, Fault};

/// Patterns by the word of what they mean; a later file replaces them word by word.
pub(super) type Wordings = BTreeMap<&'static str, Vec<Wording>>;

/// One key: the patterns of one meaning.
pub(super) fn key(entry: &Entry<'_>) -> Result<(&'static str, Vec<Wording>), Fault> {
    let Some(kind) = OutageKind::ALL.into_iter().find(|kind| kind.word() == entry.key) else {
        return Err(entry.unknown(&OutageKind::ALL.map(OutageKind::word)));
    };
    let wording = |pattern| Wording { pattern, kind };
    Ok((kind.word(), entry.patterns()?.into_iter().map(wording).collect()))
}

/// A whole table, in the order in which the meanings are looked for.
pub(super) fn read(entry: &Entry<'_>) -> Result<Vec<Wording>, Fault> {
    let mut wordings = Wordings::new();
    for entry in entry.table()? {
        let (word, patterns) = key(&entry)?;
        wordings.insert(word, patterns);
    }
    Ok(in_order(&wordings))
}

/// What forbids comes first: nothing waits where somebody said that waiting is of no use.
fn in_order(wordings: &Wordings) -> Vec<Wording> {
    const ORDER: [OutageKind; 4] =
        [OutageKind::Forbidden, OutageKind::Limit, OutageKind::Login, OutageKind::Overload];
    ORDER.iter().filter_map(|kind| wordings.get(kind.word())).flatten().cloned().collect()
}

/// Gives every profile the wordings for all.
pub(super) fn spread(wordings: &Wordings, agents: &mut [Profile]) {
    for profile in agents {
        profile.outage.extend(in_order(wordings));
    }
}
