//! The state of a session loop: the contents of its state file, and the status with which it ends.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::promise::{OnNoWork, Promise};
use crate::session::ceiling::Ceiling;
use crate::session::preflight::Ready;

/// The directory of a project that holds the state files.
pub const SESSION_STATE_DIR: &str = ".claude";

/// The state file of a do-it loop; a project has at most one.
pub const DO_IT_FILE: &str = "do-it-ralph.local.md";

/// The completion promise of a do-it loop.
pub const DO_IT_COMPLETE: &str = "COMPLETE";

/// The pause promise of a do-it loop.
pub const DO_IT_PAUSE: &str = "PAUSE";

/// The default completion promise of `/ralph-loop` and `/ulw-loop`.
pub const RALPH_COMPLETE: &str = "DONE";

/// Default number of tool calls that a promise of `/ralph-loop` requires.
pub const MIN_TOOL_CALLS: u64 = 1;

/// The id of an agent's session, from its CLI. It becomes part of file names, so it is parsed once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

impl SessionId {
    pub(crate) const MAX_ID_BYTES: usize = 128;

    /// Parses an id; fails when the text cannot be part of a file name.
    pub fn new(id: &str) -> Result<Self, &'static str> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let is_ok =
            (1..=Self::MAX_ID_BYTES).contains(&id.len()) && !id.starts_with('.') && id.chars().all(is_plain);
        let rule = "a session id is 1 to 128 letters, digits, '.', '_' or '-', and does not start with '.'";
        is_ok.then(|| Self(id.to_owned())).ok_or(rule)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

crate::words::serde_text!(SessionId, &'static str, SessionId::new, SessionId::as_str);

/// The command that started a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionKind {
    /// `/ralph-loop`: the task is fed back with a reminder.
    Ralph,
    /// `/ulw-loop`: the same, after an instruction to work with full effort.
    Ulw,
    /// `/do-it:ralph`: a project's contract is fed back unchanged.
    DoIt,
}

crate::word_table!(pub SessionKind, word, of, [(Ralph, "ralph"), (Ulw, "ulw"), (DoIt, "do-it")]);

impl SessionKind {
    /// Default number of tool calls that a promise requires.
    pub fn min_tool_calls(self) -> u64 {
        match self {
            Self::Ralph | Self::Ulw => MIN_TOOL_CALLS,
            Self::DoIt => 0,
        }
    }

    /// The name of the state file of such a loop in [`SESSION_STATE_DIR`].
    pub fn file_name(self, session: &SessionId) -> String {
        match self {
            Self::Ralph | Self::Ulw => format!("ralph-loop.{session}.local.md"),
            Self::DoIt => DO_IT_FILE.to_owned(),
        }
    }
}

/// The session that a loop belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The file has no id: a do-it file written by hand. It is assigned to the first session that stops there.
    Unclaimed,
    /// The id in the file is empty or invalid: the loop belongs to no session.
    Nobody,
    /// This session.
    Session(SessionId),
}

/// The contents of a state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionLoop {
    /// The command that started it.
    pub kind: SessionKind,
    /// False while it is paused.
    pub active: bool,
    /// The current turn, from 1.
    pub iteration: u32,
    /// The number of turns; 0 for no limit.
    pub max_iterations: u32,
    /// The completion promise. `None` (an empty value in the file): nothing completes the loop.
    pub completion: Option<Promise>,
    /// The pause promise.
    pub pause: Option<Promise>,
    /// When it began; `None` when the file has no valid time.
    pub started_at: Option<DateTime<Utc>>,
    /// The project's name, or empty.
    pub project: String,
    /// The project's branch, or empty.
    pub branch: String,
    /// The session that it belongs to.
    pub owner: Owner,
    /// Tool calls since the loop began that a completion promise needs.
    pub min_tool_calls: u64,
    /// The treatment of a completion promise without them.
    pub on_no_work: OnNoWork,
    /// Stops in a row without a change in the tree that pause it; 0 for none, and in a do-it loop for
    /// [`super::DoItOptions::no_diff_limit`].
    pub no_diff_limit: u32,
    /// The task or the contract, byte for byte.
    pub body: Vec<u8>,
}

impl SessionLoop {
    /// A new loop of a task. The caller sets the start time, and values that differ from the defaults.
    pub fn ralph(
        kind: SessionKind,
        session: SessionId,
        task: &str,
        ceiling: Ceiling,
        completion: Promise,
    ) -> Self {
        Self { body: task.as_bytes().to_vec(), ..Self::new(kind, session, ceiling, Some(completion)) }
    }

    fn new(kind: SessionKind, session: SessionId, ceiling: Ceiling, completion: Option<Promise>) -> Self {
        Self {
            kind,
            active: true,
            iteration: 1,
            max_iterations: ceiling.turns(),
            completion,
            pause: None,
            started_at: None,
            project: String::new(),
            branch: String::new(),
            owner: Owner::Session(session),
            min_tool_calls: kind.min_tool_calls(),
            on_no_work: OnNoWork::default(),
            no_diff_limit: 0,
            body: Vec::new(),
        }
    }

    /// A new loop of a project that is [`Ready`], with its contract filled in.
    pub fn do_it(session: SessionId, project: &Ready, contract: Vec<u8>) -> Self {
        Self {
            pause: Promise::new(DO_IT_PAUSE).ok(),
            project: project.project_name.clone(),
            branch: project.branch_name.clone(),
            body: contract,
            ..Self::new(SessionKind::DoIt, session, project.ceiling, Promise::new(DO_IT_COMPLETE).ok())
        }
    }

    /// Whether this loop handles the stops of this session.
    pub fn belongs_to(&self, session: &SessionId) -> bool {
        match &self.owner {
            Owner::Unclaimed => self.kind == SessionKind::DoIt,
            Owner::Nobody => false,
            Owner::Session(owner) => owner == session,
        }
    }

    /// The session that it belongs to, if known.
    pub fn session(&self) -> Option<&SessionId> {
        match &self.owner {
            Owner::Unclaimed | Owner::Nobody => None,
            Owner::Session(owner) => Some(owner),
        }
    }

    /// The current turn and the limit, as in `iteration 3 of 20`.
    pub fn position(&self) -> String {
        match self.max_iterations {
            0 => format!("iteration {} of unlimited", self.iteration),
            limit => format!("iteration {} of {limit}", self.iteration),
        }
    }

    pub(crate) fn is_last_turn(&self) -> bool {
        self.max_iterations > 0 && self.iteration >= self.max_iterations
    }
}

/// The status of a loop after a stop was allowed, as `swarm session` and its log print it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SessionStatus {
    /// The completion promise was given.
    PromiseAccepted,
    /// The limit of turns was reached.
    MaxIterationsReached,
    /// The pause promise was given, or something needs a person: an API error, no progress.
    Paused,
    /// A person canceled it.
    Cancelled,
    /// There is no active loop.
    NotActive,
    /// The CLI's limit of blocked stops was reached. The loop stays.
    HostCap,
}

crate::word_table!(
    pub SessionStatus,
    word,
    [
        (PromiseAccepted, "PROMISE_ACCEPTED"),
        (MaxIterationsReached, "MAX_ITERATIONS_REACHED"),
        (Paused, "PAUSED"),
        (Cancelled, "CANCELLED"),
        (NotActive, "NOT_ACTIVE"),
        (HostCap, "HOST_CAP")
    ]
);
