//! Finds the prompt's echo on a screen, also if the agent wrapped, framed or cut it.
//!
//! Prompt and screen are compared by their *ink*: their characters without white space, frames and the marks of an
//! input box. A match of the done pattern is echo when it lies in a whole copy of the prompt, or in rows that are
//! prompt text from end to end and hold enough of it around the match (the rest scrolled off, or did not fit into the
//! input box). A row with only the marker is the agent's own, unless the rows around it continue as the prompt does.
//! The comparison is made twice: with all signs, and with letters and digits alone, because some agents show the
//! prompt as rendered Markdown: bullets change their shape, emphasis and code lose their signs.

use std::ops::Range;

use crate::pattern::Pattern;

/// Characters of the prompt around a match that make rows a part of it: in a framed row, in rows of a screen
/// that has scrolled, and anywhere else. If the prompt requires a line with the marker, the agent prints that
/// line, so one row without frame or mark is never enough.
const MIN_FRAMED_CHARS: usize = 4;
const MIN_SCROLLED_CHARS: usize = 8;
const MIN_ECHO_CHARS: usize = 24;

/// White space this wide divides a row: a side panel begins after it.
const MIN_GAP_COLUMNS: usize = 4;

/// Maximum rounds of blanking the echo: each blanks more, real screens need one or two.
const MAX_ROUNDS: usize = 8;

/// The most places of the prompt that a match is compared with.
const MAX_PLACES: usize = 256;

/// Which characters of a text are compared.
#[derive(Clone, Copy)]
pub(super) enum Detail {
    /// Letters, digits and signs.
    Signs,
    /// Letters and digits.
    Letters,
}

/// The characters of a text that count for a [`Detail`].
pub(super) struct Ink {
    text: String,
    /// For each byte of `text`, its position in the source; at the end the source's length.
    origin: Vec<usize>,
    /// The bytes of `text` at which a stretch of a row begins, ascending; at the end its length.
    stretches: Vec<usize>,
}

impl Ink {
    /// Of a text with escapes stripped.
    pub(super) fn of(source: &str, detail: Detail) -> Self {
        let mut ink = Self { text: String::new(), origin: vec![], stretches: vec![0] };
        let mut gap = 0;
        for (at, c) in source.char_indices() {
            if c.is_whitespace() || c == '\0' {
                gap = if c == ' ' { gap + 1 } else { MIN_GAP_COLUMNS };
            } else if is_frame(c) {
                gap = MIN_GAP_COLUMNS;
            } else if !is_mark(c) && (matches!(detail, Detail::Signs) || c.is_alphanumeric()) {
                if gap >= MIN_GAP_COLUMNS && ink.stretches.last() != Some(&ink.text.len()) {
                    ink.stretches.push(ink.text.len());
                }
                gap = 0;
                ink.origin.extend(std::iter::repeat_n(at, c.len_utf8()));
                ink.text.push(c);
            }
        }
        if ink.stretches.last() != Some(&ink.text.len()) {
            ink.stretches.push(ink.text.len());
        }
        ink.origin.push(source.len());
        ink
    }

    /// The ink of a range of the source.
    fn range(&self, range: &Range<usize>) -> Range<usize> {
        let at = |byte| self.origin[..self.text.len()].partition_point(|&origin| origin < byte);
        at(range.start)..at(range.end)
    }

    /// The part of the source that a range of ink covers.
    fn source(&self, range: &Range<usize>, source: &str) -> Range<usize> {
        if range.is_empty() {
            return 0..0;
        }
        let last = self.origin[range.end - 1];
        let width = source[last..].chars().next().map_or(0, char::len_utf8);
        self.origin[range.start]..last + width
    }

    /// The last `count` characters before a byte of the source.
    pub(super) fn until(&self, byte: usize, count: usize) -> String {
        let end = self.range(&(byte..byte)).start;
        let start = self.text[..end].char_indices().rev().take(count).last().map_or(end, |(at, _)| at);
        self.text[start..end].to_owned()
    }

