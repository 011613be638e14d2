//! Decides when a loop or a restarted worker must end, and how long it waits after a failure.
//!
//! Called by the engine at the end of each run. Time counts only while the machine is awake. Costs are millionths of
//! a US dollar, so that sums are exact.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ends::StopReason;
use crate::model::{RestartSpec, RestartWhen};

/// Failures in a row that end a loop.
pub const MAX_FAILURES: u32 = 5;

/// Why a loop is paused when its budget cannot be enforced.
pub(crate) const USAGE_UNKNOWN: &str = "the agent did not report its usage, so its budget cannot be enforced";

/// The longest wait after a failure.
pub(crate) const MAX_BACKOFF: Duration = Duration::from_secs(300);

/// The wait between a successful run and its restart: a command that exits at once must not restart in a tight loop.
pub(crate) const RESTART_DELAY: Duration = Duration::from_secs(1);

/// After a run of this length (awake time), earlier failures no longer count.
pub(crate) const PROVEN_RUN_TIME: Duration = Duration::from_secs(600);

/// The wait after the `n`th failure in a row: `min(2^(n-1), 300)` seconds; none for `n` = 0.
pub fn backoff(n: u32) -> Duration {
    match n {
        0 => Duration::ZERO,
        1..=9 => Duration::from_secs(1 << (n - 1)).min(MAX_BACKOFF),
        _ => MAX_BACKOFF,
    }
}

/// The limits of a loop in addition to its iterations. `None` means no limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budgets {
    /// Seconds awake for the whole loop; pauses without an agent do not count.
    pub max_time: Option<u64>,
    /// Millionths of a US dollar.
    pub max_cost: Option<u64>,
    /// Input and output tokens; cached tokens do not count.
    pub max_tokens: Option<u64>,
    /// Failures in a row; at least 1.
    pub max_failures: u32,
    /// Seconds awake for one iteration.
    pub iteration_timeout: Option<u64>,
    /// Iterations in a row that change neither the tree nor the set of failing checks.
    pub no_progress: Option<u32>,
    /// The percentage of its context that an iteration may use, 1 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_context: Option<u8>,
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            max_time: None,
            max_cost: None,
            max_tokens: None,
            max_failures: MAX_FAILURES,
            iteration_timeout: None,
            no_progress: None,
            max_context: None,
        }
    }
}

/// Changes of [`Budgets`]. `None` keeps a limit, and `Some(None)` removes it. Limits below 1 count as 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetEdits {
    /// Seconds awake for the whole loop.
    pub max_time: Option<Option<u64>>,
    /// Millionths of a US dollar.
    pub max_cost: Option<Option<u64>>,
    /// Input and output tokens.
    pub max_tokens: Option<Option<u64>>,
    /// Failures in a row.
    pub max_failures: Option<u32>,
    /// Iterations in a row without progress.
    pub no_progress: Option<Option<u32>>,
    /// Percent of the context of an iteration.
    pub max_context: Option<Option<u8>>,
}

impl BudgetEdits {
    /// Applies the changes.
    pub fn apply(&self, budgets: &mut Budgets) {
        fn set<T: Copy + Ord + From<u8>>(limit: &mut Option<T>, edit: Option<Option<T>>) {
            if let Some(new) = edit {
                *limit = new.map(|new| new.max(1.into()));
            }
        }
        set(&mut budgets.max_time, self.max_time);
        set(&mut budgets.max_cost, self.max_cost);
        set(&mut budgets.max_tokens, self.max_tokens);
        set(&mut budgets.no_progress, self.no_progress);
        set(&mut budgets.max_context, self.max_context);
        if let Some(new) = self.max_failures {
            budgets.max_failures = new.max(1);
        }
    }
}

/// The usage of a loop so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Awake time.
    pub time: Duration,
    /// Millionths of a US dollar.
    pub cost: u64,
    /// Tokens.
    pub tokens: u64,
}

