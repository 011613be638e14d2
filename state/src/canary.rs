//! The canary: a test that must fail, which proves that a check can fail.
//!
//! At the baseline and when all gates hold, the daemon adds the test, runs the check again, and removes the test. A
//! check that stays green does not run its tests. Deliberately absent: files and running checks.

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::gates::{CheckResult, Gates};
use crate::inventory::TestCounts;
use crate::proof::{Layer, Proof, ProofOutcome};
use crate::runners::{CanaryTemplate, RunnerUse, SummaryFormat};
use crate::words::unique;

#[cfg(test)]
mod tests;

/// How many places for a canary are tried at the baseline.
pub const MAX_PLACEMENTS: usize = 2;

/// Options that end a run at its first failing test.
const FAIL_FAST: [&str; 8] =
    ["-x", "-f", "--exitfirst", "--failfast", "--fail-fast", "--stop-on-failure", "--maxfail", "--bail"];

/// A canary of a check after the baseline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Canary {
    /// The check's command.
    pub check: String,
    /// The runner's name; empty for a canary of the user's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub runner: String,
    /// The places for its file, relative to the worker's directory, with `{id}`. The first one is used, the others
    /// are tried if the check stays green.
    pub files: Vec<String>,
    /// Its content, with `{token}` and `{id}`.
    pub text: String,
    /// The pattern for `{package}`; see [`CanaryTemplate::package`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub package: String,
    /// Its effect at the baseline.
    pub effect: CanaryEffect,
}

/// The effect of a canary on its check at the baseline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "why")]
pub enum CanaryEffect {
    /// The check printed the token, or failed because of it.
    Applies,
    /// The check failed in any case, before it ran the canary.
    Undecided,
    /// The check does not run the canary: why, as a phrase.
    Ignored(String),
}

/// One run of a check with its canary.
#[derive(Clone, Debug)]
pub struct CanaryRun {
    /// The result.
    pub result: CheckResult,
    /// Whether the token appeared in the output.
    pub has_token: bool,
    /// The tests that it counted.
    pub tests: Option<TestCounts>,
    /// Whether its own time limit ended it.
    pub timed_out: bool,
}

/// The directories in which a runner's canary may be, best first, relative to the worker's directory: empty, or with
/// a `/` at the end. `tests` are the test files that exist, `is_dir` finds directories, and `is_file` finds files.
pub fn placements(
    used: &RunnerUse,
    template: &CanaryTemplate,
    tests: &[String],
    is_dir: &dyn Fn(&str) -> bool,
    is_file: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    let below = |dir: &str| {
        let dir = dir.trim_start_matches("./").trim_end_matches('/');
        if dir.is_empty() || dir == "." { used.dir.clone() } else { format!("{}{dir}/", used.dir) }
    };
    let is_cargo = matches!(used.runner.summary, SummaryFormat::Libtest | SummaryFormat::Nextest);
    let mut dirs = vec![];
    if is_cargo {
        for package in values(&used.args, &["-p", "--package"]) {
            let homes = ["", "crates/", "packages/"].map(|home| below(&format!("{home}{package}")));
            dirs.extend(homes.into_iter().filter(|home| is_file(&format!("{home}Cargo.toml"))));
        }
        let manifests = values(&used.args, &["--manifest-path"]);
        dirs.extend(manifests.into_iter().filter_map(|path| Some(below(path.strip_suffix("Cargo.toml")?))));
        dirs = dirs.into_iter().map(|dir| format!("{dir}{}/", template.dir)).collect();
    } else {
        let named = used.args.iter().filter(|arg| !arg.starts_with('-')).map(|arg| below(start_of(arg)));
        dirs.extend(named.filter(|dir| *dir != used.dir && is_dir(dir)));
    }
    dirs.extend(directories(tests, &used.dir));
    dirs.push(below(&template.dir));
    dirs.push(used.dir.clone());
    if is_cargo {
        // Cargo finds tests only in this directory of a package.
        let ends_right = format!("{}/", template.dir);
        dirs.retain(|dir| dir.ends_with(&ends_right));
    }
    let mut dirs = unique(dirs);
    dirs.truncate(MAX_PLACEMENTS);
    dirs
}

/// The values of an option: `-p a`, `-pa` is not known, `--package=a`.
fn values<'a>(args: &'a [String], names: &[&str]) -> Vec<&'a str> {
    let mut found = vec![];
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if names.contains(&arg.as_str()) {
            found.extend(args.next().map(String::as_str));
        } else if let Some((name, value)) = arg.split_once('=')
            && names.contains(&name)
        {
            found.push(value);
        }
    }
    found
}

/// The directory at the start of an argument: `tests/unit` of `tests/unit/*.js`, `tests/a.py` of `tests/a.py::test_b`,
/// and `pkg` of `./pkg/...`.
fn start_of(arg: &str) -> &str {
    let arg = arg.split("::").next().unwrap_or_default();
    let arg = arg.strip_suffix("...").unwrap_or(arg);
    match arg.find(['*', '?', '[', '{']) {
        Some(at) => arg[..at].rfind('/').map_or("", |end| &arg[..end]),
        None => arg,
    }
}

