//! Reads the report files of test runners: JUnit XML, TAP, and the JSON lines of libtest.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use serde::{Deserialize, Serialize};

use super::summary::{tap, tap_test};
use super::{ReportedTests, TestCounts};

/// Of a report with more tests, only the counts are kept.
const MAX_KEPT_TESTS: usize = 50_000;

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportFormat {
    /// JUnit XML.
    Junit,
    /// The Test Anything Protocol.
    Tap,
    /// The JSON lines of libtest, the test harness of Rust.
    Libtest,
}

crate::word_table!(pub ReportFormat, word, of_word, [(Junit, "junit"), (Tap, "tap"), (Libtest, "libtest")]);

impl ReportFormat {
    /// All of them, for messages.
    pub const WORDS: &'static str = "junit, tap, libtest";

    /// Reads a report; fails when it is not in this format.
    pub fn read(self, text: &str) -> Result<ReportedTests, String> {
        let mut tests = match self {
            Self::Junit => junit(text)?,
            Self::Tap => of_tap(text).ok_or_else(|| foreign("TAP"))?,
            Self::Libtest => libtest(text).ok_or_else(|| foreign("libtest JSON"))?,
        };
        if tests.ran.len() + tests.skipped.len() > MAX_KEPT_TESTS {
            tests = ReportedTests { counts: tests.counts, ..ReportedTests::default() };
        }
        // Tests with the same name: one of them ran.
        tests.skipped.retain(|name| !tests.ran.contains(name));
        Ok(tests)
    }
}

impl ReportedTests {
    fn add(&mut self, name: &str, counts: TestCounts) {
        self.counts += counts;
        let names = if counts.skipped > 0 { &mut self.skipped } else { &mut self.ran };
        names.insert(stable(name));
    }

    /// Adds the tests of another report.
    pub fn extend(&mut self, other: Self) {
        self.counts += other.counts;
        self.ran.extend(other.ran);
        self.skipped.extend(other.skipped);
    }
}

/// The error of a file that is not in the format that was requested.
fn foreign(format: &str) -> String {
    format!("it is not a {format} report")
}

/// A name without addresses, which differ from run to run.
fn stable(name: &str) -> String {
    let mut parts = name.split("0x");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("0x");
        text.push_str(part.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    }
    text
}

/// The elements `testcase`; those with an element `skipped` did not run.
#[expect(clippy::wildcard_enum_match_arm, reason = "only elements matter")]
fn junit(text: &str) -> Result<ReportedTests, String> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_end_names = false;
    let (mut tests, mut open, mut is_junit) = (ReportedTests::default(), None::<(String, TestCounts)>, false);
    loop {
        match reader.read_event().map_err(|e| format!("it is not valid XML: {e}"))? {
            Event::Eof => break,
            Event::Start(tag) | Event::Empty(tag)
                if matches!(tag.local_name().as_ref(), b"testsuite" | b"testsuites") =>
            {
                is_junit = true;
            }
            Event::Empty(tag) if tag.local_name().as_ref() == b"testcase" => {
                let (name, counts) = testcase(&tag);
                tests.add(&name, counts);
            }
            Event::Start(tag) if tag.local_name().as_ref() == b"testcase" => open = Some(testcase(&tag)),
            Event::Start(tag) | Event::Empty(tag) => {
                if let Some((_, counts)) = &mut open {
                    match tag.local_name().as_ref() {
                        b"skipped" => *counts = TestCounts { skipped: 1, ..TestCounts::default() },
                        b"failure" | b"error" if counts.skipped == 0 => counts.failed = 1,
                        _ => {}
                    }
                }
            }
            Event::End(tag) if tag.local_name().as_ref() == b"testcase" => {
                if let Some((name, counts)) = open.take() {
                    tests.add(&name, counts);
                }
            }
            _ => {}
        }
    }
    if is_junit { Ok(tests) } else { Err(foreign("JUnit")) }
}

/// The name of a test, before the elements in it were read.
fn testcase(tag: &BytesStart<'_>) -> (String, TestCounts) {
    let value = |key: &str| {
        let found = tag.try_get_attribute(key).ok().flatten();
        let text = found.map(|found| String::from_utf8_lossy(&found.value).into_owned());
        text.filter(|text| !text.is_empty())
    };
    let of = value("classname").or_else(|| value("file"));
    let name = [of, value("name")].into_iter().flatten().collect::<Vec<_>>().join("::");
    (name, TestCounts { run: 1, ..TestCounts::default() })
}

fn of_tap(text: &str) -> Option<ReportedTests> {
    let mut tests = ReportedTests::default();
    text.lines().filter_map(tap_test).for_each(|(name, counts)| tests.add(name, counts));
    Some(ReportedTests { counts: tap(text)?, ..tests })
}

fn libtest(text: &str) -> Option<ReportedTests> {
    #[derive(Deserialize)]
    struct LibtestLine<'a> {
        #[serde(rename = "type")]
        kind: &'a str,
        event: &'a str,
        name: Option<String>,
    }
    let (mut tests, mut seen) = (ReportedTests::default(), false);
    for line in text.lines() {
        let Ok(line) = serde_json::from_str::<LibtestLine<'_>>(line) else { continue };
        seen |= line.kind == "suite";
        let counts = match (line.kind, line.event) {
            ("test", "ok") => TestCounts { run: 1, ..TestCounts::default() },
            ("test", "failed" | "timeout") => TestCounts { run: 1, failed: 1, skipped: 0 },
            ("test", "ignored") => TestCounts { skipped: 1, ..TestCounts::default() },
            _ => continue,
        };
        tests.add(&line.name.unwrap_or_default(), counts);
    }
    seen.then_some(tests)
}