/// Returns the limits that are reached: failures first, then iterations, then cost, tokens and time, in the order of
/// [`crate::ends::LoopEnd`]. `out_of_iterations` is the result of [`out_of_iterations`].
pub(crate) fn exhausted(
    budgets: &Budgets,
    spent: Spent,
    failures: u32,
    (iteration, max_iterations): (u32, u32),
    out_of_iterations: StopReason,
) -> impl Iterator<Item = StopReason> {
    let reached = |limit: Option<u64>, used: u64| limit.filter(|limit| used >= *limit);
    let limits = [
        (failures >= budgets.max_failures).then_some(StopReason::Failures(failures)),
        (iteration >= max_iterations).then_some(out_of_iterations),
        reached(budgets.max_cost, spent.cost).map(|limit| StopReason::Cost { spent: spent.cost, limit }),
        reached(budgets.max_tokens, spent.tokens)
            .map(|limit| StopReason::Tokens { spent: spent.tokens, limit }),
        reached(budgets.max_time, spent.time.as_secs()).map(StopReason::OutOfTime),
    ];
    limits.into_iter().flatten()
}

/// Returns how a loop ends at its iteration limit. `gated`: a gate other than a done pattern was requested.
/// `succeeded`: at least one iteration succeeded.
pub(crate) fn out_of_iterations(gated: bool, succeeded: bool) -> StopReason {
    match (gated, succeeded) {
        (true, _) => StopReason::Unverified,
        (false, true) => StopReason::MaxIterations,
        (false, false) => StopReason::AllFailed,
    }
}

/// The next step after a run of a plain worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterRun {
    /// The worker has finished.
    Over,
    /// The worker has finished: this many restarts in a row failed.
    GiveUp(u32),
    /// Another run starts after this wait.
    Again(Duration),
}