/// The directories of test files below `root`: the highest first, then those with the most files.
fn directories(tests: &[String], root: &str) -> Vec<String> {
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    for test in tests.iter().filter(|test| test.starts_with(root)) {
        let end = test.rfind('/').map_or(0, |at| at + 1);
        *counts.entry(&test[..end]).or_default() += 1;
    }
    let mut dirs: Vec<(&str, usize)> = counts.into_iter().collect();
    dirs.sort_by_key(|(dir, count)| (dir.matches('/').count(), usize::MAX - count));
    dirs.into_iter().map(|(dir, _)| dir.to_owned()).collect()
}

/// The canaries of a check that are possible: one for each known runner, then those of the user, which are tried if no
/// runner's applies.
pub fn candidates(gates: &Gates, check: &str, uses: &[RunnerUse]) -> Vec<(Option<RunnerUse>, Canary)> {
    let of = |runner: &str, file: String, text: &str, package: &str| Canary {
        check: check.to_owned(),
        runner: runner.to_owned(),
        files: vec![file],
        text: text.to_owned(),
        package: package.to_owned(),
        effect: CanaryEffect::Undecided,
    };
    if gates.tests.no_canary {
        return vec![];
    }
    let known = uses.iter().filter(|used| used.check == check).filter_map(|used| {
        let template = used.runner.canary.as_ref()?;
        let canary = of(&used.runner.name, template.file.clone(), &template.text, &template.package);
        Some((Some(used.clone()), canary))
    });
    let mut found: Vec<_> = known.collect();
    let own = gates.tests.canaries.iter();
    found.extend(own.map(|own| (None, of("", own.path.clone(), &own.text, ""))));
    found
}

/// Decides at the baseline whether a canary applies to its check. `None`: another place has to be tried.
pub fn at_base(used: Option<&RunnerUse>, base: &CheckResult, run: &CanaryRun) -> Option<CanaryEffect> {
    let passed = run.result.passed;
    if run.has_token || base.passed && !passed && !run.result.cut && !run.timed_out {
        return Some(CanaryEffect::Applies);
    }
    let is_counted = match (base.tests, run.tests) {
        // One more failing test, although the output lacks its text.
        (Some(before), Some(now)) if now.failed > before.failed => return Some(CanaryEffect::Applies),
        (before, now) => before.is_some() && now.is_some(),
    };
    let stops_early = used.is_none_or(RunnerUse::stops_at_failure);
    if base.passed && passed || is_counted && !stops_early {
        return None;
    }
    Some(CanaryEffect::Undecided)
}

/// Why a canary does not apply, as a phrase.
pub fn ignored(runner: &str, files: &[String]) -> String {
    let places: Vec<&str> =
        files.iter().map(|file| file.rsplit_once('/').map_or("./", |(dir, _)| dir)).collect();
    if runner.is_empty() {
        return format!("the check does not run {}", files.join(" or "));
    }
    format!("{runner} does not run a new test in {}", places.join(" or "))
}

/// Evaluates the last run with a canary.
pub fn prove(canary: &Canary, run: &CanaryRun) -> Proof {
    let proof = |outcome, found: &str| Proof::of_check(Layer::Canary, &canary.check, outcome, found);
    if run.result.cut {
        return proof(
            ProofOutcome::Unproven,
            "the loop's time was over before the check ended with a failing test",
        );
    }
    if run.timed_out && !run.has_token {
        return proof(ProofOutcome::Unproven, "with a failing test, the check did not end in its time");
    }
    match (&canary.effect, run.result.passed) {
        (CanaryEffect::Ignored(why), _) => proof(ProofOutcome::Unproven, why),
        (_, false) => proof(ProofOutcome::Holds, "the check fails with a failing test"),
        (CanaryEffect::Applies, true) => proof(ProofOutcome::Fails, "the check passes although a test fails"),
        (CanaryEffect::Undecided, true) => proof(
            ProofOutcome::Unproven,
            "the check passes although a test fails; the check failed before the first iteration, so it is unknown \
             whether it runs that test",
        ),
    }
}

impl RunnerUse {
    fn stops_at_failure(&self) -> bool {
        let has = |name: &str| self.args.iter().any(|arg| arg.split('=').next() == Some(name));
        if matches!(self.runner.summary, SummaryFormat::Libtest | SummaryFormat::Nextest) {
            return !has("--no-fail-fast");
        }
        FAIL_FAST.into_iter().any(has)
    }
}

/// A text with its placeholders filled in.
pub fn filled(text: &str, token: &str, package: &str) -> String {
    text.replace("{token}", token).replace("{id}", token).replace("{package}", package)
}

/// The package that a file names, by [`CanaryTemplate::package`].
pub fn package_in(text: &str, pattern: &str) -> Option<String> {
    let found = Regex::new(pattern).ok()?.captures(text)?.get(1)?.as_str().to_owned();
    Some(found)
}
