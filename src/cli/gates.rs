//! Gates and budgets, for `spawn --ralph` and `loop`.

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use swarm_state::promise::OnNoWork;

/// Gates.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Gates (all requested gates must hold)")]
pub struct GateArgs {
    /// Shell command that must exit with 0 (repeatable)
    ///
    /// Checks run in order, with `sh -c` in the worker's directory, without input and in the agent's environment.
    /// SWARM_CHECK names the file that receives the output. When a check ends, swarm ends every process that the check
    /// started, even a daemon such as those of sccache and Gradle. Start such a daemon yourself before the loop.
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    pub check: Vec<String>,
    /// Time limit for each check [default: 120]
    #[arg(hide_short_help = true, long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub check_timeout: Option<u64>,
    /// Number of checks to run in parallel [default: 1]
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub check_jobs: Option<u32>,
    /// Require the agent to print <promise>TOKEN</promise>
    ///
    /// Only the agent's own text counts. swarm reads it in the CLI's transcript if there is one (Claude Code, Codex),
    /// otherwise in the JSON that the agent prints, otherwise on the screen, where the promise must be alone on a line
    /// of new output and a tool can print it as well. `swarm why` and `swarm report` show the source: transcript,
    /// result or screen.
    #[arg(long, visible_alias = "completion-tag", value_name = "TOKEN")]
    pub promise: Option<String>,
    /// Tool calls required for a promise to count [default: 1]
    ///
    /// They are counted in the iteration of the promise. With 0, every promise counts.
    #[arg(hide_short_help = true, long, value_name = "N")]
    pub min_tool_calls: Option<u64>,
    /// Response to a promise without tool calls [default: reject]
    #[arg(hide_short_help = true, long, value_name = "WHAT", value_enum)]
    pub on_promise_no_work: Option<NoWork>,
    /// Require only the checks that passed in the baseline
    #[arg(hide_short_help = true, long)]
    pub allow_preexisting: bool,
    /// Files that no iteration may change (repeatable)
    ///
    /// `**` matches subdirectories.
    #[arg(long, value_name = "GLOB")]
    pub protect: Vec<String>,
    /// Allow changes to protected files and check scripts
    #[arg(hide_short_help = true, long)]
    pub allow_changed_checks: bool,
}

/// Budgets.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Budgets")]
pub struct BudgetArgs {
    /// Stop the loop after this time, checks included
    ///
    /// Time while the machine is suspended does not count.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_time: Option<u64>,
    /// Stop once the total cost exceeds USD
    ///
    /// swarm stops the loop after the iteration that exceeds the limit, and pauses it if an iteration reports no cost.
    /// Claude Code reports its cost with --output-format json. For an agent that reports only tokens, set prices in the
    /// settings.
    #[arg(long, value_name = "USD", value_parser = parse_dollars)]
    pub max_cost: Option<u64>,
    /// Stop once the tokens exceed N; cached ones do not count
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
    /// Failures in a row that stop the loop [default: 5]
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_failures: Option<u32>,
    /// End an iteration after this time and start the next
    #[arg(hide_short_help = true, long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub iteration_timeout: Option<u64>,
    /// Pause after N iterations in a row without changes
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub no_progress: Option<u32>,
}

/// [`OnNoWork`] as an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoWork(pub OnNoWork);

impl ValueEnum for NoWork {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(OnNoWork::Reject), Self(OnNoWork::Warn), Self(OnNoWork::Accept)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self.0 {
            OnNoWork::Reject => PossibleValue::new("reject").help("The promise does not count"),
            OnNoWork::Warn => PossibleValue::new("warn").help("The promise counts, with a warning"),
            OnNoWork::Accept => PossibleValue::new("accept").help("The promise counts"),
        })
    }
}

/// Parses US dollars into millionths.
fn parse_dollars(text: &str) -> Result<u64, String> {
    let amount: f64 = text
        .trim_start_matches('$')
        .parse()
        .map_err(|_| "not an amount of dollars, as in 2.50".to_owned())?;
    if amount.is_finite() && (0.000_001..=1e9).contains(&amount) {
        Ok((amount * 1e6).round() as u64)
    } else {
        Err("the amount must be more than 0, as in 2.50".into())
    }
}
