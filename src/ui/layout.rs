//! The areas of the window: a line at the top, the list and the panel, and the keys at the bottom. The colors of
//! `swarm ui`: each colored text also has a sign or a word, so that nothing depends on color.

use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use swarm_state::attention::Attention;
use unicode_width::UnicodeWidthStr;

use super::model::{UiMode, UiModel};

/// The most lines of a question or message.
const MAX_BOTTOM_LINES: u16 = 3;

/// The areas; empty for a part that is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Areas {
    pub(super) header: Rect,
    pub(super) list: Rect,
    /// The panel without the line on its left.
    pub(super) panel: Rect,
    pub(super) bottom: Rect,
}

pub(super) fn areas(model: &UiModel) -> Areas {
    let (columns, rows) = model.size;
    let header = rows.min(1);
    let bottom = bottom_lines(model).min(rows.saturating_sub(header));
    let body = rows.saturating_sub(header + bottom);
    let list = match (model.is_zoomed, model.is_wide()) {
        (true, _) => 0,
        (false, true) => (columns / 100 * 52 + columns % 100 * 52 / 100).clamp(38, 72),
        (false, false) => columns,
    };
    let gap = if list > 0 && list < columns { 2 } else { 0 };
    let rect = |x, y, width, height| Rect { x, y, width, height };
    Areas {
        header: rect(0, 0, columns, header),
        list: rect(0, header, list, body),
        panel: rect(list + gap, header, columns.saturating_sub(list + gap), body),
        bottom: rect(0, header + body, columns, bottom),
    }
}

/// A question or message may need several lines; everything else has one.
fn bottom_lines(model: &UiModel) -> u16 {
    let text = match (&model.mode, &model.message) {
        (UiMode::Confirm { question, .. }, _) => question,
        (UiMode::List, Some(message)) => message,
        _ => return 1,
    };
    let columns = usize::from(model.size.0.max(1));
    // A word that does not fit a line leaves room at its end.
    let lines = u16::try_from((text.width() + 2).div_ceil(columns)).unwrap_or(MAX_BOTTOM_LINES);
    let lines = if lines > 1 { lines + 1 } else { lines };
    lines.clamp(1, MAX_BOTTOM_LINES)
}

/// A color, if the terminal shows color.
pub(super) fn colored(model: &UiModel, color: Color) -> Style {
    if model.has_color { Style::new().fg(color) } else { Style::new() }
}

pub(super) fn of_group(model: &UiModel, group: Attention) -> Style {
    match group {
        Attention::NeedsYou => colored(model, Color::Yellow).add_modifier(Modifier::BOLD),
        Attention::FailedOrLost => colored(model, Color::Red),
        Attention::FinishedUnseen => colored(model, Color::Green),
        Attention::Working | Attention::Parked => Style::new(),
        Attention::Rest => Style::new().add_modifier(Modifier::DIM),
    }
}
