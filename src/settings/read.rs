//! Parses one settings file: its keys with their positions, and typed values.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use swarm_state::pattern::Pattern;
use toml::de::{DeString, DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, Value};

use crate::duration::parse_duration;
use crate::error::Error;
use crate::paths::{home, pin};

/// One key in one file.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingValue {
    /// Its full name, with dots.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// The file, as it was named.
    pub file: PathBuf,
    /// The line of the key.
    pub line: usize,
}

/// An error at a byte of the file.
#[derive(Debug, Default)]
pub(super) struct Fault {
    at: usize,
    message: String,
    /// The last part of a key that its section does not have.
    pub(super) unknown: Option<String>,
    /// A known key of the section that is spelled similarly.
    near: Option<String>,
    /// The errors after this one.
    more: Vec<Self>,
}

#[derive(Debug)]
pub(super) struct SettingsFile<'a> {
    path: &'a Path,
    text: &'a str,
}

impl<'a> SettingsFile<'a> {
    pub(super) fn new(path: &'a Path, text: &'a str) -> Self {
        // Some editors write a byte order mark.
        Self { path, text: text.strip_prefix('\u{feff}').unwrap_or(text) }
    }

    /// Calls `visit` for every top-level key. Returns all errors, in the order of the file.
    pub(super) fn each(
        &self,
        visit: impl FnMut(&SettingEntry<'_>) -> Result<(), Fault>,
    ) -> Result<(), Vec<Fault>> {
        let table = DeTable::parse(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            vec![Fault { at, message: error.message().to_owned(), ..Fault::default() }]
        })?;
        visit_all(&entries(self, "", table.get_ref()), visit).map_err(Fault::all)
    }

    /// The error for a fault. `sections` are those in which an unknown key would be right.
    pub(super) fn error(&self, fault: &Fault, sections: &[String]) -> Error {
        // One sentence on one line, for any message of the parser and any value.
        let message = fault.message.split_whitespace().collect::<Vec<_>>().join(" ");
        let fix = match (&fault.near, sections) {
            (Some(near), _) => format!(" (did you mean '{near}'?)"),
            (None, []) => String::new(),
            (None, sections) => format!(" (this key belongs in {})", sections.join(" or ")),
        };
        let error =
            Error::invalid(format!("{}:{}: {message}{fix}", self.path.display(), self.line(fault.at)));
        let has_fix = fault.unknown.is_none() || !fix.is_empty();
        if has_fix { error } else { error.hint("for the keys: man swarm-config") }
    }

    fn line(&self, at: usize) -> usize {
        self.text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
    }
}

impl Fault {
    fn all(mut self) -> Vec<Self> {
        let more = std::mem::take(&mut self.more);
        std::iter::once(self).chain(more).collect()
    }
}

fn entries<'a>(source: &'a SettingsFile<'a>, prefix: &str, table: &'a DeTable<'a>) -> Vec<SettingEntry<'a>> {
    let entry = |(key, value): (&'a Spanned<DeString<'a>>, &'a Spanned<DeValue<'a>>)| {
        let name: &str = key.get_ref();
        let full = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
        SettingEntry { source, key: name, full, at: key.span().start, value }
    };
    table.iter().map(entry).collect()
}

