//! The options of the layers that look at the tests of a check: the canary and the inventory.

use serde::{Deserialize, Serialize};

use crate::gates::error::{GatesError, OMIT_ONE};
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

const CANARY_EXAMPLE: &str = "example: --canary 'tests/canary.sh=echo {token}; exit 1'";

const NO_PATH: &str = "--canary requires PATH=TEXT";

const NUL_BYTE: &str = "--canary and --report cannot contain a NUL byte";

impl OwnCanary {
    /// Parses `PATH=TEXT`; fails when it has no `=`.
    pub fn parse(text: &str) -> Result<Self, GatesError> {
        let (path, text) = text.split_once('=').ok_or_else(|| GatesError::new(NO_PATH, CANARY_EXAMPLE))?;
        let path = path.trim_start_matches("./").to_owned();
        let text = if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") };
        Ok(Self { path, text })
    }
}

impl ReportFile {
    /// Parses `FORMAT=PATH`; fails when the format is unknown or a part is missing.
    pub fn parse(text: &str) -> Result<Self, GatesError> {
        let parts = text.split_once('=').filter(|(_, path)| !path.is_empty());
        let report = parts.and_then(|(format, path)| {
            Some(Self { format: ReportFormat::of_word(format)?, path: path.to_owned() })
        });
        report.ok_or_else(|| {
            let text = format!("--report requires FORMAT=PATH; the formats are {}", ReportFormat::WORDS);
            GatesError::new(&text, "example: --report junit=build/junit.xml")
        })
    }
}

impl TestGates {
    /// Checks the options; the error is the first fault.
    pub(crate) fn validate(&self, has_check: bool) -> Result<(), GatesError> {
        for OwnCanary { path, text } in &self.canaries {
            let is_outside =
                path.starts_with('/') || path.split('/').any(|part| matches!(part, ".." | ".git"));
            GatesError::first([
                (path.is_empty() || path.ends_with('/'), NO_PATH, CANARY_EXAMPLE),
                (is_outside, "--canary requires a path in the worker's directory", CANARY_EXAMPLE),
                // Without the token, swarm could neither find the test in the output nor recognize its own file.
                (!text.contains("{token}"), "--canary requires a text with {token}", CANARY_EXAMPLE),
                (path.contains('\0'), NUL_BYTE, CANARY_EXAMPLE),
            ])?;
        }
        let is_used = !self.canaries.is_empty() || !self.reports.is_empty();
        GatesError::first([
            (
                has_twice(self.canaries.iter().map(|canary| canary.path.as_str())),
                "the same PATH of --canary is given twice",
                OMIT_ONE,
            ),
            (
                // The tests of a report would count twice.
                has_twice(self.reports.iter().map(|report| report.path.trim_start_matches("./"))),
                "the same --report is given twice",
                OMIT_ONE,
            ),
            (self.reports.iter().any(|report| report.path.contains('\0')), NUL_BYTE, CANARY_EXAMPLE),
            (
                self.no_canary && !self.canaries.is_empty(),
                "--canary cannot be used with --no-canary",
                OMIT_ONE,
            ),
            (
                !has_check && is_used,
                "--canary and --report have no effect without a --check",
                "add the command that runs the tests: --check COMMAND",
            ),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_canaries_and_reports_are_refused() {
        const OUTSIDE: &str = "--canary requires a path in the worker's directory";
        const NO_TOKEN: &str = "--canary requires a text with {token}";
        let fault =
            |gates: TestGates, has_check| gates.validate(has_check).err().map(|fault| fault.to_string());
        let refused = |text: &str| match OwnCanary::parse(text) {
            Ok(canary) => fault(TestGates { canaries: vec![canary], ..TestGates::default() }, true),
            Err(fault) => Some(fault.to_string()),
        };
        for (text, expected) in [
            ("t/a.sh=echo {token}; exit 1", None),
            ("./a.sh={token}=1", None),
            ("a.sh", Some(NO_PATH)),
            ("={token}", Some(NO_PATH)),
            ("tests/={token}", Some(NO_PATH)),
            ("/etc/a={token}", Some(OUTSIDE)),
            ("a/../../b={token}", Some(OUTSIDE)),
            (".git/hooks/x={token}", Some(OUTSIDE)),
            ("a.sh=", Some(NO_TOKEN)),
            ("a.sh=exit 1", Some(NO_TOKEN)),
        ] {
            assert_eq!(refused(text).as_deref(), expected, "{text}");
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
        let canaries = vec![canary("a={token}"), canary("./a=echo {token}")];
        let twice = TestGates { canaries, ..TestGates::default() };
        assert_eq!(fault(twice, true).unwrap(), "the same PATH of --canary is given twice");
        let reports = ["junit=a.xml", "tap=./a.xml"].map(|text| ReportFile::parse(text).unwrap()).to_vec();
        let twice = TestGates { reports, ..TestGates::default() };
        assert_eq!(fault(twice, true).unwrap(), "the same --report is given twice");
        let both = TestGates { no_canary: true, canaries: vec![canary("a={token}")], ..TestGates::default() };
        assert_eq!(fault(both.clone(), true).unwrap(), "--canary cannot be used with --no-canary");
        let idle = TestGates { no_canary: false, ..both };
        assert_eq!(fault(idle, false).unwrap(), "--canary and --report have no effect without a --check");
    }
}
