//! The rows: one function for each runner.

use super::{Runner, RunnerConfig, SummaryFormat, canaries};

pub(super) fn table() -> Vec<Runner> {
    vec![pytest(), unittest(), cargo(), node()]
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|&word| word.to_owned()).collect()
}

/// A file that configures a runner as a whole.
fn whole(glob: &str) -> RunnerConfig {
    RunnerConfig { glob: glob.into(), parts: vec![] }
}

/// A file of which some parts configure a runner.
fn part(glob: &str, parts: &[&str]) -> RunnerConfig {
    RunnerConfig { glob: glob.into(), parts: words(parts) }
}

fn pytest() -> Runner {
    Runner {
        name: "pytest".into(),
        commands: words(&["pytest", "py.test", "python -m pytest"]),
        config: vec![
            whole("**/conftest.py"),
            whole("pytest.ini"),
            whole(".pytest.ini"),
            part("pyproject.toml", &["tool.pytest"]),
            part("tox.ini", &["pytest"]),
            part("setup.cfg", &["tool:pytest"]),
        ],
        tests: words(&["**/test_*.py", "**/*_test.py"]),
        summary: SummaryFormat::Pytest,
        canary: canaries::pytest(),
        ..Runner::default()
    }
}

fn unittest() -> Runner {
    Runner {
        name: "unittest".into(),
        commands: words(&["python -m unittest"]),
        tests: words(&["**/test*.py"]),
        summary: SummaryFormat::Unittest,
        canary: canaries::unittest(),
        ..Runner::default()
    }
}

fn cargo() -> Runner {
    Runner {
        name: "cargo".into(),
        commands: words(&["cargo test", "cargo t"]),
        config: vec![
            whole(".cargo/config.toml"),
            whole(".cargo/config"),
            part("**/Cargo.toml", &["test", "lib", "package.autotests", "package.build"]),
        ],
        tests: words(&["**/tests/**/*.rs"]),
        summary: SummaryFormat::Libtest,
        canary: canaries::cargo(),
        ..Runner::default()
    }
}

fn node() -> Runner {
    Runner {
        name: "node".into(),
        commands: words(&["node --test"]),
        config: vec![whole(".noderc"), part("package.json", &["scripts", "type"])],
        tests: words(&["**/*.test.js", "**/*.test.mjs", "**/*.test.cjs", "**/test/**/*.js"]),
        summary: SummaryFormat::Tap,
        canary: canaries::node(),
        ..Runner::default()
    }
}
