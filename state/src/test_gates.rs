//! The options of the layers that look at the tests of a check: the canary and the inventory.

use serde::{Deserialize, Serialize};

use crate::inventory::ReportFormat;
use crate::model::has_twice;

/// These options, a part of [`crate::gates::Gates`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TestGates {
    /// Add no failing test to prove that a check can fail.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_canary: bool,
    /// Failing tests of the user's, for runners that swarm does not know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub canaries: Vec<OwnCanary>,
    /// Report files that the checks write.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reports: Vec<ReportFile>,
}

/// A failing test of the user's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnCanary {
    /// Its file, relative to the worker's directory.
    pub path: String,
    /// Its content, with `{token}`.
    pub text: String,
}

/// A report file that a check writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportFile {
    /// Its format.
    pub format: ReportFormat,
    /// Its path, relative to the worker's directory, or absolute. Of a directory, all files `*.xml` in it are read.
    pub path: String,
}

/// Why these options are not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TestGatesError {
    /// No `=`, or nothing before it.
    #[error("--canary requires PATH=TEXT")]
    NoPath,
    /// The file would not be in the worker's directory.
    #[error("--canary requires a path in the worker's directory")]
    Outside,
    /// Without the token, swarm could neither find the test in the output nor recognize its own file.
    #[error("--canary requires a text with {{token}}")]
    NoToken,
    /// A path that no file can have.
    #[error("--canary and --report cannot contain a NUL byte")]
    NulByte,
    /// An option that contradicts another.
    #[error("--canary cannot be used with --no-canary")]
    Contradiction,
    /// Two tests in one file, of which one would be lost.
    #[error("the same PATH of --canary is given twice")]
    SameCanary,
    /// One report twice: its tests would count twice.
    #[error("the same --report is given twice")]
    SameReport,
    /// An unknown format, or no path.
    #[error("--report requires FORMAT=PATH; the formats are {}", ReportFormat::WORDS)]
    BadReport,
    /// An option without effect.
    #[error("--canary and --report have no effect without a --check")]
    NoCheck,
}

impl TestGatesError {
    /// The next step for the user.
    pub fn hint(self) -> &'static str {
        match self {
            Self::NoPath | Self::Outside | Self::NoToken | Self::NulByte => {
                "example: --canary 'tests/canary.sh=echo {token}; exit 1'"
            }
            Self::Contradiction | Self::SameCanary | Self::SameReport => "omit one of the two",
            Self::BadReport => "example: --report junit=build/junit.xml",
            Self::NoCheck => "add the command that runs the tests: --check COMMAND",
        }
    }
}

impl OwnCanary {
    /// Parses `PATH=TEXT`.
    ///
    /// # Errors
    /// When it has no `=`.
    pub fn parse(text: &str) -> Result<Self, TestGatesError> {
        let (path, text) = text.split_once('=').ok_or(TestGatesError::NoPath)?;
        let path = path.trim_start_matches("./").to_owned();
        let text = if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") };
        Ok(Self { path, text })
    }
}

impl ReportFile {
    /// Parses `FORMAT=PATH`.
    ///
    /// # Errors
    /// When the format is unknown or a part is missing.
    pub fn parse(text: &str) -> Result<Self, TestGatesError> {
        let (format, path) = text.split_once('=').ok_or(TestGatesError::BadReport)?;
        let format = ReportFormat::of_word(format).ok_or(TestGatesError::BadReport)?;
        if path.is_empty() {
            return Err(TestGatesError::BadReport);
        }
        Ok(Self { format, path: path.to_owned() })
    }
}

impl TestGates {
    /// Checks the options.
    ///
    /// # Errors
    /// The first fault.
    pub(crate) fn validate(&self, has_check: bool) -> Result<(), TestGatesError> {
        for canary in &self.canaries {
            let mut parts = canary.path.split('/');
            if canary.path.is_empty() || canary.path.ends_with('/') {
                return Err(TestGatesError::NoPath);
            } else if canary.path.starts_with('/') || parts.any(|part| matches!(part, ".." | ".git")) {
                return Err(TestGatesError::Outside);
            } else if !canary.text.contains("{token}") {
                return Err(TestGatesError::NoToken);
            } else if canary.path.contains('\0') {
                return Err(TestGatesError::NulByte);
            }
        }
        if has_twice(self.canaries.iter().map(|canary| canary.path.as_str())) {
            return Err(TestGatesError::SameCanary);
        }
        if has_twice(self.reports.iter().map(|report| report.path.trim_start_matches("./"))) {
            return Err(TestGatesError::SameReport);
        }
        if self.reports.iter().any(|report| report.path.contains('\0')) {
            Err(TestGatesError::NulByte)
        } else if self.no_canary && !self.canaries.is_empty() {
            Err(TestGatesError::Contradiction)
        } else if !has_check && (!self.canaries.is_empty() || !self.reports.is_empty()) {
            Err(TestGatesError::NoCheck)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_canaries_and_reports_are_refused() {
        let refused = |text: &str| {
            let canary = OwnCanary::parse(text)?;
            TestGates { canaries: vec![canary], ..TestGates::default() }.validate(true)
        };
        for (text, expected) in [
            ("t/a.sh=echo {token}; exit 1", Ok(())),
            ("./a.sh={token}=1", Ok(())),
            ("a.sh", Err(TestGatesError::NoPath)),
            ("={token}", Err(TestGatesError::NoPath)),
            ("tests/={token}", Err(TestGatesError::NoPath)),
            ("/etc/a={token}", Err(TestGatesError::Outside)),
            ("a/../../b={token}", Err(TestGatesError::Outside)),
            (".git/hooks/x={token}", Err(TestGatesError::Outside)),
            ("a.sh=", Err(TestGatesError::NoToken)),
            ("a.sh=exit 1", Err(TestGatesError::NoToken)),
        ] {
            assert_eq!(refused(text), expected, "{text}");
        }
        for (text, valid) in [
            ("junit=a.xml", true),
            ("tap=/tmp/x", true),
            ("xunit=a.xml", false),
            ("junit", false),
            ("junit=", false),
        ] {
            assert_eq!(ReportFile::parse(text).is_ok(), valid, "{text}");
        }
        let canary = |text: &str| OwnCanary::parse(text).unwrap();
        let twice = vec![canary("a={token}"), canary("./a=echo {token}")];
        let twice = TestGates { canaries: twice, ..TestGates::default() };
        assert_eq!(twice.validate(true), Err(TestGatesError::SameCanary));
        let reports = ["junit=a.xml", "tap=./a.xml"].map(|text| ReportFile::parse(text).unwrap()).to_vec();
        let twice = TestGates { reports, ..TestGates::default() };
        assert_eq!(twice.validate(true), Err(TestGatesError::SameReport));
        let canaries = vec![canary("a={token}")];
        let both = TestGates { no_canary: true, canaries, ..TestGates::default() };
        assert_eq!(both.validate(true), Err(TestGatesError::Contradiction));
        let idle = TestGates { no_canary: false, ..both };
        assert_eq!(idle.validate(false), Err(TestGatesError::NoCheck));
    }
}
