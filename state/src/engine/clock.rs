//! The awake clock: monotonic time without jumps.
//!
//! While a laptop is suspended, the daemon is stopped or the machine is overloaded, no screens are read. This time must
//! count neither as silence nor as backoff. The supervisor passes how long it planned to sleep; time beyond that, and a
//! tolerance, is cut out.

use std::time::Duration;

/// How much later than planned a wake-up may be before it counts as a jump.
const WAKE_UP_TOLERANCE: Duration = Duration::from_secs(5);

/// Time in which no screens were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockJump {
    /// How much was cut out of the monotonic clock.
    pub asleep: Duration,
    /// How far the wall clock moved beyond (or, negative, behind) the monotonic one, milliseconds.
    pub wall_ms: i64,
}

/// Turns raw clock readings into awake time.
#[derive(Clone, Copy, Debug)]
pub struct AwakeClock {
    cut: Duration,
    raw: Duration,
    wall_ms: i64,
}

impl AwakeClock {
    /// Starts at a raw monotonic reading and a wall clock in milliseconds.
    pub fn new(raw: Duration, wall_ms: i64) -> Self {
        Self { cut: Duration::ZERO, raw, wall_ms }
    }

    /// Reads both clocks; `planned` is the longest sleep that the caller planned. Returns the awake time, which never
    /// goes back, and the jump, if any.
    pub fn observe(
        &mut self,
        raw: Duration,
        wall_ms: i64,
        planned: Duration,
    ) -> (Duration, Option<ClockJump>) {
        let passed = raw.saturating_sub(self.raw);
        let drift = wall_ms
            .saturating_sub(self.wall_ms)
            .saturating_sub(i64::try_from(passed.as_millis()).unwrap_or(i64::MAX));
        self.raw = self.raw.max(raw);
        self.wall_ms = wall_ms;
        let late = passed.saturating_sub(planned);
        let asleep = if late > WAKE_UP_TOLERANCE { late } else { Duration::ZERO };
        self.cut = self.cut.saturating_add(asleep);
        let jumped = !asleep.is_zero() || drift.unsigned_abs() > WAKE_UP_TOLERANCE.as_millis() as u64;
        (self.raw.saturating_sub(self.cut), jumped.then_some(ClockJump { asleep, wall_ms: drift }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn time_before_a_late_wake_up_does_not_count() {
        let mut clock = AwakeClock::new(S(100), 0);
        assert_eq!(clock.observe(S(102), 2000, S(2)), (S(102), None));
        let (awake, jump) = clock.observe(S(3702), 3_602_000, S(2));
        assert_eq!(awake, S(104), "an hour of SIGSTOP is two seconds of awake time");
        assert_eq!(jump.map(|j| j.asleep), Some(S(3598)));
        assert_eq!(clock.observe(S(3704), 3_604_000, S(2)), (S(106), None));
    }

    #[test]
    fn clock_step_is_reported_and_adds_no_awake_time() {
        let mut clock = AwakeClock::new(S(0), 0);
        let (awake, jump) = clock.observe(S(2), -3_600_000, S(2));
        assert_eq!((awake, jump.map(|j| j.wall_ms)), (S(2), Some(-3_602_000)));
        assert_eq!(clock.observe(S(1), -3_600_000, S(2)).0, S(2), "it never goes back");
    }

    proptest! {
        #[test]
        fn awake_time_never_goes_back_or_jumps_for_any_clock_readings(
            readings in prop::collection::vec((any::<u64>(), any::<i64>(), 0u64..4000), 1..40),
            steps in prop::collection::vec(0u64..20_000, 1..40),
        ) {
            let (mut clock, mut last) = (AwakeClock::new(S(0), 0), S(0));
            for (raw, wall_ms, planned) in readings {
                let (awake, _) = clock.observe(Duration::from_millis(raw), wall_ms, S(planned));
                prop_assert!(awake >= last && awake <= last.saturating_add(S(planned) + WAKE_UP_TOLERANCE));
                last = awake;
            }
            // And a clock that steps now and then, as suspends do.
            let (mut clock, mut raw, mut last) = (AwakeClock::new(S(7), 0), S(7), S(7));
            for step in steps {
                raw += Duration::from_millis(step);
                let (awake, _) = clock.observe(raw, i64::MIN, S(2));
                prop_assert!(awake >= last && awake - last <= S(2) + WAKE_UP_TOLERANCE);
                last = awake;
            }
        }
    }
}
