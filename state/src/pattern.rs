//! Patterns in the syntax of Python's `re`, which users of done patterns know.
//!
//! Used for done patterns and for every screen marker of a profile. The search runs over the whole text, as `re.search`
//! does, but `^` and `$` bind to lines, because a user who writes `^DONE$` for a screen means a line. `\A` and `\Z`
//! bind to the whole text. Linear-time matching is tried first; look-around, back-references, atomic groups and the
//! like fall back to a backtracking matcher with a limit: if it reaches the limit, nothing matches. Deliberately
//! absent: bytes patterns, locale, and `(?a)`, which is accepted and has no effect.

use std::fmt;
use std::ops::Range;

mod python;

use python::Translation;

/// Steps of the backtracking matcher before it gives up.
const BACKTRACK_LIMIT: usize = 200_000;

/// Maximum number of matches that one search lists.
const MAX_MATCHES: usize = 10_000;

/// A compiled pattern.
#[derive(Clone)]
pub struct Pattern {
    source: String,
    engine: Engine,
    /// The same without `^ $ \A \Z \b \B`, if it has any: a match that depends only on a wrapped line must count as
    /// possible.
    loose: Option<Engine>,
    /// The pattern has anchors: a match depends on where lines, words or the text begin or end.
    pub(crate) is_anchored: bool,
    /// One match can be longer than another (`*`, `+`, `{}`).
    pub(crate) is_varying: bool,
}

#[derive(Clone)]
enum Engine {
    Plain(regex::Regex),
    Fancy(Box<fancy_regex::Regex>),
}

/// A text that is not a valid [`Pattern`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid pattern {pattern:?}: {}", self.trouble())]
pub struct PatternError {
    /// The text as it was given.
    pub pattern: String,
    /// The error, in a few words.
    pub message: String,
    /// Where, in characters from 0, if that is known.
    pub position: Option<usize>,
}

impl PatternError {
    /// Describes the error and its position, for a sentence that names the pattern by itself.
    pub fn trouble(&self) -> String {
        let place = self.position.map(|at| format!(" at position {at}")).unwrap_or_default();
        format!("{}{place}", self.message)
    }
}

impl Pattern {
    /// Compiles a pattern; [`PatternError`] when the text is empty (it would match everything) or not a valid pattern.
    pub fn compile(source: &str) -> Result<Self, PatternError> {
        let fail = |message: String, position| PatternError { pattern: source.to_owned(), message, position };
        if source.is_empty() {
            return Err(fail("it is empty and would match everything".into(), None));
        }
        let translation = python::translate(source);
        let engine = Engine::compile(&translation.strict, translation.backtracks).map_err(|trouble| {
            let position = trouble.position.and_then(|at| translation.origin.get(at).copied());
            fail(trouble.message, position)
        })?;
        let Translation { loose, anchored: is_anchored, varying: is_varying, backtracks, .. } = translation;
        let loose = if is_anchored { Engine::compile(&loose, backtracks).ok() } else { None };
        Ok(Self { source: source.to_owned(), engine, loose, is_anchored, is_varying })
    }

    /// True when it matches anywhere in the text.
    pub fn is_match(&self, text: &str) -> bool {
        self.engine.is_match(text)
    }

    /// True if it matches one of the agent's own messages in its record. A command that prints JSON does not show them
    /// as lines.
    pub fn matches_any(&self, messages: &[String]) -> bool {
        messages.iter().any(|message| self.is_match(message))
    }

    /// True if it matches the empty text or any text (`.*`), which deserves a warning.
    pub fn matches_everything(&self) -> bool {
        self.is_match("") || ["a", "7", "-", "é", "Q z"].iter().all(|text| self.is_match(text))
    }

    /// Returns the byte ranges of all matches, in order.
    pub(crate) fn find_all(&self, text: &str) -> Vec<Range<usize>> {
        self.engine.find_all(text)
    }

    /// Returns the text of a named group in the first match; `None` without a match or without such a group.
    pub(crate) fn group<'t>(&self, name: &str, text: &'t str) -> Option<&'t str> {
        match &self.engine {
            Engine::Plain(regex) => Some(regex.captures(text)?.name(name)?.as_str()),
            Engine::Fancy(regex) => Some(regex.captures(text).ok()??.name(name)?.as_str()),
        }
    }

    /// Returns the byte ranges of all matches, as if line breaks were at any place.
    pub(crate) fn find_loose(&self, text: &str) -> Vec<Range<usize>> {
        self.loose.as_ref().unwrap_or(&self.engine).find_all(text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.source).finish()
    }
}

