//! The list of workers, in the groups of [`Attention`].

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use swarm_state::attention::Attention;
use swarm_state::model::Status;
use swarm_state::screen::printable;
use unicode_width::UnicodeWidthStr;

use super::layout::of_group;
use super::model::{LinkState, Row, UiModel};
use crate::client::worker::{brief_cause, is_loop, iteration, short_name};
use crate::out::{fit, fit_middle};
use crate::protocol::WorkerView;
use crate::shell::join;

const MAX_NAME_COLUMNS: usize = 24;

const MAX_HOST_COLUMNS: usize = 12;

/// The widths of the columns of hosts and names. Without remote workers, the column of hosts is empty.
#[derive(Clone, Copy)]
struct Widths {
    host: usize,
    name: usize,
}

pub(super) fn draw(model: &UiModel, frame: &mut Frame, area: Rect) {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let rows = model.rows();
    let is_selected =
        |row: &Row| matches!(row, Row::Worker(_, worker) if model.selected.as_ref() == Some(&worker.name));
    let selected = rows.iter().position(is_selected).unwrap_or(0);
    // Half a window above the selection, and no empty lines at the end.
    let first = selected.saturating_sub(height / 2).min(rows.len().saturating_sub(height));
    let widths = widths(&rows, width);
    let shown = rows.iter().skip(first).take(height);
    let mut lines: Vec<Line> = shown.map(|row| line(model, row, is_selected(row), widths, width)).collect();
    if rows.is_empty() && model.link == LinkState::Up {
        lines = empty(model).into_iter().map(|text| Line::raw(fit(&text, width))).collect();
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn widths(rows: &[Row], width: usize) -> Widths {
    let longest = |of: fn(&WorkerView) -> usize| {
        let widths = rows.iter().map(|row| if let Row::Worker(_, worker) = row { of(worker) } else { 0 });
        widths.max().unwrap_or(0)
    };
    let host = longest(|worker| host(worker).len()).min(MAX_HOST_COLUMNS).min(width / 5);
    let name = longest(|worker| short_name(&worker.name).width()).min(MAX_NAME_COLUMNS).min(width / 3);
    Widths { host, name }
}

/// The name of a worker's host; empty for this machine.
fn host(worker: &WorkerView) -> &str {
    worker.host.as_ref().map_or("", |host| host.name.as_str())
}

fn empty(model: &UiModel) -> Vec<String> {
    match model.filter.as_str() {
        "" => vec!["no workers".to_owned(), "s spawns one; : runs any verb".to_owned()],
        filter => vec![format!("no worker matches '{filter}'"), "Esc shows all".to_owned()],
    }
}

fn line(model: &UiModel, row: &Row, is_selected: bool, widths: Widths, width: usize) -> Line<'static> {
    match row {
        Row::Head(group, count, is_hidden) => {
            let more =
                if *is_hidden { format!(" ({count}) · space shows them ") } else { format!(" ({count}) ") };
            let text = fit(&format!("─ {}{more}", group.title()), width);
            let rule = "─".repeat(width.saturating_sub(text.width()));
            Line::styled(text + &rule, Style::new().add_modifier(Modifier::DIM))
        }
        Row::Worker(group, worker) => {
            let age = model.age(worker);
            let name = fit_middle(&printable(short_name(&worker.name)), widths.name);
            let mut head = format!("{}{} ", if is_selected { "▸" } else { " " }, sign(*group, worker.status));
            if widths.host > 0 {
                let (host, columns) = (fit(host(worker), widths.host), widths.host);
                head.push_str(&format!("{host:<columns$} "));
            }
            let gap = " ".repeat(widths.name - name.width() + 1);
            let room = width.saturating_sub(head.width() + widths.name + 1 + age.len() + 1);
            let facts = fit(&facts(*group, worker), room);
            let pad = " ".repeat(room.saturating_sub(facts.width()) + 1);
            let style = of_group(model, *group);
            let line = Line::from(vec![
                Span::styled(head, style),
                Span::styled(name, style.add_modifier(Modifier::BOLD)),
                Span::raw(format!("{gap}{facts}{pad}{age}")),
            ]);
            if is_selected { line.style(Style::new().add_modifier(Modifier::REVERSED)) } else { line }
        }
    }
}

/// The sign of a group, or of how a worker of the rest ended.
fn sign(group: Attention, status: Status) -> &'static str {
    match (group, status) {
        (Attention::NeedsYou, _) => "!",
        (Attention::Working, _) => "·",
        (Attention::Parked, _) => "‖",
        (_, Status::Done) => "✔",
        (_, Status::Killed) => "-",
        _ => "✖",
    }
}

fn facts(group: Attention, worker: &WorkerView) -> String {
    let metadata = worker.metadata();
    let mut facts = vec![];
    if is_loop(worker) {
        facts.push(format!("loop {}", iteration(worker)));
    }
    facts.extend(metadata.cost_usd.map(|usd| format!("${usd:.2}")));
    facts.extend(worker.context.filter(|_| group == Attention::Working).map(|percent| format!("{percent}%")));
    let text = match (worker.status, brief_cause(worker)) {
        (status @ Status::Paused, cause) if !cause.is_empty() => format!("{status}: {cause}"),
        (Status::Running | Status::Done, cause) if cause.is_empty() => join(&worker.cmd),
        (status, cause) if cause.is_empty() => status.to_string(),
        (_, cause) => cause,
    };
    let at = if group == Attention::Working { facts.len() } else { 0 };
    facts.insert(at, printable(&text));
    facts.join("  ")
}
