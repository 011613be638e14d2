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

/// Output formats of a single item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PageFormat {
    /// Text for people
    #[default]
    Text,
    /// JSON for programs
    Json,
}