/// Applies the worker's restart policy after a run. `failures` counts the failures in a row, this run included: 0 after
/// exit status 0.
pub(crate) fn after_run(spec: RestartSpec, failures: u32) -> AfterRun {
    match (spec.when, failures) {
        (RestartWhen::OnFailure | RestartWhen::OnAbnormal, 0) => AfterRun::Over,
        (RestartWhen::Always, 0) if spec.max_restarts == 0 => AfterRun::Over,
        (RestartWhen::Always, 0) => AfterRun::Again(RESTART_DELAY),
        (_, n) if n > spec.max_restarts => AfterRun::GiveUp(spec.max_restarts),
        (_, n) => AfterRun::Again(backoff(n)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ends::LoopEnd;

    fn budgets() -> impl Strategy<Value = Budgets> {
        let limit = || prop::option::of(0_u64..6);
        (limit(), limit(), limit(), 1_u32..6).prop_map(|(max_time, max_cost, max_tokens, max_failures)| {
            Budgets { max_time, max_cost, max_tokens, max_failures, ..Budgets::default() }
        })
    }

    /// Time, cost, tokens, failures, iteration.
    type Used = (u64, u64, u64, u32, u32);

    fn asked(budgets: &Budgets, (time, cost, tokens, failures, iteration): Used) -> Option<StopReason> {
        let spent = Spent { time: Duration::from_secs(time), cost, tokens };
        exhausted(budgets, spent, failures, (iteration, 4), StopReason::Unverified).next()
    }

    /// Returns the place of a reason in the order in which limits are checked.
    fn rank(reason: Option<&StopReason>) -> u8 {
        match reason {
            Some(StopReason::Failures(_)) => 0,
            Some(StopReason::Unverified) => 1,
            Some(StopReason::Cost { .. }) => 2,
            Some(StopReason::Tokens { .. }) => 3,
            Some(StopReason::OutOfTime(_)) => 4,
            None => 5,
            other => panic!("no reason of a budget: {other:?}"),
        }
    }

    proptest! {
        /// A limit that is used up stays used up: more use never gives a later reason, or none.
        #[test]
        fn exceeded_limit_stays_exceeded_with_more_use(
            budgets in budgets(),
            used in (0_u64..8, 0_u64..8, 0_u64..8, 0_u32..8, 0_u32..8),
            more in (0_u64..8, 0_u64..8, 0_u64..8, 0_u32..8, 0_u32..8),
        ) {
            let after = (used.0 + more.0, used.1 + more.1, used.2 + more.2, used.3 + more.3, used.4 + more.4);
            let (before, after) = (asked(&budgets, used), asked(&budgets, after));
            prop_assert!(rank(after.as_ref()) <= rank(before.as_ref()), "{:?} then {:?}", before, after);
        }

        /// A limit that is taken away, or raised, never ends a loop.
        #[test]
        fn higher_limit_never_ends_a_loop(
            budgets in budgets(),
            used in (0_u64..8, 0_u64..8, 0_u64..8, 0_u32..8, 0_u32..8),
        ) {
            let looser = [
                Budgets { max_time: None, ..budgets.clone() },
                Budgets { max_cost: budgets.max_cost.map(|limit| limit + 1), ..budgets.clone() },
                Budgets { max_tokens: None, ..budgets.clone() },
                Budgets { max_failures: budgets.max_failures + 1, ..budgets.clone() },
            ];
            if asked(&budgets, used).is_none() {
                for budgets in looser {
                    prop_assert_eq!(asked(&budgets, used), None);
                }
            }
        }

        /// A loop ends exactly when one of its limits is reached, and reports the first in order that is.
        #[test]
        fn loop_ends_exactly_if_a_limit_is_reached_and_reports_the_first(
            budgets in budgets(),
            used in (0_u64..8, 0_u64..8, 0_u64..8, 0_u32..8, 0_u32..8),
        ) {
            let (time, cost, tokens, failures, iteration) = used;
            let reached = [
                failures >= budgets.max_failures,
                iteration >= 4,
                budgets.max_cost.is_some_and(|limit| cost >= limit),
                budgets.max_tokens.is_some_and(|limit| tokens >= limit),
                budgets.max_time.is_some_and(|limit| time >= limit),
                true,
            ];
            let first = reached.iter().position(|reached| *reached);
            prop_assert_eq!(Some(usize::from(rank(asked(&budgets, used).as_ref()))), first);
        }
    }

    #[test]
    fn edits_set_keep_and_remove_limits() {
        let before = Budgets {
            max_time: Some(60),
            max_cost: Some(3),
            max_tokens: Some(100),
            max_failures: 2,
            iteration_timeout: Some(9),
            no_progress: Some(4),
            max_context: Some(70),
        };
        let none = BudgetEdits::default;
        for (edits, wanted) in [
            (none(), before.clone()),
            (
                BudgetEdits { max_time: Some(Some(90)), ..none() },
                Budgets { max_time: Some(90), ..before.clone() },
            ),
            (BudgetEdits { max_time: Some(None), ..none() }, Budgets { max_time: None, ..before.clone() }),
            (
                BudgetEdits { max_cost: Some(Some(5)), ..none() },
                Budgets { max_cost: Some(5), ..before.clone() },
            ),
            (BudgetEdits { max_cost: Some(None), ..none() }, Budgets { max_cost: None, ..before.clone() }),
            (
                BudgetEdits { max_tokens: Some(Some(7)), ..none() },
                Budgets { max_tokens: Some(7), ..before.clone() },
            ),
            (
                BudgetEdits { max_tokens: Some(None), ..none() },
                Budgets { max_tokens: None, ..before.clone() },
            ),
            (
                BudgetEdits { no_progress: Some(Some(8)), ..none() },
                Budgets { no_progress: Some(8), ..before.clone() },
            ),
            (
                BudgetEdits { no_progress: Some(None), ..none() },
                Budgets { no_progress: None, ..before.clone() },
            ),
            (BudgetEdits { max_failures: Some(9), ..none() }, Budgets { max_failures: 9, ..before.clone() }),
            // Never 0.
            (BudgetEdits { max_failures: Some(0), ..none() }, Budgets { max_failures: 1, ..before.clone() }),
            (
                BudgetEdits { max_cost: Some(Some(0)), ..none() },
                Budgets { max_cost: Some(1), ..before.clone() },
            ),
        ] {
            let mut budgets = before.clone();
            edits.apply(&mut budgets);
            assert_eq!(budgets, wanted, "{edits:?}");
        }
    }

    #[test]
    fn backoff_has_the_documented_waits() {
        let waits: Vec<u64> = (0..=11).map(|n| backoff(n).as_secs()).collect();
        assert_eq!(waits, [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(backoff(u32::MAX), MAX_BACKOFF);
    }

    #[test]
    fn restart_decision_follows_the_policy_the_failures_and_the_maximum() {
        let after = |when, max_restarts, failures| after_run(RestartSpec { when, max_restarts }, failures);
        let again = |seconds| AfterRun::Again(Duration::from_secs(seconds));
        for (when, max, failures, expected) in [
            (RestartWhen::OnFailure, 3, 0, AfterRun::Over),
            (RestartWhen::OnFailure, 3, 1, again(1)),
            (RestartWhen::OnFailure, 3, 3, again(4)),
            (RestartWhen::OnFailure, 3, 4, AfterRun::GiveUp(3)),
            (RestartWhen::OnFailure, 0, 1, AfterRun::GiveUp(0)),
            (RestartWhen::Always, 3, 0, again(1)),
            (RestartWhen::Always, 3, 2, again(2)),
            (RestartWhen::Always, 3, 4, AfterRun::GiveUp(3)),
            (RestartWhen::Always, 0, 0, AfterRun::Over),
            (RestartWhen::Always, u32::MAX, u32::MAX, again(300)),
        ] {
            assert_eq!(after(when, max, failures), expected, "{when:?} {max} {failures}");
        }
    }

    #[test]
    fn limits_have_a_fixed_order_of_precedence() {
        let budgets =
            Budgets { max_time: Some(60), max_cost: Some(3), max_tokens: Some(100), ..Budgets::default() };
        let spent = |time, cost, tokens| Spent { time: Duration::from_secs(time), cost, tokens };
        let all = spent(60, 3, 100);
        let of = |spent, failures, iteration, gated| {
            exhausted(&budgets, spent, failures, (iteration, 5), out_of_iterations(gated, true)).next()
        };
        assert_eq!(of(all, 5, 5, true), Some(StopReason::Failures(5)));
        assert_eq!(of(all, 4, 5, true), Some(StopReason::Unverified));
        assert_eq!(of(all, 4, 5, false), Some(StopReason::MaxIterations));
        assert_eq!(of(all, 4, 4, true), Some(StopReason::Cost { spent: 3, limit: 3 }));
        assert_eq!(of(spent(60, 2, 100), 4, 4, true), Some(StopReason::Tokens { spent: 100, limit: 100 }));
        assert_eq!(of(spent(60, 2, 99), 4, 4, true), Some(StopReason::OutOfTime(60)));
        assert_eq!(of(spent(59, 2, 99), 4, 4, true), None);
        assert_eq!(out_of_iterations(false, false), StopReason::AllFailed);
        assert_eq!(out_of_iterations(true, false), StopReason::Unverified);
        // The order of the ends; failures alone come before it.
        let ends = [LoopEnd::MaxIterations, LoopEnd::BudgetExhausted, LoopEnd::Timeout];
        assert!(ends.is_sorted());
        assert_eq!(
            exhausted(&Budgets::default(), all, 4, (4, 5), StopReason::MaxIterations).next(),
            None,
            "no limit limits nothing"
        );
    }
}
