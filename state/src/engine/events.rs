//! What a worker can be told, and what the edge must do.

use std::time::Duration;

use super::{Edits, HookSignal};
use crate::gates::Verdict;
use crate::model::{Exit, Run};
use crate::notice::{Entry, PauseBy};
use crate::screen::{Blocked, Reading};

/// Why a run could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpawnError {
    /// The prompt file is gone or unreadable: the loop ends. Holds the documented message.
    Prompt(String),
    /// What comes before the agent took all of the loop's time: the loop ends, and nobody has worked.
    OutOfTime,
    /// The base line excuses all that was asked for: the loop ends, and nobody has worked.
    NoGate,
    /// swarm's own program in the pane ended before there was an agent: a failure that uses up no iteration.
    Helper(String),
    /// Anything else: a failure like another.
    Other(String),
}

/// What a worker can be told.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A person: begin.
    Start,
    /// A person, or the daemon that is stopping: start no further iteration.
    Pause(PauseBy),
    /// A person: go on.
    Resume,
    /// A person: end it.
    Kill,
    /// A person changed settings.
    Edited(Edits),
    /// The deadline has come (or any other moment: it is harmless).
    Tick,
    /// tmux answers, or no longer does.
    Reachable(bool),
    /// The run's pane is up.
    Up(Run),
    /// The run could not be started and nothing of it is left.
    SpawnFailed(Run, SpawnError),
    /// A fresh daemon found the run's pane alive.
    Adopted(Run),
    /// A fresh daemon found that the run was never started.
    NeverStarted(Run),
    /// A look at the run's screen.
    Screen(Run, Reading),
    /// The run's pane printed nothing since the last look.
    Quiet(Run),
    /// The prompt was delivered and taken.
    PromptSent(Run),
    /// It was not.
    PromptFailed(Run, String),
    /// It was not: this dialog, or something that no profile knows, took the place of the input box. The prompt is
    /// delivered when the box is back.
    PromptBlocked(Run, Option<Blocked>),
    /// A person's text is about to be typed into the run's pane.
    Typing(Run),
    /// That has ended: the agent accepted the text or did not.
    Typed(Run),
    /// The agent's own hooks told something.
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
    /// The run's output is stored, its pane is closed, and this is what the gates say.
    Judged(Run, Verdict),
}

/// What the edge must do, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Write the worker down; nothing after it in the list may happen before it did.
    Persist,
    /// Start the run.
    Spawn(Run),
    /// Paste the prompt and see that it was taken.
    Deliver(Run),
    /// Ask the whole process tree to end.
    Terminate(Run),
    /// End what is left of it by force.
    ForceKill(Run),
    /// Find out when the transcript last grew, and whether the process tree is computing.
    Probe(Run),
    /// Look at the run's screen now.
    Look(Run),
    /// Store the output, close the pane, try the gates.
    Judge(Run),
    /// Tell those who listen.
    Notify(Entry),
}
