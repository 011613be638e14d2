//! Gates and budgets, for `spawn --ralph` and `loop`.

use std::path::PathBuf;

use clap::Args;
use swarm_state::promise::OnNoWork;

use super::format::{Choice, OptionLimit, choice, limit, whole};
use crate::duration::parse_nonzero_duration;

/// Gates.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Gates (conditions for a complete loop)")]
pub struct GateArgs {
    /// Shell command that must exit with 0 (repeatable)
    ///
    /// swarm runs every check, even if one fails, and one after another (see --check-jobs). It runs each with `sh -c`
    /// in the worker's directory, without input and with the agent's environment. The variable SWARM_CHECK has the
    /// path of the file that receives the check's output. When a check ends, swarm ends every process that it started,
    /// also build daemons (sccache, Gradle). To keep such a daemon, start it before the loop.
    ///
    /// swarm refuses a check whose program is not on the PATH or not executable, and warns about a script that does not
    /// exist yet. It does so only for a plain command, without quotes, variables and operators.
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    pub check: Vec<String>,
    /// Time limit for each check [default: 120s]
    #[arg(hide_short_help = true, long, value_name = "DURATION", value_parser = parse_nonzero_duration)]
    pub check_timeout: Option<u64>,
    /// Number of checks to run in parallel [default: 1]
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = whole(1..=64_u32))]
    pub check_jobs: Option<u32>,
    /// Require the agent to print <promise>TOKEN</promise>
    ///
    /// The promise must be alone on a line, or end the last line of the agent's last message. A list mark, bold text, a
    /// code span and a full stop are allowed.
    ///
    /// swarm looks for the promise in the agent's transcript (Claude Code, Codex), else in the JSON that the agent
    /// prints, else on the screen. On the screen it must be alone on a line of new output. There, swarm cannot
    /// distinguish the agent's text from the output of a tool. `swarm why` and `swarm report` show the source:
    /// transcript, result or screen.
    #[arg(long, visible_alias = "completion-tag", value_name = "TOKEN")]
    pub promise: Option<String>,
    /// Tool calls required for a promise to count [default: 1]
    ///
    /// With the default, any work in this or an earlier iteration is enough: a tool call, a changed file, a commit, or
    /// a check that turned green. With N above 1, only calls in the promise's own iteration count. 0 accepts every
    /// promise.
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = whole(0..=u64::MAX))]
    pub min_tool_calls: Option<u64>,
    /// Response to a promise with fewer tool calls [default: reject]
    #[arg(hide_short_help = true, long, value_name = "WHAT", value_parser = choice(&NO_WORK))]
    pub on_promise_no_work: Option<OnNoWork>,
    /// Ignore checks that failed before the first iteration
    ///
    /// If that ignores all checks and no other gate was requested, the loop fails at its start.
    #[arg(hide_short_help = true, long)]
    pub allow_preexisting: bool,
    /// Watch these files; a change needs approval (repeatable)
    ///
    /// GLOB is relative to the worker's directory; `**` matches subdirectories. While a watched file is changed, no
    /// iteration counts as done. `swarm ralph approve NAME` accepts the change.
    #[arg(hide_short_help = true, long, value_name = "GLOB")]
    pub protect: Vec<String>,
    /// Watch the test files that exist before the loop
    ///
    /// This needs a check that starts a known test runner, such as pytest or cargo test (swarm-config(5) lists them).
    /// If the agent changes or deletes one of these files, no iteration counts as done until the file is restored or
    /// you run `swarm ralph approve NAME`. The agent may add test files. Without this option, `swarm why` and `swarm
    /// report` list the changed test files.
    #[arg(hide_short_help = true, long)]
    pub protect_tests: bool,
    /// Watch no files; changed checks need no approval
    #[arg(hide_short_help = true, long)]
    pub allow_changed_checks: bool,
    /// Do not add a failing test to prove that checks can fail
    ///
    /// Without this option, when every gate holds, swarm adds a test that must fail (a canary) to the worker's
    /// directory, runs each check with a known test runner again, and removes the test. If a check still passes, it
    /// proves nothing, and the iteration does not count. This costs one more run of the check, also before the first
    /// iteration.
    #[arg(hide_short_help = true, long)]
    pub no_canary: bool,
    /// Failing test for an unknown test runner (repeatable)
    ///
    /// PATH is a test file that does not exist yet, relative to the worker's directory, where a --check runs it. TEXT
    /// is the content of the file: a test that fails and prints {token}, which swarm replaces. When all gates hold,
    /// swarm writes the file, runs the checks again in the worker's directory, and deletes the file. The iteration
    /// counts only if a check fails and prints the token. swarm does the same before the first iteration. If no check
    /// prints the token then, `swarm why` reports that no check runs the file. For the test runners that it knows,
    /// swarm adds such a test by itself.
    #[arg(hide_short_help = true, long, value_name = "PATH=TEXT")]
    pub canary: Vec<String>,
    /// Test report that a check writes (repeatable)
    ///
    /// A file with the names and results of the tests, which the program of a --check writes in each run. FORMAT is
    /// junit, tap or libtest (the JSON of Rust's test harness). PATH is relative to the worker's directory. If it is a
    /// directory, swarm reads all files *.xml in it. swarm reads the report after each run of the checks, and ignores
    /// one that is older than the run. If a test of the baseline is missing or skipped later, the iteration does not
    /// count until you run `swarm ralph approve NAME`.
    #[arg(hide_short_help = true, long, value_name = "FORMAT=PATH")]
    pub report: Vec<String>,
    #[command(flatten)]
    pub(crate) rooms: RoomArgs,
}

