//! Decides whether an input box holds a text that the agent may wrap, frame, cut or fold.
//!
//! Box and text are compared by their *ink*: their characters without spaces, frames and the marks before the rows of
//! a box.

/// Characters at the end of the text that a box must show.
const TAIL_CHARS: usize = 40;

/// Length of the pieces in which a partly shown text is compared.
const PIECE_CHARS: usize = 6;

/// Minimum length of a text that no dialog contains by chance.
const MIN_DISTINCT_CHARS: usize = 8;

/// Minimum number of characters on a screen that a box fills.
const MIN_FULL_SCREEN_CHARS: usize = 200;

/// Maximum number of characters between the brackets of a fold token.
const MAX_FOLD_TOKEN_CHARS: usize = 60;

/// The content of the input box, compared with the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoxContent {
    /// No input box is on the screen.
    NoBox,
    /// The box does not hold the text.
    Other,
    /// The box holds the text.
    Text,
    /// The box holds the token to which the agent folded the text.
    Token,
}

impl BoxContent {
    /// True where the box holds the text in any form.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Token)
    }
}

/// A text that is typed, and the screen before.
#[derive(Clone, Debug)]
pub struct Typed {
    ink: String,
    /// The ink of the box before.
    before: Option<String>,
    /// The ink below the text before Enter, if no profile describes the box.
    below: Option<String>,
}

impl Typed {
    /// A text; `before` is the content of the input box before the typing, `None` without a box.
    pub fn new(text: &str, before: Option<&str>) -> Self {
        Self { ink: ink(text), before: before.map(ink), below: None }
    }

    /// True for a text that is too long to occur in a dialog by chance.
    pub fn is_distinct(&self) -> bool {
        self.ink.chars().count() >= MIN_DISTINCT_CHARS
    }

    /// Whether a box holds the text of an earlier paste. A short text has to be all that it holds.
    pub fn was_left_in(&self, input: Option<&str>) -> bool {
        let is_all =
            |input: &str| [input, input.lines().next().unwrap_or_default()].map(ink).contains(&self.ink);
        self.held(input).is_text() && (self.is_distinct() || input.is_some_and(is_all))
    }

    /// Compares the content of a box with the text.
    pub fn held(&self, input: Option<&str>) -> BoxContent {
        let Some(input) = input.map(ink) else { return BoxContent::NoBox };
        if self.before.as_ref() == Some(&input) || input.is_empty() || self.ink.is_empty() {
            return BoxContent::Other;
        }
        if input.contains(tail(&self.ink)) {
            return BoxContent::Text;
        }
        if has_token(&input) {
            return BoxContent::Token;
        }
        if is_part(&input, &self.ink) { BoxContent::Text } else { BoxContent::Other }
    }

    /// Whether most of a screen is the text: a box larger than the screen shows neither its mark nor its frame.
    pub fn fills(&self, screen: &str) -> bool {
        let screen = ink(screen);
        self.is_distinct() && screen.chars().count() >= MIN_FULL_SCREEN_CHARS && is_part(&screen, &self.ink)
    }

    /// The same without a profile of the box: the last row with an input mark begins it. Before Enter (`entered` is
    /// false) the [`calm`] ink below the text is noted. If the agent's output changes it after Enter, the box is empty.
    pub fn held_by_mark(&mut self, screen: &str, entered: bool) -> BoxContent {
        let held = match marked(screen) {
            Some(input) => self.held(Some(&input)),
            None if self.is_on(screen) => BoxContent::Text,
            None => BoxContent::NoBox,
        };
        if !held.is_text() {
            return held;
        }
        let below = self.below(screen);
        if !entered {
            self.below = Some(below);
            return held;
        }
        if self.below.as_ref().is_some_and(|before| *before != below) { BoxContent::Other } else { held }
    }

