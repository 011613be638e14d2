//! The supervisor's state as clients see it: the wire types, filled from the slots.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use swarm_state::cause::Cause;
use swarm_state::model::Status;
use swarm_state::notice::PauseBy;

use tokio::time::Instant;

use crate::daemon::messages::MemoryPressure;
use crate::daemon::slot::Slot;
use crate::daemon::verbs::ralph_resume::limits_to_raise;
use crate::protocol::{HeldView, RalphView, RestartView, TaskListView, TmuxView, WorkerView};
use crate::{procs, wrapper};

/// The document's time format: local, without offset.
pub(crate) const LOCAL_TIME_FORMAT: &str = "%Y-%m-%dT%H:%M:%S%.6f";

fn worker(slot: &Slot) -> WorkerView {
    let (spec, engine) = (&slot.spec, &slot.engine);
    let live = engine.has_pane();
    let context = &slot.driver.context;
    let exit = engine.last_exit();
    let status = slot.status();
    WorkerView {
        name: spec.name.to_string(),
        status,
        reason: reason(slot),
        cause: cause(slot),
        exit_code: exit.and_then(swarm_state::model::Exit::code),
        signal: exit.and_then(swarm_state::model::Exit::signal),
        // The iterations of a loop do not count as restarts.
        restarts: if engine.ralph().is_some() { 0 } else { engine.restart_count() },
        pid: live
            .then(|| wrapper::started(&context.run_dir(engine.run())))
            .flatten()
            .or_else(|| slot.pane.as_ref().filter(|_| live).and_then(|p| procs::first_child(p.pid))),
        cmd: spec.cmd.clone(),
        cwd: slot.cwd().to_owned(),
        tags: spec.tags.clone(),
        env: spec.env_names.iter().map(|n| (n.clone(), "***".to_owned())).collect::<BTreeMap<_, _>>(),
        started: slot.origin.started.to_rfc3339(),
        tmux: TmuxView {
            socket: context.tmux.socket_path(),
            session: "swarm".into(),
            window: spec.name.to_string(),
            pane: slot.pane.as_ref().filter(|_| live).map(|p| p.id.clone()),
        },
        worktree: slot.worktree.clone(),
        requests: slot.requests.open(Instant::now()),
        held: engine.held_by().map(|(by, since)| HeldView { by, since: since.to_rfc3339() }),
        screen: if live && engine.status() == Status::Waiting { screen(slot) } else { vec![] },
        restart: restart(slot),
        metadata: metadata(slot),
        ready: engine.is_ready(),
        idle: engine.is_idle(),
        context: engine.context_percent(),
        ended: engine.ended_by_swarm(),
        outage: engine.outage().map(|outage| outage.kind),
        raise: limits_to_raise(slot),
        parent: spec.parent.clone(),
        sandbox: spec.sandbox.as_ref().map(|sandbox| sandbox.kind),
        network: spec.sandbox.as_ref().map(|sandbox| sandbox.net),
        allowed_hosts: spec.sandbox.as_ref().map(|sandbox| sandbox.hosts.clone()).unwrap_or_default(),
        tasks: tasks(slot),
        caps: spec.caps,
        seen: slot.is_seen(),
        host: None,
        since: slot.status_since.filter(|since| since.status == status).map(|since| since.at.to_rfc3339()),
        caps_in_force: wrapper::caps_in_force(&context.run_dir(engine.run())).filter(|_| live),
    }
}

fn tasks(slot: &Slot) -> Option<TaskListView> {
    let gate = slot.spec.ralph.as_ref()?.gates.tasks.as_ref()?;
    let (turn, count) = slot.story.clone().unzip();
    Some(TaskListView {
        dir: gate.dir.clone(),
        mode: turn.as_ref().map(|turn| turn.mode),
        story: turn.map(|turn| turn.story),
        done: count.map(|(done, _)| done),
        total: count.map(|(_, total)| total),
    })
}

/// The last lines of its screen, without control sequences.
fn screen(slot: &Slot) -> Vec<String> {
    let lines = slot.last_screen.lines().map(str::trim_end).filter(|line| !line.is_empty());
    lines.map(swarm_state::screen::printable).collect()
}

/// The most bytes of JSON for all views of an answer; less than the limit of a line.
const MAX_VIEWS_BYTES: usize = 900_000;

