//! The rows: one function for each runner.

mod more;
mod python;

use super::forms::{part, row, whole, wholes, words};
use super::{CanaryTemplate, Runner, RunnerConfig, SummaryFormat};

pub(super) fn table() -> Vec<Runner> {
    let mut rows = vec![pytest(), unittest(), nextest(), cargo(), node()];
    rows.extend(python::rows());
    rows.extend(more::rows());
    rows
}

fn canary(dir: &str, file: &str, text: &str) -> Option<CanaryTemplate> {
    Some(CanaryTemplate { file: file.into(), text: text.into(), dir: dir.into(), package: String::new() })
}

fn pytest() -> Runner {
    Runner {
        name: "pytest".into(),
        commands: words(&["pytest", "py.test", "python -m pytest"]),
        config: [python::pytest_config(), python::start_config()].concat(),
        config_options: words(&["-c", "--config-file"]),
        packages: words(&["lib*/python*/site-packages/{pytest,_pytest,pluggy,iniconfig,xdist,pytest_cov}"]),
        cache_variables: words(&[python::CACHE_VARIABLE]),
        tests: words(&["**/test_*.py", "**/*_test.py"]),
        summary: SummaryFormat::Pytest,
        canary: canary(
            "",
            "test_swarm_canary_{id}.py",
            "def test_swarm_canary_{id}():\n    raise AssertionError(\"{token}\")\n",
        ),
        ..Runner::default()
    }
}

fn unittest() -> Runner {
    Runner {
        name: "unittest".into(),
        commands: words(&["python -m unittest"]),
        config: python::start_config(),
        cache_variables: words(&[python::CACHE_VARIABLE]),
        tests: words(&["**/test*.py"]),
        summary: SummaryFormat::Unittest,
        canary: canary(
            "",
            "test_swarm_canary_{id}.py",
            "import unittest\n\n\nclass SwarmCanary(unittest.TestCase):\n    def test_swarm_canary_{id}(self):\n        \
             raise AssertionError(\"{token}\")\n",
        ),
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
        canary: canary(
            "tests",
            "aa_swarm_canary_{id}.rs",
            "#[test]\nfn swarm_canary_{id}() {\n    panic!(\"{token}\");\n}\n",
        ),
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
        canary: canary(
            "test",
            "swarm_canary_{id}.test.mjs",
            "import test from \"node:test\";\n\ntest(\"swarm canary {id}\", () => {\n  throw new \
             Error(\"{token}\");\n});\n",
        ),
        ..Runner::default()
    }
}
