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

use super::model::{LinkState, Row, UiModel};
use super::style::of_group;
use crate::client::worker::{brief_cause, is_loop, iteration};
use crate::out::{fit, fit_middle};
use crate::protocol::WorkerView;
use crate::shell::join;

/// The most columns of a name.
const MAX_NAME_COLUMNS: usize = 24;

/// Draws the part of the list around the selected worker.
pub(super) fn draw(model: &UiModel, frame: &mut Frame, area: Rect) {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let rows = model.rows();
    let is_selected =
        |row: &Row| matches!(row, Row::Worker(_, worker) if model.selected.as_ref() == Some(&worker.name));
    let selected = rows.iter().position(is_selected).unwrap_or(0);
    // Half a window above the selection, and no empty lines at the end.
    let first = selected.saturating_sub(height / 2).min(rows.len().saturating_sub(height));
    let longest =
        rows.iter().map(|row| if let Row::Worker(_, worker) = row { worker.name.width() } else { 0 });
    let name_width = longest.max().unwrap_or(0).min(MAX_NAME_COLUMNS).min(width / 3);
    let shown = rows.iter().skip(first).take(height);
    let mut lines: Vec<Line> =
        shown.map(|row| line(model, row, is_selected(row), name_width, width)).collect();
    if rows.is_empty() && model.link == LinkState::Up {
        lines = empty(model).into_iter().map(|text| Line::raw(fit(&text, width))).collect();
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn empty(model: &UiModel) -> Vec<String> {
    match model.filter.as_str() {
        "" => vec!["no workers".to_owned(), "s spawns one; : runs any verb".to_owned()],
        filter => vec![format!("no worker matches '{filter}'"), "Esc shows all".to_owned()],
    }
}

fn line(model: &UiModel, row: &Row, is_selected: bool, name_width: usize, width: usize) -> Line<'static> {
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
            let name = fit_middle(&printable(&worker.name), name_width);
            let head = format!("{}{} ", if is_selected { "▸" } else { " " }, sign(*group, worker.status));
            let gap = " ".repeat(name_width - name.width() + 1);
            let room = width.saturating_sub(head.width() + name_width + 1 + age.len() + 1);
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

/// The facts of a worker, the most important first.
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
