//! Types a text into an agent's input box: decides the next key, and when the agent has accepted the text.
//!
//! The daemon captures the pane before every key. This module decides: wait, paste, press Enter, or stop with a reason.
//! Enter is pressed only while the input box holds the text, or the token to which the agent folds a long paste; an
//! agent that echoes nothing gets one Enter without that proof. A dialog that appears meanwhile is never answered. The
//! text is accepted when the box no longer holds it, the agent's hook reports it, or the agent's turn has begun. A
//! changed screen alone proves nothing.
//!
//! Deliberately absent: reading a screen's shape (see [`crate::screen`]) and terminals that read whole lines, which
//! have no box (see the daemon's `deliver`).

use std::time::Duration;

use crate::screen::dialog::Blocked;

mod held;
#[cfg(test)]
mod tests;

pub use held::{BoxContent, Typed, marked};

/// The wait between a paste and the first Enter. Some agents read an earlier Enter as a line break of the paste.
pub const ENTER_DELAY: Duration = Duration::from_millis(400);

/// The same for a folded paste: such agents read Enter as a line break for longer.
pub(crate) const FOLDED_ENTER_DELAY: Duration = Duration::from_millis(1000);

/// Maximum time until a text shows in a known input box.
pub(crate) const MAX_SHOW_TIME: Duration = Duration::from_secs(30);

/// The wait before Enter for an agent without a profile that does not show the text.
pub const BLIND_ENTER_DELAY: Duration = Duration::from_secs(3);

/// Maximum time that a known input box may be off the screen.
pub(crate) const MAX_BOX_ABSENCE: Duration = Duration::from_secs(5);

/// The wait for an effect after each Enter. The length is the maximum number of presses.
pub(crate) const ENTER_INTERVALS: [Duration; 6] = [
    Duration::from_millis(1200),
    Duration::from_millis(2000),
    Duration::from_millis(2500),
    Duration::from_millis(2500),
    Duration::from_millis(2500),
    Duration::from_millis(2500),
];

/// Maximum wait for an agent that uses the CPU before Enter is pressed again: it may be working on the first one, and
/// a second could answer its next dialog.
pub(crate) const MAX_BUSY_TIME: Duration = Duration::from_secs(30);

/// Maximum time from the first Enter until the text is accepted.
pub(crate) const MAX_ACCEPT_TIME: Duration = Duration::from_secs(40);

/// One capture of the pane, compared with the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The content of the input box.
    pub held: BoxContent,
    /// The dialog on the screen.
    pub dialog: Option<Blocked>,
    /// The agent shows that it works, and did not before the text was typed.
    pub began: bool,
    /// The agent's hook reported a prompt since the delivery began; it may be an earlier one.
    pub reported: bool,
    /// The agent has used the processor since the last Enter.
    pub busy: bool,
    /// The screen counts as ready, with or without a known input box.
    pub ready: bool,
    /// The text is not shown, and its place has not changed since the paste: the agent echoes nothing.
    pub untouched: bool,
}

/// The daemon's next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Capture the pane again after a moment.
    Wait,
    /// Paste the text.
    Paste,
    /// Press Enter.
    Enter,
    /// The agent has the text.
    Accepted,
    /// A dialog is on the screen; nothing was pressed in it.
    Dialog(Blocked),
    /// The input box is off the screen; nothing was pressed.
    NoBox,
    /// The text was pasted and does not show in the input box.
    NotShown,
    /// The text is still in the input box after the last Enter.
    NotAccepted,
}

/// The facts about the agent and the text before swarm types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The profile knows the input box: nothing is pressed unless the box shows the text.
    pub knows_box: bool,
    /// The box leaves the screen while the agent works.
    pub hides_box: bool,
    /// How long the empty box must be on the screen before the paste.
    pub settle: Duration,
    /// Press Enter.
    pub enter: bool,
    /// A text that is already in the box is not pasted again.
    pub once: bool,
    /// No text, only Enter.
    pub bare_enter: bool,
    /// The first text of this run: the prompt that the agent's hook reports is this one.
    pub first: bool,
}

/// The delivery of one text.
#[derive(Clone, Debug)]
pub struct Delivery {
    plan: Plan,
    state: State,
    /// The text was pasted by a delivery that was cut short.
    cut_short: bool,
    /// Since when the box is off the screen.
    box_gone: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was typed. The box is on the screen since this time.
    Before(Option<Duration>),
    /// The time of the paste.
    Pasted(Duration),
    Entered(Entered),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entered {
    count: usize,
    first: Duration,
    last: Duration,
    /// The box did not show the text.
    blind: bool,
}

impl Delivery {
    /// A delivery that has not begun.
    pub fn new(plan: Plan) -> Self {
        Self { plan, state: State::Before(None), cut_short: false, box_gone: None }
    }

    /// A delivery that was cut short after the paste.
    pub fn pasted(plan: Plan) -> Self {
        Self { plan, state: State::Pasted(Duration::ZERO), cut_short: true, box_gone: None }
    }

    /// A delivery that was cut short after the Enter, which may still take effect: a second Enter
    /// too soon would send the text twice.
    pub fn after_enter(plan: Plan) -> Self {
        let entered = Entered { count: 1, first: Duration::ZERO, last: Duration::ZERO, blind: false };
        Self { plan, state: State::Entered(entered), cut_short: true, box_gone: None }
    }

    /// False once the box, which the profile describes, was not found on a screen that is ready.
    pub fn knows_box(&self) -> bool {
        self.plan.knows_box
    }

