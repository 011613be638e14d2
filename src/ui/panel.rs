//! The panel of the selected worker: its title, its page, and the names of all pages.

use ansi_to_tui::IntoText;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use swarm_state::ledger::Iteration;
use swarm_state::notice::{dollars, duration};
use swarm_state::promise::Claim;
use swarm_state::screen::printable;
use unicode_width::UnicodeWidthStr;

use super::layout::{areas, colored};
use super::model::{Panel, UiModel};
use crate::client::worker::{brief_cause, iteration};
use crate::out::fit;
use crate::protocol::Report;

/// The columns of a chart's text around its bars.
const CHART_TEXT_COLUMNS: usize = 34;

/// The last iterations that the chart has.
const MAX_CHART_BARS: usize = 20;

/// The title, the line of the pages and the line between them and the page.
const FRAME_LINES: usize = 2;

/// The fewest lines that have room for a head: one of it, one for the rest, and the line below.
const MIN_HEAD_LINES: usize = 3;

pub(super) fn draw(model: &UiModel, frame: &mut Frame, area: Rect) {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let lines = page(model, width);
    let mut head = head(model, width);
    let room = height.saturating_sub(FRAME_LINES + head.len());
    let first = model.scroll.unwrap_or_else(|| first_of(model.panel, lines.len(), room));
    let first = first.min(lines.len().saturating_sub(room));
    let shown = lines.iter().skip(first).take(room).cloned();
    let mut all = vec![Line::styled(fit(&title(model), width), Style::new().add_modifier(Modifier::BOLD))];
    all.append(&mut head);
    all.extend(shown);
    frame.render_widget(Paragraph::new(all), area);
    if height > 1 {
        let tabs = Rect { y: area.y + area.height - 1, height: 1, ..area };
        let more = lines.len().saturating_sub(first + room);
        frame.render_widget(tab_line(model, width, more), tabs);
    }
}

/// The first line that is shown if the person has not scrolled.
pub(super) fn first_line(model: &UiModel) -> usize {
    let (lines, room) = size(model);
    first_of(model.panel, lines, room)
}

/// The first line that is shown at the end of the page.
pub(super) fn last_first_line(model: &UiModel) -> usize {
    let (lines, room) = size(model);
    lines.saturating_sub(room)
}

/// The number of lines of the page, and of those that fit.
fn size(model: &UiModel) -> (usize, usize) {
    let area = areas(model).panel;
    let width = area.width.into();
    let head = head(model, width).len();
    (page(model, width).len(), usize::from(area.height).saturating_sub(FRAME_LINES + head))
}

/// A page that grows is shown from its end.
fn first_of(panel: Panel, lines: usize, room: usize) -> usize {
    match panel {
        Panel::Screen | Panel::Log | Panel::Output => lines.saturating_sub(room),
        Panel::Why | Panel::Diff | Panel::Report => 0,
    }
}

fn title(model: &UiModel) -> String {
    if model.panel == Panel::Output {
        let state = if model.output.is_running { "running, Esc ends it" } else { "ended, Esc closes it" };
        return match model.output.title.is_empty() {
            true => "no verb was run yet".to_owned(),
            false => format!("swarm {} · {state}", printable(&model.output.title)),
        };
    }
    let Some(worker) = model.selected_worker() else { return String::new() };
    let mut parts = vec![printable(&worker.name), worker.status.to_string()];
    if model.has_loop() {
        parts.push(format!("iteration {}", iteration(worker)));
    }
    parts.push(model.age(worker));
    parts.extend(worker.metadata().cost_usd.map(|usd| format!("${usd:.2}")));
    parts.join(" · ")
}

