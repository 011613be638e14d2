//! Other hosts and batch schedulers.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long the scheduler may take for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// How long a job must be unknown to the scheduler before its daemon counts as gone.
const GONE_PERIOD: Duration = Duration::from_secs(60);

/// The delay between two questions.
const QUERY_INTERVAL: Duration = Duration::from_secs(5);

/// Waits until Slurm has not listed a job for a minute. False as soon as it does, or if it cannot be asked.
pub(crate) fn is_job_gone(id: &str) -> bool {
    let start = Instant::now();
    loop {
        if is_listed(id) != Some(false) {
            return false;
        }
        if start.elapsed() >= GONE_PERIOD {
            return true;
        }
        std::thread::sleep(QUERY_INTERVAL);
    }
}

/// Whether Slurm lists a job as waiting, running or ending; `None` if it does not answer.
fn is_listed(id: &str) -> Option<bool> {
    if id.is_empty() || !id.chars().all(|c| c.is_ascii_digit() || c == '_') {
        return None;
    }
    let mut command = Command::new("squeue");
    command.args(["--noheader", "--format=%T", &format!("--jobs={id}")]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() >= deadline {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().ok()?;
    answer(output.status.success(), &output.stdout, &output.stderr)
}

/// Reads the answer of squeue: an ended job is not listed, or, after a few minutes, its id is invalid.
fn answer(is_success: bool, stdout: &[u8], stderr: &[u8]) -> Option<bool> {
    let is_empty = String::from_utf8_lossy(stdout).trim().is_empty();
    match is_success {
        true => Some(!is_empty),
        false => String::from_utf8_lossy(stderr).contains("Invalid job id").then_some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_is_gone_only_if_slurm_says_so() {
        for (is_success, stdout, stderr, wanted) in [
            (true, "RUNNING\n", "", Some(true)),
            (true, "PENDING\n", "", Some(true)),
            (true, "\n", "", Some(false)),
            (false, "", "slurm_load_jobs error: Invalid job id specified\n", Some(false)),
            (false, "", "slurm_load_jobs error: Unable to contact slurm controller\n", None),
            (false, "", "", None),
        ] {
            assert_eq!(answer(is_success, stdout.as_bytes(), stderr.as_bytes()), wanted, "{stdout}{stderr}");
        }
        for id in ["", "-h", "7;x", "7 8"] {
            assert_eq!(is_listed(id), None, "{id:?}");
        }
    }
}