/// The error of a matcher for a pattern that it does not support.
struct CompileTrouble {
    message: String,
    /// In characters of the translated text.
    position: Option<usize>,
}

impl Engine {
    fn compile(text: &str, backtracks: bool) -> Result<Self, CompileTrouble> {
        let plain = regex::RegexBuilder::new(text).multi_line(true).build();
        let mut trouble = match plain {
            Ok(regex) if !backtracks => return Ok(Self::Plain(regex)),
            Ok(_) => None,
            Err(error) => Some(plain_trouble(&error)),
        };
        if let Some(trouble) = trouble.take_if(|t| t.message.starts_with("repetition operator missing")) {
            // The backtracking matcher would read `{2}` as a literal, and never match.
            return Err(trouble);
        }
        let fancy =
            fancy_regex::RegexBuilder::new(text).multi_line(true).backtrack_limit(BACKTRACK_LIMIT).build();
        match fancy {
            Ok(regex) => Ok(Self::Fancy(Box::new(regex))),
            Err(error) => {
                let fancy = fancy_trouble(text, &error);
                // The linear matcher reports the place, unless it only lacks the feature.
                Err(trouble.filter(|t| !t.message.contains("not supported")).unwrap_or(fancy))
            }
        }
    }

    fn is_match(&self, text: &str) -> bool {
        match self {
            Self::Plain(regex) => regex.is_match(text),
            Self::Fancy(regex) => regex.is_match(text).unwrap_or(false),
        }
    }

    fn find_all(&self, text: &str) -> Vec<Range<usize>> {
        match self {
            Self::Plain(regex) => regex.find_iter(text).take(MAX_MATCHES).map(|m| m.range()).collect(),
            Self::Fancy(regex) => {
                regex.find_iter(text).map_while(Result::ok).take(MAX_MATCHES).map(|m| m.range()).collect()
            }
        }
    }
}

/// Extracts message and position from the linear matcher's drawing of an error.
fn plain_trouble(error: &regex::Error) -> CompileTrouble {
    let drawing = error.to_string();
    let message = drawing
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("error: "))
        .map_or_else(|| drawing.lines().last().unwrap_or("it is not valid").to_owned(), str::to_owned);
    // The caret line is below the pattern, both indented by four; a pattern of several lines gets no position.
    let position = (drawing.lines().count() == 4)
        .then(|| drawing.lines().nth(2).and_then(|line| line.chars().position(|c| c == '^')))
        .flatten()
        .and_then(|column| column.checked_sub(4));
    CompileTrouble { message, position }
}

