//! Starts the programs of Slurm: sbatch, squeue, scontrol, scancel and srun.
//!
//! Each short one has a timeout. A function fails when its program cannot be started, does not answer or refuses.
//! [`swarm_state::slurm`] reads their output. Called on the machine that submits the jobs, and by the job itself for
//! its requeue.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use swarm_state::slurm::{self, JobState, QUEUE_FORMAT, SUBMIT_OPTIONS};
use tokio::time::{Instant, timeout};

use crate::error::{Error, ErrorCode, Result};
use crate::paths::own_program;
use crate::runtime::block_on;

/// How long a short program may take: less than the client waits for an answer.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(7);

/// How long a submission may take. A job that is submitted after that ends by itself: its directory does not name it.
pub(crate) const SUBMIT_TIMEOUT: Duration = Duration::from_secs(30);

/// The last program that did not end in time: when, and the error. A command asks Slurm several times and waits once.
static STUCK: Mutex<Option<(Instant, Error)>> = Mutex::new(None);

/// Runs a program to its end. After one that did not end, all fail at once for a while.
async fn output(program: &str, args: &[String], limit: Duration) -> Result<Output> {
    let stuck = STUCK.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some((_, error)) = stuck.filter(|(since, _)| since.elapsed() < PROGRAM_TIMEOUT) {
        return Err(error);
    }
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut command = tokio::process::Command::from(command);
    let run = timeout(limit, command.kill_on_drop(true).output()).await;
    let failed = |why: &str| Error::new(ErrorCode::Unreachable, format!("{program}: {why}"));
    match run {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(failed("it is not installed").hint("apt-get install slurm-client"))
        }
        Ok(Err(error)) => Err(failed(&error.to_string())),
        Err(_) => {
            let error = failed(&format!("it did not end within {} s", limit.as_secs()));
            let error = error.hint(format!(
                "check Slurm on the machine that submits: {program} --version, then scontrol ping"
            ));
            *STUCK.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), error.clone()));
            Err(error)
        }
    }
}

/// Runs a program and returns its output. Fails with [`ErrorCode::Unreachable`] and the reason that the program
/// printed, unless that contains one of the texts in `harmless`.
async fn run(program: &str, args: &[String], harmless: &[&str]) -> Result<String> {
    let output = output(program, args, PROGRAM_TIMEOUT).await?;
    let reason = slurm::fault(&String::from_utf8_lossy(&output.stderr));
    if output.status.success() || harmless.iter().any(|text| reason.contains(text)) {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::new(ErrorCode::Unreachable, format!("{program}: {reason}")))
}

/// Returns the jobs of this user by id, the ended ones of the last minutes too.
pub(crate) async fn queue() -> Result<BTreeMap<String, JobState>> {
    let user = format!("--user={}", nix::unistd::geteuid());
    let format = format!("--format={QUEUE_FORMAT}");
    let args = ["--noheader".to_owned(), "--states=all".to_owned(), user, format];
    Ok(slurm::parse_queue(&run("squeue", &args, &[]).await?))
}

/// Checks that a job ends with all of its processes. Returns the name of the plugin that tracks them; fails if it
/// loses processes, or Slurm does not answer.
pub(crate) async fn check_tracking() -> Result<String> {
    let config = run("scontrol", &["show".to_owned(), "config".to_owned()], &[]).await?;
    let kind = slurm::proctrack(&config).unwrap_or("an unknown ProctrackType");
    match slurm::proctrack_fault(kind) {
        None => Ok(kind.to_owned()),
        Some(fault) => {
            let error = Error::conflict(fault);
            Err(error.hint("the administrator has to set ProctrackType=proctrack/cgroup in slurm.conf"))
        }
    }
}

/// Submits the script of a worker and returns the job's id. `args` are those of the settings.
pub(crate) async fn submit(name: &str, dir: &Path, script: &Path, args: &[String]) -> Result<String> {
    let mut words: Vec<String> = SUBMIT_OPTIONS.map(str::to_owned).to_vec();
    words.push(format!("--job-name=swarm-{name}"));
    words.push(format!("--output={}", dir.join("job.log").display()));
    words.push("--chdir=/".to_owned());
    words.extend_from_slice(args);
    words.push(script.display().to_string());
    let output = output("sbatch", &words, SUBMIT_TIMEOUT).await?;
    let id = slurm::submitted_id(&String::from_utf8_lossy(&output.stdout));
    if let (true, Some(id)) = (output.status.success(), id) {
        return Ok(id);
    }
    let reason = slurm::fault(&String::from_utf8_lossy(&output.stderr));
    let error = Error::invalid(format!("sbatch refused the job: {reason}"));
    Err(error.hint("check args of the host's section in your settings: swarm config edit"))
}

/// Cancels a job. A job that has ended already is not an error.
pub(crate) async fn cancel(id: &str) -> Result<()> {
    run("scancel", &[id.to_owned()], &["Invalid job id", "already"]).await.map(drop)
}

/// Puts a running job back into the queue. Slurm ends its processes.
pub(crate) async fn requeue(id: &str) -> Result<()> {
    // Slurm has put a preempted job back by itself.
    run("scontrol", &["requeue".to_owned(), id.to_owned()], &["pending"]).await.map(drop)
}

/// A command of this program inside a running job, for the worker in `dir`.
pub(crate) fn in_job(id: &str, dir: &Path, words: &[&str], tty: bool) -> Result<Command> {
    let mut command = Command::new("srun");
    command.args(["--overlap", "--quiet", "--nodes=1", "--ntasks=1", "--mpi=none", "--chdir=/"]);
    command.arg(format!("--jobid={id}"));
    command.arg(if tty { "--pty" } else { "--unbuffered" });
    command.arg(own_program()?).args(words).env("SWARM_DIR", dir);
    Ok(command)
}

/// Runs a command of this program inside a running job, on this terminal, and returns its exit status.
pub(crate) async fn run_in_job(id: &str, dir: &Path, words: &[&str]) -> Result<Option<i32>> {
    let command = in_job(id, dir, words, true)?;
    let status = tokio::process::Command::from(command).status().await;
    Ok(status.map_err(|e| Error::system("cannot run srun", e))?.code())
}

/// Whether Slurm lists a job as waiting, running or ending; `None` if it does not answer. Not for a runtime's threads.
pub(super) fn is_listed(id: &str) -> Option<bool> {
    if id.is_empty() || !id.chars().all(|c| c.is_ascii_digit() || c == '_') {
        return None;
    }
    let args = ["--noheader".to_owned(), "--format=%T".to_owned(), format!("--jobs={id}")];
    let output = block_on(output("squeue", &args, PROGRAM_TIMEOUT)).ok()?.ok()?;
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
    fn job_is_gone_only_if_slurm_reports_it() {
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
