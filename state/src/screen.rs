//! Reads captured screens.
//!
//! The daemon captures a pane. This module derives a [`Reading`] from the text: a fingerprint, whether the agent is
//! ready, working or blocked, and whether the done pattern matches in new output. The engine uses the reading. Logs and
//! tables use [`strip`] and [`printable`]. Deliberately absent: the markers of the agent CLIs ([`crate::profiles`]) and
//! the comparison with earlier readings, which the engine does.

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
pub use text::{printable, strip, styled};

/// The result of reading one captured screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// MD5 of the last 20 lines, without escapes and without empty rows at the end.
    pub fingerprint: [u8; 16],
    /// The same with each run of digits, spaces or spinner glyphs as one character, so that a clock does not change it.
    pub calm_fingerprint: [u8; 16],
    /// Rows in use, and rows that have scrolled off above the screen; the daemon sets the latter.
    pub rows: (usize, u64),
    /// Columns and rows of the pane; a change of size is not activity.
    pub size: (u16, u16),
    /// The input box is shown and no dialog blocks it.
    pub ready: bool,
    /// The agent shows that it is working.
    pub working: bool,
    /// The agent waits for a person.
    pub blocked: Option<Blocked>,
    /// The screen has text that is neither the agent's input nor was there before.
    pub printed: bool,
    /// The done pattern matches in new output outside the echo of the prompt.
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
    /// A reader for an agent of this profile; [`PatternError`] when a marker of it is not a valid pattern. `done` is
    /// the done pattern, `prompt` the text whose echo must not count (`None` if nothing can echo it).
    pub fn new(
        profile: &Profile,
        done: Option<Pattern>,
        prompt: Option<String>,
    ) -> Result<Self, PatternError> {
        Ok(Self::with(Markers::of(profile)?, done, prompt))
    }

    /// A reader for another run of the same agent, with an empty screen. Arguments as in [`ScreenReader::new`].
    #[must_use]
    pub fn looking_for(&self, done: Option<Pattern>, prompt: Option<String>) -> Self {
        Self::with(self.markers.clone(), done, prompt)
    }

    fn with(markers: Arc<Markers>, done: Option<Pattern>, prompt: Option<String>) -> Self {
        let (echoes, known_text) = (vec![], KnownText::default());
        let mut reader = Self { done, echoes, baseline: None, markers, known_text };
        if let Some(prompt) = prompt {
            reader.note_input(&prompt);
        }
        reader
    }

    /// Registers input of the agent, whose echo on the screen must not count: its prompt, or a person's text. Returns
    /// false when the text does not match the done pattern, so that its echo cannot be mistaken for output.
    pub fn note_input(&mut self, text: &str) -> bool {
        self.known_text.note(text);
        let Some(echo) = self.done.as_ref().and_then(|done| Echo::new(done, text)) else { return false };
        if !self.echoes.contains(&echo) {
            self.echoes.push(echo);
        }
        true
    }

    /// Registers the screen before the prompt was delivered: a done pattern that already matched there does not count.
    pub fn set_baseline(&mut self, text: &str) {
        let matches = |view: &str| self.done.as_ref().is_some_and(|done| done.is_match(view));
        let plain = text::plain(text);
        let rows = text::rows(&plain);
        self.known_text.set_before(&rows);
        let view = rows.join("\n");
        // Nearly always nothing matches.
        self.baseline = (matches(&view) || matches(&dedent(&view))).then(|| Baseline::new(&view));
    }

    /// Reads a captured screen of a pane of `size` columns and rows. The text may include scrollback.
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

    /// The text in the input box; `None` when no box is shown, or the profile has no marker for it.
    pub fn input(&self, text: &str, size: (u16, u16)) -> Option<String> {
        let plain = text::plain(text);
        let screen = visible(&plain, &text::rows(&plain), usize::from(size.1));
        self.markers.input.iter().find_map(|marker| marker.group("input", &screen)).map(str::to_owned)
    }

    /// The error of the agent's last request, on one line: the CLI shows it above its input box, and no output of the
    /// agent follows. `None` if the text ends otherwise, or the profile has no marker for it.
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

    /// True if the done pattern matches in the final output: the whole history of the run.
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
        // Agents indent their answers and put a bullet before the first line; `^DONE$` matches such a line, too.
        fresh(view) || (done.is_anchored && fresh(&dedent(view)))
    }
}

/// The rows of the screen without the scrollback above it.
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
