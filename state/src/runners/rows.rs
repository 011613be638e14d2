//! The rows: one function for each runner.

mod more;
mod python;

use super::forms::{part, row, whole, wholes};
use super::{Runner, RunnerConfig, SummaryFormat, canaries};
use crate::words::words;

/// All built-in rows.
pub fn table() -> Vec<Runner> {
    let mut rows = vec![pytest(), unittest(), nextest(), cargo(), node()];
    rows.extend(python::rows());
    rows.extend(more::rows());
    rows.iter_mut().for_each(|row| row.canary = canaries::of(&row.name));
    rows
}

fn pytest() -> Runner {
    Runner {
        name: "pytest".into(),
        commands: words(&["pytest", "py.test", "python -m pytest"]),
        config: [python::pytest_config(), python::start_config()].concat(),
        config_options: words(&["-c", "--config-file"]),
        packages: words(&["lib*/python*/site-packages/{pytest,_pytest,pluggy,iniconfig,xdist,pytest_cov}"]),
        cache_variables: words(&[python::CACHE_VARIABLE]),
        tests: words(&["**/test_*.py", "**/*_test.py", "**/{test,tests}/__init__.py"]),
        summary: SummaryFormat::Pytest,
        ..Runner::default()
    }
}

fn unittest() -> Runner {
    Runner {
        name: "unittest".into(),
        commands: words(&["python -m unittest"]),
        config: python::start_config(),
        cache_variables: words(&[python::CACHE_VARIABLE]),
        tests: words(&["**/test*.py", "**/{test,tests}/__init__.py"]),
        summary: SummaryFormat::Unittest,
        ..Runner::default()
    }
}

fn cargo() -> Runner {
    Runner {
        name: "cargo".into(),
        commands: words(&["cargo test", "cargo t"]),
        config: cargo_config(),
        config_options: words(&["--manifest-path", "--config"]),
        dir_options: words(&["-C"]),
        tests: words(&["**/tests/**/*.rs"]),
        summary: SummaryFormat::Libtest,
        ..Runner::default()
    }
}

fn cargo_config() -> Vec<RunnerConfig> {
    let files = [".cargo/config.toml", ".cargo/config", "~/.cargo/config.toml", "~/.cargo/config"];
    let manifest = [
        "test",
        "lib",
        "package.autotests",
        "package.build",
        "package.edition",
        "profile",
        "workspace.default-members",
        "workspace.exclude",
    ];
    [
        wholes(&files),
        wholes(&["**/build.rs", "rust-toolchain", "rust-toolchain.toml"]),
        vec![part("**/Cargo.toml", &manifest)],
    ]
    .concat()
}

fn nextest() -> Runner {
    Runner {
        config: [cargo_config(), wholes(&[".config/nextest.toml"])].concat(),
        dir_options: words(&["-C"]),
        config_options: words(&["--manifest-path", "--config", "--config-file"]),
        ..row("nextest", &["cargo nextest"], &[], &["**/tests/**/*.rs"], SummaryFormat::Nextest)
    }
}

fn node() -> Runner {
    Runner {
        name: "node".into(),
        commands: words(&["node --test"]),
        config: vec![whole("node.config.json"), part("package.json", &["type"])],
        config_options: words(&["--import", "--require", "-r", "--env-file", "--experimental-config-file"]),
        tests: words(&["**/*.test.js", "**/*.test.mjs", "**/*.test.cjs", "**/test/**/*.js"]),
        summary: SummaryFormat::Tap,
        ..Runner::default()
    }
}
