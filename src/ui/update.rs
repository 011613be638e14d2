//! Changes the state of `swarm ui` by an event, and returns the effects that the edge carries out.
//!
//! Pure: the time comes with the event. Keys are in [`super::press`]. Deliberately absent: what a verb does. Each
//! action is a command line of swarm itself, or a request that only reads.

use chrono::{DateTime, FixedOffset, TimeDelta};
use swarm_state::host::HostName;
use swarm_state::screen::{printable, styled};

use super::model::{LinkState, Panel, UiEffect, UiEvent, UiModel};
use super::{panel, press};
use crate::protocol::WorkerView;

/// How long a selection stays before its pages are loaded.
const LOAD_DELAY: TimeDelta = TimeDelta::milliseconds(120);

/// The least time between two loads of the same page.
const RELOAD_INTERVAL: TimeDelta = TimeDelta::seconds(2);

/// How long a finished worker is selected before a person has seen it.
const SEEN_DELAY: TimeDelta = TimeDelta::seconds(1);

/// The lines of a verb's output that are kept.
const MAX_OUTPUT_LINES: usize = 5_000;

pub(super) fn update(model: &mut UiModel, event: UiEvent, now: DateTime<FixedOffset>) -> Vec<UiEffect> {
    model.now = now;
    let was_selected = model.selected.clone();
    let mut effects = match event {
        UiEvent::Key(key) => {
            (model.is_changed, model.key_at) = (true, Some(now));
            press::press(model, &key)
        }
        UiEvent::Tick => tick(model),
        event => {
            receive(model, event);
            vec![]
        }
    };
    settle_selection(model, was_selected.as_deref());
    note_request(model);
    if effects.is_empty() && model.load_at.is_some_and(|at| at <= now) {
        model.load_at = None;
        effects = load(model);
    }
    effects
}

fn receive(model: &mut UiModel, event: UiEvent) {
    match event {
        UiEvent::Resized(columns, rows) => {
            (model.size, model.is_changed) = ((columns, rows), true);
            model.load_at.get_or_insert(model.now);
        }
        UiEvent::Workers(views) => {
            replace_workers(model, None, views);
            model.is_changed |= model.link != LinkState::Up;
            model.link = LinkState::Up;
        }
        UiEvent::Host(host, views, silent_for) => {
            replace_workers(model, Some(&host), views);
            model.is_changed |= model.silent.get(&host) != silent_for.as_ref();
            match silent_for {
                Some(silent_for) => drop(model.silent.insert(host, silent_for)),
                None => drop(model.silent.remove(&host)),
            }
        }
        UiEvent::Worker(view) => {
            if model.selected.as_deref() == Some(&view.name) {
                model.load_at.get_or_insert(model.now + RELOAD_INTERVAL / 4);
            }
            let before = model.workers.insert(view.name.clone(), (*view).clone());
            model.is_changed |= before.as_ref() != Some(&*view);
        }
        UiEvent::Gone(name) => model.is_changed |= model.workers.remove(&name).is_some(),
        UiEvent::Down(message) => {
            let link = LinkState::Down(printable(&message));
            model.is_changed |= model.link != link;
            (model.link, model.loading) = (link, Default::default());
        }
        UiEvent::Page(name, panel, lines) if model.selected.as_ref() == Some(&name) => {
            model.loading.remove(&panel);
            let clean = if panel == Panel::Screen { styled } else { printable };
            let lines: Vec<String> = lines.iter().map(|line| clean(line)).collect();
            model.is_changed |= model.pages.get(&panel) != Some(&lines);
            model.pages.insert(panel, lines);
        }
        UiEvent::Report(report) if model.selected.as_ref() == Some(&report.name) => {
            model.is_changed |= model.report.as_ref() != Some(&report);
            model.report = Some(report);
        }
        UiEvent::Printed(line) => {
            let lines = &mut model.output.lines;
            lines.push(printable(&line));
            lines.drain(..lines.len().saturating_sub(MAX_OUTPUT_LINES));
            model.is_changed = true;
        }
        UiEvent::Ended(message, has_failed) => {
            model.output.is_running = false;
            model.answered_request.take_if(|_| has_failed);
            model.message = Some(printable(&message)).filter(|message| !message.is_empty());
            // A hint has no room in the last line.
            if has_failed && model.output.lines.len() > 1 {
                press::show_panel(model, Panel::Output);
            }
            model.is_changed = true;
        }
        // A page of a worker that is no longer selected. The others are handled by the caller.
        UiEvent::Page(..) | UiEvent::Report(..) => {}
        UiEvent::Key(_) | UiEvent::Tick => {}
    }
}

