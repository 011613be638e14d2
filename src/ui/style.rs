//! The colors of `swarm ui`. Each colored text also has a sign or a word, so that nothing depends on color.

use ratatui::style::{Color, Modifier, Style};
use swarm_state::attention::Attention;

use super::model::UiModel;

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