    /// True while the box may hold a text that fills the whole screen and hides the box.
    pub fn may_fill_screen(&self) -> bool {
        match self.state {
            State::Before(_) => false,
            State::Pasted(_) => true,
            State::Entered(_) => !self.plan.hides_box,
        }
    }

    /// True once Enter was pressed.
    pub fn has_entered(&self) -> bool {
        matches!(self.state, State::Entered(_))
    }

    /// Decides the next step. The caller carries it out before its next look.
    pub fn next(&mut self, look: &Look, now: Duration) -> Step {
        match self.state {
            State::Before(since) => self.before(look, since, now),
            State::Pasted(at) => self.shown(look, at, now),
            State::Entered(entered) => self.entered(look, entered, now),
        }
    }

    fn before(&mut self, look: &Look, since: Option<Duration>, now: Duration) -> Step {
        if let Some(dialog) = &look.dialog {
            return Step::Dialog(dialog.clone());
        }
        if self.plan.once && look.held.is_text() {
            self.state = State::Pasted(now);
            return Step::Wait;
        }
        if self.plan.knows_box && look.held == BoxContent::NoBox {
            self.state = State::Before(None);
            return self.without_box(look, now);
        }
        self.box_gone = None;
        let since = since.unwrap_or(now);
        if now.saturating_sub(since) < self.plan.settle {
            self.state = State::Before(Some(since));
            return Step::Wait;
        }
        if self.plan.bare_enter {
            return self.press(true, now);
        }
        self.state = State::Pasted(now);
        Step::Paste
    }

    fn shown(&mut self, look: &Look, at: Duration, now: Duration) -> Step {
        // Before the Enter only the text of a delivery that was cut short can be reported.
        if look.reported && (self.plan.first || self.cut_short && !self.is_unsent(look)) {
            return Step::Accepted;
        }
        if let Some(dialog) = &look.dialog {
            return Step::Dialog(dialog.clone());
        }
        let passed = now.saturating_sub(at);
        match look.held {
            BoxContent::Text | BoxContent::Token if !self.plan.enter => Step::Accepted,
            BoxContent::Text | BoxContent::Token => {
                self.box_gone = None;
                let settle = if look.held == BoxContent::Token { FOLDED_ENTER_DELAY } else { ENTER_DELAY };
                if passed < settle { Step::Wait } else { self.press(false, now) }
            }
            BoxContent::NoBox if self.plan.knows_box => self.without_box(look, now),
            BoxContent::Other if self.plan.knows_box => {
                self.box_gone = None;
                match passed {
                    // The delivery that was cut short had pressed Enter.
                    _ if self.cut_short && passed >= BLIND_ENTER_DELAY => Step::Accepted,
                    _ if passed < MAX_SHOW_TIME => Step::Wait,
                    _ => Step::NotShown,
                }
            }
            BoxContent::NoBox | BoxContent::Other if passed < BLIND_ENTER_DELAY => Step::Wait,
            BoxContent::NoBox | BoxContent::Other if !self.plan.enter => Step::Accepted,
            BoxContent::NoBox | BoxContent::Other if look.untouched => self.press(true, now),
            // Something else stands there: it may be a question, which Enter would answer.
            BoxContent::NoBox | BoxContent::Other if passed < MAX_SHOW_TIME => Step::Wait,
            BoxContent::NoBox | BoxContent::Other => Step::NotShown,
        }
    }

    fn entered(&mut self, look: &Look, entered: Entered, now: Duration) -> Step {
        let is_first = look.reported && self.plan.first;
        if entered.blind || is_first || ((look.reported || look.began) && !self.is_unsent(look)) {
            return Step::Accepted;
        }
        match (look.held, &look.dialog) {
            // A dialog at start takes the place of everything, and the text with it. One in mid-work shows that
            // the agent works on the text.
            (_, Some(dialog)) if dialog.startup || look.held.is_text() => Step::Dialog(dialog.clone()),
            (BoxContent::Other, _) | (BoxContent::NoBox, Some(_)) => Step::Accepted,
            (BoxContent::NoBox, None) if self.plan.knows_box && !self.plan.hides_box => {
                self.without_box(look, now)
            }
            (BoxContent::NoBox, None) => Step::Accepted,
            (BoxContent::Text | BoxContent::Token, _) => {
                self.box_gone = None;
                let passed = now.saturating_sub(entered.last);
                let gap = ENTER_INTERVALS.get(entered.count - 1).copied().unwrap_or_default();
                if now.saturating_sub(entered.first) >= MAX_ACCEPT_TIME {
                    Step::NotAccepted
                } else if passed < gap || (look.busy && passed < MAX_BUSY_TIME) {
                    Step::Wait
                } else if entered.count < ENTER_INTERVALS.len() {
                    self.state = State::Entered(Entered { count: entered.count + 1, last: now, ..entered });
                    Step::Enter
                } else {
                    Step::NotAccepted
                }
            }
        }
    }

    /// True while the input box shows the text. A report or a turn that begins meanwhile is that of an earlier text.
    fn is_unsent(&self, look: &Look) -> bool {
        self.plan.knows_box && look.held.is_text()
    }

    fn press(&mut self, blind: bool, now: Duration) -> Step {
        self.state = State::Entered(Entered { count: 1, first: now, last: now, blind });
        Step::Enter
    }

    fn without_box(&mut self, look: &Look, now: Duration) -> Step {
        let since = *self.box_gone.get_or_insert(now);
        match now.saturating_sub(since) < MAX_BOX_ABSENCE {
            true => Step::Wait,
            // The agent draws its box in a way that the profile does not describe: no look would ever find it.
            false if look.ready => {
                self.plan.knows_box = false;
                Step::Wait
            }
            false => Step::NoBox,
        }
    }
}
