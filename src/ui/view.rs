//! Draws the state of `swarm ui`: the counts, the list, the panel and the keys.
//!
//! Pure: the same state gives the same screen. All text from outside is printed without control characters.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Wrap};
use swarm_state::attention::Attention;
use swarm_state::screen::printable;
use unicode_width::UnicodeWidthStr;

use super::layout::{areas, colored, of_group};
use super::model::{LinkState, PromptKind, UiMode, UiModel};
use super::press::hints;
use super::{list, panel};
use crate::cli::ui::UI_KEYS;
use crate::out::fit;

pub(super) fn draw(model: &UiModel, frame: &mut Frame) {
    let areas = areas(model);
    frame.render_widget(header(model, areas.header.width.into()), areas.header);
    if model.mode == UiMode::Help {
        let body = Rect { width: areas.header.width, ..areas.list };
        let body = if areas.list.height == 0 { areas.panel } else { body };
        frame.render_widget(Paragraph::new(help(body)), body);
    } else {
        if areas.list.width > 0 {
            list::draw(model, frame, areas.list);
        }
        if model.shows_panel() {
            if areas.list.width > 0 {
                let line = Rect { x: areas.list.width, width: 1, ..areas.panel };
                frame.render_widget(Block::new().borders(Borders::LEFT), line);
            }
            panel::draw(model, frame, areas.panel);
        }
    }
    bottom(model, frame, areas.bottom);
}

/// The connection, or the number of workers in each group and the cost.
fn header(model: &UiModel, width: usize) -> Line<'static> {
    let name = Span::styled("swarm  ", Style::new().add_modifier(Modifier::BOLD));
    let room = width.saturating_sub(name.content.width());
    match &model.link {
        LinkState::Connecting => return Line::from(vec![name, Span::raw("connecting to the daemon …")]),
        LinkState::Down(why) => {
            let style = colored(model, Color::Red).add_modifier(Modifier::REVERSED);
            return Line::from(vec![
                name,
                Span::styled(fit(&format!("✖ {why}; swarm retries"), room), style),
            ]);
        }
        LinkState::Up => {}
    }
    let count = |group| model.workers.values().filter(|worker| model.group(worker) == group).count();
    let mut parts = vec![];
    for (group, words) in [
        (Attention::NeedsYou, "need you"),
        (Attention::FailedOrLost, "failed or lost"),
        (Attention::Working, "working"),
        (Attention::Parked, "parked"),
        (Attention::FinishedUnseen, "done"),
    ] {
        match count(group) {
            0 => {}
            1 if group == Attention::NeedsYou => parts.push("1 needs you".to_owned()),
            number => parts.push(format!("{number} {words}")),
        }
    }
    if parts.is_empty() {
        parts.push(format!("{} workers", model.workers.len()));
    }
    parts.extend(model.silent.iter().map(|(host, silent_for)| format!("{host} {silent_for}")));
    if !model.filter.is_empty() {
        parts.insert(0, format!("filter '{}', Esc ends it", printable(&model.filter)));
    }
    let mut text = fit(&parts.join(" · "), room);
    let costs = model.workers.values().filter_map(|worker| worker.metadata().cost_usd);
    let costs: Vec<f64> = costs.collect();
    let cost = (!costs.is_empty()).then(|| format!("cost ${:.2}", costs.iter().sum::<f64>()));
    let load = model.load.map(|load| format!("load {load:.1}"));
    let facts =
        [load.into_iter().chain(cost.clone()).collect::<Vec<_>>().join("  "), cost.unwrap_or_default()];
    if let Some(facts) = facts.iter().find(|facts| text.width() + facts.len() + 2 <= room) {
        text.push_str(&" ".repeat(room - text.width() - facts.len()));
        text.push_str(facts);
    }
    let style =
        if count(Attention::NeedsYou) > 0 { of_group(model, Attention::NeedsYou) } else { Style::new() };
    Line::from(vec![name, Span::styled(text, style)])
}

fn help(area: Rect) -> Vec<Line<'static>> {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let key_width = UI_KEYS.iter().map(|(keys, _)| keys.width()).max().unwrap_or(0);
    let mut lines: Vec<String> =
        UI_KEYS.iter().map(|(keys, text)| fit(&format!("{keys:<key_width$}  {text}"), width)).collect();
    if lines.len() > height && height > 0 {
        lines.truncate(height - 1);
        lines.push(fit("… the rest: man swarm-ui", width));
    }
    lines.into_iter().map(Line::raw).collect()
}

fn bottom(model: &UiModel, frame: &mut Frame, area: Rect) {
    let width = usize::from(area.width);
    let (label, line) = match &model.mode {
        UiMode::Confirm { question, .. } => return notice(model, frame, area, question),
        UiMode::Help => {
            frame.render_widget(Line::raw(fit("any key returns", width)), area);
            return;
        }
        UiMode::List => match &model.message {
            Some(message) => return notice(model, frame, area, message),
            None => {
                frame.render_widget(key_line(model, width), area);
                return;
            }
        },
        UiMode::Prompt(kind, line) => (label(kind), line),
    };
    let label = match &model.message {
        Some(message) => format!("{message}; {label}"),
        None => label,
    };
    let label = fit(&label, width / 2);
    let (before, after) = line.parts();
    let room = width.saturating_sub(label.width() + 1);
    let start = visible_start(&before, room);
    let column = u16::try_from(label.width() + before[start..].width()).unwrap_or(u16::MAX);
    let text = format!("{label}{}{after}", &before[start..]);
    frame.render_widget(Line::raw(text), area);
    frame.set_cursor_position(Position::new(area.x + column.min(area.width.saturating_sub(1)), area.y));
}

fn notice(model: &UiModel, frame: &mut Frame, area: Rect, text: &str) {
    let style = colored(model, Color::Yellow).add_modifier(Modifier::BOLD);
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }).style(style), area);
}

fn label(kind: &PromptKind) -> String {
    match kind {
        PromptKind::Message(name) => format!("message to {name}: "),
        PromptKind::Answer(name, _) => format!("answer to {name}: "),
        PromptKind::Spawn => "swarm spawn ".to_owned(),
        PromptKind::Filter => "filter: ".to_owned(),
        PromptKind::Verb => "swarm ".to_owned(),
    }
}

/// The first byte of the end of a text that fits `width` columns.
fn visible_start(text: &str, width: usize) -> usize {
    let starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts.into_iter().find(|at| text[*at..].width() <= width).unwrap_or(text.len())
}

/// The keys that fit the line; `? keys` always.
fn key_line(model: &UiModel, width: usize) -> Line<'static> {
    let last = "? keys";
    let (mut spans, mut used) = (vec![], last.width());
    for (key, text) in hints(model) {
        let more = key.width() + text.width() + 3;
        if used + more > width {
            continue;
        }
        used += more;
        spans.push(Span::styled(key, Style::new().add_modifier(Modifier::BOLD)));
        spans.push(Span::raw(format!(" {text}  ")));
    }
    spans.push(Span::styled("?", Style::new().add_modifier(Modifier::BOLD)));
    spans.push(Span::raw(" keys"));
    Line::from(spans)
}