fn fancy_trouble(text: &str, error: &fancy_regex::Error) -> CompileTrouble {
    if let fancy_regex::Error::ParseError(at, kind) = error {
        let position = text.get(..*at).map(|before| before.chars().count());
        return CompileTrouble { message: lower_first(&kind.to_string()), position };
    }
    CompileTrouble { message: lower_first(&error.to_string()), position: None }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.lines().last().unwrap_or_default().chars();
    chars.next().map(|c| c.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Pattern {
        pub(crate) fn is_linear(&self) -> bool {
            matches!(self.engine, Engine::Plain(_))
        }
    }

    fn compile(source: &str) -> Pattern {
        Pattern::compile(source).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn line_pattern_matches_a_line_of_a_message() {
        let messages = ["I begin.".to_owned(), "All of it:\nDONE\nBye.".to_owned()];
        assert!(compile("^DONE$").matches_any(&messages));
        assert!(!compile("^DONE$").matches_any(&messages[..1]));
        assert!(!compile("^begin").matches_any(&messages));
        assert!(!compile("DONE").matches_any(&[]));
    }

    #[test]
    fn pattern_syntax_matches_python() {
        for (pattern, text, want) in [
            ("All tasks complete", "so: All tasks complete.", true),
            (r"IMPLEMENTATION_PLAN.md.*100%", "IMPLEMENTATION_PLAN.md: 100%", true),
            ("^DONE$", "x\nDONE\ny", true),
            ("^DONE$", "x DONE\ny", false),
            (r"\ADONE", "x\nDONE", false),
            (r"DONE\Z", "x\nDONE", true),
            (r"DONE\Z", "DONE\nx", false),
            (r"a.c", "a\nc", false),
            (r"(?s)a.c", "a\nc", true),
            (r"(?i)done", "DONE", true),
            (r"(?i:d)one", "DOne", false),
            (r"(?a)\w+", "x", true),
            (r"(?aiL)DONE", "done", true),
            (r"(?P<n>ab)-(?P=n)", "ab-ab", true),
            (r"(?P<n>ab)-(?P=n)", "ab-ac", false),
            (r"(\w+) \1", "the the", true),
            (r"(?<!not )DONE", "not DONE", false),
            (r"(?<!not )DONE", "yes DONE", true),
            (r"TASK(?!S)", "TASKS", false),
            (r"(?#why (it)DO(?#is)NE", "DONE", true),
            (r"(?x) D O N E  # a [comment", "DONE", true),
            (r#"{"status": "done"}"#, r#"{"status": "done"}"#, true),
            (r"a{,2}b", "aab", true),
            (r"x{2}", "xx", true),
            (r"x{a}", "x{a}", true),
            (r"<promise>\<ok\></promise>", "<promise><ok></promise>", true),
            (r"[[]x[]]", "[x]", true),
            (r"[]x]+\Z", "]x", true),
            (r"[^]x]", "]", false),
            (r"[a&&b]", "&", true),
            (r"[+--]", ",", true),
            (r"[--a]", "0", true),
            (r"[\w-]+!", "a-b!", true),
            (r"[\b]", "b", false),
            (r"\bDONE\b", "xDONE", false),
            (r"a\ b\'\é\/", "a b'é/", true),
            (r"\u00e9\x41\101", "éAA", true),
            (r"a++a", "aaa", false),
            (r"(?>a+)b", "aab", true),
            ("日本|é", "xé", true),
        ] {
            assert_eq!(compile(pattern).is_match(text), want, "{pattern} in {text:?}");
        }
    }

    #[test]
    fn invalid_pattern_is_refused_with_its_position() {
        for (pattern, position) in [
            ("(", Some(0)),
            ("ab(cd", Some(2)),
            ("(?#x)ab(cd", Some(7)),
            ("[a", Some(0)),
            ("a)", Some(1)),
            ("*a", Some(0)),
            ("{2}", Some(0)),
            ("(?P<n>a", Some(0)),
        ] {
            let error = Pattern::compile(pattern).unwrap_err();
            assert_eq!(error.position, position, "{error}");
        }
        for pattern in ["", "\\", r"(?<=a", "(?P=nobody)", "(a{1000}){1000}", "a{2,1}"] {
            let error = Pattern::compile(pattern).unwrap_err();
            assert!(!error.message.is_empty() && !error.to_string().contains('\n'), "{error}");
        }
        assert_eq!(
            Pattern::compile("(").unwrap_err().to_string(),
            "invalid pattern \"(\": unclosed group at position 0"
        );
    }

    #[test]
    fn pattern_that_matches_everything_is_detected() {
        for pattern in [".*", ".", "x*", "^", "$", r"\S", "(?s).+", "a|", ".+"] {
            assert!(compile(pattern).matches_everything(), "{pattern}");
        }
        for pattern in ["DONE", "[a-z]", r"\d", "^DONE$", ".*DONE", "(?!x)DONE"] {
            assert!(!compile(pattern).matches_everything(), "{pattern}");
        }
    }

    #[test]
    fn exhausted_matcher_finds_no_match() {
        let pattern = compile(r"(?:(a|aa)+)+\1c(?=d)");
        assert!(!pattern.is_match(&"a".repeat(400)));
    }

    proptest! {
        #[test]
        fn random_text_does_not_panic(source in r#"[\\\[\](){}?*+^$|#<>=!:P0-9a-zéZ&~ -]{0,24}"#, text in "\\PC{0,40}") {
            if let Ok(pattern) = Pattern::compile(&source) {
                pattern.is_match(&text);
                pattern.matches_everything();
                for range in pattern.find_all(&text) {
                    prop_assert!(text.get(range).is_some());
                }
            }
        }
    }
}
