//! Constructors: a worker that was requested, found by its pane, or read from an earlier swarm's file.

use chrono::{DateTime, FixedOffset};

use super::hold::Hold;
use super::{Evidence, Loop, Phase, Policy, Watch, Worker};
use crate::budget::Budgets;
use crate::format::RalphFile;
use crate::model::{LoopStatus, QUESTION_TIMEOUT_SECONDS, Run};
use crate::notice::{PauseBy, StopReason};

impl Worker {
    /// A worker that runs its command once.
    pub fn plain(policy: Policy) -> Self {
        Self {
            policy,
            phase: Phase::Idle,
            run: Run::default(),
            unstarted: 0,
            last_exit: None,
            trouble: None,
            ralph: None,
            restarts: None,
            evidence: Evidence::default(),
            hold: Hold::default(),
            greeted: Run::default(),
            reachable: true,
            account_park: None,
        }
    }

    /// A worker that loops. `gated`: it has gates in addition to a done pattern.
    pub fn verified(
        policy: Policy,
        max_iterations: u32,
        inactivity_timeout: u64,
        budgets: Budgets,
        gated: bool,
    ) -> Self {
        let ralph = Loop {
            max_iterations: max_iterations.max(1),
            inactivity_timeout: inactivity_timeout.max(1),
            question_timeout: QUESTION_TIMEOUT_SECONDS,
            budgets,
            gated,
            ..Loop::default()
        };
        Self { ralph: Some(ralph), ..Self::plain(policy) }
    }

    /// The same loop with another limit for unanswered questions, seconds; 0: none.
    #[must_use]
    pub fn asking(mut self, question_timeout: u64) -> Self {
        if let Some(ralph) = &mut self.ralph {
            ralph.question_timeout = question_timeout;
        }
        self
    }

    /// A worker whose record is gone and whose live pane was found.
    pub fn found(policy: Policy, run: Run) -> Self {
        Self { phase: Phase::Running { watch: Watch::default() }, run, ..Self::plain(policy) }
    }

    /// The same worker as lost: its end is unknown.
    #[must_use]
    pub fn lost(mut self) -> Self {
        self.phase = Phase::Lost;
        self
    }

    /// The same worker as finished, according to an earlier swarm's file.
    #[must_use]
    pub fn over(mut self, reason: StopReason) -> Self {
        self.phase = Phase::Stopped { reason };
        self
    }

    /// The same loop with the numbers of an earlier swarm's file; a plain worker stays as it is.
    #[must_use]
    pub fn counted(mut self, file: &RalphFile, started: Option<DateTime<FixedOffset>>) -> Self {
        if let Some(ralph) = &mut self.ralph {
            ralph.iteration = file.current_iteration;
            ralph.failures = file.consecutive_failures;
            ralph.total_failures = file.total_failures;
            ralph.iteration_started = started;
            ralph.succeeded = file.current_iteration > file.total_failures;
            ralph.question_timeout = file.question_timeout;
            ralph.paused = (file.status == LoopStatus::Paused).then_some(PauseBy::User);
        }
        self
    }
}
