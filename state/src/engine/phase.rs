//! The properties of phases. Each question about a phase is answered here once, by an exhaustive match.

use std::time::Duration;

use super::{Phase, Watch, Why};

impl Phase {
    /// True while a pane of the current run may exist.
    pub(super) fn has_pane(&self) -> bool {
        match self {
            Self::Spawning { .. } | Self::Judging { .. } => true,
            Self::Starting { .. } | Self::Prompting { .. } | Self::Running { .. } | Self::Ending { .. } => {
                true
            }
            Self::Idle | Self::BackingOff { .. } | Self::Parked | Self::Lost | Self::Stopped { .. } => false,
        }
    }

    /// True from the request for a pane until the run's end was reported.
    pub(super) fn is_live(&self) -> bool {
        self.has_pane() && !matches!(self, Self::Judging { .. })
    }

    /// True while the run's agent may work: its pane is up, and swarm has not begun to end it.
    pub(super) fn has_agent(&self) -> bool {
        matches!(self, Self::Starting { .. } | Self::Prompting { .. } | Self::Running { .. })
    }

    /// Returns the observations of the screen, in the phases that use them.
    pub(super) fn watch(&self) -> Option<&Watch> {
        match self {
            Self::Starting { watch, .. } | Self::Running { watch } => Some(watch),
            Self::Idle | Self::Spawning { .. } | Self::Prompting { .. } | Self::Ending { .. } => None,
            Self::Judging { .. } | Self::BackingOff { .. } | Self::Parked => None,
            Self::Lost | Self::Stopped { .. } => None,
        }
    }

    /// As [`Phase::watch`], to change it.
    pub(super) fn watch_mut(&mut self) -> Option<&mut Watch> {
        match self {
            Self::Starting { watch, .. } | Self::Running { watch } => Some(watch),
            Self::Idle | Self::Spawning { .. } | Self::Prompting { .. } | Self::Ending { .. } => None,
            Self::Judging { .. } | Self::BackingOff { .. } | Self::Parked => None,
            Self::Lost | Self::Stopped { .. } => None,
        }
    }

    /// Why swarm ends or has ended the run; `None` while it does not.
    pub(super) fn end_reason(&self) -> Option<Why> {
        match self {
            Self::Spawning { doomed } => doomed.then_some(Why::Kill),
            Self::Ending { why, .. } => Some(*why),
            Self::Judging { why, .. } => *why,
            Self::Idle | Self::Starting { .. } | Self::Prompting { .. } | Self::Running { .. } => None,
            Self::BackingOff { .. } | Self::Parked | Self::Lost | Self::Stopped { .. } => None,
        }
    }

    /// When the phase ends by itself, on the monotonic clock.
    pub(super) fn deadline(&self) -> Option<Duration> {
        match self {
            Self::Starting { ready_by, .. } => *ready_by,
            Self::Running { watch } => watch.turn_end_deadline(),
            Self::Prompting { by } => Some(*by),
            Self::Ending { kill_at, .. } => Some(*kill_at),
            Self::BackingOff { until, .. } => Some(*until),
            Self::Idle | Self::Spawning { .. } | Self::Judging { .. } => None,
            Self::Parked | Self::Lost | Self::Stopped { .. } => None,
        }
    }
}
