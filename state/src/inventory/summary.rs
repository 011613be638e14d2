//! Reads how many tests ran from the summaries that runners print.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::TestCounts;
use crate::runners::SummaryFormat;
use crate::screen::strip;

impl SummaryFormat {
    /// Whether the counts are a sum over the whole output: without a part of it they are too small.
    pub(super) fn is_summed(self) -> bool {
        match self {
            Self::Libtest | Self::Go | Self::Maven | Self::Dotnet | Self::Tap => true,
            Self::None
            | Self::Pytest
            | Self::Unittest
            | Self::Nextest
            | Self::Jest
            | Self::Vitest
            | Self::Mocha
            | Self::Rspec
            | Self::Phpunit
            | Self::Ctest => false,
        }
    }
}

/// The counts of all summaries in a check's output; `None` if there is none.
pub fn count(format: SummaryFormat, output: &str) -> Option<TestCounts> {
    let text = strip(output);
    match format {
        SummaryFormat::None => None,
        SummaryFormat::Pytest => listed(&text, &PYTEST),
        SummaryFormat::Unittest => unittest(&text),
        SummaryFormat::Libtest => listed(&text, &LIBTEST),
        SummaryFormat::Nextest => nextest(&text),
        SummaryFormat::Tap => tap(&text),
        SummaryFormat::Jest | SummaryFormat::Vitest => listed(&text, &TESTS_LINE),
        SummaryFormat::Mocha => mocha(&text),
        SummaryFormat::Go => go(&text),
        SummaryFormat::Rspec => rspec(&text),
        SummaryFormat::Phpunit => phpunit(&text),
        SummaryFormat::Ctest => ctest(&text),
        SummaryFormat::Dotnet => dotnet(&text),
        SummaryFormat::Maven => maven(&text),
    }
}

fn regex(text: &str) -> Regex {
    #[expect(clippy::unwrap_used, reason = "the patterns are constants, and a test uses each")]
    Regex::new(text).unwrap()
}

/// `== 3 passed, 1 skipped in 0.1s ==`
static PYTEST: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?m)^(?:=+ )?((?:no tests ran|\d+ [a-z]+(?: collected)?)(?:, \d+ [a-z ]+)*) in \d[\d.:]*s?(?: \([\d:]+\))?(?: =+)?\s*$",
    )
});
static LIBTEST: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^test result: \w+\. (.*)$"));
/// Jest: `Tests:       1 failed, 2 passed, 3 total`; Vitest: `      Tests  1 failed | 2 passed (3)`
static TESTS_LINE: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^\s*Tests:?\s+(\d+ .*)$"));
static PART: LazyLock<Regex> = LazyLock::new(|| regex(r"(\d+) ([a-z]+(?: fail)?)"));