/// The names of the pages, the current one in brackets, and how many lines follow below.
fn tab_line(model: &UiModel, width: usize, more: usize) -> Line<'static> {
    let mut spans = vec![];
    let all = Panel::OF_WORKER.into_iter().chain((model.panel == Panel::Output).then_some(Panel::Output));
    for panel in all {
        let is_current = panel == model.panel;
        let text = if is_current { format!("[{}]", panel.title()) } else { format!(" {} ", panel.title()) };
        let style = if is_current { Style::new().add_modifier(Modifier::BOLD) } else { Style::new() };
        spans.push(Span::styled(text, style));
    }
    let used = |spans: &[Span<'_>]| spans.iter().map(|span| span.content.width()).sum::<usize>();
    if used(&spans) > width {
        spans = vec![Span::raw(format!("[{}] < >", model.panel.title()))];
    }
    let rest = if more > 0 { format!(" {more} more: PgDn") } else { String::new() };
    if used(&spans) + rest.width() <= width {
        spans.push(Span::raw(rest));
    }
    Line::from(spans)
}

/// The lines above the worker's screen, which do not scroll: the open request or the cause, and the facts of a loop. At
/// least a third of the page is left for the screen.
fn head(model: &UiModel, width: usize) -> Vec<Line<'static>> {
    let Some(worker) = model.selected_worker().filter(|_| model.panel == Panel::Screen) else {
        return vec![];
    };
    let mut lines = request(model, width);
    let cause = brief_cause(worker);
    if lines.is_empty() && !cause.is_empty() {
        lines.push(Line::raw(fit(&format!("cause: {}", printable(&cause)), width)));
    }
    lines.extend(model.report.iter().flat_map(|report| facts(model, report, width)));
    let room = head_room(model);
    if lines.is_empty() || room < MIN_HEAD_LINES {
        return vec![];
    }
    if lines.len() >= room {
        lines.truncate(room - 2);
        let rest = format!("… the rest: swarm status {}", printable(&worker.name));
        lines.push(Line::raw(fit(&rest, width)));
    }
    lines.push(Line::raw("─".repeat(width)));
    lines
}

fn head_room(model: &UiModel) -> usize {
    usize::from(areas(model).panel.height).saturating_sub(FRAME_LINES) * 2 / 3
}

pub(super) fn shows_request(model: &UiModel) -> bool {
    model.panel == Panel::Screen && model.shows_panel() && head_room(model) >= MIN_HEAD_LINES
}

fn page(model: &UiModel, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![];
    if let (Some(report), Panel::Report) = (&model.report, model.panel) {
        lines.extend(chart(model, report, width));
        lines.push(Line::raw("─".repeat(width)));
    }
    let text = match model.panel {
        Panel::Output => Some(&model.output.lines),
        panel => model.pages.get(&panel),
    };
    match text {
        Some(text) if text.is_empty() => lines.push(Line::raw("nothing was printed yet")),
        Some(text) if model.panel == Panel::Screen => lines.extend(screen_lines(model, text)),
        Some(text) => lines.extend(text.iter().flat_map(|line| text_lines(model, line, width))),
        None if model.selected.is_some() => lines.push(Line::raw("loading …")),
        None => {}
    }
    lines
}

fn request(model: &UiModel, width: usize) -> Vec<Line<'static>> {
    let Some((open, others)) = model.selected_worker().and_then(|worker| worker.requests.split_first())
    else {
        return vec![];
    };
    let request = &open.request;
    let first = request.headline();
    let first = first.trim_end_matches(" …").to_owned();
    let all = std::iter::once(first).chain(request.text.lines().skip(1).map(|line| format!("  {line}")));
    let style = colored(model, Color::Yellow).add_modifier(Modifier::BOLD);
    let mut lines = vec![];
    for line in all {
        let line = printable(&line);
        lines.extend(wrap(&line, width).into_iter().map(|part| Line::styled(part.to_owned(), style)));
    }
    if !others.is_empty() {
        lines.push(Line::raw(fit(&format!("{} more after this one", others.len()), width)));
    }
    lines
}

