//! The events that change a worker, and the effects that the daemon carries out.

use std::time::Duration;

use super::{Edits, HookSignal, Presence};
use crate::gates::Verdict;
use crate::model::{Exit, Run};
use crate::notice::{Entry, PauseBy};
use crate::quota::Park;
use crate::screen::{Blocked, Reading};

/// Why a run could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpawnError {
    /// The prompt file is gone or unreadable: the loop ends. Holds the documented message.
    Prompt(String),
    /// The work before the agent's start took all of the loop's time: the loop ends.
    OutOfTime,
    /// All checks already failed in the baseline, so no gate is left: the loop ends.
    NoGate,
    /// The task list has stories left, but none can be worked on: the loop ends. Holds the reason.
    NoStory(String),
    /// Every story of the task list is approved already: the loop is complete.
    StoriesApproved,
    /// The wrapper in the pane ended before it started the agent: a failure that uses no iteration.
    Helper(String),
    /// Anything else: an ordinary failure.
    Other(String),
}

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A person starts the worker.
    Start,
    /// A person or the stopping daemon pauses the loop: no further iteration starts.
    Pause(PauseBy),
    /// A person resumes the loop.
    Resume,
    /// A person kills the worker.
    Kill,
    /// A person holds the worker by command.
    Hold,
    /// A person ends the hold.
    Release,
    /// A person is, or is not, at the worker's pane.
    Present(Presence),
    /// A person changed settings.
    Edited(Edits),
    /// The deadline has passed. Harmless at any other time.
    Tick,
    /// The loops of the agent's account are parked until a reset, or no longer.
    Quota(Option<Park>),
    /// tmux answers, or no longer does.
    Reachable(bool),
    /// The run's pane is up.
    Up(Run),
    /// The run could not be started and nothing of it is left.
    SpawnFailed(Run, SpawnError),
    /// A new daemon found the run's live pane.
    Adopted(Run),
    /// A new daemon found that the run was never started.
    NeverStarted(Run),
    /// A look at the run's screen.
    Screen(Run, Reading),
    /// The run's pane printed nothing since the last look.
    Quiet(Run),
    /// The prompt was delivered, and the agent accepted it.
    PromptSent(Run),
    /// The delivery failed.
    PromptFailed(Run, String),
    /// A dialog, or something unknown, replaced the input box during the delivery. The prompt is delivered when the
    /// box is back.
    PromptBlocked(Run, Option<Blocked>),
    /// A person's text is about to be typed into the run's pane.
    Typing(Run),
    /// The typing has ended, whether the agent accepted the text or not.
    Typed(Run),
    /// The agent's own hook reported something.
    Hook(Run, HookSignal),
    /// The run's transcript last grew this long ago.
    Grew(Run, Duration),
    /// Whether the run's process tree is computing.
    Probed(Run, bool),
    /// The run ended and its pane holds its last output.
    Exited(Run, Exit),
    /// The run's pane vanished while tmux lives; nothing of it runs any more.
    PaneLost(Run),
    /// The tmux server is gone and the run with it.
    ServerLost(Run),
    /// The run's output is stored, its pane is closed, and the gates were evaluated.
    Evaluated(Run, Verdict),
}

/// An action that the daemon must carry out. A list of effects is carried out in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Save the worker. No later effect of the list may happen before.
    Persist,
    /// Start the run.
    Spawn(Run),
    /// Paste the prompt and check that the agent accepts it.
    Deliver(Run),
    /// Send SIGTERM to the whole process tree.
    Terminate(Run),
    /// Send SIGKILL to the rest of the process tree.
    ForceKill(Run),
    /// Find out when the transcript last grew, and whether the process tree is computing.
    Probe(Run),
    /// Look at the run's screen now.
    Look(Run),
    /// Store the output, close the pane, evaluate the gates.
    Evaluate(Run),
    /// Send a notice to the subscribers and the log.
    Notify(Entry),
}