/// The sum over everything that matches; `None` if nothing does.
fn summed(text: &str, pattern: &Regex, counts: impl Fn(&Captures<'_>) -> TestCounts) -> Option<TestCounts> {
    let mut sum = None;
    for found in pattern.captures_iter(text) {
        *sum.get_or_insert_with(TestCounts::default) += counts(&found);
    }
    sum
}

/// The number in a group of a pattern; 0 if the group has none.
fn value(found: &Captures<'_>, group: usize) -> u64 {
    found.get(group).and_then(|number| number.as_str().parse().ok()).unwrap_or(0)
}

/// The sum of the numbers in the first group of a pattern.
fn total(text: &str, pattern: &Regex) -> u64 {
    pattern.captures_iter(text).map(|found| value(&found, 1)).sum()
}

/// The sum over the lines that match, each a list such as `1 failed, 2 passed`.
fn listed(text: &str, line: &Regex) -> Option<TestCounts> {
    summed(text, line, |found| {
        let mut sum = TestCounts::default();
        for part in PART.captures_iter(&found[1]) {
            let number = value(&part, 1);
            match &part[2] {
                "passed" | "xpassed" => sum.run += number,
                "failed" | "error" | "errors" => {
                    sum.run += number;
                    sum.failed += number;
                }
                "skipped" | "ignored" | "todo" | "xfailed" | "expected fail" => sum.skipped += number,
                _ => {}
            }
        }
        sum
    })
}

/// `Ran 3 tests in 0.1s`, an empty line, `FAILED (failures=1, skipped=1)`
fn unittest(text: &str) -> Option<TestCounts> {
    static RAN: LazyLock<Regex> = LazyLock::new(|| {
        regex(r"(?m)^Ran (\d+) tests? in [\d.]+s\s*\n\s*(?:OK|FAILED|NO TESTS RAN)(?: \((.*)\))?$")
    });
    static VALUE: LazyLock<Regex> = LazyLock::new(|| regex(r"([a-z ]+)=(\d+)"));
    summed(text, &RAN, |found| {
        let (mut failed, mut skipped) = (0, 0);
        for part in VALUE.captures_iter(found.get(2).map_or("", |list| list.as_str())) {
            match part[1].trim() {
                "failures" | "errors" | "unexpected successes" => failed += value(&part, 2),
                "skipped" | "expected failures" => skipped += value(&part, 2),
                _ => {}
            }
        }
        TestCounts { run: value(found, 1).saturating_sub(skipped), failed, skipped }
    })
}

/// `Summary [   0.005s] 3 tests run: 2 passed, 1 failed, 1 skipped`
fn nextest(text: &str) -> Option<TestCounts> {
    static SUMMARY: LazyLock<Regex> =
        LazyLock::new(|| regex(r"(?m)^\s*Summary \[[^\]]*\]\s+(\d+)(?:/\d+)? tests? run: (.*)$"));
    static FAILED: LazyLock<Regex> = LazyLock::new(|| regex(r"(\d+) (?:failed|timed out|exec failed)\b"));
    static SKIPPED: LazyLock<Regex> = LazyLock::new(|| regex(r"(\d+) skipped"));
    summed(text, &SUMMARY, |found| TestCounts {
        run: value(found, 1),
        failed: total(&found[2], &FAILED),
        skipped: SKIPPED.captures(&found[2]).map_or(0, |skipped| value(&skipped, 1)),
    })
}

/// The lines of `node --test` (`# tests 3`, or `ℹ tests 3`), or else TAP.
pub(super) fn tap(text: &str) -> Option<TestCounts> {
    static TOTAL: LazyLock<Regex> =
        LazyLock::new(|| regex(r"(?m)^(?:#|ℹ) (tests|fail|cancelled|skipped|todo) (\d+)\s*$"));
    let (mut all, mut sum, mut is_node) = (0, TestCounts::default(), false);
    for found in TOTAL.captures_iter(text) {
        let number: u64 = found[2].parse().unwrap_or(0);
        match &found[1] {
            "tests" => (all, is_node) = (all + number, true),
            "fail" | "cancelled" => sum.failed += number,
            _ => sum.skipped += number,
        }
    }
    if is_node {
        return Some(TestCounts { run: u64::saturating_sub(all, sum.skipped), ..sum });
    }
    let mut sum = None;
    for line in text.lines() {
        if let Some((_, counts)) = tap_test(line) {
            *sum.get_or_insert_with(TestCounts::default) += counts;
        } else if line.starts_with("1..") {
            sum.get_or_insert_with(TestCounts::default);
        }
    }
    sum
}

/// Reads the name and the counts of `ok 1 - name # SKIP why`. Subtests are indented and do not count.
pub(super) fn tap_test(line: &str) -> Option<(&str, TestCounts)> {
    let (passed, rest) = match line.strip_prefix("not ok") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("ok")?),
    };
    if !rest.is_empty() && !rest.starts_with(' ') {
        return None;
    }
    let (name, directive) = rest.split_once(" # ").unwrap_or((rest, ""));
    let directive = directive.trim_start().to_ascii_lowercase();
    let name = name.trim().trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    let name = name.strip_prefix("- ").unwrap_or(name).trim();
    let skipped = directive.starts_with("skip") || directive.starts_with("todo");
    let (skipped, failed) = (u64::from(skipped), u64::from(!passed && !skipped));
    Some((name, TestCounts { run: 1 - skipped, failed, skipped }))
}

/// `  2 passing (6ms)`, `  1 pending`, `  1 failing`
fn mocha(text: &str) -> Option<TestCounts> {
    static LINE: LazyLock<Regex> =
        LazyLock::new(|| regex(r"(?m)^\s*(\d+) (passing|pending|failing)(?: \([\w. ]+\))?\s*$"));
    summed(text, &LINE, |found| {
        let number = value(found, 1);
        match &found[2] {
            "passing" => TestCounts { run: number, ..TestCounts::default() },
            "failing" => TestCounts { run: number, failed: number, skipped: 0 },
            _ => TestCounts { skipped: number, ..TestCounts::default() },
        }
    })
}

