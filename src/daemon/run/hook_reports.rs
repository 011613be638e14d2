//! The reports about a run from the hooks of the worker's own agent, and the agent session that they come from.
//!
//! An agent that starts another agent passes its environment on, so that the hooks of both report here. Only the
//! session that reported first counts, and a new session that replaces it. The session, its transcript and the API's
//! error are kept in the run's folder for the end of the run and for the next daemon. Not here: the meaning of each
//! CLI's events (`swarm hook`), and the reaction to them (the engine).

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::protocol::{HookNews, HookParams};
use crate::store::{read_bounded, write_unsynced};

/// The name under which other releases of swarm read the record.
const HOOK_RECORD_FILE: &str = "told";

/// A larger file was not written by swarm.
const MAX_HOOK_RECORD_BYTES: u64 = 1 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct HookRecord {
    /// The session whose reports count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transcript: Option<PathBuf>,
    /// The last error of the agent's API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl HookRecord {
    /// Reads the record of a run; empty if there is none.
    pub(crate) fn of(run_dir: &Path) -> Self {
        let bytes = read_bounded(&run_dir.join(HOOK_RECORD_FILE), MAX_HOOK_RECORD_BYTES).ok();
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Writes the record. Without it, the end of the run is evaluated by the other evidence.
    pub(crate) fn keep(&self, run_dir: &Path) {
        drop(serde_json::to_vec(self).map(|bytes| write_unsynced(&run_dir.join(HOOK_RECORD_FILE), &bytes)));
    }

    /// The record after one more report; `None` if the report is from another session.
    pub(crate) fn with(&self, params: &HookParams) -> Option<Self> {
        let cleared = matches!(params.news, HookNews::Session { cleared: true });
        let is_own = params.session.is_some() && (self.session.is_none() || self.session == params.session);
        if !is_own && !cleared {
            return None;
        }
        let mut record = self.clone();
        record.session.clone_from(&params.session);
        if let Some(transcript) = &params.transcript {
            record.transcript = Some(transcript.into());
        }
        match &params.news {
            HookNews::ApiError { message } => record.error = Some(message.clone()),
            // The agent has recovered.
            HookNews::Prompt | HookNews::TurnOver => record.error = None,
            HookNews::Session { .. }
            | HookNews::Working
            | HookNews::ToolUsed { .. }
            | HookNews::Idle
            | HookNews::ContextSpent
            | HookNews::Denied { .. }
            | HookNews::Holds { .. }
            | HookNews::HostRefused { .. }
            | HookNews::Limits { .. }
            | HookNews::Asks { .. } => {}
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(session: &str, news: HookNews) -> HookParams {
        let transcript = Some(format!("/t/{session}.jsonl"));
        HookParams { name: "a".into(), run: Some(1), session: Some(session.into()), transcript, news }
    }

    #[test]
    fn first_reporting_session_is_the_agent_until_it_starts_a_new_one() {
        let first = HookRecord::default().with(&call("s1", HookNews::Prompt)).unwrap();
        assert_eq!(
            (first.session.as_deref(), first.transcript.as_deref()),
            (Some("s1"), Some(Path::new("/t/s1.jsonl")))
        );
        assert_eq!(first.with(&call("child", HookNews::TurnOver)), None);
        assert_eq!(first.with(&call("child", HookNews::Session { cleared: false })), None);
        let nobody = HookParams { session: None, ..call("", HookNews::TurnOver) };
        assert_eq!(first.with(&nobody), None);
        assert_eq!(HookRecord::default().with(&nobody), None);
        let cleared = first.with(&call("s2", HookNews::Session { cleared: true })).unwrap();
        assert_eq!(cleared.session.as_deref(), Some("s2"));
        assert_eq!(cleared.with(&call("s1", HookNews::TurnOver)), None);
    }

    #[test]
    fn api_error_is_kept_until_the_agents_next_turn_ends() {
        let failed =
            HookRecord::default().with(&call("s", HookNews::ApiError { message: "529".into() })).unwrap();
        assert_eq!(failed.with(&call("s", HookNews::Working)).unwrap().error.as_deref(), Some("529"));
        assert_eq!(failed.with(&call("s", HookNews::TurnOver)).unwrap().error, None);
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(HookRecord::of(dir.path()), HookRecord::default());
        failed.keep(dir.path());
        assert_eq!(HookRecord::of(dir.path()), failed);
        std::fs::write(dir.path().join(HOOK_RECORD_FILE), "{").unwrap();
        assert_eq!(HookRecord::of(dir.path()), HookRecord::default());
    }
}
