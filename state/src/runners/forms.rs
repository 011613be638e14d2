//! Short forms for the rows of the table.

use super::{Runner, RunnerConfig, SummaryFormat};
use crate::words::words;

/// A row without a canary.
pub(super) fn row(
    name: &str,
    commands: &[&str],
    config: &[&[RunnerConfig]],
    tests: &[&str],
    summary: SummaryFormat,
) -> Runner {
    Runner {
        name: name.into(),
        commands: words(commands),
        config: config.concat(),
        tests: words(tests),
        summary,
        ..Runner::default()
    }
}

pub(super) fn wholes(globs: &[&str]) -> Vec<RunnerConfig> {
    globs.iter().map(|glob| whole(glob)).collect()
}

/// A file that configures a runner as a whole.
pub(super) fn whole(glob: &str) -> RunnerConfig {
    RunnerConfig { glob: glob.into(), parts: vec![], hides: false }
}

/// A file of which some parts configure a runner.
pub(super) fn part(glob: &str, parts: &[&str]) -> RunnerConfig {
    RunnerConfig { glob: glob.into(), parts: words(parts), hides: false }
}