/// The lines of a screen with their colors. They are cut, because a wrapped screen would be unreadable.
fn screen_lines(model: &UiModel, text: &[String]) -> Vec<Line<'static>> {
    // A line goes on with the attributes of the line before.
    let styled = text.join("\n").into_text().map(|text| text.lines).unwrap_or_default();
    if model.has_color && styled.len() == text.len() {
        return styled;
    }
    text.iter().map(|line| Line::raw(printable(line))).collect()
}

/// A line of a page, wrapped; the lines of a diff are colored by their sign.
fn text_lines(model: &UiModel, line: &str, width: usize) -> Vec<Line<'static>> {
    let color = match line.as_bytes() {
        _ if model.panel != Panel::Diff => None,
        [b'+', ..] => Some(Color::Green),
        [b'-', ..] => Some(Color::Red),
        [b'@', ..] => Some(Color::Cyan),
        _ => None,
    };
    let style = color.map_or_else(Style::new, |color| colored(model, color));
    wrap(line, width).into_iter().map(|part| Line::styled(part.to_owned(), style)).collect()
}

/// Breaks a line after a space in the second half of the width, or else at the width.
fn wrap(mut line: &str, width: usize) -> Vec<&str> {
    let mut parts = vec![];
    while line.width() > width {
        let mut end = line.chars().next().map_or(0, char::len_utf8);
        let mut after_space = None;
        for (at, c) in line.char_indices() {
            let next = at + c.len_utf8();
            if line[..next].width() > width {
                break;
            }
            end = end.max(next);
            if c == ' ' && 2 * line[..next].width() > width {
                after_space = Some(next);
            }
        }
        let (part, rest) = line.split_at(after_space.unwrap_or(end));
        parts.push(part);
        line = rest;
    }
    if !line.is_empty() || parts.is_empty() {
        parts.push(line);
    }
    parts
}

/// The checks of the last iteration, and how long and how expensive the iterations were.
fn facts(model: &UiModel, report: &Report, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![];
    let mut checks = vec![];
    let last = report.iterations.iter().rev().find_map(|it| it.verdict.as_ref());
    for check in last.map_or(&report.baseline[..], |verdict| &verdict.checks) {
        let (sign, color) = if check.passed { ("✔", Color::Green) } else { ("✖", Color::Red) };
        checks.push(Span::styled(format!("{sign} {}  ", printable(&check.name)), colored(model, color)));
    }
    if !checks.is_empty() {
        lines.push(Line::from(checks));
    }
    let promise =
        last.and_then(|verdict| verdict.promise.as_ref()).map(|claim| format!("promise {}", promise(claim)));
    let context = model.selected_worker().and_then(|worker| worker.context);
    let context = context.map(|percent| format!("context {percent}%"));
    let parts: Vec<String> = promise.into_iter().chain(context).collect();
    if !parts.is_empty() {
        lines.push(Line::raw(fit(&parts.join(" · "), width)));
    }
    if report.iterations.len() > 1 {
        let times: Vec<f64> = report.iterations.iter().map(|it| it.seconds).collect();
        let costs: Vec<f64> = report.iterations.iter().map(|it| cost(it).unwrap_or(0.0)).collect();
        lines.push(Line::raw(fit(&format!("time {} {}", spark(&times), seconds(times.last())), width)));
        if costs.iter().any(|cost| *cost > 0.0) {
            let last = costs.last().copied().unwrap_or(0.0);
            lines.push(Line::raw(fit(&format!("cost {} ${last:.2}", spark(&costs)), width)));
        }
    }
    lines
}

fn promise(claim: &Claim) -> &'static str {
    match claim {
        Claim::Missing => "no",
        Claim::Rejected => "given without work",
        Claim::Doubtful | Claim::Valid => "yes",
    }
}

fn seconds(value: Option<&f64>) -> String {
    duration(value.map_or(0, |seconds| seconds.round() as u64), " ")
}

/// The cost of an iteration in US dollars.
fn cost(it: &Iteration) -> Option<f64> {
    Some(it.verdict.as_ref()?.cost? as f64 / 1e6)
}