/// One worker, shortened if it would not fit an answer.
pub(crate) fn whole(slot: &Slot) -> WorkerView {
    let mut view = worker(slot);
    fit(std::slice::from_mut(&mut view));
    view
}

/// All workers of a list, shortened so that they fit an answer: a command may contain a whole prompt.
pub(crate) fn workers<'a>(slots: impl Iterator<Item = &'a Slot>) -> Vec<WorkerView> {
    let mut views: Vec<WorkerView> = slots.map(worker).collect();
    fit(&mut views);
    views
}

/// Shortens the fields that a user can make long, equally for each worker, if the answer would be too long.
fn fit(views: &mut [WorkerView]) {
    let size = |views: &[WorkerView]| serde_json::to_vec(views).map_or(usize::MAX, |text| text.len());
    if size(views) <= MAX_VIEWS_BYTES {
        return;
    }
    // Half of a worker's share is for the fields that are never long; a byte can become six in JSON.
    let share = MAX_VIEWS_BYTES / views.len().max(1) / 12;
    for view in views {
        shorten_all(&mut view.cmd, share);
        shorten_all(&mut view.tags, share / 4);
        shorten_all(&mut view.screen, share / 4);
        if let Some(story) = view.tasks.as_mut().and_then(|tasks| tasks.story.as_mut()) {
            shorten(story, share / 4);
        }
        // The cause holds the same texts. Without it clients have the status and the start of the reason.
        if let Some(reason) = view.reason.as_mut().filter(|reason| reason.len() > share / 4) {
            shorten(reason, share / 4);
            view.cause = None;
        }
        let mut left = share / 4;
        view.env.retain(|name, _| {
            let fits = name.len() <= left;
            left = left.saturating_sub(name.len());
            fits
        });
    }
}

/// Shortens texts to `room` bytes in total, plus one text, and marks the cut with `…`.
fn shorten_all(texts: &mut Vec<String>, room: usize) {
    let mut left = room;
    let mut kept = 0;
    for text in texts.iter_mut() {
        kept += 1;
        if text.len() > left {
            shorten(text, left);
            break;
        }
        left -= text.len();
    }
    texts.truncate(kept);
}

fn shorten(text: &mut String, room: usize) {
    if text.len() > room {
        let end = (0..=room).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
}

/// Why the worker is in its state. A failed save comes first, because the loop waits for it.
pub(crate) fn cause(slot: &Slot) -> Option<Cause> {
    if let Some(theirs) = &slot.origin.legacy {
        return Some(Cause::EarlierSwarm { status: theirs.status.clone() });
    }
    if let Some(error) = slot.saving.waits_for_disk() {
        return Some(Cause::DiskFull { error });
    }
    if let Some(MemoryPressure { percent, limit }) = slot.saving.waits_for_pressure() {
        return Some(Cause::MemoryPressure { percent, limit });
    }
    if let Some(error) = slot.saving.error() {
        return Some(Cause::Unsaved { error: error.to_string() });
    }
    match slot.checking.as_slice() {
        // A kill is more important.
        [first, rest @ ..] if !slot.engine.is_killed() => {
            Some(Cause::Checking { check: first.clone(), more: rest.len() })
        }
        _ => slot.engine.cause().map(|cause| match cause {
            Cause::Lost { .. } => Cause::Lost { host: slot.origin.lost_with.clone() },
            other => with_request(slot, other),
        }),
    }
}

/// The cause of a worker that needs a person, in the words of the request that its agent's hook holds open.
fn with_request(slot: &Slot, cause: Cause) -> Cause {
    let open = slot.requests.open(Instant::now());
    match (cause, open.first()) {
        (Cause::NeedsPerson { .. }, Some(open)) => {
            Cause::NeedsPerson { text: open.request.headline(), answerable: true }
        }
        (cause, _) => cause,
    }
}

/// The same as text.
pub(crate) fn reason(slot: &Slot) -> Option<String> {
    cause(slot).map(|cause| cause.text())
}

/// The sentence of `ls` about all workers whose state cannot be saved.
pub(crate) fn unsaved<'a>(slots: impl Iterator<Item = &'a Slot>) -> Option<String> {
    let why = |slot: &&Slot| slot.saving.waits_for_disk().is_some() || slot.saving.error().is_some();
    let mut slots = slots.filter(why);
    let (first, more) = (slots.next()?, slots.count());
    let (name, why) = (&first.spec.name, reason(first)?);
    let others = if more == 0 { String::new() } else { format!(" (and {more} more)") };
    Some(format!("worker '{name}'{others}: {why}; swarm continues when there is free disk space"))
}

