//! Notices the end of a run, and ends runs.
//!
//! The wrapper in the pane records how the agent ended. When the wrapper is gone, this module combines its record,
//! what tmux reports about the pane, and whether the tmux server is still the same. An exit status that cannot be
//! determined is reported as unknown, never as success.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use swarm_state::engine::{Effect, Event, SpawnError};
use swarm_state::model::{Exit, Pane, Run, out_of_memory};

use crate::daemon::crash;
use crate::daemon::messages::RunReport;
use crate::daemon::run::context::RunContext;
use crate::daemon::run::hook_reports::HookRecord;
use crate::loops::last_growth;
use crate::procs;
use crate::tmux::{Health, PaneRow};
use crate::wrapper::{self, ExitRecord};

/// The delays before tmux is asked again for the status of a dead pane.
const STATUS_RETRY_DELAYS: [Duration; 5] = [
    Duration::from_millis(8),
    Duration::from_millis(20),
    Duration::from_millis(60),
    Duration::from_millis(200),
    Duration::from_millis(500),
];

/// How often a tmux that does not answer is asked about a run whose processes are gone. Each attempt takes about ten
/// seconds. After that the run counts as lost with its server.
const MAX_UNANSWERED_CHECKS: u32 = 2;

/// The share of one core, over the sample, above which a silent process tree counts as computing.
const COMPUTING_CPU_SHARE: f64 = 0.10;

/// The length of that sample.
const CPU_SAMPLE: Duration = Duration::from_millis(1500);

/// Watches a run's wrapper in a task of its own, which reports how the run ended.
pub(crate) fn watch(context: &RunContext, pane: Pane) {
    tokio::spawn(report_exit(context.clone(), pane));
}

async fn report_exit(context: RunContext, pane: Pane) {
    procs::wait_gone(pane.pid).await;
    drop(context.forcing.lock().await);
    let run = pane.run;
    let dir = context.run_dir(run);
    let forced = wrapper::read_forced(&dir);
    if !forced.is_empty() {
        context.report(RunReport::Forced(forced));
    }
    let record = wrapper::read_exit(&dir);
    if let Some(record) = &record
        && let Some(message) = oom_warning(record)
    {
        context.warn(message);
    }
    let report = match record {
        Some(ExitRecord { helper: true, error, .. }) => unstarted(&context, run, error),
        None if !wrapper::has_read_launch(&dir) => unstarted(&context, run, None),
        Some(record) if !record.hup => RunReport::Event(Event::Exited(run, exit_of(&record))),
        closed => {
            // The wrapper did not record the end, or its pane was closed: end what still runs.
            end_remains(pane.pid).await;
            RunReport::Event(verdict(&context, &pane, closed.as_ref()).await)
        }
    };
    crash::point("exited");
    context.report(report);
}

/// The report of a wrapper that ended before it started the agent.
fn unstarted(context: &RunContext, run: Run, said: Option<String>) -> RunReport {
    drop(context.store.clear_run_dir(&context.name, run));
    let why = said.unwrap_or_else(|| wrapper_failure(context.helper.path()));
    RunReport::SpawnFailed(run, SpawnError::Helper(why))
}

/// Why a wrapper ended before it read its launch file.
pub(crate) fn wrapper_failure(program: &Path) -> String {
    match procs::can_execute(program) {
        Ok(()) => {
            format!("swarm's wrapper in the pane ended before it started the agent: {}", program.display())
        }
        Err(cause) => {
            format!("cannot start swarm's wrapper in the pane: {}: {cause}", program.display())
        }
    }
}

pub(crate) fn exit_of(record: &ExitRecord) -> Exit {
    match (record.code, record.signal) {
        // A shell reports the signal of its last command as its own exit status.
        (Some(137), None) | (None, Some(9)) if record.oom_kills > 0 => Exit::OutOfMemory(record.memory_cap),
        (_, Some(signal)) => Exit::Signal(signal),
        (Some(code), None) => Exit::Code(code),
        (None, None) => Exit::Unknown,
    }
}

/// The warning about processes that the kernel killed, if the agent was not among them.
pub(crate) fn oom_warning(record: &ExitRecord) -> Option<String> {
    let survived = record.oom_kills > 0 && !matches!(exit_of(record), Exit::OutOfMemory(_));
    let killed = match record.oom_kills {
        1 => "a process".to_owned(),
        count => format!("{count} processes"),
    };
    survived.then(|| format!("{}: the kernel killed {killed} of the run", out_of_memory(record.memory_cap)))
}

/// The exit that tmux reports for a dead pane, if any.
pub(crate) fn exit_of_row(row: &PaneRow) -> Option<Exit> {
    match (row.dead_signal, row.dead_status) {
        (Some(signal), _) => Some(Exit::Signal(signal)),
        (None, Some(code)) => Some(Exit::Code(code)),
        (None, None) => None,
    }
}