/// Calls `visit` for every key; returns the error that is first in the file, with the others in it.
fn visit_all(
    entries: &[SettingEntry<'_>],
    visit: impl FnMut(&SettingEntry<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let faults = entries.iter().map(visit).filter_map(Result::err);
    let mut faults: Vec<Fault> = faults.flat_map(Fault::all).collect();
    faults.sort_by_key(|fault| fault.at);
    let mut faults = faults.into_iter();
    faults.next().map_or(Ok(()), |first| Err(Fault { more: faults.collect(), ..first }))
}

/// A key and its value.
#[derive(Debug)]
pub(super) struct SettingEntry<'a> {
    source: &'a SettingsFile<'a>,
    /// The last part of its name.
    pub(super) key: &'a str,
    /// Its full name, with dots.
    full: String,
    at: usize,
    pub(super) value: &'a Spanned<DeValue<'a>>,
}

impl SettingEntry<'_> {
    /// Calls `visit` for every key of a table. Returns the error that is first in the file.
    pub(super) fn each(
        &self,
        visit: impl FnMut(&SettingEntry<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        visit_all(&self.table()?, visit)
    }

    /// A text that is not empty.
    pub(super) fn text(&self) -> Result<String, Fault> {
        let text = self.value.get_ref().as_str().ok_or_else(|| self.must_be("a text"))?;
        match text {
            "" => Err(self.fault("must not be empty")),
            text if text.contains('\0') => Err(self.fault("must not contain a NUL character")),
            text => Ok(text.to_owned()),
        }
    }

    pub(super) fn flag(&self) -> Result<bool, Fault> {
        self.value.get_ref().as_bool().ok_or_else(|| self.must_be("true or false"))
    }

    /// A text that is a valid pattern.
    pub(super) fn pattern(&self) -> Result<String, Fault> {
        let text = self.text()?;
        match Pattern::compile(&text) {
            Ok(_) => Ok(text),
            Err(error) => Err(self.fault(&format!("holds an {error}"))),
        }
    }

    pub(super) fn patterns(&self) -> Result<Vec<String>, Fault> {
        self.elements("a list of patterns")?.map(|entry| entry.pattern()).collect()
    }

    /// A list of texts that are not empty.
    pub(super) fn texts(&self) -> Result<Vec<String>, Fault> {
        self.elements("a list of texts")?.map(|entry| entry.text()).collect()
    }

    /// The elements of a list, each with its own line.
    fn elements(&self, what: &str) -> Result<impl Iterator<Item = SettingEntry<'_>>, Fault> {
        let DeValue::Array(array) = self.value.get_ref() else { return Err(self.must_be(what)) };
        Ok(array.iter().map(|value| self.with(value)))
    }

    /// A command: at least one text. Arguments may be empty, the program may not.
    pub(super) fn command(&self) -> Result<Vec<String>, Fault> {
        const SHAPE: &str = "a list like [\"claude\", \"-p\"]";
        let DeValue::Array(array) = self.value.get_ref() else { return Err(self.must_be(SHAPE)) };
        let texts = array.iter().map(|value| value.get_ref().as_str().map(ToOwned::to_owned));
        let texts: Vec<String> = texts.collect::<Option<_>>().ok_or_else(|| self.must_be(SHAPE))?;
        if texts.iter().any(|text| text.contains('\0')) {
            return Err(self.fault("must not contain a NUL character"));
        }
        match texts.first() {
            Some(name) if !name.is_empty() => Ok(texts),
            Some(_) | None => Err(self.fault("must name a command")),
        }
    }

    /// A whole number, at least 1.
    pub(super) fn count<N: TryFrom<u64>>(&self) -> Result<N, Fault> {
        let wrong = || self.must_be("a whole number, at least 1");
        let DeValue::Integer(integer) = self.value.get_ref() else { return Err(wrong()) };
        let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok().filter(|n| *n >= 1);
        let number = number.ok_or_else(wrong)?;
        N::try_from(number).map_err(|_| self.fault(&format!("is too large: {number}")))
    }

    /// A duration of at least one second, in seconds.
    pub(super) fn duration(&self) -> Result<u64, Fault> {
        let seconds = self.seconds().filter(|seconds| *seconds >= 1);
        seconds.ok_or_else(|| {
            self.must_be("a number of seconds or a text like \"90s\", \"10m\" or \"8h\", at least 1s")
        })
    }

    /// A duration in seconds, which may be 0.
    pub(super) fn duration_or_zero(&self) -> Result<u64, Fault> {
        self.seconds()
            .ok_or_else(|| self.must_be("a number of seconds or a text like \"90s\", \"10m\" or \"8h\""))
    }

    fn seconds(&self) -> Option<u64> {
        match self.value.get_ref() {
            DeValue::Integer(integer) => u64::from_str_radix(integer.as_str(), integer.radix()).ok(),
            value => parse_duration(value.as_str()?).ok(),
        }
    }

    /// A whole number from 1 to a maximum.
    pub(super) fn count_to(&self, limit: u32) -> Result<u32, Fault> {
        self.count()
            .ok()
            .filter(|n| *n <= limit)
            .ok_or_else(|| self.must_be(&format!("a whole number, 1 to {limit}")))
    }

    /// A percentage above 0.
    pub(super) fn percent(&self) -> Result<u8, Fault> {
        self.count_to(100).map(|percent| percent.try_into().unwrap_or(100))
    }

    /// US dollars above 0, as millionths.
    pub(super) fn dollars(&self) -> Result<u64, Fault> {
        self.money()
            .filter(|n| *n > 0)
            .ok_or_else(|| self.must_be("an amount of US dollars, more than 0, as in 2.50"))
    }

    /// US dollars per million tokens, as millionths; 0 if it costs nothing.
    pub(super) fn price(&self) -> Result<u64, Fault> {
        self.money().ok_or_else(|| self.must_be("a price in US dollars per million tokens, as in 2.50"))
    }

    fn money(&self) -> Option<u64> {
        let amount: f64 = match self.value.get_ref() {
            DeValue::Integer(integer) => u32::from_str_radix(integer.as_str(), integer.radix()).ok()?.into(),
            DeValue::Float(float) => float.as_str().parse().ok()?,
            _ => return None,
        };
        (amount.is_finite() && (0.0..=1e9).contains(&amount)).then(|| (amount * 1e6).round() as u64)
    }

    pub(super) fn table(&self) -> Result<Vec<SettingEntry<'_>>, Fault> {
        let DeValue::Table(table) = self.value.get_ref() else { return Err(self.must_be("a table")) };
        Ok(entries(self.source, &self.full, table))
    }

    /// A path: `~/` is the home directory, and a relative path starts at the file's directory.
    pub(super) fn path(&self) -> Result<PathBuf, Fault> {
        let text = self.text()?;
        if let Some(rest) = text.strip_prefix("~/") {
            let home = home().map_err(|error| self.fault(&format!("starts at `~`, but {error}")))?;
            return self.pinned(&home.join(rest));
        }
        let path = self.source.path.parent().unwrap_or(Path::new("")).join(text);
        self.pinned(&path)
    }

    pub(super) fn paths(&self) -> Result<Vec<PathBuf>, Fault> {
        self.elements("a list of paths")?.map(|entry| entry.path()).collect()
    }

    fn pinned(&self, path: &Path) -> Result<PathBuf, Fault> {
        pin(path).map_err(|error| self.fault(&format!("is not a usable path: {error}")))
    }

    /// A list of tables, each with exactly these keys. All values are texts, and `pattern` is a valid pattern.
    pub(super) fn tables(&self, keys: &[&str]) -> Result<Vec<Vec<String>>, Fault> {
        let shape = || {
            let keys: Vec<String> = keys.iter().map(|key| format!("{key} = \"…\"")).collect();
            self.must_be(&format!("a list of tables {{ {} }}", keys.join(", ")))
        };
        let DeValue::Array(array) = self.value.get_ref() else { return Err(shape()) };
        let mut rows = vec![];
        for value in array.iter() {
            let DeValue::Table(table) = value.get_ref() else { return Err(shape()) };
            let entries = entries(self.source, &self.full, table);
            if let Some(stranger) = entries.iter().find(|entry| !keys.contains(&entry.key)) {
                return Err(stranger.unknown(keys));
            }
            let read = |entry: &SettingEntry<'_>| match entry.key {
                "pattern" => entry.pattern(),
                _ => entry.text(),
            };
            let cell = |key: &&str| entries.iter().find(|entry| entry.key == *key).map(read);
            rows.push(
                keys.iter().map(|key| cell(key).unwrap_or_else(|| Err(shape()))).collect::<Result<_, _>>()?,
            );
        }
        Ok(rows)
    }

    /// The same key with one element of its list as the value, so that an error has the element's line.
    fn with<'b>(&'b self, value: &'b Spanned<DeValue<'b>>) -> SettingEntry<'b> {
        SettingEntry {
            source: self.source,
            key: self.key,
            full: self.full.clone(),
            at: value.span().start,
            value,
        }
    }

    pub(super) fn unknown(&self, known: &[&str]) -> Fault {
        let near = known.iter().map(|word| (strsim::levenshtein(self.key, word), word)).min();
        let near = near.filter(|(steps, word)| *steps <= 1 + word.len() / 4);
        Fault {
            at: self.at,
            message: format!("unknown key '{}'", self.full),
            unknown: Some(self.key.to_owned()),
            near: near.map(|(_, word)| (*word).to_owned()),
            more: vec![],
        }
    }

    pub(super) fn must_be(&self, what: &str) -> Fault {
        self.fault(&format!("must be {what}"))
    }

    pub(super) fn fault(&self, what: &str) -> Fault {
        Fault { at: self.at, message: format!("'{}' {what}", self.full), ..Fault::default() }
    }

    /// Adds the values below this key, down to `depth` tables.
    pub(super) fn collect(&self, depth: usize, values: &mut Vec<SettingValue>) {
        match self.table() {
            Ok(entries) if depth > 0 && !entries.is_empty() => {
                entries.iter().for_each(|entry| entry.collect(depth - 1, values));
            }
            // The parser has accepted the value.
            Ok(_) | Err(_) => {
                values.extend(Value::deserialize(ValueDeserializer::from(self.value.clone())).map(|value| {
                    SettingValue {
                        key: self.full.clone(),
                        value,
                        file: self.source.path.to_owned(),
                        line: self.source.line(self.at),
                    }
                }))
            }
        }
    }
}
