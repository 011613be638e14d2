//! Checks whether a project is ready for a do-it loop, and collects its values.
//!
//! The checks are those of the document's first two steps. All of them run, so that the user sees all missing items and
//! their fixes. `swarm session start --do-it` starts a loop only if all of them pass. Deliberately absent: reading the
//! project and running git; the caller passes the results.

use serde_json::{Map, Value};

use crate::session::ceiling::Ceiling;
use crate::session::questions::open_questions;

/// The file with a project's settings.
const META: &str = ".do-it/specs/_meta.json";

/// The facts about a project.
#[derive(Clone, Copy, Debug)]
pub struct Project<'a> {
    /// `.do-it/specs/_meta.json`, if it exists.
    pub meta: Option<&'a [u8]>,
    /// The other files in `.do-it/specs/`.
    pub specs: &'a [Doc],
    /// The folders in `.do-it/changes/`. One that is called `archive` does not count.
    pub changes: &'a [Change],
    /// The branch of `_meta.json`, see [`ProjectType::branch_of`].
    pub branch: Branch,
    /// The user allowed swarm to create a missing branch.
    pub may_create_branch: bool,
    /// The requested limit of turns.
    pub ceiling: Option<Ceiling>,
}

/// A file of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doc {
    /// Its path, as it is shown to the user.
    pub path: String,
    /// Its contents.
    pub text: String,
}

/// A change in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The folder's name.
    pub name: String,
    /// Its documents.
    pub docs: Vec<Doc>,
}

/// The state of the branch of `_meta.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// The project is not in a repository.
    NoRepository,
    /// The branch does not exist.
    Missing,
    /// The branch exists.
    Exists,
}

/// The value of `project_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectType {
    /// Software, on a branch.
    Software,
    /// Anything else.
    Generic,
}

/// The start values of a ready project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// `project_name`.
    pub project_name: String,
    /// `project_type`.
    pub project_type: ProjectType,
    /// `branch_name`; empty for a project without one.
    pub branch_name: String,
    /// The branch has to be created first.
    pub create_branch: bool,
    /// The requested ceiling, else the project's own, else [`crate::session::DEFAULT_CEILING`].
    pub ceiling: Ceiling,
}

/// A missing item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The item.
    pub what: String,
    /// How to fix it.
    pub fix: String,
}

crate::word_table!(pub ProjectType, word, of, [(Software, "software"), (Generic, "generic")]);

impl ProjectType {
    /// The branch in the `_meta.json` of a software project, for the caller to look up.
    pub fn branch_of(meta: &[u8]) -> Option<String> {
        let meta = Meta::parse(meta).ok()?;
        meta.branch().filter(|_| meta.kind() == Some(Self::Software)).map(ToOwned::to_owned)
    }
}

/// Checks a project; the error lists all missing items.
pub fn preflight(project: &Project<'_>) -> Result<Ready, Vec<Missing>> {
    let mut missing = Vec::new();
    let meta = Meta::read(project.meta).map_err(|what| missing.push(what)).ok();
    let mut ready = Ready {
        project_name: String::new(),
        project_type: ProjectType::Generic,
        branch_name: String::new(),
        create_branch: false,
        ceiling: project.ceiling.unwrap_or_default(),
    };
    if let Some(meta) = &meta {
        meta.fill(&mut ready, project, &mut missing);
    }
    has_work(project, &mut missing);
    questions(project, &mut missing);
    if missing.is_empty() { Ok(ready) } else { Err(missing) }
}

impl Missing {
    fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { what: what.into(), fix: fix.into() }
    }
}

impl Change {
    /// The archive holds finished changes.
    fn is_open(&self) -> bool {
        self.name != "archive"
    }
}

/// `_meta.json`, as an object.
struct Meta(Map<String, Value>);

