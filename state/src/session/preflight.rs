//! Whether a project is ready for a do-it loop, and with which values.
//!
//! The checks of the document's first two steps, all at once, so that a user learns everything that is
//! missing and how to mend it. Used by `swarm session start --do-it`, which starts nothing unless all hold.
//! Deliberately absent: reading the project and asking git; the caller brings what it found.

use crate::session::Ceiling;

/// What was found of a project.
#[derive(Clone, Copy, Debug)]
pub struct Project<'a> {
    /// `.do-it/specs/_meta.json`, when there is one.
    pub meta: Option<&'a [u8]>,
    /// The other files in `.do-it/specs/`.
    pub specs: &'a [Doc],
    /// The folders in `.do-it/changes/`. One that is called `archive` does not count.
    pub changes: &'a [Change],
    /// The branch of `_meta.json`, see [`ProjectType::branch_of`].
    pub branch: Branch,
    /// The user approved that a missing branch is made.
    pub may_create_branch: bool,
    /// The ceiling that was asked for.
    pub ceiling: Option<Ceiling>,
}

/// A file of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doc {
    /// Its path, as the user knows it.
    pub path: String,
    /// What it says.
    pub text: String,
}

/// A change that is worked on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The folder's name.
    pub name: String,
    /// Its documents.
    pub docs: Vec<Doc>,
}

/// How git stands to the branch of `_meta.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// The project is in no repository.
    NoRepository,
    /// There is no such branch.
    Missing,
    /// It exists.
    Exists,
}

/// What `project_type` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectType {
    /// Software, on a branch.
    Software,
    /// Anything else.
    Generic,
}

/// What a ready project starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// `project_name`.
    pub project_name: String,
    /// `project_type`.
    pub project_type: ProjectType,
    /// `branch_name`; empty for a project without one.
    pub branch_name: String,
    /// The branch has to be made first.
    pub create_branch: bool,
    /// The ceiling: as asked for, else the project's own, else [`crate::session::DEFAULT_CEILING`].
    pub ceiling: Ceiling,
}

/// One thing that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// What.
    pub what: String,
    /// How to mend it.
    pub fix: String,
}

impl ProjectType {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Software => "software",
            Self::Generic => "generic",
        }
    }

    /// The branch that `_meta.json` names for a software project, for the caller to look up; `None` when there is none.
    pub fn branch_of(meta: &[u8]) -> Option<String> {
        let _ = meta;
        None
    }
}

/// Checks a project.
///
/// # Errors
///
/// All that is missing.
pub fn preflight(project: &Project<'_>) -> Result<Ready, Vec<Missing>> {
    let _ = project;
    Err(Vec::new())
}
