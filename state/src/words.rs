//! The words of enums, and amounts, sizes, durations and lists as text, for every message.

/// Gives each value of an enum its word: a row for each value. Defines `ALL`, `Display`, the function that returns the
/// word, and, if a second function is named, the one that finds the value of a word.
#[macro_export]
macro_rules! word_table {
    ($vis:vis $type:ident, $word:ident, [$(($value:ident, $text:literal)),+ $(,)?]) => {
        impl $type {
            /// All values, in the order of the table.
            $vis const ALL: [Self; [$($text),+].len()] = [$(Self::$value),+];

            /// The word of the table. Options, files, messages or JSON have it: do not rename it.
            $vis fn $word(self) -> &'static str {
                match self {
                    $(Self::$value => $text),+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.$word())
            }
        }
    };
    ($vis:vis $type:ident, $word:ident, $of:ident, $rows:tt) => {
        $crate::word_table!($vis $type, $word, $rows);

        impl $type {
            /// The value with this word.
            $vis fn $of(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.$word() == word)
            }
        }
    };
}

/// Converts a checked text from a `String` and into one, for serde.
macro_rules! serde_text {
    ($type:ident, $error:ty, $parse:expr, $text:expr) => {
        impl TryFrom<String> for $type {
            type Error = $error;

            fn try_from(text: String) -> Result<Self, $error> {
                $parse(&text)
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                $text(&value).into()
            }
        }
    };
}
pub(crate) use serde_text;

pub(crate) fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|&word| word.to_owned()).collect()
}

/// Returns the items without repetitions, each at its first place.
pub fn unique<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut kept = vec![];
    for item in items {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    kept
}

/// The text in single quotes for a shell.
pub(crate) fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// `$1.50`; four decimal places when the amount is not a whole number of cents.
pub fn dollars(millionths: u64) -> String {
    let amount = millionths as f64 / 1e6;
    if millionths.is_multiple_of(10_000) { format!("${amount:.2}") } else { format!("${amount:.4}") }
}

/// `1 restart`, `2 restarts`.
pub fn counted<N: std::fmt::Display + PartialEq + From<u8>>(count: N, thing: &str) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {thing}{ending}")
}

/// `a, b and 3 more`: lists at most `most` things.
pub fn named(things: &[String], most: usize) -> String {
    match things.split_at_checked(most) {
        Some((shown, rest)) if !rest.is_empty() => format!("{} and {} more", shown.join(", "), rest.len()),
        _ => things.join(", "),
    }
}

/// The first 60 characters of a text in quotes, on one line.
pub(crate) fn excerpt(text: &str) -> String {
    let mut start: String = text.chars().take(60).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    format!("{start:?}")
}

/// `42s`, `3m 42s`, `1h 3m 42s`, with `gap` between the parts; the log uses an empty gap.
pub fn duration(seconds: u64, gap: &str) -> String {
    let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (h, m) {
        (0, 0) => format!("{s}s"),
        (0, _) => format!("{m}m{gap}{s}s"),
        _ => format!("{h}h{gap}{m}m{gap}{s}s"),
    }
}

/// `8.0 GiB`, `200 MiB`.
pub fn size(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    if bytes < 1024 * MIB {
        return format!("{} MiB", bytes / MIB);
    }
    format!("{:.1} GiB", bytes as f64 / (1024 * MIB) as f64)
}
