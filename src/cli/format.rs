//! The output formats that several commands share.

use clap::{Args, ValueEnum};
use swarm_state::model::WorkerName;

/// Output formats of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Table for people
    #[default]
    Table,
    /// JSON for programs
    Json,
    /// Names only, one per line
    Names,
}

/// Output formats of `swarm status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum StatusFormat {
    /// Text for people
    #[default]
    Text,
    /// JSON for programs
    Json,
    /// One line for the status line of tmux: how many workers need you, work, …
    Tmux,
}

/// Output formats of a single item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PageFormat {
    /// Text for people
    #[default]
    Text,
    /// JSON for programs
    Json,
}

/// Every verb whose only option is the format of an item.
#[derive(Debug, Args)]
pub struct PageFormatArg {
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// Every verb whose only option is the format of a list.
#[derive(Debug, Args)]
pub struct ListFormatArg {
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

/// Every verb that shows one worker.
#[derive(Debug, Args)]
pub struct WorkerPage {
    /// Worker name
    pub name: WorkerName,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: PageFormat,
}

/// The word of a value on the command line.
pub fn word(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}
