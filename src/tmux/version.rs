//! tmux's version, which decides the workarounds to use. Pure.

use std::fmt;

/// A version of tmux, without the letter of a patch release (3.3a is 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    major: u16,
    minor: u16,
}

impl Version {
    /// The oldest supported tmux.
    pub const MINIMUM: Self = Self::new(3, 2);

    /// Makes a version from its two numbers.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }

    /// Parses `tmux 3.3a`, `3.3a`, `next-3.7`, `openbsd-7.5`. `None` for a text without `N.N` (`master`).
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.contains("openbsd") {
            // This is the version of the operating system. Its tmux is recent: treat it as new enough, and use what
            // works everywhere.
            return Some(Self::MINIMUM);
        }
        let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
        let (major, rest) = digits.split_once('.')?;
        let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// Whether `capture-pane -p` on a control client frees its memory.
    pub(super) fn captures_without_leak(self) -> bool {
        self >= Self::new(3, 6)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tmux_versions_are_parsed() {
        for (text, version) in [
            ("tmux 3.3a\n", Some(Version::new(3, 3))),
            ("3.6b", Some(Version::new(3, 6))),
            ("tmux next-3.7", Some(Version::new(3, 7))),
            ("tmux 3.10-rc2", Some(Version::new(3, 10))),
            ("tmux openbsd-7.5", Some(Version::MINIMUM)),
            ("tmux master", None),
            ("", None),
            ("tmux 99999999.1", None),
        ] {
            assert_eq!(Version::parse(text), version, "{text:?}");
        }
        assert!(Version::new(3, 10) > Version::new(3, 9) && Version::new(2, 9) < Version::MINIMUM);
    }
}