    /// Whether the place of the text is as before, if no profile knows the box.
    pub fn is_untouched(&self, screen: &str) -> bool {
        marked(screen).map(|input| calm(&ink(&input))) == self.before.as_deref().map(calm)
    }

    /// Whether the end of the text is anywhere on the screen.
    fn is_on(&self, screen: &str) -> bool {
        !self.ink.is_empty() && ink(screen).contains(tail(&self.ink))
    }

    /// Returns the ink below the text, without digits and spinners.
    fn below(&self, screen: &str) -> String {
        let all = ink(screen);
        let tail = tail(&self.ink);
        let below = all.rfind(tail).map_or(all.as_str(), |at| &all[at + tail.len()..]);
        calm(below)
    }
}

/// The text of the box that the last row with an input mark begins.
pub fn marked(screen: &str) -> Option<String> {
    let rows: Vec<&str> = screen.lines().map(str::trim_end).collect();
    let (at, first) = rows.iter().enumerate().rev().find_map(|(at, row)| Some((at, after_mark(row)?)))?;
    let input: Vec<&str> = std::iter::once(first).chain(rows[at + 1..].iter().copied()).collect();
    Some(input.join("\n"))
}

/// An ink without digits and spinners, which a footer may change.
fn calm(ink: &str) -> String {
    ink.chars().filter(|c| !c.is_numeric() && !is_spinner(*c)).collect()
}

fn is_spinner(c: char) -> bool {
    matches!(c, '\u{2800}'..='\u{28ff}' | '·' | '✢' | '✳' | '✶' | '✻' | '✽' | '*' | '|' | '/' | '-' | '\\')
}

fn after_mark(row: &str) -> Option<&str> {
    ["❯", "›", ">>>", ">", "$"].iter().find_map(|mark| {
        let rest = row.strip_prefix(mark)?;
        (rest.is_empty() || rest.starts_with([' ', '\u{a0}'])).then_some(rest)
    })
}

/// A text without white space, frames, characters of no width and the marks of input boxes.
fn ink(text: &str) -> String {
    let counts = |c: &char| {
        !c.is_whitespace()
            && !c.is_control()
            && !matches!(c, '\u{2500}'..='\u{259f}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{fe0e}' | '\u{fe0f}' | '\u{feff}')
            && !matches!(c, '❯' | '›' | '>')
    };
    text.chars().filter(counts).collect()
}

fn tail(ink: &str) -> &str {
    let start = ink.char_indices().rev().take(TAIL_CHARS).last().map_or(0, |(at, _)| at);
    &ink[start..]
}

/// Whether an ink has a token: `[Pasted text #1 +199 lines]`, `[Pasted Content 4689 chars]`,
/// `[Pasted Text: 903 lines]`, `[Pasted ~40 lines]`, `[...Truncated text #1 +80 lines...]`.
fn has_token(ink: &str) -> bool {
    ink.match_indices('[').any(|(at, _)| {
        let inner: String =
            ink[at + 1..].chars().take(MAX_FOLD_TOKEN_CHARS).take_while(|c| *c != ']').collect();
        let inner = inner.to_ascii_lowercase();
        let word = inner.trim_start_matches(['.', '…']);
        (word.starts_with("pasted") || word.starts_with("truncated"))
            && inner.contains(|c: char| c.is_ascii_digit())
            && inner.len() < MAX_FOLD_TOKEN_CHARS
    })
}

/// Whether most of a box is the text: it shows a part, with a foreign row in between or a tab drawn differently.
fn is_part(input: &str, ours: &str) -> bool {
    if ours.contains(input) {
        return true;
    }
    let chars: Vec<char> = input.chars().collect();
    let pieces = chars.chunks_exact(PIECE_CHARS).map(|piece| piece.iter().collect::<String>());
    let (mut all, mut known) = (0usize, 0usize);
    for piece in pieces {
        all += 1;
        known += usize::from(ours.contains(&piece));
    }
    known > 0 && known * 2 >= all
}