/// The last values as a line of blocks; the highest value has the full height.
fn spark(values: &[f64]) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let values = &values[values.len().saturating_sub(20)..];
    let max = values.iter().copied().fold(0.0, f64::max);
    let block = |value: &f64| BLOCKS[if max > 0.0 { (value / max * 7.0).round() as usize } else { 0 }.min(7)];
    values.iter().map(block).collect()
}

/// A bar for each iteration, as long as the agent worked.
fn chart(model: &UiModel, report: &Report, width: usize) -> Vec<Line<'static>> {
    let longest = report.iterations.iter().map(|it| it.seconds).fold(0.0, f64::max);
    let columns = width.saturating_sub(CHART_TEXT_COLUMNS).clamp(4, 40);
    let bar = |it: &Iteration| {
        let length = if longest > 0.0 { (it.seconds / longest * columns as f64).round() as usize } else { 0 };
        let failed =
            it.verdict.as_ref().and_then(|verdict| verdict.checks.iter().find(|check| !check.passed));
        let (sign, color) = match (&failed, it.trouble()) {
            (None, None) => ("✔", Color::Green),
            _ => ("✖", Color::Red),
        };
        let why = it.trouble().or(failed.map(|check| check.name.clone())).unwrap_or_default();
        let price = it.verdict.as_ref().and_then(|verdict| verdict.cost).map(dollars).unwrap_or_default();
        let bar = format!("{:<columns$}", "█".repeat(length.max(1)));
        let text = format!("{:>3} {bar} {:>8} {price:>7} ", it.iteration, seconds(Some(&it.seconds)));
        let rest = fit(&format!("{sign} {}", printable(&why)), width.saturating_sub(text.width()));
        Line::from(vec![Span::raw(text), Span::styled(rest, colored(model, color))])
    };
    let hidden = report.iterations.len().saturating_sub(MAX_CHART_BARS);
    report.iterations.iter().skip(hidden).map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_at_spaces() {
        for (line, width, parts) in [
            ("", 5, vec![""]),
            ("next: run it now", 9, vec!["next: ", "run it ", "now"]),
            ("a bcdefghij", 6, vec!["a bcde", "fghij"]),
            ("日本語", 4, vec!["日本", "語"]),
            ("日本", 1, vec!["日", "本"]),
            ("ab", 0, vec!["a", "b"]),
        ] {
            assert_eq!(wrap(line, width), parts, "{line:?} {width}");
        }
    }

    #[test]
    fn a_screen_has_its_colors_and_all_of_its_lines() {
        let rows = ["\x1b[31mred", "still\x1b[0m plain", "", "\x1b[1;38;5;208mbold\x1b[m", "日本"];
        let text = rows.map(str::to_owned);
        let mut model = UiModel::new(crate::ui::tests::now(), (80, 24), true);
        let lines = screen_lines(&model, &text);
        let plain: Vec<String> = lines.iter().map(Line::to_string).collect();
        assert_eq!(plain, ["red", "still plain", "", "bold", "日本"]);
        let color = |line: usize, span: usize| lines[line].style.patch(lines[line].spans[span].style).fg;
        assert_eq!((color(0, 0), color(1, 0)), (Some(Color::Red), Some(Color::Red)));
        assert_ne!(color(1, 1), Some(Color::Red));
        assert_eq!(color(3, 0), Some(Color::Indexed(208)));
        model.has_color = false;
        assert!(
            screen_lines(&model, &text)
                .iter()
                .all(|line| line.spans.iter().all(|span| span.style.fg.is_none()))
        );
    }

    #[test]
    fn sparkline_is_relative_to_the_highest_value() {
        assert_eq!(spark(&[0.0, 1.0, 2.0, 4.0]), "▁▃▅█");
        assert_eq!(spark(&[0.0, 0.0]), "▁▁");
        assert_eq!(spark(&[7.0; 30]).chars().count(), 20);
    }
}
