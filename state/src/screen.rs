//! Captured text -> what it means.
//!
//! The edge captures a pane, this module says what is on it: a fingerprint (did it change?), whether the
//! agent is ready, working or blocked, and whether the done pattern stands in new output. The engine
//! consumes [`Reading`]; logs and tables use [`strip`] and [`printable`].
//!
//! What is deliberately absent: the markers of the agent CLIs (they are data, see [`crate::profiles`]) and
//! any memory of earlier readings (that an unchanged screen means silence is the engine's business).

use std::sync::Arc;

use crate::delivery::Plan;
use crate::pattern::{Pattern, PatternError};
use crate::profiles::Profile;

pub mod answers;
mod baseline;
pub(crate) mod dialog;
mod echo;
mod known_text;
mod markers;
pub(crate) mod text;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;

use baseline::Baseline;
pub use dialog::Blocked;
use echo::Echo;
use known_text::KnownText;
use markers::Markers;
pub use text::{printable, strip};

/// What one look at a pane says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// MD5 of the last 20 lines, escapes stripped, blank rows at the end trimmed first.
    pub fingerprint: [u8; 16],
    /// The same with each run of digits, of white space and of spinner glyphs as one sign: a clock changes nothing.
    pub calm_fingerprint: [u8; 16],
    /// Rows in use, and rows that have scrolled off above the screen; the edge fills the latter in.
    pub rows: (usize, u64),
    /// Columns and rows of the pane; a change of size is not activity.
    pub size: (u16, u16),
    /// The input box is there and nothing blocks it.
    pub ready: bool,
    /// The agent says that it is at work.
    pub working: bool,
    /// It waits for a person.
    pub blocked: Option<Blocked>,
    /// Something stands on it that is neither what the agent was given nor what stood there before that.
    pub printed: bool,
    /// The done pattern stands in output that is new and not the prompt's echo.
    pub done: bool,
}

/// Reads the screens of one run of one agent.
#[derive(Clone, Debug)]
pub struct ScreenReader {
    markers: Arc<Markers>,
    done: Option<Pattern>,
    echoes: Vec<Echo>,
    baseline: Option<Baseline>,
    known_text: KnownText,
}

impl ScreenReader {
    /// A reader for an agent of this profile.
    ///
    /// `done` is the done pattern. `prompt` is the text whose echo on the screen must not count; `None`
    /// where nothing can echo it.
    ///
    /// # Errors
    /// [`PatternError`] when a marker of the profile is no pattern.
    pub fn new(
        profile: &Profile,
        done: Option<Pattern>,
        prompt: Option<String>,
    ) -> Result<Self, PatternError> {
        let known_text = KnownText::default();
        let markers =
            Self { markers: Markers::of(profile)?, done: None, echoes: vec![], baseline: None, known_text };
        Ok(markers.looking_for(done, prompt))
    }

    /// A reader for another run of the same agent, with nothing on the screen yet: `done` and `prompt` as in
    /// [`ScreenReader::new`].
    #[must_use]
    pub fn looking_for(&self, done: Option<Pattern>, prompt: Option<String>) -> Self {
        let (echoes, known_text, markers) = (vec![], KnownText::default(), self.markers.clone());
        let mut reader = Self { done, echoes, baseline: None, markers, known_text };
        if let Some(prompt) = prompt {
            reader.note_input(&prompt);
        }
        reader
    }

    /// Notes a text that the agent is given, whose echo on the screen must not count: its prompt, or what a
    /// person sends. False where no echo of it could fool anybody, since it holds nothing that is looked for.
    pub fn note_input(&mut self, text: &str) -> bool {
        self.known_text.note(text);
        let Some(echo) = self.done.as_ref().and_then(|done| Echo::new(done, text)) else { return false };
        if !self.echoes.contains(&echo) {
            self.echoes.push(echo);
        }
        true
    }

    /// Notes what was on the screen before the prompt was delivered: a done pattern that stood there
    /// already does not count.
    pub fn set_baseline(&mut self, text: &str) {
        let matches = |view: &str| self.done.as_ref().is_some_and(|done| done.is_match(view));
        let plain = text::plain(text);
        let rows = text::rows(&plain);
        self.known_text.set_before(&rows);
        let view = rows.join("\n");
        // Nearly always there is nothing to remember.
        self.baseline = (matches(&view) || matches(&dedent(&view))).then(|| Baseline::new(&view));
    }