/// The tests of `go test -v` or `-json`. Without these options, only packages are known, and they count.
fn go(text: &str) -> Option<TestCounts> {
    static TEST: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r#"(?m)^(?:[ \t]*--- (PASS|FAIL|SKIP): |\{.*"Action":"(pass|fail|skip)".*"Test":"|(ok|FAIL)[ \t]+\S+[ \t]+(?:[\d.]+s|\(cached\)|\[[a-z ]*failed\])(?:[ \t].*)?$)"#,
        )
    });
    let (mut tests, mut packages, mut is_listed, mut seen) =
        (TestCounts::default(), TestCounts::default(), false, false);
    for found in TEST.captures_iter(text) {
        seen = true;
        let word = [1, 2, 3].iter().find_map(|&group| found.get(group)).map_or("", |word| word.as_str());
        let is_package = found.get(3).is_some();
        let counts = match word {
            "FAIL" | "fail" => TestCounts { run: 1, failed: 1, skipped: 0 },
            "SKIP" | "skip" => TestCounts { skipped: 1, ..TestCounts::default() },
            _ if found[0].contains("[no tests to run]") => TestCounts::default(),
            _ => TestCounts { run: 1, ..TestCounts::default() },
        };
        // Without -v, only tests that fail are listed.
        is_listed |= !is_package && !matches!(word, "FAIL" | "fail");
        *(if is_package { &mut packages } else { &mut tests }) += counts;
    }
    seen.then_some(if is_listed { tests } else { packages })
}

/// `3 examples, 1 failure, 1 pending`
fn rspec(text: &str) -> Option<TestCounts> {
    static LINE: LazyLock<Regex> = LazyLock::new(|| {
        regex(r"(?m)^(\d+) examples?, (\d+) failures?(?:, (\d+) pending)?(?:, \d+ errors? .*)?\s*$")
    });
    summed(text, &LINE, |found| {
        let skipped = value(found, 3);
        TestCounts { run: value(found, 1).saturating_sub(skipped), failed: value(found, 2), skipped }
    })
}

/// `OK (3 tests, 4 assertions)`, or `Tests: 3, Assertions: 4, Failures: 1, Skipped: 1.`
fn phpunit(text: &str) -> Option<TestCounts> {
    static GREEN: LazyLock<Regex> =
        LazyLock::new(|| regex(r"(?m)^OK \((\d{1,19}) tests?, \d+ assertions?\)\s*$"));
    static LINE: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^Tests: (\d+), Assertions: \d+(.*)\.\s*$"));
    static FAILED: LazyLock<Regex> = LazyLock::new(|| regex(r"(?:Errors|Failures): (\d+)"));
    static SKIPPED: LazyLock<Regex> = LazyLock::new(|| regex(r"(?:Skipped|Incomplete): (\d+)"));
    let green = summed(text, &GREEN, |found| TestCounts { run: value(found, 1), ..TestCounts::default() });
    let other = summed(text, &LINE, |found| {
        let (failed, skipped) = (total(&found[2], &FAILED), total(&found[2], &SKIPPED));
        TestCounts { run: value(found, 1).saturating_sub(skipped), failed, skipped }
    });
    [green, other].into_iter().flatten().reduce(|mut sum, counts| {
        sum += counts;
        sum
    })
}

/// `66% tests passed, 1 tests failed out of 3`
fn ctest(text: &str) -> Option<TestCounts> {
    static LINE: LazyLock<Regex> =
        LazyLock::new(|| regex(r"(?m)^\d+% tests passed, (\d+) tests? failed out of (\d+)\s*$"));
    static SKIPPED: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)\*\*\*(?:Skipped|Not Run \(Disabled\))"));
    static DISABLED: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)\*\*\*Not Run \(Disabled\)"));
    let counts =
        |found: &Captures<'_>| TestCounts { run: value(found, 2), failed: value(found, 1), skipped: 0 };
    let mut sum = summed(text, &LINE, counts)?;
    let (skipped, disabled) = (SKIPPED.find_iter(text).count(), DISABLED.find_iter(text).count());
    // Disabled tests are not in the total.
    sum.run = sum.run.saturating_sub((skipped - disabled) as u64);
    sum.skipped = skipped as u64;
    Some(sum)
}

/// `Passed!  - Failed:     0, Passed:     3, Skipped:     1, Total:     4, Duration: 9 ms`
fn dotnet(text: &str) -> Option<TestCounts> {
    static LINE: LazyLock<Regex> = LazyLock::new(|| {
        regex(r"(?m)^(?:Passed|Failed|Skipped)!\s+- Failed:\s*(\d+), Passed:\s*(\d+), Skipped:\s*(\d+),")
    });
    summed(text, &LINE, |found| {
        let failed = value(found, 1);
        TestCounts { run: failed + value(found, 2), failed, skipped: value(found, 3) }
    })
}

/// `[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 1`; the lines of classes also have a time.
fn maven(text: &str) -> Option<TestCounts> {
    static LINE: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"(?m)^(?:\[\w+\] )?\s*Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)(?:, Flakes: \d+)?\s*$",
        )
    });
    summed(text, &LINE, |found| {
        let (failed, skipped) = (value(found, 2) + value(found, 3), value(found, 4));
        TestCounts { run: value(found, 1).saturating_sub(skipped), failed, skipped }
    })
}
