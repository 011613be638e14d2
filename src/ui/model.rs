//! The state of `swarm ui`: the workers as the daemon sent them, and the person's selection, panel and input.
//!
//! [`super::update`] changes it and [`super::view`] shows it. Deliberately absent: the terminal, the socket and the
//! clock. The time of the last event is part of the state. Here are also the events and the effects.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use chrono::{DateTime, FixedOffset, TimeDelta};
use swarm_state::attention::Attention;
use swarm_state::host::HostName;
use swarm_state::model::Status;

use super::keys::{LineEdit, UiKey};
use crate::client::worker::{age, brief_cause, is_loop, short_name};
use crate::protocol::{Report, WorkerView};

/// The fewest columns that have room for the list and a panel.
const MIN_WIDE_COLUMNS: u16 = 72;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Panel {
    Why,
    #[default]
    Screen,
    Log,
    /// The changes of the last iteration.
    Diff,
    /// The iterations of a loop.
    Report,
    /// The output of the last verb.
    Output,
}

impl Panel {
    pub(super) const OF_WORKER: [Self; 5] = [Self::Why, Self::Screen, Self::Log, Self::Diff, Self::Report];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Why => "why",
            Self::Screen => "screen",
            Self::Log => "log",
            Self::Diff => "diff",
            Self::Report => "report",
            Self::Output => "output",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum LinkState {
    /// The first answer has not arrived yet.
    #[default]
    Connecting,
    Up,
    /// The error message. The interface reconnects by itself.
    Down(String),
}

/// The use of the person's next keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum UiMode {
    #[default]
    List,
    Prompt(PromptKind, LineEdit),
    /// A question is open: the verb to run for `y`.
    Confirm {
        question: String,
        words: Vec<String>,
    },
    Help,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PromptKind {
    /// A message to this worker.
    Message(String),
    /// The answer to a question of this worker: its name and the id of the question.
    Answer(String, String),
    Spawn,
    Filter,
    /// A verb with its options.
    Verb,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct VerbOutput {
    /// The command line.
    pub(super) title: String,
    pub(super) lines: Vec<String>,
    pub(super) is_running: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Row<'a> {
    /// The heading of a group, the number of its workers, and whether they are hidden.
    Head(Attention, usize, bool),
    Worker(Attention, &'a WorkerView),
}

#[derive(Clone, Debug, Default)]
pub(super) struct UiModel {
    pub(super) now: DateTime<FixedOffset>,
    /// Columns and rows of the terminal.
    pub(super) size: (u16, u16),
    pub(super) has_color: bool,
    /// The load of this machine when the frame was drawn.
    pub(super) load: Option<f32>,
    /// The workers by name. The name of one on a remote host is `HOST/NAME`.
    pub(super) workers: BTreeMap<String, WorkerView>,
    /// The remote hosts that do not answer, and for how long.
    pub(super) silent: BTreeMap<HostName, String>,
    pub(super) link: LinkState,
    pub(super) mode: UiMode,
    pub(super) filter: String,
    /// Whether the group of the rest is shown.
    pub(super) shows_rest: bool,
    pub(super) selected: Option<String>,
    /// The position of the selection among the visible workers, for when the selected worker is gone.
    pub(super) cursor: usize,
    /// The selected worker was unseen when it was selected. It keeps its group until the selection moves on.
    pub(super) keeps_group: bool,
    /// The request that the panel shows, and since when.
    pub(super) shown_request: Option<(String, DateTime<FixedOffset>)>,
    /// The request that was answered last, and when. The daemon may report it as open for a moment longer.
    pub(super) answered_request: Option<(String, DateTime<FixedOffset>)>,
    pub(super) key_at: Option<DateTime<FixedOffset>>,
    pub(super) panel: Panel,
    /// The panel has the whole window.
    pub(super) is_zoomed: bool,
    /// The first visible line of the panel; `None` for the end of a page that grows, else the beginning.
    pub(super) scroll: Option<usize>,
    /// The pages of the selected worker, as far as they are loaded.
    pub(super) pages: BTreeMap<Panel, Vec<String>>,
    /// The pages that were requested and have not arrived.
    pub(super) loading: BTreeSet<Panel>,
    pub(super) report: Option<Box<Report>>,
    /// When the panel is loaded again.
    pub(super) load_at: Option<DateTime<FixedOffset>>,
    pub(super) output: VerbOutput,
    /// A sentence in place of the keys, until the next key.
    pub(super) message: Option<String>,
    /// The last command line of `s`.
    pub(super) last_spawn: Option<String>,
    /// The ages as they were last shown.
    pub(super) ages: Vec<String>,
    /// Something shown has changed.
    pub(super) is_changed: bool,
}

impl UiModel {
    pub(super) fn new(now: DateTime<FixedOffset>, size: (u16, u16), has_color: bool) -> Self {
        Self { now, size, has_color, is_changed: true, ..Self::default() }
    }

    /// Whether the list and the panel fit next to each other.
    pub(super) fn is_wide(&self) -> bool {
        self.size.0 >= MIN_WIDE_COLUMNS
    }

    pub(super) fn shows_panel(&self) -> bool {
        self.is_wide() || self.is_zoomed
    }

    pub(super) fn selected_worker(&self) -> Option<&WorkerView> {
        self.workers.get(self.selected.as_ref()?)
    }

    pub(super) fn group(&self, worker: &WorkerView) -> Attention {
        let is_kept = self.keeps_group && self.selected.as_ref() == Some(&worker.name);
        Attention::of(worker.status, worker.cause.as_ref(), worker.seen && !is_kept)
    }

    fn passes_filter(&self, worker: &WorkerView) -> bool {
        let wanted = self.filter.to_lowercase();
        let texts =
            [worker.name.as_str(), worker.status.as_str(), &brief_cause(worker)].map(str::to_lowercase);
        wanted.is_empty()
            || texts.iter().any(|text| text.contains(&wanted))
            || worker.tags.iter().any(|tag| tag.to_lowercase().contains(&wanted))
    }

    /// The list: each group under its heading.
    pub(super) fn rows(&self) -> Vec<Row<'_>> {
        let mut groups: BTreeMap<Attention, Vec<&WorkerView>> = BTreeMap::new();
        for worker in self.workers.values().filter(|worker| self.passes_filter(worker)) {
            groups.entry(self.group(worker)).or_default().push(worker);
        }
        let is_folded = !self.shows_rest && self.filter.is_empty() && groups.len() > 1;
        let mut rows = vec![];
        for (group, mut workers) in groups {
            sort(group, &mut workers);
            let hides = group == Attention::Rest && is_folded;
            rows.push(Row::Head(group, workers.len(), hides));
            // The selected worker never disappears from the list.
            workers.retain(|worker| !hides || self.selected.as_ref() == Some(&worker.name));
            rows.extend(workers.into_iter().map(|worker| Row::Worker(group, worker)));
        }
        rows
    }

    pub(super) fn visible(&self) -> Vec<(Attention, &WorkerView)> {
        let of_worker = |row| match row {
            Row::Worker(group, worker) => Some((group, worker)),
            Row::Head(..) => None,
        };
        self.rows().into_iter().filter_map(of_worker).collect()
    }

    /// The time that a row shows: since when the worker waits or has finished, else the age of its iteration or run.
    pub(super) fn age(&self, worker: &WorkerView) -> String {
        let is_working = matches!(worker.status, Status::Starting | Status::Running | Status::Retrying);
        let start = match worker.metadata().iteration_started {
            Some(start) if is_working => start,
            _ if is_working => &worker.started,
            _ => worker.since.as_deref().unwrap_or(&worker.started),
        };
        let is_new =
            DateTime::parse_from_rfc3339(start).is_ok_and(|at| self.now - at < TimeDelta::minutes(1));
        // Seconds would change too often.
        if is_new { "<1m".to_owned() } else { age(start, self.now) }
    }

    /// The live workers that end together with a worker, because it coordinates them.
    pub(super) fn children(&self, of: &WorkerView) -> Vec<&str> {
        let parent = short_name(&of.name);
        let host = |worker: &WorkerView| worker.host.as_ref().map(|host| host.name.clone());
        let is_child = |worker: &&WorkerView| {
            let is_named = worker.parent.as_ref().is_some_and(|name| name.as_str() == parent);
            is_named && worker.status.is_live() && host(worker) == host(of)
        };
        self.workers.values().filter(is_child).map(|worker| worker.name.as_str()).collect()
    }

    pub(super) fn has_loop(&self) -> bool {
        self.selected_worker().is_some_and(is_loop)
    }
}

/// Sorts the workers of a group: those that need a person by how long they wait, finished ones by their end.
fn sort(group: Attention, workers: &mut [&WorkerView]) {
    let since = |worker: &WorkerView| {
        DateTime::parse_from_rfc3339(worker.since.as_deref().unwrap_or(&worker.started)).ok()
    };
    match group {
        Attention::NeedsYou => workers.sort_by_key(|worker| since(worker)),
        Attention::Working | Attention::Parked => {}
        Attention::FailedOrLost | Attention::FinishedUnseen | Attention::Rest => {
            workers.sort_by_key(|worker| std::cmp::Reverse(since(worker)));
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum UiEvent {
    Key(UiKey),
    Resized(u16, u16),
    Tick,
    /// All workers of this machine.
    Workers(Vec<WorkerView>),
    /// All workers of a remote host and, if it does not answer, for how long.
    Host(HostName, Vec<WorkerView>, Option<String>),
    /// Something happened to a worker.
    Worker(Box<WorkerView>),
    Gone(String),
    /// The daemon cannot be reached: the error message.
    Down(String),
    /// A page of a worker.
    Page(String, Panel, Vec<String>),
    Report(Box<Report>),
    Printed(String),
    /// A verb ended: what to report about it, and whether it failed.
    Ended(String, bool),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UiEffect {
    /// Request a worker's screen or log with this many lines.
    Load(String, Panel, u16),
    LoadReport(String),
    /// Run a verb that prints a page of a worker.
    Show(String, Panel, Vec<String>),
    Seen(String),
    /// Run a verb in place of the one that runs.
    Run(Vec<String>),
    Cancel,
    Attach(String),
    Edit(PathBuf),
    Quit,
}
