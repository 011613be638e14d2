//! Parses the text of a settings file, and formats it again in the same layout.
//!
//! Used by [`super::file`]. Pure. Indentation, line ends, the last line end and a byte order mark are kept; a list on
//! one line is not. Deliberately absent: comments. A file with comments is refused, since they would be lost.

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

/// The byte order mark that some editors write before a text.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The layout of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    mark: bool,
    indent: String,
    crlf: bool,
    ends: bool,
}

impl Default for Layout {
    /// Two spaces and a final line end, as agents write their files.
    fn default() -> Self {
        Self { mark: false, indent: "  ".to_owned(), crlf: false, ends: true }
    }
}

/// Returns the value and the layout of `text`; an empty text is an empty object. The error is the parser's message,
/// with line and column.
pub fn parse(text: &str) -> Result<(Value, Layout), String> {
    let bare = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    if bare.trim().is_empty() {
        return Ok((Value::Object(serde_json::Map::new()), Layout::default()));
    }
    let value = serde_json::from_str(bare).map_err(|e| e.to_string())?;
    let indent = bare.lines().find_map(|line| {
        let rest = line.trim_start_matches([' ', '\t']);
        let indent = &line[..line.len() - rest.len()];
        (!indent.is_empty() && !rest.trim().is_empty()).then(|| indent.to_owned())
    });
    let layout = Layout {
        mark: bare.len() < text.len(),
        indent: indent.unwrap_or_else(|| Layout::default().indent),
        crlf: bare.contains("\r\n"),
        ends: bare.ends_with('\n'),
    };
    Ok((value, layout))
}

/// Formats `value` as text. A JSON value causes no error.
pub fn render(value: &Value, layout: &Layout) -> Result<String, String> {
    let mut bytes = Vec::new();
    let formatter = PrettyFormatter::with_indent(layout.indent.as_bytes());
    value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter)).map_err(|e| e.to_string())?;
    let mut text = String::from_utf8(bytes).map_err(|e| e.to_string())?;
    if layout.ends {
        text.push('\n');
    }
    if layout.crlf {
        text = text.replace('\n', "\r\n");
    }
    if layout.mark {
        text.insert_str(0, BYTE_ORDER_MARK);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rendered_json_keeps_the_layout() {
        for text in [
            "{\n  \"b\": 1,\n  \"a\": [\n    2.50e3,\n    \"\\u00e9 é\"\n  ]\n}\n",
            "{\n\t\"b\": {\n\t\t\"x\": null\n\t}\n}",
            "{\r\n    \"b\": 1\r\n}\r\n",
            "\u{feff}{\n   \"b\": 1\n}\n",
        ] {
            let (value, layout) = parse(text).unwrap();
            let again = render(&value, &layout).unwrap();
            let plain = text.replace("2.50e3", "2500.0").replace("\\u00e9", "é");
            assert_eq!(again, plain);
        }
    }

    #[test]
    fn empty_text_is_an_empty_object_and_broken_json_has_its_line() {
        assert_eq!(parse(" \n").unwrap().0, serde_json::json!({}));
        assert_eq!(parse("").unwrap().1, Layout::default());
        for text in ["{", "{\"a\":1,}", "// x\n{}", "{} {}"] {
            let error = parse(text).unwrap_err();
            assert!(error.contains("line 1"), "{text}: {error}");
        }
    }
}