    /// The whole stretches within a range that hold `core`, if they do hold all of it.
    fn whole(&self, range: &Range<usize>, core: &Range<usize>) -> Option<Range<usize>> {
        let first = self.stretches.partition_point(|&at| at < range.start);
        let start = *self.stretches.get(first)?;
        let end = self.stretches[..self.stretches.partition_point(|&at| at <= range.end)].last().copied()?;
        (start <= core.start && core.end <= end).then_some(start..end)
    }
}

/// Lines and blocks that frame boxes, and characters without width.
fn is_frame(c: char) -> bool {
    matches!(c, '\u{2500}'..='\u{259f}')
}

/// The marks before the user's text, and invisible characters.
fn is_mark(c: char) -> bool {
    matches!(c, '❯' | '›' | '>' | '|' | '\u{200b}'..='\u{200d}' | '\u{fe0f}' | '\u{feff}')
}

/// A prompt that holds the done pattern, prepared for comparison with the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Echo {
    ink: String,
    /// The same with letters and digits only.
    letters: String,
    /// The prompt is only the marker: a copy of it proves nothing.
    bare: bool,
}

impl Echo {
    /// `None` if the pattern cannot match in the prompt: its echo needs no check.
    pub(super) fn new(done: &Pattern, prompt: &str) -> Option<Self> {
        let prompt = super::text::strip(prompt);
        let flat = prompt.split_whitespace().collect::<Vec<_>>().join(" ");
        let (raw, found) = (done.find_loose(&prompt), done.find_loose(&flat));
        if raw.is_empty() && found.is_empty() && !done.is_match(&prompt.replace(char::is_whitespace, "\n")) {
            return None;
        }
        let ink = Ink::of(&flat, Detail::Signs);
        let letters = Ink::of(&flat, Detail::Letters).text;
        let whole = found.iter().any(|range| ink.range(range) == (0..ink.text.len()));
        let bare = !flat.contains(' ') || (whole && !done.is_varying);
        (!ink.text.is_empty()).then_some(Self { ink: ink.text, letters, bare })
    }

    fn ink(&self, detail: Detail) -> &str {
        match detail {
            Detail::Signs => &self.ink,
            Detail::Letters => &self.letters,
        }
    }

    /// The part of the view around a match that is a part of the prompt; `ink` is the view's in this detail.
    fn piece(
        &self,
        detail: Detail,
        view: &str,
        ink: &Ink,
        found: &Range<usize>,
        scrolled: bool,
    ) -> Option<Range<usize>> {
        // A match without width (look-around) counts as the rest of its row.
        let row_end = view[found.end..].find('\n').map_or(view.len(), |len| found.end + len);
        let found = if found.is_empty() { found.start..row_end } else { found.clone() };
        let core = ink.range(&found);
        let core_text = &ink.text[core.clone()];
        if core_text.is_empty() {
            return None;
        }
        let prompt = self.ink(detail);
        let places = prompt.match_indices(core_text).take(MAX_PLACES);
        places.map(|(at, _)| at).find_map(|at| {
            let before = common(ink.text[..core.start].chars().rev(), prompt[..at].chars().rev());
            let rest = at + core_text.len();
            let after = common(ink.text[core.end..].chars(), prompt[rest..].chars());
            let range = barriers(view, ink, &core, before, after);
            let whole = ink.whole(&range, &core)?;
            let source = ink.source(&whole, view);
            let text = &ink.text[whole.clone()];
            let context = text.chars().count() - core_text.chars().count();
            let at_end = rest + (whole.end - core.end) == prompt.len();
            let several = view[source.clone()].contains('\n');
            let enough = if scrolled { MIN_SCROLLED_CHARS } else { MIN_ECHO_CHARS };
            let is_part = match lead(view, source.start) {
                Lead::Mark => true,
                Lead::Frame => context >= MIN_FRAMED_CHARS,
                Lead::Other => {
                    // With letters alone, an answer with a bullet looks like a row without one.
                    let whole_row = matches!(detail, Detail::Signs) && !self.bare;
                    let cut = scrolled && whole.start == 0 && at_end && whole_row;
                    cut || (several && context >= enough)
                }
            };
            is_part.then_some(source)
        })
    }
}