    /// Reads a captured screen (scrollback above it does no harm) of a pane of `size` columns and rows.
    pub fn read(&self, text: &str, size: (u16, u16)) -> Reading {
        let plain = text::plain(text);
        let height = usize::from(size.1);
        let rows = text::rows(&plain);
        let screen = visible(&plain, &rows, height);
        let blocked = self.markers.dialogs().find(|(marker, _)| marker.is_match(&screen));
        let any = |markers: &[Pattern]| markers.iter().any(|marker| marker.is_match(&screen));
        let working = blocked.is_none() && any(&self.markers.working);
        // A screen whose last row but one is in use may have lost rows at its top.
        let scrolled = height > 0 && rows.len() + 1 >= height;
        Reading {
            fingerprint: text::fingerprint(&rows),
            calm_fingerprint: text::calm_fingerprint(&rows),
            rows: (rows.len(), 0),
            size,
            ready: blocked.is_none() && !working && any(&self.markers.ready),
            working,
            blocked: blocked.map(|(_, blocked)| blocked.clone()),
            printed: self.known_text.leaves_output(&rows),
            done: self.done.is_some() && self.is_done(&rows.join("\n"), scrolled),
        }
    }

    /// What stands in the input box; `None` where there is none, or the profile does not know it.
    pub fn input(&self, text: &str, size: (u16, u16)) -> Option<String> {
        let plain = text::plain(text);
        let screen = visible(&plain, &text::rows(&plain), usize::from(size.1));
        self.markers.input.iter().find_map(|marker| marker.group("input", &screen)).map(str::to_owned)
    }

    /// The error with which the agent's last request failed, on one line: the CLI shows it above its input box, and
    /// nothing of the agent's follows it. `None` where the text ends otherwise, or the profile has no marker for it.
    pub fn shown_error(&self, text: &str) -> Option<String> {
        let plain = text::plain(text);
        let view = text::rows(&plain).join("\n");
        let error = self.markers.error.iter().find_map(|marker| marker.group("error", &view))?;
        Some(error.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// How a text is delivered to this agent.
    pub fn plan(&self) -> Plan {
        let Markers { input, hides_input, settle, .. } = &*self.markers;
        Plan {
            knows_box: !input.is_empty(),
            hides_box: *hides_input,
            settle: *settle,
            enter: true,
            ..Plan::default()
        }
    }

    /// True when the done pattern stands in the final output: the whole history of the run.
    pub fn done_in(&self, text: &str) -> bool {
        self.is_done(&text::rows(&text::plain(text)).join("\n"), false)
    }

    fn is_done(&self, view: &str, scrolled: bool) -> bool {
        let Some(done) = &self.done else { return false };
        if view.trim().is_empty() {
            return false;
        }
        let fresh = |view: &str| {
            if !done.is_match(view) {
                return false;
            }
            let found = echo::outside(&self.echoes, done, view, scrolled);
            match &self.baseline {
                Some(baseline) => baseline.has_fresh(done, view, &found),
                None => !found.is_empty(),
            }
        };
        // Agents indent their answers and put a bullet before the first line; `^DONE$` means such a line too.
        fresh(view) || (done.is_anchored() && fresh(&dedent(view)))
    }
}

/// The rows of the screen alone: markers are not looked for in what has scrolled off above it.
fn visible(plain: &str, rows: &[&str], height: usize) -> String {
    let breaks = plain.strip_suffix('\n').unwrap_or(plain).bytes().filter(|byte| *byte == b'\n').count();
    let hidden = if height == 0 { 0 } else { (breaks + 1).saturating_sub(height).min(rows.len()) };
    rows[hidden..].join("\n")
}

/// The text without the indent and the bullet of an agent's answer.
fn dedent(view: &str) -> String {
    let bare = |row: &str| {
        let row = row.trim_start();
        row.strip_prefix(['●', '•', '⏺', '✦']).map_or(row, str::trim_start).to_owned()
    };
    view.split('\n').map(bare).collect::<Vec<_>>().join("\n")
}
