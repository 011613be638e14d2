//! What the hooks of a worker's own agent tell, and whether it is of that agent.
//!
//! A request counts when it comes from below the pane of the worker's present run (where the process that made it is
//! still there to be asked), and from the session that spoke first there: an agent that starts another agent passes its environment on, and the end of that one's turn is no
//! end of its own. What the end of a run needs of it (the session, its transcript, the API's error) is kept in the
//! run's folder, for a daemon that takes over as well. Deliberately absent: what an event of which CLI means
//! (`swarm hook` knows), and what follows from it (the engine's).

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::protocol::{HookNews, HookParams};
use crate::store::{read_bounded, write_unsynced};

/// Where it stands, in the run's folder.
const HOOK_RECORD_FILE: &str = "told";

/// More than this is none of ours, bytes.
const MAX_HOOK_RECORD_BYTES: u64 = 1 << 20;

/// What an agent's hooks told of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct HookRecord {
    /// The session whose word counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    /// Its transcript.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transcript: Option<PathBuf>,
    /// What the API said when it failed the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl HookRecord {
    /// What is known of a run; nothing where nothing was told.
    pub(crate) fn of(run_dir: &Path) -> Self {
        let bytes = read_bounded(&run_dir.join(HOOK_RECORD_FILE), MAX_HOOK_RECORD_BYTES).ok();
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Keeps it. Without it the end of the run is judged by what else there is.
    pub(crate) fn keep(&self, run_dir: &Path) {
        drop(serde_json::to_vec(self).map(|bytes| write_unsynced(&run_dir.join(HOOK_RECORD_FILE), &bytes)));
    }

    /// Takes a call in; `None` when it is of another session.
    pub(crate) fn with(&self, params: &HookParams) -> Option<Self> {
        let anew = matches!(params.news, HookNews::Session { anew: true });
        let is_own = params.session.is_some() && (self.session.is_none() || self.session == params.session);
        if !is_own && !anew {
            return None;
        }
        let mut told = self.clone();
        told.session.clone_from(&params.session);
        if let Some(transcript) = &params.transcript {
            told.transcript = Some(transcript.into());
        }
        match &params.news {
            HookNews::ApiError { message } => told.error = Some(message.clone()),
            // It got over it.
            HookNews::Prompt | HookNews::TurnOver => told.error = None,
            HookNews::Session { .. }
            | HookNews::Working
            | HookNews::Idle
            | HookNews::ContextSpent
            | HookNews::Asks { .. } => {}
        }
        Some(told)
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
    fn who_speaks_first_is_the_agent_and_only_its_own_new_session_follows() {
        let first = HookRecord::default().with(&call("s1", HookNews::Prompt)).unwrap();
        assert_eq!(
            (first.session.as_deref(), first.transcript.as_deref()),
            (Some("s1"), Some(Path::new("/t/s1.jsonl")))
        );
        assert_eq!(first.with(&call("child", HookNews::TurnOver)), None);
        assert_eq!(first.with(&call("child", HookNews::Session { anew: false })), None);
        let nobody = HookParams { session: None, ..call("", HookNews::TurnOver) };
        assert_eq!(first.with(&nobody), None);
        assert_eq!(HookRecord::default().with(&nobody), None);
        let anew = first.with(&call("s2", HookNews::Session { anew: true })).unwrap();
        assert_eq!(anew.session.as_deref(), Some("s2"));
        assert_eq!(anew.with(&call("s1", HookNews::TurnOver)), None);
    }

    #[test]
    fn an_error_stands_until_the_agent_gets_over_it() {
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