/// Gates that are tested outside of the worker's directory.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Gates (conditions for a complete loop)")]
pub struct RoomArgs {
    /// Held-out check: runs last, unknown to the agent (repeatable)
    ///
    /// A shell command that tests the work with cases that the agent cannot read. When all other gates hold, swarm
    /// makes a fresh checkout of the work, copies the files of --hidden into it, and runs COMMAND there with `sh -c`.
    /// The iteration counts only if COMMAND exits with 0. The agent receives only the failure, without the command and
    /// its output. `swarm why` and `swarm report` name the file with the
    /// output. Answers that only fit the visible checks, such as hard-coded results, do not pass. swarm refuses a
    /// program that cannot run, as for --check.
    #[arg(hide_short_help = true, long, value_name = "COMMAND", allow_hyphen_values = true)]
    pub final_check: Vec<String>,
    /// Directory with the files of the held-out checks
    ///
    /// The files keep their paths: DIR/tests/a.py becomes tests/a.py in the worker's directory of the fresh checkout. A
    /// relative DIR starts at the directory in which you type the command, as do --cwd, --spec, --prompt-file and
    /// --worktree-dir. (Globs, and PATH of --canary and --report, start at the worker's directory.) DIR must be outside
    /// of the repository and all its worktrees, and must have only files that you can read. If it is missing later, the
    /// loop pauses.
    ///
    /// An agent can see the path in the process list while `swarm loop` runs. With -d, the command ends before the
    /// agent starts.
    #[arg(hide_short_help = true, long, value_name = "DIR")]
    pub hidden: Option<PathBuf>,
    /// Pause after N failures of the held-out checks [default: 3]
    ///
    /// With more tries, an agent could find out the hidden cases one by one. `swarm ralph resume` permits N more.
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = whole(1..=u32::MAX))]
    pub final_tries: Option<u32>,
    /// Run the checks also in a fresh checkout
    ///
    /// When the checks pass in the worker's directory, swarm runs them again in a fresh checkout: a temporary
    /// directory outside of it, with the files that git would commit. Files that git ignores are missing there, except
    /// for the folders node_modules, .venv, venv and vendor, which swarm links. The iteration counts only if the checks
    /// pass there too. If they fail, the agent reads their output.
    ///
    /// The submodules that the worker's directory has are checked out too, and git's filters apply, such as those of
    /// LFS. This needs a git repository, and so do --final-check and --fix. A command that contains the path of the
    /// repository runs with the path of the checkout.
    #[arg(hide_short_help = true, long)]
    pub clean_check: bool,
    /// Prepare a fresh checkout, as with 'npm ci' (repeatable)
    ///
    /// swarm runs COMMAND with `sh -c` in each fresh checkout of --clean-check, --final-check and --fix, before the
    /// checks and without the hidden files. With --setup, swarm links no folder, so COMMAND has to install what the
    /// checks need. The iteration does not count if COMMAND fails. The time limit is that of a check. swarm refuses a
    /// program that cannot run, as for --check.
    #[arg(hide_short_help = true, long, value_name = "COMMAND", allow_hyphen_values = true)]
    pub setup: Vec<String>,
    /// Files to fix; the old ones must fail the checks (repeatable)
    ///
    /// GLOB names the source files that the agent should repair, relative to the worker's directory; `**` matches
    /// subdirectories. When the checks pass, swarm makes a fresh checkout of the work, replaces the files of GLOB by
    /// their versions from before the loop, and runs the checks that failed before the loop. They must fail again (red
    /// replay). If they pass, something else than the fix made them pass, such as a changed test, and the iteration
    /// does not count.
    #[arg(hide_short_help = true, long, value_name = "GLOB")]
    pub fix: Vec<String>,
}