impl Meta {
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        match serde_json::from_slice(bytes) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(_) => Err("it is not a JSON object".to_owned()),
            Err(e) => Err(format!("it is not valid JSON: {e}")),
        }
    }

    fn read(bytes: Option<&[u8]>) -> Result<Self, Missing> {
        let form = r#"{"project_name": "…", "project_type": "software", "branch_name": "…"}"#;
        let bytes = bytes.ok_or_else(|| {
            let fix = format!("run /do-it:grill, or write it by hand: {form}");
            Missing::new(format!("{META} is missing"), fix)
        })?;
        Self::parse(bytes).map_err(|e| {
            Missing::new(format!("{META} cannot be read: {e}"), format!("fix it; its form is {form}"))
        })
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    fn kind(&self) -> Option<ProjectType> {
        self.text("project_type").and_then(ProjectType::of)
    }

    /// The branch, if git accepts the name.
    fn branch(&self) -> Option<&str> {
        let is_bad = |c: char| c.is_whitespace() || c.is_control() || "~^:?*[\\".contains(c);
        self.text("branch_name").filter(|name| !name.starts_with('-') && !name.contains(is_bad))
    }

    /// Copies the file's values to `ready`; adds absent and invalid ones to `missing`.
    fn fill(&self, ready: &mut Ready, project: &Project<'_>, missing: &mut Vec<Missing>) {
        match self.text("project_name") {
            Some(name) => name.clone_into(&mut ready.project_name),
            None => missing
                .push(Missing::new(format!("{META} has no project_name"), "add \"project_name\": \"…\"")),
        }
        match self.kind() {
            Some(kind) => ready.project_type = kind,
            None => missing.push(Missing::new(
                format!("{META} has no project_type that is known"),
                "add \"project_type\": \"software\" or \"generic\"",
            )),
        }
        if self.kind() == Some(ProjectType::Software) {
            self.fill_branch(ready, project, missing);
        }
        // A number given at the start overrides the project's default.
        if project.ceiling.is_none() {
            match self.ceiling() {
                Ok(ceiling) => ready.ceiling = ceiling,
                Err(e) => missing.push(Missing::new(
                    format!("max_iterations_default in {META}: {e}"),
                    "correct it, or give the number at the start",
                )),
            }
        }
    }

    fn fill_branch(&self, ready: &mut Ready, project: &Project<'_>, missing: &mut Vec<Missing>) {
        let Some(branch) = self.branch() else {
            missing.push(Missing::new(
                format!("{META} has no usable branch_name, which a software project needs"),
                "add \"branch_name\": \"…\", a name that git accepts",
            ));
            return;
        };
        branch.clone_into(&mut ready.branch_name);
        match project.branch {
            Branch::Exists => {}
            Branch::Missing if project.may_create_branch => ready.create_branch = true,
            Branch::Missing => missing.push(Missing::new(
                format!("the branch {branch} does not exist"),
                format!("make it (git branch {branch}), or approve that it is made: --create-branch"),
            )),
            Branch::NoRepository => missing.push(Missing::new(
                format!("there is no git repository here for the branch {branch}"),
                "make one (git init) with a first commit, or set \"project_type\": \"generic\"",
            )),
        }
    }

    fn ceiling(&self) -> Result<Ceiling, String> {
        match self.0.get("max_iterations_default") {
            None | Some(Value::Null) => Ok(Ceiling::default()),
            Some(Value::String(text)) => Ceiling::parse(text),
            Some(other) => Ceiling::parse(&other.to_string()),
        }
    }
}

/// Requires an open change, or specs from which the first iteration makes one.
fn has_work(project: &Project<'_>, missing: &mut Vec<Missing>) {
    let has_change = project.changes.iter().any(Change::is_open);
    let has_specs = project.specs.iter().any(|doc| !doc.text.trim().is_empty());
    if !has_change && !has_specs {
        missing.push(Missing::new(
            "there is nothing to iterate over: no open change in .do-it/changes/ and no spec in .do-it/specs/",
            "run /do-it:grill, or write what shall be built into a file in .do-it/specs/",
        ));
    }
}

/// Adds the open questions of the open changes, or of the specs if no change is open.
fn questions(project: &Project<'_>, missing: &mut Vec<Missing>) {
    let open: Vec<&Change> = project.changes.iter().filter(|change| change.is_open()).collect();
    let docs: Vec<&Doc> = match open.as_slice() {
        [] => project.specs.iter().collect(),
        changes => changes.iter().flat_map(|change| &change.docs).collect(),
    };
    for doc in docs {
        missing.extend(open_questions(&doc.text).into_iter().map(|question| {
            let fix = format!("answer it in {}, then tick it off, strike it out or take it away", doc.path);
            Missing::new(format!("an open question in {}: {question}", doc.path), fix)
        }));
    }
}