fn replace_workers(model: &mut UiModel, host: Option<&HostName>, views: Vec<WorkerView>) {
    let is_of = |worker: &WorkerView| worker.host.as_ref().map(|host| &host.name) == host;
    let mut workers = model.workers.clone();
    workers.retain(|_, worker| !is_of(worker));
    workers.extend(views.into_iter().map(|view| (view.name.clone(), view)));
    model.is_changed |= model.workers != workers;
    model.workers = workers;
}

fn tick(model: &mut UiModel) -> Vec<UiEffect> {
    let ages: Vec<String> = model.visible().iter().map(|(_, worker)| model.age(worker)).collect();
    if ages != model.ages {
        (model.ages, model.is_changed) = (ages, true);
    }
    let mut effects = vec![];
    if let Some(worker) = model.selected_worker() {
        let is_live = worker.status.is_live();
        if worker.status.is_finished() && !worker.seen {
            // Without a key press, the person may be away.
            let was_finished = |at: &DateTime<FixedOffset>| {
                let since = worker.since.as_deref().and_then(|at| DateTime::parse_from_rfc3339(at).ok());
                since.is_none_or(|since| since <= *at) && model.now - at >= SEEN_DELAY
            };
            if model.key_at.as_ref().is_some_and(was_finished) {
                effects.push(UiEffect::Seen(worker.name.clone()));
            }
        }
        if is_live && matches!(model.panel, Panel::Screen | Panel::Log) {
            model.load_at.get_or_insert(model.now + RELOAD_INTERVAL);
        }
    }
    effects
}

/// Selects another worker if the selected one is gone, and notes that the selection has changed.
fn settle_selection(model: &mut UiModel, was_selected: Option<&str>) {
    let names: Vec<String> = model.visible().iter().map(|(_, worker)| worker.name.clone()).collect();
    let position = |name: &String| names.iter().position(|visible| visible == name);
    model.cursor = match model.selected.as_ref().and_then(position) {
        Some(at) => at,
        None => model.cursor.min(names.len().saturating_sub(1)),
    };
    model.selected = names.get(model.cursor).cloned();
    if model.selected.as_deref() != was_selected {
        model.keeps_group = model.selected_worker().is_some_and(|worker| !worker.seen);
        (model.scroll, model.report) = (None, None);
        model.pages.clear();
        model.loading.clear();
        model.load_at = Some(model.now + LOAD_DELAY);
        model.is_changed = true;
    } else if model.selected_worker().is_some_and(|worker| !worker.status.is_finished()) {
        model.keeps_group = true;
    }
}

/// Notes since when the panel has shown the request of the selected worker.
fn note_request(model: &mut UiModel) {
    let is_shown = panel::shows_request(model);
    let open = model.selected_worker().and_then(|worker| worker.requests.first()).filter(|_| is_shown);
    let id = open.map(|open| open.request.id.clone());
    if model.shown_request.as_ref().map(|(shown, _)| shown) != id.as_ref() {
        model.shown_request = id.map(|id| (id, model.now));
    }
}

fn load(model: &mut UiModel) -> Vec<UiEffect> {
    let panel = model.panel;
    let Some(name) = model.selected.clone().filter(|_| model.shows_panel() && panel != Panel::Output) else {
        return vec![];
    };
    let has_loop = model.has_loop();
    let mut effects = vec![];
    if has_loop && matches!(panel, Panel::Screen | Panel::Report) && !is_current(model) {
        effects.push(UiEffect::LoadReport(name.clone()));
    }
    if panel == Panel::Diff && !has_loop {
        let lines = vec!["only a loop has the changes of its iterations".to_owned()];
        model.pages.insert(panel, lines);
        model.is_changed = true;
    } else if model.loading.insert(panel) {
        let verb: &[&str] = match panel {
            Panel::Why => &["why"],
            Panel::Diff => &["ralph", "diff"],
            // The chart has the iterations.
            Panel::Report => &["status"],
            Panel::Screen | Panel::Log | Panel::Output => &[],
        };
        let words = verb.iter().map(|word| (*word).to_owned()).chain([name.clone()]).collect();
        effects.push(match panel {
            Panel::Screen => UiEffect::Load(name, panel, model.size.1),
            Panel::Log => UiEffect::Load(name, panel, 500),
            _ => UiEffect::Show(name, panel, words),
        });
    }
    effects
}

/// Whether the report has all iterations that have ended.
fn is_current(model: &UiModel) -> bool {
    let (Some(report), Some(worker)) = (&model.report, model.selected_worker()) else { return false };
    let now = (Some(u64::from(report.current_iteration)), report.worker_status);
    now == (worker.metadata().iteration, worker.status)
}

#[cfg(test)]
mod tests;