/// The range of ink around a match that agrees with the prompt, as far as nothing blanked lies between.
fn barriers(view: &str, ink: &Ink, core: &Range<usize>, before: usize, after: usize) -> Range<usize> {
    let (mut start, mut end) = (core.start - before, core.end + after);
    let source = ink.origin[start]..ink.origin[core.start];
    if let Some(last) = view[source.clone()].rfind('\0') {
        start = ink.range(&(source.start + last..source.end)).start;
    }
    let source = ink.origin[core.end.saturating_sub(1)]..ink.origin[end];
    if let Some(first) = view[source.clone()].find('\0') {
        end = ink.range(&(source.start..source.start + first)).end.max(core.end);
    }
    start..end
}

/// The matches of `done` in `view` that are not an echo of a prompt. `scrolled`: the top of the view may be the end of
/// a longer text.
pub(super) fn outside(echoes: &[Echo], done: &Pattern, view: &str, scrolled: bool) -> Vec<Range<usize>> {
    let mut masked = view.to_owned();
    for detail in [Detail::Signs, Detail::Letters] {
        blank_echoes(echoes, done, &mut masked, scrolled, detail);
    }
    done.find_all(&masked)
}

/// Blanks whole copies of a prompt, and the matches that are a part of one.
fn blank_echoes(echoes: &[Echo], done: &Pattern, masked: &mut String, scrolled: bool, detail: Detail) {
    let prompts = echoes.iter().filter(|echo| !echo.bare).map(|echo| echo.ink(detail));
    for prompt in prompts.filter(|prompt| !prompt.is_empty()) {
        let ink = Ink::of(masked, detail);
        let copies = ink.text.match_indices(prompt);
        let copies: Vec<_> = copies.map(|(at, copy)| ink.source(&(at..at + copy.len()), masked)).collect();
        for copy in copies {
            blank(masked, &copy);
        }
    }
    for _ in 0..MAX_ROUNDS {
        let ink = Ink::of(masked, detail);
        let is_echo = |range: &Range<usize>| {
            echoes.iter().find_map(|echo| echo.piece(detail, masked, &ink, range, scrolled))
        };
        let pieces: Vec<_> = done.find_all(masked).iter().filter_map(is_echo).collect();
        if pieces.is_empty() {
            break;
        }
        for piece in &pieces {
            blank(masked, piece);
        }
    }
}

/// Bytes that two runs of characters have in common.
fn common(a: impl Iterator<Item = char>, b: impl Iterator<Item = char>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
}

/// The text before a stretch in its row.
enum Lead {
    /// Only the mark of the user's own text.
    Mark,
    /// The side of a frame.
    Frame,
    Other,
}

fn lead(view: &str, at: usize) -> Lead {
    let row = view[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let head: String = view[row..at].chars().filter(|c| !c.is_whitespace() && !is_frame(*c)).collect();
    if matches!(head.as_str(), "❯" | "›" | ">") {
        Lead::Mark
    } else if view[row..at].contains(is_frame) {
        Lead::Frame
    } else {
        Lead::Other
    }
}

/// Overwrites a part of the text with NUL, which no stripped text holds. Newlines stay, to keep the rows.
fn blank(text: &mut String, range: &Range<usize>) {
    let blanked: String = text[range.clone()]
        .chars()
        .flat_map(|c| std::iter::repeat_n(if c == '\n' { '\n' } else { '\0' }, c.len_utf8()))
        .collect();
    text.replace_range(range.clone(), &blanked);
}
