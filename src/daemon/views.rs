//! What clients are shown: the supervisor's state in the protocol's words, converted by hand.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use swarm_state::engine::Phase;
use swarm_state::model::Status;
use swarm_state::notice::PauseBy;

use super::slot::Slot;
use crate::protocol::{RalphView, RestartView, TmuxView, WorkerView};
use crate::{procs, wrapper};

/// The document's time format: local, without offset.
pub(crate) const LOCAL: &str = "%Y-%m-%dT%H:%M:%S%.6f";

/// One worker.
pub(crate) fn worker(slot: &Slot) -> WorkerView {
    let (spec, engine) = (&slot.spec, &slot.engine);
    let run = engine.run().0;
    let live = engine.has_pane();
    let context = &slot.driver.context;
    let exit = engine.last_exit();
    let status = engine.status();
    WorkerView {
        name: spec.name.to_string(),
        status,
        reason: reason(slot),
        exit_code: exit.and_then(swarm_state::model::Exit::code),
        signal: exit.and_then(swarm_state::model::Exit::signal),
        restarts: run.saturating_sub(1),
        pid: live
            .then(|| wrapper::started(&context.run_dir(engine.run())))
            .flatten()
            .or_else(|| slot.pane.as_ref().filter(|_| live).and_then(|p| procs::first_child(p.pid))),
        cmd: spec.cmd.clone(),
        cwd: slot.worktree.as_ref().map_or_else(|| spec.cwd.clone(), |w| w.path.clone()),
        tags: spec.tags.clone(),
        env: spec.env_names.iter().map(|n| (n.clone(), "***".to_owned())).collect::<BTreeMap<_, _>>(),
        started: slot.started.to_rfc3339(),
        tmux: TmuxView {
            socket: context.tmux.socket_path(),
            session: "swarm".into(),
            window: spec.name.to_string(),
            pane: slot.pane.as_ref().filter(|_| live).map(|p| p.id.clone()),
        },
        worktree: slot.worktree.clone(),
        screen: if status == Status::Waiting { slot.last_screen.clone() } else { vec![] },
        restart: restart(slot),
        metadata: metadata(slot),
    }
}

/// Why it is so; what cannot be saved comes first, since a loop stands still because of it.
fn reason(slot: &Slot) -> Option<String> {
    let unsaved = slot.save_error.as_ref().filter(|_| slot.unsaved);
    unsaved.map(|error| format!("its state cannot be saved: {error}")).or_else(|| slot.engine.reason())
}

fn restart(slot: &Slot) -> Option<RestartView> {
    let restarts = slot.engine.restarts()?;
    let spec = restarts.spec();
    Some(RestartView {
        when: spec.when,
        max_restarts: spec.max_restarts,
        failures: restarts.failures(),
        next: restarts.next_at().map(|at| at.to_rfc3339()),
    })
}

fn metadata(slot: &Slot) -> Value {
    let Some(ralph) = slot.engine.ralph() else { return json!({}) };
    let reason = match slot.engine.phase() {
        Phase::Stopped { reason } => Some(reason.slug()),
        _ => None,
    };
    json!({
        "ralph": true,
        "ralph_iteration": ralph.iteration,
        "max_iterations": ralph.max_iterations,
        "status": slot.engine.loop_status(),
        "paused_by": ralph.paused,
        "consecutive_failures": ralph.failures,
        "total_failures": ralph.total_failures,
        "reason": reason,
    })
}

/// One loop's numbers; `None` for a plain worker.
pub(crate) fn ralph(slot: &Slot) -> Option<RalphView> {
    let (spec, engine) = (&slot.spec, &slot.engine);
    let (ralph, wanted) = (engine.ralph()?, spec.ralph.as_ref()?);
    Some(RalphView {
        worker_name: spec.name.to_string(),
        status: engine.loop_status()?,
        worker_status: engine.status(),
        reason: reason(slot),
        prompt_file: wanted.prompt_file.clone(),
        max_iterations: ralph.max_iterations,
        current_iteration: ralph.iteration,
        started: slot.started.format(LOCAL).to_string(),
        last_iteration_started: ralph.iteration_started.map(|t| t.format(LOCAL).to_string()),
        consecutive_failures: ralph.failures,
        total_failures: ralph.total_failures,
        done_pattern: spec.done_pattern.clone(),
        inactivity_timeout: ralph.inactivity_timeout,
        paused_by: ralph.paused,
        state_file: slot.driver.context.store.paths().ralph_state(&spec.name),
    })
}

/// True for a loop that the last shutdown paused.
pub(crate) fn paused_by_shutdown(slot: &Slot) -> bool {
    !slot.engine.is_stopped() && slot.engine.ralph().is_some_and(|l| l.paused == Some(PauseBy::Shutdown))
}