/// Budgets.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Budgets (limits of a loop; off unless a default is shown)")]
pub struct BudgetArgs {
    /// Stop the loop after this time (90s, 10m, 8h)
    ///
    /// swarm also stops the agent.
    /// A DURATION is a number of seconds, or has units, as in 90s, 10m, 8h or 1h30m. Every option with DURATION accepts
    /// these forms.
    ///
    /// The time of checks counts. Time does not count while the loop is paused without an agent, or while the machine
    /// is suspended.
    #[arg(long, value_name = "DURATION", value_parser = limit(parse_nonzero_duration))]
    pub max_time: Option<OptionLimit<u64>>,
    /// Stop once the total cost reaches USD
    ///
    /// swarm stops the loop after the iteration that reaches the limit. If an iteration reports no cost, swarm pauses
    /// the loop. `claude -p` reports its cost with --output-format json. For an agent that reports only tokens, set
    /// prices in the settings (see swarm-config(5)).
    #[arg(long, value_name = "USD", value_parser = limit(parse_dollars))]
    pub max_cost: Option<OptionLimit<u64>>,
    /// Stop once input and output tokens reach N in total
    ///
    /// Cached tokens do not count. swarm stops the loop after the iteration that reaches the limit, and pauses it if an
    /// iteration reports no tokens.
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = whole(1..=u64::MAX))]
    pub max_tokens: Option<u64>,
    /// Failed iterations in a row that stop the loop [default: 5]
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = whole(1..=u32::MAX))]
    pub max_failures: Option<u32>,
    /// End an iteration after this time and start the next
    ///
    /// swarm still runs the checks. The iteration counts toward --max-iterations and is not a failure.
    #[arg(hide_short_help = true, long, value_name = "DURATION", value_parser = parse_nonzero_duration)]
    pub iteration_timeout: Option<u64>,
    /// Pause after N iterations in a row without progress
    ///
    /// An iteration without progress changes neither a file nor the set of failing checks. This needs a git repository.
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = whole(1..=u32::MAX))]
    pub no_progress: Option<u32>,
    /// End an iteration whose context is too full, in percent
    ///
    /// When PERCENT of the agent's context is used, a hook asks the agent to commit and stop. swarm ends the iteration
    /// at PERCENT + 15, or when the agent compacts its context, and starts the next. The iteration is not a failure.
    /// This needs an agent with hooks (Claude Code, Codex). The value `none` turns off the default
    /// of the settings, as for --max-time and --max-cost.
    #[arg(hide_short_help = true, long, value_name = "PERCENT", value_parser = limit(whole(1..=100_u8)))]
    pub max_context: Option<OptionLimit<u8>>,
}

pub(super) const NO_WORK: [Choice<OnNoWork>; 3] = [
    (OnNoWork::Reject, "reject", "The promise does not count"),
    (OnNoWork::Warn, "warn", "The promise counts, with a warning"),
    (OnNoWork::Accept, "accept", "The promise counts"),
];

/// Parses US dollars into millionths.
pub(crate) fn parse_dollars(text: &str) -> Result<u64, String> {
    let amount: f64 = text
        .trim_start_matches('$')
        .parse()
        .map_err(|_| "not an amount of dollars, as in 2.50".to_owned())?;
    if amount.is_finite() && (0.000_001..=1e9).contains(&amount) {
        Ok((amount * 1e6).round() as u64)
    } else {
        Err("the amount must be more than 0 and at most 1000000000, as in 2.50".into())
    }
}