async fn verdict(context: &RunContext, pane: &Pane, record: Option<&ExitRecord>) -> Event {
    let (tmux, run) = (&context.tmux, pane.run);
    let mut silent = 0;
    for wait in STATUS_RETRY_DELAYS {
        match tmux.health().await {
            Health::Alive { pid } if pid == pane.server_pid => {}
            Health::Alive { .. } | Health::Gone => return Event::ServerLost(run),
            Health::Unresponsive => {
                silent += 1;
                if silent == MAX_UNANSWERED_CHECKS || context.is_hurried() {
                    return Event::ServerLost(run);
                }
                context.report(RunReport::Silent);
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            }
        }
        if let Ok(rows) = tmux.list().await {
            let Some(row) = rows.iter().find(|row| row.pane == pane.id) else { return Event::PaneLost(run) };
            // With a record, the wrapper received SIGHUP from another process; the pane was not closed.
            let exit = record.map_or_else(|| exit_of_row(row), |record| Some(exit_of(record)));
            if let Some(exit) = exit.filter(|_| row.dead) {
                return Event::Exited(run, exit);
            }
        }
        tmux.nudge().await;
        tokio::time::sleep(wait).await;
    }
    Event::Exited(run, Exit::Unknown)
}

/// Ends all processes in the session of a wrapper that has ended.
async fn end_remains(root: i32) {
    for signal in [Signal::SIGTERM, Signal::SIGKILL, Signal::SIGKILL] {
        let left = tokio::task::spawn_blocking(move || procs::signal_tree(root, signal)).await;
        if left.is_ok_and(|left| left.is_empty()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Sends SIGTERM to a run's process tree. The wrapper gets it first: when the agent has ended, it ends the processes
/// that ignore the signal.
pub(crate) fn terminate(pane: &Pane) {
    let (root, run) = (pane.pid, pane.run);
    tokio::task::spawn_blocking(move || {
        procs::signal_one(root, Signal::SIGTERM);
        procs::signal_tree(root, Signal::SIGTERM);
        crash::after(&Effect::Terminate(run));
    });
}

/// Sends SIGKILL to the remaining processes and reports them. The wrapper is spared, so that it can record how the
/// agent ended, unless it is the only one.
pub(crate) fn force_kill(context: RunContext, pane: &Pane) {
    let (root, run) = (pane.pid, pane.run);
    // Locked before the first signal. If the watch holds the lock, the wrapper has ended already.
    let forcing = context.forcing.clone().try_lock_owned();
    tokio::task::spawn_blocking(move || {
        let mut hit = procs::signal_tree(root, Signal::SIGKILL);
        if hit.is_empty() {
            hit = procs::signal_one(root, Signal::SIGKILL).into_iter().collect();
        }
        let names = hit.iter().map(|p| format!("{} {}", p.pid, p.comm)).collect();
        crash::after(&Effect::ForceKill(run));
        context.report(RunReport::Forced(names));
        drop(forcing);
    });
}

/// Finds out when a run's transcript last grew and whether its processes are computing, and reports both.
pub(crate) fn probe(context: RunContext, pane: &Pane, env: BTreeMap<String, String>) {
    let (root, run) = (pane.pid, pane.run);
    tokio::spawn(async move {
        let record = HookRecord::of(&context.run_dir(run));
        let grew = move || last_growth(&env, record.session.as_deref(), record.transcript.as_deref());
        if let Some(ago) = tokio::task::spawn_blocking(grew).await.ok().flatten() {
            context.report(RunReport::Event(Event::Grew(run, ago)));
        }
        let sample = move || procs::cpu_seconds(root);
        let before = tokio::task::spawn_blocking(sample).await.unwrap_or(0.0);
        let start = tokio::time::Instant::now();
        tokio::time::sleep(CPU_SAMPLE).await;
        let after = tokio::task::spawn_blocking(sample).await.unwrap_or(0.0);
        let share = (after - before) / start.elapsed().as_secs_f64();
        crash::after(&Effect::Probe(run));
        context.report(RunReport::Event(Event::Probed(run, share >= COMPUTING_CPU_SHARE)));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_oom_kill_of_the_agent_itself_ends_it_out_of_memory() {
        let cap = 200 << 20;
        let warning =
            |killed: &str| Some(format!("out of memory (200 MiB): the kernel killed {killed} of the run"));
        for (code, signal, oom_kills, exit, message) in [
            (None, Some(9), 1, Exit::OutOfMemory(cap), None),
            (Some(137), None, 2, Exit::OutOfMemory(cap), None),
            (None, Some(9), 0, Exit::Signal(9), None),
            (Some(137), None, 0, Exit::Code(137), None),
            (Some(0), None, 1, Exit::Code(0), warning("a process")),
            (None, Some(15), 2, Exit::Signal(15), warning("2 processes")),
        ] {
            let record = ExitRecord { code, signal, oom_kills, memory_cap: cap, ..ExitRecord::default() };
            assert_eq!((exit_of(&record), oom_warning(&record)), (exit, message), "{record:?}");
        }
    }
}
