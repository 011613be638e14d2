//! Splits a typed text into words. A quoted part is one word.
//!
//! A text is often prose: an apostrophe opens no quote, and a quote that is never closed is an ordinary character. So
//! a quote opens at the start of a word (or after the `=` of an option) and closes before white space or the end.

/// A word of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    /// The position of its first byte.
    pub(super) start: usize,
    /// As it was typed.
    pub(super) raw: &'a str,
    /// Its last part in quotes: the start within `raw`, and the text without the quotes.
    quoted: Option<(usize, &'a str)>,
}

impl Token<'_> {
    /// The position after it.
    pub(super) fn end(&self) -> usize {
        self.start + self.raw.len()
    }

    /// The whole word is one quoted part.
    pub(super) fn is_quoted(&self) -> bool {
        self.quoted.is_some_and(|(at, _)| at == 0)
    }

    /// The quoted part, without backslashes before quotes.
    pub(super) fn inner(&self) -> Option<String> {
        self.quoted.map(|(_, inner)| inner.replace("\\\"", "\""))
    }

    /// The word, without quotes around it.
    pub(super) fn value(&self) -> String {
        self.inner().filter(|_| self.is_quoted()).unwrap_or_else(|| self.raw.to_owned())
    }
}

pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let start = at + (rest.len() - rest.trim_start().len());
        let Some(token) = token_at(text, start) else { break };
        at = token.end();
        tokens.push(token);
    }
    tokens
}

fn token_at(text: &str, start: usize) -> Option<Token<'_>> {
    let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
    let plain = rest.find(char::is_whitespace).map_or(rest, |end| rest.get(..end).unwrap_or_default());
    let opens = if plain.starts_with('-') { plain.find('=').map(|at| at + 1) } else { Some(0) };
    let quoted = opens.and_then(|at| Some((at, quoted_part(rest.get(at..)?)?)));
    match quoted {
        Some((at, (inner, length))) => {
            let inner = rest.get(at + inner.start..at + inner.end)?;
            Some(Token { start, raw: rest.get(..at + length)?, quoted: Some((at, inner)) })
        }
        None => Some(Token { start, raw: plain, quoted: None }),
    }
}

/// The quoted part at the start of a text: the range within the quotes, and its length with them.
fn quoted_part(text: &str) -> Option<(std::ops::Range<usize>, usize)> {
    let mut chars = text.char_indices();
    let (_, opening) = chars.next()?;
    let closing = closing(opening)?;
    let mut is_escaped = false;
    for (at, c) in chars {
        let end = at + c.len_utf8();
        let is_at_end = text.get(end..)?.chars().next().is_none_or(char::is_whitespace);
        if closing.contains(&c) && is_at_end && !is_escaped {
            return Some((opening.len_utf8()..at, end));
        }
        is_escaped = opening == '"' && c == '\\' && !is_escaped;
    }
    None
}

/// Returns the marks that close a quote. Keyboards that set typographic quotes do not always set a matching pair.
fn closing(opening: char) -> Option<&'static [char]> {
    match opening {
        '"' => Some(&['"']),
        '\'' => Some(&['\'']),
        '“' | '”' | '„' | '‟' => Some(&['”', '“']),
        '‘' | '’' | '‚' | '‛' => Some(&['’', '‘']),
        '«' => Some(&['»']),
        '»' => Some(&['«']),
        _ => None,
    }
}
