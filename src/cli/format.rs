//! The output formats that several commands share.

use clap::ValueEnum;

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
