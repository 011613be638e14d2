//! The progress file: the result of each iteration, for the next agents.

use std::fmt;

/// The first lines of a new file.
pub const HEADING: &str = "# Progress\n";

/// One iteration's part.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgressEntry<'a> {
    /// The iteration.
    pub iteration: u32,
    /// Whether every gate held.
    pub passed: bool,
    /// Tool calls, if they could be counted.
    pub steps: Option<u64>,
    /// Cost in US dollars, if reported.
    pub cost: Option<f64>,
    /// Seconds.
    pub duration: f64,
    /// Each check, whether it passed, and its output.
    pub checks: Vec<(&'a str, bool, &'a str)>,
    /// The other reasons why the loop did not end.
    pub remarks: &'a [String],
}

impl fmt::Display for ProgressEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |passed| if passed { "PASS" } else { "FAIL" };
        writeln!(f, "## Iteration {} — {}", self.iteration, word(self.passed))?;
        let unknown = || "unknown".to_owned();
        writeln!(f, "- Steps: {}", self.steps.map_or_else(unknown, |steps| steps.to_string()))?;
        writeln!(f, "- Cost: {}", self.cost.map_or_else(unknown, |cost| format!("${cost:.4}")))?;
        writeln!(f, "- Duration: {:.1}s", self.duration)?;
        if !self.checks.is_empty() {
            writeln!(f, "- Checks:")?;
        }
        for (check, passed, output) in &self.checks {
            match last_informative_line(output).filter(|_| !passed) {
                Some(line) => writeln!(f, "  - {check}: FAIL — {line}")?,
                None => writeln!(f, "  - {check}: {}", word(*passed))?,
            }
        }
        self.remarks.iter().try_for_each(|remark| writeln!(f, "- {remark}"))
    }
}

/// The last line with a letter or digit, shortened to one line. A final `exit status` line counts only if there is no
/// other.
fn last_informative_line(output: &str) -> Option<String> {
    let mut lines = output.lines().rev().filter(|line| line.chars().any(char::is_alphanumeric)).peekable();
    let last = *lines.peek()?;
    let line = lines.find(|line| !line.starts_with("exit status ")).unwrap_or(last);
    Some(line.trim().chars().take(200).collect())
}
