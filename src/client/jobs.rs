//! Workers on a Slurm host: `swarm connect` with the options that are for jobs.
//!
//! Each worker is one job with a daemon and a SWARM_DIR of its own. On the machine that submits, `--slurm HOST` serves
//! the protocol for all of them ([`serve()`]), so that every verb works as for a host with one daemon. `--attach HOST
//! NAME` opens a worker's window, `--check-slurm` checks Slurm. In the job, `--job-run` starts the daemon and stays
//! until the worker has ended ([`runner`]).

use std::ffi::OsString;

use swarm_state::host::HostName;
use swarm_state::model::WorkerName;
use swarm_state::slurm::JobState;

use crate::client::subscription::unknown_worker;
use crate::error::{Error, Result};
use crate::hosts::slurm;
use crate::out::{CommandResult, Out};
use crate::paths::Paths;
use crate::runtime::block_on;
use dir::{JobDir, JobFacts};

mod dir;
mod runner;
mod serve;
mod submit;
mod tail;
mod workers;

/// Carries out `swarm connect ARGS` for a Slurm host; `None` if the first one is for another connection.
pub(super) fn run(args: &[OsString], out: Out) -> Option<CommandResult> {
    let words: Vec<&str> = args.iter().map(|arg| arg.to_str().unwrap_or_default()).collect();
    Some(match words[..] {
        ["--slurm", host, ref args @ ..] => serve(host, args, out),
        ["--attach", host, name, ref flags @ ..] => attach(host, name, flags),
        ["--check-slurm"] => check(out),
        ["--job-run"] => block_on(runner::run(out)).unwrap_or_else(|error| Err(error.into())),
        _ => return None,
    })
}

fn host_name(text: &str) -> Result<HostName> {
    HostName::new(text).map_err(|e| Error::usage(e.to_string()))
}

fn serve(host: &str, args: &[&str], out: Out) -> CommandResult {
    let (paths, host) = (Paths::from_env()?, host_name(host)?);
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    block_on(serve::serve(workers::Workers { paths, host, args }, out))?
}

fn check(out: Out) -> CommandResult {
    out.line(&block_on(slurm::check_tracking())??)?;
    Ok(0)
}

fn attach(host: &str, name: &str, flags: &[&str]) -> CommandResult {
    let (paths, host) = (Paths::from_env()?, host_name(host)?);
    let name = WorkerName::new(name).map_err(|e| Error::usage(e.to_string()))?;
    let dir = JobDir::new(&paths, &host, &name);
    let attach = async {
        let facts =
            JobFacts::read(dir, &slurm::queue().await?).ok_or_else(|| unknown_worker(name.as_str()))?;
        match facts.state {
            JobState::Running(_) if !facts.view.closed => {
                let words = [&["attach", name.as_str()][..], flags].concat();
                slurm::run_in_job(facts.id(), facts.dir.root(), &words).await
            }
            JobState::Running(_) | JobState::Waiting(_) | JobState::Ending | JobState::Ended(_) => {
                Err(facts.not_running())
            }
        }
    };
    let code = block_on(attach)??;
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