fn restart(slot: &Slot) -> Option<RestartView> {
    let restarts = slot.engine.restarts()?;
    let spec = restarts.spec;
    Some(RestartView {
        when: spec.when,
        max_restarts: spec.max_restarts,
        failures: restarts.failures,
        next: restarts.next_at().map(|at| at.to_rfc3339()),
    })
}

fn metadata(slot: &Slot) -> Value {
    let mut metadata = loop_metadata(slot);
    if slot.origin.legacy.is_some() {
        metadata["earlier_swarm"] = true.into();
    }
    metadata
}

fn loop_metadata(slot: &Slot) -> Value {
    let Some(ralph) = slot.engine.ralph() else { return json!({}) };
    json!({
        "ralph": true,
        "ralph_iteration": ralph.iteration,
        "max_iterations": ralph.max_iterations,
        "iteration_started": ralph.iteration_started.map(|at| at.to_rfc3339()),
        "cost_usd": ralph.cost_usd(),
        "status": slot.engine.loop_status(),
        "paused_by": ralph.paused,
        "consecutive_failures": ralph.failures,
        "total_failures": ralph.total_failures,
        "reason": slot.reason_slug(),
    })
}

/// One loop's numbers; `None` for a plain worker.
pub(crate) fn ralph(slot: &Slot) -> Option<RalphView> {
    let (spec, engine) = (&slot.spec, &slot.engine);
    let (ralph, wanted) = (engine.ralph()?, spec.ralph.as_ref()?);
    Some(RalphView {
        worker_name: spec.name.to_string(),
        status: engine.loop_status()?,
        worker_status: slot.status(),
        reason: reason(slot),
        cause: cause(slot),
        prompt_file: wanted.prompt_file.clone(),
        max_iterations: ralph.max_iterations,
        current_iteration: ralph.iteration,
        started: slot.origin.started.format(LOCAL_TIME_FORMAT).to_string(),
        last_iteration_started: ralph.iteration_started.map(|t| t.format(LOCAL_TIME_FORMAT).to_string()),
        consecutive_failures: ralph.failures,
        total_failures: ralph.total_failures,
        done_pattern: spec.done_pattern.clone(),
        inactivity_timeout: ralph.inactivity_timeout,
        question_timeout: Some(ralph.question_timeout),
        paused_by: ralph.paused,
        state_file: slot.driver.context.store.paths().ralph_state(&spec.name),
        raise: limits_to_raise(slot),
        tasks: tasks(slot),
    })
}

pub(crate) fn paused_by_shutdown(slot: &Slot) -> bool {
    !slot.engine.is_stopped() && slot.engine.ralph().is_some_and(|l| l.paused == Some(PauseBy::Shutdown))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(cmd: &[String]) -> WorkerView {
        let line =
            include_str!("../../tests/golden/calls.jsonl").lines().find(|l| l.contains("\"restarts\""));
        let answer: Value = serde_json::from_str(line.unwrap()).unwrap();
        let view = [&answer["ok"], &answer["ok"]["worker"], &answer["ok"]["workers"][0]]
            .into_iter()
            .find_map(|v| serde_json::from_value::<WorkerView>(v.clone()).ok());
        WorkerView { cmd: cmd.to_vec(), ..view.unwrap() }
    }

    #[test]
    fn long_commands_are_cut_to_fit_an_answer() {
        let short = view(&["agent".into(), "é".repeat(1000)]);
        let mut views = vec![short.clone()];
        fit(&mut views);
        assert_eq!(views, std::slice::from_ref(&short));
        for (count, text) in
            [(1, "\u{1}".repeat(1 << 19)), (300, "é".repeat(10_000)), (12, "x".repeat(100_000))]
        {
            let cause = Cause::NeedsPerson { text: text.clone(), answerable: false };
            let mut long = view(&["agent".into(), "-p".into(), text.clone(), text]);
            (long.reason, long.cause) = (Some(cause.text()), Some(cause));
            let mut views = vec![long; count];
            fit(&mut views);
            assert!(serde_json::to_vec(&views).unwrap().len() < MAX_VIEWS_BYTES);
            assert_eq!(views[0].cmd.len(), 3);
            assert!(views[0].cmd[0] == "agent" && views[0].cmd[2].ends_with('…'));
        }
    }
}
