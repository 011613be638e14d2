//! Splits a state file into the lines of its front matter, with keys and values, and its body.

use std::ops::Range;

use super::keys::Key;
use crate::session::state::SessionLoop;
use crate::words::excerpt;

/// A line of the front matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) raw: Vec<u8>,
    /// Its known key, and the range of the value with its quotes.
    pub(super) value: Option<(Key, Range<usize>)>,
}

/// An error in a state file's front matter, with its line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct FileError {
    /// The line, from 1.
    pub line: usize,
    /// The error.
    pub what: String,
}

impl Line {
    pub(super) fn new(key: Key, text: &str, end: &[u8]) -> Self {
        let mut raw = format!("{}: {text}", key.name()).into_bytes();
        let value = key.name().len() + 2..raw.len();
        raw.extend(end);
        Self { raw, value: Some((key, value)) }
    }

    /// The line as it is, unless its value changed from `read` to `now`.
    pub(super) fn render(&self, read: &SessionLoop, now: &SessionLoop, bytes: &mut Vec<u8>) {
        let changed = self.value.as_ref().filter(|(key, _)| key.text(read) != key.text(now));
        let Some((key, at)) = changed else {
            bytes.extend(&self.raw);
            return;
        };
        let Some(text) = key.text(now) else { return };
        let (before, rest) = self.raw.split_at(at.start.min(self.raw.len()));
        bytes.extend(before);
        if before.ends_with(b":") {
            bytes.push(b' ');
        }
        bytes.extend(text.as_bytes());
        bytes.extend(rest.get(at.len()..).unwrap_or_default());
    }
}

/// A split file.
pub(super) struct Front<'a> {
    pub(super) open: &'a [u8],
    pub(super) lines: Vec<Line>,
    pub(super) values: Vec<Value>,
    pub(super) close: &'a [u8],
    pub(super) body: &'a [u8],
}

/// The value of a known key.
pub(super) struct Value {
    pub(super) key: Key,
    pub(super) line: usize,
    /// Without its quotes.
    pub(super) text: String,
}

impl Front<'_> {
    pub(super) fn closing_line(&self) -> usize {
        self.lines.len() + 2
    }
}

pub(super) fn split(bytes: &[u8]) -> Result<Front<'_>, FileError> {
    let error = |line, what: &str| FileError { line, what: what.to_owned() };
    let (open, mut rest) = first_line(bytes);
    if !is_fence(open.strip_prefix(b"\xef\xbb\xbf").unwrap_or(open)) {
        return Err(error(1, "a state file begins with a line `---`"));
    }
    let (mut lines, mut values): (Vec<Line>, Vec<Value>) = (Vec::new(), Vec::new());
    // The value of an unknown key may continue in indented lines.
    let mut is_unknown = false;
    loop {
        let number = lines.len() + 2;
        if rest.is_empty() {
            return Err(error(number, "the front matter is not closed by a line `---`"));
        }
        let (raw, after) = first_line(rest);
        rest = after;
        if is_fence(raw) {
            return Ok(Front { open, lines, values, close: raw, body: rest });
        }
        let (value, at) = read_line(raw, number, &mut is_unknown)?.unzip();
        let key = value.as_ref().map(|value| value.key);
        lines.push(Line { raw: raw.to_vec(), value: key.zip(at) });
        values.extend(value);
    }
}

fn first_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
    bytes.split_at(end)
}

fn is_fence(line: &[u8]) -> bool {
    line.trim_ascii_end() == b"---"
}

/// The value of a known key, and its range in the line.
fn read_line(
    raw: &[u8],
    line: usize,
    is_unknown: &mut bool,
) -> Result<Option<(Value, Range<usize>)>, FileError> {
    let error = |what: String| FileError { line, what };
    let trimmed = raw.trim_ascii();
    if trimmed.is_empty() || trimmed.starts_with(b"#") {
        return Ok(None);
    }
    let goes_on = raw.starts_with(b" ") || raw.starts_with(b"\t") || raw.starts_with(b"- ");
    if goes_on && *is_unknown {
        return Ok(None);
    }
    if goes_on {
        return Err(error("a key must begin at the left edge, with its value on the same line".to_owned()));
    }
    let Some(colon) = raw.iter().position(|byte| *byte == b':') else {
        return Err(error(format!("{} is not `key: value`", excerpt(&String::from_utf8_lossy(trimmed)))));
    };
    let (name, rest) = raw.split_at(colon);
    let key = std::str::from_utf8(name).ok().and_then(|name| Key::of(name.trim_ascii_end()));
    *is_unknown = key.is_none();
    let Some(key) = key else { return Ok(None) };
    let rest = std::str::from_utf8(rest.get(1..).unwrap_or_default())
        .map_err(|_| error(format!("the value of `{}` is not valid UTF-8", key.name())))?;
    let value = rest.trim_ascii_start();
    let start = colon + 1 + (rest.len() - value.len());
    let is_spaced = value.len() < rest.len();
    let (text, length) =
        read_value(value, is_spaced).map_err(|what| error(format!("`{}`: {what}", key.name())))?;
    // An empty value is placed directly after the colon, before any white space.
    let start = if length == 0 { colon + 1 } else { start };
    Ok(Some((Value { key, line, text }, start..start + length)))
}

/// A value and its length with quotes: in double quotes, in single quotes, or plain up to a comment.
fn read_value(value: &str, is_spaced: bool) -> Result<(String, usize), String> {
    let quoted = match value.chars().next() {
        Some('"') => double_quoted(value)?,
        Some('\'') => single_quoted(value)?,
        _ => return Ok(plain(value, is_spaced)),
    };
    let rest = value.get(quoted.1..).unwrap_or_default();
    let is_end = rest.trim_ascii().is_empty()
        || (rest.starts_with([' ', '\t']) && rest.trim_ascii_start().starts_with('#'));
    if is_end { Ok(quoted) } else { Err(format!("{} follows the closing quote", excerpt(rest.trim_ascii()))) }
}

fn double_quoted(value: &str) -> Result<(String, usize), String> {
    let mut is_escaped = false;
    let end = value.bytes().enumerate().skip(1).find_map(|(at, byte)| {
        let closes = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        closes.then_some(at + 1)
    });
    let quoted = end.and_then(|end| value.get(..end)).ok_or("the closing quote is missing")?;
    // The escapes are those of JSON; an unescaped tab is allowed, too.
    let text = serde_json::from_str(&quoted.replace('\t', "\\t"))
        .map_err(|_| format!("{} is not quoted text (write \\\\ for a backslash)", excerpt(quoted)))?;
    Ok((text, quoted.len()))
}

fn single_quoted(value: &str) -> Result<(String, usize), String> {
    let mut text = String::new();
    let mut chars = value.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c != '\'' {
            text.push(c);
        } else if chars.next_if(|(_, next)| *next == '\'').is_some() {
            text.push('\'');
        } else {
            return Ok((text, at + 1));
        }
    }
    Err("the closing quote is missing".to_owned())
}

fn plain(value: &str, is_spaced: bool) -> (String, usize) {
    // A comment begins after white space.
    let is_comment = |at: usize| {
        let before = value.get(..at).unwrap_or_default();
        if before.is_empty() { is_spaced } else { before.ends_with([' ', '\t']) }
    };
    let comment = value.match_indices('#').map(|(at, _)| at).find(|at| is_comment(*at));
    let text = value.get(..comment.unwrap_or(value.len())).unwrap_or_default().trim_ascii_end();
    let is_null = matches!(text, "null" | "~");
    (if is_null { String::new() } else { text.to_owned() }, text.len())
}
