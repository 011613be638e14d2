//! The usage limits of accounts: `quota` and `quota.lift`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use swarm_state::quota::QuotaAgent;

/// The answer to `quota`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaView {
    /// The accounts that have reported their limits or have live loops.
    pub accounts: Vec<QuotaAccountView>,
}

/// One account: an agent with its configuration directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaAccountView {
    /// The agent.
    pub agent: QuotaAgent,
    /// Its configuration directory.
    pub dir: PathBuf,
    /// The account for a person to read.
    pub title: String,
    /// The percentage of a limit from which on no iteration starts; absent without the setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub park_at: Option<u8>,
    /// When the loops continue, RFC 3339; absent while they are not parked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked_until: Option<String>,
    /// Until when a person has lifted the park, RFC 3339; absent if none has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifted_until: Option<String>,
    /// The live loops of the account.
    #[serde(default)]
    pub loops: Vec<String>,
    /// Those that wait for the reset.
    #[serde(default)]
    pub parked: Vec<String>,
    /// The used parts of its limits.
    #[serde(default)]
    pub figures: Vec<QuotaFigureView>,
}

/// The used part of one limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaFigureView {
    /// The limit: `five_hour`, `seven_day`, `spend_limit`, `N_minutes`, or `reached` for one that an agent ran into.
    pub window: String,
    /// The limit for a person to read.
    pub title: String,
    /// The used part in percent.
    pub used: u16,
    /// When the limit is reset, RFC 3339; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<String>,
    /// When an agent reported it, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<String>,
}

/// The answer to `quota.lift`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaLifted {
    /// The number of accounts that were parked.
    pub accounts: usize,
    /// The loops that continue.
    pub resumed: Vec<String>,
}
